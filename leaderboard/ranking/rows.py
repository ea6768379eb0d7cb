"""What a row of a table is, and the ranks that a metric gives the rows of a table.

A row stands for one result of a model, or for an index over several of them: everything that reads tables reads both
alike.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from evaluators.benchmark import Part, load_benchmark
from evaluators.runs.measure.index_values import Index, SetTable
from evaluators.scorer import WORD_LISTS
from evaluators.statistics.jackknife import Deviations
from leaderboard.benchmark_pages import Column
from leaderboard.ranking.duplicates import precedence
from leaderboard.ranking.gates import BY_INDEX, is_settled, why_unranked
from leaderboard.ranking.rank_ranges import Bounds, Comparison, Contender, Ranking, RankRange, rank
from leaderboard.verify.entries import Entry, model_label
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
        importer = load_benchmark(self.benchmark).importer
        return self.dataset in (self.benchmark, importer and importer.dataset)

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
