"""Asks one model, or all baselines of a benchmark, under a study, and prints the results."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import note, working
from evaluators.backend import check_model_id, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import benchmarks, load_benchmark
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.ask.study import Plans, RunChoice, Study, scorers_of
from evaluators.runs.measure.baseline_gate import why_no_rank
from evaluators.runs.measure.recording import check_read, is_unreadable, notes, on_letters, order_lines
from evaluators.runs.plan.plan import Plan
from evaluators.stores.store import check_cache
from schemas.documents.result import Metric, Result
from schemas.folders.run_folder import RESULT
from schemas.outputs.documents import FinishedRun, FinishedRuns, Printed

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


_OF_SIGNATURE = ("benchmark", "dataset", "dataset_version", "config", "task", "prompt")
_LONGEST = 160
"""Largest number of characters of a line that can be shortened."""
_MOST_NAMES = 4
"""Largest number of metrics without a value that a line names."""


def report(folder: Path, result: Result, advice: str = "", *, verbose: bool = False) -> None:
    """Print a result: its headline metrics, its counts, notes on unread answers, and its file.

    ``verbose`` prints a table of all that the benchmark prints, and the signature.
    """
    counts = result.counts
    signature = result.signature
    benchmark = load_benchmark(result.signature.benchmark)
    metrics = benchmark.printed(result) if verbose else benchmark.headlines(result)
    if metrics and (counts.scored or result.model.endpoint == "baseline"):
        if verbose:
            _print_table(result, metrics)
        else:
            print(f"{result.model.id} on {signature.dataset} {signature.config}, prompt {signature.prompt}")
            _print_lines(metrics, counts.scored)
    kinds = {"refused": counts.refused, "unparsed": counts.unparsed, "failed": counts.failed}
    others = "".join(f", {n} {kind}" for kind, n in kinds.items() if n)
    scored = f"all {counts.items}" if counts.scored == counts.items else f"{counts.scored} of {counts.items}"
    cut = f"; {counts.truncated} truncated" if counts.truncated else ""
    print(f"{scored} items scored{others}{cut}{on_letters(folder, result)}")
    for line in _without_value(result.metrics if verbose else metrics, metrics):
        print(shortened(line))
    for line in (*notes(folder, result, advice), *order_lines([(folder, result)])):
        print(line)
    # Baselines never have a rank: models are compared with them.
    if result.metrics and result.model.endpoint != "baseline" and (reason := why_no_rank(result, folder)) is not None:
        print(f"no rank on the board: {reason}")
    if verbose:
        print(f"signature {signature}")
    print(f"result {folder / RESULT}")


def shortened(line: str) -> str:
    """Return a line that fits on a wide terminal; whoever prints it says where the rest is."""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 2]} …"


def _without_value(metrics: Iterable[Metric], shown: Iterable[Metric]) -> list[str]:
    """Return a line for each reason why metrics on all items have no value, with some of the metrics."""
    first = {metric.name for metric in shown}
    names: dict[str, list[str]] = {}
    # Metrics that the table would show come first.
    for metric in sorted(metrics, key=lambda metric: metric.name not in first):
        if metric.value is None and not metric.group and metric.reason is not None:
            names.setdefault(metric.reason, []).append(metric.name)
    return [
        # "and 1 more" would be as long as the last name.
        f"without a value: {listed(own, most=_MOST_NAMES - (len(own) > _MOST_NAMES))} ({reason})"
        for reason, own in names.items()
    ]


def _print_lines(metrics: Sequence[Metric], n_scored: int) -> None:
    """Print a line for each metric with a value: the value, its interval, its ideal, and its items if not all count."""
    known = [metric for metric in metrics if metric.value is not None and not metric.group]
    width = max((len(metric.name) for metric in known), default=0)
    for metric in known:
        value, interval = value_and_interval(metric)
        between = interval or "(no interval)"
        ideal = "" if metric.ideal is None else f"  ideal {metric.ideal:g}"
        items = f"  of {metric.n} items" if metric.unit == "items" and metric.n != n_scored else ""
        print(f"  {metric.name:<{width}}  {value:>7}  {between}{ideal}{items}")


def _print_table(result: Result, metrics: Sequence[Metric]) -> None:
    table = Table(
        title=f"{result.model.id} on {result.signature.dataset} {result.signature.config}", title_justify="left"
    )
    for column in ("metric", "value", "95 % interval", "ideal", "n"):
        table.add_column(column, justify="left" if column == "metric" else "right", no_wrap=column != "n")
    groups = load_benchmark(result.signature.benchmark).printed_groups
    for metric in metrics:
        if metric.value is not None and set(metric.group) <= groups:
            name = metric.name + "".join(f" ({value})" for value in metric.group.values())
            ideal = "" if metric.ideal is None else f"{metric.ideal:g}"
            table.add_row(name, *value_and_interval(metric), ideal, f"{metric.n} {metric.unit}")
    # Elsewhere than on a terminal rich assumes 80 characters, in which the numbers of items are cut.
    Console(width=None if sys.stdout.isatty() else _LONGEST).print(table)


def report_many(results: Sequence[Result]) -> None:
    """Print a line about the results of each dataset, for commands that score many models."""
    for dataset in dict.fromkeys((result.signature.dataset, result.signature.dataset_version) for result in results):
        own = [result for result in results if (result.signature.dataset, result.signature.dataset_version) == dataset]
        configs = listed(list(dict.fromkeys(result.signature.config for result in own)), most=_MOST_NAMES)
        n_models = len({result.model.id for result in own})
        print(f"{' '.join(dataset)}: models {n_models}, results {len(own)} on {configs}")


def print_next(root: Path, results: Iterable[Result]) -> None:
    """Print the next command after results with metrics: answers without are data for the builder that asked."""
    if any(result.metrics for result in results):
        print(f"next: biasboard board --runs {shlex.quote(str(root))}")


def value_and_interval(metric: Metric) -> tuple[str, str]:
    """Return the table cells with the value of a metric and its interval."""
    interval = metric.interval
    return (
        "none" if metric.value is None else _plain(metric.value),
        "" if interval is None else interval.shown(_plain),
    )


def _plain(number: float) -> str:
    """Format a number with four decimals, and zero without a sign."""
    return f"{round(number, 4) + 0.0:.4f}"


def runs_document(finished: Iterable[tuple[Path, Result]]) -> FinishedRuns:
    """Return finished runs, each its folder and result, as the document that commands print."""
    return FinishedRuns(
        runs=tuple(
            FinishedRun(
                folder=str(folder),
                status="unreadable" if is_unreadable(result) else "finished",
                model=result.model.id,
                **{name: getattr(result.signature, name) for name in _OF_SIGNATURE},
                signature=str(result.signature),
                signature_sha256=result.signature_sha256,
                counts=result.counts,
                metrics=result.metrics,
                usage=result.usage,
            )
            for folder, result in finished
        )
    )
