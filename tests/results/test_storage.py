"""Saved results of every kind: loading names what is missing, damaged, changed or of another version."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from excir_dask import Explanation, Sweep, explain, sweep
from excir_dask.errors import LakeError
from excir_dask.results.audit import AuditResult
from excir_dask.results.storage import MANIFEST, digests

pytestmark = pytest.mark.usefixtures("synchronous", "without_bokeh")
FRAME = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [4.0, 1, 3, 2], "y": [1.0, 2, 3, 4]})
ABOUT: dict[str, Any] = {
    "run": "credit-1", "audit": "credit", "model": "credit", "window": "2026-09-01", "date": None, "baseline": None,
    "baseline_window": None, "status": "ok", "finished": "2026-09-02T03:00:00+00:00", "rows": 4, "checks": 1,
    "notes": [], "k": 8, "false_alarm": 0.001, "limits": {"rows_min": {"warn": None, "fail": 1.0}},
}  # fmt: skip
KINDS: dict[str, tuple[Any, str]] = {
    "explanation": (Explanation, "explanation.json"), "sweep": (Sweep, "sweep.json"),
    "run of an audit": (AuditResult, "explanation.json"),
}  # fmt: skip


@cache
def explained() -> Explanation:
    return explain(FRAME, output="y", groups={"both": ["a", "b"]})


@cache
def swept() -> Sweep:
    return sweep(FRAME, output="y", fractions=[0.5], seeds=1, k=1)


def audited() -> AuditResult:
    changes, trend = pd.DataFrame({"name": ["a"], "shift": [0.1]}), pd.DataFrame({"run": ["credit-1"], "cir": [0.5]})
    return AuditResult(explained(), ABOUT, {"status": "ok", "violations": []}, changes, trend)


def save(kind: str, folder: Path) -> Path:
    if kind == "explanation":
        return explained().save(folder, report=False)
    if kind == "sweep":
        return swept().save(folder, report=False)
    audited().save(folder, {"junit.xml": b"<testsuite/>"}, report=False)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Every kind of result, saved once: the plots of a sweep take seconds."""
    return {kind: save(kind, tmp_path_factory.mktemp("saved") / "out") for kind in KINDS}


@pytest.fixture(params=list(KINDS))
def saved(request, folders, tmp_path) -> tuple[str, type[Any], str, Path]:
    """Kind, class, main file and folder of a saved result."""
    kind = request.param
    cls, main = KINDS[kind]
    return kind, cls, main, shutil.copytree(folders[kind], tmp_path / "out")


def test_a_file_that_was_changed_is_named(saved):
    _, cls, main, folder = saved
    for name in {*digests(folder)} - {main, MANIFEST}:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole + b" ")
        with pytest.raises(LakeError, match=rf"{name} was changed since the .* was saved .*; restore it"):
            cls.load(folder)
        (folder / name).unlink()
        with pytest.raises(LakeError, match=rf"{name} is missing; copy it from"):
            cls.load(folder)
        (folder / name).write_bytes(whole)
    cls.load(folder)


@pytest.mark.parametrize("damage", ["", "{", "[1]", "[" * 100_000, "\xff"])
def test_a_main_file_that_is_not_json_is_damaged(saved, damage):
    _, cls, main, folder = saved
    (folder / main).write_text(damage, encoding="latin-1")
    with pytest.raises(LakeError, match=rf"{main} is damaged \(.*\); compute the .* again"):
        cls.load(folder)


def test_a_folder_that_is_no_result_is_refused(saved, tmp_path):
    _, cls, main, folder = saved
    for place in (tmp_path / "nowhere", folder / main):
        with pytest.raises(LakeError, match=rf"is not a saved .*: it has no {main}"):
            cls.load(place)


def test_a_list_of_digests_is_required(saved):
    _, cls, main, folder = saved
    name = main if cls is Sweep else MANIFEST
    content = json.loads((folder / name).read_text())
    for files in ({}, {"files": ["features.parquet"]}):
        content.pop("files", None)
        (folder / name).write_text(json.dumps({**content, **files}))
        with pytest.raises(LakeError, match=r"does not list the digests of its files"):
            cls.load(folder)


def test_another_version_of_the_format_is_refused_with_both_versions(saved):
    _, cls, main, folder = saved
    content = json.loads((folder / main).read_text())
    name = content["format"]
    rewrite(folder, main, {**content, "version": 2})
    with pytest.raises(LakeError, match=rf"has the format {name} 2, and this version reads {name} 1; load it with"):
        cls.load(folder)


def test_a_missing_part_of_the_main_file_is_named(saved):
    _, cls, main, folder = saved
    content = json.loads((folder / main).read_text())
    for key in ("chosen", "front", "knee", "settings") if cls is Sweep else ("facts", "outputs"):
        rewrite(folder, main, {name: value for name, value in content.items() if name != key})
        with pytest.raises(LakeError, match=rf"{main} lacks the field '{key}'; load it with"):
            cls.load(folder)


def rewrite(folder: Path, name: str, content: dict[str, Any]) -> None:
    """Replace a JSON file, as if it had been saved that way."""
    (folder / name).write_text(json.dumps(content))
    if (folder / MANIFEST).exists():
        manifest = json.loads((folder / MANIFEST).read_text())
        manifest["files"][name] = digests(folder)[name]
        (folder / MANIFEST).write_text(json.dumps(manifest))


def test_a_run_of_an_audit_is_loaded_as_it_was_saved(tmp_path):
    result = audited()
    result.save(tmp_path / "run", {"junit.xml": b"<testsuite/>"}, report=False)
    again = AuditResult.load(tmp_path / "run")
    assert (again.about, again.found) == (result.about, result.found)
    assert again.explanation.to_json() == result.explanation.to_json()
    pd.testing.assert_frame_equal(again.changes, result.changes)
    pd.testing.assert_frame_equal(again.trend, result.trend)
    manifest = json.loads((tmp_path / "run" / MANIFEST).read_text())
    assert set(manifest["files"]) == {*digests(tmp_path / "run")} - {MANIFEST}
    assert "junit.xml" in manifest["files"]


def test_the_manifest_is_written_once_and_after_all_files_that_it_lists(tmp_path, monkeypatch):
    written = []
    write = Path.write_text

    def listed(path, text, **given):
        written.append((path.name, {file.name for file in path.parent.iterdir()}))
        return write(path, text, **given)

    monkeypatch.setattr(Path, "write_text", listed)
    audited().save(tmp_path / "run", {"junit.xml": b"<testsuite/>"}, report=False)
    (there,) = [there for name, there in written if name == MANIFEST]
    assert there == set(json.loads((tmp_path / "run" / MANIFEST).read_text())["files"])


def test_a_run_of_an_audit_is_never_replaced(tmp_path):
    audited().save(tmp_path / "run", {}, report=False)
    before = digests(tmp_path / "run")
    with pytest.raises(OSError, match="not empty"):
        audited().save(tmp_path / "run", {}, report=False)
    assert digests(tmp_path / "run") == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_explanation_is_not_a_run_of_an_audit(tmp_path):
    explained().save(tmp_path / "out", report=False)
    with pytest.raises(LakeError, match=r"out is not a saved run of an audit: its manifest.json has no field 'audit'"):
        AuditResult.load(tmp_path / "out")
