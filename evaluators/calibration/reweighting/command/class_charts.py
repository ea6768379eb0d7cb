"""Draws class accuracies, and their Lorenz curves, as SVG files."""

from __future__ import annotations

from pathlib import Path

from biasboard.ground.charts.drawing import DASHED, FIRST, MUTED, SECOND, Chart, Drawing, width_of
from biasboard.ground.charts.labels import row_names
from biasboard.ground.charts.planes import Dot, Kind, Plane, legend, ticks
from biasboard.ground.errors import ConfigError
from biasboard.ground.files import replacing
from evaluators.calibration.reweighting.command.class_report import Measured

# Height of a class in pixels, and the smaller one in charts with more than _MANY classes.
_STEP, _SMALL_STEP, _MANY = 22, 14, 30
# Distance of a mark from the middle of its class, as a share of the height, so that before and after do not overlap.
_SHIFT = 0.17
_WIDTH, _PLANE = 420, 360
_STATES = {"before": SECOND, "after": FIRST}


def check_folder(folder: Path | None) -> None:
    """Check that charts can be written into a folder.

    Raises:
        ConfigError: the folder is a file.
    """
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ConfigError(f"--plots {folder}: is a file; name a folder")


def draw_measured(folder: Path, report: Measured) -> list[Path]:
    """Draw the accuracy of each class and the Lorenz curves, before and after a correction.

    Args:
        folder: Folder of the files, which is made if needed.
        report: The measured predictions.

    Returns:
        Paths of the files.
    """
    return [_written(folder / "classes.svg", _classes(report)), _written(folder / "lorenz.svg", _lorenz(report))]


def _written(path: Path, chart: Chart) -> Path:
    with replacing(path) as temporary:
        temporary.write_text(chart.svg, encoding="utf-8")
    return path


def _finished(drawing: Drawing, title: str, left: float) -> Chart:
    """Return a chart under its title, whose first letter is at ``left``."""
    drawing.text(left, -42, title, bold=True)
    return drawing.chart(title, background="white")


def _classes(report: Measured) -> Chart:
    """Chart a dot with its interval for each class, before and after, and a line between the two."""
    with_rows = [row for row in report.before.classes if row.value is not None]
    if len(with_rows) > _MANY:
        with_rows = sorted(with_rows, key=lambda row: row.value or 0.0)
    names = row_names([row.label for row in with_rows])
    numbers = {row.label: number + 0.5 for number, row in enumerate(with_rows)}
    step = _SMALL_STEP if len(with_rows) > _MANY else _STEP
    drawing = Drawing()
    plane = Plane(drawing, _WIDTH, step * len(names), y=(len(names), 0.0))
    plane.axis_below(ticks(0.0, 1.0, 10), "accuracy of the class, 95 % interval")
    plane.rows(names)
    if report.after is not None:
        legend(drawing, (Kind(name, colour, is_hollow=name == "before") for name, colour in _STATES.items()))
        after = {row.label: row.value for row in report.after.classes}
        for row in with_rows:
            ends = [(value, numbers[row.label]) for value in (row.value, after[row.label]) if value is not None]
            plane.line(ends, MUTED, width=1, opacity=0.7)
    for state, summary in report.states.items():
        shift = 0.0 if report.after is None else -_SHIFT if state == "before" else _SHIFT
        plane.dots(
            [
                Dot(
                    row.value or 0.0,
                    numbers[row.label] + shift,
                    _STATES[state],
                    across=(row.interval.low, row.interval.high),
                    is_hollow=report.after is not None and state == "before",
                )
                for row in summary.classes
                if row.interval is not None
            ]
        )
    return _finished(drawing, report.title, -10 - max(map(width_of, names), default=0))


def _lorenz(report: Measured) -> Chart:
    """Chart the share of the sum of accuracies that the least accurate classes have together."""
    drawing = Drawing()
    plane = Plane(drawing, _PLANE, _PLANE)
    plane.axis_below(ticks(0.0, 1.0, 5), "share of classes, the worst first")
    plane.axis_beside(ticks(0.0, 1.0, 5), "share of the sum of accuracies")
    plane.line([(0.0, 0.0), (1.0, 1.0)], MUTED, width=1.2, dash=DASHED)
    kinds = []
    for state, summary in report.states.items():
        gini = "undefined" if summary.gini is None else f"{summary.gini:.3f}"
        kinds.append(Kind(f"{state}: Gini index {gini}", _STATES[state]))
        if summary.lorenz:
            plane.line(summary.lorenz, _STATES[state])
            if len(report.before.classes) <= _MANY:
                plane.dots([Dot(share, part, _STATES[state]) for share, part in summary.lorenz], size=2.8)
    legend(drawing, kinds)
    return _finished(drawing, report.title, 0)
