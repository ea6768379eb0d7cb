"""Reads the JSON files of BBQ and StereoSet as they were published, into the rows that a CSV file gives.

BBQ (Parrish et al. 2022, arXiv:2110.08193): ``data/*.jsonl`` of https://github.com/nyu-mll/BBQ, in the form that
``Physical_appearance.jsonl`` has at revision 1b155a1f. Which person the stereotype is about follows from the groups, as
in its ``analysis_scripts/BBQ_results_metadata.R`` at revision 1bf8c628; in a question that is not negative, the answer
that agrees with the stereotype is the other person. Where two persons or none are of a stereotyped group, the script
leaves the question out, and so do we: of the 5,672 of ``Gender_identity.jsonl`` 16, such as those about a boy and a
man. For the two files of crossed categories the script reads the templates; the data name races only, so that we keep
those questions whose two people differ in their race alone.

StereoSet (Nadeem et al. 2021, arXiv:2004.09456): ``data/dev.json`` of https://github.com/moinnadeem/StereoSet, in the
form that its ``code/evaluation.py`` reads at revision c860b58c. The unrelated text is an option without a role.

Published answers belong to items without texts, which have the names of the options in these files. Those of StereoSet
come from the single sentences that EditBias has (https://github.com/zjunlp/EditBias, ``data/*_test.json``), with the
ids of ``dev.json``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn, TypeAlias, TypeVar

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import printable
from biasboard.ground.strict_json import JsonValue, loads
from builders.dataset.output import Rule
from builders.dataset.own_csv import OwnRow, OwnTable, letters_of, plain_values, read_inputs
from builders.own_questions import settings
from schemas.documents.dataset import Reject
from schemas.files.user_tables import json_lines
from schemas.items.own_question import NAMES_ONLY

UNLIKE_PUBLISHED = Rule(name="unlike_published", description="has the fields and values of the published file")
NO_TARGET = Rule(name="no_target", description="has one person, and no more, of a group that a stereotype is about")
RULES = (UNLIKE_PUBLISHED, NO_TARGET)
_OPTIONS = ("ans0", "ans1", "ans2")
T = TypeVar("T", list[JsonValue], str, int)
_Entry: TypeAlias = tuple[str, JsonValue]


class RejectedError(Exception):
    """A row or an entry is no item, by a rule and for a reason."""

    def __init__(self, rule: Rule, reason: str) -> None:
        super().__init__(reason)
        self.rule, self.reason = rule, reason


def read_bbq(paths: Sequence[Path], mapped: Sequence[str]) -> list[OwnTable]:
    """Read JSONL files of BBQ.

    Raises:
        ConfigError: there are some, or two files have one name.
        DataError: a file is missing or holds nothing.
    """
    return _tables(paths, mapped, "a JSONL file of https://github.com/nyu-mll/BBQ/tree/main/data", _lines, _bbq_values)


def read_stereoset(paths: Sequence[Path], mapped: Sequence[str]) -> list[OwnTable]:
    """Read JSON files of StereoSet; arguments and errors as of :func:`read_bbq`, and a file may be no JSON."""
    what = "data/dev.json of https://github.com/moinnadeem/StereoSet"
    return _tables(paths, mapped, what, _examples, _stereoset_values)


def read_bbq_names(paths: Sequence[Path], mapped: Sequence[str]) -> list[OwnTable]:
    """Read the same files of BBQ, or those of published answers, as items without texts."""
    what = "a JSONL file of https://github.com/nyu-mll/BBQ/tree/main/results/UnifiedQA"
    return _tables(paths, mapped, what, _lines, _bbq_names)


def read_stereoset_names(paths: Sequence[Path], mapped: Sequence[str]) -> list[OwnTable]:
    """Read the sentences of StereoSet in the form of EditBias, as items without texts."""
    what = "gender_test.json, race_test.json or religion_test.json of https://github.com/zjunlp/EditBias/tree/main/data"
    return _tables(paths, mapped, what, _sentences, _stereoset_names)


def _tables(
    paths: Sequence[Path],
    mapped: Sequence[str],
    what: str,
    entries_of: Callable[[str, bytes, str], Iterator[_Entry | Reject]],
    values_of: Callable[[str, JsonValue], dict[str, str]],
) -> list[OwnTable]:
    if mapped:
        raise ConfigError(f"--map {mapped[0]}: the fields of this source have fixed names; leave it out")
    tables = []
    for path, raw in read_inputs(paths, what):
        rows: list[OwnRow] = []
        rejects: list[Reject] = []
        for entry in entries_of(path.name, raw, what):
            if isinstance(entry, Reject):
                rejects.append(entry)
                continue
            where, value = entry
            try:
                values, invisible = plain_values(values_of(where, value))
                if invisible is not None:
                    raise RejectedError(UNLIKE_PUBLISHED, invisible)
                rows.append(OwnRow(where, values))
            except RejectedError as error:
                rejects.append(_reject(where, error.rule, error.reason))
        n = len(rows) + len(rejects)
        if not n:
            raise DataError(f"--input {path}: is empty; give {what}")
        told = f"{path.name}: {n} question{'s' * (n != 1)}"
        tables.append(OwnTable(path.name, hashlib.sha256(raw).hexdigest(), {}, tuple(rows), tuple(rejects), told))
    return tables


def _reject(where: str, rule: Rule, reason: str) -> Reject:
    return Reject(candidate="", source_row=where, rule=rule.name, reason=printable(reason, most=300))


def _lines(name: str, raw: bytes, what: str) -> Iterator[_Entry | Reject]:
    """Yield the object on each line of a JSONL file, or why there is none."""
    for number, value, fault in json_lines(raw):
        where = f"{name}:{number}"
        yield (where, value) if fault is None else _reject(where, UNLIKE_PUBLISHED, fault)


def _examples(name: str, raw: bytes, what: str) -> Iterator[_Entry | Reject]:
    """Yield the examples of both parts of StereoSet, each with its place in the file."""
    document = _document(name, raw, what)
    if document is None:
        return
    for part in ("intrasentence", "intersentence"):
        try:
            examples = _field(document, list, "data", part)
        except RejectedError as error:
            raise DataError(f"--input {name}: {error.reason}; give {what}") from error
        yield from ((f"{name}:data.{part}[{number}]", example) for number, example in enumerate(examples))


def _sentences(name: str, raw: bytes, what: str) -> Iterator[_Entry | Reject]:
    """Yield the examples of a file of EditBias, each with its place in the file."""
    document = _document(name, raw, what)
    if not isinstance(document, list | None):
        raise DataError(f"--input {name}: is no list; give {what}")
    yield from ((f"{name}:[{number}]", example) for number, example in enumerate(document or ()))


def _document(name: str, raw: bytes, what: str) -> JsonValue:
    """Return the JSON value of a file; None for an empty one."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"--input {name}: byte {raw[error.start]:#04x} is not UTF-8; give {what}") from error
    return loads(text, where=f"--input {name}", remedy=f"give {what}") if text.strip() else None


def _field(value: JsonValue, kind: type[T], *path: str | int) -> T:
    """Return a value inside a JSON value, of the type that it must have."""
    for depth, key in enumerate(path, start=1):
        held: dict[str | int, JsonValue] = {}
        if isinstance(value, list | dict):
            held.update(enumerate(value) if isinstance(value, list) else value.items())
        if key not in held:
            _unlike(f"has no {'.'.join(map(str, path[:depth]))}")
        value = held[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        name = {list: "list", str: "text", int: "whole number"}[kind]
        _unlike(f"{'.'.join(map(str, path))} is no {name}")
    return value


def _text(value: JsonValue, *path: str | int) -> str:
    text = _field(value, str, *path)
    if not text.strip():
        _unlike(f"{'.'.join(map(str, path))} is empty")
    return text


def _one_of(value: JsonValue, name: str, allowed: Sequence[str]) -> str:
    text = _text(value, name)
    if text not in allowed:
        _unlike(f"{name} is '{text}', not {' or '.join(allowed)}")
    return text


def _unlike(reason: str) -> NoReturn:
    raise RejectedError(UNLIKE_PUBLISHED, reason)


def _bbq_values(where: str, entry: JsonValue) -> dict[str, str]:
    options = [_text(entry, name) for name in _OPTIONS]
    people = {
        option: (_text(entry, "answer_info", name, 0), _text(entry, "answer_info", name, 1))
        for name, option in zip(_OPTIONS, options, strict=True)
    }
    unknown = [option for option, (_, group) in people.items() if letters_of(group) == "unknown"]
    if len(unknown) != 1 or len(people) != len(options):
        _unlike(f"has {len(unknown)} unknown options among {len(people)} different ones, not 1 among {len(options)}")
    label = _field(entry, int, "label")
    if label not in range(len(options)):
        _unlike(f"label is {label}, not 0, 1 or 2")
    answer = options[label]
    is_ambiguous = _one_of(entry, "context_condition", ("ambig", "disambig")) == "ambig"
    if is_ambiguous != (answer == unknown[0]):
        _unlike(f"label is that of '{answer}', but the context is {'' if is_ambiguous else 'not '}ambiguous")
    category = _text(entry, "category")
    del people[unknown[0]]
    stereotyped = ("additional_metadata", "stereotyped_groups")
    groups = [_text(entry, *stereotyped, number) for number in range(len(_field(entry, list, *stereotyped)))]
    by_key = {_group_key(name): name for name in sorted(groups, key=len, reverse=True)}
    target, group = _target(people, by_key, is_crossed="_x_" in category.casefold())
    (other,) = people.keys() - {target}
    is_negative = _one_of(entry, "question_polarity", ("neg", "nonneg")) == "neg"
    number = _field(entry, int, "example_id")
    return {
        "question": _text(entry, "question"),
        "context": _text(entry, "context"),
        **{f"option{number}": option for number, option in enumerate(options, start=1)},
        "answer": answer,
        "stereotyped": target if is_negative else other,
        "antistereotyped": other if is_negative else target,
        "neutral": unknown[0],
        "category": category,
        "group": group,
        "condition": "negative" if is_negative else "non-negative",
        "cluster": f"{category}-{_text(entry, 'question_index')}",
        "id": f"{category}-{number}",
    }


def _target(people: Mapping[str, tuple[str, str]], groups: Mapping[str, str], *, is_crossed: bool) -> tuple[str, str]:
    """Return the option of the person that the stereotype is about, and the group; ``groups`` has its groups by key.

    ``is_crossed`` is True if a group names more than one thing, such as sex and race.
    """
    parts = {option: {_group_key(part) for part in re.split("[-_]", group)} for option, (_, group) in people.items()}
    names = ", ".join(groups.values()) or "none"
    first, second = parts.values()
    if is_crossed and len(first ^ second) > 2:
        raise RejectedError(NO_TARGET, f"the people differ in more than the stereotyped groups, {names}")
    # Of a nationality the group is a region, and only the text names it.
    texts = {option: {_group_key(text)} for option, (text, _) in people.items()}
    wholes = {option: {_group_key(group)} for option, (_, group) in people.items()}
    for keys in (wholes, parts, texts):
        found = {option: key for option in people for key in groups if key in keys[option]}
        if len(found) == 1:
            ((option, key),) = found.items()
            return option, groups[key]
        if found:
            raise RejectedError(NO_TARGET, f"both people are of the stereotyped groups, {names}")
    told = " nor ".join(f"'{group}'" for _, group in people.values())
    raise RejectedError(NO_TARGET, f"neither {told} is one of the stereotyped groups, {names}")


def _group_key(group: str) -> str:
    return _spellings().get(letters_of(group), letters_of(group))


@cache
def _spellings() -> Mapping[str, str]:
    """Return the group that each of its spellings means."""
    groups: Mapping[str, Sequence[str]] = settings()["bbq"]["spellings"]
    return {spelling: group for group, spellings in groups.items() for spelling in spellings}


def _stereoset_values(where: str, entry: JsonValue) -> dict[str, str]:
    sentences = _field(entry, list, "sentences")
    labels = {
        _text(entry, "sentences", number, "gold_label"): _text(entry, "sentences", number, "sentence")
        for number in range(len(sentences))
    }
    if sorted(labels) != ["anti-stereotype", "stereotype", "unrelated"] or len(sentences) != len(labels):
        _unlike(f"has {len(sentences)} sentences labelled {', '.join(sorted(labels))}, not one of each of three")
    bias_type, target = _text(entry, "bias_type"), _text(entry, "target")
    # Of a single sentence the context is the same with a blank.
    context = {"context": _text(entry, "context")} if ".intersentence[" in where else {}
    return {
        **context,
        **{f"option{number}": sentence for number, sentence in enumerate(labels.values(), start=1)},
        "stereotyped": labels["stereotype"],
        "antistereotyped": labels["anti-stereotype"],
        "category": bias_type,
        "group": target,
        "cluster": f"{bias_type}-{target}",
        "id": _text(entry, "id"),
    }


def _bbq_names(where: str, entry: JsonValue) -> dict[str, str]:
    values = _bbq_values(where, entry)
    names = dict(zip((values[f"option{number}"] for number in range(1, 4)), _OPTIONS, strict=True))
    roles = {role: names[values[role]] for role in ("answer", "stereotyped", "antistereotyped", "neutral")}
    options = {f"option{number}": name for number, name in enumerate(_OPTIONS, start=1)}
    return {**values, **options, **roles, "question": "", "context": "", "flag": NAMES_ONLY}


def _stereoset_names(where: str, entry: JsonValue) -> dict[str, str]:
    held = entry.get("data") if isinstance(entry, dict) else None
    labels = list(held) if isinstance(held, dict) else []
    if sorted(labels) != ["anti-stereotype", "stereotype", "unrelated"]:
        _unlike(f"has sentences labelled {', '.join(sorted(labels)) or 'nothing'}, not one of each of three")
    bias_type, target = _text(entry, "bias_type"), _text(entry, "target")
    sides = ["stereotype", "anti-stereotype"]
    if bias_type in settings()["stereoset-published"]["swapped"]:
        sides.reverse()
    # Named by their places, since whoever reads scores finds the labels of the file.
    names = {label: f"text{number}" for number, label in enumerate(labels, start=1)}
    return {
        **{f"option{number}": name for number, name in enumerate(names.values(), start=1)},
        "stereotyped": names[sides[0]],
        "antistereotyped": names[sides[1]],
        "category": bias_type,
        "group": target,
        "cluster": f"{bias_type}-{target}",
        # Its beginning tells the sentences apart, and all of it would be much of each file of records.
        "id": _text(entry, "id")[:8],
        "flag": NAMES_ONLY,
    }
