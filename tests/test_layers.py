"""The folders are the layers: imports point one way only, and importing the package stays cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import excir_dask

ROOT = Path(excir_dask.__file__).parent

COMMAND = {"cli_config", "cli_options", "cli_running", "cli_types"}
"""what every command may use"""

# what each part may import of the package, beside itself and errors
ALLOWED = {
    "kernels": set(),
    "lake": set(),
    "outputs": set(),
    "graph": {"kernels", "lake", "outputs"},
    "tables": {"kernels"},
    "cells": set(),
    "display": {"explanation", "cells"},
    "folders": set(),
    "textfile": set(),
    "explanation": {"folders", "grouping", "kernels", "tables", "display", "report"},
    "report": {"explanation", "display", "cells", "demo", "folders", "transfer", "audit", "version"},
    "cluster_files": set(),
    "cluster_kinds": {"cluster_files"},
    "cluster_workers": {"version"},
    "clusters": {"graph", "cluster_files", "cluster_kinds", "cluster_workers"},
    "inputs": {"lake", "outputs", "version"},
    "grouping": {"kernels", "textfile"},
    "group_choice": {"kernels", "lake", "graph", "grouping", "tables"},
    "assemble": {"kernels", "graph", "inputs", "version"},
    "attempt": {"kernels", "lake", "outputs", "graph", "inputs", "group_choice", "tables", "assemble", "explanation"},
    "growth": {"kernels", "lake", "graph", "inputs", "attempt", "explanation"},
    "runs": {"lake"},
    "question": {"kernels", "lake", "inputs", "group_choice", "tables", "attempt", "growth", "runs"},
    "explain": {"lake", "graph", "question", "attempt", "growth", "explanation", "clusters", "folders", "runs"},
    "transfer": {
        "clusters",
        "kernels",
        "tables",
        "folders",
        "display",
        "cells",
        "explanation",
        "explain",
        "runs",
        "training",
        "report",
        "version",
    },
    "audit": {
        "kernels",
        "lake",
        "question",
        "tables",
        "cells",
        "folders",
        "textfile",
        "grouping",
        "cluster_files",
        "explanation",
        "explain",
        "report",
    },
    "survey": {"lake", "inputs"},
    "training": {"lake", "graph", "clusters", "inputs", "runs", "textfile", "version"},
    "demo": {"explain", "explanation", "display", "folders", "training"},
    "cli_lake": {"cli_types"},
    "cli_report": COMMAND | {"audit", "cli_lake", "explanation", "folders", "report", "transfer"},
    "cli_types": {"grouping"},
    "cli_config": {"cli_types", "textfile"},
    "cli_options": {"cli_types", "grouping"},
    "cli_running": {"clusters"},
    "cli_explain": COMMAND | {"display", "explain", "cli_lake", "survey"},
    "cli_training": COMMAND | {"cli_lake", "training"},
    "cli_transfer": COMMAND | {"cli_lake", "training", "transfer"},
    "cli_audit": COMMAND | {"audit", "cli_lake", "tables", "transfer"},
    "cli": COMMAND
    | {"graph", "cli_audit", "cli_explain", "cli_report", "cli_training", "cli_transfer", "demo", "version"},
    "__main__": {"cli"},
    "__init__": {"explain", "explanation", "training", "transfer", "version"},
    "errors": set(),
    "version": set(),
}
HEAVY = ("pandas", "distributed", "xgboost", "numba", "scipy", "matplotlib", "bokeh", "jinja2", "dask.dataframe")


def parts() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in ROOT.rglob("*.py"):
        relative = path.relative_to(ROOT)
        found.setdefault(relative.parts[0].removesuffix(".py"), []).append(path)
    return found


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "excir_dask":
            below = node.module.split(".")[1:]
            names |= {below[0]} if below else {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("excir_dask.")}
    return names


@pytest.mark.parametrize("part", sorted(parts()))
def test_imports_point_one_way(part):
    assert part in ALLOWED, f"say in ALLOWED what '{part}' may import"
    for path in parts()[part]:
        extra = imported(path) - ALLOWED[part] - {part, "errors"}
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


@pytest.mark.parametrize("part", ["kernels", "lake", "outputs"])
def test_the_lower_layers_know_nothing_of_dask(part):
    for path in parts()[part]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [m for m in modules if m.split(".")[0] in ("dask", "distributed")], path


def test_importing_the_package_brings_nothing_heavy_along():
    code = f"import sys, excir_dask; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_modules_stay_small():
    for paths in parts().values():
        for path in paths:
            lines = path.read_text(encoding="utf-8").count("\n")
            assert lines <= 350, f"{path.relative_to(ROOT)} has {lines} lines"
