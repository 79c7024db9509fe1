"""The groups of a run: those given, those that vectors and categories form, and those found by correlation."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from excir_dask.errors import UsageError
from excir_dask.graph.measure import Measurement
from excir_dask.lake.select import Selection
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.results.group_files import Groups, read_groups
from excir_dask.results.tables import check_groups

if TYPE_CHECKING:
    import pandas as pd

CORRELATED = 0.9
"""least rank correlation within a group that ``groups="correlation"`` finds"""

_MANY = 5000
"""features from which on the log says what finding groups costs"""

_log = logging.getLogger("excir_dask")


@dataclass(frozen=True)
class WantedGroups:
    """Groups as the options ask for them."""

    given: Groups = field(default_factory=dict)
    correlated: float | None = None
    """least rank correlation within a group to find; None: no groups are searched for"""


def resolve_groups(options: ExplainOptions, selection: Selection) -> WantedGroups:
    """Check groups before any data is read; members that are categories are checked once those are known."""
    from excir_dask.kernels.correlation import correlation_cost
    from excir_dask.kernels.spearman import MOST_ROWS

    groups, correlated, rows = options.groups, options.group_correlated, options.group_rows
    if isinstance(groups, str) and groups == "correlation":
        groups, correlated = None, CORRELATED if correlated is None else correlated
    if correlated is not None:
        if rows > MOST_ROWS:
            raise UsageError(f"group_rows is {rows:,}; groups are found in at most {MOST_ROWS:,} rows")
        if len(selection.features) >= _MANY:
            _log.warning("%s", correlation_cost(len(selection.features), rows))
    sources: list[tuple[str, Mapping[str, Sequence[str]]]] = []
    if isinstance(groups, str | os.PathLike):
        sources.append((os.fspath(groups), read_groups(groups)))
    elif groups is not None:
        sources.append(("groups", groups))
    for _, mapping in sources:
        known = {*selection.features, *_categories_named(mapping, selection.categoricals)}
        check_groups(mapping, sorted(known))
    if options.group_prefix is not None:
        by_prefix = prefix_groups(selection.features, options.group_prefix)
        sources.append((f"the prefixes before '{options.group_prefix}'", by_prefix))
    return WantedGroups(combine(*sources), correlated)


def all_groups(wanted: WantedGroups, selection: Selection, measured: Measurement, features: pd.DataFrame) -> Groups:
    """All groups of a run: a vector or a column of categories is a group too, unless another has its name."""
    found = dict(wanted.given)
    by_vector: Groups = {}
    for feature in selection.features:
        if feature in selection.vectors:
            by_vector.setdefault(selection.vectors[feature][0], []).append(feature)
    natural = [*by_vector.items(), *((c.column, list(c.features)) for c in measured.categories)]
    for name, members in natural:
        if name not in found and len(members) > 1:
            found[name] = members
    if wanted.correlated is not None:
        for name, members in _correlated(wanted.correlated, selection, measured, features).items():
            while name in found:
                name = f"{name} (correlated)"
            found[name] = members
    return found


def _correlated(threshold: float, selection: Selection, measured: Measurement, features: pd.DataFrame) -> Groups:
    from excir_dask.kernels.correlation import correlated_groups

    assert measured.sample is not None, "no sample of rows was requested"
    clusters = correlated_groups(measured.sample.values.T, threshold)
    return name_by_strength([[selection.features[i] for i in cluster] for cluster in clusters], features)


def _categories_named(groups: Mapping[str, Sequence[str]], categoricals: Sequence[str]) -> list[str]:
    return [
        member
        for members in groups.values()
        if not isinstance(members, str)
        for member in members
        if any(member.startswith(f"{column}=") for column in categoricals)
    ]


def prefix_groups(features: Iterable[str], separator: str) -> Groups:
    """Groups of features that have the same name before the last separator; at least two of them.

    >>> prefix_groups(["door_1", "seat", "door_2", "belt_1"], "_")
    {'door': ['door_1', 'door_2']}
    """
    if not separator:
        raise UsageError("the separator of a group's name is empty; give the character between name and number, as '_'")
    found: Groups = {}
    count = 0
    for feature in features:
        count += 1
        prefix = feature.rpartition(separator)[0]
        if prefix:
            found.setdefault(prefix, []).append(feature)
    groups = {prefix: members for prefix, members in found.items() if len(members) > 1}
    if not groups:
        raise UsageError(
            f"no two of {count:,} features share a prefix before their last '{separator}'; "
            "give another separator, or name the groups"
        )
    return groups


def name_by_strength(clusters: Iterable[Sequence[str]], features: pd.DataFrame) -> Groups:
    """Name clusters after their strongest members, with the number of the others: ``oil_temp+2``.

    Parameters
    ----------
    clusters : lists of feature names
        Disjoint, so that their names are unique; members in the order of the lake, the first of equals gives the name.
    features : DataFrame
        An explanation's features; of several outputs, the one where a member is strongest counts.
    """
    # closer than 1e-12 is a tie, as in ranks: rounding must not choose a name
    strength = features.groupby("feature")["strength"].max().round(12).to_dict()
    return {f"{max(members, key=strength.__getitem__)}+{len(members) - 1}": list(members) for members in clusters}


def combine(*sources: tuple[str, Mapping[str, Sequence[str]]]) -> Groups:
    """Groups of several sources together, in order; a name that two of them give is an error.

    >>> combine(("--group", {"a": ["x", "y"]}), ("groups.yaml", {"b": ["y"]}))
    {'a': ['x', 'y'], 'b': ['y']}
    """
    found: Groups = {}
    origin: dict[str, str] = {}
    for source, groups in sources:
        for group, members in groups.items():
            if group in found:
                raise UsageError(f"group '{group}' comes from {origin[group]} and from {source}; rename one of them")
            found[group], origin[group] = list(members), source
    return found
