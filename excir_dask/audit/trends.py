"""Which trends a report shows: names beyond limits, steady ones, then those that changed most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from excir_dask.audit import history
from excir_dask.audit.findings import KINDS
from excir_dask.audit.slopes import ONE, slopes

if TYPE_CHECKING:
    import pandas as pd

    from excir_dask.results.explanation import Explanation

PAST_RUNS = 60
"""past runs that are looked at"""
SHOWN = 12
"""most features and groups"""
NAMED = 8
"""most of them that are beyond limits, if others move steadily"""
AT_LEAST = 2
"""of them, even if nothing happened"""


def trends(
    past: pd.DataFrame | None,
    run: Mapping[str, Any],
    now: Explanation,
    named: Iterable[tuple[str, str, str]],
    false_alarm: float,
) -> pd.DataFrame:
    """Scores of some features and groups in the runs up to this one, a row per run and name, with their slopes.

    Parameters
    ----------
    past : DataFrame, optional
        Rows of the history, of the runs before; :data:`PAST_RUNS` of them are enough.
    run : mapping
        This run, which is not in the history yet.
    now : Explanation
    named : output, kind and name
        Names beyond limits, the worst first.
    false_alarm : float
        Probability that noise alone is called a trend, for any of the names.
    """
    import pandas as pd

    here = history.rows_of(run, now)
    table = here if past is None else pd.concat([past, here], ignore_index=True)
    table = history.latest(table)
    found = slopes(table, false_alarm)
    shown = _chosen(found, named, here)
    return shown.drop(columns=["first", "last", "runs"]).merge(table, on=ONE, how="left")


def _chosen(found: pd.DataFrame, named: Iterable[tuple[str, str, str]], here: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``found``, the most interesting first."""
    present = set(map(tuple, here[ONE].to_numpy().tolist()))
    places = {tuple(one): place for place, one in enumerate(found[ONE].to_numpy().tolist()) if tuple(one) in present}
    wrong = [places[one] for one in dict.fromkeys(named) if one in places]
    beyond = (found["slope"].abs() / found["slope_error"]).where(found["steady"], -1.0)
    steady = [place for place in beyond.sort_values(ascending=False, kind="stable").index if found["steady"][place]]
    # groups before features: a group that fades matters more than any of its members
    steady.sort(key=lambda place: KINDS[::-1].index(found["kind"][place]))
    moved = (found["last"] - found["first"]).abs().sort_values(ascending=False, kind="stable").index.tolist()
    known = set(places.values())
    # however much is beyond limits, leave room for slow trends
    order = list(dict.fromkeys([*wrong[:NAMED], *(place for place in steady if place in known), *wrong]))
    order += [place for place in moved if place in known and place not in order][: max(AT_LEAST - len(order), 0)]
    return found.loc[order[:SHOWN]]
