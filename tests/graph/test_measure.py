"""What a measurement costs, and that states are combined only where they belong together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from oracle import cir, write_lake

from excir_dask import explain
from excir_dask.errors import InternalError
from excir_dask.graph import closer
from excir_dask.graph.states import Cost, Outcome, Reduction, SliceState, combine
from excir_dask.kernels.centers import CENTERINGS

pytestmark = pytest.mark.usefixtures("synchronous")


def chunk_bytes(lake: Path) -> dict[str, int]:
    """Compressed bytes of each column."""
    found: dict[str, int] = {}
    for path in lake.iterdir():
        footer = pq.read_metadata(path)
        for group in range(footer.num_row_groups):
            for column in range(footer.num_columns):
                chunk = footer.row_group(group).column(column)
                found[chunk.path_in_schema] = found.get(chunk.path_in_schema, 0) + chunk.total_compressed_size
    return found


def test_bytes_read_are_those_of_every_column_block_and_of_every_scan(tmp_path, monkeypatch):
    monkeypatch.setattr(closer, "FEW_VALUES", 0)  # small lakes are looked at again too often to foresee
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((6000, 300)), columns=[f"x{i}" for i in range(300)])
    frame["x299"] = np.where(np.arange(6000) % 4 == 0, 0.0, 100.0) + rng.random(6000)
    lake = write_lake(tmp_path / "lake", frame.assign(pred=frame["x0"] + rng.standard_normal(6000)), 2)
    sizes = chunk_bytes(lake)
    scan = sum(sizes.values()) + sizes["pred"]  # the slices of both column blocks read the output
    closer_look = sizes["x299"] + sizes["pred"]
    found = explain(lake, output="pred")
    assert found.facts.rows.row_groups == 2
    assert found.provenance.bytes_read == 2 * scan + closer_look


def test_rows_read_for_a_model_count_once(tmp_path):
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((500, 3)), columns=["a", "b", "c"])
    lake = write_lake(tmp_path / "lake", frame, 2)
    model = DecisionTreeRegressor(max_depth=3).fit(frame, frame["a"])
    assert explain(lake, model=model).provenance.bytes_read == 3 * sum(chunk_bytes(lake).values())


@pytest.mark.parametrize("centering", CENTERINGS)
def test_a_column_whose_rows_mostly_share_a_value_is_not_read_again(tmp_path, centering):
    rng = np.random.default_rng(0)
    sparse = np.where(rng.random(20_000) < 0.8, 7.3, rng.standard_normal(20_000))
    frame = pd.DataFrame({"sparse": sparse, "pred": np.round(sparse + rng.standard_normal(20_000), 2)})
    lake = write_lake(tmp_path / "lake", frame, 2)
    found = explain(lake, output="pred", centering=centering)
    assert found.provenance.bytes_read == 2 * sum(chunk_bytes(lake).values())
    if centering != "mean":
        assert found.features["cir"][0] == pytest.approx(cir(sparse, frame["pred"].to_numpy(), centering), abs=1e-12)
        assert found.features["center_bound"][0] < 1e-12


def add(parts: list[int]) -> int:
    return sum(parts)


def concatenated(parts: list[int]) -> int:
    return int("".join(map(str, parts)))


NUMBERS: Reduction[int, int] = Reduction("number", "numbers", SliceState, print, add, concatenated, add)


def test_slices_side_by_side_have_one_that_tells_what_their_rows_are():
    leading, other = SliceState(1, 5), SliceState(2, None)
    assert NUMBERS.concatenate([leading, other, other]) == SliceState(122, 5)
    assert NUMBERS.concatenate([other, other]) == SliceState(22, None)
    with pytest.raises(InternalError, match="2 of 3 slices lead the same span"):
        NUMBERS.concatenate([leading, leading, other])


def test_slices_of_the_same_columns_all_tell_of_their_rows_or_none_does():
    leading, other = SliceState(1, 5), SliceState(2, None)
    assert NUMBERS.merge([leading, leading]) == SliceState(2, 10)
    assert NUMBERS.merge([other, other]) == SliceState(4, None)
    with pytest.raises(InternalError, match="1 of 2 slices of the same columns lead"):
        NUMBERS.merge([leading, other])


def test_costs_add_up_and_the_first_reason_stays():
    parts = [Outcome(1, Cost(10, 1)), Outcome(2, Cost(5, 0, 1, "a.state: damaged")), Outcome(3, Cost(0, 0, 1, "b"))]
    assert combine(add, parts) == Outcome(6, Cost(15, 1, 2, "a.state: damaged"))
