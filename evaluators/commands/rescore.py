"""The command ``python -m evaluators rescore``: computes the metrics of stored answers again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.options import finite
from biasboard.ground.progress import steps
from evaluators.commands.runs_from_options import report, runs_document
from evaluators.runs.ask.study import VERBOSE, normalisation_named, scorers_of
from evaluators.runs.measure.rescoring import rescore
from evaluators.runs.plan.plan import MAX_FAILURE_RATE
from evaluators.task import load_task
from schemas.documents.result import Result
from schemas.folders.run_folder import finished_runs, read_result
from schemas.outputs.documents import FinishedRuns, with_format

MOST_CHANGES = 20


@one_line_errors("stopped; each result is either rescored or as it was; the same command does the rest")
@with_format(FinishedRuns)
def rescore_command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, or folders above them.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of all runs, for new runs under another normalisation.")
    ] = None,
    normalisation: Annotated[
        str | None, typer.Option(help="Another normalisation of the stored log-probabilities.")
    ] = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            help="Score the texts again, as in 'run'; none drops the scores. If left out, stored scores are kept."
        ),
    ] = None,
    max_failure_rate: Annotated[
        float,
        typer.Option(
            min=0, max=1, callback=finite, help="Share of items that may have failed; with more, a run is left alone."
        ),
    ] = MAX_FAILURE_RATE,
    verbose: Annotated[bool, VERBOSE] = False,
) -> FinishedRuns:
    """Compute every metric again from stored answers, without the model and without the dataset."""
    mode = None if normalisation is None else normalisation_named(normalisation)
    folders = [folder for run in runs for folder in finished_runs(run)]
    names = dict.fromkeys(read_result(folder).signature.task for folder in folders if scorer is not None)
    scorers = None if scorer is None else scorers_of(map(load_task, names), scorer)
    rescored: list[tuple[Path, Result]] = []
    with steps() as step:
        for number, folder in enumerate(folders):
            if number:
                print()
            step("computing runs again", number, len(folders))
            outcome = rescore(
                folder,
                normalisation=mode,
                root=out,
                max_failure_rate=max_failure_rate,
                scorers=scorers,
                named=tuple(scorer or ()),
            )
            for change in outcome.changes[:MOST_CHANGES]:
                print(change)
            if len(outcome.changes) > MOST_CHANGES:
                print(f"... and {len(outcome.changes) - MOST_CHANGES} more")
            print(f"{len(outcome.changes)} of {outcome.n_metrics} metrics changed")
            report(outcome.folder, outcome.result, verbose=verbose)
            rescored.append((outcome.folder, outcome.result))
    if not verbose:
        print("all measures and groups: in the files result.json, or with --verbose")
    return runs_document(rescored)
