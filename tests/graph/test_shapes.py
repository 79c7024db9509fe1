"""Lakes of odd shapes: ten thousand columns, and thousands of files."""

import warnings

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from excir_dask import explain

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """20,000 rows x 10,000 columns, of which the output is the sum of the first ten."""
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(0)
    names = [f"c{j:05d}" for j in range(10_000)]
    for i in range(2):
        block = rng.standard_normal((10_000, 10_000))
        table = pa.table({**dict(zip(names, block, strict=True)), "y": block[:10].sum(axis=0)})
        pq.write_table(table, folder / f"{i}.parquet", use_dictionary=False, write_statistics=False)
    return folder


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """3,000 files of 1,000 rows."""
    folder = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    names = [f"c{j:02d}" for j in range(20)]
    for i in range(3000):
        block = rng.standard_normal((20, 1000))
        pq.write_table(
            pa.table({**dict(zip(names, block, strict=True)), "y": block[3] - block[4]}), folder / f"{i}.parquet"
        )
    return folder


def check_top(explanation, features):
    assert set(explanation.top(len(features))["feature"]) == set(features)


def test_ten_thousand_columns_are_explained(wide):
    explanation = explain(wide, output="y")
    check_top(explanation, [f"c{j:05d}" for j in range(10)])
    assert len(explanation.features) == 10_000
    tables = [pq.read_table(path, columns=["c00000", "y"]).to_pandas() for path in sorted(wide.iterdir())]
    x, y = (np.concatenate([table[name].to_numpy() for table in tables]) for name in ("c00000", "y"))
    row = explanation.of().set_index("feature").loc["c00000"]
    assert abs(row["cir"] - oracle.cir(x, y)) <= min(1e-4, row["center_bound"])


def test_thousands_of_files_are_explained(many):
    explanation = explain(many, output="y")
    check_top(explanation, ["c03", "c04"])
    assert explanation.facts.rows.used == 3_000_000
    assert explanation.provenance.slices < 100


@pytest.mark.cluster
@pytest.mark.parametrize("shape", ["wide", "many"])
def test_graphs_stay_small_enough_to_send(shape, request, recwarn):
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        explanation = explain(request.getfixturevalue(shape), output="y", scheduler=client)
    assert explanation.facts.rows.used > 0
    large = [str(w.message) for w in recwarn if "large graph" in str(w.message).lower()]
    assert not large


def test_the_warning_about_large_graphs_would_be_seen():
    """What the test above looks for exists: a graph with 20 MB in it makes dask warn."""
    from distributed import Client

    with (
        Client(processes=False, n_workers=1, dashboard_address=":0") as client,
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("always")
        client.get({"a": (len, b"x" * 20_000_000)}, ["a"])
    assert any("large graph" in str(w.message).lower() for w in seen)
