"""A classifier with a correction: scikit-learn's checks, cross-validated probabilities, classifiers fitted before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from evaluators.calibration.reweighting.estimator import ReweightedClassifier, Reweighter

# The doubts of fits are tested elsewhere; here most data are small.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.slow
@parametrize_with_checks([ReweightedClassifier(LogisticRegression(), cv=3)])  # type: ignore[untyped-decorator]
def test_scikit_learns_checks_pass(estimator: Any, check: Any) -> None:
    if check.func.__name__ == "check_array_api_input":
        return  # It skips itself unless a variable was set before scipy was imported.
    check(estimator)


def data(seed: int = 0, n: int = 400) -> tuple[Any, Any]:
    X, y = make_classification(  # noqa: N806
        n, n_features=6, n_informative=4, n_classes=3, weights=[0.75, 0.15, 0.1], class_sep=0.7, random_state=seed
    )
    return X, np.array(["often", "seldom", "rare"])[y]


def test_each_fold_is_predicted_by_a_classifier_of_the_others() -> None:
    X, y = data()  # noqa: N806
    splits = StratifiedKFold(4)
    fitted = ReweightedClassifier(LogisticRegression(), Reweighter("balanced"), cv=4).fit(X, y)
    held_out = np.empty((len(y), 3))
    for train, test in splits.split(X, y):
        held_out[test] = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])
    whole = LogisticRegression().fit(X, y)
    alone = Reweighter("balanced", classes=whole.classes_.tolist()).fit(held_out, y)
    np.testing.assert_allclose(fitted.reweighter_.rules_.rules.weights, alone.rules_.rules.weights)
    np.testing.assert_array_equal(fitted.predict(X), alone.predict(whole.predict_proba(X)))
    np.testing.assert_allclose(fitted.predict_proba(X), alone.predict_proba(whole.predict_proba(X)))
    assert fitted.classes_.tolist() == ["often", "rare", "seldom"]


@pytest.mark.parametrize("cv", ["prefit", KFold(5)])
def test_a_classifier_that_was_fitted_before_stays_as_it_is(cv: Any) -> None:
    X, y = data()  # noqa: N806
    before = LogisticRegression().fit(X[:200], y[:200])
    coefficients = before.coef_.copy()
    estimator = before if cv == "prefit" else FrozenEstimator(before)
    fitted = ReweightedClassifier(estimator, cv=cv).fit(X[200:], y[200:])
    alone = Reweighter().fit(before.predict_proba(X[200:]), y[200:])
    np.testing.assert_array_equal(fitted.reweighter_.rules_.rules.weights, alone.rules_.rules.weights)
    np.testing.assert_array_equal(before.coef_, coefficients)
    np.testing.assert_array_equal(fitted.predict(X), alone.predict(before.predict_proba(X)))


def test_prefit_needs_a_classifier_that_was_fitted() -> None:
    with pytest.raises(NotFittedError):
        ReweightedClassifier(LogisticRegression(), cv="prefit").fit(*data())
    with pytest.raises(ValueError, match="give a number of folds, a splitter of scikit-learn, or 'prefit'"):
        ReweightedClassifier(LogisticRegression(), cv="none").fit(*data())


def test_rows_that_are_too_few_for_the_folds_are_told() -> None:
    X, y = data()  # noqa: N806
    few = np.concatenate([np.flatnonzero(y != "rare"), np.flatnonzero(y == "rare")[:3]])
    with pytest.raises(
        ValueError, match="class rare has 3 rows, and there are 5 folds; give a smaller cv or more rows"
    ):
        ReweightedClassifier(LogisticRegression()).fit(X[few], y[few])
    with pytest.raises(ValueError, match="all 10 rows are of one class, 'rare'; give rows of at least two classes"):
        ReweightedClassifier(LogisticRegression()).fit(X[:10], np.full(10, "rare"))


def test_classes_that_were_not_seen_are_refused() -> None:
    X, y = data()  # noqa: N806
    before = LogisticRegression().fit(X[y != "rare"], y[y != "rare"])
    with pytest.raises(ValueError, match="'rare', which is no column; have: 'often', 'seldom'"):
        ReweightedClassifier(before, cv="prefit").fit(X, y)


@pytest.mark.slow
def test_it_works_in_pipelines_and_searches() -> None:
    X, y = data()  # noqa: N806
    model = ReweightedClassifier(make_pipeline(StandardScaler(), LogisticRegression()), Reweighter("balanced"), cv=3)
    search = GridSearchCV(model, {"reweighter__preset": ["default", "balanced"]}, cv=2, scoring="balanced_accuracy")
    search.fit(X, y)
    assert search.best_estimator_.reweighter_.preset in ("default", "balanced")
    assert clone(model).get_params()["reweighter__preset"] == "balanced"


def test_held_out_rows_are_predicted_more_evenly() -> None:
    X, y = data(1, 4000)  # noqa: N806
    plain = LogisticRegression().fit(X[:2000], y[:2000])
    fitted = ReweightedClassifier(LogisticRegression()).fit(X[:2000], y[:2000])
    worst, better = (
        min(float(np.mean(predicted[y[2000:] == name] == name)) for name in plain.classes_)
        for predicted in (plain.predict(X[2000:]), fitted.predict(X[2000:]))
    )
    assert better > worst + 0.1
