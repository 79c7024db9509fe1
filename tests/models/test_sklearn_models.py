"""Estimators as models."""

import numpy as np
import pandas as pd
import pytest
from check_scores import check
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from excir_dask.errors import ModelError
from excir_dask.models.load import load_model


def test_classifiers_give_margins_or_probabilities(complete, binary, three):
    words = np.array(["low", "mid", "high"])[three]
    two, many = LogisticRegression().fit(complete, binary), LogisticRegression().fit(complete, words)
    model = load_model(two)
    assert (model.kind, model.input_type, model.predict_type) == ("scikit-learn", "frame", "margin")
    assert (model.columns, model.names) == (("a", "b", "c"), ("1",))
    check(model, complete, two.decision_function(complete), ("1",))
    check(load_model(two, predict_type="probability"), complete, two.predict_proba(complete)[:, 1], ("1",))
    check(load_model(many), complete, many.decision_function(complete), ("high", "low", "mid"))
    check(load_model(many, predict_type="probability"), complete, many.predict_proba(complete), ("high", "low", "mid"))


def test_forests_have_no_margins_and_say_so(complete, binary):
    forest = RandomForestClassifier(5, n_jobs=2, random_state=0).fit(complete, binary)
    model = load_model(forest)
    assert (model.predict_type, dict(model.details)["method"]) == ("probability", "predict_proba")
    check(model, complete, forest.predict_proba(complete)[:, 1], ("1",))
    assert forest.n_jobs == 2


def test_estimators_use_one_job(complete, binary):
    from excir_dask.models.sklearn_models import _use_one_thread

    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5, n_jobs=2)).fit(complete, binary)
    _use_one_thread(forest)
    assert forest[-1].n_jobs == 1


def test_regressors_pipelines_searches_and_detectors(complete, target, binary):
    line = make_pipeline(StandardScaler(), LinearRegression()).fit(complete, target)
    check(load_model(line), complete, line.predict(complete), ("prediction",))
    two = LinearRegression().fit(complete, np.column_stack([target, -target]))
    check(load_model(two), complete, two.predict(complete), ("0", "1"))
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(complete, binary)
    check(load_model(search), complete, search.decision_function(complete), ("1",))
    odd = IsolationForest(n_estimators=5, random_state=0).fit(complete)
    check(load_model(odd), complete, odd.decision_function(complete), ("score",))
    with pytest.raises(ModelError, match="LinearRegression has no predict_proba; use predict_type='margin'"):
        load_model(two, predict_type="probability")


def test_pairwise_decisions_are_numbered(complete, target):
    four = pd.qcut(target, 4, labels=False)
    machine = SVC(decision_function_shape="ovo").fit(complete, four)
    check(load_model(machine), complete, machine.decision_function(complete), tuple("012345"))


def test_estimators_fitted_on_arrays_take_a_matrix(complete, binary):
    X = np.ascontiguousarray(complete)
    plain = LogisticRegression().fit(X, binary)
    with pytest.raises(ModelError, match="LogisticRegression does not name its columns"):
        load_model(plain)
    model = load_model(plain, columns=["x", "y", "z"])
    assert model.input_type == "float64"
    check(model, X, plain.decision_function(X), ("1",))


def test_a_pipeline_that_takes_text_tells_its_names_when_called(table, complete, binary):
    frame = complete.assign(word=table["word"].astype(object))[["word"]]
    upper = FunctionTransformer(
        lambda words: words.apply(lambda column: column.str.upper()), feature_names_out="one-to-one"
    )
    line = make_pipeline(upper, OneHotEncoder(), LogisticRegression()).fit(frame, binary)
    model = load_model(line, columns=["word"])
    assert model.names is None
    names, values = model.score(frame)
    assert names == ("1",)
    np.testing.assert_array_equal(values[0], line.decision_function(frame))


class Labels(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X):
        return self.classes_[np.zeros(len(X), int)]


def test_labels_are_not_explained(complete, binary):
    for model in (KMeans(2, n_init=1).fit(complete), Labels().fit(complete, binary)):
        with pytest.raises(ModelError, match="predicts labels, which have no order"):
            load_model(model, columns=["a", "b", "c"])
    several = MultiOutputClassifier(LogisticRegression()).fit(complete, np.column_stack([binary, 1 - binary]))
    with pytest.raises(ModelError, match="returned a list of 2 arrays; wrap it in a function that returns one target"):
        load_model(several).score(complete)
    with pytest.raises(ModelError, match="LogisticRegression is not fitted; call fit first"):
        load_model(LogisticRegression())


def test_an_estimator_that_fails_says_so(complete, binary):
    model = load_model(LogisticRegression().fit(complete, binary))
    with pytest.raises(
        ModelError, match=r"LogisticRegression.decision_function raised ValueError on 240 rows: Input X"
    ):
        model.score(complete.assign(a=np.nan))
