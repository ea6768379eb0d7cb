"""The command ``python -m evaluators import``: turns published answers into records and results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from evaluators.backend import Runtime, model_identity
from evaluators.benchmark import AnswerFile, AnswerImporter, benchmarks
from evaluators.models.ids import check_model_id
from evaluators.runs.environment import environment
from evaluators.runs.finish import Origin, finish_run, held, scoring_after, write_parts
from evaluators.runs.importing import Imported, import_file
from evaluators.runs.plan import Plan, run_folder
from evaluators.runs.selection import select
from evaluators.scorer import SCORER_HELP, TextScorer, open_scorers, with_scorers
from evaluators.task import task_for
from schemas.command_line import one_line_errors
from schemas.dataset import Manifest
from schemas.dataset_folder import MANIFEST, read_manifest
from schemas.errors import ConfigError, DataError
from schemas.files import sha256_file
from schemas.progress import progress, steps
from schemas.result import CORRUPTED, Model, Result, Usage

_BACKEND = "import"


@one_line_errors("stopped; finished runs are kept, and the same command writes the others")
def import_command(
    source: Annotated[str, typer.Argument(help="Benchmark that published the answers.")],
    input_path: Annotated[Path, typer.Option("--input", help="Folder with the files of answers.")],
    model: Annotated[str, typer.Option(help="Name of the model in the names of the files.")],
    dataset: Annotated[
        Path | None, typer.Option(help="Folder of the dataset that the answers belong to; by default the benchmark's.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Model id in results; by default the name in the file names.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("out/runs"),
    scorer: Annotated[list[str] | None, typer.Option(help=SCORER_HELP)] = None,
) -> None:
    """Turn published answers into records and results, one run for each config that has a file in the folder."""
    importer = _importer(source)
    folder = dataset or Path("out/datasets") / importer.dataset
    files = importer.files(input_path, model)
    manifest = _manifest(folder, importer)
    said = _model(files, name or files[0].model)
    command = f"import {source} --input DIR --model {files[0].model} --dataset out/datasets/{manifest.name}"
    command = with_scorers(command + (f" --name {name}" if name else ""), scorer or ())
    # Read all files before writing anything, so that a broken file leaves nothing behind.
    read = []
    with steps() as step:
        for number, file in enumerate(files):
            step("reading files", number, len(files))
            read.append(_read(file, importer, folder, manifest))
    opened = open_scorers(scorer)
    for line in opened.missing:
        print(line)
    with progress(f"importing {said.id}", len(files)) as advance:
        for imported in read:
            result = _write(imported, said, out, opened.scorers, keep_scores=not scorer, command=command)
            advance(1)
            _report(imported, result)
    print(f"wrote {len(read)} runs below {out}")
    print(f"next: biasboard board --runs {shlex.quote(str(out))}")


def _importer(source: str) -> AnswerImporter:
    importers = {benchmark.name: benchmark.importer for benchmark in benchmarks() if benchmark.importer is not None}
    if source not in importers:
        raise ConfigError(f"no published answers of '{source}' can be imported; have: {', '.join(importers)}")
    return importers[source]


def _manifest(dataset: Path, importer: AnswerImporter) -> Manifest:
    if not (dataset / MANIFEST).is_file():
        raise DataError(f"{dataset}: no {MANIFEST} here; build one: {importer.build_command} --out {dataset}")
    return read_manifest(dataset)


def _read(file: AnswerFile, importer: AnswerImporter, dataset: Path, manifest: Manifest) -> Imported:
    if file.config not in {entry.config for entry in manifest.splits}:
        raise DataError(f"{dataset}: has no config {file.config}, to which {file.path.name} belongs; build it")
    selection = select(dataset, manifest, file.config)
    task = task_for(selection.item_shape)
    return import_file(file, importer, Plan(selection, task, task.prompts[importer.prompt]))


def _model(files: Sequence[AnswerFile], name: str) -> Model:
    """Return the model named by the files; its identity is a hash of the files."""
    identity = {"backend": _BACKEND} | {file.config: sha256_file(file.path) for file in files}
    return Model(
        id=check_model_id(name),
        revision=None,
        backend=_BACKEND,
        precision=None,
        chat_template_sha256=None,
        endpoint="replay",
        identity_sha256=model_identity(identity),
        identity=dict(identity),
    )


def _report(imported: Imported, result: Result) -> None:
    counts = result.counts
    print(
        f"{imported.file.path.name}: {imported.answers.notes['rows']} rows, {counts.items} items: {counts.scored} "
        f"scored, {counts.refused} refused, {counts.unparsed} unparsed, {counts.failed} without an answer"
    )
    if imported.answers.corruption is not None:
        print(f"  warning: the file looks corrupted: {imported.answers.corruption}")


def _write(
    imported: Imported,
    model: Model,
    root: Path,
    scorers: Sequence[TextScorer],
    *,
    keep_scores: bool,
    command: str,
) -> Result:
    signature = imported.plan.signature
    folder = run_folder(root, signature, model)
    settings = dict(imported.answers.notes)
    if imported.answers.corruption is not None:
        settings[CORRUPTED] = imported.answers.corruption
    origin = Origin(
        model=model,
        signature=signature,
        command=f"python -m evaluators {command}",
        usage=Usage(
            n_requests=sum(len(record.exchanges) for record in imported.records),
            n_attempts=0,
            n_prompt_tokens=None,
            n_completion_tokens=None,
            seconds=None,
            cost_usd=None,
        ),
        environment=environment([Runtime(device=None, packages={}, settings=settings)]),
    )
    with held(folder):
        scoring = scoring_after(folder, scorers, keep=keep_scores)
        return finish_run(folder, write_parts(folder, [imported.records]), origin, scoring)
