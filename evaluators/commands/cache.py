"""The command ``python -m evaluators cache info``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.progress import working
from evaluators.commands.shared_options import CACHE_VARIABLE
from evaluators.stores.read_only import StoredModel, find_store, summarise

_IDENTITY = 12

app = typer.Typer(no_args_is_help=True, add_completion=False)

_Store = Annotated[
    Path, typer.Argument(envvar=CACHE_VARIABLE, help="File of a cache, folder of a run, or its responses.sqlite.")
]


# With a callback, the name of a single command has to be given.
@app.callback()
def cache_command() -> None:
    """Inspect a store of answers."""


@app.command("info")
@one_line_errors()
def info_command(path: _Store) -> None:
    """Show which models a store holds answers of, how many, and how much disk space they take."""
    store = find_store(path)
    with working(f"reading {path}"):
        models, n_bytes = summarise(store)
    for stored in models:
        print(_lines(stored))
    names = ", ".join(dict.fromkeys(stored.model.id for stored in models)) or "no model"
    print(f"{sum(stored.n_answers for stored in models)} answers of {names}; the file takes {decimal(n_bytes)}")


def _lines(stored: StoredModel) -> str:
    model, times = stored.model, (stored.oldest, stored.newest)
    days = [f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}" for seconds in times if seconds is not None]
    return (
        f"{model.id}\n"
        f"  identity {model.identity_sha256[:_IDENTITY]}, backend {model.backend}, "
        f"precision {model.precision or 'unknown'}, revision {model.revision or 'unknown'}\n"
        f"  {stored.n_choices} choices and {stored.n_generations} generations, {decimal(stored.n_bytes)}, "
        f"stored {' to '.join(days) or 'never'}"
    )
