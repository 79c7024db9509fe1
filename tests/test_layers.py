"""The folders are the layers: imports point one way only, and importing the package stays cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import excir_dask

ROOT = Path(excir_dask.__file__).parent

LAYERS = [
    {"errors", "version"},
    {"common"},
    {"kernels", "lake", "models"},
    {"graph"},
    {"clusters", "results"},
    {"pipeline"},
    {"explain"},
    {"agreement", "training"},
    {"sweep", "audit"},
    {"render"},
    {"demo"},
    {"cli"},
    {"__main__", "__init__"},
]
"""each part imports only parts of earlier layers, lazy imports included; parts of one layer do not know each other"""

LEVELS = {part: level for level, layer in enumerate(LAYERS) for part in layer}

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
    """Modules of the package that a file imports, anywhere in it, or names in a text for somebody else to import."""
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
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("excir_dask."):
            named = re.split(r"[:\s]", node.value)[0].partition(".")[2].rstrip(".")
            yield from [named] if named in modules() or named in LEVELS else []


def part(module: str) -> str:
    return module.split(".")[0]


def hidden_imports(path: Path) -> Iterator[int]:
    """Lines that import what no reader of the file can see."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "importlib":
            yield from [node.lineno for alias in node.names if alias.asname]
        if isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            computed = called == "import_module" and not isinstance(node.args[0], (ast.Constant, ast.JoinedStr))
            if called == "__import__" or computed:
                yield node.lineno


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_point_downwards_only(name):
    assert part(name) in LEVELS, f"say in LAYERS where '{part(name)}' stands"
    for imported in imports(modules()[name]):
        allowed = part(imported) == part(name) or LEVELS[part(imported)] < LEVELS[part(name)]
        if name == FACADE:
            allowed = allowed or part(imported) == "render"
        assert allowed, f"{name} imports {imported}, which is not in an earlier layer"


def test_no_import_cycle_exists():
    graph = {name: set(imports(path)) for name, path in modules().items()}
    graph[FACADE] = {name for name in graph[FACADE] if part(name) != "render"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' -> '.join(error.args[1])}")


def test_every_import_can_be_seen():
    found = {name: list(hidden_imports(path)) for name, path in modules().items()}
    assert {name for name, lines in found.items() if lines} == {"clusters.start"}, found  # a package of its kind
    assert len(found["clusters.start"]) == 1


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("from excir_dask.cli import root", "cli.root"),
        ("def f():\n    import excir_dask.cli.root", "cli.root"),
        ("if TYPE_CHECKING:\n    from excir_dask.cli.root import main", "cli.root"),
        ("import_module('excir_dask.cli.root')", "cli.root"),
        ("import_module(f'excir_dask.cli.{name}')", "cli"),
        ("resolve_name('excir_dask.cli.root:main')", "cli.root"),
        ("sys.modules['excir_dask.cli']", "cli"),
    ],
)
def test_imports_of_any_form_count(tmp_path, line, seen):
    (tmp_path / "module.py").write_text(line)
    assert list(imports(tmp_path / "module.py")) == [seen]


@pytest.mark.parametrize(
    "line", ["__import__('excir_dask.cli')", "import_module('excir_dask.' + name)", "from importlib import x as y"]
)
def test_hidden_imports_are_found(tmp_path, line):
    (tmp_path / "module.py").write_text(line)
    assert list(hidden_imports(tmp_path / "module.py")) == [1]


def test_scans_are_known_to_the_graph_alone():
    for name, path in modules().items():
        if part(name) != "graph":
            inside = {imported for imported in imports(path) if part(imported) == "graph"} - GRAPH_OUTWARDS
            assert not inside, f"{name} imports {sorted(inside)}; ask graph.measure"


@pytest.mark.parametrize("one", ["common", "kernels", "lake", "models"])
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
