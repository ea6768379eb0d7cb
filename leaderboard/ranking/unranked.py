"""Says why a result can have no rank, whatever its metrics are."""

from __future__ import annotations

from leaderboard.verify.entries import Entry

MIN_ANSWERED = 0.5
"""Smallest share of items, and of the units of the primary metric, that must be scored for a model to be ranked.

What is missing widens its rank range; of less than half, a range would say nothing.
"""


BY_INDEX = "models are ranked by the index of all configs, not by one config"
"""Reason of every row of a table that stands in an index."""


def is_settled(entry: Entry) -> bool:
    """Return True if a maintainer has registered a result and has not withdrawn it."""
    return entry.acceptance is not None and entry.acceptance.decision != "withdrawn"


def reasons_of(unranked: str | None, shut: str | None, *, is_limited: bool = False) -> tuple[str, ...]:
    """Return what a row says about its missing rank: why it has none, and why it is below the line if that differs.

    That an index ranks is said once above the table, and not in each of its rows. A limited run says only that it is
    one: which baseline it beats is open until all items are asked.

    Args:
        unranked: Reason why the row has no rank; None if it has one.
        shut: Reason why the model is not shown to achieve more than a baseline; None if it is.
        is_limited: True if only some items were asked.
    """
    if is_limited and unranked is not None:
        return (unranked,)
    return tuple(reason for reason in dict.fromkeys((unranked, shut)) if reason not in (None, BY_INDEX))


def why_unranked(entry: Entry) -> str | None:
    """Return why a result cannot be ranked, regardless of its metrics; None if it can be."""
    if entry.is_baseline:
        return "baselines are shown for comparison and never ranked"
    if entry.match.reason is not None:
        return entry.match.reason
    if entry.acceptance is not None and entry.acceptance.decision == "withdrawn":
        when = f" on {entry.acceptance.decided}" if entry.acceptance.decided else ""
        return f"withdrawn{when}: {entry.acceptance.reason}"
    if entry.is_replayed and not entry.is_imported:
        return "replayed: its answers come from an earlier run or a file and may repeat another row"
    if entry.claim is not None:
        return f"reported only: {entry.claim}"
    if entry.double is not None:
        return entry.double
    counts = entry.result.counts
    if counts.scored < MIN_ANSWERED * counts.items:
        return f"{counts.scored} of {counts.items} items scored; a rank needs at least half"
    parts = entry.result.signature.parts
    for split_name in entry.result.signature.splits if parts else ():
        having = {counts.part for counts in entry.coverage if counts.split == split_name}
        # A part of a suite that lacks a split which most of its parts have.
        if len(parts) / 2 < len(having) < len(parts):
            lost = next(part for part in parts if part not in having)
            return f"part {lost} has no items of split {split_name}, which most parts have; a rank needs every part"
    # By split, not over all items: the few that support a measurement are a small share of all.
    lacking = [split for split in entry.coverage if split.counts.scored < MIN_ANSWERED * split.counts.items]
    if lacking:
        first = lacking[0]
        more = f", and {len(lacking) - 1} more splits like it" if len(lacking) > 1 else ""
        return (
            f"{first.counts.scored} of {first.counts.items} items of {first.part}/{first.split} scored{more}; a rank "
            "needs at least half of each split"
        )
    return None
