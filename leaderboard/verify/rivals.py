"""Compares a result with those that are there already: its model may have another name there, or other answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import BiasboardError
from biasboard.ground.files import sha256_file
from leaderboard.verify.entries import Entry, label_of
from leaderboard.verify.sketches import Sketch, SketchMaker, asked
from schemas.documents.result import Result
from schemas.folders.run_folder import RESULT, read_parts, read_result


class Rivalry(NamedTuple):
    """A contradiction between a result and one that is there already."""

    says: str
    is_refused: bool
    """True if the result must not be handed in; False if a maintainer decides, who is warned."""


def rivalries(entry: Entry, folder: Path, others: Sequence[Path]) -> Iterator[Rivalry]:
    """Yield what a verified result has in common with others that were there before, and should not.

    Args:
        entry: The result.
        folder: Its folder.
        others: Folders of the others.
    """
    own_sha256 = sha256_file(folder / RESULT)
    ours = entry.result
    for other in others:
        theirs = _result_in(other)
        if theirs is None or other.absolute() == folder.absolute() or sha256_file(other / RESULT) == own_sha256:
            continue
        name = label_of(theirs.model)
        is_same_model = ours.model.identity_sha256 == theirs.model.identity_sha256
        if is_same_model and (ours.model.id, ours.model.revision) != (theirs.model.id, theirs.model.revision):
            yield Rivalry(f"claims the identity of {name} in {other}; a maintainer has to settle it", is_refused=True)
        elif is_same_model and ours.signature_sha256 == theirs.signature_sha256:
            if not _are_alike(entry, other, theirs):
                says = f"has other answers than {other}, of the same model; a maintainer has to settle which are right"
                yield Rivalry(says, is_refused=False)
        elif ours.model.id != theirs.model.id and asked(ours) == asked(theirs) and _are_alike(entry, other, theirs):
            yield Rivalry(f"gives the answers of {name} in {other}, and has no rank of its own", is_refused=False)


def _are_alike(entry: Entry, other: Path, theirs: Result) -> bool:
    if entry.result.records.sha256 == theirs.records.sha256:
        return True
    sketch = _sketch_in(other)
    return sketch is not None and entry.sketch.is_like(sketch)


@lru_cache(maxsize=4_096)
def _result_in(folder: Path) -> Result | None:
    """Return a result; None if it cannot be read, which is said where it is verified itself."""
    try:
        return read_result(folder)
    except (BiasboardError, OSError, ValueError, RecursionError):
        return None


@lru_cache(maxsize=4_096)
def _sketch_in(folder: Path) -> Sketch | None:
    result, maker = _result_in(folder), SketchMaker()
    try:
        for records in () if result is None else read_parts(folder, result, recount=False):
            maker.add(records)
    except (BiasboardError, OSError, ValueError, LookupError):
        return None
    return maker.sketch
