"""Collects the results that are set apart: those that no table shows, or that have no rank in their table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from leaderboard.pages.model_views import ModelView
from leaderboard.ranking.boards import Board
from leaderboard.verify.entries import TEXTS_ELSEWHERE, Entry

Kind: TypeAlias = Literal["unknown", "texts", "identity", "items", "slice", "disputed", "repeated", "withdrawn"]


_WORDS: dict[Kind, tuple[str, str, str]] = {
    "unknown": (
        "About a dataset that the board does not know",
        "The board has no answer key of the dataset, config and prompt, so nothing says that the items, the right "
        "answers and the requests are those of the dataset. No table shows these results.",
        "Build the dataset and name its folder with --datasets, or add its answer key with a pull request: biasboard "
        "keys DATASET writes it. If the benchmark of the dataset is not known here, add the benchmark first.",
    ),
    "texts": (
        "Without its texts, and not compared with them",
        "The result holds hashes in place of the texts that the model wrote, and sums in place of what was read from "
        "them. No maintainer has made it again from the complete run, so its numbers are a claim. No table shows it.",
        "Send the complete run to a maintainer, who compares both with biasboard verify PLACE --texts FOLDER --report "
        "FILE, and enters the outcome with biasboard accept PLACE --report FILE.",
    ),
    "identity": (
        "In the name of another model",
        "The result claims the identity of a model that the board knows under another name or revision. No table shows "
        "it.",
        "Tell the maintainers which name is right. If the model was renamed, ask it again under one name, or withdraw "
        "the older result.",
    ),
    "items": (
        "Other items under the same signature",
        "The result asks some items of a dataset, and its signature equals that of another result on other items. No "
        "table shows it, because their numbers cannot be compared.",
        "Run the model again on the whole config, or on the same items as the other result.",
    ),
    "slice": (
        "Some of the items only",
        "The result asks a part of the items of a config or suite. It stands in a table of its own, without a rank: "
        "whoever chooses the items can choose the easy ones.",
        "Run the same command without --limit and --part. Answers that are stored already are not asked again.",
    ),
    "disputed": (
        "Disputed",
        "Two results of the same model on the same items have other answers. Both stand in the table, and none of "
        "them, or only the one that was accepted or preferred, can have a rank.",
        "Run the model again with the same revision and precision to see which answers it gives, and tell the "
        "maintainers: they settle it with biasboard accept PLACE --decision preferred --reason TEXT.",
    ),
    "repeated": (
        "Without a rank of their own",
        "Another result has the rank: one with exactly the same answers, another result of the same model revision, or "
        "one of the same weights under another name.",
        "Nothing has to be done for a second backend or precision of one model. If the answers are those of another "
        "model by mistake, run the right model and replace the result.",
    ),
    "withdrawn": (
        "Withdrawn",
        "A maintainer withdrew the result for the reason given. It stays visible in its table, without a rank.",
        "If the reason no longer holds, run the model again and submit the new result.",
    ),
}
"""Heading, meaning and advice for the owner of a result."""


class ApartResult(NamedTuple):
    """A result that is set apart."""

    entry: Entry
    reason: str
    table: str | None
    """Title of its table; None if no table shows it."""
    page: str | None
    """Page of its model with the anchor of the result; None if no page shows it."""


class ApartGroup(NamedTuple):
    """The results that are set apart for reasons of one kind."""

    kind: Kind
    heading: str
    meaning: str
    remedy: str
    """Advice for the owner of such a result."""
    results: tuple[ApartResult, ...]


def make_apart(board: Board, models: Sequence[ModelView]) -> tuple[ApartGroup, ...]:
    """Return the results that are set apart, by kind; kinds without results are left out.

    Each result has one kind, the first that holds. Baselines never have ranks, so only those about unknown items and on
    slices are among them.

    Args:
        board: All tables.
        models: The pages of all models.
    """
    found: dict[Kind, list[ApartResult]] = {kind: [] for kind in _WORDS}
    identities = _identities(board)
    signatures = {table.signature_sha256 for table in board.tables}
    for entry in board.apart:
        kind: Kind = "items" if entry.result.signature_sha256 in signatures else "unknown"
        if entry.match.reason == TEXTS_ELSEWHERE:
            kind = "texts"
        elif len(identities[entry.result.model.identity_sha256]) > 1:
            kind = "identity"
        found[kind].append(ApartResult(entry, entry.match.reason or "", None, None))
    for placement in (placement for model in models for placement in model.placements):
        row, rows = placement.row, placement.section.table.rows
        acceptance, is_double = row.entry.acceptance, row.entry.double is not None
        has_rival = any(other is not row and other.identity == row.identity for other in rows)
        holds: dict[Kind, bool] = {
            "withdrawn": acceptance is not None and acceptance.decision == "withdrawn",
            "disputed": is_double and has_rival,
            "slice": row.entry.match.extent == "slice",
            "repeated": is_double,
        }
        for kind in [kind for kind, is_so in holds.items() if is_so][:1]:
            title, page = placement.section.name, placement.page
            found[kind].append(ApartResult(row.entry, row.unranked or "", title, page))
    return tuple(
        ApartGroup(kind, *_WORDS[kind], tuple(sorted(results, key=lambda one: (one.entry.origin, one.entry.place))))
        for kind, results in found.items()
        if results
    )


def _identities(board: Board) -> dict[str, set[tuple[str, str | None]]]:
    """Return the names and revisions under which each model identity occurs."""
    entries = [row.entry for table in board.tables for row in table.rows]
    entries += [*board.apart, *(duplicate.entry for duplicate in board.duplicates)]
    found: dict[str, set[tuple[str, str | None]]] = {}
    for entry in entries:
        model = entry.result.model
        found.setdefault(model.identity_sha256, set()).add((model.id, model.revision))
    return found
