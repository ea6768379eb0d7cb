"""Drafts of datasets with any items, which the real builder writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any

from builders.dataset.card import Card
from builders.dataset.output import Draft, DraftSplit
from schemas.documents.dataset import Suite


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
        # All that a card must say.
        card=Card(**{one.name: "Made by a test." for one in fields(Card) if one.default is MISSING}),  # type: ignore[arg-type]
        suites=suites,
    )
