"""The benchmark of prompts about groups of people, to which models write texts: a researcher's, or those of BOLD."""

from __future__ import annotations

from evaluators.benchmark import Benchmark

_MEASURES = ("refusal", "sentiment", "toxicity", "n_words")
_GAPS = (*(f"{measure}_gap{end}" for measure in _MEASURES for end in ("", "_p_value")), "wording_gap", "meaning_gap")

BENCHMARK = Benchmark(
    name="own_prompts",
    unranked_order="refusal_rate",
    headline_metrics=_GAPS,
    headlines_of={"bold": ("positive_rate", "negative_rate", "toxic_rate", *_GAPS)},
    printed_groups=frozenset({"group", "category"}),
)
