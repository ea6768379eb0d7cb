"""Eleven pronoun families in seven dimensions: GIFI (Shan et al. 2025, arXiv:2506.15568)."""

from __future__ import annotations

from evaluators.benchmark import Benchmark, IndexDefinition, Part
from evaluators.pronouns.published_generations import PublishedGenerations

_DIMENSIONS = {
    "recognition": ("gdr",),
    "continuation": ("sn", "nts", "cf"),
    "assignment": ("sa", "of"),
    "word_problem": ("pe",),
}
"""Metrics by task, without the suffix of their variant."""


def _index(suffix: str, description: str) -> IndexDefinition:
    return IndexDefinition(
        name=f"index{suffix}",
        parts=tuple(Part(f"{name}{suffix}", task) for task, names in _DIMENSIONS.items() for name in names),
        description=f"Gender Inclusivity Fairness Index: mean of {description} (Shan et al. 2025, arXiv:2506.15568).",
    )


BENCHMARK = Benchmark(
    name="gifi",
    indices=(
        _index("", "GDR, SN, NTS, CF, SA, OF and PE on careful reading"),
        _index("_paper", "the seven by the paper's formulas on the published detectors and filters"),
        _index("_gifi_repo", "the seven as the published code prints them, SA and OF near 0 and CF turned round"),
    ),
    unparsed_is_wrong=frozenset({"word_problem"}),
    importer=PublishedGenerations(),
)
