"""``biasboard reproduce PAPER``: the stages that give a paper's numbers again, and how far they are given.

Stages are build, import, run and compare. Each does what is still to be done, so that the same command continues.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from biasboard.building import builder_application
from biasboard.ground.command_line import ANSWERS_KEPT, call, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.memory import machine_memory
from biasboard.ground.options import names_in, option, with_options
from biasboard.ground.progress import note, working
from builders.description import DATASETS_FOLDER
from evaluators.backend import open_backend
from evaluators.backend_options import MODEL_PANEL, BackendOptions
from evaluators.runs.ask.study import Study, scorers_of
from leaderboard.ranking.reproduced import GPU_HOUR_USD, ReproducedPaper, costs_of, reproduced, reproductions
from leaderboard.verify.board_files import keys_folder, results_folder
from schemas.documents.papers import PaperRun, Reproduction
from schemas.folders.dataset_folder import MANIFEST

_FILES = "Files"


def _named_models(text: str) -> tuple[str, ...]:
    named = tuple(filter(None, names_in(text)))
    if not named:
        raise ConfigError("--models: names no model; give one, or leave the option out to ask none")
    return named


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproduceChoice:
    """What is reproduced, and where files lie."""

    models: tuple[str, ...] = option(
        "Models to ask, separated by commas: Hub ids or folders, or names at an endpoint. None are asked by default.",
        panel=MODEL_PANEL,
        default=(),
        read=_named_models,
    )
    backend: str | None = option(
        "Backend that calls them; by default openai with --base-url, and transformers without.", panel=MODEL_PANEL
    )
    runs: tuple[str, ...] | None = option(
        "Runs of the paper to build and ask, separated by commas; by default all.", read=names_in
    )
    inputs: tuple[str, ...] = option(
        "DATASET=PATH: the file or folder that a dataset is built from. Repeatable.",
        flag="--input",
        panel=_FILES,
        default=(),
    )
    answers: Path | None = option("Folder of the answers that the authors published, which are imported.", panel=_FILES)
    gpu_hour: float = option("Price of an hour of one GPU, in US dollars.", default=GPU_HOUR_USD, min=0)
    out: Path = option("Folder of all runs.", panel=_FILES, default=Path("out/runs"))
    datasets: Path = option(
        "Folder of built datasets; missing ones are built there.", panel=_FILES, default=DATASETS_FOLDER
    )


@one_line_errors(ANSWERS_KEPT)
@with_options
def reproduce(
    choice: ReproduceChoice,
    options: BackendOptions,
    paper: Annotated[str | None, typer.Argument(help="Name of the paper; without it, all are listed.")] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Build, then print what the paper's own models take in requests, tokens, hours and price."
        ),
    ] = False,
) -> None:
    """Give the numbers of a paper again, and compare them.

    Datasets are built, published answers imported, models asked, and all results, the accepted ones too, compared with
    what the paper printed. Without --models none is asked. The board shows the comparison under Papers.
    """
    if paper is None:
        for name, one in reproductions().items():
            n_runs = len(one.runs)
            print(f"{name}: {one.title}; {len(one.parts)} tables and figures, {n_runs} run{'s' * (n_runs != 1)}")
        print("next: biasboard reproduce NAME --dry-run")
        return
    if paper not in reproductions():
        raise ConfigError(f"{paper}: no such paper; have: {', '.join(reproductions())}")
    found = reproductions()[paper]
    by_name = {run.name: run for run in found.runs}
    for name in choice.runs or ():
        if name not in by_name:
            raise ConfigError(f"--runs {name}: no such run; have: {', '.join(by_name)}")
    runs = [by_name[name] for name in dict.fromkeys(choice.runs or by_name)]
    if choice.models and all(run.answers is not None for run in runs):
        raise ConfigError("--models: these runs are of published answers, and nothing is asked; leave it out")
    with redirect_stdout(sys.stderr):
        folders = _built(runs, _inputs(found, choice), choice)
    print(f"{found.title}\n")
    print("\n".join(_size_lines(runs, folders)))
    if dry_run:
        print("\n".join([*_cost_lines(found, runs, choice.gpu_hour), "", "nothing was asked"]))
        return
    with redirect_stdout(sys.stderr):
        _import(found, runs, folders, choice)
        for model in choice.models:
            _ask(model, runs, folders, choice, options)
        compared = _compare(paper, found, choice)
    print("\n".join(["", *_compared_lines(compared)]))


def _built(runs: Sequence[PaperRun], inputs: Mapping[str, Sequence[str]], choice: ReproduceChoice) -> dict[str, Path]:
    """Return the folder of each dataset that is there, after building those whose input is known."""
    folders = {}
    for run in {run.dataset: run for run in runs}.values():
        folder, paths = choice.datasets / run.dataset, inputs.get(run.dataset, ())
        if (folder / MANIFEST).is_file():
            if paths:
                note(f"{folder}: is there already, and --input is not read for it; remove the folder to build it anew")
        else:
            if run.input is not None and not paths:
                continue
            builder, *arguments = run.build.split()
            with working(f"building {folder}"):
                call(builder_application(builder), {"input": list(paths) or None, "out": folder}, arguments)
        folders[run.dataset] = folder
    return folders


def _inputs(paper: Reproduction, choice: ReproduceChoice) -> dict[str, list[str]]:
    """Return what each dataset is built from; what is given for one serves others of the same files."""
    files_of = {run.dataset: run.input for run in paper.runs if run.input is not None}
    given: dict[str, list[str]] = {}
    for text in choice.inputs:
        name, _, path = text.partition("=")
        if name not in files_of or not path:
            have = ", ".join(files_of) or "none"
            raise ConfigError(f"--input {text}: write DATASET=PATH; datasets that are built from files: {have}")
        given.setdefault(name, []).append(path)
    alike = {files_of[name]: paths for name, paths in given.items()}
    return {name: given.get(name, alike.get(files, [])) for name, files in files_of.items()}


def _size_lines(runs: Sequence[PaperRun], folders: Mapping[str, Path]) -> Iterator[str]:
    asked = [run for run in runs if run.answers is None]
    rows = [["run", "dataset", "requests", "prompt tokens (bytes / 4)", "generated tokens at most"]]
    for run in asked:
        numbers = run.n_requests, run.n_prompt_tokens, run.n_completion_tokens
        rows.append([run.name, run.dataset, *("unknown" if one is None else f"{one:,}" for one in numbers)])
    yield from _aligned(rows) if asked else ()
    for run in runs:
        if run.answers is not None:
            yield f"{run.name}: the authors published the answers: --answers FOLDER imports them"
    for dataset, files in {run.dataset: run.input for run in runs if run.dataset not in folders}.items():
        yield f"{dataset} is not built: give --input {dataset}=PATH, {files}"
    for run in asked:
        if run.n_requests is None and run.uncounted is not None:
            yield f"{run.name}: not counted in advance: {run.uncounted}"


def _cost_lines(paper: Reproduction, runs: Sequence[PaperRun], gpu_hour: float) -> Iterator[str]:
    runs = [run for run in runs if run.answers is None]
    if not runs:
        return
    yield ""
    n_prompt = _sum_if_known([run.n_prompt_tokens for run in runs])
    n_completion = _sum_if_known([run.n_completion_tokens for run in runs])
    rows = [["model", "parameters", "H100", "GPU hours", "US$"]]
    for cost in costs_of(paper, n_prompt, n_completion):
        rows.append(
            [
                cost.model.label,
                "unknown" if cost.parameters is None else f"{cost.parameters / 1e9:.1f} B",
                "endpoint" if cost.model.is_remote else str(cost.n_gpus or "unknown"),
                "unknown" if cost.hours is None else f"{cost.hours:.1f}",
                "unknown" if cost.hours is None else f"{cost.hours * gpu_hour:.0f}",
            ]
        )
    yield from _aligned(rows)
    yield (
        f"hours by assumptions (see the page of the paper), at US$ {gpu_hour:.2f} for an hour of a GPU; what an "
        "endpoint takes says biasboard score --dry-run --prices FILE"
    )


def _sum_if_known(numbers: Sequence[int | None]) -> int | None:
    return None if None in numbers else sum(filter(None, numbers))


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()


def _import(
    paper: Reproduction, runs: Sequence[PaperRun], folders: Mapping[str, Path], choice: ReproduceChoice
) -> None:
    if choice.answers is None:
        return
    of_answers = [run for run in runs if run.answers is not None]
    if not of_answers:
        raise ConfigError("--answers: nobody published answers that these runs would import; leave it out")
    if missing := [run for run in of_answers if run.dataset not in folders]:
        raise ConfigError(f"--answers: give --input {missing[0].dataset}=PATH too, {missing[0].input}")
    # Imported here, because planning needs none of it.
    from evaluators.commands.imports import ImportChoice, import_published

    for run in of_answers:
        for model in paper.models:
            if run.answers is not None and model.file is not None:
                answers = ImportChoice(
                    input=choice.answers,
                    model=model.file,
                    name=model.id,
                    dataset=folders[run.dataset],
                    out=choice.out,
                    scorers=None,
                )
                import_published(run.answers, answers)


def _ask(
    model: str,
    runs: Sequence[PaperRun],
    folders: Mapping[str, Path],
    choice: ReproduceChoice,
    options: BackendOptions,
) -> None:
    """Ask a model all runs whose datasets are here."""
    asked = [run for run in runs if run.answers is None]
    here = [run for run in asked if run.dataset in folders]
    if not here:
        raise ConfigError(f"--models: give --input {asked[0].dataset}=PATH too, {asked[0].input}")
    with working(f"opening {model}"):
        backend = open_backend(choice.backend or options.usual_backend, model, options)
    # Each config by those of the prompts that its task has.
    studies = [Study(datasets=(folders[one.dataset],), configs=one.configs, prompts=one.prompts) for one in here]
    of_runs = [study.plans(backend, skip=True) for study in studies]
    planned = replace(of_runs[0], plans=tuple(plan for one in of_runs for plan in one.plans))
    for line in dict.fromkeys(line for one in of_runs for line in one.notes):
        note(f"{model}: {line}")
    for _ in planned.ask(
        root=choice.out, scorers=scorers_of((plan.task for plan in planned.plans), None), together=True
    ):
        pass  # Each is written when it is finished.


def _compare(name: str, paper: Reproduction, choice: ReproduceChoice) -> ReproducedPaper:
    # Imported here, because a dry run needs none of it.
    from leaderboard.commands.comparable_results import paper_board
    from leaderboard.verify.entries import Root
    from leaderboard.verify.keys import open_book

    keys = open_book(keys_folder(), choice.datasets)
    roots = (Root(results_folder(), "accepted"), Root(choice.out, "local"))
    return reproduced(name, paper, paper_board(roots, keys, machine_memory(), paper.benchmarks))


def _compared_lines(compared: ReproducedPaper) -> Iterator[str]:
    for tested in compared.claims:
        seen = [f"published answers: {tested.published}"] if tested.published else []
        seen += [f"asked here: {tested.asked}"] if tested.asked else []
        yield f"{tested.outcome}: {tested.claim.text}" + (f" ({'; '.join(seen)})" if seen else "")
    yield ""
    width = max(len(part.status) for part in compared.parts)
    for part in compared.parts:
        yield f"{part.status.ljust(width)}  {part.part.number}"
    yield f"next: biasboard board; the page papers/{compared.name}.html shows each value beside the printed one"
