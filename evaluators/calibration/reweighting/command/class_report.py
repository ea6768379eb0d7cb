"""Measures predictions before and after a correction, with intervals, and prints what it gives and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from biasboard.ground.columns import FloatArray, IntArray
from biasboard.ground.plain_text import visible
from biasboard.ground.strict_json import JsonValue
from evaluators.calibration.reweighting.command.rows import Rows, listed
from evaluators.calibration.reweighting.rules import prepared
from evaluators.calibration.reweighting.rules_file import StoredRules
from evaluators.statistics.bootstrap import quantiles
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
    """Number of rows that are predicted as this class, right or wrong."""
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
    """Interval from resampled rows; None without a value, without resamples, or for a noise floor. It covers the value
    that as many rows give on average, which for a measure of inequality lies above that of infinitely many: what chance
    adds is in the value and in the noise floor, and is not added again."""


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
"""Titles of the measures for readers, by name, in their order."""
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
# The measures in the line of changes. Larger is better, except for the Gini index, whose rise shows in the Sen welfare.
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
    measures["gini_noise_floor"] = _defined_or_not("gini_noise_floor", floor, None, accuracies)
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
    # Half a right and half a wrong row more: a class of which all rows are right, or none, leaves some doubt too.
    shares = (np.nan_to_num(accuracies) * supports + 0.5) / (supports + 1)
    right = rng.binomial(supports, shares, size=(n_resamples, len(supports)))
    return np.where(supports > 0, right / np.maximum(supports, 1), np.nan)


def _measure(name: str, accuracies: FloatArray, resampled: FloatArray | None) -> Measure:
    value = float(_MEASURES[name](accuracies))
    interval = None
    if resampled is not None and not math.isnan(value):
        values = _MEASURES[name](resampled)
        known = np.sort(values[~np.isnan(values)])
        if len(known):
            # Resampled classes differ by chance once more: with 100 classes of 40 rows, all resamples have a larger
            # Gini index than the predictions that they are drawn from. Moved, their mean is the value itself.
            low, high = quantiles(known, (0.025, 0.975)) - known.mean() + value
            least, most = _RANGES.get(name, (0.0, 1.0))
            interval = Range(float(max(low, least)), float(min(high, most)))
    return _defined_or_not(name, value, interval, accuracies)


def _defined_or_not(name: str, value: float, interval: Range | None, accuracies: FloatArray) -> Measure:
    if not math.isnan(value):
        return Measure(name, value, None, interval)
    is_single = int((~np.isnan(accuracies)).sum()) < 2
    return Measure(name, None, TOO_FEW_CLASSES if is_single else NOTHING_RIGHT, None)


def changes(before: Summary, after: Summary) -> str:
    """Return how the main measures change, in one line."""
    return ", ".join(f"{TITLES[name]} {shown(before.value(name))} to {shown(after.value(name))}" for name in _MAIN)


def losses(before: Summary, after: Summary) -> Iterator[str]:
    """Yield a sentence for each measure that falls, and one about the classes that are less accurate than before.

    Args:
        before: The predictions of the uncorrected probabilities.
        after: Those of the corrected ones, on the same rows.
    """
    for name in _MAIN:
        old, new = before.value(name), after.value(name)
        if name != "gini" and old is not None and new is not None and new < old:
            yield f"the {TITLES[name]} falls by {old - new:.4f}, from {old:.4f} to {new:.4f}"
    known = [
        (old.label, old.value, new.value)
        for old, new in zip(before.classes, after.classes, strict=True)
        if old.value is not None and new.value is not None
    ]
    worse = [(label, old, new) for label, old, new in known if new < old]
    if worse:
        label, old, new = max(worse, key=lambda row: row[1] - row[2])
        n_better = sum(new > old for _, old, new in known)
        yield (
            f"{len(worse)} of {len(known)} classes lose and {n_better} gain; '{label}' loses most, from {old:.4f} to "
            f"{new:.4f}"
        )


def shown(value: float | None) -> str:
    """Return a value as tables and sentences show it."""
    return "none" if value is None else f"{value:.4f}"


_N_RESAMPLES = 1000
# Of more classes the table shows the least accurate ones and some of the most accurate.
_MOST_CLASSES, _N_LEAST, _N_MOST = 30, 15, 5
# Width of tables where standard output is no terminal, and that of a terminal below which tables have fewer columns.
_WIDTH, _LEAST_WIDTH = 160, 130


@dataclass(frozen=True)
class Measured:
    """The predictions on some rows, before and, if there are rules, after the correction."""

    title: str
    before: Summary
    after: Summary | None = None

    @property
    def states(self) -> dict[str, Summary]:
        """The summaries by their names."""
        return {"before": self.before} | ({} if self.after is None else {"after": self.after})

    @property
    def warnings(self) -> list[str]:
        """Sentences about what the correction costs; none without a correction."""
        return [] if self.after is None else list(losses(self.before, self.after))

    def as_json(self) -> dict[str, JsonValue]:
        """Return what is measured as JSON."""
        document: dict[str, JsonValue] = {"source": self.title, "n_rows": self.before.n_rows}
        for name, summary in self.states.items():
            classes: list[JsonValue] = [_as_json(row) for row in summary.classes]
            measures: list[JsonValue] = [_as_json(row) for row in summary.measures]
            document[name] = {"classes": classes, "measures": measures}
        return document if self.after is None else {**document, "warnings": [*self.warnings]}


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
    """Print the table of classes, the table of measures, and what the correction gives and costs.

    Args:
        report: The measured predictions.
        warnings: Sentences to warn with; None for those that follow from the predictions.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(console.width, _WIDTH))
    console.print(_class_table(report, is_narrow=console.width < _LEAST_WIDTH))
    if len(report.before.classes) > _MOST_CLASSES:
        print(f"{len(report.before.classes)} classes; --json prints all of them")
    console.print(_measure_table(report))
    for measure in (report.after or report.before).measures:
        if measure.reason is not None:
            print(f"without a value: {TITLES[measure.name]} ({measure.reason})")
    if report.after is not None:
        print(f"traded: {changes(report.before, report.after)}")
    for line in report.warnings if warnings is None else warnings:
        print(f"warning: {visible(line)}")


def print_notes(rows: Rows) -> None:
    """Print the number of rows and classes of an input, and what was taken of it."""
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
    """Return the table of classes; a narrow one does not say how often each is predicted."""
    table = Table(title=Text(visible(report.title)), title_justify="left")
    table.add_column("class", overflow="fold")
    table.add_column("rows", justify="right", no_wrap=True)
    names = [*report.states] if report.after is not None else [""]
    for name in () if is_narrow else names:
        table.add_column(f"predicted {name}".strip(), justify="right")
    for name in names:
        table.add_column(name if is_narrow and name else f"accuracy {name}".strip(), justify="right", no_wrap=True)
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for rows in _some(list(zip(*(summary.classes for summary in report.states.values()), strict=True))):
        cells = [] if is_narrow else [f"{row.n_predicted:,}" for row in rows]
        cells += [cell for row in rows for cell in _value_and_interval(row)]
        table.add_row(Text(visible(rows[0].label)), f"{rows[0].n_rows:,}", *cells)
    return table


def _some(classes: Sequence[tuple[ClassRow, ...]]) -> Sequence[tuple[ClassRow, ...]]:
    """Return the rows of all classes, or of many those of the least and the most accurate ones."""
    if len(classes) <= _MOST_CLASSES:
        return classes
    known = [rows for rows in classes if rows[0].value is not None]
    ranked = sorted(known, key=lambda rows: rows[0].value or 0.0)
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


def _as_json(row: ClassRow | Measure) -> JsonValue:
    fields = row._asdict()
    low, high = fields.pop("interval") or (None, None)
    return {**fields, "low": low, "high": high}
