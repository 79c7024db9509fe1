"""Profiles of the best ranked features as the script of a page reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from excir_dask.common.wording import percent
from excir_dask.render.html.blocks import Profiles
from excir_dask.render.html.figures import rounded
from excir_dask.results.profile import Profile, profile_of

if TYPE_CHECKING:
    from excir_dask.graph.lake_state import LakeState
    from excir_dask.results.explanation import Explanation

MOST, LEAST, IN_ALL = 50, 10, 150
"""features of an output that have profiles: at most, at least, and of all outputs together; one takes about 1 kB"""
FIGURES = {"cir": "CIR", "strength": "strength", "lift": "lift", "dependence": "dependence"}
"""scores of a feature that are shown with its profile, where there are such"""


def profiles(explanation: Explanation, outputs: Sequence[str], linked: int) -> dict[str, Profiles]:
    """For each output, profiles of its best ranked features, and links to the first few; none without joint counts."""
    lake = explanation.state if explanation.source is not None else None
    if lake is None or not lake.state.pairs.joint.shape[-1]:
        return {}
    keep = max(LEAST, min(MOST, IN_ALL // len(outputs)))
    columns = {feature: each.column for each in lake.categories for feature in each.features}
    return {output: _block(explanation, lake, columns, output, keep, linked) for output in outputs}


def _block(
    explanation: Explanation, lake: LakeState, columns: dict[str, str], output: str, keep: int, linked: int
) -> Profiles:
    table, k = explanation.of(output), list(explanation.outputs["output"]).index(output)
    groups = explanation.groups[explanation.groups["output"] == output]
    names = {str(name): columns.get(str(name), str(name)) for name in table["feature"].head(keep)}
    found = [profile_of(lake, name, k, table, groups) for name in dict.fromkeys(names.values())]
    places = {profile.feature: place for place, profile in enumerate(found)}
    content = {
        "output": output,
        "features": {name: places[column] for name, column in names.items()},
        "profiles": [_plain(profile) for profile in found],
    }
    return Profiles(output, list(names)[:linked], content)


def _plain(profile: Profile) -> dict[str, Any]:
    table, scores = profile.table, profile.scores
    facts = [["rank", f"{scores['rank']:,}"]] if scores else []
    facts += [[FIGURES[name], f"{scores[name]:.3f}"] for name in FIGURES if scores.get(name) is not None]
    facts += [["missing", percent(round(profile.missing, 4))]] if profile.missing else []
    figures = ("upper",) if "upper" in table else ("q25", "q50", "q75")
    return {
        "name": profile.feature,
        "facts": facts,
        "flag": scores.get("flag", ""),
        "side": scores.get("direction", 0),
        "apart": profile.categories,
        "cells": list(table["cell"]),
        "rows": [float(f"{rows:.6g}") for rows in table["rows"]],
        "share": rounded(table["share"]),
        **{name: [None if value != value else float(f"{value:.4g}") for value in table[name]] for name in figures},
    }
