"""Lets baselines answer the items of a result, from its records alone, to compare its model with them.

This takes no run: a baseline is a rule (``evaluators/baseline.py``), and the records hold the requests. Runs of
baselines, with records that people can open, are made by ``evaluators/backends/baseline.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from biasboard.ground.errors import DataError
from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.baseline import Baseline
from evaluators.runs.measure.recording import exchange_of, first_asked
from evaluators.task import ItemFacts, Prompt, Read, Task
from schemas.documents.record import Exchange, Reading, exchange_sha256
from schemas.documents.result import Normalisation
from schemas.files.record_columns import AT_A_TIME, RecordColumns

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
            is_by_offer = baseline.reads_no_prompt and baseline.answer_together is None and are_choices
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
