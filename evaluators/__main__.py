"""``python -m evaluators run|rescore|list``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console
from rich.table import Table

from evaluators import pipeline
from evaluators.backend import Backend, BackendOptions, open_backend
from evaluators.rescore import rescore
from evaluators.run_folder import RESULT, check_model_id, read_run
from evaluators.scoring import metric_definitions
from evaluators.task import load_task, prompt_of, task_for
from schemas import plugins
from schemas.command_line import one_line_errors
from schemas.dataset_folder import read_manifest
from schemas.errors import ConfigError
from schemas.result import Metric, Normalisation, Result

MOST_CHANGES = 20
KEPT = "stopped; what was answered is kept, the same command goes on from there"

app = typer.Typer(
    help="Score models on built datasets, and score stored answers again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("run")
@one_line_errors(KEPT)
def run_command(
    dataset: Annotated[Path, typer.Option(help="Folder of a built dataset.")],
    backend: Annotated[str, typer.Option(help="How the model is called: see 'list'.")],
    model: Annotated[str, typer.Option(help="Hub id, local folder, baseline (or 'all'), or stored answers.")],
    out: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("out/runs"),
    config: Annotated[
        list[str] | None, typer.Option(help="Config of the dataset; all if left out. Repeatable.")
    ] = None,
    split: Annotated[list[str] | None, typer.Option(help="Split; all of the config if left out. Repeatable.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most N items per config, as whole minimal pairs.")
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="Prompt id; the task's first if left out.")] = None,
    normalisation: Annotated[str, typer.Option(help="sum, sum_with_end, token_mean or byte_mean.")] = "sum",
    name: Annotated[str | None, typer.Option(help="What to call the model in results.")] = None,
    revision: Annotated[str | None, typer.Option(help="Commit, tag or branch on the Hub.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:N or mps.")] = None,
    batch_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens per batch, padding counted.")] = None,
    max_failure_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests that may fail before the run ends without a result.")
    ] = pipeline.MAX_FAILURE_RATE,
) -> None:
    """Ask a model every item, or go on where an earlier run stopped; write records and result."""
    manifest = read_manifest(dataset)
    task = task_for(manifest.item_shape)
    chosen_prompt = prompt_of(task, prompt)
    mode = _normalisation(normalisation)
    configs = config or list(dict.fromkeys(entry.config for entry in manifest.splits))
    selections = [pipeline.select(dataset, manifest, one, splits=split or (), limit=limit) for one in configs]
    if name is not None:
        check_model_id(name)
    options = BackendOptions(name=name, revision=revision, dtype=dtype, device=device, batch_tokens=batch_tokens)
    models = _baselines() if backend == "baseline" and model == "all" else [model]
    for one_model in models:
        opened = open_backend(backend, one_model, options)
        for selection in selections:
            finished = pipeline.run(
                selection,
                task,
                chosen_prompt,
                opened,
                root=out,
                normalisation=mode,
                max_failure_rate=max_failure_rate,
                command=_command(selection, opened, chosen_prompt.id, mode, limit),
            )
            if len(models) == 1:
                _report(finished.result, finished.folder)
            else:
                _report_briefly(finished.result)
    print(f"next: python -m leaderboard build --runs {shlex.quote(str(out))}")


@app.command("rescore")
@one_line_errors()
def rescore_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of all runs, for a score under another normalisation.")
    ] = None,
    normalisation: Annotated[str | None, typer.Option(help="Read the stored log-probabilities in another way.")] = None,
) -> None:
    """Compute every metric again from the stored answers, without the model and without the dataset."""
    run = run.parent if run.name == RESULT else run
    outcome = rescore(run, normalisation=None if normalisation is None else _normalisation(normalisation), root=out)
    for change in outcome.changes[:MOST_CHANGES]:
        print(change)
    if len(outcome.changes) > MOST_CHANGES:
        print(f"... and {len(outcome.changes) - MOST_CHANGES} more")
    print(f"{len(outcome.changes)} of {outcome.n_metrics} metrics changed")
    _report(read_run(outcome.folder).result, outcome.folder)


@app.command("list")
@one_line_errors()
def list_command() -> None:
    """List backends, tasks, prompts and metrics."""
    for name in plugins.names("evaluators.backends"):
        module = plugins.load("evaluators.backends", name, kind="backend")
        print(f"backend {name}: {module.SUMMARY}")
        for model in module.MODELS:
            print(f"  model {model}")
    for name in plugins.names("evaluators.tasks"):
        task = load_task(name)
        print(f"task {name} {task.version}: asks items of shape {task.item_shape}")
        for prompt in task.prompts.values():
            print(f"  prompt {prompt.id}: {prompt.description}")
        for metric in metric_definitions(name):
            print(f"  metric {metric.name} {metric.version}: {metric.description}")


def _normalisation(text: str) -> Normalisation:
    if text not in get_args(Normalisation):
        raise ConfigError(f"--normalisation {text} does not exist; have: {', '.join(get_args(Normalisation))}")
    return cast(Normalisation, text)


def _baselines() -> list[str]:
    return list(plugins.load("evaluators.backends", "baseline", kind="backend").MODELS)


def _command(
    selection: pipeline.Selection, backend: Backend, prompt: str, normalisation: Normalisation, limit: int | None
) -> str:
    """The command line that reproduces a run, without the paths of the machine that it ran on."""
    parts = ["python -m evaluators run", f"--dataset out/datasets/{selection.manifest.name}"]
    parts += [f"--config {selection.config}", *(f"--split {split}" for split in selection.splits)]
    parts += [f"--backend {backend.model.backend}", *backend.arguments]
    parts += [f"--prompt {prompt}", f"--normalisation {normalisation}"]
    return " ".join(parts if limit is None else [*parts, f"--limit {limit}"])


def _report(result: Result, folder: Path) -> None:
    counts = result.counts
    table = Table(
        title=f"{result.model.id} on {result.signature.dataset} {result.signature.config}", title_justify="left"
    )
    for column in ("metric", "value", "95 % interval", "ideal", "n"):
        table.add_column(column, justify="left" if column == "metric" else "right", no_wrap=column != "n")
    for metric in result.metrics:
        if metric.value is not None and set(metric.group) <= {"stereotype"}:
            table.add_row(*_row(metric, metric.value))
    console = Console()
    console.print(table)
    print(
        f"{counts.scored} of {counts.items} items scored, {counts.refused} refused, {counts.unparsed} unparsed, "
        f"{counts.failed} failed"
    )
    print(f"signature {result.signature}")
    print(f"result {folder / RESULT}")


def _report_briefly(result: Result) -> None:
    """One line, where many models are scored at once."""
    overall = {metric.name: metric.value for metric in result.metrics if not metric.group}
    values = ", ".join(f"{name} {value:.4f}" for name, value in overall.items() if value is not None)
    print(f"{result.model.id} on {result.signature.dataset} {result.signature.config}: {values}")


def _plain(number: float) -> str:
    """Four digits, and no sign before a zero."""
    return f"{round(number, 4) + 0.0:.4f}"


def _row(metric: Metric, value: float) -> tuple[str, str, str, str, str]:
    name = metric.name + "".join(f" ({value})" for value in metric.group.values())
    interval = "" if metric.interval is None else f"{_plain(metric.interval.low)} to {_plain(metric.interval.high)}"
    return (
        name,
        _plain(value),
        interval,
        "" if metric.ideal is None else f"{metric.ideal:g}",
        f"{metric.n} {metric.unit}",
    )


if __name__ == "__main__":
    app()
