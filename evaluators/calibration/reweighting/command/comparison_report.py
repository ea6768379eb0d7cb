"""Compares the presets with corrections of one line on given rows, and prints the table and who is ahead of whom."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from rich.table import Table
from rich.text import Text

from biasboard.ground.columns import IntArray
from biasboard.ground.errors import DataError
from biasboard.ground.plain_text import visible
from evaluators.calibration.reweighting.command.class_report import TITLES, console_of_tables, shown
from evaluators.calibration.reweighting.command.rows import Rows
from evaluators.calibration.reweighting.comparison import METHODS, ONE_LINERS, held_out_by, predicted_by, sen_lead
from evaluators.calibration.reweighting.fitting import PRESETS, UNCORRECTED
from evaluators.statistics.class_accuracies import (
    class_accuracies,
    gini_index,
    mean_accuracy,
    sen_welfare,
    smallest_accuracy,
)
from schemas.outputs.documents import ComparedMethod, ComparedMethods

_LEAST_ROWS = 2
_COLUMNS = ("mean_class_accuracy", "accuracy", "gini", "sen_welfare", "smallest_class_accuracy")
_EQUAL = "equals uncorrected"


def compared(rows: Rows, test: Rows | None, seed: int) -> ComparedMethods:
    """Compare all methods.

    Args:
        rows: Rows to fit on, and without others also to measure on: each half is fitted on once.
        test: Other rows of the same classes to measure on; None for none.
        seed: Seed of the halves and of the search of ``paper``.

    Raises:
        DataError: a class has a single row, so that it cannot be in both halves.
    """
    if test is None:
        for label, n in zip(rows.classes, np.bincount(rows.targets, minlength=len(rows.classes)).tolist(), strict=True):
            if 0 < n < _LEAST_ROWS:
                raise DataError(
                    f"{rows.source}: class '{label}' has {n} row, and each half needs one; give more rows, or others "
                    "to measure on with --test"
                )
        predicted = {name: held_out_by(name, rows.probabilities, rows.targets, seed=seed) for name in METHODS}
        judged, targets = "each half of the rows by rules fitted on the other half", rows.targets
    else:
        predicted = {
            name: predicted_by(name, rows.probabilities, rows.targets, test.probabilities, seed=seed)
            for name in METHODS
        }
        judged, targets = f"measured on {test.title}", test.targets
    n_classes = len(rows.classes)
    return ComparedMethods(
        source=rows.title,
        judged=judged,
        n_rows=len(targets),
        methods=tuple(
            _method(name, targets, of_method, n_classes, predicted[UNCORRECTED])
            for name, of_method in predicted.items()
        ),
        leads=tuple(_leads(targets, predicted, n_classes)),
    )


def _method(name: str, targets: IntArray, predicted: IntArray, n_classes: int, uncorrected: IntArray) -> ComparedMethod:
    accuracies = class_accuracies(targets, predicted, n_classes).accuracies
    gini = float(gini_index(accuracies))
    return ComparedMethod(
        name=name,
        equals_uncorrected=name != UNCORRECTED and bool((predicted == uncorrected).all()),
        mean_class_accuracy=float(mean_accuracy(accuracies)),
        accuracy=float((predicted == targets).mean()),
        gini=None if math.isnan(gini) else gini,
        sen_welfare=float(sen_welfare(accuracies)),
        smallest_class_accuracy=float(smallest_accuracy(accuracies)),
    )


def _leads(targets: IntArray, predicted: Mapping[str, IntArray], n_classes: int) -> Iterator[str]:
    """Yield a sentence for each preset and each simpler method with a larger Sen welfare."""
    for preset in PRESETS:
        for simple in (UNCORRECTED, *ONE_LINERS):
            lead = sen_lead(targets, predicted[simple], predicted[preset], n_classes)
            if lead.value > 0:
                by_chance = "; chance can explain that" if lead.low <= 0 else ""
                yield (
                    f"'{simple}' is ahead of '{preset}' by {lead.value:.4f} of Sen welfare (95 % interval "
                    f"{lead.low:.4f} to {lead.high:.4f}){by_chance}"
                )


def print_compared(report: ComparedMethods) -> None:
    """Print a row for each method, and which simple ones are ahead of a preset."""
    table = Table(title=Text(visible(f"{report.source}: {report.judged}")), title_justify="left")
    # The longest words of the first two columns stay whole on a terminal of 80 columns.
    longest = len(UNCORRECTED)
    table.add_column("method", min_width=longest)
    for place, name in enumerate(_COLUMNS):
        table.add_column(TITLES[name], justify="right", min_width=longest if place == 0 else None)
    for method in report.methods:
        # A correction that changed nothing is not shown as if it had worked.
        cells = [shown(getattr(method, name)) for name in _COLUMNS]
        table.add_row(method.name, *([_EQUAL] if method.equals_uncorrected else cells))
    console_of_tables().print(table)
    for line in report.leads:
        print(f"warning: {line}")
    if not report.leads:
        print("no simpler method is ahead of a preset in Sen welfare")
