"""``python -m builders.superni`` as a user runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.label import LabelItem
from schemas.validate import problems
from tests import commands
from tests.builders.superni_files import instances, text_of, write_old_task, write_task
from tests.terminal import without_progress

PUBLISHED = ("task050_multirc_answerability", "task056_multirc_classify_correct_answer")
OF_TASKS = "out/datasets/superni-natural-instructions"


def run(folder: Path, *arguments: str, **environment: Any) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.superni", *arguments, cwd=folder, **environment)


def from_folder(folder: Path, *arguments: str, status: int = 0) -> str:
    done = run(folder, "--source", "natural-instructions", "--input", "tasks", *arguments)
    assert done.returncode == status, done.stderr
    assert status == 0 or (done.stdout == "" and not (folder / "out").exists())
    return done.stderr if status else done.stdout


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--tasks odd_one_out --tasks ,", "--tasks ',': names no task; leave it out for the default"),
        ("--tasks published", "--tasks published: stands for files of the publication, alone; leave it out"),
        ("--tasks none", "--tasks none: the source has no such task; have: course_topics, "),
        ("--source natural-instructions --input .", "--input .: no file taskNNN_NAME.json here"),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(tmp_path: Path, arguments: str, message: str) -> None:
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
