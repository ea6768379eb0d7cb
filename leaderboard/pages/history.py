"""Collects the values that the results of a model had over versions of datasets and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from leaderboard.pages.model_views import ModelView, Placement
from schemas.documents.result import Metric


class Version(NamedTuple):
    """The main value of a result in one version of its dataset and its metric."""

    asked: str
    """Dataset, config and prompt, without the version of the dataset."""
    dataset_version: str
    label: str
    metric: Metric
    is_present: bool
    """True if the value is that of the present metric; False if the result was written with another version of it."""
    accepted: str | None
    """Date of the acceptance; None if the register does not know the result."""
    decision: str
    page: str
    """Page of the result."""


def history(model: ModelView) -> tuple[Version, ...]:
    """Return the versions of the results of a model: those of one table together, the newest dataset first.

    Each result is represented by its ranking metric or, if none ranks, by the first metric of the summaries.
    """
    found = [version for placement in model.placements for version in _of_result(placement)]
    return tuple(sorted(found, key=lambda version: version.asked))


def _of_result(placement: Placement) -> Iterator[Version]:
    section, entry = placement.section, placement.row.entry
    name = section.table.primary or next((column.metric for column in section.summarised), None)
    metric = None if name is None else entry.metric(name)
    if metric is None:
        return
    signature, decision = entry.result.signature, entry.acceptance
    earlier = [one for one in entry.earlier if one.name == name and not one.group]
    for one in (metric, *earlier):
        yield Version(
            asked=f"{signature.dataset}, {signature.config}, {signature.prompt}",
            dataset_version=signature.dataset_version,
            label=placement.label(one.name),
            metric=one,
            is_present=one is metric,
            accepted=None if decision is None else decision.accepted,
            decision=entry.origin if decision is None else decision.decision,
            page=placement.page,
        )
