"""The command ``python -m evaluators import``: turns answers that were given elsewhere into records and results.

They come from files that a benchmark published, from the logs of another harness that asked our questions, or from a
table that anybody filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.kinds import HARNESSES
from biasboard.ground.options import option, with_options
from biasboard.ground.plain_text import invisible_sign, listed
from biasboard.ground.progress import progress, steps, working
from evaluators.backend import GenerateRequest, Runtime, check_model_id, identified_model
from evaluators.benchmark import ImportedAnswers, benchmarks
from evaluators.commands.export import check_prompt
from evaluators.commands.runs_from_options import print_next, report, runs_document
from evaluators.harness import CountOptionTokens, Harness, HarnessLog, load_harness
from evaluators.runs.ask.answer_tables import read_answers
from evaluators.runs.ask.importing import BACKEND, import_file, match_log, write_imported
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.ask.study import (
    DATASET_HELP,
    MAX_FAILURES_HELP,
    NORMALISATION_HELP,
    OF_ITEMS,
    Study,
    normalisation_named,
    scorers_of,
)
from evaluators.runs.plan.exported_questions import plan_again
from evaluators.runs.plan.plan import MAX_FAILURE_RATE, Plan, select
from evaluators.scorer import SCORER_HELP, with_scorers
from evaluators.task import ReadsScores, task_for
from schemas.documents.record import Record
from schemas.documents.result import CORRUPTED, Model, Normalisation
from schemas.folders.dataset_folder import MANIFEST, dataset_at, read_manifest
from schemas.outputs.documents import FinishedRuns, with_format

if TYPE_CHECKING:
    from evaluators.models.tokenizer import ModelTokenizer


ANSWERS = "answers"
"""What is imported from a table: answers from anywhere."""
_LONGEST_NOTE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportChoice:
    """The options of the command ``import``: the answers, the items they belong to, and how they are read."""

    input: Path = option(
        "Folder with the files of answers, the log of a harness, or a table of answers: CSV, JSON Lines or Parquet.",
        default=...,
    )
    model: str = option("Name of the model in the names of the files; otherwise model id in results.", default=...)
    note: str | None = option("Where the answers of a table come from, in a few words that results show.")
    dataset: Path | None = option(f"{DATASET_HELP} The one that was asked; by default where it is built.")
    name: str | None = option("Model id in results; by default the name in the file names, or --model.")
    out: Path = option("Folder of all runs.", default=Path("out/runs"))
    scorers: tuple[str, ...] | None = option(SCORER_HELP, flag="--scorer")
    tokenizer: str | None = option(
        "Folder or Hub id of the model's tokenizer, which counts the tokens of options. For a harness that scores them."
    )
    normalisation: Normalisation | None = option(NORMALISATION_HELP, read=normalisation_named)
    max_failure_rate: float = option(MAX_FAILURES_HELP, default=MAX_FAILURE_RATE, min=0, max=1)

    @property
    def model_id(self) -> str:
        """The id of the model in results of logged answers."""
        return self.name or self.model


@one_line_errors("stopped; finished runs are kept, and the same command writes the others")
@with_format(FinishedRuns)
@with_options
def import_command(
    source: Annotated[
        str,
        typer.Argument(
            help="Benchmark that published the answers, harness that asked exported questions, or answers for a table."
        ),
    ],
    choice: ImportChoice,
    items: Annotated[Study, OF_ITEMS],
) -> FinishedRuns:
    """Turn answers that were given elsewhere into records and results, one run for each config."""
    if source == ANSWERS:
        _refuse_options(("tokenizer", choice.tokenizer), why="nobody counts the tokens of options in a table")
        runs = import_answers(choice, items)
    elif items != Study() or choice.note is not None:
        raise ConfigError(
            f"--note and options of items such as --config: only for biasboard import {ANSWERS}; leave them out"
        )
    elif source in HARNESSES.names():
        runs = import_logs(load_harness(source), choice)
    else:
        _refuse_options(
            ("tokenizer", choice.tokenizer),
            ("normalisation", choice.normalisation),
            why="published texts have no use for it",
        )
        runs = import_published(source, choice)
    return runs_document((finished.folder, finished.result) for finished in runs)


def _refuse_options(*options: tuple[str, str | None], why: str) -> None:
    for flag, value in options:
        if value is not None:
            raise ConfigError(f"--{flag}: {why}; leave it out")


class _ToWrite(NamedTuple):
    """Answers that were read, of which a run is to be written."""

    plan: Plan
    model: Model
    parts: Sequence[Sequence[Record]]
    runtime: Runtime
    command: str
    """The command that reproduces the import, without paths of this machine."""
    tell: Callable[[Finished], None]
    """Function that prints what became of them."""


def import_published(source: str, choice: ImportChoice) -> list[Finished]:
    """Import published answers."""
    importers = {importer.name: importer for benchmark in benchmarks() for importer in benchmark.importers}
    if source not in importers:
        have = ", ".join((*importers, *HARNESSES.names(), ANSWERS))
        raise ConfigError(f"no published answers of '{source}' can be imported; have: {have}")
    importer = importers[source]
    folder = dataset_at(choice.dataset or Path("out/datasets") / importer.dataset)
    files = importer.files(choice.input, choice.model)
    if not (folder / MANIFEST).is_file():
        raise DataError(f"{folder}: no {MANIFEST} here; build one: {importer.build_command} --out {folder}")
    manifest = read_manifest(folder)
    # Nothing but its answers is known about the model, so the hashes of the files identify it.
    hashes = {file.config: sha256_file(file.paths[0]) for file in files} | {
        f"{file.config} {path.name}": sha256_file(path) for file in files for path in file.paths[1:]
    }
    hashes |= {f"{file.config} column": file.column for file in files if file.column is not None}
    name = check_model_id(choice.name or files[0].model)
    model = identified_model(name, {"backend": BACKEND} | hashes, endpoint="replay")
    command = f"import {source} --input DIR --model {files[0].model} --dataset out/datasets/{manifest.name}"
    command = with_scorers(command + (f" --name {choice.name}" if choice.name else ""), choice.scorers or ())
    # Read all files before writing anything, so that a broken file leaves nothing behind.
    read = []
    with steps() as step:
        for number, file in enumerate(files):
            step("reading files", number, len(files))
            if file.config not in manifest.configs:
                raise DataError(
                    f"{folder}: has no config {file.config}, to which {file.paths[0].name} belongs; build it"
                )
            selection = select(folder, manifest, file.config)
            task = task_for(selection.item_shape)
            plan = Plan(selection, task, task.prompts[importer.prompt])
            answers, records = import_file(file, importer, plan)
            settings = answers.notes | ({} if answers.corruption is None else {CORRUPTED: answers.corruption})
            tell = partial(_tell_of_file, listed([path.name for path in file.paths], most=3), answers)
            read.append(_ToWrite(plan, model, [records], Runtime(settings=settings), command, tell))
    return _written(read, choice)


def _tell_of_file(name: str, answers: ImportedAnswers, finished: Finished) -> None:
    print(f"{name}: {answers.notes['rows']} rows")
    report(finished.folder, finished.result)
    if answers.corruption is not None:
        print(f"  warning: the file looks corrupted: {answers.corruption}")


def import_logs(harness: Harness, choice: ImportChoice) -> list[Finished]:
    """Turn the logs of a model into records and results, one run for each task.

    Raises:
        ConfigError: no log answers exported questions, or an option cannot be used.
        DataError: a log is damaged or answers questions that are not the dataset's. Nothing was written.
    """
    check_model_id(choice.model_id)
    harness.check_tokenizer(choice.tokenizer)
    if choice.normalisation == "sum_with_end":
        raise ConfigError("--normalisation sum_with_end: a log has no log-probability of the end token; take another")
    with working(f"reading {choice.input}"):
        logs, left_out = harness.read(choice.input)
    tokenizer = None
    if choice.tokenizer is not None:
        # Imported here because only logs of scored options need it.
        from evaluators.models.tokenizer import load_tokenizer

        tokenizer = load_tokenizer(choice.tokenizer)
    # Match all logs before writing anything, so that a wrong log leaves nothing behind.
    matched = []
    with steps() as step:
        for number, log in enumerate(logs):
            step("matching answers", number, len(logs))
            dataset = dataset_at(choice.dataset or Path("out/datasets") / log.exported.signature.dataset)
            plan = plan_again(log.exported, dataset, read_manifest(dataset), choice.normalisation)
            if tokenizer is not None:
                settings = {**log.runtime.settings, "tokenizer_sha256": tokenizer.sha256}
                log = replace(log, runtime=replace(log.runtime, settings=settings))
            count = _counter(harness, log, tokenizer)
            matched.append(_matched(log, plan, choice, _command(harness.name, choice, plan), count))
    for name in left_out:
        print(f"left out: {name}, whose task biasboard did not export")
    return _written(matched, choice)


def import_answers(choice: ImportChoice, items: Study) -> list[Finished]:
    """Turn a table of answers into records and a result.

    Raises:
        ConfigError: an option is missing or cannot be used, or the prompt asks for another kind of answer.
        DataError: the table cannot be read, or a row is no answer to a question. Nothing was written.
    """
    check_model_id(choice.model_id)
    note = " ".join((choice.note or "").split())
    if not note or invisible_sign(note) or len(note) > _LONGEST_NOTE:
        raise ConfigError(
            f"--note: say where the answers come from, in at most {_LONGEST_NOTE} characters that results show; for "
            "example 'three annotators, March 2026'"
        )
    if choice.dataset is None:
        raise ConfigError("--dataset: a table does not say which questions it answers; name the folder of the dataset")
    plans = replace(items, datasets=(choice.dataset,), normalisation=choice.normalisation).usual_plans
    if len(plans) > 1:
        asked = listed([f"--config {plan.selection.config} --prompt {plan.prompt.id}" for plan in plans], most=4)
        raise ConfigError(f"--input {choice.input}: a table answers one config with one prompt; name one of {asked}")
    (plan,) = plans
    check_prompt(None, plan)
    with working(f"reading {choice.input}"):
        log = read_answers(choice.input, plan, note)
    remedy = (
        "give each question an answer or a status (biasboard questions csv writes them all), or allow more failures"
    )
    command = f"{_command(ANSWERS, choice, plan)} --note NOTE {items.words(plan.signature)}"
    return _written([_matched(log, plan, choice, command, remedy=remedy)], choice)


def _matched(
    log: HarnessLog,
    plan: Plan,
    choice: ImportChoice,
    command: str,
    count: CountOptionTokens | None = None,
    *,
    remedy: str | None = None,
) -> _ToWrite:
    """Match a log with the items of its plan, of which no more may have failed than the user allows."""
    parts, n_missing = match_log(log, plan, count)
    records = [record for part in parts for record in part]
    failed = [record for record in records if record.status == "failed"]
    if len(failed) > choice.max_failure_rate * len(records):
        raise DataError(
            f"{log.name}: {len(failed)} of {len(records)} items failed, more than --max-failure-rate "
            f"{choice.max_failure_rate:g} allows: {failed[-1].reason}; "
            f"{remedy or _remedy(log, n_missing, count)}; nothing was written"
        )

    def tell(finished: Finished) -> None:
        print(f"{log.name}: {len(log.answers)} answers, {n_missing} missing")
        report(finished.folder, finished.result)
        for remark in log.remarks:
            print(remark)

    who = log.identity
    model = identified_model(
        choice.model_id, who, endpoint="replay", revision=who["commit"], precision=who["precision"]
    )
    return _ToWrite(plan, model, parts, log.runtime, command, tell)


def _remedy(log: HarnessLog, n_missing: int, count: CountOptionTokens | None) -> str:
    """Return what to do about a log of a harness in which too many items failed."""
    if n_missing:
        return "ask all questions, without a limit in the harness, or export fewer with --limit"
    if count is not None and log.exported.tokenizer_sha256 is None:
        return "export again, which moves such borders for the tokenizer, and ask again"
    if any(isinstance(answer.asked, GenerateRequest) for answer in log.answers):
        return "look into the log, and ask again those questions that failed"
    return "ask again with another model, or take another normalisation"


def _written(read: Sequence[_ToWrite], choice: ImportChoice) -> list[Finished]:
    scorers = scorers_of((one.plan.task for one in read), choice.scorers)
    runs = []
    with progress("importing answers", len(read)) as advance:
        for one in read:
            finished = write_imported(
                one.plan,
                one.model,
                one.parts,
                one.runtime,
                root=choice.out,
                command=one.command,
                scorers=scorers,
                keep_scores=not choice.scorers,
            )
            runs.append(finished)
            advance(1)
            one.tell(finished)
    print(f"wrote {len(runs)} run{'s' * (len(runs) != 1)} below {choice.out}")
    print_next(choice.out, (finished.result for finished in runs))
    return runs


def _counter(harness: Harness, log: HarnessLog, tokenizer: ModelTokenizer | None) -> CountOptionTokens | None:
    if tokenizer is None or harness.as_scored is None:
        return None
    if log.end_id is not None and tokenizer.end_id is not None and log.end_id != tokenizer.end_id:
        raise ConfigError(
            f"--tokenizer: its end token has the id {tokenizer.end_id}, and {log.name} was made with one of id "
            f"{log.end_id}; name the tokenizer of the model"
        )
    if log.exported.tokenizer_sha256 not in (None, tokenizer.sha256):
        raise ConfigError(f"--tokenizer: {log.name} was exported for another tokenizer; name that one")
    from evaluators.models.harness_borders import count_option_tokens

    return partial(count_option_tokens, tokenizer, harness.as_scored, log.context_tokens)


def _command(source: str, choice: ImportChoice, plan: Plan) -> str:
    """Return the command that reproduces an import, without paths of this machine."""
    tokenizer = choice.tokenizer
    if tokenizer is not None:
        from evaluators.models.tokenizer import local_name

        tokenizer = local_name(tokenizer)
    parts: Sequence[tuple[str, str | None]] = (
        ("input", "DIR"),
        ("model", choice.model_id),
        ("dataset", f"out/datasets/{plan.selection.manifest.name}"),
        ("tokenizer", tokenizer),
        ("normalisation", choice.normalisation),
    )
    options = " ".join(f"--{name} {value}" for name, value in parts if value is not None)
    scorers = choice.scorers if isinstance(plan.task, ReadsScores) else None
    return with_scorers(f"import {source} {options}", scorers or ())
