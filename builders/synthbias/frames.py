"""Reads the frames of this project from ``texts/``, in groups that are distributed over the occupation pairs.

``open.toml`` holds the frames of type 1: both readings are natural, and nothing settles whom the pronoun means.
``settled.toml`` holds those of type 2, in quadruples: two beginnings, two endings, and the four frames that they make::

                                    ... because he was cold    ... because he had brought two
    the a borrowed a scarf from b            a                            b
    the a lent a scarf to b                  b                            a

These are Winograd schemas (Levesque et al. 2012) that change their answer in both halves. Whatever a predictor reads in
one half alone, a word, its place or its length, is right in two frames of four. Three kinds of cue settle the referent:

* *syntax*: only one reading is grammatical. A reflexive means the subject of its own verb, and an object pronoun never
  does (*asked the b to introduce him*: not b).
* *meaning*: the words fit only one person, such as who gives, chases or wakes whom, and with what result.
* *world*: both readings make sense, but only one is plausible (*borrowed a scarf because he was cold*).

The frames describe scenes at work and in everyday life that fit every occupation of the lexicon in either position, and
they mention no other single person.

How two readers understood each frame is counted too. The readers are language models, asked once about each frame,
filled with two occupations of the same stereotype, without being given the intended answer: no annotation by people.

``python -m builders.synthbias lean``: measures how often models choose the occupation mentioned first in type 1.

Each occupation is in each position equally often, so that a model without a preference for a position gives both
positions the same probability on average, whatever its preferences among occupations.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, cast

import typer

from biasboard.ground import strict_json
from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import DataError
from builders.dataset.card import CardTable
from builders.synthbias.minimal_pairs import Position, Slotted
from schemas.documents.result import Result
from schemas.folders.run_folder import finished_runs, read_result, read_run
from schemas.lexicon import CASES, PronounCase

if TYPE_CHECKING:
    import pandas as pd


GROUP_SIZE = 20
"""Number of frames in a group: one for each of the twenty possible partners of an occupation."""
OPEN = "open.toml"
SETTLED = "settled.toml"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFrame:
    """A sentence with slots for two occupations and one pronoun.

    The text holds ``{first}`` and ``{second}`` for the occupations, in the order in which they are mentioned, and one
    slot named after a case, such as ``{accusative}``.
    """

    frame_id: str
    text: str
    referent: Position | None
    """Position of the occupation that the pronoun means; None if both readings are natural."""
    template_id: str | None = None
    """Identifier that the four frames of a quadruple share; None for a frame by itself."""
    setting: Literal["work", "everyday"] | None = None
    """Kind of the scene; None if unknown."""
    cue: Literal["syntax", "meaning", "world"] | None = None
    """Kind of the cue that settles the referent; None if nothing does."""

    @property
    def case(self) -> PronounCase:
        """The grammatical case of the pronoun slot.

        Raises:
            ValueError: the text has no pronoun slot, or several.
        """
        slots = [name for _, name, _, _ in string.Formatter().parse(self.text) if name in CASES]
        if len(slots) != 1:
            raise ValueError(f"frame {self.frame_id}: {len(slots)} pronoun slots in '{self.text}'; write exactly one")
        return slots[0]

    def about(self, first: str, second: str) -> Slotted:
        """Return the sentence about two occupations, whose pronoun is still a slot."""
        case = self.case
        before, after = (part.format(first=first, second=second) for part in self.text.split("{" + case + "}"))
        return Slotted("type1" if self.referent is None else "type2", before, case, after, first, second, self.referent)


class Quadruple(NamedTuple):
    """The frames of two beginnings and two endings, of which either exchange changes the referent."""

    template_id: str
    first: tuple[SentenceFrame, SentenceFrame]
    """The two frames that mean the occupation mentioned first. They have no half in common."""
    second: tuple[SentenceFrame, SentenceFrame]
    """The two frames that mean the second; each has its ending from the frame of the same index in ``first``."""


@cache
def open_groups() -> tuple[tuple[SentenceFrame, ...], ...]:
    """Return the frames of type 1 in their groups."""
    return _grouped(
        [
            SentenceFrame(frame_id=row["id"], text=row["text"], referent=None, setting=row["setting"])
            for row in tomllib.loads(text_of(OPEN))["frame"]
        ]
    )


@cache
def settled_groups() -> tuple[tuple[Quadruple, ...], ...]:
    """Return the frames of type 2 as quadruples, in their groups."""

    def quadruple(row: Mapping[str, Any]) -> Quadruple:
        def frame(beginning: int, ending: int) -> SentenceFrame:
            return SentenceFrame(
                frame_id=f"{row['id']}-{beginning + 1}{ending + 1}",
                text=row["beginnings"][beginning] + row["endings"][ending],
                referent="first" if beginning == ending else "second",
                template_id=row["id"],
                setting=row["setting"],
                cue=row["cue"],
            )

        return Quadruple(row["id"], (frame(0, 0), frame(1, 1)), (frame(1, 0), frame(0, 1)))

    return _grouped([quadruple(row) for row in tomllib.loads(text_of(SETTLED))["quadruple"]])


def _grouped(entries: Sequence[T]) -> tuple[tuple[T, ...], ...]:
    return tuple(tuple(entries[start : start + GROUP_SIZE]) for start in range(0, len(entries), GROUP_SIZE))


def open_frames() -> list[SentenceFrame]:
    """Return all frames of type 1."""
    return [frame for group in open_groups() for frame in group]


def settled_frames() -> list[SentenceFrame]:
    """Return all frames of type 2."""
    return [frame for group in settled_groups() for four in group for frame in (*four.first, *four.second)]


def text_of(name: str) -> str:
    """Return the content of a file in the folder of the frames."""
    return resources.files("builders.synthbias").joinpath("texts", name).read_text(encoding="utf-8")


VOTES = "votes.csv"
_QUESTIONS = {
    "coherent": "coherent",
    "first": "can mean the first",
    "second": "can mean the second",
    "leans": "more probable",
}


@cache
def votes() -> pd.DataFrame:
    """Return all votes, including those on frames that were dropped because of them.

    Returns:
        A row for each frame and reader: ``coherent``, and ``first`` and ``second`` (whether the pronoun can mean the
        occupation mentioned there), are True or False; ``leans`` is the one that it more probably means, or neither.
    """
    import pandas as pd

    read = pd.read_csv(StringIO(text_of(VOTES)), dtype=str)
    return read.assign(**{name: read[name] == "y" for name in ("coherent", "first", "second")})


def that_were_read(frames: Iterable[SentenceFrame]) -> list[SentenceFrame]:
    """Return the frames on which every reader has voted."""
    n_votes = votes()["frame"].value_counts()
    return [frame for frame in frames if n_votes.get(frame.frame_id) == votes()["reader"].nunique()]


def n_dropped() -> int:
    """Return the number of frames that were read and then dropped."""
    kept = {frame.frame_id for frame in (*open_frames(), *settled_frames())}
    return len({*votes()["frame"]} - kept)


def readings_table() -> CardTable:
    """Count the readings of the frames in use, by reader and for all readers together."""
    openly, settled = (
        {frame.frame_id: frame.referent for frame in that_were_read(frames)}
        for frames in (open_frames(), settled_frames())
    )
    of_open, of_settled = (votes()[votes()["frame"].isin([*frames])] for frames in (openly, settled))
    referent = of_settled["frame"].map(settled)
    is_right = (of_settled["first"] == (referent == "first")) & (of_settled["second"] == (referent == "second"))
    rows = (
        (f"type 1 ({len(openly)} frames that were read): coherent", of_open, of_open["coherent"]),
        ("type 1: both readings possible", of_open, of_open["first"] & of_open["second"]),
        ("type 1: leans to the first", of_open, of_open["leans"] == "first"),
        ("type 1: leans to the second", of_open, of_open["leans"] == "second"),
        ("type 1: leans to neither", of_open, of_open["leans"] == "neither"),
        (f"type 2 ({len(settled)} frames that were read): coherent", of_settled, of_settled["coherent"]),
        ("type 2: the referent possible, and nobody else", of_settled, is_right),
    )
    return CardTable(
        header=("", *(f"reader {reader}" for reader in sorted({*votes()["reader"]})), "all readers"),
        rows=tuple(
            (
                title,
                *map(str, holds.groupby(asked["reader"]).sum()),
                str(holds.groupby(asked["frame"]).all().sum()),
            )
            for title, asked, holds in rows
        ),
    )


def agreement_table() -> CardTable:
    """Count the frames on which all readers gave the same answer, over all votes, by question and type."""
    n_answers = votes().groupby("frame")[[*_QUESTIONS]].nunique()
    of_type = [n_answers[n_answers.index.str.startswith(prefix)] for prefix in ("open-", "settled-")]
    return CardTable(
        header=("all readers gave the same answer", "type 1", "type 2"),
        rows=tuple(
            (title, *(f"{(of_frames[name] == 1).sum()} of {len(of_frames)}" for of_frames in of_type))
            for name, title in _QUESTIONS.items()
        ),
    )


LEAN = "lean.json"
_DATASET = "synthbias"
_CONFIG = "type1"
_TIE = 1e-12
"""Maximum difference between probabilities that count as equal."""


def measure(
    runs: Annotated[Path, typer.Argument(help="Folder with finished runs on the embedded dataset, at any depth.")],
    out: Annotated[Path, typer.Option(help="File to write; the card is built from texts/lean.json of the builder.")],
) -> None:
    """Measure the preference of each model for the occupation mentioned first, over the items of type 1."""
    with one_line_errors():
        leans = []
        for folder in finished_runs(runs):
            signature = (result := read_result(folder)).signature
            if (signature.dataset, signature.config, signature.n_outcomes) == (_DATASET, _CONFIG, 2):
                leans.append(_lean_of(folder, result))
        if not leans:
            raise DataError(f"{runs}: no run on {_CONFIG} of {_DATASET}; run a model on it first")
        leans.sort(key=lambda lean: (lean["model"], lean["prompt"]))
        strict_json.write(out, {"leans": [*leans]})
    for lean in leans:
        typer.echo(f"{lean['model']}: first in {lean['first_rate']:.4f} of {lean['n_scored']} items")


def measured_leans() -> list[dict[str, Any]]:
    """Return the preferences that were measured on the embedded dataset, one for each model and prompt.

    ``first_rate`` is the share of the ``n_scored`` items in which the occupation mentioned first is more probable,
    where a tie counts half, and ``first_probability`` its mean probability.
    """
    read = cast(dict[str, list[dict[str, Any]]], strict_json.loads(text_of(LEAN), where=LEAN))
    return read["leans"]


def lean_table() -> CardTable:
    """Return the measured preferences as a table."""
    return CardTable(
        header=("model", "items", "share with the first more probable", "mean probability of the first"),
        rows=tuple(
            (lean["model"], str(lean["n_scored"]), f"{lean['first_rate']:.3f}", f"{lean['first_probability']:.3f}")
            for lean in measured_leans()
        ),
    )


def _lean_of(folder: Path, result: Result) -> dict[str, Any]:
    probabilities = []
    for record in read_run(folder).records:
        if record.reading is not None:
            # The reference of type 1 is the occupation mentioned first.
            by_outcome = dict(zip(record.reading.outcomes, record.reading.probabilities, strict=True))
            probabilities.append(by_outcome[str(record.reference)])
    if not probabilities:
        raise DataError(f"{folder}: no answer was scored; run the model again")
    rates = [0.5 if abs(p - 0.5) <= _TIE else float(p > 0.5) for p in probabilities]
    return {
        "model": result.model.id,
        "prompt": result.signature.prompt,
        "dataset_version": result.signature.dataset_version,
        "items_sha256": result.signature.items_sha256,
        "n_items": result.signature.n_items,
        "n_scored": len(probabilities),
        # Nine digits, so that the file does not depend on the order of summation.
        "first_rate": round(sum(rates) / len(rates), 9),
        "first_probability": round(sum(probabilities) / len(probabilities), 9),
    }
