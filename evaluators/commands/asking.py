"""Asks a model as a command line says: plans, backends, scorers, one run per config."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from evaluators.backend import Backend, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import benchmarks, load_benchmark
from evaluators.commands.options import RunChoice, normalisation_named, opened_scorers
from evaluators.commands.report import report, report_briefly
from evaluators.models.ids import check_model_id
from evaluators.runs.context import check_context
from evaluators.runs.earlier import StoredAnswers
from evaluators.runs.estimate import Remote, estimate, print_estimates
from evaluators.runs.options import RunOptions
from evaluators.runs.pipeline import Finished, run
from evaluators.runs.plan import Plan
from evaluators.runs.selection import Selection, select
from evaluators.runs.unread import check_read
from evaluators.scorer import TextScorer, with_scorers
from evaluators.stores.maintenance import check_cache
from evaluators.task import ReadsScores, prompt_of, task_for
from schemas.dataset_folder import read_manifest
from schemas.errors import ConfigError
from schemas.result import Normalisation


def ask(choice: RunChoice, options: BackendOptions, *, dry_run: bool, as_json: bool) -> None:
    """Ask a model every item of a dataset, or print what that would take.

    Args:
        choice: The items and how they are asked.
        options: The options of the backend.
        dry_run: True to print an estimate instead of asking.
        as_json: True to print the estimate as JSON.

    Raises:
        ConfigError: an option cannot be used; nothing was asked.
        RunError: the run ended early; answers are kept.
    """
    _check_outputs(choice, only_json=as_json and not dry_run)
    plans = _plans(choice)
    if options.name is not None:
        check_model_id(options.name)
    models = _baselines(plans) if choice.backend == "baseline" and choice.model == "all" else [choice.model]
    backends = (open_backend(choice.backend, one_model, options) for one_model in models)
    stores, shown = StoredAnswers(root=choice.out, cache=choice.cache), options.name or choice.model
    if dry_run:
        found = []
        for opened in backends:
            check_context(plans, opened, stores, choice.max_failure_rate, probe=not isinstance(opened, Remote))
            found += [estimate(plan, opened, stores, shown) for plan in plans]
        print_estimates(found, as_json=as_json)
        return
    scorers = _scorers(plans, choice.scorers)
    finished: list[Finished] = []
    show = report if len(models) == 1 else report_briefly
    for opened in backends:
        check_context(plans, opened, stores, choice.max_failure_rate)
        for plan in plans:
            run_options = RunOptions(
                root=choice.out,
                command=_command(plan, opened, choice, scorers.given),
                max_failure_rate=choice.max_failure_rate,
                cache=choice.cache,
                scorers=scorers.scorers,
                keep_scores=not scorers.given,
            )
            finished.append(run(plan, opened, run_options))
            show(*finished[-1])
    check_read(finished)
    print(f"next: python -m leaderboard build --runs {shlex.quote(str(choice.out))}")


class _Scorers(NamedTuple):
    """The scorers of a run."""

    scorers: tuple[TextScorer, ...]
    given: tuple[str, ...]
    """Names of the scorers on the command line."""


def _scorers(plans: Sequence[Plan], given: Sequence[str] | None) -> _Scorers:
    """Open the scorers before the first request, so that a wrong name is found before anything is asked."""
    if not any(isinstance(plan.task, ReadsScores) for plan in plans):
        if given is not None:
            names = ", ".join(dict.fromkeys(plan.task.name for plan in plans))
            raise ConfigError(f"--scorer: task {names} reads no scores of texts; leave it out")
        return _Scorers((), ())
    return _Scorers(opened_scorers(given).scorers, tuple(given or ()))


def _plans(choice: RunChoice) -> list[Plan]:
    """Return a plan for each config; refuse a prompt that no plan uses, since it is probably a mistake."""
    manifest = read_manifest(choice.dataset)
    names = choice.configs or tuple(dict.fromkeys(entry.config for entry in manifest.splits))
    normalisation = normalisation_named(choice.normalisation)
    selections = [select(choice.dataset, manifest, name, splits=choice.splits, limit=choice.limit) for name in names]
    plans = [_plan(selection, choice, normalisation) for selection in selections]
    for name in choice.prompts:
        if all(plan.prompt.id != name for plan in plans):
            asked = ", ".join(dict.fromkeys(f"{plan.task.name} with {plan.prompt.id}" for plan in plans))
            raise ConfigError(
                f"--prompt {name} is not used; the run would ask {asked}; leave it out, or name it before the others"
            )
    return plans


def _plan(selection: Selection, choice: RunChoice, normalisation: Normalisation | None) -> Plan:
    task = task_for(selection.item_shape, choice.task)
    known = [prompt_id for prompt_id in choice.prompts if prompt_id in task.prompts]
    plan = Plan(selection, task, prompt_of(task, next(iter([*known, *choice.prompts]), None)), normalisation)
    _ = plan.normalisation  # Raises if the prompt cannot have it, before a model is loaded.
    return plan


def _check_outputs(choice: RunChoice, *, only_json: bool) -> None:
    if only_json:
        raise ConfigError("--json goes with --dry-run; a run writes result.json")
    if choice.cache is not None:
        check_cache(choice.cache)


def _baselines(plans: Sequence[Plan]) -> list[str]:
    """Return the names of the baselines of the dataset's benchmark."""
    benchmark = load_benchmark(plans[0].selection.manifest.benchmark)
    if not benchmark.baselines:
        listed = dict.fromkeys(baseline.name for other in benchmarks() for baseline in other.baselines)
        raise ConfigError(f"benchmark '{benchmark.name}' lists no baselines; name one that fits: {', '.join(listed)}")
    return [baseline.name for baseline in benchmark.baselines]


def _command(plan: Plan, backend: Backend, choice: RunChoice, scorers: Sequence[str]) -> str:
    """Return the command line that reproduces a run, without paths of this machine."""
    selection = plan.selection
    parts = ["python -m evaluators run", f"--dataset out/datasets/{selection.manifest.name}"]
    parts += [f"--config {selection.config}", *(f"--split {split}" for split in selection.splits)]
    parts += [f"--backend {backend.model.backend}", *backend.arguments]
    parts += [f"--task {choice.task}"] if choice.task is not None else []
    parts += [f"--prompt {plan.prompt.id}"]
    optional = {"normalisation": plan.chosen_normalisation, "limit": choice.limit}
    parts += [f"--{name} {value}" for name, value in optional.items() if value is not None]
    return with_scorers(" ".join(parts), scorers if isinstance(plan.task, ReadsScores) else ())
