"""The source *natural-instructions*: the task files of the repository, in its present and in its old schema.

The old schema has single texts instead of lists of texts, and its instances have no id.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import invisible_sign, printable
from biasboard.ground.strict_json import JsonValue
from builders.dataset.inputs import check_folder
from builders.dataset.output import Rule
from builders.superni.items import Instance, SourceTasks, TaskContent
from builders.superni.task_choice import published_tasks
from schemas.documents.dataset import Reject

ADDRESS = "https://github.com/allenai/natural-instructions"
REMEDY = f"take the file of {ADDRESS} as it is, or take it out of the folder"
MOST_BYTES = 256 << 20
"""Maximum size of a task file; the published ones have at most some tens of megabytes."""
TASK_NAME = re.compile(r"task\d+_[A-Za-z0-9._-]+")

EMPTY_INPUT = Rule(name="empty_input", description="the item has an input of more than spaces")
EMPTY_OUTPUT = Rule(name="empty_output", description="the first output of the item is more than spaces")
MISSING_FIELD = Rule(name="missing_field", description="the item has an input, and one output or a list of outputs")
REPEATED_ID = Rule(name="repeated_id", description="no item before it in the task has the same id")
ITEM_RULES = (EMPTY_INPUT, EMPTY_OUTPUT, MISSING_FIELD, REPEATED_ID)
"""Rules that drop single items of a task."""


def source_tasks(root: Path) -> SourceTasks:
    """Return the tasks in the folder of the task files or of the repository, by name, sorted; no file is opened.

    Raises:
        DataError: there is no such folder, or it holds no task file.
    """
    check_folder(root, f"the folder tasks/ of {ADDRESS}")
    folder = root / "tasks" if (root / "tasks").is_dir() else root
    paths = {path.stem: path for path in sorted(folder.glob("task*.json")) if TASK_NAME.fullmatch(path.stem)}
    if not paths:
        raise DataError(f"--input {root}: no file taskNNN_NAME.json here; give the folder tasks/ of {ADDRESS}")
    return {name: partial(read_task, path) for name, path in paths.items()}


def read_task(path: Path) -> TaskContent:
    """Read one task file.

    Raises:
        DataError: the file is too large, is not JSON or not UTF-8, or has another schema.
    """
    try:
        check_readable(path, most=MOST_BYTES, remedy=REMEDY)
        raw = path.read_bytes()
        text = raw.decode("utf-8")
    except OSError as error:
        raise DataError(f"{path.name}: cannot be read ({error.strerror}); {REMEDY}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name}: is not UTF-8 ({error.reason} at byte {error.start}); {REMEDY}") from error
    task = strict_json.loads(text, where=path.name, remedy=REMEDY)
    rows = task.get("Instances") if isinstance(task, dict) else None
    if not isinstance(task, dict) or not isinstance(rows, list):
        have = ", ".join(task)[:200] if isinstance(task, dict) else type(task).__name__
        raise DataError(f"{path.name}: has no list 'Instances'; have: {have}; {REMEDY}")
    facts = published_tasks().get(path.stem)
    usable, rejects = _sorted_rows(rows, path)
    # The labels of a task of the user's own must be seen; those of published tasks are what they are.
    for instance in usable if facts is None else ():
        label = instance.label.strip()
        if (sign := invisible_sign(label)) is not None:
            shown = printable(label, most=60)
            raise DataError(f"{instance.location}: label '{shown}' has the control character {sign!a}; remove it")
    return TaskContent(
        name=path.stem,
        instruction=_first(task, "Definition", path.name),
        category=facts.category if facts is not None else _first(task, "Categories", path.name),
        equivalent_labels=facts is not None and facts.equivalent_labels,
        own_candidates=facts is not None and facts.own_candidates,
        licence=", ".join(_texts(task.get("Instance License"))) or "not told",
        sha256=hashlib.sha256(raw).hexdigest(),
        instances=tuple(usable),
        rejects=tuple(rejects),
    )


def _sorted_rows(rows: Sequence[JsonValue], path: Path) -> tuple[list[Instance], list[Reject]]:
    """Sort the rows of a task into usable instances and rejects, keeping their order."""
    usable: list[Instance] = []
    rejects: list[Reject] = []
    ids: set[str] = set()
    n_before: Counter[str] = Counter()
    for number, row in enumerate(rows):
        location = f"{path.name}, instance {number}"
        if not isinstance(row, dict):
            raise DataError(f"{location}: is {str(row)[:40]!r}, not an object; {REMEDY}")
        item_id, text, output = row.get("id"), row.get("input"), row.get("output")
        # The repository's old schema has one text instead of a list.
        values = output if isinstance(output, list) else [output]
        outputs = tuple(one for one in values if isinstance(one, str))
        if not isinstance(text, str) or len(outputs) < len(values):
            rule, reason = MISSING_FIELD, "the input is no text, or the output neither a text nor a list of texts"
        elif not text.strip():
            rule, reason = EMPTY_INPUT, f"the input is {text!r}"
        elif not outputs or not outputs[0].strip():
            rule, reason = EMPTY_OUTPUT, f"the first output is {outputs[0]!r}" if outputs else "there is no output"
        else:
            if not isinstance(item_id, str) or not item_id:
                item_id = made_id(path.stem, text, n_before[text])
            n_before[text] += 1
            if item_id not in ids:
                ids.add(item_id)
                usable.append(Instance(item_id, text, outputs, location))
                continue
            rule, reason = REPEATED_ID, f"the id '{item_id}' stands in the task before"
        # No candidate text, since the licences of most tasks forbid showing it.
        rejects.append(Reject(candidate="", source_row=location, rule=rule.name, reason=reason))
    return usable, rejects


def made_id(name: str, text: str, n_before: int) -> str:
    """Return an id for an instance without one: the task and a hash of the input, numbered if the input is repeated.

    >>> made_id("task156_codah", "Why?", 0), made_id("task156_codah", "Why?", 1)[-2:]
    ('task156_codah-d77989c1e3c0e0ace735631597dc367f', '-2')
    """
    # As long as the repository's own ids, which only instances of its old schema lack.
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:32]
    return f"{name}-{digest}" + (f"-{n_before + 1}" if n_before else "")


def _first(task: Mapping[str, JsonValue], field: str, where: str) -> str:
    """Return the first text of a field; in the old schema the field is the text itself."""
    texts = _texts(task.get(field))
    if not texts:
        raise DataError(f"{where}: field '{field}' has no text; have: {', '.join(task)[:200]}; {REMEDY}")
    return texts[0]


def _texts(value: JsonValue) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str) and text.strip()]
