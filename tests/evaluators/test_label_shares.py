"""Examples of which the first label has a chosen share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluators.runs.plan.plan import Plan, PlannedPart
from evaluators.runs.plan.selection import select
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_prompts import N_BALANCED, N_SETS, SHARES, examples_by_rule, rule_of
from schemas.folders.dataset_folder import read_manifest
from schemas.items.label import LabelItem
from tests.evaluators.label_data import BY_NAME, made_dataset, made_items


def chosen(pool: Sequence[LabelItem], percent: int, number: int) -> tuple[LabelItem, ...]:
    return examples_by_rule(pool, rule_of(percent), N_BALANCED, number)


def targets(items: Sequence[LabelItem]) -> list[str | None]:
    return [item.target for item in items]


@pytest.mark.parametrize("percent", SHARES)
@pytest.mark.parametrize("number", range(N_SETS))
@pytest.mark.parametrize("config", ["two", "three"])
def test_the_first_label_has_its_share_in_the_order_of_the_pool(config: str, percent: int, number: int) -> None:
    pool = made_items(config, "pool")
    found = chosen(pool, percent, number)
    assert len(found) == len({item.item_id for item in found}) == N_BALANCED
    assert targets(found).count(BY_NAME[config].labels[0]) == N_BALANCED * percent // 100
    places = [pool.index(item) for item in found]
    assert places == sorted(places)


def test_sets_share_no_item_while_the_pool_has_enough() -> None:
    pool = made_items("two", "pool")  # 20 with the first label and 10 with the other
    for percent, n_disjoint in ((50, 2), (75, 3), (100, 2)):
        ids = [item.item_id for number in range(n_disjoint) for item in chosen(pool, percent, number)]
        assert len(ids) == len({*ids}) == n_disjoint * N_BALANCED, percent


def test_a_set_has_only_what_the_pool_has() -> None:
    pool = made_items("six", "pool")  # 9 with the first label
    few = [item for item in pool if item.target == "surprise"][:3] + [item for item in pool if item.target == "joy"]
    for number in range(N_SETS):
        assert targets(chosen(few, 100, number)) == ["surprise"] * 3
        assert targets(chosen(few, 0, number)) == ["joy"] * 4
    assert chosen([], 50, 0) == ()


def of_config(dataset: Path, config: str, prompt: str) -> PlannedPart:
    selection = select(dataset, read_manifest(dataset), config, splits=(), limit=None, support=TASK.support_splits)
    (part,) = Plan(selection, TASK, TASK.prompts[prompt]).parts
    return part


def test_records_tell_the_labels_and_a_shown_item_leaves_itself_out(tmp_path: Path) -> None:
    dataset = made_dataset(tmp_path / "tasks")
    part = of_config(dataset, "two", "release-4096b-k8-share75-set1-v1")
    shown = {item.item_id for item in chosen(made_items("two", "pool"), 75, 1)}
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


def test_other_shares_are_other_prompts_and_other_examples(tmp_path: Path) -> None:
    dataset = made_dataset(tmp_path / "tasks")
    manifest = read_manifest(dataset)
    selection = select(dataset, manifest, "tasks", splits=(), limit=None, support=TASK.support_splits)
    names = [f"release-4096b-k8{share}-set0-v1" for share in ("", *(f"-{rule_of(percent)}" for percent in SHARES))]
    signatures = [Plan(selection, TASK, TASK.prompts[name]).signature for name in names]
    assert len({one.prompt_sha256 for one in signatures}) == len(names)
    assert len({one.examples_sha256 for one in signatures}) == len(names)
