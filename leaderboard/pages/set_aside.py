"""Collects the results that are set apart: those that no table shows, or that have no rank in their table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.ranking.boards import Board
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import TEXTS_ELSEWHERE, Entry

Kind: TypeAlias = Literal["unknown", "texts", "identity", "items", "slice", "disputed", "repeated", "withdrawn"]


class Words(NamedTuple):
    """The words of the page about one kind."""

    heading: str
    meaning: str
    remedy: str
    """Advice for the owner of such a result."""


_WORDS: dict[Kind, Words] = {
    "unknown": Words(
        "About a dataset that the board does not know",
        "The board has no answer key of the dataset, config and prompt, so nothing says that the items, the right "
        "answers and the requests are those of the dataset. No table shows these results.",
        "Build the dataset and name its folder with --datasets, or add its answer key with a pull request: biasboard "
        "keys DATASET writes it. If the benchmark of the dataset is not known here, add the benchmark first.",
    ),
    "texts": Words(
        "Without its texts, and not compared with them",
        "The result holds hashes in place of the texts that the model wrote, and sums in place of what was read from "
        "them. No maintainer has made it again from the complete run, so its numbers are a claim. No table shows it.",
        "Send the complete run to a maintainer, who compares both with biasboard verify PLACE --texts FOLDER --report "
        "FILE, and enters the outcome with biasboard accept PLACE --report FILE.",
    ),
    "identity": Words(
        "In the name of another model",
        "The result claims the identity of a model that the board knows under another name or revision. No table shows "
        "it.",
        "Tell the maintainers which name is right. If the model was renamed, ask it again under one name, or withdraw "
        "the older result.",
    ),
    "items": Words(
        "Other items under the same signature",
        "The result asks some items of a dataset, and its signature equals that of another result on other items. No "
        "table shows it, because their numbers cannot be compared.",
        "Run the model again on the whole config, or on the same items as the other result.",
    ),
    "slice": Words(
        "Some of the items only",
        "The result asks a part of the items of a config or suite. It stands in a table of its own, without a rank: "
        "whoever chooses the items can choose the easy ones.",
        "Run the same command without --limit and --part. Answers that are stored already are not asked again.",
    ),
    "disputed": Words(
        "Disputed",
        "Two results of the same model on the same items have other answers. Both stand in the table, and none of "
        "them, or only the one that was accepted or preferred, can have a rank.",
        "Run the model again with the same revision and precision to see which answers it gives, and tell the "
        "maintainers: they settle it with biasboard accept PLACE --decision preferred --reason TEXT.",
    ),
    "repeated": Words(
        "Without a rank of their own",
        "Another result has the rank: one with exactly the same answers, another result of the same model revision, or "
        "one of the same weights under another name.",
        "Nothing has to be done for a second backend or precision of one model. If the answers are those of another "
        "model by mistake, run the right model and replace the result.",
    ),
    "withdrawn": Words(
        "Withdrawn",
        "A maintainer withdrew the result for the reason given. It stays visible in its table, without a rank.",
        "If the reason no longer holds, run the model again and submit the new result.",
    ),
}
_TABLED: tuple[Kind, ...] = ("withdrawn", "disputed", "slice", "repeated")


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
    words: Words
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
    for model in models:
        for placement in model.placements:
            for kind in _kinds(placement):
                title, page = placement.section.name, placement.page
                found[kind].append(ApartResult(placement.row.entry, placement.row.unranked or "", title, page))
    return tuple(
        ApartGroup(kind, _WORDS[kind], tuple(sorted(results, key=_order))) for kind, results in found.items() if results
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


def _kinds(placement: Placement) -> Iterator[Kind]:
    """Yield the kind of a result in a table; nothing if it is not set apart."""
    row = placement.row
    holds: dict[Kind, bool] = {
        "withdrawn": row.entry.acceptance is not None and row.entry.acceptance.decision == "withdrawn",
        "disputed": row.entry.double is not None and _has_rival(row, placement.section.table.rows),
        "slice": row.entry.match.extent == "slice",
        "repeated": row.entry.double is not None,
    }
    yield from [kind for kind in _TABLED if holds[kind]][:1]


def _has_rival(row: Row, rows: Sequence[Row]) -> bool:
    """Return True if the table shows another result of the same model."""
    identity = row.entry.result.model.identity_sha256
    return any(other is not row and other.entry.result.model.identity_sha256 == identity for other in rows)


def _order(one: ApartResult) -> tuple[str, str]:
    return one.entry.origin, one.entry.place
