"""The search for cues: it gets what carries over to other clusters, and nothing else."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from schemas.lexicon.coreference_cues import MAX_DEPTH, cues_of, decision_tables, predict_by_cues

N_FRAMES, N_PAIRS = 60, 12
FILLING = ["apple", "bread", "chair", "dance", "earth", "flame", "grass", "horse", "island", "jacket", "kettle"]


def world(seed: int, rule: str) -> tuple[list[list[str]], np.ndarray, list[str], list[str]]:
    """Return texts of frames, their answers by a rule, and the names of their frames and pairs."""
    rng = random.Random(seed)
    texts, answers, frames, pairs = [], [], [], []
    for frame in range(N_FRAMES):
        words = rng.sample(FILLING, 5)
        has_a, has_b = frame % 2, frame // 2 % 2
        words += ["a"] * has_a + ["b"] * has_b
        answer = {
            "either": has_a | has_b,
            "exclusive": has_a ^ has_b,
            "length": int(len(words) > 5),
            "frame": rng.randrange(2),
        }[rule]
        for pair in range(N_PAIRS):
            texts.append(words)
            answers.append(answer)
            frames.append(f"frame {frame}")
            pairs.append(f"pair {pair}")
    return texts, np.array(answers), frames, pairs


def accuracy(seed: int, rule: str) -> float:
    texts, answers, frames, pairs = world(seed, rule)
    numbers = {"length": np.array([len(words) for words in texts], dtype=np.float64)}
    predicted = predict_by_cues(texts, numbers, answers, (frames, pairs))
    return float((predicted.answers == answers).mean())


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["either", "length"])
def test_a_rule_that_holds_in_all_frames_is_learned(rule: str) -> None:
    assert accuracy(0, rule) == 1


@pytest.mark.slow
def test_what_holds_in_single_frames_alone_is_no_better_than_a_coin() -> None:
    """Each frame has an answer of its own, the same in all pairs: whoever saw the frame knows it."""
    assert np.mean([accuracy(seed, "frame") for seed in range(5)]) == pytest.approx(0.5, abs=0.08)


def test_cues_that_say_nothing_alone_are_a_table_together() -> None:
    texts, answers, frames, _ = world(0, "exclusive")
    names, holds = cues_of([[word for word in words if len(word) == 1] for words in texts], {}, frames)
    tables = list(decision_tables(holds, np.eye(2)[answers]))
    assert [len(table.cues) for table in tables] == list(range(MAX_DEPTH + 1))
    assert {names[cue] for cue in tables[3].cues} == {"'a'", "'b'", "'a' and 'b'"}
    assert (tables[3].predict(holds) == answers).all()


def test_tables_are_the_best_of_all_single_cues_and_never_worse_with_more() -> None:
    """Recounted with plain loops."""
    rng = np.random.default_rng(3)
    holds, answers = rng.random((80, 9)) < 0.4, rng.integers(0, 3, 80)
    tables = list(decision_tables(holds, np.eye(3)[answers]))

    def n_right(cues: tuple[int, ...]) -> int:
        total = 0
        for combination in product((False, True), repeat=len(cues)):
            rows = [row for row in range(80) if tuple(holds[row, list(cues)]) == combination]
            total += max((sum(answers[row] == answer for row in rows) for answer in range(3)), default=0)
        return total

    assert n_right(tables[1].cues) == max(n_right((cue,)) for cue in range(9))
    found = [int((table.predict(holds) == answers).sum()) for table in tables]
    assert found == [n_right(table.cues) for table in tables]
    assert found == sorted(found)


def test_cues_are_words_pairs_adjacent_words_and_thresholds_that_vary() -> None:
    texts = [["the", "cat", "sat"], ["the", "sat", "cat"], ["the", "dog"]]
    names, holds = cues_of(texts, {"length": np.array([3.0, 3.0, 2.0])}, ["1", "2", "3"])
    held = {name: holds[:, index].tolist() for index, name in enumerate(names)}
    assert held["'cat'"] == [True, True, False]
    assert held["'cat sat'"] == [True, False, False]
    assert held["'cat' and 'sat'"] == [True, True, False]
    assert held["length up to 2"] == [False, False, True]
    assert "'the'" not in held


@pytest.mark.parametrize(
    ("texts", "frames", "pairs"),
    [
        ([["a"], ["b"]], ["f", "f"], ["p", "q"]),
        ([["a"], ["b"]], ["f", "g"], ["p", "p"]),
    ],
)
def test_without_other_clusters_nothing_is_predicted(
    texts: list[list[str]], frames: list[str], pairs: list[str]
) -> None:
    predicted = predict_by_cues(texts, {}, np.arange(len(texts)), (frames, pairs))
    assert predicted.answers.tolist() == [-1] * len(texts)
    assert predicted.rules == {}
