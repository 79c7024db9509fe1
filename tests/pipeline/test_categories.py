"""Columns of categories as 0/1 features, in the same pass."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from oracle import without_groups

from excir_dask import explain
from excir_dask.errors import DataError, SchemaError, UsageError
from excir_dask.kernels import categories

ROWS = 900


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    city = rng.choice(
        np.array(["Oslo", "Rome", "Bonn", "Lima", None], dtype=object), ROWS, p=[0.4, 0.25, 0.2, 0.1, 0.05]
    )
    size = rng.choice(["S", "M", "L"], ROWS)
    x = rng.standard_normal(ROWS).round(2)
    pred = x + (city == "Oslo") - 0.5 * (size == "L") + 0.3 * rng.standard_normal(ROWS)
    return pd.DataFrame({"x": x, "city": city, "size": size, "w": rng.integers(1, 4, ROWS), "pred": pred})


def write(path, frame, files=3, dictionary=()):
    path.mkdir()
    for i, part in enumerate(np.array_split(np.arange(len(frame)), files)):
        cut = pa.Table.from_pandas(frame.iloc[part], preserve_index=False)
        for name in dictionary:
            cut = cut.set_column(cut.schema.get_field_index(name), name, cut[name].dictionary_encode())
        pq.write_table(cut, path / f"{i}.parquet", row_group_size=90)
    return path


def expanded(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with 0/1 columns made by hand."""
    columns = {"x": frame["x"]}
    for name in ("city", "size"):
        for value in frame[name].dropna().value_counts().index:
            columns[f"{name}={value}"] = (frame[name] == value).astype(float).where(frame[name].notna())
    return pd.DataFrame({**columns, "w": frame["w"], "pred": frame["pred"]})


@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("centering", ["midhinge", "mean", "trimmed"])
@pytest.mark.parametrize("dictionary", [(), ("city",), ("city", "size")])
def test_indicators_score_like_columns_made_by_hand(tmp_path, weights, centering, dictionary):
    frame = table()
    options = {"output": "pred", "weights": weights, "centering": centering}
    drop = [] if weights else ["!w"]
    lake = write(tmp_path / "lake", frame, dictionary=dictionary)
    found = explain(lake, **options, features=drop or None, categoricals="indicators", budget="1MiB")
    expected = explain(expanded(frame), **options, features=drop or None)
    mine, theirs = found.features.set_index("feature"), expected.features.set_index("feature")
    assert set(mine.index) == set(theirs.index)
    for name in ("cir", "stderr_rows", "n", "missing", "n_eff", "center", "q25", "q75"):
        np.testing.assert_allclose(mine.loc[theirs.index, name], theirs[name], rtol=1e-10, atol=1e-12, err_msg=name)
    assert (mine["center_bound"] < 1e-9).all()


def test_a_column_of_categories_is_a_group(tmp_path):
    found = explain(write(tmp_path / "lake", table()), output="pred", categoricals="indicators")
    groups = found.groups.set_index("group")["members"]
    assert groups["city"] == ["city=Oslo", "city=Rome", "city=Bonn", "city=Lima"]
    assert set(groups["size"]) == {"size=S", "size=M", "size=L"}


def test_rare_categories_are_one_feature_together(tmp_path):
    frame = table()
    found = explain(write(tmp_path / "lake", frame), output="pred", categoricals="indicators", max_categories=2)
    members = found.groups.set_index("group")["members"]["city"]
    assert members == ["city=Oslo", "city=Rome", "city=(other)"]
    other = frame["city"].isin(["Bonn", "Lima"]).astype(float).where(frame["city"].notna())
    expected = explain(pd.DataFrame({"o": other, "pred": frame["pred"]}), output="pred").features["cir"][0]
    mine = found.features.set_index("feature")["cir"]["city=(other)"]
    assert mine == pytest.approx(expected, abs=1e-12)


def test_frames_and_lakes_agree(tmp_path):
    frame = table()
    from_lake = explain(write(tmp_path / "lake", frame), output="pred", categoricals="indicators")
    for other in (frame, frame.astype({"city": "category"})):
        from_frame = explain(other, output="pred", categoricals="indicators")
        pd.testing.assert_frame_equal(without_groups(from_frame), without_groups(from_lake), rtol=1e-12)


def test_partition_keys_are_categories_too(tmp_path):
    frame = table().dropna()
    for value, part in frame.groupby("size"):
        folder = tmp_path / f"size={value}"
        folder.mkdir()
        pq.write_table(pa.Table.from_pandas(part.drop(columns="size"), preserve_index=False), folder / "0.parquet")
    found = explain(tmp_path, output="pred", categoricals="indicators").features.set_index("feature")["cir"]
    expected = explain(frame, output="pred", categoricals="indicators").features.set_index("feature")["cir"]
    np.testing.assert_allclose(found[expected.index], expected, atol=1e-12)


def test_a_lake_of_nothing_but_categories_can_be_explained(tmp_path):
    frame = table()[["city", "pred"]]
    found = explain(write(tmp_path / "lake", frame), output="pred", categoricals="indicators")
    assert found.top(1)["feature"][0] == "city=Oslo"


def test_left_out_and_listed_unless_asked_for(tmp_path):
    lake = write(tmp_path / "lake", table())
    assert set(explain(lake, output="pred").facts.left_out) == {"city", "size"}
    with pytest.raises(SchemaError, match=r"'city' \(features\).*indicators"):
        explain(lake, output="pred", features=["city"])
    only = explain(lake, output="pred", features=["city"], categoricals="indicators")
    assert len(only.features) == 4
    with pytest.raises(UsageError, match="did you mean 'indicators'"):
        explain(lake, output="pred", categoricals="indicator")


def test_a_column_of_names_is_left_out_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(categories, "MOST_VALUES", 50)
    monkeypatch.setattr(categories.count_categories, "__defaults__", (50,))
    monkeypatch.setattr(categories.merge_categories, "__defaults__", (50,))
    frame = table().assign(id=[f"row {i}" for i in range(ROWS)])
    found = explain(write(tmp_path / "lake", frame), output="pred", categoricals="indicators")
    assert "different values" in found.facts.left_out["id"]
    assert not found.features["feature"].str.startswith("id").any()
    assert set(found.groups["group"]) == {"city", "size"}


def test_groups_may_name_categories(tmp_path):
    lake = write(tmp_path / "lake", table())
    found = explain(lake, output="pred", categoricals="indicators", groups={"north": ["city=Oslo", "city=Bonn", "x"]})
    assert found.groups.set_index("group")["members"]["north"] == ["city=Oslo", "city=Bonn", "x"]


def test_the_result_does_not_depend_on_slices_or_threads(tmp_path):
    import dask

    lake = write(tmp_path / "lake", table())
    texts = set()
    for threads in (1, 3):
        with dask.config.set(num_workers=threads):
            texts.add(explain(lake, output="pred", categoricals="indicators", budget="1MiB").to_json())
    assert len(texts) == 1


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
