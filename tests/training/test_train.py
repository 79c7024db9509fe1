"""Training on a lake: the model, the rows it learns from, and what stays behind."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from click.testing import CliRunner
from processes import dask_processes

from excir_dask import Training, train
from excir_dask.cli import excir
from excir_dask.errors import ClusterError, DataError, LakeError, ModelError, SchemaError, UsageError
from excir_dask.lake.locate import locate
from excir_dask.lake.plan import Fragment, row_spans
from excir_dask.lake.sample import Sample
from excir_dask.lake.schema import describe_columns
from excir_dask.lake.select import select
from excir_dask.lake.snapshot import take_snapshot
from excir_dask.training.labels import LabelValues, Target, decide
from excir_dask.training.rows import Recipe, read_partition

ROWS, FILES, GROUP = 1500, 3, 600
FEATURES = ["a", "b", "c", "d"]
QUICK = {"features": FEATURES, "rounds": 15, "params": {"max_depth": 3, "nthread": 1}}


def table(seed: int, rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((rows, 4)), columns=FEATURES)
    frame.loc[rng.random(rows) < 0.05, "c"] = np.nan
    frame.loc[0, "d"] = np.inf
    score = 2 * frame["a"] - frame["b"] + rng.logistic(size=rows)
    frame["sick"] = score > 0
    frame["grade"] = pd.cut(score, [-np.inf, -1.5, 1.5, np.inf], labels=["low", "mid", "high"]).astype(str)
    frame["price"] = score
    frame["w"] = rng.integers(0, 4, rows).astype(float)
    frame["maybe"] = frame["sick"].astype(float).where(rng.random(rows) > 0.2)
    frame["nothing"] = np.nan
    frame["same"] = 7
    frame["noise"] = rng.integers(0, 2, rows)
    frame["id"] = np.arange(rows) + 10_000 * seed
    frame["name"] = frame["id"].astype(str)
    return frame


def write(folder: Path, frames: list[pd.DataFrame], group: int = GROUP) -> Path:
    folder.mkdir(parents=True)
    for i, frame in enumerate(frames):
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / f"{i}.parquet", row_group_size=group)
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("train") / "lake", [table(i) for i in range(FILES)])


@dataclass(frozen=True)
class Split:
    train: pd.DataFrame
    validation: pd.DataFrame


def split(folder: Path, validation: float = 0.2, fraction: float = 1.0, seed: int = 0) -> Split:
    """The rows of each set, read without the package's reader."""
    parts: tuple[list[pd.DataFrame], list[pd.DataFrame]] = ([], [])
    for path in sorted(folder.iterdir()):
        file = pq.ParquetFile(path)
        for group in range(file.num_row_groups):
            frame = file.read_row_group(group).to_pandas().replace([np.inf, -np.inf], np.nan)
            kept = Sample(fraction, seed).mask(path.name, group, len(frame))
            held = Sample(validation, seed, stream="validation").mask(path.name, group, len(frame))
            parts[0].append(frame[kept & ~held])
            parts[1].append(frame[kept & held])
    return Split(*(pd.concat(part, ignore_index=True) for part in parts))


def matrix(frame: pd.DataFrame, label: object) -> xgboost.DMatrix:
    return xgboost.DMatrix(frame[FEATURES].astype(np.float32), np.asarray(label, dtype=np.float32))


def direct(frame: pd.DataFrame, label: object, params: dict[str, object], trees: int, **data: object) -> object:
    """The same model from XGBoost itself, on one machine."""
    made = xgboost.QuantileDMatrix(frame[FEATURES].astype(np.float32), np.asarray(label, dtype=np.float32), **data)
    return xgboost.train(params, made, trees)


def test_booleans_are_two_classes_and_the_model_holds_its_metadata(lake: Path) -> None:
    found = train(lake, label="sick", **QUICK)
    assert (found.objective, found.classes, found.metric) == ("binary:logistic", ("false", "true"), "logloss")
    booster = found.booster
    assert booster.feature_names == FEATURES == list(found.features)
    assert json.loads(booster.attr("classes")) == ["false", "true"]
    assert booster.attr("label") == "sick"
    settings = json.loads(booster.attr("excir_train"))
    assert (settings["seed"], settings["validation"], settings["params"]["max_depth"]) == (0, 0.2, 3)
    rows = split(lake)
    assert (found.rows["train"], found.rows["validation"]) == (len(rows.train), len(rows.validation))
    assert found.rows["lake"] == ROWS * FILES
    assert found.left_out.keys() == set()


def test_the_metric_is_what_xgboost_says_of_the_saved_model_on_the_split(lake: Path) -> None:
    found = train(lake, label="sick", **{**QUICK, "params": {"eval_metric": ["auc", "logloss"], "nthread": 1}})
    rows = split(lake)
    for part, frame in (("train", rows.train), ("validation", rows.validation)):
        data = matrix(frame, frame["sick"])
        p = found.booster.predict(data).astype(float)
        expected = -np.mean(np.log(np.where(frame["sick"], p, 1 - p)))
        assert found.history[part]["logloss"][found.best_iteration] == pytest.approx(expected, rel=1e-5)
    assert found.metric == "logloss"
    assert found.best_score == found.history["validation"]["logloss"][found.best_iteration]
    assert found.best_score == min(found.history["validation"]["logloss"])


def test_the_model_is_the_one_that_xgboost_trains_on_the_same_rows(lake: Path) -> None:
    found = train(lake, label="sick", **QUICK)
    rows = split(lake)
    other = direct(rows.train, rows.train["sick"], found.params, found.best_iteration + 1)
    data = matrix(rows.validation, rows.validation["sick"])
    assert found.booster.predict(data) == pytest.approx(other.predict(data), abs=1e-5)


def test_text_labels_are_classes_in_sorted_order(lake: Path, tmp_path: Path) -> None:
    found = train(lake, label="grade", **QUICK)
    assert (found.objective, found.classes, found.metric) == ("multi:softprob", ("high", "low", "mid"), "mlogloss")
    rows = split(lake).validation
    guessed = np.array(found.classes)[found.booster.predict(matrix(rows, np.zeros(len(rows)))).argmax(axis=1)]
    assert np.mean(guessed == rows["grade"]) > 1.25 * rows["grade"].value_counts(normalize=True).max()
    as_categories = write(tmp_path / "lake", [table(i).astype({"grade": "category"}) for i in range(FILES)])
    assert train(as_categories, label="grade", **QUICK).model == found.model


def test_floats_are_predicted_as_numbers(lake: Path) -> None:
    found = train(lake, label="price", **QUICK)
    assert (found.objective, found.classes, found.metric) == ("reg:squarederror", (), "rmse")
    rows = split(lake).validation
    assert found.best_score < 0.95 * rows["price"].std()
    error = found.booster.predict(matrix(rows, rows["price"])) - rows["price"]
    assert found.best_score == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-5)


def test_weights_count_and_rows_without_one_are_dropped(lake: Path) -> None:
    found = train(lake, label="sick", weights="w", **QUICK)
    rows = split(lake)
    kept = rows.train[rows.train["w"] > 0]
    assert found.rows["train"] == len(kept)
    assert found.rows["without_weight"] == sum((part["w"] == 0).sum() for part in (rows.train, rows.validation))
    other = direct(kept, kept["sick"], found.params, found.best_iteration + 1, weight=kept["w"])
    data = matrix(rows.validation, rows.validation["sick"])
    assert found.booster.predict(data) == pytest.approx(other.predict(data), abs=1e-5)


def test_rows_without_a_label_are_dropped_and_counted(lake: Path) -> None:
    found = train(lake, label="maybe", **QUICK)
    rows = split(lake)
    assert found.classes == ("0", "1")
    assert found.rows["without_label"] == rows.train["maybe"].isna().sum() + rows.validation["maybe"].isna().sum()
    assert found.rows["train"] == rows.train["maybe"].notna().sum()


def test_training_stops_early_and_keeps_the_trees_of_the_best_round(lake: Path) -> None:
    found = train(lake, label="noise", features=FEATURES, early_stopping=5, params={"nthread": 1})
    rounds = len(found.history["validation"]["logloss"])
    assert rounds == found.best_iteration + 1 + 5
    assert found.booster.num_boosted_rounds() == found.best_iteration + 1
    kept_on = train(lake, label="noise", features=FEATURES, early_stopping=0, rounds=12, params={"nthread": 1})
    assert kept_on.booster.num_boosted_rounds() == 12
    assert kept_on.best_score == kept_on.history["validation"]["logloss"][-1]


def test_validation_rows_are_never_trained_on(tmp_path: Path) -> None:
    """Labels of validation rows say the opposite of all others: learning from one would show in both metrics."""
    frames = []
    for i in range(2):
        frame = table(i)
        held = np.concatenate(
            [
                Sample(0.3, 5, stream="validation").mask(f"{i}.parquet", group, min(GROUP, ROWS - start))
                for group, start in enumerate(range(0, ROWS, GROUP))
            ]
        )
        frame["sick"] = (frame["a"] > 0) ^ held
        frames.append(frame)
    found = train(
        write(tmp_path / "lake", frames), label="sick", seed=5, validation=0.3, early_stopping=0,
        **{**QUICK, "params": {"eval_metric": "error", "nthread": 1}},
    )  # fmt: skip
    assert found.history["train"]["error"][-1] == 0.0
    assert found.history["validation"]["error"][-1] > 0.999


def test_without_validation_all_rows_are_trained_on(lake: Path) -> None:
    found = train(lake, label="sick", validation=0, **QUICK)
    assert (found.rows["train"], found.rows["validation"]) == (ROWS * FILES, 0)
    assert list(found.history) == ["train"]
    assert found.booster.num_boosted_rounds() == 15


def test_the_split_does_not_depend_on_slicing_or_on_the_sample(lake: Path) -> None:
    snapshot = take_snapshot(locate(lake))
    selection = select(describe_columns(snapshot), ["price"], None, ["id"])
    (whole,) = row_spans(snapshot, selection, 2**20)
    single = [
        Fragment(fragment.path, fragment.relative, fragment.size, (group,), (rows,), fragment.constants)
        for fragment in whole
        for group, rows in zip(fragment.row_groups, fragment.rows, strict=True)
    ]

    def ids(fragments: list[list[Fragment]], fraction: float) -> tuple[list[float], list[float]]:
        target = Target("price", "float", "reg:squarederror")
        recipe = Recipe(
            snapshot.location.filesystem,
            ("id",),
            target,
            None,
            Sample(fraction, 3),
            Sample(0.2, 3, stream="validation"),
        )
        parts = [read_partition(part, recipe) for part in fragments]
        return tuple(
            [float(x) for part in parts for x in getattr(part, name).X[:, 0]] for name in ("train", "validation")
        )

    train_ids, validation_ids = ids([list(whole)], 1.0)
    assert ids([[fragment] for fragment in single], 1.0) == (train_ids, validation_ids)
    fewer_train, fewer_validation = ids([[fragment] for fragment in single], 0.3)
    assert set(fewer_train) < set(train_ids)
    assert set(fewer_validation) < set(validation_ids)
    assert 0.15 < len(fewer_validation) / (len(fewer_train) + len(fewer_validation)) < 0.25


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_rows(lake: Path) -> None:
    options = {**QUICK, "params": {"subsample": 0.5, "nthread": 2}}
    one, two, other = (train(lake, label="sick", seed=seed, fraction=0.5, **options) for seed in (1, 1, 2))
    assert one.model == two.model
    assert one.history == two.history
    assert other.rows["train"] != one.rows["train"]


@pytest.mark.parametrize(
    ("kind", "values", "objective", "expected"),
    [
        ("integer", (0.0, 1.0), None, "binary:logistic"),
        ("integer", (3.0, 9.0), None, "binary:logistic"),
        ("integer", (1.0, 2.0, 3.0), None, "multi:softprob"),
        ("integer", tuple(map(float, range(101))), None, "reg:squarederror"),
        ("integer", (1.0, 2.0, 3.0), "count:poisson", "count:poisson"),
        ("bool", (0.0, 1.0), "reg:logistic", "reg:logistic"),
        ("bool", (0.0, 1.0), "multi:softmax", "multi:softmax"),
        ("float", (0.0, 1.0), None, "binary:logistic"),
        ("float", (0.0, 1.0, 2.0), None, "reg:squarederror"),
        ("float", (0.5, 1.5, 2.0), "multi:softprob", "multi:softprob"),
        ("text", ("a", "b"), None, "binary:logistic"),
    ],
)
def test_objectives_follow_from_the_label_unless_named(kind, values, objective, expected) -> None:
    target = decide("y", kind, LabelValues(1000, 0, values), objective)
    assert target.objective == expected
    assert len(target.classes) == (len(values) if expected.startswith(("binary", "multi")) else 0)


def test_a_partition_key_may_be_the_label(tmp_path: Path) -> None:
    for kind in (3, 7):
        write(tmp_path / "lake" / f"kind={kind}", [table(kind).drop(columns="sick").assign(a=kind)])
    found = train(tmp_path / "lake", label="kind", **QUICK)
    assert (found.classes, found.objective) == (("3", "7"), "binary:logistic")
    assert found.best_score < 0.2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"label": "sikc"}, SchemaError, "did you mean 'sick'"),
        ({"label": "nothing"}, DataError, "is empty in all 4500 rows"),
        ({"label": "same"}, DataError, "is 7.0 in all 4500 rows"),
        ({"label": "name"}, DataError, "more than 100 distinct texts"),
        ({"label": "grade", "params": {"objective": "reg:squarederror"}}, UsageError, "predicts a number"),
        ({"label": "price", "params": {"objective": "binary:logistic"}}, UsageError, "more than 100 distinct values"),
        ({"label": "price", "params": {"objective": "multi:softprob"}}, UsageError, "asks for classes"),
        ({"params": {"objective": "binary:logistc"}}, ModelError, "did you mean 'binary:logistic'"),
        ({"params": {"eval_metric": "logos"}}, ModelError, "logos"),
        ({"params": {"max_depth": -3}}, ModelError, "max_depth"),
        ({"params": {"objective": "rank:ndcg"}}, UsageError, "query groups"),
        ({"params": {"objective": "survival:aft"}}, UsageError, "two bounds"),
        ({"params": {"objective": len}}, UsageError, "name one of XGBoost's objectives"),
        ({"params": {"booster": "gblinear"}}, UsageError, "only trees"),
        ({"params": {"tree_method": "exact"}}, UsageError, "only hist"),
        ({"params": {"n_estimators": 3}}, UsageError, "use 'rounds'"),
        ({"label": "grade", "params": {"num_class": 4}}, UsageError, "has 3 classes"),
        ({"features": ["a", "sick"]}, UsageError, "is both a feature and an output"),
        ({"features": ["name"]}, SchemaError, "encode it first"),
        ({"weights": "price"}, DataError, "negative values, for instance in 0.parquet"),
        ({"fraction": 2}, UsageError, "at most 1"),
        ({"fraction": 1e-9}, DataError, "no rows are left to train on"),
        ({"validation": 1.0}, UsageError, "below 1"),
        ({"validation": 1e-12}, DataError, "no rows are left to validate with"),
        ({"rounds": 0}, UsageError, "at least 1"),
        ({"early_stopping": -1}, UsageError, "0 \\(never stop early\\)"),
        ({"budget": "1kB"}, UsageError, "at least 1 MiB"),
        ({"scheduler": "nowhere"}, UsageError, "tcp://HOST:PORT"),
        ({"out": "model.bin"}, UsageError, ".ubj or .json"),
        ({"out": "s3://bucket/model.ubj"}, UsageError, "is a URL"),
        ({"out": "/dev/null/model.ubj"}, UsageError, "is not a writable folder"),
    ],
)
def test_mistakes_are_named_before_the_lake_is_read(lake: Path, options, error, message) -> None:
    with pytest.raises(error, match=message):
        train(lake, **{"label": "sick", **QUICK, **options})


def test_a_frame_is_refused(lake: Path) -> None:
    with pytest.raises(UsageError, match="lake is a DataFrame"):
        train(table(0), label="sick")


def test_a_name_that_xgboost_does_not_allow_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "lake", [table(0).rename(columns={"a": "a[0]"})])
    with pytest.raises(SchemaError, match=r"'a\[0\]' cannot be a feature"):
        train(folder, label="sick")


def test_one_class_among_the_training_rows_is_an_error(tmp_path: Path) -> None:
    frame = table(0)
    frame["rare"] = frame["id"] == 0
    held = Sample(0.9, 0, stream="validation").mask("0.parquet", 0, 1)
    assert held[0], "the only row of its class is a validation row"
    with pytest.raises(DataError, match="the same value in all training rows"):
        train(write(tmp_path / "lake", [frame]), label="rare", validation=0.9, **QUICK)


def test_rows_that_cannot_fit_into_memory_are_refused(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed.system.MEMORY_LIMIT", 2**16)
    with pytest.raises(UsageError, match=r"on a fraction of at most 0\.3"):
        train(lake, label="sick", **QUICK)


def test_saved_files_hold_everything(lake: Path, tmp_path: Path) -> None:
    found = train(lake, label="grade", out=tmp_path / "new" / "model.ubj", **QUICK)
    assert found.path == tmp_path / "new" / "model.ubj"
    assert found.path.read_bytes() == found.model
    about = json.loads((tmp_path / "new" / "model.training.json").read_text())
    assert about["sha256"] == hashlib.sha256(found.model).hexdigest()
    assert about["history"] == found.history
    assert about["rows"] == found.rows
    assert about["provenance"]["lake"]["fingerprint"] == take_snapshot(locate(lake)).fingerprint
    assert about["provenance"]["versions"]["xgboost"] == xgboost.__version__
    found.save(tmp_path / "text.json")
    data = matrix(split(lake).validation, np.zeros(len(split(lake).validation)))
    as_text = xgboost.Booster(model_file=tmp_path / "text.json")
    assert np.array_equal(as_text.predict(data), found.booster.predict(data))
    assert json.loads(as_text.attr("classes")) == ["high", "low", "mid"]


def test_an_existing_model_is_refused_before_any_work_and_replaced_when_allowed(lake: Path, tmp_path: Path) -> None:
    target = tmp_path / "model.ubj"
    target.write_bytes(b"mine")
    with pytest.raises(UsageError, match="exists already"):
        train(tmp_path / "no lake", label="sick", out=target)
    with pytest.raises(UsageError, match=r"model.ubj was not written by a training.*move it elsewhere"):
        train(tmp_path / "no lake", label="sick", out=target, overwrite=True)
    assert target.read_bytes() == b"mine"
    target.unlink()
    train(lake, label="sick", out=target, **QUICK)
    found = train(lake, label="sick", out=target, overwrite=True, **{**QUICK, "rounds": 2})
    assert target.read_bytes() == found.model


def test_the_metadata_of_another_model_is_not_replaced(lake: Path, tmp_path: Path) -> None:
    found = train(lake, label="sick", out=tmp_path / "model.ubj", **QUICK)
    with pytest.raises(UsageError, match=r"model.training.json describes model.ubj.*choose another name"):
        found.save(tmp_path / "model.json", overwrite=True)
    (tmp_path / "mine.training.json").write_text('["mine"]')
    with pytest.raises(UsageError, match=r"mine.training.json was not written by a training"):
        found.save(tmp_path / "mine.ubj", overwrite=True)
    assert (tmp_path / "mine.training.json").read_text() == '["mine"]'
    assert Training.load(tmp_path / "model.ubj").history == found.history


def test_damaged_metadata_of_a_saved_model_is_named(lake: Path, tmp_path: Path) -> None:
    train(lake, label="sick", out=tmp_path / "model.ubj", **QUICK)
    about = tmp_path / "model.training.json"
    content = json.loads(about.read_text())
    for wrong, said in (
        ("{", r"model.training.json is damaged \("),
        (json.dumps({**content, "version": 2}), "has the format excir-training 2, and this version reads"),
        (json.dumps({name: content[name] for name in content if name != "rows"}), "lacks the field 'rows'"),
        (json.dumps({**content, "provenance": {}}), "lacks the field 'provenance.lake'"),
    ):
        about.write_text(wrong)
        with pytest.raises(LakeError, match=said):
            Training.load(tmp_path / "model.ubj")
    about.unlink()
    with pytest.raises(LakeError, match=r"is not a saved training: it has no model\.training\.json"):
        Training.load(tmp_path / "model.ubj")


def test_a_save_that_fails_leaves_nothing_half_done(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = train(lake, label="sick", **QUICK)
    target = tmp_path / "model.ubj"
    found.save(target)

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        found.save(target, overwrite=True)
    assert Training.load(target).history == found.history
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.training.json", "model.ubj"]


def test_a_local_run_leaves_no_thread_process_port_file_or_client_behind(lake: Path) -> None:
    import dask
    import distributed
    import psutil

    before = {child.pid for child in psutil.Process().children()}
    train(lake, label="sick", **QUICK)
    with pytest.raises(ValueError, match="No"):
        distributed.default_client()
    assert dask.config.get("scheduler", None) is None
    assert not [thread for thread in threading.enumerate() if thread.name == "excir-train"]
    assert {child.pid for child in psutil.Process().children()} <= before
    assert not [file for file in psutil.Process().open_files() if file.path.endswith(".parquet")]
    assert not [at for at in psutil.Process().net_connections() if at.status == "LISTEN"]


def test_the_active_client_is_used_and_left_as_it_was(lake: Path) -> None:
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        found = train(lake, label="sick", progress=False, **QUICK)
        assert found.provenance.workers == 1
        assert client.submit(sum, [1, 2]).result() == 3
        started = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
        assert "excir-train-read" in started
    assert found.model == train(lake, label="sick", **QUICK).model


def test_progress_shows_rounds(lake: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("excir_dask.graph.progress.LINE_SECONDS", 0.0)
    monkeypatch.setattr("excir_dask.graph.progress.LINE_SHARE", 0.0)
    train(lake, label="sick", progress=True, **QUICK)
    shown = capfd.readouterr()
    assert [line.split()[0] for line in shown.err.splitlines() if not line.startswith("[")][-1] == "training"
    assert shown.out == ""


def test_command_prints_metric_rows_and_the_next_command(lake: Path, tmp_path: Path) -> None:
    common = ["train", str(lake), "--label", "sick", "--features", "a,b,[cd]", "--rounds", "10"]
    done = CliRunner().invoke(excir, [*common, "--out", str(tmp_path / "model.ubj"), "--params", "nthread=1"])
    assert done.exit_code == 0, done.output
    assert "logloss" in done.stdout
    assert "best round" in done.stdout
    assert f"excir explain {lake} --model {tmp_path / 'model.ubj'}" in done.stdout
    (tmp_path / "params.yaml").write_text("max_depth: 2\nnthread: 1\n")
    done = CliRunner().invoke(
        excir,
        [*common, "--out", str(tmp_path / "other.json"), "--overwrite", "--json", "--early-stopping", "0",
         "--params", f"@{tmp_path / 'params.yaml'}", "--params", "eval_metric=auc", "--params", "max_depth=3"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["metric"], found["rounds"], found["objective"]) == ("auc", 10, "binary:logistic")
    assert 0.7 < found["validation"] < found["train"] < 1
    about = json.loads((tmp_path / "other.training.json").read_text())
    assert (about["params"]["max_depth"], about["file"]) == (3, "other.json")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("max_depth", "key=value"),
        ("@nowhere.yaml", "no such file to read parameters from"),
        ("@/dev/null", "a pipe or a device"),
    ],
)
def test_parameters_that_cannot_be_read_are_wrong_usage(lake: Path, tmp_path: Path, params, message) -> None:
    done = CliRunner().invoke(
        excir, ["train", str(lake), "--label", "sick", "--out", str(tmp_path / "m.ubj"), "--params", params]
    )
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that a budget of 1 MiB cuts into four partitions."""
    frames = [table(i, 40_000)[[*FEATURES, "sick"]] for i in range(4)]
    return write(tmp_path_factory.mktemp("large") / "lake", frames, 40_000)


def one_sided(folder: Path, large: Path, without: str) -> Path:
    """The same lake, but the first two files have no labels in one of the sets."""
    frames = []
    for i, path in enumerate(sorted(large.iterdir())):
        frame = pd.read_parquet(path).astype({"sick": float})
        held = Sample(0.2, stream="validation").mask(path.name, 0, len(frame))
        frame["sick"] = frame["sick"].where((held if without == "train" else ~held) | (i > 1))
        frames.append(frame)
    return write(folder, frames, 40_000)


@pytest.mark.slow
@pytest.mark.cluster
def test_two_workers_train_the_same_model_every_time_and_nothing_stays_on_the_cluster(
    large: Path, tmp_path: Path
) -> None:
    from distributed import Client

    options = {**QUICK, "budget": "1MiB"}
    with dask_processes(2, "--nthreads", "1") as address, Client(address, set_as_default=False) as client:
        one, two = (train(large, label="sick", scheduler=where, **options) for where in (address, client))
        assert (one.provenance.workers, one.provenance.partitions) == (2, 4)
        assert one.model == two.model
        assert not client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        for part in ("train", "validation"):  # a worker with nothing to train on or to validate with is no harm
            lake = one_sided(tmp_path / part, large, part)
            found = train(lake, label="sick", scheduler=address, **options)
            same = train(lake, label="sick", **options)
            assert found.rows == same.rows
            assert found.best_score == pytest.approx(same.best_score, rel=1e-3)
    alone = train(large, label="sick", **options)
    assert alone.rows == one.rows
    rows = split(large)
    data = matrix(rows.validation, np.zeros(len(rows.validation)))
    assert np.abs(one.booster.predict(data) - alone.booster.predict(data)).mean() < 0.02
    assert one.best_score == pytest.approx(alone.best_score, rel=1e-3)


@pytest.mark.slow
@pytest.mark.cluster
def test_a_lost_worker_ends_the_run_and_the_next_one_works(large: Path) -> None:
    from distributed import Client

    options = {**QUICK, "budget": "1MiB"}
    with dask_processes(2, "--nthreads", "1") as address, Client(address, set_as_default=False) as client:
        pids = client.run(os.getpid)
        train(large, label="sick", scheduler=address, **options)  # imports are made
        killer = threading.Timer(3.0, os.kill, (next(iter(pids.values())), 9))
        killer.start()
        with pytest.raises(ClusterError, match="was lost"):
            train(large, label="sick", scheduler=client, **{**options, "rounds": 10**6, "early_stopping": 0})
        client.wait_for_workers(2, timeout=60)
        assert train(large, label="sick", scheduler=address, **options).best_score < 0.6
