"""Examples of which a chosen number has the more frequent of two labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.runs.ask.study import Study
from evaluators.runs.measure.answer_keys import key_of_dataset
from evaluators.runs.plan.plan import NoExamplesError, Plan, PlannedPart
from evaluators.runs.plan.selection import select
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_prompts import (
    N_BALANCED,
    N_FREQUENT,
    N_SETS,
    examples_by_rule,
    filled,
    rule_of,
    why_no_examples,
)
from schemas.folders.dataset_folder import read_manifest
from schemas.items.label import LabelItem
from tests.evaluators.label_data import made_dataset, made_items, short_items

SHARE = "release-4096b-k8-frequent6-set1-v1"


def chosen(pool: Sequence[LabelItem], n_frequent: int, number: int) -> tuple[LabelItem, ...]:
    return examples_by_rule(pool, rule_of(n_frequent), N_BALANCED, number)


def targets(items: Sequence[LabelItem]) -> list[str | None]:
    return [item.target for item in items]


def with_targets(labels: str) -> list[LabelItem]:
    """A pool of a task with the labels *yes* and *no*, spelt y and n."""
    item = made_items("two", "pool")[0]
    of = {"y": "yes", "n": "no"}
    return [replace(item, item_id=f"pool-{place}", target=of[one]) for place, one in enumerate(labels)]


def by_loops(pool: Sequence[LabelItem], n_frequent: int, number: int) -> list[str]:
    """The ids of a set, chosen again by plain loops."""
    n_yes = sum(item.target == "yes" for item in pool)
    frequent = "yes" if n_yes >= len(pool) - n_yes else "no"
    ids = []
    for is_frequent, wanted in ((True, n_frequent), (False, N_BALANCED - n_frequent)):
        kind = [item for item in pool if (item.target == frequent) == is_frequent]
        place = wanted * number
        for _ in range(wanted):
            ids.append(kind[place % len(kind)].item_id)
            place += 1
    return [item.item_id for item in pool if item.item_id in ids]


@pytest.mark.parametrize("number", range(N_SETS))
@pytest.mark.parametrize("n_frequent", N_FREQUENT)
@pytest.mark.parametrize("labels", ["yn" * 6 + "y" * 8, "nyn" * 8, "yn" * 8])
def test_the_more_frequent_label_has_its_share_in_the_order_of_the_pool(
    labels: str, n_frequent: int, number: int
) -> None:
    pool = with_targets(labels)
    found = chosen(pool, n_frequent, number)
    assert [item.item_id for item in found] == by_loops(pool, n_frequent, number)
    assert len({item.item_id for item in found}) == N_BALANCED
    # Of labels that tie, the one that items offer first.
    frequent = "no" if labels.count("n") > labels.count("y") else "yes"
    assert targets(found).count(frequent) == n_frequent


def test_the_first_set_of_a_pool_by_hand() -> None:
    pool = with_targets("ynnynnnynnnyynnn")  # 5 with yes and 11 with no
    assert [item.item_id for item in chosen(pool, 5, 0)] == [f"pool-{n}" for n in (0, 1, 2, 3, 4, 5, 6, 7)]
    assert [item.item_id for item in chosen(pool, 8, 0)] == [f"pool-{n}" for n in (1, 2, 4, 5, 6, 8, 9, 10)]
    # Set 1 begins at the ninth "no" of 11 and goes on with the first.
    assert [item.item_id for item in chosen(pool, 8, 1)] == [f"pool-{n}" for n in (1, 2, 4, 5, 6, 13, 14, 15)]


def test_sets_share_no_item_while_the_pool_has_enough() -> None:
    pool = made_items("two", "pool")  # 20 with the first label and 10 with the other
    for n_frequent, n_disjoint in ((4, 2), (6, 3), (8, 2)):
        ids = [item.item_id for number in range(n_disjoint) for item in chosen(pool, n_frequent, number)]
        assert len(ids) == len({*ids}) == n_disjoint * N_BALANCED, n_frequent


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ("y" * 8 + "n" * 4, None),
        ("y" * 9 + "n" * 3, "3 items with the rarer label to show"),
        ("y" * 7 + "n" * 7, "7 items with the more frequent label to show"),
        ("y" * 64, "0 items with the rarer label to show"),
        ("", "0 labels"),
    ],
)
def test_a_pool_must_have_enough_of_both_labels_for_every_share(labels: str, why: str | None) -> None:
    assert why_no_examples(with_targets(labels)) == why


def test_other_numbers_of_labels_are_left_out() -> None:
    assert why_no_examples(made_items("three", "pool")) == "3 labels"
    assert why_no_examples(made_items("letters", "pool")) == "4 labels"


@pytest.mark.parametrize("max_bytes", [400, 440, 480, 520, 560, 600])
def test_examples_that_do_not_all_fit_have_another_share_and_are_left_out(max_bytes: int) -> None:
    pool = [replace(item, text=f"{item.text} {'a' * place}") for place, item in enumerate(with_targets("ynn" * 8))]
    prompt = replace(TASK.prompts[SHARE], max_prompt_bytes=max_bytes)
    fewest = [
        min(
            filled(item, prompt, chosen(pool, n_frequent, number)).n_shown
            for n_frequent in N_FREQUENT
            for number in range(N_SETS)
        )
        for item in pool
    ]
    # Inputs get longer along the pool of 24, of which the last two may get fewer examples.
    all_fit = fewest[20] == N_BALANCED
    why = TASK.why_no_examples(pool, prompt)
    assert why == (None if all_fit else f"8 examples do not fit into {max_bytes} bytes")


def planned(dataset: Path, contexts: str, configs: tuple[str, ...] = ()) -> Sequence[Plan]:
    return Study(datasets=(dataset,), contexts=tuple(contexts.split(",")), configs=configs).usual_plans


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("shares") / "tasks", items=short_items)


def test_a_suite_is_asked_without_the_parts_that_lack_examples_and_says_so(
    dataset: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, *shares = planned(dataset, "0,8-frequent4,8-frequent8")
    assert [part.config for part in whole.parts] == ["two", "three", "letters", "six"]
    assert len(shares) == 2 * N_SETS
    of_two = select(dataset, read_manifest(dataset), "tasks", parts=("two",), limit=100, support=TASK.support_splits)
    for plan in shares:
        assert plan.signature.parts == ("two",)
        assert (plan.signature.items_sha256, plan.signature.n_items) == (of_two.items_sha256, of_two.n_items)
    said = capfd.readouterr().err
    assert said.count("left out with 8-frequent4 examples: three (3 labels); letters (4 labels); six (6 labels)") == 1


def test_a_config_without_examples_is_refused_by_name(dataset: Path) -> None:
    with pytest.raises(NoExamplesError, match=r"has no examples to show: three \(3 labels\); take another"):
        planned(dataset, "8-frequent4", configs=("three",))
    part = select(dataset, read_manifest(dataset), "three")
    with pytest.raises(ConfigError, match=r"three \(3 labels\)"):
        _ = Plan(part, TASK, TASK.prompts[SHARE]).signature


def test_an_answer_key_covers_the_parts_that_are_asked(dataset: Path) -> None:
    made = key_of_dataset(dataset, read_manifest(dataset), config="tasks", task="classification", prompt=SHARE)
    assert [part.config for part in made.key.parts] == ["two"]
    (plan,) = [one for one in planned(dataset, "8-frequent6") if one.prompt.id == SHARE]
    assert made.key.signature.items_sha256 == plan.signature.items_sha256


def of_config(dataset: Path, config: str, prompt: str) -> PlannedPart:
    selection = select(dataset, read_manifest(dataset), config, splits=(), limit=None, support=TASK.support_splits)
    (part,) = Plan(selection, TASK, TASK.prompts[prompt]).parts
    return part


def test_records_tell_the_labels_and_a_shown_item_leaves_itself_out(dataset: Path) -> None:
    part = of_config(dataset, "two", SHARE)
    shown = {item.item_id for item in chosen(made_items("two", "pool"), 6, 1)}
    n_left_out = 0
    for (split, item), facts in zip(part.items, part.facts, strict=True):
        labels = json.loads(facts.groups["shown_labels"])
        if split == "pool" and item.item_id in shown:
            n_left_out += 1
            assert len(labels) == N_BALANCED - 1
            assert "shown_place" in facts.groups
        else:
            assert (labels.count("yes"), labels.count("no")) == (6, 2)
            assert "shown_place" not in facts.groups
    assert n_left_out == N_BALANCED


def test_other_shares_are_other_prompts_and_other_examples(dataset: Path) -> None:
    selection = select(dataset, read_manifest(dataset), "two", splits=(), limit=None, support=TASK.support_splits)
    names = [f"release-4096b-k8{share}-set0-v1" for share in ("", *(f"-{rule_of(number)}" for number in N_FREQUENT))]
    signatures = [Plan(selection, TASK, TASK.prompts[name]).signature for name in names]
    assert len({one.prompt_sha256 for one in signatures}) == len(names)
    assert len({one.examples_sha256 for one in signatures[1:]}) == len(N_FREQUENT)


def test_further_sets_are_asked_only_by_their_name(dataset: Path) -> None:
    usual = [plan.prompt.example_set for plan in planned(dataset, "8")]
    assert usual == [0, 1, 2]
    items = TASK.prompts["release-4096b-k8-set3-v1"], TASK.prompts["release-4096b-k8-set4-v1"]
    assert [(one.is_extra, one.example_set) for one in items] == [(True, 3), (True, 4)]
    assert [plan.prompt for plan in planned(dataset, "8-more")] == [*items]
