"""How far cues get on the embedded sentences with a referent: ``make bench ARGS='-k bench_cues'``.

A cue would have a rank if its accuracy were at least .05 above that of a coin, and the interval of that lead over
occupation pairs and frames did not include 0. None may: the three cues that ranked first on version 2.0.0, any single
cue (chosen with the answers in view), and stacks of three that a search finds on half of the frames, on the other half.
Accuracies on earlier versions, by the same search: the best single cue was right in .749 of 1.0.0 and .576 of 2.0.0,
a stack of three, chosen with the answers in view, in .825 and .673.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from builders.synthbias.embedded import candidates, check, occupation_pairs
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon.coreference_cues import (
    CueText,
    best_cue,
    cues_of,
    decision_tables,
    masked_words,
    positions_and_lengths,
)

LEAST_LEAD = 0.05
N_HALVES = 200


class Lead(NamedTuple):
    """How much more often than a coin a rule is right."""

    accuracy: float
    low: float
    """Lower end of the interval of the accuracy at 95 %."""

    @property
    def has_a_rank(self) -> bool:
        return self.low > 0.5 and self.accuracy >= 0.5 + LEAST_LEAD


class World:
    """The items of type 2, their cues and their clusters."""

    def __init__(self) -> None:
        checked = check(candidates(occupation_pairs()[0], seed=0))
        self.items: list[CoreferenceItem] = [item for item in checked.items if item.referent is not None]
        words = [masked_words(item.sentence, item.occupations) for item in self.items]
        self.words = words
        templates = [str(item.template_id) for item in self.items]
        _, self.holds = cues_of(words, positions_and_lengths(words), templates)
        self.answers: IntArray = np.array([int(item.referent != item.occupations[0]) for item in self.items])
        self.frames = self._codes([str(item.template_id) for item in self.items])
        self.pairs = self._codes([item.cluster for item in self.items])

    @staticmethod
    def _codes(names: list[str]) -> IntArray:
        codes: IntArray = np.unique(names, return_inverse=True)[1]
        return codes

    def lead(self, guesses: IntArray, rows: BoolArray) -> Lead:
        """Return the lead of some guesses, with the variance of both factors (Cameron, Gelbach & Miller 2011)."""
        right = (guesses == self.answers[rows]).astype(np.float64)
        frames, pairs = self.frames[rows], self.pairs[rows]
        residuals = right - right.mean()
        cells = frames * (self.pairs.max() + 1) + pairs
        of_frames, of_pairs, of_cells = (_variance(residuals, factor) for factor in (frames, pairs, cells))
        variance = max(of_frames, of_pairs, of_frames + of_pairs - of_cells)
        n = min(len(np.unique(frames)), len(np.unique(pairs)))
        return Lead(right.mean(), right.mean() - float(stdtrit(n - 1, 0.975)) * variance**0.5)


def _variance(residuals: FloatArray, factor: IntArray) -> float:
    sums = np.bincount(factor, weights=residuals)
    n = len(np.unique(factor))
    return float(sums @ sums) / len(residuals) ** 2 * n / (n - 1)


def bench_cues() -> None:
    """Single cues, stacks of three on the other half of the frames, and the baseline that searches itself."""
    world = World()
    everywhere = np.ones(len(world.items), dtype=np.bool_)
    named = {
        "'asked the' -> first": [" asked the " not in item.sentence for item in world.items],
        "'because' after the second occupation -> last": [
            "because" in item.sentence[item.sentence.index(item.occupations[1]) :] for item in world.items
        ],
        "pronoun before character 64 -> first": [item.pronoun_start >= 64 for item in world.items],
    }
    print()
    for name, guesses in named.items():
        lead = world.lead(np.array(guesses, dtype=np.int64), everywhere)
        print(f"{name}: {lead.accuracy:.4f}")
        assert not lead.has_a_rank
    holds = world.holds.astype(np.int64)
    single = [
        world.lead(guesses, everywhere)
        for cue in range(holds.shape[1])
        for guesses in (holds[:, cue], 1 - holds[:, cue])
    ]
    best = max(single)
    print(f"best of {len(single) // 2} cues, either way: {best.accuracy:.4f}")
    assert not any(lead.has_a_rank for lead in single)
    targets = np.eye(2)[world.answers]
    frames = np.unique(world.frames).tolist()
    stacks = []
    for seed in range(N_HALVES):
        half = np.isin(world.frames, random.Random(seed).sample(frames, len(frames) // 2))
        *_, table = decision_tables(world.holds[half], targets[half])
        stacks.append(world.lead(table.predict(world.holds[~half]), ~half))
    accuracies = [lead.accuracy for lead in stacks]
    print(f"stacks of three on the other half: mean {np.mean(accuracies):.4f}, largest {max(accuracies):.4f}")
    assert not any(lead.has_a_rank for lead in stacks)
    texts = [
        CueText(item.sentence, item.occupations, item.referent == item.occupations[0], str(item.template_id))
        for item in world.items
    ]
    predicted = np.array([not means_first for means_first in best_cue(texts).means_first], dtype=np.int64)
    lead = world.lead(predicted, everywhere)
    print(f"best-cue: {lead.accuracy:.4f}")
    assert not lead.has_a_rank
