"""Every field of the files that others read is in a schema and in the documentation, and nothing else is in them."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import jsonschema
import pytest
from days import frame, write_day

from excir_dask import explain
from excir_dask.audit.checks import CHECKS
from excir_dask.audit.config import KEYS, read_config
from excir_dask.audit.run import audit

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ["violations", "explanation"]
pytestmark = pytest.mark.usefixtures("synchronous")


def schema(name: str) -> dict:
    found = json.loads((DOCS / "schemas" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def parts(part: dict, path: str = "") -> Iterator[tuple[str, dict]]:
    """Every part of a schema with its place in the file."""
    yield path, part
    for name, below in part.get("properties", {}).items():
        yield from parts(below, f"{path}.{name}" if path else name)
    if "items" in part:
        yield from parts(part["items"], f"{path}[]")
    if isinstance(part.get("additionalProperties"), dict):
        yield from parts(part["additionalProperties"], f"{path}.*")


def described(name: str) -> list[str]:
    """The lines of docs/FIELDS.md about a file: a row for each field."""
    rows = [(path, part) for path, part in parts(schema(name)) if path and not path.endswith(("[]", ".*"))]
    text = {path: part["description"].replace("|", "\\|") for path, part in rows}
    return [f"| `{path}` | {words} |" for path, words in text.items()]


def fits(content: object, name: str) -> None:
    jsonschema.validate(content, schema(name), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_a_schema_is_closed_and_described(name):
    for path, part in parts(schema(name)):
        assert part.get("description"), path
        if "object" in part.get("type", ""):
            assert "additionalProperties" in part, path
            assert part["additionalProperties"] is not True, path
            if part["additionalProperties"] is False:
                assert set(part["required"]) >= set(part["properties"]) - {"auto", "where"}, path
        if part.get("type") == "array":
            assert "items" in part, path


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_documented(name):
    """The tables of docs/FIELDS.md are the schemas' own words, no more and no less."""
    text = (DOCS / "FIELDS.md").read_text().partition(f"## `{name}.json`")[2].partition("\n## ")[0]
    assert [line for line in text.splitlines() if line.startswith("| `")] == described(name)


def test_what_an_audit_writes_fits_the_schemas(plant, audited):
    table = frame(20, rows=400).assign(extra=1.0, oil=None).drop(columns="noise").astype({"oil": float})
    write_day(plant / "lake", 3, table)
    path = plant / "audit.yaml"
    path.write_text(path.read_text() + "baseline: previous\nexplain: {centering: median}\n")
    runs = [audit(read_config(path), date(2026, 9, 2))]
    path.write_text(path.read_text().replace("median", "mean"))
    runs.append(audit(read_config(path), date(2026, 9, 3)))
    folders = [plant / "audits" / "runs" / run.about["run"] for run in runs]
    found = {one["constraint_check_type"] for run in [*runs, *audited.runs.values()] for one in run.violations}
    for folder in (*folders, audited.run_folder(1), audited.run_folder(9)):
        for name in NAMES:
            fits(json.loads((folder / f"{name}.json").read_text()), name)
    expected = {"sign_flip", "score_shift", "left_top", "columns_new", "columns_gone", "missing_rate", "settings"}
    assert expected | {"rows_ratio_min"} <= found


def test_explanations_of_all_kinds_fit_the_schema():
    table = frame(1, rows=6000).assign(second=1.0, city="x", weight=2.0)
    for more in (
        {"fraction": "auto"},
        {"categoricals": "indicators", "weights": "weight", "group_correlated": 0.9},
        {"output": None, "model": lambda rows: rows["rpm"], "centering": "mean"},
    ):
        explanation = explain(table, **{"output": "pred", **more})
        fits(json.loads(explanation.to_json()), "explanation")


def test_a_field_that_the_schema_does_not_know_is_refused(audited):
    for name in NAMES:
        content = json.loads((audited.run_folder(9) / f"{name}.json").read_text())
        content[name if name == "violations" else "features"][0]["more"] = 1
        with pytest.raises(jsonschema.ValidationError):
            fits(content, name)


def test_every_setting_and_check_is_documented():
    text = (DOCS / "AUDIT.md").read_text()
    assert [name for name in (*KEYS, *CHECKS) if f"`{name}`" not in text] == []


def test_schemas_know_every_check():
    item = schema("violations")["properties"]["violations"]["items"]
    assert item["properties"]["constraint_check_type"]["enum"] == list(CHECKS)
