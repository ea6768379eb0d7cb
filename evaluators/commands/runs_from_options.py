"""Asks one model, or all baselines of a benchmark, under a study, and prints the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import note, working
from evaluators.backend import check_model_id, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import benchmarks, load_benchmark
from evaluators.commands.printed_results import print_next, report, report_many, runs_document
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.ask.study import Plans, RunChoice, Study, scorers_of
from evaluators.runs.measure.unread_answers import check_read
from evaluators.runs.plan.plan import Plan
from evaluators.stores.store import check_cache
from schemas.printed import Printed

if TYPE_CHECKING:
    from evaluators.runs.plan.estimate import Estimate

_ALL = "all"
"""Model name for all baselines of a benchmark."""


def ask(study: Study, choice: RunChoice, options: BackendOptions, *, verbose: bool = False) -> Printed:
    """Ask a model about every chosen item, and print the results.

    Args:
        study: The items and how they are asked.
        choice: The model, and where its runs go.
        options: The options of the backend.
        verbose: True to print whole tables instead of headline metrics.

    Returns:
        The finished runs. With them comes the error of a run that ended early, or none of whose answers could be read:
        a program must learn of the runs before it.
    """
    finished: list[Finished] = []
    is_brief = choice.model == _ALL
    error: BaseException | None = None
    try:
        for finished_run in ask_all(study, choice, options):
            finished.append(finished_run)
            if not is_brief:
                report(*finished_run[:3], verbose=verbose)
        if is_brief:
            report_many([finished_run.result for finished_run in finished])
        check_read([run[:3] for run in finished])
        if not is_brief and not verbose:
            print("all measures and groups: in the files result.json, or with --verbose, which asks nothing again")
        print_next(choice.out, (finished_run.result for finished_run in finished))
    except BaseException as raised:
        error = raised
    return Printed(runs_document((each.folder, each.result) for each in finished), error=error)


def ask_all(study: Study, choice: RunChoice, options: BackendOptions) -> Iterator[Finished]:
    """Ask a model about every chosen item, and yield each run when it is finished.

    Raises:
        ConfigError: an option cannot be used; nothing was asked.
        RunError: a run ended early; answers are kept.
    """
    plans = _checked_plans(study, choice, options)
    scorers = scorers_of((plan.task for plan in plans), choice.scorers)
    for planned in _plans_of_models(study, choice, options):
        yield from planned.ask(root=choice.out, cache=choice.cache, scorers=scorers, named_scorers=choice.scorers or ())


def estimated(study: Study, choice: RunChoice, options: BackendOptions) -> list[Estimate]:
    """Estimate what each run would take, without asking anything, not even an endpoint what it can do.

    Raises:
        ConfigError: an option cannot be used.
    """
    _checked_plans(study, choice, options)
    name = options.name or choice.model
    planned = _plans_of_models(study, choice, options, probe=False)
    return [one for plans in planned for one in plans.estimate(root=choice.out, cache=choice.cache, name=name)]


def _checked_plans(study: Study, choice: RunChoice, options: BackendOptions) -> Sequence[Plan]:
    """Return the usual plans, after checking the cache and the model's name: all of this before a model is loaded."""
    if choice.cache is not None:
        check_cache(choice.cache)
    plans = study.usual_plans
    if options.name is not None:
        check_model_id(options.name)
    # A line if the user's limit leaves out items that the board needs, before any of the others is asked.
    few = dict.fromkeys(
        plan.selection.config
        for plan in plans
        for part in plan.selection.parts
        if study.limit and part.max_items < replace(part, limit=plan.task.default_limit).max_items
    )
    if few and choice.backend != "baseline":
        note(
            f"--limit {study.limit} leaves out items of {listed(list(few), most=4)}, so that this run gets "
            "no rank; without it, only the others are asked later"
        )
    return plans


def _plans_of_models(
    study: Study, choice: RunChoice, options: BackendOptions, *, probe: bool = True
) -> Iterator[Plans]:
    """Open the named model, or all baselines of each benchmark one after the other, and yield what each is asked."""
    own = dict.fromkeys(one.manifest.benchmark for one in study.configs_to_ask)
    models = {name: [choice.model] for name in own}
    if choice.backend == "baseline" and choice.model == _ALL:
        models = {name: [baseline.name for baseline in load_benchmark(name).baselines] for name in own}
        for name in (name for name, of_benchmark in models.items() if not of_benchmark):
            have = ", ".join(dict.fromkeys(baseline.name for other in benchmarks() for baseline in other.baselines))
            raise ConfigError(f"benchmark '{name}' lists no baselines; name one that fits: {have}")
    for model in dict.fromkeys(name for names in models.values() for name in names):
        with working(f"opening {options.name or model}"):
            backend = open_backend(choice.backend, model, options)
        of_model = [name for name in own if model in models[name]]
        planned = study.plans(backend, benchmarks=of_model, probe=probe, max_failure_rate=choice.max_failure_rate)
        for line in planned.notes:
            note(line)
        yield planned
