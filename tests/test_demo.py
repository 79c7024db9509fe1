"""The demo as a user runs it: it finds the planted truth, its commands work, and it touches no other files."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from excir_dask import Explanation
from excir_dask.cli import excir
from excir_dask.demo import FEATURES, GROUPS, LABEL, MARKER, NOISE, OUTPUT, SENSORS, make_lake, run
from excir_dask.errors import UsageError

ROWS = 20_000


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command ``excir`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from excir_dask.cli import main; main()", *arguments],
        capture_output=True, text=True, encoding="utf-8", timeout=120, cwd=Path(__file__).parents[1],
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("with a space") / "demo"
    done = command("demo", "--rows", str(ROWS), "--folder", str(folder))
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.fixture(scope="module")
def explanation(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> Explanation:
    return Explanation.load(finished[0] / "explanation")


def test_every_sensor_and_nothing_else_is_explained(explanation: Explanation) -> None:
    assert set(explanation.features["feature"]) == set(FEATURES)
    assert list(explanation.facts.left_out) == ["vehicle_id"]
    assert explanation.facts.rows.used == ROWS


def test_planted_causes_lead_the_ranking(explanation: Explanation) -> None:
    strongest = {sensor.name for sensor in SENSORS if abs(sensor.effect) >= 0.5}
    assert strongest <= set(explanation.top(4)["feature"])
    assert explanation.top(1)["feature"][0] == "coolant_temp"
    assert list(explanation.groups["group"]) == ["engine", "brakes", "weather", "cabin"]
    assert explanation.groups["cir"].iloc[0] > 0.8


def test_only_what_is_planted_against_the_output_moves_against_it(explanation: Explanation) -> None:
    cir = explanation.features.set_index("feature")["cir"]
    assert cir["pad_thickness"] < 0.2
    causes = [sensor.name for sensor in SENSORS if sensor.effect > 0]
    assert (cir[causes] > 0.5).all()


def test_noise_and_cabin_stay_at_one_half(explanation: Explanation) -> None:
    table = explanation.features.set_index("feature").loc[[*NOISE, *GROUPS["cabin"]]]
    # 5 errors of 0.006 each; the model has fitted some noise of its training rows, which is real co-movement.
    assert (table["cir"] - 0.5).abs().max() < 0.03
    assert table["rank"].min() > len(FEATURES) - len(table)
    assert abs(explanation.groups.set_index("group").at["cabin", "cir"] - 0.5) < 0.03


def test_results_go_to_stdout_and_progress_to_stderr(
    finished: tuple[Path, subprocess.CompletedProcess[str]], explanation: Explanation
) -> None:
    folder, done = finished
    assert "feature ranking" in done.stdout
    assert all(name in done.stdout for name in (*FEATURES, *GROUPS, str(folder / "explanation"), str(folder / "lake")))
    assert "training" not in done.stdout
    assert "training" in done.stderr
    assert "done in" in done.stderr


def test_printed_commands_work_as_they_are(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    lines = finished[1].stdout.splitlines()
    commands = [shlex.split(line) for line in lines[lines.index("Try next:") + 1 :]]
    assert [words[:2] for words in commands] == [["excir", "plan"], ["excir", "explain"], ["excir", "explain"]]
    for words in commands:
        result = CliRunner().invoke(excir, words[1:])
        assert result.exit_code == 0, result.output
    assert Explanation.load(finished[0] / "heat").groups["group"].tolist() == ["heat"]


def test_lake_has_several_files_with_the_margin_of_the_saved_model(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    import xgboost

    folder = finished[0]
    files = sorted((folder / "lake").iterdir())
    assert len(files) >= 4
    frames = [pd.read_parquet(file) for file in files]
    assert sum(len(frame) for frame in frames) == ROWS
    assert set(frames[0].columns) == {"vehicle_id", *FEATURES, LABEL, OUTPUT}
    model = xgboost.Booster(model_file=folder / "model.ubj")
    data = xgboost.DMatrix(frames[-1][list(FEATURES)])
    assert model.predict(data, output_margin=True) == pytest.approx(frames[-1][OUTPUT].to_numpy(), abs=1e-5)


def test_rerun_replaces_lake_and_explanation_and_keeps_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(str(tmp_path / "demo"), 4000)
    (tmp_path / "demo" / "lake" / "part-999.parquet").write_bytes(b"left over")
    (tmp_path / "demo" / "notes.txt").write_text("mine")
    run(str(tmp_path / "demo"), 2000)
    assert Explanation.load(tmp_path / "demo" / "explanation").facts.rows.lake == 2000
    assert not (tmp_path / "demo" / "lake" / "part-999.parquet").exists()
    assert (tmp_path / "demo" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["lake/notes.txt", "lake/year=2024/part-000.parquet", "explanation/notes.txt"])
def test_rerun_refuses_to_delete_files_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    run(str(tmp_path), 2000)
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match=rf"{name.split('/')[1]}.*move .* elsewhere, or choose another"):
        run(str(tmp_path), 1000)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_same_rows_give_the_same_lake(tmp_path: Path) -> None:
    first, second = make_lake(tmp_path / "a", 2000), make_lake(tmp_path / "b", 2000)
    assert [file.read_bytes() for file in sorted(first.iterdir())] == [f.read_bytes() for f in sorted(second.iterdir())]


def test_foreign_folder_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "precious.parquet").write_bytes(b"mine")
    done = command("demo", "--rows", "1000", "--folder", str(tmp_path))
    assert done.returncode == 2
    assert "choose another --folder" in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "lake" / "precious.parquet").read_bytes() == b"mine"
    assert not (tmp_path / MARKER).exists()


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("mine")
    with pytest.raises(UsageError, match="was not made by 'excir demo'"):
        run(str(tmp_path / "demo"), 1000)


def test_empty_folder_is_used(tmp_path: Path) -> None:
    assert make_lake(tmp_path, 1000) == tmp_path / "lake"
