"""Explanations, sweeps and audits for the tests of reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from excir_dask import Explanation, Sweep, explain, sweep
from excir_dask.audit.check_limits import read_limits
from excir_dask.audit.config import Config
from excir_dask.audit.history import rows_of
from excir_dask.audit.target import Target
from excir_dask.audit.verdict import judge
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.results.audit import AuditResult

NASTY = '</script><script>alert("x")</script><b>&'
FORMULA = "$$x^2$$"
NAMES = (NASTY, FORMULA, "oil", "water", "speed", "wind")
LONG_NAMES = tuple(
    f"customer_account_balance_rolling_mean_over_the_last_{j}_days_normalised" for j in range(3)
) + tuple(
    f"CUSTOMER_ACCOUNT_BALANCE_{kind}_OVER_THE_LAST_MONTHS_NORMALISED" for kind in ("MAXIMUM", "MINIMUM", "MEDIAN")
)


def small() -> Explanation:
    """Two outputs, names that try to break the page, constant, empty and text columns, groups."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 30))
    frame = pd.DataFrame(X, columns=[f"sensor_{j:02d}" for j in range(30)])
    frame = frame.rename(columns={"sensor_03": NASTY, "sensor_04": FORMULA})
    frame = frame.assign(idle=1.0, empty=np.nan, city="x", y=3 * X[:, 3] - 2 * X[:, 4] + X[:, 7], z=X[:, 1] - X[:, 2])
    groups = {"<i>pair": [NASTY, FORMULA], "rest": ["sensor_10", "sensor_11", "sensor_12"]}
    return explain(frame, output=["y", "z"], groups=groups, fraction=0.5)


def large(features: int = 10_000, outputs: int = 1) -> Explanation:
    """An explanation of many features, made without a run: scores at random."""
    rng = np.random.default_rng(0)
    base = explain(pd.DataFrame(rng.standard_normal((50, 2)), columns=["a", "y"]), output="y")
    tables = []
    for k in range(outputs):
        cir = np.clip(0.5 + 0.15 * rng.standard_normal(features), 0, 1)
        table = pd.DataFrame(
            {
                "output": f"class_{k}", "feature": [f"sensor_{j:05d}_temperature_mean" for j in range(features)],
                "cir": cir, "strength": np.abs(2 * cir - 1), "direction": np.where(cir > 0.5, 1, -1),
                "null": 0.5, "lift": 2 * cir - 1, "lift_stderr": 0.01, "p_chance": 0.0,
                "dependence": rng.random(features), "dependence_stderr": 0.01, "dependence_p": 0.0, "bend": 0.0,
                "stderr": rng.random(features) / 100, "stderr_rows": 0.001, "stderr_by": "rows", "n": 10**6,
                "missing": rng.integers(0, 10**5, features), "n_eff": rng.random(features) * 1e6,
                "center": rng.standard_normal(features), "q25": rng.standard_normal(features),
                "q75": rng.standard_normal(features), "scale": 1.0, "numerator": 0.0, "denominator": 1.0,
                "center_bound": 0.0, "center_jump": 0.0,
                "flag": np.where(rng.random(features) < 0.1, "low support", ""),
            }
        )  # fmt: skip
        table = table.sort_values("strength", ascending=False, kind="stable")
        tables.append(table.assign(rank=np.arange(1, features + 1)))
    names = [f"class_{k}" for k in range(outputs)]
    listed = pd.concat([base.outputs] * outputs, ignore_index=True).assign(output=names)
    facts = replace(base.facts, settings=replace(base.facts.settings, outputs=dict.fromkeys(names)))
    table = pd.concat(tables, ignore_index=True)
    return replace(base, features=table, outputs=listed, facts=facts, source=None)


def swept() -> Sweep:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 12))
    frame = pd.DataFrame(X, columns=[f"f{j:02d}" for j in range(12)]).assign(y=X @ np.arange(12.0, 0.0, -1.0))
    groups = {"<b>": ["f00", "f01"], "b": ["f05", "f06"], "c": ["f09", "f10"]}
    return sweep(frame, output="y", groups=groups, fractions=[0.2, 0.5], seeds=2, k=3, target_jaccard=0.5)


def audited(days: int = 8, flipped: bool = True, names: Sequence[str] = NAMES) -> AuditResult:
    """The last of some days: one feature's effect has flipped, one group fades, names try to break the page."""
    rng = np.random.default_rng(0)
    explanations = []
    for day in range(days):
        X = rng.standard_normal((1200, len(names)))
        fading, turned = 1.0 - 0.08 * day, -1.0 if flipped and day == days - 1 else 1.0
        y = X @ np.array([1.5, -1.0, fading, fading, 1.2 * turned, 0.2])
        frame = pd.DataFrame(X, columns=names).assign(y=y, z=X[:, 0] - X[:, 4])
        groups = {"<i>pair": list(names[:2]), "cooling": list(names[2:4])}
        explanations.append(explain(frame, output=["y", "z"], groups=groups))
    return _judged(explanations)


def large_audit(features: int = 10_000) -> AuditResult:
    """Many features, of which very many changed."""
    now = large(features)
    was = replace(now, features=now.features.assign(cir=1 - now.features["cir"]))
    return _judged([was, now])


def _judged(explanations: list[Explanation]) -> AuditResult:
    """The last of some explanations, against the first."""
    checks = read_limits({"score_shift": {"warn": 0.05, "fail": 0.15, "features": {NASTY: "off"}}})
    config = Config(
        name="plant", lake="lake", results="audits", options=ExplainOptions(output="y"), model_name="y", checks=checks
    )
    past, results, first = [], [], None
    for day, now in enumerate(explanations, 1):
        target = Target("lake", f"date=2026-09-{day:02d}", f"2026-09-{day:02d}", "plant")
        was = explanations[0] if first else None
        run, result, _ = judge(config, target, now, was, first, pd.concat(past) if past else None)
        first = first or run["run"]
        past.append(rows_of(run, now))
        results.append(result)
    return results[-1]
