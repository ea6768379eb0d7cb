"""Reads class probabilities with their right classes, from four kinds of files and from finished runs.

A file becomes a :class:`Table`, and a table or a run becomes :class:`Rows`, which are checked in the same way::

    CSV, Parquet   columns with names, some of them classes   ─┐
    NPZ, DCS       columns without names: these come from     ─┴─ Table ── classes named ──┐
                   --classes, the file, or the labels                                      ├── Rows ── faults
    run            records, each with the names of its outcomes ───────────────────────────┘
"""

from __future__ import annotations

import zipfile
from dataclasses import replace

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable
from evaluators.calibration.reweighting.command.rows import InputChoice, Rows
from evaluators.calibration.reweighting.command.run_rows import read_run
from evaluators.calibration.reweighting.command.tables import READERS, is_dcs, rows_of
from schemas.folders.run_folder import RESULT

_N_SNIFFED = 65_536
# The control characters that no text has: all but tabs, line breaks and form feeds.
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13}
_KINDS = (*READERS, "run")


def read_rows(
    choice: InputChoice, wanted: tuple[str, ...] | None = None, *, needs_labels: bool = True, gets_rules: bool = False
) -> Rows:
    """Read an input, and check its probabilities and classes.

    Args:
        choice: The input and its choices.
        wanted: Classes of rules or of other rows, in their order, that these rows must have; None for any.
        needs_labels: True if every row needs its right class.
        gets_rules: True if rules will be applied, so that no column may have the name of a corrected one.

    Raises:
        ConfigError: an option does not exist, or does not fit the kind of the input.
        DataError: the input cannot be read, or a value in it is wrong.
    """
    kind = _kind(choice)
    if kind == "run":
        rows = read_run(choice, wanted, needs_labels)
    elif choice.config is not None or choice.splits:
        flag = "--config" if choice.config is not None else "--split"
        raise ConfigError(f"{flag} picks records of a run, and {choice.path} is a file; leave it out")
    else:
        rows = rows_of(READERS[kind](choice), choice, wanted, needs_labels)
    for fault in rows.faults(wanted, needs_labels=needs_labels, gets_rules=gets_rules):
        raise DataError(f"{rows.source}: {fault}")
    if wanted is None or wanted == rows.classes:
        return rows
    order = [rows.classes.index(name) for name in wanted]
    return replace(rows, classes=wanted, probabilities=rows.probabilities[:, order])


def _kind(choice: InputChoice) -> str:
    """Return the kind of an input: the named one, or the one recognised from its content."""
    path = choice.path
    if choice.kind is not None and choice.kind not in _KINDS:
        raise ConfigError(f"--file-format {choice.kind} does not exist; have: {', '.join(_KINDS)}")
    if not path.exists():
        raise DataError(f"{path}: no such file; give a file of probabilities or the folder of a run")
    if path.is_dir() or path.name == RESULT:
        if choice.kind not in (None, "run"):
            raise ConfigError(f"--file-format {choice.kind} is for a file, and {path} is a run; leave it out")
        return "run"
    if choice.kind == "run":
        raise ConfigError(f"--file-format run: {path} is a file; name the folder of a run")
    check_readable(path)
    if choice.kind is not None:
        return choice.kind
    with path.open("rb") as file:
        start = file.read(_N_SNIFFED)
    if not start.strip():
        raise DataError(f"{path}: is empty; give a file of probabilities")
    if start.startswith(b"PAR1"):
        return "parquet"
    if zipfile.is_zipfile(path):
        return "npz"
    remedy = "give a CSV, Parquet or NPZ file, vectors of DCS, or a run"
    if _CONTROLS & {*start}:
        raise DataError(f"{path}: is of no known kind; {remedy}")
    first = start.decode("utf-8", errors="replace").lstrip("\ufeff").lstrip().partition("\n")[0]
    if first.startswith(("{", "[")):
        raise DataError(f"{path}: looks like JSON; {remedy}")
    return "dcs" if is_dcs(first) else "csv"
