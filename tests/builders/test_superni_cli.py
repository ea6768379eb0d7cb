"""``python -m builders.superni`` as a user runs it."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import datasets
import pytest
import yaml

from biasboard.ground.errors import DataError
from biasboard.ground.progress import silent
from builders.dataset.output import write_dataset
from builders.superni import drafts
from builders.superni.drafts import TaskOptions
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.label import LabelItem
from schemas.validate import problems
from tests import commands
from tests.builders.superni_files import instances, text_of, write_hub_task, write_old_task, write_task
from tests.terminal import without_progress

PUBLISHED = ("task050_multirc_answerability", "task056_multirc_classify_correct_answer")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.superni", *arguments, cwd=folder)


def from_folder(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "--source", "natural-instructions", "--input", "tasks", *arguments)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def items_of(folder: Path) -> dict[tuple[str, str], list[LabelItem]]:
    found: dict[tuple[str, str], list[LabelItem]] = {}
    for entry in read_manifest(folder).splits:
        items = read_split(folder, entry)
        assert all(isinstance(item, LabelItem) for item in items)
        found[entry.config, entry.split] = items  # type: ignore[assignment]
    return found


@pytest.mark.slow
def test_the_plain_command_builds_ten_tasks_and_a_suite(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert "10 tasks with 2 to 12 labels; 1382 of 2342 items to evaluate" in done.stdout
    folder = tmp_path / "out/datasets/superni"
    manifest = read_manifest(folder)
    assert list(problems(folder)) == []
    assert len(manifest.configs) == 10
    assert [entry.split for entry in manifest.splits] == ["test", "bias", "pool", "content_free"] * 10
    assert [(suite.name, suite.configs) for suite in manifest.suites] == [("tasks", manifest.configs)]
    assert (manifest.redistributable, manifest.human_validated, manifest.seed) == (True, False, 42)
    loaded = datasets.load_dataset(str(folder), "diary_emotions", split="bias", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == 32
    front = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert 'load_dataset("out/datasets/superni", "word_relations", split="test")' in card
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
    write_task(tmp_path / "tasks", PUBLISHED[0], instances(200, ["No.", "Yes."]), instruction="Say Yes. or No.")
    rows = [(text_of(n), ["Yes"] if n % 4 else "No") for n in range(100)]
    write_old_task(tmp_path / "tasks", PUBLISHED[1], rows, instruction="Yes or no?")
    write_task(tmp_path / "tasks", "task900_made", instances(200, ["yes", "no"]))
    done = from_folder(tmp_path)
    assert done.returncode == 0
    assert "2 of 279 tasks found; missing: task065_timetravel_consistent_sentence_classification, " in done.stdout
    assert "and 272 more" in done.stdout
    assert f"warning: other counts than published in 2 tasks: {PUBLISHED[0]}: 200 items instead of 5912" in done.stdout
    assert "not for publishing: each task keeps the licence" in done.stdout
    folder = tmp_path / "out/datasets/superni-natural-instructions"
    assert list(problems(folder)) == []
    manifest = read_manifest(folder)
    assert manifest.configs == PUBLISHED
    assert manifest.publish_refusal is not None
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
    items = items_of(folder)
    assert {split: len(items[PUBLISHED[1], split]) for split in ("test", "bias", "pool", "content_free")} == {
        "test": 4,
        "bias": 32,
        "pool": 64,
        "content_free": 43,
    }
    assert {item.flags for item in items[PUBLISHED[0], "content_free"]} == {("label_with_period",)}
    assert {item.flags[0] for item in items[PUBLISHED[1], "test"]} == {"small_test_split"}
    counts = {count.rule: count.n for count in manifest.flags}
    assert counts["label_with_period"] == 200 + 43
    assert counts["small_test_split"] == 100 + 43
    assert "143 small_test_split" in done.stdout


@pytest.mark.slow
def test_no_task_moves_the_splits_of_another(tmp_path: Path) -> None:
    for name in ("task901_one", "task902_two"):
        write_task(tmp_path / "tasks", name, instances(150, ["yes", "no"], task=name))
    assert from_folder(tmp_path, "--tasks", "902", "--out", "alone").returncode == 0
    write_task(tmp_path / "tasks", "task901_one", instances(300, ["yes", "no", "maybe"], task="task901_one"))
    assert from_folder(tmp_path, "--tasks", "901", "--tasks", "task902", "--out", "both").returncode == 0
    alone, both = files_of(tmp_path / "alone"), files_of(tmp_path / "both")
    own = [name for name in alone if name.startswith("data/task902_two/")]
    assert len(own) == 4
    assert {name: both[name] for name in own} == {name: alone[name] for name in own}


def test_the_filter_drops_tasks_with_a_reason(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", "task901_x_classification", instances(400, ["yes", "no"], task="a"))
    write_task(tmp_path / "tasks", "task902_x_classification", instances(100, ["yes", "no"], task="b"))
    lines = [
        f"task90{n}_x_classification,,Misc.,,English,{language}"
        for n, language in enumerate(["Hindi", *["English"] * 3])
    ]
    header = "Name,Summary,Category,Domain,Input Language,Output Language"
    (tmp_path / "info.csv").write_text("\n".join([header, *lines]))
    done = from_folder(tmp_path, "--tasks", "filter", "--task-info", "info.csv")
    assert done.returncode == 0
    assert "2 of 3 tasks found; missing: task903_x_classification" in done.stdout
    assert "dropped 2 tasks: task900_x_classification (its languages are English and Hindi), " in done.stdout
    manifest = read_manifest(tmp_path / "out/datasets/superni-natural-instructions")
    assert manifest.configs == ("task901_x_classification",)
    assert {count.rule: count.n for count in manifest.rejects if count.n} == {"not_english": 1, "small_task": 1}
    assert manifest.sources[0].name == "list of all tasks"


def test_a_folder_of_the_hub_is_built(tmp_path: Path) -> None:
    rows = [(f"id-{n}", text_of(n), "Yes." if n % 2 else "No.") for n in range(100)]
    write_hub_task(tmp_path / "hub" / "train", PUBLISHED[0], [*rows, ("id-3", text_of(3), "Sure.")])
    done = run(tmp_path, "--source", "hub", "--input", "hub")
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    items = [item for of_split in items_of(tmp_path / "out/datasets/superni-hub").values() for item in of_split]
    assert {item.category for item in items} == {"Answerability Classification"}
    assert {item.item_id: item.target for item in items if "several_outputs" in item.flags} == {"id-3": "Yes."}
    assert sum(item.content_free is None for item in items) == 100


@pytest.mark.slow
def test_a_downloaded_state_of_the_hub_is_built_with_its_commit(tmp_path: Path) -> None:
    commit = "0123456789" * 4
    cache = tmp_path / "cache" / "datasets--Muennighoff--natural-instructions"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text(commit)
    rows = [(f"id-{n}", text_of(n), "Yes." if n % 2 else "No.") for n in range(100)]
    write_hub_task(cache / "snapshots" / commit / "train", PUBLISHED[0], rows, file=f"{PUBLISHED[0]}_train.jsonl")
    (cache / "snapshots" / commit / "README.md").write_text("made")
    for revision in ([], ["--revision", commit]):
        arguments = ["--source", "hub", "--input", "Muennighoff/natural-instructions", "--overwrite", *revision]
        done = commands.run(
            *("-m", "builders.superni", *arguments),
            cwd=tmp_path,
            HF_HUB_CACHE=tmp_path / "cache",
            HF_HUB_OFFLINE="1",
        )
        assert (done.returncode, without_progress(done.stderr)) == (0, "")
        source, _words = read_manifest(tmp_path / "out/datasets/superni-hub").sources
        assert (source.revision, source.name) == (commit, PUBLISHED[0])
    done = run(tmp_path, "--source", "hub", "--input", "cache", "--revision", commit, "--out", "other")
    assert done.stderr.startswith(f"error: --revision {commit}: applies to the Hub only, and cache is a local folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "x"], "error: --input x: the embedded source reads no file; leave it out, or give --source"),
        (["--tasks", ""], "error: --tasks '': names no task; leave it out for the default, or name tasks"),
        (["--tasks", "odd_one_out", "--tasks", ","], "error: --tasks ',': names no task; leave it out for the default"),
        (["--revision", "x"], "error: --revision x: the embedded source reads no file"),
        (["--tasks", "published"], "error: --tasks published: the embedded tasks are not published ones"),
        (["--tasks", "none"], "error: --tasks none: the source has no such task; have: course_topics, "),
        (["--source", "hub"], "error: --source hub needs --input: a folder with train/ and test/, or Muennighoff/"),
        (["--source", "hub", "--input", "none"], "error: --input none: no such folder; give a folder with train/"),
        (["--source", "hub", "--input", "."], "error: --input .: no file train/taskNNN_NAME.jsonl or test/"),
        (["--source", "natural-instructions", "--input", "none"], "error: --input none: no such folder; give the"),
        (["--source", "natural-instructions", "--input", "."], "error: --input .: no file taskNNN_NAME.json here"),
        (
            ["--source", "natural-instructions", "--input", ".", "--task-info", "x"],
            "error: --task-info x: only --tasks filter and --source hub read it; leave it out",
        ),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(message)
    assert without_progress(done.stderr).count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"x": NaN}', "task901_made.json: not strict JSON: NaN is not JSON; take the file of https"),
        (b'{"x": 1, "x": 2}', "task901_made.json: not strict JSON: key 'x' stands twice; take the file of https"),
        (b"{", r"task901_made.json: not strict JSON"),
        (b"[1, 2]", "task901_made.json: has no list 'Instances'; have: list; take the file of https"),
        (b'{"data": []}', "task901_made.json: has no list 'Instances'; have: data; take the file of https"),
        (b'{"Definition": ["x"], "Instances": ["a"]}', "task901_made.json, instance 0: is 'a', not an object"),
        (b'{"Categories": ["x"], "Instances": []}', "task901_made.json: field 'Definition' has no text"),
        (b'{"Definition": "x", "Instances": []}', "task901_made.json: field 'Categories' has no text"),
        (b'{"Definition": "\xff"}', "task901_made.json: is not UTF-8 (invalid start byte at byte 16); take the file"),
    ],
)
def test_a_broken_file_is_named_and_nothing_is_written(tmp_path: Path, content: bytes, message: str) -> None:
    write_task(tmp_path / "tasks", "task900_made", instances(150, ["yes", "no"]))
    (tmp_path / "tasks" / "task901_made.json").write_bytes(content)
    done = from_folder(tmp_path, "--tasks", "900,901")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.rstrip().endswith("or take it out of the folder")
    # Nothing but the names of what the file has stands between the fault and the way out.
    assert done.stderr.count("; ") == 1 + done.stderr.count("; have: ")
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]
    assert from_folder(tmp_path, "--tasks", "900").returncode == 0


def test_a_file_as_input_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    path = write_task(tmp_path / "tasks", "task900_made", instances(150, ["yes", "no"]))
    done = run(tmp_path, "--source", "natural-instructions", "--input", str(path))
    assert done.stderr.startswith(f"error: --input {path}: is a file; give the folder tasks/ of https://github.com/")
    with path.open("r+b") as file:
        file.truncate(1 << 30)
    done = from_folder(tmp_path, "--tasks", "900")
    assert (
        "task900_made.json: has 1,073,741,824 bytes, more than the 268,435,456 that are read; take the file of"
        in done.stderr
    )
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]


@pytest.mark.slow
def test_a_named_task_that_cannot_be_used_is_an_error_and_a_published_one_is_dropped(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", PUBLISHED[0], instances(150, ["Yes"]))
    write_task(tmp_path / "tasks", PUBLISHED[1], instances(96, ["Yes", "No"]))
    done = from_folder(tmp_path, "--tasks", "50")
    assert done.stderr == f"error: --tasks {PUBLISHED[0]}: cannot be used, the only label is 'Yes'; leave it out\n"
    done = from_folder(tmp_path, "--tasks", "56")
    assert "cannot be used, 96 items can be used, and 97 are needed; leave it out" in done.stderr
    done = from_folder(tmp_path)
    assert done.stderr.startswith(f"error: none of the 2 tasks can be used ({PUBLISHED[0]}, {PUBLISHED[1]})")
    assert [path.name for path in tmp_path.iterdir()] == ["tasks"]
    write_task(tmp_path / "tasks", PUBLISHED[1], instances(97, ["Yes", "No"]))
    done = from_folder(tmp_path)
    assert f"dropped 1 task: {PUBLISHED[0]} (the only label is 'Yes')" in done.stdout
    manifest = read_manifest(tmp_path / "out/datasets/superni-natural-instructions")
    assert {count.rule: count.n for count in manifest.rejects if count.n} == {"one_label": 1}


def test_words_for_selections_stand_alone(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", "task900_made", instances(150, ["yes", "no"]))
    done = from_folder(tmp_path, "--tasks", "published,900")
    assert done.stderr.startswith("error: --tasks published: cannot be mixed with other tasks; give the word alone")


def test_a_file_that_changes_during_the_build_is_noticed(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks", "task900_made", instances(150, ["yes", "no"]))
    options = TaskOptions(("900",), None, 42, silent)
    built = drafts.from_natural_instructions(tmp_path, options, revision=None, task_info=None)
    # Splits are made when they are read, so that only one task is in memory at a time.
    write_task(tmp_path / "tasks", "task900_made", instances(151, ["yes", "no"]))
    with pytest.raises(DataError, match="task900_made: its file was changed during the build; build the dataset again"):
        write_dataset(built.draft, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_real_files_build(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "superni"
    done = run(tmp_path, "--source", "natural-instructions", "--input", str(source / "tasks"))
    assert done.returncode == 0
    assert "5 of 279 tasks found" in done.stdout
    folder = tmp_path / "out/datasets/superni-natural-instructions"
    items = items_of(folder)
    for config in read_manifest(folder).configs:
        raw = json.loads((source / "tasks" / f"{config}.json").read_text(encoding="utf-8"))["Instances"]
        taken = Counter(
            (item.text, item.target)
            for item in [*items[config, "test"], *items[config, "bias"], *items[config, "pool"]]
        )
        assert taken <= Counter((row["input"], row["output"][0]) for row in raw)
        assert taken.total() == min(1096, len(raw))
        labels = tuple(sorted({row["output"][0] for row in raw}))
        assert {item.labels for item in items[config, "content_free"]} == {labels}
    sizes = {config[:8].rstrip("_"): len(items[config, "test"]) for config, split in items if split == "test"}
    assert sizes == {"task073": 979, "task156": 1000, "task318": 627, "task875": 1000, "task1393": 400}
    # The instruction of task875 speaks of six emotions and names five.
    emotions = [item for (config, _), of_split in items.items() if config.startswith("task875") for item in of_split]
    sad = [item for item in emotions if item.target == "sadness"]
    assert sad
    assert {item.flags for item in sad} == {("label_not_in_instruction",)}
