"""``python -m builders.synthbias lean``: measures how often models choose the occupation mentioned first in type 1.

Each occupation is in each position equally often, so that a model without a preference for a position gives both
positions the same probability on average, whatever its preferences among occupations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from biasboard.ground import strict_json
from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import DataError
from builders.dataset.card import CardTable
from builders.synthbias.frames import text_of
from schemas.documents.result import Result
from schemas.folders.run_folder import finished_runs, read_result, read_run

LEAN = "lean.json"
_DATASET = "synthbias"
_CONFIG = "type1"
_TIE = 1e-12
"""Maximum difference between probabilities that count as equal."""


def measure(
    runs: Annotated[Path, typer.Argument(help="Folder with finished runs on the embedded dataset, at any depth.")],
    out: Annotated[Path, typer.Option(help="File to write; the card is built from texts/lean.json of the builder.")],
) -> None:
    """Measure the preference of each model for the occupation mentioned first, over the items of type 1."""
    with one_line_errors():
        leans = []
        for folder in finished_runs(runs):
            signature = (result := read_result(folder)).signature
            if (signature.dataset, signature.config, signature.n_outcomes) == (_DATASET, _CONFIG, 2):
                leans.append(_lean_of(folder, result))
        if not leans:
            raise DataError(f"{runs}: no run on {_CONFIG} of {_DATASET}; run a model on it first")
        leans.sort(key=lambda lean: (lean["model"], lean["prompt"]))
        strict_json.write(out, {"leans": [*leans]})
    for lean in leans:
        typer.echo(f"{lean['model']}: first in {lean['first_rate']:.4f} of {lean['n_scored']} items")


def measured_leans() -> list[dict[str, Any]]:
    """Return the preferences that were measured on the embedded dataset, one for each model and prompt.

    ``first_rate`` is the share of the ``n_scored`` items in which the occupation mentioned first is more probable,
    where a tie counts half, and ``first_probability`` its mean probability.
    """
    read = cast(dict[str, list[dict[str, Any]]], strict_json.loads(text_of(LEAN), where=LEAN))
    return read["leans"]


def lean_table() -> CardTable:
    """Return the measured preferences as a table."""
    return CardTable(
        header=("model", "items", "share with the first more probable", "mean probability of the first"),
        rows=tuple(
            (lean["model"], str(lean["n_scored"]), f"{lean['first_rate']:.3f}", f"{lean['first_probability']:.3f}")
            for lean in measured_leans()
        ),
    )


def _lean_of(folder: Path, result: Result) -> dict[str, Any]:
    probabilities = []
    for record in read_run(folder).records:
        if record.reading is not None:
            # The reference of type 1 is the occupation mentioned first.
            by_outcome = dict(zip(record.reading.outcomes, record.reading.probabilities, strict=True))
            probabilities.append(by_outcome[str(record.reference)])
    if not probabilities:
        raise DataError(f"{folder}: no answer was scored; run the model again")
    rates = [0.5 if abs(p - 0.5) <= _TIE else float(p > 0.5) for p in probabilities]
    return {
        "model": result.model.id,
        "prompt": result.signature.prompt,
        "dataset_version": result.signature.dataset_version,
        "items_sha256": result.signature.items_sha256,
        "n_items": result.signature.n_items,
        "n_scored": len(probabilities),
        # Nine digits, so that the file does not depend on the order of summation.
        "first_rate": round(sum(rates) / len(rates), 9),
        "first_probability": round(sum(probabilities) / len(probabilities), 9),
    }
