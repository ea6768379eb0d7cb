"""Prepares the explorer: all items of each table and all answers of models, in files that a page loads piece by piece.

Items are the same for all results of a table, so their texts are written once, and each result adds its answers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from biasboard.ground.columns import Column
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.recording import first_asked
from evaluators.task import Task, load_task, prompt_of
from leaderboard.pages.addresses import permalink
from leaderboard.pages.choice_keys import (
    answers_link,
    in_order,
    model_choices,
    model_key,
    result_id,
    table_id,
    table_names,
)
from leaderboard.pages.exports import json_text
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import Board
from leaderboard.verify.entries import KINDS, Entry, kinds_of
from schemas.documents.record import Record, RequestKind
from schemas.documents.result import Signature
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import verified_parts

FOLDER = "files/explorer"
_MOST_RECORDS = 50_000
"""Number of records up to which a result can be explored; larger ones are offered for download only."""
_PER_FILE = 1_000
_ITEMS, _ANSWERS = "explorer-items", "explorer-answers"
_MOST_VALUES = 500
"""Number of groups up to which a reader can choose one."""
_DIGITS = 3


def explorer_files(
    board: Board, models: Sequence[ModelView], sections: Sequence[TableView], report: Report = silent
) -> dict[str, str]:
    """Return the files of the explorer, by path relative to the root of the site.

    ``tables.json`` lists the models, and the tables with their results. Each table has a folder with ``index.json``
    (the groups of each item, and how many models answered it wrong) and the items; each result has a folder in it with
    ``index.json`` (the kind of each answer, such as right or refused, as a digit) and the answers. Items and answers
    lie in files of 1,000 rows each. A result whose texts may not be shown has the reason and no folder.

    Args:
        board: All tables.
        models: All models with their results.
        sections: The tables with their addresses.
        report: Callback for progress.
    """
    memory = machine_memory()
    placements = [one for model in models for one in model.placements if not one.row.entry.is_baseline]
    of_section: dict[int, list[Placement]] = {}
    for placement in placements:
        of_section.setdefault(id(placement.section), []).append(placement)
    shown = [section for section in in_order(board, sections) if id(section) in of_section]
    names = table_names(shown)
    files: dict[str, str] = {}
    listed: list[JsonValue] = []
    n_done = 0
    for section in shown:
        tables: dict[str, list[Placement]] = {}
        for placement in of_section[id(section)]:
            tables.setdefault(table_id(placement.row.entry), []).append(placement)
        for table, of_table in tables.items():
            results: list[JsonValue] = []
            kinds: list[str] = []
            for placement in of_table:
                report("writing answers", n_done, len(placements))
                n_done += 1
                entry, name, why_absent = placement.row.entry, result_id(placement.row.entry), _why_absent(placement)
                result: dict[str, JsonValue] = {
                    "id": name,
                    "model": model_key(entry.result.model.identity_sha256),
                    "page": placement.page,
                    "why_absent": why_absent,
                    "n_wrong": 0,
                }
                results.append(result)
                if why_absent is not None:
                    continue
                if not kinds:
                    index, items = _remembered(_ITEMS, entry, memory)
                    files |= {f"{FOLDER}/{table}/{path}": text for path, text in items.items()}
                about, answers = _remembered(_ANSWERS, entry, memory)
                files |= {f"{FOLDER}/{table}/{name}/{path}": text for path, text in answers.items()}
                files[f"{FOLDER}/{table}/{name}/index.json"] = json_text(about)
                kinds.append(str(about["kinds"]))
                result["n_wrong"] = kinds[-1].count(str(KINDS.index("wrong")))
            if kinds:
                files[f"{FOLDER}/{table}/index.json"] = json_text(index | _missed(kinds))
            listed.append({"id": table, "results": results, **_about(of_table[0], names[section.anchor])})
    about_models: list[JsonValue] = [{"key": one.key, "id": one.id, "name": one.name} for one in model_choices(models)]
    files[f"{FOLDER}/tables.json"] = json_text({"kinds": list(KINDS), "models": about_models, "tables": listed})
    return files


def explorer_link(placement: Placement) -> str | None:
    """Return the address of the explorer with one result, relative to the root of the site; None if it is not there."""
    return answers_link(placement.row.entry) if _why_absent(placement) is None else None


def explored(models: Sequence[ModelView]) -> frozenset[str]:
    """Return the permanent links of the results whose answers the explorer has."""
    placements = (placement for model in models for placement in model.placements)
    return frozenset(permalink(one.row.entry.result) for one in placements if explorer_link(one) is not None)


def _why_absent(placement: Placement) -> str | None:
    """Return why the answers of a result are not shown; None if they are."""
    entry = placement.row.entry
    if entry.is_baseline:
        return "a baseline's answers follow from its rule"
    if entry.folder is None:
        return "its records are not on the machine that made this site"
    answers = placement.answers
    if answers.withheld is not None:
        has = " and shows examples" if answers.shows_texts else ""
        return answers.withheld + (f"; its page says where they are published{has}" if answers.published else "")
    n_rows = entry.result.records.n_rows
    return None if n_rows <= _MOST_RECORDS else f"{n_rows:,} records are more than this page can search"


def _about(placement: Placement, name: str) -> dict[str, JsonValue]:
    section = placement.section
    return {
        "name": name,
        "question": section.pages.question,
        "page": f"{section.page}#{section.anchor}",
        "n": placement.row.entry.result.records.n_rows,
        "per_file": _PER_FILE,
        "warning": placement.answers.warning,
        "group_names": dict(section.pages.group_names),
    }


def _remembered(kind: str, entry: Entry, memory: Memory) -> _Pieces:
    """Return what the explorer has about the items or the answers of a result; it follows from the records."""
    task = entry.result.signature.task
    parts: dict[str, JsonValue] = {"records": entry.result.records.sha256, "task": task}
    stored = memory.get(kind, parts)
    if isinstance(stored, dict) and isinstance(stored["about"], dict) and isinstance(stored["files"], dict):
        return _Pieces(stored["about"], {name: str(text) for name, text in stored["files"].items()})
    assert entry.folder is not None
    records = RecordColumns.joined(verified_parts(entry.folder, entry.result))
    made = _items(records, entry.result.signature) if kind == _ITEMS else _answers(records, task)
    memory.put(kind, parts, {"about": made.about, "files": dict(made.files)})
    return made


class _GroupColumn(NamedTuple):
    """The values of all items in one group, such as the pronoun."""

    key: str
    values: Sequence[str]
    codes: Sequence[int]
    """Index in ``values`` for each item; -1 for an item without a value."""


class _Pieces(NamedTuple):
    """The items or the answers of a result: their facts in one file, and their texts in others."""

    about: dict[str, JsonValue]
    files: Mapping[str, str]


def _items(records: RecordColumns, signature: Signature) -> _Pieces:
    columns = records.columns
    # All results share these, and what is asked after an answer differs from one to the other.
    first = first_asked(records, prompt_of(load_task(signature.task), signature.prompt))
    groups: list[JsonValue] = [
        {"key": one.key, "values": list(one.values), "codes": list(one.codes)}
        for one in _group_columns(records)
        if len(one.values) <= _MOST_VALUES
    ]
    prompts = _by_record(first, first.exchanges["prompt"].texts)
    choices = _of_kind(records, "choice")
    options = _by_record(choices, _lists(choices.exchanges["options"], _texts))
    rows: list[JsonValue] = [
        [item, target, list(dict.fromkeys(asked)), options_of]
        for item, target, asked, options_of in zip(
            columns["item_id"].texts, columns["target"].texts, prompts, options, strict=True
        )
    ]
    return _Pieces({"groups": groups}, dict(_cut("items", ["item", "target", "prompts", "options"], rows)))


def _answers(records: RecordColumns, task: str) -> _Pieces:
    choices, generated = _of_kind(records, "choice"), _of_kind(records, "generate")
    logprobs = _by_record(choices, _lists(choices.exchanges["option_logprobs"], _numbers))
    texts = _by_record(generated, generated.exchanges["text"].texts)
    marks = [[] if record.reading is None else _marks(record, load_task(task)) for record in generated]
    reading = records.columns["reading"].fields
    read = zip(
        _lists(reading["outcomes"], _texts),
        _lists(reading["probabilities"], _numbers),
        _lists(reading["answers"], _texts),
        strict=True,
    )
    rows: list[JsonValue] = [
        [logprobs_of, texts_of, list(read_of), reason, marks_of]
        for logprobs_of, texts_of, read_of, reason, marks_of in zip(
            logprobs, texts, read, records.columns["reason"].texts, marks, strict=True
        )
    ]
    names = ["logprobs", "texts", "reading", "reason", "marks"]
    return _Pieces({"kinds": _kind_digits(records, task)}, dict(_cut("answers", names, rows)))


def _marks(record: Record, task: Task) -> JsonValue:
    """Return where to mark each text of a record, in the units by which scripts count characters (UTF-16)."""

    def place(text: str, offset: int) -> int:
        return len(text[:offset].encode("utf-16-le", errors="surrogatepass")) // 2

    return [
        [[place(exchange.text or "", end) for end in (mark.start, mark.end)] for mark in task.marks(exchange)]
        for exchange in record.exchanges
    ]


def _of_kind(records: RecordColumns, kind: RequestKind) -> RecordColumns:
    return records.only_exchanges(records.exchanges["kind"].coded.is_one_of(kind))


def _group_columns(records: RecordColumns) -> Iterator[_GroupColumn]:
    """Yield the values of all items in each group."""
    owners, keys, values = records.columns["groups"].entries
    for code, key in enumerate(keys.coded.texts):
        chosen = keys.coded.codes == code
        coded = Column(values.array.filter(chosen)).coded
        of_item = np.full(len(records), -1)
        of_item[owners[chosen]] = coded.codes
        yield _GroupColumn(str(key), [str(text) for text in coded.texts], of_item.tolist())


def _kind_digits(records: RecordColumns, task: str) -> str:
    """Return the kind of each answer, such as right or refused, as the digit of its place in ``KINDS``."""
    digits = {kind: str(place) for place, kind in enumerate(KINDS)}
    return "".join(digits[kind] for kind in kinds_of(records, task))


def _lists(column: Column, values_of: Callable[[Column], Sequence[JsonValue]]) -> list[JsonValue]:
    lists = column.lists
    values = values_of(lists.values)
    ends = lists.offsets.tolist()
    return [list(values[start:end]) for start, end in pairwise(ends)]


def _texts(column: Column) -> Sequence[JsonValue]:
    return column.texts


def _numbers(column: Column) -> Sequence[JsonValue]:
    # JSON has no infinity; a word distinguishes a probability of zero from an unknown one.
    numbers: list[float | None] = column.array.to_pylist()
    return [
        None if number is None else "-inf" if number == float("-inf") else round(number, _DIGITS) for number in numbers
    ]


def _by_record(records: RecordColumns, values: Sequence[JsonValue]) -> list[list[JsonValue]]:
    ends = records.first_exchanges.tolist()
    return [list(values[start:end]) for start, end in pairwise(ends)]


def _cut(name: str, columns: Sequence[str], rows: Sequence[JsonValue]) -> Iterator[tuple[str, str]]:
    for start in range(0, len(rows), _PER_FILE):
        part: dict[str, JsonValue] = {"columns": list(columns), "rows": list(rows[start : start + _PER_FILE])}
        yield f"{name}-{start // _PER_FILE}.json", json_text(part)


def _missed(kinds: Sequence[str]) -> dict[str, JsonValue]:
    """Return how many models gave a wrong answer to each item, and how many were asked."""
    wrong = str(KINDS.index("wrong"))
    n_wrong = [sum(kind == wrong for kind in of_item) for of_item in zip(*kinds, strict=True)]
    return {"n_models": len(kinds), "n_wrong": list(n_wrong)}
