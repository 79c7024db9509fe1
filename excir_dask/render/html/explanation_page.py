"""The report of an explanation: its sections, and the blocks of each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.common.wording import count
from excir_dask.render.html import explanation_content as content
from excir_dask.render.html.blocks import (
    Block,
    Choice,
    Facts,
    Grid,
    GroupList,
    Legend,
    Paragraphs,
    Points,
    Profiles,
    Report,
    Rows,
    Section,
)
from excir_dask.render.html.figures import DARK
from excir_dask.render.html.page import require, write
from excir_dask.render.html.profile_data import profiles
from excir_dask.render.html.segment_section import segments
from excir_dask.render.html.table_data import Column, pack, size
from excir_dask.render.plots.ranking import Z95

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.explanation import Explanation

TOP = 20
"""features in the ranking, and in the map of outputs"""
OUTPUTS = 12
"""most outputs with their own charts and groups"""
MAPPED = 24
"""most outputs in the map"""
GROUPS, MEMBERS = 60, 40
"""most groups of an output, and members of a group"""
TABLE = 1_200_000
"""most bytes of the table of all features: with its scripts a report then stays below 2 MB"""
LEAST = 30
"""fewest bytes of one of its rows"""
ARROWS = {1: "▲", -1: "▼", 0: "·"}
SIDES = {1: "with", -1: "against", 0: "none"}
SIGNS = (("with", "moves with the output"), ("against", "moves against it"))


def save(explanation: Explanation, path: str | os.PathLike[str]) -> Path:
    """Write the report to a file."""
    require()
    return write(page(explanation), path)


def page(explanation: Explanation) -> Report:
    """The report as sections."""
    return Report(
        kicker="ExCIR report",
        title=content.title(explanation),
        summary=content.summary(explanation),
        cards=content.cards(explanation),
        sections=sections(explanation),
        footer="This page holds scores and counts, and no rows of the lake. It needs no network and sends nothing.",
        dark=DARK,
    )


def sections(explanation: Explanation) -> list[Section]:
    """The sections of an explanation; the report of an audit has them too."""
    limits = _limits(explanation)
    names = _names(explanation)
    along = profiles(explanation, names[:OUTPUTS], TOP)
    found = [_ranking(explanation, limits, along), _side_by_side(explanation), segments(explanation, SIGNS)]
    found += [_spread(explanation), _groups(explanation), _table(explanation, limits, names[0] if along else None)]
    found += [_read(explanation), *_end(explanation)]
    return [section for section in found if section is not None]


def _limits(explanation: Explanation) -> pd.DataFrame:
    """The feature table with 95% intervals: of the scores of all rows, or of other rows like these."""
    table = explanation.features
    if explanation.facts.settings.fraction < 1:
        found = explanation.intervals()
        return table.assign(low=found["low"], high=found["high"])
    error = Z95 * table["stderr"].fillna(0.0)
    return table.assign(low=(table["cir"] - error).clip(0, 1), high=(table["cir"] + error).clip(0, 1))


def _names(explanation: Explanation) -> list[str]:
    return [str(name) for name in explanation.outputs["output"]]


def _ranking(explanation: Explanation, limits: pd.DataFrame, along: Mapping[str, Profiles]) -> Section:
    from excir_dask.render.html.explanation_charts import ranking

    outputs = _names(explanation)
    panels: list[tuple[str, list[Block]]] = []
    for output in outputs[:OUTPUTS]:
        table = limits[limits["output"] == output]
        drawn: list[Block] = [ranking(table.head(TOP), output, len(table))]
        panels.append((output, [*drawn, along[output]] if output in along else drawn))
    total = explanation.features["feature"].nunique()
    lead = f"The first {TOP} of {total:,} features." if total > TOP else f"All {total} features."
    if len(outputs) > OUTPUTS:
        lead += f" The first {OUTPUTS} of {len(outputs):,} outputs are drawn; the table below has all of them."
    legend = Legend([*SIGNS, ("whisker", content.interval(explanation))])
    return Section("ranking", "Ranking", [legend, _choose(panels)], lead)


def _side_by_side(explanation: Explanation) -> Section | None:
    from excir_dask.render.html.explanation_charts import side_by_side

    outputs = _names(explanation)
    if len(outputs) < 2:
        return None
    table = explanation.features
    strongest = table.groupby("feature", sort=False)["strength"].max().sort_values(ascending=False, kind="stable")
    features = [str(name) for name in strongest.index[:TOP]]
    shown = outputs[:MAPPED]
    some = table[table["feature"].isin(features) & table["output"].isin(shown)]
    cir = some.pivot(index="feature", columns="output", values="cir").loc[features, shown].to_numpy(dtype=np.float64)
    lead = f"The {len(features)} features that are strongest for any output; the darker the colour, the stronger."
    if len(outputs) > MAPPED:
        lead += f" {MAPPED} of {len(outputs):,} outputs are shown."
    return Section("outputs", "Outputs side by side", [Legend(SIGNS), side_by_side(cir, features, shown)], lead)


def _spread(explanation: Explanation) -> Section:
    from excir_dask.render.html.explanation_charts import swarm

    outputs = _names(explanation)[:OUTPUTS]
    drawn, step = swarm([explanation.of(output) for output in outputs], outputs)
    each = "A dot per feature" if step == 1 else f"A dot per {step} features, in the order of their scores"
    return Section(
        "spread",
        "Distribution of the scores",
        [Legend(SIGNS), drawn],
        f"{each}; the strip below the dots shows the same scores.",
    )


def _groups(explanation: Explanation) -> Section | None:
    if explanation.groups.empty:
        return None
    panels: list[tuple[str, list[Block]]] = []
    for output in _names(explanation)[:OUTPUTS]:
        groups = explanation.groups[explanation.groups["output"] == output]
        features = explanation.of(output)
        known = dict(
            zip(
                features["feature"],
                zip(features["cir"], features["strength"], features["direction"], strict=True),
                strict=True,
            )
        )
        some = [_group(row, known) for row in groups.head(GROUPS).to_dict("records")]
        left = len(groups) - len(some)
        note = f"{left:,} weaker groups are not shown; groups.parquet has all of them." if left > 0 else ""
        panels.append((output, [GroupList(some, note)]))
    lead = "Correlated features scored together. The bar reaches from 0.5 to the group's CIR."
    return Section("groups", "Groups and their members", [_choose(panels)], lead)


def _group(row: Mapping[Any, Any], known: dict[str, tuple[float, float, int]]) -> dict[str, Any]:
    members = sorted(row["members"], key=lambda name: -known[name][1])
    more = len(members) - MEMBERS
    return {
        "name": row["group"],
        "flags": [flag for flag in row["flag"].split(", ") if flag],
        "side": SIDES[row["direction"]],
        "left": round(100 * min(row["cir"], 0.5), 2),
        "width": round(100 * abs(row["cir"] - 0.5), 2),
        "figures": [
            ("rank", f"{row['rank']}"),
            ("CIR", f"{row['cir']:.3f}"),
            ("scaled", f"{row['cir_scaled']:.3f}"),
            ("strength", f"{row['strength']:.3f}"),
            ("unsigned", f"{row['strength_unsigned']:.3f}"),
        ],
        "size": count(row["size"], "member"),
        "members": [
            {
                "name": name,
                "cir": f"{known[name][0]:.3f}",
                "arrow": ARROWS[known[name][2]],
                "side": SIDES[known[name][2]],
            }
            for name in members[:MEMBERS]
        ],
        "more": f"and {more:,} more" if more > 0 else "",
    }


def _table(explanation: Explanation, limits: pd.DataFrame, profiled: str | None) -> Section:
    outputs = _names(explanation)
    full = int(limits.groupby("output").size().max())
    keep = min(full, max(1, TABLE // LEAST // len(outputs)))
    table = _content(limits.groupby("output", sort=False).head(keep), len(outputs))
    while (bytes_ := size(table)) > TABLE and keep > 1:
        keep = max(1, int(keep * min(0.95, 0.98 * TABLE / bytes_)))
        table = _content(limits.groupby("output", sort=False).head(keep), len(outputs))
    note = (
        f"To keep this file small, it holds the first {keep:,} of {full:,} features"
        f"{' of each output' if len(outputs) > 1 else ''}; features.parquet, in the saved folder, has all of them."
        if keep < full
        else ""
    )
    name = "All features" if keep == full else f"The first {keep:,} features"
    what = "features" if len(outputs) == 1 else "scores"
    return Section("features", name, [Rows(table, what, note, profiled)], "Search, filter, or sort by any column.")


def _content(table: pd.DataFrame, outputs: int) -> dict[str, Any]:
    columns = [Column("feature", "text", table["feature"])]
    if outputs > 1:
        columns.append(Column("output", "text", table["output"], pick=True, picked=True))
    place = len(columns)
    columns += [
        Column("rank", "whole", table["rank"], "1 is the strongest"),
        Column("CIR", "score", table["cir"], "share of co-movement that is aligned; 0.5: none either way", bar=True),
        Column("direction", "direction", table["direction"], "whether it moves with the output", pick=True),
        Column("low", "score", table["low"], "lower end of the 95% interval"),
        Column("high", "score", table["high"], "upper end of the 95% interval"),
        Column(
            "chance", "score", table["null"], "CIR of a column like this one that has nothing to do with the output"
        ),
        Column("lift", "score", table["lift"], "distance from chance as a share of the maximum; negative: against"),
        Column("dependence", "score", table["dependence"], "share of the output's entropy that the feature tells"),
        Column("bend", "score", table["bend"], "share of the dependence that is not one-way"),
        Column("missing", "whole", table["missing"], "rows without a value"),
        Column("effective rows", "whole", table["n_eff"], "effective number of rows behind the score"),
        Column("centre", "number", table["center"], "value that the feature is centred on"),
        Column("q25", "number", table["q25"], "lower quartile"),
        Column("q75", "number", table["q75"], "upper quartile"),
        Column("flag", "flag", table["flag"], "what to be careful with", pick=True),
    ]
    return pack(columns, sort=place)


def _read(explanation: Explanation) -> Section:
    blocks: list[Block] = [Facts(content.read(explanation))]
    columns = content.columns(explanation)
    if columns:
        blocks.append(Grid(["column", "what happened", "why"], columns[: content.COLUMNS], text_columns=3))
    if len(columns) > content.COLUMNS:
        left = len(columns) - content.COLUMNS
        blocks.append(Paragraphs([f"And {left:,} more; explanation.json names all of them."]))
    return Section("read", "Data read and left out", blocks)


def _end(explanation: Explanation) -> list[Section]:
    return [
        Section("quality", "Quality notes", [Points(content.quality(explanation))]),
        Section("limits", "What a score means, and what it does not", [Paragraphs([_MEANING]), Points(content.LIMITS)]),
        Section("provenance", "Provenance", [Facts(content.provenance(explanation))]),
    ]


def _choose(panels: list[tuple[str, list[Block]]]) -> Block:
    return Choice("Output", panels)


_MEANING = (
    "Feature and output are centred. CIR is the share of their co-movement that is aligned: 1 if they always move "
    "together, 0 if always against each other, 0.5 if neither. Columns on one side of "
    "their centres agree by chance too: lift is how far CIR is from what chance gives, and strength is |lift|. "
    "Dependence is the share of the output's entropy that the feature explains, in any direction."
)
