"""From scores to the tables of an explanation: a row per output and feature, and per output and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import UsageError, nearest
from excir_dask.kernels import chance
from excir_dask.kernels.array_records import per_pair
from excir_dask.kernels.dependence import Dependence
from excir_dask.kernels.groups import GroupScore, score_group
from excir_dask.kernels.recenter import Sums
from excir_dask.kernels.scores import (
    FEW,
    LOW_SUPPORT,
    RANKINGS,
    UNKNOWN,
    WIDE_BOUND,
    Scores,
    group_ranking,
    ranks,
)
from excir_dask.kernels.settle import ColumnStats
from excir_dask.lake.sample import SAMPLINGS
from excir_dask.results.metadata import Facts

if TYPE_CHECKING:
    import pandas as pd

CHANCE_COLUMNS = ("null", "lift", "lift_stderr", "p_chance")
"""columns of both tables that results of earlier versions lack"""

DEPENDENCE_COLUMNS = ("dependence", "dependence_stderr", "dependence_p", "bend")
"""columns of the feature table that they lack as well"""

GROUP_COLUMNS = [
    "output", "group", "size", "cir", "cir_scaled", "strength", "strength_unsigned", "direction", "rank",
    *CHANCE_COLUMNS, "numerator", "denominator", "flag", "members",
]  # fmt: skip

SAID_FIRST = ("bends", "interacts")
"""flags of features of which CIR shows little"""

CANCEL = 0.05
"""a group is flagged if opposite directions of its members cost it more strength than this"""

SCALES_DIFFER = 10.0
"""a group is flagged if its largest scale is more than so many times the smallest: the largest then decides its cir"""


def feature_table(
    names: Sequence[str],
    output_names: Sequence[str],
    features: ColumnStats,
    outputs: ColumnStats,
    sums: Sums,
    scores: Scores,
    dependence: Dependence,
    *,
    rank_by: str,
    segments: Sequence[str] | None = None,
) -> pd.DataFrame:
    """A row per output and feature, best rank first per output.

    With ``segments`` a row per segment, output and feature: all features of the first segment come first in what is
    given, then those of the next.
    """
    import pandas as pd

    iqr = features.q75 - features.q25
    deviation = np.divide(sums.abs_x, sums.weight, out=np.zeros_like(iqr), where=sums.weight > 0)
    scale = np.where(features.constant | (features.n == 0), 0.0, np.where(iqr > 0, iqr, deviation))
    shape = sums.numerator.shape
    p_chance = np.where(np.isnan(dependence.rank_p), scores.p_chance, dependence.rank_p)
    pairs: dict[str, NDArray[Any]] = {
        "cir": scores.cir,
        "strength": scores.strength,
        "direction": scores.direction,
        "rank": np.zeros(shape, dtype=np.int64),
        "stderr": scores.stderr,
        "null": scores.null,
        "lift": scores.lift,
        "lift_stderr": scores.lift_stderr,
        "p_chance": p_chance,
        "dependence": dependence.share,
        "dependence_stderr": dependence.stderr,
        "dependence_p": dependence.p,
        "bend": dependence.bend,
        "stderr_rows": scores.stderr_rows,
        "stderr_by": np.where(scores.stderr_by, "row groups", "rows").astype(object),
        "n": np.broadcast_to(features.n, shape),
        "missing": np.broadcast_to(features.missing, shape),
        "n_eff": scores.n_eff,
        "center": np.broadcast_to(
            np.where((features.n > 0) & np.isfinite(features.center), features.center, np.nan), shape
        ),
        "q25": np.broadcast_to(features.q25, shape),
        "q75": np.broadcast_to(features.q75, shape),
        "scale": np.broadcast_to(np.where(np.isfinite(scale), scale, 0.0), shape),
        "numerator": np.where(sums.known, sums.numerator, 0.0),
        "denominator": np.where(sums.known, sums.denominator, 0.0),
        "center_bound": scores.center_bound,
        "center_jump": scores.center_jump,
    }
    support = np.where(scores.strength > 0, scores.strength * np.sqrt(scores.n_eff), np.abs(scores.z))
    p = chance.either(p_chance, dependence.p)
    by_chance, order = np.zeros(shape, dtype=bool), []
    marked = dependence.bends | dependence.interacts
    for first in range(0, shape[1], max(len(names), 1)):  # a table per segment, and in it one per output
        for k in range(shape[0]):
            mine = k, slice(first, first + len(names))
            by_chance[mine] = chance.by_chance(p[mine]) & ~marked[mine]
            value = RANKINGS[rank_by].order(pairs[rank_by][mine], by_chance[mine] | np.isnan(p[mine]))
            pairs["rank"][mine] = ranks(value, support[mine])
            order.append(k * shape[1] + first + np.argsort(pairs["rank"][mine], kind="stable"))
    still = np.broadcast_to(per_pair(outputs.constant, *shape), shape)
    pairs["flag"] = _flags(features, still, scores, dependence, by_chance)
    rows = np.concatenate([*order, np.empty(0, np.int64)])
    places = rows % max(shape[1], 1)
    labels = {"output": (output_names, rows // max(shape[1], 1)), "feature": (names, places % max(len(names), 1))}
    if segments is not None:
        labels = {"segment": (segments, places // max(len(names), 1)), **labels}
    texts = {name: np.array([*each, None], dtype=object)[where] for name, (each, where) in labels.items()}
    return pd.DataFrame({**texts, **{name: array.ravel()[rows] for name, array in pairs.items()}})


def lake_errors(features: pd.DataFrame, facts: Facts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Standard errors of a sample's scores as estimates of those of all rows, and the effective numbers behind them.

    Rows drawn one by one are independent whatever the data. For whole row groups, the spread between them counts.
    Three kinds of error do not show in the spread of a sample: few rows carry a score, and those outside the sample may
    be very different; a centre jumps to another value with a few rows more or less; a column or output is constant in
    the sample, so nothing is known about it.
    """
    rows, by_groups = facts.rows, SAMPLINGS[facts.settings.sampling].whole_row_groups
    left = max(1.0 - rows.sampled / rows.lake, 0.0) if rows.lake else 0.0
    n_eff = features["n_eff"].to_numpy()
    errors = careful_errors(features, "stderr" if by_groups else "stderr_rows")
    constant = features["feature"].isin(facts.constant).to_numpy()
    errors = np.where(constant, 0.0, np.where(n_eff > 0, errors, UNKNOWN))
    if by_groups:
        n_eff = np.minimum(n_eff, float(rows.row_groups))
    return errors * np.sqrt(left), n_eff


def ranking_errors(features: pd.DataFrame, facts: Facts) -> tuple[NDArray[np.float64], ...]:
    """What ranks of a sample are made of, its errors as estimates of all rows and the effective numbers behind them,
    what chance gives, and the distance from there within which chance would explain the score of all rows.
    """
    errors, n_eff = lake_errors(features, facts)
    cir, null, p = (features[name].to_numpy(dtype=np.float64) for name in ("cir", "null", "dependence_p"))
    null = np.where(np.isnan(null), 0.5, null)
    if RANKINGS[facts.settings.rank_by].of == "dependence":
        share = np.sqrt(max(1.0 - facts.rows.sampled / facts.rows.lake, 0.0)) if facts.rows.lake else 0.0
        found = (features[name].to_numpy(dtype=np.float64) for name in ("dependence", "dependence_stderr", "n"))
        scores, spread, rows = map(np.nan_to_num, found)
        return scores, spread * share, rows, np.zeros_like(null), np.zeros_like(null)
    all_rows = np.sqrt(facts.rows.sampled / facts.rows.lake) if facts.rows.lake else 1.0
    reach = np.where(n_eff > 0, chance.BEYOND * all_rows * careful_errors(features), 0.0)
    reach = np.where(p < chance.LEVEL, 0.0, reach)
    settled = (errors == 0) & (flagged(features, "chance") | flagged(features, "constant")).to_numpy()
    return cir, errors, n_eff, null, np.where(settled, np.inf, reach)


def careful_errors(features: pd.DataFrame, column: str = "stderr") -> NDArray[np.float64]:
    """Standard errors that include what the spread does not show: few rows carry a score, a centre may jump."""
    n_eff = features["n_eff"].to_numpy(dtype=np.float64)
    errors = np.maximum(features[column].to_numpy(), np.minimum(FEW / np.maximum(n_eff, 1.0), UNKNOWN))
    combined: NDArray[np.float64] = np.minimum(np.hypot(errors, features["center_jump"].to_numpy()), UNKNOWN)
    return combined


def group_table(features: pd.DataFrame, groups: Mapping[str, Sequence[str]], rank_by: str = "strength") -> pd.DataFrame:
    """A row per output and group, from the members' sums in the feature table."""
    import pandas as pd

    members = check_groups(groups, features["feature"].unique())
    tables = []
    for output, table in features.groupby("output", sort=False):
        rows, together = [], []
        places = {name: place for place, name in enumerate(table["feature"])}
        # arrays: selecting rows of a DataFrame takes 1 ms per group
        numerators, denominators, scales = table[["numerator", "denominator", "scale"]].to_numpy().T
        levels = table[["cir", "null", "lift_stderr"]].to_numpy(dtype=np.float64).T
        tests = table[["p_chance", "dependence_p"]].to_numpy(dtype=np.float64).T
        for group, names in members.items():
            inside = [places[name] for name in names]
            scored = score_group(
                numerators[inside], denominators[inside], scales[inside], *(each[inside] for each in levels)
            )
            p_chance, p_dependence = (chance.any_of(each[inside]) for each in tests)
            rows.append(
                {
                    "output": output,
                    "group": group,
                    "size": len(names),
                    **scored.__dict__,
                    "p_chance": p_chance,
                    "flag": _group_flag(scored, scales[inside]),
                    "members": list(names),
                    "rank": 0,
                }
            )
            together.append(chance.either(p_chance, p_dependence))
        if rows:
            found = pd.DataFrame(rows)[GROUP_COLUMNS]
            by, p = group_ranking(rank_by), np.array(together, dtype=np.float64)
            by_chance = chance.by_chance(p)
            found["rank"] = ranks(RANKINGS[by].order(found[by].to_numpy(), by_chance), np.zeros(len(found)))
            found["flag"] = [
                ", ".join(filter(None, [flag, "chance" if explained else ""]))
                for flag, explained in zip(found["flag"], by_chance, strict=True)
            ]
            tables.append(found.sort_values("rank", kind="stable"))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=GROUP_COLUMNS)


def check_groups(
    groups: Mapping[str, Sequence[str]], known: Sequence[str] | NDArray[np.str_]
) -> dict[str, tuple[str, ...]]:
    """Groups without repeated members; one that is not a known feature is an error that suggests the nearest name."""
    features = set(known)
    checked = {}
    for group, members in groups.items():
        if isinstance(members, str):
            raise UsageError(f"group '{group}' is a string; give a list of feature names")
        unique = tuple(dict.fromkeys(members))
        if not unique:
            raise UsageError(f"group '{group}' has no members; give it some, or leave it out")
        for name in unique:
            if name not in features:
                raise UsageError(
                    f"group '{group}' names '{name}', which is not an explained feature{nearest(name, features)}"
                )
        checked[group] = unique
    return checked


def _group_flag(scored: GroupScore, scales: NDArray[np.float64]) -> str:
    """Warnings about a group, comma-separated; empty for most."""
    moving = scales[scales > 0]
    words = []
    if scored.strength_unsigned > abs(2.0 * scored.cir - 1.0) + CANCEL:  # both without chance
        words.append("members cancel")
    if moving.size and moving.max() > SCALES_DIFFER * moving.min():
        words.append("scales differ")
    return ", ".join(words)


def _flags(
    features: ColumnStats,
    output_constant: NDArray[np.bool_],
    scores: Scores,
    dependence: Dependence,
    by_chance: NDArray[np.bool_],
) -> NDArray[np.object_]:
    """Warnings per output and feature, comma-separated; empty for most."""
    only = {"all missing": features.n == 0, "constant": features.constant, "output constant": output_constant}
    cautions = {
        "bends": dependence.bends,
        "interacts": dependence.interacts,
        "chance": by_chance,
        "saturated": np.minimum(scores.null, 1.0 - scores.null) < chance.SATURATED,
        "out of range": scores.out_of_range,
        "low support": scores.n_eff < LOW_SUPPORT,
        "wide bound": scores.center_bound > WIDE_BOUND,
    }
    found = np.zeros(
        by_chance.shape, dtype=np.int64
    )  # a bit per word: a list of words per pair takes ten times as long
    for bit, applies in enumerate(cautions.values()):
        found |= applies.astype(np.int64) << bit
    for bit, applies in reversed(list(enumerate(only.values(), len(cautions)))):
        found = np.where(applies, 1 << bit, found)
    words = [*cautions, *only]
    texts = {
        bits: ", ".join(word for bit, word in enumerate(words) if bits >> bit & 1) for bits in np.unique(found).tolist()
    }
    return np.array([texts[bits] for bits in found.ravel().tolist()], dtype=object).reshape(found.shape)


def flagged(table: pd.DataFrame, flag: str) -> pd.Series:
    """Which rows of a table have a flag, among others."""
    return table["flag"].map(lambda flags: flag in flags.split(", ")).astype(bool)


def completed(table: pd.DataFrame, columns: Sequence[str], before: str) -> pd.DataFrame:
    """A table of an earlier version with the columns that it lacks, empty, before another one."""
    for name in columns:
        if name not in table:
            table.insert(list(table.columns).index(before), name, np.nan)
    return table


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values, missing ones as None."""
    import pandas as pd

    def plain(value: Any) -> Any:
        return None if value is pd.NA or (isinstance(value, float) and value != value) else value

    return [{str(name): plain(value) for name, value in row.items()} for row in table.to_dict("records")]
