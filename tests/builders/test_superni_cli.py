"""``python -m builders.superni`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, cast

import datasets
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
    loaded = datasets.load_dataset(str(folder), "diary_emotions", split="bias", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == 32
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert 'load_dataset("out/datasets/superni", "word_relations", split="test")' in card
    front = yaml.safe_load(card.split("---\n")[1])
    assert (front["license"], front["task_categories"]) == ("apache-2.0", ["text-classification"])
    assert run(tmp_path, "--out", "other").returncode == 0
    assert files_of(tmp_path / "other") == files_of(folder)


@pytest.mark.slow
def test_another_seed_moves_the_splits_and_a_name_chooses_a_task(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        arguments = ("--tasks", "odd_one_out,course_topics", "--seed", seed, "--limit", "30", "--out", seed)
        assert run(tmp_path, *arguments).returncode == 0
    one, two = items_of(tmp_path / "1"), items_of(tmp_path / "2")
    assert list(one) == list(two)
    assert {config for config, _ in one} == {"odd_one_out", "course_topics"}
    assert len(one["odd_one_out", "test"]) == 30
    assert [item.text for item in one["odd_one_out", "bias"]] != [item.text for item in two["odd_one_out", "bias"]]
    assert read_manifest(tmp_path / "1").parameters["tasks"] == "odd_one_out, course_topics"


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
    parameters = manifest.parameters
    assert (parameters["tasks"], parameters["n_tasks"], parameters["n_wanted_tasks"]) == ("published", 2, 279)
    assert str(parameters["missing_tasks"]).count(", ") == 276
    assert parameters["other_counts"] == (
        f"{PUBLISHED[0]}: 200 items instead of 5912; {PUBLISHED[1]}: 100 items instead of 1818"
    )
    items = items_of(tmp_path / OF_TASKS)
    sizes = {split: len(of_split) for (config, split), of_split in items.items() if config == PUBLISHED[1]}
    assert sizes == {"test": 4, "bias": 32, "pool": 64, "content_free": 43}
    assert {item.flags for item in items[PUBLISHED[0], "content_free"]} == {("label_with_period",)}
    assert {item.flags[0] for item in items[PUBLISHED[1], "test"]} == {"small_test_split"}
    counts = {count.rule: count.n for count in manifest.flags}
    assert (counts["label_with_period"], counts["small_test_split"]) == (200 + 43, 100 + 43)
    assert "143 small_test_split" in told


OF_FOLDER = "--source natural-instructions --input"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--input x", "--input x: the embedded source reads no file; leave it out, or give --source"),
        ("--tasks=", "--tasks '': names no task; leave it out for the default, or name tasks"),
        ("--tasks odd_one_out --tasks ,", "--tasks ',': names no task; leave it out for the default"),
        ("--revision x", "--revision x: the embedded source reads no file"),
        ("--tasks published", "--tasks published: stands for files of the publication, alone; leave it out"),
        ("--tasks none", "--tasks none: the source has no such task; have: course_topics, "),
        ("--source natural-instructions", "--source natural-instructions needs --input: the folder tasks/ of"),
        (f"{OF_FOLDER} none", "--input none: no such folder; give the"),
        (f"{OF_FOLDER} .", "--input .: no file taskNNN_NAME.json here"),
        (f"{OF_FOLDER} {__file__}", f"--input {__file__}: is a file; give the folder tasks/ of https://github.com/"),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(tmp_path: Path, arguments: str, message: str) -> None:
    done = run(tmp_path, *arguments.split())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {message}")
    assert without_progress(done.stderr).count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"x": NaN}', ": not strict JSON: NaN is not JSON; take the file of https"),
        (b'{"x": 1, "x": 2}', ": not strict JSON: key 'x' stands twice; take the file of https"),
        (b"{", ": not strict JSON"),
        (b"[1, 2]", ": has no list 'Instances'; have: list; take the file of https"),
        (b'{"data": []}', ": has no list 'Instances'; have: data; take the file of https"),
        (b'{"Definition": ["x"], "Instances": ["a"]}', ", instance 0: is 'a', not an object"),
        (b'{"Categories": ["x"], "Instances": []}', ": field 'Definition' has no text"),
        (b'{"Definition": "x", "Instances": []}', ": field 'Categories' has no text"),
        (b'{"Definition": "\xff"}', ": is not UTF-8 (invalid start byte at byte 16); take the file"),
        (None, ": has 1,073,741,824 bytes, more than the 268,435,456 that are read; take the file of"),
    ],
)
def test_a_broken_file_is_named_and_nothing_is_written(tmp_path: Path, content: bytes | None, message: str) -> None:
    write_task(tmp_path / "tasks", "task900_made", instances(150, ["yes", "no"]))
    with (tmp_path / "tasks" / "task901_made.json").open("wb") as file:
        file.write(content or b"")
        file.truncate(1 << 30 if content is None else None)
    said = from_folder(tmp_path, "--tasks", "900,901", status=1)
    assert f"task901_made.json{message}" in said
    assert said.rstrip().endswith("or take it out of the folder")
    # Nothing but the names of what the file has stands between the fault and the way out.
    assert said.count("; ") == 1 + said.count("; have: ")
    from_folder(tmp_path, "--tasks", "900")


@pytest.mark.slow
def test_a_named_task_that_cannot_be_used_is_an_error_and_a_published_one_is_dropped(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", PUBLISHED[0], instances(150, ["Yes"]))
    write_task(tmp_path / "tasks", PUBLISHED[1], instances(96, ["Yes", "No"]))
    for tasks, said in (
        ("50", f"error: --tasks {PUBLISHED[0]}: cannot be used, the only label is 'Yes'; leave it out\n"),
        ("56", "cannot be used, 96 items can be used, and 97 are needed; leave it out"),
        ("published", f"error: none of the 2 tasks can be used ({PUBLISHED[0]}, {PUBLISHED[1]})"),
        (
            "published,900",
            "error: --tasks published: stands for files of the publication, alone; leave it out, or give",
        ),
    ):
        assert said in from_folder(tmp_path, "--tasks", tasks, status=1)
    write_task(tmp_path / "tasks", PUBLISHED[1], instances(97, ["Yes", "No"]))
    assert f"dropped 1 task: {PUBLISHED[0]} (the only label is 'Yes')" in from_folder(tmp_path)
    rejects = read_manifest(tmp_path / OF_TASKS).rejects
    assert {count.rule: count.n for count in rejects if count.n} == {"one_label": 1}


@pytest.mark.slow
def test_the_real_files_build(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "superni"
    done = run(tmp_path, "--source", "natural-instructions", "--input", str(source / "tasks"))
    assert "5 of 279 tasks found" in done.stdout
    items = items_of(tmp_path / OF_TASKS)
    for config in read_manifest(tmp_path / OF_TASKS).configs:
        raw = json.loads((source / "tasks" / f"{config}.json").read_text(encoding="utf-8"))["Instances"]
        taken = Counter((one.text, one.target) for split in ("test", "bias", "pool") for one in items[config, split])
        assert taken <= Counter((row["input"], row["output"][0]) for row in raw)
        assert taken.total() == min(1096, len(raw))
        labels = tuple(sorted({row["output"][0] for row in raw}))
        assert {item.labels for item in items[config, "content_free"]} == {labels}
    sizes = {config[:8].rstrip("_"): len(items[config, "test"]) for config, split in items if split == "test"}
    assert sizes == {"task073": 979, "task156": 1000, "task318": 627, "task875": 1000, "task1393": 400}
    # The instruction of task875 speaks of six emotions and names five.
    emotions = [item for (config, _), of_split in items.items() if config.startswith("task875") for item in of_split]
    assert {item.flags for item in emotions if item.target == "sadness"} == {("label_not_in_instruction",)}
