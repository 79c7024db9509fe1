"""Categories of a lake are compared with those that a model knows."""

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from category_models import categorical, cir, stores_categories
from oracle import write_lake

from excir_dask import explain
from excir_dask.errors import ModelError


@stores_categories
def test_categories_that_are_numbers_fit_however_they_are_stored(tmp_path):
    years = pd.Series(np.random.default_rng(4).choice([2019, 2020, 2021], 300))
    frame, model = categorical(years)
    expected = cir(explain(frame, model=model, features=["x"]))
    for name, column in {"whole": years, "floating": years.astype(float)}.items():
        lake = write_lake(tmp_path / name, frame.assign(k=column), 3)
        pd.testing.assert_series_equal(cir(explain(lake, model=model, features=["x"])), expected)
    for year, part in frame.assign(k=years).groupby("k"):
        write_lake(tmp_path / "hive" / f"k={year}", part.drop(columns="k"))
    found = cir(explain(tmp_path / "hive", model=model, features=["x"]))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@stores_categories
def test_text_categories_may_be_folder_names_and_missing(tmp_path):
    towns = pd.Series(np.random.default_rng(5).choice(["Oslo", "Rome"], 300))
    frame, model = categorical(towns)
    for town, part in frame.assign(k=towns).groupby("k"):
        write_lake(tmp_path / f"k={town}", part.drop(columns="k"))
    write_lake(tmp_path / "k=__HIVE_DEFAULT_PARTITION__", frame.drop(columns="k").head(20))
    assert explain(tmp_path, model=model, features=["x"]).facts.rows.used == 320


@stores_categories
def test_more_categories_than_are_counted_for_indicators_are_fine_for_a_model(tmp_path):
    names = pd.Series([f"n{i}" for i in range(10_400)])
    frame, model = categorical(names)
    lake = write_lake(tmp_path / "lake", frame.assign(k=names), 2)
    assert explain(lake, model=model, features=["x"]).facts.rows.used == 10_400


def test_a_model_that_stores_codes_alone_says_what_to_do_about_text():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"x": rng.standard_normal(100), "k": rng.integers(0, 3, 100)})
    data = xgb.DMatrix(frame, frame["x"], feature_types=["q", "c"], enable_categorical=True)
    model = xgb.train({"nthread": 1}, data, num_boost_round=2)
    assert explain(frame, model=model).facts.rows.used == 100
    with pytest.raises(ModelError, match=r"stores codes in place of the categories of column 'k'.*XGBoost 3\.1"):
        explain(frame.assign(k=frame["k"].map({0: "Oslo", 1: "Rome", 2: "Bonn"})), model=model)
