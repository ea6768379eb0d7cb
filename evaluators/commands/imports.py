"""The command ``python -m evaluators import``: turns answers that were given elsewhere into records and results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.progress import progress, steps
from evaluators.backend import Runtime
from evaluators.benchmark import AnswerFile, AnswerImporter, benchmarks
from evaluators.commands.options import MAX_FAILURES_HELP, NORMALISATION_HELP, normalisation_named
from evaluators.commands.report import print_next
from evaluators.harness import harness_names, load_harness
from evaluators.models.ids import check_model_id
from evaluators.runs.ask.importing import BACKEND, Imported, import_file, imported_model, write_imported
from evaluators.runs.plan.options import MAX_FAILURE_RATE
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.selection import select
from evaluators.scorer import SCORER_HELP, open_scorers, with_scorers
from evaluators.task import task_for
from schemas.documents.dataset import Manifest
from schemas.documents.result import CORRUPTED, Result
from schemas.folders.dataset_folder import MANIFEST, read_manifest

_TOKENIZER = typer.Option(
    help="Folder or Hub id of the model's tokenizer, which counts the tokens of options. Only for logs of a harness."
)


@one_line_errors("stopped; finished runs are kept, and the same command writes the others")
def import_command(
    source: Annotated[
        str, typer.Argument(help="Benchmark that published the answers, or harness that asked exported questions.")
    ],
    input_path: Annotated[
        Path, typer.Option("--input", help="Folder with the files of answers, or the log of a harness.")
    ],
    model: Annotated[
        str, typer.Option(help="Name of the model in the names of the files; for a harness, model id in results.")
    ],
    dataset: Annotated[
        Path | None,
        typer.Option(help="Folder of the dataset that the answers belong to; by default where it is built."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Model id in results; by default the name in the file names, or --model.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("out/runs"),
    scorer: Annotated[list[str] | None, typer.Option(help=SCORER_HELP)] = None,
    tokenizer: Annotated[str | None, _TOKENIZER] = None,
    normalisation: Annotated[str | None, typer.Option(help=NORMALISATION_HELP)] = None,
    max_failure_rate: Annotated[float, typer.Option(min=0, max=1, help=MAX_FAILURES_HELP)] = MAX_FAILURE_RATE,
) -> None:
    """Turn answers that were given elsewhere into records and results, one run for each config."""
    if source in harness_names():
        # Imported when a log is read: published answers need nothing of it.
        from evaluators.commands.log_imports import LogChoice, import_logs

        choice = LogChoice(
            input=input_path,
            model=name or model,
            dataset=dataset,
            out=out,
            tokenizer=tokenizer,
            normalisation=normalisation_named(normalisation),
            max_failure_rate=max_failure_rate,
            scorers=None if scorer is None else tuple(scorer),
        )
        import_logs(load_harness(source), choice)
        return
    for option, value in (("tokenizer", tokenizer), ("normalisation", normalisation)):
        if value is not None:
            raise ConfigError(f"--{option}: published texts have no use for it; leave it out")
    _import_published(source, input_path, model, dataset, name, out, scorer)


def _import_published(
    source: str,
    input_path: Path,
    model: str,
    dataset: Path | None,
    name: str | None,
    out: Path,
    scorer: Sequence[str] | None,
) -> None:
    """Import the answers that a benchmark published."""
    importer = _importer(source)
    folder = dataset or Path("out/datasets") / importer.dataset
    files = importer.files(input_path, model)
    manifest = _manifest(folder, importer)
    # The files stand for the model, of which nothing else is known.
    hashes = {file.config: sha256_file(file.path) for file in files}
    model_of_files = imported_model(check_model_id(name or files[0].model), {"backend": BACKEND} | hashes)
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
    results: list[Result] = []
    with progress(f"importing {model_of_files.id}", len(files)) as advance:
        for imported in read:
            settings = dict(imported.answers.notes)
            if imported.answers.corruption is not None:
                settings[CORRUPTED] = imported.answers.corruption
            finished = write_imported(
                imported.plan,
                model_of_files,
                [imported.records],
                Runtime(settings=settings),
                root=out,
                command=command,
                scorers=opened.scorers,
                keep_scores=not scorer,
            )
            results.append(finished.result)
            advance(1)
            _report(imported, results[-1])
    print(f"wrote {len(read)} runs below {out}")
    print_next(out, results)


def _importer(source: str) -> AnswerImporter:
    importers = {benchmark.name: benchmark.importer for benchmark in benchmarks() if benchmark.importer is not None}
    if source not in importers:
        have = ", ".join((*importers, *harness_names()))
        raise ConfigError(f"no published answers of '{source}' can be imported; have: {have}")
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


def _report(imported: Imported, result: Result) -> None:
    counts = result.counts
    print(
        f"{imported.file.path.name}: {imported.answers.notes['rows']} rows, {counts.items} items: {counts.scored} "
        f"scored, {counts.refused} refused, {counts.unparsed} unparsed, {counts.failed} without an answer"
    )
    if imported.answers.corruption is not None:
        print(f"  warning: the file looks corrupted: {imported.answers.corruption}")
