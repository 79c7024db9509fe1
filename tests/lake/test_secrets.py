"""Values of storage options and credentials of URLs are never printed, saved or part of a message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.local import LocalFileSystem

from excir_dask import explain
from excir_dask.cli.storage_options import storage_options
from excir_dask.errors import ExcirError
from excir_dask.pipeline.inputs import resolve_inputs
from excir_dask.pipeline.options import ExplainOptions
from excir_dask.pipeline.preview import preview
from excir_dask.render.text.preview import text

SECRET = "Zq7-very+secret/value"


class Guarded(LocalFileSystem):
    """Local files behind a password, which every error repeats."""

    protocol = "guarded"
    cachable = False
    fail: ClassVar[str] = ""

    def __init__(self, password: str = "", nested: Any = None, **options: Any):
        super().__init__(**options)
        self.password = password
        if self.fail == "start":
            raise RuntimeError(f"no session for {password} and {nested}")

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(item) for item in path]
        return super()._strip_protocol(str(path).removeprefix("guarded://"))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        if self.fail == "list":
            raise RuntimeError(f"AccessDenied for {self.password}")
        return super().info(path, **options)

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if self.fail == "open":
            raise RuntimeError(f"AccessDenied for {self.password}")
        return super().open(path, mode, **options)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    fsspec.register_implementation("guarded", Guarded, clobber=True)
    monkeypatch.setattr(Guarded, "fail", "")
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.normal(size=50), "b": draw.normal(size=50)})
    frame["pred"] = frame["a"] + frame["b"]
    (tmp_path / "lake").mkdir()
    frame.to_parquet(tmp_path / "lake" / "x.parquet")
    return f"guarded://{tmp_path}/lake"


OPTIONS = {"password": SECRET, "nested": {"inner": [SECRET + "2"]}}


def test_nothing_that_is_saved_or_shown_holds_a_secret(lake, tmp_path, capsys, synchronous):
    found = explain(lake, output="pred", storage_options=OPTIONS)
    found.save(tmp_path / "out")
    shown = [repr(found), str(found), found._repr_html_(), repr(found.provenance), repr(found.facts)]
    options = ExplainOptions(output="pred", storage_options=OPTIONS)
    shown += [text(preview(lake, options)), repr(preview(lake, options).to_dict())]
    inputs = resolve_inputs(lake, options)
    shown += [repr(options), repr(inputs), repr(inputs.layout), repr(inputs.snapshot), *capsys.readouterr()]
    saved = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(saved) >= 4
    assert not [text for text in shown if SECRET in text]
    assert not [data for data in saved if SECRET.encode() in data]


@pytest.mark.parametrize("when", ["start", "list", "open"])
def test_no_error_repeats_a_secret(lake, monkeypatch, when, synchronous):
    monkeypatch.setattr(Guarded, "fail", when)
    with pytest.raises(ExcirError) as caught:
        explain(lake, output="pred", storage_options=OPTIONS)
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_the_command_line_hides_secrets_in_what_it_prints_and_saves(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "pred": [1.0, 2.0, 4.0]})
    (tmp_path / "lake").mkdir()
    frame.to_parquet(tmp_path / "lake" / "x.parquet")
    lake = f"file://{tmp_path}/lake"
    out = tmp_path / "out"
    runs = [
        (["explain", lake, "--output", "pred", "--storage-option", f"password={SECRET}", "--out", str(out)], 0),
        (["plan", f"{lake}/nothing", "--storage-option", f"password={SECRET}"], 3),
        (["plan", lake, "--storage-option", SECRET], 2),
        (["plan", f"nosuch://u:{SECRET}@host/lake"], 2),
    ]
    for arguments, code in runs:
        done = subprocess.run([sys.executable, "-m", "excir_dask", *arguments], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert SECRET not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    assert not [path for path in out.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_options_are_numbers_and_truth_values_where_they_look_like_it():
    given = ["anon=false", "timeout=5", "rate=0.5", "secret=123", "client_kwargs.endpoint_url=http://h:1/?a=b", "x="]
    assert storage_options(given) == {
        "anon": False,
        "timeout": 5,
        "rate": 0.5,
        "secret": "123",
        "client_kwargs": {"endpoint_url": "http://h:1/?a=b"},
        "x": "",
    }
    assert storage_options([]) is None


def test_storage_options_come_from_a_file_and_are_not_repeated(tmp_path):
    from click.testing import CliRunner

    from excir_dask.cli import excir

    def run(text: str) -> str:
        (tmp_path / "job.yaml").write_text(f"lake: {tmp_path}\noutput: y\nstorage-option: {text}\n")
        found = CliRunner().invoke(excir, ["explain", "--config", str(tmp_path / "job.yaml")])
        assert found.exit_code == 2, found.output
        return found.output

    # understood: a local path has no use for them
    assert "storage options were given, but" in run("{key: hush-hush, client_kwargs: {endpoint_url: hush-hush}}")
    for wrong in ("[17, hush-hush]", "hush-hush", "{key: [hush-hush, 2020-01-01]}"):
        assert "hush-hush" not in run(wrong)
