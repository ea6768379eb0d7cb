"""The commands ``python -m evaluators cache info|export``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.filesize import decimal

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.progress import working
from evaluators.commands.shared_options import CACHE_VARIABLE
from evaluators.stores.read_only import StoredModel, export, find_store, names, summarise

_IDENTITY = 12

app = typer.Typer(
    help="Inspect a store of answers, or export answers from it.",
    no_args_is_help=True,
    add_completion=False,
)

_Store = Annotated[
    Path, typer.Argument(envvar=CACHE_VARIABLE, help="File of a cache, folder of a run, or its responses.sqlite.")
]
_MODEL = typer.Option(help="Id of the model, or the beginning of its identity as 'info' shows it.")


@app.command("info")
@one_line_errors()
def info_command(path: _Store) -> None:
    """Show which models a store holds answers of, how many, and how much disk space they take."""
    store = find_store(path)
    with working(f"reading {path}"):
        summary = summarise(store)
    for stored in summary.models:
        print(_lines(stored))
    print(f"{summary.n_answers} answers of {names(summary.models)}; the file takes {decimal(summary.n_bytes)}")


@app.command("export")
@one_line_errors()
def export_command(
    path: _Store,
    out: Annotated[
        Path,
        typer.Option(help="File of JSON lines to write, .jsonl, which --backend replay and pandas.read_json read."),
    ],
    model: Annotated[str | None, _MODEL] = None,
    without_prompts: Annotated[
        bool, typer.Option("--without-prompts", help="Write a hash of each request instead of its texts.")
    ] = False,
) -> None:
    """Write the stored answers of a model to a file that other programs can read, one answer per line."""
    with working(f"writing {out}"):
        n_answers = export(find_store(path), out, model=model, with_prompts=not without_prompts)
    print(f"{n_answers} answers in {out}")


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
