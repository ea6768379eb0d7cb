"""A scikit-learn estimator that reweights class probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from biasboard.ground.columns import FloatArray, IntArray
from evaluators.calibration.reweighting.fitting import document_of, fit_rules, preset_settings
from evaluators.calibration.reweighting.problem import LEAST_CLASSES
from evaluators.calibration.reweighting.rules import prepared, read_rules, rules_of, write_rules


class Reweighter(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A correction of class probabilities that makes a classifier right about equally often in each class.

    It is fitted on any classifier's probabilities for rows that the classifier was not trained on, such as those of
    ``cross_val_predict(classifier, X, y, method="predict_proba")``, and on their right classes.

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
        rules_: The contents of the file of rules, which :meth:`save` writes.
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
        self, preset: str = "default", *, classes: Sequence[object] | None = None, random_state: int = 0
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
        self.rules_ = document_of(self.fit_, settings, self.classes_.tolist())
        for note in self.fit_.report.notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return self

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:  # noqa: N803
        """Return the corrected values of each row divided by their sum, shape (n, n_classes).

        They rank the classes of a row but are not calibrated probabilities, least of all with membership functions.
        """
        probabilities = self._prepared(X)
        return rules_of(self.rules_).shares(probabilities)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class with the largest corrected value in each row, shape (n,); the first in a tie."""
        probabilities = self._prepared(X)
        predicted: npt.NDArray[Any] = self.classes_[rules_of(self.rules_).predict(probabilities)]
        return predicted

    def save(self, path: Path | str) -> None:
        """Write the fitted rules as JSON, which can be applied without this package."""
        check_is_fitted(self)
        write_rules(Path(path), self.rules_)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Return an estimator with the rules of a file, which predicts like the one that wrote it.

        Its settings are the default ones, which matter only for another fit.

        Raises:
            DataError: the file holds no rules.
        """
        document = read_rules(Path(path))
        classes = [*map(int, document.classes)] if document.has_integer_classes else [*document.classes]
        loaded = cls(classes=classes)
        loaded.rules_, loaded.classes_ = document, np.array(classes)
        loaded.n_features_in_ = len(classes)
        return loaded

    def _checked(self, X: npt.ArrayLike, *y: npt.ArrayLike, reset: bool = True) -> Any:  # noqa: N803
        checked = validate_data(self, X, *y, reset=reset, dtype=np.float64, ensure_min_features=LEAST_CLASSES)
        probabilities = checked[0] if y else checked
        check_non_negative(probabilities, type(self).__name__)
        is_empty = ~probabilities.any(axis=1)
        if is_empty.any():
            raise ValueError(f"row {is_empty.argmax()} has nothing but zeros, which says nothing about any class")
        return checked

    def _prepared(self, X: npt.ArrayLike) -> FloatArray:  # noqa: N803
        check_is_fitted(self)
        return prepared(self._checked(X, reset=False), self.rules_.map)

    def _coded(self, y: npt.ArrayLike, n_columns: int) -> tuple[npt.NDArray[Any], IntArray]:
        """Return the classes in the order of the columns, and the index of the right class of each row."""
        check_classification_targets(y)
        occurring = unique_labels(y)
        if len(occurring) < LEAST_CLASSES:
            raise ValueError(f"all rows are of one class, {occurring.tolist()[0]!r}; give rows of at least two classes")
        columns = occurring if self.classes is None else np.asarray(list(self.classes))
        if columns.shape != (n_columns,) or len({*columns.tolist()}) < n_columns:
            have = f"{len(occurring)} classes occur" if self.classes is None else f"'classes' is {columns.tolist()}"
            raise ValueError(f"the probabilities have {n_columns} columns, and {have}; name each column by 'classes'")
        index_of = {name: index for index, name in enumerate(columns.tolist())}
        if strange := [name for name in occurring.tolist() if name not in index_of]:
            raise ValueError(f"class {strange[0]!r} is no column; have: {', '.join(map(repr, index_of))}")
        return columns, np.array([index_of[name] for name in np.asarray(y).tolist()], dtype=np.int64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = False
        return tags
