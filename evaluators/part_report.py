"""The report on one part of a suite: its labels, and how a model uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class LabelUse(NamedTuple):
    """A label of a part, and how a model uses it."""

    name: str
    n_right: int
    """Number of evaluated items whose right label it is."""
    predicted_share: float | None
    """Share of the evaluated answers that choose it; ties count in parts. None if there are no answers."""
    prior: float | None
    """Mean probability that the model gives it where no label is right more often than another; None if unknown."""


class PartReport(NamedTuple):
    """The labels of one part, how a model uses them, and facts about the part."""

    groups: Mapping[str, str]
    """Facts about the part that all of its items share, by name."""
    labels: tuple[LabelUse, ...]
    are_same: bool
    """True if all items offer the same labels; False if each brings its own, which are then texts of the items."""
    why_no_share: str | None
    """Reason why nothing is known about what the model chooses; None if it is."""
    why_no_prior: str | None
    """Reason why no prior is known; None if it is."""
