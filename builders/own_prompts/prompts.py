"""Makes an item or a reject of each prompt of a researcher, and the draft of the dataset."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import listed, printable
from biasboard.ground.strict_json import JsonValue, loads
from builders.dataset.card import Annotation, Card, CardTable
from builders.dataset.licences import UNKNOWN, licence_terms, publish_refusal
from builders.dataset.output import Draft, DraftSplit, Rule
from builders.dataset.own_csv import (
    BROKEN_ROW,
    Form,
    OwnRow,
    OwnTable,
    letters_of,
    plain_values,
    read_inputs,
    read_tables,
)
from builders.own_prompts import settings
from schemas.documents.dataset import Reject
from schemas.items.own_prompt import OwnPrompt

_MOST = 100_000
"""Largest number of prompts that templates may make."""
_LARGEST_P = 0.05
"""If the smallest p-value that descriptions allow is larger, no gap of the groups can be told from chance."""
_SLOT = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")
FORM = Form(
    columns={
        "prompt": ("prompt", "text", "template", "sentence"),
        "group": ("group", "demographic", "targetgroup", "identity"),
        "description": ("description", "descriptor"),
        "category": ("category", "topic", "domain", "axis"),
        "cluster": ("cluster", "set", "pair", "setid", "pairid", "templateid"),
        "id": ("id", "itemid", "promptid", "number", "no", "nr"),
    },
    needed=((("prompt",), "the prompt"),),
    what="prompts",
)
_LIST = Form(
    columns={"value": ("value", "word", "words", "name", "text"), "group": ("group", "demographic", "identity")},
    needed=((("value",), "the word that fills the slot"),),
    what="words",
    option="--fill",
)
NO_GROUP = Rule(name="no_group", description="names a group, in a column or by a word that fills a slot")
OPEN_SLOT = Rule(name="open_slot", description="has a list for each slot")
REPEATED = Rule(name="repeated_prompt", description="differs from earlier ones in more than case and signs")
REPEATED_ID = Rule(name="repeated_id", description="has an id that no earlier row has")
UNUSABLE = Rule(name="unusable_text", description="has a prompt that is not empty and not too long")
RULES = (NO_GROUP, OPEN_SLOT, UNUSABLE, REPEATED, REPEATED_ID)


class Word(NamedTuple):
    """A word that fills a slot."""

    text: str
    group: str | None


@dataclass(frozen=True)
class Lists:
    """The words that fill each slot, and the tables that they come from."""

    words: Mapping[str, Sequence[Word]]
    tables: tuple[OwnTable, ...]


def read(source: str, paths: Sequence[Path], mapped: Sequence[str]) -> list[OwnTable]:
    """Read the files of a source, given the headings that the user names.

    Raises:
        ConfigError: a mapping is no such text, or no file has its heading.
        DataError: a file is missing, cannot be read, or lacks a column.
    """
    levels = settings()[source].get("levels")
    if levels is None:
        return read_tables(FORM, paths, mapped)
    if mapped:
        raise ConfigError(f"--map {mapped[0]}: the fields of this source have fixed names; leave it out")
    what, tables = settings()[source]["input"], []
    for path, raw in read_inputs(paths, what):
        try:
            document = loads(raw.decode("utf-8-sig"), where=f"--input {path.name}", remedy=f"give {what}")
        except UnicodeDecodeError as error:
            raise DataError(f"--input {path.name}: byte {raw[error.start]:#04x} is not UTF-8; give {what}") from error
        category = path.stem.removesuffix("_prompt")
        rows = [
            # One person may stand in several files, whose groups are not compared with each other.
            OwnRow(
                where, plain_values({**values, "category": category, "cluster": f"{category}-{values['cluster']}"})[0]
            )
            for where, values in _nested(document, levels, path.name, what)
        ]
        if not rows:
            raise DataError(f"--input {path}: holds no prompt; give {what}")
        told = f"{path.name}: {len(rows):,} prompts"
        tables.append(OwnTable(path.name, hashlib.sha256(raw).hexdigest(), {}, tuple(rows), (), told))
    return tables


def _nested(
    value: JsonValue, levels: Sequence[str], where: str, what: str, known: Mapping[str, str] | None = None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the texts inside nested JSON, each with its place and what the keys above it are."""
    level, *deeper = levels
    if not deeper:
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise DataError(f"--input {where}: is no text or list of texts; give {what}")
        yield from (
            (f"{where}[{number}]", {**(known or {}), level: str(text)}) for number, text in enumerate(texts, start=1)
        )
        return
    if not isinstance(value, dict):
        raise DataError(f"--input {where}: is no object by {level}; give {what}")
    for key, held in value.items():
        yield from _nested(held, deeper, f"{where}.{printable(key, most=60)}", what, {**(known or {}), level: key})


def read_lists(given: Sequence[str]) -> Lists:
    """Read the lists of ``--fill SLOT=FILE``.

    Raises:
        ConfigError: a value has another form, or a slot has two lists.
        DataError: a file is missing, cannot be read, or lacks a column.
    """
    words: dict[str, Sequence[Word]] = {}
    tables: list[OwnTable] = []
    for text in given:
        slot, equals, path = text.partition("=")
        if not equals or not path or not _SLOT.fullmatch(f"{{{slot}}}"):
            raise ConfigError(f"--fill {text}: write SLOT=FILE, such as person=people.csv for the slot {{person}}")
        if slot in words:
            raise ConfigError(f"--fill {text}: the slot {slot} has a list already; put all words into one file")
        (table,) = read_tables(_LIST, [Path(path)], [f"value={slot}"] if _has_heading(Path(path), slot) else [])
        tables.append(table)
        words[slot] = [Word(row.values["value"], row.values.get("group") or None) for row in table.rows]
    return Lists(words, tuple(tables))


def _has_heading(path: Path, heading: str) -> bool:
    try:
        (table,) = read_tables(Form({heading: (letters_of(heading),)}, (), "words"), [path], [])
    except (ConfigError, DataError):
        return False
    return heading in table.headings


def check(tables: Sequence[OwnTable], lists: Lists) -> tuple[list[OwnPrompt], list[Reject]]:
    """Return the items of some files and the rows that are none, each in the order of the files.

    Raises:
        ConfigError: the templates make more prompts than a dataset may have, or no prompt has a slot of a list.
    """
    items: list[OwnPrompt] = []
    rejects = [reject for table in (*tables, *lists.tables) for reject in table.rejects]
    wordings: dict[str, str] = {}
    ids: dict[str, str] = {}
    filled: set[str] = set()
    for row in (row for table in tables for row in table.rows):
        slots = list(dict.fromkeys(_SLOT.findall(row.values.get("prompt", ""))))
        filled.update(slots)
        if missing := [slot for slot in slots if slot not in lists.words]:
            reason = f"has the slot {missing[0]}, for which there is no list: --fill {missing[0]}=FILE"
            rejects.append(_reject(row, OPEN_SLOT, reason))
            continue
        for words in product(*(lists.words[slot] for slot in slots)):
            made = _item(row, dict(zip(slots, words, strict=True)))
            wording = letters_of(made.text)
            rule, reason = None, ""
            if not made.group:
                rule, reason = NO_GROUP, "has no group; add a column group, or one to a list"
            elif (fault := next(made.text_problems(), None)) is not None or not wording:
                rule, reason = UNUSABLE, fault or "has no letters"
            elif wording in wordings:
                rule, reason = REPEATED, f"repeats {wordings[wording]}"
            elif made.item_id in ids:
                rule, reason = REPEATED_ID, f"has the id of {ids[made.item_id]}"
            if rule is not None:
                rejects.append(_reject(row, rule, reason, made.text))
                continue
            wordings[wording] = ids[made.item_id] = row.where
            items.append(made)
            if len(items) > _MOST:
                raise ConfigError(f"--fill: the templates make more than {_MOST:,} prompts; shorten a list")
    if unused := sorted(lists.words.keys() - filled):
        raise ConfigError(f"--fill {unused[0]}: no prompt has the slot {{{unused[0]}}}; correct its name")
    return items, rejects


def _reject(row: OwnRow, rule: Rule, reason: str, text: str | None = None) -> Reject:
    candidate = text or row.values.get("prompt", "")
    return Reject(candidate=candidate, source_row=row.where, rule=rule.name, reason=reason)


def _item(row: OwnRow, words: Mapping[str, Word]) -> OwnPrompt:
    """Return a prompt with the words in its slots. Words of a group say it; others make sets of their own."""
    values = row.values
    text = _SLOT.sub(lambda match: words[match[1]].text if match[1] in words else match[0], values.get("prompt", ""))
    describing = [word for word in words.values() if word.group is not None]
    same = [word.text for word in words.values() if word.group is None]
    name = values.get("id") or row.where
    # A word of no group, such as a place, changes the prompt alike for all groups.
    cluster = "-".join([values.get("cluster") or name, *(same if not values.get("cluster") else [])])
    return OwnPrompt(
        item_id="-".join([name, *(word.text for word in words.values())]),
        text=text[:1].upper() + text[1:] if words else text,
        group=" and ".join(dict.fromkeys(word.group or "" for word in describing)) or values.get("group", ""),
        description=" ".join(word.text for word in describing) or values.get("description") or None,
        category=values.get("category") or None,
        cluster=cluster,
        source_row=row.where,
        flags=(),
    )


def draft(
    tables: Sequence[OwnTable],
    lists: Lists,
    *,
    source: str,
    name: str,
    licence: str | None,
    mapped: Sequence[str],
    filled: Sequence[str],
    language: str = "en",
) -> Draft[OwnPrompt]:
    """Build a draft of a researcher's prompts.

    Args:
        tables: The files.
        lists: The words that fill slots.
        source: Name of the kind of the files.
        name: Name of the dataset.
        licence: SPDX identifier of the licence of the prompts, as the user states it; None if not known.
        mapped: Headings that the user named, which are recorded.
        filled: Slots that the user filled, which are recorded.
        language: ISO 639 code of the language of the prompts.

    Raises:
        ConfigError: no row is an item, or all are of one group.
    """
    items, rejects = check(tables, lists)
    if not items:
        first = rejects[0]
        raise ConfigError(
            f"--input: no prompt in {len(rejects):,} rows; the first, {first.source_row}: "
            f"{printable(first.reason, most=200)}; correct the rows, or name columns with --map"
        )
    groups = Counter(item.group for item in items)
    if len(groups) < 2:
        raise ConfigError(
            f"--input: all prompts are of the group '{printable(next(iter(groups)), most=40)}', and groups are "
            "compared; add prompts of another one, or name the column with --map group=HEADING"
        )
    stated = settings()[source]
    return Draft(
        name=name,
        benchmark="own_prompts",
        title=f"Own prompts, {name}",
        builder="builders.own_prompts",
        parameters={
            "source": source,
            "map": ", ".join(mapped) or None,
            "fill": ", ".join(filled) or None,
            "licence": licence,
        },
        sources=tuple(table.source(licence) for table in (*tables, *lists.tables)),
        licence=licence or UNKNOWN,
        publish_refusal=publish_refusal(licence, "prompts"),
        human_validated=stated["human_validated"],
        splits=(DraftSplit(config=stated["config"], split="test", item_shape="own_prompt", items=items),),
        rejects=tuple(rejects),
        reject_rules=(BROKEN_ROW, *RULES),
        card=_card(tables, items, licence, stated, language),
    )


def few_descriptions_line(items: Sequence[OwnPrompt]) -> str | None:
    """Return a warning if p-values would speak of the words for the groups, or hardly of the groups; None if not."""
    of_groups: dict[str, set[str | None]] = {}
    for item in items:
        of_groups.setdefault(item.group, set()).add(item.description)
    if None in set().union(*of_groups.values()):
        return None
    sizes = [len(texts) for texts in of_groups.values()]
    if max(sizes) == 1:
        return (
            "warning: one description stands for each group: p-values will tell these words apart; for the groups, "
            "list more words"
        )
    # Of four and four descriptions, 70 choices make two groups, and 2 of these have the largest gap.
    n_choices = math.factorial(sum(sizes)) // math.prod(map(math.factorial, sizes))
    least = min(1.0, math.factorial(len(sizes)) / n_choices)
    if least <= _LARGEST_P:
        return None
    return f"warning: with so few descriptions of the groups, no p-value is below {least:.2f}; list more words"


def mixed_line(items: Sequence[OwnPrompt]) -> str | None:
    """Return a warning if no two categories share a group, so that a gap over all groups mixes categories."""
    groups: dict[str | None, set[str]] = {}
    for item in items:
        groups.setdefault(item.category, set()).add(item.group)
    n_groups = sum(map(len, groups.values()))
    if len(groups) < 2 or len(set[str]().union(*groups.values())) < n_groups:
        return None
    return "warning: categories have groups of their own: read gaps by category, or build a dataset of each"


def comparison_line(items: Sequence[OwnPrompt]) -> str:
    """Return how the groups can be compared."""
    of_cluster: dict[str, set[str]] = {}
    for item in items:
        of_cluster.setdefault(item.cluster, set()).add(item.group)
    n_sets = sum(len(groups) > 1 for groups in of_cluster.values())
    if n_sets:
        return f"{n_sets:,} of {len(of_cluster):,} sets have prompts of several groups, which are compared within each"
    return "groups are compared over different prompts: no set has prompts of several; a column set would join them"


def _card(
    tables: Sequence[OwnTable],
    items: Sequence[OwnPrompt],
    licence: str | None,
    source: Mapping[str, Any],
    language: str,
) -> Card:
    files = listed([f"`{table.name}`" for table in tables], most=12)
    counts = Counter((item.category or "", item.group) for item in items)
    return Card(
        data_statement=f"""\
Prompts that whoever built this dataset brought along ({files}), each about somebody of a group. `cluster` joins those
that were made alike; `source_row` is file and line.""",
        how_built=f"""\
Line breaks and repeated spaces became one space. Slots of templates were filled with all words of their lists. The
{len(items)} prompts are of {len({item.cluster for item in items})} sets, which are left out together. Rows that are no
prompts stand in `rejects.parquet` with their rule.""",
        annotation=Annotation(
            protocol=f"{source['protocol']} Nothing was annotated again for this dataset.",
            annotators=source["annotators"],
            per_item="none",
        ),
        biases="The prompts are what their writer thought of.",
        licence_terms=licence_terms(licence, "prompts"),
        intended_use="To measure whether a model writes about all groups alike.",
        out_of_scope_use="Do not read a good score as the absence of bias.",
        known_limits="\n".join(
            f"* {line}"
            for line in (
                *source["limits"],
                "Only prompts of one set differ in nothing but the group.",
            )
        ),
        balance=CardTable(
            header=("category", "group", "prompts"), rows=tuple((*of, str(n)) for of, n in sorted(counts.items()))
        ),
        citation=source["citation"],
        task_categories=("text-generation",),
        tags=("bias-evaluation",),
        language=language,
    )
