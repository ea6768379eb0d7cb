"""The command ``python -m evaluators run``: asks a model and writes records and results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from evaluators.backend import Backend, open_backend
from evaluators.backend_options import BackendOptions, with_backend_options
from evaluators.benchmark import load_benchmark
from evaluators.commands.cache import CACHE_VARIABLE
from evaluators.commands.options import normalisation_named, opened_scorers
from evaluators.commands.report import report, report_briefly
from evaluators.models.ids import check_model_id
from evaluators.runs.estimate import StoredAnswers, estimate, print_estimates
from evaluators.runs.pipeline import MAX_FAILURE_RATE, RunOptions, run
from evaluators.runs.plan import Plan
from evaluators.runs.selection import Selection, select
from evaluators.scorer import SCORER_HELP, TextScorer, with_scorers
from evaluators.stores.maintenance import check_cache
from evaluators.task import ReadsScores, prompt_of, task_for
from schemas.command_line import one_line_errors
from schemas.dataset_folder import read_manifest
from schemas.errors import ConfigError
from schemas.result import Normalisation

KEPT = "stopped; the answers so far are kept, and the same command continues from there"


@one_line_errors(KEPT)
@with_backend_options
def run_command(
    dataset: Annotated[Path, typer.Option(help="Folder of a built dataset.")],
    backend: Annotated[str, typer.Option(help="Backend that calls the model; see 'list'.")],
    model: Annotated[
        str,
        typer.Option(help="Model: a Hub id, a folder, a file of stored answers, or a baseline (or 'all' baselines)."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("out/runs"),
    config: Annotated[list[str] | None, typer.Option(help="Config of the dataset; by default all. Repeatable.")] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="Split; by default all splits of the config. Repeatable.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Largest number of items per config; sets such as minimal pairs are taken as a whole."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Task, if several fit the items; see 'list'.")] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="Prompt id; by default the task's first. Repeatable: each task takes the first one that it has."
        ),
    ] = None,
    normalisation: Annotated[
        str | None,
        typer.Option(help="sum, sum_with_end, token_mean or byte_mean; by default sum. Not for generated texts."),
    ] = None,
    max_failure_rate: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of requests that may fail; with more, the run ends without a result."),
    ] = MAX_FAILURE_RATE,
    cache: Annotated[
        Path | None,
        typer.Option(envvar=CACHE_VARIABLE, help="File of the cache that runs share: answers in it are reused."),
    ] = None,
    scorer: Annotated[list[str] | None, typer.Option(help=SCORER_HELP)] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print numbers of requests and tokens and the price; ask and write nothing."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON instead of a table.")] = False,
    *,
    options: BackendOptions,
) -> None:
    """Ask a model about each item, or continue where an earlier run stopped; write records and results."""
    _check_outputs(cache, only_json=as_json and not dry_run)
    mode = normalisation_named(normalisation)
    plans = _plans(_selections(dataset, config, split, limit), _How(task, prompt or [], mode))
    if options.name is not None:
        check_model_id(options.name)
    models = _baselines(plans) if backend == "baseline" and model == "all" else [model]
    backends = (open_backend(backend, one_model, options) for one_model in models)
    if dry_run:
        stores, shown = StoredAnswers(root=out, cache=cache), options.name or model
        found = [estimate(plan, opened, stores, shown) for opened in backends for plan in plans]
        print_estimates(found, as_json=as_json)
        return
    scorers = _scorers(plans, scorer)
    show = report if len(models) == 1 else report_briefly
    for opened in backends:
        for plan in plans:
            run_options = RunOptions(
                root=out,
                command=_command(plan, opened, limit, scorers.given),
                max_failure_rate=max_failure_rate,
                cache=cache,
                scorers=scorers.scorers,
                keep_scores=not scorers.given,
            )
            show(*run(plan, opened, run_options))
    print(f"next: python -m leaderboard build --runs {shlex.quote(str(out))}")


class _Scorers(NamedTuple):
    """The scorers of a run."""

    scorers: tuple[TextScorer, ...]
    given: tuple[str, ...]
    """Names of the scorers on the command line."""


def _scorers(plans: Sequence[Plan], given: list[str] | None) -> _Scorers:
    """Open the scorers before the first request, so that a wrong name is found before anything is asked."""
    if not any(isinstance(plan.task, ReadsScores) for plan in plans):
        if given is not None:
            names = ", ".join(dict.fromkeys(plan.task.name for plan in plans))
            raise ConfigError(f"--scorer: task {names} reads no scores of texts; leave it out")
        return _Scorers((), ())
    return _Scorers(opened_scorers(given).scorers, tuple(given or ()))


def _selections(
    dataset: Path, configs: list[str] | None, splits: list[str] | None, limit: int | None
) -> list[Selection]:
    manifest = read_manifest(dataset)
    names = configs or list(dict.fromkeys(entry.config for entry in manifest.splits))
    return [select(dataset, manifest, name, splits=splits or (), limit=limit) for name in names]


class _How(NamedTuple):
    """The user's choice of task, prompts and normalisation."""

    task: str | None
    prompts: Sequence[str]
    normalisation: Normalisation | None


def _plans(selections: Sequence[Selection], how: _How) -> list[Plan]:
    """Return a plan for each selection; refuse a prompt that no plan uses, since it is probably a mistake.

    Raises:
        ConfigError: no plan uses a prompt that the user named.
    """
    plans = [_plan(selection, how) for selection in selections]
    for name in how.prompts:
        if all(plan.prompt.id != name for plan in plans):
            asked = ", ".join(dict.fromkeys(f"{plan.task.name} with {plan.prompt.id}" for plan in plans))
            raise ConfigError(
                f"--prompt {name} is not used; the run would ask {asked}; leave it out, or name it before the others"
            )
    return plans


def _plan(selection: Selection, how: _How) -> Plan:
    task = task_for(selection.item_shape, how.task)
    known = [prompt_id for prompt_id in how.prompts if prompt_id in task.prompts]
    plan = Plan(selection, task, prompt_of(task, next(iter([*known, *how.prompts]), None)), how.normalisation)
    _ = plan.normalisation  # Raises if the prompt cannot have it, before a model is loaded.
    return plan


def _check_outputs(cache: Path | None, *, only_json: bool) -> None:
    if only_json:
        raise ConfigError("--json goes with --dry-run; a run writes result.json")
    if cache is not None:
        check_cache(cache)


def _baselines(plans: Sequence[Plan]) -> list[str]:
    """Return the names of the baselines of the dataset's benchmark."""
    benchmark = load_benchmark(plans[0].selection.manifest.benchmark)
    if not benchmark.baselines:
        raise ConfigError(f"benchmark '{benchmark.name}' has no baselines; name a model with another --backend")
    return [baseline.name for baseline in benchmark.baselines]


def _command(plan: Plan, backend: Backend, limit: int | None, scorers: Sequence[str]) -> str:
    """Return the command line that reproduces a run, without paths of this machine."""
    selection = plan.selection
    parts = ["python -m evaluators run", f"--dataset out/datasets/{selection.manifest.name}"]
    parts += [f"--config {selection.config}", *(f"--split {split}" for split in selection.splits)]
    parts += [f"--backend {backend.model.backend}", *backend.arguments]
    if plan.task != task_for(selection.item_shape):
        parts.append(f"--task {plan.task.name}")
    parts += [f"--prompt {plan.prompt.id}"]
    optional = {"normalisation": plan.chosen_normalisation, "limit": limit}
    parts += [f"--{name} {value}" for name, value in optional.items() if value is not None]
    return with_scorers(" ".join(parts), scorers if isinstance(plan.task, ReadsScores) else ())
