"""The command ``generate`` of ``python -m builders.synthbias``."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from filelock import FileLock, Timeout

from biasboard.ground.command_line import ANSWERS_KEPT, EXIT_STATUS, one_line_errors
from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.options import finite
from biasboard.ground.progress import silent, steps
from builders.build_command import DatasetVersion, closing_lines
from builders.dataset.output import check_target, write_dataset
from builders.synthbias.embedded import occupation_pairs
from builders.synthbias.generation.generated import (
    BUILDER_VERSION,
    CELL_FULL,
    DEFAULT_PER_CELL,
    NAME,
    check,
    draft,
    per_cell_of,
)
from builders.synthbias.generation.instructions import DesignCell, cells_of, pairs_by_cell, requests_draft, wanted
from builders.synthbias.generation.written_sentences import WrittenAnswers, read_answers
from schemas.folders.dataset_folder import MANIFEST, read_manifest, read_split

_RESERVED_OPTIONS = ("--dataset", "--config", "--split", "--part", "--limit", "--task", "--out", "--cache")
"""Options of the evaluators that ``generate`` sets itself: what is asked, and where answers are kept."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(
    epilog=EXIT_STATUS,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
@one_line_errors(ANSWERS_KEPT)
def generate(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="Model that writes: what the backend calls it.")],
    backend: Annotated[str, typer.Option(help="Backend that calls the model.")],
    per_cell: Annotated[
        int, typer.Option(min=1, help="Number of minimal pairs that each cell of the design needs.")
    ] = DEFAULT_PER_CELL,
    per_request: Annotated[
        int, typer.Option(min=1, max=20, help="Number of sentences that one instruction asks for.")
    ] = 5,
    pairs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of occupation pairs, spread over all of them. Default: all 395."),
    ] = None,
    pilot: Annotated[int, typer.Option(min=0, help="Instructions of each type to try first; 0 for none.")] = 20,
    rounds: Annotated[int, typer.Option(min=1, help="Largest number of rounds.")] = 8,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, callback=finite, help="US dollars that all rounds together may cost; needs --prices."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the dataset.")] = None,
    work: Annotated[Path | None, typer.Option(help="Folder of requests and answers.")] = None,
    dataset_version: DatasetVersion = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the dataset in the folder.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print requests, tokens and the largest price of the first round only.")
    ] = False,
) -> None:
    """Let a model write sentences until each cell of the design has enough that keep all rules.

    Options that are not listed go to run, such as --base-url.
    """
    target = out or Path("out/datasets") / NAME
    for name in (argument.partition("=")[0] for argument in context.args):
        if name in _RESERVED_OPTIONS:
            raise ConfigError(
                f"{name}: generate itself chooses what is asked; leave it out, or give --pairs or --pilot"
            )
    cells = design_cells(pairs)
    next_step = f"next: biasboard build synthbias annotate plan {shlex.quote(str(target))} --state out/annotation"
    if not overwrite and _is_complete(target, cells, per_cell, model, dataset_version):
        typer.echo(f"complete: each of the {len(cells):,} cells has {per_cell} minimal pairs in {target}")
        typer.echo(next_step)
        return
    check_target(target, overwrite=overwrite or dry_run)
    asking = _Asking(
        backend=backend,
        model=model,
        max_cost=max_cost,
        further=tuple(context.args),
        folder=work or Path("out/generation") / NAME,
        cells=cells,
        per_cell=per_cell,
        per_request=per_request,
    )
    if dry_run:
        with tempfile.TemporaryDirectory() as folder:
            asking.ask(asking.write(asking.wanted(None), Path(folder) / "requests"), "--dry-run")
        return
    asking.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(asking.folder / ".lock", timeout=0):
            state, n_rounds, is_stuck = _rounds(asking, pilot=pilot, most=rounds)
            with steps() as report:
                made = draft(asking.runs, per_cell, limit=None, report=report)
                manifest = write_dataset(made, target, version=dataset_version, overwrite=overwrite, report=report)
    except Timeout as error:
        raise ConfigError(
            f"--work {asking.folder}: another process works there; wait for it, or give another folder"
        ) from error
    print(*closing_lines(manifest, target), sep="\n")
    short = [cell for cell in cells if state.have[cell.key] < per_cell]
    if short:
        why = "the last one brought nothing new" if is_stuck else f"--rounds {rounds} allows no more"
        remedy = "take another model" if is_stuck else "go on with a larger --rounds and --overwrite"
        raise ConfigError(
            f"{len(short):,} of {len(cells):,} cells have fewer than {per_cell} minimal pairs after {n_rounds} "
            f"rounds, such as {short[0].key}, and {why}; the dataset holds the rest: {remedy}"
        )
    typer.echo(next_step)


def design_cells(n_pairs: int | None) -> list[DesignCell]:
    """Return the cells of the design.

    Args:
        n_pairs: Number of occupation pairs, spread evenly over all of them; None for all.

    Raises:
        ConfigError: there are fewer occupation pairs.
    """
    pairs, _ = occupation_pairs()
    if n_pairs is None:
        return list(cells_of(pairs))
    if n_pairs > len(pairs):
        raise ConfigError(f"--pairs {n_pairs}: there are {len(pairs)} occupation pairs; leave it out for all")
    return list(cells_of([pairs[number * len(pairs) // n_pairs] for number in range(n_pairs)]))


def _is_complete(
    target: Path, cells: Sequence[DesignCell], per_cell: int, model: str, dataset_version: str | None
) -> bool:
    """Return True if a folder holds the dataset that a generation would end with: a model's, with all cells full."""
    if not (target / MANIFEST).is_file():
        return False
    manifest = read_manifest(target)
    is_of_model = manifest.generator_model is not None and f"{manifest.generator_model}@".startswith(f"{model}@")
    if (manifest.name, manifest.builder_version) != (NAME, BUILDER_VERSION) or not is_of_model:
        return False
    if dataset_version not in (None, manifest.version) or per_cell_of(target) != per_cell:
        return False
    have = pairs_by_cell(item for entry in manifest.splits for item in read_split(target, entry))  # type: ignore[misc]
    return have == dict.fromkeys((cell.key for cell in cells), per_cell)


@dataclass(frozen=True, slots=True)
class _Written:
    """The answers so far, and how far they fill the cells."""

    answers: WrittenAnswers
    have: Counter[str]
    """Number of minimal pairs by cell key."""
    n_written: int
    """Number of sentences plus empty answers."""
    n_usable: int
    """Number of sentences that pass all rules, including surplus ones for full cells."""

    @property
    def share_kept(self) -> float:
        """Usable share of what was written."""
        return self.n_usable / self.n_written if self.n_written else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """A model, the options for querying it, and what it is to write."""

    backend: str
    model: str
    max_cost: float | None
    further: tuple[str, ...]
    """Options passed on to ``biasboard run``."""
    folder: Path
    """The working folder, which keeps requests, answers and runs between rounds."""
    cells: Sequence[DesignCell]
    per_cell: int
    per_request: int

    @property
    def runs(self) -> Path:
        """The folder of this model's runs; each model has its own."""
        return self.folder / "runs" / re.sub(r"[^A-Za-z0-9._-]+", "__", self.model)

    def written(self) -> _Written:
        """Read and check the answers so far.

        Raises:
            DataError: there is no run, a file is broken, or the runs are of several models.
        """
        answers = read_answers(self.runs, silent)
        checked = check(answers.candidates, self.per_cell, report=silent)
        n_surplus = sum(reject.rule == CELL_FULL.name for reject in checked.rejects)
        have = pairs_by_cell(checked.items)
        return _Written(answers, have, len(answers.candidates) + len(answers.rejects), have.total() + n_surplus)

    def wanted(self, state: _Written | None) -> list[tuple[DesignCell, range]]:
        """Return the instructions that the cells still need; ``state`` is None before the first answers."""
        return wanted(
            self.cells,
            {} if state is None else state.have,
            {} if state is None else state.answers.samples,
            per_cell=self.per_cell,
            per_request=self.per_request,
            share_kept=1.0 if state is None else state.share_kept,
        )

    def write(self, asked: Sequence[tuple[DesignCell, range]], folder: Path) -> Path:
        """Write the instructions of a round and return their folder; the same instructions give the same files."""
        write_dataset(requests_draft(asked, per_request=self.per_request), folder, overwrite=True)
        return folder

    def ask(self, dataset: Path, *more: str, state: _Written | None = None) -> None:
        """Ask the instructions of a dataset.

        Args:
            dataset: Folder of the instructions.
            more: Further options for this call only.
            state: Answers of earlier rounds, whose cost counts.

        Raises:
            RunError: the run was interrupted or incomplete; answers are kept.
            ConfigError: the evaluators refuse an option, or a cost limit is given, but the cost of earlier runs is
                unknown.
        """
        arguments = ["run", "--dataset", str(dataset), "--backend", self.backend, "--model", self.model]
        arguments += ["--out", str(self.runs), "--cache", str(self.folder / "answers.sqlite")]
        if self.max_cost is not None:
            spent = 0.0 if state is None else state.answers.cost_usd
            if spent is None:
                raise ConfigError(
                    f"--max-cost {self.max_cost:g}: runs in {self.runs} were asked without --prices, so that nobody "
                    "knows what is spent; give another folder with --work"
                )
            arguments += ["--max-cost", f"{max(self.max_cost - spent, 0.0):.6f}"]
        arguments += [*more, *self.further]
        typer.echo(f"$ python -m evaluators {shlex.join(arguments)}")
        status = _status_of(arguments)
        # Status 3 also means that a run is finished, but none of its answers could be read.
        if status == 3 and self._is_finished(dataset, is_part=bool(more)):
            return
        if status in (3, 130):
            limit = (
                "" if self.max_cost is None else f", with more than --max-cost {self.max_cost:g} if that was reached"
            )
            raise RunError(f"the model was not asked to the end; answers are kept: run the same command again{limit}")
        if status != 0:
            raise ConfigError(f"the evaluators ended with status {status}; correct what they say above")

    def _is_finished(self, dataset: Path, *, is_part: bool) -> bool:
        """Return True if finished runs asked all instructions of a dataset, or any of them if a part was asked."""
        try:
            asked = read_answers(self.runs, silent).asked
        except DataError:
            return False
        manifest = read_manifest(dataset)
        wanted_ids = {item.item_id for entry in manifest.splits for item in read_split(dataset, entry)}
        return bool(asked & wanted_ids) if is_part else wanted_ids <= asked


# Its standard input ends with the parent, also if that is killed: a signal handler of the parent would not run then.
_EVALUATORS = """\
import os, runpy, signal, threading

def end_with_parent():
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end_with_parent, daemon=True).start()
runpy.run_module("evaluators", run_name="__main__", alter_sys=True)
"""


def _status_of(arguments: Sequence[str]) -> int:
    """Run the evaluators and return their exit status; they are terminated together with this process."""
    command = [sys.executable, "-c", _EVALUATORS, *arguments]
    # Its output passes through here, so that the lines of both come in order.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in process.stdout:
                typer.echo(line, nl=False)
            return process.wait()
        except BaseException:
            process.stdin.close()
            raise


def _rounds(asking: _Asking, *, pilot: int, most: int) -> tuple[_Written, int, bool]:
    """Ask until every cell is full, a round brings nothing usable, or ``most`` rounds have passed.

    Returns:
        What was written so far, the number of rounds, and True if the last one brought no usable sentence.

    Raises:
        ConfigError: a cost limit is given, but the cost of earlier runs is unknown.
        DataError: no sentence of the pilot is usable.
    """
    state: _Written | None = None
    asked = asking.wanted(None)
    is_stuck, number = False, 0
    while asked and number < most and not is_stuck:
        number += 1
        dataset = asking.write(asked, asking.folder / "requests" / f"round-{number}")
        if number == 1 and pilot:
            asking.ask(dataset, "--limit", str(pilot))
            state = asking.written()
            _check_pilot(state, asking)
        asking.ask(dataset, state=state)
        before, state = state, asking.written()
        n_full = sum(state.have[cell.key] >= asking.per_cell for cell in asking.cells)
        cost = state.answers.cost_usd
        price = f", {cost:.2f} US dollars" if cost else ""
        cells = f"{n_full:,} of {len(asking.cells):,} cells are full"
        typer.echo(f"round {number}: {cells}, {state.share_kept:.0%} usable so far{price}")
        is_stuck = number > 1 and before is not None and before.n_usable == state.n_usable
        asked = asking.wanted(state)
    assert state is not None
    return state, number, is_stuck


def _check_pilot(state: _Written, asking: _Asking) -> None:
    """Print the yield of the pilot and of any earlier runs.

    Raises:
        ConfigError: filling all cells would exceed the cost limit.
        DataError: no sentence is usable.
    """
    n_answers = sum(state.answers.samples.values())
    summary = f"pilot: {n_answers} answers, {state.n_written} sentences or empty answers, {state.n_usable} can be used"
    if not state.n_usable:
        rules = dict(Counter(reject.rule for reject in state.answers.rejects))
        raise DataError(f"{summary} {rules or ''}; the rest was not asked: take another model, or --pilot 0 to go on")
    n_requests = len(asking.cells) * asking.per_cell / (asking.per_request * state.share_kept)
    cost, max_cost = state.answers.cost_usd, asking.max_cost
    whole = cost * n_requests / n_answers if cost else 0.0
    price = f", about {whole:.2f} US dollars" if cost else ""
    typer.echo(f"{summary} ({state.share_kept:.0%}): about {n_requests:,.0f} instructions in all{price}")
    if max_cost is not None and whole > max_cost:
        raise ConfigError(
            f"--max-cost {max_cost:g}: the pilot says about {whole:.2f} US dollars in all; raise it, or ask for less "
            "with --pairs or --per-cell; --pilot 0 asks without such a check"
        )
