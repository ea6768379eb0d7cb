"""Recognises the kind of an input and reads it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from evaluators.commands.reweight.rows import InputChoice, Rows, Wanted
from schemas.errors import ConfigError, DataError
from schemas.files import check_readable
from schemas.run_folder import RESULT

_PARQUET_MAGIC = b"PAR1"
_N_SNIFFED = 65_536
_LEAST_WORDS = 5
"""Number of words in a line of DCS with two classes."""
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13}

Reader: TypeAlias = Callable[[InputChoice, Wanted], Rows]
KINDS = ("csv", "parquet", "npz", "dcs", "run")


def read_rows(choice: InputChoice, wanted: Wanted) -> Rows:
    """Read an input, and check its probabilities and classes.

    Args:
        choice: The input and its choices.
        wanted: The classes in the order that is wanted, and whether right classes are.

    Raises:
        ConfigError: a choice does not exist, or does not fit the kind of the input.
        DataError: the input cannot be read, or a value in it is wrong.
    """
    kind = _kind(choice)
    if kind != "run" and (choice.config is not None or choice.splits):
        option = "--config" if choice.config is not None else "--split"
        raise ConfigError(f"{option} picks records of a run, and {choice.path} is a file; leave it out")
    return _reader(kind)(choice, wanted).checked(wanted)


def _reader(kind: str) -> Reader:
    # Imported when they are needed: reading Parquet files takes pyarrow, whose loading takes longer than a small fit.
    if kind == "run":
        from evaluators.commands.reweight.runs import read_run

        return read_run
    if kind in ("npz", "dcs"):
        from evaluators.commands.reweight.arrays import read_dcs, read_npz

        return read_npz if kind == "npz" else read_dcs
    from evaluators.commands.reweight.tables import read_csv, read_parquet

    return read_csv if kind == "csv" else read_parquet


def _kind(choice: InputChoice) -> str:
    """Return the kind of an input, which is told or recognised from its content.

    Raises:
        ConfigError: there is no such kind.
        DataError: there is no such file, or it is of no known kind.
    """
    path = choice.path
    if choice.kind is not None and choice.kind not in KINDS:
        raise ConfigError(f"--format {choice.kind} does not exist; have: {', '.join(KINDS)}")
    if not path.exists():
        raise DataError(f"{path}: no such file; give a file of probabilities or the folder of a run")
    if path.is_dir() or path.name == RESULT:
        if choice.kind not in (None, "run"):
            raise ConfigError(f"--format {choice.kind} is for a file, and {path} is a run; leave it out")
        return "run"
    if choice.kind == "run":
        raise ConfigError(f"--format run: {path} is a file; name the folder of a run")
    check_readable(path)
    return choice.kind or _recognised(path)


def _recognised(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(_N_SNIFFED)
    if not start.strip():
        raise DataError(f"{path}: is empty; give a file of probabilities")
    if start.startswith(_PARQUET_MAGIC):
        return "parquet"
    if zipfile.is_zipfile(path):
        return "npz"
    if _CONTROLS & {*start}:
        raise DataError(f"{path}: is of no known kind; give a CSV, Parquet or NPZ file, vectors of DCS, or a run")
    first = start.decode("utf-8", errors="replace").lstrip("\ufeff").lstrip().partition("\n")[0]
    if first.startswith(("{", "[")):
        raise DataError(f"{path}: looks like JSON; give a CSV, Parquet or NPZ file, vectors of DCS, or a run")
    return "dcs" if _is_dcs(first) else "csv"


def _is_dcs(line: str) -> bool:
    """Return True if a line is ``id label pred p1 ... pN`` with spaces between.

    >>> _is_dcs("17 0 1 0.250000 0.750000"), _is_dcs("label,a,b")
    (True, False)
    """
    words = line.split()
    if len(words) < _LEAST_WORDS or "," in line or "\t" in line:
        return False
    try:
        shares = [float(word) for word in words[3:]]
    except ValueError:
        return False
    return all(0 <= share <= 1 for share in shares)
