"""The interface of a task with calibrated metrics, whose corrections lie beside the records of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from schemas.corrections import FittedCorrection

if TYPE_CHECKING:
    from evaluators.metric import CorrectedTable
    from schemas.record_columns import RecordColumns


class Beside(NamedTuple):
    """Facts beside the records of a run that calibrated metrics need."""

    corrections: Sequence[FittedCorrection] = ()
    """Corrections that were fitted before, which are applied as they are."""
    trained: Mapping[str, frozenset[str]] = {}
    """Ids of the items that an adapter of the model was trained on, by config; nothing is fitted on them."""
    may_fit: bool = True
    """True to fit corrections that are missing; False to leave out the metrics that need them."""


NOTHING_BESIDE = Beside()


@runtime_checkable
class AppliesCorrections(Protocol):
    """A task with calibrated metrics whose corrections are stored beside the records."""

    def corrected_table(
        self,
        parts: Iterable[RecordColumns],
        beside: Beside,
        *,
        is_suite: bool,
        metrics: frozenset[str] | None = None,
    ) -> CorrectedTable:
        """Return records as arrays, with the corrections that their metrics apply.

        Args:
            parts: The records of each part, one part after the other.
            beside: Known corrections, and items that nothing may be fitted on.
            is_suite: True if the result is that of a suite, and not of a single config.
            metrics: Names of the metrics that are needed; None for all.
        """
