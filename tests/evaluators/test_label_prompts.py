"""Prompts of the task *classification*, byte for byte, and what becomes of them where they are too long."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest
from evaluators.runs.ask.study import Study
from evaluators.runs.plan.plan import Plan
from evaluators.task import Asked
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_prompts import FilledPrompt, filled
from schemas.items.label import LabelItem
from tests.evaluators.label_data import made_dataset, made_items, planned, short_items

ALPHABET = "ab .,é漢😀\n"


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


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("tasks") / "tasks")


def test_the_prompt_of_the_release_is_right_to_the_byte() -> None:
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
    (request,) = TASK.requests(asked, Asked(TASK.prompts["release-4096b-k2-set0-v1"], examples))
    assert isinstance(request, ChoiceRequest)
    assert request.prompt == found.text
    assert request.options == (" A", " B", "  yes ", " no!")
    assert request.outcomes == asked.labels


def test_the_prompt_of_tk_instruct_is_right_to_the_byte() -> None:
    examples = [item("one", "A"), item("two!", "no!")]
    assert fill("paper-4096b-k2-set0-v1", item("three"), examples).text == (
        "Definition: Answer with A or B.\n\n"
        " Positive Example 1 -\nInput: one.\n Output: A.\n\n"
        " Positive Example 2 -\nInput: two!\n Output: no!\n\n"
        "Now complete the following example -\nInput: three.\nOutput:"
    )


@pytest.mark.parametrize(
    ("text", "shown"), [("", "Input: ."), ("N/A", "Input: N/A."), ("[MASK]", "Input: [MASK]"), (" x \n", "Input: x.")]
)
def test_inputs_without_content_are_asked_as_the_release_asks_them(text: str, shown: str) -> None:
    asked = item(text, None)
    assert fill("release-4096b-k0-v1", asked).text == f"Answer with A or B.\n\n{shown}\n\nOutput:"
    assert fill("paper-4096b-k0-v1", asked).text == (
        f"Definition: Answer with A or B.\n\nNow complete the following example -\n{shown}\nOutput:"
    )


def test_labels_of_examples_are_stripped_and_closed_and_labels_to_score_are_not() -> None:
    found = fill("release-4096b-k2-set0-v1", item("x"), [item("a", " yes "), item("b", "no!")])
    assert "Input: a.\n Output: yes.\n\n" in found.text
    assert "Input: b.\n Output: no!\n\n" in found.text
    (request,) = TASK.requests(item("x"), Asked(TASK.prompts["release-4096b-k0-v1"]))
    assert isinstance(request, ChoiceRequest)
    assert request.options[2] == "  yes "


def drawn_text(rng: random.Random, n: int) -> str:
    return "".join(rng.choice(ALPHABET) for _ in range(n))


def fitting(prompt: str, asked: LabelItem, examples: Sequence[LabelItem]) -> int:
    """The number of examples that fit, by the rule of the release."""
    prompts = [fill(prompt.replace("1024", "4096"), asked, examples[:n]).text for n in range(len(examples) + 1)]
    n_shown = 0
    while n_shown < len(examples):
        # The shown ones are measured with spaces between them, and the next one without.
        n_spaces = max(0, n_shown - 1)
        if len(prompts[n_shown + 1].encode()) + n_spaces > 1024:
            break
        n_shown += 1
    return n_shown


@pytest.mark.slow
@pytest.mark.parametrize("style", ["release", "paper"])
def test_prompts_fit_end_as_they_should_and_show_examples_in_order(style: str) -> None:
    rng = random.Random(style)
    cuts = set()
    for _ in range(400):
        asked = item(
            drawn_text(rng, rng.choice((0, 10, 300, 1500))),
            instruction=drawn_text(rng, rng.choice((0, 200, 600, 1100))),
        )
        examples = [item(f"<{number}> {drawn_text(rng, rng.choice((5, 40, 150)))}") for number in range(8)]
        found = fill(f"{style}-1024b-k8-set0-v1", asked, examples)
        assert len(found.text.encode()) <= 1024
        assert found.text.endswith("Output:")
        assert [f"<{number}>" in found.text for number in range(8)] == [number < found.n_shown for number in range(8)]
        if found.cut is None:
            assert found.n_shown == fitting(f"{style}-1024b-k8-set0-v1", asked, examples)
            assert found.text == fill(f"{style}-4096b-k8-set0-v1", asked, examples[: found.n_shown]).text
        cuts.add(found.cut)
    assert cuts == {None, "input", "instruction"}


@pytest.mark.parametrize(("n_examples", "n_shown"), [(2, 2), (3, 2)])
def test_spaces_between_examples_are_measured_and_not_sent(n_examples: int, n_shown: int) -> None:
    """Two examples have no space between them when the second is measured; three have one."""
    examples = [item("a" * 100) for _ in range(n_examples)]
    empty = fill("release-4096b-k4-set0-v1", item("x", instruction="i"), examples).text
    asked = item("x", instruction="i" * (1025 - len(empty)))
    assert len(fill("release-4096b-k4-set0-v1", asked, examples).text) == 1024
    assert fill("release-1024b-k4-set0-v1", asked, examples).n_shown == n_shown


def test_the_first_example_that_does_not_fit_ends_the_examples() -> None:
    examples = [item("a"), item("b" * 1200), item("c")]
    found = fill("release-1024b-k4-set0-v1", item("x"), examples)
    assert (found.n_shown, found.cut) == (1, None)
    assert found.text == "Answer with A or B.\n\nInput: a.\n Output: A.\n\nInput: x.\n\nOutput:"


def test_a_long_input_loses_its_middle_and_uses_all_the_room() -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(3000))
    found = fill("release-1024b-k8-set0-v1", item(text), [item("e" * 100)])
    head, tail = "Answer with A or B.\n\nInput: ", ".\n\nOutput:"
    assert found.text.startswith(head)
    assert found.text.endswith(tail)
    left, gap, right = found.text[len(head) : -len(tail)].partition(" ... ")
    assert gap
    assert text.startswith(left)
    assert text.endswith(right)
    assert 0 <= len(left) - len(right) <= 1
    assert len(found.text) == 1024
    assert (found.n_shown, found.cut) == (0, "input")


def test_characters_of_many_bytes_are_not_cut_apart() -> None:
    for n in range(8):
        found = fill("release-1024b-k0-v1", item("x" * n + "漢😀é" * 400))
        assert 1024 - 8 < len(found.text.encode()) <= 1024
        assert "\ufffd" not in found.text.encode().decode()


@pytest.mark.parametrize("style", ["release", "paper"])
def test_a_huge_instruction_loses_its_end_and_never_the_query(style: str) -> None:
    query = {
        "release": "\n\nInput: ...\n\nOutput:",
        "paper": "\n\nNow complete the following example -\nInput: ...\nOutput:",
    }[style]
    for size in range(880, 1100):
        found = fill(f"{style}-1024b-k0-v1", item("w" * 40, instruction="i" * size))
        assert len(found.text) <= 1024
        assert "\n\n\n" not in found.text
        if found.cut == "instruction":
            assert found.text.endswith(f"i{query}")
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
    assert count(filled(asked, prompt, examples[:1], count).text) == 10 + 150 + 1 - 1
    assert (found.n_shown, count(found.text)) == (13, 10 + 13 * 150)
    long = filled(item("w " * 5000), prompt, examples, count)
    assert (long.n_shown, long.cut) == (0, "input")
    assert 1998 <= count(long.text) <= 2000
    assert long.text.endswith("w.\n\nOutput:")
    (request,) = TASK.requests(asked, Asked(prompt, examples, count))
    assert isinstance(request, ChoiceRequest)
    assert request.prompt == found.text


def test_prompts_are_told_apart_and_a_set_is_part_of_the_pool() -> None:
    prompts = list(TASK.prompts.values())
    assert (
        len({prompt.id for prompt in prompts}) == len({prompt.sha256() for prompt in prompts}) == 5 * (15 + 15) + 2 * 6
    )
    assert prompts[0].id == "release-4096b-k0-v1"
    contexts = {(prompt.n_examples, prompt.example_set) for prompt in prompts}
    assert contexts == {(0, None), (8, 3), (8, 4), *((k, s) for k in (2, 4, 8, 16) for s in range(3))}


def shown_texts(plan: Plan) -> list[str]:
    return [example.text for part in plan.parts for example in part.examples if isinstance(example, LabelItem)]


def test_a_set_shows_its_items_of_the_pool_in_order(dataset: Path) -> None:
    pool = [one.text for one in made_items("two", "pool")]
    for k, number in ((2, 0), (2, 2), (8, 1), (8, 2), (4, 1)):
        plan = planned(dataset, "two", f"release-4096b-k{k}-set{number}-v1")
        assert shown_texts(plan) == pool[k * number : k * (number + 1)]
    with pytest.raises(ConfigError, match=r"shows examples 33 to 48 of split 'pool', of which config 'two' has 30"):
        shown_texts(planned(dataset, "two", "release-4096b-k16-set2-v1"))


def test_a_shown_item_leaves_itself_out_and_nothing_else_changes(dataset: Path) -> None:
    plan = planned(dataset, "three", "release-4096b-k4-set1-v1")
    (part,) = plan.parts
    pool = made_items("three", "pool")
    for (split, one), (request,), facts in zip(part.items, part.requests, part.facts, strict=True):
        assert isinstance(one, LabelItem)
        examples = list(pool[4:8])
        is_shown = split == "pool" and one in examples
        if is_shown:
            assert facts.groups["shown_place"] == str(examples.index(one))
            examples.remove(one)
        else:
            assert "shown_place" not in facts.groups
        found = filled(one, plan.prompt, examples)
        assert request.prompt == found.text
        assert found.n_shown == (3 if is_shown else 4)
    assert sum("shown_place" in facts.groups for facts in part.facts) == 4


def choice(dataset: Path, *prompts: str, contexts: str | None = None, configs: Sequence[str] = ("two",)) -> list[str]:
    named = None if contexts is None else tuple(map(str.strip, contexts.split(",")))
    study = Study(datasets=(dataset,), configs=tuple(configs), limit=0, prompts=prompts, contexts=named)
    return [plan.prompt.id for plan in study.usual_plans]


def test_contexts_choose_every_set_of_a_number_of_examples(dataset: Path, tmp_path: Path) -> None:
    sets = [f"release-4096b-k8-set{number}-v1" for number in range(3)]
    assert choice(dataset) == ["release-4096b-k0-v1", *sets]
    assert choice(dataset, contexts="8") == sets
    assert choice(made_dataset(tmp_path / "short", items=short_items), contexts="0, 8-frequent5") == [
        "release-4096b-k0-v1",
        *(f"release-4096b-k8-frequent5-set{number}-v1" for number in range(3)),
    ]
    assert choice(dataset, contexts="8,0,8") == ["release-4096b-k0-v1", *sets]
    assert choice(dataset, "paper-1024b", contexts="0") == ["paper-1024b-k0-v1"]
    assert choice(dataset, "paper-1024b-k2-set1-v1") == ["paper-1024b-k2-set1-v1"]
    assert choice(dataset, "release-4096b", "release-1024b", contexts="0") == [
        "release-4096b-k0-v1",
        "release-1024b-k0-v1",
    ]


def test_wrong_contexts_are_refused_with_those_that_exist(dataset: Path) -> None:
    with pytest.raises(ConfigError, match=r"--contexts: .* '3'; have.*: 0, 2, 4, 8, 8-more, 16, 8-frequent4, "):
        choice(dataset, contexts="0,3")
    for wrong in ("", "eight", "0;8", "0,"):
        with pytest.raises(ConfigError, match=r"has context '.*'; have, separated by commas: 0, 2"):
            choice(dataset, contexts=wrong)
    with pytest.raises(ConfigError, match=r"prompt 'nothing-v1' does not exist"):
        choice(dataset, "nothing-v1")


def test_contexts_beside_a_prompt_are_those_of_its_protocol(dataset: Path) -> None:
    assert choice(dataset, "paper-1024b-k2-set1-v1", contexts="0") == ["paper-1024b-k0-v1"]
    assert choice(dataset, "release-1024b-k0-v1", contexts="2") == [
        f"release-1024b-k2-set{number}-v1" for number in range(3)
    ]
    with pytest.raises(ConfigError, match=r"--prompt nothing-v1 is not used"):
        choice(dataset, "paper-1024b-k0-v1", "nothing-v1", contexts="0")
