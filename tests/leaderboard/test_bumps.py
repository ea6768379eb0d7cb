"""Bump charts: places and rank correlations against plain loops."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest

from biasboard.ground.charts.drawing import Chart
from leaderboard.benchmark_figures import BumpChart
from leaderboard.benchmark_pages import load_pages
from leaderboard.charts.bumps import BumpColumn, bump_chart
from leaderboard.pages.pictures import make_picture
from leaderboard.ranking.rank_ranges import rank_correlation
from tests.leaderboard.test_figures import lines

NAMES = ("alpha", "beta", "gamma", "delta")


def tau_b(values: Sequence[float], others: Sequence[float]) -> float:
    """Kendall's tau-b, pair by pair."""
    agreeing = reversed_ = untied = other_untied = 0
    for i in range(len(values)):
        for j in range(i):
            product = (values[i] - values[j]) * (others[i] - others[j])
            agreeing += product > 0
            reversed_ += product < 0
            untied += values[i] != values[j]
            other_untied += others[i] != others[j]
    return float((agreeing - reversed_) / (untied * other_untied) ** 0.5)


def drawn(*columns: BumpColumn) -> Chart:
    chart = bump_chart(NAMES, columns, subject="by two measures")
    assert chart is not None
    return chart


def test_rows_stand_by_their_distance_from_the_ideal_with_the_number_of_each_column() -> None:
    gap = BumpColumn("Gap, with a long title", [0.3, -0.1, 0.2, -0.4], ideal=0.0)
    chart = drawn(BumpColumn("Index", [0.9, 0.8, 0.7, 0.6]), gap)
    assert lines(chart.svg)[-4:] == [
        ["alpha", "0.900", "-0.100", "beta"],
        ["beta", "0.800", "0.200", "gamma"],
        ["gamma", "0.700", "0.300", "alpha"],
        ["delta", "0.600", "-0.400", "delta"],
    ]
    # alpha has fallen below two of three: four pairs agree, two do not.
    assert "Gap, with a long title: τ 0.33, first is beta, last delta" in chart.alt
    assert "τ 0.33" in re.findall(r">([^<>]+)</t(?:ext|span)>", chart.svg)
    assert "over these 4 models" in chart.note
    assert "Left out" not in chart.note
    # A picture without a size would not be seen on its page.
    picture = make_picture(chart, "charts/order", "How the order changes.")
    assert picture.chart.width > 6 * len(NAMES)
    assert picture.chart.height > 10 * len(NAMES)
    assert picture.caption == f"How the order changes. {chart.note}"


def test_a_row_without_a_value_is_left_out_of_all_columns_and_the_note_says_why() -> None:
    orders = [BumpColumn("a", [0.1, 0.2, 0.3, 0.4]), BumpColumn("b", [0.1, "no SA", 0.3, 0.4])]
    chart = drawn(*orders)
    assert chart.note.endswith("Left out: beta (no SA).")
    assert "over these 3 models" in chart.note
    assert "beta" not in chart.svg
    # Two rows agree or are reversed by chance.
    assert bump_chart(NAMES[:3], [order._replace(values=order.values[:3]) for order in orders], subject="") is None


def test_rank_correlations_are_those_of_plain_loops_ties_included() -> None:
    dice = random.Random(7)
    for n in range(3, 15):
        values = [dice.randrange(6) / 5 for _ in range(n)]
        others = [dice.randrange(6) / 5 for _ in range(n)]
        assert rank_correlation(values, others) == pytest.approx(tau_b(values, others))
        assert rank_correlation(values, [value**3 for value in values]) == pytest.approx(1.0)
        assert rank_correlation(values, [-value for value in values]) == pytest.approx(-1.0)
    assert rank_correlation([0.1, 0.2, 0.3], [0.5] * 3) is None
    assert "tied: τ undefined" in drawn(BumpColumn("a", [0.1, 0.2, 0.3, 0.4]), BumpColumn("tied", [0.5] * 4)).alt


PARTS = ("gdr", "sn", "nts", "cf", "sa", "of", "pe")


def published_parts() -> dict[str, dict[str, float]]:
    """The parts of the index of each published model that has all of them and recognises pronouns."""
    found: dict[str, dict[str, float]] = {}
    for path in Path("leaderboard/results/gifi-published-compat@1.0.0").glob("*/*/result.json"):
        for metric in json.loads(path.read_text("utf-8"))["metrics"]:
            name = metric["name"] + metric["group"].get("gamma", "")
            if metric["value"] is not None and metric["group"].keys() <= {"gamma"}:
                found.setdefault(path.parts[-3], {})[name] = metric["value"]
    models = {name: values for name, values in found.items() if not name.startswith("baseline__") and name != "gpt2"}
    return {name: values for name, values in models.items() if values.keys() >= {*PARTS}}


def test_the_orders_of_published_models_are_those_of_plain_loops_and_of_the_docs() -> None:
    published = [values | {"index": fmean(values[name] for name in PARTS)} for values in published_parts().values()]
    assert len(published) == 12
    columns: dict[str, list[float]] = {}
    for values in published:
        gdr, sn, nts, cf, sa, of, pe = parts = [values[name] for name in PARTS]
        for title, value in (
            ("Index", sum(parts) / 7),
            ("CF at gamma 0.2", (sum(parts) - cf + values["cf0.20"]) / 7),
            ("CF at gamma 0.4", (sum(parts) - cf + values["cf0.40"]) / 7),
            ("Four stages alike", (gdr + (sn + nts + cf) / 3 + (sa + of) / 2 + pe) / 4),
            ("Geometric mean", math.prod(parts) ** (1 / 7)),
            ("Lowest part", sorted(parts)[0]),
        ):
            columns.setdefault(title, []).append(value)
    (figure,) = (figure for figure in load_pages("gifi").figures if isinstance(figure, BumpChart))
    orderings = {one.label.replace("\N{NO-BREAK SPACE}", " "): one for one in figure.orderings}
    docs = Path("site/docs/pronouns.md").read_text("utf-8")
    for title, column in columns.items():
        names = [shown.metric + shown.group.get("gamma", "") for shown in orderings[title].parts]
        own = [orderings[title].together([values[name] for name in names]) for values in published]
        assert own == pytest.approx(column), title
        tau = f"{tau_b(columns['Index'], column):.2f}"[1:]
        assert title == "Index" or f"| {title} | {tau} |" in docs
    # A geometric mean of a part at 0 is unknown with the reason.
    assert orderings["Geometric mean"].together([0.5] * 7) == pytest.approx(0.5)
    for bad in (0.0, -0.1):
        values_of = [*[0.5] * 6, bad]
        reason = "no geometric mean, since a part is not above 0"
        assert orderings["Geometric mean"].together(values_of) == reason
        assert orderings["Lowest part"].together(values_of) == bad
