"""Reading tasks in each of their layouts, and choosing among them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.superni import natural_instructions
from builders.superni.items import SourceTasks, labels_of
from builders.superni.task_choice import content_refusal, named_tasks, published_tasks
from tests.builders.superni_files import instances, text_of, write_old_task, write_task


def places(folder: Path, *names: str) -> SourceTasks:
    for name in names:
        write_task(folder, name, instances(100, ["yes", "no"]))
    return natural_instructions.source_tasks(folder)


def test_the_present_schema_is_read(tmp_path: Path) -> None:
    rows = instances(100, ["yes", "no"])
    rows[3]["output"] = ["no", "never"]
    del rows[5]["id"]
    content = natural_instructions.read_task(write_task(tmp_path, "task900_made", rows))
    assert (content.name, content.category, content.licence) == ("task900_made", "Made Classification", "MIT")
    assert content.instruction == "Answer yes or no."
    assert content.instances[3].outputs == ("no", "never")
    assert content.instances[4].location == "task900_made.json, instance 4"
    assert content.instances[5].item_id == natural_instructions.made_id("task900_made", text_of(5), 0)


def test_the_old_schema_is_read(tmp_path: Path) -> None:
    rows = [(text_of(n), ["yes"] if n % 2 else "no") for n in range(100)] + [(text_of(0), "no")]
    content = natural_instructions.read_task(write_old_task(tmp_path, "task900_made", rows, instruction="Yes or no?"))
    assert content.instruction == "Yes or no?"
    assert content.category == "Made Classification -> Old"
    assert content.licence == "not told"
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
    found = places(tmp_path, "task007_made", "task184_one", "task184_two", "task1007_made")
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


@pytest.mark.parametrize(
    ("outputs", "rule"),
    [
        ([["yes"]] * 400, "one_label"),
        ([["yes"], ["no"]] * 48, "too_few_items"),
        ([[f"label {n % 50}"] for n in range(400)], "many_labels"),
        ([[f"label {n % 49}"] for n in range(400)], None),
    ],
)
def test_whole_tasks_are_dropped_by_a_rule(tmp_path: Path, outputs: list[list[str]], rule: str | None) -> None:
    rows = [{"id": str(n), "input": text_of(n), "output": output} for n, output in enumerate(outputs)]
    content = natural_instructions.read_task(write_task(tmp_path, "task900_made", rows))
    refusal = content_refusal(content, labels_of(content))
    assert (refusal and refusal[0].name) == rule
