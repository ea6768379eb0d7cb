"""Prompts of the task *classification*, byte for byte, their examples, and what becomes of them where they are long."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest
from evaluators.runs.ask.study import Study
from evaluators.runs.measure.stored_results import key_of_dataset
from evaluators.runs.plan.plan import NoExamplesError, Plan, select
from evaluators.task import Asked
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_prompts import (
    N_BALANCED,
    N_FREQUENT,
    N_SETS,
    FilledPrompt,
    examples_by_rule,
    filled,
    rule_of,
)
from schemas.documents.record import choice_sha256
from schemas.folders.dataset_folder import read_manifest
from schemas.items.label import LabelItem
from tests.evaluators.label_data import SPLITS, made_dataset, made_items, planned, short_items
from tests.suites.commands import ask, told

SHARE = "release-4096b-k8-frequent6-set1-v1"


def item(text: str, target: str | None = "A", instruction: str = "Answer with A or B") -> LabelItem:
    return LabelItem(
        item_id="one",
        instruction=instruction,
        text=text,
        labels=("A", "B", " yes ", "no!"),
        target=target,
        category="made",
        equivalent_labels=True,
        content_free=None if text.strip() else "placeholder",
        source_row=None,
        flags=(),
    )


def fill(prompt: str, asked: LabelItem, examples: Sequence[LabelItem] = ()) -> FilledPrompt:
    return filled(asked, TASK.prompts[prompt], examples)


def request_of(asked: Asked, about: LabelItem) -> ChoiceRequest:
    (request,) = TASK.requests(about, asked)
    assert isinstance(request, ChoiceRequest)
    return request


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("tasks") / "tasks")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("short") / "tasks", items=short_items)


def test_the_prompts_of_the_release_and_of_tk_instruct_are_right_to_the_byte() -> None:
    instruction = ' Find the cause of a sentence, or its effect. Answer with "A" or "B". '
    examples = [
        item("I dropped the glass. (A) It broke. (B) I drank it., Question: effect", "A", instruction),
        item("  The bus was late (A) It rained (B) It was early, Question: cause?\n", "B", instruction),
    ]
    asked = item("The lamp went out (A) The bulb burnt out (B) I read on, Question: cause", "A", instruction)
    found = fill("release-4096b-k2-set0-v1", asked, examples)
    assert found.text == (
        'Find the cause of a sentence, or its effect. Answer with "A" or "B".\n\n'
        "Input: I dropped the glass. (A) It broke. (B) I drank it., Question: effect.\n Output: A.\n\n"
        "Input: The bus was late (A) It rained (B) It was early, Question: cause?\n Output: B.\n\n"
        "Input: The lamp went out (A) The bulb burnt out (B) I read on, Question: cause.\n\n"
        "Output:"
    )
    assert (found.n_shown, found.cut) == (2, None)
    request = request_of(Asked(TASK.prompts["release-4096b-k2-set0-v1"], examples), asked)
    # Labels to score are neither stripped nor closed, as those of examples are.
    assert (request.prompt, request.options) == (found.text, (" A", " B", "  yes ", " no!"))
    assert request.outcomes == asked.labels
    examples = [item("one", " yes "), item("two!", "no!")]
    assert fill("paper-4096b-k2-set0-v1", item("three"), examples).text == (
        "Definition: Answer with A or B.\n\n"
        " Positive Example 1 -\nInput: one.\n Output: yes.\n\n"
        " Positive Example 2 -\nInput: two!\n Output: no!\n\n"
        "Now complete the following example -\nInput: three.\nOutput:"
    )
    assert fill("release-4096b-k0-v1", item("", None)).text == "Answer with A or B.\n\nInput: .\n\nOutput:"
    assert fill("release-4096b-k0-v1", item("[MASK]", None)).text.endswith("Input: [MASK]\n\nOutput:")


def test_the_first_example_that_does_not_fit_ends_them_and_a_long_input_loses_its_middle() -> None:
    found = fill("release-1024b-k4-set0-v1", item("x"), [item("a"), item("b" * 1200), item("c")])
    assert (found.n_shown, found.cut) == (1, None)
    assert found.text == "Answer with A or B.\n\nInput: a.\n Output: A.\n\nInput: x.\n\nOutput:"
    text = "".join(chr(ord("a") + number % 26) for number in range(3000))
    found = fill("release-1024b-k8-set0-v1", item(text), [item("e" * 100)])
    head, tail = "Answer with A or B.\n\nInput: ", ".\n\nOutput:"
    assert (found.text.startswith(head), found.text.endswith(tail)) == (True, True)
    left, gap, right = found.text[len(head) : -len(tail)].partition(" ... ")
    assert gap
    assert (text.startswith(left), text.endswith(right)) == (True, True)
    assert 0 <= len(left) - len(right) <= 1
    assert (len(found.text), found.n_shown, found.cut) == (1024, 0, "input")
    for n in range(4):  # Characters of many bytes are not cut apart.
        found = fill("release-1024b-k0-v1", item("x" * n + "漢😀é" * 400))
        assert 1024 - 8 < len(found.text.encode()) <= 1024
        assert "\ufffd" not in found.text.encode().decode()


def test_a_huge_instruction_loses_its_end_and_never_the_query() -> None:
    for size in range(940, 1010):
        found = fill("release-1024b-k0-v1", item("w" * 40, instruction="i" * size))
        assert len(found.text) <= 1024
        assert "\n\n\n" not in found.text
        if found.cut == "instruction":
            assert found.text.endswith("i\n\nInput: ...\n\nOutput:")
            assert len(found.text) == 1024
            assert "i" * size + "." not in found.text
        else:
            assert "i" * size in found.text
    assert found.cut == "instruction"


def test_a_budget_of_tokens_is_counted_by_the_tokenizer_that_is_given() -> None:
    prompt = TASK.prompts["release-2000t-k16-set0-v1"]
    examples = [item(f"<{number}>" + " w" * 146) for number in range(16)]  # 150 words with "Input:", "Output:" and "A."
    asked = item("x y z")  # 5 words of the instruction, 4 of the input, 1 of "Output:"

    def count(text: str) -> int:
        return len(text.split())

    found = filled(asked, prompt, examples, count)
    assert (found.n_shown, count(found.text)) == (13, 10 + 13 * 150)
    long = filled(item("w " * 5000), prompt, examples, count)
    assert (long.n_shown, long.cut) == (0, "input")
    assert 1998 <= count(long.text) <= 2000
    assert long.text.endswith("w.\n\nOutput:")
    assert request_of(Asked(prompt, examples, count), asked).prompt == found.text


def test_a_set_shows_its_items_of_the_pool_in_order(dataset: Path) -> None:
    assert len({prompt.sha256() for prompt in TASK.prompts.values()}) == len(TASK.prompts), "two would be compared"
    pool = made_items("two", "pool")
    (part,) = planned(dataset, "two", "release-4096b-k8-set1-v1").parts
    assert [*part.examples] == [*pool[8:16]]
    with pytest.raises(ConfigError, match=r"shows examples 33 to 48 of split 'pool', of which config 'two' has 30"):
        _ = [part.examples for part in planned(dataset, "two", "release-4096b-k16-set2-v1").parts]


def test_a_shown_item_leaves_itself_out_and_nothing_else_changes(dataset: Path) -> None:
    plan = planned(dataset, "three", "release-4096b-k4-set1-v1")
    (part,) = plan.parts
    n_left_out = 0
    for (split, one), (request,), facts in zip(part.items, part.requests, part.facts, strict=True):
        assert isinstance(one, LabelItem)
        examples = list(made_items("three", "pool")[4:8])
        place = examples.index(one) if split == "pool" and one in examples else None
        assert facts.groups.get("shown_place") == (None if place is None else str(place))
        if place is not None:
            n_left_out += 1
            del examples[place]
        assert request.prompt == filled(one, plan.prompt, examples).text
        assert json.loads(facts.groups["shown_labels"]) == [example.target for example in examples]
    assert n_left_out == 4


def choice(dataset: Path, *prompts: str, contexts: str | None = None, configs: Sequence[str] = ("two",)) -> list[str]:
    named = None if contexts is None else tuple(map(str.strip, contexts.split(",")))
    study = Study(datasets=(dataset,), configs=tuple(configs), limit=0, prompts=prompts, contexts=named)
    return [plan.prompt.id for plan in study.usual_plans]


def sets(start: str, numbers: Sequence[int] = range(3)) -> list[str]:
    return [f"{start}-set{number}-v1" for number in numbers]


def test_contexts_choose_every_set_of_a_number_of_examples(dataset: Path, short: Path) -> None:
    of_eight, none = sets("release-4096b-k8"), "release-4096b-k0-v1"
    assert choice(dataset) == choice(dataset, contexts="8,0,8") == [none, *of_eight]
    assert choice(dataset, contexts="8") == of_eight
    assert choice(short, contexts="8-more") == sets("release-4096b-k8", (3, 4))
    assert choice(short, contexts="0, 8-frequent5") == [none, *sets("release-4096b-k8-frequent5")]
    assert choice(dataset, "paper-1024b-k2-set1-v1") == ["paper-1024b-k2-set1-v1"]
    assert choice(dataset, "release-4096b", "release-1024b", contexts="0") == [none, "release-1024b-k0-v1"]
    # Contexts beside a prompt are those of its protocol.
    assert choice(dataset, "paper-1024b-k2-set1-v1", contexts="0") == ["paper-1024b-k0-v1"]
    with pytest.raises(ConfigError, match=r"--contexts: .* '3'; have.*: 0, 2, 4, 8, 8-more, 16, 8-frequent4, "):
        choice(dataset, contexts="0,3")
    with pytest.raises(ConfigError, match=r"--prompt nothing-v1 is not used"):
        choice(dataset, "paper-1024b-k0-v1", "nothing-v1", contexts="0")


def with_targets(labels: str) -> list[LabelItem]:
    """A pool of a task with the labels *yes* and *no*, spelt y and n."""
    first, of = made_items("two", "pool")[0], {"y": "yes", "n": "no"}
    return [replace(first, item_id=f"pool-{place}", target=of[one]) for place, one in enumerate(labels)]


@pytest.mark.parametrize(
    ("labels", "n_frequent", "number"), [("yn" * 6 + "y" * 8, 6, 1), ("nyn" * 8, 4, 2), ("yn" * 8, 8, 0)]
)
def test_the_more_frequent_label_has_its_share_in_the_order_of_the_pool(
    labels: str, n_frequent: int, number: int
) -> None:
    pool = with_targets(labels)
    # Of labels that tie, the one that items offer first.
    frequent = "n" if labels.count("n") > labels.count("y") else "y"
    places = []
    for is_frequent, wanted in ((True, n_frequent), (False, N_BALANCED - n_frequent)):
        kind = [place for place, one in enumerate(labels) if (one == frequent) == is_frequent]
        places += [kind[(wanted * number + step) % len(kind)] for step in range(wanted)]
    chosen = examples_by_rule(pool, rule_of(n_frequent), N_BALANCED, number)
    assert [one.item_id for one in chosen] == [f"pool-{place}" for place in sorted(places)]
    assert len({*places}) == N_BALANCED


def test_a_pool_must_have_enough_of_both_labels_for_every_share() -> None:
    prompt = replace(TASK.prompts[SHARE], max_prompt_bytes=None)
    assert TASK.why_no_examples(made_items("three", "pool"), prompt) == "3 labels"
    for labels, why in (
        ("y" * 8 + "n" * 4, None),
        ("y" * 9 + "n" * 3, "3 items with the rarer label to show"),
        ("y" * 7 + "n" * 7, "7 items with the more frequent label to show"),
        ("", "0 labels"),
    ):
        assert TASK.why_no_examples(with_targets(labels), prompt) == why


@pytest.mark.parametrize("max_bytes", [440, 600])
def test_examples_that_do_not_all_fit_have_another_share_and_are_left_out(max_bytes: int) -> None:
    pool = [replace(one, text=f"{one.text} {'a' * place}") for place, one in enumerate(with_targets("ynn" * 8))]
    prompt = replace(TASK.prompts[SHARE], max_prompt_bytes=max_bytes)
    # Inputs get longer along the pool of 24, of which the last two may get fewer examples.
    fewest = min(
        filled(pool[20], prompt, examples_by_rule(pool, rule_of(n_frequent), N_BALANCED, number)).n_shown
        for n_frequent in N_FREQUENT
        for number in range(N_SETS)
    )
    why = None if fewest == N_BALANCED else f"8 examples do not fit into {max_bytes} bytes"
    assert TASK.why_no_examples(pool, prompt) == why


def of_contexts(dataset: Path, contexts: str, configs: tuple[str, ...] = ()) -> Sequence[Plan]:
    return Study(datasets=(dataset,), contexts=tuple(contexts.split(",")), configs=configs).usual_plans


def test_a_suite_is_asked_without_the_parts_that_lack_examples_and_says_so(
    short: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    manifest = read_manifest(short)
    whole, *shares = of_contexts(short, "0,8-frequent4,8-frequent8")
    assert [part.config for part in whole.parts] == ["two", "three", "letters", "six"]
    assert len(shares) == 2 * N_SETS
    of_two = select(short, manifest, "tasks", parts=("two",), limit=100, support=TASK.support_splits)
    for plan in shares:
        signature = plan.signature
        found = (signature.parts, signature.items_sha256, signature.n_items)
        assert found == (("two",), of_two.items_sha256, of_two.n_items)
    said = capfd.readouterr().err
    assert said.count("left out with 8-frequent4 examples: three (3 labels); letters (4 labels); six (6 labels)") == 1
    with pytest.raises(NoExamplesError, match=r"has no examples to show: three \(3 labels\); take another"):
        of_contexts(short, "8-frequent4", configs=("three",))
    with pytest.raises(ConfigError, match=r"three \(3 labels\)"):
        _ = Plan(select(short, manifest, "three"), TASK, TASK.prompts[SHARE]).signature
    made = key_of_dataset(short, manifest, config="tasks", task="classification", prompt=SHARE)
    assert [part.config for part in made.key.parts] == ["two"]
    (plan,) = [one for one in of_contexts(short, "8-frequent6") if one.prompt.id == SHARE]
    assert made.key.signature.items_sha256 == plan.signature.items_sha256
    # Other shares are other prompts and examples, whose labels records tell.
    plans = [planned(short, "two", f"release-4096b-k8-{rule_of(number)}-set1-v1") for number in N_FREQUENT]
    assert len({plan.signature.prompt_sha256 for plan in plans}) == len(N_FREQUENT)
    assert len({plan.signature.examples_sha256 for plan in plans}) == len(N_FREQUENT)
    for n_frequent, plan in zip(N_FREQUENT, plans, strict=True):
        (part,) = plan.parts
        labels = [json.loads(facts.groups["shown_labels"]) for facts in part.facts]
        assert [len(of_item) for of_item in labels].count(N_BALANCED - 1) == N_BALANCED, "shown items are left out"
        assert {of_item.count("yes") for of_item in labels if len(of_item) == N_BALANCED} == {n_frequent}


@pytest.mark.slow
def test_the_model_is_asked_each_request_of_the_grid_once(tmp_path: Path) -> None:
    configs = ("two", "letters")
    made = made_dataset(tmp_path / "tasks", configs)
    ask(made, tmp_path / "runs", "--limit", "0", PLANTED_LOG=tmp_path / "log")
    asked = Counter((tmp_path / "log").read_text(encoding="utf-8").split())
    expected: dict[str, set[str]] = {}
    for prompt_id in ("release-4096b-k0-v1", *sets("release-4096b-k8")):
        prompt = TASK.prompts[prompt_id]
        k, hashes = prompt.n_examples or 0, expected.setdefault(prompt_id, set())
        for config, split in itertools.product(configs, SPLITS):
            shown = made_items(config, "pool")[k * (prompt.example_set or 0) :][:k]
            for one in made_items(config, split):
                text = filled(one, prompt, [example for example in shown if example is not one]).text
                hashes.add(choice_sha256(text, tuple(f" {label}" for label in one.labels)))
    assert asked == sum(map(Counter, expected.values()), Counter())
    results = [told(path) for path in (tmp_path / "runs").rglob("result.json")]
    found = {result["signature"]["prompt"]: result["usage"]["n_requests"] for result in results}
    assert found == {prompt: len(wanted) for prompt, wanted in expected.items()}
