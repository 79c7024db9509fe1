"""What every kind of model must do."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from excir_dask.models.scoring import Model


def check(
    model: Model, block: Any, expected: Any, names: Sequence[str] | None = None, rtol: float = 0.0, atol: float = 0.0
) -> None:
    """Compare the scores of a block with (rows,) or (rows, outputs) values, also after a round trip through pickle."""
    for each in (model, pickle.loads(pickle.dumps(model))):
        found, values = each.score(block)
        assert found == (model.names if names is None else names)
        assert values.flags.c_contiguous
        np.testing.assert_allclose(values, np.asarray(expected).reshape(len(block), -1).T, rtol=rtol, atol=atol)
