"""The command line ``python -m evaluators run|rescore|texts|index|import|list|cache|doctor``."""

from __future__ import annotations

import typer

from evaluators.commands import cache
from evaluators.commands.doctor import doctor_command
from evaluators.commands.imports import import_command
from evaluators.commands.index import index_command
from evaluators.commands.listing import list_command
from evaluators.commands.rescore import rescore_command
from evaluators.commands.run import run_command
from evaluators.commands.texts import texts_command

app = typer.Typer(
    help="Score models on built datasets, and score stored answers again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(cache.app, name="cache")
app.command("doctor")(doctor_command)
app.command("import")(import_command)
app.command("index")(index_command)
app.command("run")(run_command)
app.command("rescore")(rescore_command)
app.command("texts")(texts_command)
app.command("list")(list_command)


if __name__ == "__main__":
    app()
