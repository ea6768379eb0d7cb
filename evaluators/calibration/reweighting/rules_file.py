"""Writes and reads fitted rules as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from evaluators.calibration.reweighting.fitting import Fit, FitSettings
from evaluators.calibration.reweighting.problem import PAPER_RULES
from evaluators.calibration.reweighting.rules import N_FUNCTIONS, ClassRules
from evaluators.calibration.reweighting.solvers import CHOOSING_RULES
from schemas.documents.reweighting import Reweighting


def document_of(fit: Fit, settings: FitSettings, classes: Sequence[Any]) -> Reweighting:
    """Return the contents of the file of a fit.

    Args:
        fit: The fit.
        settings: Its settings.
        classes: Name of the class of each column. Booleans and numbers like 1.0 become equal integers; other names
            become texts.
    """
    has_integer_classes = all(
        isinstance(name, int) or (isinstance(name, float) and name.is_integer()) for name in classes
    )
    rule_set = PAPER_RULES if settings.solver in CHOOSING_RULES else None
    on_grid = {} if rule_set is None else {weight: at for at, weight in enumerate(rule_set.weights.tolist())}
    return Reweighting(
        format=1,
        classes=tuple(str(int(name) if has_integer_classes else name) for name in classes),
        has_integer_classes=has_integer_classes,
        map=settings.map,
        index_base=0,
        # A weight that is on no grid has no number.
        rules=tuple(
            function if function >= 0 else N_FUNCTIONS + on_grid[weight] if weight in on_grid else None
            for function, weight in zip(fit.rules.functions.tolist(), fit.rules.weights.tolist(), strict=True)
        ),
        weights=tuple(None if np.isnan(weight) else weight for weight in fit.rules.weights.tolist()),
        n_weights=None if rule_set is None else rule_set.n_weights,
        grid=None if rule_set is None else "linear",
        objective=settings.objective,
        solver=settings.solver,
        seed=int(settings.seed),
        fit_report=fit.report,
    )


def read_rules(path: Path) -> Reweighting:
    """Read and check a file of rules.

    Raises:
        DataError: there is no such file, or it holds no rules.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file; fit rules first, and name the file that was written")
    from schemas.files import contract  # Imported here because it loads all documents, which a fit does not need.

    return contract.read(path, Reweighting)


def write_rules(path: Path, document: Reweighting) -> None:
    """Write a file of rules.

    Raises:
        DataError: the rules violate the schema of the file; nothing is written.
    """
    from schemas.files import contract

    contract.check(document, where=str(path))
    strict_json.write(path, contract.dump(document))


def rules_of(document: Reweighting) -> ClassRules:
    """Return the rules in a file."""
    weights = np.array([np.nan if weight is None else weight for weight in document.weights], dtype=np.float64)
    # A weight may have no rule number; a class without a weight always has that of its membership function.
    numbers = np.array([-1 if number is None else number for number in document.rules])
    return ClassRules(np.where(np.isnan(weights), numbers, -1), weights)
