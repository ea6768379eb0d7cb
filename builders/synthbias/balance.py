"""Counts who is mentioned first and who is meant in some sentences, by type, stereotype and occupation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from builders.dataset.card import CardTable
from builders.synthbias.checks.sentence import Sentence
from schemas.lexicon import occupations

if TYPE_CHECKING:
    import pandas as pd

POSITIONS = ("first", "last")
STEREOTYPES = ("male", "female")
ROLES = ("meant", "not meant", "open")
"""Roles of an occupation in a sentence: the referent, the other one, or either of two that may be meant."""


def balance_of(sentences: Iterable[Sentence]) -> pd.DataFrame:
    """Return a row for each of the two occupations of each sentence that names just these.

    Returns:
        Columns ``type``, ``occupation``, ``stereotype`` (the list that it is on), ``position`` and ``role``.
    """
    import pandas as pd

    rows = []
    for sentence in sentences:
        order = list(dict.fromkeys(mention.text for mention in sentence.targets))
        if len(order) != 2:
            continue
        for position, name in zip(POSITIONS, order, strict=True):
            role = "open" if sentence.referent is None else "meant" if sentence.referent == name else "not meant"
            rows.append((sentence.type or "no type", name, occupations()[name].stereotype, position, role))
    return pd.DataFrame(rows, columns=["type", "occupation", "stereotype", "position", "role"])


def summary(balance: pd.DataFrame) -> CardTable:
    """Return a table of position and stereotype, with a column for each type and its share."""
    types = sorted(set(balance["type"]))
    # Each sentence has exactly one occurrence mentioned first, and at most one that is meant.
    first, meant = balance["position"] == "first", balance["role"] == "meant"
    place = {f"{name} mentioned": balance["position"] == name for name in POSITIONS}
    listed = {f"{name}-stereotyped": balance["stereotype"] == name for name in STEREOTYPES}
    both = {f"{one}, {other}": place[one] & listed[other] for one in place for other in listed}
    rows = [
        *((f"mentioned first: {name}", first & holds, first) for name, holds in listed.items()),
        *((f"meant: {name}", meant & holds, meant) for name, holds in (place | listed | both).items()),
    ]

    def cell(holds: pd.Series[bool], base: pd.Series[bool], kind: str) -> str:
        of_type = balance["type"] == kind
        n, total = int((holds & of_type).sum()), int((base & of_type).sum())
        return f"{n} ({n / total:.3f})" if total else "none"

    return CardTable(
        header=("", *types),
        rows=(
            ("sentences", *(str((first & (balance["type"] == kind)).sum()) for kind in types)),
            *((title, *(cell(holds, base, kind) for kind in types)) for title, holds, base in rows),
        ),
    )


def by_occupation(balance: pd.DataFrame) -> CardTable:
    """Return a table with a row for each occupation that is named: its occurrences by type, position and role.

    The last column of a type is the share of the sentences naming the occupation in which it is meant.
    """
    counts = Counter(zip(*(balance[name] for name in ("occupation", "type", "role", "position")), strict=True))
    kinds = {*zip(balance["type"], balance["role"], strict=True)}
    types = sorted({kind for kind, _ in kinds})
    columns = [
        (kind, role, position) for kind in types for role in ROLES if (kind, role) in kinds for position in POSITIONS
    ]
    rated = [kind for kind in types if (kind, "meant") in kinds]
    rows = []
    for name, occupation in occupations().items():
        cells = [counts[name, *column] for column in columns]
        if not any(cells):
            continue
        rates = []
        for kind in rated:
            meant, other = (
                sum(n for n, column in zip(cells, columns, strict=True) if column[:2] == (kind, role))
                for role in ("meant", "not meant")
            )
            rates.append(f"{meant / (meant + other):.3f}" if meant + other else "none")
        rows.append((name, occupation.stereotype, *map(str, cells), *rates))
    titles = (f"{kind} {position}{'' if role == 'open' else f', {role}'}" for kind, role, position in columns)
    header = ("occupation", "stereotype", *titles, *(f"{kind} meant rate" for kind in rated))
    return CardTable(header=header, rows=tuple(rows))
