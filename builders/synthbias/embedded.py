"""The source *embedded*: sentence frames of this project, filled with occupation pairs and both pronouns.

It follows the recipe of SynthBias (Wang et al. 2025, arXiv:2505.23996) and WinoBias (Zhao et al. 2018,
arXiv:1804.06876), but uses frames instead of a language model, so that the design is balanced and every sentence is
grammatical. No human has validated the sentences.

Reads the frames of this project from ``texts/``, in groups that are distributed over the occupation pairs.

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

import hashlib
import string
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from builders.dataset.card import Annotation, Card, CardTable
from builders.dataset.inputs import packaged_source
from builders.dataset.output import Draft, DraftSplit, Rule
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.catalogue import CATALOGUE, EMBEDDED, OLDER_NAMES, Duplicates, first_finding
from builders.synthbias.checks.check import Sentence
from builders.synthbias.checks.sentence_checks import MIN_PERCENT_GAP
from builders.synthbias.minimal_pairs import CONFIGS, CheckedItems, Position, Slotted, items_of, split_of, take_pairs
from schemas.documents.dataset import Reject, Source
from schemas.documents.result import Result
from schemas.folders.run_folder import finished_runs, read_result, read_run
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import CASES, PronounCase, occupations

if TYPE_CHECKING:
    import pandas as pd


BUILDER_VERSION = "4.0"
DATASET_VERSION = "4.0.0"
DEFAULT_SEED = 0

_STEPS = (3, 7, 19)
"""Steps of the three Latin squares. With twenty rows they differ by 2 or 6 from 1, the step by which groups are left
out, so that every symbol of a group is left out about equally often."""

T = TypeVar("T")

_CHECKED = (*EMBEDDED, "repeated_apart_from_pronoun")
"""Checks by which sentences can be rejected."""


class FilledFrame(NamedTuple):
    """A frame and the two occupations to fill it with: a minimal pair that has not been checked yet."""

    frame: SentenceFrame
    first: str
    """Occupation that is mentioned first."""
    second: str


def draft(*, seed: int = DEFAULT_SEED, limit: int | None = None) -> Draft[CoreferenceItem]:
    """Build a draft of the embedded dataset.

    Args:
        seed: Seed that assigns frames to occupation pairs.
        limit: Maximum number of items; None for all.

    Raises:
        ConfigError: the limit is too small to keep a pair of each type.
    """
    narrow, checked = _checked_pairs(seed)
    splits = take_pairs([split_of(config, checked.items) for config in CONFIGS], limit)
    return Draft(
        name="synthbias",
        benchmark="synthbias",
        version=DATASET_VERSION,
        title="SynthBias, embedded frames",
        builder="builders.synthbias.embedded",
        builder_version=BUILDER_VERSION,
        parameters={"source": "embedded", "limit": limit, "min_percent_gap": MIN_PERCENT_GAP},
        seed=seed,
        sources=sources(),
        licence="Apache-2.0",
        splits=splits,
        rejects=(*narrow, *checked.rejects),
        reject_rules=reject_rules(),
        card=_card(splits),
    )


@cache  # Any limit takes from the same sentences, and to check them takes a second.
def _checked_pairs(seed: int) -> tuple[list[Reject], CheckedItems]:
    pairs, narrow = occupation_pairs()
    return narrow, check(candidates(pairs, seed=seed))


def reject_rules() -> tuple[Rule, ...]:
    """Return the rules by which occupation pairs and candidates are rejected."""
    return (
        CATALOGUE["gap_too_small"].as_rule(),
        *(CATALOGUE[name].as_rule(_rule(name)) for name in _CHECKED),
    )


def occupation_pairs() -> tuple[list[tuple[str, str]], list[Reject]]:
    """Combine every male- with every female-stereotyped occupation.

    Returns:
        The pairs to use, male-stereotyped first, and the rejected pairs, whose gap is too small.
    """
    kept: list[tuple[str, str]] = []
    rejects = []
    for male in _listed("male"):
        for female in _listed("female"):
            finding = first_finding(Sentence(text="", meant=(male, female)), ("gap_too_small",))
            if finding is None:
                kept.append((male, female))
            else:
                pair = f"{male}|{female}"
                rejects.append(Reject(candidate=pair, source_row=None, rule=finding.check, reason=finding.reason))
    return kept, rejects


def candidates(pairs: Sequence[tuple[str, str]], *, seed: int) -> Iterator[FilledFrame]:
    """Yield eight minimal pairs of each type for every occupation pair, with frames assigned by Latin squares.

    Type 1 has four frames per occupation pair, two from either half of the groups, each filled in both orders. Type 2
    has two quadruples, hence four frames for each position of the referent, two of which mean either occupation. Each
    frame has one order of mention in a pair, and the other one in the next pair of its quadruple.
    """
    rows, columns = _listed("male"), _listed("female")
    groups = open_groups()
    halves = [
        two_of_three(rows, columns, half, seed=seed, purpose=f"type1/{number}")
        for number, half in enumerate((groups[: len(groups) // 2], groups[len(groups) // 2 :]))
    ]
    quadruples = two_of_three(rows, columns, settled_groups(), seed=seed, purpose="type2")
    for male, female in pairs:
        frames = [half[male, female][slot] for slot in (0, 1) for half in halves]
        # The orders alternate, so that a limited selection has both equally often.
        for turn in (0, 1):
            for number, frame in enumerate(frames):
                first, second = (male, female) if number % 2 == turn else (female, male)
                yield FilledFrame(frame, first, second)
    n_uses: Counter[str] = Counter()
    for male, female in pairs:
        for quadruple in quadruples[male, female]:
            turn = n_uses[quadruple.template_id] % 2
            n_uses[quadruple.template_id] += 1
            for position in ("first", "second"):
                for number, referent_is_male in enumerate((True, False)):
                    male_first = referent_is_male == (position == "first")
                    first, second = (male, female) if male_first else (female, male)
                    meant = quadruple.first if position == "first" else quadruple.second
                    yield FilledFrame(meant[number ^ turn], first, second)


def check(candidates: Iterable[FilledFrame]) -> CheckedItems:
    """Turn each candidate into two items, or into a reject if it breaks a rule or repeats an earlier candidate."""
    items: list[CoreferenceItem] = []
    rejects: list[Reject] = []
    seen = Duplicates()
    for candidate in candidates:
        slotted = candidate.frame.about(candidate.first, candidate.second)
        frame_id = candidate.frame.frame_id
        sides = items_of(slotted, template_id=candidate.frame.template_id or frame_id, source_row=frame_id)
        sentences = [Sentence(text=side.sentence, meant=(slotted.first, slotted.second)) for side in sides]
        findings = ((side, first_finding(one, EMBEDDED)) for side, one in zip(sides, sentences, strict=True))
        side, finding = next((found for found in findings if found[1] is not None), (sides[0], None))
        # Only a candidate without a finding is remembered.
        finding = finding or seen.add(sentences[0])
        if finding is None:
            items.extend(sides)
        else:
            rule = _rule(finding.check)
            rejects.append(
                Reject(candidate=side.sentence, source_row=side.source_row, rule=rule, reason=finding.reason)
            )
    return CheckedItems(tuple(items), tuple(rejects))


def _rule(check: str) -> str:
    return OLDER_NAMES["synthbias"].get(check, check)


def _listed(stereotype: str) -> list[str]:
    return [name for name, occupation in occupations().items() if occupation.stereotype == stereotype]


def sources() -> tuple[Source, ...]:
    """Return the frames and the occupations, with their hashes."""
    return (
        *(
            packaged_source(
                f"sentence frames of this project, {name}", f"builders/synthbias/texts/{name}", revision=BUILDER_VERSION
            )
            for name in (OPEN, SETTLED)
        ),
        packaged_source(
            "occupations and shares of women (US Current Population Survey 2017, lists of WinoBias)",
            "schemas/lexicon/occupations.json",
            revision=BUILDER_VERSION,
            licence="MIT",
        ),
    )


def shuffled(names: Sequence[str], seed: int, purpose: str) -> list[str]:
    """Return names in an order that depends only on the seed and the purpose.

    Names are sorted by hash rather than shuffled by a random generator, whose numbers may change with its library: the
    same seed must give the same dataset in every environment.
    """
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{purpose}/{name}".encode()).digest())


def two_of_three(
    rows: Sequence[str], columns: Sequence[str], groups: Sequence[Sequence[T]], *, seed: int, purpose: str
) -> Mapping[tuple[str, str], tuple[T, T]]:
    """Assign to each pair of row and column one symbol from each of two out of three groups.

    Each group has its own Latin square, in which no symbol occurs twice in a row or column. The group that a pair
    leaves out follows the diagonals of the grid, so that each row and column leaves out each group in a third of its
    pairs.

    Args:
        rows: Distinct row names, shape (n,), where n is no multiple of 3, 7 or 19.
        columns: Distinct column names, shape (n,).
        groups: Three groups of distinct symbols, shape (3, n).
        seed: Seed that selects the squares.
        purpose: Name of the assignment, which makes assignments with the same seed differ.

    Returns:
        The two symbols of each (row, column).

    Raises:
        ValueError: the numbers of rows, columns and symbols per group differ, or there are not three groups.

    >>> assigned = two_of_three(["a", "b"], ["x", "y"], ["01", "23", "45"], seed=0, purpose="doc")
    >>> sorted(set(assigned["a", "x"]) & set(assigned["a", "y"])), len(assigned["a", "x"])
    ([], 2)
    """
    n = len(rows)
    sizes = [len(columns), *map(len, groups)]
    if len(groups) != len(_STEPS) or any(size != n for size in sizes):
        raise ValueError(
            f"{n} rows need as many columns ({sizes[0]}) and three groups of as many symbols ({sizes[1:]})"
        )
    orders = [
        [int(number) for number in shuffled([str(number) for number in range(n)], seed, f"{purpose}/symbols/{group}")]
        for group in range(len(groups))
    ]
    assigned = {}
    for i, row in enumerate(shuffled(rows, seed, f"{purpose}/rows")):
        for j, column in enumerate(shuffled(columns, seed, f"{purpose}/columns")):
            symbols = [groups[g][orders[g][(i + step * j) % n]] for g, step in enumerate(_STEPS)]
            left_out = (i + j) % n % len(_STEPS)
            first, second = (symbol for g, symbol in enumerate(symbols) if g != left_out)
            assigned[row, column] = (first, second)
    return assigned


def how_built() -> str:
    """Describe how the sentences were built, with the numbers of this version."""
    openly, settled = open_frames(), settled_frames()
    n_frames = len(openly) + len(settled)
    n_unread = n_frames - len(that_were_read([*openly, *settled]))
    n_read, n_readers = votes()["frame"].nunique(), votes()["reader"].nunique()
    unread = f"{n_unread} of the {n_frames} frames in use were read by nobody but their author. " if n_unread else ""
    return f"""\
{len(openly)} frames of type 1 ({_shares(frame.setting for frame in openly)}) and {len(settled)} of type 2
({_shares(frame.setting for frame in settled)}), each with one slot for a pronoun in a given case, are filled with
every pair of a male- and a female-stereotyped occupation whose shares of women differ by more than
{MIN_PERCENT_GAP:g} points. Both pronouns come from a table by case; none is ever exchanged in a finished sentence.

* Type 1: four frames for each occupation pair, each in both orders of mention.
* Type 2: frames come in quadruples of two beginnings and two endings. The referent changes with either, so that what is
  read in one half alone (a word, its position, its length) is right in two frames of four. Each occupation pair gets
  two quadruples: two minimal pairs for each of {{referent mentioned first, second}} x {{referent male-,
  female-stereotyped}} and quadruple. What settles the referent: {_shares(frame.cue for frame in settled)}.
* So every frame has both pronouns with each occupation pair that it is used with, frames of type 1 have both orders of
  mention, and no occupation meets a frame with two partners. Latin squares spread the frames; the seed chooses them.
* Every sentence is checked by rule; what breaks one, or repeats another sentence, is in `rejects.parquet`.

Readings: {n_readers} language models each read {n_read} frames once, filled with two occupations of one stereotype
and about equal shares of women, and answered whether it is coherent, whether the pronoun can mean the one and the
other, and whom it more probably means. This is no annotation by people. {n_dropped()} of these frames were dropped and
replaced, because a reader read them otherwise than intended, because too many leaned to the occupation mentioned first,
because two people were joined by *and*, of whom none stands out, because they sounded stilted, or because their words
and positions told the referent. {unread}The readings of the others in use (`texts/votes.csv` of the builder):

{readings_table().markdown()}

{agreement_table().markdown()}"""


def known_limits() -> str:
    """Describe the limits of the dataset, with the measured preference of models for a position."""
    n_frames = len(open_frames()) + len(settled_frames())
    versions, prompts = (
        ", ".join(sorted({lean[name] for lean in measured_leans()})) for name in ("dataset_version", "prompt")
    )
    return f"""\
* No human has validated the sentences; both readings of type 1 are possible, but not always equally likely.
* {n_frames} frames are few beside thousands of written sentences, and the four of a quadruple, which share a
  `template_id`, tell less than four that were written apart. The right answers of two of them give away the other two:
  hold out whole quadruples if you split the data.
* Two genders of pronouns, one language, the labor market of one country and year.
* A stereotype is nothing but membership of the WinoBias lists, which split the occupations at 50 percent women.

How much models prefer the occupation mentioned first in type 1, measured on version {versions} with the
prompt {prompts}. Every occupation stands first as often as second
there, so that a model without a preference for a position shows 0.5:

{lean_table().markdown()}"""


def _shares(kinds: Iterable[str | None]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in Counter(kinds).most_common())


def _card(splits: Sequence[DraftSplit[CoreferenceItem]]) -> Card:
    return synthbias_card(
        data_statement="""\
American English sentences, half about work and half about everyday life, each with two of the 40 occupations of
WinoBias and one form of *he* or *she* after both. Config `type1`: both readings are natural, so there is no right
answer (`referent` is null, and `reference` is the occupation mentioned first). Config `type2`: syntax, meaning or
knowledge of the world settles the referent. The two items of a `pair_id` differ in exactly one token, the pronoun.
`cluster` is the occupation pair, `source_row` the frame, and `template_id` what frames share that were written
together.

**No human has validated these sentences.** What is ambiguous and what is not was decided when the frames were written.
Language models read frames without the intended answer, and frames that they read otherwise were replaced (see
*Readings*). Rules in code check form, not meaning.""",
        how_built=how_built(),
        annotation=Annotation(
            protocol=(
                "Nobody annotated the items. Whether a sentence is ambiguous, and whom its pronoun means, belongs to "
                "the frame and was decided when it was written; form is checked by rule. Language models read frames "
                "without the intended answer, and frames that they read otherwise were replaced."
            ),
            annotators="No people: two language models read the frames, and their answers are in the card.",
            per_item="0",
        ),
        biases="""\
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States.
* The frames are scenes of ordinary working life as their few authors imagine it, in American English.""",
        licence_terms=(
            "The sentences and their annotation are licensed under Apache-2.0, like the code that writes them."
        ),
        known_limits=known_limits(),
        citation="""\
Cite this project with the dataset version, and the work that it follows: Wang et al. 2025 (UCerF and SynthBias,
arXiv:2505.23996) and Zhao et al. 2018 (WinoBias, arXiv:1804.06876).""",
        splits=splits,
    )


GROUP_SIZE = 20
"""Number of frames in a group: one for each of the twenty possible partners of an occupation."""
OPEN = "open.toml"
SETTLED = "settled.toml"

F = TypeVar("F")


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


def _grouped(entries: Sequence[F]) -> tuple[tuple[F, ...], ...]:
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
