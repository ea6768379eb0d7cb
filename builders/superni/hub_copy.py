"""The source *hub*: the layout of the dataset Muennighoff/natural-instructions on the Hugging Face Hub.

Its folders train/ and test/ hold a JSON Lines file for each task, with one row per output: rows with the same id are
one instance. It has neither categories nor licences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from builders.dataset.inputs import check_folder, check_no_revision, downloading, is_on_hub
from builders.superni.content import SourceRow, SourceTask, TaskContent, check_labels, sort_rows
from builders.superni.natural_instructions import TASK_NAME, made_id, read_text
from builders.superni.task_choice import published_tasks

HUB_ID = "Muennighoff/natural-instructions"
ADDRESS = f"https://huggingface.co/datasets/{HUB_ID}"
REMEDY = f"take the file of {ADDRESS} as it is, or take it out of the folder"
FOLDERS = ("train", "test")
_FIELDS = ("task_name", "id", "definition", "inputs", "targets")
_SUFFIX = re.compile(r"_(?:train|test)$")


def hub_folder(source: Path, revision: str | None, names: Iterable[str] | None) -> tuple[Path, str | None]:
    """Return the folder that ``--input`` refers to, downloaded if need be, and its commit, None for a local one.

    ``names`` are the tasks to download; None for all.

    Raises:
        DataError: there is no such folder, it cannot be downloaded, or a revision is given for a local folder.
    """
    if not is_on_hub(source, HUB_ID):
        check_folder(source, f"a folder with train/ and test/, or {HUB_ID} for the Hub")
        check_no_revision(revision, source, "folder")
        return source, None
    wanted = ["*"] if names is None else [f"{name}*" for name in names]
    patterns = ["README.md", *(f"{folder}/{name}.jsonl" for folder in FOLDERS for name in wanted)]
    with downloading(HUB_ID, revision or "main", ["README.md"], revision=revision, kind="folder"):
        import huggingface_hub

        path = huggingface_hub.snapshot_download(
            HUB_ID, repo_type="dataset", revision=revision, allow_patterns=patterns
        )
    # The Hub cache stores each commit in a folder snapshots/<commit>.
    return Path(path), Path(path).name


def source_tasks(folder: Path, categories: Mapping[str, str]) -> dict[str, SourceTask]:
    """Return the tasks of a folder by name, sorted; no file is opened.

    ``categories`` has those of tasks that are not in the table of the publication.

    Raises:
        DataError: the folder holds no task file, or two for the same task.
    """
    tasks: dict[str, SourceTask] = {}
    for path in sorted(path for name in FOLDERS for path in (folder / name).glob("*.jsonl")):
        name = _SUFFIX.sub("", path.stem)
        if not TASK_NAME.fullmatch(name):
            continue
        if name in tasks:
            raise DataError(f"--input {folder}: has two files of {name}; remove one of them")
        read, file = partial(read_task, path, name, categories), f"{path.parent.name}/{path.name}"
        tasks[name] = SourceTask(name=name, address=f"{ADDRESS}, {file}", read=read)
    if not tasks:
        raise DataError(
            f"--input {folder}: no file train/taskNNN_NAME.jsonl or test/taskNNN_NAME.jsonl here; give the folder "
            f"of {ADDRESS}"
        )
    return dict(sorted(tasks.items()))


def read_task(path: Path, name: str, categories: Mapping[str, str]) -> TaskContent:
    """Read the file of one task, and join the rows of each instance.

    Raises:
        DataError: the file is too large, is not JSON Lines, lacks a field or holds another task; or the category is
            unknown.
    """
    facts = published_tasks().get(name)
    if facts is None and name not in categories:
        raise DataError(
            f"{path.name}: the category of {name} is unknown, which the Hub does not tell; name full_task_info.csv "
            "with --task-info, or take --source natural-instructions"
        )
    text, sha256 = read_text(path, remedy=REMEDY)
    rows = _rows(text, path, name)
    joined: dict[tuple[str, str], list[str]] = {}
    locations: dict[tuple[str, str], str] = {}
    for location, row in rows:
        key = row["id"], row["inputs"]
        joined.setdefault(key, []).append(row["targets"])
        locations.setdefault(key, location)
    usable, rejects = sort_rows(
        [SourceRow(locations[key], key[0] or None, key[1], outputs) for key, outputs in joined.items()],
        lambda text, n: made_id(name, text, n),
    )
    if facts is None:
        check_labels(usable)
    return TaskContent(
        name=name,
        instruction=rows[0][1]["definition"],
        category=facts.category if facts is not None else categories[name],
        equivalent_labels=facts is not None and facts.equivalent_labels,
        own_candidates=facts is not None and facts.own_candidates,
        licence="not told",
        sha256=sha256,
        instances=usable,
        rejects=rejects,
    )


def _rows(text: str, path: Path, name: str) -> list[tuple[str, dict[str, str]]]:
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            location = f"{path.name}:{number}"
            content = strict_json.loads(line, where=location, remedy=REMEDY)
            row = content if isinstance(content, dict) else {}
            texts = {field: value for field in _FIELDS if isinstance(value := row.get(field), str)}
            if missing := [field for field in _FIELDS if field not in texts]:
                have = ", ".join(row)[:200]
                raise DataError(f"{location}: field '{missing[0]}' is missing or no text; have: {have}; {REMEDY}")
            if texts["task_name"] != name:
                raise DataError(f"{location}: is of '{texts['task_name']}', not of {name}; {REMEDY}")
            rows.append((location, texts))
    if not rows:
        raise DataError(f"{path.name}: has no rows; {REMEDY}")
    return rows
