"""Reads answers that the authors of BBQ and StereoSet published, for items with names of options in place of texts.

Of BBQ (Parrish et al. 2022, arXiv:2110.08193) the answers in text of UnifiedQA in three formats; of StereoSet (Nadeem
et al. 2021, arXiv:2004.09456) a score for each sentence, such as a mean probability of its tokens.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import printable
from biasboard.ground.strict_json import loads
from evaluators.backend import Response
from evaluators.benchmark import AnswerFile, ImportedAnswers, PublishedPart
from evaluators.task import Asked, Prompt
from evaluators.tasks.own_questions.own_question_task import PUBLISHED_CHOICES, PUBLISHED_SCORES, TASK
from schemas.documents.dataset import Item
from schemas.files.user_tables import json_lines
from schemas.items.own_question import OwnQuestion

_ANSWERS = "answers"
"""Note that says whose answers these are, as the name of the column or of the file."""
_NO_ANSWER = Response(status="failed", error="the published file has no answer to it")


class AnswersInText:
    """The importer of ``results/UnifiedQA/preds_*.jsonl`` of BBQ.

    An answer names the option that has the same letters and digits. One that names none is kept as it is, and unread:
    they are few, and the authors leave them out (footnote 4 of the paper).
    """

    name = "bbq"
    prompt = PUBLISHED_CHOICES
    dataset = "bbq-published"
    build_command = "biasboard build own_questions --source bbq-published --input FILE"
    _OPTIONS = ("ans0", "ans1", "ans2")
    _REVISION = "https://github.com/nyu-mll/BBQ/tree/bea11bd97d79217245b5871acd247b9d6eb24598"
    _COLUMN = "_pred_"

    def files(self, folder: Path, model: str) -> Sequence[AnswerFile]:
        """Return the files in a folder and below it, which hold the answers of every model.

        Args:
            folder: The folder.
            model: Name of the column of answers, such as ``unifiedqa-t5-11b_pred_arc``.

        Raises:
            ConfigError: there is no such folder, file or column.
        """
        paths = _found(folder, "preds_*.jsonl", "the files of results/UnifiedQA")
        columns = [name for _, row in _rows(paths[0])[:1] for name in row if self._COLUMN in name]
        if model not in columns:
            raise ConfigError(
                f"--model {model}: {paths[0].name} has no such column of answers; have: {', '.join(columns) or 'none'}"
            )
        return [AnswerFile("bbq", tuple(paths), model, column=model)]

    def published(self, config: str, notes: Mapping[str, str]) -> PublishedPart | None:
        """Return where the answers are published; None if the notes name no column of theirs."""
        if self._COLUMN not in notes.get(_ANSWERS, ""):
            return None
        address = f"{self._REVISION}/results/UnifiedQA"
        return PublishedPart(address, "CC-BY-4.0", "Alicia Parrish et al., 2022", "BBQ", "CC-BY-4.0")

    def read(self, file: AnswerFile, items: Sequence[Item], prompt: Prompt, dataset: str) -> ImportedAnswers:
        """Return the answers to some items.

        Raises:
            DataError: a file cannot be read, or none of its rows belongs to an item.
        """
        answers: dict[str, str] = {}
        n_unread = 0
        for where, row in (line for path in file.paths for line in _rows(path)):
            try:
                number, answer = f"{row['category']}-{row['example_id']}", str(row[file.model])
                named = [name for name in self._OPTIONS if _letters(str(row[name])) == _letters(answer)]
            except KeyError as error:
                raise DataError(f"{where}: has no {error.args[0]}; use the published files as they are") from error
            n_unread += len(named) != 1
            # The name of the option stands for its text, which stays with its publisher.
            answers[number] = named[0] if len(named) == 1 else answer
        notes = {_ANSWERS: file.model, "rows": f"{len(answers):,}", "rows_that_name_no_option": f"{n_unread:,}"}

        def response(item: OwnQuestion) -> Response | None:
            text = answers.get(item.item_id)
            return None if text is None else Response(status="answered", text=text)

        return _imported(items, prompt, response, notes, dataset)


class SentenceScores:
    """The importer of ``code/predictions/predictions_*.json`` of StereoSet.

    The scores of an item are divided by their sum, so that they compare as in the published script whatever their unit
    is. The files of EditBias, which have the same ids, say which sentences belong together.
    """

    name = "stereoset"
    prompt = PUBLISHED_SCORES
    dataset = "stereoset-published"
    build_command = "biasboard build own_questions --source stereoset-published --input FILE"
    _REVISION = "https://github.com/moinnadeem/StereoSet/tree/c860b58cf99e8fe1809c05469999ab0865e2bb6e"
    _START = "predictions_"
    _FAULTS: Mapping[str, str] = {
        "roberta": "the published script tokenises the word of the blank without the space before it, which is part of "
        "RoBERTa's tokens"
    }
    _SENTENCES = "*_test.json"

    def files(self, folder: Path, model: str) -> Sequence[AnswerFile]:
        """Return the file of a model in a folder and below it, and those that say which sentences belong together.

        Args:
            folder: The folder.
            model: Name of the model as the names of the files begin with it, up to the next underscore.

        Raises:
            ConfigError: there is no such folder or file.
        """
        by_model: dict[str, Path] = {}
        for path in _found(folder, f"{self._START}*.json", "the files of code/predictions"):
            by_model.setdefault(path.stem.removeprefix(self._START).partition("_")[0], path)
        if model not in by_model:
            raise ConfigError(f"--model {model}: no file of its scores; have: {', '.join(by_model)}")
        sentences = _found(
            folder, self._SENTENCES, "gender_test.json, race_test.json and religion_test.json of EditBias"
        )
        return [AnswerFile("stereoset", (by_model[model], *sentences), model)]

    def published(self, config: str, notes: Mapping[str, str]) -> PublishedPart | None:
        """Return where the scores are published; None if the notes name no file of theirs."""
        name = notes.get(_ANSWERS, "")
        if not name.startswith(self._START) or printable(name) != name or "/" in name:
            return None
        address = f"{self._REVISION}/code/predictions/{name}"
        return PublishedPart(address, "CC-BY-SA-4.0", "Moin Nadeem et al., 2021", "StereoSet", "CC-BY-SA-4.0")

    def read(self, file: AnswerFile, items: Sequence[Item], prompt: Prompt, dataset: str) -> ImportedAnswers:
        """Return the scores of some items.

        Raises:
            DataError: a file cannot be read, or none of its sentences belongs to an item.
        """
        path, *others = file.paths
        try:
            scores = {str(one["id"]): float(one["score"]) for one in _json(path)["intrasentence"]}
            ids = {
                str(one["id"])[:8]: {
                    f"text{place}": str(sentence["id"]) for place, sentence in enumerate(one["data"].values(), start=1)
                }
                for other in others
                for one in _json(other)
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            names = ", ".join(one.name for one in file.paths)
            raise DataError(f"{names}: have another form than the published files; use these as they are") from error
        if not all(math.isfinite(score) and score >= 0 for score in scores.values()):
            raise DataError(f"{path.name}: has a score that is no number of 0 or more; use the published file as it is")

        def response(item: OwnQuestion) -> Response | None:
            sentences = ids.get(item.item_id, {})
            found = [scores[sentences[name]] for name in item.options if sentences.get(name) in scores]
            total = sum(found)
            if len(found) < len(item.options):
                return None
            # Scores of 0 throughout say that nothing is preferred.
            shares = [score / total if total else 1 / len(found) for score in found]
            unknown = (None,) * len(found)
            return Response(
                status="answered",
                option_logprobs=tuple(math.log(share) if share else -math.inf for share in shares),
                option_end_logprobs=unknown,
                option_token_counts=unknown,
            )

        notes = {_ANSWERS: path.name, "rows": f"{len(scores):,}"}
        if (fault := self._FAULTS.get(file.model.partition("-")[0])) is not None:
            notes["known_fault"] = fault
        return _imported(items, prompt, response, notes, dataset)


def _imported(
    items: Sequence[Item],
    prompt: Prompt,
    response: Callable[[OwnQuestion], Response | None],
    notes: dict[str, str],
    dataset: str,
) -> ImportedAnswers:
    """Return the responses to some items; failed ones where a file has none.

    Raises:
        DataError: no item has an answer.
    """
    questions = [item for item in items if isinstance(item, OwnQuestion)]
    found = [response(item) for item in questions]
    if all(one is None for one in found):
        raise DataError(f"{notes[_ANSWERS]}: answers no item of {dataset}; build the dataset from the same files")
    return ImportedAnswers(
        requests=[list(TASK.requests(item, Asked(prompt))) for item in questions],
        responses=[[_NO_ANSWER if one is None else one] for one in found],
        notes=notes | {"items_without_row": str(found.count(None))},
        corruption=None,
    )


def _found(folder: Path, pattern: str, what: str) -> list[Path]:
    if not folder.is_dir():
        raise ConfigError(f"--input {folder}: no such folder; give the one with {what}")
    if not (paths := sorted(folder.rglob(pattern))):
        raise ConfigError(f"--input {folder}: no file {pattern} here; give the folder with {what}")
    return paths


def _rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the objects on the lines of a file, each with its place.

    Raises:
        DataError: a line holds none.
    """
    check_readable(path)
    rows = []
    for number, value, fault in json_lines(path.read_bytes()):
        where = f"{path.name}:{number}"
        if fault is not None or not isinstance(value, dict):
            raise DataError(f"{where}: {fault or 'is no object'}; use the published files as they are")
        rows.append((where, value))
    return rows


def _json(path: Path) -> Any:
    check_readable(path)
    return loads(path.read_text(encoding="utf-8"), where=path.name, remedy="use the published files as they are")


def _letters(text: str) -> str:
    """Return the letters and digits of a text in one spelling."""
    return "".join(sign for sign in unicodedata.normalize("NFKC", text).casefold() if sign.isalnum())
