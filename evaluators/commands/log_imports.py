"""Imports the log of another harness that asked our questions: the command ``import`` with the name of a harness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.progress import steps, working
from evaluators.backend import ChoiceRequest, GenerateRequest
from evaluators.commands.planning import scorers_of
from evaluators.commands.report import print_next, report
from evaluators.harness import CountTokens, Harness, HarnessLog
from evaluators.models.foreign_borders import BorderCounter
from evaluators.models.ids import check_model_id
from evaluators.models.tokenizer import ModelTokenizer, load_tokenizer, local_name
from evaluators.runs.ask.importing import imported_model, write_imported
from evaluators.runs.ask.logged_answers import match_log
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.questions import plan_again
from evaluators.scorer import with_scorers
from schemas.documents.record import Record
from schemas.documents.result import Normalisation
from schemas.folders.dataset_folder import read_manifest

_ADDED = 32
"""Number of tokens that a tokenizer may add to a text; all others have at least one byte."""
_UNCHECKED = (
    "not checked: a tokenizer that merges the end of a context with an option makes the harness leave tokens out; "
    "--tokenizer FOLDER tells"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChoice:
    """The choices of the command ``import`` for the log of a harness."""

    input: Path
    model: str
    dataset: Path | None
    """Folder of the dataset; None for the place where it is built."""
    out: Path
    tokenizer: str | None
    normalisation: Normalisation | None
    max_failure_rate: float
    scorers: tuple[str, ...] | None
    """Scorers of the texts; None for the default ones that are installed."""


def import_logs(harness: Harness, choice: LogChoice) -> None:
    """Turn the logs of a model into records and results, one run for each task.

    Args:
        harness: The harness that wrote them.
        choice: The logs, the dataset and how the answers are read.

    Raises:
        ConfigError: there is no log of ours, or an option cannot be used.
        DataError: a log is damaged, or answers other questions than the dataset's. Nothing was written.
    """
    check_model_id(choice.model)
    _check_options(harness, choice)
    with working(f"reading {choice.input}"):
        logs, left_out = harness.read(choice.input)
    tokenizer = None if choice.tokenizer is None else load_tokenizer(choice.tokenizer)
    # Match all logs before writing anything, so that a wrong answer leaves nothing behind.
    matched = []
    with steps() as step:
        for number, log in enumerate(logs):
            step("matching answers", number, len(logs))
            matched.append(_matched(log, choice, _counter(harness, log, tokenizer)))
    for name in left_out:
        print(f"left out: {name}, whose task biasboard did not export")
    scorers = scorers_of([plan for plan, *_ in matched], choice.scorers)
    results = []
    for log, (plan, parts, n_missing) in zip(logs, matched, strict=True):
        runtime = log.runtime
        if tokenizer is not None:
            runtime = replace(runtime, settings={**runtime.settings, "tokenizer_sha256": tokenizer.sha256})
        identity = log.identity
        finished = write_imported(
            plan,
            imported_model(choice.model, identity, revision=identity["commit"], precision=identity["precision"]),
            parts,
            runtime,
            root=choice.out,
            command=_command(harness, choice, plan),
            scorers=scorers.scorers,
            keep_scores=not scorers.given,
        )
        print(f"{log.name}: {len(log.answers)} answers, {n_missing} missing")
        report(finished.folder, finished.result)
        results.append(finished.result)
        for remark in (*log.remarks, *_unchecked(log, tokenizer)):
            print(remark)
    print_next(choice.out, results)


def _check_options(harness: Harness, choice: LogChoice) -> None:
    if choice.tokenizer is not None and not harness.scores_options:
        raise ConfigError(f"--tokenizer: {harness.name} scores no options, whose tokens it would count; leave it out")
    if choice.normalisation == "sum_with_end":
        raise ConfigError("--normalisation sum_with_end: a log has no log-probability of the end token; take another")
    if choice.normalisation in ("token_mean", "byte_mean") and choice.tokenizer is None:
        raise ConfigError(
            f"--normalisation {choice.normalisation}: a log does not say which tokens an option has; name the model's "
            "tokenizer with --tokenizer, or take sum"
        )


def _counter(harness: Harness, log: HarnessLog, tokenizer: ModelTokenizer | None) -> CountTokens | None:
    if tokenizer is None or not harness.scores_options:
        return None
    if log.end_id is not None and tokenizer.end_id is not None and log.end_id != tokenizer.end_id:
        raise ConfigError(
            f"--tokenizer: its end token has the id {tokenizer.end_id}, and {log.name} was made with one of id "
            f"{log.end_id}; name the tokenizer of the model"
        )
    if log.exported.tokenizer_sha256 not in (None, tokenizer.sha256):
        raise ConfigError(f"--tokenizer: {log.name} was exported for another tokenizer; name that one")
    return BorderCounter(tokenizer, harness.as_scored, log.context_tokens)


def _matched(log: HarnessLog, choice: LogChoice, count: CountTokens | None) -> tuple[Plan, list[list[Record]], int]:
    """Return the plan of a log, the records of its parts, and the number of questions that it does not answer."""
    dataset = choice.dataset or Path("out/datasets") / log.exported.signature.dataset
    plan = plan_again(log.exported, dataset, read_manifest(dataset), choice.normalisation)
    parts, n_missing = match_log(log, plan, count)
    records = [record for part in parts for record in part]
    failed = [record for record in records if record.status == "failed"]
    if len(failed) > choice.max_failure_rate * len(records):
        if n_missing:
            remedy = "ask all questions, without a limit in the harness, or export fewer with --limit"
        elif choice.tokenizer is not None and log.exported.tokenizer_sha256 is None:
            remedy = "export with --tokenizer, which moves such borders, and ask again"
        elif any(isinstance(answer.asked, GenerateRequest) for answer in log.answers):
            remedy = "look into the log, and ask again those questions that failed"
        else:
            remedy = "ask again with another model, or take another normalisation"
        raise DataError(
            f"{log.name}: {len(failed)} of {len(records)} items failed, more than --max-failure-rate "
            f"{choice.max_failure_rate:g} allows: {failed[-1].reason}; {remedy}; nothing was written"
        )
    return plan, parts, n_missing


def _command(harness: Harness, choice: LogChoice, plan: Plan) -> str:
    """Return the command that reproduces an import, without paths of this machine."""
    parts: Sequence[tuple[str, str | None]] = (
        ("input", "DIR"),
        ("model", choice.model),
        ("dataset", f"out/datasets/{plan.selection.manifest.name}"),
        ("tokenizer", None if choice.tokenizer is None else local_name(choice.tokenizer)),
        ("normalisation", choice.normalisation),
    )
    options = " ".join(f"--{name} {value}" for name, value in parts if value is not None)
    scorers = choice.scorers if plan.task.reads_scores else None
    return with_scorers(f"import {harness.name} {options}", scorers or ())


def _unchecked(log: HarnessLog, tokenizer: ModelTokenizer | None) -> Iterator[str]:
    """Yield what nobody knows about the scored options of a log without the tokenizer."""
    choices = [answer.asked for answer in log.answers if isinstance(answer.asked, ChoiceRequest)]
    if tokenizer is not None or not choices:
        return
    if log.exported.tokenizer_sha256 is None:
        yield _UNCHECKED
    room = log.context_tokens
    if room is not None:
        sizes = (
            len(asked.prompt.encode()) + max(len(option.encode()) for option in asked.options) for asked in choices
        )
        if n_long := sum(size + _ADDED > room for size in sizes):
            yield f"{n_long} questions may not have fitted the model's context; --tokenizer FOLDER tells"
