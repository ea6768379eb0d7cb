"""``biasboard publish``: a dataset, or the results of runs, becomes a dataset repository of the Hugging Face Hub."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.hub_publishing import HubRepository, Publication
from biasboard.ground.hub_publishing import publish as send
from biasboard.ground.progress import steps
from builders.publishable import read_dataset
from leaderboard.benchmark_pages import check_plug_ins
from leaderboard.commands.shared_options import DATASETS, DatasetsFolder, KeysFolder
from leaderboard.publish.published_results import PublishedResults, published_results
from leaderboard.verify.board_files import keys_folder, results_folder
from leaderboard.verify.keys import KeyBook, open_book
from leaderboard.verify.submissions import public_files
from leaderboard.verify.verdicts import sound_runs
from schemas.folders.dataset_folder import MANIFEST
from schemas.folders.run_folder import RESULT, find_runs, finished_runs, read_result
from schemas.outputs.documents import PublishedFiles, with_format


@one_line_errors("stopped; run the same command again, it goes on from what the Hub holds")
@with_format(PublishedFiles)
def publish(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder of a dataset, of a finished run, or of runs at any depth."),
    ],
    repo: Annotated[str, typer.Option(metavar="ORG/NAME", help="Dataset repository; created if it does not exist.")],
    private: Annotated[bool, typer.Option("--private", help="Create the repository as a private one.")] = False,
    pr: Annotated[
        bool, typer.Option("--pr", help="Open a pull request in place of a commit to the main branch; no tag.")
    ] = False,
    withhold_texts: Annotated[
        bool,
        typer.Option(
            "--withhold-texts",
            help="Publish hashes in place of the generated texts of runs, or of the prompts where options are scored; "
            "some benchmarks ask for that by themselves.",
        ),
    ] = False,
    keys: KeysFolder = None,
    datasets: DatasetsFolder = DATASETS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")] = False,
) -> PublishedFiles:
    """Publish a dataset, or the results of runs, on the Hugging Face Hub.

    A dataset is one commit and a tag of its version. Results are verified first, and are one commit beside those of
    other models that the repository has; it gets a card with their headline measures. Stores of answers, locks and
    results of useless predictors, which every board computes, stay behind.
    """
    repository = HubRepository(repo, writes=not dry_run)
    with tempfile.TemporaryDirectory() as scratch:
        if (folder / MANIFEST).is_file():
            if withhold_texts:
                raise ConfigError(f"--withhold-texts: {folder} is a dataset, and only results of runs go without texts")
            with steps() as report:
                publication: Publication = read_dataset(folder, report=report)
        else:
            check_plug_ins()
            book = open_book(keys or keys_folder(), datasets)
            publication = _results(folder, book, Path(scratch), withhold=withhold_texts)
        done = send(publication, repository, private=private, pull_request=pr, is_dry_run=dry_run)
        if dry_run:
            typer.echo("dry run: nothing was sent")
        return PublishedFiles(**done._asdict())


def _results(folder: Path, book: KeyBook, scratch: Path, *, withhold: bool) -> PublishedResults:
    """Verify the results in a folder and choose what to publish of them."""
    if not folder.exists():
        raise DataError(f"{folder}: no such folder; name that of a dataset or of runs")
    if folder.is_dir() and not find_runs(folder):
        raise DataError(f"{folder}: holds neither {MANIFEST} nor {RESULT}; name the folder of a dataset or of runs")
    found = finished_runs(folder)
    runs = [run for run in found if read_result(run).model.endpoint != "baseline"]
    if not runs:
        raise DataError(f"{folder}: holds results of useless predictors only, which every board computes itself")
    runs = [run for run, _ in sound_runs(runs, book, results_folder())]
    with steps() as step:
        public = []
        for number, run in enumerate(runs):
            step("preparing results", number, len(runs))
            public.append(public_files(run, scratch, withhold=withhold))
            if (words := public[-1].withheld_words) is not None:
                typer.echo(f"{run}: {words}")
        return published_results(public, scratch)
