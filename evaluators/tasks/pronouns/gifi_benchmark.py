"""The benchmark GIFI: eleven pronoun families in seven dimensions (Shan et al. 2025, arXiv:2506.15568).

Its baselines ignore the content of a text. Their answers fit every task on such texts: a sentence with a pronoun, and a
number in case a problem asks for one. Answers that are the same in all families make most measures of equality ideal;
the baselines show how little those measures mean without an accuracy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise

from evaluators.backend import GenerateRequest, Request, Response
from evaluators.baseline import Baseline
from evaluators.benchmark import Benchmark, Gate, IndexDefinition, Part
from evaluators.tasks.pronouns.published_generations import PublishedGenerations
from schemas.lexicon import pronoun_families
from schemas.lexicon.languages import LANGUAGE_CODES

_CONSTANT = "11"
"""Answer of baselines that solve no problem: the most frequent right answer of the embedded texts.

A number that is never right would not show what a constant can achieve.
"""


def _sentence(family: str, number: str) -> str:
    # In other languages the name of a family is its nominative.
    nominative = pronoun_families()[family].forms["nominative"] if family in pronoun_families() else family
    return f" {nominative} smiled. The answer is {number}."


def _numbers(request: GenerateRequest) -> list[str]:
    """Return the numbers in the last question of a prompt; a constant if there is none."""
    return re.findall(r"\d+(?:\.\d+)?", request.prompt.rpartition("Q:")[2]) or [_CONSTANT]


def _families(request: GenerateRequest) -> list[str]:
    """Return the families of a request's language: the masculine, the feminine, a neutral or new one, and the rest."""
    families = request.facts.get("families")
    return list(pronoun_families()) if families is None else families.split()


def _constant(position: int, request: GenerateRequest) -> str:
    return _sentence(_families(request)[position], _CONSTANT)


def _drawn(among: Sequence[str], request: GenerateRequest) -> str:
    return among[request.sampling_seed % len(among)]


def _right(request: GenerateRequest) -> str:
    """Return the right answer as far as the request's facts have one, with a family drawn by its seed if need be."""
    facts = request.facts
    number = Fraction(facts.get("answer", _CONSTANT))
    return _sentence(facts.get("family") or _drawn(_families(request), request), f"{float(number):.10g}")


def _most_frequent(requests: Mapping[str, Request]) -> Mapping[str, str]:
    """Map all requests to one whose right answer (the number, or else the family) is the most frequent."""
    for name in ("answer", "family"):
        counts = Counter(request.facts[name] for request in requests.values() if name in request.facts)
        if counts:
            value = max(counts, key=lambda fact: (counts[fact], fact))
            first = min(key for key, request in requests.items() if request.facts.get(name) == value)
            return dict.fromkeys(requests, first)
    return dict.fromkeys(requests, min(requests))


def _defined(
    name: str,
    description: str,
    text: Callable[[GenerateRequest], str],
    source_of: Callable[[Mapping[str, Request]], Mapping[str, str]] | None = None,
) -> Baseline:
    """Return a baseline that writes a text about each request, or about another one that ``source_of`` names."""

    def answer(request: Request) -> Response:
        if not isinstance(request, GenerateRequest):
            return Response(status="failed", error="this baseline writes texts and chooses among no options")
        return Response(status="answered", text=text(request), finish_reason="stop")

    def answer_together(requests: Mapping[str, Request]) -> Mapping[str, Response]:
        assert source_of is not None
        return {sha256: answer(requests[source]) for sha256, source in source_of(requests).items()}

    return Baseline(
        name=name,
        description=description,
        facts=frozenset(),
        answer=answer,
        capabilities=frozenset({"generation"}),
        answer_together=None if source_of is None else answer_together,
    )


BASELINES = (
    _defined("echo", "the prompt itself", lambda request: request.prompt),
    _defined("empty", "an empty text", lambda request: ""),
    _defined("always-he", f"he for everybody, and {_CONSTANT} for every problem", partial(_constant, 0)),
    _defined("always-she", f"she for everybody, and {_CONSTANT} for every problem", partial(_constant, 1)),
    _defined("always-they", f"they for everybody, and {_CONSTANT} for every problem", partial(_constant, 2)),
    _defined(
        "last-number",
        "they for everybody, and the last number of a problem",
        lambda request: _sentence(_families(request)[2], _numbers(request)[-1]),
    ),
    _defined(
        "random-family",
        "a coin with a side for each family, thrown for anybody; any number of a problem",
        lambda request: _sentence(_drawn(_families(request), request), _drawn(_numbers(request), request)),
    ),
    _defined("majority", "the most frequent right answer, to every text", _right, _most_frequent),
    # To the next text by hash, and to the last one that to the first.
    _defined(
        "shuffled",
        "the right answer to another text",
        _right,
        lambda requests: dict(pairwise([*(order := sorted(requests)), *order[:1]])),
    ),
)
"""All baselines, in the order in which they are scored."""

_DIMENSIONS = {
    "recognition": ("gdr",),
    "continuation": ("sn", "nts", "cf"),
    "assignment": ("sa", "of"),
    "word_problem": ("pe",),
}
"""Names of metrics by task, without the suffix of the variant."""
_FREE = ("continuation", "assignment")
"""Tasks without right answers, in which a constant is as even as can be."""


# Each variant has its own index: the paper's formulas and ours are never averaged together.
def _index(suffix: str, description: str) -> IndexDefinition:
    return IndexDefinition(
        name=f"index{suffix}",
        parts=tuple(
            Part(f"{name}{suffix}", task, name.upper(), answering="specific_rate" if task in _FREE else None)
            for task, names in _DIMENSIONS.items()
            for name in names
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
    headline_metrics=(
        *("recognition_accuracy", "marker_gap", "answer_accuracy"),
        *(name for names in _DIMENSIONS.values() for name in names),
    ),
    gates=(
        Gate("recognition_accuracy", "recognition"),
        Gate("answer_accuracy", "word_problem"),
        *(Gate("prompt_fit", task, only_reading=True) for task in _FREE),
        *(Gate("recognition_accuracy", f"{language}_recognition", own_task_only=True) for language in LANGUAGE_CODES),
    ),
    embedded_sources={
        "gifi-markers": "markers",
        **{f"gifi-{language}": language for language in LANGUAGE_CODES},
    },
    importer=_PUBLISHED,
    withheld={_PUBLISHED.dataset: "others published the answers, and some continue prompts that invite toxic ones"},
)
