"""LightGBM models score as LightGBM does."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from check_scores import check

from excir_dask.errors import ModelError
from excir_dask.models.load import load_model

SMALL = {"num_leaves": 5, "verbosity": -1, "num_threads": 1, "deterministic": True}


def train(frame, label, objective, rounds=4, **settings):
    return lgb.train({"objective": objective, **SMALL, **settings}, lgb.Dataset(frame, label), rounds)


@pytest.mark.parametrize(
    ("objective", "settings", "label", "names", "probability"),
    [
        ("binary", {}, "binary", ("margin",), ("probability",)),
        ("multiclass", {"num_class": 3}, "three", ("0", "1", "2"), ("0", "1", "2")),
        ("regression", {}, "target", ("prediction",), None),
        ("poisson", {}, "three", ("margin",), None),
        ("binary", {"boosting": "dart"}, "binary", ("margin",), ("probability",)),
        ("regression", {"linear_tree": True}, "target", ("prediction",), None),
    ],
)
def test_files_score_as_booster_predict(tmp_path, request, numbers, objective, settings, label, names, probability):
    booster = train(numbers, request.getfixturevalue(label), objective, **settings)
    booster.save_model(tmp_path / "model.txt")
    for source in (tmp_path / "model.txt", booster):
        model = load_model(source)
        assert (model.kind, model.columns, model.input_type, model.names) == (
            "lightgbm",
            ("a", "b", "c"),
            "float64",
            names,
        )
        check(model, numbers.to_numpy(), booster.predict(numbers, raw_score=True))
        assert dict(model.details)["trees"] == booster.num_trees()
    if probability is None:
        with pytest.raises(ModelError, match=f"{objective}, which has no probabilities"):
            load_model(booster, predict_type="probability")
    else:
        model = load_model(tmp_path / "model.txt", predict_type="probability")
        assert model.names == probability
        check(model, numbers.to_numpy(), booster.predict(numbers))


def test_wrappers_name_their_classes_and_ranking_is_a_score(numbers, target, binary, three):
    words = pd.Series(["low", "mid", "high"])[three].to_numpy()
    many = lgb.LGBMClassifier(n_estimators=3, **SMALL).fit(numbers, words)
    model = load_model(many, predict_type="probability")
    assert model.names == ("high", "low", "mid")
    check(model, numbers.to_numpy(), many.predict_proba(numbers))
    two = lgb.LGBMClassifier(n_estimators=3, **SMALL).fit(numbers, np.where(binary, "yes", "no"))
    assert load_model(two).names == ("yes",)
    check(load_model(two), numbers.to_numpy(), two.predict(numbers, raw_score=True))
    ranker = lgb.LGBMRanker(n_estimators=3, **SMALL).fit(numbers, three, group=[10] * 24)
    assert load_model(ranker).names == ("score",)
    check(load_model(ranker), numbers.to_numpy(), ranker.predict(numbers))
    assert load_model(lgb.LGBMRegressor(n_estimators=3, **SMALL).fit(numbers, target)).names == ("prediction",)
    with pytest.raises(ModelError, match="not fitted"):
        load_model(lgb.LGBMRegressor())


def test_the_best_iteration_is_where_predict_stops(tmp_path, numbers, binary):
    noise = np.random.default_rng(1).integers(0, 2, len(numbers))
    data = lgb.Dataset(numbers, binary)
    booster = lgb.train(
        {"objective": "binary", **SMALL}, data, 30, valid_sets=[data.create_valid(numbers, noise)],
        callbacks=[lgb.early_stopping(3, verbose=False)], keep_training_booster=True,
    )  # fmt: skip
    assert booster.best_iteration < booster.current_iteration()
    booster.save_model(tmp_path / "model.txt")
    for source in (booster, tmp_path / "model.txt"):
        model = load_model(source)
        assert dict(model.details)["rounds"] == booster.best_iteration
        check(model, numbers.to_numpy(), booster.predict(numbers, raw_score=True))


def test_columns_of_models_without_names(numbers, binary):
    booster = train(numbers.to_numpy(), binary, "binary")
    with pytest.raises(ModelError, match=r"pass model_columns .*the 3 names in training order"):
        load_model(booster)
    assert load_model(booster, columns=["x", "y", "z"]).columns == ("x", "y", "z")
    spaced = train(numbers.rename(columns={"a": "a b"}), binary, "binary")
    assert load_model(spaced).columns == ("a_b", "b", "c")
    assert load_model(spaced, columns=["a b", "b", "c"]).columns == ("a b", "b", "c")


def test_categories_are_recoded_by_value(tmp_path, table, binary):
    booster = train(table, binary, "binary", min_data_per_group=1, max_cat_to_onehot=1)
    booster.save_model(tmp_path / "model.txt")
    expected = booster.predict(table, raw_score=True)
    plain = table.assign(word=table["word"].astype(str), size=table["size"].astype("int64"))
    for source in (booster, tmp_path / "model.txt"):
        model = load_model(source)
        assert model.input_type == "frame"
        assert model.categories == (("word", ("high", "low", "mid")), ("size", (5, 10, 40)))
        check(model, plain, expected)
        check(model, table, expected)
    gaps = table.copy()
    gaps.loc[::5, "word"] = None
    check(model, gaps, booster.predict(gaps, raw_score=True))
    with pytest.raises(ModelError, match="does not know the value 7 of column 'size'; it was trained with 5, 10, 40"):
        model.score(plain.assign(size=7))


def test_ordered_categoricals_are_refused_because_the_text_does_not_say_where_they_are(table, binary):
    booster = train(table.assign(size=table["size"].cat.as_ordered()), binary, "binary")
    with pytest.raises(ModelError, match="2 pandas categoricals but treats 1 column as categories"):
        load_model(booster)


def test_models_that_know_only_codes_take_a_matrix(table, binary):
    codes = np.column_stack([table["a"], table["word"].cat.codes])
    data = lgb.Dataset(codes, binary, feature_name=["a", "word"], categorical_feature=["word"])
    booster = lgb.train({"objective": "binary", **SMALL}, data, 4)
    model = load_model(booster)
    assert (model.input_type, model.categories) == ("float64", (("word", None),))
    check(model, codes, booster.predict(codes, raw_score=True))


def test_an_objective_of_ones_own_gives_margins(numbers, target):
    def squares(prediction, data):
        return prediction - data.get_label(), np.ones_like(prediction)

    booster = train(numbers, target, squares)
    assert load_model(booster).names == ("margin",)
    check(load_model(booster), numbers.to_numpy(), booster.predict(numbers, raw_score=True))
    with pytest.raises(ModelError, match="objective custom, which has no probabilities"):
        load_model(booster, predict_type="probability")
