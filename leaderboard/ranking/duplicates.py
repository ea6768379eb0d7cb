"""Finds results that must have no rank of their own: repeated ones of a model, or ones with just another's answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from biasboard.ground import strict_json
from leaderboard.ranking.gates import is_settled, why_unranked
from leaderboard.verify.entries import Entry, Match, claimed_identity, model_label
from leaderboard.verify.sketches import asked
from schemas.documents.result import Model


class Duplicate(NamedTuple):
    """A valid result that is not shown, because another result of the same model and signature is shown."""

    entry: Entry
    shown: Entry

    @property
    def reason(self) -> str:
        """Why it is not shown."""
        shown = f"{self.shown.origin} result {self.shown.place} of the same model and signature is shown instead"
        return shown if _are_alike(self.entry, self.shown) else f"{shown}, whose answers differ"


def precedence(entry: Entry) -> tuple[bool, bool, bool, bool, str, str]:
    """Return a sort key: registered results, withdrawn ones, accepted ones, local ones; then by date and by folder.

    No result that a maintainer has registered loses its rank to one that is not, or not any more; and what was
    withdrawn gets none by being handed in again. Of others, replayed answers come last, because they were given before.
    """
    decision = entry.acceptance
    date = "" if decision is None else decision.accepted
    return entry.origin != "accepted", not is_settled(entry), decision is None, entry.is_replayed, date, entry.place


def with_own_identities(entries: Sequence[Entry]) -> list[Entry]:
    """Return the results; accepted ones that claim the identity of a model under another name are set apart.

    The result that was accepted first has the identity. Of several names without an acceptance none has it, except
    among local runs, where it is the first by folder. A local run under another name is the user's own and no claim: it
    stands with an identity of its own, and has no rank of its own in a table that has the owner of the identity.
    """
    claims: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=precedence):
        claims.setdefault(entry.result.model.identity_sha256, []).append(entry)
    checked = []
    for entry in entries:
        same = claims[entry.result.model.identity_sha256]
        first = same[0]
        names = {_name(claim) for claim in same if claim.origin == first.origin}
        is_settled = first.origin == "local" or first.acceptance is not None or len(names) == 1
        owners = [claim for claim in same if is_settled and _name(claim) == _name(first)]
        if _name(entry) not in map(_name, owners):
            if entry.origin == "local":
                # Shown as another model, with a note if its table has the owner of its identity too.
                model, asked_of = entry.result.model, entry.result.signature_sha256
                beside = [owner for owner in owners if owner.result.signature_sha256 == asked_of]
                double = f"same weights as {model_label(beside[0])}, so it has no rank of its own" if beside else None
                result = replace(entry.result, model=replace(model, identity_sha256=renamed_identity(model)))
                entry = replace(entry, result=result, shared_identity=model.identity_sha256, double=double)
            else:
                other = next(claim for claim in same if _name(claim) != _name(entry))
                entry = replace(entry, match=Match("unknown", claimed_identity(other.result.model, other.place)))
        checked.append(entry)
    return checked


def renamed_identity(model: Model) -> str:
    """Return the identity of a local run on the board if its own is that of a model with another name."""
    return strict_json.sha256([model.identity_sha256, model.id, model.revision])


def _name(entry: Entry) -> tuple[str, str | None]:
    return entry.result.model.id, entry.result.model.revision


_Key: TypeAlias = tuple[str, str]
_SAME = 0.5
"""Share of equal answers from which two results of one model agree."""


def _key(entry: Entry) -> _Key:
    """Return what names a result on a board."""
    return entry.origin, entry.place


def copied_answers(entries: Iterable[Entry]) -> dict[_Key, str]:
    """Return why results with exactly the answers of another model have no rank, over all tables.

    Answers can be read in several ways. Only exactly the same ones are a fact that a board states by itself. Whether
    nearly the same ones are those of another model is for a maintainer to decide, whom ``biasboard verify`` tells of
    them. Strangers name the folders, and only a maintainer knows which result was there before: until the register
    says so, it is undecided who gave answers first. Local runs unsettle nothing.
    """
    first_of: dict[str, Entry] = {}
    copies: dict[str, list[Entry]] = {}
    # Not of baselines: the gate denies their answers a rank anyway.
    for entry in sorted((entry for entry in entries if not entry.is_baseline), key=precedence):
        first = first_of.setdefault(entry.answers_sha256, entry)
        # The very same answers are no other revision's: a computation would differ in the last digits.
        is_same_model = first.result.model.identity_sha256 == entry.result.model.identity_sha256
        # Two models that hardly err give the same letters, and neither has them of the other.
        if not is_same_model and entry.sketch.is_telling and not _is_perfect(entry):
            copies.setdefault(entry.answers_sha256, []).append(entry)
    reasons: dict[_Key, str] = {}
    for answers, repeating in copies.items():
        first = first_of[answers]
        told = f"gives exactly the answers of {model_label(first)}"
        reasons |= {_key(entry): f"{told}, so it has no rank of its own" for entry in repeating}
        accepted = [entry for entry in repeating if entry.origin == "accepted"]
        if accepted and first.acceptance is None:
            unsettled = "and the register does not say which came first"
            reasons |= {_key(entry): f"{told}, {unsettled}" for entry in accepted}
            reasons[_key(first)] = f"gives exactly the answers of {model_label(accepted[0])}, {unsettled}"
    return reasons


def _is_perfect(entry: Entry) -> bool:
    """Return True if nothing could be better: two such models give the right answers, and nobody copied them.

    A constant answer is ideal by a measure of evenness, and the gate tells it from a model.
    """
    primary, standing = entry.primary, entry.standing
    if primary is None or primary.value is None or standing is None:
        return False
    return primary.value == primary.ideal and standing.reason is None


def _are_alike(entry: Entry, other: Entry) -> bool:
    """Return True for the answers of one model, which may differ in the last digits on two machines.

    It takes more than being alike: whoever keeps a third of a model's answers, or only its decisions, could otherwise
    end a dispute by being the first.
    """
    if entry.answers_sha256 == other.answers_sha256:
        return True
    ours, theirs = entry.sketch, other.sketch
    if asked(entry.result) != asked(other.result) or ours.likeness(theirs) is None:
        return False
    agreement = ours.agreement(theirs)
    return agreement is None or agreement >= _SAME


def singled(entries: Sequence[Entry], copied: Mapping[_Key, str]) -> tuple[list[Entry], list[Duplicate]]:
    """Return the results of one signature to show, each with why it may have no rank of its own, and the duplicates.

    Of several results with the same answers of the same model, the first is shown; if it withholds their texts and
    another one holds these, it has the other's examples. If they have other answers and the
    same origin, all of them are shown and disputed, since it is unknown which of them is the model's.

    Args:
        entries: The results.
        copied: Why results with the answers of another model have no rank, as :func:`copied_answers` says.
    """
    of_models: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=precedence):
        of_models.setdefault(entry.result.model.identity_sha256, []).append(entry)
    shown: list[Entry] = []
    duplicates: list[Duplicate] = []
    for first, *others in of_models.values():
        # Answers of two machines may differ in the last digits, which is no dispute.
        disputing = [other for other in others if other.origin == first.origin and not _are_alike(first, other)]
        same = [other for other in others if other.answers_sha256 == first.answers_sha256]
        complete = next((other for other in same if other.result.withheld is None), None)
        if first.result.withheld is not None and complete is not None:
            first = replace(first, examples=complete.examples, complete=complete.folder)
        duplicates += [Duplicate(other, first) for other in others if other not in disputing]
        shown += _disputed([first, *disputing]) if disputing else [first]
    marked: list[Entry] = []
    for entry in sorted(shown, key=precedence):
        before = [one for one in marked if not one.is_baseline]
        reason = entry.double
        if reason is None and not entry.is_baseline:
            reason = copied.get(_key(entry)) or _why_double(entry, before)
        marked.append(replace(entry, double=reason))
    return marked, duplicates


def _disputed(entries: Sequence[Entry]) -> list[Entry]:
    """Return results of one model that contradict each other, each with the folder of another one."""
    decided = [(entry, entry.acceptance) for entry in entries if entry.acceptance is not None]
    preferred = [(entry, one) for entry, one in decided if one.decision == "preferred"]
    accepted = [(entry, one) for entry, one in decided if one.decision != "withdrawn"]
    # No result loses its rank to one that no maintainer has seen.
    for chosen in (preferred, accepted):
        if len(chosen) == 1:
            ((first, one),) = chosen
            since = f" since {one.decided}" if one.decided else ""
            why = f"a maintainer prefers{since}: {one.reason}" if chosen is preferred else "was accepted before"
            reason = f"has other answers than {first.place}, which {why}"
            return [entry if entry is first else replace(entry, double=reason) for entry in entries]
    disputed = []
    for entry in entries:
        other = next(candidate for candidate in entries if candidate is not entry)
        reason = f"disputed: {other.place} has other answers of the same model; a maintainer has to settle it"
        disputed.append(replace(entry, double=reason))
    return disputed


def _why_double(entry: Entry, before: Sequence[Entry]) -> str | None:
    model = entry.result.model
    for other in before:
        same = (other.result.model.id, other.result.model.revision) == (model.id, model.revision)
        if same and other.double is None and why_unranked(other) is None:
            how = ", ".join(filter(None, (other.result.model.backend, other.result.model.precision)))
            return f"another result of the same model revision has the rank ({how})"
    return None
