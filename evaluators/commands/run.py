"""The command ``python -m evaluators run``: asks a model and writes records and results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.options import with_options
from evaluators.backend_options import COST_PANEL, BackendOptions
from evaluators.commands.config_file import take_options
from evaluators.commands.options import FILES_PANEL, RunChoice

KEPT = "stopped; the answers so far are kept, and the same command continues from there"

_CONFIG_FILE = typer.Option(
    "--config-file",
    is_eager=True,
    callback=take_options,
    help="TOML file of options; those given here win.",
    rich_help_panel=FILES_PANEL,
)
_JSON = typer.Option(
    "--json", help="Print JSON on standard output, and all else on standard error.", rich_help_panel=FILES_PANEL
)
_DRY_RUN = typer.Option(
    "--dry-run",
    help="Print numbers of requests and tokens and the price; ask and write nothing.",
    rich_help_panel=COST_PANEL,
)


@one_line_errors(KEPT)
@with_options
def run_command(
    choice: RunChoice,
    options: BackendOptions,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    as_json: Annotated[bool, _JSON] = False,
    config_file: Annotated[Path | None, _CONFIG_FILE] = None,
) -> None:
    """Ask a model about each item, or continue where an earlier run stopped; write records and results."""
    # Imported when a model is asked: the help of this command needs nothing of it.
    from evaluators.commands.asking import ask

    ask(choice, options, dry_run=dry_run, as_json=as_json)
