"""Writes rows with their predicted classes and corrected shares, as CSV, Parquet or NPZ."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from biasboard.ground.columns import FloatArray
from biasboard.ground.plain_text import protected
from evaluators.calibration.reweighting.command.rows import (
    CLASSES,
    LABELS,
    PREDICTED,
    PROBABILITIES,
    Rows,
    share_names,
)

_WHOLE = re.compile(r"-?[0-9]+")


def _write_csv(path: Path, rows: Rows, predicted: Sequence[str], shares: FloatArray) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    heading = (*rows.columns, PREDICTED, *share_names(rows.classes))
    for row in (heading, *zip(*rows.columns.values(), predicted, *shares.T.tolist(), strict=True)):
        writer.writerow([_cell(value) for value in row])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")


def _cell(value: object) -> object:
    """Return a value as a cell that is no formula; classes are often called -1 and 1, which are none."""
    return protected(value) if isinstance(value, str) and not _WHOLE.fullmatch(value) else value


def _write_parquet(path: Path, rows: Rows, predicted: Sequence[str], shares: FloatArray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {**rows.columns, PREDICTED: predicted, **dict(zip(share_names(rows.classes), shares.T, strict=True))}
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)


def _write_npz(path: Path, rows: Rows, predicted: Sequence[str], shares: FloatArray) -> None:
    arrays: dict[str, np.ndarray] = {
        PROBABILITIES: shares,
        CLASSES: np.array(rows.classes),
        PREDICTED: np.array(predicted),
    }
    if rows.labels is not None and None not in rows.labels:
        arrays[LABELS] = np.array(rows.labels)
    for name, values in rows.columns.items():
        if name not in arrays:
            arrays[name] = np.array(["" if value is None else value for value in values])
    # Not numpy.savez: it takes names as keywords, so no column could be called 'file', and it writes the time of day.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            with file.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


WRITERS: dict[str, Callable[[Path, Rows, Sequence[str], FloatArray], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".npz": _write_npz,
}
"""The writer for each file name ending."""
