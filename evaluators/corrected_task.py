"""What a task with calibrated metrics is given: corrections that lie beside the records of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from schemas.documents.corrections import FittedCorrection


class Beside(NamedTuple):
    """Facts beside the records of a run that calibrated metrics need."""

    corrections: Sequence[FittedCorrection] = ()
    """Corrections that were fitted before, which are applied as they are."""
    trained: Mapping[str, frozenset[str]] = {}
    """Ids of the items that an adapter of the model was trained on, by config; nothing is fitted on them."""
    may_fit: bool = True
    """True to fit corrections that are missing; False to leave out the metrics that need them."""


NOTHING_BESIDE = Beside()
