"""Imports the log of another harness that asked our questions: the command ``import`` with the name of a harness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.progress import steps, working
from evaluators.backend import Runtime, model_identity
from evaluators.commands.planning import scorers_of
from evaluators.commands.report import print_next, report
from evaluators.harness import CountTokens, Harness, HarnessLog, LoggedChoice, LoggedText
from evaluators.models.foreign_borders import BorderCounter
from evaluators.models.ids import check_model_id
from evaluators.models.tokenizer import ModelTokenizer, load_tokenizer, local_name
from evaluators.runs.ask.importing import BACKEND, ImportOptions, write_imported
from evaluators.runs.ask.logged_answers import Matched, match_log
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.questions import plan_again
from evaluators.scorer import with_scorers
from schemas.documents.result import Model, Normalisation
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


class _Read(NamedTuple):
    """A log and its records."""

    log: HarnessLog
    plan: Plan
    matched: Matched


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
        found = harness.read(choice.input)
    tokenizer = None if choice.tokenizer is None else load_tokenizer(choice.tokenizer)
    # Match all logs before writing anything, so that a wrong answer leaves nothing behind.
    read = []
    with steps() as step:
        for number, log in enumerate(found.logs):
            step("matching answers", number, len(found.logs))
            read.append(_read(log, choice, _counter(harness, log, tokenizer)))
    for name in found.left_out:
        print(f"left out: {name}, whose task biasboard did not export")
    scorers = scorers_of([one.plan for one in read], choice.scorers)
    results = []
    for log, plan, matched in read:
        options = ImportOptions(
            root=choice.out,
            command=_command(harness, choice, plan),
            scorers=scorers.scorers,
            keep_scores=not scorers.given,
        )
        model = _model(log, choice.model)
        finished = write_imported(plan, model, matched.parts, _runtime(log.runtime, tokenizer), options)
        print(f"{log.name}: {len(log.answers)} answers, {matched.n_missing} missing")
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
    if log.model.end_id is not None and tokenizer.end_id is not None and log.model.end_id != tokenizer.end_id:
        raise ConfigError(
            f"--tokenizer: its end token has the id {tokenizer.end_id}, and {log.name} was made with one of id "
            f"{log.model.end_id}; name the tokenizer of the model"
        )
    if log.exported.tokenizer_sha256 not in (None, tokenizer.sha256):
        raise ConfigError(f"--tokenizer: {log.name} was exported for another tokenizer; name that one")
    return BorderCounter(tokenizer, harness.as_scored, log.model.context_tokens)


def _read(log: HarnessLog, choice: LogChoice, count: CountTokens | None) -> _Read:
    dataset = choice.dataset or Path("out/datasets") / log.exported.signature.dataset
    plan = plan_again(log.exported, dataset, read_manifest(dataset), choice.normalisation)
    matched = match_log(log, plan, count)
    records = [record for part in matched.parts for record in part]
    failed = [record for record in records if record.status == "failed"]
    if len(failed) > choice.max_failure_rate * len(records):
        raise DataError(
            f"{log.name}: {len(failed)} of {len(records)} items failed, more than --max-failure-rate "
            f"{choice.max_failure_rate:g} allows: {failed[-1].reason}; {_remedy(log, matched, choice)}; nothing was "
            "written"
        )
    return _Read(log, plan, matched)


def _remedy(log: HarnessLog, matched: Matched, choice: LogChoice) -> str:
    if matched.n_missing:
        return "ask all questions, without a limit in the harness, or export fewer with --limit"
    if choice.tokenizer is not None and log.exported.tokenizer_sha256 is None:
        return "export with --tokenizer, which moves such borders, and ask again"
    if any(isinstance(answer, LoggedText) for answer in log.answers):
        return "look into the log, and ask again those questions that failed"
    return "ask again with another model, or take another normalisation"


def _model(log: HarnessLog, name: str) -> Model:
    told = log.model
    return Model(
        id=name,
        revision=told.revision,
        backend=BACKEND,
        precision=told.precision,
        chat_template_sha256=None,
        endpoint="replay",
        identity_sha256=model_identity(told.identity),
        identity=dict(told.identity),
    )


def _runtime(runtime: Runtime, tokenizer: ModelTokenizer | None) -> Runtime:
    if tokenizer is None:
        return runtime
    return replace(runtime, settings={**runtime.settings, "tokenizer_sha256": tokenizer.sha256})


def _command(harness: Harness, choice: LogChoice, plan: Plan) -> str:
    """Return the command that reproduces an import, without paths of this machine."""
    parts: Sequence[tuple[str, str | None]] = (
        ("input", "DIR"),
        ("model", choice.model),
        ("dataset", f"out/datasets/{plan.selection.manifest.name}"),
        ("tokenizer", None if choice.tokenizer is None else local_name(choice.tokenizer)),
        ("normalisation", choice.normalisation),
    )
    told = " ".join(f"--{name} {value}" for name, value in parts if value is not None)
    scorers = choice.scorers if plan.task.reads_scores else None
    return with_scorers(f"import {harness.name} {told}", scorers or ())


def _unchecked(log: HarnessLog, tokenizer: ModelTokenizer | None) -> Iterator[str]:
    """Yield what nobody knows about the scored options of a log without the tokenizer."""
    choices = [answer for answer in log.answers if isinstance(answer, LoggedChoice)]
    if tokenizer is not None or not choices:
        return
    if log.exported.tokenizer_sha256 is None:
        yield _UNCHECKED
    room = log.model.context_tokens
    if room is not None:
        sizes = (len(one.prompt.encode()) + max(len(option.encode()) for option in one.options) for one in choices)
        if n_long := sum(size + _ADDED > room for size in sizes):
            yield f"{n_long} questions may not have fitted the model's context; --tokenizer FOLDER tells"
