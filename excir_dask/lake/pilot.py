"""Which rows a pilot reads: a small part of the lake from all over it, the same ones on every machine.

The pilot only has to say roughly where the quantiles are; the pass then finds out exactly. Rows of a row group often
resemble each other, so many row groups are better than many rows of a few. But the first rows of a row group cost a
page of every column at least, so of large row groups only a few can be looked into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from excir_dask.lake.column_blocks import even_ranges
from excir_dask.lake.plan import Fragment, Plan, Slice

SMALL = 2**17
"""rows of a lake that the pilot reads whole"""

ROWS = 2**17
"""rows that a pilot aims at"""

SHARE = 0.08
"""share of a lake's bytes that a pilot may read"""

GROUPS = 64
"""row groups that a pilot looks into at most"""

PAGE_ROWS = 2**17
"""rows that a page of numbers usually holds: fewer cannot be read"""

LEAST_SPANS = 3
"""spans of rows that a pilot of whole spans takes at least"""


@dataclass(frozen=True)
class Pilot:
    """What a pilot reads."""

    plan: Plan | None = None
    """slices of its own; None where it takes spans of the run's plan"""
    spans: tuple[int, ...] = ()
    """spans of the run's plan"""
    complete: bool = False
    """every row is read"""


def choose_pilot(plan: Plan, whole_spans: bool) -> Pilot:
    """The pilot for a plan.

    Parameters
    ----------
    plan : Plan
    whole_spans : bool
        Take whole spans of the plan, whose rows need not be read again or are not in files: a model's outputs for them
        are kept, cached rows are, and a frame is in memory.
    """
    everything = Pilot(spans=tuple(range(plan.spans)), complete=True)
    if 0 < plan.rows <= SMALL:
        return everything
    if whole_spans or not all(slices[0].fragments for slices in plan.blocks[0]):
        count = max(LEAST_SPANS, round(SHARE * plan.spans))
        if 2 * count >= plan.spans:
            return everything
        return Pilot(spans=tuple(_spread(plan.spans, count)))
    groups = [one for slices in plan.blocks[0] for fragment in slices[0].fragments for one in _row_groups(fragment)]
    heads = list(_heads(groups, plan.rows))
    if sum(rows for _, rows in heads) * 2 >= plan.rows:
        return everything
    return Pilot(plan=_plan(plan, heads))


def _row_groups(fragment: Fragment) -> Iterator[Fragment]:
    """Each row group of a fragment by itself."""
    for i, (group, rows) in enumerate(zip(fragment.row_groups, fragment.rows, strict=True)):
        deleted = fragment.deleted[i : i + 1]
        yield replace(fragment, row_groups=(group,), rows=(rows,), deleted=deleted)


def _heads(groups: Sequence[Fragment], total: int) -> Iterator[tuple[Fragment, int]]:
    """Row groups to look into, and how many rows of each to read."""
    typical = max(total // len(groups), 1)
    affordable = int(SHARE * total / min(typical, PAGE_ROWS))
    count = max(min(affordable, GROUPS, len(groups)), min(2, len(groups)))
    rows = max(-(-ROWS // count), 1)
    for number in _spread(len(groups), count):
        yield groups[number], min(groups[number].rows[0], rows)


def _spread(total: int, count: int) -> list[int]:
    """Evenly spaced numbers below ``total``.

    >>> _spread(10, 3)
    [1, 5, 8]
    """
    return [int((2 * i + 1) * total / (2 * count)) for i in range(count)]


def _plan(plan: Plan, heads: Sequence[tuple[Fragment, int]]) -> Plan:
    """Slices of the first rows of some row groups, under the budget of the run."""
    blocks = []
    for spans in plan.blocks:
        start, stop = spans[0][0].start, spans[0][-1].stop
        found = []
        for fragment, rows in heads:
            width = max(plan.budget // (8 * rows) - plan.fixed_columns, 1)
            found.append(
                tuple(
                    Slice(rows, first, last, first == 0, (fragment,), batch_rows=rows, head=True)
                    for first, last in even_ranges(start, stop, width)
                )
            )
        blocks.append(tuple(found))
    return replace(plan, blocks=tuple(blocks))
