"""Another look at the segments that a pass left open.

A segment may have few rows in the pilot, or none. Where its brackets miss a quantile, or a score's certified error is
too large, its columns are read again, and only those: what the pass has counted says between which values the quantile
lies, and those are cut into cells.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from excir_dask.common.wording import count
from excir_dask.graph.closer import certified, certified_outputs, missed
from excir_dask.graph.lake_state import LakeState
from excir_dask.graph.pass_scan import PassRequest
from excir_dask.graph.scans import Scans
from excir_dask.graph.segment_scan import SegmentReferences
from excir_dask.graph.segment_states import SegmentStates
from excir_dask.kernels.array_records import subset
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.segment_references import OUTPUT_PICKS, PICKS, replaced_segments
from excir_dask.kernels.settle import ColumnStats, opened
from excir_dask.kernels.state import ColumnState, replaced_state

log = logging.getLogger(__name__)

Mask = NDArray[np.bool_]

ROUNDS = 4
"""further looks at most"""

WIDE = 0.02
"""certified error of a segment's score above which the column or the output that leaves it is looked at again"""


def close_segments(scans: Scans, request: PassRequest, lake: LakeState, found: SegmentStates) -> SegmentStates:
    """The states of segments once their quantiles are known, as far as further looks tell; ``lake`` is all rows'."""
    segments, width = len(found.names), len(found.features)
    for _ in range(ROUNDS):
        outputs, features = _open(found)
        everything: Mask = np.asarray(
            outputs.reshape(segments, -1).any(axis=1)
        )  # all columns: the centre of an output changes
        left: Mask = features.reshape(segments, width) | np.repeat(everything, width).reshape(segments, width)
        if not left.any():
            break
        wanted = np.ones(width, dtype=bool) if everything.any() else np.asarray(left.any(axis=0))
        some = count(int(left.any(axis=1).sum()), "segment")
        log.info("%s read again for %s", count(int(wanted.sum()), "column"), some)
        found = _look(scans, request, lake, found, (outputs, features), wanted)
    return found


def _open(found: SegmentStates) -> tuple[Mask, Mask]:
    """Outputs and features that are open: a quantile is not known, or a score's certified error is too large."""
    settled, references, segments = found.settled, found.references, len(found.names)
    outputs = missed(settled.outputs, references.outputs) | (certified_outputs(settled) > WIDE)
    each, width = settled.features.n.size // segments, len(found.features)
    numbers = np.tile(np.arange(each) < width, segments)  # not the 0/1 features of categories
    stats, sums = subset(settled.features, numbers), subset(settled.sums, numbers, axis=-1)
    features = missed(stats, references.features)
    features |= stats.varies & (certified(stats, sums, settled.outputs) > WIDE)
    return outputs, features


def _look(
    scans: Scans,
    request: PassRequest,
    lake: LakeState,
    found: SegmentStates,
    still: tuple[Mask, Mask],
    wanted: Mask,
) -> SegmentStates:
    """The rows again, with other references of what is open."""
    segments, (outputs, features) = len(found.names), still
    settled, references, spans = found.settled, found.references, found.spans
    each = settled.features.n.size // segments
    numbers = subset(settled.features, np.tile(np.arange(each) < len(found.features), segments))
    seen_from = SegmentReferences(
        references.names,
        _reopened(found.state.columns, references.features, numbers, found.centering, features, PICKS),
        _reopened(spans.outputs, references.outputs, settled.outputs, found.centering, outputs, OUTPUT_PICKS),
        references.indicators,
    )
    again = outputs.reshape(segments, -1).any(axis=1)
    columns = np.tile(wanted, segments)
    all_rows = replace(lake.references, features=lake.references.features.subset(wanted))
    narrow = replace(seen_from, features=seen_from.features.subset(columns))
    state, span = scans.all_rows(
        all_rows, lake.categories, replace(request, sample_rows=0, segments=narrow), None if again.any() else wanted
    )
    assert state.segments is not None, "a pass with segments has states of them"
    mine = seen_from.features.id
    fresh = replaced_state(found.state, columns, state.segments.state, mine, f"{mine}-{seen_from.outputs.id}")
    if span is not None:
        assert span.segments is not None, "a pass with segments has rows of them"
        spans = replace(span.segments, present=spans.present)
    return replace(found, references=seen_from, state=fresh, spans=spans)


def _reopened(
    state: ColumnState, reference: Reference, stats: ColumnStats, centering: str, where: Mask, picks: int
) -> Reference:
    if not where.any():
        return reference
    some = opened(subset(state, where), subset(reference, where), subset(stats, where), centering, 2 * picks)
    return replaced_segments(reference, where, some)
