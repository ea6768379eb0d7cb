"""The parts of the catalogue: a check, and its findings.

What a check says stands in ``checks.toml``, in the table that has its name; the code says where it finds it::

    @SentenceCheck
    def _several_pronouns(sentence: Sentence) -> str | None: ...   # the reason for a finding, or None
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.toml_files import packaged_toml
from builders.dataset.output import Rule
from builders.synthbias.checks.sentence import Collection, Sentence

Severity: TypeAlias = Literal["error", "warning", "review", "note"]
"""``error`` contradicts the data or its design, ``warning`` is a likely defect, ``review`` needs a reader's decision,
and ``note`` is a peculiarity that harms nothing."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "review", "note")
"""All severities, the gravest first."""

ENTRIES = packaged_toml("builders.synthbias.checks", "checks.toml")
"""What each check says, by name."""


class Finding(NamedTuple):
    """A defect or peculiarity of one sentence."""

    check: str
    reason: str
    """Continues a sentence that begins with the name of the row: ``has 7 words, not 8 to 24``."""
    severity: Severity
    line: int | None = None
    id: str = ""


def at_least(severity: Severity) -> tuple[Severity, ...]:
    """Return a severity and all graver ones."""
    return SEVERITIES[: SEVERITIES.index(severity) + 1]


class Check:
    """One entry of the catalogue; a subclass says how it is looked for.

    This class itself is for defects that other code finds: a reader of files, or ``Duplicates``.

    Args:
        name: Name of the check in ``checks.toml``.
        values: Values for the braces in its texts.
    """

    def __init__(self, name: str, **values: object) -> None:
        entry = ENTRIES[name]
        self.name = name
        self.severity: Severity = entry["severity"]
        self.certainty: Literal["exact", "heuristic"] = entry.get("certainty", "exact")
        self.description: str = entry["description"].format(**values)
        """The defect, as a predicate of a sentence: ``has a noun that names a gender``."""
        self.requirement: str = entry["requirement"].format(**values)
        """The same as a rule for sentences without the defect: ``has no noun that names a gender``."""

    def reasons(self, collection: Collection) -> Iterable[tuple[int, str]]:
        """Return the index of each sentence with a finding, and its reason."""
        return ()

    def finding(self, sentence: Sentence, reason: str) -> Finding:
        """Return a finding about a sentence."""
        return Finding(self.name, reason, self.severity, sentence.line, sentence.id)

    def as_rule(self, name: str | None = None) -> Rule:
        """Return the rule of a builder that rejects what the check finds.

        Args:
            name: Name that the dataset uses, if it is older than the catalogue.
        """
        return Rule(name=name or self.name, description=self.requirement)

    def as_flag(self, name: str | None = None) -> Rule:
        """Return the rule of a builder that flags what the check finds.

        Args:
            name: Name that the dataset uses, if it is older than the catalogue.
        """
        return Rule(name=name or self.name, description=self.description)


class SentenceCheck(Check):
    """A check that looks at one sentence, and gives the reason for a finding or None."""

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
        for one, other in collection.pairs:
            if (reason := self.find(collection.sentences[one], collection.sentences[other])) is not None:
                yield from ((one, reason), (other, reason))


class FileCheck(Check):
    """A check that compares all sentences of a file, and yields the index of each finding and its reason."""

    def __init__(self, find: Callable[[Collection], Iterable[tuple[int, str]]]) -> None:
        super().__init__(find.__name__.removeprefix("_"))
        self._find = find

    def reasons(self, collection: Collection) -> Iterable[tuple[int, str]]:
        """Return the index of each sentence with a finding, and its reason."""
        return self._find(collection)
