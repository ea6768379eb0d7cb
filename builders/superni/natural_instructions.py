"""The source *natural-instructions*: the task files of the repository, in its present and in its old schema.

The old schema has single texts instead of lists of texts, and its instances have no id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from biasboard.ground.strict_json import JsonValue
from builders.dataset.inputs import check_folder
from builders.superni.content import SourceRow, SourceTask, TaskContent, check_labels, sort_rows
from builders.superni.task_choice import published_tasks

ADDRESS = "https://github.com/allenai/natural-instructions"
REMEDY = f"take the file of {ADDRESS} as it is, or take it out of the folder"
MOST_BYTES = 256 << 20
"""Maximum size of a task file; the published ones have at most some tens of megabytes."""
TASK_NAME = re.compile(r"task\d+_[A-Za-z0-9._-]+")


def tasks_folder(root: Path) -> Path:
    """Return the folder with the task files, given its path or that of the repository.

    Raises:
        DataError: there is no such folder.
    """
    check_folder(root, f"the folder tasks/ of {ADDRESS}")
    return root / "tasks" if (root / "tasks").is_dir() else root


def source_tasks(root: Path) -> dict[str, SourceTask]:
    """Return the tasks of a folder by name, sorted; no file is opened.

    Raises:
        DataError: there is no such folder, or it holds no task file.
    """
    folder = tasks_folder(root)
    paths = {path.stem: path for path in sorted(folder.glob("task*.json")) if TASK_NAME.fullmatch(path.stem)}
    if not paths:
        raise DataError(f"--input {root}: no file taskNNN_NAME.json here; give the folder tasks/ of {ADDRESS}")
    return {
        name: SourceTask(name=name, address=f"{ADDRESS}, tasks/{path.name}", read=partial(read_task, path))
        for name, path in paths.items()
    }


def read_task(path: Path) -> TaskContent:
    """Read one task file.

    Raises:
        DataError: the file is too large, is not JSON or not UTF-8, or has another schema.
    """
    text, sha256 = read_text(path, remedy=REMEDY)
    task = strict_json.loads(text, where=path.name, remedy=REMEDY)
    instances = task.get("Instances") if isinstance(task, dict) else None
    if not isinstance(task, dict) or not isinstance(instances, list):
        have = ", ".join(task)[:200] if isinstance(task, dict) else type(task).__name__
        raise DataError(f"{path.name}: has no list 'Instances'; have: {have}; {REMEDY}")
    name = path.stem
    facts = published_tasks().get(name)
    usable, rejects = sort_rows(_rows(instances, path), lambda text, n: made_id(name, text, n))
    if facts is None:
        check_labels(usable)
    return TaskContent(
        name=name,
        instruction=_first(task, "Definition", path.name),
        category=facts.category if facts is not None else _first(task, "Categories", path.name),
        equivalent_labels=facts is not None and facts.equivalent_labels,
        own_candidates=facts is not None and facts.own_candidates,
        licence=", ".join(_texts(task.get("Instance License"))) or "not told",
        sha256=sha256,
        instances=usable,
        rejects=rejects,
    )


def read_text(path: Path, *, remedy: str) -> tuple[str, str]:
    """Return the text of a task file and the SHA-256 of its bytes.

    Raises:
        DataError: it is not a regular file, is too large, cannot be read or is not UTF-8.
    """
    try:
        check_readable(path, most=MOST_BYTES, remedy=remedy)
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path.name}: cannot be read ({error.strerror}); {remedy}") from error
    try:
        return raw.decode("utf-8"), hashlib.sha256(raw).hexdigest()
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name}: is not UTF-8 ({error.reason} at byte {error.start}); {remedy}") from error


def made_id(name: str, text: str, n_before: int) -> str:
    """Return an id for an instance without one: the task and a hash of the input, numbered if the input is repeated.

    >>> made_id("task156_codah", "Why?", 0), made_id("task156_codah", "Why?", 1)[-2:]
    ('task156_codah-d77989c1e3c0e0ace735631597dc367f', '-2')
    """
    # As long as the repository's own ids, which only instances of its old schema lack.
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:32]
    return f"{name}-{digest}" + (f"-{n_before + 1}" if n_before else "")


def _rows(instances: Sequence[JsonValue], path: Path) -> list[SourceRow]:
    rows = []
    for number, instance in enumerate(instances):
        location = f"{path.name}, instance {number}"
        if not isinstance(instance, dict):
            raise DataError(f"{location}: is {str(instance)[:40]!r}, not an object; {REMEDY}")
        item_id = instance.get("id")
        item_id = item_id if isinstance(item_id, str) and item_id else None
        rows.append(SourceRow(location, item_id, instance.get("input"), instance.get("output")))
    return rows


def _first(task: Mapping[str, JsonValue], field: str, where: str) -> str:
    """Return the first text of a field; in the old schema the field is the text itself."""
    texts = _texts(task.get(field))
    if not texts:
        raise DataError(f"{where}: field '{field}' has no text; have: {', '.join(task)[:200]}; {REMEDY}")
    return texts[0]


def _texts(value: JsonValue) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str) and text.strip()]
