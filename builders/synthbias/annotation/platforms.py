"""The formats for exporting sentences and importing votes."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import TypeAlias

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.strict_json import JsonValue
from builders.synthbias.annotation import model_votes
from builders.synthbias.annotation.annotated import AskedSentence
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.planning import Request
from builders.synthbias.annotation.safe_csv import columns_of, read_records, read_rows, render
from builders.synthbias.annotation.vote_intake import Refusal, SubmittedVotes, utc_time
from builders.synthbias.annotation.votes import Vote, VoteAnswer, VoteQuestion

_MOST_CHARACTERS = 100
"""Longest name of a file without its ending: file systems take 255 bytes."""


class Format(StrEnum):
    """The values of ``--file-format``."""

    CSV = "csv"
    LABEL_STUDIO = "label-studio"
    MODEL = "model"
    """A dataset of questions for a language model, and the runs on it."""


def _rendered(sentences: Sequence[AskedSentence], form: Format, annotator_id: str) -> str:
    """Return sentences in a format; only a CSV file names the annotator, if it is known."""
    if form is Format.LABEL_STUDIO:
        return strict_json.dumps([{"data": {**sentence.fields}} for sentence in sentences])
    # A table to fill in: yes or no stands beside each question, and the name of who answers.
    of_questions = (name for each in VoteQuestion for name in (f"ask_{each}", each))
    columns = ("item_id", "annotator_id", "sentence", *of_questions)
    rows = ({"annotator_id": annotator_id, **sentence.fields} for sentence in sentences)
    # By the mark, a spreadsheet sees that the file is UTF-8, and writes it as such again.
    return "\ufeff" + render(columns, ([row.get(column, "") for column in columns] for row in rows))


def batch_files(
    name: str, requests: Iterable[Request], sentences: Mapping[str, AskedSentence], form: Format
) -> dict[str, str]:
    """Return the files of a batch by name.

    There is one for each annotator to whom the plan assigns sentences. Without assignments there is one for each group
    and number of votes, because platforms ask all sentences of a project or batch equally often. Nobody may get both
    groups.
    """
    parts: dict[tuple[str, str], list[AskedSentence]] = defaultdict(list)
    for request in requests:
        whose = f"for-{request.annotator_id}" if request.annotator_id else f"{request.group}-{request.n_votes}-votes"
        parts[f"{name}-{whose}", request.annotator_id].append(sentences[request.item_id])
    return _files(parts, form)


def entrance_files(form: Format) -> dict[str, str]:
    """Return the files of the entrance test by name, without its answers."""
    return _files({("entrance", ""): [solved.sentence for solved in TEST]}, form)


def _files(parts: Mapping[tuple[str, str], Sequence[AskedSentence]], form: Format) -> dict[str, str]:
    """Return the files of sentences by the name and annotator of a part, in an order that tells nothing of them."""
    ending = "json" if form is Format.LABEL_STUDIO else "csv"
    n_of_name = Counter(_file_name(name).casefold() for name, _ in parts)
    files = {}
    for (name, annotator_id), sentences in sorted(parts.items()):
        # Two people must not share a file, though their names differ in characters that file names do not have.
        is_shared = n_of_name[_file_name(name).casefold()] > 1
        stem = _file_name(name) + (f"-{_digest(name)[:8]}" if is_shared else "")
        mixed = sorted(sentences, key=lambda sentence: _digest(f"{name}|{sentence.item_id}"))
        files[f"{stem}.{ending}"] = _rendered(mixed, form, annotator_id)
    if form is Format.LABEL_STUDIO:
        files["interface.xml"] = INTERFACE
    return files


def _file_name(text: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in text)[:_MOST_CHARACTERS]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_submissions(path: Path, form: Format, columns: Mapping[str, str]) -> list[SubmittedVotes]:
    """Read submissions in a format.

    Raises:
        DataError: the file is broken; the message has the line and a remedy.
    """
    source = f"{form}:{path.name}"
    if form is Format.LABEL_STUDIO:
        return list(label_studio_submissions(path, source=source))
    if form is Format.MODEL:
        return model_votes.read_submissions(path)
    names, _ = read_rows(path, remedy="give a form that annotate export wrote, or a file like votes.csv")
    # Of votes.csv, each answer is a row; of a form, or of the results of a platform, each sentence.
    if "question" not in names:
        return list(wide_submissions(path, source=source, columns=columns))
    columns_of_votes = ",".join(columns_of(Vote))
    votes = read_records(
        path,
        Vote,
        remedy=f"give a file with the columns {columns_of_votes}",
        other_columns=f"; needs exactly {columns_of_votes}",
        any_order=True,
    )
    return [
        SubmittedVotes(
            where=where,
            item_id=vote.item_id,
            pair_id=vote.pair_id,
            annotator_id=vote.annotator_id,
            answers={vote.question: vote.answer},
            submitted_at=utc_time(vote.submitted_at, where=where),
            source=vote.source or source,
        )
        for where, vote in votes
    ]


_Object: TypeAlias = dict[str, JsonValue]
_EXPORT_JSON = "export the project as JSON (not JSON-MIN or CSV)"

INTERFACE = resources.files("builders.synthbias.annotation").joinpath("page", "label_studio.xml").read_text("utf-8")
"""Labelling interface (Settings, Labeling Interface, Code); the export has its names in ``from_name``."""


def label_studio_submissions(path: Path, *, source: str) -> Iterator[SubmittedVotes]:
    """Read the annotations of an exported project.

    Raises:
        DataError: the file is broken, or a task is none of ours.
    """
    tasks = strict_json.read(path, remedy=_EXPORT_JSON)
    if not isinstance(tasks, list):
        raise DataError(f"{path}: is no list of tasks; {_EXPORT_JSON}")
    for task_number, task in enumerate(tasks, 1):
        of_task = f"{path}: task {task_number}"
        data = _object(_object(task, of_task).get("data"), f"{of_task}: data")
        annotations = _object(task, of_task).get("annotations")
        if not isinstance(annotations, list):
            raise DataError(f"{of_task}: has no list of annotations; {_EXPORT_JSON}")
        for number, value in enumerate(annotations, 1):
            where = f"{of_task}, annotation {number}"
            annotation = _object(value, where)
            answers = _answers(annotation, where)
            annotator = annotation.get("completed_by")
            # Either the id of a user, or an object that holds it.
            annotator = annotator.get("id") if isinstance(annotator, dict) else annotator
            if isinstance(annotator, bool) or not isinstance(annotator, int | str) or annotator == "":
                raise DataError(f"{where}: completed_by names nobody; {_EXPORT_JSON}")
            item_id, time = data.get("item_id"), annotation.get("created_at")
            if not isinstance(item_id, str):
                raise DataError(
                    f"{of_task}: data has no item_id; export a project into which exported tasks were imported"
                )
            yield SubmittedVotes(
                where,
                item_id,
                f"label-studio-{annotator}",
                answers,
                submitted_at=utc_time(time, where=where) if isinstance(time, str) else "",
                source=source,
                refusal=Refusal.CANCELLED if annotation.get("was_cancelled") is True else None,
            ).of_whole_sentence()


def _answers(annotation: _Object, where: str) -> dict[VoteQuestion, VoteAnswer]:
    results = annotation.get("result")
    if not isinstance(results, list):
        raise DataError(f"{where}: has no list result; {_EXPORT_JSON}")
    answers: dict[VoteQuestion, VoteAnswer] = {}
    for result in (_object(value, where) for value in results):
        if result.get("type") != "choices":
            continue
        name = result.get("from_name")
        if name not in list(VoteQuestion):
            have = ", ".join(VoteQuestion)
            raise DataError(f"{where}: from_name '{name}' is no question; have: {have}: use the exported interface")
        choices = _object(result.get("value"), where).get("choices")
        if choices not in (["yes"], ["no"]):
            raise DataError(f"{where}: the answer to '{name}' is not yes or no; use the exported interface")
        answers[VoteQuestion(str(name))] = VoteAnswer.YES if choices == ["yes"] else VoteAnswer.NO
    return answers


def _object(value: JsonValue, where: str) -> _Object:
    if not isinstance(value, dict):
        raise DataError(f"{where}: is no JSON object; {_EXPORT_JSON}")
    return value


COLUMNS = ("item_id", "annotator_id", "status", "submitted_at", *VoteQuestion)
"""Columns of a table with a row for each sentence and person; ``--map`` renames them."""
OPTIONAL = ("status", "submitted_at")
"""Columns that a file may lack."""
_ANSWERS: Mapping[str, VoteAnswer] = {
    **dict.fromkeys(("yes", "y", "true", "1"), VoteAnswer.YES),
    **dict.fromkeys(("no", "n", "false", "0"), VoteAnswer.NO),
}
_TAKEN = ("", "submitted", "approved", "awaiting review", "complete", "completed")
_REJECTED = ("rejected", "returned", "timed-out", "expired", "screened out")


def column_map(changes: Sequence[str], form: Format) -> dict[str, str]:
    """Return the column of each field, with changes such as ``annotator_id=PROLIFIC_PID`` applied.

    Raises:
        ConfigError: a change has another form, its field is unknown, or the format has no columns.
    """
    columns = {str(name): str(name) for name in COLUMNS}
    if changes and form is not Format.CSV:
        raise ConfigError(f"--map {changes[0]}: --file-format {form} has no columns; leave --map out")
    for change in changes:
        name, sign, column = change.partition("=")
        if name not in COLUMNS or not sign or not column:
            raise ConfigError(f"--map {change}: write FIELD=COLUMN; fields: {', '.join(COLUMNS)}")
        columns[name] = column
    return columns


def wide_submissions(path: Path, *, source: str, columns: Mapping[str, str]) -> Iterator[SubmittedVotes]:
    """Read the assignments of a file.

    Raises:
        DataError: the file is broken, lacks a column, or has an unknown answer or status.
    """
    names, rows = read_rows(path, remedy="export the results as CSV again")
    missing = [
        name if name == column else f"{name} ({column})"
        for name, column in columns.items()
        if column not in names and name not in OPTIONAL
    ]
    if missing:
        raise DataError(
            f"{path}:1: no column for {', '.join(missing)}; name it with --map FIELD=COLUMN; have: {', '.join(names)}"
        )
    for where, row in rows:
        cells = {name: row.get(column, "").strip() for name, column in columns.items()}
        if not any(cells[name] for name in ("annotator_id", *VoteQuestion)):
            continue  # Nobody has begun with a sentence that has neither a name nor an answer.
        for name in ("item_id", "annotator_id"):
            if not cells[name]:
                raise DataError(f"{where}: {columns[name]} is empty; fill it in, or take out rows that nobody answered")
        status = cells["status"].casefold()
        if status not in (*_TAKEN, *_REJECTED):
            have = ", ".join(name for name in (*_TAKEN, *_REJECTED) if name)
            raise DataError(
                f"{where}: {columns['status']} is '{cells['status']}'; have: {have}: correct the line, or map status "
                "to another column"
            )
        answers: dict[VoteQuestion, VoteAnswer] = {}
        for question in VoteQuestion if status not in _REJECTED else ():
            given = cells[question]
            if given and given.casefold() not in _ANSWERS:
                raise DataError(
                    f"{where}: {columns[question]} is '{given}', not yes or no; correct the line, or take it out if it "
                    "is no assignment"
                )
            if given:
                answers[question] = _ANSWERS[given.casefold()]
        yield SubmittedVotes(
            where,
            cells["item_id"],
            cells["annotator_id"],
            answers,
            submitted_at=utc_time(cells["submitted_at"], where=where),
            source=source,
            refusal=Refusal.REJECTED if status in _REJECTED else None,
        ).of_whole_sentence()
