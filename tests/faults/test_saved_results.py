"""Saved results that are cut off or hold other values end with one line and exit code 3."""

import json
import shutil

import pytest
from commands import excir, refused

from excir_dask.results.storage import GENERATOR

pytestmark = pytest.mark.usefixtures("synchronous")

JUNK = {
    "empty": b"", "cut off": b'{"lake": {"name": "la', "binary": bytes(range(256)), "list": b"[]", "null": b"null",
    "number": b"1", "mapping": b"{}", "deep": b"[" * 100_000, "surrogate": b'{"a": "\\ud800"}', "digits": b"1" * 5000,
}  # fmt: skip
OTHER = (None, 3, "x", [], [{}], {"a": []}, True)
"""values that some field does not take"""


@pytest.fixture
def saved(workplace, tmp_path):
    """Copies of a result, a sweep and an audit."""
    for name in ("result", "sweep", "audits"):
        shutil.copytree(workplace / name, tmp_path / name)
    shutil.copytree(workplace / "lake", tmp_path / "lake")
    shutil.copy(workplace / "audit.yaml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", list(JUNK))
def test_a_damaged_manifest_is_named_by_every_command(saved, kind):
    last = max((saved / "audits" / "runs").iterdir())
    for folder in (saved / "result", last):
        (folder / "manifest.json").write_bytes(JUNK[kind])
    for command in (
        ["report", saved / "result", "--out", saved / "page.html"],
        ["compare", saved / "result", saved / "result"],
        ["report", last, "--out", saved / "page.html"],
        ["audit", "compare", last, last],
        ["audit", saved / "audit.yaml"],
    ):
        assert "manifest.json" in refused(excir(*command), 3) or kind in ("mapping", "surrogate")


def fields(content, path=()):
    """Paths of all fields of a JSON file, the first two of a list."""
    inside = (
        content.items() if isinstance(content, dict) else enumerate(content[:2]) if isinstance(content, list) else ()
    )
    for key, value in inside:
        yield (*path, key)
        yield from fields(value, (*path, key))


@pytest.mark.parametrize("start", [0, *[pytest.param(n, marks=pytest.mark.slow) for n in range(1, len(OTHER))]])
@pytest.mark.parametrize(
    ("name", "file"), [("result", "manifest.json"), ("sweep", "sweep.json"), ("run", "manifest.json")]
)
def test_a_field_with_another_value_is_shown_or_refused(saved, name, file, start, monkeypatch):
    monkeypatch.setattr(
        "excir_dask.render.html.page.render", lambda report: GENERATOR
    )  # its content has been made by then
    folder = max((saved / "audits" / "runs").iterdir()) if name == "run" else saved / name
    before = json.loads((folder / file).read_bytes())
    shown = [path for path in sorted(fields(before), key=repr) if path[0] not in ("runs", "summary", "files")]
    for number, path in enumerate(shown[:: 1 if start else 4]):
        content = json.loads((folder / file).read_bytes())
        inside = content
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = other = OTHER[(number + start) % len(OTHER)]
        (folder / file).write_text(json.dumps(content))
        done = excir("report", folder, "--out", saved / "page.html")
        assert done.exit_code in (0, 3), (path, other, done.stderr)
        (folder / file).write_text(json.dumps(before))


def test_a_verdict_that_there_is_not_is_refused(saved):
    path = max((saved / "audits" / "runs").iterdir()) / "manifest.json"
    content = json.loads(path.read_bytes())
    content["audit"]["status"] = "x"
    path.write_text(json.dumps(content))
    done = excir("report", path.parent, "--out", saved / "page.html")
    assert done.exit_code == 3
    assert "status is 'x', and not one of ok, warn, fail" in done.stderr


def test_a_damaged_run_that_the_history_lacks_does_not_stop_an_audit(saved):
    first = min((saved / "audits" / "runs").iterdir())
    shutil.rmtree(saved / "audits" / "history")
    (first / "manifest.json").write_bytes(b"{")
    done = excir("audit", saved / "audit.yaml")
    assert done.exit_code == 0, done.stderr
    assert f"manifest.json of run {first.name} is damaged" in done.stderr
