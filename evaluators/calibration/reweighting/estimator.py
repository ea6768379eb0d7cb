"""Two scikit-learn estimators: one reweights class probabilities, the other fits a classifier together with it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.fitting import PRESETS, fit_rules, preset_settings
from evaluators.calibration.reweighting.problem import LEAST_CLASSES
from evaluators.calibration.reweighting.rules import first_fault, prepared
from evaluators.calibration.reweighting.rules_file import StoredRules

CrossValidation: TypeAlias = int | Literal["prefit"] | Any
"""A number of folds, ``prefit``, or whatever else scikit-learn takes for ``cv``."""


class Reweighter(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A correction of class probabilities that makes a classifier right about equally often in each class.

    It is fitted on any classifier's probabilities for rows that the classifier was not trained on, and on their right
    classes.

    Args:
        preset: ``default`` for one weight per class that raises the Sen welfare of the class accuracies (their mean
            times one minus their Gini index) and does not lower their mean on the fitted rows; ``balanced`` for the
            weights of a class-balanced logistic model, a reference; ``paper`` for the choices of the paper, which can
            lower the mean accuracy, and often does: the Gini index alone, membership functions besides weights, and
            no floor.
        classes: Name of the class of each column of the probabilities; None for the sorted classes that occur.
        random_state: Seed, which only ``paper`` needs.

    Attributes:
        classes_: Name of the class of each column, shape (n_classes,).
        rules_: The fitted rules, which :meth:`save` stores.
        fit_: The whole fit: candidates, class accuracies before and after, and notes.
        n_features_in_: Number of columns.

    References:
        "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654.

    >>> probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]] * 50)
    >>> targets = np.array(["a", "a", "b", "b"] * 50)
    >>> reweighter = Reweighter().fit(probabilities, targets)
    >>> reweighter.predict(probabilities[:4])
    array(['a', 'a', 'b', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        preset: str = "default",
        *,
        classes: Sequence[object] | None = None,
        random_state: int = 0,
    ) -> None:
        self.preset = preset
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:  # noqa: N803
        """Fit the rules of the classes.

        Args:
            X: Probability of each class in each row, shape (n, n_classes), none negative; rows need not sum to 1.
            y: Right class of each row, shape (n,), of at least two classes.

        Raises:
            ValueError: the preset does not exist, a probability is missing, infinite or negative, or the classes do
                not fit the columns.

        Warns:
            UserWarning: the accuracy over all rows or that of a class falls, or a class has few rows.
        """
        settings = preset_settings(self.preset, self.random_state)
        probabilities, y = self._checked(X, y)
        self.classes_, targets = self._coded(y, probabilities.shape[1])
        self.fit_ = fit_rules(probabilities, targets, settings, self.classes_.tolist())
        self.rules_ = StoredRules.of(self.fit_, settings, self.classes_.tolist())
        for note in self.fit_.report.notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:  # noqa: N803
        """Return the corrected value of each class in each row, shape (n, n_classes); rows need not sum to 1."""
        probabilities = self._prepared(X)
        return self.rules_.rules.transform(probabilities)

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:  # noqa: N803
        """Return the corrected values of each row divided by their sum, shape (n, n_classes).

        They rank the classes of a row but are not calibrated probabilities, least of all with membership functions.
        """
        probabilities = self._prepared(X)
        return self.rules_.rules.shares(probabilities)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class with the largest corrected value in each row, shape (n,); the first in a tie."""
        probabilities = self._prepared(X)
        predicted: npt.NDArray[Any] = self.classes_[self.rules_.rules.predict(probabilities)]
        return predicted

    def save(self, path: Path | str) -> None:
        """Write the fitted rules as JSON, which can be applied without this package."""
        check_is_fitted(self)
        self.rules_.write(Path(path))

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Return an estimator with the rules of a file, which predicts like the one that wrote it.

        Rules of a solver that is no preset's, as files of earlier versions have, come with the default preset, which
        matters only for another fit.

        Raises:
            DataError: the file holds no rules.
        """
        stored = StoredRules.read(Path(path))
        document = stored.document
        preset = next((name for name, settings in PRESETS.items() if settings.solver == document.solver), "default")
        loaded = cls(preset, classes=stored.classes, random_state=document.seed)
        loaded.rules_, loaded.classes_ = stored, np.array(stored.classes)
        loaded.n_features_in_ = len(document.classes)
        return loaded

    def _checked(self, X: npt.ArrayLike, *y: npt.ArrayLike, reset: bool = True) -> Any:  # noqa: N803
        # Values are checked below, since the errors of scikit-learn name no row.
        checked = validate_data(
            self, X, *y, reset=reset, dtype=np.float64, ensure_all_finite=False, ensure_min_features=LEAST_CLASSES
        )
        probabilities = checked[0] if y else checked
        if (fault := first_fault(probabilities)) is not None:
            place = f"row {fault.row}" + ("" if fault.column is None else f", column {fault.column}")
            kind = "Negative values in data: " if (probabilities < 0).any() else ""
            raise ValueError(f"{kind}{place} {fault.problem}")
        return checked

    def _prepared(self, X: npt.ArrayLike) -> FloatArray:  # noqa: N803
        check_is_fitted(self)
        return prepared(self._checked(X, reset=False), self.rules_.document.map)

    def _coded(self, y: npt.ArrayLike, n_columns: int) -> tuple[npt.NDArray[Any], IntArray]:
        """Return the classes in the order of the columns, and the index of the right class of each row."""
        assert_all_finite(y, input_name="y")
        try:
            check_classification_targets(y)
            occurring = unique_labels(y)
        except TypeError as error:
            raise ValueError(
                "y mixes texts with others, or has None; give all classes as texts or as integers"
            ) from error
        if len(occurring) < LEAST_CLASSES:
            raise ValueError(f"all rows are of one class, {occurring.tolist()[0]!r}; give rows of at least two classes")
        columns = occurring if self.classes is None else np.asarray(list(self.classes))
        if columns.shape != (n_columns,) or len({*columns.tolist()}) < n_columns:
            have = f"{len(occurring)} classes occur" if self.classes is None else f"'classes' is {columns.tolist()}"
            raise ValueError(f"the probabilities have {n_columns} columns, and {have}; name each column by 'classes'")
        index_of = {name: index for index, name in enumerate(columns.tolist())}
        names = np.asarray(y).tolist()
        for row, name in enumerate(names):
            if name not in index_of:
                have = ", ".join(map(repr, index_of))
                raise ValueError(f"the class of row {row} is {name!r}, which is no column; have: {have}")
        return columns, np.array([index_of[name] for name in names], dtype=np.int64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = False
        return tags


class ReweightedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose class probabilities are reweighted.

    The correction is fitted on cross-validated probabilities: each fold is predicted by a classifier trained on the
    other folds, and the final classifier is trained on all rows.

    Args:
        estimator: Classifier with ``predict_proba``.
        reweighter: Correction to fit; None for a :class:`Reweighter` with its defaults. Its ``classes`` are those of
            the classifier.
        cv: Number of stratified folds, or a splitter of scikit-learn that holds each row out once. With ``prefit`` the
            fitted classifier is used unchanged; then call ``fit`` with rows that it has not seen.

    Attributes:
        estimator_: The fitted classifier.
        reweighter_: The fitted correction, which :meth:`Reweighter.save` stores.
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
            ValueError: a class has fewer rows than there are folds, or the classifier or the correction raises it.

        Warns:
            UserWarning: as in :meth:`Reweighter.fit`.
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
        """Return the corrected probabilities, shape (n, n_classes); they rank the classes but are not calibrated."""
        check_is_fitted(self)
        shares: FloatArray = self.reweighter_.predict_proba(self.estimator_.predict_proba(X))
        return shares

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class with the largest corrected probability of each row, shape (n,)."""
        check_is_fitted(self)
        predicted: npt.NDArray[Any] = self.reweighter_.predict(self.estimator_.predict_proba(X))
        return predicted

    def _held_out_probabilities(self, X: Any, y: npt.ArrayLike) -> FloatArray:  # noqa: N803
        """Return the probabilities of each row by a classifier trained on other folds."""
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
