"""What a row of a table is, the ranks that a metric gives the rows, and the results that get none of their own.

A row stands for one result of a model, or for an index over several of them: everything that reads tables reads both
alike.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from biasboard.ground import strict_json
from evaluators.benchmark import Part, load_benchmark
from evaluators.runs.measure.index_values import Index, SetTable
from evaluators.scorer import WORD_LISTS
from evaluators.statistics.jackknife import Deviations
from leaderboard.benchmark_pages import Column
from leaderboard.ranking.rank_ranges import (
    BY_INDEX,
    Bounds,
    Comparison,
    Contender,
    Ranking,
    RankRange,
    is_settled,
    rank,
    why_unranked,
)
from leaderboard.verify.entries import Entry, Match, claimed_identity, model_label
from leaderboard.verify.sketches import asked
from schemas.documents.result import Metric, Model, Signature
from schemas.documents.run_files import Scorer


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table: a model, its results and its rank."""

    entries: tuple[Entry, ...]
    """Results of the model: one, or in the table of an index one for each of its configs, in their order."""
    indices: tuple[Index, ...] = ()
    """Index that ranks the models, followed by its variants; empty for a row of one result."""
    rank: RankRange | None = None
    unranked: str | None
    """Reason why the row has no rank; None if it has one."""
    shut: str | None = None
    """Reason why a model does not achieve more than every baseline; None if it does or the benchmark does not ask."""
    chance: float | None = None
    """Share of drawn tables in which the model is the nearest to the ideal; None without a rank or a second model."""
    rank_of_answers: RankRange | None = None
    """Rank range if missing answers are left out; None without a rank, or if no ranked model of the table lacks any."""
    bounds: Bounds | None = None
    """The values of the ranking metric with missing answers at their worst and best; None if none are missing."""
    sets: tuple[SetTable, ...] = ()
    """Comparison of the sets of examples, for each number of examples with several sets."""

    @property
    def entry(self) -> Entry:
        """The result, or the first of several."""
        return self.entries[0]

    @property
    def model(self) -> Model:
        """The model of the row."""
        return self.entry.result.model

    @property
    def identity(self) -> str:
        """The hash that names the exact version of the model."""
        return self.model.identity_sha256

    @property
    def label(self) -> str:
        """The model id with revision and precision."""
        return model_label(self.entry)

    @property
    def is_baseline(self) -> bool:
        """True if the row is no language model."""
        return self.entry.is_baseline

    @property
    def is_imported(self) -> bool:
        """True if the answers were published elsewhere and imported."""
        return self.entry.is_imported

    @property
    def provenances(self) -> tuple[str, ...]:
        """Who vouches for the results, each word once."""
        return tuple(dict.fromkeys(entry.provenance for entry in self.entries))

    @property
    def owner(self) -> str | None:
        """The account that handed the results in, with case ignored as the code host does; None if unregistered.

        Nor has a result one that can have no rank, whatever its numbers are.
        """
        owners = [entry.acceptance.owner for entry in self.entries if entry.acceptance and why_unranked(entry) is None]
        return owners[0].casefold() if len(owners) == len(self.entries) else None

    @property
    def level(self) -> int:
        """How much the row counts where a table or a version is chosen, as no choice may follow rows that anybody adds.

        It is 0 if the row is ranked and a maintainer has registered its results, 1 if it is ranked without that, 2 if
        it is registered and its numbers or the table give it no rank, and 3 for all others, such as copies, limited
        runs and withdrawn results.
        """
        return (0 if self.unranked is None else 2) + (0 if self.owner is not None else 1)

    @property
    def is_below(self) -> bool:
        """True if the row is below the line: a model that achieves no more than a baseline."""
        return self.shut is not None

    @property
    def reasons(self) -> tuple[str, ...]:
        """What the row says about its missing rank: why it has none, and why it is below the line if that differs.

        That an index ranks is said once above the table, and not in each of its rows. A limited run says only that it
        is one: which baseline it beats is open until all items are asked.
        """
        if self.is_baseline:
            return ()
        if self.unranked is not None and any(entry.match.extent == "slice" for entry in self.entries):
            return (self.unranked,)
        return tuple(reason for reason in dict.fromkeys((self.unranked, self.shut)) if reason not in (None, BY_INDEX))

    def metric(self, name: str, group: Mapping[str, str] | None = None) -> Metric | None:
        """Return an index, or a metric of the only result on a slice or by default on all items; None without one."""
        if self.indices:
            return next((index.metric for index in self.indices if index.metric.name == name), None)
        return self.entry.metric(name, group)

    @property
    def primary(self) -> Metric:
        """The index that ranks the models."""
        return self.indices[0].metric

    @property
    def parts(self) -> tuple[Metric, ...]:
        """The metrics whose mean is the ranking index."""
        return self.indices[0].parts

    def entry_of(self, part: Part) -> Entry | None:
        """Return the result that a part of an index is computed from; None if the model lacks it."""
        return next((entry for entry in self.entries if part.source.fits(entry.result.signature)), None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Notes on results whose answers look corrupted: the config and the reason."""
        return tuple(
            f"{entry.result.signature.config}: {reason}"
            for entry in self.entries
            if (reason := entry.result.environment.corruption) is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the models whose results share one signature, or of those that an index combines.

    Rows with the best rank ranges come first, of equal ones that nearest to the ideal, then rows without a rank. Models
    that achieve no more than a baseline follow below.
    """

    signatures: tuple[Signature, ...]
    """What each result of a row was asked: one signature, or in the table of an index one for each config."""
    protocol: str | None = None
    """Prompt or protocol of an index, which also names prompts that differ from the protocol's own; None without."""
    version: str | None = None
    """Version of the ranking index, which covers the versions of all its parts and of their scorers; None without."""
    columns: tuple[Column, ...] = ()
    """Columns of a table of results."""
    undefined: Mapping[str, str] = field(default_factory=dict)
    """Reason of each metric on all items that has no value in any row, by its name."""
    primary: str | None
    """Name of the metric or index by which the rows are ranked; None if the benchmark names none, or if none can rank
    models on these items."""
    sorted_by: str | None = None
    """Name of the metric by which the rows are sorted if none ranks them; None for their names."""
    rows: tuple[Row, ...]
    pairs: Mapping[str, tuple[Comparison, ...]]
    """Comparisons of all pairs of language models that have a value in the same version, by metric; models are named by
    the identities of their rows."""
    detectable: float | None
    """Difference between two ranked models that is detected with a probability of 80 %; None if unknown."""
    others: tuple[Table, ...] = ()
    """The same results ranked by each other metric that the benchmark offers; empty if no result has a rank."""

    @property
    def signature(self) -> Signature:
        """What was asked, of the first result of a row."""
        return self.signatures[0]

    @property
    def signature_sha256(self) -> str:
        """The hash of this signature."""
        return self.rows[0].entry.result.signature_sha256

    @property
    def sha256(self) -> str:
        """The hash that names the table: of its signature, or of the index with all its signatures."""
        if self.version is None:
            return self.signature_sha256
        return hashlib.sha256("\n".join((self.version, *map(str, self.signatures))).encode()).hexdigest()

    @property
    def is_index(self) -> bool:
        """True if an index over several results ranks the models."""
        return self.version is not None

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons of all pairs of ranked models by the metric that ranks them."""
        return tuple(pair for pair in self.pairs.get(self.primary or "", ()) if pair.is_ranked)

    @property
    def is_whole(self) -> bool:
        """True if the rows answer all items of the config or suite, as the board knows it."""
        return all(entry.match.extent == "whole" for entry in self.rows[0].entries)

    @property
    def ranked(self) -> tuple[Row, ...]:
        """The rows that have a rank."""
        return tuple(row for row in self.rows if row.rank is not None)

    @property
    def tied_for_first(self) -> tuple[str, ...]:
        """The ids of the models that no other ranked model is separably better than, in the table's order."""
        return tuple(dict.fromkeys(row.model.id for row in self.ranked if row.rank is not None and row.rank.best == 1))

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers of the texts, the same for all rows."""
        return tuple(scorer for entry in self.rows[0].entries for scorer in entry.result.scorers)

    @property
    def is_demo(self) -> bool:
        """True if lists of words judged the texts, which do for a demonstration."""
        return any(scorer.name in WORD_LISTS for scorer in self.scorers)


class Scope(NamedTuple):
    """The results that models have under the same conditions: one dataset version, asked by one protocol."""

    benchmark: str
    dataset: str
    dataset_version: str
    protocol: str

    @property
    def data(self) -> tuple[str, str]:
        """The name and version of the dataset."""
        return self.dataset, self.dataset_version

    @property
    def is_of_benchmark(self) -> bool:
        """True for the dataset of the benchmark's own name and the one that its published answers belong to."""
        benchmark = load_benchmark(self.benchmark)
        return self.dataset == self.benchmark or benchmark.importer_of(self.dataset) is not None

    @property
    def version(self) -> tuple[int, ...]:
        """The numbers of the version of the dataset."""
        return tuple(map(int, self.dataset_version.split(".")))

    @property
    def is_retired(self) -> bool:
        """True if a later version of the dataset mends a flaw of this one."""
        return f"{self.dataset}@{self.dataset_version}" in load_benchmark(self.benchmark).retired


class RankableValue(NamedTuple):
    """The value of a row by a metric that can rank."""

    row: Row
    """The row, whose ``unranked`` says whether this metric can rank it."""
    metric: Metric | None
    bounds: Bounds | None
    """The values with missing answers at their worst and best; None if none are missing."""
    deviations: Deviations | None
    """Deviations of the value; None if there are too few clusters for an interval."""

    @property
    def order(self) -> tuple[bool, float, str, str, str]:
        """The sort key: nearest to the ideal first, with missing answers at their worst, and unknown values last."""
        name = self.row.label, self.row.identity, self.row.entry.place
        if self.metric is None or self.metric.value is None or self.metric.ideal is None:
            return True, 0.0, *name
        return False, abs((self.metric.value if self.bounds is None else self.bounds.worst) - self.metric.ideal), *name


def ranked_by(measured: Sequence[RankableValue]) -> tuple[tuple[Row, ...], Ranking]:
    """Rank the rows of a table by a metric.

    Returns:
        The rows in the order of the table, and the ranking behind their ranks.
    """
    ordered = sorted(measured, key=lambda one: one.order)
    ranking = of_answers = compared(ordered)
    ranked = [one for one in ordered if one.row.unranked is None]
    if any(one.bounds is not None for one in ranked):
        of_answers = compared([one._replace(bounds=None) for one in ranked])
    rows = [
        row
        if row.unranked is not None
        else replace(
            row,
            rank=ranking.ranges.get(row.identity),
            chance=ranking.chances.get(row.identity),
            rank_of_answers=None if of_answers is ranking else of_answers.ranges.get(row.identity),
        )
        for row, *_ in ordered
    ]
    # Better ranges first, narrower ones before wider ones, missing ranks last.
    return tuple(sorted(rows, key=lambda row: (row.is_below, row.rank is None, row.rank or ()))), ranking


def newest_versions(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the identity of the newest version of each model, by the model's id: only that counts among others' ranks.

    Five revisions, precisions or adapters of one id would otherwise push every model that they resemble from rank 2 to
    rank 7 at worst. The newest is the one that was accepted last; of results without a date, the first by folder.
    """

    def accepted(entry: Entry) -> str:
        return entry.acceptance.accepted or "" if entry.acceptance and is_settled(entry) else ""

    newest: dict[str, str] = {}
    for entry in sorted(sorted(entries, key=precedence), key=accepted, reverse=True):
        newest.setdefault(entry.result.model.id, entry.result.model.identity_sha256)
    return newest


def compared(measured: Sequence[RankableValue]) -> Ranking:
    """Compare the models of a table by a metric, and rank those that can be ranked, by the identities of their rows.

    Language models without a rank are compared with the others and change none of their ranks; baselines, and results
    of one model that contradict each other, are not compared. Nor are values of different versions, such as those of
    two scorers: each version has comparisons and ranks of its own.
    """
    newest = newest_versions([one.row.entry for one in measured if one.row.unranked is None])
    n_rows = Counter(one.row.identity for one in measured)
    candidates: dict[str, list[Contender]] = {}
    limits: dict[str, tuple[float, float]] = {}
    for row, metric, bounds, deviations in measured:
        is_ranked = row.unranked is None
        if metric is None or metric.value is None or metric.ideal is None:
            continue
        if not is_ranked and (row.is_baseline or n_rows[row.identity] > 1):
            continue
        ends = (metric.minimum, math.inf if metric.maximum is None else metric.maximum)
        limits[metric.version] = metric.ideal, max(abs(end - metric.ideal) for end in ends)
        candidate = Contender(
            name=row.identity,
            worst=metric.value if bounds is None else bounds.worst,
            best=metric.value if bounds is None else bounds.best,
            value=metric.value,
            deviations=deviations,
            model=row.model.id if is_ranked else None,
            is_counted=not is_ranked or newest[row.model.id] == row.identity,
            is_ranked=is_ranked,
        )
        candidates.setdefault(metric.version, []).append(candidate)
    rankings = [
        rank(candidates[version], ideal=ideal, largest=largest) for version, (ideal, largest) in sorted(limits.items())
    ]
    if len(rankings) == 1:
        return rankings[0]
    return Ranking(
        ranges={name: of for ranking in rankings for name, of in ranking.ranges.items()},
        comparisons=tuple(pair for ranking in rankings for pair in ranking.comparisons),
        chances={name: of for ranking in rankings for name, of in ranking.chances.items()},
        detectable=None,
    )


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
