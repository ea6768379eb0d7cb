"""What the tasks german_recognition, spanish_recognition and french_recognition share: requests, readings, the table.

They ask what the task recognition asks in English, with the pronoun families and the detector of their language. Their
texts end in the middle of a sentence, so that no word stands between a text and its continuation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biasboard.ground.files import packaged_toml
from evaluators.task import ItemFacts, Prompt, Read
from evaluators.tasks.pronouns.detectors.echo import FamiliesOf
from evaluators.tasks.pronouns.detectors.language_pronoun import DETECTORS
from evaluators.tasks.pronouns.recognition_task import RecognitionTable, RecognitionTask
from evaluators.tasks.pronouns.texts import PUBLISHED_PROMPT, generation_prompts, spelt
from evaluators.tasks.written_answers import REFUSED, read_texts
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Normalisation
from schemas.lexicon.languages import Language, families_in

ENDING = "ending"
"""Group of an item in a language that drops subjects: whether its text can go on without a pronoun or a noun."""
_DROPS_SUBJECTS = frozenset({"spanish"})


class LanguageRecognitionTask(RecognitionTask):
    """A task that reads the first pronoun in the continuation of a text in one language other than English."""

    version = "1.0"
    earlier_versions = frozenset()
    item_shape = "language_text"
    crossed_by = None

    def __init__(self, language: Language) -> None:
        """Make the task of a language."""
        self.language = language
        self.name: str = f"{language}_recognition"
        self.detector = DETECTORS[language]
        asked: Mapping[str, Any] = packaged_toml("evaluators.tasks.pronouns", "languages.toml")[language]
        self._refusal = re.compile(rf"[\W_]*(?:{'|'.join(asked['refusals'])})", re.IGNORECASE)
        prompts = generation_prompts("{text}", instructed=f"{asked['instruction']}\n\n{{text}}")
        self.prompts: Mapping[str, Prompt] = {
            name: prompt for name, prompt in prompts.items() if name != PUBLISHED_PROMPT
        }

    def facts(self, item: Any) -> ItemFacts:
        """Return the facts of an item. Its target is the pronoun family of its text."""
        groups = {
            "family": item.family,
            "family_class": families_in(self.language)[item.family].pronoun_class,
        }
        if self.language in _DROPS_SUBJECTS:
            groups[ENDING] = item.ending
        return ItemFacts(
            cluster=item.template_id, pair_id=item.template_id, target=item.family, reference=item.family, groups=groups
        )

    def baseline_facts(self, facts: Any) -> Mapping[str, str]:
        """Return the family of the text, and all families of the language."""
        return {**super().baseline_facts(facts), "families": " ".join(families_in(self.language))}

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the families of the first pronoun in each answer."""

        def reading(exchange: Exchange) -> str:
            text = exchange.text or ""
            is_refused = self._refusal.match(text) is not None
            return REFUSED if is_refused else spelt(self.detector.first_families(text, exchange.prompt))

        return read_texts(exchanges, reading)

    def table(self, records: Sequence[Record]) -> LanguageTable:
        """Return records as arrays."""
        return LanguageTable.of(records, language=self.language)


def columns_of(language: Language) -> tuple[str, ...]:
    """Return the families of a language in the order of statistics."""
    return tuple(sorted(families_in(language)))


@dataclass(frozen=True, eq=False)
class LanguageTable(RecognitionTable):
    """The table of first pronouns for texts in one language other than English."""

    language: Language

    @property
    def families(self) -> tuple[str, ...]:
        """The families of the language, in the order of statistics."""
        return columns_of(self.language)

    @property
    def used_families(self) -> tuple[str, ...]:
        """The same."""
        return self.families

    @property
    def pronouns(self) -> tuple[FamiliesOf, ...]:
        """The pronouns of the language."""
        return (DETECTORS[self.language].families_of,)
