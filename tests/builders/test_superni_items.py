"""Labels, splits and flags of one task, on tasks that the tests make themselves."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import yaml

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import packaged_toml, packaged_words
from builders.superni import embedded, natural_instructions
from builders.superni.content_free import InputMarkers, Marker, english_texts, find_frame, random_texts
from builders.superni.items import FEW_TEST, Instance, TaskContent, labels_of, offered, split_items, unnamed_labels
from builders.superni.task_choice import content_refusal, named_tasks, published_tasks
from evaluators.tasks.labels.classification_task import TASK
from schemas.files import contract
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.label import LabelItem
from schemas.validate import problems
from tests import commands
from tests.terminal import without_progress

WORDS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")


def text_of(number: int) -> str:
    return f"Sentence 1: the {WORDS[number % 12]} has {number} leaves\nSentence 2: it is {WORDS[number // 12 % 12]}"


def task(
    outputs: Sequence[tuple[str, ...]], *, name: str = "task001_made", texts: Sequence[str] | None = None
) -> TaskContent:
    texts = texts or [text_of(number) for number in range(len(outputs))]
    return TaskContent(
        name=name,
        instruction="Say yes or no.",
        category="Made",
        equivalent_labels=False,
        own_candidates=False,
        licence="MIT",
        sha256=None,
        instances=tuple(
            Instance(f"{name}-{number:03}", text, output, f"{name}.json, instance {number}")
            for number, (text, output) in enumerate(zip(texts, outputs, strict=True))
        ),
        rejects=(),
    )


def yes_no(n: int, name: str = "task001_made") -> TaskContent:
    return task([("yes",) if number % 2 else ("no",) for number in range(n)], name=name)


def all_items(content: TaskContent) -> list[LabelItem]:
    return [item for of_split in split_items(content, seed=1).values() for item in of_split]


def test_splits_are_the_first_parts_of_a_permutation_that_the_seed_and_the_name_give() -> None:
    splits = split_items(yes_no(300), seed=7)
    order = np.random.default_rng(int(hashlib.sha256(b"7:task001_made").hexdigest(), 16)).permutation(300).tolist()
    ids = {split: [int(item.item_id[-3:]) for item in items] for split, items in splits.items()}
    assert (ids["bias"], ids["pool"], ids["test"]) == (order[:32], order[32:96], order[96:])
    assert tuple(splits) == ("test", "bias", "pool", "content_free")
    # A limit takes evaluation items alone, and keeps the others in place.
    some = split_items(yes_no(300), seed=7, limit=20)
    assert (some["test"], some["bias"], some["pool"]) == (splits["test"][:20], splits["bias"], splits["pool"])
    others = [split_items(yes_no(300), seed=8), split_items(yes_no(300, "task002_made"), seed=7)]
    texts = [[item.text for item in of["bias"]] for of in (splits, *others)]
    assert texts[0] not in texts[1:]


def test_labels_are_all_first_outputs_sorted_as_they_are_spelt() -> None:
    # 'Rare' stands once among 200 items, so that it is in one split only; spaces and case stay.
    content = task([("no",)] * 100 + [("Yes", "of course")] * 98 + [("Rare",), (" no",)])
    assert labels_of(content) == (" no", "Rare", "Yes", "no")
    assert {item.labels for item in all_items(content)} == {labels_of(content)}


def test_content_free_items_have_no_target_and_every_item_fits_the_contract() -> None:
    items = split_items(yes_no(120), seed=1)["content_free"]
    assert [item.text for item in items[:3]] == ["N/A", "", "[MASK]"]
    kinds = ["placeholder"] * 3 + ["random_words"] * 20 + ["english_words"] * 20
    assert [item.content_free for item in items] == kinds
    assert {item.target for item in items} == {None}
    assert (len({item.item_id for item in items}), len({item.text for item in items[3:]})) == (43, 40)
    found = [
        problem for item in all_items(yes_no(120)) for problem in contract.converted(contract.dump(item), LabelItem)[1]
    ]
    assert found == []


def test_defects_of_an_item_are_its_flags() -> None:
    texts = [text_of(number) for number in range(100)]
    texts[1] = f" {texts[1]}"
    texts[3], texts[6] = texts[2], texts[4]
    outputs: list[tuple[str, ...]] = [("no",) if number % 2 else ("yes",) for number in range(100)]
    outputs[9], outputs[11] = ("no", "never"), ("perhaps",)
    items = all_items(task(outputs, texts=texts))
    assert {item.flags[0] for item in items} == {"small_test_split"}
    flags = {int(item.item_id[-3:]): item.flags[1:] for item in items if item.content_free is None and item.flags[1:]}
    assert flags == {
        1: ("outer_whitespace",),
        **dict.fromkeys((2, 3), ("repeated_input", "conflicting_labels")),
        **dict.fromkeys((4, 6), ("repeated_input",)),
        9: ("several_outputs",),
        11: ("label_not_in_instruction",),
    }


@pytest.mark.parametrize(("n_items", "limit", "is_small"), [(195, 1000, True), (196, 1000, False), (196, 9, False)])
def test_defects_of_the_task_flag_every_item(n_items: int, limit: int, is_small: bool) -> None:
    splits = split_items(yes_no(n_items), seed=1, limit=limit)
    assert len(splits["test"]) == min(n_items - 96, limit)
    flags = {item.flags for items in splits.values() for item in items}
    assert flags == {("small_test_split",) if is_small else ()}
    # It is small if a run by default would ask more.
    assert TASK.default_limit == FEW_TEST
    of_labels = {item.flags for item in all_items(task([("Yes.",), ("yes.",)] * 100))}
    assert of_labels == {("label_with_period", "labels_alike")}


@pytest.mark.parametrize(
    ("text", "labels", "target", "found"),
    [
        ("Which? (A) wren (B) oak (C) tin", "A B C D", "B", "A B C"),
        ("Which?\nA) wren\nB) oak", "A B C D", "A", "A B"),
        ("Which? (A) wren", "A B C D", "A", None),
        ("Which? 1) wren 2) oak 11) tin", "1 11 2 3", "1", "1 11 2"),
        ("It cost 3.1) wren, 2) oak", "1 2", "2", None),
    ],
)
def test_the_options_of_an_input_are_the_labels_whose_sign_it_has(
    text: str, labels: str, target: str, found: str | None
) -> None:
    assert offered(text, labels.split(), target) == (None if found is None else tuple(found.split()))


def test_items_with_own_candidates_have_them_as_labels_or_a_flag() -> None:
    texts = [f"Which is {n}? (A) w (B) x (C) y" + (" (D) z" if n % 2 else "") for n in range(100)]
    texts[0] = "Which is 0, A or B?"
    outputs = [("ABC"[n % 3],) if n != 1 else ("D",) for n in range(100)]
    content = replace(task(outputs, texts=texts), own_candidates=True, instruction="Answer A, B, C or D.")
    items = {item.item_id[-3:]: item for item in all_items(content)}
    assert (items["001"].labels, items["002"].labels) == (("A", "B", "C", "D"), ("A", "B", "C"))
    assert (items["000"].labels, items["000"].flags[1:]) == (("A", "B", "C", "D"), ("candidates_unclear",))
    assert sum("candidates_unclear" in item.flags for item in items.values()) == 1


def test_embedded_tasks_have_inputs_that_differ_right_letters_and_instructions_that_name_every_label() -> None:
    tasks = {name: read() for name, read in embedded.source_tasks().items()}
    assert Counter(len(labels_of(content)) for content in tasks.values()) == {2: 3, 3: 2, 4: 3, 6: 1, 12: 1}
    assert {name for name, content in tasks.items() if content.equivalent_labels} == {"odd_one_out", "find_the_kind"}
    for content in tasks.values():
        texts = [instance.text for instance in content.instances]
        assert len(set(texts)) == len(texts) >= 220
        assert not [text for text in texts if re.search(r"[{}]|  | [.,!?]|\.\.", text)]
        assert unnamed_labels(labels_of(content), content.instruction) == set()
        assert {item.flags for item in all_items(content)} == {()}
    # The right letter is that of the only word of its kind.
    option = re.compile(r"\(([A-D])\) ([\w ]+?)(?= \(|$)")
    for name in ("odd_one_out", "find_the_kind"):
        file = packaged_toml("builders.superni", "texts", f"{name}.toml")
        kind_of = {word: kind for kind, words in file["groups"].items() for word in words}
        for instance in tasks[name].instances:
            kinds = {letter: kind_of[word] for letter, word in option.findall(instance.text)}
            asked = [kind for kind, words in file.get("kinds", {}).items() if re.search(rf"\b{words}\b", instance.text)]
            odd = [kind for kind in kinds.values() if [*kinds.values()].count(kind) == 1]
            assert [letter for letter, kind in kinds.items() if kind in (asked or odd)] == [instance.label]


def instances(n: int, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Instances of the present schema, whose labels take turns."""
    return [
        {"id": f"task1-{number:032x}", "input": text_of(number), "output": [labels[number % len(labels)]]}
        for number in range(n)
    ]


def write_task(folder: Path, name: str, rows: Sequence[object], instruction: str = "Answer yes or no.") -> Path:
    """Write a task file in the present schema of Super-NaturalInstructions."""
    names = ("Contributors", "Source", "Categories", "Definition", "Input_language", "Output_language")
    values = ("somebody", "made", "Made Classification", instruction, "English", "English")
    fields = {name: [value] for name, value in zip(names, values, strict=True)}
    return written(folder, name, {**fields, "Positive Examples": [], "Instances": rows, "Instance License": ["MIT"]})


def write_old_task(folder: Path, name: str, rows: Sequence[tuple[str, Any]], instruction: str) -> Path:
    """Write a task file of the old schema: texts instead of lists, and no ids."""
    fields = {"Contributors": "somebody", "Source": "made (2020)", "Categories": "Made Classification -> Old"}
    instances = [{"input": text, "output": output} for text, output in rows]
    told = {**fields, "Definition": instruction, "Positive Examples": [], "Instances": instances}
    return written(folder, name, told)


def written(folder: Path, name: str, value: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder / f"{name}.json"


PUBLISHED = ("task050_multirc_answerability", "task056_multirc_classify_correct_answer")
OF_TASKS = "out/datasets/superni-natural-instructions"


def run(folder: Path, *arguments: str, **environment: Any) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.superni", *arguments, cwd=folder, **environment)


def from_folder(folder: Path, *arguments: str, status: int = 0) -> str:
    done = run(folder, "--source", "natural-instructions", "--input", "tasks", *arguments)
    assert done.returncode == status, done.stderr
    assert status == 0 or (done.stdout == "" and not (folder / "out").exists())
    return done.stderr if status else done.stdout


def items_of(folder: Path) -> dict[tuple[str, str], list[LabelItem]]:
    splits = read_manifest(folder).splits
    return {(entry.config, entry.split): cast(list[LabelItem], read_split(folder, entry)) for entry in splits}


@pytest.mark.slow
def test_the_plain_command_builds_ten_tasks_and_a_suite(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert "10 tasks with 2 to 12 labels; 1382 items to evaluate" in done.stdout
    folder = tmp_path / "out/datasets/superni"
    manifest = read_manifest(folder)
    assert list(problems(folder)) == []
    assert [entry.split for entry in manifest.splits] == ["test", "bias", "pool", "content_free"] * 10
    assert [(suite.name, suite.configs) for suite in manifest.suites] == [("tasks", manifest.configs)]
    assert (manifest.redistributable, manifest.human_validated, manifest.seed) == (True, False, 42)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert 'load_dataset("out/datasets/superni", "word_relations", split="test")' in card
    front = yaml.safe_load(card.split("---\n")[1])
    assert (front["license"], front["task_categories"]) == ("apache-2.0", ["text-classification"])


@pytest.mark.slow
def test_published_tasks_of_a_folder_are_built_and_the_missing_ones_listed(tmp_path: Path) -> None:
    broken = [{"id": "x", "input": " ", "output": ["No."]}]
    write_task(
        tmp_path / "tasks", PUBLISHED[0], [*instances(200, ["No.", "Yes."]), *broken], instruction="Say Yes. or No."
    )
    rows = [(text_of(n), ["Yes"] if n % 4 else "No") for n in range(100)]
    write_old_task(tmp_path / "tasks", PUBLISHED[1], rows, instruction="Yes or no?")
    write_task(tmp_path / "tasks", "task900_made", instances(200, ["yes", "no"]))
    told = from_folder(tmp_path)
    assert "2 of 279 tasks found; missing: task065_timetravel_consistent_sentence_classification, " in told
    assert "and 272 more" in told
    assert f"warning: other counts than published in 2 tasks: {PUBLISHED[0]}: 200 items instead of 5912" in told
    assert "not for publishing: each task keeps the licence" in told
    assert list(problems(tmp_path / OF_TASKS)) == []
    manifest = read_manifest(tmp_path / OF_TASKS)
    assert manifest.configs == PUBLISHED
    assert manifest.publish_refusal is not None
    # A row that is no item is counted, and the task is built without it.
    assert {count.rule: count.n for count in manifest.rejects if count.n} == {"empty_input": 1}
    assert [source.licence for source in manifest.sources] == [
        "Apache-2.0 (repository); instances: MIT",
        "Apache-2.0 (repository); instances: not told",
        "none, as they are single words",
    ]
    assert str(manifest.parameters["missing_tasks"]).count(", ") == 276
    items = items_of(tmp_path / OF_TASKS)
    sizes = {split: len(of_split) for (config, split), of_split in items.items() if config == PUBLISHED[1]}
    assert sizes == {"test": 4, "bias": 32, "pool": 64, "content_free": 43}
    assert {item.flags for item in items[PUBLISHED[0], "content_free"]} == {("label_with_period",)}
    assert {item.flags[0] for item in items[PUBLISHED[1], "test"]} == {"small_test_split"}
    assert "143 small_test_split" in told


@pytest.mark.slow
def test_bad_arguments_are_one_line_and_leave_nothing(tmp_path: Path) -> None:
    for arguments, message in (
        ("--tasks odd_one_out --tasks ,", "--tasks ',': names no task; leave it out for the default"),
        ("--tasks published", "--tasks published: stands for files of the publication, alone; leave it out"),
        ("--tasks none", "--tasks none: the source has no such task; have: course_topics, "),
        ("--source natural-instructions --input .", "--input .: no file taskNNN_NAME.json here"),
    ):
        done = run(tmp_path, *arguments.split())
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {message}")
        assert without_progress(done.stderr).count("\n") == 1
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_named_task_that_cannot_be_used_is_an_error_and_a_published_one_is_dropped(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", PUBLISHED[0], instances(150, ["Yes"]))
    write_task(tmp_path / "tasks", PUBLISHED[1], instances(96, ["Yes", "No"]))
    for tasks, said in (
        ("50", f"error: --tasks {PUBLISHED[0]}: cannot be used, the only label is 'Yes'; leave it out\n"),
        ("56", "cannot be used, 96 items can be used, and 97 are needed; leave it out"),
        ("published", f"error: none of the 2 tasks can be used ({PUBLISHED[0]}, {PUBLISHED[1]})"),
    ):
        assert said in from_folder(tmp_path, "--tasks", tasks, status=1)
    write_task(tmp_path / "tasks", PUBLISHED[1], instances(97, ["Yes", "No"]))
    assert f"dropped 1 task: {PUBLISHED[0]} (the only label is 'Yes')" in from_folder(tmp_path)
    rejects = read_manifest(tmp_path / OF_TASKS).rejects
    assert {count.rule: count.n for count in rejects if count.n} == {"one_label": 1}


SENTENCES = [f"Sentence 1: there are {n} {'big ' * (n % 3)}trees\nSentence 2: it is so {n}" for n in range(60)]
OF_SENTENCES = ["Sentence 1:", "Sentence 2:"]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ("Sentence 1: number {n} fell\nSentence 2: it rose", OF_SENTENCES),
        ("number {n} fell. (A) left (B) right. Question: cause", ["(A)", "(B)", "Question:"]),
        ("Prompt: number {n} \nCompletion A: left \nCompletion B: up", ["Prompt:", "Completion A:", "Completion B:"]),
        ("number {n}? 1) left 2) right", ["1)", "2)"]),
        ("i feel like number {n} today", []),
        # Words before a colon that change are left out of the marker.
        ("It was {n} Question: why", ["Question:"]),
        ([f"{name} went out Question: why" for name in ("Kim", "Lee", "Sam", "Jo") * 10], ["went out Question:"]),
        # A marker that many inputs lack belongs to the part before; one input in fifty may lack or add one.
        ([f"number {n}? (A) left (B) right" + (" (C) up" if n % 2 else "") for n in range(50)], ["(A)", "(B)"]),
        ([*SENTENCES[:49], "nothing at all"], OF_SENTENCES),
        ([*SENTENCES[:49], "Sentence 1: he said: no\nSentence 2: yes"], OF_SENTENCES),
        ([f"Left: {n} Right: {n}" if n % 2 else f"Right: {n} Left: {n}" for n in range(50)], []),
    ],
)
def test_markers_that_nearly_all_inputs_share_in_one_order_are_the_frame(
    texts: str | list[str], found: list[str]
) -> None:
    inputs = [texts.format(n=n) for n in range(50)] if isinstance(texts, str) else texts
    assert [marker.text for marker in find_frame(inputs).markers] == found


def test_parts_and_spaces_are_put_together_as_most_inputs_have_them() -> None:
    frame = find_frame(SENTENCES)
    assert frame.markers == (Marker("", "Sentence 1:", " "), Marker("\n", "Sentence 2:", " "))
    assert frame.parts(SENTENCES[1]) == ("", " there are 1 big trees\n", " it is so 1")
    assert frame.fill(["", "one two", "three"]) == "Sentence 1: one two\nSentence 2: three"
    assert frame.fill(["", "", "three"]) == "Sentence 1:\nSentence 2: three"
    assert frame.parts("Sentence 2: first") is None
    assert InputMarkers(()).parts("all of it") == ("all of it",)


def words_of(text: str) -> tuple[list[str], list[str]]:
    first, second = text.removeprefix("Sentence 1: ").split("\nSentence 2: ")
    return first.lower().split(), second.lower().split()


def test_random_and_english_words_stand_in_the_frame_in_mean_numbers() -> None:
    texts = list(random_texts(SENTENCES, 20, np.random.default_rng(5)))
    bags = [Counter(word for text in SENTENCES for word in words_of(text)[part]) for part in (0, 1)]
    for drawn in map(words_of, texts):
        for words, bag, length in zip(drawn, bags, (5, 4), strict=True):
            assert len(words) == length
            # Without replacement: a word that the inputs have once cannot stand twice.
            assert Counter(words) <= bag
    english = {word for group in packaged_words("builders.superni", "basic_english.toml").values() for word in group}
    others = list(english_texts(SENTENCES, 20, np.random.default_rng(5)))
    for first, second in map(words_of, others):
        assert (len(first), len(second)) == (5, 4)
        assert {*first, *second} <= {word.lower() for word in english}
    assert len(set(texts)) == len(set(others)) == 20
    (text,) = random_texts(["One Two two THREE"], 1, np.random.default_rng(1))
    assert sorted(text.split()) == ["one", "three", "two", "two"]
    # Drawn with replacement: an input may have more words than there are.
    (text,) = english_texts(["word " * 2_000], 1, np.random.default_rng(1))
    assert len(text.split()) == 2_000


def test_the_present_and_the_old_schema_are_read(tmp_path: Path) -> None:
    rows = instances(100, ["yes", "no"])
    rows[3]["output"] = ["no", "never"]
    del rows[5]["id"]
    content = natural_instructions.read_task(write_task(tmp_path, "task900_made", rows))
    assert (content.name, content.category, content.licence) == ("task900_made", "Made Classification", "MIT")
    assert content.instruction == "Answer yes or no."
    assert content.instances[3].outputs == ("no", "never")
    assert content.instances[4].location == "task900_made.json, instance 4"
    assert content.instances[5].item_id == natural_instructions.made_id("task900_made", text_of(5), 0)
    old = [(text_of(n), ["yes"] if n % 2 else "no") for n in range(100)] + [(text_of(0), "no")]
    content = natural_instructions.read_task(write_old_task(tmp_path, "task900_made", old, instruction="Yes or no?"))
    told = (content.instruction, content.category, content.licence)
    assert told == ("Yes or no?", "Made Classification -> Old", "not told")
    assert labels_of(content) == ("no", "yes")
    assert content.instances[100].item_id == f"{content.instances[0].item_id}-2"
    assert len({instance.item_id for instance in content.instances}) == 101


def test_a_label_that_cannot_be_seen_is_refused_by_its_place(tmp_path: Path) -> None:
    path = write_task(tmp_path, "task900_made", instances(100, ["yes", "n\u202eo"]))
    with pytest.raises(DataError, match=r"instance 1: label 'n\\\S+o' has the control character '\\"):
        natural_instructions.read_task(path)
    # Spaces and line breaks around a label are common, and part of no rule.
    content = natural_instructions.read_task(write_task(tmp_path, "task901_made", instances(100, ["yes\n", " no"])))
    assert labels_of(content) == (" no", "yes\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"x": NaN}', "not strict JSON: NaN is not JSON"),
        (b"[1, 2]", "has no list 'Instances'; have: list"),
        (b'{"data": []}', "has no list 'Instances'; have: data"),
        (b'{"Definition": ["x"], "Instances": ["a"]}', "instance 0: is 'a', not an object"),
        (b'{"Definition": "x", "Instances": []}', "field 'Categories' has no text"),
        (b'{"Definition": "\xff"}', r"is not UTF-8 \(invalid start byte at byte 16\)"),
        (None, "has 1,073,741,824 bytes, more than the 268,435,456 that are read"),
    ],
)
def test_a_broken_file_is_named_with_the_way_out(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "task901_made.json"
    with path.open("wb") as file:
        file.write(content or b"")
        file.truncate(1 << 30 if content is None else None)
    with pytest.raises(DataError, match=rf"task901_made\.json.*{message}.*; take the file of .*, or take it out of"):
        natural_instructions.read_task(path)


def test_rows_that_cannot_be_used_are_rejects_with_a_rule(tmp_path: Path) -> None:
    rows: list[tuple[object, object, object, str]] = [
        ("a", "text", ["yes"], "a"),
        ("b", " \n", ["yes"], "empty_input"),
        ("c", "text", [], "empty_output"),
        ("d", "text", ["  "], "empty_output"),
        ("e", None, ["yes"], "missing_field"),
        ("f", "text", [1], "missing_field"),
        ("g", "text", {"yes": "no"}, "missing_field"),
        ("a", "other", "no", "repeated_id"),
        (None, "text", "no", natural_instructions.made_id("task900_made", "text", 1)),
        ("", "text", ["no", "never"], natural_instructions.made_id("task900_made", "text", 2)),
    ]
    values = [{"id": item_id, "input": text, "output": outputs} for item_id, text, outputs, _ in rows]
    content = natural_instructions.read_task(write_task(tmp_path, "task900_made", values))
    found = {str(reject.source_row): reject.rule for reject in content.rejects}
    found |= {str(instance.location): instance.item_id for instance in content.instances}
    assert found == {f"task900_made.json, instance {number}": told for number, (*_, told) in enumerate(rows)}
    assert [instance.outputs for instance in content.instances] == [("yes",), ("no",), ("no", "never")]


def test_the_table_has_the_279_tasks_of_the_publication() -> None:
    tasks = published_tasks()
    assert len(tasks) == 279
    assert sum(facts.equivalent_labels for facts in tasks.values()) == 17
    assert [name for name, facts in tasks.items() if facts.own_candidates] == ["task633_dbpedia_14_answer_generation"]
    # One more than twice in the publication, whose table 2 has 264,176.
    assert sum(min(1000, facts.n_instances - 96) for facts in tasks.values()) == 264_178
    assert Counter(facts.category for facts in tasks.values()).most_common(2) == [
        ("Sentiment Analysis", 39),
        ("Text Categorization", 30),
    ]


def test_tasks_are_named_by_full_name_or_number(tmp_path: Path) -> None:
    for name in ("task007_made", "task184_one", "task184_two", "task1007_made"):
        write_task(tmp_path, name, instances(100, ["yes", "no"]))
    found = natural_instructions.source_tasks(tmp_path)
    for words, names in (
        *((word, "task007_made") for word in ("7", "007", "task007", "task007_made")),
        ("1007 7 task1007", "task1007_made task007_made"),
        ("task184_two", "task184_two"),
    ):
        assert named_tasks(words.split(), found) == names.split()
    with pytest.raises(ConfigError, match="--tasks 184: several tasks have this number; give the name: task184_one, "):
        named_tasks(["184"], found)
    with pytest.raises(ConfigError, match="--tasks task07_made: the source has no such task; have: task007_made"):
        named_tasks(["task07_made"], found)


def test_a_task_of_fifty_labels_is_dropped(tmp_path: Path) -> None:
    for n_labels, rule in ((50, "many_labels"), (49, None)):
        rows = [{"id": str(n), "input": text_of(n), "output": [f"label {n % n_labels}"]} for n in range(400)]
        content = natural_instructions.read_task(write_task(tmp_path, "task900_made", rows))
        refusal = content_refusal(content, labels_of(content))
        assert (refusal and refusal[0].name) == rule
