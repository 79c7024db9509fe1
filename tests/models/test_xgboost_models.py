"""XGBoost models score as XGBoost does."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from category_models import categorical, cir, stores_categories
from check_scores import check

from excir_dask import explain
from excir_dask.errors import ModelError
from excir_dask.models.load import load_model

SMALL = {"max_depth": 3, "nthread": 1}


def train(frame, label, objective, rounds=4, **settings):
    data = xgb.DMatrix(frame, label, enable_categorical=True)
    return xgb.train({"objective": objective, **SMALL, **settings}, data, rounds)


@pytest.mark.parametrize(
    ("objective", "settings", "label", "names", "probability"),
    [
        ("binary:logistic", {}, "binary", ("margin",), ("probability",)),
        ("multi:softprob", {"num_class": 3}, "three", ("0", "1", "2"), ("0", "1", "2")),
        ("reg:squarederror", {}, "target", ("prediction",), None),
        ("count:poisson", {}, "three", ("margin",), None),
        ("reg:quantileerror", {"quantile_alpha": [0.2, 0.8]}, "target", ("0", "1"), None),
        ("binary:logistic", {"booster": "dart", "rate_drop": 0.5}, "binary", ("margin",), ("probability",)),
        ("binary:logistic", {"num_parallel_tree": 3, "subsample": 0.5}, "binary", ("margin",), ("probability",)),
    ],
)
@pytest.mark.parametrize("suffix", [".ubj", ".json", ".model"])
def test_files_score_as_booster_predict(
    tmp_path, request, numbers, objective, settings, label, names, probability, suffix
):
    booster = train(numbers, request.getfixturevalue(label), objective, **settings)
    path = tmp_path / f"model{suffix}"
    path.write_bytes(booster.save_raw("json" if suffix == ".json" else "ubj"))
    data = xgb.DMatrix(numbers)
    model = load_model(path)
    assert (model.kind, model.columns, model.input_type, model.names) == ("xgboost", ("a", "b", "c"), "float32", names)
    check(model, numbers.to_numpy(), booster.predict(data, output_margin=True))
    if probability is None:
        with pytest.raises(ModelError, match=f"{objective}, which has no probabilities"):
            load_model(path, predict_type="probability")
    else:
        model = load_model(str(path), predict_type="probability")
        assert model.names == probability
        check(model, numbers.to_numpy(), booster.predict(data))


def test_softmax_gives_probabilities_instead_of_labels(numbers, three):
    wrapper = xgb.XGBClassifier(n_estimators=4, objective="multi:softmax", **SMALL).fit(numbers, three)
    model = load_model(wrapper, predict_type="probability")
    np.testing.assert_allclose(model.score(numbers.to_numpy())[1].T, wrapper.predict_proba(numbers), rtol=1e-6)
    check(load_model(wrapper), numbers.to_numpy(), wrapper.predict(numbers, output_margin=True))


def test_wrappers_name_their_classes(tmp_path, numbers, binary, three):
    two = xgb.XGBClassifier(n_estimators=4, **SMALL).fit(numbers, binary)
    assert load_model(two).names == ("1",)
    check(load_model(two), numbers.to_numpy(), two.predict(numbers, output_margin=True))
    check(load_model(two, predict_type="probability"), numbers.to_numpy(), two.predict_proba(numbers)[:, 1])
    two.save_model(tmp_path / "two.ubj")
    assert load_model(tmp_path / "two.ubj").names == ("1",)
    many = xgb.XGBClassifier(n_estimators=4, **SMALL).fit(numbers, three)
    check(load_model(many, predict_type="probability"), numbers.to_numpy(), many.predict_proba(numbers))


def test_booster_attribute_names_the_classes(numbers, binary, three):
    booster = train(numbers, binary, "binary:logistic")
    booster.set_attr(classes=json.dumps(["no", "yes"]))
    assert load_model(booster).names == ("yes",)
    booster = train(numbers, three, "multi:softprob", num_class=3)
    booster.set_attr(classes="whatever")
    assert load_model(booster).names == ("0", "1", "2")
    booster.set_attr(classes=json.dumps(["low", "mid", "high"]))
    assert load_model(booster).names == ("low", "mid", "high")
    booster.set_attr(classes=json.dumps(["low", "high"]))
    with pytest.raises(ModelError, match="3 outputs, but 2 classes: low, high"):
        load_model(booster)


@pytest.mark.filterwarnings("ignore:`XGBRF:FutureWarning")  # deprecated from xgboost 3.4 on, and still accepted
def test_regression_ranking_targets_and_forests(numbers, target, three):
    ranker = xgb.XGBRanker(n_estimators=4, **SMALL).fit(numbers, three, qid=np.repeat(range(24), 10))
    model = load_model(ranker)
    assert model.names == ("score",)
    check(model, numbers.to_numpy(), ranker.predict(numbers))
    targets = np.column_stack([target, -target, target**2])
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        many = xgb.XGBRegressor(n_estimators=4, multi_strategy=strategy, tree_method="hist", **SMALL)
        many.fit(numbers, targets)
        model = load_model(many)
        assert model.names == ("0", "1", "2")
        check(model, numbers.to_numpy(), many.predict(numbers))
    forest = xgb.XGBRFRegressor(n_estimators=5, **SMALL).fit(numbers, target)
    assert dict(load_model(forest).details)["trees"] == 5
    check(load_model(forest), numbers.to_numpy(), forest.predict(numbers))


def test_several_binary_targets_are_not_classes(numbers, binary):
    labels = np.column_stack([binary, 1 - binary])
    wrapper = xgb.XGBClassifier(n_estimators=3, **SMALL).fit(numbers, labels)
    model = load_model(wrapper, predict_type="probability")
    assert model.names == ("0", "1")
    check(model, numbers.to_numpy(), wrapper.predict_proba(numbers))


def test_linear_boosters_are_safe_in_threads(numbers, target):
    booster = train(numbers, target, "reg:squarederror", booster="gblinear")
    model = load_model(booster)
    expected = booster.predict(xgb.DMatrix(numbers))
    check(model, numbers.to_numpy(), expected)
    with ThreadPoolExecutor(4) as pool:
        for _, values in pool.map(model.score, [numbers.to_numpy()] * 16):
            np.testing.assert_array_equal(values[0], expected)


def test_wrappers_stop_at_the_best_iteration_and_boosters_do_not(tmp_path, numbers, binary):
    noise = np.random.default_rng(1).integers(0, 2, len(numbers))
    wrapper = xgb.XGBClassifier(n_estimators=20, early_stopping_rounds=3, **SMALL)
    wrapper.fit(numbers, binary, eval_set=[(numbers, noise)], verbose=False)
    booster = wrapper.get_booster()
    total, used = booster.num_boosted_rounds(), wrapper.best_iteration + 1
    assert used < total
    wrapper.save_model(tmp_path / "wrapper.ubj")
    booster.save_model(tmp_path / "booster.ubj")
    best = wrapper.predict(numbers, output_margin=True)
    everything = booster.predict(xgb.DMatrix(numbers), output_margin=True)
    for source, expected, trees in [
        (wrapper, best, used),
        (tmp_path / "wrapper.ubj", best, used),
        (booster, everything, total),
        (tmp_path / "booster.ubj", everything, total),
    ]:
        model = load_model(source)
        check(model, numbers.to_numpy(), expected)
        assert dict(model.details)["trees"] == trees
        assert dict(model.details)["trees_in_model"] == total


def test_the_wrappers_own_mark_of_missing_values_counts(numbers, binary):
    marked = numbers.fillna(-9.0)
    wrapper = xgb.XGBClassifier(n_estimators=3, missing=-9.0, **SMALL).fit(marked, binary)
    check(load_model(wrapper), marked.to_numpy(), wrapper.predict(marked, output_margin=True))


def test_columns_of_models_without_names(tmp_path, numbers, binary):
    booster = train(numbers.to_numpy(), binary, "binary:logistic")
    booster.save_model(tmp_path / "m.ubj")
    with pytest.raises(ModelError, match=r"m.ubj does not name its columns; .*the 3 names"):
        load_model(tmp_path / "m.ubj")
    with pytest.raises(ModelError, match="takes 3 columns, but model_columns names 2: a, b"):
        load_model(tmp_path / "m.ubj", columns=["a", "b"])
    assert load_model(tmp_path / "m.ubj", columns=["x", "y", "z"]).columns == ("x", "y", "z")
    named = train(numbers, binary, "binary:logistic")
    assert load_model(named, columns=["a", "b", "c"]).columns == ("a", "b", "c")
    with pytest.raises(ModelError, match="column 1 is 'b' in the model but 'c' in model_columns"):
        load_model(named, columns=["a", "c", "b"])
    with pytest.raises(ModelError, match="takes 3 columns, but the block has the shape"):
        load_model(named).score(np.zeros((5, 2)))


@pytest.mark.skipif(not hasattr(xgb.Booster, "get_categories"), reason="models know their categories since 3.1")
def test_categories_are_recoded_by_value(table, binary):
    booster = train(table, binary, "binary:logistic", max_cat_to_onehot=1)
    model = load_model(booster)
    assert model.input_type == "frame"
    assert model.categories == (("word", ("high", "low", "mid")), ("size", (5, 10, 40)))
    expected = booster.predict(xgb.DMatrix(table, enable_categorical=True), output_margin=True)
    plain = table.assign(word=table["word"].astype(str), size=table["size"].astype("int64"))
    check(model, table, expected)
    check(model, plain, expected)
    check(model, plain[::-1][["size", "word", "c", "b", "a"]], expected[::-1])
    check(model, plain.assign(word=plain["word"].astype("category"), size=plain["size"].astype(float)), expected)
    check(model, plain[:5], expected[:5])
    gaps = table.copy()
    gaps.loc[::5, ["word", "size"]] = None
    check(model, gaps, booster.predict(xgb.DMatrix(gaps, enable_categorical=True), output_margin=True))
    check(
        model, gaps.astype({"word": object, "size": "float64"}),
        booster.predict(xgb.DMatrix(gaps, enable_categorical=True), output_margin=True),
    )  # fmt: skip
    plain.loc[7, "word"] = "tiny"
    with pytest.raises(ModelError, match="does not know the value 'tiny' of column 'word'; it was trained with 'high'"):
        model.score(plain)
    with pytest.raises(ModelError, match="needs numbers in column 'a'"):
        model.score(table.assign(a="x"))
    with pytest.raises(ModelError, match="takes column 'size', which is not among"):
        model.score(table.drop(columns="size"))


def test_models_that_know_only_codes_take_a_matrix(table, binary):
    codes = np.column_stack([table["a"], table["word"].cat.codes]).astype(np.float32)
    data = xgb.DMatrix(codes, binary, feature_names=["a", "word"], feature_types=["float", "c"])
    booster = xgb.train({"objective": "binary:logistic", **SMALL}, data, 4)
    model = load_model(booster)
    assert (model.input_type, model.categories) == ("float32", (("word", None),))
    check(model, codes, booster.predict(data, output_margin=True))


def test_the_callers_model_is_left_as_it_was(numbers, binary):
    booster = train(numbers, binary, "binary:logistic", nthread=2)
    before = booster.save_config()
    load_model(booster).score(numbers.to_numpy())
    assert booster.save_config() == before


def test_models_that_are_not_fitted(numbers):
    with pytest.raises(ModelError, match="XGBClassifier is not fitted; call fit first"):
        load_model(xgb.XGBClassifier())
    with pytest.raises(ModelError, match="neither a Booster nor an XGBModel"):
        load_model(xgb.DMatrix(numbers))


def test_an_empty_block_has_no_rows(numbers, three):
    model = load_model(train(numbers, three, "multi:softprob", num_class=3))
    names, values = model.score(numbers[:0].to_numpy())
    assert names == ("0", "1", "2")
    assert values.shape == (3, 0)


def table(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.standard_normal((rows, 4)), columns=list("abcd"))


def test_a_model_and_its_booster_do_not_get_in_each_others_way(tmp_path):
    frame = table()
    model = xgb.XGBClassifier(n_estimators=3).fit(frame, frame["a"] > 0)
    one, other = explain(frame, model=model), explain(frame, model=model.get_booster())
    model.save_model(tmp_path / "m.ubj")
    third = explain(frame, model=tmp_path / "m.ubj")
    pd.testing.assert_series_equal(cir(one), cir(other))
    pd.testing.assert_series_equal(cir(one), cir(third))


@stores_categories
def test_categories_that_xgboost_does_not_store_whole_are_refused():
    frame, model = categorical(pd.Series(["K\u00f6ln", "Rom"] * 50))
    with pytest.raises(ModelError, match="beyond ASCII"):
        explain(frame, model=model)
