"""The text of the card that only the embedded source has."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from importlib import resources
from io import StringIO
from typing import NamedTuple

from biasboard.ground.toml_files import packaged_toml

TONES = ("friendly", "neutral", "tense")
VOTES = "votes.csv"


class Filled(NamedTuple):
    """A text, filled for one pronoun family."""

    text: str
    """Config and id of the text, such as ``math/book-shelves``."""
    family: str


def how_built() -> str:
    """Describe how the texts were written and read, with the numbers of this version."""
    tones = Counter(row["tone"] for row in packaged_toml("builders.gifi", "texts", "continuation.toml")["text"])
    votes = clear_votes()
    unclear = [f"`{filled.text}` with *{filled.family}*" for filled, answers in votes.items() if not all(answers)]
    return f"""\
Each text was written with slots and verbs marked, and is filled by case; no pronoun is ever exchanged in a finished
sentence. Who holds an attribute to be feminine, masculine or neutral was decided by us, by what is commonly believed,
not measured. The beginnings of the config `continuation` are about the person of the pronoun; their tone toward that
person is {", ".join(f"{tone} in {tones[tone]}" for tone in TONES)}. The names in the config `math` are in use for all
genders; those in `recognition` meet every family on purpose.

Two language models, not people, read {len({filled.text for filled in votes})} of the texts of `recognition`,
`continuation` and `math`, filled with *he* or *she*, and said whether it is clear whom each pronoun means
(`texts/{VOTES}` of the builder). Unclear to one of them: {", ".join(unclear) or "none"}."""


def clear_votes() -> dict[Filled, list[bool]]:
    """Return the votes on each filled text that was read: True if it is clear whom the pronoun means."""
    found: dict[Filled, list[bool]] = defaultdict(list)
    for row in csv.DictReader(StringIO(text_of(VOTES))):
        found[Filled(row["text"], row["family"])].append(row["clear"] == "y")
    return dict(found)


def text_of(name: str) -> str:
    """Return the content of a file beside the texts."""
    return resources.files("builders.gifi").joinpath("texts", name).read_text(encoding="utf-8")
