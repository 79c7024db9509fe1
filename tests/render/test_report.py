"""Reports as files: whole, small, safe, and the same bytes every time."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import makers
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from excir_dask import Explanation, Sweep, explain
from excir_dask.cli import excir
from excir_dask.errors import UsageError
from excir_dask.render.html import explanation_page, page
from excir_dask.render.html.labels import LABEL, labels
from excir_dask.render.terminal import cells
from excir_dask.results.audit import AuditResult


class Outline(HTMLParser):
    """Elements of a page, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data

    def ids(self, tag: str) -> list[str | None]:
        return [attributes["id"] for name, attributes in self.found if name == tag and "id" in attributes]


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    return makers.small()


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return makers.swept()


@pytest.fixture(scope="module")
def audit() -> AuditResult:
    return makers.audited()


@pytest.fixture(scope="module")
def texts(
    explanation: Explanation, sweep: Sweep, audit: AuditResult, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """A report of each kind."""
    made = {"explanation": explanation, "sweep": sweep, "audit": audit}
    folder = tmp_path_factory.mktemp("out")
    return {kind: result.report(folder / kind).read_text(encoding="utf-8") for kind, result in made.items()}


@pytest.fixture(params=["explanation", "sweep", "audit"])
def text(request: pytest.FixtureRequest, texts: dict[str, str]) -> str:
    return texts[request.param]


def test_an_explanation_has_every_section(explanation: Explanation) -> None:
    outline = Outline(page.render(explanation_page.page(explanation)))
    expected = ["ranking", "outputs", "spread", "groups", "features", "read", "quality", "limits", "provenance"]
    assert outline.ids("section") == expected


def test_empty_sections_are_left_out() -> None:
    keys = [section.key for section in explanation_page.page(makers.large(30)).sections]
    assert "outputs" not in keys
    assert "groups" not in keys


def test_the_choice_of_a_sweep_comes_first(texts: dict[str, str]) -> None:
    text = texts["sweep"]
    assert text.index('class="verdict good"') < text.index("<section")
    assert Outline(text).ids("section") == ["front", "growth", "fractions", "figures", "runs", "limits", "provenance"]


def test_10_000_features_take_less_than_2_mb(tmp_path: Path) -> None:
    file = makers.large().report(tmp_path / "r.html")
    assert file.stat().st_size < 2_000_000
    assert "to keep this file small" not in file.read_text().lower()


def test_a_page_that_would_be_too_large_holds_the_first_features_and_says_so(tmp_path: Path) -> None:
    file = makers.large(10_000, outputs=4).report(tmp_path / "r.html")
    assert file.stat().st_size < 2_000_000
    found = re.search(r"holds the first ([\d,]+) of 10,000 features of each output; features.parquet", file.read_text())
    assert found is not None
    assert 1000 < int(found[1].replace(",", "")) < 10_000


@pytest.mark.parametrize("kind", ["explanation", "audit"])
def test_names_are_escaped_everywhere(kind: str, texts: dict[str, str]) -> None:
    text = texts[kind]
    assert makers.NASTY not in text
    assert "<i>pair" not in text
    assert not [tag for tag, _ in Outline(text).found if tag == "b"]
    assert text.count("</script>") == text.count("<script")


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    assert not re.search(r"(https?:)?//[a-z]+\.[a-z]", text)
    for _, attributes in Outline(text).found:
        assert not {"src", "srcset", "action", "data"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")


def test_the_policy_names_the_scripts_of_the_page_and_no_others(text: str) -> None:
    outline = Outline(text)
    policy = next(a["content"] for _, a in outline.found if a.get("http-equiv") == "Content-Security-Policy") or ""
    packed = next(s for s, (_, a) in _scripts(outline) if a.get("id") == "bokeh")
    running = next(s for s, (_, a) in _scripts(outline) if not a)
    for script in (gzip.decompress(base64.b64decode(packed)), running.encode()):
        assert base64.b64encode(hashlib.sha256(script).digest()).decode() in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("sha256-") == 2
    assert "unsafe-eval" not in policy


def _scripts(outline: Outline) -> list[tuple[str, tuple[str, dict[str, str | None]]]]:
    elements = [element for element in outline.found if element[0] == "script"]
    return list(zip(outline.scripts, elements, strict=True))


def test_data_in_scripts_is_json(text: str) -> None:
    data = [s for s, (_, a) in _scripts(Outline(text)) if a.get("type") == "application/json"]
    assert len(data) > 3
    for script in data:
        json.loads(script)


def test_ids_are_unique(text: str) -> None:
    ids = [attributes["id"] for _, attributes in Outline(text).found if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_no_row_of_the_lake_is_in_a_report() -> None:
    table = explanation_page.page(makers.large(50))
    rows = next(section for section in table.sections if section.key == "features").blocks[0]
    assert len(rows.content["columns"][0]["values"]) == 50


def test_the_same_result_gives_the_same_bytes(
    explanation: Explanation, sweep: Sweep, audit: AuditResult, texts: dict[str, str], tmp_path: Path
) -> None:
    for kind, result in {"explanation": explanation, "sweep": sweep, "audit": audit}.items():
        assert result.report(tmp_path / f"{kind}.html").read_text(encoding="utf-8") == texts[kind]


def test_saved_folders_hold_a_report_that_loading_does_not_need(explanation: Explanation, tmp_path: Path) -> None:
    folder = explanation.save(tmp_path / "out")
    assert (folder / "report.html").read_bytes() == Explanation.load(folder).report(tmp_path / "r.html").read_bytes()
    (folder / "report.html").unlink()
    assert Explanation.load(folder).to_json() == explanation.to_json()
    assert not (explanation.save(tmp_path / "without", report=False) / "report.html").exists()


def test_a_report_that_fails_does_not_lose_the_result(
    explanation: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanation_page, "page", lambda result: 1 / 0)
    with pytest.warns(UserWarning, match=r"report.html was not written \(ZeroDivisionError"):
        folder = explanation.save(tmp_path / "out")
    assert Explanation.load(folder).to_json() == explanation.to_json()
    with pytest.raises(ZeroDivisionError):
        explanation.save(tmp_path / "new", report=True)


def test_a_sweep_is_saved_with_its_report(sweep: Sweep, tmp_path: Path) -> None:
    folder = sweep.save(tmp_path / "out")
    assert (folder / "report.html").exists()
    (folder / "report.html").unlink()
    assert Sweep.load(folder).chosen == sweep.chosen


def test_without_bokeh_the_error_says_what_to_install(
    explanation: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = page.importlib.util.find_spec
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None if name == "bokeh" else find(name))
    with pytest.raises(UsageError, match=r"reports need bokeh, .*pip install 'excir-dask\[report\]'"):
        explanation.report(tmp_path / "r.html")
    assert not (explanation.save(tmp_path / "out") / "report.html").exists()
    with pytest.raises(UsageError, match="reports need bokeh"):
        explanation.save(tmp_path / "new", report=True)
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_not_a_report_is_not_replaced(explanation: Explanation, tmp_path: Path) -> None:
    (tmp_path / "r.html").write_bytes(explanation.report(tmp_path / "r.html").read_bytes()[:3000])
    assert explanation.report(tmp_path / "r.html").stat().st_size > 3000
    (tmp_path / "thesis.html").write_text("<h1>years of work</h1>")
    with pytest.raises(UsageError, match="is not a report"):
        explanation.report(tmp_path / "thesis.html")
    with pytest.raises(UsageError, match="is a folder"):
        explanation.report(tmp_path)


def test_the_command_writes_reports_of_both_kinds(explanation: Explanation, sweep: Sweep, tmp_path: Path) -> None:
    explanation.save(tmp_path / "e", report=False)
    sweep.save(tmp_path / "s", report=False)
    run = CliRunner().invoke
    assert run(excir, ["report", str(tmp_path / "e")]).stdout.strip() == str(tmp_path / "e" / "report.html")
    Explanation.load(tmp_path / "e")
    assert run(excir, ["report", str(tmp_path / "s"), "--out", str(tmp_path / "s.html")]).exit_code == 0
    assert "How few rows" in (tmp_path / "s.html").read_text()
    failed = run(excir, ["report", "memory://bucket/explanation"])
    assert (failed.exit_code, "only runs of audits (RESULTS/runs/NAME)" in failed.stderr) == (2, True)
    failed = run(excir, ["report", str(tmp_path)])
    assert failed.exit_code == 3
    assert "none of violations.json, explanation.json, sweep.json" in failed.output


NAMES = {
    "days": [f"customer_account_balance_rolling_mean_over_the_last_{j}_days_normalised" for j in range(30)],
    "capitals": [
        f"BALANCE_{a}_OF_THE_YEAR_{b}_IN_EUR" for a in ("PRIVATE", "STATE", "STATED") for b in ("OPEN", "MEAN")
    ],
    "no words": ["a" * 60 + str(j) + "b" * 40 for j in range(12)],
    "wide": [f"温度センサー前左車軸の平均値その{j}番目の値について" for j in range(12)],
    "one begins with the other": ["x" * length for length in range(1, 60)],
    "two families": [f"{family}_{'long' * 8}_{j}_{'word' * 8}" for family in ("first", "second") for j in range(5)],
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_beside_a_chart_are_short_and_differ(kind):
    names = [*NAMES[kind], "speed"]
    found = labels(names)
    assert len(set(found)) == len(names)
    assert found[-1] == "speed"
    assert max(map(cells, found)) <= LABEL


def test_the_fifty_best_features_have_profiles_and_others_none(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 60)), columns=[f"f{j:02d}" for j in range(60)])
    frame = frame.assign(kind=rng.choice(["a", "b"], 300), y=frame["f07"])
    found = explain(frame, output="y", categoricals="indicators")
    blocks = [block for section in explanation_page.page(found).sections for block in section.blocks]
    inside = [each for block in blocks if block.kind == "choice" for _, some in block.panels for each in some]
    (made,) = [block for block in inside if block.kind == "profiles"]
    best = list(found.of("y")["feature"].head(50))
    assert list(made.content["features"]) == best
    assert list(made.names) == best[:20]
    for name, place in made.content["features"].items():
        profile = found.profile(name.partition("=")[0])
        shown = made.content["profiles"][place]
        assert shown["name"] == profile.feature
        assert shown["cells"] == profile.table["cell"].tolist()
        assert shown["rows"] == profile.table["rows"].tolist()
    without = replace(found, source=None).report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "data-profile=" not in without.partition("<script>")[0]
