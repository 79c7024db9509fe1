"""The series of an audit's runs: another one for another key, with a name that every filesystem accepts."""

import re
from dataclasses import replace

import pytest
from days import FIRST, frame, write_day
from hypothesis import given
from hypothesis import strategies as st

from excir_dask.audit.config import Config, read_config
from excir_dask.audit.run import audit
from excir_dask.audit.target import resolve_target
from excir_dask.audit.window import Window

ONE = Config("plant", "lake", "audits", Window("city={{ city }}"), baseline="prod-{{ city }}")
TWO = replace(ONE, window=Window("a={{ a }}/b={{ b }}"), baseline=None)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1).filter(lambda x: x.strip("."))
PUNCTUATED = st.text("ab1,=_ -", min_size=1)


def series(config: Config, **keys: str) -> str:
    return resolve_target(config, None, keys).series


@given(VALUES, VALUES)
def test_two_keys_are_two_series(one, other):
    names = {series(ONE, city=city) for city in (one, other)}
    assert len(names) == len({one, other})
    assert all(re.fullmatch(r"plant,city=[A-Za-z0-9.,=_-]+", name) for name in names)


@given(PUNCTUATED, PUNCTUATED, PUNCTUATED, PUNCTUATED)
def test_two_pairs_of_keys_are_two_series(a, b, c, d):
    assert (series(TWO, a=a, b=b) == series(TWO, a=c, b=d)) == ((a, b) == (c, d))


def test_characters_of_file_names_are_kept():
    assert series(ONE, city="eu-west_1.b") == "plant,city=eu-west_1.b"
    assert series(TWO, a="1,2", b="3") == "plant,a=1,2,b=3"
    assert series(TWO, a="1,b=2", b="3") != series(TWO, a="1", b="2,b=3")


def test_each_city_has_a_baseline_whose_name_can_be_set():
    names = {resolve_target(ONE, None, {"city": city}).baseline for city in ("東京", "大阪", "köln")}
    assert len(names) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", str(name)) for name in names)


@pytest.mark.usefixtures("synchronous", "without_bokeh")
def test_cities_outside_ascii_are_not_compared_with_each_other(plant):
    path = plant / "audit.yaml"
    path.write_text(path.read_text().replace("date={{", "city={{ city }}/date={{") + "baseline: previous\n")
    config = read_config(path)
    runs = []
    for city in ("東京", "大阪", "東京"):
        write_day(plant / "lake" / f"city={city}", len(runs) + 1, frame(1))
        runs.append(audit(config, FIRST.replace(day=len(runs) + 1), {"city": city}).about)
    assert [run["baseline"] for run in runs] == [None, None, runs[0]["run"]]
