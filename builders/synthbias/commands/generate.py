"""The command ``python -m builders.synthbias generate``: asks a model, round after round, until every cell is full.

The evaluators ask, as a process of their own: their command line has the backends, the prices and the store of
answers. Each step can be called by hand, and each is printed. What was answered is never asked again: after a kill the
same command goes on where it stopped.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from builders.output import check_target, write_dataset
from builders.summary import closing_lines
from builders.synthbias.commands.requests import DEFAULT_PER_REQUEST, NEAR, PAIRS, PER_CELL, PER_REQUEST
from builders.synthbias.generation.cells import Cell
from builders.synthbias.generation.design import Filled, design_cells, filled
from builders.synthbias.generation.requests import Wanted, default_folder, requests_draft, wanted
from builders.synthbias.generation.source import DEFAULT_PER_CELL, NAME, Limits, draft
from schemas.command_line import EXIT_STATUS, one_line_errors
from schemas.errors import ConfigError, DataError, RunError
from schemas.progress import steps

KEPT = "stopped; the answers so far are kept, and the same command continues from there"
_PILOT = 20
_ROUNDS = 8

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class _Work(NamedTuple):
    """The folder in which requests, answers and runs are kept between rounds."""

    folder: Path

    @property
    def runs(self) -> Path:
        """The folder of the runs."""
        return self.folder / "runs"

    def requests(self, number: int) -> Path:
        """Return the folder of the requests of a round."""
        return self.folder / "requests" / f"round-{number}"


class _Asking(NamedTuple):
    """A model and how it is asked."""

    backend: str
    model: str
    max_cost: float | None
    further: tuple[str, ...]
    """Further options of ``python -m evaluators run``."""
    work: _Work

    def ask(self, dataset: Path, *more: str, spent: float = 0.0, is_pilot: bool = False) -> None:
        """Ask the instructions of a dataset.

        Args:
            dataset: Folder of the instructions.
            more: Further options for this time only.
            spent: US dollars that earlier rounds cost.
            is_pilot: True if answers without a single readable one are for the caller to judge.

        Raises:
            RunError: the model could not be asked to the end; answers are kept.
            ConfigError: the evaluators refuse an option.
        """
        arguments = ["run", "--dataset", str(dataset), "--backend", self.backend, "--model", self.model]
        arguments += ["--out", str(self.work.runs), "--cache", str(self.work.folder / "answers.sqlite")]
        if self.max_cost is not None:
            arguments += ["--max-cost", f"{max(self.max_cost - spent, 0.0):.6f}"]
        command = [sys.executable, "-m", "evaluators", *arguments, *more, *self.further]
        typer.echo(f"$ python -m {shlex.join(command[2:])}")
        status = subprocess.run(command, check=False).returncode
        if status == 3 and is_pilot:
            return
        if status in (3, 130):
            raise RunError("the model was not asked to the end; answers are kept: run the same command again")
        if status != 0:
            raise ConfigError(f"the evaluators ended with status {status}; correct what they say above")


@app.command(
    epilog=f"Options that are not listed go to 'python -m evaluators run', such as --base-url. {EXIT_STATUS}",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
@one_line_errors(KEPT)
def generate(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="Model that writes: what the backend calls it.")],
    backend: Annotated[str, typer.Option(help="Backend that calls the model.")],
    per_cell: Annotated[int, PER_CELL] = DEFAULT_PER_CELL,
    per_request: Annotated[int, PER_REQUEST] = DEFAULT_PER_REQUEST,
    pairs: Annotated[int | None, PAIRS] = None,
    near: Annotated[float | None, NEAR] = None,
    pilot: Annotated[int, typer.Option(min=0, help="Instructions of each type to try first; 0 for none.")] = _PILOT,
    rounds: Annotated[int, typer.Option(min=1, help="Largest number of rounds.")] = _ROUNDS,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="US dollars that all rounds together may cost; needs --prices.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the dataset.")] = None,
    work: Annotated[Path | None, typer.Option(help="Folder of requests and answers.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the dataset in the folder.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print requests, tokens and the largest price of the first round only.")
    ] = False,
) -> None:
    """Let a model write sentences until each cell of the design has enough that keep all rules."""
    target = out or Path("out/datasets") / NAME
    check_target(target, overwrite=overwrite or dry_run)
    place = _Work(work or default_folder(NAME))
    asking = _Asking(backend, model, max_cost, tuple(context.args), place)
    cells = design_cells(pairs)
    if dry_run:
        asked = wanted(cells, {}, {}, per_cell=per_cell, per_request=per_request)
        asking.ask(_written(asked, place.requests(1), per_request), "--dry-run")
        return
    limits = Limits(per_cell, near)
    found = _rounds(asking, cells, limits, per_request=per_request, pilot=pilot, most=rounds)
    with steps() as report:
        made = draft(place.runs, limits, limit=None, report=report)
        manifest = write_dataset(made, target, overwrite=overwrite, report=report)
    for line in closing_lines(manifest, target, n_items=sum(len(split.items) for split in made.splits)):
        typer.echo(line)
    short = [cell for cell in cells if found.have.get(cell.key, 0) < per_cell]
    if short:
        raise ConfigError(
            f"{len(short):,} of {len(cells):,} cells have fewer than {per_cell} minimal pairs after {rounds} rounds, "
            f"such as {short[0].key}; the dataset holds the rest: go on with a larger --rounds, or another model"
        )
    typer.echo(f"next: python -m builders.synthbias annotate plan {shlex.quote(str(target))} --state out/annotation")


def _rounds(
    asking: _Asking, cells: Sequence[Cell], limits: Limits, *, per_request: int, pilot: int, most: int
) -> Filled:
    """Ask until every cell is full, and return what the answers fill."""
    found: Filled | None = None
    asked = wanted(cells, {}, {}, per_cell=limits.per_cell, per_request=per_request)
    for number in range(1, most + 1):
        dataset = _written(asked, asking.work.requests(number), per_request)
        spent = 0.0 if found is None else found.answers.cost_usd or 0.0
        if number == 1 and pilot:
            asking.ask(dataset, "--limit", str(pilot), is_pilot=True)
            found = filled(asking.work.runs, limits)
            _check_pilot(found, cells, limits.per_cell, per_request)
            spent = found.answers.cost_usd or 0.0
        asking.ask(dataset, spent=spent)
        before, found = found, filled(asking.work.runs, limits)
        typer.echo(_state(number, found, cells, limits.per_cell))
        asked = wanted(
            cells,
            found.have,
            found.answers.samples,
            per_cell=limits.per_cell,
            per_request=per_request,
            share_kept=found.share_kept,
        )
        if not asked or (before is not None and number > 1 and before.n_usable == found.n_usable):
            break
    assert found is not None
    return found


def _written(asked: Sequence[Wanted], folder: Path, per_request: int) -> Path:
    """Write the instructions of a round; the same instructions give the same files."""
    write_dataset(requests_draft(asked, per_request=per_request), folder, overwrite=True)
    return folder


def _check_pilot(found: Filled, cells: Sequence[Cell], per_cell: int, per_request: int) -> None:
    """Print the yield of a pilot.

    Raises:
        DataError: none of its sentences can be used.
    """
    n_answers = sum(found.answers.samples.values())
    told = f"pilot: {n_answers} answers, {found.n_written} sentences or empty answers, {found.n_usable} can be used"
    if not found.n_usable:
        rules: dict[str, int] = {}
        for reject in found.answers.rejects:
            rules[reject.rule] = rules.get(reject.rule, 0) + 1
        raise DataError(f"{told} {rules or ''}; the rest was not asked: take another model, or --pilot 0 to go on")
    n_requests = len(cells) * per_cell / (per_request * found.share_kept)
    cost = found.answers.cost_usd
    price = "" if not cost else f", about {cost * n_requests / n_answers:.2f} US dollars"
    typer.echo(f"{told} ({found.share_kept:.0%}): about {n_requests:,.0f} instructions in all{price}")


def _state(number: int, found: Filled, cells: Sequence[Cell], per_cell: int) -> str:
    n_full = sum(found.have.get(cell.key, 0) >= per_cell for cell in cells)
    cost = found.answers.cost_usd
    price = "" if not cost else f", {cost:.2f} US dollars"
    return f"round {number}: {n_full:,} of {len(cells):,} cells are full, {found.share_kept:.0%} usable so far{price}"
