"""Compares what a model achieves with what the baselines of its benchmark achieve on the same items.

Trivial predictors are ideal by most measures of equality, so a rank requires more than they achieve. The baselines come
from no runs: they answer the requests in the records, so that every result can be compared with all of them, whoever
made it and whatever else was run.

Lets baselines answer the items of a result, from its records alone, to compare its model with them.

This takes no run: a baseline is a rule (``evaluators/baseline.py``), and the records hold the requests. Runs of
baselines, with records that people can open, are made by ``evaluators/backends/baseline.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import DataError
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.baseline import Baseline
from evaluators.benchmark import Benchmark, Gate, load_benchmark
from evaluators.metric import NO_INPUTS, MetricDefinition, StatisticsSource, TableSource
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.runs.measure.recording import exchange_of, first_asked
from evaluators.statistics.jackknife import Deviations, deviations_of, half_width_of
from evaluators.statistics.record_tables import settled
from evaluators.task import ItemFacts, Prompt, Read, Task, load_task, prompt_of, table_of
from schemas.documents.base import as_row, from_values
from schemas.documents.record import Exchange, Reading, exchange_sha256
from schemas.documents.result import Metric, Normalisation, Result, Signature
from schemas.files import contract
from schemas.files.record_columns import AT_A_TIME, RecordColumns, items_sha256, joined_sha256, requests_sha256
from schemas.folders.run_folder import StoredParts

# The order of floating-point sums can make smaller differences, and a model that answers like a baseline must not rank
# above it.
_NEGLIGIBLE = 1e-12
_SHOWN = 0.0005
"""Smallest difference that is visible with three decimals."""
LEAST_LEAD = 0.05
"""Smallest lead over a predictor that knows nothing.

A cue that is right in .53 of ten thousand items is separably above chance, and no sign of reading.
"""
SOLVES = 0.9
"""Accuracy from which a baseline is said to solve the items: nobody can lead it, and it shows that the set cannot show
skill. On WinoBias position alone is right in .995."""
_REFERENCES = "references"
_KNOWN: dict[str, tuple[Reference, ...]] = {}
"""References computed in this process, by the hash of what they depend on."""


class Reference(NamedTuple):
    """The value of a baseline in the metric of a gate."""

    baseline: str
    metric: Metric
    sums: FloatArray
    """Sum and number of the answers' values in each cluster or cell, shape (n_clusters, 2)."""

    @property
    def as_json(self) -> JsonValue:
        """The form in which the memory of this machine holds it."""
        return {"baseline": self.baseline, "metric": contract.plain(as_row(self.metric)), "sums": self.sums.tolist()}

    @classmethod
    def from_json(cls, stored: Any) -> Reference:
        """Return what the memory holds in that form."""
        metric = from_values(stored["metric"], Metric)
        return cls(stored["baseline"], metric, np.array(stored["sums"], dtype=np.float64))


class LeadOverBaseline(NamedTuple):
    """The difference between a model and a baseline on the same items."""

    baseline: str
    value: float
    """Value of the baseline."""
    difference: float
    """Value of the model, with missing answers counted as wrong, minus that of the baseline."""
    low: float | None
    """Lower end of the interval of the difference at 95 %; None if there are too few clusters."""
    high: float | None

    @property
    def is_above(self) -> bool:
        """True if the model is separably above the baseline, by ``LEAST_LEAD`` or more."""
        return self.low is not None and self.low > _NEGLIGIBLE and self.difference >= LEAST_LEAD - _NEGLIGIBLE

    @property
    def solves(self) -> bool:
        """True if the baseline solves the items, which thereby cannot show skill, so that nobody has to lead it."""
        return self.value > SOLVES


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStanding:
    """How a model compares with the baselines in the metric of a gate."""

    metric: Metric
    """The model's value over the answers that were scored."""
    worst: float | None
    """The same with every missing answer counted as wrong, by which the model is judged; None if there is no value."""
    leads: tuple[LeadOverBaseline, ...]
    """The differences from all baselines that can answer such items, the smallest first."""

    @property
    def judged(self) -> tuple[LeadOverBaseline, ...]:
        """The differences from the baselines that do not solve the items."""
        return tuple(lead for lead in self.leads if not lead.solves)

    @property
    def passes(self) -> bool:
        """True if the model is far enough above every baseline that does not solve the items."""
        return self.metric.value is not None and bool(self.judged) and all(lead.is_above for lead in self.judged)

    @property
    def reason(self) -> str | None:
        """The reason why the model does not pass; None if it does."""
        name = self.metric.name.replace("_", " ")
        if self.metric.value is None:
            return f"{name} has no value: {self.metric.reason}"
        if self.leads and not self.judged:
            return (
                f"{name} cannot show skill here: {self.leads[0].baseline} alone is right in {self.leads[0].value:.3f}"
            )
        if not self.leads:
            return f"no baseline of the benchmark can answer such items, so {name} has nothing to be compared with"
        if self.passes:
            return None
        lead = next(lead for lead in self.judged if not lead.is_above)
        judgement = f"{name} {self.metric.value:.3f}"
        if self.worst is not None and self.metric.value - self.worst >= _SHOWN:
            judgement = f"{name} {self.worst:.3f} with missing answers as wrong ones ({self.metric.value:.3f} without)"
        baseline = f"the baseline {lead.baseline} ({lead.value:.3f})"
        if lead.low is None or lead.high is None:
            return f"{judgement} cannot be compared with {baseline}: there are too few clusters for an interval"
        if lead.high < 0:
            return f"{judgement} is worse than {baseline}"
        if lead.difference < _SHOWN:
            return f"{judgement} is no better than {baseline}"
        better = f"is only {lead.difference:.3f} better than {baseline}"
        if lead.low > _NEGLIGIBLE:
            return f"{judgement} {better}; a rank needs {LEAST_LEAD:g}"
        return f"{judgement} {better}, which may be chance (95 % interval {lead.low:.3f} to {lead.high:.3f})"


@dataclass(frozen=True)
class GateCheck:
    """The gate of a task, applied to the records of one result."""

    benchmark: Benchmark
    gate: Gate
    signature: Signature
    parts: Iterable[RecordColumns]
    """The records of each part; the iterable can be read several times."""
    known_source: StatisticsSource | None = None
    """The statistics of the records under the gate's task; None to compute them."""
    known_items: str | None = None
    """Hash of the records' facts about their items; None to compute it."""

    @cached_property
    def _task(self) -> Task:
        return load_task(self.gate.task)

    @cached_property
    def _definition(self) -> MetricDefinition[Any]:
        return next(metric for metric in metric_definitions(self.gate.task) if metric.name == self.gate.metric)

    @cached_property
    def _source(self) -> StatisticsSource:
        return self._source_of(self.parts) if self.known_source is None else self.known_source

    def _source_of(self, parts: Iterable[RecordColumns]) -> StatisticsSource:
        is_suite = bool(self.signature.parts)
        metrics = frozenset({self.gate.metric})
        # A vote that missing answers could turn is a missing answer.
        parts = (settled(part, self._task.unread_answers) for part in parts)
        table = table_of(self._task, parts, NO_INPUTS, is_suite=is_suite, metrics=metrics)
        return TableSource(table, is_suite=is_suite)

    @property
    def applies(self) -> bool:
        """True if the items have what the metric of the gate needs, such as right answers."""
        return self._source.facts(self._definition).undefined is None

    def references(self, memory: Memory) -> tuple[Reference, ...]:
        """Return the value of each baseline on these items, without those that cannot answer them.

        The values depend on the items, the prompt and the normalisation, not on the model. They are cached in this
        process and in the memory of this machine.
        """
        parts: dict[str, JsonValue] = {
            "signature": self.signature.sha256(),
            "items": self.known_items or joined_sha256([items_sha256(records) for records in self.parts]),
            "requests": joined_sha256([requests_sha256(records) for records in self.parts]),
            # A baseline that reads texts answers otherwise where they are withheld.
            "has_texts": all(bool(records.exchanges["prompt"].known.all()) for records in self.parts),
        }
        key = strict_json.sha256(parts)
        if key not in _KNOWN:
            # The key includes the requests, so that a result with other prompts cannot change another's baselines.
            stored = memory.get(_REFERENCES, parts)
            if isinstance(stored, list):
                answered = [*map(Reference.from_json, stored)]
            else:
                prompt = prompt_of(self._task, self.signature.prompt)
                answers = BaselineAnswers(self._task, prompt, self.signature.normalisation, self.parts)
                answers.check_facts()
                answered = [
                    self.reference(baseline.name, self._source_of(answers.of(baseline)))
                    for baseline in answers.answering(self.benchmark.baselines)
                ]
                memory.put(_REFERENCES, parts, [reference.as_json for reference in answered])
            _KNOWN[key] = tuple(answered)
        return _KNOWN[key]

    def reference(self, baseline: str, source: StatisticsSource) -> Reference:
        """Return the value of a baseline, given its name and the statistics of its answers to these items."""
        sums = source.statistics(self._definition, {}).cluster_sums
        return Reference(baseline, self._definition.compute(source, {}), sums)

    def standing(self, references: Sequence[Reference]) -> GateStanding:
        """Compare the model of these records with baselines."""
        metric = self._definition.compute(self._source, {})
        defined = [reference for reference in references if reference.metric.value is not None]
        if metric.value is None or not defined:
            return GateStanding(metric=metric, worst=metric.value, leads=())
        # A model must not pass by leaving out what it would get wrong. Baselines answer everything, so each cluster has
        # as many answers as the baseline with most in it, and the model's missing ones count as wrong.
        sums = self._source.statistics(self._definition, {}).cluster_sums
        sums = sums * self._answered_shares(len(sums))
        n_asked = np.max([reference.sums[:, 1] for reference in defined], axis=0)
        counted = np.column_stack([sums[:, 0], np.maximum(n_asked, sums[:, 1])])
        value = float(self._definition.aggregate(counted.sum(axis=0)))
        deviations = deviations_of(counted, self._definition.aggregate, self._source.crossing)
        leads = [self._lead(reference, value, deviations) for reference in defined]
        order = sorted(leads, key=lambda lead: (lead.is_above, lead.difference if lead.low is None else lead.low))
        return GateStanding(metric=metric, worst=value, leads=tuple(order))

    def _lead(self, reference: Reference, value: float, deviations: Deviations | str) -> LeadOverBaseline:
        baseline_value = reference.metric.value
        assert baseline_value is not None, "baselines without a value are left out before"
        of_baseline = deviations_of(reference.sums, self._definition.aggregate, self._source.crossing)
        lead = LeadOverBaseline(reference.baseline, baseline_value, value - baseline_value, None, None)
        if isinstance(deviations, str) or isinstance(of_baseline, str):
            return lead
        half_width = half_width_of(deviations - of_baseline)
        return lead._replace(low=lead.difference - half_width, high=lead.difference + half_width)

    def _answered_shares(self, n_clusters: int) -> FloatArray:
        """Return factors for the sums of clusters that make missing answers count as wrong, shape (n, 1).

        In a config they are 1: missing answers show in the number of answers. In a suite each part counts as one,
        however few its answers, so its factor is the smallest share of answers in any of its splits with right answers.
        """
        if not self.signature.parts:
            return np.ones((1, 1))
        shares = np.array([_smallest_answered_share(settled(part, self._task.unread_answers)) for part in self.parts])
        # If the rows of the table are not parts, use the worst part's share for all.
        is_by_part = n_clusters == len(shares)
        return shares[:, None] if is_by_part else np.full((1, 1), shares.min())


def _smallest_answered_share(part: RecordColumns) -> float:
    """Return the smallest share, over the splits of a part, of the records with a right answer that have a reading."""
    splits, has_target = part.columns["split"].coded, part.columns["target"].known
    shares = [
        float(part.has_reading[rows].mean())
        for code in range(len(splits.texts))
        if (rows := has_target & (splits.codes == code)).any()
    ]
    return min(shares, default=1.0)


def applying_gate(
    signature: Signature,
    parts: Iterable[RecordColumns],
    known_source: StatisticsSource | None = None,
    known_items: str | None = None,
) -> GateCheck | None:
    """Return the gate of the task of some records; None if it has none, or the items lack what the gate needs.

    Args:
        signature: Signature of the result.
        parts: Its records, as :class:`GateCheck` describes them and what may be known of them.
        known_source: The statistics of the records under the gate's task; None to compute them.
        known_items: Hash of the records' facts about their items; None to compute it.
    """
    benchmark = load_benchmark(signature.benchmark)
    gate = benchmark.gate(signature.task)
    check = None if gate is None else GateCheck(benchmark, gate, signature, parts, known_source, known_items)
    return check if check is not None and check.applies else None


def why_no_rank(result: Result, folder: Path) -> str | None:
    """Return why the gate refuses a finished run a rank; None if the run passes, or if its task has no gate."""
    check = applying_gate(result.signature, StoredParts(folder, result)) if result.counts.scored else None
    return None if check is None else check.standing(check.references(machine_memory())).reason


_ANSWER_FIELDS = tuple(one.name for one in fields(Response) if one.name in Exchange.__dataclass_fields__)
_OTHER_FIELDS = tuple(one.name for one in fields(Exchange) if one.name not in _ANSWER_FIELDS)
_answer_of, _others_of = attrgetter(*_ANSWER_FIELDS), attrgetter(*_OTHER_FIELDS)


class _Asked(NamedTuple):
    request: Request
    known_sha256: str | None
    """Hash of the request; None without a prompt that it follows from."""
    fields: Mapping[str, Any]
    """The fields of its exchange that no answer changes."""

    @classmethod
    def of(cls, exchange: Exchange, prompt: Prompt, facts: Mapping[str, str]) -> _Asked:
        fields = dict(zip(_OTHER_FIELDS, _others_of(exchange), strict=True))
        return cls(_request(exchange, prompt, facts), exchange_sha256(exchange), fields)

    @property
    def sha256(self) -> str:
        # Records without it belong to results whose baselines are stored as sums.
        assert self.known_sha256 is not None
        return self.known_sha256

    def answered(self, response: Response) -> Exchange:
        # Called for each baseline and exchange; dataclasses.replace takes three times as long.
        return Exchange(**self.fields, **dict(zip(_ANSWER_FIELDS, _answer_of(response), strict=True)))


_Offers: TypeAlias = tuple[list[int], list[list[_Asked]]]
"""The kinds of the records of a part, by what a baseline can distinguish that reads certain facts and no prompt: the
number of each record's kind, and the requests of one record of each kind, without their prompts and with these facts
only."""


@dataclass(frozen=True)
class BaselineAnswers:
    """The records of a result as if baselines had given all answers."""

    task: Task
    prompt: Prompt
    normalisation: Normalisation | None
    parts: Iterable[RecordColumns]
    """The records of each part; the iterable can be read several times."""
    _known_requests: dict[tuple[int, range], Sequence[Sequence[_Asked]]] = field(default_factory=dict, init=False)
    _known_offers: dict[tuple[int, frozenset[str]], _Offers] = field(default_factory=dict, init=False)
    _known_facts: dict[int, Sequence[Mapping[str, str]]] = field(default_factory=dict, init=False)

    def answering(self, baselines: Iterable[Baseline]) -> list[Baseline]:
        """Return the baselines that can answer all of these items, as they could in a run.

        Where the prompts of options are hidden, a rule that reads them is left out: it would know nothing.
        """
        is_written = self.prompt.scoring == "generation"
        wanted = frozenset({"generation"}) if is_written else self.prompt.needs
        known = frozenset.intersection(*self._named_facts) if self._named_facts else frozenset()
        first = (first_asked(part, self.prompt).exchanges["prompt"] for part in self.parts)
        hides = not is_written and not all(prompts.known.all() for prompts in first)
        return [
            baseline
            for baseline in baselines
            if wanted <= baseline.capabilities and baseline.facts <= known and (baseline.reads_no_prompt or not hides)
        ]

    def check_facts(self) -> None:
        """Check that all records have the same facts.

        Raises:
            DataError: some lack a fact that others have; a baseline would then be left out unseen.
        """
        if len(self._named_facts) > 1:
            lacking = frozenset.union(*self._named_facts) - frozenset.intersection(*self._named_facts)
            raise DataError(
                f"some records lack what baselines read ({', '.join(sorted(lacking))}) and others have it; run the "
                "model again"
            )

    @cached_property
    def _named_facts(self) -> set[frozenset[str]]:
        return {frozenset(facts) for number, part in enumerate(self.parts) for facts in self._facts(number, part)}

    def of(self, baseline: Baseline) -> Iterator[RecordColumns]:
        """Yield the records of each part with the answers of a baseline."""
        # What follows from the model's answers does not follow from those of a baseline, which is asked from the start.
        for number, part in enumerate(first_asked(records, self.prompt) for records in self.parts):
            # Answering the records of 60 tasks with 219 items one by one took 20.6 s, and kind by kind 2.7 s.
            are_choices = {*part.exchanges["kind"].coded.texts} <= {"choice"}
            # Imported answers have no prompts, so that the requests of all items have one hash, which names none.
            are_alike = self.prompt.has_own_requests
            is_by_offer = baseline.reads_no_prompt and baseline.answer_together is None and (are_choices or are_alike)
            yield (self._by_offer if is_by_offer else self._record_by_record)(baseline, number, part)

    def _by_offer(self, baseline: Baseline, number: int, part: RecordColumns) -> RecordColumns:
        """Answer each kind of record once."""
        codes, kinds = self._offers(number, part, baseline.facts | baseline.optional_facts)
        answered = [[asked.answered(baseline.answer(asked.request)) for asked in of_kind] for of_kind in kinds]
        reads = [self.task.reading(exchanges, self.normalisation, self.prompt.id) for exchanges in answered]
        exchanges_of_all = chain.from_iterable(answered[code] for code in codes)
        return _replaced(part, [reads[code] for code in codes], list(exchanges_of_all))

    def _record_by_record(self, baseline: Baseline, number: int, part: RecordColumns) -> RecordColumns:
        pieces = [range(len(part))[start : start + AT_A_TIME] for start in range(0, len(part), AT_A_TIME)]
        requests = [self._requests(number, part, rows) for rows in pieces if baseline.answer_together is not None]
        together = baseline.answers(dict(chain.from_iterable(requests))) if requests else None
        answered = RecordColumns.joined(self._answered(baseline, number, part, rows, together) for rows in pieces)
        return answered if self.prompt.follow_up is None else self._followed_up(baseline, number, part, answered)

    def _followed_up(
        self, baseline: Baseline, number: int, part: RecordColumns, answered: RecordColumns
    ) -> RecordColumns:
        """Return the records of a part with the answers of a baseline to what follows from its first answers.

        The part holds the first requests only, and ``answered`` the first answers of the baseline.
        """
        asked = self._asked(number, part, range(len(part)))
        first = [[one.request for one in of_record] for of_record in asked]
        follow_ups = [
            self.prompt.follow_ups(requests, record.exchanges) for requests, record in zip(first, answered, strict=True)
        ]
        # By the hashes of the first requests: where prompts may not be shown, follow-ups of all items look alike.
        answers = baseline.answers(
            {
                # Without its question there is no text that a baseline could read.
                one.sha256: request if one.request.prompt else replace(request, prompt="")
                for of_record, requests in zip(asked, follow_ups, strict=True)
                for one, request in zip(of_record, requests, strict=False)
            }
        )
        made = []
        for record, of_record, requests in zip(answered, asked, follow_ups, strict=True):
            exchanges = [
                exchange_of(request, answers[one.sha256], show_prompt=one.fields["prompt"] is not None, chat=False)
                for one, request in zip(of_record, requests, strict=False)
            ]
            read = self.task.reading((*record.exchanges, *exchanges), self.normalisation, self.prompt.id)
            made.append(
                replace(
                    record,
                    status=read.status,
                    reason=read.reason,
                    reading=read.reading,
                    exchanges=(*record.exchanges, *exchanges),
                )
            )
        return RecordColumns.of(made)

    def _requests(self, number: int, part: RecordColumns, rows: range) -> list[tuple[str, Request]]:
        """Return the requests of consecutive records of a part by their hashes."""
        return [(asked.sha256, asked.request) for asked in chain.from_iterable(self._asked(number, part, rows))]

    def _answered(
        self, baseline: Baseline, number: int, part: RecordColumns, rows: range, together: Mapping[str, Response] | None
    ) -> RecordColumns:
        """Answer consecutive records of a part one by one, unless all were answered together."""
        answers = baseline.answers(dict(self._requests(number, part, rows))) if together is None else together
        of_records = self._asked(number, part, rows)
        answered = [[asked.answered(answers[asked.sha256]) for asked in of_record] for of_record in of_records]
        reads = [self.task.reading(exchanges, self.normalisation, self.prompt.id) for exchanges in answered]
        records = RecordColumns(part.table.slice(rows.start, len(rows)))
        return _replaced(records, reads, list(chain.from_iterable(answered)))

    def _asked(self, number: int, part: RecordColumns, rows: range) -> Sequence[Sequence[_Asked]]:
        if (number, rows) not in self._known_requests:
            # Every baseline needs them. Only those of some records are cached, since a suite can have 300,000 items.
            self._known_requests.clear()
            facts = self._facts(number, part)[rows.start : rows.stop]
            records = RecordColumns(part.table.slice(rows.start, len(rows)))
            self._known_requests[number, rows] = [
                [_Asked.of(exchange, self.prompt, of_item) for exchange in record.exchanges]
                for record, of_item in zip(records, facts, strict=True)
            ]
        return self._known_requests[number, rows]

    def _offers(self, number: int, part: RecordColumns, read: frozenset[str]) -> _Offers:
        """Return the kinds of records in a part for baselines that read certain facts; they are small and cached."""
        if (number, read) not in self._known_offers:
            # A fact that differs in each record would make each a kind of its own, also for rules that never read it.
            facts = [{name: of_item[name] for name in read & of_item.keys()} for of_item in self._facts(number, part)]
            indices: dict[Any, int] = {}
            keys = zip((tuple(sorted(of_item.items())) for of_item in facts), _offered(part), strict=True)
            codes = np.array([indices.setdefault(key, len(indices)) for key in keys], dtype=np.int64)
            firsts = np.unique(codes, return_index=True)[1]
            # If every record is a kind of its own, a baseline that reads prompts needs the same objects again.
            rows = part if len(firsts) == len(part) else part.rows(firsts)
            asked = [
                [_Asked.of(replace(exchange, prompt=None), self.prompt, facts[index]) for exchange in row.exchanges]
                for row, index in zip(rows, firsts.tolist(), strict=True)
            ]
            self._known_offers[number, read] = codes.tolist(), asked
        return self._known_offers[number, read]

    def _facts(self, number: int, part: RecordColumns) -> Sequence[Mapping[str, str]]:
        if number not in self._known_facts:
            # As with requests, only one part's are cached.
            self._known_facts.clear()
            self._known_facts[number] = list(self._facts_in(part))
        return self._known_facts[number]

    def _facts_in(self, part: RecordColumns) -> Iterator[Mapping[str, str]]:
        known = [part.columns[name].texts for name in ("cluster", "target", "reference")]
        owners, keys, values = part.columns["groups"].entries
        groups: list[dict[str, str]] = [{} for _ in range(len(part))]
        for owner, key, value in zip(owners.tolist(), keys.texts, values.texts, strict=True):
            groups[owner][str(key)] = str(value)
        for index, (cluster, target, reference, own) in enumerate(zip(*known, groups, strict=True)):
            facts = ItemFacts(cluster=cluster or "", target=target, reference=reference, groups=own)
            try:
                yield self.task.baseline_facts(facts)
            except (LookupError, ValueError) as error:
                raise DataError(
                    f"record '{part[index].item_id[:60]}': its groups lack what baselines read ({error}); run the "
                    "model again"
                ) from error


def _offered(part: RecordColumns) -> list[tuple[Any, ...]]:
    """Return what each record's exchanges offer: the kind, sample, options and outcomes of each."""
    columns: list[Sequence[Any]] = [part.exchanges["kind"].texts, part.exchanges["sample"].array.to_pylist()]
    for name in ("options", "outcomes"):
        lists = part.exchanges[name].lists
        texts, ends = lists.values.texts, lists.offsets.tolist()
        columns.append([tuple(texts[first:end]) for first, end in pairwise(ends)])
    offers = list(zip(*columns, strict=True)) if len(part.owners) else []
    return [tuple(offers[first:end]) for first, end in pairwise(part.first_exchanges.tolist())]


def _replaced(part: RecordColumns, reads: Sequence[Read], exchanges: Sequence[Exchange]) -> RecordColumns:
    """Return the records of a part with other answers.

    There is a reading for each record, and ``exchanges`` are those of all of them.
    """
    are_cut = np.array([exchange.finish_reason == "length" for exchange in exchanges], dtype=np.bool_)
    return part.replaced(
        {
            "status": [read.status for read in reads],
            "reason": [read.reason for read in reads],
            "reading": [None if read.reading is None else _as_dict(read.reading) for read in reads],
            "truncated": np.isin(np.arange(len(part)), part.owners[are_cut]).tolist(),
        },
        dict(zip(_ANSWER_FIELDS, zip(*map(_answer_of, exchanges), strict=True), strict=True)) if exchanges else {},
    )


def _as_dict(reading: Reading) -> dict[str, tuple[str, ...] | tuple[float, ...]]:
    # Called for each baseline and record. dataclasses.asdict copies each value and takes a hundred times as long.
    return {"outcomes": reading.outcomes, "probabilities": reading.probabilities, "answers": reading.answers}


def _request(exchange: Exchange, prompt: Prompt, facts: Mapping[str, str]) -> Request:
    """Rebuild the request of an exchange; without its text if the licence of the dataset forbids showing it."""
    text = exchange.prompt or ""
    if exchange.kind == "choice":
        return ChoiceRequest(prompt=text, options=exchange.options, outcomes=exchange.outcomes, facts=facts)
    request = GenerateRequest(
        prompt=text,
        max_tokens=prompt.max_tokens or 1,
        temperature=prompt.temperature or 0.0,
        top_p=1.0 if prompt.top_p is None else prompt.top_p,
        stop=prompt.stop or (),
        sample=exchange.sample,
        outcomes=exchange.outcomes,
        with_logprob=exchange.sample is not None,
        asks_confidence=prompt.asks_confidence or False,
        facts=facts,
    )
    # A prompt that may not be shown is not stored, but its hash is, and random baselines are seeded by it.
    vars(request)["sha256"] = exchange.request_sha256
    return request
