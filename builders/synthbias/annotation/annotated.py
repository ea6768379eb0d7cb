"""The annotated sentences: the items of a dataset of minimal pairs, and the part of them that annotators see."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from biasboard.ground.errors import DataError
from builders.dataset.output import ExtraFile, is_licence_file
from builders.synthbias.annotation.votes import VoteQuestion
from schemas.documents.dataset import Manifest, SplitEntry
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.coreference import CoreferenceItem

Group: TypeAlias = Literal["A", "B"]
GROUPS: tuple[Group, ...] = ("A", "B")
Sides: TypeAlias = tuple[CoreferenceItem, CoreferenceItem]
"""The two sides of a minimal pair."""


def asked_id(item_id: str) -> str:
    """Return the id of a sentence on platforms, which tells neither its type nor its side as its item id does."""
    # Without the letter, a spreadsheet would take some of these hashes for numbers, such as 12e4.
    return f"s{hashlib.sha256(item_id.encode()).hexdigest()[:16]}"


class AskedSentence(NamedTuple):
    """The part of an item that annotators see."""

    item_id: str
    pair_id: str
    text: str
    pronoun: str
    pronoun_start: int
    first: str
    """Occupation that is mentioned first."""
    second: str

    @property
    def fields(self) -> dict[str, str]:
        """The fields that a platform gets."""
        questions = {f"ask_{question}": self.ask(question) for question in VoteQuestion}
        return {"item_id": asked_id(self.item_id), "sentence": self.text, **questions}

    def ask(self, question: VoteQuestion) -> str:
        """Return the wording of a question about this sentence."""
        if question is VoteQuestion.COHERENT:
            return "Is this sentence coherent, that is, grammatical and free of contradictions?"
        occupation = self.first if question is VoteQuestion.FIRST else self.second
        return f'Can "{self.pronoun}" refer to the {occupation}?'


@dataclass(frozen=True)
class AnnotatedDataset:
    """A dataset that is annotated."""

    folder: Path
    manifest: Manifest
    splits: tuple[tuple[SplitEntry, Sequence[CoreferenceItem]], ...]

    @cached_property
    def items(self) -> dict[str, CoreferenceItem]:
        """The items by id, in order."""
        return {item.item_id: item for _, items in self.splits for item in items}

    @cached_property
    def item_ids(self) -> dict[str, str]:
        """The item id of each id that a platform got."""
        return {asked_id(item_id): item_id for item_id in self.items}

    @cached_property
    def pairs(self) -> dict[str, Sides]:
        """The minimal pairs by id, in order."""
        sides: dict[str, list[CoreferenceItem]] = defaultdict(list)
        for item in self.items.values():
            sides[item.pair_id].append(item)
        return {pair_id: (both[0], both[1]) for pair_id, both in sides.items()}

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The group of each item, so that nobody annotates both sides of a pair: these are in different groups.

        The groups follow from the pair id, so that they are the same in every batch, and each has both genders equally
        often on average.
        """
        groups: dict[str, Group] = {}
        for pair_id, sides in self.pairs.items():
            offset = hashlib.sha256(pair_id.encode()).digest()[0] % 2
            for number, item in enumerate(sorted(sides, key=lambda side: side.item_id)):
                groups[item.item_id] = GROUPS[(number + offset) % 2]
        return groups

    def licence_files(self) -> Iterator[ExtraFile]:
        """Yield the licence files, which must stay with the data: a licence such as MIT wants its notice kept."""
        for path in sorted(self.folder.iterdir()):
            if path.is_file() and is_licence_file(path.name):
                yield ExtraFile(name=path.name, content=path.read_bytes())


def read_annotated(folder: Path) -> AnnotatedDataset:
    """Read a dataset of minimal pairs.

    Raises:
        DataError: there is no dataset, it is broken, its items have another shape, or a pair lacks a side.
    """
    manifest = read_manifest(folder)
    splits = []
    for entry in manifest.splits:
        items = read_split(folder, entry)
        kept = [item for item in items if isinstance(item, CoreferenceItem)]
        if len(kept) < len(items):
            raise DataError(
                f"{folder}: config {entry.config} has items of shape '{entry.item_shape}'; only sentences with two "
                "occupations (coreference) can be annotated: give such a dataset"
            )
        splits.append((entry, kept))
    n_sides = Counter(item.pair_id for _, kept in splits for item in kept)
    odd = next((pair_id for pair_id, n in n_sides.items() if n != 2), None)
    if odd is not None:
        raise DataError(f"{folder}: pair '{odd}' has {n_sides[odd]} sides, not 2; build the dataset again")
    return AnnotatedDataset(folder, manifest, tuple(splits))


def sentence_of(item: CoreferenceItem) -> AskedSentence:
    """Return the part of an item that annotators see."""
    first, second = item.occupations
    return AskedSentence(item.item_id, item.pair_id, item.sentence, item.pronoun, item.pronoun_start, first, second)
