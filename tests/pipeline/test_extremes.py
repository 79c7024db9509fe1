"""Values and weights whose products or squares are no numbers."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from oracle import cir, write_lake

from excir_dask import Explanation, explain
from excir_dask.kernels.centers import CENTERINGS

pytestmark = pytest.mark.usefixtures("synchronous")

ROWS = 600


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, ROWS))
    return pd.DataFrame({"a": a, "b": b, "y": 3 * (a + rng.normal(size=ROWS))})


def rows_of(found: Explanation) -> pd.DataFrame:
    return found.of().set_index("feature")


@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 1e200])
def test_one_huge_value_flags_its_column_and_no_other(tmp_path, caplog, value, centering):
    frame = table()
    frame.loc[77, "b"] = value
    found = explain(write_lake(tmp_path / "lake", frame, 3), output="y", centering=centering, out=tmp_path / "out")
    rows = rows_of(found)
    assert rows.loc["a", "cir"] == pytest.approx(cir(frame["a"].to_numpy(), frame["y"].to_numpy(), centering))
    assert rows.loc["a", "flag"] == ""
    assert "out of range" in rows.loc["b", "flag"]
    assert rows.loc["b", "stderr"] == 0.5, "nothing is known about it"
    assert "column 'b' times output 'y'" in caplog.text
    json.loads((tmp_path / "out" / "explanation.json").read_text(), parse_constant=pytest.fail)
    pd.testing.assert_frame_equal(Explanation.load(tmp_path / "out").features, found.features)


@pytest.mark.parametrize("size", [1e-163, 1e-161, 1e-158, 1e-150])
def test_errors_of_tiny_products_are_right_or_unknown(size):
    frame = table()
    plain = rows_of(explain(frame, output="y"))
    tiny = rows_of(explain(frame.assign(b=frame["b"] * size), output="y"))
    assert tiny.loc["b", "cir"] == pytest.approx(plain.loc["b", "cir"], abs=1e-9)
    unknown = "out of range" in tiny.loc["b", "flag"]
    assert unknown == (size < 1e-160)
    assert tiny.loc["b", "stderr"] == pytest.approx(0.5 if unknown else plain.loc["b", "stderr"], rel=1e-3)


def test_rows_of_denormal_weights_count_as_rows_without_one(tmp_path):
    frame = table().assign(w=np.where(np.arange(ROWS) % 3, 1.0, 5e-324))
    found = explain(write_lake(tmp_path / "lake", frame, 3), output="y", weights="w")
    assert found.facts.rows.without_weight == ROWS // 3
    left = frame[frame["w"] == 1.0]
    assert rows_of(found).loc["a", "cir"] == pytest.approx(cir(left["a"].to_numpy(), left["y"].to_numpy()), abs=1e-12)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_weights_of_any_size_give_the_same_scores(size):
    frame = table().assign(w=np.random.default_rng(1).lognormal(size=ROWS))
    plain, scaled = (rows_of(explain(frame.assign(w=frame["w"] * each), output="y", weights="w")) for each in (1, size))
    np.testing.assert_allclose(scaled["cir"].reindex(plain.index), plain["cir"], rtol=1e-9)
    np.testing.assert_allclose(scaled["stderr_rows"].reindex(plain.index), plain["stderr_rows"], rtol=1e-6)
