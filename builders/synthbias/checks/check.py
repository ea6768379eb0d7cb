"""The parts of the catalogue: checks and their findings.

The texts of a check are in ``checks.toml``, in the table of the same name; the code finds the defect::

    @SentenceCheck
    def _several_pronouns(sentence: Sentence) -> str | None: ...   # the reason for a finding, or None
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.files import packaged_toml
from builders.dataset.output import Rule
from builders.synthbias.checks.sentence import Collection, Sentence

Severity: TypeAlias = Literal["error", "warning", "review", "note"]
"""An ``error`` contradicts the data or its design, a ``warning`` is a likely defect, a ``review`` needs a reader's
decision, and a ``note`` is a harmless peculiarity."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "review", "note")
"""All severities, most severe first."""

ENTRIES = packaged_toml("builders.synthbias.checks", "checks.toml")
"""The texts, severity and certainty of each check, by name."""


class SentenceFinding(NamedTuple):
    """A defect or peculiarity of one sentence."""

    check: str
    reason: str
    """Predicate for a message that begins with the id of the sentence: ``has 7 words, not 8 to 24``."""
    severity: Severity
    line: int | None = None
    id: str = ""


def at_least(severity: Severity) -> tuple[Severity, ...]:
    """Return a severity and all more severe ones."""
    return SEVERITIES[: SEVERITIES.index(severity) + 1]


class Check:
    """An entry of the catalogue; subclasses define how its defect is found.

    The class itself is for defects that other code finds: a file reader, or ``Duplicates``.

    Args:
        name: Name of the check in ``checks.toml``.
        values: Values for the placeholders in its texts.
    """

    def __init__(self, name: str, **values: object) -> None:
        entry = ENTRIES[name]
        self.name = name
        self.severity: Severity = entry["severity"]
        self.certainty: Literal["exact", "heuristic"] = entry.get("certainty", "exact")
        self.description: str = entry["description"].format(**values)
        """The defect, as a predicate of a sentence: ``has a noun that names a gender``."""
        self.requirement: str = entry["requirement"].format(**values)
        """The same as a requirement: ``has no noun that names a gender``."""

    def reasons(self, collection: Collection) -> Iterable[tuple[int, str]]:
        """Return the index of each sentence with a finding, and the reason for it."""
        return ()

    def finding(self, sentence: Sentence, reason: str) -> SentenceFinding:
        """Return a finding about a sentence."""
        return SentenceFinding(self.name, reason, self.severity, sentence.line, sentence.id)

    def as_rule(self, name: str | None = None) -> Rule:
        """Return the rule for rejecting what the check finds, under the name of an older dataset if one is given."""
        return Rule(name=name or self.name, description=self.requirement)

    def as_flag(self, name: str | None = None) -> Rule:
        """Return the rule for flagging what the check finds, under the name of an older dataset if one is given."""
        return Rule(name=name or self.name, description=self.description)


class SentenceCheck(Check):
    """A check of one sentence; its function returns the reason for a finding, or None."""

    def __init__(self, find: Callable[[Sentence], str | None], **values: object) -> None:
        super().__init__(find.__name__.removeprefix("_"), **values)
        self.find = find

    def reasons(self, collection: Collection) -> Iterator[tuple[int, str]]:
        """Yield the index of each sentence with a finding, and its reason."""
        for index, sentence in enumerate(collection.sentences):
            if (reason := self.find(sentence)) is not None:
                yield index, reason


class PairCheck(Check):
    """A check that compares the two sides of a minimal pair; a finding is about both."""

    def __init__(self, find: Callable[[Sentence, Sentence], str | None]) -> None:
        super().__init__(find.__name__.removeprefix("_"))
        self.find = find

    def reasons(self, collection: Collection) -> Iterator[tuple[int, str]]:
        """Yield the index of each side of a pair with a finding, and its reason."""
        for side, other in collection.pairs:
            if (reason := self.find(collection.sentences[side], collection.sentences[other])) is not None:
                yield from ((side, reason), (other, reason))


class FileCheck(Check):
    """A check that compares all sentences of a file; its function yields the index and reason of each finding."""

    def __init__(self, find: Callable[[Collection], Iterable[tuple[int, str]]]) -> None:
        super().__init__(find.__name__.removeprefix("_"))
        self._find = find

    def reasons(self, collection: Collection) -> Iterable[tuple[int, str]]:
        """Return the index of each sentence with a finding, and its reason."""
        return self._find(collection)
