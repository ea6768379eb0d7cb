"""Makes an item or a reject of each row of a researcher's questions, and the draft of the dataset."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import listed, printable
from builders.dataset.card import Annotation, Card, CardTable
from builders.dataset.licences import UNKNOWN, licence_terms, publish_refusal
from builders.dataset.output import Draft, DraftSplit, Rule
from builders.dataset.own_csv import BROKEN_ROW, Form, OwnRow, OwnTable, letters_of, read_tables
from builders.own_questions import published_json, settings
from builders.own_questions.published_json import RejectedError
from builders.own_questions.roles import Roles
from schemas.documents.dataset import Reject
from schemas.items.own_question import MOST_OPTIONS, NAMES_ONLY, OwnQuestion

_LETTERS = "abcdefgh"[:MOST_OPTIONS]
_PLACES = tuple(f"option{number}" for number in range(1, MOST_OPTIONS + 1))
_BETWEEN = "|"
_MOST_NAMED = 4
_MOST_NEAR = 0.05
"""Largest share of items that may nearly repeat one of another cluster before the user is told."""
_WORD = re.compile(r"\w+")


def _also_with_noun(*headings: str) -> tuple[str, ...]:
    return (*headings, *(f"{heading}{noun}" for heading in headings for noun in ("option", "answer")))


FORM = Form(
    columns={
        "question": ("question", "prompt", "query"),
        "context": ("context", "passage", "premise", "scenario", "background", "situation", "story", "text"),
        "options": ("options", "choices"),
        **{
            place: (place, f"option{letter}", f"choice{number}", f"answer{number}", letter)
            for number, (place, letter) in enumerate(zip(_PLACES, _LETTERS, strict=True), start=1)
        },
        "answer": ("answer", *_also_with_noun("right", "correct"), "label", "target", "gold"),
        "stereotyped": _also_with_noun("stereotyped", "stereotype", "stereotypical"),
        "antistereotyped": _also_with_noun("antistereotyped", "antistereotype", "antistereotypical"),
        "neutral": _also_with_noun("neutral", "unknown"),
        "category": ("category", "topic", "biastype", "domain"),
        "group": ("group", "targetgroup", "demographic"),
        "condition": ("condition", "direction", "polarity"),
        "cluster": ("cluster", "template", "templateid", "set", "setid"),
        "id": ("id", "itemid", "questionid", "number", "no", "nr"),
    },
    needed=((("options", *_PLACES), "the options (one column each, such as option_a, or one with | between them)"),),
    what="questions",
    of_lists=frozenset({"options"}),
)


def read(source: str, paths: Sequence[Path], mapped: Sequence[str], roles: Roles | None = None) -> list[OwnTable]:
    """Read the files of a source, given the headings that the user names and the groups that roles are taken for.

    Raises:
        ConfigError: a mapping is no such text, no file has its heading, or no role is taken for a group of the items.
        DataError: a file is missing, cannot be read, or lacks a column.
    """
    tables = _read(source, paths, mapped)
    return tables if roles is None else roles.sided(tables, options_of)


def _read(source: str, paths: Sequence[Path], mapped: Sequence[str]) -> list[OwnTable]:
    of_source = settings()[source]
    if (reader := _READERS.get(source)) is not None:
        return reader(_files(paths, of_source.get("files")), mapped)
    form = FORM
    if (columns := of_source.get("columns")) is not None:
        # Without the others, such as a category, the items are as good.
        wanted = ("context", "id", "options", *_PLACES)
        needed = [((name,), f"{name} ({columns[name][0]})") for name in wanted if name in columns]
        form = Form(columns, needed, "rows")
    tables = read_tables(form, paths, mapped)
    for table in tables if columns is None else ():
        # Of headings in another language the options may be found, and the questions dropped.
        if table.unread and not table.headings.keys() & {"question", "context"}:
            unread = listed([f"'{printable(head, most=40)}'" for head in table.unread], most=_MOST_NAMED)
            raise ConfigError(
                f"--input {table.name}: no column is read as the question or its context, and {unread} not at all; "
                "name one with --map question=HEADING, or remove these columns if the options are whole texts"
            )
    return [table._replace(rows=tuple(_completed(row, of_source) for row in table.rows)) for table in tables]


def _files(paths: Sequence[Path], pattern: str | None) -> list[Path]:
    """Return published files, and those in folders whose names fit, in the order of their names.

    So the items have one order, and one hash, however the user names the files.
    """
    found = []
    for path in paths:
        inside = [*path.glob(pattern)] if pattern is not None and path.is_dir() else [path]
        if not inside:
            raise DataError(f"--input {path}: no file {pattern} in this folder; name the published files")
        found += inside
    return sorted(found, key=lambda path: path.name)


def language_of(source: str, given: str | None, paths: Sequence[Path] = ()) -> str:
    """Return the language of a source's questions, given that of the user and the files.

    Raises:
        ConfigError: the source has others, or several of which none is given, or a file is of another by its name.
    """
    of_source = settings()[source]
    languages = of_source.get("languages")
    if languages is None:
        return given or "en"
    if given is None and len(languages) == 1:
        return str(languages[0])
    if given is None or given not in languages:
        wrong = "say which with --language" if given is None else f"not {given}; give one of them, or another --source"
        raise ConfigError(f"--source {source}: its languages are {', '.join(languages)}; {wrong}")
    for path in paths:
        ending = path.stem.rpartition("_")[2]
        if len(languages) > 1 and len(ending) == len(given) and ending != given:
            raise ConfigError(f"--input {path}: is of {ending} by its name, and --language is {given}; correct one")
    return given


def _completed(row: OwnRow, source: Mapping[str, Any]) -> OwnRow:
    """Return a row with the values that its source gives all rows, and those that one of its values holds."""
    values = {**source.get("given", {}), **row.values}
    parts = source.get("parts")
    if parts is None:
        return row._replace(values=values)
    if (held := re.match(parts["pattern"], values[parts["of"]])) is not None:
        values |= held.groupdict()
        values |= {name: values[of] for name, of in parts["same"].items()}
        values |= {name: spelt.get(values[name], values[name]) for name, spelt in parts["spelt"].items()}
    else:
        # Of another form: without options, the row is rejected.
        values = {name: value for name, value in values.items() if name not in ("options", *_PLACES)}
    return row._replace(values=values)


_READERS = {
    "bbq": published_json.read_bbq,
    "mbbq": published_json.read_bbq,
    "bbq-published": published_json.read_bbq_names,
    "stereoset": published_json.read_stereoset,
    "stereoset-published": published_json.read_stereoset_names,
}
FEW_OPTIONS = Rule(
    name="few_options", description=f"has two to {MOST_OPTIONS} options, which differ apart from case and spaces"
)
NO_OPTION = Rule(
    name="no_option",
    description="names the options of its answer and of its sides by their texts or letters",
)
ONE_SIDE = Rule(
    name="one_side",
    description="has a stereotyped and an antistereotyped option, or neither, and a neutral one that is none of them",
)
REPEATED = Rule(name="repeated_question", description="differs from earlier ones in more than case and signs")
REPEATED_ID = Rule(name="repeated_id", description="has an id that no earlier row has")
UNUSABLE = Rule(name="unusable_text", description="has no text that is too long, and options that can be told apart")
_NAMED = Rule(name=NAMES_ONLY, description="has names of options in place of texts, which stay with their publisher")
RULES = (FEW_OPTIONS, UNUSABLE, NO_OPTION, ONE_SIDE, REPEATED, REPEATED_ID)
_ROLES = ("answer", "stereotyped", "antistereotyped", "neutral")


def draft(
    tables: Sequence[OwnTable],
    *,
    source: str,
    name: str,
    licence: str | None,
    mapped: Sequence[str],
    language: str = "en",
    roles: Roles | None = None,
) -> Draft[OwnQuestion]:
    """Build a draft of a researcher's questions.

    Args:
        tables: The files.
        source: Name of their kind.
        name: Name of the dataset.
        licence: SPDX identifier of the licence of the questions, as the user states it; None if not known.
        mapped: Headings that the user named, which are recorded.
        language: ISO 639 code of the language of the questions.
        roles: Roles that told the sides of a stereotype; None if there are none.

    Raises:
        ConfigError: no row is an item.
    """
    of_source = settings()[source]
    items, rejects = check(tables)
    if not items:
        first = rejects[0]
        reason = printable(first.reason, most=200)
        if "; " not in reason:
            reason += (
                "; correct the rows, or name columns with --map" if tables[0].headings else "; give the published file"
            )
        n = len(rejects)
        raise ConfigError(
            f"--input: no question with options in {n:,} row{'s' * (n != 1)}; the first, {first.source_row}: {reason}"
        )
    of_tables = () if source in _READERS and roles is None else (BROKEN_ROW,)
    return Draft(
        name=name,
        benchmark="own_questions",
        title=f"Own questions, {name}",
        builder="builders.own_questions",
        parameters={
            "source": source,
            "map": ", ".join(mapped) or None,
            "licence": licence,
            # The user's own list, whatever the licence of the questions: none of it is copied.
            **({} if roles is None else {"roles": roles.table.name, "roles_sha256": roles.table.sha256}),
        },
        sources=tuple(table.source(licence) for table in tables),
        licence=licence or UNKNOWN,
        publish_refusal=publish_refusal(licence, "questions"),
        human_validated=of_source["human_validated"],
        prompt=of_source.get("prompt"),
        splits=(DraftSplit(config=of_source["config"], split="test", item_shape="own_question", items=items),),
        rejects=(*rejects, *(() if roles is None else roles.table.rejects)),
        reject_rules=(*(published_json.RULES if source in _READERS else ()), *of_tables, *RULES),
        flag_rules=(_NAMED,) if any(item.flags for item in items) else (),
        card=replace(_card(tables, items, licence, of_source), language=language),
    )


def check(tables: Sequence[OwnTable]) -> tuple[list[OwnQuestion], list[Reject]]:
    """Return the items of some files and the rows that are none, each in the order of the files."""
    items: list[OwnQuestion] = []
    rejects = [reject for table in tables for reject in table.rejects]
    wordings: dict[tuple[str, ...], str] = {}
    ids: dict[str, str] = {}
    by_context = _have_clusters_of_contexts(tables)
    neutral = neutral_option(tables)
    first_of: dict[str, str] = {}
    numbered = [(row, first) for table in tables for first in [first_number(table)] for row in table.rows]
    for row, first in numbered:
        try:
            item = _item(row, neutral, first)
            wording = tuple(map(letters_of, (item.context or "", item.question or "", *sorted(item.options))))
            if item.question is None:
                # Of whole texts, the same two can state a stereotype and contradict it.
                wording += (letters_of(item.stereotyped or ""),)
            if NAMES_ONLY in item.flags:
                wording = (item.item_id,)
            if wording in wordings:
                raise RejectedError(REPEATED, f"repeats {wordings[wording]}")
            if (fault := next(item.text_problems(), None)) is not None:
                raise RejectedError(UNUSABLE, fault)
            if item.item_id in ids:
                raise RejectedError(REPEATED_ID, f"has the id of {ids[item.item_id]}")
            wordings[wording] = ids[item.item_id] = row.where
            if by_context and item.context is not None:
                # Named by its first item: the text of a context might not be for sharing, and records hold clusters.
                item = replace(item, cluster=first_of.setdefault(item.context, item.item_id))
            items.append(item)
        except RejectedError as error:
            candidate = row.values.get("question") or " / ".join(options_of(row.values))
            rejects.append(Reject(candidate=candidate, source_row=row.where, rule=error.rule.name, reason=error.reason))
    return items, rejects


def _have_clusters_of_contexts(tables: Sequence[OwnTable]) -> bool:
    """Return True if no row names a cluster and rows have different contexts, one of which repeats."""
    rows = [row.values for table in tables for row in table.rows]
    counts = Counter(values.get("context", "") for values in rows)
    repeats = any(context and n > 1 for context, n in counts.items())
    # A context of all rows, such as an instruction, would leave one cluster, and so no interval.
    return repeats and len(counts) > 1 and not any(values.get("cluster") for values in rows)


def neutral_option(tables: Sequence[OwnTable]) -> str | None:
    """Return the one option that stands in every row, such as "It cannot be told", where it is to be the neutral one.

    None if no row has a stereotyped option, if rows name their neutral options, or if there is not one such option.
    """
    rows = [row.values for table in tables for row in table.rows]
    if not any(values.get("stereotyped") for values in rows) or any(values.get("neutral") for values in rows):
        return None
    spelt = [{option.casefold(): option for option in options_of(values)} for values in rows]
    common = set.intersection(*map(set, spelt)) if spelt else set()
    sides = {values.get(side, "").casefold() for values in rows for side in ("stereotyped", "antistereotyped")}
    return spelt[0][common.pop()] if len(common) == 1 and common.isdisjoint(sides) else None


def cluster_line(tables: Sequence[OwnTable], items: Sequence[OwnQuestion]) -> str:
    """Return how many clusters the items have, and why if no column names them."""
    n_clusters = len({item.cluster for item in items})
    counted = f"{n_clusters} cluster{'s' * (n_clusters != 1)}"
    if any(row.values.get("cluster") for table in tables for row in table.rows):
        return counted
    if _have_clusters_of_contexts(tables):
        return f"{counted}: items with equal contexts are one; a column cluster would name others"
    return f"{counted}: items count as independent; if some were made alike, name them in a column cluster"


def near_line(items: Sequence[OwnQuestion]) -> str | None:
    """Return how many items differ in one word alone from an item of another cluster; None if they are hardly any.

    They are answered alike, so that intervals which take them for independent are too narrow, and the answers of one
    cluster give away those of another.
    """
    clusters = {cluster: code for code, cluster in enumerate(dict.fromkeys(item.cluster for item in items))}
    first_of: dict[int, tuple[int, int]] = {}
    near = set[int]()
    for number, item in enumerate(items):
        words = _WORD.findall(" ".join(filter(None, (item.context, item.question, *item.options))).casefold())
        cluster = clusters[item.cluster]
        # The sum over all words in their places, less one of them, is the same for texts that differ in that word.
        total = sum(map(hash, enumerate(words)))
        for place, word in enumerate(words):
            key = hash((place, len(words), total - hash((place, word))))
            other, of_cluster = first_of.setdefault(key, (number, cluster))
            if of_cluster != cluster:
                near |= {number, other}
    if len(near) <= _MOST_NEAR * len(items) or any(NAMES_ONLY in item.flags for item in items):
        return None
    return (
        f"{len(near):,} items differ in one word alone from an item of another cluster, and are not independent of it: "
        "name what was made alike in a column cluster, or intervals are too narrow"
    )


def options_of(values: Mapping[str, str]) -> list[str]:
    """Return the options of a row: those of a list, or of a column each."""
    text = values.get("options", "")
    if (given := _list_in(text)) is None:
        given = [option.strip() for option in text.split(_BETWEEN)]
    return [option for option in (*given, *(values.get(place, "") for place in _PLACES)) if option]


def _list_in(text: str) -> list[str] | None:
    """Return the texts of a list in JSON, or as Python prints it; None if a cell holds none."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    for load in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            found = load(text)
            if isinstance(found, list) and all(isinstance(one, str | int | float) for one in found):
                return [" ".join(str(one).split()) for one in found]
    return None


def first_number(table: OwnTable) -> int | None:
    """Return whether the answers of a file are numbers of options from 0 or from 1; None if that cannot be told.

    It can if an answer is 0, or as large as the number of options, and none contradicts that.
    """
    rows = [row.values for row in table.rows if row.values.get("answer")]
    if not all(values["answer"].isdecimal() for values in rows):
        return None
    numbers = [(int(values["answer"]), len(options_of(values))) for values in rows]
    has_zero, has_last = any(number == 0 for number, _ in numbers), any(number == n for number, n in numbers)
    return None if has_zero == has_last else int(has_last)


def _item(row: OwnRow, neutral: str | None = None, first: int | None = None) -> OwnQuestion:
    values = row.values
    options = options_of(values)
    if not 2 <= len(options) <= MOST_OPTIONS:
        raise RejectedError(FEW_OPTIONS, f"has {len(options)} option{'s' * (len(options) != 1)}")
    if len({option.casefold() for option in options}) < len(options):
        raise RejectedError(FEW_OPTIONS, "has an option twice")
    given = {**values, "neutral": values.get("neutral") or neutral or ""}
    answer = given.get("answer", "")
    if first is not None and answer and answer not in options and 0 <= int(answer) - first < len(options):
        given["answer"] = options[int(answer) - first]
    roles = {role: _option(role, given.get(role, ""), options) for role in _ROLES}
    _complete_sides(roles, options)
    return OwnQuestion(
        item_id=values.get("id") or row.where,
        context=values.get("context") or None,
        question=values.get("question") or None,
        options=tuple(options),
        **roles,
        category=values.get("category") or None,
        group=values.get("group") or None,
        condition=values.get("condition") or None,
        cluster=values.get("cluster") or values.get("id") or row.where,
        source_row=row.where,
        flags=(flag,) if (flag := values.get("flag")) else (),
    )


def _option(role: str, text: str, options: Sequence[str]) -> str | None:
    """Return the option that a cell names by its text or its letter; None for an empty cell.

    Numbers are refused where the file does not tell whether it counts from 0 or from 1.
    """
    if not text:
        return None
    named = [option for option in options if option.casefold() == text.casefold()]
    place = _LETTERS.find(text.casefold().strip("().")) if len(text.strip("().")) == 1 else -1
    if named and 0 <= place < len(options) and options[place] != named[0]:
        raise RejectedError(NO_OPTION, f"{role} '{text}' is one option and the letter of another")
    if named:
        return named[0]
    if 0 <= place < len(options):
        return options[place]
    raise RejectedError(
        NO_OPTION, f"{role} '{printable(text, most=60)}' is neither one of the options nor the letter of one"
    )


def _complete_sides(roles: dict[str, str | None], options: Sequence[str]) -> None:
    """Name the other side of a stereotype where a single option is left for it."""
    sides = ("stereotyped", "antistereotyped")
    left = [option for option in options if option not in (*(roles[side] for side in sides), roles["neutral"])]
    for side, other in (sides, sides[::-1]):
        if roles[side] is not None and roles[other] is None and len(left) == 1:
            roles[other] = left[0]
    of_roles = [roles[role] for role in (*sides, "neutral") if roles[role] is not None]
    if (roles["stereotyped"] is None) != (roles["antistereotyped"] is None):
        raise RejectedError(
            ONE_SIDE,
            "names one side of a stereotype, and several options may be the other; give a column of the neutral option "
            "(--map neutral=COLUMN) or of the other side",
        )
    if len(set(of_roles)) < len(of_roles):
        raise RejectedError(ONE_SIDE, "gives one option two of the roles stereotyped, antistereotyped and neutral")


def _card(
    tables: Sequence[OwnTable], items: Sequence[OwnQuestion], licence: str | None, source: Mapping[str, Any]
) -> Card:
    files = ", ".join(f"`{table.name}`" for table in tables)
    n_clusters = len({item.cluster for item in items})
    counts = Counter((item.category or "", item.group or "") for item in items)
    return Card(
        data_statement=f"""\
Questions that whoever built this dataset brought along ({files}), each with its options. `answer` is the right one,
`stereotyped` and `antistereotyped` those that agree with a stereotype and contradict it, `neutral` the one that nobody
can know; each may be null. `source_row` is file and line.""",
        how_built=f"""\
Line breaks and repeated spaces became one space. Where one option is left for the other side of a stereotype, it is
that. The {len(items)} items are of {n_clusters} clusters, which are left out together; without a column for it, items
with equal contexts are one cluster, unless all contexts are equal, and other items one of their own. Rows that are no
items stand in `rejects.parquet` with their rule.""",
        annotation=Annotation(
            protocol=f"{source['protocol']} Nothing was annotated again for this dataset.",
            annotators=source["annotators"],
            per_item=source["per_item"],
        ),
        biases="The questions are what their writer thought of.",
        licence_terms=licence_terms(licence, "questions"),
        intended_use="To measure how often a model is right for each group, and which options it prefers.",
        out_of_scope_use="Do not read a good score as the absence of bias, and train nothing on it that it evaluates.",
        known_limits="\n".join(
            f"* {line}"
            for line in (
                *source["limits"],
                "Differences between groups are also differences between their questions: only like questions compare "
                "groups.",
            )
        ),
        balance=CardTable(
            header=("category", "group", "items"), rows=tuple((*of, str(n)) for of, n in sorted(counts.items()))
        ),
        citation=source["citation"],
        task_categories=("multiple-choice", "question-answering"),
        tags=("bias-evaluation",),
    )
