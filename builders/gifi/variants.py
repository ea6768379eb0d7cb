"""Turns each template into its variants, one item for each pronoun family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from builders.dataset.output import Rule
from schemas.items.pronoun_text import Antecedent, PronounTextItem
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon import pronoun_families
from schemas.lexicon.pronoun_template import Template

SAME_TEXT = Rule(
    name="same_text_as_other_family",
    description="another family has the same form in every slot of the template (em and emself are of e and of ey)",
)
ENDS_IN_PRONOUN = Rule(
    name="ends_in_pronoun",
    description="the text ends in the pronoun, so that a model may read on within the word (vis, visa)",
)
FLAG_RULES = (SAME_TEXT, ENDS_IN_PRONOUN)


class VariantFrame(NamedTuple):
    """A template with its origin and metadata."""

    template_id: str
    template: Template
    source_row: str | None
    antecedent: Antecedent | None = None
    topic: str | None = None
    answer: str | None = None
    faults: Mapping[str, Collection[str]] | None = None
    """Pronoun families whose variant has a fault, by the flag for it, for variants exactly as they were published; None
    for variants in the forms of the lexicon."""


def text_items(frames: Iterable[VariantFrame]) -> list[PronounTextItem]:
    """Return all variants of every frame as items of shape recognition or continuation."""
    return [
        PronounTextItem(**values, antecedent=frame.antecedent, topic=frame.topic)
        for frame in frames
        for values in _variants(frame)
    ]


def problem_items(frames: Iterable[VariantFrame]) -> list[WordProblemItem]:
    """Return all variants of every frame as items of shape word_problem. Each frame must have an answer."""
    return [
        WordProblemItem(**values, answer=cast(str, frame.answer)) for frame in frames for values in _variants(frame)
    ]


def _variants(frame: VariantFrame) -> Iterator[dict[str, Any]]:
    """Yield what items of both shapes have of each variant."""
    as_published = frame.faults is not None
    texts = {family: frame.template.fill(family, as_published=as_published) for family in pronoun_families()}
    n_same = Counter(texts.values())
    faults = frame.faults
    if faults is None:
        same = {family for family, text in texts.items() if n_same[text] > 1}
        faults = {SAME_TEXT.name: same, ENDS_IN_PRONOUN.name: pronoun_families() if frame.template.ends_in_slot else ()}
    for family, text in texts.items():
        yield {
            "item_id": f"{frame.template_id}-{family}",
            "template_id": frame.template_id,
            "text": text,
            "family": family,
            "cases": frame.template.cases,
            "source_row": frame.source_row,
            "flags": tuple(flag for flag, families in faults.items() if family in families),
        }
