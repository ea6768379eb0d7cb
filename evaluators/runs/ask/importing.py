"""Turns answers that were given elsewhere, published or logged by another harness, into records and results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from biasboard.ground.errors import DataError
from evaluators.backend import ChoiceRequest, GenerateRequest, Identified, Request, Response, Runtime
from evaluators.benchmark import AnswerFile, AnswerImporter, ImportedAnswers
from evaluators.harness import CountOptionTokens, HarnessLog, LoggedAnswer
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.measure.measuring import Origin, environment, finish_run, locked_folder, scoring_after, write_parts
from evaluators.runs.measure.recording import records_of, storable
from evaluators.runs.plan.exported_questions import question_id, requests_sha256
from evaluators.runs.plan.plan import Plan, PlannedPart, run_folder
from evaluators.scorer import TextScorer
from schemas.documents.record import Record
from schemas.documents.result import Model, Usage

BACKEND = "import"
"""Backend that results name for answers that were given elsewhere."""
IDENTIFIED = Identified("replay", frozenset())
_SHOWN = 40
"""Number of characters that errors show of two texts from their first difference on."""


def import_file(file: AnswerFile, importer: AnswerImporter, plan: Plan) -> tuple[ImportedAnswers, list[Record]]:
    """Read a file of published answers, and return them with one record per item of its config.

    Raises:
        DataError: the file cannot be read, or one of its rows belongs to no item.
    """
    (part,) = plan.parts
    answers = importer.read(file, [item for _, item in part.items], plan.prompt, plan.selection.manifest.name)
    return answers, list(records_of(plan, part, answers.requests, answers.responses, chat=False))


def write_imported(
    plan: Plan,
    model: Model,
    parts: Iterable[Sequence[Record]],
    runtime: Runtime,
    *,
    root: Path,
    command: str,
    scorers: Sequence[TextScorer],
    keep_scores: bool,
) -> Finished:
    """Write imported records and their result, as a run writes them.

    Args:
        plan: The items, how they were asked, and how the answers are read.
        model: The model that answered elsewhere.
        parts: The records of each part.
        runtime: The device, packages and settings behind the answers, as far as they are known.
        root: The folder of all runs.
        command: The command line that reproduces the import, after ``python -m evaluators``.
        scorers: The scorers of the texts, for tasks whose metrics read scores.
        keep_scores: True to keep all scores of an earlier result, even of other scorers, and score only missing kinds.

    Raises:
        DataError: a record is invalid; nothing is written.
        RunError: another process holds the folder of the run.
    """
    records = [list(part) for part in parts]
    origin = Origin(
        model=model,
        signature=plan.signature,
        command=f"python -m evaluators {command}",
        # Nothing was sent from here, and the tokens and cost elsewhere are unknown, hence null.
        usage=Usage(
            n_requests=sum(len(record.exchanges) for part in records for record in part),
            n_attempts=0,
            n_prompt_tokens=None,
            n_completion_tokens=None,
            seconds=None,
            cost_usd=None,
        ),
        environment=environment([runtime]),
    )
    folder = run_folder(root, plan.signature, model)
    with locked_folder(folder):
        scoring = scoring_after(folder, scorers, keep=keep_scores)
        return Finished(folder, finish_run(folder, write_parts(folder, records), origin, scoring))


def match_log(log: HarnessLog, plan: Plan, count: CountOptionTokens | None) -> tuple[list[list[Record]], int]:
    """Return one record per item of each part of a plan, and the number of questions that the log does not answer.

    ``count`` counts the tokens of options; None if the harness scores none, or nobody knows how.

    Raises:
        DataError: an answer belongs to a question that the plan does not ask, two answers belong to the same question,
            or the log or the questions were changed.
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
        of_part: list[list[LoggedAnswer | None]] = []
        for (_, item), requests in zip(part.items, part.requests, strict=True):
            keys = [question_id(part, item.item_id, number) for number in range(len(requests))]
            asked += zip(keys, requests, strict=True)
            of_part.append([answers.pop(key, None) for key in keys])
            for request, logged in zip(requests, of_part[-1], strict=True):
                if logged is not None:
                    _check_asked(logged, request, log)
            n_missing += of_part[-1].count(None)
        # ``chat`` affects scored options only, and harnesses that send messages score none.
        parts.append(list(records_of(plan, part, part.requests, _responses(part, of_part, log, count), chat=False)))
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
    return parts, n_missing


def _check_asked(answer: LoggedAnswer, request: Request, log: HarnessLog) -> None:
    """Check that an answer belongs to the request that our task makes."""
    where, asked = f"{answer.where}: question {answer.question_id}", answer.asked
    if isinstance(asked, ChoiceRequest) and isinstance(request, ChoiceRequest):
        # The border between context and option may have been moved to the front.
        is_moved = log.exported.tokenizer_sha256 is not None and request.prompt.startswith(asked.prompt)
        shift = request.prompt[len(asked.prompt) :] if is_moved else ""
        if asked.prompt + shift != request.prompt:
            raise _other_words(asked, request, where)
        if asked.options != tuple(shift + option for option in request.options):
            raise DataError(
                f"{where} was asked with the options {list(asked.options)}, and the task offers "
                f"{list(request.options)}; import the log as the harness wrote it"
            )
    elif isinstance(asked, GenerateRequest) and isinstance(request, GenerateRequest):
        # The sample is part of the question's id.
        if replace(asked, sample=request.sample, seed=request.seed).sha256 == request.sha256:
            return
        if asked.prompt != request.prompt:
            raise _other_words(asked, request, where)
        differing = [
            f"{name} {getattr(asked, name)!r} instead of {getattr(request, name)!r}"
            for name in ("max_tokens", "temperature", "top_p", "stop")
            if getattr(asked, name) != getattr(request, name)
        ]
        told = f"{where} was asked with {', '.join(differing)}"
        raise DataError(f"{told}; ask again with the settings of the exported task")
    elif isinstance(request, ChoiceRequest):
        raise DataError(f"{where} offers options here, and {log.name} has texts; export and ask again")
    else:
        raise DataError(f"{where} asks for a text here, and {log.name} has log-probabilities; export and ask again")


def _other_words(asked: Request, request: Request, where: str) -> DataError:
    """Return the error about a differently worded question: the first difference, and how both texts go on."""
    logged, ours = asked.prompt, request.prompt
    pairs = enumerate(zip(logged, ours, strict=False))
    start = next((index for index, (left, right) in pairs if left != right), min(len(logged), len(ours)))
    return DataError(
        f"{where} was asked in other words: from character {start + 1} on it has {logged[start : start + _SHOWN]!r}, "
        f"and the task asks {ours[start : start + _SHOWN]!r}; name the dataset that was exported, and ask without "
        "templates or examples"
    )


def _responses(
    part: PlannedPart,
    answers: Sequence[Sequence[LoggedAnswer | None]],
    log: HarnessLog,
    count: CountOptionTokens | None,
) -> list[list[Response]]:
    """Return the responses to the requests of each item; failed responses where an answer is missing or unusable."""
    pairs = [
        (request, answer.asked)
        for requests, of_item in zip(part.requests, answers, strict=True)
        for request, answer in zip(requests, of_item, strict=True)
        if answer is not None and isinstance(answer.asked, ChoiceRequest) and isinstance(request, ChoiceRequest)
    ]
    tokens = None if count is None else iter(count([ours for ours, _ in pairs], [theirs for _, theirs in pairs]))

    def response(answer: LoggedAnswer | None) -> Response:
        if answer is None:
            return Response(status="failed", error=log.missing)
        if isinstance(answer.asked, GenerateRequest):
            return storable(answer.response.stopped_at(answer.asked.stop))
        if tokens is None:
            return storable(answer.response)
        counted = next(tokens)
        if isinstance(counted, str):
            return Response(status="failed", error=counted)
        return replace(answer.response, option_token_counts=counted.counts, n_moved_tokens=counted.n_moved)

    return [[response(answer) for answer in of_item] for of_item in answers]
