"""The command ``python -m evaluators reweight apply``: writes corrected predictions."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from evaluators.commands.reweight.arrays import CLASSES, LABELS, PROBABILITIES
from evaluators.commands.reweight.options import (
    Config,
    Ignore,
    Input,
    Kind,
    LabelColumn,
    Prefix,
    Split,
    choice_of,
    read_rules,
)
from evaluators.commands.reweight.printing import print_notes
from evaluators.commands.reweight.reading import read_rows
from evaluators.commands.reweight.rows import PREDICTED, Rows, Wanted, check_place, share_names
from evaluators.reweighting.fitting import prepared
from schemas.columns import FloatArray
from schemas.command_line import one_line_errors
from schemas.errors import ConfigError
from schemas.files import replacing
from schemas.progress import working


@one_line_errors()
def apply_command(
    path: Input,
    rules: Annotated[Path, typer.Option(help="File of rules that 'fit' wrote. Classes are matched by name.")],
    out: Annotated[Path, typer.Option(help="File to write: .csv, .parquet or .npz.")],
    kind: Kind = None,
    label_column: LabelColumn = "label",
    prefix: Prefix = None,
    ignore: Ignore = None,
    config: Config = None,
    split: Split = None,
) -> None:
    """Apply rules to rows, with or without known classes, and write the predicted class and the corrected shares.

    Beside the columns of the input stand the predicted class (predicted) and the corrected share of each class
    (p_CLASS). Rows that were corrected before are refused.
    """
    if out.suffix not in _WRITERS:
        raise ConfigError(f"--out {out}: ends with none of {', '.join(_WRITERS)}; name the file with one of them")
    check_place(out, path, rules)
    stored = read_rules(rules)
    choice = choice_of(path, kind, label_column, prefix, None, ignore, config, split)
    with working(f"reading {path}"):
        rows = read_rows(choice, Wanted(stored.document.classes, labels=False))
    rows.check_uncorrected()
    with working(f"writing {out}"):
        probabilities = prepared(rows.probabilities, stored.document.map)
        places = stored.rules.predict(probabilities)
        predicted = [rows.classes[place] for place in places.tolist()]
        with replacing(out) as temporary:
            _WRITERS[out.suffix](temporary, rows, predicted, stored.rules.shares(probabilities))
    print_notes(rows)
    n_changed = int((places != rows.probabilities.argmax(axis=1)).sum())
    print(f"{n_changed:,} of {len(rows):,} predictions changed")
    if stored.rules.has_functions:
        print("warning: the shares come from membership functions: they rank the classes of a row, no more")
    print(f"predictions {out}")


def _write_csv(path: Path, rows: Rows, predicted: Sequence[str], shares: FloatArray) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*rows.columns, PREDICTED, *share_names(rows.classes)])
    kept = list(rows.columns.values())
    for row, of_row in enumerate(shares.tolist()):
        writer.writerow([*(values[row] for values in kept), predicted[row], *of_row])
    path.write_text(file.getvalue(), encoding="utf-8", newline="")


def _write_parquet(path: Path, rows: Rows, predicted: Sequence[str], shares: FloatArray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.array(values) for name, values in rows.columns.items()}
    columns[PREDICTED] = pa.array(predicted)
    columns |= {name: pa.array(shares[:, place]) for place, name in enumerate(share_names(rows.classes))}
    pq.write_table(pa.table(columns), path)


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
    # numpy.savez takes names as keywords, so that no column could be called 'file', and writes the time of day.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            with file.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


_WRITERS: dict[str, Callable[[Path, Rows, Sequence[str], FloatArray], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".npz": _write_npz,
}
