"""Another look at the columns that a pass left open.

A pilot's brackets can miss a quantile (files that drift, a sorted lake), and a cell can be too wide. Such columns, and
only those, are read again: seen from a reference of all their rows where a bracket was missed, else from one that cuts
the cell in which the quantile lies.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from excir_dask.common.wording import count
from excir_dask.graph.lake_state import LakeState, Settled, settle_state, with_columns
from excir_dask.graph.pass_scan import PassRequest, References
from excir_dask.graph.pilot_scan import reference_of
from excir_dask.graph.scans import Scans
from excir_dask.kernels.array_records import per_pair, replaced, subset
from excir_dask.kernels.brackets import CELLS
from excir_dask.kernels.recenter import Sums, recentre
from excir_dask.kernels.reference import Reference
from excir_dask.kernels.settle import ColumnStats, settle, sharpened
from excir_dask.kernels.state import State

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUNDS = 4
"""further looks at the same columns at most"""

OUTPUT_CELLS = 8 * CELLS
"""cells of a bracket of an output: there are few outputs, and all scores rest on their centres"""

WIDE = 2e-4
"""certified error of a score above which its column is looked at again"""

CLOSE = 1e-5
"""the same for lakes of few values"""

FEW_VALUES = 2**23
"""values of a lake that is read again in no time (64 MiB); its pilot is small too, and leaves wider cells"""

_STRICT = 2.0
"""times that doubt about rows around a centre counts: values are more even in fine cells than rows in those"""

_PROGRESS = 0.5
"""a further look must have halved the error for there to be another one"""


class Closer:
    """Further looks by the same scans.

    Parameters
    ----------
    scans : Scans
    request : PassRequest
        What each look keeps.
    """

    def __init__(self, scans: Scans, request: PassRequest):
        self.scans = scans
        self.request = replace(request, sample_rows=0)

    def settle(self, lake: LakeState) -> tuple[Settled, LakeState]:
        """Centres and sums that are certain enough, and a state in which no quantile lies outside its bracket.

        The state suits other rows too. Where centres are not certain enough, they are looked at through brackets so
        narrow that they would miss the quantiles of other rows: those looks are not kept.
        """
        lake = self._columns_found(self._outputs_found(lake))
        few = lake.span.counts.used * len(lake.features) <= FEW_VALUES
        return self._sharp(lake, CLOSE if few else WIDE), lake

    def _outputs_found(self, lake: LakeState) -> LakeState:
        stats = settle(lake.span.outputs, lake.references.outputs, lake.centering)
        if not missed(stats, lake.references.outputs).any():
            return lake
        log.info("all columns read again: quartiles of the outputs lie outside the pilot's range")
        span = self.scans.all_summaries(lake.centering, np.zeros(len(lake.features), dtype=bool))[1]
        return self._seen_from(lake, reference_of(span.outputs, lake.centering, True, OUTPUT_CELLS))

    def _columns_found(self, lake: LakeState) -> LakeState:
        reference = lake.references.features
        left = missed(settle(lake.state.columns, reference, lake.centering), reference)
        if not left.any():
            return lake
        log.info("%s read again: quartiles lie outside the pilot's range", count(int(left.sum()), "column"))
        references = replace(lake.references, features=self.scans.all_summaries(lake.centering, left)[0])
        return with_columns(lake, left, references, self._look(references, left))

    def _sharp(self, lake: LakeState, wide: float) -> Settled:
        """Centres that are certain enough, as far as further looks can make them so."""
        first = found = settle_state(lake)
        before = np.inf
        for _ in range(ROUNDS):
            error = certified_outputs(found)
            if error.max(initial=0.0) <= wide or error.max() >= _PROGRESS * before:
                break
            log.info("all columns read again to refine the quartiles of the outputs")
            before = float(error.max())
            outputs = sharpened(lake.span.outputs, lake.references.outputs, found.outputs, lake.centering)
            lake = self._seen_from(lake, outputs)
            found = settle_state(lake)
        found = self._sharp_columns(lake, found, wide)
        # brackets of further looks are too narrow to tell how far a centre jumps
        features = replace(found.features, jump=first.features.jump)
        return replace(found, features=features, outputs=replace(found.outputs, jump=first.outputs.jump))

    def _sharp_columns(self, lake: LakeState, found: Settled, wide: float) -> Settled:
        width, outputs = len(lake.features), found.outputs
        left = np.ones(width, dtype=bool)
        reference, state = lake.references.features, lake.state
        stats, sums = subset(found.features, slice(width)), subset(found.sums, slice(width), axis=-1)
        before = np.full(width, np.inf)
        for _ in range(ROUNDS):
            error = certified(stats, sums, outputs)
            better = np.isinf(before[left]) | (error < _PROGRESS * before[left])
            opened = stats.varies & (error > wide) & better
            if not opened.any():
                break
            before[left] = error
            left[left] = opened
            log.info("%s read again to refine the quartiles", count(int(left.sum()), "column"))
            reference = sharpened(
                subset(state.columns, opened), subset(reference, opened), subset(stats, opened), lake.centering
            )
            state = self._look(replace(lake.references, features=reference), left)
            stats = settle(state.columns, reference, lake.centering)
            centers = (stats.center, outputs.center)
            sums = recentre(state, lake.span.outputs, (reference, lake.references.outputs), centers)
            everywhere = np.append(left, np.zeros(found.features.n.size - width, dtype=bool))
            features = replaced(found.features, everywhere, stats)
            found = Settled(features, outputs, replaced(found.sums, everywhere, sums, axis=-1))
        return found

    def _seen_from(self, lake: LakeState, outputs: Reference) -> LakeState:
        """All rows again, with another reference of the outputs."""
        references = replace(lake.references, outputs=outputs)
        columns, span = self.scans.all_rows(references, lake.categories, self.request)
        assert span is not None, "a pass over all columns tells of the rows"
        span = replace(span, output_names=lake.span.output_names)
        return replace(lake, references=references, state=columns.state, span=span)

    def _look(self, references: References, left: Mask) -> State:
        """Some of the columns again; the references are of those."""
        return self.scans.all_rows(references, (), self.request, left)[0].state


def missed(stats: ColumnStats, reference: Reference) -> Mask:
    """Columns with a quantile outside its bracket, or a centre beyond the cells around the provisional one."""
    edges = reference.flip_edges
    last = np.where(np.isfinite(edges), edges, -np.inf).max(axis=1, initial=-np.inf)
    first = edges.min(axis=1, initial=np.inf)
    beyond = (stats.center != reference.center) & ((stats.center < first) | (stats.center >= last))
    return np.asarray(stats.varies & (stats.missed | beyond))


def certified(stats: ColumnStats, sums: Sums, outputs: ColumnStats) -> Floats:
    """The largest error of a column's scores, as far as that is the column's to mend."""
    error = _relative(stats.error[None, :] * sums.abs_y + _STRICT * sums.column_doubt, sums)
    varies = per_pair(outputs.varies, *sums.numerator.shape)
    return np.asarray(np.where(varies, error, 0.0).max(axis=0, initial=0.0))


def certified_outputs(found: Settled) -> Floats:
    """The largest error of an output's scores, as far as that is the output's to mend."""
    sums, (outputs, columns) = found.sums, found.sums.numerator.shape
    off, varies = (per_pair(each, outputs, columns) for each in (found.outputs.error, found.outputs.varies))
    error = _relative(off * sums.abs_x[None, :] + _STRICT * sums.output_doubt, sums)
    error = np.where(found.features.varies[None, :] & varies, error, 0.0)
    runs = found.outputs.n.size // outputs  # of columns with outputs of their own
    return np.asarray(error.reshape(outputs, runs, columns // runs).max(axis=2, initial=0.0).T.ravel())


def _relative(error: Floats, sums: Sums) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sums.denominator > 0, error / sums.denominator, 0.0)
