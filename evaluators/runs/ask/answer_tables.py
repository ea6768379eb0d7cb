"""Tables of answers: written with the questions, to be filled in by anybody, and read back from wherever they come.

A row answers one question in one way: with an option, with a text, or with a number for each option.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import listed, printable, protected, unprotected
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response, Runtime
from evaluators.harness import ExportedTask, HarnessLog, LoggedAnswer
from evaluators.runs.measure.recording import exchange_of
from evaluators.runs.plan.exported_questions import exported_task
from evaluators.runs.plan.plan import Plan
from evaluators.task import Prompt, prompt_names
from schemas.documents.record import ExchangeStatus
from schemas.documents.result import NOTE, ScoringMode
from schemas.files.user_tables import fault_of, user_table

_GIVE = "give a file of answers; biasboard questions csv writes one to fill in"
_PLAIN = ("id", "prompt", "options", "option", "text", "status")
_SCORE = re.compile(r"(logprob|probability)_[1-9]\d{0,3}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|-inf", re.ASCII | re.IGNORECASE)
_STATUSES = ("answered", "truncated", "refused", "failed")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_NAMED = 4
_MOST_SHOWN = 60


def _offered(request: Request) -> tuple[str, ...]:
    """Return the options of a question, as a person reads them."""
    options = request.options if isinstance(request, ChoiceRequest) else request.outcomes
    return tuple(option.strip() for option in options)


def write_table(task: ExportedTask, folder: Path) -> str:
    """Write the questions of a task as a CSV file to be filled in; return which columns are for answers."""
    requests = [question.request for question in task.questions]
    n_options = max(len(_offered(request)) for request in requests)
    if isinstance(requests[0], ChoiceRequest):
        answers = [f"logprob_{number}" for number in range(1, n_options + 1)]
    else:
        # An option alone states no confidence.
        answers = ["option", "text"] if n_options and not requests[0].asks_confidence else ["text"]
    # Spreadsheets take a file for UTF-8 only if it begins with a byte order mark.
    with (folder / f"{task.name}.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "prompt", "options", *answers, "status"])
        for question, request in zip(task.questions, requests, strict=True):
            cells = (question.id, request.prompt, " | ".join(_offered(request)))
            writer.writerow([*map(protected, cells), *("" for _ in answers), ""])
    return f"{answers[0]} to {answers[-1]}" if len(answers) > 2 else " or ".join(answers)


def read_answers(path: Path, plan: Plan, note: str) -> HarnessLog:
    """Return the answers in a table as those that a log holds.

    Raises:
        ConfigError: the prompt asks for another kind of answer, or more than once where an item has one row.
        DataError: the file cannot be read, or a row is no answer to a question of the plan.
    """
    check_readable(path, remedy=_GIVE)
    raw = path.read_bytes()
    table = user_table(path, raw)
    heads = ["id" if (name := head.strip().casefold()) == "item_id" else name for head in table.heads]
    read = [head for head in heads if head in _PLAIN or _SCORE.fullmatch(head)]
    shown = listed([f"'{printable(head, most=40)}'" for head in heads if head], most=12)
    if "id" not in read or not {*read} - {"id", "prompt", "options"}:
        lacking = "id" if "id" not in read else "answers: option, text, or logprob_1 or probability_1 and so on"
        raise DataError(f"--input {path}: has no column {lacking}; it has {shown}; {_GIVE}")
    for head in read:
        if read.count(head) > 1:
            raise DataError(f"--input {path}: has {read.count(head)} columns named '{head}'; rename all but one")
    task = exported_task(plan)
    requests = {question.id: question.request for question in task.questions}
    questions = _Questions(plan, requests, Counter(key.rpartition("#")[0] for key in requests))
    answers: dict[str, LoggedAnswer] = {}
    for record in table.records:
        where = f"{printable(path.name)}:{record.line}"
        if not record.fault and not any(field.strip() for field in record.fields):
            continue
        if (fault := record.fault or fault_of(record, len(heads), table.wrong_bytes)) is not None:
            raise DataError(f"{where}: {fault.partition('; ')[0]}; correct the row")
        cells = ((head, cell) for head, cell in zip(heads, record.fields, strict=True) if cell.strip())
        # Only a text keeps its white space.
        row = {head: cell if head == "text" else unprotected(cell.strip()) for head, cell in cells}
        if "id" not in row:
            raise DataError(f"{where}: has no id; give that of the question")
        key = questions.named(row["id"], where)
        request = questions.requests[key]
        if (response := _response(row, request, questions, where)) is None:
            continue
        prompt = row.get("prompt", request.prompt)
        asked = request if prompt.split() == request.prompt.split() else replace(request, prompt=prompt)
        first = answers.setdefault(key, LoggedAnswer(where=where, question_id=key, asked=asked, response=response))
        if first.response != response:
            raise DataError(f"{where}: another answer to {printable(key)} than at {first.where}; keep one of them")
    if not answers:
        raise DataError(f"--input {path}: no row has an answer; fill in the file")
    sha256 = hashlib.sha256(raw).hexdigest()
    not_read = [f"'{printable(head, most=40)}'" for head in dict.fromkeys(heads) if head and head not in read]
    return HarnessLog(
        name=printable(path.name),
        task=plan.task.name,
        exported=task.exported,
        answers=[*answers.values()],
        # Nothing but its answers is known about who gave them.
        identity={"backend": "import", "answers": sha256, NOTE: note, "commit": None, "precision": None},
        runtime=Runtime(settings={"answers_sha256": sha256, NOTE: note}),
        missing="the file has no answer to it",
        remarks=[
            *(f"column that is not read: {name}" for name in not_read[:_MOST_NAMED]),
            "answers from a file have no rank on the board, which says that they are reported",
        ],
    )


@dataclass(frozen=True, slots=True)
class _Questions:
    """The questions of a plan, by which rows find theirs."""

    plan: Plan
    requests: Mapping[str, Request]
    """Requests by the id of the question."""
    counts: Mapping[str, int]
    """Number of requests about each item, by the part of their ids that they share."""

    def named(self, name: str, where: str) -> str:
        """Return the id of the question that a row names by it, or by its item if that is asked once."""
        if name in self.requests:
            return name
        prompt, n = self.plan.prompt, self.counts.get(name)
        if n == 1:
            return f"{name}#0"
        if n is None:
            raise DataError(
                f"{where}: the id '{printable(name, most=_MOST_SHOWN)}' is none of {len(self.requests):,} questions "
                f"of config '{self.plan.selection.config}' with prompt '{prompt.id}', such as "
                f"'{printable(next(iter(self.requests)))}'; correct it, or name what was asked: --config, --prompt"
            )
        once = []
        for other in self._with_scoring(prompt.scoring):
            part = next(iter(replace(self.plan, prompt=other, chosen_normalisation=None).parts))
            once += [other] if len(part.requests[0]) == 1 else []
        raise ConfigError(
            f"{where}: '{printable(name)}' is an item, about which prompt '{prompt.id}' asks {n} times; write a row "
            f"for each question, with the ids {printable(name)}#0 to #{n - 1}, as biasboard questions csv does"
            f"{self._to_take(once, 'which asks once')}"
        )

    def other_kind(self, told: str, asks: str) -> ConfigError:
        """Return the error about a row with another kind of answer than the prompt asks for."""
        is_text = self.plan.prompt.scoring == "generation"
        purpose = "which scores options" if is_text else "which is answered in text"
        others = self._to_take(self._with_scoring("option_logprob" if is_text else "generation"), purpose)
        return ConfigError(f"{told}, and prompt '{self.plan.prompt.id}' {asks}{others}")

    def _with_scoring(self, scoring: ScoringMode) -> list[Prompt]:
        prompts = self.plan.task.prompts.values()
        return [one for one in prompts if one.scoring == scoring and one.requires != "import" and not one.follow_up]

    def _to_take(self, prompts: Sequence[Prompt], purpose: str) -> str:
        names = listed(prompt_names(self.plan.task, prompts), most=_MOST_NAMED)
        return f"; or take --prompt {names}, {purpose}" if names else ""


def _response(row: Mapping[str, str], request: Request, questions: _Questions, where: str) -> Response | None:
    """Return the response in a row; None if it has none."""
    scores = {column: cell for column, cell in row.items() if _SCORE.fullmatch(column)}
    kinds = [*(kind for kind in ("option", "text") if kind in row), *{name.partition("_")[0]: None for name in scores}]
    if len(kinds) > 1:
        raise DataError(f"{where}: is answered with {' and '.join(kinds)}; keep one of them")
    status = row.get("status", "").casefold()
    if status and status not in _STATUSES:
        raise DataError(
            f"{where}: the status '{printable(status, most=_MOST_SHOWN)}' is none of {', '.join(_STATUSES)}; correct it"
        )
    if status in ("refused", "failed"):
        if kinds not in ([], ["text"]):
            raise DataError(f"{where}: has the status {status} and is answered with {kinds[0]}; keep one of them")
        text = row.get("text") if isinstance(request, GenerateRequest) else None
        known: ExchangeStatus = "refused" if status == "refused" else "failed"
        return Response(status=known, text=text, error=f"{status}, as the file says")
    if not kinds and not status:
        return None
    if isinstance(request, ChoiceRequest):
        if "option" in row or "text" in row:
            raise questions.other_kind(f"{where}: is answered with {kinds[0]}", "scores options; give each a number")
        logprobs = _logprobs(scores, _offered(request), where)
        unknown = (None,) * len(logprobs)
        return Response(
            status="answered", option_logprobs=logprobs, option_end_logprobs=unknown, option_token_counts=unknown
        )
    if scores:
        raise questions.other_kind(f"{where}: is answered with {kinds[0]}", "asks for a text; give one")
    text = row.get("text", "") if "option" not in row else _naming(row["option"], request, questions.plan, where)
    return Response(status="answered", text=text, finish_reason="length" if status == "truncated" else None)


def _logprobs(scores: Mapping[str, str], options: Sequence[str], where: str) -> tuple[float, ...]:
    """Return the log-probability of each option, in nats."""
    given = {int(column.partition("_")[2]): (column, cell) for column, cell in scores.items()}
    if given.keys() != {*range(1, len(options) + 1)}:
        offered = printable(" | ".join(options), most=_MOST_SHOWN)
        have = listed(list(scores), most=_MOST_NAMED) or "none"
        raise DataError(
            f"{where}: {len(options)} options need a number each ({offered}), and the row has {have}; give each its "
            "logprob_ or probability_, numbered from 1 in the order of the question"
        )
    logprobs = []
    for _, (column, cell) in sorted(given.items()):
        value = float(cell) if _NUMBER.fullmatch(cell) else math.nan
        if column.startswith("logprob"):
            fits, what = value <= 0, "a log-probability, which is 0 or below, in nats"
        else:
            fits, what = 0 <= value <= 1, "a probability, from 0 to 1"
        if not fits:
            raise DataError(f"{where}: {column} is '{printable(cell, most=_MOST_SHOWN)}', not {what}; correct it")
        if column.startswith("probability"):
            value = math.log(value) if value else -math.inf
        logprobs.append(value)
    return tuple(logprobs)


def _naming(option: str, request: GenerateRequest, plan: Plan, where: str) -> str:
    """Return an answer in text that the task reads as an option, which is given by its letter, text or outcome."""

    def read(text: str) -> str | None:
        exchange = exchange_of(request, Response(status="answered", text=text), show_prompt=True, chat=False)
        reading = plan.task.reading([exchange], plan.normalisation, plan.prompt.id).reading
        if reading is None or 1 not in reading.probabilities:
            return None
        return reading.outcomes[reading.probabilities.index(1)]

    # A text without options may be read as one of other outcomes.
    named = read(option) if request.outcomes else None
    own = next((outcome for outcome in request.outcomes if outcome.casefold() == option.casefold()), None)
    if named is not None and own in (None, named):
        return option
    if own is not None and named is None:
        # A text with words that take an answer back is no answer by itself; its letter is.
        with suppress(IndexError):
            letter = _LETTERS[request.outcomes.index(own)]
            if read(letter) == own:
                return letter
    offers = f"one of {printable(' | '.join(request.outcomes), most=200)}" if request.outcomes else "any option"
    raise DataError(
        f"{where}: the option '{printable(option, most=_MOST_SHOWN)}' is not read as {offers}; give its letter or its "
        "words, or what was answered in the column text"
    )
