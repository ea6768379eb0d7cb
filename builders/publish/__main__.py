"""``python -m builders.publish``: publishes a dataset folder on the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.hub_repository import HubRepository
from biasboard.ground.progress import steps
from builders.publish.publishable import read_dataset
from builders.publish.sending import plan_lines, publish
from schemas.printed import with_format

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(name="publish", epilog=EXIT_STATUS)
@one_line_errors("stopped; run the same command again, it goes on from what the Hub holds")
@with_format()
def publish_dataset(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Dataset folder.")],
    repo: Annotated[str, typer.Option(metavar="ORG/NAME", help="Dataset repository; created if it does not exist.")],
    private: Annotated[bool, typer.Option("--private", help="Create the repository as a private one.")] = False,
    pr: Annotated[
        bool, typer.Option("--pr", help="Open a pull request in place of a commit to the main branch; no tag.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")] = False,
) -> None:
    """Publish a dataset on the Hugging Face Hub: one commit, and a tag of its version."""
    with steps() as report:
        dataset = read_dataset(folder, report=report)
    repository = HubRepository(repo)
    if dry_run:
        for line in plan_lines(dataset, repository, private=private, pull_request=pr):
            typer.echo(line)
        typer.echo("dry run: nothing was sent")
        return
    repository.check_token()
    publish(dataset, repository, private=private, pull_request=pr, say=typer.echo)


if __name__ == "__main__":
    app()
