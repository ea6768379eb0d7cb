"""Reading tasks in each of their layouts, and choosing among them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.superni import hub_copy, natural_instructions
from builders.superni.content import SourceTask
from builders.superni.items import labels_of
from builders.superni.task_choice import (
    choose_filtered,
    choose_named,
    choose_published,
    content_refusal,
    info_refusal,
    is_candidate,
    published_tasks,
    read_task_info,
)
from tests.builders.superni_files import instances, text_of, write_hub_task, write_old_task, write_task

OF_ANOTHER = dict.fromkeys(("task_name", "id", "definition", "inputs", "targets"), "x")
INFO_HEADER = "Name,Summary,Category,Domain,Input Language,Output Language\n"


def places(folder: Path, *names: str) -> dict[str, SourceTask]:
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


@pytest.mark.parametrize("sign", ["\u202e", "\x1b", "\u200b", "\n"])
def test_a_label_that_cannot_be_seen_is_refused_by_its_place(tmp_path: Path, sign: str) -> None:
    path = write_task(tmp_path, "task900_made", instances(100, ["yes", f"n{sign}o"]))
    with pytest.raises(DataError, match=r"instance 1: label 'n\\\S+o' has the control character '\\"):
        natural_instructions.read_task(path)
    # Spaces and line breaks around a label are common, and part of no rule.
    content = natural_instructions.read_task(write_task(tmp_path, "task901_made", instances(100, ["yes\n", " no"])))
    assert labels_of(content) == (" no", "yes\n")


def test_a_hub_file_has_one_row_for_each_output_and_the_table_has_the_rest(tmp_path: Path) -> None:
    name = "task156_codah_classification_adversarial"
    content = natural_instructions.read_task(write_task(tmp_path, name, instances(100, ["yes", "no"])))
    assert (content.category, content.equivalent_labels, content.own_candidates) == ("Text Completion", True, False)
    rows = [("a", "first", "yes"), ("b", "second", "no"), ("a", "first", "of course")]
    path = write_hub_task(tmp_path / "train", name, rows)
    content = hub_copy.read_task(path, name, {})
    assert [(one.item_id, one.text, one.outputs) for one in content.instances] == [
        ("a", "first", ("yes", "of course")),
        ("b", "second", ("no",)),
    ]
    assert content.instances[1].location == f"{name}.jsonl:2"
    assert content.category == "Text Completion"
    with pytest.raises(DataError, match=r"the category of task900_made is unknown.*--task-info"):
        hub_copy.read_task(path, "task900_made", {})


def test_a_hub_folder_is_found_with_and_without_suffixes(tmp_path: Path) -> None:
    rows = [("a", "first", "yes")]
    write_hub_task(tmp_path / "train", "task002_made", rows, file="task002_made_train.jsonl")
    write_hub_task(tmp_path / "test", "task001_made", rows)
    assert list(hub_copy.source_tasks(tmp_path, {})) == ["task001_made", "task002_made"]
    write_hub_task(tmp_path / "test", "task002_made", rows)
    with pytest.raises(DataError, match="has two files of task002_made; remove one"):
        hub_copy.source_tasks(tmp_path, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"task900_made\.jsonl: has no rows; take the file"),
        ('{"task_name": "task900_made"}', r"task900_made\.jsonl:1: field 'id' is missing or no text; have: task_name"),
        ("[1]", r"task900_made\.jsonl:1: field 'task_name' is missing"),
        ("{", r"task900_made\.jsonl:1: not strict JSON"),
        (json.dumps(OF_ANOTHER), r"task900_made\.jsonl:1: is of 'x', not of task900_made"),
    ],
)
def test_a_broken_hub_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "task900_made.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        hub_copy.read_task(path, "task900_made", {"task900_made": "Made"})


def test_without_the_hub_there_is_one_clear_error() -> None:
    # HF_HUB_OFFLINE is set for all tests, and the dataset is not in the cache.
    with pytest.raises(DataError, match=r"^--input Muennighoff/natural-instructions: main cannot be had: it is nei"):
        hub_copy.hub_folder(Path("Muennighoff/natural-instructions"), None, ["task001_made"])


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
        assert [task.name for task in choose_named(words.split(), found).tasks] == names.split()
    with pytest.raises(ConfigError, match="--tasks 184: several tasks have this number; give the name: task184_one, "):
        choose_named(["184"], found)
    with pytest.raises(ConfigError, match="--tasks task07_made: the source has no such task; have: task007_made"):
        choose_named(["task07_made"], found)


def test_published_tasks_are_joined_by_their_full_names(tmp_path: Path) -> None:
    found = places(tmp_path, "task050_multirc_answerability", "task056_another_name")
    chosen = choose_published(found)
    assert [task.name for task in chosen.tasks] == ["task050_multirc_answerability"]
    assert len(chosen.missing) == 278
    assert "task056_multirc_classify_correct_answer" in chosen.missing
    with pytest.raises(DataError, match="has none of the 279 tasks; have: task056_another_name; name others"):
        choose_published({"task056_another_name": found["task056_another_name"]})


def test_the_filter_needs_a_list_of_all_tasks_from_the_readme_or_a_csv_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--tasks filter: there is no .*README\.md; name full_task_info\.csv"):
        read_task_info(None, tmp_path)
    (tmp_path / "README.md").write_text("Name | Summary | Category\n--- | --- | ---\n`task1_x` | a | b\n")
    with pytest.raises(ConfigError, match="has no list of tasks with the column Input Language, Output Language"):
        read_task_info(None, tmp_path)
    with pytest.raises(ConfigError, match=r"--task-info .*none\.csv: no such file; name full_task_info\.csv"):
        read_task_info(tmp_path / "none.csv", tmp_path)
    (tmp_path / "README.md").write_text(
        "# Tasks\n\nName | Summary | Category | Domain | Input Language | Output Language\n"
        "--- | --- | --- | --- | --- | ---\n"
        "[task001_made](task001_made.json) | Classify it. | Misc. | Web | English | English\n"
        "`task002_made`\t| Translate it. | Translation | Web | English | German\n"
    )
    (tmp_path / "info.csv").write_text(
        INFO_HEADER + "task001_made,Classify it.,Misc.,Web,English,English\n"
        "task002_made,Translate it.,Translation,Web,English,German\n"
    )
    infos = read_task_info(None, tmp_path)
    assert infos == read_task_info(tmp_path / "info.csv", tmp_path)
    assert [is_candidate(info) for info in infos.values()] == [True, False]


def test_the_filter_drops_by_language_and_name_before_it_opens_a_file(tmp_path: Path) -> None:
    names = ("010_x_classification", "1001_x_detection", "200_x_detection", "002_x_detection")
    lines = [f"task{name},,Misc.,,English" for name in (*names, "004_x_incorrect_answer_generation")]
    lines += ["task003_x,,Text Classification,,French", "task005_x,Write a story.,Misc.,,English"]
    lines += ["task646_answer_generation,,Misc.,,English"]
    (tmp_path / "info.csv").write_text(INFO_HEADER + "".join(f"{line},English\n" for line in lines))
    found = places(tmp_path / "tasks", "task010_x_classification", "task003_x", "task005_x")
    chosen = choose_filtered(found, read_task_info(tmp_path / "info.csv", tmp_path))
    assert [task.name for task in chosen.tasks] == ["task010_x_classification"]
    assert chosen.missing == ("task002_x_detection", "task200_x_detection", "task1001_x_detection")
    assert {reject.candidate: reject.rule for reject in chosen.rejects} == {
        "task003_x": "not_english",
        "task004_x_incorrect_answer_generation": "excluded_task",
        "task646_answer_generation": "excluded_task",
    }


@pytest.mark.parametrize(
    ("outputs", "rule", "only_filter"),
    [
        ([["yes"]] * 400, "one_label", False),
        ([["yes"], ["no"]] * 48, "too_few_items", False),
        ([[f"label {n % 50}"] for n in range(400)], "many_labels", False),
        ([["yes", "no"], ["no", "yes"]] * 200, "many_outputs", True),
        ([["yes"], ["no"]] * 197 + [["no"]], "small_task", True),
        ([["yes"], ["no"]] * 198, None, True),
    ],
)
def test_whole_tasks_are_dropped_by_a_rule(
    tmp_path: Path, outputs: list[list[str]], rule: str | None, only_filter: bool
) -> None:
    rows = [{"id": str(n), "input": text_of(n), "output": output} for n, output in enumerate(outputs)]
    content = natural_instructions.read_task(write_task(tmp_path, "task900_made", rows))
    strict = content_refusal(content, labels_of(content), is_filter=True)
    lax = content_refusal(content, labels_of(content), is_filter=False)
    assert (strict and strict.rule.name) == rule
    assert (lax and lax.rule.name) == (None if only_filter else rule)


def test_the_filter_meets_the_numbers_of_the_release(shared_data: Path) -> None:
    infos = read_task_info(shared_data / "superni" / "full_task_info.csv", shared_data)
    candidates = [info for info in infos.values() if is_candidate(info)]
    refusals = Counter(refusal.rule.name for info in candidates if (refusal := info_refusal(info)) is not None)
    # 662 names, categories and summaries fit; 528 of them are in English, and 500 are not left out by name.
    assert (len(infos), len(candidates)) == (1613, 662)
    assert refusals == {"not_english": 662 - 528, "excluded_task": 528 - 500}
    passed = {info.name for info in candidates if info_refusal(info) is None}
    assert set(published_tasks()) <= passed
