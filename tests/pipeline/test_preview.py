"""``excir plan``: what a run would read, from the footers alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from excir_dask import explain
from excir_dask.cli import excir
from excir_dask.errors import LakeError, UsageError
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import BASE_MEMORY, STATE_BYTES, preview
from excir_dask.render.text.preview import text

ROWS = 40


def table(**extra: object) -> pa.Table:
    draw = np.random.default_rng(0)
    data = {name: draw.normal(size=ROWS) for name in ("a", "b", "pred")}
    return pa.table({**data, **extra})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two files in two row groups each, with a whole number and a text."""
    folder = tmp_path / "lake"
    folder.mkdir()
    for i in range(2):
        part = table(whole=pa.array(range(ROWS)), note=pa.array(["x"] * ROWS))
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=ROWS // 2)
    return folder


@pytest.fixture
def torn(lake: Path) -> Path:
    """The same with a third file that disagrees about two columns."""
    pq.write_table(
        table(whole=pa.array(["1"] * ROWS), note=pa.array(["x"] * ROWS)).drop_columns("b"), lake / "2.parquet"
    )
    return lake


def plan(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command, in this process."""
    result = CliRunner().invoke(excir, ["plan", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    program = "from excir_dask.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, "plan", *map(str, arguments)], capture_output=True, text=True)


def test_a_plan_prints_files_rows_columns_slices_and_memory(lake):
    code, out, err = plan(lake, "--output", "pred")
    assert (code, err) == (0, "")
    size = sum(path.stat().st_size for path in lake.iterdir())
    assert f"lake      {lake}" in out
    assert f"files     2 ({size / 1024:.2f} kiB, 4 row groups)" in out
    assert "rows      80" in out
    assert "columns   5, of which 3 can be explained" in out
    assert "slices    1 per scan, at most 4.38 kiB decoded each" in out  # 80 rows of 3 features and 4 more
    assert "memory    about" in out
    assert "note: text or categories" in out
    assert "int64: whole" in out
    assert out.endswith("schema conflicts: none\n")


def test_a_plan_reads_no_data(lake):
    for file in lake.iterdir():
        metadata = pq.read_metadata(file)
        data = bytearray(file.read_bytes())
        footer = len(data) - metadata.serialized_size - 8
        data[4:footer] = bytes(footer - 4)
        file.write_bytes(data)
    assert plan(lake, "--output", "pred")[0] == 0


def test_every_conflict_is_printed_and_the_exit_code_is_3(torn):
    code, out, err = plan(torn, "--output", "pred")
    assert code == 3
    assert "schema conflicts: 2" in out
    assert "column 'b' is missing in 2.parquet but is double in 0.parquet" in out
    assert "column 'whole' is string in 2.parquet but int64 in 0.parquet" in out
    assert err.startswith("excir: column ")
    assert len(err.splitlines()) == 1


def test_conflicts_that_do_not_stop_the_run_are_printed_with_exit_code_0(torn):
    code, out, _ = plan(torn, "--output", "pred", "--features", "a")
    assert code == 0
    assert "schema conflicts: 2" in out
    assert "columns   5, of which 1 can be explained" in out
    assert set(explain(str(torn), output="pred", features=["a"]).features["feature"]) == {"a"}


def test_json_is_one_line_that_holds_the_whole_preview(lake):
    code, out, _ = plan(lake, "--output", "pred", "--json")
    assert code == 0
    assert out.count("\n") == 1
    found = json.loads(out)
    assert found == {**preview(str(lake), ExplainOptions(output="pred")).to_dict()}
    assert found["worker_bytes"]["2"] - found["worker_bytes"]["1"] == found["slice_bytes"]
    assert (found["files"], found["row_groups"], found["rows"], found["columns"]) == (2, 4, 80, 5)
    assert (found["features"], found["slices"], found["slice_bytes"]) == (3, 1, 80 * 7 * 8)
    assert list(found["left_out"]) == ["note"]
    assert found["converted"] == {"whole": "int64"}
    assert (found["conflicts"], found["problem"]) == ([], None)


def test_json_tells_problems_too(torn):
    code, out, _ = plan(torn, "--output", "pred", "--json")
    found = json.loads(out)
    assert code == 3
    assert len(found["conflicts"]) == 2
    assert found["problem"] in found["conflicts"]


def test_the_process_ends_with_the_exit_code_and_one_line_on_standard_error(torn):
    done = command(torn, "--output", "pred", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["rows"] == 120
    assert done.stderr.startswith("excir: column ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere"], 3, "nowhere does not exist"),
        (["nowhere", "--budget", "much"], 2, "budget is 'much'"),
        ([], 2, "Missing argument 'LAKE'"),
        (["nowhere", "--frobnicate"], 2, "--frobnicate"),
    ],
)
def test_wrong_calls_end_with_one_message_and_no_traceback(arguments, code, message):
    done = command(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_wrong_output_is_a_problem_with_the_nearest_name(lake):
    code, out, err = plan(lake, "--output", "prd")
    assert code == 3
    assert "did you mean 'pred'" in err
    assert "rows      80" in out


def test_a_wrong_budget_is_wrong_usage(lake):
    with pytest.raises(UsageError, match="'much', which is not a number of bytes"):
        preview(str(lake), ExplainOptions(output="pred", budget="much"))
    with pytest.raises(UsageError, match="at least 1 MiB"):
        preview(str(lake), ExplainOptions(output="pred", budget="10kB"))


def test_features_and_weights_are_planned_as_a_run_would_read_them(lake):
    found = preview(str(lake), ExplainOptions(output="pred", features=["[ab]", "!b"], weights="whole"))
    assert (found.features, found.columns) == (1, 5)
    with pytest.raises(LakeError):
        explain(str(lake), output="pred", features=["note"])
    assert "note" in str(preview(str(lake), ExplainOptions(output="pred", features=["note"])).problem)


def test_a_plan_without_an_output_counts_every_number(lake):
    assert preview(str(lake), ExplainOptions()).features == 4


def test_the_slices_of_a_plan_are_those_of_the_run(tmp_path):
    draw = np.random.default_rng(0)
    data = {f"x{i}": draw.normal(size=10_000) for i in range(20)}
    pq.write_table(pa.table({**data, "pred": data["x0"]}), tmp_path / "0.parquet", row_group_size=10_000)
    found = preview(str(tmp_path), ExplainOptions(output="pred", budget="1MiB"))
    assert found.slices == 3
    assert found.slice_bytes <= 2**20
    assert explain(str(tmp_path), output="pred", budget="1MiB").provenance.slices == 3


def test_memory_is_the_process_and_a_slice_a_thread(lake):
    from dask.utils import format_bytes

    found = preview(str(lake), ExplainOptions(output="pred"))
    line = next(line for line in text(found).splitlines() if line.startswith("memory"))
    fixed = BASE_MEMORY + found.features * STATE_BYTES
    assert format_bytes(fixed + 2 * found.slice_bytes) in line
    assert format_bytes(fixed + 8 * found.slice_bytes) in line


def test_a_lake_without_rows_would_stop_the_run(tmp_path):
    pq.write_table(table().slice(0, 0), tmp_path / "0.parquet")
    code, out, err = plan(tmp_path, "--output", "pred")
    assert code == 3
    assert "rows      0" in out
    assert "no rows" in err


def test_a_long_list_of_columns_is_cut_but_no_conflict_is(tmp_path):
    names = [f"x{i}" for i in range(30)]
    pq.write_table(table(**{name: pa.array(["x"] * ROWS) for name in names}), tmp_path / "0.parquet")
    pq.write_table(table(), tmp_path / "1.parquet")
    code, out, _ = plan(tmp_path, "--output", "pred")
    assert code == 0
    assert "... and 10 more" in out
    assert "schema conflicts: 30" in out
    assert all(f"column '{name}' is missing in 1.parquet" in out for name in names)
