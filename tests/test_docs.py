"""The documents name what is there: modules, links, tests, and the layers in their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_layers import LAYERS, LEVELS, ROOT_MODULES

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "cluster/*.md", "jobs/*.md")
    for path in ROOT.glob(pattern)
)
MODULE = re.compile(r"`((?:[a-z0-9_]+/)*[a-z0-9_]+\.py)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#([^)]*))?\)")
TEST = re.compile(r"tests/[a-z0-9_/.]*[a-z0-9_]")


def pages() -> list[object]:
    return [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in PAGES]


@pytest.mark.parametrize("page", pages())
def test_modules_that_a_page_names_exist(page):
    near = (ROOT, ROOT / "excir_dask", page.parent)
    for name in MODULE.findall(page.read_text(encoding="utf-8")):
        assert any((folder / name).is_file() for folder in near), f"{page.name} names {name}, which is not there"


@pytest.mark.parametrize("page", pages())
def test_links_of_a_page_lead_somewhere(page):
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        path = page.parent / target
        assert path.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and path.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{page.name} links to {target}#{anchor}, and there is no such heading"


@pytest.mark.parametrize("page", pages())
def test_tests_that_a_page_names_exist(page):
    for name in TEST.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), f"{page.name} names {name}, which is not there"


def test_the_design_page_lists_the_layers_in_the_order_that_is_tested():
    page = (ROOT / "docs" / "DESIGN.md").read_text(encoding="utf-8")
    table = page.split("## Layers")[1].split("\n## ")[0]
    layers = [{name for name in layer if not name.startswith("__")} for layer in LAYERS]
    (order,) = re.findall(r"^`errors.*`$", table, re.MULTILINE)
    assert [set(layer.strip("` ").split(" | ")) for layer in order.split("<")] == [layer for layer in layers if layer]
    assert {name for names in layers for name in names} == set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_tests_stand_in_the_folders_of_the_package():
    parts = set(LEVELS) - ROOT_MODULES
    assert parts == {path.parent.name for path in (ROOT / "excir_dask").glob("*/__init__.py")}
    assert parts == {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")} - {"faults"}


def test_every_decision_is_dated_and_in_the_index():
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    records = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    for number, path in enumerate(records, 1):
        title, _, date = path.read_text(encoding="utf-8").splitlines()[:3]
        assert title.startswith(f"# {number}. ")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
        assert f"| {number} | [{title.partition('. ')[2]}]({path.name}) | {date} |" in index
