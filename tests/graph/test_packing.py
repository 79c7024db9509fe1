"""Arrays of states come back bit for bit, take few bytes, and cannot ask for more memory than they are worth."""

from __future__ import annotations

import numpy as np
import pytest

from excir_dask.errors import DataError
from excir_dask.graph.packing import DTYPES, pack, unpack
from excir_dask.graph.state_format import freeze, thaw

RNG = np.random.default_rng(0)
N = 20_000


def grid() -> np.ndarray:
    """Edges of equal cells of many columns."""
    return np.concatenate([np.linspace(start, start + 1.0, 200) for start in RNG.normal(size=100)])


ARRAYS = {
    "noise": RNG.normal(size=N),
    "counts": RNG.poisson(3.0, (2, N)).astype(np.float64),
    "counts above a byte": RNG.poisson(300.0, N).astype(np.float64),
    "counts above two bytes": RNG.integers(0, 2**32, N).astype(np.float64),
    "counts above four bytes": RNG.integers(0, 2**40, N),
    "signed counts": RNG.integers(-5, 5, N),
    "empty cells": np.where(RNG.random(N) < 0.5, np.inf, RNG.normal(size=N)),
    "no cells": np.full(N, -np.inf),
    "zeros of both signs": np.where(RNG.random(N) < 0.5, 0.0, -0.0),
    "numbers that are none": np.array([np.nan, -np.nan, 1.0, np.uint64(0x7FF0000000000001).view(np.float64)] * 500),
    "not contiguous": RNG.normal(size=(N, 3))[:, 1],
    "edges": grid(),
    "nothing": np.empty((3, 0, 16)),
    "one number": np.array(7.0),
    "few numbers": np.array([[1.0, 2.0]]),
}


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back_bit_for_bit(name):
    how, content = pack(ARRAYS[name])
    found = unpack(how, memoryview(content))
    assert same_bits(found, ARRAYS[name])
    assert found.flags.writeable
    assert found.flags.aligned


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_of_a_state_comes_back(dtype):
    array = RNG.integers(0, 2, 5000).astype(dtype)
    assert same_bits(thaw(freeze(array)), array)


@pytest.mark.parametrize(
    ("name", "share"), [("counts", 0.2), ("empty cells", 0.7), ("no cells", 0.01), ("edges", 0.9), ("noise", 1.01)]
)
def test_counts_empty_cells_and_edges_take_fewer_bytes(name, share):
    assert len(pack(ARRAYS[name])[1]) <= share * ARRAYS[name].nbytes


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2**40]},
        {"shape": [2**62, 2**62]},
        {"shape": [-1]},
        {"shape": [N // 2]},
        {"stored": "<u4"},
        {"stored": "|O"},
        {"array": "|O", "stored": "|O"},
        {"packing": "none"},
        {"packing": "pickle"},
    ],
)
def test_what_cannot_be_an_array_is_refused_before_memory_is_taken(change):
    how, content = pack(ARRAYS["noise"])
    with pytest.raises((DataError, ValueError, OSError)):
        unpack({**how, **change}, memoryview(content))
    with pytest.raises((DataError, ValueError, OSError)):
        unpack(how, memoryview(content)[: len(content) // 2])
