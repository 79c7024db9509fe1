"""Models that every process makes for itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PerProcess:
    """A model that each process makes for itself: a session, a connection, weights in its own memory.

    Parameters
    ----------
    make : callable
        Takes nothing and returns the function of a DataFrame. Every process that scores rows calls it once. It is sent
        to workers as a pickle, so it must not hold what cannot be pickled: it makes that.

    Examples
    --------
    >>> import pandas as pd
    >>> from excir_dask import explain
    >>> frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [4.0, 1, 3, 2]})
    >>> explain(frame, model=PerProcess(lambda: lambda rows: 2 * rows["a"])).top(1)["feature"].tolist()
    ['a']
    """

    make: Callable[[], Callable[[Any], Any]]
