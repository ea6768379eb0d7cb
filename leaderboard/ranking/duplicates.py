"""Finds results that must have no rank of their own: repeated ones of a model, or ones with another's answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from leaderboard.verify.entries import Entry, Match, model_label, why_unranked

_NEAR = 1e-4
"""Largest difference of the primary metric and its standard error between a result and a copy changed a little."""
_LEAST_SPREAD = 1e-3
"""Standard error of the primary metric below which nearness proves nothing, as of perfect models."""


class Duplicate(NamedTuple):
    """A valid result that is not shown, because another result of the same model and signature is shown."""

    entry: Entry
    shown: Entry

    @property
    def agrees(self) -> bool:
        """True if both hold the same answers, or nearly the same."""
        return self.entry.answers_sha256 == self.shown.answers_sha256 or _is_near(self.entry, self.shown)


class Singled(NamedTuple):
    """The results of one table, without duplicates."""

    shown: tuple[Entry, ...]
    duplicates: tuple[Duplicate, ...]


def precedence(entry: Entry) -> tuple[bool, bool, str, str]:
    """Return a sort key: accepted results before local ones, by the date of acceptance, then by folder."""
    decision = entry.acceptance
    date = "" if decision is None else decision.accepted
    return entry.origin != "accepted", decision is None, date, entry.place


def with_own_identities(entries: Sequence[Entry]) -> list[Entry]:
    """Return the results; those that claim the identity of a model under another name are set apart.

    The result that was accepted first has the identity. Without an acceptance none of them has it, except among local
    runs, where it is the first by folder.

    Args:
        entries: All results.
    """
    claims: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=precedence):
        claims.setdefault(entry.result.model.identity_sha256, []).append(entry)
    checked = []
    for entry in entries:
        first = claims[entry.result.model.identity_sha256][0]
        others = [claim for claim in claims[entry.result.model.identity_sha256] if _name(claim) != _name(entry)]
        is_settled = first.origin == "local" or first.acceptance is not None
        if others and not (is_settled and _name(first) == _name(entry)):
            reason = (
                f"claims the identity of {model_label(others[0])} in {others[0].place}; a maintainer has to settle it"
            )
            entry = replace(entry, match=Match("unknown", reason))
        checked.append(entry)
    return checked


def _name(entry: Entry) -> tuple[str, str | None]:
    return entry.result.model.id, entry.result.model.revision


class FirstAnswers:
    """The first model that gave each set of answers, over all tables: answers can be read in several ways."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Find the first model of each set of answers.

        Args:
            entries: All results on the board.
        """
        self._first: dict[str, Entry] = {}
        for entry in sorted(entries, key=_replayed_last):
            # Not of baselines: the gate denies their answers a rank anyway, and anybody can call a result a baseline.
            if not entry.is_baseline:
                self._first.setdefault(entry.answers_sha256, entry)

    def why_copied(self, entry: Entry) -> str | None:
        """Return why a result with the answers of another model has no rank; None if it was the first."""
        if entry.is_baseline:
            return None
        first = self._first[entry.answers_sha256]
        if first.result.model.identity_sha256 == entry.result.model.identity_sha256:
            return None
        return f"gives exactly the answers of {model_label(first)}, so it has no rank of its own"


def _replayed_last(entry: Entry) -> tuple[bool, bool, bool, str, str]:
    # Replayed answers were given before.
    return (entry.is_replayed, *precedence(entry))


def singled(entries: Sequence[Entry], answers: FirstAnswers) -> Singled:
    """Return the results of one signature to show, each with the reason why it may have no rank of its own.

    Of several results with the same answers of the same model, the first is shown. If they have other answers and the
    same origin, all of them are shown and disputed, since it is unknown which of them is the model's.

    Args:
        entries: Results of one signature.
        answers: The first results with each set of answers.
    """
    of_models: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=precedence):
        of_models.setdefault(entry.result.model.identity_sha256, []).append(entry)
    shown: list[Entry] = []
    duplicates: list[Duplicate] = []
    for first, *others in of_models.values():
        # Answers of two machines may differ in the last digits, which is no dispute.
        disputing = [
            other
            for other in others
            if other.origin == first.origin
            and other.answers_sha256 != first.answers_sha256
            and not _is_near(first, other)
        ]
        duplicates += [Duplicate(other, first) for other in others if other not in disputing]
        shown += _disputed([first, *disputing]) if disputing else [first]
    return Singled(tuple(_marked(shown, answers)), tuple(duplicates))


def _disputed(entries: Sequence[Entry]) -> list[Entry]:
    """Return results of one model that contradict each other, each with the folder of another one."""
    accepted = [
        candidate
        for candidate in entries
        if candidate.acceptance is not None and candidate.acceptance.decision != "withdrawn"
    ]
    preferred = [
        candidate
        for candidate in accepted
        if candidate.acceptance is not None and candidate.acceptance.decision == "preferred"
    ]
    # No result loses its rank to one that no maintainer has seen.
    for chosen, why in ((preferred, "which a maintainer prefers"), (accepted, "which was accepted before")):
        if len(chosen) == 1:
            reason = f"has other answers than {chosen[0].place}, {why}"
            return [entry if entry is chosen[0] else replace(entry, double=reason) for entry in entries]
    disputed = []
    for entry in entries:
        other = next(candidate for candidate in entries if candidate is not entry)
        reason = f"disputed: {other.place} has other answers of the same model; a maintainer has to settle it"
        disputed.append(replace(entry, double=reason))
    return disputed


def _marked(entries: Sequence[Entry], answers: FirstAnswers) -> Iterator[Entry]:
    """Yield the results, and mark those that repeat another one or another result of the same model revision."""
    ordered = sorted(entries, key=_replayed_last)
    before: list[Entry] = []
    for entry in ordered:
        reason = entry.double
        if reason is None and not entry.is_baseline:
            reason = _unsettled(entry, entries) or answers.why_copied(entry) or _why_double(entry, before)
        marked = replace(entry, double=reason)
        if not entry.is_baseline:
            before.append(marked)
        yield marked


def _unsettled(entry: Entry, entries: Sequence[Entry]) -> str | None:
    """Return why it is undecidable who gave some answers first; None if it is known or only this model gives them."""
    if entry.origin != "accepted" or entry.acceptance is not None:
        return None
    alike = [
        other
        for other in entries
        if other.origin == "accepted"
        and not other.is_baseline
        and other.result.model.identity_sha256 != entry.result.model.identity_sha256
        and (other.answers_sha256 == entry.answers_sha256 or _is_near(entry, other))
    ]
    if not alike or any(other.acceptance is not None for other in alike):
        return None
    return (
        f"gives the answers of {model_label(alike[0])}, and the register does not say which of them was accepted first"
    )


def _why_double(entry: Entry, before: Sequence[Entry]) -> str | None:
    model = entry.result.model
    for other in before:
        if _is_near(entry, other):
            return f"differs from {model_label(other)} by less than {_NEAR:g}: a copy has no rank"
    for other in before:
        same = (other.result.model.id, other.result.model.revision) == (model.id, model.revision)
        if same and other.double is None and why_unranked(other) is None:
            how = ", ".join(filter(None, (other.result.model.backend, other.result.model.precision)))
            return f"another result of the same model revision has the rank ({how})"
    return None


def _is_near(entry: Entry, other: Entry) -> bool:
    if entry.primary is None or other.primary is None or entry.primary.value is None or other.primary.value is None:
        return False
    ours, theirs = (one.deviations.get(entry.primary.name) for one in (entry, other))
    if ours is None or theirs is None or ours.shape != theirs.shape or ours.variance < _LEAST_SPREAD**2:
        return False
    difference = abs(entry.primary.value - other.primary.value)
    return bool(difference + math.sqrt((ours - theirs).variance) <= _NEAR)
