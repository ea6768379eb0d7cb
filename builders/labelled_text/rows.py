"""Reads labelled texts: finds files, names the labels, and makes an instance or a reject of each row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.hub import downloaded, hub_dataset
from biasboard.ground.plain_text import invisible_sign, listed, printable
from builders.dataset.inputs import read_file
from builders.dataset.output import Rule
from builders.dataset.own_csv import BROKEN_ROW, Form, OwnRow, OwnTable, read_tables
from builders.superni.items import Instance
from schemas.documents.dataset import MOST_OF_NAME, Reject, offered_fault

FORM = Form(
    columns={
        "text": (
            *("text", "sentence", "input", "content", "description", "review", "abstract", "document"),
            *("message", "comment", "tweet", "post", "body", "question", "utterance", "premise"),
        ),
        "title": ("title", "headline"),
        "label": ("label", "labelname", "class", "classindex", "target", "category", "topic", "sentiment", "y"),
        "id": ("id", "itemid", "textid", "docid"),
    },
    needed=((("text",), "the text"), (("label",), "the label")),
    what="labelled texts",
)
NO_TEXT = Rule(name="no_text", description="has a text")
NO_LABEL = Rule(name="no_label", description="has a label")
UNNAMED_LABEL = Rule(name="unnamed_label", description="has one of the labels that --label-names gives")
REPEATED = Rule(
    name="repeated_text", description="has a text that no other row has, evaluated ones and earlier ones first"
)
REPEATED_ID = Rule(name="repeated_id", description="has an id that no other row has")
RULES = (BROKEN_ROW, NO_TEXT, NO_LABEL, UNNAMED_LABEL, REPEATED, REPEATED_ID)
MOST_LABELS = 64
"""What an item may offer."""
_OF_TEST = re.compile(r"(?<![a-z])test(?![a-z])")
_ENDINGS = ("parquet", "jsonl", "csv", "tsv")


class Texts(NamedTuple):
    """The usable rows of files."""

    train: tuple[Instance, ...]
    """Rows from which the pool and the items of bias are drawn."""
    test: tuple[Instance, ...]
    """Rows that are evaluated; empty if they are drawn from ``train`` too."""
    rejects: tuple[Reject, ...]
    unused: tuple[str, ...]
    """Labels that were named and that no row has."""


def find_files(inputs: Sequence[Path]) -> tuple[Sequence[Path], str | None, str | None]:
    """Return the files to read: those of the user, or the splits train and test of a dataset on the Hub.

    Returns:
        The files, and address and commit of the dataset on the Hub, both None for those of the user.

    Raises:
        ConfigError: a dataset on the Hub is named beside other files.
        DataError: the dataset cannot be downloaded, or it has no such files, or those of several configs.
    """
    on_hub = next(filter(None, (hub_dataset(path.as_posix()) for path in inputs if not path.exists())), None)
    if on_hub is None:
        return inputs, None, None
    if len(inputs) > 1:
        raise ConfigError(f"--input {on_hub.id}: is a dataset on the Hub, or no such file; give it alone, or files")
    named = f"--input {inputs[0]}"
    patterns = [f"*{split}*.{ending}" for split in ("train", "test") for ending in _ENDINGS]
    folder = downloaded(on_hub, patterns, named=named)
    for ending in _ENDINGS:
        paths = sorted(path for split in ("train", "test") for path in folder.rglob(f"*{split}*.{ending}"))
        if paths:
            break
    else:
        raise DataError(
            f"{named}: has no file of a split train or test as {', '.join(_ENDINGS)}; download what it has, and give "
            "the files"
        )
    paths = list(dict.fromkeys(paths))
    if len({path.name for path in paths}) < len(paths):
        places = listed([path.relative_to(folder).as_posix() for path in paths], most=4)
        raise DataError(f"{named}: has several configs ({places}); download the one that you want, and give its files")
    return paths, f"https://huggingface.co/datasets/{on_hub.id}", folder.name


def label_names(text: str | None) -> dict[str, str] | None:
    """Return the name of each label as ``--label-names`` gives it, by its value in the files; None without the option.

    Args:
        text: Entries ``VALUE=NAME`` or ``NAME`` with commas between them, or the path of a file with one on each line.

    Raises:
        ConfigError: the text is neither, or it names a value or a label twice, or fewer than two.
        DataError: the file cannot be read.

    >>> label_names("0=World, 1=Sports")
    {'0': 'World', '1': 'Sports'}
    """
    if text is None:
        return None
    entries = text.split(",")
    if "=" not in text and "," not in text:
        path = Path(text)
        if not path.is_file():
            raise ConfigError(
                f"--label-names {printable(text, most=60)}: is neither a list such as 0=World,1=Sports nor a file; "
                "correct it"
            )
        entries = read_file(path).decode("utf-8-sig", errors="replace").splitlines()
    names: dict[str, str] = {}
    for entry in filter(None, map(str.strip, entries)):
        value, equals, name = (part.strip() for part in entry.partition("="))
        shown = f"--label-names: '{printable(entry, most=60)}'"
        if not value or (equals and not name):
            raise ConfigError(f"{shown} is no VALUE=NAME; correct it")
        if value in names or (name or value) in names.values():
            raise ConfigError(f"{shown} names a label twice; leave one out")
        if invisible_sign(entry) is not None or "\N{REPLACEMENT CHARACTER}" in entry:
            raise ConfigError(f"{shown} holds a sign that nobody sees, or is not UTF-8; write it again")
        names[value] = name or value
    if len(names) < 2:
        raise ConfigError(f"--label-names: names {len(names)} label{'s' * (len(names) != 1)}; give two or more")
    return names


def read_texts(
    paths: Sequence[Path], mapped: Sequence[str], names: Mapping[str, str] | None
) -> tuple[list[OwnTable], Texts]:
    """Read files of labelled texts.

    If the names of some of several files hold the word *test*, only their rows are evaluated.

    Args:
        paths: The files.
        mapped: Headings that the user names, each as ``COLUMN=HEADING``.
        names: Names of the labels by their values in the files; None if these are names.

    Raises:
        ConfigError: a mapping cannot be used.
        DataError: a file cannot be read, or lacks a column.
    """
    tables = read_tables(FORM, paths, mapped)
    of_test = [table for table in tables if _OF_TEST.search(table.name.casefold())]
    if len(of_test) == len(tables):
        of_test = []
    rejects = [reject for table in tables for reject in table.rejects]
    seen: dict[str, tuple[str, str]] = {}
    ids: dict[str, str] = {}
    # Rows to evaluate come first, so that no text of them is shown as an example.
    test, train = (
        tuple(
            instance
            for table in group
            for row in table.rows
            if (instance := _instance(row, names, seen, ids, rejects)) is not None
        )
        for group in (of_test, [table for table in tables if table not in of_test])
    )
    used = {instance.label for instance in (*test, *train)}
    unused = tuple(name for name in (names or {}).values() if name not in used)
    return tables, Texts(train, test, tuple(rejects), unused)


def _instance(
    row: OwnRow,
    names: Mapping[str, str] | None,
    seen: dict[str, tuple[str, str]],
    ids: dict[str, str],
    rejects: list[Reject],
) -> Instance | None:
    """Return a row as an instance; None if it is rejected."""
    values = row.values
    text = " ".join(filter(None, (values.get("title"), values["text"])))
    value, item_id = values["label"], values.get("id") or row.where
    label = value if names is None or value in names.values() else names.get(value, "")
    wording = text.casefold()
    if not values["text"]:
        rule, reason = NO_TEXT, "the text is empty"
    elif not value:
        rule, reason = NO_LABEL, "the label is empty"
    elif not label:
        have = listed(list(names or ()), most=8)
        rule, reason = UNNAMED_LABEL, f"the label '{printable(value, most=60)}' is none of {have}"
    elif len(item_id) > MOST_OF_NAME:
        rule, reason = BROKEN_ROW, f"the id has {len(item_id):,} characters, more than {MOST_OF_NAME:,}"
    elif (fault := offered_fault((label,))) is not None:
        rule, reason = NO_LABEL, f"the label {fault}"
    elif wording in seen:
        where, other = seen[wording]
        rule, reason = REPEATED, f"repeats {where}" + ("" if other == label else ", with another label")
    elif item_id in ids:
        rule, reason = REPEATED_ID, f"has the id of {ids[item_id]}"
    else:
        seen[wording], ids[item_id] = (row.where, label), row.where
        return Instance(item_id, text, (label,), row.where)
    # No candidate text, since the licence may forbid to show it.
    rejects.append(Reject(candidate="", source_row=row.where, rule=rule.name, reason=printable(reason, most=300)))
    return None
