"""Matches the answers in the log of another harness with our questions, and turns them into records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from biasboard.ground.errors import DataError
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.harness import (
    AskedRequest,
    CountTokens,
    HarnessLog,
    LoggedAnswer,
    LoggedChoice,
    LoggedText,
    OptionTokens,
)
from evaluators.runs.measure.records import records_of, whole
from evaluators.runs.plan.plan import Plan, PlannedPart
from evaluators.runs.plan.questions import question_id, requests_sha256
from schemas.documents.record import Record

_SHOWN = 40
"""Number of characters of two texts that are shown where they differ."""
_UNANSWERED = Response(status="failed", error="the log has no answer to it")


class Matched(NamedTuple):
    """The records of a log."""

    parts: list[list[Record]]
    n_missing: int
    """Number of questions that the log does not answer."""


def match_log(log: HarnessLog, plan: Plan, count: CountTokens | None) -> Matched:
    """Return one record per item of a plan from the answers in a log.

    Args:
        log: The log.
        plan: The plan that was exported.
        count: Function that counts the tokens of options; None if the tokenizer is unknown.

    Raises:
        DataError: an answer is to another question than the plan asks, two answers are to one question, or the log or
            our questions were changed.
    """
    answers: dict[str, LoggedAnswer] = {}
    for answer in log.answers:
        first = answers.setdefault(answer.question_id, answer)
        if first is not answer:
            raise DataError(
                f"{answer.where}: question {answer.question_id} was answered before, at {first.where}; "
                "import the file as the harness wrote it"
            )
    n_missing = 0
    parts = []
    asked: list[tuple[str, Request]] = []
    for part in plan.parts:
        found = _answers_of(part, answers, log)
        asked += found.asked
        n_missing += sum(answer is None for of_item in found.answers for answer in of_item)
        parts.append(records_of(plan, part, part.requests, _responses(part, found.answers, count), chat=False))
    if answers:
        other = next(iter(answers.values()))
        raise DataError(
            f"{other.where}: {len(answers)} questions belong to no item of {plan.selection.manifest.name} "
            f"{plan.selection.config}, such as {other.question_id}; name the dataset that was exported"
        )
    if requests_sha256(asked) != log.exported.requests_sha256:
        raise DataError(
            f"{log.name}: task '{plan.task.name}' asks {plan.selection.config} in other words than were exported; "
            "export and ask again"
        )
    if log.doubt is not None:
        raise DataError(log.doubt)
    return Matched(parts, n_missing)


class _Found(NamedTuple):
    """The questions of a part and their answers."""

    asked: list[tuple[str, Request]]
    """Id and request of each question."""
    answers: list[list[LoggedAnswer | None]]
    """The answers of each item; None where the log has none."""


def _answers_of(part: PlannedPart, answers: dict[str, LoggedAnswer], log: HarnessLog) -> _Found:
    """Take the answers to the questions of a part out of those of a log."""
    is_moved = log.exported.tokenizer_sha256 is not None
    found = _Found([], [])
    for (_, item), requests in zip(part.items, part.requests, strict=True):
        of_item = []
        for number, request in enumerate(requests):
            key = question_id(part, item.item_id, number)
            found.asked.append((key, request))
            answer = answers.pop(key, None)
            if answer is not None:
                _check_asked(answer, request, log.name, is_moved=is_moved)
            of_item.append(answer)
        found.answers.append(of_item)
    return found


def _check_asked(answer: LoggedAnswer, request: Request, name: str, *, is_moved: bool) -> None:
    """Check that an answer is to the request that our task makes."""
    where = f"{answer.where}: question {answer.question_id}"
    if isinstance(answer, LoggedChoice) and isinstance(request, ChoiceRequest):
        _check_choice(answer, request, where, is_moved=is_moved)
    elif isinstance(answer, LoggedText) and isinstance(request, GenerateRequest):
        _check_text(answer, request, where)
    elif isinstance(request, ChoiceRequest):
        raise DataError(f"{where} offers options here, and {name} has texts; export and ask again")
    else:
        raise DataError(f"{where} asks for a text here, and {name} has log-probabilities; export and ask again")


def _check_choice(answer: LoggedChoice, request: ChoiceRequest, where: str, *, is_moved: bool) -> None:
    """Check the texts of a choice, whose border is where it is in our task or further in front."""
    shift = request.prompt[len(answer.prompt) :] if is_moved and request.prompt.startswith(answer.prompt) else ""
    _check_prompt(answer.prompt + shift, request.prompt, where, answer.prompt)
    if answer.options != tuple(shift + option for option in request.options):
        raise DataError(
            f"{where} was asked with the options {list(answer.options)}, and the task offers {list(request.options)}; "
            "import the log as the harness wrote it"
        )


def _check_text(answer: LoggedText, request: GenerateRequest, where: str) -> None:
    """Check the prompt and the settings of a generation; its sample follows from the id of the question."""
    asked = replace(answer.asked, sample=request.sample, seed=request.seed)
    if asked.sha256 == request.sha256:
        return
    _check_prompt(asked.prompt, request.prompt, where, asked.prompt)
    told = [
        f"{name} {getattr(asked, name)!r} instead of {getattr(request, name)!r}"
        for name in ("max_tokens", "temperature", "top_p", "stop")
        if getattr(asked, name) != getattr(request, name)
    ]
    raise DataError(f"{where} was asked with {', '.join(told)}; ask again with the settings of the exported task")


def _check_prompt(shown: str, ours: str, where: str, told: str) -> None:
    if shown != ours:
        raise DataError(
            f"{where} was asked in other words: {_difference(told, ours)}; name the dataset that was exported, and ask "
            "without templates or examples"
        )


def _difference(told: str, ours: str) -> str:
    """Return where two texts begin to differ, and how they go on."""
    pairs = enumerate(zip(told, ours, strict=False))
    place = next((place for place, (one, other) in pairs if one != other), min(len(told), len(ours)))
    return (
        f"from character {place + 1} on it has {told[place : place + _SHOWN]!r}, and the task asks "
        f"{ours[place : place + _SHOWN]!r}"
    )


def _responses(
    part: PlannedPart, answers: Sequence[Sequence[LoggedAnswer | None]], count: CountTokens | None
) -> list[list[Response]]:
    """Return the responses to the requests of each item; a failed response where there is no sound answer."""
    pairs = [
        AskedRequest(request, answer.asked)
        for requests, of_item in zip(part.requests, answers, strict=True)
        for request, answer in zip(requests, of_item, strict=True)
        if isinstance(answer, LoggedChoice) and isinstance(request, ChoiceRequest)
    ]
    tokens = iter([None] * len(pairs) if count is None else count(pairs))
    return [[_response(answer, tokens) for answer in of_item] for of_item in answers]


def _response(answer: LoggedAnswer | None, tokens: Iterator[OptionTokens | str | None]) -> Response:
    """Return the response that an answer holds; ``tokens`` are those of the choices that follow."""
    if isinstance(answer, LoggedText):
        return whole(answer.response)
    return _of_choice(answer, next(tokens)) if isinstance(answer, LoggedChoice) else _UNANSWERED


def _of_choice(answer: LoggedChoice, tokens: OptionTokens | str | None) -> Response:
    if isinstance(tokens, str):
        return Response(status="failed", error=tokens)
    n = len(answer.options)
    return Response(
        status="answered",
        option_logprobs=answer.option_logprobs,
        # A harness scores the options alone, without an end token.
        option_end_logprobs=(None,) * n,
        option_token_counts=(None,) * n if tokens is None else tokens.counts,
        n_moved_tokens=None if tokens is None else tokens.n_moved,
    )
