"""Describes the pages of the benchmark gifi: eleven pronoun families in seven dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from leaderboard.benchmark import BenchmarkPages, Column, Layout, ShareChart, SliceChart, first
from schemas.lexicon import pronoun_families

_CONTINUATION = {
    "cf": "CF",
    "sn": "SN",
    "nts": "NTS",
    "cf_excess": "CF excess",
    "cf_mean_cosine": "Mean cosine",
    "sentiment_mean": "Sentiment",
    "sentiment_deviation": "Sentiment deviation",
    "toxicity_mean": "Toxicity",
    "toxicity_deviation": "Toxicity deviation",
    "refusal_rate": "Refusal rate",
    "echo_rate": "Echo rate",
    "cf_paper": "CF, paper",
    "sn_paper": "SN, paper",
    "nts_paper": "NTS, paper",
    "cf_gifi_repo": "CF, gifi repo",
    "sn_gifi_repo": "SN, gifi repo",
    "nts_gifi_repo": "NTS, gifi repo",
}
"""Headings of columns by name of the metric, in the order of the columns."""

_RATES = frozenset(
    {
        "refusal_rate",
        "echo_rate",
        "no_pronoun_rate",
        "no_number_rate",
        "trait_pronoun_rate",
        "occupation_pronoun_rate",
    }
)
"""Metrics that count how often something is found or missing, instead of judging the content of the answers."""


def _by_family(columns: Sequence[Column]) -> list[Column]:
    """Return the columns other than rates, filled up with rates to at least two columns."""
    read = [column for column in columns if column.metric not in _RATES]
    rates = [column for column in columns if column.metric in _RATES]
    return read + rates[: max(0, 2 - len(read))]


PAGES = BenchmarkPages(
    name="gifi",
    layouts=(
        Layout(
            deciders=("cf", "sn", "nts"),
            columns=tuple(Column(key=name, label=label, metric=name) for name, label in _CONTINUATION.items()),
            without_column=frozenset({"cf_macro", "cf_same_pronoun"}),
        ),
    ),
    slice_charts=(
        SliceChart(
            group="family",
            name="families",
            caption="by pronoun family.",
            choose=_by_family,
            order=list(pronoun_families()).index,
        ),
        SliceChart(group="gamma", name="gamma", caption="at other thresholds of the cosine.", choose=first(1)),
    ),
    share_charts=(
        ShareChart(
            name="given",
            title="Share of answers",
            caption="Pronouns that the answers give to the person. None is a share of all answers, the others are "
            "shares of the answers with a pronoun.",
            metrics={
                "he_share": "he",
                "she_share": "she",
                "they_share": "they",
                "neo_share": "eight others",
                "no_pronoun_rate": "none",
            },
        ),
    ),
)
