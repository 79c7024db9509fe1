"""explain(model=...) against a lake whose outputs were written beforehand."""

import json
import os
from pathlib import Path

import cloudpickle
import counting as counting_module
import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost as xgb
from category_models import stores_categories
from counting import Counting
from distributed import Client
from oracle import write_lake
from processes import dask_processes
from sklearn import datasets
from sklearn.linear_model import LogisticRegression

from excir_dask import explain
from excir_dask.errors import ModelError, SchemaError, UsageError
from excir_dask.graph.run import LocalRunner
from excir_dask.graph.scans import Scans
from excir_dask.graph.spill import SpillingStore
from excir_dask.results.metadata import ModelSettings

ROWS = 1200


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((ROWS, 5)).round(3), columns=list("abcde"))
    frame.loc[::9, "b"] = np.nan
    frame["y"] = (frame["a"] - frame["c"] + rng.standard_normal(ROWS) > 0).astype(float)
    frame["z"] = rng.standard_normal(ROWS)
    frame["w"] = rng.integers(1, 4, ROWS).astype(float)
    return frame


def classifier(frame: pd.DataFrame, classes: int = 2) -> xgb.XGBClassifier:
    y = frame["y"] if classes == 2 else pd.qcut(frame["a"] + frame["c"], classes, labels=False)
    return xgb.XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1).fit(frame[list("dabce")], y)


def models(frame: pd.DataFrame, folder: Path) -> dict[str, tuple[object, np.ndarray]]:
    """Every kind of model, with the outputs (rows, outputs) that its own library gives."""
    import lightgbm as lgb
    import onnxruntime
    from skl2onnx import to_onnx

    columns = list("dabce")
    binary, several = classifier(frame), classifier(frame, 4)
    folder.mkdir(exist_ok=True)
    binary.get_booster().save_model(folder / "binary.ubj")
    several.save_model(folder / "several.json")
    ranker = xgb.XGBRanker(n_estimators=5, n_jobs=1).fit(frame[columns], frame["y"], qid=np.arange(ROWS) // 40)
    regressor = xgb.XGBRegressor(n_estimators=5, n_jobs=1).fit(frame[columns], frame["z"])
    light = lgb.LGBMClassifier(n_estimators=5, num_leaves=7, n_jobs=1, verbose=-1).fit(frame[columns], frame["y"])
    light.booster_.save_model(folder / "light.txt")
    two = frame[["d", "a"]].to_numpy(dtype=np.float32)
    onnx = to_onnx(LogisticRegression().fit(two, frame["y"]), two[:1]).SerializeToString()
    (folder / "linear.onnx").write_bytes(onnx)
    session = onnxruntime.InferenceSession(onnx)
    chances = session.run(None, {session.get_inputs()[0].name: two})[1]
    margin = {"output_margin": True}

    def doubled(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"one": rows["a"] * 2, "two": rows["c"] - rows["d"]})

    return {
        "xgboost file, binary": (folder / "binary.ubj", binary.predict(frame[columns], **margin)),
        "xgboost file, classes": (folder / "several.json", several.predict(frame[columns], **margin)),
        "xgboost booster": (binary.get_booster(), binary.predict(frame[columns], **margin)),
        "xgboost classifier": (several, several.predict(frame[columns], **margin)),
        "xgboost regressor": (regressor, regressor.predict(frame[columns])),
        "xgboost ranker": (ranker, ranker.predict(frame[columns])),
        "lightgbm file": (folder / "light.txt", light.predict(frame[columns], raw_score=True)),
        "onnx file": (folder / "linear.onnx", np.array([row[1] for row in chances])),
        "callable": (doubled, doubled(frame).to_numpy()),
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[bool, tuple[pd.DataFrame, dict[str, tuple[object, np.ndarray]]]]:
    """A table and its models; by whether all values of the table are there."""
    tables = {False: table(), True: table().fillna(0.0)}
    return {whole: (frame, models(frame, tmp_path_factory.mktemp("models"))) for whole, frame in tables.items()}


def lake_of(frame: pd.DataFrame, folder: Path, files: int = 3) -> Path:
    return write_lake(folder, frame, files, 100)


KINDS = [
    "xgboost file, binary", "xgboost file, classes", "xgboost booster", "xgboost classifier", "xgboost regressor",
    "xgboost ranker", "lightgbm file", "onnx file", "callable",
]  # fmt: skip


def options_for(kind: str) -> dict:
    if kind == "onnx file":
        return {"model_columns": ["d", "a"], "features": list("dabce")}
    return {"model_columns": list("dabce")} if kind == "callable" else {}


def compare(found, expected) -> None:
    """The same scores, whatever the outputs are called."""
    order = dict(zip(expected.outputs["output"], found.outputs["output"], strict=True))
    for theirs, mine in order.items():
        left, right = found.of(mine).set_index("feature"), expected.of(theirs).set_index("feature")
        for name in ("cir", "stderr_rows", "n", "missing", "center", "numerator", "denominator"):
            np.testing.assert_allclose(left.loc[right.index, name], right[name], rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fraction", [1.0, 0.4])
def test_scores_are_those_of_outputs_written_beforehand(tmp_path, made, kind, fraction):
    frame, found = made[kind == "onnx file"]
    model, values = found[kind]
    names = [f"out {k}" for k in range(values.reshape(ROWS, -1).shape[1])]
    outputs = pd.DataFrame(values.reshape(ROWS, -1), columns=names)
    written = lake_of(frame.join(outputs), tmp_path / "written")
    expected = explain(written, output=names, features=list("dabce"), fraction=fraction)
    with dask.config.set(num_workers=1):
        found = explain(lake_of(frame, tmp_path / "lake"), model=model, fraction=fraction, **options_for(kind))
    # the draw of a row depends on its file's name, which is the same in both lakes
    compare(found, expected)


@pytest.mark.cluster
def test_scores_are_the_same_on_a_cluster_of_real_processes(tmp_path, made, two_workers):
    frame, found = made[True]
    lake = lake_of(frame, tmp_path / "lake")
    for kind in KINDS:
        model, values = found[kind]
        here = explain(lake, model=model, budget="1MiB", **options_for(kind))
        there = explain(lake, model=model, budget="1MiB", scheduler=two_workers, **options_for(kind))
        assert there.to_json() == here.to_json(), kind
        names = [f"out {k}" for k in range(values.reshape(ROWS, -1).shape[1])]
        written = frame.join(pd.DataFrame(values.reshape(ROWS, -1), columns=names))
        compare(there, explain(written, output=names, features=list("dabce")))


LONG = 30_000


def long_lake(folder: Path) -> Path:
    """Many spans. A gap at the quartile asks for a closer look, and trimming for a further scan: four scans in all."""
    rng = np.random.default_rng(0)
    a = np.where(rng.random(LONG) < 0.25, 0.0, 100.0) + rng.random(LONG)
    return write_lake(folder, pd.DataFrame({"a": a, "b": rng.standard_normal(LONG)}), 4, 2000)


@pytest.mark.parametrize("centering", ["midhinge", "trimmed"])
def test_each_row_is_shown_to_the_model_once_however_many_scans_there_are(tmp_path, centering):
    counting = Counting(tmp_path / "log")
    found = explain(long_lake(tmp_path / "lake"), model=counting, centering=centering, budget="1MiB")
    assert found.provenance.slices > 3
    assert counting.rows == LONG


def test_only_sampled_rows_are_shown_to_the_model(tmp_path):
    lake = lake_of(table(), tmp_path / "lake")
    counting = Counting(tmp_path / "log")
    found = explain(lake, model=counting, model_columns=["a"], fraction=0.3)
    assert counting.rows == found.facts.rows.sampled < 0.4 * ROWS


@pytest.mark.cluster
def test_each_row_is_shown_to_the_model_once_on_a_cluster(tmp_path, two_workers):
    lake = long_lake(tmp_path / "lake")
    counting = Counting(tmp_path / "log")
    cloudpickle.register_pickle_by_value(counting_module)  # the workers cannot import this file
    explain(lake, model=counting, budget="1MiB", scheduler=two_workers)
    assert counting.rows == LONG


@pytest.mark.slow
@pytest.mark.cluster
def test_outputs_of_workers_that_die_between_the_scans_are_computed_again(tmp_path, monkeypatch):
    lake = long_lake(tmp_path / "lake")
    counting = Counting(tmp_path / "log")
    here = explain(lake, model=counting, budget="1MiB")
    counting.log.unlink()
    cloudpickle.register_pickle_by_value(counting_module)
    all_rows = Scans.all_rows

    def after_a_death(scans: Scans, *arguments: object) -> object:
        # all of them: the outputs of a single one may have copies on another
        scans.runner.client.run(os._exit, 1, on_error="ignore")  # returns once they are gone
        return all_rows(scans, *arguments)

    monkeypatch.setattr(Scans, "all_rows", after_a_death)
    with dask_processes(2, "--nthreads", "1", "--nanny") as address, Client(address, set_as_default=False) as client:
        there = explain(lake, model=counting, budget="1MiB", scheduler=client)
    assert there.to_json() == here.to_json()
    assert counting.rows == 2 * LONG


def test_kept_outputs_go_to_disk_beyond_the_limit_and_come_back(tmp_path, monkeypatch):
    frame = table()
    lake = lake_of(frame, tmp_path / "lake", files=8)
    spilled = []
    monkeypatch.setattr("excir_dask.graph.run.RETAINED_BYTES", 4000)
    monkeypatch.setattr(LocalRunner.__init__, "__defaults__", (None, False, 4000))
    dump = SpillingStore.close

    def look(store: SpillingStore) -> None:
        if store._folder is not None:
            spilled.extend(Path(store._folder).iterdir())
        dump(store)

    monkeypatch.setattr(SpillingStore, "close", look)
    counting = Counting(tmp_path / "log")
    found = explain(lake, model=counting, model_columns=["a"], budget="1MiB")
    assert len(spilled) >= 1
    assert not spilled[0].exists(), "the temporary folder is gone"
    expected = explain(frame.assign(pred=frame["a"] ** 3), output="pred", features=["a"])
    np.testing.assert_allclose(found.of()["cir"], expected.of()["cir"], atol=1e-12)


def test_outputs_are_named_after_classes_and_predict_type_is_kept(tmp_path):
    frame = table()
    model = classifier(frame, 3)
    found = explain(frame, model=model, predict_type="probability")
    assert list(found.outputs["output"]) == ["0", "1", "2"]
    assert found.facts.settings.model == ModelSettings(kind="xgboost", predict_type="probability")
    saved = found.save(tmp_path / "out")
    manifest = json.loads((saved / "manifest.json").read_text())
    assert len(manifest["model"]["sha256"]) == 64
    assert manifest["model"]["columns"] == list("dabce")


def test_other_columns_are_explained_on_request_and_only_needed_ones_read(tmp_path):
    frame = table()
    lake = lake_of(frame.assign(text="x", when=pd.Timestamp("2024-01-01")), tmp_path / "lake")
    model = classifier(frame)
    assert set(explain(lake, model=model).features["feature"]) == set("dabce")
    found = explain(lake, model=model, features=["z", "a"], weights="w")
    assert set(found.features["feature"]) == {"z", "a"}


def test_missing_columns_are_an_error_with_both_lists(tmp_path):
    frame = table()
    model = classifier(frame)
    lake = lake_of(frame.drop(columns=["d", "e"]).assign(D=1.0), tmp_path / "lake")
    with pytest.raises(
        SchemaError,
        match=r"lacks 2: d, e.*4 columns that the model does not use: y, z, w, D",
    ):
        explain(lake, model=model)


def test_a_column_of_another_type_is_an_error(tmp_path):
    frame = table()
    model = classifier(frame)
    lake = lake_of(frame.assign(d="text"), tmp_path / "lake")
    with pytest.raises(SchemaError, match=r"column 'd' \(model\) is"):
        explain(lake, model=model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({}, "neither is given"), ({"output": "y", "model": "m.ubj"}, "both are given")],
)
def test_exactly_one_of_output_and_model(arguments, message):
    with pytest.raises(UsageError, match=message):
        explain(table(), **arguments)


@stores_categories
def test_a_model_with_categories_reads_them_from_the_lake(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.standard_normal(600), "city": rng.choice(["Oslo", "Rome", "Bonn"], 600)})
    target = frame["x"] + (frame["city"] == "Oslo")
    typed = frame.astype({"city": "category"})
    model = xgb.XGBRegressor(n_estimators=8, enable_categorical=True, n_jobs=1).fit(typed, target)
    model.save_model(tmp_path / "model.ubj")
    lake = write_lake(tmp_path / "lake", frame, 3, 50)
    written = write_lake(tmp_path / "written", frame.assign(out=model.predict(typed)), 3, 50)
    expected = explain(written, output="out", categoricals="indicators")
    found = explain(lake, model=tmp_path / "model.ubj", categoricals="indicators")
    compare(found, expected)

    unknown = write_lake(tmp_path / "unknown", frame.replace({"city": {"Rome": "Lima"}}), 3, 50)
    with pytest.raises(ModelError, match=r"column 'city' has 1 value that.*'Lima' in \d+ rows.*Bonn, Oslo, Rome"):
        explain(unknown, model=tmp_path / "model.ubj")
    numbers = write_lake(tmp_path / "numbers", frame.assign(city=1.0), 3, 50)
    with pytest.raises(ModelError, match=r"categories of column 'city' are text .*, but numbers in the lake"):
        explain(numbers, model=tmp_path / "model.ubj")


def test_a_row_group_larger_than_the_budget_is_scored_in_batches(tmp_path):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.standard_normal((60_000, 6)), columns=list("abcdef"))
    lake = write_lake(tmp_path / "lake", frame, 1, 60_000)
    counting = Counting(tmp_path / "log")
    booster = xgb.train({"nthread": 1}, xgb.DMatrix(frame, frame["a"] * 2), 5)
    whole = explain(lake, model=booster)
    cut = explain(lake, model=booster, budget="1MiB")
    np.testing.assert_allclose(
        cut.of().set_index("feature")["cir"], whole.of().set_index("feature").loc[cut.of()["feature"], "cir"], atol=1e-4
    )
    explain(lake, model=counting, budget="1MiB")
    shown = [int(line) for line in counting.log.read_text().split()]
    assert sum(shown) == 60_000
    assert max(shown) <= 2**20 // (8 * 6)


def test_digits_have_ten_outputs_of_64_features(tmp_path):
    data = datasets.load_digits(as_frame=True)
    model = xgb.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(data.data, data.target)
    lake = write_lake(tmp_path / "lake", data.data, 4, 100)
    found = explain(lake, model=model)
    assert list(found.outputs["output"]) == [str(k) for k in range(10)]
    assert found.features.groupby("output").size().tolist() == [64] * 10
    margins = model.predict(data.data, output_margin=True)
    written = data.data.assign(**{f"m{k}": margins[:, k] for k in range(10)})
    expected = explain(written, output=[f"m{k}" for k in range(10)])
    compare(found, expected)


def test_dask_frames_are_scored_too(tmp_path):
    import dask.dataframe as dd

    frame = table()
    model = classifier(frame)
    found = explain(dd.from_pandas(frame, npartitions=4), model=model)
    compare(found, explain(frame.assign(p=model.predict(frame[list("dabce")], output_margin=True)), output="p",
                           features=list("dabce")))  # fmt: skip


def test_vectors_can_be_what_a_model_reads(tmp_path):
    rng = np.random.default_rng(5)
    matrix = rng.standard_normal((400, 3)).astype(np.float32)
    names = [f"v[{i}]" for i in range(3)]
    booster = xgb.train({"nthread": 1}, xgb.DMatrix(pd.DataFrame(matrix, columns=["p", "q", "r"]), matrix[:, 0]), 4)
    plain = xgb.train({"nthread": 1}, xgb.DMatrix(matrix, matrix[:, 0]), 4)
    cells = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), 3)
    pq.write_table(pa.table({"v": cells, "other": matrix[:, 0]}), tmp_path / "0.parquet", row_group_size=90)
    found = explain(tmp_path, model=plain, model_columns=names)
    frame = pd.DataFrame(matrix.astype(float), columns=["p", "q", "r"])
    expected = explain(frame, model=booster)
    np.testing.assert_allclose(
        found.of().set_index("feature").loc[names, "cir"],
        expected.of().set_index("feature").loc[["p", "q", "r"], "cir"],
    )


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("centering", ["midhinge", "trimmed"])
def test_a_slice_of_which_a_function_sees_no_row_does_not_matter(tmp_path, outputs, centering):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.standard_normal((4000, 3)), columns=list("abc"))

    def model(rows: pd.DataFrame) -> np.ndarray:
        return np.column_stack([rows["a"] * 2 + rows["b"], rows["c"]])[:, :outputs]

    lake = tmp_path / "lake"
    lake.mkdir()
    frame.iloc[100:].to_parquet(lake / "m.parquet")
    for i in range(100):  # a hundred spans of one row, most of them outside the sample
        frame.iloc[i : i + 1].to_parquet(lake / f"a{i:02}.parquet")
    options = {"fraction": 0.3, "budget": "1MiB", "centering": centering}
    found = explain(lake, model=model, **options)
    assert found.facts.rows.sampled == found.facts.rows.used > 1000
    written = frame.assign(**{f"y{k}": column for k, column in enumerate(model(frame).T)})
    names = [f"y{k}" for k in range(outputs)]
    expected = explain(with_nothing(written), output=names, features=list("abc"), centering=centering).features
    empty = explain(with_nothing(frame), model=model, centering=centering).features
    np.testing.assert_allclose(empty["cir"], expected["cir"], atol=1e-12)


def with_nothing(frame: pd.DataFrame):
    """A dask frame whose first partition is empty."""
    import dask.dataframe as dd

    return dd.concat([dd.from_pandas(frame.iloc[:0], npartitions=1), dd.from_pandas(frame, npartitions=2)])


def test_the_synchronous_scheduler_is_respected():
    import threading

    import dask

    def where(frame: pd.DataFrame) -> np.ndarray:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("another thread")
        return frame["a"].to_numpy()

    with dask.config.set(scheduler="synchronous"):
        import dask.dataframe as dd

        explain(dd.from_pandas(table(), npartitions=2), model=where)


def test_a_model_that_lacks_a_column_says_so_before_anything_else():
    frame = table()
    model = xgb.XGBRegressor(n_estimators=2).fit(frame, frame["a"])
    with pytest.raises(SchemaError, match="lacks 1: d"):
        explain(frame.drop(columns="d"), model=model)
