"""What models and lakes may do that nobody would expect."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost as xgb
from oracle import write_lake

from excir_dask import explain
from excir_dask.errors import DataError, ModelError, SchemaError, UsageError


def table(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.standard_normal((rows, 4)), columns=list("abcd"))


def cir(explanation) -> pd.Series:
    return explanation.of().set_index("feature")["cir"]


def test_a_model_and_its_booster_do_not_get_in_each_others_way(tmp_path):
    frame = table()
    model = xgb.XGBClassifier(n_estimators=3).fit(frame, frame["a"] > 0)
    one, other = explain(frame, model=model), explain(frame, model=model.get_booster())
    model.save_model(tmp_path / "m.ubj")
    third = explain(frame, model=tmp_path / "m.ubj")
    pd.testing.assert_series_equal(cir(one), cir(other))
    pd.testing.assert_series_equal(cir(one), cir(third))


def test_masked_values_are_missing():
    found = explain(table(), model=lambda f: np.ma.masked_less(f["a"].to_numpy(), 0.0))
    assert found.facts.rows.without_output == int((table()["a"] < 0).sum())


def test_rows_in_another_order_are_put_back():
    expected = cir(explain(table(), model=lambda f: 2 * f["a"]))
    pd.testing.assert_series_equal(cir(explain(table(), model=lambda f: (2 * f["a"]).sort_values())), expected)
    pd.testing.assert_series_equal(
        cir(explain(table(), model=lambda f: (2 * f["a"]).reset_index(drop=True), fraction=0.9999)),
        cir(explain(table(), model=lambda f: (2 * f["a"]).to_numpy(), fraction=0.9999)),
    )
    with pytest.raises(ModelError, match="another index"):
        explain(table(), model=lambda f: (2 * f["a"]).rename(lambda i: i + 7))


def test_what_is_explained_does_not_change_what_a_function_sees(tmp_path):
    lake = write_lake(tmp_path / "lake", table(), 2)
    everything = cir(explain(lake, model=lambda f: f.sum(axis=1)))
    some = cir(explain(lake, model=lambda f: f.sum(axis=1), features=["a", "b"]))
    np.testing.assert_array_equal(some, everything[some.index])


def test_decimals_reach_a_function_as_floats(tmp_path):
    column = pa.array(np.arange(50)).cast(pa.decimal128(23, 2))
    pq.write_table(pa.table({"d": column, "x": np.arange(50.0)}), tmp_path / "0.parquet")
    assert cir(explain(tmp_path, model=lambda f: f["d"] + 0.5))["x"] == 1.0


def test_the_sample_for_groups_is_as_large_as_the_rows_allow(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((100_000, 20)), columns=[f"x{i}" for i in range(20)])
    frame["pred"] = np.where(rng.random(100_000) < 0.004, rng.standard_normal(100_000), np.nan)
    lake = write_lake(tmp_path / "lake", frame, 4)
    assert explain(lake, output="pred", group_correlated=0.3).groups.empty
    assert explain(frame, output="pred", group_correlated=0.3).groups.empty


def test_a_category_called_other_keeps_its_name():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"city": rng.choice(["(other)", "a", "b", "c"], 500, p=[0.4, 0.3, 0.2, 0.1])})
    frame["pred"] = rng.standard_normal(500)
    found = explain(frame, output="pred", categoricals="indicators", max_categories=2)
    assert found.groups["members"][0] == ["city=(other)", "city=a", "city=(all others)"]


def test_two_features_of_one_name_are_an_error():
    frame = pd.DataFrame({"city": ["a", "b"] * 50, "city=a": np.arange(100.0), "pred": np.arange(100.0)})
    with pytest.raises(DataError, match="two features are called 'city=a'"):
        explain(frame, output="pred", categoricals="indicators")


def test_a_column_of_names_that_was_asked_for_is_an_error():
    frame = pd.DataFrame({"id": [f"n{i}" for i in range(10_500)], "x": 1.0 * np.arange(10_500)})
    frame["pred"] = frame["x"]
    with pytest.raises(DataError, match=r"'id' \(features\) has more than 10,000"):
        explain(frame, output="pred", features=["id"], categoricals="indicators")
    assert set(explain(frame, output="pred", categoricals="indicators").features["feature"]) == {"x"}


def categorical(values: pd.Series) -> tuple[pd.DataFrame, xgb.XGBRegressor]:
    frame = pd.DataFrame({"x": np.random.default_rng(3).standard_normal(len(values)), "k": values.astype("category")})
    return frame, xgb.XGBRegressor(n_estimators=4, enable_categorical=True).fit(frame, frame["x"])


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


def test_text_categories_may_be_folder_names_and_missing(tmp_path):
    towns = pd.Series(np.random.default_rng(5).choice(["Oslo", "Rome"], 300))
    frame, model = categorical(towns)
    for town, part in frame.assign(k=towns).groupby("k"):
        write_lake(tmp_path / f"k={town}", part.drop(columns="k"))
    write_lake(tmp_path / "k=__HIVE_DEFAULT_PARTITION__", frame.drop(columns="k").head(20))
    assert explain(tmp_path, model=model, features=["x"]).facts.rows.used == 320


def test_more_categories_than_are_counted_for_indicators_are_fine_for_a_model(tmp_path):
    names = pd.Series([f"n{i}" for i in range(10_400)])
    frame, model = categorical(names)
    lake = write_lake(tmp_path / "lake", frame.assign(k=names), 2)
    assert explain(lake, model=model, features=["x"]).facts.rows.used == 10_400


def test_categories_that_xgboost_does_not_store_whole_are_refused():
    frame, model = categorical(pd.Series(["K\u00f6ln", "Rom"] * 50))
    with pytest.raises(ModelError, match="beyond ASCII"):
        explain(frame, model=model)


def test_vectors_in_a_frame_are_left_out_with_advice():
    cells = pa.array([[0.5, 1.5]] * 20, pa.list_(pa.float64(), 2))
    frame = pd.DataFrame({"v": pd.Series(cells, dtype=pd.ArrowDtype(cells.type)), "x": np.arange(20.0)})
    found = explain(frame.assign(pred=np.arange(20.0)), output="pred")
    assert "save it as Parquet" in found.facts.left_out["v"]


def test_a_name_with_brackets_is_not_a_pattern():
    frame = table().rename(columns={"a": "a[0]", "b": "a0"})
    found = explain(frame.assign(pred=frame["c"]), output="pred", features=["!a[0]"])
    assert set(found.features["feature"]) == {"a0", "c", "d"}


def test_found_groups_do_not_replace_given_ones():
    frame = table().assign(e=lambda f: f["a"] * 2, pred=lambda f: f["a"])
    given = {"a": ["b"], "e": ["c"], "a (correlated)": ["d"], "e (correlated)": ["d"]}
    found = explain(frame, output="pred", groups=given, group_correlated=0.9).groups.set_index("group")["members"]
    assert {name: found[name] for name in given} == given
    assert ["a", "e"] in list(found)


def test_too_many_rows_for_groups_are_refused_before_reading():
    with pytest.raises(UsageError, match="group_rows is 400,000"):
        explain(table().assign(pred=1.0), output="pred", group_correlated=0.9, group_rows=400_000)


def test_the_synchronous_scheduler_is_respected():
    import threading

    import dask

    def where(frame: pd.DataFrame) -> np.ndarray:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("another thread")
        return frame["a"].to_numpy()

    with dask.config.set(scheduler="synchronous"):
        import dask.dataframe as dd

        explain(dd.from_pandas(table(), npartitions=2), model=where)


def test_a_model_that_lacks_a_column_says_so_before_anything_else():
    frame = table()
    model = xgb.XGBRegressor(n_estimators=2).fit(frame, frame["a"])
    with pytest.raises(SchemaError, match="lacks 1: d"):
        explain(frame.drop(columns="d"), model=model)
