"""Blocks of columns cover all features, evenly, and do not cut vectors."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from excir_dask.lake.column_blocks import BLOCK_COLUMNS, MAX_VECTOR_COLUMNS, column_blocks, vector_ranges
from excir_dask.lake.select import Selection


def selection(features: int, outputs: int = 1, weight: str | None = None) -> Selection:
    return Selection(tuple(f"x{i}" for i in range(features)), tuple(f"y{i}" for i in range(outputs)), weight, {}, {})


@given(st.integers(1, 20_000))
def test_column_blocks_are_neighbours_of_about_equal_width(features):
    blocks = column_blocks(features)
    assert [start for start, _ in blocks] == [0, *(stop for _, stop in blocks[:-1])]
    assert blocks[-1][1] == features
    widths = [stop - start for start, stop in blocks]
    assert max(widths) <= BLOCK_COLUMNS
    assert max(widths) - min(widths) <= 1


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 3000)), min_size=1, max_size=6), st.integers(0, 400))
def test_column_blocks_do_not_cut_vectors_of_up_to_1024_elements(layout, rest):
    vectors, features = [], 0
    for plain, elements in layout:
        vectors.append((features + plain, features + plain + elements))
        features += plain + elements
    features += rest
    blocks = column_blocks(features, vectors)
    assert [start for start, _ in blocks] == [0, *(stop for _, stop in blocks[:-1])]
    assert blocks[-1][1] == features
    assert max(stop - start for start, stop in blocks) <= BLOCK_COLUMNS + MAX_VECTOR_COLUMNS
    for start, stop in vectors:
        decoded = sum(first < stop and start < last for first, last in blocks)
        assert decoded <= -(-(stop - start) // MAX_VECTOR_COLUMNS), "each of those blocks decodes the whole vector"


def test_vector_ranges_are_runs_of_elements_of_one_vector():
    chosen = replace(
        selection(7), vectors={"x1": ("u", 0), "x2": ("u", 1), "x3": ("v", 0), "x5": ("v", 2), "x6": ("v", 3)}
    )
    assert vector_ranges(chosen) == [(1, 3), (3, 4), (5, 7)]
