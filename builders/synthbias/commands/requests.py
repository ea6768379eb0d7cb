"""The command ``python -m builders.synthbias requests``: writes the instructions that a model is asked."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from builders.dataset.output import check_target, write_dataset
from builders.synthbias.generation.design import design_cells, still_wanted
from builders.synthbias.generation.requests import DATASET, requests_draft
from builders.synthbias.generation.source import DEFAULT_PER_CELL, Limits

PER_CELL = typer.Option(min=1, help="Number of minimal pairs that each cell of the design needs.")
PER_REQUEST = typer.Option(min=1, max=20, help="Number of sentences that one instruction asks for.")
PAIRS = typer.Option(min=1, help="Number of occupation pairs, spread over all of them. Default: all 395.")
NEAR = typer.Option(
    "--near-duplicates",
    min=0.05,
    max=1.0,
    help="Jaccard similarity of the wording, such as 0.7, from which a sentence is too similar to an earlier one. "
    "Default: only repeated sentences are rejected.",
)
DEFAULT_PER_REQUEST = 5
DEFAULT_OUT = Path("out/requests") / "synthbias"


@one_line_errors()
def requests(
    per_cell: Annotated[int, PER_CELL] = DEFAULT_PER_CELL,
    per_request: Annotated[int, PER_REQUEST] = DEFAULT_PER_REQUEST,
    pairs: Annotated[int | None, PAIRS] = None,
    near: Annotated[float | None, NEAR] = None,
    top_up: Annotated[
        Path | None, typer.Option(help="Generated dataset, or folder of runs: asks only for what its cells lack.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the requests.")] = DEFAULT_OUT,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the requests in the folder.")] = False,
) -> None:
    """Write the instructions that ask a model for the sentences of each cell."""
    check_target(out, overwrite=overwrite)
    cells = design_cells(pairs)
    asked = still_wanted(cells, top_up, Limits(per_cell, near), per_request=per_request)
    if not asked:
        raise ConfigError(f"--top-up {top_up}: every cell has {per_cell} minimal pairs; raise --per-cell for more")
    draft = requests_draft(asked, per_request=per_request)
    manifest = write_dataset(draft, out, overwrite=overwrite)
    n_requests = sum(entry.n_items for entry in manifest.splits)
    typer.echo(f"{DATASET} {manifest.version}: {n_requests:,} instructions for {len(asked):,} of {len(cells):,} cells")
    typer.echo(f"written to {out}")
    typer.echo(
        f"next: python -m evaluators run --dataset {shlex.quote(str(out))} --backend BACKEND --model MODEL "
        "--out out/generated --dry-run"
    )
