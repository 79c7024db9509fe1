"""The Pareto front, its knee and the choice, on plain numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.sweep.pareto import front, knee, smallest

POINTS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=30)


def beats(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a != b and a[0] <= b[0] and a[1] >= b[1]


@given(POINTS)
def test_nothing_beats_the_front_and_the_front_beats_everything_else(points: list[tuple[int, int]]) -> None:
    places = front(*zip(*points, strict=True))
    on = [points[place] for place in places]
    assert not any(beats(other, point) for point in on for other in points)
    assert all(point in on or any(beats(other, point) for other in on) for point in points)


@given(POINTS)
def test_cost_and_gain_both_rise_along_the_front(points: list[tuple[int, int]]) -> None:
    on = [points[place] for place in front(*zip(*points, strict=True))]
    assert on == sorted(set(on))
    assert [gain for _, gain in on] == sorted({gain for _, gain in on})


@given(POINTS, st.randoms())
def test_the_front_does_not_depend_on_the_order_of_points(points: list[tuple[int, int]], random: object) -> None:
    mixed = list(points)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one, two = ({p[place] for place in front(*zip(*p, strict=True))} for p in (points, mixed))
    assert one == two


@given(POINTS, st.integers(1, 5), st.integers(1, 5))
def test_the_knee_is_inside_the_front_and_does_not_depend_on_units(
    points: list[tuple[int, int]], stretch: int, lift: int
) -> None:
    cost, gain = ([float(value) for value in values] for values in zip(*points, strict=True))
    found = knee(cost, gain)
    assert found is None or found in front(cost, gain)[1:-1]
    assert knee([2.0**stretch * value for value in cost], [2.0**lift * value for value in gain]) == found


def test_the_knee_is_the_point_farthest_above_the_chord() -> None:
    assert knee([0, 1, 2, 10], [0.0, 0.8, 0.85, 1.0]) == 1
    assert knee([0, 1, 2, 10], [0.0, 0.5, 0.85, 1.0]) == 2


@pytest.mark.parametrize(
    ("cost", "gain"),
    [([1.0], [1.0]), ([1, 2], [0.5, 1.0]), ([0, 1, 2], [0.0, 0.5, 1.0]), ([0, 9, 10], [0.0, 0.1, 1.0])],
)
def test_a_front_that_does_not_bend_has_no_knee(cost: list[float], gain: list[float]) -> None:
    assert knee(cost, gain) is None


def test_the_smallest_fraction_that_meets_the_target_is_chosen() -> None:
    worst = {1.0: 1.0, 0.5: 0.95, 0.3: 0.9, 0.2: 0.78}
    assert smallest(worst, 0.9) == 0.3
    assert smallest(worst, 0.5) == 0.2
    assert smallest(worst, 0.96) is None


def test_a_missing_value_meets_no_target() -> None:
    assert smallest({0.2: float("nan"), 0.5: 0.9, 1.0: 1.0}, 0.9) == 0.5
