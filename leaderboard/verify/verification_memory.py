"""Reuses verified results from the memory of this machine if all their files are unchanged."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from biasboard.ground.columns import FloatArray
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.measure.baseline_gate import Standing
from evaluators.statistics.jackknife import Deviations
from leaderboard.verify.entries import Entry, Examples, Kind, Match, Root
from leaderboard.verify.intake import FAULTS, MOST_RESULT_BYTES, check_own_file, files_of, read_untrusted
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.sketches import Sketch
from leaderboard.verify.verification import verified_entry
from schemas.documents.base import Document, as_row, from_values
from schemas.documents.record import Record
from schemas.documents.result import Metric, Result, SplitCounts, metric_key
from schemas.files import contract
from schemas.folders.run_folder import path_of

_VERIFIED = "verified result"


def remembered_entry(path: Path, root: Root, memory: Memory, keys: KeyBook) -> Entry | None:
    """Return a result that was verified before, if its files and the code are byte for byte the same as then.

    Args:
        path: Path of the ``result.json``.
        root: Folder in which it was found.
        memory: The memory of this machine.
        keys: The answer keys of the datasets that the board knows.

    Returns:
        The verified result; None if it is not remembered or cannot be read.
    """
    try:
        result = read_untrusted(path)
        stored = memory.get(_VERIFIED, _hashes(path, result) | _key_hash(result, keys, memory))
    except FAULTS:
        return None
    return None if stored is None else _entry(stored, result, path, root)


def verify_and_remember(path: Path, root: Root, memory: Memory, keys: KeyBook) -> Entry:
    """Verify a result and keep the outcome in memory.

    Args:
        path: Path of the ``result.json``.
        root: Folder in which it was found.
        memory: The memory of this machine.
        keys: The answer keys of the datasets that the board knows.

    Raises:
        DataError: as from :func:`leaderboard.verify.verification.verified_entry`.
    """
    check_own_file(path, MOST_RESULT_BYTES)
    before = sha256_file(path)
    entry = verified_entry(path, root, memory, keys)
    files = _hashes(path, entry.result)
    read = {"result": before} | {name: file.sha256 for name, file in files_of(entry.result).items()}
    # The files may have changed while they were read.
    if files == read:
        memory.put(_VERIFIED, files | _key_hash(entry.result, keys, memory), _as_json(entry))
    return entry


def _hashes(path: Path, result: Result) -> dict[str, JsonValue]:
    hashes = {name: sha256_file(path_of(path.parent, file)) for name, file in files_of(result).items()}
    return {"result": sha256_file(path), **hashes}


def _key_hash(result: Result, keys: KeyBook, memory: Memory) -> dict[str, JsonValue]:
    key = keys.find(result.signature, memory)
    # A result that was verified with a secret is not reused without it.
    secret = None if key is None or key.secret is None else key.secret.id
    return {"key": None if key is None else key.sha256, "secret": secret}


def _as_json(entry: Entry) -> JsonValue:
    return {
        "metrics": _rows(entry.metrics.values()),
        "n_recomputed": entry.n_recomputed,
        "deviations": {
            name: [[packed(part) for part in of.parts], of.n_clusters] for name, of in entry.deviations.items()
        },
        "by_part": {name: packed(values) for name, values in entry.by_part.items()},
        "match": list(entry.match),
        "items_sha256": entry.items_sha256,
        "answers_sha256": entry.answers_sha256,
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


def _entry(known: JsonValue, result: Result, path: Path, root: Root) -> Entry:
    stored = cast(dict[str, Any], known)
    metrics = [from_values(metric, Metric) for metric in stored["metrics"]]
    return Entry(
        result=result,
        origin=root.origin,
        place=root.place(path),
        metrics={metric_key(metric): metric for metric in metrics},
        n_recomputed=stored["n_recomputed"],
        deviations={
            name: Deviations.of([unpacked(part) for part in parts], n_clusters)
            for name, (parts, n_clusters) in stored["deviations"].items()
        },
        by_part={name: unpacked(values) for name, values in stored["by_part"].items()},
        match=Match(*stored["match"]),
        items_sha256=stored["items_sha256"],
        answers_sha256=stored["answers_sha256"],
        sketch=Sketch(*map(_sketched, stored["sketch"], _SKETCH_TYPES)),
        earlier=tuple(from_values(metric, Metric) for metric in stored["earlier"]),
        coverage=tuple(from_values(entry, SplitCounts) for entry in stored["coverage"]),
        standing=None if stored["standing"] is None else _STANDING.validate_python(stored["standing"], strict=False),
        rescored=tuple(stored["rescored"]),
        folder=path.parent,
        examples=Examples(
            tuple(
                # Checked when they were stored: to check ten records again takes as long as all else here.
                (cast(Kind, kind), n, tuple(from_values(record, Record) for record in records))
                for kind, n, records in stored["examples"]
            ),
            hides_prompts=stored["hides_prompts"],
        ),
    )


_STANDING = TypeAdapter(Standing)
_SKETCH_TYPES = (np.float32, np.uint32, np.uint32)


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
