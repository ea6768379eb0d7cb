"""Drafts of datasets with any items, which the real builder writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from builders.dataset.card import Card, CardTable
from builders.dataset.output import Draft, DraftSplit
from schemas.documents.dataset import Source, Suite

NOTE = "Made by a test."


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
        builder="tests",
        builder_version="1.0",
        parameters={},
        seed=None,
        sources=(
            Source(name="t", address="t", revision=None, sha256=None, licence="Apache-2.0", redistributable=True),
        ),
        generator_model=None,
        licence="apache-2.0",
        publish_refusal=None,
        human_validated=False,
        splits=tuple(splits),
        rejects=(),
        reject_rules=(),
        flag_rules=(),
        card=Card(
            data_statement=NOTE,
            how_built=NOTE,
            licence_terms=NOTE,
            intended_use=NOTE,
            out_of_scope_use=NOTE,
            known_limits=NOTE,
            balance=CardTable(header=("",), rows=()),
            citation=NOTE,
            task_categories=("text-classification",),
            tags=("bias",),
        ),
        suites=suites,
    )
