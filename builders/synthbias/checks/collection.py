"""The sentences of a file or of files that belong together, with what the checks compare them by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

from builders.synthbias.checks.sentence import Sentence


class Pair(NamedTuple):
    """The indices of the two sides of a minimal pair."""

    one: int
    other: int


class Collection:
    """Sentences, with their minimal pairs and the groups of sentences that are equal in some way.

    Args:
        sentences: All sentences, in the order of the source.
        pairs: Pairs that the source names. If it names none, two sentences are a pair if they are equal apart from the
            pronouns, are of one type and ask about the same occupation.
    """

    def __init__(self, sentences: Sequence[Sentence], pairs: Sequence[Pair] | None = None) -> None:
        self.sentences = sentences
        self._named_pairs = pairs

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """The minimal pairs, without the sentences that have no or several counterparts."""
        if self._named_pairs is not None:
            return self._named_pairs
        return [Pair(*group) for group in self.sides if self._is_pair(group)]

    @cached_property
    def sides(self) -> Sequence[Sequence[int]]:
        """The indices of the sentences by minimal pair, also of incomplete and overfull ones."""
        if self._named_pairs is None:
            return self._groups(lambda sentence: (sentence.type, sentence.masked, sentence.meant))
        paired = {index for pair in self._named_pairs for index in pair}
        return [*self._named_pairs, *((index,) for index in range(len(self.sentences)) if index not in paired)]

    @cached_property
    def same_text(self) -> Sequence[Sequence[int]]:
        """The indices of the sentences by text."""
        return self._groups(lambda sentence: sentence.text)

    @cached_property
    def same_template(self) -> Sequence[Sequence[int]]:
        """The indices of the sentences by template."""
        return self._groups(lambda sentence: sentence.template)

    def types(self, group: Sequence[int]) -> set[str | None]:
        """Return the types of some sentences."""
        return {self.sentences[index].type for index in group}

    def _is_pair(self, group: Sequence[int]) -> bool:
        return len(group) == 2 and self.sentences[group[0]].gender != self.sentences[group[1]].gender

    def _groups(self, key: Callable[[Sentence], object]) -> Sequence[Sequence[int]]:
        groups: dict[object, list[int]] = defaultdict(list)
        for index, sentence in enumerate(self.sentences):
            groups[key(sentence)].append(index)
        return list(groups.values())
