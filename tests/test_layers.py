"""The folders are the layers: imports point one way only, and importing the package stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import excir_dask

ROOT = Path(excir_dask.__file__).parent

ORDER = [
    "errors", "version", "common", "kernels", "lake", "models", "graph", "clusters", "results", "pipeline", "explain",
    "agreement", "training", "sweep", "audit", "render", "demo", "cli", "__main__", "__init__",
]  # fmt: skip
"""each part imports only parts that come before it, lazy imports included"""

INDEPENDENT = {"kernels", "lake", "models"}
"""parts that do not know each other"""

FACADE = "results.views"
"""the only module that imports upwards: from results to how they look (render)"""

GRAPH_OUTWARDS = {
    "graph.measure", "graph.lake_state", "graph.state_files", "graph.run", "graph.checkpoint", "graph.progress",
    "graph.interrupts", "graph.segment_states",
}  # fmt: skip
"""modules of graph that others may import: what is measured and kept, how work runs; never how often rows are read"""

ROOT_MODULES = {"__init__", "__main__", "demo", "errors", "explain", "version"}

HEAVY = ("pandas", "distributed", "xgboost", "numba", "scipy", "matplotlib", "bokeh", "jinja2", "dask.dataframe")


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return found


def imports(path: Path) -> Iterator[str]:
    """Modules of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"{path} has a relative import on line {node.lineno}; write it out")
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "excir_dask":
            base = (node.module or "").partition(".")[2]
            for alias in node.names:
                full = f"{base}.{alias.name}" if base else alias.name
                yield full if full in modules() else base or "__init__"
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "excir_dask":
                    yield alias.name.partition(".")[2] or "__init__"
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            text = _beginning(node.args[0])
            if text.split(".")[0] == "excir_dask":
                yield text.partition(".")[2].rstrip(".") or "__init__"


def _beginning(node: ast.expr) -> str:
    """A text, or an f-string up to its first value."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    return str(node.value) if isinstance(node, ast.Constant) else ""


def part(module: str) -> str:
    return module.split(".")[0]


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_point_downwards_only(name):
    assert part(name) in ORDER, f"say in ORDER where '{part(name)}' stands"
    for imported in imports(modules()[name]):
        upwards = ORDER.index(part(imported)) > ORDER.index(part(name))
        if name == FACADE:
            upwards = upwards and part(imported) != "render"
        assert not upwards, f"{name} imports {imported}, which comes later"


def test_no_import_cycle_exists():
    graph = {name: set(imports(path)) for name, path in modules().items()}
    graph[FACADE] = {name for name in graph[FACADE] if part(name) != "render"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("one", sorted(INDEPENDENT))
def test_the_lowest_layers_do_not_know_each_other(one):
    for name, path in modules().items():
        if part(name) == one:
            others = {part(imported) for imported in imports(path)} & (INDEPENDENT - {one})
            assert not others, f"{name} imports {sorted(others)}"


def test_scans_are_known_to_the_graph_alone():
    for name, path in modules().items():
        if part(name) != "graph":
            inside = {imported for imported in imports(path) if part(imported) == "graph"} - GRAPH_OUTWARDS
            assert not inside, f"{name} imports {sorted(inside)}; ask graph.measure"


@pytest.mark.parametrize("one", ["common", *sorted(INDEPENDENT)])
def test_the_lowest_layers_know_nothing_of_graphs(one):
    for name, path in modules().items():
        if part(name) != one:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            outside = [module for module in found if module.split(".")[0] in ("dask", "distributed")]
            assert set(outside) <= {"dask.utils"}, path


def test_the_root_holds_what_users_start_with():
    assert {path.stem for path in ROOT.glob("*.py")} == ROOT_MODULES


def test_importing_the_package_brings_nothing_heavy_along():
    code = f"import sys, excir_dask; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(modules()))
def test_modules_stay_small(name):
    lines = modules()[name].read_text(encoding="utf-8").count("\n")
    assert lines <= 350, f"{name} has {lines} lines"
