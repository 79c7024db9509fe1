"""Another look at the segments that a pass left open.

A segment may have few rows in the pilot, or none. Where its brackets miss a quantile, or a score's certified error is
too large, its columns are read again, and only those: what the pass has counted says between which values the quantile
lies, and those are cut into cells.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from excir_dask.common.wording import count
from excir_dask.graph.closer import certified, certified_outputs, missed
from excir_dask.graph.lake_state import LakeState, with_columns
from excir_dask.graph.pass_scan import PassRequest, References
from excir_dask.graph.scans import Scans
from excir_dask.graph.segment_scan import SegmentNames, SegmentReferences
from excir_dask.graph.segment_states import SegmentStates, segment_states
from excir_dask.kernels.array_records import subset
from excir_dask.kernels.reference import Reference, concatenate_references, replaced_references
from excir_dask.kernels.settle import ColumnStats, opened
from excir_dask.kernels.state import ColumnState

log = logging.getLogger(__name__)

Mask = NDArray[np.bool_]

ROUNDS = 4
"""further looks at most"""

WIDE = 0.02
"""certified error of a segment's score above which the column or the output that leaves it is looked at again"""


@dataclass(frozen=True)
class _Open:
    """What is open of one segment."""

    outputs: Mask
    features: Mask
    references: References
    """for the next look"""

    @property
    def everything(self) -> bool:
        """All its columns are looked at, because the centre of an output changes."""
        return bool(self.outputs.any())

    @property
    def left(self) -> Mask:
        return np.ones_like(self.features) if self.everything else self.features


def close_segments(scans: Scans, request: PassRequest, lake: LakeState, found: SegmentStates) -> SegmentStates:
    """The states of segments once their quantiles are known, as far as further looks tell; ``lake`` is all rows'."""
    for _ in range(ROUNDS):
        still = [_open(each) for each in found.lakes]
        wanted = np.any([each.left for each in still], axis=0)
        some = sum(bool(each.left.any()) for each in still)
        if not some:
            break
        log.info("%s read again for %s", count(int(wanted.sum()), "column"), count(some, "segment"))
        found = _look(scans, request, lake, found, still, wanted)
    return found


def _open(lake: LakeState) -> _Open:
    references, span = lake.references, lake.span
    settled = lake.settled
    width = len(lake.features)
    stats = subset(settled.features, slice(width))
    outputs = missed(settled.outputs, references.outputs) | (certified_outputs(settled) > WIDE)
    sums = subset(settled.sums, slice(width), axis=-1)
    features = missed(stats, references.features)
    features |= stats.varies & (certified(stats, sums, settled.outputs) > WIDE)
    return _Open(
        outputs,
        features,
        replace(
            references,
            outputs=_reopened(span.outputs, references.outputs, settled.outputs, lake.centering, outputs),
            features=_reopened(lake.state.columns, references.features, stats, lake.centering, features),
        ),
    )


def _reopened(state: ColumnState, reference: Reference, stats: ColumnStats, centering: str, where: Mask) -> Reference:
    if not where.any():
        return reference
    some = opened(subset(state, where), subset(reference, where), subset(stats, where), centering)
    return replaced_references(reference, where, some)


def _look(
    scans: Scans,
    request: PassRequest,
    lake: LakeState,
    found: SegmentStates,
    still: Sequence[_Open],
    wanted: Mask,
) -> SegmentStates:
    everything = any(each.everything for each in still)
    columns = np.ones_like(wanted) if everything else wanted
    names = SegmentNames(found.names)
    seen_from = SegmentReferences(
        names,
        concatenate_references([each.references.features.subset(columns) for each in still]),
        concatenate_references([each.references.outputs for each in still]),
        found.lakes[0].references.indicators,
    )
    references = replace(lake.references, features=lake.references.features.subset(columns))
    state, span = scans.all_rows(
        references, lake.categories, replace(request, sample_rows=0, segments=seen_from), None if everything else wanted
    )
    spans = [each.span for each in found.lakes] if span is None else span.segments
    again = segment_states(lake, found.by, seen_from, state.segments, spans)
    lakes = []
    for before, after, each in zip(found.lakes, again.lakes, still, strict=True):
        if each.everything:
            lakes.append(after)
        elif each.features.any():
            mine = each.features[columns]
            narrow = replace(after.references, features=after.references.features.subset(mine))
            part = replace(after.state, columns=subset(after.state.columns, mine),
                           pairs=subset(after.state.pairs, mine, axis=1))  # fmt: skip
            lakes.append(with_columns(before, each.features, narrow, part))
        else:
            lakes.append(before)
    return replace(found, lakes=tuple(lakes))
