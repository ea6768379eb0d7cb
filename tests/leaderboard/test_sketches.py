"""Which changes of a model's answers leave them recognisable, and what is no copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest

from leaderboard.verify.sketches import ALIKE, Sketch, SketchMaker, first_alike
from schemas.documents.record import Record
from schemas.files.record_columns import RecordColumns
from schemas.files.record_hashes import hashed
from tests.evaluators.pronoun_records import recorded, sentences
from tests.leaderboard.synthetic import make_records, uniform

Odds: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
N = 2_000
RANDOM = np.random.default_rng(3)
SHARED = RANDOM.normal(size=N)
MODEL: Odds = SHARED + RANDOM.normal(size=N)


def sketch_of(odds: Odds) -> Sketch:
    nothing = np.zeros(len(odds), dtype=np.uint32)
    return Sketch(odds.astype(np.float32), nothing, nothing)


def normal(size: float) -> Odds:
    return np.random.default_rng(7).normal(0, size, N)


def chosen(share: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.random.default_rng(8).random(N) < share


@pytest.mark.parametrize(
    ("change", "is_copy"),
    [
        (lambda odds: odds + normal(0.01), True),
        (lambda odds: 0.5 * odds - 3, True),
        (lambda odds: np.tanh(odds), True),
        (lambda odds: np.where(chosen(0.3), normal(1.0), odds), True),
        (lambda odds: np.where(chosen(0.4), np.nan, odds), True),
        (lambda odds: np.where(chosen(0.01), 1e30, odds), True),
        (lambda odds: odds + normal(0.3), False),
        (lambda odds: SHARED + normal(1.0), False),
        (lambda odds: -odds, False),
        (lambda odds: np.where(chosen(0.95), np.nan, odds), False),
    ],
    ids=["noise", "scaled", "bent", "invented", "refused", "absurd", "trained", "unrelated", "opposite", "few"],
)
def test_copies_are_told_from_other_models(change: Callable[[Odds], Odds], is_copy: bool) -> None:
    ours, other = sketch_of(MODEL), sketch_of(change(MODEL))
    assert ours.is_like(other) == is_copy
    crowd = [sketch_of(SHARED + np.random.default_rng(seed).normal(size=N)) for seed in range(20, 30)]
    alike = first_alike([*crowd, ours, other], lambda one, two: False)
    assert alike == [None] * 11 + [10 if is_copy else None]
    assert first_alike([ours, other], lambda one, two: True) == [None, None]


def sketch(records: Sequence[Record]) -> Sketch:
    maker = SketchMaker()
    maker.add(RecordColumns.of(records))
    return maker.sketch


TEMPLATES = tuple(f"The number {n} is where {{nom}} {{lives|live}} with a dog" for n in range(20))
WORDS = [f"word{number}" for number in range(18)]


def text_of(item_id: str, salt: str, n_words: int = 30) -> str:
    generator = np.random.default_rng(list(f"{salt}{item_id}".encode()))
    return " ".join(generator.choice(WORDS, n_words))


def with_texts(texts: Callable[[str], str]) -> Sketch:
    from evaluators.task import load_task

    task = load_task("recognition")
    return sketch(recorded(task, sentences(*TEMPLATES), lambda item: [texts(item.item_id)]))


@pytest.mark.parametrize(
    ("texts", "is_copy"),
    [
        (lambda item: text_of(item, "a"), True),
        (lambda item: f"{text_of(item, 'a').upper()} indeed!", True),
        (lambda item: text_of(item, "a")[4:], True),
        (lambda item: hashed(text_of(item, "a")), True),
        (lambda item: text_of(item, "b"), False),
        (lambda item: "she", False),
    ],
    ids=["same", "louder", "cut", "by hash", "another", "one word"],
)
def test_texts_are_compared_by_words(texts: Callable[[str], str], is_copy: bool) -> None:
    assert with_texts(lambda item: text_of(item, "a")).is_like(with_texts(texts)) == is_copy


def test_short_words_prove_nothing() -> None:
    """Two models that are right in every answer give the same words."""
    ours, theirs = (with_texts(lambda item: ("he", "she", "they")[len(item) % 3]) for _ in range(2))
    assert ours.agreement(theirs) is None


def test_the_order_of_records_and_further_answers_do_not_matter() -> None:
    records = make_records(lambda reference, other, gender, pair: 0.1 + (pair * 37 % 97) / 120)
    first = sketch(records)
    more = [replace(record, exchanges=record.exchanges * 2) for record in records]
    np.testing.assert_array_equal(first.odds, sketch(more).odds)
    np.testing.assert_array_equal(first.odds, sketch(records[::-1]).odds[:])


def test_one_answer_to_everything_is_no_fingerprint() -> None:
    assert np.isnan(sketch(make_records(uniform)).odds).all()
    assert 0 < ALIKE < 1
