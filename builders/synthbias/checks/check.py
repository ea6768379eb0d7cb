"""The parts of the catalogue: the sentence that all checks read, checks, and their findings.

The texts of a check are in ``checks.toml``, in the table of the same name; the code finds the defect::

    @SentenceCheck
    def _several_pronouns(sentence: Sentence) -> str | None: ...   # the reason for a finding, or None
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from biasboard.ground.files import packaged_toml
from builders.dataset.output import Rule
from builders.synthbias.minimal_pairs import (
    Config,
    Mention,
    Mentions,
    cluster_of,
    masked,
    mentions_in,
    stereotype_of,
    template_key,
    wording,
)
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import PronounCase, PronounGender

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


T = TypeVar("T")

_WORD = re.compile(r"[^\W_]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a source claims about a sentence, which may be wrong; None where it claims nothing."""

    type: str | None = None
    pronoun: str | None = None
    label: str | None = None
    """``pro`` or ``anti`` (the stereotype), ``ambiguous``, or any other word of the source."""
    marked: tuple[Mention, ...] | None = None
    """All pronouns that the source marks in the sentence."""
    case: PronounCase | None = None
    """Grammatical case in which the source filled in the pronoun."""
    is_repaired: bool = False
    """True if an article or space that markup doubled was removed."""


NO_CLAIMS = Claims()


@dataclass(frozen=True, kw_only=True, eq=False)
class Sentence:
    """A sentence with what its source says about it; contradictions are left to the checks.

    Words and mentions are computed once, when first needed.
    """

    text: str
    meant: tuple[str, str]
    """The two occupations that it should mention; the reference first, if the source has one."""
    type: Config | None = None
    """``type1`` if the pronoun may mean either occupation, ``type2`` if its referent is settled."""
    referent: str | None = None
    """The occupation that the pronoun means, or None if that is open or unknown."""
    gender: PronounGender | None = None
    """Gender that the pronoun should have, or None if the source does not say."""
    pronoun: Mention | None = None
    """The pronoun that is asked about; None if the source does not point at one."""
    claimed: Claims = NO_CLAIMS
    """Further claims of the source, uncorrected."""
    line: int | None = None
    """Line of the file on which it begins."""
    id: str = ""
    """Name of the candidate or row in messages."""

    @cached_property
    def mentions(self) -> Mentions:
        """The mentions of occupations and of the forms of *he* and *she*."""
        return mentions_in(self.text)

    @property
    def occupations(self) -> list[Mention]:
        """The mentions of any of the 40 occupations, in the order of the text."""
        return self.mentions.occupations

    @property
    def pronouns(self) -> list[Mention]:
        """The forms of *he* and *she* in upper or lower case, in the order of the text."""
        return self.mentions.pronouns

    @cached_property
    def asked(self) -> Mention | None:
        """The pronoun that is asked about: the one that the source points at or names, or else the first one."""
        if self.pronoun is not None:
            return self.pronoun
        named = (mention for mention in self.pronouns if mention.text == self.claimed.pronoun)
        return next(named, None) or next(iter(self.pronouns), None)

    @cached_property
    def targets(self) -> list[Mention]:
        """The mentions of the two meant occupations, in the order of the text."""
        return [mention for mention in self.occupations if mention.text in self.meant]

    @cached_property
    def masked(self) -> str:
        """The text with its pronouns masked, so that the two sides of a minimal pair are equal."""
        return masked(self.text, self.pronouns)

    @cached_property
    def template(self) -> str:
        """The wording with the meant occupations and the pronouns masked."""
        return wording(masked(self.text, [*self.targets, *self.pronouns]))

    @cached_property
    def words(self) -> list[str]:
        """The words in lower case, without punctuation."""
        return words_of(self.text)

    def as_item(
        self, *, item_id: str, pair_id: str, case: PronounCase | None, source_row: str, flags: tuple[str, ...]
    ) -> CoreferenceItem:
        """Return a sentence of a published file, which has a pronoun and its gender, as one side of a minimal pair.

        Args:
            item_id: Identifier of the item.
            pair_id: Identifier of the pair.
            case: Case of the pronoun; None if it is not certain.
            source_row: Where the sentence stands in its source.
            flags: Peculiarities of the sentence.
        """
        pronoun = required(self.asked)
        gender: PronounGender = required(self.gender)
        return CoreferenceItem(
            item_id=item_id,
            pair_id=pair_id,
            cluster=cluster_of(*self.meant),
            sentence=self.text,
            pronoun=pronoun.text,
            pronoun_start=pronoun.start,
            pronoun_case=case,
            pronoun_gender=gender,
            occupations=tuple(dict.fromkeys(mention.text for mention in self.targets)),
            referent=self.referent,
            reference=self.meant[0],
            stereotype=None if self.referent is None else stereotype_of(self.referent, gender),
            template_id=template_key(self.template),
            source_row=source_row,
            flags=flags,
        )

    def first_word_of(self, listed: frozenset[str]) -> str | None:
        """Return the first word that is on a list, or None if no word is."""
        if listed.isdisjoint(self.words):
            return None
        return next(word for word in self.words if word in listed)


def required(value: T | None) -> T:
    """Return a value that the source of a sentence always gives.

    Raises:
        ValueError: the value is missing.
    """
    if value is None:
        raise ValueError("a sentence of this source lacks a statement; read it with the checks that refuse such a row")
    return value


def word_list(text: str) -> frozenset[str]:
    """Return the words of a text as a set, so that long lists need no quotation marks."""
    return frozenset(text.split())


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    folded = text.casefold()
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)


class Collection:
    """Sentences with their minimal pairs, and with groups of equal texts and templates.

    Args:
        sentences: All sentences, in the order of the source.
        pairs: Pairs that the source names. If None, two sentences are a pair if they are equal apart from the pronouns,
            and have the same type and the same occupations in the same roles.
    """

    def __init__(self, sentences: Sequence[Sentence], pairs: Sequence[tuple[int, int]] | None = None) -> None:
        self.sentences = sentences
        self._named_pairs = pairs

    @cached_property
    def pairs(self) -> Sequence[tuple[int, int]]:
        """The indices of the two sides of each minimal pair, without sentences that have no counterpart or several."""
        if self._named_pairs is not None:
            return self._named_pairs
        gender = [sentence.gender for sentence in self.sentences]
        pairs = (tuple(group) for group in self.sides if len(group) == 2)
        return [(side, other) for side, other in pairs if gender[side] != gender[other]]

    @cached_property
    def sides(self) -> Sequence[Sequence[int]]:
        """The indices of the sentences grouped by minimal pair, including incomplete and overfull groups."""
        if self._named_pairs is None:
            return self._groups(lambda sentence: (sentence.type, sentence.masked, sentence.meant))
        paired = {index for pair in self._named_pairs for index in pair}
        return [*self._named_pairs, *((index,) for index in range(len(self.sentences)) if index not in paired)]

    @cached_property
    def same_text(self) -> Sequence[Sequence[int]]:
        """The indices of the sentences grouped by text."""
        return self._groups(lambda sentence: sentence.text)

    @cached_property
    def same_wording(self) -> Sequence[Sequence[int]]:
        """The indices of the sentences grouped by wording, with the pronouns masked."""
        return self._groups(lambda sentence: wording(sentence.masked))

    @cached_property
    def same_template(self) -> Sequence[Sequence[int]]:
        """The indices of the sentences grouped by template."""
        return self._groups(lambda sentence: sentence.template)

    def types(self, group: Sequence[int]) -> set[str | None]:
        """Return the types of some sentences."""
        return {self.sentences[index].type for index in group}

    def _groups(self, key: Callable[[Sentence], object]) -> Sequence[Sequence[int]]:
        groups: dict[object, list[int]] = defaultdict(list)
        for index, sentence in enumerate(self.sentences):
            groups[key(sentence)].append(index)
        return list(groups.values())
