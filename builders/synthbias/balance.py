"""Counts who is mentioned first and who is meant in some sentences, by type, stereotype and occupation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from builders.dataset.card import CardTable
from builders.synthbias.checks.sentence import Sentence
from schemas.lexicon import occupations

Role: TypeAlias = Literal["meant", "not meant", "open"]
"""Role of an occupation in a sentence: the referent, the other one, or either of two that may be meant."""
Position: TypeAlias = Literal["first", "last"]
POSITIONS: tuple[Position, ...] = ("first", "last")
STEREOTYPES = ("male", "female")


class Occurrence(NamedTuple):
    """One occupation in one sentence."""

    type: str
    occupation: str
    position: Position
    role: Role

    @property
    def stereotype(self) -> str:
        """The list that the occupation is on."""
        return occupations()[self.occupation].stereotype


class Balance:
    """Counts of the positions and roles of occupations in some sentences.

    A sentence counts if it names its two occupations, and then has two occurrences.
    """

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self.counts = Counter(occurrence for sentence in sentences for occurrence in _occurrences(sentence))

    def count(self, **wanted: str) -> int:
        """Count the occurrences with given field values, such as ``type="type2", role="meant"``."""
        return sum(
            n
            for occurrence, n in self.counts.items()
            if all(getattr(occurrence, name) == wanted[name] for name in wanted)
        )

    @property
    def types(self) -> list[str]:
        """The types of the sentences."""
        return sorted({occurrence.type for occurrence in self.counts})

    def summary(self) -> CardTable:
        """Return a table of position and stereotype, with a column for each type and its share."""
        rows = [
            ("sentences", *(str(self.count(type=name, position="first")) for name in self.types)),
            *(self._row("first", stereotype=stereotype, position="first") for stereotype in STEREOTYPES),
            *(self._row("meant", position=position, role="meant") for position in POSITIONS),
            *(self._row("meant", stereotype=stereotype, role="meant") for stereotype in STEREOTYPES),
            *(
                self._row("meant", position=position, stereotype=stereotype, role="meant")
                for position in POSITIONS
                for stereotype in STEREOTYPES
            ),
        ]
        return CardTable(header=("", *self.types), rows=tuple(rows))

    def by_occupation(self) -> CardTable:
        """Return a table with a row for each occupation: its occurrences by type, position and role.

        The last column of a type is the share of the sentences naming the occupation in which it is meant.
        """
        roles = {name: [role for role in _ROLES if self.count(type=name, role=role)] for name in self.types}
        columns = [(name, position, role) for name in self.types for role in roles[name] for position in POSITIONS]
        rated = [name for name in self.types if "meant" in roles[name]]
        header = (
            *("occupation", "stereotype"),
            *(f"{name} {position}{'' if role == 'open' else f', {role}'}" for name, position, role in columns),
            *(f"{name} meant rate" for name in rated),
        )
        rows = []
        for name, occupation in occupations().items():
            counts = (self.counts[Occurrence(kind, name, position, role)] for kind, position, role in columns)
            rates = (
                _rate(self.count(type=kind, occupation=name, role="meant"), self._named(kind, name)) for kind in rated
            )
            rows.append((name, occupation.stereotype, *map(str, counts), *rates))
        return CardTable(header=header, rows=tuple(rows))

    def _named(self, kind: str, occupation: str) -> int:
        return sum(self.count(type=kind, occupation=occupation, role=role) for role in ("meant", "not meant"))

    def _row(self, title: str, **wanted: str) -> tuple[str, ...]:
        words = [wanted[name] + _SUFFIX[name] for name in ("position", "stereotype") if name in wanted]
        label = "mentioned first: " + words[-1] if title == "first" else f"{title}: {', '.join(words)}"
        # Each sentence has exactly one occurrence mentioned first, and at most one that is meant.
        base = {"position": "first"} if title == "first" else {"role": "meant"}
        cells = []
        for name in self.types:
            n, total = self.count(type=name, **wanted), self.count(type=name, **base)
            cells.append(f"{n} ({_rate(n, total)})" if total else "none")
        return (label, *cells)


_ROLES: tuple[Role, ...] = ("meant", "not meant", "open")
_SUFFIX = {"position": " mentioned", "stereotype": "-stereotyped"}


def _rate(n: int, total: int) -> str:
    return f"{n / total:.3f}" if total else "none"


def _occurrences(sentence: Sentence) -> Iterable[Occurrence]:
    order = list(dict.fromkeys(mention.text for mention in sentence.targets))
    if len(order) != 2:
        return
    for position, occupation in zip(POSITIONS, order, strict=True):
        role: Role = "open"
        if sentence.referent is not None:
            role = "meant" if sentence.referent == occupation else "not meant"
        yield Occurrence(sentence.type or "no type", occupation, position, role)
