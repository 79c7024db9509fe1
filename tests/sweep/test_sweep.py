"""Sweeps: their runs, measures and verdict, saving and loading."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest

from excir_dask import Explanation, Sweep, explain, sweep
from excir_dask.agreement.compare import compare
from excir_dask.errors import LakeChangedError, LakeError, UsageError
from excir_dask.explain import explain_with
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.render.text.sweep import verdict
from excir_dask.sweep import run as module

pytestmark = pytest.mark.usefixtures("without_bokeh")

WEIGHTS = np.array([8.0, 7, 6, 5, 4, 3, 2, 1, *([0.02] * 12)])
GROUPS = {"first": ["f00", "f01"], "rest": ["f18", "f19"], "odd": ["f03", "f07", "f11"]}


def make_frame(rows: int = 3000) -> pd.DataFrame:
    X = np.random.default_rng(0).standard_normal((rows, 20))
    frame = pd.DataFrame(X, columns=[f"f{j:02d}" for j in range(20)])
    return frame.assign(clear=X @ WEIGHTS, noise=np.random.default_rng(1).standard_normal(rows))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_frame()


@pytest.fixture(scope="module")
def found(frame: pd.DataFrame) -> Sweep:
    features = ["!clear", "!noise"]
    return sweep(frame, output=["clear", "noise"], features=features, groups=GROUPS, fractions=[0.2, 0.5], seeds=2)


@pytest.fixture(scope="module")
def clear(frame: pd.DataFrame) -> Sweep:
    return sweep(frame, output="clear", features="f*", fractions=[0.05, 0.5], seeds=2, k=4, target_jaccard=0.9)


def test_all_rows_are_explained_once_and_each_fraction_once_per_seed(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def spy(lake: object, options: ExplainOptions) -> Explanation:
        asked.append((options.fraction, options.seed))
        return explain_with(lake, options)

    monkeypatch.setattr(module, "explain_with", spy)
    made = sweep(frame, output="clear", features="f*", fractions=[0.5, 0.2], seeds=[3, 7])
    warm_up, *counted = asked
    assert warm_up == (0.2, 3)
    assert counted == [(1.0, 3), (0.2, 3), (0.5, 3), (0.2, 7), (0.5, 7)]
    assert list(zip(made.runs["fraction"], made.runs["seed"], strict=True)) == sorted(counted)


def test_measures_are_those_of_comparing_two_explanations(found: Sweep, frame: pd.DataFrame) -> None:
    options = {"output": ["clear", "noise"], "features": ["!clear", "!noise"], "groups": GROUPS}
    full, part = explain(frame, **options), explain(frame, fraction=0.5, seed=1, **options)
    expected = compare(full, part, 8).table
    rows = found.runs.query("fraction == 0.5 and seed == 1").reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[expected.columns], expected)
    assert (rows["rows"] == part.facts.rows.used).all()


def test_there_is_a_row_per_fraction_seed_output_and_kind(found: Sweep) -> None:
    keys = found.runs[["fraction", "seed", "output", "kind"]]
    assert len(keys.drop_duplicates()) == len(keys) == 5 * 2 * 2
    assert set(found.runs["kind"]) == {"features", "groups"}


def test_all_rows_agree_with_themselves(found: Sweep) -> None:
    full = found.summary.query("fraction == 1")
    for name in ("jaccard", "spearman", "kendall"):
        assert full[f"{name}_mean"].tolist() == pytest.approx([1.0, 1.0])
    assert full["score_shift_worst"].tolist() == [0.0, 0.0]
    assert full["speedup"].tolist() == [1.0, 1.0]
    assert full["rows"].tolist() == [3000, 3000]


def test_each_seed_counts_by_its_worst_output(found: Sweep) -> None:
    runs = found.runs.query("kind == 'features' and fraction == 0.2")
    by_seed = [min(table["jaccard"]) for _, table in runs.groupby("seed")]
    largest = [max(table["score_shift"]) for _, table in runs.groupby("seed")]
    row = found.summary.query("kind == 'features' and fraction == 0.2").iloc[0]
    assert row["jaccard_mean"] == pytest.approx(np.mean(by_seed))
    assert row["jaccard_worst"] == min(by_seed)
    assert row["score_shift_mean"] == pytest.approx(np.mean(largest))
    assert row["score_shift_worst"] == max(largest)
    assert row["seconds"] == pytest.approx(runs.drop_duplicates("seed")["seconds"].median())


def test_the_smallest_fraction_that_always_meets_the_target_is_chosen(clear: Sweep) -> None:
    table = clear.summary.set_index("fraction")
    assert table.loc[0.5, "jaccard_worst"] == 1.0
    assert clear.chosen == min(f for f in (0.05, 0.5) if table.loc[f, "jaccard_worst"] >= 0.9)
    assert "is the smallest fraction tried whose Jaccard@4 is at least 0.9" in str(clear)


def test_a_target_of_the_residual_rules_out_fractions_whose_scores_have_another_shape(
    frame: pd.DataFrame, clear: Sweep
) -> None:
    residuals = clear.summary.set_index("fraction")["procrustes_worst"]
    assert clear.chosen == 0.05
    assert residuals[0.5] < residuals[0.05]
    strict = float(residuals[[0.05, 0.5]].mean())
    asked = {"output": "clear", "features": "f*", "fractions": [0.05, 0.5], "seeds": 2, "k": 4}
    made = sweep(frame, **asked, target_residual=strict)
    assert made.chosen == 0.5
    assert f"with a Procrustes residual of at most {strict:g} for each of" in str(made)
    assert f"{residuals[0.05]:.4f}" in str(made)
    none = sweep(frame, **asked, target_residual=1e-9)
    assert none.chosen is None
    assert "with a Procrustes residual of at most 1e-09" in none.verdict


def test_the_verdict_says_when_no_fraction_meets_the_target(found: Sweep) -> None:
    assert found.chosen is None
    assert "No fraction below 1.0 reaches a Jaccard@8 of 0.9 for each of 2 seeds and 2 outputs" in str(found)
    assert "Use all rows, or a lower target" in found.verdict


def test_the_verdict_says_when_the_choice_may_be_luck(clear: Sweep) -> None:
    summary = clear.summary.assign(jaccard_worst=[0.95, 0.8, 1.0])
    lucky = Sweep(clear.runs, summary, 0.05, clear.front, None, clear.settings)
    assert "But 50% of them fell short" in verdict(lucky)


def test_the_verdict_says_when_chance_meets_the_target(clear: Sweep) -> None:
    easy = Sweep(clear.runs, clear.summary, 0.5, clear.front, None, {**clear.settings, "target_jaccard": 0.01})
    assert "use a smaller k" in easy.verdict


def test_the_front_has_the_fastest_and_the_full_agreement(found: Sweep) -> None:
    table = found.summary.query("kind == 'features'").set_index("fraction")
    assert found.front[0] == table["seconds"].idxmin()
    assert table.loc[found.front[-1], "jaccard_mean"] == 1.0
    assert found.knee is None or found.knee in found.front


def test_found_groups_are_those_of_all_rows(frame: pd.DataFrame) -> None:
    twins = frame.assign(f01=frame["f00"] + 0.4 * frame["f01"], f03=frame["f02"] + 0.5 * frame["f03"])
    made = sweep(
        twins, output="clear", features="f*", group_correlated=0.85, group_rows=3000, fractions=[0.05], seeds=1
    )
    groups = made.runs.query("kind == 'groups'")
    assert len(groups) == 2
    assert groups["n"].nunique() == 1


def test_a_lake_of_files_can_be_swept(frame: pd.DataFrame, tmp_path: Path) -> None:
    lake = oracle.write_lake(tmp_path / "lake", frame.drop(columns="noise"), 3)
    made = sweep(lake, output="clear", fractions=[0.5], seeds=1, k=4)
    assert made.settings["lake"]["files"] == 3
    assert made.settings["explain"]["centering"] == "midhinge"
    assert "fraction" not in made.settings["explain"]


def test_files_that_appear_during_a_sweep_end_it(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = oracle.write_lake(tmp_path / "lake", frame, 2)

    def slow(lake: object, options: ExplainOptions) -> Explanation:
        done = explain_with(lake, options)
        frame.to_parquet(lake / "late.parquet")
        return done

    monkeypatch.setattr(module, "explain_with", slow)
    with pytest.raises(LakeChangedError, match="3 with 6,000 rows"):
        sweep(lake, output="clear", fractions=[0.5], seeds=1, k=2)


def test_a_sweep_stays_with_the_version_that_a_table_had(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "table", frame)

    def slow(lake: object, options: ExplainOptions) -> Explanation:
        done = explain_with(lake, options)
        deltalake.write_deltalake(tmp_path / "table", frame, mode="append")
        return done

    monkeypatch.setattr(module, "explain_with", slow)
    found = sweep(tmp_path / "table", output="clear", fractions=[0.5], seeds=2, k=2)
    assert found.settings["lake"]["version"] == 0
    assert found.runs["rows"].max() == len(frame)


def test_saving_and_loading_keeps_everything(found: Sweep, tmp_path: Path) -> None:
    folder = found.save(tmp_path / "out")
    again = Sweep.load(folder)
    pd.testing.assert_frame_equal(again.runs, found.runs)
    pd.testing.assert_frame_equal(again.summary, found.summary)
    assert again.to_dict() == found.to_dict()
    assert str(again) == str(found)
    assert {"runs.parquet", "summary.parquet", "sweep.json"} <= {path.name for path in folder.iterdir()}
    content = json.loads((folder / "sweep.json").read_text())
    assert content["chosen"] is None
    assert len(content["summary"]) == 6


def test_a_folder_appears_whole_or_not_at_all(found: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found.save(tmp_path / "out")
    with pytest.raises(UsageError, match="exists already"):
        found.save(tmp_path / "out")
    full = OSError("no space left on device")

    def fail(self: Sweep) -> None:
        raise full

    monkeypatch.setattr(Sweep, "to_dict", fail)
    for name in ("out", "new"):
        with pytest.raises(OSError, match="no space"):
            found.save(tmp_path / name, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    monkeypatch.undo()
    assert Sweep.load(found.save(tmp_path / "out", overwrite=True)).front == found.front


def test_only_a_sweeps_folder_is_overwritten(found: Sweep, frame: pd.DataFrame, tmp_path: Path) -> None:
    explain(frame, output="clear").save(tmp_path / "explanation")
    with pytest.raises(UsageError, match="is not a saved sweep"):
        found.save(tmp_path / "explanation", overwrite=True)


def test_a_file_that_is_no_part_of_the_sweep_is_never_deleted(found: Sweep, tmp_path: Path) -> None:
    folder = found.save(tmp_path / "out")
    (folder / "explanation.json").write_text("mine")
    with pytest.raises(UsageError, match=r"holds 'explanation.json', which is not part of the sweep"):
        found.save(folder, overwrite=True)
    assert (folder / "explanation.json").read_text() == "mine"


def test_a_changed_folder_is_not_loaded(found: Sweep, tmp_path: Path) -> None:
    folder = found.save(tmp_path / "out")
    (folder / "runs.parquet").write_bytes(b"")
    with pytest.raises(LakeError, match="changed since the sweep was saved"):
        Sweep.load(folder)
    with pytest.raises(LakeError, match=r"is not a saved sweep: it has no sweep\.json"):
        Sweep.load(tmp_path)


def test_the_page_of_a_notebook_has_a_row_per_fraction(found: Sweep) -> None:
    page = found._repr_html_()
    assert page.count("<tr>") == 2 * (1 + 3)
    assert "chance gives" in page
    assert "No fraction below 1.0" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fractions": [0.0, 0.5]}, "a fraction is 0.0"),
        ({"fractions": [0.5, 2]}, "a fraction is 2;"),
        ({"fractions": ["a"]}, "a fraction is 'a'"),
        ({"fractions": "0.5"}, "fractions is '0.5'"),
        ({"seeds": 2.5}, "seeds is 2.5"),
        ({"seeds": ["x"]}, "seed is 'x'"),
        ({"k": "3"}, "k is '3'"),
        ({"k": True}, "k is True"),
        ({"fractions": [1.0]}, "nothing below 1.0"),
        ({"seeds": 0}, "seeds is 0"),
        ({"seeds": []}, "at least one"),
        ({"k": 0}, "k is 0"),
        ({"target_jaccard": 1.5}, "target_jaccard is 1.5"),
        ({"target_residual": 0.0}, "target_residual is 0.0"),
        ({"fraction": 0.5}, r"give fractions=\[...\] instead"),
        ({"seed": 1}, r"give seeds=\[...\] instead"),
        ({"retrain": {}}, "needs the column to learn"),
        ({"retrain": {"label": "noise"}}, "output is given, but retrain"),
    ],
)
def test_wrong_arguments_are_named_before_any_work(frame: pd.DataFrame, options: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sweep(frame, output="clear", **options)


def test_a_filter_of_rows_is_refused_where_all_rows_train(frame: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="where is given, but retrain trains on all rows"):
        sweep(frame, where="clear > 0", retrain={"label": "noise"})


def test_progress_goes_to_standard_error_if_asked_for(frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    sweep(frame, output="clear", fractions=[0.5], seeds=1, progress=True)
    shown = capsys.readouterr()
    assert "sweep: warm-up, 50% of the rows, seed 0" in shown.err
    assert "sweep: run 2 of 2, 50% of the rows, seed 0" in shown.err
    assert shown.out == ""
