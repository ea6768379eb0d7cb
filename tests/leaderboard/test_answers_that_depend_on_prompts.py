"""Who answers without reading has no rank by the index, however even the answers are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from evaluators.tasks.pronouns.answer_words import stems
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.rank_ranges import Gates, why_own_shut
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Root
from schemas.lexicon import pronoun_families
from tests.evaluators.pronoun_records import prompts, sentences
from tests.leaderboard.gifi_results import answers, chance, word, write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import present

SKILL = 0.3
NOMINATIVES = [family.forms["nominative"] for family in pronoun_families().values()]
FEW = ("went home", "smiled", "bought an apple", "slept all night", "closed the window")
Texts = Callable[[Any], Sequence[str]]
N_TEXTS = 100
"""Texts of ten kinds, to which there are natural answers; word 300 and on are those of the kinds."""
TEXTS: dict[str, Sequence[Any]] = {
    "continuation": sentences(
        *(f"The {word(n)} by the {word(380 + n % 10)} is where {{nom}} {{lives|live}}" for n in range(N_TEXTS))
    ),
    "assignment": [
        replace(
            item, item_id=f"{item.attribute}-{n}", text=f"My friend is a {word(n)} by the {word(380 + n % 10)}, and"
        )
        for n, item in enumerate([*prompts(N_TEXTS // 2), *prompts(N_TEXTS // 2, "personality")])
    ],
}


def number_of(item: Any) -> int:
    return int(getattr(item, "template_id", item.item_id).rpartition("-")[2].lstrip("t"))


def noun_of(item: Any) -> str:
    return word(number_of(item))


def of_kind(number: int, *parts: object) -> str:
    """Words that natural answers to texts of one kind share, and no text has."""
    return " ".join(word(300 + 8 * (number % 10) + int(8 * chance(number, *parts, each))) for each in range(3))


def natural(salt: str) -> dict[str, Texts]:
    """Answers of a model that reads, as even as its skill says."""

    def more(given: Texts) -> Texts:
        return lambda item: [f"{text} {of_kind(number_of(item), salt)}" for text in given(item)]

    given = answers(SKILL, salt)
    return {task: more(given[task]) for task in TEXTS}


def invented(*parts: object) -> str:
    """A word that nothing else has."""
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return f"z{digest.translate(str.maketrans('0123456789', 'ghijklmnop'))[:7]}"


Adds: TypeAlias = Callable[[Any, int], str]
"""What a model adds to a text instead of reading it, by the item and the number of the sample."""
CONSTANT: dict[str, Adds] = {
    "a constant": lambda item, sample: "went home.",
    "the noun in few constants": lambda item, sample: f"{noun_of(item)} {FEW[int(5 * chance(item.item_id))]}",
    "the prompt and a constant": lambda item, sample: f"{item.text} went home.",
}
UNFIT: dict[str, Adds] = {
    # No prompt has these.
    "random words": lambda item, sample: " ".join(
        word(200 + int(100 * chance(number, item.item_id, sample))) for number in range(3)
    ),
    "the answer to another text": lambda item, sample: (
        f"saw {word((number_of(item) + 7) % N_TEXTS)} and {word(200 + number_of(item))}"
    ),
    "the noun and an invented word": lambda item, sample: f"saw the {noun_of(item)} {invented(noun_of(item))}.",
    "a natural answer to another text with the noun": lambda item, sample: (
        f"the {noun_of(item)} {of_kind(int(N_TEXTS * chance('elsewhere', number_of(item))), number_of(item))}"
    ),
}
USELESS = {**CONSTANT, **UNFIT}


def continues(adds: Adds) -> Texts:
    """The same to all families, as even as can be."""
    return lambda item: [f" {adds(item, 0)}"]


def gives(adds: Adds) -> Texts:
    """Families drawn at random, as even as can be."""

    def texts(item: Any) -> list[str]:
        drawn = [NOMINATIVES[int(11 * chance("family", item.item_id, sample))] for sample in range(11)]
        return [f"{adds(item, sample)} {pronoun}" for sample, pronoun in enumerate(drawn)]

    return texts


def mixed(first: Texts, second: Texts, share: float) -> Texts:
    return lambda item: (first if chance("mixed", number_of(item)) < share else second)(item)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    folder = tmp_path_factory.mktemp("results")

    def write(model: str, instead: Mapping[str, Texts]) -> None:
        write_gifi_model(folder, model, SKILL, instead={**natural(model), **instead}, items=TEXTS)

    write("lab/reads", {})
    for name, adds in USELESS.items():
        write(f"lab/{name.replace(' ', '-')}", {"continuation": continues(adds), "assignment": gives(adds)})
    constant, reads = USELESS["a constant"], natural("partly")
    instead = {
        "continuation": mixed(continues(constant), reads["continuation"], 0.4),
        "assignment": mixed(gives(constant), reads["assignment"], 0.4),
    }
    write("lab/partly", instead)
    write("lab/continuation", {"continuation": continues(constant)})
    write("lab/assignment", {"assignment": gives(constant)})
    loaded = load_known(Root(folder, "local"))
    assert loaded.left_out == ()
    (table,) = assemble(loaded.entries).indices.tables
    return {row.model.id: row for row in table.rows}


ENOUGH = {"continuation": "continuation: ", "assignment": "assignment: "}
"""Reasons of models that do not read one of the tasks."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*USELESS, *ENOUGH])
def test_who_does_not_read_has_no_rank(rows: dict[str, Row], name: str) -> None:
    useless, honest = rows[f"lab/{name.replace(' ', '-')}"], rows["lab/reads"]
    assert (useless.rank, useless.is_below) == (None, True)
    said = ENOUGH.get(name, "prompt fit" if name in UNFIT else "what no answer to another text says")
    assert said in "; ".join(useless.reasons)
    assert honest.rank is not None


@pytest.mark.slow
def test_neither_a_constant_nor_a_missing_measure_lifts_a_model(rows: dict[str, Row]) -> None:
    assert (rows["lab/a-constant"].primary.value or 0.0) > (rows["lab/reads"].primary.value or 1.0) + 0.15
    partly, honest = rows["lab/partly"], rows["lab/reads"]
    assert (partly.primary.value or 0.0) > (honest.primary.value or 1.0)
    assert present(partly.bounds).worst < (honest.primary.value or 0.0)
    assert present(honest.rank).best == 1
    for entry in rows["lab/reads"].entries:
        if key := next((key for key in entry.metrics if key[0] == "prompt_fit"), None):
            unknown = replace(entry.metrics[key], value=None, reason="its sums were not stored")
            without = replace(entry, standing=None, metrics={**entry.metrics, key: unknown})
            assert why_own_shut(without) == "prompt fit has no value: its sums were not stored"
            assert Gates([without]).why_shut(without) is not None


def test_words_are_compared_without_endings_pronouns_and_numbers() -> None:
    assert stems("Xe nursed 11 nurses, himself!") == {"nurse"}
