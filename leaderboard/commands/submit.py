"""``python -m leaderboard submit``: a verified result is put where it belongs, for a pull request."""

from __future__ import annotations

import datetime
import shlex
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.memory import machine_memory
from biasboard.ground.progress import steps
from leaderboard.benchmark_pages import check_plug_ins
from leaderboard.commands.folder_options import KeysFolder
from leaderboard.commands.key_secret_option import KeySecretFile
from leaderboard.verify.board_files import RESULTS, holds_results, keys_folder, results_folder
from leaderboard.verify.keys import KeyBook, open_book
from leaderboard.verify.submissions import Prepared, Statement, prepare, write_prepared
from leaderboard.verify.verdicts import judge
from schemas.folders.run_folder import finished_runs
from schemas.printed import with_format

PullRequest: TypeAlias = Literal["hub", "git"]
_OUTBOX = Path("out/submitted")


@one_line_errors("stopped; nothing was submitted")
@with_format()
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
    key_secret: KeySecretFile = None,
    datasets: Annotated[
        Path, typer.Option(help="Folder of built datasets, for results without a key; may be absent.")
    ] = Path("out/datasets"),
    pr: Annotated[
        PullRequest | None,
        typer.Option(help="Open a pull request in the dataset repository of --repo, or print the git commands for it."),
    ] = None,
    repo: Annotated[str | None, typer.Option(help="Dataset repository on the Hub, for --pr hub.")] = None,
    withhold_texts: Annotated[
        bool,
        typer.Option(
            "--withhold-texts",
            help="Publish hashes in place of the generated texts; some benchmarks ask for that by themselves.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be published, and write nothing.")
    ] = False,
) -> None:
    """Verify runs, show what will be published, and put it where the board expects it.

    Published are result.json, the records with all answers, the scores of texts, and a submission.json with the options
    of this command. Stores of answers, locks and other files of a run stay behind. Where texts are withheld, the
    records hold their hashes, and sums.parquet holds what each cluster of items adds to each metric; a maintainer needs
    the complete run to compare both.
    """
    if (pr == "hub") != (repo is not None):
        raise ConfigError("--pr hub needs --repo, the dataset repository that takes results, and no other option does")
    board = results or (RESULTS if holds_results() else None)
    if pr == "git" and board is None:
        raise ConfigError(
            f"--pr git: no {RESULTS} here; run in a clone of the board's repository, name the folder there with "
            "--results, or open a pull request with --pr hub"
        )
    target = board or _OUTBOX
    check_plug_ins()
    runs = [folder for path in run for folder in finished_runs(path)]
    _verify(runs, open_book(keys or keys_folder(), datasets, key_secret), results or results_folder())
    statement = Statement(contact, model_card, train_data_disclosure)
    version = metadata.version("biasboard")
    today = datetime.date.today()
    with tempfile.TemporaryDirectory() as scratch, steps() as step:
        prepared = []
        for number, folder in enumerate(runs):
            step("preparing results", number, len(runs))
            made = prepare(folder, statement, Path(scratch), today=today, version=version, withhold=withhold_texts)
            prepared.append(made)
            _show(made)
        if dry_run:
            print("nothing was written, as --dry-run asks")
            return
        for one in prepared:
            print(f"wrote {write_prepared(one, target)}")
    if pr == "git":
        print("\n".join(_git_commands(prepared, target)))
    elif pr == "hub":
        print(f"opened {_open_on_hub(prepared, target, repo or '')}")
    elif board is None:
        print(f"next: copy it into {RESULTS} of a clone of the board's repository, or the same command with --pr hub")
    else:
        print("next: biasboard board, or the same command with --pr git or --pr hub")


def _verify(runs: Sequence[Path], book: KeyBook, results: Path) -> None:
    """Verify all runs, compare them with the accepted results, and say what a reader will be warned of.

    Raises:
        DataError: a run is rejected.
    """
    with steps("verifying results") as step:

        def advance(n_done: int, n: int) -> None:
            step("verifying results", n_done, n)

        verdicts = list(judge(runs, book, machine_memory(), against=results, advance=advance))
    for verdict in verdicts:
        if verdict.reason is not None:
            raise DataError(f"{verdict.place}: would be rejected: {verdict.reason}")
        for warning in verdict.warnings:
            print(f"warning: {verdict.place}: {warning}", file=sys.stderr)


def _show(prepared: Prepared) -> None:
    print(f"{prepared.run} -> {prepared.place}")
    if prepared.withheld is not None:
        print(f"  hashes in place of the texts: {prepared.withheld}")
    for file in prepared.files:
        print(f"  {file.name}: {file.stat().st_size / 1000:,.0f} kB")
    submission = prepared.submission
    print(
        f"  submission.json: contact {submission.contact}, model card {submission.model_card}, "
        f"run on {submission.run_date}"
    )


def _git_commands(prepared: Sequence[Prepared], results: Path) -> list[str]:
    """Return the commands that bring the results to a code host, on a branch of their own."""
    first = prepared[0]
    branch = f"submit-{first.place.parts[1]}-{first.submission.result_sha256[:8]}"
    places = " ".join(shlex.quote(str(results / one.place)) for one in prepared)
    return [
        "run these, then open a pull request:",
        f"  git switch --create {shlex.quote(branch)}",
        f"  git add {places}",
        f"  git commit --message {shlex.quote(f'Submit {first.place.parts[1]}')}",
        f"  git push --set-upstream origin {shlex.quote(branch)}",
    ]


def _open_on_hub(prepared: Sequence[Prepared], results: Path, repo: str) -> str:
    """Open a pull request in a dataset repository of the Hub, and return its address."""
    from huggingface_hub import CommitOperationAdd, HfApi

    operations = [
        CommitOperationAdd(path_in_repo=(one.place / path.name).as_posix(), path_or_fileobj=str(path))
        for one in prepared
        for path in sorted((results / one.place).iterdir())
    ]
    title = f"Submit {prepared[0].place.parts[1]}"
    opened = HfApi().create_commit(repo, operations, commit_message=title, repo_type="dataset", create_pr=True)
    return str(opened.pr_url)
