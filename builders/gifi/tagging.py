"""Turns a plain English text about one person into a template, or rejects it with the reason.

Each form of *he* or *she* becomes a slot with its case, and each verb whose subject is a nominative slot gets its form
for *they*. The rules use only neighbouring words. If those do not determine a case, a verb or a referent, the text is
rejected: sources have more texts than are needed, and a wrong variant would bias the benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from biasboard.ground.errors import import_extra
from biasboard.ground.files import packaged_words
from builders.dataset.output import Rule
from builders.pronoun_case import UnsettledCaseError, case_by_neighbours
from schemas.lexicon import PronounCase
from schemas.lexicon.pronoun_template import Part, Slot, Template, Verb

NO_PRONOUN = Rule(name="no_pronoun", description="no pronoun of one person, so that all variants would be equal")
SEVERAL = Rule(
    name="several_referents", description="pronouns of two genders or of a group: whom each one means is not certain"
)
AMBIGUOUS_CASE = Rule(name="ambiguous_case", description="her or his whose case the neighbouring words do not settle")
AMBIGUOUS_VERB = Rule(
    name="ambiguous_verb", description="a word that may be a verb of the pronoun, which then has to agree with they"
)
RULES = (NO_PRONOUN, SEVERAL, AMBIGUOUS_CASE, AMBIGUOUS_VERB)

_HE = {"he", "him", "his", "himself"}
_SHE = {"she", "her", "hers", "herself"}
_GROUP = {"they", "them", "their", "theirs", "themselves", "themself"}
_IRREGULAR = {"is": "are", "was": "were", "has": "have", "does": "do"}
_NEGATED = {f"{singular}n": f"{plural}n" for singular, plural in _IRREGULAR.items()}

_WORDS = {
    name: frozenset(words) for name, words in packaged_words("builders.gifi", "texts", "tagging_words.toml").items()
}
_MIDDLE = _WORDS["middle"]
"""Adverbs that can stand between a pronoun and its verb."""
_DETERMINERS = _WORDS["determiners"]
"""Words that often follow a verb but hardly ever a plural noun."""
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*|\s+|.", re.DOTALL)
_SENTENCE_END = frozenset(".?!;:")
_JOINERS = frozenset({"and", "or", "but", "then", ","})


class UncertainError(Exception):
    """A text that cannot be turned into a template with certainty."""

    def __init__(self, rule: Rule, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule


def tagged(text: str) -> Template:
    """Return the template of a text about one person.

    Raises:
        UncertainError: the text has no pronoun of one person, may be about several people, or has a pronoun or verb
            that the rules cannot resolve.
        MissingExtraError: the extra 'build' is not installed.
    """
    return _TagReader(text).template()


class _TagReader:
    def __init__(self, text: str) -> None:
        self._parts: list[Part] = list(_TOKEN.findall(text))
        # Words and punctuation marks, each with its place among the parts.
        self._words = [
            (part, place) for place, part in enumerate(self._parts) if isinstance(part, str) and not part.isspace()
        ]

    def template(self) -> Template:
        """Build the template by replacing pronouns with slots and marking verbs."""
        words = {word.lower() for word, _ in self._words}
        if not words & (_HE | _SHE):
            raise UncertainError(NO_PRONOUN, "has no pronoun of one person")
        if words & _HE and words & _SHE:
            raise UncertainError(SEVERAL, "has pronouns of two genders")
        if words & _GROUP:
            raise UncertainError(SEVERAL, f"has '{min(words & _GROUP)}', which may mean the person or a group")
        for index, (word, place) in enumerate(self._words):
            if word.lower() in _HE | _SHE:
                case = self._case(index)
                self._parts[place] = Slot(case, capital=word[0].isupper())
                if case == "nominative":
                    self._agree(index)
        return Template(tuple(self._parts))

    def _lower(self, index: int) -> str:
        """Return a word in lower case, or an empty string if the index is out of range."""
        return self._words[index][0].lower() if 0 <= index < len(self._words) else ""

    def _case(self, index: int) -> PronounCase:
        before, form, after = (self._lower(index + step) for step in (-1, 0, 1))
        try:
            return case_by_neighbours(before, form, after, lemma_of=lambda word: next(iter(_verb_lemmas(word)), ""))
        except UnsettledCaseError as error:
            raise UncertainError(AMBIGUOUS_CASE, str(error)) from error

    def _agree(self, index: int) -> None:
        """Mark the verbs whose subject is a nominative slot, with their plural forms."""
        before = self._lower(index - 1)
        if before in _IRREGULAR:
            self._check_question(index - 1)
            self._mark(index - 1, _IRREGULAR[before])
            return
        at = index + 1
        if self._lower(at) in ("'", "\N{RIGHT SINGLE QUOTATION MARK}") and self._lower(at + 1) == "s":
            raise UncertainError(AMBIGUOUS_VERB, "a contraction stands for 'is' or 'has'")
        while self._lower(at) in _MIDDLE or self._lower(at).endswith("ly"):
            at += 1
        verb = self._lower(at)
        if verb == ",":
            raise UncertainError(AMBIGUOUS_VERB, "the verb comes after something set off by commas")
        plural = self._plural(at)
        if plural is not None:
            self._mark(at, plural)
        self._agree_further(at + 1, in_present=plural is not None)

    def _check_question(self, index: int) -> None:
        """Check that an auxiliary before the pronoun is in a question, since only there does it belong to the pronoun.

        Raises:
            UncertainError: the text is not a question, or a second verb follows.
        """
        start = index - 1
        while start >= 0 and self._lower(start) not in _SENTENCE_END:
            start -= 1
        end = index
        while end < len(self._words) and self._lower(end) not in _SENTENCE_END:
            end += 1
        if self._lower(end) != "?":
            raise UncertainError(AMBIGUOUS_VERB, f"'{self._lower(index)}' stands before the pronoun outside a question")
        if self._plural(index + 2) is not None:
            raise UncertainError(AMBIGUOUS_VERB, f"'{self._lower(index + 2)}' comes after a question's own verb")

    def _plural(self, index: int) -> str | None:
        """Return the form for *they* of a verb in the third person singular; None for any other word."""
        word = self._lower(index)
        if word in _IRREGULAR:
            return _IRREGULAR[word]
        if word in _NEGATED and self._lower(index + 2) == "t":
            return _NEGATED[word]
        if not word.endswith("s"):
            return None
        for lemma in _verb_lemmas(word):
            if word in _third_person(lemma):
                return lemma
        return None

    def _agree_further(self, start: int, *, in_present: bool) -> None:
        """Mark further verbs with the same subject, which follow *and*, *or*, *but*, *then* or a comma."""
        for index in range(start, len(self._words)):
            word = self._lower(index)
            # The dots in "a.m." do not end a sentence.
            ends = word in _SENTENCE_END and len(self._lower(index - 1)) > 1
            if ends or word in ("he", "she", "who", "which", "that", "if", "when", "because", "while"):
                return
            before = index - 1
            while self._lower(before) in _MIDDLE and self._lower(before) not in _JOINERS:
                before -= 1
            if self._lower(before) not in _JOINERS:
                continue
            plural = self._plural(index)
            if plural is None:
                continue
            follows = self._lower(index + 1)
            is_verb = word in _IRREGULAR or not _is_noun(word) or follows in _DETERMINERS or follows[:1].isdigit()
            if not is_verb and not in_present:
                continue
            if not is_verb:
                raise UncertainError(AMBIGUOUS_VERB, f"'{word}' may be a noun, or a verb of the pronoun")
            self._mark(index, plural)

    def _mark(self, index: int, plural: str) -> None:
        word, place = self._words[index]
        self._parts[place] = Verb(word, plural.capitalize() if word[0].isupper() else plural)


@cache
def _verb_lemmas(word: str) -> Sequence[str]:
    lemmas: dict[str, tuple[str, ...]] = import_extra("lemminflect", "build").getAllLemmas(word)
    return lemmas.get("VERB", ()) or lemmas.get("AUX", ())


@cache
def _third_person(lemma: str) -> tuple[str, ...]:
    forms: tuple[str, ...] = import_extra("lemminflect", "build").getInflection(lemma, tag="VBZ")
    return forms


@cache
def _is_noun(word: str) -> bool:
    return "NOUN" in import_extra("lemminflect", "build").getAllLemmas(word)
