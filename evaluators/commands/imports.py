"""``python -m evaluators import``: published answers become records and results, without asking anybody."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from filelock import FileLock, Timeout

from evaluators.backend import Runtime
from evaluators.progress import progress
from evaluators.pronouns.prompts import PUBLISHED
from evaluators.pronouns.published_generations import Imported, generation_files, import_file, imported_model
from evaluators.runs.measuring import score_records
from evaluators.runs.pipeline import earlier_scores, write_result
from evaluators.runs.records import count
from evaluators.runs.run_folder import LOCK, RECORDS, environment, run_folder
from evaluators.runs.selection import Selection, select, sign
from evaluators.scorer import SCORER_HELP, TextScorer, open_scorers, with_scorers
from evaluators.task import Task, task_for
from schemas import tables
from schemas.command_line import one_line_errors
from schemas.dataset_folder import read_manifest
from schemas.errors import DataError, RunError
from schemas.files import sha256_file
from schemas.record import Record
from schemas.result import SCHEMA_VERSION, Model, RecordsFile, Result, Usage


class Source(StrEnum):
    """What can be imported."""

    GIFI = "gifi"


@one_line_errors()
def import_command(
    source: Annotated[Source, typer.Argument(help="Whose files they are.")],
    input_path: Annotated[Path, typer.Option("--input", help="Folder with the CSV files of generations.")],
    model: Annotated[str, typer.Option(help="Model, as in the names of the files.")],
    dataset: Annotated[
        Path, typer.Option(help="Folder of the dataset that was asked: build it with --compat gifi-repo.")
    ] = Path("out/datasets/gifi-published-compat"),
    name: Annotated[
        str | None, typer.Option(help="Model id in results; the one in the file names if left out.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("out/runs"),
    scorer: Annotated[list[str] | None, typer.Option(help=SCORER_HELP)] = None,
) -> None:
    """Turn published answers into records and results: one run per config that the folder has a file of."""
    files = generation_files(input_path, model)
    manifest = read_manifest(dataset)
    configs = {entry.config for entry in manifest.splits}
    unknown = [file for file in files if file.config not in configs]
    if unknown:
        raise DataError(f"{dataset}: has no config {unknown[0].config}, of which {unknown[0].path.name} is; build it")
    said = imported_model(files, name or files[0].model)
    command = f"import {source.value} --input DIR --model {files[0].model} --dataset out/datasets/{manifest.name}"
    command = with_scorers(command + (f" --name {name}" if name else ""), scorer or ())
    # All are read before any is written: a broken file leaves nothing behind.
    read = []
    for file in files:
        selection = select(dataset, manifest, file.config)
        task = task_for(selection.item_shape)
        read.append((file, selection, task, import_file(file, selection, task)))
    opened = open_scorers(scorer)
    for line in opened.missing:
        print(line)
    folders = []
    with progress(f"importing {said.id}", len(files)) as advance:
        for file, selection, task, imported in read:
            folders.append(_write(imported, selection, task, said, out, opened.scorers, not scorer, command))
            advance(1)
            _report(file.path.name, imported)
    print(f"wrote {len(folders)} runs below {out}")
    print(f"next: python -m leaderboard build --runs {shlex.quote(str(out))}")


def _report(name: str, imported: Imported) -> None:
    counts = count(imported.records)
    print(
        f"{name}: {imported.notes['rows']} rows, {counts.items} items: {counts.scored} scored, {counts.refused} "
        f"refused, {counts.unparsed} unparsed, {counts.failed} without an answer"
    )
    if "corrupted" in imported.notes:
        print(f"  warning: the file looks corrupted: {imported.notes['corrupted']}")


def _write(
    imported: Imported,
    selection: Selection,
    task: Task,
    model: Model,
    root: Path,
    scorers: Sequence[TextScorer],
    keep_scores: bool,
    command: str,
) -> Path:
    signature = sign(selection, task, task.prompts[PUBLISHED], None)
    folder = run_folder(root, signature, model)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK, timeout=0):
            tables.write_rows(folder / RECORDS, imported.records, Record)
            known, to_ask = earlier_scores(folder, scorers, keep=keep_scores)
            metrics, scores = score_records(folder, imported.records, task.name, to_ask, known=known)
            n_answers = sum(len(record.exchanges) for record in imported.records)
            write_result(
                folder,
                Result(
                    schema_version=SCHEMA_VERSION,
                    model=model,
                    signature=signature,
                    signature_sha256=signature.sha256(),
                    command=f"python -m evaluators {command}",
                    counts=count(imported.records),
                    metrics=metrics,
                    usage=Usage(
                        n_requests=n_answers,
                        n_attempts=0,
                        n_prompt_tokens=None,
                        n_completion_tokens=None,
                        seconds=None,
                        cost_usd=None,
                    ),
                    environment=environment([Runtime(device=None, packages={}, settings=imported.notes)]),
                    records=RecordsFile(
                        path=RECORDS, sha256=sha256_file(folder / RECORDS), n_rows=len(imported.records)
                    ),
                    scores=scores,
                ),
            )
    except Timeout as error:
        raise RunError(f"{folder}: another process holds this run; wait for it or stop it") from error
    return folder
