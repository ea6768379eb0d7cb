"""``python -m leaderboard submit``: a verified result is put where it belongs, for a pull request."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import DataError
from biasboard.ground.hub_publishing import HubRepository, Publication, publish
from biasboard.ground.plain_text import printable
from biasboard.ground.progress import note, steps
from evaluators.runs.measure.recording import is_unreadable
from leaderboard.benchmark_pages import check_plug_ins
from leaderboard.commands.shared_options import DATASETS, DatasetsFolder, KeysFolder
from leaderboard.verify.board_files import RESULTS, holds_results, keys_folder, results_folder
from leaderboard.verify.keys import open_book
from leaderboard.verify.submissions import models_of, prepare, public_files, statement, write_submission
from leaderboard.verify.verdicts import sound_runs
from schemas.folders.run_folder import finished_runs, read_result

_OUTBOX = Path("out/submitted")


@one_line_errors("stopped; nothing was submitted")
def submit(
    run: Annotated[list[Path], typer.Argument(help="Folders of finished runs, or folders that contain them.")],
    contact: Annotated[str, typer.Option(help="Address or account at which you answer questions; it is published.")],
    model_card: Annotated[str, typer.Option(help="Https address of a description of the model.")],
    train_data_disclosure: Annotated[
        str | None, typer.Option(help="Statement on whether the model was trained on items of the benchmark.")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help=f"Folder of accepted results, to which the result is added. Default: {RESULTS} of the working folder; "
            "where it has neither results nor keys, the result is compared with those that biasboard brings, and goes "
            f"into {_OUTBOX}."
        ),
    ] = None,
    keys: KeysFolder = None,
    datasets: DatasetsFolder = DATASETS,
    repo: Annotated[
        str | None, typer.Option(help="Dataset repository on the Hub in which to open a pull request with the results.")
    ] = None,
    withhold_texts: Annotated[
        bool,
        typer.Option(
            "--withhold-texts",
            help="Publish hashes in place of the generated texts, or of the prompts where options are scored; some "
            "benchmarks ask for that by themselves.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be published, and write nothing.")
    ] = False,
) -> None:
    """Verify runs, show what will be published, and put it where the board expects it.

    Published are result.json, the records with all answers, the scores of texts, and a submission.json with the options
    of this command. Stores of answers, locks and other files of a run stay behind. Where generated texts are withheld,
    the records hold their hashes, and sums.parquet holds what each cluster of items adds to each metric; a maintainer
    needs the complete run to compare both. Where prompts of options are, the records hold the hashes of the requests,
    and every number still follows from them.
    """
    board = results or (RESULTS if holds_results() else None)
    target = board or _OUTBOX
    stated = statement(contact=contact, model_card=model_card, train_data_disclosure=train_data_disclosure)
    check_plug_ins()
    runs = [folder for path in run for folder in finished_runs(path)]
    sound = sound_runs(runs, open_book(keys or keys_folder(), datasets), results or results_folder())
    for _, verdict in sound:
        if verdict.is_limited:
            note(f"left out: {printable(verdict.place)} asked only some items, and gets no rank")
    whole = [folder for folder, verdict in sound if not verdict.is_limited]
    if not whole:
        raise DataError("each run asked only some items; ask all of them")
    unread = [folder for folder in whole if is_unreadable(read_result(folder))]
    for folder in unread:
        note(f"left out: {printable(str(folder))}: none of its answers could be read, so that it has no value")
    runs = [folder for folder in whole if folder not in unread]
    if not runs:
        raise DataError("none of the answers could be read; try another prompt")
    with tempfile.TemporaryDirectory() as scratch, steps() as step:
        prepared = []
        for number, folder in enumerate(runs):
            step("preparing results", number, len(runs))
            public = public_files(folder, Path(scratch), withhold=withhold_texts)
            submission = prepare(public, stated)
            prepared.append((public, submission))
            print(f"{public.run} -> {public.place}")
            if (words := public.withheld_words) is not None:
                print(f"  {words}")
            for file in public.files:
                print(f"  {file.name}: {file.stat().st_size / 1000:,.0f} kB")
            told = f"contact {submission.contact}, model card {submission.model_card}, run on {submission.run_date}"
            print(f"  submission.json: {told}")
        if dry_run:
            print("nothing was written, as --dry-run asks")
            return
        for public, submission in prepared:
            print(f"wrote {write_submission(public, submission, target)}")
    if repo is not None:
        files = {
            path.relative_to(target).as_posix(): path
            for public, _ in prepared
            for path in sorted((target / public.place).iterdir())
        }
        publication = Publication(title=f"Submit {models_of([public for public, _ in prepared])}", files=files)
        publish(publication, HubRepository(repo, writes=True), pull_request=True)
    elif board is None:
        print(f"next: copy it into {RESULTS} of a clone of the board's repository, or the same command with --repo")
    else:
        print("next: biasboard board; to hand it in, commit it on a branch and open a pull request")
