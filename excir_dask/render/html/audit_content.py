"""What the report of an audit says: verdict, numbers at a glance, trends, limits and provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from excir_dask.audit.checks import CHECKS
from excir_dask.audit.history import days_of
from excir_dask.common.wording import count
from excir_dask.render.html.blocks import Tone, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.audit import AuditResult

TONES: dict[str, Tone] = {"ok": "good", "warn": "warn", "fail": "bad"}
WORDS = {"ok": "✔ Passed.", "warn": "! Warning.", "fail": "✕ Failed."}
SEVERITY = {"fail": "✕ fail", "warn": "! warn", "ok": "✔ ok"}
NAMED = 4
"""most names in the verdict"""
LIMITS = (
    (
        "An audit shows that something changed, not why.",
        "The lake, the model or the world may have changed; look at the data first.",
    ),
    (
        "A change counts only beyond its own uncertainty.",
        "With few rows even large changes may be noise, which is not reported: a pass does not prove that nothing "
        "changed.",
    ),
    (
        "Days that differ by nature, such as by season, count as drift.",
        "Choose a baseline of the same kind, or wider limits.",
    ),
    (
        "The baseline is a single run with its own noise,",
        "and it stays until somebody sets another. A slow trend shows long before it reaches a limit.",
    ),
)


def verdict(result: AuditResult) -> Verdict:
    """The answer in a sentence or two."""
    about, found = result.about, result.found["violations"]
    status = str(about["status"])
    against = f"against the baseline {about['baseline_window'] or about['baseline']}"
    checks = f"{count(about['checks'], 'check')} {against if about['baseline'] else 'without a baseline'}"
    if not found:
        more = "" if about["baseline"] else " All other checks need a baseline."
        return Verdict(f"{checks}: nothing is beyond the limits.{more}", TONES[status], WORDS[status])
    worst = [one for one in found if one["severity"] == status]
    names = list(dict.fromkeys(_about(one) for one in worst))
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    counts = [
        count(number, word)
        for severity, word in (("fail", "failure"), ("warn", "warning"))
        if (number := sum(one["severity"] == severity for one in found))
    ]
    said = f"{' and '.join(counts)} in {checks}: {', '.join(names[:NAMED])}{more}."
    return Verdict(said, TONES[status], WORDS[status])


def _about(violation: dict[str, Any]) -> str:
    name, kind = violation["feature_name"], violation["kind"]
    if name == "*":
        return {"rows": "the number of rows", "outputs": "rows without an output"}.get(kind, f"the order of the {kind}")
    return name if kind == "features" else f"{kind.removesuffix('s')} {name}"


def title(result: AuditResult) -> str:
    about = result.about
    return f"{about['audit']}, {about['window']}" if about["window"] else str(about["audit"])


def cards(result: AuditResult) -> list[tuple[str, str, str]]:
    """Numbers at a glance."""
    about, changes = result.about, result.changes
    found = result.found["violations"]
    failures = sum(one["severity"] == "fail" for one in found)
    counted = int((changes["shift"].abs() > changes["reach"]).sum())
    steady = result.trend.drop_duplicates(["output", "kind", "name"])["steady"].sum()
    cards = [
        (f"{failures:,}", "failures", f"and {count(len(found) - failures, 'warning')}"),
        (f"{about['checks']}", "checks", "of scores and data"),
        (f"{about['rows']:,}", "rows in the window", "all of them" if _all_rows(result) else "a sample was read"),
    ]
    if about["baseline"]:
        cards.insert(1, (f"{counted:,}", "scores changed", f"of {len(changes):,}, by more than noise"))
    if steady:
        cards.append((f"{steady}", "steady trends", "see below"))
    return cards


def _all_rows(result: AuditResult) -> bool:
    return result.explanation.facts.settings.fraction == 1


def slope(part: pd.DataFrame) -> str:
    """How one score moved from run to run."""
    row, last = part.iloc[0], part.iloc[-1]
    span = f"{row['cir']:.3f} → {last['cir']:.3f} over {count(len(part), 'run')}"
    jump = part[part["run"] == row["jumped"]]
    if len(jump):
        return f"{span}; another score since {days_of(jump).iloc[0]}"
    if not row["steady"]:
        return span
    # towards 0.5 from either side, or away from it
    fades = abs(last["cir"] - 0.5) < abs(row["cir"] - 0.5)
    return f"{'fades' if fades else 'grows'} steadily: {span}, {row['slope']:+.4f} per run"


def provenance(result: AuditResult) -> list[tuple[str, str]]:
    about = result.about
    return [
        ("Audit", str(about["audit"])),
        ("Run", str(about["run"])),
        ("Compared with", str(about["baseline"]) if about["baseline"] else "nothing"),
        ("Model name", str(about["model"])),
        ("Size of the top", str(about["k"])),
        ("Probability of a false alarm per check", f"{about['false_alarm']:g}"),
    ]


def limits(result: AuditResult) -> list[list[str]]:
    """The limits of the run: a row per check, and per name with its own limits."""
    found = []
    for name, check in CHECKS.items():
        judged = result.about["limits"][name]
        found.append([name, check.compares, *(_level(name, judged[level]) for level in ("warn", "fail"))])
        for kind in ("features", "groups"):
            for own in judged.get(kind, []):
                levels = [_level(name, own[level]) for level in ("warn", "fail")]
                found.append([f"{name}: {own['name']}", f"the same, for these {kind} only", *levels])
    return found


def _level(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if CHECKS[name].event:
        return "if any" if value < 1 else "an output, or in the top k"
    return f"{'<' if CHECKS[name].least else '>'} {figure(value)}"


def figure(value: float | None) -> str:
    """A value of any check: counts in full, shares and ratios with four digits.

    >>> figure(29910.0), figure(0.12345), figure(None)
    ('29,910', '0.1235', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.4g}"
