"""``python -m evaluators run``: a model is asked, its answers become records and results."""

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

KEPT = "stopped; what was answered is kept, the same command goes on from there"


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
        int | None,
        typer.Option(
            min=1, help="At most N items per config, in whole sets that belong together, such as minimal pairs."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Task that asks the items, where several can; see 'list'.")] = None,
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
    ] = MAX_FAILURE_RATE,
    cache: Annotated[
        Path | None,
        typer.Option(envvar=CACHE_VARIABLE, help="File of answers that runs share: what is in it is not asked."),
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
    """The scorers of the texts of a run."""

    scorers: tuple[TextScorer, ...]
    given: tuple[str, ...]
    """The same as the command line names them."""


def _scorers(plans: Sequence[Plan], given: list[str] | None) -> _Scorers:
    """Find the scorers before the first request: one that does not exist must not cost an answer."""
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
    """The user's choice of how items are asked and read."""

    task: str | None
    prompts: Sequence[str]
    normalisation: Normalisation | None


def _plans(selections: Sequence[Selection], how: _How) -> list[Plan]:
    """Return a plan for each selection. A prompt that nothing is asked with is refused: it is a slip."""
    plans = [_plan(selection, how) for selection in selections]
    for name in how.prompts:
        if all(plan.prompt.id != name for plan in plans):
            asked = ", ".join(dict.fromkeys(f"{plan.task.name} with {plan.prompt.id}" for plan in plans))
            raise ConfigError(
                f"--prompt {name} is asked of no task: {asked}; leave it out, or name it before the others"
            )
    return plans


def _plan(selection: Selection, how: _How) -> Plan:
    task = task_for(selection.item_shape, how.task)
    known = [prompt_id for prompt_id in how.prompts if prompt_id in task.prompts]
    plan = Plan(selection, task, prompt_of(task, next(iter([*known, *how.prompts]), None)), how.normalisation)
    _ = plan.normalisation  # Refuses one that the prompt cannot have, before a model is loaded.
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
    """Return the command line that reproduces a run, without the paths of the machine that it ran on."""
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
