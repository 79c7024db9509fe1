"""Every field of the files that others read is in a schema and in the documentation."""

import json
from datetime import date
from pathlib import Path

import jsonschema
import pytest
from days import frame, write_day

from excir_dask import explain
from excir_dask.audit.config import KEYS, read_config
from excir_dask.audit.limits import CHECKS
from excir_dask.audit.run import audit

DOCS = Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.usefixtures("synchronous")


def schema(name: str) -> dict:
    found = json.loads((DOCS / "schemas" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def fields(part: dict) -> set[str]:
    names = set(part.get("properties", {}))
    for below in [*part.get("properties", {}).values(), *([part["items"]] if "items" in part else [])]:
        names |= fields(below)
    return names


def test_what_an_audit_writes_fits_the_schemas(drifting):
    table = frame(20).assign(extra=1.0, oil=None).drop(columns="noise").astype({"oil": float})
    write_day(drifting / "lake", 15, table)
    path = drifting / "audit.yaml"
    path.write_text(path.read_text() + "baseline: previous\n")
    found = set()
    for number in (8, 9, 15):
        done = audit(read_config(path), date(2026, 9, number))
        folder = drifting / "audits" / "runs" / done.about["run"]
        for name in ("violations", "explanation"):
            content = json.loads((folder / f"{name}.json").read_text())
            jsonschema.validate(content, schema(name))
        found |= {one["constraint_check_type"] for one in done.violations}
    assert {"sign_flip", "score_shift", "columns_new", "columns_gone", "missing_rate"} <= found


def test_explanations_of_all_kinds_fit_the_schema():
    table = frame(1, rows=6000).assign(second=1.0, city="x", weight=2.0)
    for more in (
        {"fraction": "auto"},
        {"categoricals": "indicators", "weights": "weight", "group_correlated": 0.9},
        {"output": None, "model": lambda rows: rows["rpm"], "centering": "mean"},
    ):
        explanation = explain(table, **{"output": "pred", **more})
        jsonschema.validate(json.loads(explanation.to_json()), schema("explanation"))


@pytest.mark.parametrize("name", ["violations", "explanation"])
def test_every_field_is_documented(name):
    text = (DOCS / "AUDIT.md").read_text()
    names = fields(schema(name))
    assert len(names) > 15
    assert [field for field in sorted(names) if f"`{field}`" not in text] == []


def test_every_setting_and_check_is_documented():
    text = (DOCS / "AUDIT.md").read_text()
    assert [name for name in (*KEYS, *CHECKS) if f"`{name}`" not in text] == []
    assert len(text.splitlines()) < 100


def test_schemas_know_every_check():
    item = schema("violations")["properties"]["violations"]["items"]
    assert item["properties"]["constraint_check_type"]["enum"] == list(CHECKS)
