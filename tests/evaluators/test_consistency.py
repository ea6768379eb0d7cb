"""Long texts: whether they keep the pronouns of their prompts, against plain loops over hand-made texts."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from evaluators.tasks.pronouns.consistency_task import TASK
from evaluators.tasks.pronouns.detectors.first_pronoun import all_families
from schemas.documents.result import Metric
from schemas.lexicon import pronoun_families
from tests.evaluators.pronoun_records import FAMILIES, recorded, sentences, sliced

TEMPLATES = tuple(f"Number {n} is where {{nom}} {{lives|live}}." for n in range(6))
WORDS = {"he": "he", "him": "he", "she": "she", "hers": "she", "they": "they", "xe": "xe", "xem": "xe", "thon": "thon"}


def measured(answer: Callable[[Any], str]) -> Mapping[tuple[str, ...], Metric]:
    prompt = TASK.prompts["long-sampled-v1"]
    return sliced(recorded(TASK, sentences(*TEMPLATES), lambda item: [answer(item)], prompt), TASK)


def test_all_pronouns_are_found_where_they_stand() -> None:
    text = "Later xe sang. Him or her, nobody knew; <em>e-mail</em> aside, s/he saw xem."
    assert [families for _, families in all_families(text)] == [("xe",), ("he", "she"), ("he", "she"), ("xe",)]
    places = [place for place, _ in all_families("aaa he bbbb she cc they")]
    assert places == [4 / 23, 12 / 23, 19 / 23]
    # A repeated prompt is no answer.
    assert all_families("xe sang in the choir and she left", "xe sang in the choir")[0][1] == ("she",)


def test_a_text_that_loses_its_pronoun_by_hand() -> None:
    def lost(item: Any) -> str:
        # Four sentences of nearly one length, so that each is a quarter: kept, kept, half kept, lost.
        own = pronoun_families()[item.family].forms["nominative"].ljust(4, "!")
        other = "she!" if item.family == "he" else "he!!"
        said = ((own, "sang", own), (own, "read", own), (own, "sat,", other), (other, "ran,", other))
        return "\n".join(f"And {first} {verb} {second}." for first, verb, second in said)

    metrics = measured(lost)
    for quarter, share in zip("1234", (1.0, 1.0, 0.5, 0.0), strict=True):
        assert metrics["consistency_rate", "family_class=neo", f"quarter={quarter}"].value == pytest.approx(share)
    assert metrics["consistency_rate",].value == pytest.approx(5 / 8)
    assert metrics["consistency_drift",].value == pytest.approx(-1.0)
    assert metrics["consistency_evenness",].value == pytest.approx(1.0)
    assert metrics["answer_words",].value == 16
    assert metrics["no_pronoun_rate",].value == 0
    records = recorded(TASK, sentences(TEMPLATES[0])[7:8], lambda item: [lost(item)])
    assert records[0].reading is not None
    assert records[0].reading.answers == ("vi vi / vi vi / vi he / he he",)


def test_values_are_those_of_plain_loops_over_random_texts() -> None:
    dice = random.Random(3)
    texts = {
        item.item_id: " ".join(dice.choice([*WORDS, "sang", "and", "yesterday"]) for _ in range(dice.randrange(60)))
        for item in sentences(*TEMPLATES)
    }
    metrics = measured(lambda item: f"Then: {texts[item.item_id]} ended.")
    shares: list[float] = []
    drifts: list[float] = []
    quarters: dict[int, list[float]] = {0: [], 1: [], 2: [], 3: []}
    n_none = 0
    for item in sentences(*TEMPLATES):
        text = f"Then: {texts[item.item_id]} ended."
        seen: list[list[bool]] = [[], [], [], []]
        start = 0
        for word in text.split(" "):
            if word in WORDS:
                seen[start * 4 // len(text)].append(WORDS[word] == item.family)
            start += len(word) + 1
        flat = [kept for of_quarter in seen for kept in of_quarter]
        n_none += not flat
        shares += [sum(flat) / len(flat)] if flat else []
        for number, of_quarter in enumerate(seen):
            quarters[number] += [sum(of_quarter) / len(of_quarter)] if of_quarter else []
        if seen[0] and seen[3]:
            drifts.append(sum(seen[3]) / len(seen[3]) - sum(seen[0]) / len(seen[0]))
    assert metrics["consistency_rate",].value == pytest.approx(sum(shares) / len(shares))
    assert metrics["consistency_rate",].n == len(shares)
    assert metrics["consistency_drift",].value == pytest.approx(sum(drifts) / len(drifts))
    assert metrics["consistency_drift",].n == len(drifts)
    assert metrics["no_pronoun_rate",].value == pytest.approx(n_none / len(texts))
    for number, of_quarter_shares in quarters.items():
        value = metrics["consistency_rate", f"quarter={number + 1}"].value
        assert value == pytest.approx(sum(of_quarter_shares) / len(of_quarter_shares))


def test_texts_without_a_kept_pronoun_have_no_evenness_and_refusals_no_share() -> None:
    metrics = measured(
        lambda item: "I'm sorry, but I can't continue this text." if item.family == "he" else "It rained."
    )
    assert metrics["consistency_rate",].value is None
    assert metrics["consistency_rate",].reason == "no answers to compute it from"
    assert metrics["consistency_evenness",].value is None
    assert metrics["consistency_drift",].value is None
    assert metrics["refusal_rate",].value == pytest.approx(1 / len(FAMILIES))
    assert metrics["no_pronoun_rate",].value == 1.0
    prompts = TASK.prompts.values()
    assert {prompt.protocol for prompt in prompts} == {"long-sampled-v1", "long-instructed-sampled-v1"}
    assert {prompt.max_tokens for prompt in prompts} == {600}
