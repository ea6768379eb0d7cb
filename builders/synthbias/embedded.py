"""The source *embedded*: sentence frames of this project, filled with pairs of occupations and both pronouns.

It follows the recipe of SynthBias (Wang et al. 2025, arXiv:2505.23996) and WinoBias (Zhao et al. 2018,
arXiv:1804.06876), but uses frames instead of a language model, so that the design is balanced and every sentence is
grammatical. No human has validated the sentences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import NamedTuple

from builders.dataset.output import Draft
from builders.synthbias import embedded_card
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.catalogue import CATALOGUE, first_finding
from builders.synthbias.checks.check import Finding
from builders.synthbias.checks.duplicates import Duplicates
from builders.synthbias.checks.occupations import MIN_PERCENT_GAP
from builders.synthbias.checks.profiles import EMBEDDED, OLDER_NAMES
from builders.synthbias.checks.sentence import Sentence
from builders.synthbias.frame import Frame, Position
from builders.synthbias.frames import OPEN, SETTLED, open_groups, settled_groups, text_of
from builders.synthbias.latin_square import two_of_three
from builders.synthbias.minimal_pair import Config, Slotted, items_of, split_of
from builders.synthbias.pair_selection import take_pairs
from schemas.documents.dataset import Reject, Source
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import occupations

BUILDER_VERSION = "2.0"
DATASET_VERSION = "2.0.0"
DEFAULT_SEED = 0
POSITIONS: tuple[Position, ...] = ("first", "second")

_CHECKED = (*EMBEDDED, "repeated_apart_from_pronoun")
"""Checks whose findings the rejects of sentences can name."""


class Candidate(NamedTuple):
    """A frame and the two occupations to fill it with: a minimal pair that is yet to be checked."""

    config: Config
    frame: Frame
    first: str
    second: str


class Checked(NamedTuple):
    """The items and rejects that checking the candidates gave."""

    items: list[CoreferenceItem]
    rejects: list[Reject]


def draft(*, seed: int = DEFAULT_SEED, limit: int | None = None) -> Draft[CoreferenceItem]:
    """Build a draft of the embedded dataset.

    Args:
        seed: Seed that assigns frames to occupation pairs.
        limit: Maximum number of items; None for all.

    Raises:
        ConfigError: the limit is too small to keep a pair of each type.
    """
    pairs, narrow = occupation_pairs()
    checked = check(candidates(pairs, seed=seed))
    splits = take_pairs([split_of("type1", checked.items), split_of("type2", checked.items)], limit)
    return Draft(
        name="synthbias",
        benchmark="synthbias",
        version=DATASET_VERSION,
        title="SynthBias, embedded frames",
        builder="builders.synthbias.embedded",
        builder_version=BUILDER_VERSION,
        parameters={"source": "embedded", "limit": limit, "min_percent_gap": MIN_PERCENT_GAP},
        seed=seed,
        sources=_sources(),
        generator_model=None,
        licence="Apache-2.0",
        publish_refusal=None,
        human_validated=False,
        splits=splits,
        rejects=(*narrow, *checked.rejects),
        reject_rules=(
            CATALOGUE["gap_too_small"].as_rule(),
            *(CATALOGUE[name].as_rule(_rule(name)) for name in _CHECKED),
        ),
        flag_rules=(),
        card=synthbias_card(
            data_statement=embedded_card.DATA_STATEMENT,
            how_built=embedded_card.how_built(MIN_PERCENT_GAP),
            annotation=embedded_card.ANNOTATION,
            biases=embedded_card.BIASES,
            licence_terms=embedded_card.LICENCE_TERMS,
            known_limits=embedded_card.known_limits(),
            citation=embedded_card.CITATION,
            splits=splits,
        ),
    )


class OccupationPairs(NamedTuple):
    """The occupation pairs to use, male-stereotyped first, and rejects for the pairs with too small a gap."""

    kept: list[tuple[str, str]]
    rejects: list[Reject]


def occupation_pairs() -> OccupationPairs:
    """Combine every male- with every female-stereotyped occupation, and reject pairs with too small a gap."""
    kept, rejects = [], []
    for male in _listed("male"):
        for female in _listed("female"):
            finding = first_finding(Sentence(text="", meant=(male, female)), ("gap_too_small",))
            if finding is None:
                kept.append((male, female))
            else:
                pair = f"{male}|{female}"
                rejects.append(Reject(candidate=pair, source_row=None, rule=finding.check, reason=finding.reason))
    return OccupationPairs(kept, rejects)


def candidates(pairs: Sequence[tuple[str, str]], *, seed: int) -> Iterator[Candidate]:
    """Yield eight minimal pairs of each type for every occupation pair, with frames assigned by Latin squares.

    Each frame that an occupation pair gets is filled in both orders, so that every frame meets every occupation of the
    pair in both positions. Type 1 has four frames for each occupation pair, two from either half of the groups. Type 2
    has two twins, hence two frames for each position of the referent.
    """
    rows, columns = _listed("male"), _listed("female")
    groups = open_groups()
    halves = [
        two_of_three(rows, columns, half, seed=seed, purpose=f"type1/{number}")
        for number, half in enumerate((groups[: len(groups) // 2], groups[len(groups) // 2 :]))
    ]
    twins = two_of_three(rows, columns, settled_groups(), seed=seed, purpose="type2")
    for male, female in pairs:
        frames = [half[male, female][slot] for slot in (0, 1) for half in halves]
        # The orders alternate, so that a limit takes both of them equally often.
        for turn in (0, 1):
            for number, frame in enumerate(frames):
                first, second = (male, female) if number % 2 == turn else (female, male)
                yield Candidate("type1", frame, first, second)
    for male, female in pairs:
        for twin in twins[male, female]:
            for position in POSITIONS:
                for referent_is_male in (True, False):
                    male_first = referent_is_male == (position == "first")
                    first, second = (male, female) if male_first else (female, male)
                    yield Candidate("type2", twin.of(position), first, second)


def check(found: Iterable[Candidate]) -> Checked:
    """Turn each candidate into two items, or into a reject if it breaks a rule or repeats an earlier candidate."""
    items: list[CoreferenceItem] = []
    rejects: list[Reject] = []
    seen = Duplicates()
    for candidate in found:
        sides = _sides(candidate)
        reject = _broken_rule(sides) or _repeated(sides[0], seen)
        if reject is None:
            items.extend(sides)
        else:
            rejects.append(reject)
    return Checked(items, rejects)


def _broken_rule(sides: Iterable[CoreferenceItem]) -> Reject | None:
    for side in sides:
        finding = first_finding(_sentence(side), EMBEDDED)
        if finding is not None:
            return _reject(side, finding)
    return None


def _repeated(side: CoreferenceItem, seen: Duplicates) -> Reject | None:
    finding = seen.add(_sentence(side))
    return None if finding is None else _reject(side, finding)


def _sentence(item: CoreferenceItem) -> Sentence:
    return Sentence(text=item.sentence, meant=(item.occupations[0], item.occupations[1]))


def _reject(item: CoreferenceItem, finding: Finding) -> Reject:
    return Reject(
        candidate=item.sentence, source_row=item.template_id, rule=_rule(finding.check), reason=finding.reason
    )


def _rule(check: str) -> str:
    return OLDER_NAMES["synthbias"].get(check, check)


def _sides(candidate: Candidate) -> tuple[CoreferenceItem, ...]:
    """Return both sides of a minimal pair, the masculine one first."""
    config, frame, first, second = candidate
    sentence, pronoun, start = frame.fill(first, second, "masculine")
    after = sentence[start + len(pronoun) :]
    slotted = Slotted(config, sentence[:start], frame.case, after, first, second, frame.referent)
    return items_of(slotted, template_id=frame.frame_id, source_row=None)


def _listed(stereotype: str) -> list[str]:
    return [name for name, occupation in occupations().items() if occupation.stereotype == stereotype]


def _sources() -> tuple[Source, ...]:
    lexicon = resources.files("schemas.lexicon").joinpath("occupations.json").read_bytes()
    return (
        *(
            Source(
                name=f"sentence frames of this project, {name}",
                address=f"builders/synthbias/texts/{name}",
                revision=BUILDER_VERSION,
                sha256=hashlib.sha256(text_of(name).encode()).hexdigest(),
                licence="Apache-2.0",
                redistributable=True,
            )
            for name in (OPEN, SETTLED)
        ),
        Source(
            name="occupations and shares of women (US Current Population Survey 2017, lists of WinoBias)",
            address="schemas/lexicon/occupations.json",
            revision=BUILDER_VERSION,
            sha256=hashlib.sha256(lexicon).hexdigest(),
            licence="MIT",
            redistributable=True,
        ),
    )
