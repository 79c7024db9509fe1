"""Figures of benchmarks are appended, and every line says what it depends on."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/measure.py, with a folder of its own for results."""
    spec = importlib.util.spec_from_file_location("benchmarks_measure", FOLDER / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_figures_are_appended_with_date_version_and_machine(measure):
    path = measure.save("speed", {"figures": 1})
    assert measure.save("speed", {"figures": 2}) == path
    first, second = lines(path)
    assert (first["figures"], second["figures"]) == (1, 2)
    assert {"date", "version", "commit", "machine", "packages"} <= set(first)
    assert first["machine"]["cores"] >= 1
    assert first["machine"]["memory_gib"] > 0


@pytest.mark.parametrize("path", sorted((FOLDER / "results").iterdir()), ids=lambda path: path.name)
def test_every_saved_line_says_what_it_depends_on(path):
    assert path.suffix == ".jsonl"
    assert (FOLDER / f"{path.stem}.py").exists()
    for line in lines(path):
        assert {"date", "version", "machine", "packages"} <= set(line)
        assert set(line["machine"]) == {"cores", "memory_gib", "python"}
