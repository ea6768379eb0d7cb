"""Writes entries for the memory of this machine, and reads them again."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import numpy.typing as npt
from pydantic import PlainSerializer, PlainValidator, TypeAdapter
from typing_extensions import TypedDict

from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.baseline_gate import GateStanding
from evaluators.statistics.jackknife import Deviations
from leaderboard.verify.entries import Entry, Examples, Kind, Match, Origin
from leaderboard.verify.sketches import Sketch
from schemas.documents.record import Record
from schemas.documents.result import Metric, Result, SplitCounts, metric_key

_SKETCH_TYPES: tuple[type[np.generic], ...] = (np.float32, np.float32, np.uint32, np.uint16)


def _text(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


def _array(text: str, kind: type[np.generic] = np.float64) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def _texts_of_deviations(of: Deviations) -> list[str]:
    return [*map(_text, (*of.parts, of.shares, of.blocks))]


def _deviations(texts: list[str]) -> Deviations:
    *parts, blocks = texts
    first, second, cells, shares = map(_array, parts)
    return Deviations(first, second, cells, shares, _array(blocks, np.int64).reshape(2, -1))


class _Kept(TypedDict):
    """What the memory holds of an entry, without its result and where that lies."""

    metrics: tuple[Metric, ...]
    n_recomputed: int
    deviations: dict[str, Annotated[Deviations, PlainValidator(_deviations), PlainSerializer(_texts_of_deviations)]]
    by_part: dict[str, Annotated[Any, PlainValidator(_array), PlainSerializer(_text)]]
    match: Match
    items_sha256: str
    answers_sha256: str
    first_token_share: float | None
    sketch: Annotated[
        Sketch,
        PlainValidator(lambda texts: Sketch(*map(_array, texts, _SKETCH_TYPES))),
        PlainSerializer(lambda sketch: [*map(_text, sketch)]),
    ]
    earlier: tuple[Metric, ...]
    coverage: tuple[SplitCounts, ...]
    standing: GateStanding | None
    rescored: tuple[str, ...]
    settled: tuple[Metric, ...]
    unread_share: float
    examples: tuple[tuple[Kind, int, tuple[Record, ...]], ...]
    hides_prompts: bool


@cache
def _form() -> TypeAdapter[_Kept]:
    return TypeAdapter(_Kept)


def as_json(entry: Entry) -> JsonValue:
    """Return the form in which the memory holds an entry, without its result and where that lies."""
    examples, hides_prompts = entry.examples
    kept: Any = {name: getattr(entry, name) for name in _Kept.__annotations__.keys() - {"hides_prompts"}}
    kept |= {"metrics": tuple(entry.metrics.values()), "examples": examples, "hides_prompts": hides_prompts}
    return cast(JsonValue, _form().dump_python(kept, mode="json", warnings=False))


def entry_from(known: JsonValue, result: Result, origin: Origin, place: str, folder: Path | None) -> Entry:
    """Return an entry that the memory holds.

    Args:
        known: What :func:`as_json` returned.
        result: Its result.
        origin: Where that comes from.
        place: Folder of the result, relative to the folder that was searched.
        folder: Folder of the result; None if there is none.
    """
    # Rules that join several fields of a record were checked when it was stored: they take as long as all else here.
    kept: dict[str, Any] = {**_form().validate_python(known, strict=False)}
    kept["metrics"] = {metric_key(metric): metric for metric in kept["metrics"]}
    kept["examples"] = Examples(kept["examples"], kept.pop("hides_prompts"))
    return Entry(result=result, origin=origin, place=place, folder=folder, **kept)
