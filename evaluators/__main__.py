"""``python -m evaluators run|rescore|list|cache|doctor``."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, cast, get_args

import typer
from rich.console import Console
from rich.table import Table

from evaluators.backend import Backend, open_backend
from evaluators.backend_options import BackendOptions, with_backend_options
from evaluators.commands import cache as _cache_commands
from evaluators.commands.doctor import doctor_command
from evaluators.commands.imports import import_command
from evaluators.commands.index import index_command
from evaluators.runs import pipeline
from evaluators.runs.estimate import Stores, estimate, print_estimates
from evaluators.runs.measuring import metric_definitions
from evaluators.runs.rescore import Rescored, rescore
from evaluators.runs.run_folder import RESULT, check_model_id, finished_runs, read_run
from evaluators.runs.selection import Selection, normalisation_of, select
from evaluators.scorer import SCORER_HELP, Opened, TextScorer, open_scorers, with_scorers
from evaluators.stores.cache import check_cache
from evaluators.task import Prompt, ReadsScores, Task, load_task, prompt_of, task_for
from schemas import plugins
from schemas.command_line import one_line_errors
from schemas.dataset_folder import read_manifest
from schemas.errors import ConfigError
from schemas.files import replacing
from schemas.result import Metric, Normalisation, Result

MOST_CHANGES = 20
KEPT = "stopped; what was answered is kept, the same command goes on from there"

app = typer.Typer(
    help="Score models on built datasets, and score stored answers again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(_cache_commands.app, name="cache")
app.command("doctor")(doctor_command)
app.command("import")(import_command)
app.command("index")(index_command)


@app.command("run")
@one_line_errors(KEPT)
@with_backend_options
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
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="Prompt id; the task's first if left out. Repeatable: each task takes the first that it has."
        ),
    ] = None,
    normalisation: Annotated[
        str | None,
        typer.Option(help="sum, sum_with_end, token_mean or byte_mean; sum if left out. None for generated texts."),
    ] = None,
    max_failure_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests that may fail before the run ends without a result.")
    ] = pipeline.MAX_FAILURE_RATE,
    cache: Annotated[
        Path | None,
        typer.Option(
            envvar=_cache_commands.CACHE_VARIABLE, help="File of answers that runs share: what is in it is not asked."
        ),
    ] = None,
    scorer: Annotated[list[str] | None, typer.Option(help=SCORER_HELP)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count requests and tokens, name the price; ask and write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON instead of a table.")] = False,
    *,
    options: BackendOptions,
) -> None:
    """Ask a model every item, or go on where an earlier run stopped; write records and result."""
    _check_outputs(cache, only_json=as_json and not dry_run)
    mode = _normalisation(normalisation)
    parts = _parts(_selections(dataset, config, split, limit), prompt or [], mode)
    if options.name is not None:
        check_model_id(options.name)
    models = _baselines() if backend == "baseline" and model == "all" else [model]
    backends = (open_backend(backend, one_model, options) for one_model in models)
    stores = Stores(root=out, normalisation=mode, cache=cache)
    if dry_run:
        shown = options.name or model
        found = [estimate(*part, opened, stores, shown) for opened in backends for part in parts]
        print_estimates(found, as_json=as_json)
        return
    scorers = _scorers(parts, scorer)
    report = _report if len(models) == 1 else _report_briefly
    for opened in backends:
        for part in parts:
            report(*_score(part, opened, stores, max_failure_rate, limit, scorers))
    print(f"next: python -m leaderboard build --runs {shlex.quote(str(out))}")


class _Part(NamedTuple):
    """The items of one config, and how they are asked."""

    selection: Selection
    task: Task
    prompt: Prompt


class _Scorers(NamedTuple):
    """Who scores the texts of a run, and how the command line named them."""

    scorers: tuple[TextScorer, ...]
    given: tuple[str, ...]


def _scorers(parts: Sequence[_Part], given: list[str] | None) -> _Scorers:
    """Found before the first request: a scorer that does not exist must not cost an answer."""
    if not any(isinstance(part.task, ReadsScores) for part in parts):
        if given is not None:
            names = ", ".join(dict.fromkeys(part.task.name for part in parts))
            raise ConfigError(f"--scorer: task {names} reads no scores of texts; leave it out")
        return _Scorers((), ())
    opened = _opened(given)
    return _Scorers(opened.scorers, tuple(given or ()))


def _opened(given: list[str] | None) -> Opened:
    opened = open_scorers(given)
    for line in opened.missing:
        print(line)
    return opened


def _selections(
    dataset: Path, configs: list[str] | None, splits: list[str] | None, limit: int | None
) -> list[Selection]:
    manifest = read_manifest(dataset)
    names = configs or list(dict.fromkeys(entry.config for entry in manifest.splits))
    return [select(dataset, manifest, name, splits=splits or (), limit=limit) for name in names]


def _parts(selections: Sequence[Selection], given: Sequence[str], normalisation: Normalisation | None) -> list[_Part]:
    """How each selection is asked. A prompt that nothing is asked with is a slip."""
    parts = [_part(selection, given, normalisation) for selection in selections]
    for name in given:
        if all(part.prompt.id != name for part in parts):
            asked = ", ".join(dict.fromkeys(f"{part.task.name} with {part.prompt.id}" for part in parts))
            raise ConfigError(
                f"--prompt {name} is asked of no task: {asked}; leave it out, or name it before the others"
            )
    return parts


def _part(selection: Selection, prompt_ids: Sequence[str], normalisation: Normalisation | None) -> _Part:
    task = task_for(selection.item_shape)
    known = [prompt_id for prompt_id in prompt_ids if prompt_id in task.prompts]
    prompt = prompt_of(task, next(iter([*known, *prompt_ids]), None))
    normalisation_of(prompt, normalisation)
    return _Part(selection, task, prompt)


def _check_outputs(cache: Path | None, *, only_json: bool) -> None:
    if only_json:
        raise ConfigError("--json goes with --dry-run; a run writes result.json")
    if cache is not None:
        check_cache(cache)


def _score(
    part: _Part,
    backend: Backend,
    stores: Stores,
    max_failure_rate: float,
    limit: int | None,
    scorers: _Scorers,
) -> pipeline.Finished:
    return pipeline.run(
        *part,
        backend,
        root=stores.root,
        normalisation=stores.normalisation,
        max_failure_rate=max_failure_rate,
        cache=stores.cache,
        scorers=scorers.scorers,
        keep_scores=not scorers.given,
        command=_command(part, backend, stores.normalisation, limit, scorers.given),
    )


@app.command("rescore")
@one_line_errors()
def rescore_command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, or folders above them.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of all runs, for a score under another normalisation.")
    ] = None,
    normalisation: Annotated[str | None, typer.Option(help="Read the stored log-probabilities in another way.")] = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option(help="Score the texts anew, as in 'run'; none drops the scores. Stored ones stay if left out."),
    ] = None,
) -> None:
    """Compute every metric again from the stored answers, without the model and without the dataset."""
    mode = _normalisation(normalisation)
    scorers = None if scorer is None else _opened(scorer).scorers
    folders = [folder for run in runs for folder in finished_runs(run)]
    for number, folder in enumerate(folders):
        if number:
            print()
        outcome = rescore(folder, normalisation=mode, root=out, scorers=scorers, named=tuple(scorer or ()))
        _report_changes(outcome)


def _report_changes(outcome: Rescored) -> None:
    for change in outcome.changes[:MOST_CHANGES]:
        print(change)
    if len(outcome.changes) > MOST_CHANGES:
        print(f"... and {len(outcome.changes) - MOST_CHANGES} more")
    print(f"{len(outcome.changes)} of {outcome.n_metrics} metrics changed")
    _report(outcome.folder, outcome.result)


@app.command("texts")
@one_line_errors()
def texts_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="CSV file with the column text.")],
) -> None:
    """Write the texts of a run that need scores, for a scorer elsewhere: answers, and what they add to prompts."""
    result, records = read_run(run.parent if run.name == RESULT else run)
    task = load_task(result.signature.task)
    if not isinstance(task, ReadsScores):
        raise ConfigError(f"{run}: task {task.name} reads no scores of texts")
    if out.exists():
        raise ConfigError(f"--out {out}: exists already; name another file, or remove it")
    texts = task.texts(records)
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in texts)])
    print(f"wrote {len(texts):,} texts to {out}; with a column score it is --scorer KIND=stored:FILE@NAME-REVISION")


@app.command("list")
@one_line_errors()
def list_command() -> None:
    """List backends, tasks, prompts and metrics."""
    for name in plugins.names("evaluators.backends"):
        module = plugins.load("evaluators.backends", name, kind="backend")
        print(f"backend {name}: {module.SUMMARY}")
        for model in module.MODELS:
            print(f"  model {model}")
    for name in plugins.names("evaluators.scorers"):
        module = plugins.load("evaluators.scorers", name, kind="scorer")
        print(f"scorer {name}: {module.SUMMARY}")
        for kind in module.KINDS:
            print(f"  kind {kind}")
    for name in plugins.names("evaluators.tasks"):
        task = load_task(name)
        print(f"task {name} {task.version}: asks items of shape {task.item_shape}")
        for prompt in task.prompts.values():
            print(f"  prompt {prompt.id}: {prompt.description}")
        for metric in metric_definitions(name):
            print(f"  metric {metric.name} {metric.version}: {metric.description}")


def _normalisation(text: str | None) -> Normalisation | None:
    if text is None:
        return None
    if text not in get_args(Normalisation):
        raise ConfigError(f"--normalisation {text} does not exist; have: {', '.join(get_args(Normalisation))}")
    return cast(Normalisation, text)


def _baselines() -> list[str]:
    return list(plugins.load("evaluators.backends", "baseline", kind="backend").MODELS)


def _command(
    part: _Part,
    backend: Backend,
    normalisation: Normalisation | None,
    limit: int | None,
    scorers: Sequence[str],
) -> str:
    """The command line that reproduces a run, without the paths of the machine that it ran on."""
    selection = part.selection
    parts = ["python -m evaluators run", f"--dataset out/datasets/{selection.manifest.name}"]
    parts += [f"--config {selection.config}", *(f"--split {split}" for split in selection.splits)]
    parts += [f"--backend {backend.model.backend}", *backend.arguments]
    parts += [f"--prompt {part.prompt.id}"]
    optional = {"normalisation": normalisation, "limit": limit}
    parts += [f"--{name} {value}" for name, value in optional.items() if value is not None]
    return with_scorers(" ".join(parts), scorers if isinstance(part.task, ReadsScores) else ())


def _report(folder: Path, result: Result) -> None:
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


def _report_briefly(folder: Path, result: Result) -> None:
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
