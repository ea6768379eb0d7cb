"""Writes entries for the memory of this machine, and reads them again."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from biasboard.ground.columns import FloatArray
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.baseline_gate import Standing
from evaluators.statistics.jackknife import Deviations
from leaderboard.verify.entries import Entry, Examples, Kind, Match, Origin
from leaderboard.verify.sketches import Sketch
from schemas.documents.base import Document, as_row, from_values
from schemas.documents.record import Record
from schemas.documents.result import Metric, Result, SplitCounts, metric_key
from schemas.files import contract

_STANDING = TypeAdapter(Standing)
_SKETCH_TYPES: tuple[type[np.generic], ...] = (np.float32, np.uint32, np.uint32, np.uint16)


def as_json(entry: Entry) -> JsonValue:
    """Return the form in which the memory holds an entry, without its result and where that lies."""
    return {
        "metrics": _rows(entry.metrics.values()),
        "n_recomputed": entry.n_recomputed,
        "deviations": {name: packed_deviations(of) for name, of in entry.deviations.items()},
        "by_part": {name: packed(values) for name, values in entry.by_part.items()},
        "match": list(entry.match),
        "items_sha256": entry.items_sha256,
        "answers_sha256": entry.answers_sha256,
        "first_token_share": entry.first_token_share,
        "sketch": [base64.b64encode(values.tobytes()).decode() for values in entry.sketch],
        "earlier": _rows(entry.earlier),
        "coverage": _rows(entry.coverage),
        "standing": None if entry.standing is None else _STANDING.dump_python(entry.standing, mode="json"),
        "rescored": list(entry.rescored),
        "examples": [
            [kind, n, [contract.dump(record) for record in records]] for kind, n, records in entry.examples.of_kinds
        ],
        "hides_prompts": entry.examples.hides_prompts,
    }


def entry_from(known: JsonValue, result: Result, origin: Origin, place: str, folder: Path | None) -> Entry:
    """Return an entry that the memory holds.

    Args:
        known: What :func:`as_json` returned.
        result: Its result.
        origin: Where that comes from.
        place: Folder of the result, relative to the folder that was searched.
        folder: Folder of the result; None if there is none.
    """
    stored = cast(dict[str, Any], known)
    metrics = [from_values(metric, Metric) for metric in stored["metrics"]]
    return Entry(
        result=result,
        origin=origin,
        place=place,
        metrics={metric_key(metric): metric for metric in metrics},
        n_recomputed=stored["n_recomputed"],
        deviations={name: unpacked_deviations(of) for name, of in stored["deviations"].items()},
        by_part={name: unpacked(values) for name, values in stored["by_part"].items()},
        match=Match(*stored["match"]),
        items_sha256=stored["items_sha256"],
        answers_sha256=stored["answers_sha256"],
        sketch=Sketch(*map(_sketched, stored["sketch"], _SKETCH_TYPES)),
        first_token_share=stored["first_token_share"],
        earlier=tuple(from_values(metric, Metric) for metric in stored["earlier"]),
        coverage=tuple(from_values(entry, SplitCounts) for entry in stored["coverage"]),
        standing=None if stored["standing"] is None else _STANDING.validate_python(stored["standing"], strict=False),
        rescored=tuple(stored["rescored"]),
        folder=folder,
        examples=Examples(
            tuple(
                # Checked when they were stored: to check ten records again takes as long as all else here.
                (cast(Kind, kind), n, tuple(from_values(record, Record) for record in records))
                for kind, n, records in stored["examples"]
            ),
            hides_prompts=stored["hides_prompts"],
        ),
    )


def _sketched(text: str, kind: type[np.generic]) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def _rows(documents: Iterable[Document]) -> JsonValue:
    return [contract.plain(as_row(document)) for document in documents]


def packed(values: FloatArray) -> str:
    """Return numbers as text for the memory."""
    return base64.b64encode(values.astype("<f8").tobytes()).decode()


def unpacked(text: str) -> FloatArray:
    """Return the numbers that :func:`packed` made a text of."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8")


def packed_deviations(deviations: Deviations) -> JsonValue:
    """Return deviations in the form in which the memory holds them."""
    return [[packed(array) for array in (*deviations.parts, deviations.shares)], deviations.blocks.tolist()]


def unpacked_deviations(known: JsonValue) -> Deviations:
    """Return the deviations that :func:`packed_deviations` packed."""
    arrays, blocks = cast(tuple[list[str], list[list[int]]], known)
    first, second, cells, shares = map(unpacked, arrays)
    return Deviations(first, second, cells, shares, np.array(blocks))
