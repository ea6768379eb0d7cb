"""The cells of a generated dataset, and what they still lack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import silent
from builders.synthbias.embedded import occupation_pairs
from builders.synthbias.generation.answers import Answers, read_answers
from builders.synthbias.generation.cells import Cell, cells_of
from builders.synthbias.generation.requests import Wanted, pairs_by_cell, wanted
from builders.synthbias.generation.source import CELL_FULL, Limits, check


class Filled(NamedTuple):
    """The state of the cells after some answers."""

    answers: Answers
    have: dict[str, int]
    """Number of minimal pairs of each cell, by its key; cells without any are left out."""
    n_written: int
    """Number of sentences, and of answers without any."""
    n_usable: int
    """Number of sentences that no rule rejects, with those that a full cell does not need."""

    @property
    def share_kept(self) -> float:
        """Share of what was written that can be used."""
        return self.n_usable / self.n_written if self.n_written else 0.0


def design_cells(n_pairs: int | None) -> list[Cell]:
    """Return the cells of the design.

    Args:
        n_pairs: Number of occupation pairs, spread over all of them; None for all.

    Raises:
        ConfigError: there are not so many.
    """
    pairs = occupation_pairs().kept
    if n_pairs is None:
        return list(cells_of(pairs))
    if n_pairs > len(pairs):
        raise ConfigError(f"--pairs {n_pairs}: there are {len(pairs)} occupation pairs; leave it out for all")
    return list(cells_of([pairs[number * len(pairs) // n_pairs] for number in range(n_pairs)]))


def filled(path: Path, limits: Limits) -> Filled:
    """Return what the answers at a path fill.

    Raises:
        DataError: there is no run, a file is broken, or several models answered.
    """
    answers = read_answers(path, silent)
    checked = check(answers.candidates, limits, report=silent)
    n_full = sum(reject.rule == CELL_FULL.name for reject in checked.rejects)
    have = pairs_by_cell(checked.items)
    n_written = len(answers.candidates) + len(answers.rejects)
    return Filled(answers, dict(have), n_written, have.total() + n_full)


def still_wanted(cells: Sequence[Cell], path: Path | None, limits: Limits, *, per_request: int) -> list[Wanted]:
    """Return the instructions that the cells still need after the answers at a path; None if nothing was asked."""
    if path is None:
        return wanted(cells, {}, {}, per_cell=limits.per_cell, per_request=per_request)
    found = filled(path, limits)
    return wanted(
        cells,
        found.have,
        found.answers.samples,
        per_cell=limits.per_cell,
        per_request=per_request,
        share_kept=found.share_kept,
    )
