"""The scikit-learn estimator that reweights class probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evaluators.reweighting.fitting import PAPER, Settings, fit_rules, prepared
from evaluators.reweighting.inputs import check_known, check_rows, checked_probabilities, coded_targets
from evaluators.reweighting.objectives import DcsWeights, ObjectiveName
from evaluators.reweighting.problem import Annealing
from evaluators.reweighting.rules import Grid, MapKind
from evaluators.reweighting.stored import StoredRules
from evaluators.statistics.bootstrap import FloatArray


class Reweighter(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A correction of class probabilities that makes a classifier right about equally often in each class.

    It is fitted on the probabilities that any classifier gives for rows that it was not trained on, and on their right
    classes. The defaults make the Sen welfare of the class accuracies large, by one weight per class, without letting
    their mean fall below that before the correction on the fitted rows.

    Args:
        objective: Measure to improve: ``sen`` (mean accuracy times one minus the Gini index), ``gini`` alone, as in the
            paper, ``cobias``, or ``dcs``, the objective of DNIP and DCS.
        min_mean: Floor under the mean accuracy of the classes on the fitted rows: ``baseline`` for that before the
            correction, ``balanced`` for at least 95 % of what balanced weights reach too, a number, or None.
        correction: ``weights`` for one weight per class, ``membership`` for one of 19 membership functions per class,
            ``full`` for either.
        n_weights: Number of weights in a search over rules; None for 61 on the logarithmic and 30 on the linear grid.
        grid: ``log`` for weights from 0.001 to 1 in equal ratios, ``linear`` for k / n_weights.
        solver: Name of the solver: ``coordinate``, ``convex``, ``equalise``, ``path``, or ``anneal``, which alone
            chooses membership functions.
        classes: Name of the class of each column of the probabilities; None for the sorted classes that occur.
        alpha: Weight of the error rate in the objective ``dcs``.
        beta: Weight of COBias in the objective ``dcs``.
        tau: Weight of the pointwise mutual information in the objective ``dcs``.
        smoothing: Number of rows by which that information is smoothed.
        temperature: Temperature at which annealing starts.
        cooling: Factor from one temperature to the next.
        stop_ratio: Share of the first temperature at which annealing stops.
        moves_per_level: Number of proposals at each temperature; None for ten per class, and 200 at least.
        n_restarts: Number of times that annealing starts anew, with the seeds random_state, random_state + 1 and so on.
        validation_fraction: Share of the rows of each class that choose among the candidates of the solver, which does
            not see them.
        random_state: Seed.

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
        objective: ObjectiveName = "sen",
        *,
        min_mean: Literal["baseline", "balanced"] | float | None = "baseline",
        correction: MapKind = "weights",
        n_weights: int | None = None,
        grid: Grid = "log",
        solver: str = "coordinate",
        classes: Sequence[object] | None = None,
        alpha: float = 1.0,
        beta: float = 2.7,
        tau: float = 0.2,
        smoothing: float = 4000.0,
        temperature: float = 0.1,
        cooling: float = 0.95,
        stop_ratio: float = 1e-3,
        moves_per_level: int | None = None,
        n_restarts: int = 3,
        validation_fraction: float = 0.0,
        random_state: int = 0,
    ) -> None:
        self.objective: ObjectiveName = objective
        self.min_mean = min_mean
        self.correction: MapKind = correction
        self.n_weights = n_weights
        self.grid: Grid = grid
        self.solver = solver
        self.classes = classes
        self.alpha = alpha
        self.beta = beta
        self.tau = tau
        self.smoothing = smoothing
        self.temperature = temperature
        self.cooling = cooling
        self.stop_ratio = stop_ratio
        self.moves_per_level = moves_per_level
        self.n_restarts = n_restarts
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @property
    def settings(self) -> Settings:
        """The parameters, as the fit takes them."""
        return Settings(
            objective=self.objective,
            min_mean=self.min_mean,
            correction=self.correction,
            n_weights=self.n_weights,
            grid=self.grid,
            solver=self.solver,
            dcs=DcsWeights(self.alpha, self.beta, self.tau, self.smoothing),
            annealing=Annealing(self.temperature, self.cooling, self.stop_ratio, self.moves_per_level, self.n_restarts),
            validation_fraction=self.validation_fraction,
            seed=self.random_state,
        )

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:  # noqa: N803
        """Fit the rules of the classes.

        Args:
            X: Probability of each class in each row, shape (n, n_classes), none negative; rows need not sum to 1.
            y: Right class of each row, shape (n,), of at least two classes.

        Raises:
            ValueError: a parameter does not exist, a probability is missing, infinite or negative, or the classes do
                not fit the columns.

        Warns:
            UserWarning: the accuracy over all rows or that of a class falls, or a class has few rows.
        """
        try:
            X, y = validate_data(self, X, y, ensure_all_finite=False, dtype="numeric")  # noqa: N806
        except ValueError:
            # It names no row.
            check_rows(X)
            if y is not None:
                check_known(y)
            raise
        probabilities = checked_probabilities(X)
        coded = coded_targets(y, len(probabilities), probabilities.shape[1], self.classes)
        found = fit_rules(probabilities, coded.targets, self.settings, coded.classes.tolist())
        self.classes_ = coded.classes
        self.fit_ = found
        self.rules_ = StoredRules.of(found, self.settings, coded.classes.tolist())
        for note in found.notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        return self

    def transform(self, X: npt.ArrayLike) -> FloatArray:  # noqa: N803
        """Return the corrected value of each class in each row, shape (n, n_classes); rows need not sum to 1."""
        probabilities = self._checked(X)
        return self.rules_.rules.transform(probabilities)

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:  # noqa: N803
        """Return the corrected values of each row over their sum, shape (n, n_classes).

        They rank the classes of a row. They are no calibrated probabilities, above all not with membership functions.
        """
        probabilities = self._checked(X)
        return self.rules_.rules.shares(probabilities)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class with the largest corrected value of each row, shape (n,); the first one in a tie."""
        probabilities = self._checked(X)
        predicted: npt.NDArray[Any] = self.classes_[self.rules_.rules.predict(probabilities)]
        return predicted

    def save(self, path: Path | str) -> None:
        """Write the fitted rules as JSON, which can be applied without this package."""
        check_is_fitted(self)
        self.rules_.write(Path(path))

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Return an estimator with the rules of a file, which predicts like the one that wrote it.

        Of its parameters it has those that the file tells; fitted again, it has the defaults of the others.

        Raises:
            DataError: the file is no such JSON.
        """
        stored = StoredRules.read(Path(path))
        said = stored.document
        objective = cast(ObjectiveName, said.objective)
        loaded = cls(
            objective=objective,
            correction=said.map,
            n_weights=said.n_weights,
            grid=said.grid or "log",
            solver=said.solver,
            classes=stored.classes,
            random_state=said.seed,
        )
        loaded.rules_, loaded.classes_ = stored, np.array(stored.classes)
        loaded.n_features_in_ = len(said.classes)
        return loaded

    def _checked(self, X: npt.ArrayLike) -> FloatArray:  # noqa: N803
        check_is_fitted(self)
        try:
            X = validate_data(self, X, reset=False, ensure_all_finite=False, dtype="numeric")  # noqa: N806
        except ValueError:
            check_rows(X)
            raise
        return prepared(checked_probabilities(X, len(self.classes_)), self.rules_.document.map)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = False
        return tags


def paper_preset(**parameters: Any) -> Reweighter:
    """Return an estimator with the choices of the paper, as far as it tells them.

    They are the Gini index alone, membership functions and 30 linear weights, and simulated annealing without a floor.
    The mean accuracy can fall below that before the correction, and often does.

    Args:
        parameters: Parameters that differ from these.

    References:
        "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654, equation 10.
    """
    names = ("objective", "min_mean", "correction", "n_weights", "grid", "solver")
    chosen: dict[str, Any] = {name: getattr(PAPER, name) for name in names}
    return Reweighter(**(chosen | parameters))
