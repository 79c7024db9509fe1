"""Saved explanations added up: a week from its days, without reading a row."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import pairwise

from excir_dask.common.wording import count, listed
from excir_dask.errors import UsageError
from excir_dask.graph.lake_state import LakeState, Settled, check_alike, merge_lakes, settle_state
from excir_dask.graph.segment_states import SegmentStates, merge_segments
from excir_dask.graph.state_files import StateFile, state_digest
from excir_dask.lake.sample import SAMPLINGS
from excir_dask.pipeline.metadata import output_figures, segment_facts
from excir_dask.pipeline.run_id import make_id
from excir_dask.pipeline.scoring import score_table, warn_of_range
from excir_dask.pipeline.segments import score_segments
from excir_dask.results.explanation import Explanation
from excir_dask.results.metadata import Facts, LakeSource, Provenance, RowCounts
from excir_dask.results.storage import check_target
from excir_dask.results.tables import group_table

log = logging.getLogger(__name__)

_AT_ONCE = 2
"""states that are read at the same time"""


def merge(
    results: Sequence[str | os.PathLike[str] | Explanation],
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Explanation:
    """The explanation of all rows of several explanations, from their states alone.

    Parameters
    ----------
    results : list of paths or Explanations
        Of different rows, with the same options, seen from the same reference: all but one were computed with
        ``reference=`` that one. Their order does not matter.
    out : path, optional
        Folder to save the explanation in.
    overwrite : bool
        Replace another explanation in that folder.

    Returns
    -------
    Explanation
        Equal to one run over all rows at that reference, up to rounding. Where a quartile of all rows lies outside what
        the reference covers, ``center_bound`` says how far off the score can be.

    Examples
    --------
    >>> import pandas as pd
    >>> from excir_dask import explain, merge
    >>> days = [pd.DataFrame({"a": [1.0, 2, 3, 4], "pred": [i, 2.0, 5, 4 + i]}) for i in range(3)]
    >>> first = explain(days[0], output="pred")
    >>> others = [explain(day, output="pred", reference=first) for day in days[1:]]
    >>> merge([first, *others]).facts.rows.used
    12
    """
    began = time.perf_counter()
    if len(results) < 2:
        raise UsageError(f"merge was given {count(len(results), 'result')}; give two or more")
    target = None if out is None else check_target(out, overwrite)
    names = [_name(result, number) for number, result in enumerate(results, 1)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(_loaded, results))
    _check_settings(found, names)
    _check_apart(found, names)
    digests = [state_digest(explanation.known_source) for explanation in found]
    order = sorted(range(len(found)), key=lambda i: digests[i])  # sums do not depend on the order of arrival
    for i, j in pairwise(order):
        if digests[i] == digests[j]:
            raise UsageError(
                f"{names[i]} and {names[j]} are of the same rows, which would count twice; name one of them"
            )
    lake = _added_up(found, names, order)
    merged = _explained([found[i] for i in order], lake, [names[i] for i in order], began)
    if target is not None:
        merged.save(target, overwrite)
        log.info("saved in %s", target)
    return merged


def _added_up(found: Sequence[Explanation], names: Sequence[str], order: Sequence[int]) -> LakeState:
    """All states in order. Some are read ahead, so a hundred days need no more memory than a handful."""
    first, total = found[0].state, None

    def read(i: int) -> LakeState:
        source = found[i].known_source
        if i == 0:
            return first
        return source.read(first.references) if isinstance(source, StateFile) else source

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        coming = deque(pool.submit(read, i) for i in order[:_AT_ONCE])
        for position, i in enumerate(order):
            state = coming.popleft().result()
            coming.extend(pool.submit(read, j) for j in order[position + _AT_ONCE : position + _AT_ONCE + 1])
            check_alike([first, state], [names[0], names[i]], "then merge them")
            total = state if total is None else merge_lakes([total, state])
    assert total is not None, "there are two results at least"
    return total


def _loaded(result: str | os.PathLike[str] | Explanation) -> Explanation:
    """An explanation without the scores of a saved one, which are not needed: 1 MB per 1,000 features."""
    if isinstance(result, Explanation):
        return result
    found = Explanation.load(result, check_state=False)
    return replace(found, features=found.features.head(0).copy())


def _name(result: str | os.PathLike[str] | Explanation, number: int) -> str:
    return f"result {number}" if isinstance(result, Explanation) else os.fspath(result)


def _check_settings(found: Sequence[Explanation], names: Sequence[str]) -> None:
    first = found[0].facts.settings
    for other, name in zip(found[1:], names[1:], strict=True):
        for field in fields(first):
            if field.name == "where" and first.where and other.facts.settings.where:  # both are parts of what is merged
                continue
            one, two = getattr(first, field.name), getattr(other.facts.settings, field.name)
            if one != two:
                raise UsageError(
                    f"{names[0]} and {name} differ in {field.name}: {one} and {two}; compute them with the same options"
                )


def _check_apart(found: Sequence[Explanation], names: Sequence[str]) -> None:
    """Refuse a result that is part of another one, whose rows would count twice."""
    seen: dict[str, str] = {}
    for explanation, name in zip(found, names, strict=True):
        for run in _runs(explanation):
            if run in seen:
                raise UsageError(
                    f"{seen[run]} and {name} both hold the rows of run {run}, which would count twice; leave one out"
                )
            seen[run] = name


def _runs(explanation: Explanation) -> tuple[str, ...]:
    """Runs whose rows an explanation holds, as far as they have ids."""
    made = explanation.provenance
    if made.merged is not None:
        return made.merged
    return () if made.run_id is None else (made.run_id,)


def _segments(parts: Sequence[Explanation], labels: Sequence[str]) -> SegmentStates | None:
    if not parts[0].facts.settings.by:
        return None
    total: SegmentStates | None = None
    for part, label in zip(parts, labels, strict=True):  # two at a time, as those of all rows
        states = None if part.by is None else part.by.states
        if states is None:
            raise UsageError(f"{label} has no states of its segments; compute it again with this version")
        total = states if total is None else merge_segments([total, states], [labels[0], label])
    return total


def _explained(parts: Sequence[Explanation], lake: LakeState, labels: Sequence[str], began: float) -> Explanation:
    """An explanation from the state of all rows; what the parts share is taken from the first."""
    first = parts[0]
    settled, settings, names = settle_state(lake), first.facts.settings, list(first.outputs["output"])
    _warn(settled, lake)
    whole_groups = SAMPLINGS[settings.sampling].whole_row_groups and settings.fraction < 1.0
    table = score_table(lake, settled, names, whole_groups, settings.rank_by)
    warn_of_range(table)
    groups = {name: list(members) for name, members in zip(first.groups["group"], first.groups["members"], strict=True)}
    outputs = first.outputs.assign(**output_figures(settled.outputs))
    segments = _segments(parts, labels)
    return Explanation(
        features=table,
        groups=group_table(table, groups, settings.rank_by),
        outputs=outputs,
        facts=_facts(first.facts, parts, segments, lake.span.counts.matching),
        provenance=_provenance(first.provenance, parts, began),
        source=lake,
        by=None if segments is None else score_segments(segments, outputs, groups, whole_groups, settings.rank_by),
    )


def _warn(settled: Settled, lake: LakeState) -> None:
    missed = [name for name, open_ in zip(lake.names, settled.features.missed, strict=True) if open_]
    missed += [name for name, open_ in zip(lake.span.output_names, settled.outputs.missed, strict=True) if open_]
    if missed:
        log.warning(
            "quartiles of %s lie outside what the reference covers (%s); center_bound says how far off the scores can "
            "be, and a run over all rows gives exact ones", count(len(missed), "column"), listed(missed),
        )  # fmt: skip


def _facts(first: Facts, parts: Sequence[Explanation], segments: SegmentStates | None, matching: int) -> Facts:
    names = [field.name for field in fields(RowCounts) if field.name != "extra"]
    rows = RowCounts(**{name: sum(getattr(part.facts.rows, name) for part in parts) for name in names})
    constant = [name for name in first.constant if all(name in part.facts.constant for part in parts)]
    out_of_range = sorted({name for part in parts for name in part.facts.out_of_range})
    filters = list(dict.fromkeys(part.facts.settings.where for part in parts))
    where = filters[0] if len(filters) == 1 else " or ".join(f"({each})" for each in filters)
    return replace(
        first,
        settings=replace(first.settings, where=where),
        rows=rows,
        constant=tuple(constant),
        out_of_range=tuple(out_of_range),
        segments=() if segments is None else segment_facts(segments, rows, matching),
        auto=None,
    )


def _provenance(first: Provenance, parts: Sequence[Explanation], began: float) -> Provenance:
    ids = [part.provenance.run_id for part in parts]
    return replace(
        first,
        lake=LakeSource(
            name=f"{count(len(parts), 'result')} merged: {listed([part.provenance.lake.name for part in parts])}"
        ),
        merged=tuple(sorted(run for part in parts for run in _runs(part))),
        slices=sum(part.provenance.slices for part in parts),
        bytes_read=0,
        resumed_states=None,
        seconds=round(time.perf_counter() - began, 3),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        run_id=None if None in ids else make_id({"merged": ids}),
        audit=None,
    )
