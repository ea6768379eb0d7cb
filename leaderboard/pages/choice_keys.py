"""Names tables, results and models in the addresses of the pages that choose among them, and links to those pages."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from leaderboard.model_facts import display_name
from leaderboard.pages.addresses import anchor_of, plain, result_anchor, table_anchor
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import Board
from leaderboard.ranking.profiles import tables_of
from leaderboard.verify.entries import Entry, adapters_of, label_of

_N_KEY = 12
_N_SHOWN = 8
"""Number of characters of a revision by which readers tell two of them apart."""


def table_id(entry: Entry) -> str:
    """Return the name of the table of a result, which is the same for all results on the same items."""
    result = entry.result
    # Results of one table are about the same items; should they not be, they are kept apart here.
    anchor = table_anchor(result.signature, result.signature_sha256)
    return f"{plain(result.signature.benchmark)}-{anchor}-{entry.items_sha256[:6]}"


def result_id(entry: Entry) -> str:
    """Return the name of a result."""
    return hashlib.sha256(f"{result_anchor(entry.result)}-{entry.answers_sha256}".encode()).hexdigest()[:_N_KEY]


def model_key(identity_sha256: str) -> str:
    """Return the name of a model in one revision and precision, by its identity."""
    return identity_sha256[:_N_KEY]


def model_choices(models: Sequence[ModelView]) -> list[dict[str, str]]:
    """Return key, id and name of all language models, by name.

    A model in one revision and precision is one; where an id has several, names say what tells them apart.
    """
    asked = {
        placement.row.entry.result.model.identity_sha256: placement.row.entry.result.model
        for model in models
        for placement in model.placements
        if not placement.row.entry.is_baseline
    }
    names = {}
    for identity, model in asked.items():
        name, revision = display_name(model.id), (model.revision or "no revision").removeprefix("sha256:")[:_N_SHOWN]
        detail = ", ".join(filter(None, (revision, model.precision, adapters_of(model))))
        names[identity] = (name, f"{name} ({detail})", f"{name} ({label_of(model)})")
    chosen = _distinct(names)
    choices = [
        {"key": model_key(identity), "id": model.id, "name": chosen[identity]} for identity, model in asked.items()
    ]
    return sorted(choices, key=lambda choice: (choice["name"].casefold(), choice["key"]))


def _distinct(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the first name of each key that no other key needs too, or else its last name; all have as many names."""
    chosen: dict[str, str] = {}
    for level in zip(*names.values(), strict=True):
        left = {key: name for key, name in zip(names, level, strict=True) if key not in chosen}
        taken = Counter(left.values())
        chosen |= {key: name for key, name in left.items() if taken[name] == 1}
    return {key: chosen.get(key, of_key[-1]) for key, of_key in names.items()}


def in_order(board: Board, sections: Sequence[TableView]) -> list[TableView]:
    """Return tables in the order in which the pages of their benchmarks show them."""
    shown = itertools.chain.from_iterable(tables_of(board, benchmark) for benchmark in board.benchmarks)
    order = {anchor_of(table): number for number, table in enumerate(shown)}
    return sorted(sections, key=lambda section: order[section.anchor])


def table_names(sections: Sequence[TableView]) -> dict[str, str]:
    """Return a name of each table for readers who choose among them, by its anchor.

    It is the title, and says more only where two tables would have the same name.
    """
    names = {}
    for section in sections:
        signature = section.table.signature
        version = f"{section.title}, {signature.dataset} {signature.dataset_version}"
        names[section.anchor] = (section.title, version, f"{version}, {signature.prompt}", section.name)
    return _distinct(names)


def placed_in_order(
    board: Board, models: Sequence[ModelView], sections: Sequence[TableView], least: int = 1
) -> tuple[list[Placement], dict[str, str]]:
    """Return the results of language models in the order of their tables, and names of these for readers, by anchor.

    Args:
        board: All tables.
        models: All models with their results.
        sections: The tables with their addresses.
        least: Number of language models from which a table counts.
    """
    placements = [one for model in models for one in model.placements if not one.row.entry.is_baseline]
    n_models = Counter(placement.section.anchor for placement in placements)
    shown = in_order(board, [section for section in sections if n_models[section.anchor] >= least])
    order = {section.anchor: number for number, section in enumerate(shown)}
    kept = [placement for placement in placements if placement.section.anchor in order]
    return sorted(kept, key=lambda placement: order[placement.section.anchor]), table_names(shown)


def answers_link(entry: Entry, group: Mapping[str, str] | None = None) -> str:
    """Return the address of the answers behind a value, relative to the root of the site.

    Args:
        entry: Result of the value.
        group: Slice of the items; None for all items, of which the page shows the worst group first.
    """
    chosen = {f"group.{key}": value for key, value in (group or {}).items()}
    model = model_key(entry.result.model.identity_sha256)
    return f"answers.html#{urlencode({'table': table_id(entry), 'model': model} | chosen)}"
