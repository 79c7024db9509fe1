"""Reports in a real browser, from disk, with the network off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import browser as driver
import makers
import pytest

PROGRAM = driver.find()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine; apt-get install chromium"),
]

KINDS = ("explanation", "sweep", "audit", "large", "large_audit")
GROUND = """(() => {
  const inside = (e) => [e, ...(e.shadowRoot ? below(e.shadowRoot) : [])];
  const below = (node) => [...node.querySelectorAll("*")].flatMap(inside);
  const canvas = below(document.querySelector(".chart")).find((e) => e.tagName === "CANVAS");
  return canvas.getContext("2d").getImageData(1, 1, 1, 1).data[0];
})()"""
"""how bright the ground of the first chart is, from 0 to 255"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[driver.Browser]:
    assert PROGRAM is not None
    made = driver.Browser(PROGRAM, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    results = {
        "explanation": makers.small(),
        "sweep": makers.swept(),
        "audit": makers.audited(),
        "large": makers.large(),
        "large_audit": makers.large_audit(),
        "long_names": makers.audited(names=makers.LONG_NAMES),
    }
    return {kind: result.report(folder / f"{kind}.html") for kind, result in results.items()}


def names(page: driver.Page) -> list[str]:
    found: list[str] = page.run("[...document.querySelectorAll('.rows tbody th')].map((cell) => cell.textContent)")
    return found


def numbers(page: driver.Page, column: str) -> list[float]:
    place = page.run(
        f"[...document.querySelectorAll('.rows thead th')].findIndex((h) => h.textContent.startsWith('{column}'))"
    )
    cells = page.run(f"[...document.querySelectorAll('.rows tbody tr')].map((r) => r.children[{place}].textContent)")
    return [float(cell.replace(",", "")) for cell in cells]


def head(column: str) -> str:
    return f".rows thead th:nth-child({column}) button"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", KINDS)
def test_every_report_opens_without_errors_in_light_and_dark(
    browser: driver.Browser, files: dict[str, Path], kind: str, width: int, tmp_path: Path
) -> None:
    page = browser.open(files[kind], width, 844)
    visible = "[...document.querySelectorAll('.chart')].filter((chart) => chart.offsetParent)"
    assert page.run(f"{visible}.length") >= 2
    pictures = []
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        page.wait(f"{visible}.every((chart) => chart.dataset.drawn === '{scheme}' && chart.clientHeight > 60)")
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run(GROUND) == {"light": 254, "dark": 25}[scheme]
        pictures.append(page.picture(tmp_path / f"{scheme}.png").read_bytes())
    assert page.complaints() == []
    assert min(map(len, pictures)) > 20_000
    assert pictures[0] != pictures[1]


@pytest.mark.parametrize("kind", ["large", "large_audit"])
def test_search_finds_by_typing(browser: driver.Browser, files: dict[str, Path], kind: str) -> None:
    page = browser.open(files[kind])
    assert len(names(page)) == 50
    page.press("/", "/")
    assert page.run("document.activeElement.type") == "search"
    page.type("sensor_00123")
    page.wait("document.querySelectorAll('.rows tbody tr').length === 1")
    assert names(page) == ["sensor_00123_temperature_mean"]
    assert "1 found of 10,000 features" in page.run("document.querySelector('.status').textContent")
    page.press("Escape")
    page.wait("document.querySelectorAll('.rows tbody tr').length === 50")
    page.type("no such name")
    page.wait("document.querySelector('.status').textContent.startsWith('Nothing found')")
    assert page.complaints() == []


@pytest.mark.parametrize("kind", ["large", "large_audit"])
def test_sorting_by_mouse_and_by_keyboard(browser: driver.Browser, files: dict[str, Path], kind: str) -> None:
    page = browser.open(files[kind])
    assert numbers(page, "rank") == list(range(1, 51))
    page.click(head("3"))
    shown = numbers(page, "CIR")
    assert shown == sorted(shown, reverse=True)
    assert page.run("document.querySelector('.rows th:nth-child(3)').getAttribute('aria-sort')") == "descending"
    page.press("Enter", "\r")  # the button that was clicked has the focus
    shown = numbers(page, "CIR")
    assert shown == sorted(shown)
    assert page.run("document.querySelector('.rows th:nth-child(3)').getAttribute('aria-sort')") == "ascending"
    assert page.run("document.querySelectorAll('[aria-sort=ascending]').length") == 1
    page.click(head("1"))
    assert names(page)[0] == "sensor_00000_temperature_mean"


def test_pages_and_filters(browser: driver.Browser, files: dict[str, Path]) -> None:
    page = browser.open(files["large"])
    page.click(".pager button:last-child")
    assert numbers(page, "rank") == list(range(51, 101))
    page.run(
        "(() => { const s = document.querySelector('.tools select'); s.value = "
        "[...s.options].find((o) => o.text.includes('against')).value; s.dispatchEvent(new Event('change')); })()"
    )
    assert max(numbers(page, "CIR")) < 0.5
    assert "found of 10,000" in page.run("document.querySelector('.status').textContent")


@pytest.mark.parametrize("kind", ["explanation", "audit"])
def test_names_are_text_and_never_markup(browser: driver.Browser, files: dict[str, Path], kind: str) -> None:
    page = browser.open(files[kind])
    assert makers.NASTY in names(page)
    assert makers.FORMULA in names(page)
    assert page.run("document.querySelectorAll('main b, main script:not([type])').length") == 0


def test_another_output_is_drawn_when_it_is_chosen(browser: driver.Browser, files: dict[str, Path]) -> None:
    page = browser.open(files["explanation"])
    hidden = "document.querySelectorAll('#ranking .chart')[1]"
    assert page.run(f"{hidden}.dataset.drawn === undefined")
    page.run("document.querySelector('#ranking select').focus()")
    page.type("z")
    page.run("document.querySelector('#ranking select').dispatchEvent(new Event('change'))")
    page.wait(f"{hidden}.dataset.drawn === 'light'")
    assert page.run("document.querySelectorAll('#ranking .panel:not([hidden])').length") == 1
    assert page.complaints() == []


def test_a_table_opens_with_the_first_output_and_without_a_column_for_it(
    browser: driver.Browser, files: dict[str, Path]
) -> None:
    page = browser.open(files["explanation"])
    outputs = "[...document.querySelectorAll('.rows thead th')].filter((h) => h.textContent === 'output')"
    assert page.run("document.querySelector('.rows .pick select').selectedOptions[0].textContent") == "y"
    assert page.run(f"{outputs}[0].hidden")
    rows = page.run("document.querySelectorAll('.rows tbody tr').length")
    page.run("document.querySelector('.rows .pick select').value = ''")
    page.run("document.querySelector('.rows .pick select').dispatchEvent(new Event('change'))")
    page.wait(f"!{outputs}[0].hidden")
    assert page.run("document.querySelector('.status').textContent").endswith(f"of {2 * rows} scores")


def test_a_phone_shows_the_scores_whole_words_and_that_there_is_more(
    browser: driver.Browser, files: dict[str, Path]
) -> None:
    page = browser.open(files["explanation"], 390, 844)
    scroll = "document.querySelector('.rows .scroll')"
    ends = page.run(
        f"[...{scroll}.querySelectorAll('tbody tr')].map((row) => row.children[2].getBoundingClientRect().right)"
    )
    assert max(ends) <= page.run(f"{scroll}.getBoundingClientRect().right")
    assert page.run("document.querySelectorAll('.rows tbody th wbr').length") > 0
    assert not page.run("document.querySelector('.cue').hidden")
    page.run(f"{scroll}.scrollLeft = {scroll}.scrollWidth")
    page.wait("document.querySelector('.cue').hidden")


def test_the_first_key_goes_to_the_skip_link(browser: driver.Browser, files: dict[str, Path]) -> None:
    page = browser.open(files["sweep"])
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    page.press("Enter", "\r")
    page.wait("document.activeElement.id === 'content'")


@pytest.mark.parametrize("kind", ["large", "audit"])
def test_a_report_prints_on_a_few_pages(
    browser: driver.Browser, files: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    printed = browser.open(files[kind]).pdf(tmp_path / "report.pdf").read_bytes()
    pages = printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") + printed.count(b"/Type /Page/")
    assert 2 <= pages <= 12


WIDTHS = """Bokeh.documents.flatMap((one) => one.roots()).map((plot) => [plot.inner_width, plot.outer_width])"""


def test_long_names_leave_room_for_the_charts_of_a_phone(browser: driver.Browser, files: dict[str, Path]) -> None:
    page = browser.open(files["long_names"], 390, 844)
    sizes = page.run(WIDTHS)
    assert len(sizes) > 5
    assert min(inner for inner, _ in sizes) > 95
    assert max(outer for _, outer in sizes) < 390
    assert page.run("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_in_tables_can_be_told_apart(browser: driver.Browser, files: dict[str, Path], width: int) -> None:
    page = browser.open(files["long_names"], width, 844)
    heads = "[...document.querySelectorAll('#violations tbody th')]"
    assert page.run(f"{heads}.length") > 1
    assert page.run(f"{heads}.every((cell) => cell.scrollWidth <= cell.clientWidth)")


@pytest.mark.parametrize("width", [390, 800, 1280, 1600])
def test_charts_fit_on_paper_whatever_the_window(browser: driver.Browser, files: dict[str, Path], width: int) -> None:
    page = browser.open(files["audit"], width, 600)
    page.run("dispatchEvent(new Event('beforeprint'))")
    page.call("Emulation.setDeviceMetricsOverride", width=703, height=1000, deviceScaleFactor=1, mobile=False)
    page.call("Emulation.setEmulatedMedia", media="print")
    visible = "[...document.querySelectorAll('.chart')].filter((chart) => chart.offsetParent)"
    boxes = page.run(
        f"{visible}.map((chart) => [chart, ...chart.children].filter((one) => one.offsetParent)"
        ".map((one) => one.getBoundingClientRect().toJSON()))"
    )
    assert len(boxes) > 5
    # copies, which take the width of the paper; what Bokeh drew keeps that of the window
    shown = f"{visible}.flatMap((chart) => [...chart.children]).filter((one) => one.offsetParent)"
    assert page.run(f"{shown}.every((one) => one.className === 'printed')")
    for chart, *inside in boxes:
        assert len(inside) == 1
        assert chart["right"] <= 703
        assert inside[0]["right"] <= chart["right"] + 1
        assert inside[0]["bottom"] <= chart["bottom"] + 1
        assert inside[0]["width"] > 250
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run("document.querySelectorAll('.printed').length") == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_profiles_open_from_names_by_mouse_and_keyboard_and_give_the_focus_back(
    browser: driver.Browser, files: dict[str, Path], width: int
) -> None:
    page = browser.open(files["explanation"], width, 844)
    title, opened = "document.querySelector('dialog h2').textContent", "document.querySelector('dialog').open"
    name = page.run("document.querySelector('.chips button').dataset.profile")
    page.click(".chips button")
    page.wait(opened)
    assert page.run(title) == f"y along {name}"
    assert page.run("document.querySelectorAll('dialog circle').length") == 16
    assert page.run("document.querySelectorAll('dialog tbody tr').length") == 16
    box = page.run("document.querySelector('dialog').getBoundingClientRect().toJSON()")
    assert 0 <= box["left"] < box["right"] <= width
    assert page.run("document.querySelector('dialog svg').getBoundingClientRect().width") <= box["width"]
    page.press("ArrowRight")
    assert page.run(title) != f"y along {name}"
    page.press("ArrowLeft")
    assert page.run(title) == f"y along {name}"
    page.press("Escape")
    assert not page.run(opened)
    page.run("document.querySelectorAll('.rows tbody th button')[1].focus()")
    second = page.run("document.activeElement.dataset.profile")
    page.press("Enter", "\r")
    page.wait(opened)
    assert page.run(title) == f"y along {second}"
    page.click("dialog .close")
    assert not page.run(opened)
    assert page.run("document.activeElement.dataset.profile") == second
    assert page.complaints() == []


def test_profiles_are_of_the_output_that_is_looked_at(browser: driver.Browser, files: dict[str, Path]) -> None:
    page = browser.open(files["explanation"])
    page.run("(() => { const s = document.querySelectorAll('.rows select')[0]; s.value = '1'; "
             "s.dispatchEvent(new Event('change')); })()")  # fmt: skip
    page.click(".rows tbody th button")
    assert page.run("document.querySelector('dialog h2').textContent").startswith("z along ")
    page.press("Escape")
    for name, said in (("empty", "No row has a value."), ("idle", "constant")):
        page.run(f"(() => {{ const b = document.querySelector('.chips button'); b.dataset.profile = '{name}'; "
                 "b.click(); })()")  # fmt: skip
        assert said in page.run("document.querySelector('dialog').textContent")
        page.press("Escape")
    assert page.complaints() == []
