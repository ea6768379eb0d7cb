"""The formats in which sentences go out and votes come in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from builders.synthbias.annotation import label_studio, model_votes, wide_csv
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.intake import Submission, utc_time
from builders.synthbias.annotation.planning import Request
from builders.synthbias.annotation.safe_csv import render
from builders.synthbias.annotation.sentences import FIELDS, Sentence
from builders.synthbias.annotation.state import read_votes


class Format(StrEnum):
    """The values of ``--format``."""

    CSV = "csv"
    LABEL_STUDIO = "label-studio"
    MTURK = "mturk"
    MODEL = "model"
    """A dataset that a language model is asked, and the runs that asked it."""


_SETTINGS: Mapping[Format, tuple[str, str]] = {
    Format.LABEL_STUDIO: ("interface.xml", label_studio.INTERFACE),
    Format.MTURK: ("layout.html", wide_csv.LAYOUT),
}
"""File that is exported beside the tasks: name and content."""


def render_sentences(sentences: Sequence[Sentence], form: Format) -> str:
    """Return sentences in a format."""
    if form is Format.LABEL_STUDIO:
        return label_studio.render_tasks(sentences)
    if form is Format.MTURK:
        return wide_csv.render_hits(sentences)
    return render(FIELDS, (list(sentence.fields.values()) for sentence in sentences))


def batch_files(
    name: str, requests: Iterable[Request], sentences: Mapping[str, Sentence], form: Format
) -> dict[str, str]:
    """Return the files of a batch by name.

    There is one for each annotator to whom the plan assigns sentences. Otherwise there is one for each group and number
    of votes, because platforms ask each sentence of a project or batch equally often. Nobody may get both groups.
    """
    parts: dict[str, list[Sentence]] = defaultdict(list)
    for request in requests:
        whose = f"for-{request.annotator_id}" if request.annotator_id else f"{request.group}-{request.n_votes}-votes"
        parts[f"{name}-{_file_name(whose)}"].append(sentences[request.item_id])
    return _files(parts, form)


def entrance_files(form: Format) -> dict[str, str]:
    """Return the files of the entrance test by name, without its answers."""
    return _files({"entrance": [solved.sentence for solved in TEST]}, form)


def _files(parts: Mapping[str, Sequence[Sentence]], form: Format) -> dict[str, str]:
    ending = "json" if form is Format.LABEL_STUDIO else "csv"
    files = {f"{name}.{ending}": render_sentences(sentences, form) for name, sentences in sorted(parts.items())}
    if form in _SETTINGS:
        settings, content = _SETTINGS[form]
        files[settings] = content
    return files


def _file_name(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in text)


def read_submissions(path: Path, form: Format, columns: Mapping[str, str]) -> list[Submission]:
    """Read submissions in a format.

    Args:
        path: The file.
        form: Its format.
        columns: Column of each field of a wide CSV file.

    Raises:
        DataError: the file is broken; the message says the line and the remedy.
    """
    source = f"{form}:{path.name}"
    if form is Format.LABEL_STUDIO:
        return label_studio.read_submissions(path, source=source)
    if form is Format.MTURK:
        return wide_csv.read_submissions(path, source=source, columns=columns)
    if form is Format.MODEL:
        return model_votes.read_submissions(path)
    return [
        Submission(
            where=where,
            item_id=vote.item_id,
            pair_id=vote.pair_id,
            annotator_id=vote.annotator_id,
            answers={vote.question: vote.answer},
            submitted_at=utc_time(vote.submitted_at, where=where),
            source=vote.source or source,
        )
        for where, vote in read_votes(path)
    ]
