"""Drawn numbers, and texts of strangers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leaderboard.pages import markup
from schemas.documents.result import Interval, Metric
from tests.schemas import examples


def metric(value: float | None, *, low: float = 0.0, minimum: float = 0.0) -> Metric:
    if value is None:
        return examples.undefined_metric()
    interval = Interval(low=low, high=0.6, level=0.95, method="m", n_clusters=5, n_resamples=10)
    return replace(examples.metric(), value=value, interval=interval, ideal=1.0, minimum=minimum, maximum=1.0)


def test_the_whisker_lies_where_the_numbers_are() -> None:
    drawn = str(markup.whisker(metric(0.5, low=0.25)))
    dot = float(re.search(r'cx="([\d.]+)"', drawn)[1])  # type: ignore[index]
    ends = [float(x) for x in re.search(r'bb-range" d="M([\d.]+) 6H([\d.]+)"', drawn).groups()]  # type: ignore[union-attr]
    left, right = 3.0, 81.0
    assert dot == (left + right) / 2
    assert ends[0] == left + 0.25 * (right - left)
    assert abs(ends[1] - (left + 0.6 * (right - left))) < 0.06
    assert markup.whisker(metric(None)) == ""


@pytest.mark.slow
@given(st.text())
def test_markdown_of_strangers_holds_nothing_to_act_on(text: str) -> None:
    escaped = str(markup.plain_markdown(text))
    without_references = re.sub(r"&#\d+;", "", escaped)
    assert not re.search(r"[<>&*_`\[\]()#!|~\\{}$\"']", without_references)
    assert "\n" not in escaped


@given(st.text(min_size=1), st.text(min_size=1))
@example("acme/small", "acme__small")
@example("acme/small", "Acme/small")
def test_file_names_are_safe_and_differ(first: str, second: str) -> None:
    names = markup.slug(first), markup.slug(second)
    for name in names:
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name)
        assert name != "index"
    assert (first == second) == (names[0] == names[1])


def test_front_matter_is_one_quoted_line() -> None:
    assert markup.front_matter('a "b"\n<script>\\') == '"a &quot;b&quot; &lt;script&gt;&#92;"'
