"""The result of a comparison: how far two explanations agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from excir_dask.errors import UsageError, nearest
from excir_dask.kernels.agreement import DIGITS
from excir_dask.results import views
from excir_dask.results.tables import records

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far explanation B agrees with explanation A; ``docs/AGREEMENT.md`` defines every measure.

    Outputs, features and groups that both have are compared, at their places among those.
    """

    names: tuple[str, str]
    """of A and B: the folders they were loaded from, or else a and b"""
    k: int
    """size of the top that was asked for; a row's own ``k`` is smaller where it has no more features than that"""
    table: pd.DataFrame
    """a row per output and kind, "features" or "groups": sizes, measures, largest shifts and what they are of"""
    features: pd.DataFrame
    """a row per output and feature: ``output feature cir_a cir_b shift stderr beyond rank_a rank_b``"""
    only_in_a: dict[str, list[str]]
    """outputs, features and groups that B does not have"""
    only_in_b: dict[str, list[str]]
    """outputs, features and groups that A does not have"""
    regrouped: list[str]
    """groups that have other members in B than in A"""
    settings: dict[str, tuple[Any, Any]]
    """what differs between the runs, A's value first: fraction, seed, centering, rank_by, rows, model, lake, ..."""

    def shifts(self, output: str | None = None, n: int = 10) -> pd.DataFrame:
        """The features whose scores differ most.

        Parameters
        ----------
        output : str, optional
            Default: all of them.
        n : int
            Features of the table.

        Returns
        -------
        DataFrame
            ``shift`` is ``cir_b - cir_a``, ``stderr`` the standard error of the two together,
            ``sqrt(stderr_a^2 + stderr_b^2)``, ``beyond`` whether the shift is more than twice that. Two samples that
            share rows (one inside the other, for instance) differ less than ``stderr`` says.
        """
        names = list(dict.fromkeys(self.features["output"]))
        if output is not None and output not in names:
            raise UsageError(
                f"output '{output}' was not compared{nearest(output, names)} (compared: {', '.join(names)})"
            )
        found = self.features if output is None else self.features[self.features["output"] == output]
        order = np.argsort(-found["shift"].abs().round(DIGITS).to_numpy(), kind="stable")
        return found.iloc[order[:n]].reset_index(drop=True)

    def to_dict(self, n: int = 10) -> dict[str, Any]:
        """Everything as plain values that JSON can hold, with the ``n`` largest shifts."""
        return {
            "a": self.names[0],
            "b": self.names[1],
            "agreement": records(self.table),
            "shifts": records(self.shifts(n=n)),
            "only_in_a": self.only_in_a,
            "only_in_b": self.only_in_b,
            "regrouped": self.regrouped,
            "settings": {name: list(values) for name, values in self.settings.items()},
        }

    def __str__(self) -> str:
        return views.text(self)

    def __repr__(self) -> str:
        return views.text(self)

    def _repr_html_(self) -> str:
        return views.html(self)
