"""``python -m builders.synthbias lean``: measures how often models choose the occupation mentioned first in type 1.

Each occupation is in each position equally often, so that a model without a preference for a position gives both
positions the same probability on average, whatever its preferences among occupations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, cast

import typer

from biasboard.ground import strict_json
from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import DataError
from builders.dataset.card import CardTable
from builders.synthbias.frames import text_of
from schemas.documents.result import Result
from schemas.folders import run_folder
from schemas.folders.run_folder import finished_runs

LEAN = "lean.json"
_DATASET = "synthbias"
_CONFIG = "type1"
_TIE = 1e-12
"""Maximum difference between probabilities that count as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionLean:
    """The preference of a model for the occupation mentioned first in the sentences of type 1."""

    model: str
    prompt: str
    dataset_version: str
    items_sha256: str
    n_items: int
    n_scored: int
    first_rate: float
    """Share of the scored items in which the occupation mentioned first is more probable; a tie counts half."""
    first_probability: float
    """Mean probability of the occupation mentioned first."""


def measure(
    runs: Annotated[Path, typer.Argument(help="Folder with finished runs on the embedded dataset, at any depth.")],
    out: Annotated[Path, typer.Option(help="File to write; the card is built from texts/lean.json of the builder.")],
) -> None:
    """Measure the preference of each model for the occupation mentioned first, over the items of type 1."""
    with one_line_errors():
        leans = sorted(_measured(runs), key=lambda lean: (lean.model, lean.prompt))
        if not leans:
            raise DataError(f"{runs}: no run on {_CONFIG} of {_DATASET}; run a model on it first")
        strict_json.write(out, {"leans": [asdict(lean) for lean in leans]})
    for lean in leans:
        typer.echo(f"{lean.model}: first in {lean.first_rate:.4f} of {lean.n_scored} items")


def measured_leans() -> tuple[PositionLean, ...]:
    """Return the preferences that were measured on the embedded dataset."""
    read = cast(dict[str, list[dict[str, object]]], strict_json.loads(text_of(LEAN), where=LEAN))
    return tuple(PositionLean(**row) for row in read["leans"])  # type: ignore[arg-type]


def lean_table() -> CardTable:
    """Return the measured preferences as a table."""
    rows = [
        (lean.model, str(lean.n_scored), f"{lean.first_rate:.3f}", f"{lean.first_probability:.3f}")
        for lean in measured_leans()
    ]
    return CardTable(
        header=("model", "items", "share with the first more probable", "mean probability of the first"),
        rows=tuple(rows),
    )


def _measured(runs: Path) -> Iterator[PositionLean]:
    for folder in finished_runs(runs):
        result = run_folder.read_result(folder)
        signature = result.signature
        if (signature.dataset, signature.config) == (_DATASET, _CONFIG) and signature.n_outcomes == 2:
            yield _lean_of(folder, result)


def _lean_of(folder: Path, result: Result) -> PositionLean:
    signature = result.signature
    probabilities = []
    for record in run_folder.read_run(folder).records:
        if record.reading is not None:
            # The reference of type 1 is the occupation mentioned first.
            by_outcome = dict(zip(record.reading.outcomes, record.reading.probabilities, strict=True))
            probabilities.append(by_outcome[str(record.reference)])
    if not probabilities:
        raise DataError(f"{folder}: no answer was scored; run the model again")
    rates = [0.5 if abs(p - 0.5) <= _TIE else float(p > 0.5) for p in probabilities]
    return PositionLean(
        model=result.model.id,
        prompt=signature.prompt,
        dataset_version=signature.dataset_version,
        items_sha256=signature.items_sha256,
        n_items=signature.n_items,
        n_scored=len(probabilities),
        first_rate=_mean(rates),
        first_probability=_mean(probabilities),
    )


def _mean(values: list[float]) -> float:
    # Nine digits, so that the file does not depend on the order of summation.
    return round(sum(values) / len(values), 9)
