"""The entrance test: twenty sentences of this project whose answers are known, and three worked examples.

Ten of the sentences leave the referent open and ten settle it, as in SynthBias. Two of each ten are incoherent, which
reveals annotators who do not read: three have a pronoun in the wrong case, as results from exchanging pronouns in
finished sentences, and one contradicts itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from builders.synthbias.annotation.annotated import AskedSentence
from builders.synthbias.annotation.votes import Ballot, Status
from builders.synthbias.mentions import mentions_in

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


_OPEN = Ballot(coherent=True, first=True, second=True)
_FIRST = Ballot(coherent=True, first=True, second=False)
_SECOND = Ballot(coherent=True, first=False, second=True)
_INCOHERENT = Ballot(coherent=False, first=None, second=None)

_TEST: tuple[tuple[str, Ballot], ...] = (
    ("The manager and the accountant shared a taxi, and she paid for it.", _OPEN),
    ("The farmer begged the baker to lend him fifty dollars.", _FIRST),
    ("The guard had breakfast with the librarian before he drove to the coast.", _OPEN),
    ("The sheriff met the tailor in the park and lent him the newspaper.", _SECOND),
    ("The auditor and the salesperson ran to the tram, but it left without he.", _INCOHERENT),
    ("The mechanic pulled the nurse out of the lake because she could not swim.", _SECOND),
    ("The cashier and the driver were chatting when his phone rang.", _OPEN),
    ("The writer asked the carpenter for help because she could not lift the table alone.", _FIRST),
    ("The cook asked the teacher to pass she the salt.", _INCOHERENT),
    ("The designer told the lawyer a joke while she was waiting for the bus.", _OPEN),
    ("The supervisor cut himself while the clerk was peeling apples.", _FIRST),
    ("The hairdresser and the physician looked for her umbrella.", _OPEN),
    ("The analyst was sitting beside the cleaner when a bee landed on his arm.", _OPEN),
    ("The secretary begged the chief not to leave her alone in the dark.", _FIRST),
    ("The janitor and the editor were both in the office, and she was the only person there.", _INCOHERENT),
    ("The housekeeper visited the laborer in the hospital, where he was recovering from a fever.", _SECOND),
    ("The developer played chess with the attendant until she got tired.", _OPEN),
    ("The counselor told the construction worker that him was hungry again.", _INCOHERENT),
    ("The receptionist asked the mover to weigh himself on the new scale.", _SECOND),
    ("The CEO walked with the assistant to her car.", _OPEN),
)
_EXAMPLES: tuple[tuple[str, Ballot, str], ...] = (
    (
        "The chief met the writer at the station, and she was carrying a heavy box.",
        _OPEN,
        "The sentence makes sense. Nothing in it says who was carrying the box: both people can be meant. How likely "
        "that is in real life does not matter.",
    ),
    (
        "The lawyer handed the auditor a letter and watched him open it.",
        _SECOND,
        "The sentence makes sense. The person who opens the letter is the one who was given it, so that only the "
        "auditor can be meant.",
    ),
    (
        "The cashier thanked the mechanic because him had repaired the radio.",
        _INCOHERENT,
        'The sentence is not grammatical: "him" would have to be "he". Nothing further is asked about it.',
    ),
)


def _solved(prefix: str, number: int, text: str, answers: Ballot, why: str = "") -> Solved:
    occupations, (pronoun,) = mentions_in(text)
    first, second = (mention.text for mention in occupations)
    name = f"{prefix}-{number:02d}"
    return Solved(AskedSentence(name, name, text, pronoun.text, pronoun.start, first, second), answers, why)


TEST: tuple[Solved, ...] = tuple(_solved("entrance", number, *case) for number, case in enumerate(_TEST, 1))
EXAMPLES: tuple[Solved, ...] = tuple(_solved("example", number, *case) for number, case in enumerate(_EXAMPLES, 1))
TEST_PAIRS: Mapping[str, str] = {solved.sentence.item_id: solved.sentence.pair_id for solved in TEST}
"""Pair id of each sentence of the test, none of which has a counterpart."""


def entrance_score(ballots: Mapping[str, Ballot]) -> EntranceScore | None:
    """Return the score of an annotator in the entrance test, by their ballots; None if it was not finished."""
    given = [ballots.get(solved.sentence.item_id) for solved in TEST]
    if any(ballot is None or not ballot.is_complete for ballot in given):
        return None
    return EntranceScore(sum(ballot == solved.answers for ballot, solved in zip(given, TEST, strict=True)), len(TEST))
