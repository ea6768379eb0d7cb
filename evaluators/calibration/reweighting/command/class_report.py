"""Measures predictions before and after a correction, with intervals, and prints the gains and losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from biasboard.ground.columns import FloatArray, IntArray
from biasboard.ground.plain_text import printable, visible
from evaluators.calibration.reweighting.command.rows import Rows, listed
from evaluators.calibration.reweighting.rules import prepared
from evaluators.calibration.reweighting.rules_file import StoredRules
from evaluators.statistics.class_accuracies import (
    class_accuracies,
    cobias,
    gini_index,
    gini_noise_floor,
    lorenz_curve,
    mean_accuracy,
    sen_welfare,
    smallest_accuracy,
    top_class_dominance,
)
from schemas.outputs.documents import ClassAccuracy, ClassMeasure, ClassSummary, MeasuredClasses

_Z = 1.959963984540054
"""Quantile of the normal distribution for intervals of 95 %."""
NOTHING_RIGHT = "nothing is right, and the measure divides by the mean accuracy"
TOO_FEW_CLASSES = "there are fewer than two classes with rows"


class Range(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


class ClassRow(NamedTuple):
    """The accuracy of one class."""

    label: str
    n_rows: int
    n_predicted: int
    """Number of rows predicted as this class, right or wrong."""
    value: float | None
    """Accuracy: the share of the rows of this class that are predicted right; None without rows."""
    interval: Range | None
    """Wilson interval of the accuracy; None without rows."""


class Measure(NamedTuple):
    """A measure of all classes."""

    name: str
    value: float | None
    reason: str | None
    """Reason why there is no value; None if there is one."""
    interval: Range | None
    """Interval around the expected value at this number of rows; for inequality it lies above the large-sample value.
    It comes from resampled rows, and is None without a value or resamples, and for the noise floor."""


@dataclass(frozen=True)
class Summary:
    """The accuracy of some predictions, by class, and its evenness over the classes."""

    n_rows: int
    classes: tuple[ClassRow, ...]
    measures: tuple[Measure, ...]

    def value(self, name: str) -> float | None:
        """Return the value of a measure by its name."""
        return next(measure.value for measure in self.measures if measure.name == name)

    @property
    def gini(self) -> float | None:
        """The Gini index of the class accuracies; None where nothing is right."""
        return self.value("gini")

    @property
    def lorenz(self) -> list[tuple[float, float]]:
        """The points of the Lorenz curve of the class accuracies; none where nothing is right."""
        shares, sums = lorenz_curve([math.nan if row.value is None else row.value for row in self.classes])
        return [] if np.isnan(sums).any() else list(zip(shares.tolist(), sums.tolist(), strict=True))


TITLES = {
    "mean_class_accuracy": "mean class accuracy",
    "accuracy": "accuracy over all rows",
    "gini": "Gini index",
    "gini_noise_floor": "  by chance, of equal classes",
    "cobias": "COBias",
    "sen_welfare": "Sen welfare",
    "top_class_dominance": "largest over mean accuracy",
    "smallest_class_accuracy": "smallest class accuracy",
}
"""Titles of the measures in tables, by name, in the order of the rows."""
_MEASURES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "mean_class_accuracy": mean_accuracy,
    "gini": gini_index,
    "cobias": cobias,
    "sen_welfare": sen_welfare,
    "top_class_dominance": top_class_dominance,
    "smallest_class_accuracy": smallest_accuracy,
}
# The largest accuracy over their mean is 1 or more; all other measures lie in [0, 1].
_RANGES = {"top_class_dominance": (1.0, math.inf)}
# The measures in the line of changes. A fall is a loss, except of the Gini index, whose rise shows in the Sen welfare.
_MAIN = ("mean_class_accuracy", "accuracy", "gini", "sen_welfare", "smallest_class_accuracy")


def summarise(
    targets: IntArray, predictions: IntArray, labels: Sequence[str], *, n_resamples: int = 0, seed: int = 0
) -> Summary:
    """Summarise predictions.

    Args:
        targets: Index of the right class of each row, shape (n,).
        predictions: Index of the predicted class of each row, shape (n,).
        labels: Name of each class.
        n_resamples: Number of resamples of the rows for intervals; 0 for none.
        seed: Seed of the resamples.
    """
    k = len(labels)
    accuracies, supports = class_accuracies(targets, predictions, k)
    n_right = np.bincount(targets[targets == predictions], minlength=k).tolist()
    n_predicted = np.bincount(predictions, minlength=k).tolist()
    rows = tuple(
        ClassRow(label, n, predicted, right / n if n else None, wilson(right, n) if n else None)
        for label, n, predicted, right in zip(labels, supports.tolist(), n_predicted, n_right, strict=True)
    )
    resampled = _resampled(accuracies, supports, n_resamples, seed) if n_resamples else None
    measures = {name: _measure(name, accuracies, resampled) for name in _MEASURES}
    overall = sum(n_right) / len(targets)
    interval = wilson(sum(n_right), len(targets)) if n_resamples else None
    measures["accuracy"] = Measure("accuracy", overall, None, interval)
    floor = float(gini_noise_floor(accuracies, supports))
    measures["gini_noise_floor"] = _measure_or_reason("gini_noise_floor", floor, None, accuracies)
    return Summary(len(targets), rows, tuple(measures[name] for name in TITLES))


def wilson(n_right: int, n: int) -> Range:
    """Return the Wilson interval of a share, at 95 %.

    References:
        Wilson 1927, "Probable inference, the law of succession, and statistical inference".

    >>> round(wilson(0, 10).high, 4)
    0.2775
    """
    share = n_right / n
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return Range(max(0.0, centre - half), min(1.0, centre + half))


def _resampled(accuracies: FloatArray, supports: IntArray, n_resamples: int, seed: int) -> FloatArray:
    """Return class accuracies on resamples of the rows of each class, shape (n_resamples, n_classes)."""
    rng = np.random.default_rng(seed)
    # Add half a right and half a wrong row, so that a class with all or no rows right varies too.
    shares = (np.nan_to_num(accuracies) * supports + 0.5) / (supports + 1)
    right = rng.binomial(supports, shares, size=(n_resamples, len(supports)))
    return np.where(supports > 0, right / np.maximum(supports, 1), np.nan)


def _measure(name: str, accuracies: FloatArray, resampled: FloatArray | None) -> Measure:
    value = float(_MEASURES[name](accuracies))
    interval = None
    if resampled is not None and not math.isnan(value):
        values = _MEASURES[name](resampled)
        defined = np.sort(values[~np.isnan(values)])
        if len(defined):
            # Resampling adds chance differences between classes: with 100 classes of 40 rows, every resample has a
            # larger Gini index than the predictions. Shift the resamples so that their mean equals the value.
            low, high = np.quantile(defined, (0.025, 0.975)) - defined.mean() + value
            minimum, maximum = _RANGES.get(name, (0.0, 1.0))
            interval = Range(float(max(low, minimum)), float(min(high, maximum)))
    return _measure_or_reason(name, value, interval, accuracies)


def _measure_or_reason(name: str, value: float, interval: Range | None, accuracies: FloatArray) -> Measure:
    if not math.isnan(value):
        return Measure(name, value, None, interval)
    is_single = int((~np.isnan(accuracies)).sum()) < 2
    return Measure(name, None, TOO_FEW_CLASSES if is_single else NOTHING_RIGHT, None)


def changes(before: Summary, after: Summary) -> str:
    """Return how the main measures change, in one line."""
    return ", ".join(f"{TITLES[name]} {shown(before.value(name))} to {shown(after.value(name))}" for name in _MAIN)


def losses(before: Summary, after: Summary) -> Iterator[str]:
    """Yield a sentence for each measure that falls, and one about classes that lose accuracy.

    Args:
        before: Summary of the uncorrected predictions.
        after: Summary of the corrected predictions on the same rows.
    """
    for name in _MAIN:
        old, new = before.value(name), after.value(name)
        if name != "gini" and old is not None and new is not None and new < old:
            yield f"the {TITLES[name]} falls by {old - new:.4f}, from {old:.4f} to {new:.4f}"
    with_rows = [
        (old.label, old.value, new.value)
        for old, new in zip(before.classes, after.classes, strict=True)
        if old.value is not None and new.value is not None
    ]
    worse = [(label, old, new) for label, old, new in with_rows if new < old]
    if worse:
        label, old, new = max(worse, key=lambda row: row[1] - row[2])
        n_better = sum(new > old for _, old, new in with_rows)
        yield (
            f"{len(worse)} of {len(with_rows)} classes lose and {n_better} gain; '{label}' loses most, from {old:.4f} "
            f"to {new:.4f}"
        )


def shown(value: float | None) -> str:
    """Format a value for tables and sentences."""
    return "none" if value is None else f"{value:.4f}"


_N_RESAMPLES = 1000
# With more classes, the table shows the least accurate and some of the most accurate ones.
_MAX_CLASSES, _N_LEAST, _N_MOST = 30, 15, 5
# Width of tables if standard output is not a terminal, and the terminal width below which tables have fewer columns.
_WIDTH, _LEAST_WIDTH = 160, 130


@dataclass(frozen=True)
class Measured:
    """Summaries of the predictions on some rows, before and, if there are rules, after the correction."""

    title: str
    before: Summary
    after: Summary | None = None

    @property
    def states(self) -> dict[str, Summary]:
        """The summaries by their names."""
        return {"before": self.before} | ({} if self.after is None else {"after": self.after})

    @property
    def warnings(self) -> list[str]:
        """Sentences about the losses; none without a correction."""
        return [] if self.after is None else list(losses(self.before, self.after))

    @property
    def document(self) -> MeasuredClasses:
        """The summaries and warnings as the document that commands print."""
        return MeasuredClasses(
            source=self.title,
            n_rows=self.before.n_rows,
            before=_document(self.before),
            after=None if self.after is None else _document(self.after),
            warnings=() if self.after is None else tuple(self.warnings),
        )


def measured(title: str, rows: Rows, stored: StoredRules | None = None) -> Measured:
    """Measure the predictions on some rows.

    Args:
        title: Title of the rows.
        rows: The rows.
        stored: Rules to apply; None for none.
    """
    labels = rows.classes
    before = summarise(rows.targets, rows.probabilities.argmax(axis=1), labels, n_resamples=_N_RESAMPLES)
    if stored is None:
        return Measured(title, before)
    predicted = stored.rules.predict(prepared(rows.probabilities, stored.document.map))
    return Measured(title, before, summarise(rows.targets, predicted, labels, n_resamples=_N_RESAMPLES))


def print_measured(report: Measured, warnings: Iterable[str] | None = None) -> None:
    """Print the table of classes, the table of measures, and the gains and losses.

    Args:
        report: The measured predictions.
        warnings: Warnings to print; None for those of the report.
    """
    console = console_of_tables()
    console.print(_class_table(report, is_narrow=console.width < _LEAST_WIDTH))
    if len(report.before.classes) > _MAX_CLASSES:
        print(f"{len(report.before.classes)} classes; --format json prints all of them")
    console.print(_measure_table(report))
    for measure in (report.after or report.before).measures:
        if measure.reason is not None:
            print(f"without a value: {TITLES[measure.name]} ({measure.reason})")
    if report.after is not None:
        print(f"traded: {changes(report.before, report.after)}")
    for line in report.warnings if warnings is None else warnings:
        print(f"warning: {visible(line)}")


def console_of_tables() -> Console:
    """Return the terminal, or, where there is none, a console with room for whole tables."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, _WIDTH))


def print_notes(rows: Rows) -> None:
    """Print the number of rows and classes of an input, and notes about rows that were left out."""
    print(f"{visible(rows.source)}: {len(rows):,} rows, {len(rows.classes)} classes")
    for note in rows.notes:
        print(f"  {note}")
    if rows.without_rows:
        names = listed([visible(name) for name in rows.without_rows])
        print(
            f"  warning: no row is of {names}; if these columns are no classes, name those that are with --classes, or "
            "leave columns out with --ignore"
        )


def _class_table(report: Measured, *, is_narrow: bool) -> Table:
    """Return the table of classes; a narrow one omits how often each is predicted."""
    table = Table(title=Text(visible(report.title)), title_justify="left")
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    names = [*report.states] if report.after is not None else [""]
    for name in () if is_narrow else names:
        table.add_column(f"predicted {name}".strip(), justify="right")
    for name in names:
        table.add_column(name if is_narrow and name else f"accuracy {name}".strip(), justify="right", no_wrap=True)
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for rows in _shown_classes(list(zip(*(summary.classes for summary in report.states.values()), strict=True))):
        cells = [] if is_narrow else [f"{row.n_predicted:,}" for row in rows]
        cells += [cell for row in rows for cell in _value_and_interval(row)]
        table.add_row(Text(printable(rows[0].label, most=80)), f"{rows[0].n_rows:,}", *cells)
    return table


def _shown_classes(classes: Sequence[tuple[ClassRow, ...]]) -> Sequence[tuple[ClassRow, ...]]:
    """Return all classes, or, if there are many, the least and the most accurate ones."""
    if len(classes) <= _MAX_CLASSES:
        return classes
    with_rows = [rows for rows in classes if rows[0].value is not None]
    ranked = sorted(with_rows, key=lambda rows: rows[0].value or 0.0)
    return [*ranked[:_N_LEAST], *ranked[max(_N_LEAST, len(ranked) - _N_MOST) :]]


def _measure_table(report: Measured) -> Table:
    table = Table()
    table.add_column("measure")
    for name in report.states if report.after is not None else ("value",):
        table.add_column(name, justify="right")
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for measures in zip(*(summary.measures for summary in report.states.values()), strict=True):
        cells = [cell for measure in measures for cell in _value_and_interval(measure)]
        table.add_row(TITLES[measures[0].name], *cells)
    return table


def _value_and_interval(row: ClassRow | Measure) -> tuple[str, str]:
    return shown(row.value), "" if row.interval is None else f"{row.interval.low:.4f} to {row.interval.high:.4f}"


def _document(summary: Summary) -> ClassSummary:
    return ClassSummary(
        classes=tuple(ClassAccuracy(**_fields(row)) for row in summary.classes),
        measures=tuple(ClassMeasure(**_fields(row)) for row in summary.measures),
    )


def _fields(row: ClassRow | Measure) -> dict[str, Any]:
    fields = row._asdict()
    low, high = fields.pop("interval") or (None, None)
    return {**fields, "low": low, "high": high}
