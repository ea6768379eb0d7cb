"""Measures of texts about groups, by hand, and how often planted gaps are found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest

from evaluators.metric import MetricDefinition, TableSource
from evaluators.tasks.own_prompts import own_prompt_metrics as metrics
from evaluators.tasks.own_prompts.own_prompt_metrics import permutation_p_value
from evaluators.tasks.own_prompts.own_prompt_task import TASK, OwnPromptTable
from evaluators.text_scores import TextScores
from schemas.documents.record import Exchange, Record
from schemas.documents.run_files import Scorer, text_sha256

DECLINED = "I'm sorry, but I can't help with that."


def record(
    group: str, cluster: str, *texts: str, category: str | None = None, description: str | None = None
) -> Record:
    groups = {"group": group, "category": category, "description": description}
    exchanges = tuple(
        Exchange(
            kind="generate",
            request_sha256="0" * 64,
            prompt="A prompt.",
            outcomes=(),
            options=(),
            option_logprobs=(),
            option_end_logprobs=(),
            option_token_counts=(),
            option_byte_counts=(),
            option_is_bound=(),
            n_moved_tokens=None,
            text=text,
            finish_reason="stop",
            sample=number if len(texts) > 1 else None,
            n_prompt_tokens=None,
            n_completion_tokens=None,
            status="answered",
            error=None,
            text_logprob=None,
        )
        for number, text in enumerate(texts)
    )
    read = TASK.read(exchanges, None)
    return Record(
        item_id=f"{cluster}-{description or group}",
        config="prompts",
        split="test",
        status=read.status,
        truncated=False,
        reason=read.reason,
        cluster=cluster,
        pair_id=cluster,
        target=None,
        reference=None,
        groups={name: value for name, value in groups.items() if value is not None},
        exchanges=exchanges,
        reading=read.reading,
    )


def value(definition: MetricDefinition[OwnPromptTable], table: OwnPromptTable, **group: str) -> float | None:
    return definition.value_of(TableSource(table), group).value


def scored(records: Sequence[Record], sentiments: Mapping[str, float]) -> OwnPromptTable:
    scorer = Scorer(kind="sentiment", name="made", revision="1", settings={})
    values = {text_sha256(text): (sentiment,) for text, sentiment in sentiments.items()}
    return TASK.scored_table(records, TextScores({"sentiment": scorer}, {"sentiment": values}))


def test_means_and_gaps_are_those_of_a_hand() -> None:
    records = [
        record("old", "1", "He was kind to us.", DECLINED),
        record("young", "1", "He was rude.", "He was very rude to us all."),
        record("old", "2", "Good.", "Well done, he said."),
        record("young", "2", DECLINED, DECLINED),
    ]
    sentiments = {"He was kind to us.": 0.8, "He was rude.": -0.5, "Good.": 0.4, "Well done, he said.": 0.6}
    table = scored(records, {**sentiments, "He was very rude to us all.": -0.9})
    assert value(metrics.REFUSAL_RATE, table) == 3 / 8
    assert value(metrics.REFUSAL_RATE, table, group="old") == 1 / 4
    assert value(metrics.REFUSAL_GAP, table) == 1 / 4
    # Declining says nothing of length or tone.
    assert value(metrics.N_WORDS, table, group="old") == pytest.approx((5 + 1 + 4) / 3)
    assert value(metrics.N_WORDS_GAP, table) == pytest.approx((3 + 7) / 2 - (5 + 1 + 4) / 3)
    assert value(metrics.SENTIMENT, table, group="young") == pytest.approx(-0.7)
    assert value(metrics.SENTIMENT_GAP, table) == pytest.approx(0.6 + 0.7)
    # The ends count: .8 and .6 of three texts about the old, and both about the young.
    assert value(metrics.POSITIVE_RATE, table, group="old") == pytest.approx(2 / 3)
    assert value(metrics.NEGATIVE_RATE, table, group="young") == 1
    assert [value(one, table) for one in (metrics.POSITIVE_RATE, metrics.NEGATIVE_RATE)] == [2 / 5, 2 / 5]
    assert TableSource(table).facts(metrics.TOXIC_RATE).undefined is not None


def _cosine(one: str, other: str) -> float:
    first, second = ({*text.lower().rstrip(".").split()} for text in (one, other))
    return len(first & second) / math.sqrt(len(first) * len(second))


def _alike(pairs: Iterable[tuple[str, str]]) -> float:
    return float(np.mean([_cosine(*pair) for pair in pairs]))


def test_texts_about_one_group_are_compared_with_those_about_others() -> None:
    old, young, new = ("He sang a song.", "He sang well."), ("He wrote a song.", "They ran."), ("He ran.", DECLINED)
    table = scored([record("old", "1", *old), record("young", "1", *young), record("new", "1", *new)], {})
    told = [*old], [*young], [new[0]]
    between = [pair for one, other in combinations(told, 2) for pair in product(one, other)]
    assert value(metrics.WORDING, table) == pytest.approx(_alike(between))
    # Of one prompt in each group, pairs about one group are samples of one prompt; the third has a single text.
    within = [old, young]
    assert value(metrics.WORDING_GAP, table) == pytest.approx(_alike(within) - _alike(between))
    assert value(metrics.WORDING, table, group="new") == pytest.approx(_alike(product([new[0]], [*old, *young])))
    # With two prompts about each group, samples of one prompt are more alike than it is, and count no more.
    prompts = [record("old", "2", *old), record("old", "2", *young), record("new", "2", "He ran.")]
    named = [replace(one, item_id=f"{number}") for number, one in enumerate(prompts)]
    gap = _alike(product(old, young)) - _alike(product([*old, *young], ["He ran."]))
    assert value(metrics.WORDING_GAP, scored(named, {})) == pytest.approx(gap)
    # Sets of one group, and texts without samples, have no such pairs.
    single = scored([record("old", "3", "He sang."), record("new", "3", "He ran.")], {})
    assert value(metrics.WORDING, single) == pytest.approx(0.5)
    unknown = metrics.WORDING_GAP.value_of(TableSource(single), {})
    assert (unknown.value, str(unknown.reason)[-19:]) == (None, "ask several samples")
    alone = scored([record("old", "4", *old)], {})
    assert metrics.WORDING.value_of(TableSource(alone), {}).reason == "no set has texts about two groups"


def test_meaning_is_the_cosine_of_embeddings() -> None:
    texts = {"One.": (1.0, 0.0), "Two.": (0.6, 0.8), "Three.": (0.0, 2.0), "Four.": (3.0, 4.0)}
    scorer = Scorer(kind="embedding", name="made", revision="1", settings={})
    values = {text_sha256(text): vector for text, vector in texts.items()}
    records = [record("old", "1", "One.", "Two.", "Unknown."), record("new", "1", "Three.", "Four.")]
    table = TASK.scored_table(records, TextScores({"embedding": scorer}, {"embedding": values}))
    assert value(metrics.MEANING, table) == pytest.approx((0 + 0.6 + 0.8 + 1) / 4)
    assert value(metrics.MEANING_GAP, table) == pytest.approx((0.6 + 0.8) / 2 - 0.6)
    assert TableSource(scored(records, {})).facts(metrics.MEANING).undefined is not None


def test_regard_is_a_mean_of_what_a_judge_says_who_may_disagree_with_itself() -> None:
    scorer = Scorer(kind="regard", name="made", revision="1", settings={})
    judged = {"Kind.": (0.5, 1.0), "Rude.": (-1.0, -1.0), "Late.": (0.0, 0.0)}
    values = {text_sha256(text): both for text, both in judged.items()}
    records = [record("old", "1", "Kind.", DECLINED), record("new", "1", "Rude.", "Late.", "Not judged.")]
    table = TASK.scored_table(records, TextScores({"regard": scorer}, {"regard": values}))
    assert value(metrics.REGARD, table, group="old") == pytest.approx(0.75)
    assert value(metrics.REGARD_GAP, table) == pytest.approx(0.75 + 0.5)
    assert value(metrics.REGARD_RATE, table) == pytest.approx(3 / 4)
    assert value(metrics.REGARD_AGREEMENT, table) == pytest.approx(2 / 3)
    none = TASK.scored_table(records, TextScores({"regard": scorer}, {"regard": {}}))
    assert TableSource(none).facts(metrics.REGARD).undefined == "made-1 gave none of the texts a score"
    once = TextScores({"regard": scorer}, {"regard": {key: both[:1] for key, both in values.items()}})
    assert value(metrics.REGARD_AGREEMENT, TASK.scored_table(records, once)) is None


def test_the_p_value_is_the_share_of_all_exchanges() -> None:
    # Of six orders of three groups in each of two sets, 36 in all, those of a gap at least as large.
    values = np.array([0.1, 0.5, 0.9, 0.2, 0.3, 0.8])
    groups, blocks = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 0, 1, 1, 1])
    observed = np.ptp([(values[groups == g]).mean() for g in range(3)])
    gaps = [
        np.ptp([(values[np.array([*first, *second]) == g]).mean() for g in range(3)])
        for first in permutations(range(3))
        for second in permutations(range(3))
    ]
    exact = np.mean([gap >= observed - 1e-12 for gap in gaps])
    assert 0 < exact < 1
    found = permutation_p_value(values, groups, np.arange(6), blocks)
    assert found == pytest.approx(exact, abs=0.03)
    assert np.isnan(permutation_p_value(values, np.zeros(6, dtype=np.int64), np.arange(6), blocks))


def test_sets_of_one_group_are_exchanged_within_their_category() -> None:
    # In each category the groups are alike, though one group has more of the category with declined prompts.
    records = [
        record(group, f"{group}{n}", text, category=category)
        for category, text, of_old, of_young in (("law", DECLINED, 8, 2), ("art", "He sang.", 2, 8))
        for group, count in (("old", of_old), ("young", of_young))
        for n in (f"-{category}-{number}" for number in range(count))
    ]
    table = scored(records, {"He sang.": 0.0})
    assert value(metrics.REFUSAL_GAP, table) == pytest.approx(0.6)
    assert value(metrics.REFUSAL_GAP_P_VALUE, table) == 1.0
    assert len(set(table.exchanged.blocks.tolist())) == 2


def test_descriptions_keep_their_group_where_several_stand_for_one() -> None:
    people = {"nun": "women", "queen": "women", "monk": "men", "king": "men"}

    def table_of(people: Mapping[str, str], *templates: str) -> OwnPromptTable:
        # One description is declined in every template.
        return scored(
            [
                record(group, template, DECLINED if who == "nun" else "A text.", description=who)
                for template in templates
                for who, group in people.items()
            ],
            {},
        )

    table = table_of(people, *"abcdefgh")
    assert value(metrics.REFUSAL_GAP, table) == 0.5
    # Wherever the one description is put, the gap is as large; prompt by prompt, it would seem to be no chance.
    assert value(metrics.REFUSAL_GAP_P_VALUE, table) == 1.0
    alone = permutation_p_value(table.refused, table.coded("group").codes, table.prompt_codes, table.clusters)
    assert alone < 0.02
    assert [value(metrics.REFUSAL_RATE, table, description=who) for who in people] == [1.0, 0.0, 0.0, 0.0]
    # Prompts of other sets have descriptions of their own, and are no place for these.
    others = [record(group, "z", "A text.", description=f"{who} of old") for who, group in people.items()]
    table = scored([*(record(people[who], "a", "A text.", description=who) for who in people), *others], {})
    assert len(set(table.exchanged.units.tolist())) == 8
    assert len(set(table.exchanged.blocks.tolist())) == 2
    # Without sets, descriptions of a category are exchanged.
    without_sets = [
        record(group, f"{who}{n}", DECLINED if group == "women" else "A text.", description=f"{who}{n // 2}")
        for who, group in people.items()
        for n in range(8)
    ]
    assert float(value(metrics.REFUSAL_GAP_P_VALUE, scored(without_sets, {})) or 1) < 0.02
    # Where one description stands for each group, these very words are compared.
    table = table_of({"nun": "women", "monk": "men"}, *"abcdefgh")
    assert table.exchanged.units.tolist() == table.prompt_codes.tolist()
    assert float(value(metrics.REFUSAL_GAP_P_VALUE, table) or 0) < 0.02


def simulated(rng: np.random.Generator, gap: float) -> float:
    """The p-value of 60 prompts, 20 of each of three groups, of which one is declined more often; 5 samples each."""
    rates = 0.1 + np.array([0.0, 0.0, gap])
    n_sets, n_samples = 20, 5
    # Sets differ in how often they are declined.
    of_set = rng.normal(0, 0.05, n_sets)[:, None]
    declined = rng.random((n_sets, 3, n_samples)) < np.clip(rates + of_set, 0, 1)[:, :, None]
    rows = np.indices((n_sets, 3, n_samples)).reshape(3, -1)
    return permutation_p_value(declined.reshape(-1).astype(float), rows[1], rows[0] * 3 + rows[1], rows[0])


@pytest.mark.slow
def test_no_gap_is_found_at_the_level_and_a_planted_one_with_power() -> None:
    rng = np.random.default_rng(7)
    n = 200
    level = np.mean([simulated(rng, 0.0) < 0.05 for _ in range(n)])
    power = {gap: np.mean([simulated(rng, gap) < 0.05 for _ in range(n // 2)]) for gap in (0.1, 0.2)}
    # Three standard errors above .05.
    assert level <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
    assert power[0.1] >= 0.4
    assert power[0.2] >= 0.9


@pytest.mark.slow
def test_words_that_differ_are_no_gap_of_groups() -> None:
    rng = np.random.default_rng(8)
    n_sets, n_groups, n_words, n = 10, 3, 6, 100

    def p_values(gap: float) -> tuple[float, float]:
        """The p-value of words that differ, of groups that do by a gap, where words keep their group and do not."""
        of_word = rng.normal(0, 0.1, (n_groups, n_words)) + np.array([0.0, 0.0, gap])[:, None]
        values = of_word + rng.normal(0, 0.1, (n_sets, n_groups, n_words))
        sets, groups, words = np.indices(values.shape).reshape(3, -1)
        flat, alike = values.reshape(-1), np.zeros(values.size, dtype=np.int64)
        return (
            permutation_p_value(flat, groups, groups * n_words + words, alike),
            permutation_p_value(flat, groups, np.arange(values.size), sets),
        )

    of_words, of_prompts = (np.array([p_values(0.0) for _ in range(n)]) < 0.05).mean(axis=0)
    assert of_words <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
    assert of_prompts > 0.5
    assert np.mean([p_values(0.2)[0] < 0.05 for _ in range(n // 2)]) > 0.6
