"""Damaged Parquet files and models, and odd options: no crash, no traceback, nothing silently different."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from mutate import try_mutants
from odd_options import attempt, files, typed

pytestmark = pytest.mark.usefixtures("synchronous")

odd = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
MORE = pytest.mark.slow


@pytest.mark.parametrize("kind", ["parquet", "models"])
@pytest.mark.parametrize("last", [40, pytest.param(2000, marks=MORE)])
def test_no_mutant_ends_the_process_or_is_silently_different(tmp_path, kind, last):
    outcomes, findings = try_mutants(kind, 0, last, tmp_path, seconds=10_000)
    assert findings == []
    assert outcomes["refused"] > last / 4
    assert sum(outcomes.values()) == last


@odd
@given(options=typed())
def test_odd_options_end_with_a_promised_code(workplace, options):
    _, finding = attempt(workplace / "lake", ["--output", "y", *options])
    assert finding is None


@odd
@given(content=files)
def test_odd_files_of_options_end_with_a_promised_code(workplace, tmp_path, content):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(content))
    _, finding = attempt(workplace / "lake", ["--config", str(path)])
    assert finding is None
