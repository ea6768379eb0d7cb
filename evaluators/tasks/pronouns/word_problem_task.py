"""Asks a model to solve a word problem in one pronoun family, and reads the number in its answer.

The protocol is that of GIFI (arXiv:2506.15568), with eight worked examples before the problem. The examples are our
own. Each uses a different pronoun family, and the families change from template to template, so that none is seen more
often than the others. All variants of a template have the same examples.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from evaluators.backend import Request
from evaluators.baseline import Facts
from evaluators.task import ItemFacts, Prompt, Read, Task
from evaluators.tasks.pronouns.answers import NO_NUMBER
from evaluators.tasks.pronouns.detectors.numbers import final_number
from evaluators.tasks.pronouns.prompts import generation_prompts, generation_requests
from evaluators.tasks.pronouns.reading import all_or_none, family_groups, read_texts
from evaluators.tasks.pronouns.word_problem_table import WordProblemTable, is_right_number
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon import pronoun_families
from schemas.lexicon.pronoun_template import parse

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
    """Return the text of the worked examples, each in the next pronoun family of the lexicon.

    Args:
        first_family: Index in the lexicon of the first example's family.
    """
    text = resources.files("evaluators.tasks.pronouns").joinpath("word_problem_shots.toml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = tomllib.loads(text)["shot"]
    families = list(pronoun_families())
    filled = []
    for number, row in enumerate(rows):
        family = families[(first_family + number) % len(families)]
        # Some solutions contain no pronoun.
        parts = {
            name: parse(row[name], where=row["id"]).fill(family) if "{" in row[name] else row[name]
            for name in ("text", "solution")
        }
        filled.append(_SHOT.format(**parts, answer=row["answer"]))
    return "".join(filled)


def _first_family(template_id: str) -> int:
    return int(hashlib.sha256(template_id.encode()).hexdigest()[:8], 16) % len(pronoun_families())


class WordProblemTask(Task):
    """A task that reads the number in the solution of a word problem."""

    name = "word_problem"
    version = "1.0"
    item_shape = "word_problem"
    prompts: Mapping[str, Prompt] = _PROMPTS

    def requests(self, item: WordProblemItem, prompt: Prompt) -> Sequence[Request]:
        """Return one request per sample, which begins with the examples of the item's template."""
        examples = shots(_first_family(item.template_id))
        facts = self.baseline_facts(self.facts(item))
        return generation_requests(prompt.template.format(shots=examples, text=item.text), prompt, facts)

    def facts(self, item: WordProblemItem) -> ItemFacts:
        """Return the facts of an item. Its target is the right number."""
        return ItemFacts(
            cluster=item.template_id,
            pair_id=item.template_id,
            target=item.answer,
            reference=item.answer,
            groups=family_groups(item.family),
        )

    def baseline_facts(self, facts: Facts) -> Mapping[str, str]:
        """Return the family of the problem and the right number."""
        return {"family": facts.groups["family"], "answer": str(facts.target)}

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the final number of each answer, as an integer or a fraction."""
        return read_texts(exchanges, _number, unless=_is_told)

    def table(self, records: Sequence[Record]) -> WordProblemTable:
        """Return records as arrays."""
        return WordProblemTable.of(records)

    def are_right(self, records: Sequence[Record]) -> Sequence[bool | None]:
        """Return True where all answers to an item are right, False where none is; refused answers do not count."""
        return all_or_none(records, is_right_number)


def _is_told(answer: str) -> bool:
    """Return True if an answer states a number; it is then no refusal, even if it begins like one."""
    return answer != NO_NUMBER


def _number(exchange: Exchange) -> str:
    found = final_number(exchange.text or "", exchange.prompt)
    return NO_NUMBER if found is None else str(found)


TASK = WordProblemTask()
