"""The commands ``python -m evaluators cache info|export|prune``."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.options import finite
from biasboard.ground.progress import working
from evaluators.commands.shared_options import CACHE_VARIABLE
from evaluators.stores.maintenance import StoredModel, find_store, names, prune, summarise

_SECONDS_PER_DAY = 86_400
_IDENTITY = 12

app = typer.Typer(
    help="Inspect a store of answers, export answers from it, or remove answers.",
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
    print(f"{summary.n_answers} answers of {names(summary.models)}; the file takes {size(summary.n_bytes)}")


@app.command("export")
@one_line_errors()
def export_command(
    path: _Store,
    out: Annotated[Path, typer.Option(help="File to write, .jsonl or .parquet; --backend replay can read .jsonl.")],
    model: Annotated[str | None, _MODEL] = None,
    without_prompts: Annotated[
        bool, typer.Option("--without-prompts", help="Write a hash of each request instead of its texts.")
    ] = False,
) -> None:
    """Write stored answers to a file that other programs can read, one answer per line or row."""
    # Imported here because it loads pyarrow, which the other commands do not need.
    from evaluators.stores.answer_files import export

    with working(f"writing {out}"):
        n_answers = export(find_store(path), out, model=model, with_prompts=not without_prompts)
    print(f"{n_answers} answers in {out}")


@app.command("prune")
@one_line_errors("stopped; answers may have been removed already; look with: biasboard cache info")
def prune_command(
    path: Annotated[Path, typer.Argument(help="File of the cache.")],
    model: Annotated[str | None, _MODEL] = None,
    older_than: Annotated[
        float | None,
        typer.Option(min=0, callback=finite, help="Remove only answers stored more than this many days ago."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and change nothing.")] = False,
) -> None:
    """Remove answers from a cache that no run is using, and shrink its file."""
    store = find_store(path)
    before = None if older_than is None else int(time.time() - older_than * _SECONDS_PER_DAY)
    with working(f"looking through {path}" if dry_run else f"shrinking {path}"):
        pruned = prune(store, model=model, before=before, dry_run=dry_run)
    touched = [stored for stored in pruned.removed if stored.n_answers]
    for stored in touched:
        print(f"{stored.model.id} ({stored.model.identity_sha256[:_IDENTITY]}): {stored.n_answers} answers")
    total = sum(stored.n_answers for stored in touched)
    if pruned.n_bytes_after is None:
        about = size(sum(stored.n_bytes for stored in touched))
        print(f"would remove {total} answers, about {about} of {size(pruned.n_bytes_before)}; nothing was changed")
    else:
        freed = size(max(0, pruned.n_bytes_before - pruned.n_bytes_after))
        print(f"removed {total} answers, freed {freed}; the file takes {size(pruned.n_bytes_after)}")


def size(n_bytes: int) -> str:
    """Format a number of bytes for people.

    >>> size(999), size(20_480), size(3_456_789_012)
    ('999 B', '20.5 kB', '3.5 GB')
    """
    value = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _lines(stored: StoredModel) -> str:
    model = stored.model
    return (
        f"{model.id}\n"
        f"  identity {model.identity_sha256[:_IDENTITY]}, backend {model.backend}, "
        f"precision {model.precision or 'unknown'}, revision {model.revision or 'unknown'}\n"
        f"  {stored.n_choices} choices and {stored.n_generations} generations, {size(stored.n_bytes)}, "
        f"stored {_day(stored.oldest)} to {_day(stored.newest)}"
    )


def _day(seconds: int | None) -> str:
    return "never" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
