"""Bump charts: places and rank correlations against plain loops."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

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


def test_rows_stand_by_their_distance_from_the_ideal_with_the_number_of_each_column() -> None:
    chart = bump_chart(
        NAMES,
        [
            BumpColumn("Index", [0.9, 0.8, 0.7, 0.6]),
            BumpColumn("Gap, with a long title", [0.3, -0.1, 0.2, -0.4], ideal=0.0),
        ],
        subject="by two measures",
    )
    assert chart is not None
    first, second, third, fourth = lines(chart.svg)[-4:]
    assert first == ["alpha", "0.900", "-0.100", "beta"]
    assert second == ["beta", "0.800", "0.200", "gamma"]
    assert third == ["gamma", "0.700", "0.300", "alpha"]
    assert fourth == ["delta", "0.600", "-0.400", "delta"]
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
    chart = bump_chart(NAMES, orders, subject="")
    assert chart is not None
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
    chart = bump_chart(NAMES, [BumpColumn("a", [0.1, 0.2, 0.3, 0.4]), BumpColumn("tied", [0.5] * 4)], subject="")
    assert chart is not None
    assert "tied: τ undefined" in chart.alt


def published_parts() -> dict[str, dict[str, float]]:
    """The parts of the index of each published model that has all of them and recognises pronouns."""
    found: dict[str, dict[str, float]] = {}
    for path in Path("leaderboard/results/gifi-published-compat@1.0.0").glob("*/*/result.json"):
        for metric in json.loads(path.read_text("utf-8"))["metrics"]:
            name = metric["name"] + metric["group"].get("gamma", "")
            if metric["value"] is not None and metric["group"].keys() <= {"gamma"}:
                found.setdefault(path.parts[-3], {})[name] = metric["value"]
    parts = {"gdr", "sn", "nts", "cf", "sa", "of", "pe"}
    models = {name: values for name, values in found.items() if not name.startswith("baseline__") and name != "gpt2"}
    return {name: values for name, values in models.items() if values.keys() >= parts}


def test_the_orders_of_published_models_are_those_of_plain_loops_and_of_the_docs() -> None:
    published = published_parts()
    assert len(published) == 12
    columns: dict[str, list[float]] = {}
    for values in published.values():
        parts = [values[name] for name in ("gdr", "sn", "nts", "cf", "sa", "of", "pe")]
        product = 1.0
        for part in parts:
            product *= part
        recognition, fairness = values["gdr"], (values["sn"] + values["nts"] + values["cf"]) / 3
        roles, performance = (values["sa"] + values["of"]) / 2, values["pe"]
        for title, value in (
            ("Index", sum(parts) / 7),
            ("CF at gamma 0.2", (sum(parts) - values["cf"] + values["cf0.20"]) / 7),
            ("CF at gamma 0.4", (sum(parts) - values["cf"] + values["cf0.40"]) / 7),
            ("Four stages alike", (recognition + fairness + roles + performance) / 4),
            ("Geometric mean", product ** (1 / 7)),
            ("Lowest part", sorted(parts)[0]),
        ):
            columns.setdefault(title, []).append(value)
    (figure,) = (figure for figure in load_pages("gifi").figures if isinstance(figure, BumpChart))
    own: dict[str, list[float | str]] = {
        ordering.label.replace("\N{NO-BREAK SPACE}", " "): [
            ordering.together(
                [
                    values[shown.metric + shown.group.get("gamma", "")]
                    if shown.metric != "index"
                    else sum(values[name] for name in ("gdr", "sn", "nts", "cf", "sa", "of", "pe")) / 7
                    for shown in ordering.parts
                ]
            )
            for values in published.values()
        ]
        for ordering in figure.orderings
    }
    for title, column in columns.items():
        assert own[title] == pytest.approx(column), title
    told = {title: f"{tau_b(columns['Index'], column):.2f}"[1:] for title, column in columns.items()}
    docs = Path("site/docs/pronouns.md").read_text("utf-8")
    for title, tau in [*told.items()][1:]:
        assert f"| {title} | {tau} |" in docs


def test_a_geometric_mean_of_a_part_at_0_is_unknown_with_the_reason() -> None:
    (figure,) = (figure for figure in load_pages("gifi").figures if isinstance(figure, BumpChart))
    together = {ordering.label: ordering.together for ordering in figure.orderings}
    values = [0.5] * 6
    assert together["Geometric mean"]([*values, 0.5]) == pytest.approx(0.5)
    for bad in (0.0, -0.1):
        assert together["Geometric mean"]([*values, bad]) == "no geometric mean, since a part is not above 0"
        assert together["Lowest part"]([*values, bad]) == bad
