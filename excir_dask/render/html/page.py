"""Writes a report as one HTML file that needs no network.

The file holds its scripts, and a content security policy that lets the browser run only these and load nothing else:
even a name that slipped through the escaping could do nothing.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import json
import os
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from excir_dask.common.atomic import write_file
from excir_dask.errors import UsageError
from excir_dask.render.html.blocks import Chart, Profiles, Report, Rows
from excir_dask.results.storage import is_report
from excir_dask.version import __version__

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = ("charts.js", "profiles.js", "table.js", "page.js")


def available() -> bool:
    """Whether the packages that reports need are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("bokeh", "jinja2"))


def require() -> None:
    """Say what to install if a package is missing."""
    missing = [name for name in ("bokeh", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"reports need {' and '.join(missing)}, not installed here; install with: pip install 'excir-dask[report]'"
        )


class HasReport(Protocol):
    """A result that can write its report."""

    def report(self, path: str | os.PathLike[str]) -> Path: ...


def add(result: HasReport, path: Path, wanted: bool | None) -> None:
    """Write the report of a result if ``wanted``; None: if it can be, and without losing the result if that fails."""
    if wanted:
        result.report(path)
    elif wanted is None and available():
        try:
            result.report(path)
        except Exception as error:
            warnings.warn(
                f"{path.name} was not written ({type(error).__name__}: {error}); everything else is saved", stacklevel=3
            )


def write(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report to a file, which appears whole or not at all; only reports are replaced."""
    if "://" in os.fspath(path):
        raise UsageError(f"{path} is a URL, and reports are saved in local files; save it in one, then copy it")
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file in it, such as {target / 'report.html'}")
    if target.exists() and not is_report(target):
        raise UsageError(f"{target} exists and is not a report, so it is not overwritten; choose another name")
    text = render(report)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_file(target, text.encode())
    return target


def render(report: Report) -> str:
    """The report as text; the same report gives the same text."""
    require()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    places = _Places()
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"chart": places.chart, "content": places.content, "place": places.new}
    script = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    bokeh, bokeh_hash = _bokeh()
    return environment.get_template("page.html").render(
        report=report,
        version=__version__,
        css=_markup((ASSETS / "page.css").read_text(encoding="utf-8")),
        script=_markup(script),
        bokeh=_markup(bokeh),
        policy=(
            f"default-src 'none'; script-src '{_hash(script.encode())}' '{bokeh_hash}'; style-src 'unsafe-inline'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
    )


class _Places:
    """Ids in the order of the page, and the data that its scripts find by them."""

    def __init__(self) -> None:
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def chart(self, chart: Chart, place: str) -> Any:
        return script_json(_renamed(chart.item, place))

    def content(self, block: Rows | Profiles) -> Any:
        return script_json(block.content)


def script_json(value: Any) -> Any:
    """JSON that is safe inside a script element, whatever its strings hold."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _markup(text)


def _renamed(item: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """A chart with ids of its own: Bokeh counts ids per process, so no two files would be the same."""
    known: dict[str, str] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: known.setdefault(inside, f"{prefix}-{len(known)}")
                if key in ("id", "root_id") and isinstance(inside, str)
                else walk(inside)
                for key, inside in value.items()
            }
        return [walk(inside) for inside in value] if isinstance(value, list) else value

    renamed: dict[str, Any] = walk(dict(item))
    return renamed


@lru_cache(maxsize=1)
def _bokeh() -> tuple[str, str]:
    """Bokeh's script, compressed from 1.3 MB to 0.5 MB, and its hash for the policy."""
    import bokeh

    text = (Path(bokeh.__file__).parent / "server" / "static" / "js" / "bokeh.min.js").read_bytes()
    return base64.b64encode(gzip.compress(text, 9, mtime=0)).decode("ascii"), _hash(text)


def _hash(script: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script).digest()).decode("ascii")


def _markup(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)
