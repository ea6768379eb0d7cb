"""The command ``python -m evaluators index``: computes the indices of models from their runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import DataError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import progress, steps
from evaluators.benchmark import benchmarks, load_benchmark
from evaluators.commands.printed_results import shortened, value_and_interval
from evaluators.runs.measure.example_sets import SetTable, set_tables
from evaluators.runs.measure.index_values import Index, ModelResults, ScoredResult, index_of, results_by_model
from evaluators.runs.measure.stored_results import measurement_of
from schemas.folders.run_folder import finished_runs, read_parts, read_result

_MOST_INDICES = 3
"""Number of indices, the ranking one first, that are printed if the user does not want all of them."""
_MOST_NAMES = 4


@one_line_errors()
def index_command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, or folders above them.")],
    verbose: Annotated[
        bool, typer.Option("--verbose", help=f"Print all indices and signatures, not only the first {_MOST_INDICES}.")
    ] = False,
) -> None:
    """Compute the index of each model, a mean of metrics over configs, from the records of its runs.

    For gifi it is the mean of seven metrics over the configs, for superni the mean over the sets of examples. Where a
    model lacks a result, the command says which and how to get it.
    """
    folders = list(dict.fromkeys(folder for run in runs for folder in finished_runs(run)))
    results = []
    with progress("reading records", len(folders)) as advance:
        for folder in folders:
            results.append(read_scored(folder))
            advance(1)
    models = results_by_model(results)
    if not models:
        with_index = ", ".join(benchmark.name for benchmark in benchmarks() if benchmark.indices)
        raise DataError(
            f"no result of a benchmark with an index here; these have one: {with_index}; build a dataset "
            "of one of them and run the model on it"
        )
    indices = []
    with steps() as step:
        for number, of_model in enumerate(models):
            step("computing the indices of models", number, len(models))
            definitions = () if of_model.missing else of_model.definitions
            indices.append((of_model, [index_of(definition, of_model.scored) for definition in definitions]))
    obstacles = [of_model.obstacle for of_model in models]
    for of_model, computed in indices:
        # If no model has an index, the error below says what is missing.
        if None in obstacles or not of_model.missing:
            _print(of_model, computed, verbose=verbose)
    # Without any index, scripts must see an error.
    if None not in obstacles:
        others = f" ({len(models) - 1} more have no index either)" if len(models) > 1 else ""
        raise DataError(f"nothing to average: {_title(models[0])}{others}: {obstacles[0]}")


def read_scored(folder: Path) -> ScoredResult:
    """Read a finished run, and compute the metrics and deviations that an index needs.

    Raises:
        DataError: the files of the run are damaged or do not match.
    """
    result = read_result(folder)
    signature = result.signature
    names = load_benchmark(signature.benchmark).index_metrics(signature.task)
    if not names:
        return ScoredResult(result, {}, {})
    measurement = measurement_of(folder, result, read_parts(folder, result))
    overall = {metric.name: metric for metric in measurement.metrics() if not metric.group}
    compared = [*load_benchmark(signature.benchmark).compared_over_sets]
    by_part = measurement.by_cluster(compared) if signature.parts else {}
    return ScoredResult(result, overall, measurement.deviations(names), by_part)


def _title(of_model: ModelResults) -> str:
    model = next(iter(of_model.scored.values())).result.model
    normalisation = f", {of_model.normalisation}" if of_model.normalisation else ""
    return f"{model.id} on {of_model.dataset} {of_model.dataset_version}, {of_model.asked}{normalisation}"


def _print(of_model: ModelResults, computed: Sequence[Index], *, verbose: bool) -> None:
    title = _title(of_model)
    if of_model.missing:
        print(f"{title}: no index, {of_model.obstacle}")
        return
    table = Table(title=title, title_justify="left")
    for column in ("metric", "value", "95 % interval"):
        table.add_column(column, justify="left" if column == "metric" else "right", no_wrap=True)
    shown = computed if verbose else computed[:_MOST_INDICES]
    # An index without a value gives its reason below.
    for index in shown:
        if index.metric.value is None:
            continue
        table.add_row(index.metric.name, *value_and_interval(index.metric))
        for metric, part in zip(index.parts, index.definition.parts, strict=True):
            table.add_row(f"  {part.key}", *value_and_interval(metric))
        table.add_section()
    Console().print(table)
    for source in of_model.definitions[0].sources:
        result = of_model.scored[source].result
        if verbose:
            print(f"{result.signature.config}: {result.signature}")
        for scorer in result.scorers:
            print(f"  {scorer.kind} by {scorer.label}")
        if (reason := result.environment.corruption) is not None:
            print(f"  warning: {reason}")
    # A reason begins with the name of the part without a value; the rest is often the same for several indices.
    reasons: dict[str, list[str]] = {}
    for index in shown:
        if index.metric.reason is not None:
            reasons.setdefault(index.metric.reason.partition(": ")[2], []).append(index.metric.name)
    for reason, names in reasons.items():
        print(shortened(f"without a value: {listed(names, most=_MOST_NAMES)} ({reason})"))
    if len(shown) < len(computed):
        print(f"{len(computed) - len(shown)} more indices: --verbose")
    for sets in set_tables(of_model, load_benchmark(of_model.benchmark).compared_over_sets):
        _print_sets(sets)


def _print_sets(sets: SetTable) -> None:
    title = f"{sets.of_sets} of {sets.n_examples} examples, means over {sets.n_parts} parts"
    table = Table(title=title, title_justify="left")
    table.add_column("set of each part")
    for name in next(iter(sets.rows.values())):
        table.add_column(name, justify="right", no_wrap=True)
    for row, means in sets.rows.items():
        table.add_row(row, *("none" if mean.value is None else f"{mean.value:.4f}" for mean in means.values()))
    Console().print(table)
