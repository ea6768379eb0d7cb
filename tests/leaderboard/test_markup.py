"""Numbers for people, texts of strangers, and which groups of items differ."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.pages import markup
from leaderboard.pages.model_views import distances, extremes
from schemas.documents.result import Interval, Metric
from tests.schemas import examples

MINUS = "\N{MINUS SIGN}"


def metric(value: float | None, *, low: float = 0.0, minimum: float = 0.0) -> Metric:
    if value is None:
        return examples.undefined_metric()
    interval = Interval(low=low, high=0.6, level=0.95, method="m", n_clusters=5, n_resamples=10)
    return replace(examples.metric(), value=value, interval=interval, ideal=1.0, minimum=minimum, maximum=1.0)


def test_signed_numbers_show_their_sign_and_zero_has_none() -> None:
    assert markup.metric_number(metric(-0.25, minimum=-1.0)) == f"{MINUS}0.250"
    assert markup.metric_number(metric(0.25, minimum=-1.0)) == "+0.250"
    assert markup.metric_number(metric(-0.00001, minimum=-1.0)) == "0.000"
    assert markup.metric_number(metric(0.25)) == "0.250"


def test_the_whisker_lies_where_the_numbers_are() -> None:
    drawn = str(markup.whisker(metric(0.5, low=0.25)))
    dot = float(re.search(r'cx="([\d.]+)"', drawn)[1])  # type: ignore[index]
    ends = [float(x) for x in re.search(r'bb-range" d="M([\d.]+) 6H([\d.]+)"', drawn).groups()]  # type: ignore[union-attr]
    left, right = 3.0, 81.0
    assert dot == (left + right) / 2
    assert ends[0] == left + 0.25 * (right - left)
    assert abs(ends[1] - (left + 0.6 * (right - left))) < 0.06
    assert markup.whisker(metric(None)) == ""


@given(st.text())
def test_markdown_of_strangers_holds_nothing_to_act_on(text: str) -> None:
    escaped = str(markup.plain_markdown(text))
    without_references = re.sub(r"&#\d+;", "", escaped)
    assert not re.search(r"[<>&*_`\[\]()#!|~\\{}$\"']", without_references)
    assert "\n" not in escaped


@given(st.text(min_size=1), st.text(min_size=1))
def test_file_names_are_safe_and_differ(first: str, second: str) -> None:
    names = markup.slug(first), markup.slug(second)
    for name in names:
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name)
        assert name != "index"
    assert (first == second) == (names[0] == names[1])


def test_names_that_would_collide_are_kept_apart() -> None:
    ids = ["acme/small", "acme__small", "Acme/small", "ACME/SMALL", "acme/small ", "acme//small", "acme/_small"]
    assert len({markup.slug(model_id) for model_id in ids}) == len(ids)
    assert markup.slug("acme/small") == "acme__small"


def test_front_matter_is_one_quoted_line() -> None:
    assert markup.front_matter('a "b"\n<script>\\') == '"a &quot;b&quot; &lt;script&gt;&#92;"'


def of_slice(value: float | None, low: float = 0.0, high: float = 0.0, ideal: float | None = 1.0) -> Metric:
    if value is None:
        return replace(examples.undefined_metric(), ideal=ideal)
    interval = Interval(low=low, high=high, level=0.95, method="m", n_clusters=40, n_resamples=1000)
    return replace(examples.metric(), value=value, interval=interval, ideal=ideal, minimum=0.0, maximum=1.0)


def test_groups_differ_only_if_the_intervals_of_the_extremes_do_not_meet() -> None:
    best, middle, worst = of_slice(0.9, 0.8, 1.0), of_slice(0.6, 0.4, 0.9), of_slice(0.3, 0.1, 0.5)
    found = extremes([("old", worst), ("adult", middle), ("young", best)])
    assert found == (("young", best), ("old", worst), "")
    assert extremes([("young", best), ("adult", middle)]) is None
    assert extremes([("old", worst), ("unknown", of_slice(None))]) is None
    assert extremes([(str(n), best if n else worst) for n in range(40)]) is None
    # The lowest value is the worst, however long its interval is; a group of too few clusters is left out in words.
    lowest, of_few = of_slice(0.0, 0.0, 0.7), replace(of_slice(0.0), interval=None, interval_reason="too few")
    found = extremes([("old", worst), ("ill", lowest), ("poor", of_few), ("young", best)])
    assert found == (("young", best), ("ill", lowest), ", of the 3 with an interval")


def test_an_ideal_inside_the_range_is_missed_on_both_sides() -> None:
    below, above = of_slice(0.3, 0.25, 0.35, ideal=0.5), of_slice(0.75, 0.7, 0.8, ideal=0.5)
    assert distances(below) == pytest.approx((0.15, 0.25))
    assert distances(above) == pytest.approx((0.2, 0.3))
    assert distances(of_slice(0.5, 0.4, 0.6, ideal=0.5)) == pytest.approx((0.0, 0.1))
    assert distances(of_slice(0.5, 0.4, 0.6, ideal=None)) is None
