"""Finds results that must have no rank of their own: repeated ones of a model, or ones with just another's answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from biasboard.ground import strict_json
from leaderboard.ranking.unranked import is_settled, why_unranked
from leaderboard.verify.entries import Entry, Match, claimed_identity, model_label
from leaderboard.verify.sketches import asked
from schemas.documents.result import Model


class Duplicate(NamedTuple):
    """A valid result that is not shown, because another result of the same model and signature is shown."""

    entry: Entry
    shown: Entry

    @property
    def agrees(self) -> bool:
        """True if both hold the same answers, or nearly the same."""
        return _are_alike(self.entry, self.shown)

    @property
    def reason(self) -> str:
        """Why it is not shown."""
        shown = f"{self.shown.origin} result {self.shown.place} of the same model and signature is shown instead"
        return shown if self.agrees else f"{shown}, whose answers differ"


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
                entry = _renamed(entry, owners)
            else:
                other = next(claim for claim in same if _name(claim) != _name(entry))
                entry = replace(entry, match=Match("unknown", claimed_identity(other.result.model, other.place)))
        checked.append(entry)
    return checked


def renamed_identity(model: Model) -> str:
    """Return the identity of a local run on the board if its own is that of a model with another name."""
    return strict_json.sha256([model.identity_sha256, model.id, model.revision])


def _renamed(entry: Entry, owners: Sequence[Entry]) -> Entry:
    """Return a local result as that of another model, with a note if its table has the owner of its identity too."""
    model = entry.result.model
    beside = [owner for owner in owners if owner.result.signature_sha256 == entry.result.signature_sha256]
    return replace(
        entry,
        result=replace(entry.result, model=replace(model, identity_sha256=renamed_identity(model))),
        shared_identity=model.identity_sha256,
        double=f"same weights as {model_label(beside[0])}, so it has no rank of its own" if beside else None,
    )


def _name(entry: Entry) -> tuple[str, str | None]:
    return entry.result.model.id, entry.result.model.revision


class FirstAnswers:
    """The first model that gave each set of answers, over all tables: answers can be read in several ways.

    Only exactly the same answers are a fact that a board states by itself. Whether nearly the same ones are those of
    another model is for a maintainer to decide, whom ``biasboard verify`` tells of them.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Find the first result with the answers of each result."""
        # Not of baselines: the gate denies their answers a rank anyway.
        ordered = [entry for entry in sorted(entries, key=precedence) if not entry.is_baseline]
        same: dict[str, Entry] = {}
        self._first: dict[_Key, Entry] = {}
        self._repeating: dict[_Key, list[Entry]] = {}
        for entry in ordered:
            first = same.setdefault(entry.answers_sha256, entry)
            # The very same answers are no other revision's: a computation would differ in the last digits.
            is_same_model = first.result.model.identity_sha256 == entry.result.model.identity_sha256
            # Two models that hardly err give the same letters, and neither has them of the other.
            if not is_same_model and entry.sketch.is_telling and not _is_perfect(entry):
                self._first[_key(entry)] = first
                self._repeating.setdefault(_key(first), []).append(entry)

    def why_copied(self, entry: Entry) -> str | None:
        """Return why a result with the answers of another model has no rank; None if it was the first."""
        if (first := self._first.get(_key(entry))) is None:
            return None
        return f"gives exactly the answers of {model_label(first)}, so it has no rank of its own"

    def why_unsettled(self, entry: Entry) -> str | None:
        """Return why it is undecidable who gave some answers first; None if it is known or only this model gives them.

        Strangers name the folders, and only a maintainer knows which result was there before. Local runs unsettle
        nothing.
        """
        first = self._first.get(_key(entry), entry)
        repeating = [other for other in self._repeating.get(_key(first), []) if other.origin == "accepted"]
        if entry.origin != "accepted" or first.acceptance is not None or not repeating:
            return None
        other = first if first is not entry else repeating[0]
        return f"gives exactly the answers of {model_label(other)}, and the register does not say which came first"


_Key: TypeAlias = tuple[str, str]
_SAME = 0.5
"""Share of equal answers from which two results of one model agree."""


def _key(entry: Entry) -> _Key:
    return entry.origin, entry.place


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


def singled(entries: Sequence[Entry], answers: FirstAnswers) -> tuple[list[Entry], list[Duplicate]]:
    """Return the results of one signature to show, each with why it may have no rank of its own, and the duplicates.

    Of several results with the same answers of the same model, the first is shown; if it withholds their texts and
    another one holds these, it has the other's examples. If they have other answers and the
    same origin, all of them are shown and disputed, since it is unknown which of them is the model's.
    """
    of_models: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=precedence):
        of_models.setdefault(entry.result.model.identity_sha256, []).append(entry)
    shown: list[Entry] = []
    duplicates: list[Duplicate] = []
    for first, *others in of_models.values():
        # Answers of two machines may differ in the last digits, which is no dispute.
        disputing = [other for other in others if other.origin == first.origin and not _are_alike(first, other)]
        first = _with_texts(first, others)
        duplicates += [Duplicate(other, first) for other in others if other not in disputing]
        shown += _disputed([first, *disputing]) if disputing else [first]
    return list(_marked(shown, answers)), duplicates


def _with_texts(entry: Entry, others: Sequence[Entry]) -> Entry:
    """Return a result that withholds its texts with the examples of a complete run of the same answers, if any."""
    same = (other for other in others if other.result.withheld is None and other.answers_sha256 == entry.answers_sha256)
    complete = None if entry.result.withheld is None else next(same, None)
    return entry if complete is None else replace(entry, examples=complete.examples, complete=complete.folder)


def _disputed(entries: Sequence[Entry]) -> list[Entry]:
    """Return results of one model that contradict each other, each with the folder of another one."""
    decided = [(entry, entry.acceptance.decision) for entry in entries if entry.acceptance is not None]
    preferred = [entry for entry, decision in decided if decision == "preferred"]
    accepted = [entry for entry, decision in decided if decision != "withdrawn"]
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
    before: list[Entry] = []
    for entry in sorted(entries, key=precedence):
        reason = entry.double
        if reason is None and not entry.is_baseline:
            reason = answers.why_unsettled(entry) or answers.why_copied(entry) or _why_double(entry, before)
        marked = replace(entry, double=reason)
        if not entry.is_baseline:
            before.append(marked)
        yield marked


def _why_double(entry: Entry, before: Sequence[Entry]) -> str | None:
    model = entry.result.model
    for other in before:
        same = (other.result.model.id, other.result.model.revision) == (model.id, model.revision)
        if same and other.double is None and why_unranked(other) is None:
            how = ", ".join(filter(None, (other.result.model.backend, other.result.model.precision)))
            return f"another result of the same model revision has the rank ({how})"
    return None
