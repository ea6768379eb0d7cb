"""Prepares the explorer: all items of each table and all answers of models, in files that a page loads piece by piece.

Items are the same for all results of a table, so their texts are written once, and each result adds its answers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.columns import Column
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from leaderboard.pages.choice_keys import answers_link, model_key, result_id, table_id
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.verify.entries import KINDS, Entry, kinds_of
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import verified_parts

FOLDER = "files/explorer"
MOST_RECORDS = 50_000
"""Number of records up to which a result can be explored; larger ones are offered for download only."""
_PER_FILE = 1_000
_ITEMS, _ANSWERS = "explorer-items", "explorer-answers"
_MOST_VALUES = 500
"""Number of groups up to which a reader can choose one."""
_DIGITS = 4


def explorer_files(models: Sequence[ModelView], report: Report = silent) -> dict[str, str]:
    """Return the files of the explorer, by path relative to the root of the site.

    ``tables.json`` lists the tables and their results. Each table has a folder with ``index.json`` (the groups of each
    item, and how many models answered it wrong) and the items; each result has a folder in it with ``index.json`` (the
    kind of each answer, such as right or refused, as a digit) and the answers. Items and answers lie in files of 1,000
    rows each.

    Args:
        models: All models with their results.
        report: Callback for progress.
    """
    memory = machine_memory()
    found = [(placement, model) for model in models for placement in model.placements if _is_explored(placement)]
    files: dict[str, str] = {}
    tables: dict[str, dict[str, JsonValue]] = {}
    results: dict[str, list[JsonValue]] = {}
    kinds: dict[str, list[str]] = {}
    indices: dict[str, dict[str, JsonValue]] = {}
    for number, (placement, model) in enumerate(found):
        report("writing answers", number, len(found))
        table, name = table_id(placement.row.entry), result_id(placement.row.entry)
        if table not in tables:
            tables[table] = _about(placement)
            indices[table], items = _remembered(_ITEMS, placement.row.entry, memory)
            files |= {f"{FOLDER}/{table}/{path}": text for path, text in items.items()}
        index, answers = _remembered(_ANSWERS, placement.row.entry, memory)
        files |= {f"{FOLDER}/{table}/{name}/{path}": text for path, text in answers.items()}
        files[f"{FOLDER}/{table}/{name}/index.json"] = _compact(index)
        key = model_key(placement.row.entry.result.model.identity_sha256)
        result: JsonValue = {"id": name, "key": key, "model": model.id, "page": f"{model.page}#{placement.anchor}"}
        results.setdefault(table, []).append(result)
        kinds.setdefault(table, []).append(str(index["kinds"]))
    for table in tables:
        files[f"{FOLDER}/{table}/index.json"] = _compact(indices[table] | _missed(kinds[table]))
    listed: list[JsonValue] = [{"id": table, "results": results[table], **about} for table, about in tables.items()]
    files[f"{FOLDER}/tables.json"] = _compact({"kinds": list(KINDS), "tables": listed})
    return files


def explorer_link(placement: Placement) -> str | None:
    """Return the address of the explorer with one result, relative to the root of the site; None if it is not there."""
    return answers_link(placement.row, "") if _is_explored(placement) else None


def _is_explored(placement: Placement) -> bool:
    entry = placement.row.entry
    has_texts = placement.answers.withheld is None and entry.folder is not None and not entry.is_baseline
    return has_texts and entry.result.records.n_rows <= MOST_RECORDS


def _about(placement: Placement) -> dict[str, JsonValue]:
    section = placement.section
    return {
        "title": section.name,
        "benchmark": section.table.signature.benchmark,
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
    made = _items(records) if kind == _ITEMS else _answers(records, task)
    memory.put(kind, parts, {"about": made.about, "files": dict(made.files)})
    return made


class _Pieces(NamedTuple):
    """The items or the answers of a result: their facts in one file, and their texts in others."""

    about: dict[str, JsonValue]
    files: Mapping[str, str]


def _items(records: RecordColumns) -> _Pieces:
    columns = records.columns
    owners, keys, values = columns["groups"].entries
    groups: list[JsonValue] = []
    for code, key in enumerate(keys.coded.texts):
        chosen = keys.coded.codes == code
        coded = Column(values.array.filter(chosen)).coded
        if len(coded.texts) > _MOST_VALUES:
            continue
        of_item = [-1] * len(records)
        for owner, value in zip(owners[chosen].tolist(), coded.codes.tolist(), strict=True):
            of_item[owner] = value
        groups.append({"key": key, "values": list(coded.texts), "codes": list(of_item)})
    prompts = _by_record(records, records.exchanges["prompt"].texts)
    options = _by_record(records, _lists(records.exchanges["options"], _texts))
    rows: list[JsonValue] = [
        [item, target, list(dict.fromkeys(asked)), options_of]
        for item, target, asked, options_of in zip(
            columns["item_id"].texts, columns["target"].texts, prompts, options, strict=True
        )
    ]
    return _Pieces({"groups": groups}, dict(_cut("items", ["item", "target", "prompts", "options"], rows)))


def _answers(records: RecordColumns, task: str) -> _Pieces:
    codes = {kind: str(number) for number, kind in enumerate(KINDS)}
    kinds = "".join(codes[kind] for kind in kinds_of(records, task))
    exchanges = records.exchanges
    logprobs = _by_record(records, _lists(exchanges["option_logprobs"], _numbers))
    texts = _by_record(records, exchanges["text"].texts)
    reading = records.columns["reading"].fields
    read = zip(
        _lists(reading["outcomes"], _texts),
        _lists(reading["probabilities"], _numbers),
        _lists(reading["answers"], _texts),
        strict=True,
    )
    rows: list[JsonValue] = [
        [logprobs_of, texts_of, list(read_of), reason]
        for logprobs_of, texts_of, read_of, reason in zip(
            logprobs, texts, read, records.columns["reason"].texts, strict=True
        )
    ]
    names = ["logprobs", "texts", "reading", "reason"]
    return _Pieces({"kinds": kinds}, dict(_cut("answers", names, rows)))


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
        yield f"{name}-{start // _PER_FILE}.json", _compact(part)


def _missed(kinds: Sequence[str]) -> dict[str, JsonValue]:
    """Return how many models gave a wrong answer to each item, and how many were asked."""
    wrong = str(KINDS.index("wrong"))
    n_wrong = [sum(kind == wrong for kind in of_item) for of_item in zip(*kinds, strict=True)]
    return {"n_models": len(kinds), "n_wrong": list(n_wrong)}


def _compact(value: JsonValue) -> str:
    return strict_json.canonical(value).decode()
