"""The scikit-learn meta-estimator that fits a classifier and reweights its class probabilities."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from evaluators.reweighting.estimator import Reweighter
from evaluators.statistics.bootstrap import FloatArray

CrossValidation: TypeAlias = int | Literal["prefit"] | Any
"""A number of folds, ``prefit``, or whatever else scikit-learn takes for ``cv``."""


class ReweightedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose class probabilities are reweighted.

    The correction is fitted on probabilities of rows that the classifier was not trained on: each fold of the rows is
    predicted by a classifier that is trained on the others, and the classifier that predicts later is trained on all of
    them.

    Args:
        estimator: Classifier with ``predict_proba``.
        reweighter: Correction to fit; None for that of :class:`~evaluators.reweighting.estimator.Reweighter` with its
            defaults. Its ``classes`` are those of the classifier.
        cv: Number of stratified folds, or a splitter of scikit-learn that holds each row out once. With ``prefit`` the
            classifier is fitted already and stays as it is; fit then on rows that it has not seen.

    Attributes:
        estimator_: The fitted classifier.
        reweighter_: The fitted correction, which :meth:`~evaluators.reweighting.estimator.Reweighter.save` stores.
        classes_: Names of the classes, shape (n_classes,).

    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [0.2], [0.4], [0.6], [0.8], [1.0]] * 100)
    >>> y = np.array(["a", "a", "a", "a", "b", "b"] * 100)
    >>> ReweightedClassifier(LogisticRegression()).fit(X, y).predict(X[:6])
    array(['a', 'a', 'a', 'a', 'b', 'b'], dtype='<U1')
    """

    def __init__(self, estimator: Any, reweighter: Reweighter | None = None, *, cv: CrossValidation = 5) -> None:
        self.estimator = estimator
        self.reweighter = reweighter
        self.cv = cv

    def fit(self, X: Any, y: npt.ArrayLike) -> Self:  # noqa: N803
        """Fit the classifier and the correction.

        Args:
            X: Rows as the classifier takes them, shape (n, n_features).
            y: Right class of each row, shape (n,), of at least two classes.

        Raises:
            ValueError: a class has fewer rows than there are folds, or what the classifier or the correction refuse.

        Warns:
            UserWarning: the correction has doubts, see :meth:`Reweighter.fit`.
        """
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        X, y = indexable(X, y)  # noqa: N806
        if isinstance(self.cv, str):
            if self.cv != "prefit":
                raise ValueError(f"cv is '{self.cv}'; give a number of folds, a splitter of scikit-learn, or 'prefit'")
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            probabilities = self.estimator_.predict_proba(X)
        else:
            probabilities = self._held_out_probabilities(X, y)
            self.estimator_ = clone(self.estimator).fit(X, y)
        reweighter = Reweighter() if self.reweighter is None else clone(self.reweighter)
        self.reweighter_ = reweighter.set_params(classes=self.estimator_.classes_.tolist()).fit(probabilities, y)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The names of the classes, shape (n_classes,)."""
        classes: npt.NDArray[Any] = self.estimator_.classes_
        return classes

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the corrected probabilities, shape (n, n_classes); they rank the classes, and are not calibrated."""
        check_is_fitted(self)
        shares: FloatArray = self.reweighter_.predict_proba(self.estimator_.predict_proba(X))
        return shares

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class with the largest corrected probability of each row, shape (n,)."""
        check_is_fitted(self)
        predicted: npt.NDArray[Any] = self.reweighter_.predict(self.estimator_.predict_proba(X))
        return predicted

    def _held_out_probabilities(self, X: Any, y: npt.ArrayLike) -> FloatArray:  # noqa: N803
        """Return the probabilities of each row by a classifier that is trained on other folds."""
        splits = check_cv(self.cv, y, classifier=True)
        names, counts = np.unique(np.asarray(y), return_counts=True)
        if len(names) == 1:
            raise ValueError(
                f"all {counts[0]} rows are of one class, '{names[0]!s}'; give rows of at least two classes"
            )
        if isinstance(self.cv, int) and counts.min() < self.cv:
            rarest = names[counts.argmin()]
            raise ValueError(
                f"class {rarest!s} has {counts.min()} rows, and there are {self.cv} folds; give a smaller cv or more "
                "rows, so that every fold is predicted by a classifier that knows every class"
            )
        for number, (train, _) in enumerate(splits.split(X, y)):
            lacking = np.setdiff1d(names, np.asarray(y)[train])
            if len(lacking):
                raise ValueError(
                    f"fold {number} is predicted by a classifier that was trained on no row of class {lacking[0]!s}; "
                    "give a splitter that keeps all classes in every fold, such as StratifiedKFold"
                )
        held_out: FloatArray = cross_val_predict(clone(self.estimator), X, y, cv=splits, method="predict_proba")
        return held_out

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "reweighter_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
