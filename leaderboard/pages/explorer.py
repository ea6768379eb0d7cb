"""Prepares the explorer: all items of each table and all answers of models, in files that a page loads piece by piece.

Items are the same for all results of a table, so their texts are written once, and each result adds its answers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from biasboard.ground.columns import Column
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.recording import first_asked
from evaluators.task import Task, load_task, prompt_of
from leaderboard.pages.compare import answers_link, model_choices, model_key, placed_in_order, result_id, table_id
from leaderboard.pages.markup import permalink
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import Board
from leaderboard.ranking.frames import json_text
from leaderboard.verify.entries import KINDS, Entry, kinds_of
from leaderboard.verify.intake import contents_of
from schemas.documents.record import Record, RequestKind
from schemas.documents.result import Signature
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import verified_parts

FOLDER = "files/explorer"
_MOST_RECORDS = 50_000
"""Number of records up to which a result can be explored; larger ones are offered for download only."""
_PER_FILE = 1_000
_WRONG = str(KINDS.index("wrong"))
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
    placements, names = placed_in_order(board, models, sections)
    files: dict[str, str] = {}
    tables: dict[str, dict[str, JsonValue]] = {}
    results: dict[str, list[JsonValue]] = {}
    about_items: dict[str, dict[str, Any]] = {}
    kinds: dict[str, list[str]] = {}
    for number, placement in enumerate(placements):
        report("writing answers", number, len(placements))
        entry, why_absent = placement.row.entry, _why_absent(placement)
        table, name = table_id(entry), result_id(entry)
        tables.setdefault(table, _about(placement, names[placement.section.anchor]))
        result: dict[str, JsonValue] = {
            "id": name,
            "model": model_key(entry.result.model.identity_sha256),
            "page": placement.page,
            "why_absent": why_absent,
            "n_wrong": 0,
        }
        results.setdefault(table, []).append(result)
        if why_absent is not None:
            continue
        if table not in about_items:
            about_items[table], items = _remembered(_items, entry, memory)
            files |= {f"{FOLDER}/{table}/{path}": text for path, text in items.items()}
        about, answers = _remembered(_answers, entry, memory)
        files |= {f"{FOLDER}/{table}/{name}/{path}": text for path, text in answers.items()}
        files[f"{FOLDER}/{table}/{name}/index.json"] = json_text(about)
        kinds.setdefault(table, []).append(about["kinds"])
        result["n_wrong"] = about["kinds"].count(_WRONG)
    for table, of_models in kinds.items():
        n_wrong = [of_item.count(_WRONG) for of_item in zip(*of_models, strict=True)]
        about = {**about_items[table], "n_models": len(of_models), "n_wrong": n_wrong}
        files[f"{FOLDER}/{table}/index.json"] = json_text(about)
    listed: dict[str, JsonValue] = {
        "kinds": list(KINDS),
        "models": [{**one} for one in model_choices(models)],
        "tables": [{"id": table, "results": results[table], **about} for table, about in tables.items()],
    }
    return files | {f"{FOLDER}/tables.json": json_text(listed)}


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


class _Pieces(NamedTuple):
    """The items or the answers of a result: their facts for one file, and the texts of the others."""

    about: dict[str, Any]
    files: dict[str, str]


def _remembered(make: Callable[[RecordColumns, Signature], _Pieces], entry: Entry, memory: Memory) -> _Pieces:
    """Return what the explorer has about the items or the answers of a result; it follows from the records."""
    result, folder = entry.result, entry.folder
    assert folder is not None
    return memory.remembered(
        f"explorer{make.__name__}",
        contents_of(result),
        _Pieces,
        lambda: make(RecordColumns.joined(verified_parts(folder, result)), result.signature),
    )


def _items(records: RecordColumns, signature: Signature) -> _Pieces:
    columns = records.columns
    # All results share these, and what is asked after an answer differs from one to the other.
    first = first_asked(records, prompt_of(load_task(signature.task), signature.prompt))
    prompts = _by_record(first, first.exchanges["prompt"].texts)
    choices = _of_kind(records, "choice")
    options = _by_record(choices, _lists(choices.exchanges["options"]))
    rows: list[JsonValue] = [
        [item, target, list(dict.fromkeys(asked)), options_of]
        for item, target, asked, options_of in zip(
            columns["item_id"].texts, columns["target"].texts, prompts, options, strict=True
        )
    ]
    return _Pieces({"groups": _groups(records)}, _cut("items", ["item", "target", "prompts", "options"], rows))


def _answers(records: RecordColumns, signature: Signature) -> _Pieces:
    task = load_task(signature.task)
    choices, generated = _of_kind(records, "choice"), _of_kind(records, "generate")
    reading = records.columns["reading"].fields
    read = zip(*(_lists(reading[name]) for name in ("outcomes", "probabilities", "answers")), strict=True)
    rows: list[JsonValue] = [
        [logprobs, texts, list(read_of), reason, marks]
        for logprobs, texts, read_of, reason, marks in zip(
            _by_record(choices, _lists(choices.exchanges["option_logprobs"])),
            _by_record(generated, generated.exchanges["text"].texts),
            read,
            records.columns["reason"].texts,
            [[] if record.reading is None else _marks(record, task) for record in generated],
            strict=True,
        )
    ]
    kinds = "".join(str(KINDS.index(kind)) for kind in kinds_of(records, signature.task))
    return _Pieces({"kinds": kinds}, _cut("answers", ["logprobs", "texts", "reading", "reason", "marks"], rows))


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


def _groups(records: RecordColumns) -> list[JsonValue]:
    """Return the values of each group, such as the pronoun, and the index of each item's value; -1 without one."""
    groups: list[JsonValue] = []
    owners, keys, values = records.columns["groups"].entries
    for code, key in enumerate(keys.coded.texts):
        chosen = keys.coded.codes == code
        coded = Column(values.array.filter(chosen)).coded
        of_item = np.full(len(records), -1)
        of_item[owners[chosen]] = coded.codes
        if len(coded.texts) <= _MOST_VALUES:
            groups.append({"key": str(key), "values": list(coded.texts), "codes": of_item.tolist()})
    return groups


def _lists(column: Column) -> list[JsonValue]:
    """Return the list of texts or numbers of each row; it is empty where there is none."""
    # JSON has no infinity; a word distinguishes a probability of zero from an unknown one.
    return [
        ["-inf" if one == -np.inf else round(one, _DIGITS) if isinstance(one, float) else one for one in values or ()]
        for values in column.array.to_pylist()
    ]


def _by_record(records: RecordColumns, values: Sequence[JsonValue]) -> list[list[JsonValue]]:
    """Return the values of all exchanges by record."""
    return [list(values[start:end]) for start, end in pairwise(records.first_exchanges.tolist())]


def _cut(name: str, columns: Sequence[str], rows: Sequence[JsonValue]) -> dict[str, str]:
    """Return the files with some rows each."""
    return {
        f"{name}-{number}.json": json_text({"columns": list(columns), "rows": list(rows[start : start + _PER_FILE])})
        for number, start in enumerate(range(0, len(rows), _PER_FILE))
    }
