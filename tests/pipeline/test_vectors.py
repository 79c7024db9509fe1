"""Columns of fixed-size lists: a feature an element, and a group."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracle import without_groups

from excir_dask import explain
from excir_dask.errors import SchemaError

ROWS, SIZE = 500, 5


def vectors(seed: int = 0, nulls: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """A matrix with missing rows and elements, and an output."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((ROWS, SIZE)).round(3)
    output = matrix @ np.arange(1, SIZE + 1) + rng.standard_normal(ROWS)
    if nulls:
        matrix[::7] = np.nan
        matrix[3, 2] = np.nan
    return matrix, output


def as_lists(matrix: np.ndarray, kind: pa.DataType | None = None) -> pa.Array:
    """Rows that are all missing are null lists, single missing elements null elements."""
    rows = [
        None if np.isnan(row).all() else [None if np.isnan(value) else float(value) for value in row] for row in matrix
    ]
    return pa.array(rows, type=pa.list_(kind or pa.float64(), matrix.shape[1]))


def write(path, matrix, output, row_group_size=60, files=3, **more):
    path.mkdir()
    parts = np.array_split(np.arange(len(output)), files)
    for i, part in enumerate(parts):
        table = pa.table(
            {"emb": as_lists(matrix[part]), "plain": matrix[part, 0], "pred": output[part]}
            | {name: values.take(pa.array(part)) for name, values in more.items()}
        )
        try:
            pq.write_table(table, path / f"{i}.parquet", row_group_size=row_group_size)
        except pa.ArrowNotImplementedError:
            pytest.skip("this pyarrow does not write vectors that are null")
    return path


@pytest.mark.parametrize("budget", ["1MiB", "128MiB"])
def test_elements_score_like_columns_of_their_own_and_null_lists_shift_no_rows(tmp_path, budget):
    matrix, output = vectors()
    lake = write(tmp_path / "lake", matrix, output)
    columns = pd.DataFrame({f"emb[{i}]": matrix[:, i] for i in range(SIZE)} | {"plain": matrix[:, 0], "pred": output})
    found = explain(lake, output="pred", budget=budget)
    expected = explain(columns, output="pred")
    pd.testing.assert_frame_equal(without_groups(found), without_groups(expected), check_exact=False, rtol=1e-12)
    assert found.features.set_index("feature")["missing"]["emb[2]"] == np.isnan(matrix[:, 2]).sum()


def test_a_vector_is_a_group(tmp_path):
    matrix, output = vectors()
    found = explain(write(tmp_path / "lake", matrix, output), output="pred")
    (group,) = found.groups.to_dict("records")
    assert (group["group"], group["members"]) == ("emb", [f"emb[{i}]" for i in range(SIZE)])
    named = found.regroup({"emb": [f"emb[{i}]" for i in range(SIZE)]}).groups
    assert group["cir"] == named["cir"][0]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float16(), pa.int8(), pa.bool_()])
def test_elements_may_be_of_any_number_type(tmp_path, kind):
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 2, (50, 3)).astype(float)
    cells = [list(row) for row in matrix.astype(bool if pa.types.is_boolean(kind) else kind.to_pandas_dtype())]
    table = pa.table({"v": pa.array(cells, pa.list_(kind, 3)), "pred": rng.standard_normal(50)})
    pq.write_table(table, tmp_path / "0.parquet")
    found = explain(tmp_path, output="pred").features.set_index("feature")["cir"]
    frame = pd.DataFrame(matrix, columns=["v[0]", "v[1]", "v[2]"]).assign(pred=table["pred"].to_numpy())
    expected = explain(frame, output="pred").features.set_index("feature")["cir"]
    np.testing.assert_allclose(found[expected.index], expected, atol=1e-12)


def test_features_name_vectors_and_elements(tmp_path):
    matrix, output = vectors()
    lake = write(tmp_path / "lake", matrix, output)
    assert set(explain(lake, output="pred", features="emb").features["feature"]) == {f"emb[{i}]" for i in range(SIZE)}
    assert set(explain(lake, output="pred", features=["emb[3]", "plain"]).features["feature"]) == {"emb[3]", "plain"}
    assert set(explain(lake, output="pred", features=["!emb"]).features["feature"]) == {"plain"}
    left = explain(lake, output="pred", features=["emb", "!emb[0]"])
    assert left.groups["members"][0] == [f"emb[{i}]" for i in range(1, SIZE)]


def test_a_wide_vector_is_decoded_once_a_slice_and_cut_by_the_budget(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    matrix, output = rng.standard_normal((3000, 300)).astype(np.float32), rng.standard_normal(3000)
    table = pa.table({"emb": pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), 300), "pred": output})
    pq.write_table(table, tmp_path / "0.parquet", row_group_size=500)
    found = explain(tmp_path, output="pred", budget="2MiB")
    frame = pd.DataFrame(matrix.astype(float), columns=[f"emb[{i}]" for i in range(300)]).assign(pred=output)
    expected = explain(frame, output="pred").features.set_index("feature")["cir"]
    np.testing.assert_allclose(found.features.set_index("feature")["cir"][expected.index], expected, atol=1e-4)
    assert found.provenance.slices >= 6


def test_vectors_of_other_lengths_in_some_files_are_a_conflict(tmp_path):
    for i, size in enumerate((3, 4)):
        cells = pa.array([[0.5] * size] * 9, pa.list_(pa.float64(), size))
        pq.write_table(pa.table({"v": cells, "a": np.arange(9.0), "pred": np.arange(9.0)}), tmp_path / f"{i}.parquet")
    with pytest.raises(SchemaError, match=r"column 'v'.*\[4\] in 1.parquet but .*\[3\] in 0.parquet"):
        explain(tmp_path, output="pred")


def test_an_element_and_a_column_of_the_same_name_are_told_apart(tmp_path):
    cells = pa.array([[0.5] * 2] * 9, pa.list_(pa.float64(), 2))
    pq.write_table(pa.table({"v": cells, "v[1]": np.arange(9.0), "pred": np.arange(9.0)}), tmp_path / "0.parquet")
    with pytest.raises(SchemaError, match=r"both a column 'v\[1\]' and a vector 'v'"):
        explain(tmp_path, output="pred")


def test_a_vector_as_output_is_refused_with_advice(tmp_path):
    matrix, output = vectors()
    with pytest.raises(SchemaError, match=r"'emb' \(output\) is a vector.*name one of its elements"):
        explain(write(tmp_path / "lake", matrix, output), output="emb")
