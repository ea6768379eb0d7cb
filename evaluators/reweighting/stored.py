"""Writes and reads fitted rules as JSON."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from evaluators.reweighting.fitting import Fit, Settings
from evaluators.reweighting.problem import load_solver
from evaluators.reweighting.rules import N_FUNCTIONS, ClassRules, RuleSet
from evaluators.statistics.bootstrap import FloatArray
from schemas import strict_json
from schemas.errors import DataError
from schemas.reweighting import FitReport, Reweighting


@dataclass(frozen=True)
class StoredRules:
    """Fitted rules with everything that their file holds."""

    document: Reweighting

    @classmethod
    def of(cls, fit: Fit, settings: Settings, classes: Sequence[object]) -> StoredRules:
        """Return the rules of a fit.

        Args:
            fit: The fit.
            settings: Its choices.
            classes: Name of the class of each column. Truth values and numbers like 1.0 become whole numbers, which
                equal them; other names become texts.
        """
        numbers = [_whole(one) for one in classes]
        names: Sequence[object] = classes if None in numbers else numbers
        rule_set = RuleSet(settings.correction, settings.n_weights, settings.grid)
        is_search = load_solver(settings.solver).chooses_rules
        weights = tuple(None if np.isnan(one) else float(one) for one in fit.rules.weights)
        of_classes = fit.accuracies
        report = FitReport(
            n_rows=int(of_classes.supports.sum()),
            supports=tuple(of_classes.supports.tolist()),
            class_accuracies_before=_known(of_classes.before),
            class_accuracies_after=_known(of_classes.after),
            accuracy_before=of_classes.micro_before,
            accuracy_after=of_classes.micro_after,
            notes=fit.notes,
        )
        return cls(
            Reweighting(
                format=1,
                classes=tuple(map(str, names)),
                has_integer_classes=names is numbers,
                map=settings.correction,
                index_base=0,
                rules=tuple(_numbers(fit.rules, rule_set if is_search else None)),
                weights=weights,
                n_weights=len(rule_set.weights) or None if is_search else None,
                grid=settings.grid if is_search and len(rule_set.weights) else None,
                objective=settings.objective,
                solver=settings.solver,
                seed=int(settings.seed),
                fit_report=report,
            )
        )

    @classmethod
    def read(cls, path: Path) -> StoredRules:
        """Read and check a file.

        Raises:
            DataError: there is no such file, or it holds no rules.
        """
        if not path.is_file():
            raise DataError(f"{path}: no such file; fit rules first, and name the file that was written")
        contract = importlib.import_module("schemas.contract")
        return cls(contract.read(path, Reweighting))

    def write(self, path: Path) -> None:
        """Write the file.

        Raises:
            DataError: the rules break the contract of the file; nothing is written.
        """
        contract = importlib.import_module("schemas.contract")
        contract.check(self.document, where=str(path))
        strict_json.write(path, contract.dump(self.document))

    @property
    def classes(self) -> list[str] | list[int]:
        """The names of the classes, as they were given."""
        names = list(self.document.classes)
        return [int(name) for name in names] if self.document.has_integer_classes else names

    @cached_property
    def rules(self) -> ClassRules:
        """The rules, to be applied."""
        pairs = list(zip(self.document.rules, self.document.weights, strict=True))
        return ClassRules(
            np.array([-1 if weight is not None or rule is None else rule for rule, weight in pairs]),
            np.array([np.nan if weight is None else weight for _, weight in pairs], dtype=np.float64),
        )


def _numbers(rules: ClassRules, rule_set: RuleSet | None) -> list[int | None]:
    """Return the number of each class's rule; None for a weight that is of no grid."""
    found: list[int | None] = []
    for function, weight in zip(rules.functions.tolist(), rules.weights.tolist(), strict=True):
        same = [] if rule_set is None else np.flatnonzero(rule_set.weights == weight).tolist()
        found.append(function if function >= 0 else N_FUNCTIONS + same[0] if same else None)
    return found


def _whole(name: object) -> int | None:
    is_whole = isinstance(name, int) or (isinstance(name, float) and name.is_integer())
    return int(name) if is_whole and isinstance(name, int | float) else None


def _known(values: FloatArray) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(one) else float(one) for one in values)
