"""Wide CSV files, with a row for each assignment, as Mechanical Turk has them and, with other columns, survey tools."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation.intake import Refusal, Submission, utc_time
from builders.synthbias.annotation.safe_csv import Row, read_rows, render
from builders.synthbias.annotation.sentences import FIELDS, Sentence
from builders.synthbias.annotation.votes import Answer, Question

COLUMNS: Mapping[str, str] = {
    "item_id": "Input.item_id",
    "annotator_id": "WorkerId",
    "status": "AssignmentStatus",
    "submitted_at": "SubmitTime",
    "coherent": "Answer.coherent",
    "first": "Answer.first",
    "second": "Answer.second",
}
"""Column of each field in the results of a batch of Mechanical Turk; ``--map`` replaces them."""
OPTIONAL = ("status", "submitted_at")
"""Fields that a file may lack."""
_ANSWERS: Mapping[str, Answer] = {
    **dict.fromkeys(("yes", "y", "true", "1"), Answer.YES),
    **dict.fromkeys(("no", "n", "false", "0"), Answer.NO),
}
_TAKEN = ("", "submitted", "approved", "awaiting review", "complete", "completed")
_REJECTED = ("rejected", "returned", "timed-out", "expired", "screened out")

LAYOUT = """\
<script src="https://assets.crowd.aws/crowd-html-elements.js"></script>
<crowd-form answer-format="flatten-objects">
  <p><big>${sentence}</big></p>
  <p>${ask_coherent}<br>
    <label><input type="radio" name="coherent" value="yes" required> yes</label>
    <label><input type="radio" name="coherent" value="no"> no</label></p>
  <p>If you answered no, leave the other two questions out.</p>
  <p>${ask_first}<br>
    <label><input type="radio" name="first" value="yes"> yes</label>
    <label><input type="radio" name="first" value="no"> no</label></p>
  <p>${ask_second}<br>
    <label><input type="radio" name="second" value="yes"> yes</label>
    <label><input type="radio" name="second" value="no"> no</label></p>
</crowd-form>
"""
"""Layout of a HIT; the names of its inputs become the columns ``Answer.*``."""


def render_hits(sentences: Sequence[Sentence]) -> str:
    """Return sentences as the input of a batch: a HIT for each, in columns that the layout names."""
    rows = (
        # The layout inserts cells into its page as they are; the ids are not shown, and come back in the results.
        [text if name in ("item_id", "pair_id") else html.escape(text) for name, text in sentence.fields.items()]
        for sentence in sentences
    )
    return render(FIELDS, rows)


def column_map(changes: Sequence[str]) -> dict[str, str]:
    """Return the column of each field after changes such as ``annotator_id=PROLIFIC_PID``.

    Raises:
        ConfigError: a change names no field.
    """
    columns = dict(COLUMNS)
    for change in changes:
        name, sign, column = change.partition("=")
        if name not in COLUMNS or not sign or not column:
            raise ConfigError(f"--map {change}: write FIELD=COLUMN; fields: {', '.join(COLUMNS)}")
        columns[name] = column
    return columns


def read_submissions(path: Path, *, source: str, columns: Mapping[str, str]) -> list[Submission]:
    """Read the assignments of a file.

    Args:
        path: CSV file with a row for each assignment.
        source: Entry of the column ``source``.
        columns: Column of each field.

    Raises:
        DataError: the file is broken, lacks a column, or has an answer or status that nobody knows.
    """
    names, rows = read_rows(path, remedy="export the results as CSV again")
    missing = [f"{name} ({column})" for name, column in columns.items() if column not in names and name not in OPTIONAL]
    if missing:
        raise DataError(
            f"{path}:1: no column for {', '.join(missing)}; name it with --map FIELD=COLUMN; have: {', '.join(names)}"
        )
    return [_submission(row, source, columns) for row in rows]


def _submission(row: Row, source: str, columns: Mapping[str, str]) -> Submission:
    cells = {name: row.cells.get(column, "").strip() for name, column in columns.items()}
    for name in ("item_id", "annotator_id"):
        if not cells[name]:
            raise DataError(f"{row.where}: {columns[name]} is empty; take out rows that are no assignments")
    rejected = _is_rejected(row.where, columns["status"], cells["status"])
    answers: dict[Question, Answer] = {}
    for question in Question:
        given = cells[question]
        if given and not rejected:
            answers[question] = _answer(row.where, columns[question], given)
    return Submission.on_sentence(
        row.where,
        cells["item_id"],
        cells["annotator_id"],
        answers,
        submitted_at=utc_time(cells["submitted_at"], where=row.where),
        source=source,
        refusal=Refusal.REJECTED if rejected else None,
    )


def _is_rejected(where: str, column: str, status: str) -> bool:
    if status.casefold() in (*_TAKEN, *_REJECTED):
        return status.casefold() in _REJECTED
    have = ", ".join(name for name in (*_TAKEN, *_REJECTED) if name)
    raise DataError(f"{where}: {column} is '{status}'; have: {have}: correct the line, or map status to another column")


def _answer(where: str, column: str, given: str) -> Answer:
    found = _ANSWERS.get(given.casefold())
    if found is None:
        raise DataError(
            f"{where}: {column} is '{given}', not yes or no; correct the line, or take it out if it is no assignment"
        )
    return found
