"""The Pareto front of cost and agreement, its knee, and the smallest fraction that is good enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def front(cost: Sequence[float], gain: Sequence[float]) -> list[int]:
    """Indices of the points that no other point beats (at most the cost, at least the gain, and not equal in both).

    The cheapest comes first; of equal points only the first counts.

    >>> front([1, 2, 3, 4], [0.5, 0.9, 0.8, 1.0])
    [0, 1, 3]
    """
    found: list[int] = []
    for place in sorted(range(len(cost)), key=lambda i: (cost[i], -gain[i], i)):
        if not found or gain[place] > gain[found[-1]]:
            found.append(place)
    return found


def knee(cost: Sequence[float], gain: Sequence[float]) -> int | None:
    """Index of the point of the front farthest above the chord from its cheapest to its best point.

    Both axes are scaled to 0 to 1 between these two. None if no point lies above the chord.

    >>> knee([1, 2, 3, 4], [0.5, 0.9, 0.8, 1.0])
    1
    """
    places = front(cost, gain)
    if len(places) < 3:
        return None
    first, last = places[0], places[-1]
    width, height = cost[last] - cost[first], gain[last] - gain[first]

    def above(place: int) -> float:
        # distance from the chord, up to a common factor
        return (gain[place] - gain[first]) / height - (cost[place] - cost[first]) / width

    best = max(places[1:-1], key=above)
    return best if above(best) > 0 else None


def smallest(worst: Mapping[float, float], target: float) -> float | None:
    """The smallest fraction below 1 that meets the target, if one does; ``worst`` is the lowest agreement of each.

    >>> smallest({0.2: 0.6, 0.3: 0.92, 1.0: 1.0}, 0.9)
    0.3
    """
    return min((fraction for fraction, found in worst.items() if fraction < 1.0 and found >= target), default=None)
