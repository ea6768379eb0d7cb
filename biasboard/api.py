"""Functions for Python: score a model, build a dataset, evaluate a model on it, load a result, rank by any scores."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

    from biasboard.scoring import Score
    from evaluators.runs.ask.pipeline import Finished
    from leaderboard.ranking.score_ranks import ScoreRanks
    from schemas.documents.result import Result

PathLike: TypeAlias = str | os.PathLike[str]


def build(
    benchmark: str,
    *,
    out: PathLike | None = None,
    source: str | None = None,
    input: PathLike | Sequence[PathLike] | None = None,
    limit: int | None = None,
    overwrite: bool = False,
    **more: Any,
) -> Path:
    """Build a dataset, as the command ``biasboard build`` does.

    Args:
        benchmark: Name of the builder.
        out: Dataset folder; None for ``out/datasets/NAME``.
        source: Source of the texts; None for the embedded one.
        input: File or folder to read the source from; several if the source reads several.
        limit: Largest number of items; None for all.
        overwrite: True to replace a dataset that is already in the folder.
        **more: Other options of the builder by name, such as ``seed``.

    Returns:
        The dataset folder.

    Raises:
        ConfigError: there is no such builder or option, or the folder is not empty.
        DataError: the source is missing or invalid.
    """
    from biasboard.building import builder_application
    from biasboard.ground.command_line import call
    from biasboard.ground.errors import ConfigError

    options = {"out": out, "source": source, "input": input, "limit": limit, "overwrite": overwrite or None, **more}
    built = call(builder_application(benchmark), options)
    if not isinstance(built, Path):
        raise ConfigError(f"builder '{benchmark}' returns no dataset; return its folder from the command")
    return built


def evaluate(
    dataset: PathLike | Sequence[PathLike],
    *,
    backend: str,
    model: str,
    out: PathLike = "out/runs",
    config: str | Sequence[str] = (),
    part: str | Sequence[str] = (),
    split: str | Sequence[str] = (),
    limit: int | None = None,
    task: str | None = None,
    prompt: str | Sequence[str] = (),
    contexts: Sequence[int | str] = (),
    normalisation: str | None = None,
    max_failure_rate: float | None = None,
    cache: PathLike | None = None,
    scorer: str | Sequence[str] | None = None,
    **options: Any,
) -> list[Finished]:
    """Ask a model about each item of one or more datasets, as the command ``biasboard run`` does.

    Repeating a call continues where the last one stopped, without asking anything again.

    Args:
        dataset: Folder of a built dataset, or one of the Hub as ``ORG/NAME@REVISION``; or several.
        backend: Backend that calls the model.
        model: Hub id, folder, file of stored answers, or baseline (or ``all`` baselines).
        out: Folder of all runs.
        config: Configs and suites to ask; all if empty, like the parts and the splits.
        part: Configs of a suite.
        split: Splits of the configs.
        limit: Largest number of items per config; 0 for all, None for what the task says.
        task: Task, if several fit the items.
        prompt: Prompts and protocols: each config is asked with each of them that its task has; if empty, with the
            default.
        contexts: Numbers of solved examples in the prompt, or names such as ``8-RULE`` if a rule of the task chooses
            the examples; if empty, those of the prompts, or the task's default.
        normalisation: Normalisation of option log-probabilities; None for the default.
        max_failure_rate: Share of requests that may fail; None for the default.
        cache: File of a cache that runs share; None for that of ``BIASBOARD_CACHE``, if it is set.
        scorer: Scorers of the texts; None for the default ones that are installed.
        **options: Options of the backend by name, as on the command line: ``dtype="bfloat16"``, for instance.

    Returns:
        The finished runs, each with its ``folder`` and ``result``.

    Raises:
        ConfigError: an option cannot be used; nothing was asked.
        DataError: the dataset is damaged.
        MissingExtraError: a library that the backend needs is not installed.
        RunError: a run ended early; its answers, and the runs before it, are kept.
    """
    from dataclasses import replace
    from inspect import signature

    from biasboard.ground.command_line import hide_foreign_bars
    from biasboard.ground.options import from_values
    from biasboard.ground.progress import note
    from evaluators.backend_options import BackendOptions
    from evaluators.commands.runs_from_options import ask_all
    from evaluators.runs.ask.study import CACHE_VARIABLE, RunChoice, Study, normalisation_named
    from evaluators.runs.measure.recording import is_unreadable

    hide_foreign_bars()
    items = {
        "configs": config,
        "parts": part,
        "splits": split,
        "limit": limit,
        "task": task,
        "prompts": prompt,
        "contexts": tuple(map(str, contexts)) or None,
        "normalisation": normalisation and normalisation_named(normalisation),
    }
    folders = [dataset] if isinstance(dataset, str | os.PathLike) else dataset
    study = replace(from_values(Study, items, function="evaluate"), datasets=tuple(map(Path, folders)))
    chosen = {
        "backend": backend,
        "model": model,
        "out": out,
        "max_failure_rate": max_failure_rate,
        "cache": cache or os.environ.get(CACHE_VARIABLE) or None,
        "scorers": scorer,
    }
    choice = from_values(RunChoice, chosen, function="evaluate")
    also = [*signature(evaluate).parameters]
    backend_options = from_values(BackendOptions, options, function="evaluate", also=also)
    # A function should not write the command's messages to standard output.
    with redirect_stdout(sys.stderr):
        finished = list(ask_all(study, choice, backend_options))
        for run in finished:
            if is_unreadable(run.result):
                note(
                    f"warning: none of the answers in {run.folder} could be read; {run.advice or 'try another prompt'}"
                )
    return finished


def score(
    model: str,
    *,
    backend: str | None = None,
    benchmarks: str | Sequence[str] | None = None,
    prompt: str | Sequence[str] = (),
    quick: bool = False,
    against: str | None = None,
    out: PathLike = "out/runs",
    datasets: PathLike = "out/datasets",
    **options: Any,
) -> Score:
    """Score a model on every benchmark with the prompts that fit it, as the command ``biasboard score`` does.

    Repeating a call continues where the last one stopped, without asking anything again.

    Args:
        model: Hub id or folder of the model, or its name at an endpoint.
        backend: Backend that calls the model; None for ``openai`` with ``base_url``, and ``transformers`` without.
        benchmarks: Names of benchmarks; None for all that need no data of yours.
        prompt: Prompts and protocols for the configs that have them, or CONFIG=PROMPT; if empty, the first that fits.
        quick: True to ask a few items of each config, which gives no rank.
        against: Id of a model on the board, or of a run in ``out``, to compare with.
        out: Folder of all runs.
        datasets: Folder of built datasets; missing ones are built there.
        **options: Options of the backend by name, as on the command line: ``dtype="bfloat16"``, for instance. Those of
            gates too: ``fail_under={"worst_group_accuracy": 0.7}``, ``max_missing``, ``max_worse`` (a number, or
            one for each measure), ``point``, ``allow``.

    Returns:
        The ``runs`` and the ``report``, which has the outcome of each gate; with ``summary()``, ``to_frame()``,
        ``items()``, ``to_markdown()`` and ``card()``.

    Raises:
        ConfigError: an option cannot be used; nothing was asked.
        MissingExtraError: a library that the backend needs is not installed.
        RunError: a run ended early; its answers, and the runs before it, are kept.
    """
    from inspect import signature

    from biasboard.gate import GateChoice
    from biasboard.ground.command_line import hide_foreign_bars
    from biasboard.ground.options import from_values, names_of
    from biasboard.scoring import ScoreChoice, score_model
    from evaluators.backend_options import BackendOptions

    hide_foreign_bars()
    chosen = {
        "backend": backend,
        "benchmarks": benchmarks,
        "prompts": prompt,
        "quick": quick or None,
        "against": against,
        "out": out,
        "datasets": datasets,
    }
    choice = from_values(ScoreChoice, chosen, function="score")
    of_gates = {name: options.pop(name) for name in [*options] if name in names_of(GateChoice)}
    if isinstance(of_gates.get("max_worse"), int | float):  # One value for all measures.
        of_gates["max_worse"] = str(of_gates["max_worse"])
    gates = from_values(GateChoice, of_gates, function="score")
    also = [*signature(score).parameters, *names_of(GateChoice)]
    backend_options = from_values(BackendOptions, options, function="score", also=also)
    # A function should not write the command's messages to standard output.
    with redirect_stdout(sys.stderr):
        return score_model(model, choice, backend_options, gates)


def load_result(path: PathLike) -> Result:
    """Load the result of a finished run and check it against its records.

    Args:
        path: Folder of the run, or its ``result.json``.

    Raises:
        DataError: there is no finished run, a file is invalid, or the records are not those of the result.
    """
    from schemas.folders.run_folder import RESULT, read_parts, read_result

    folder = Path(path)
    folder = folder.parent if folder.name == RESULT else folder
    result = read_result(folder)
    for _ in read_parts(folder, result):
        pass  # Reading checks them, one part at a time.
    return result


def ranks(
    scores: pd.DataFrame | PathLike,
    *,
    model: str | None = None,
    item: str | Sequence[str] = (),
    score: str | None = None,
    cluster: str | None = None,
    lower_is_better: bool = False,
    range: tuple[float, float] | None = None,
    common: bool = False,
) -> ScoreRanks:
    """Rank models by their mean scores on the same items, as the command ``biasboard ranks`` does.

    Args:
        scores: A data frame, or a CSV or Parquet file. A long table has a row for each score, with columns such as
            model, item and score; a wide one has a row or a column for each model.
        model: Column of the models; None to recognise it by its name, as for the other columns.
        item: Column of the items, or several that name an item together.
        score: Column of the scores of a long table.
        cluster: Column with the cluster of each item; None if each item is its own.
        lower_is_better: True for errors and losses.
        range: Smallest and largest score that are possible; missing scores then widen ranks by what they could change.
        common: True to compare on those items only for which every model has a score.

    Returns:
        The ``models``, the best first, each with its rank range, tier, mean, interval and chance of being the first;
        ``tied_for_first``, ``detectable``, ``comparisons``, ``notes`` and ``frame()``.

    Raises:
        ConfigError: a column does not exist, or an option cannot be used.
        DataError: the scores cannot be used.
    """
    from leaderboard.ranking.score_ranks import rank_scores
    from leaderboard.ranking.scores import Columns
    from schemas.files.user_tables import read_frame

    frame = read_frame(Path(scores)) if isinstance(scores, str | os.PathLike) else scores
    items = (item,) if isinstance(item, str) else tuple(item)
    columns = Columns(model=model, item=items, score=score, cluster=cluster)
    return rank_scores(frame, columns, lower_is_better=lower_is_better, limits=range, common=common)
