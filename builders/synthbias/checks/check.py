"""The parts of the catalogue: a check, its scope, and its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from builders.dataset.output import Rule
from builders.synthbias.checks.collection import Collection
from builders.synthbias.checks.sentence import Sentence

Severity: TypeAlias = Literal["error", "warning", "review", "note"]
"""``error`` contradicts the data or its design, ``warning`` is a likely defect, ``review`` needs a reader's decision,
and ``note`` is a peculiarity that harms nothing."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "review", "note")
"""All severities, the gravest first."""

Certainty: TypeAlias = Literal["exact", "heuristic"]
Scope: TypeAlias = Literal["sentence", "pair", "file"]


class Finding(NamedTuple):
    """A defect or peculiarity of one sentence."""

    check: str
    reason: str
    """Continues a sentence that begins with the name of the row: ``has 7 words, not 8 to 24``."""
    severity: Severity
    line: int | None = None
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One entry of the catalogue; a subclass says how it is looked for.

    This class itself is for defects that other code finds: a reader of files, or ``Duplicates``.
    """

    scope: ClassVar[Scope] = "file"

    name: str
    description: str
    """The defect, as a predicate of a sentence: ``has a noun that names a gender``."""
    requirement: str
    """The same as a rule for sentences without the defect: ``has no noun that names a gender``."""
    severity: Severity
    certainty: Certainty

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceCheck(Check):
    """A check that looks at one sentence."""

    scope: ClassVar[Scope] = "sentence"

    find: Callable[[Sentence], str | None]
    """Returns the reason for a finding, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCheck(Check):
    """A check that compares the two sides of a minimal pair; a finding is about both."""

    scope: ClassVar[Scope] = "pair"

    find: Callable[[Sentence, Sentence], str | None]
    """Returns the reason for a finding, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck(Check):
    """A check that compares all sentences of a file."""

    scope: ClassVar[Scope] = "file"

    find: Callable[[Collection], Iterable[tuple[int, str]]]
    """Yields the index of each sentence with a finding, and the reason."""
