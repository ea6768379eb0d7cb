"""The entrance test: twenty sentences of this project whose answers are known, and three worked examples.

Ten of the sentences leave the referent open and ten settle it, as in SynthBias. Two of each ten are incoherent, which
reveals annotators who do not read: three have a pronoun in the wrong case, as results from exchanging pronouns in
finished sentences, and one contradicts itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from biasboard.ground.files import packaged_toml
from builders.synthbias.annotation.annotated import AskedSentence
from builders.synthbias.annotation.votes import Ballot, Status
from builders.synthbias.minimal_pairs import mentions_in

DEFAULT_PERCENT = 80
"""Percentage of the test that must be right, as in SynthBias."""


class EntranceScore(NamedTuple):
    """A score in the entrance test: the number of sentences all of whose answers are right, and of all sentences."""

    right: int
    n: int

    def __str__(self) -> str:
        return f"{self.right}/{self.n}"

    @classmethod
    def parse(cls, text: str) -> EntranceScore | None:
        """Parse a score such as ``17/20``; None if the text is not one."""
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        return None if match is None else cls(int(match[1]), int(match[2]))


def status_of(score: EntranceScore | None, percent: int) -> Status:
    """Return the status of an annotator with a score, who must reach a percentage; None is for an unfinished test."""
    if score is None:
        return Status.UNTESTED
    return Status.ACTIVE if 100 * score.right >= percent * score.n else Status.FAILED


class Solved(NamedTuple):
    """A sentence with its right answers."""

    sentence: AskedSentence
    answers: Ballot
    why: str
    """Explanation; empty in the test."""


_ANSWERS = {
    "open": Ballot(coherent=True, first=True, second=True),
    "first": Ballot(coherent=True, first=True, second=False),
    "second": Ballot(coherent=True, first=False, second=True),
    "incoherent": Ballot(coherent=False, first=None, second=None),
}
_ROWS = packaged_toml("builders.synthbias", "texts", "entrance.toml")


def _solved(prefix: str, number: int, row: Mapping[str, str]) -> Solved:
    text = row["text"]
    occupations, (pronoun,) = mentions_in(text)
    first, second = (mention.text for mention in occupations)
    name = f"{prefix}-{number:02d}"
    sentence = AskedSentence(name, name, text, pronoun.text, pronoun.start, first, second)
    return Solved(sentence, _ANSWERS[row["reading"]], row.get("why", ""))


TEST: tuple[Solved, ...] = tuple(_solved("entrance", number, row) for number, row in enumerate(_ROWS["test"], 1))
EXAMPLES: tuple[Solved, ...] = tuple(_solved("example", number, row) for number, row in enumerate(_ROWS["example"], 1))
TEST_PAIRS: Mapping[str, str] = {solved.sentence.item_id: solved.sentence.pair_id for solved in TEST}
"""Pair id of each sentence of the test, none of which has a counterpart."""


def entrance_score(ballots: Mapping[str, Ballot]) -> EntranceScore | None:
    """Return the score of an annotator in the entrance test, by their ballots; None if it was not finished."""
    given = [ballots.get(solved.sentence.item_id) for solved in TEST]
    if any(ballot is None or not ballot.is_complete for ballot in given):
        return None
    return EntranceScore(sum(ballot == solved.answers for ballot, solved in zip(given, TEST, strict=True)), len(TEST))
