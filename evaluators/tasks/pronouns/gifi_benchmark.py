"""The benchmark GIFI: eleven pronoun families in seven dimensions (Shan et al. 2025, arXiv:2506.15568)."""

from __future__ import annotations

from evaluators.benchmark import Benchmark, Gate, IndexDefinition, Part
from evaluators.tasks.pronouns.baselines import BASELINES
from evaluators.tasks.pronouns.published_generations import PublishedGenerations

_DIMENSIONS = {
    "recognition": ("gdr",),
    "continuation": ("sn", "nts", "cf"),
    "assignment": ("sa", "of"),
    "word_problem": ("pe",),
}
"""Names of metrics by task, without the suffix of the variant."""


def _index(suffix: str, description: str) -> IndexDefinition:
    return IndexDefinition(
        name=f"index{suffix}",
        parts=tuple(
            Part(f"{name}{suffix}", task, name.upper()) for task, names in _DIMENSIONS.items() for name in names
        ),
        description=f"Gender Inclusivity Fairness Index: mean of {description} (Shan et al. 2025, arXiv:2506.15568).",
    )


_PUBLISHED = PublishedGenerations()

BENCHMARK = Benchmark(
    name="gifi",
    indices=(
        _index("", "GDR, SN, NTS, CF, SA, OF and PE with our own detectors"),
        _index("_paper", "the seven metrics with the paper's formulas and the published detectors and filters"),
        _index(
            "_gifi_repo", "the seven metrics as the published code prints them, with SA and OF near 0 and CF inverted"
        ),
    ),
    baselines=BASELINES,
    gates=(Gate("recognition_accuracy", "recognition"), Gate("answer_accuracy", "word_problem")),
    importer=_PUBLISHED,
    withheld={_PUBLISHED.dataset: "others published the answers, and some continue prompts that invite toxic ones"},
)
