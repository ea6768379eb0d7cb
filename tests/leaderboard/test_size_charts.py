"""The chart of values over sizes of models."""

from __future__ import annotations

import dataclasses
import math
import re

import pytest

from leaderboard.charts.scatter import SizedModel, Training, size_chart
from tests.schemas import examples


def sized(label: str, parameters: int, value: float, kind: Training = "tuned") -> SizedModel:
    interval = dataclasses.replace(examples.metric(), value=value).interval
    assert interval is not None
    metric = dataclasses.replace(
        examples.metric(), value=value, interval=dataclasses.replace(interval, low=value - 0.02, high=value + 0.02)
    )
    return SizedModel(label, parameters, kind, metric)


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


def test_two_models_or_models_without_a_value_give_no_chart() -> None:
    unknown = SizedModel("Unknown", 10**9, "base", examples.undefined_metric())
    assert size_chart(MODELS[:2], title="Evenness") is None
    assert size_chart((*MODELS[:2], unknown), title="Evenness") is None


def test_models_of_one_size_have_a_chart_too() -> None:
    chart = size_chart([sized(name, 7 * 10**9, 0.5) for name in ("A", "B", "C")], title="Evenness")
    assert chart is not None
    assert "NaN" not in chart.svg
    assert {"1 B", "10 B"} <= set(re.findall(r">([^<>]+)</text>", chart.svg))
