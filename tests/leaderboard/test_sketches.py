"""Which changes of a model's answers leave them recognisable, and what is no likeness."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pytest

from evaluators.task import load_task
from leaderboard.verify.sketches import ALIKE, Sketch, SketchMaker, shared_errors
from schemas.documents.record import Reading, Record
from schemas.files.record_columns import RecordColumns, hashed
from tests.evaluators.pronoun_records import recorded, sentences
from tests.leaderboard.synthetic import make_records, present, uniform

Odds: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]
Flags: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]
Codes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint32]]
N = 2_000
RANDOM = np.random.default_rng(3)
SHARED = RANDOM.normal(size=N)
MODEL: Odds = SHARED + RANDOM.normal(size=N)


def sketch_of(odds: Odds) -> Sketch:
    nothing = np.zeros(len(odds), dtype=np.uint32)
    same = odds.astype(np.float32)
    return Sketch(same, same, nothing, nothing.astype(np.uint16))


def normal(size: float) -> Odds:
    return np.random.default_rng(7).normal(0, size, N)


def chosen(share: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.random.default_rng(8).random(N) < share


CHANGES: dict[str, tuple[Callable[[Odds], Odds], bool]] = {
    "noise": (lambda odds: odds + normal(0.01), True),
    "scaled": (lambda odds: 0.5 * odds - 3, True),
    "invented": (lambda odds: np.where(chosen(0.3), normal(1.0), odds), True),
    "refused": (lambda odds: np.where(chosen(0.4), np.nan, odds), True),
    "trained": (lambda odds: odds + normal(0.3), False),
    "unrelated": (lambda odds: SHARED + normal(1.0), False),
    "few": (lambda odds: np.where(chosen(0.95), np.nan, odds), False),
}


@pytest.mark.parametrize(("change", "is_alike"), CHANGES.values(), ids=CHANGES)
def test_copies_are_told_from_other_models(change: Callable[[Odds], Odds], is_alike: bool) -> None:
    likeness = sketch_of(MODEL).likeness(sketch_of(change(MODEL)))
    assert (likeness is not None) == is_alike
    assert likeness is None or likeness.endswith("% of the answers are equal")


def in_letters(is_right: Flags, kinds: Codes | None = None) -> Sketch:
    """The sketch of a model that answers all items by a letter."""
    nothing = np.zeros(len(is_right), dtype=np.uint32)
    decisions = 2 + 2 * (nothing if kinds is None else kinds) + is_right
    odds = np.full(len(is_right), np.nan, dtype=np.float32)
    return Sketch(odds, odds, nothing, decisions.astype(np.uint16))


def right_answers(accuracy: float, hardness: Odds, rng: np.random.Generator) -> Flags:
    """Draw which items a model gets right, given what makes some of them harder for all models, in log-odds."""
    skills = np.linspace(-15, 15, 301)
    chances = 1 / (1 + np.exp(hardness - skills[:, None]))
    is_right: Flags = rng.random(len(hardness)) < chances[np.argmin(np.abs(chances.mean(axis=1) - accuracy))]
    return is_right


ACCURACIES = np.linspace(0.5, 0.95, 20)


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_models_that_answer_in_letters_are_alike_only_if_one_is_a_copy(spread: float) -> None:
    """Some items are hard for all models, with a standard deviation of ``spread`` log-odds."""
    rng = np.random.default_rng(5)
    hardness = rng.normal(0, spread, N)
    models = [right_answers(accuracy, hardness, rng) for accuracy in ACCURACIES]
    assert not any(in_letters(one).likeness(in_letters(other)) for one, other in combinations(models, 2))
    for model in models:
        # One in twenty answers is changed.
        said = present(in_letters(model).likeness(in_letters(model ^ (rng.random(N) < 0.05))))
        assert said.startswith("right and wrong on the same items, with a kappa of ")
        assert "copy" not in said


def test_what_is_hard_for_all_models_by_its_kind_and_few_errors_say_nothing() -> None:
    """As with pronouns: two models that know *he* and *she*, and no other, are right and wrong on the same items."""
    rng = np.random.default_rng(6)
    families = rng.integers(0, 11, N).astype(np.uint32)
    models = [rng.random(N) < np.where(families < 3, 0.97, 0.03) for _ in range(2)]
    ours, theirs = (in_letters(model, families) for model in models)
    errors, unaware = (
        shared_errors(one.decisions, other.decisions)
        for one, other in ((ours, theirs), (in_letters(models[0]), in_letters(models[1])))
    )
    assert abs(present(errors)[0]) < 0.1
    assert present(unaware)[0] > 0.8
    assert ours.likeness(in_letters(models[0] ^ (rng.random(N) < 0.003), families)) is not None
    for n_errors, n, is_telling in ((30, N, False), (31, N, True), (60, 149, False), (60, 150, True)):
        model = in_letters(np.arange(n) >= n_errors)
        assert model.is_telling == (model.likeness(model) is not None) == is_telling


def sketch(records: Sequence[Record]) -> Sketch:
    maker = SketchMaker()
    maker.add(RecordColumns.of(records))
    return maker.sketch


TASK = load_task("recognition")
TEMPLATES = tuple(f"The number {n} is where {{nom}} {{lives|live}} with a dog" for n in range(20))
WORDS = [f"word{number}" for number in range(18)]


def text_of(item_id: str, salt: str, n_words: int = 30) -> str:
    generator = np.random.default_rng(list(f"{salt}{item_id}".encode()))
    return " ".join(generator.choice(WORDS, n_words))


def with_texts(texts: Callable[[str], str]) -> Sketch:
    return sketch(recorded(TASK, sentences(*TEMPLATES), lambda item: [texts(item.item_id)]))


TEXTS: dict[str, tuple[Callable[[str], str], bool]] = {
    "same": (lambda item: text_of(item, "a"), True),
    "by hash": (lambda item: hashed(text_of(item, "a")), True),
    "another": (lambda item: text_of(item, "b"), False),
}


@pytest.mark.parametrize(("texts", "is_alike"), TEXTS.values(), ids=TEXTS)
def test_texts_are_compared_by_their_hashes(texts: Callable[[str], str], is_alike: bool) -> None:
    likeness = with_texts(lambda item: text_of(item, "a")).likeness(with_texts(texts))
    assert (likeness is not None) == is_alike


def test_words_of_the_prompt_and_common_phrases_say_nothing() -> None:
    """Models that repeat the sentence, or answer in a set phrase, have the same words, and none of one another."""
    repeating = sketch(recorded(TASK, sentences(*TEMPLATES), lambda item: [f"The answer is: {item.text}"]))
    for made in (repeating, with_texts(lambda item: f"I think that the answer is {item[-1]}.")):
        assert not made.texts.any()


def with_samples(change: Callable[[Sequence[str]], Sequence[str | None]]) -> Sketch:
    """The sketch of four answers to each item."""
    records = recorded(TASK, sentences(*TEMPLATES), lambda item: [text_of(item.item_id, "a")])
    changed = []
    for record in records:
        texts = change([text_of(record.item_id, salt, 20 + 4 * place) for place, salt in enumerate("abcd")])
        exchanges = [replace(record.exchanges[0], text=text, sample=number) for number, text in enumerate(texts)]
        changed.append(replace(record, exchanges=tuple(exchanges)))
    return sketch(changed)


SETS: dict[str, Callable[[Sequence[str]], Sequence[str | None]]] = {
    "reversed": lambda texts: texts[::-1],
    "one dropped": lambda texts: [None, *texts[2:], texts[1]],
    "by hash": lambda texts: [hashed(text) for text in texts[::-1]],
}


@pytest.mark.parametrize("change", SETS.values(), ids=SETS)
def test_answers_to_an_item_are_a_set(change: Callable[[Sequence[str]], Sequence[str | None]]) -> None:
    assert with_samples(lambda texts: texts).likeness(with_samples(change)) is not None


def in_orders(chances: Callable[[Odds], Sequence[Odds]]) -> Sketch:
    """The sketch of a model that was asked in both orders of the options, given its chances of an outcome in each."""
    n = 400
    chances_of = chances(1 / (1 + np.exp(-np.random.default_rng(4).normal(size=n))))
    (made, *_) = make_records(uniform)
    (exchange, *_) = made.exchanges
    ours, theirs = exchange.outcomes
    records = []
    for number in range(n):
        first, second = (float(of[number]) for of in chances_of)
        exchanges = (
            replace(exchange, option_logprobs=(math.log(first), math.log1p(-first))),
            replace(exchange, outcomes=(theirs, ours), option_logprobs=(math.log1p(-second), math.log(second))),
        )
        mean = (first + second) / 2
        reading = Reading(outcomes=(ours, theirs), probabilities=(mean, 1 - mean), answers=())
        target = (ours, theirs)[number * 7 % 5 % 2]
        records.append(
            replace(made, item_id=f"{number}", groups={}, target=target, exchanges=exchanges, reading=reading)
        )
    return sketch(records)


def drawn(seed: int) -> Odds:
    return np.random.default_rng(seed).uniform(size=400)


def biased(chances: Odds) -> Sequence[Odds]:
    """Chances in either order, as of a model that prefers the first position."""
    return chances**0.5, chances**2


ORDERS: dict[str, tuple[Callable[[Odds], Sequence[Odds]], bool]] = {
    "swapped": (lambda chances: biased(chances)[::-1], True),
    "moved mass": (lambda of: [sum(biased(of)) / 2 + sign * 0.9 * room(of) for sign in (1, -1)], True),
    "unrelated": (lambda chances: [drawn(1), drawn(2)], False),
}


@pytest.mark.parametrize(("change", "is_alike"), ORDERS.values(), ids=ORDERS)
def test_the_orders_of_the_options_are_one_answer(change: Callable[[Odds], Sequence[Odds]], is_alike: bool) -> None:
    assert (in_orders(biased).likeness(in_orders(change)) is not None) == is_alike


def room(chances: Odds) -> Odds:
    """How much of the probability can move from one order to the other."""
    mean = sum(biased(chances)) / 2
    room: Odds = np.minimum(mean, 1 - mean) * drawn(3)
    return room


def test_orders_repeats_failures_and_one_answer_to_everything_are_no_fingerprint() -> None:
    records = make_records(lambda reference, other, gender, pair: 0.1 + (pair * 37 % 97) / 120)
    first = sketch(records)
    more = [replace(record, exchanges=record.exchanges * 2) for record in records]
    for same in (more, records[::-1]):
        np.testing.assert_array_equal(first.odds, sketch(same).odds)
    # A failed exchange may have any number of log-probabilities.
    failed = replace(records[0].exchanges[0], status="failed", option_logprobs=(-1.0,))
    odd = replace(records[0], exchanges=(failed,))
    assert np.isnan(sketch([odd, *records[1:]]).odds).sum() == 1 + np.isnan(first.odds).sum()
    made = sketch(make_records(uniform))
    assert np.isnan(made.odds).all()
    assert not made.decisions.any()
    assert 0 < ALIKE < 1
