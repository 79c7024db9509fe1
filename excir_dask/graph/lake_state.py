"""What a lake was reduced to: counts and sums seen from a reference, from which scores follow without reading a row.

States of one reference merge by addition: a week is the sum of its days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from excir_dask.errors import UsageError
from excir_dask.graph.pass_scan import PassSpan, References, merge_spans
from excir_dask.kernels.array_records import concatenated
from excir_dask.kernels.categories import Categories
from excir_dask.kernels.recenter import Sums, recentre
from excir_dask.kernels.reference import replaced_references
from excir_dask.kernels.settle import ColumnStats, settle
from excir_dask.kernels.state import State, merge_state, replaced_state


@dataclass(frozen=True)
class LakeState:
    """State of all columns and outputs over the rows of a lake."""

    VERSION: ClassVar[int] = 1

    centering: str
    features: tuple[str, ...]
    """columns of numbers"""
    categories: tuple[Categories, ...]
    """of each column of categories, those that are features"""
    too_many: tuple[str, ...]
    """columns with too many categories"""
    references: References
    state: State
    """of the columns of numbers"""
    span: PassSpan
    """of the rows, the outputs and the 0/1 features of categories"""

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of numbers, then the 0/1 features of categories."""
        return (*self.features, *(name for column in self.categories for name in column.features))

    @property
    def joint(self) -> NDArray[np.float64]:
        """Weight by coarse cells, (outputs, names, cells, cells); no cells where nobody asked."""
        return np.concatenate([self.state.pairs.joint, self.span.indicators.pairs.joint], axis=1)

    @cached_property
    def settled(self) -> Settled:
        """Centres and sums as far as the state knows them; the bounds say how far that is."""
        return settle_state(self)

    @property
    def reference(self) -> str:
        """What states must share to be merged."""
        return "-".join((self.references.features.id, self.references.outputs.id, self.references.indicators.id))


@dataclass(frozen=True)
class Settled:
    """Everything that scores follow from, at the final centres."""

    features: ColumnStats
    outputs: ColumnStats
    sums: Sums


def settle_state(lake: LakeState) -> Settled:
    """Centres and sums as far as a state knows them; the bounds say how far that is."""
    references, span = lake.references, lake.span
    outputs = settle(span.outputs, references.outputs, lake.centering)
    stats, sums = [], []
    for state, reference in ((lake.state, references.features), (span.indicators, references.indicators)):
        stats.append(settle(state.columns, reference, lake.centering))
        centers = stats[-1].center, outputs.center
        sums.append(recentre(state, span.outputs, (reference, references.outputs), centers))
    return Settled(concatenated(stats), outputs, concatenated(sums, axis=-1))


def merge_lakes(parts: Sequence[LakeState]) -> LakeState:
    """The rows of all parts, which are alike."""
    return replace(
        parts[0],
        state=merge_state([part.state for part in parts]),
        span=merge_spans([part.span for part in parts]),
    )


def check_alike(parts: Sequence[LakeState], names: Sequence[str], then: str) -> None:
    """Refuse states of other columns, or seen from other references than the first; ``then`` ends the message."""
    first = parts[0]
    for part, name in zip(parts, names, strict=True):
        check_same([
            ("centring", first.centering, part.centering), ("features", first.names, part.names),
            ("outputs", first.span.output_names, part.span.output_names),
        ], names[0], name)  # fmt: skip
        if part.reference != first.reference:
            raise UsageError(
                f"{names[0]} and {name} use different references; compute {name} again with "
                f"--reference {names[0]}, {then}"
            )


def check_same(facts: Sequence[tuple[str, Any, Any]], first: str, name: str) -> None:
    """Refuse two states that differ in one of some facts: what it is, and its two values."""
    for what, one, other in facts:
        if one != other:
            raise UsageError(f"{first} and {name} have different {what}: {_difference(one, other)}")


def with_columns(lake: LakeState, where: NDArray[np.bool_], references: References, state: State) -> LakeState:
    """The same with some of the columns of numbers seen from another reference."""
    features = replaced_references(lake.references.features, where, references.features)
    found = replaced_state(lake.state, where, state, features.id, f"{features.id}-{references.outputs.id}")
    return replace(lake, references=replace(lake.references, features=features), state=found)


def _difference(one: str | tuple[str, ...], other: str | tuple[str, ...]) -> str:
    if isinstance(one, str) or isinstance(other, str):
        return f"{one} and {other}"
    only = [f"'{name}' in the first only" for name in one if name not in other]
    only += [f"'{name}' in the second only" for name in other if name not in one]
    return "; ".join(only[:3]) or "they are in another order"
