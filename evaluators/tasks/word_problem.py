"""Asks a model to solve a word problem about a person in one pronoun family, and reads the number that it arrives at.

The protocol of GIFI (arXiv:2506.15568): eight worked examples before the problem. The examples are ours. Each stands in
another pronoun family, and which ones changes from template to template, so that no family is seen more often than the
others; all variants of a template have the same examples.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from evaluators.backend import Request
from evaluators.detectors.numbers import final_number
from evaluators.pronouns.answers import NO_NUMBER
from evaluators.pronouns.prompts import generation_prompts, generation_requests
from evaluators.pronouns.reading import family_groups, read_texts
from evaluators.pronouns.word_problem_table import WordProblemTable
from evaluators.task import ItemFacts, Prompt, Read
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon import pronoun_families
from schemas.lexicon.pronoun_template import parse
from schemas.record import Exchange, Record
from schemas.result import Normalisation

_SHOT = "Q: {text}\nA: {solution} The answer is {answer}.\n\n"
_FRAME = "{shots}Q: {text}\nA:"
_PROMPTS = generation_prompts(
    _FRAME,
    instructed="Solve the last problem, step by step, as shown.\n\n" + _FRAME,
    more={"zero-shot-": "Q: {text}\nA:"},
    stop=("\nQ:",),
)


@cache
def shots(first_family: int) -> str:
    """The worked examples, beginning with a family and going on through the others.

    Args:
        first_family: Place in the lexicon.
    """
    text = resources.files("evaluators.pronouns").joinpath("word_problem_shots.toml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)["shot"]
    families = list(pronoun_families())
    filled = []
    for number, row in enumerate(rows):
        family = families[(first_family + number) % len(families)]
        # A solution may do without a pronoun.
        parts = {
            name: parse(row[name], where=row["id"]).fill(family) if "{" in row[name] else row[name]
            for name in ("text", "solution")
        }
        filled.append(_SHOT.format(**parts, answer=row["answer"]))
    return "".join(filled)


def _first_family(template_id: str) -> int:
    return int(hashlib.sha256(template_id.encode()).hexdigest()[:8], 16) % len(pronoun_families())


@dataclass(frozen=True)
class WordProblemTask:
    """A word problem, a solution, its number."""

    name: str = "word_problem"
    version: str = "1.0"
    item_shape: str = "word_problem"

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """By id; the first is the default."""
        return _PROMPTS

    def requests(self, item: WordProblemItem, prompt: Prompt) -> Sequence[Request]:
        """One request per sample, behind the examples of the item's template."""
        examples = shots(_first_family(item.template_id))
        return generation_requests(prompt.template.format(shots=examples, text=item.text), prompt)

    def facts(self, item: WordProblemItem) -> ItemFacts:
        """The right number is the target."""
        return ItemFacts(
            cluster=item.template_id,
            pair_id=item.template_id,
            target=item.answer,
            reference=item.answer,
            groups=family_groups(item.family),
        )

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """The number that each answer ends in, as a decimal or a fraction."""
        return read_texts(exchanges, _number, unless=_is_told)

    def table(self, records: Sequence[Record]) -> WordProblemTable:
        """Records as arrays."""
        return WordProblemTable.of(records)


def _is_told(answer: str) -> bool:
    """Whoever arrives at a number has not refused, whatever stands before it."""
    return answer != NO_NUMBER


def _number(exchange: Exchange) -> str:
    found = final_number(exchange.text or "", exchange.prompt)
    return NO_NUMBER if found is None else str(found)


TASK = WordProblemTask()
