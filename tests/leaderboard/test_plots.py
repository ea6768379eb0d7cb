"""Charts of the site."""

from __future__ import annotations

import re

from leaderboard.pages import plots
from schemas.documents.result import Metric


def test_equal_names_keep_their_own_rows_and_labels_keep_away_from_dots() -> None:
    metric = Metric(
        name="rate",
        version="1.0",
        value=0.0,
        reason=None,
        interval=None,
        interval_reason="one cluster",
        n=1,
        n_excluded=0,
        unit="items",
        ideal=None,
        minimum=0.0,
        maximum=1.0,
        group={},
    )
    chart = plots.dots([plots.Dot("gpt", metric), plots.Dot("gpt", metric), plots.Dot("y" * 60, metric)], title="Rate")
    assert chart is not None
    assert {"gpt", "gpt (2)"} <= set(re.findall(r">([^<>]+)</text>", chart.svg))
    assert "3 rows" in chart.alt
    ends = [float(x) for x in re.findall(r'text-anchor="end" transform="translate\((-?[\d.]+),', chart.svg)]
    beside = [end for end in ends if end <= 0]
    assert len(beside) == 3
    assert max(beside) <= -8
