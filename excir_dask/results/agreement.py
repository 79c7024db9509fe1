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


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(views.Displayed):
    """How far explanation B agrees with explanation A; ``docs/AGREEMENT.md`` defines every measure.

    It compares outputs, features and groups that both have. Ranks are counted among these.
    """

    names: tuple[str, str]
    """names of A and B: the folders they were loaded from, otherwise a and b"""
    k: int
    """requested size of the top; ``k`` of a row is smaller where there are no more features than that"""
    table: pd.DataFrame
    """a row per output and kind, "features" or "groups": sizes, measures, largest shifts and their names"""
    features: pd.DataFrame
    """a row per output and feature: ``output feature cir_a cir_b shift stderr beyond rank_a rank_b``"""
    only_in_a: dict[str, list[str]]
    """outputs, features and groups that B does not have"""
    only_in_b: dict[str, list[str]]
    """outputs, features and groups that A does not have"""
    regrouped: list[str]
    """groups with other members in B than in A"""
    settings: dict[str, tuple[Any, Any]]
    """differences between the runs, A's value first: fraction, seed, centering, rank_by, rows, model, lake, ..."""

    def shifts(self, output: str | None = None, n: int = 10) -> pd.DataFrame:
        """The features whose scores differ most.

        Parameters
        ----------
        output : str, optional
            Default: all of them.
        n : int
            Number of features.

        Returns
        -------
        DataFrame
            ``shift`` is ``cir_b - cir_a``, ``stderr`` its standard error, that of few rows and of centres that jump
            included, ``beyond`` whether the shift exceeds twice that. Samples that share rows, such as nested ones,
            differ less than ``stderr`` says.
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
