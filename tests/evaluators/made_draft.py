"""Drafts of datasets with any items, which the real builder writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from builders.dataset.card import Card
from builders.dataset.output import Draft, DraftSplit
from schemas.documents.dataset import Suite

STATED = (
    "data_statement",
    "how_built",
    "licence_terms",
    "intended_use",
    "out_of_scope_use",
    "known_limits",
    "citation",
)


def made_draft(
    splits: Iterable[DraftSplit[Any]],
    *,
    name: str,
    benchmark: str,
    version: str = "1.0.0",
    suites: tuple[Suite, ...] = (),
) -> Draft[Any]:
    return Draft(
        name=name,
        benchmark=benchmark,
        version=version,
        title=name.title(),
        licence="apache-2.0",
        splits=tuple(splits),
        card=Card(**dict.fromkeys(STATED, "Made by a test.")),  # type: ignore[arg-type]
        suites=suites,
    )
