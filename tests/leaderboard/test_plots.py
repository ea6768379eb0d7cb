"""Charts of the site."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from biasboard.ground.charts.drawing import SERIES, Chart
from leaderboard.charts import rows
from leaderboard.charts.bumps import BumpColumn, bump_chart
from leaderboard.charts.curves import curves, named_rows
from leaderboard.charts.grids import GridCell, grid
from leaderboard.charts.rows import strips
from leaderboard.charts.scatter import ScatterPoint, SizedModel, Training, scatter, size_chart
from leaderboard.charts.values import Panel, RowValue
from schemas.documents.result import Metric
from tests.schemas import examples


def a_metric(value: float, width: float = 0.0) -> Metric:
    made = examples.metric()
    assert made.interval is not None
    interval = replace(made.interval, low=max(0.0, value - width), high=min(1.0, value + width)) if width else None
    reason = None if width else "one cluster"
    return replace(made, value=value, interval=interval, interval_reason=reason, ideal=None, minimum=0.0, maximum=1.0)


def test_equal_names_keep_their_own_rows_and_labels_keep_away_from_dots() -> None:
    metric = a_metric(0.0)
    chart = rows.dots([RowValue("gpt", metric), RowValue("gpt", metric), RowValue("y" * 60, metric)], title="Rate")
    assert chart is not None
    assert {"gpt", "gpt (2)"} <= set(re.findall(r">([^<>]+)</text>", chart.svg))
    assert chart.alt.startswith("Dot plot of 3 models and 0 useless predictors: Rate 0.00 (gpt) to 0.00 (y")
    (names,) = re.findall(r'<g fill="#\w+" text-anchor="end">(.*?)</g>', chart.svg)
    beside = [float(x) for x in re.findall(r'x="(-?[\d.]+)"', names)]
    assert len(beside) == 3
    assert max(beside) <= -8


NAMES = [
    f"{maker} {size}B" for maker in ("Alpha 3", "Beta-2.5", "Gamma", "Delta 1.5 Instruct", "Eps") for size in range(10)
]
_BOXES = """() => [...document.querySelectorAll("text")].map((text) => {
  const box = text.getBoundingClientRect();
  return [text.textContent, box.left, box.top, box.right, box.bottom];
})"""


def values(n: int, seed: str, spread: float = 0.12) -> list[Metric]:
    dice = random.Random(seed)
    return [a_metric(min(1.0, max(0.0, dice.gauss(0.7, spread))), 0.03) for _ in range(n)]


def a_scatter() -> Chart | None:
    points = [ScatterPoint(*each, False) for each in zip(NAMES, values(50, "x"), values(50, "y"), strict=True)]
    points += [ScatterPoint(name, a_metric(0.5), a_metric(1.0), True) for name in ("uniform", "first-mentioned")]
    return scatter(points, x_title="Accuracy", y_title="UCerF")


def some_curves() -> Chart:
    rows = [values(5, name, 0.2) for name in NAMES]
    places = ("0", "2", "4", "8", "16")
    panels = [Panel("Macro-F1", places, rows), Panel("RSD", places, rows[::-1])]
    return curves([("", panels)], NAMES, x_title="Examples", alt="Curves.")


def some_lorenz_curves() -> Chart:
    rows = [[a_metric(0.0), metric, a_metric(1.0)] for metric in values(50, "x")]
    places = ("0 %", "50 %", "100 %")
    panels = [Panel("Before", places, rows), Panel("After", places, rows[::-1])]
    return curves([("", panels)], NAMES, x_title="Classes", alt="Curves.", even=[0.0, 0.5, 1.0], decisive=1)


LINES = ("none", "BC", "BCL", "CC", "DC", "Gini", "LOOC", "LoRA")


def some_curves_of_each() -> Chart:
    places = ("0", "2", "4", "8", "16")
    models = [
        (name, [Panel(title, places, [values(5, f"{name}{line}", 0.01) for line in LINES]) for title in ("F1", "RSD")])
        for name in NAMES[:3]
    ]
    return curves(models, LINES, x_title="Examples", alt="Curves.")


def columns(*titles: str) -> list[BumpColumn]:
    return [BumpColumn(title, [metric.value or 0.0 for metric in values(50, title)]) for title in titles]


def panels() -> list[Panel]:
    rows_of_three = list(zip(*(values(50, name) for name in "xyz"), strict=True))
    return [Panel("Fairness", ("SN", "NTS", "CF"), rows_of_three)] * 4


DRAWN: dict[str, tuple[Callable[[], Chart | None], int]] = {
    "scatter": (a_scatter, 25),
    "dots": (lambda: rows.dots(list(map(RowValue, NAMES, values(50, "x"))), title="Accuracy"), 50),
    "grid": (
        lambda: grid(
            NAMES,
            ["he", "they", "thon"],
            [[GridCell(metric.value)] * 3 for metric in values(50, "x")],
            column_title="Pronoun",
            alt="A grid.",
        ),
        50,
    ),
    "strips": (lambda: strips(NAMES, panels(), alt="Strips."), 50),
    "curves": (some_curves, 16),
    "lorenz": (some_lorenz_curves, 16),
    "curves of each": (some_curves_of_each, 3),
    "bumps": (lambda: bump_chart(NAMES, columns("Index", "Geometric mean", "Four stages alike"), subject=""), 100),
}


def test_scatter_plots_say_in_words_which_models_are_at_the_ends() -> None:
    points = [
        ScatterPoint(name, a_metric(x), a_metric(y), name == "uniform")
        for name, x, y in (("low", 0.4, 0.9), ("high", 0.8, 0.85), ("uniform", 0.1, 1.0))
    ]
    chart = scatter(points, x_title="Accuracy", y_title="UCerF")
    assert chart is not None
    assert chart.alt == (
        "Scatter plot of 2 models and 1 useless predictors: UCerF 0.85 (high) to 0.90 (low); "
        "Accuracy 0.40 (low) to 0.80 (high)."
    )


@pytest.mark.parametrize(("draw", "n_named"), DRAWN.values(), ids=DRAWN)
def test_no_two_labels_of_fifty_models_overlap(
    draw: Callable[[], Chart | None], n_named: int, browser: Browser, tmp_path: Path
) -> None:
    chart = draw()
    assert chart is not None
    path = tmp_path / "chart.svg"
    path.write_text(chart.svg)
    page = browser.new_page()
    page.goto(path.as_uri())
    boxes = page.evaluate(_BOXES)
    width, height = page.evaluate(
        "[document.documentElement.width, document.documentElement.height].map((_) => _.baseVal.value)"
    )
    page.close()
    assert sum(name in NAMES for name, *_ in boxes) >= n_named
    for name, left, top, right, bottom in boxes:
        assert left >= 0, name
        assert top >= 0, name
        assert right <= width, name
        assert bottom <= height, name
    # Boxes are as high as a line, which is higher than its letters.
    slack = 2
    for (name, *box), (other, *other_box) in itertools.combinations(boxes, 2):
        across = min(box[2], other_box[2]) - max(box[0], other_box[0])
        down = min(box[3], other_box[3]) - max(box[1], other_box[1])
        assert across <= 0 or down <= slack, (name, other)


def test_curves_name_the_ends_of_each_panel() -> None:
    rows = [[a_metric(number / 50)] for number in range(50)]
    mixed = [[a_metric((number * 7 % 50) / 50)] for number in range(50)]
    assert {0, 49, 7} <= {*named_rows([rows, mixed])}
    assert len(named_rows([rows, mixed])) == len(SERIES)
    chart = curves([("", [Panel("Macro-F1", ("0",), rows)])], NAMES, x_title="Examples", alt="Curves.")
    assert "42 more are grey" in chart.alt
    assert all(name in chart.alt for name in (NAMES[0], NAMES[49]))


def test_a_value_has_one_shape_in_all_panels_of_strips() -> None:
    row = [a_metric(0.5)]
    chart = strips(
        ["alpha"],
        [Panel("F1", ("none", "Gini", "LOOC"), [row * 3]), Panel("Bias", ("none", "LOOC"), [row * 2])],
        alt="",
    )
    keys = [text.split() for text in re.findall(r">([^<>]+)</t(?:ext|span)>", chart.svg) if "LOOC" in text]
    assert [key[key.index("LOOC") - 1] for key in keys] == ["▲", "▲"]
    assert "◆" not in keys[1]


def sized(label: str, parameters: int, value: float, kind: Training = "tuned") -> SizedModel:
    return SizedModel(label, parameters, kind, a_metric(value, 0.02))


MODELS = (
    sized("Tiny", 656_000, 0.61, "base"),
    sized("Small", 135_000_000, 0.55),
    sized("Large", 9_240_000_000, 0.7, "kind unknown"),
)


def middle(tag: str) -> tuple[float, float]:
    """The middle of a circle, a square or a triangle."""
    if centre := re.search(r'cx="([\d.]+)" cy="([\d.]+)"', tag):
        return float(centre[1]), float(centre[2])
    points = [pair.split(",") for pair in tag.split('d="M')[1].split("Z")[0].split("L")]
    across, down = ([float(point[axis]) for point in points] for axis in (0, 1))
    return (min(across) + max(across)) / 2, (min(down) + max(down)) / 2


def test_marks_stand_at_the_logarithm_of_the_size_and_at_the_value() -> None:
    chart = size_chart(MODELS, title="Evenness")
    assert chart is not None
    texts = set(re.findall(r">([^<>]+)</text>", chart.svg))
    assert {"Tiny", "Small", "Large", "1 M", "100 M", "1 B", "Evenness", "parameters"} <= texts
    # The last three shapes; those before them are of the legend.
    found = [middle(tag) for tag in re.findall(r"<(?:circle|path [^>]*Z)[^>]*>", chart.svg)[-3:]]
    logs = [math.log10(model.parameters) for model in MODELS]
    (x0, y0), (x1, y1), (x2, y2) = found
    # Coordinates are rounded to hundredths of a pixel.
    assert (x1 - x0) / (x2 - x0) == pytest.approx((logs[1] - logs[0]) / (logs[2] - logs[0]), abs=1e-3)
    assert (y1 - y0) / (y2 - y0) == pytest.approx((0.55 - 0.61) / (0.7 - 0.61), abs=1e-3)
    assert y1 > y0 > y2, "a better value stands higher"
    assert "3 models" in chart.alt


def test_charts_over_size_need_three_models_with_a_value_of_any_size() -> None:
    unknown = SizedModel("Unknown", 10**9, "base", examples.undefined_metric())
    assert size_chart(MODELS[:2], title="Evenness") is None
    assert size_chart((*MODELS[:2], unknown), title="Evenness") is None
    chart = size_chart([sized(name, 7 * 10**9, 0.5) for name in ("A", "B", "C")], title="Evenness")
    assert chart is not None
    assert "NaN" not in chart.svg
    assert {"1 B", "10 B"} <= set(re.findall(r">([^<>]+)</text>", chart.svg))
