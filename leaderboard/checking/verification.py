"""Verifies one result: its schema, records and readings, and every metric, which is recomputed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from evaluators.backend import choice_sha256
from evaluators.benchmark import Benchmark, load_benchmark
from evaluators.runs.gates import GateCheck, Standing
from evaluators.runs.measuring import Measurement
from evaluators.scorer import quick_scorers
from evaluators.statistics.record_tables import BoolArray
from evaluators.task import ReadsColumns, ReadsScores, ShowsExamples, Task, load_task, prompt_of
from evaluators.text_scores import TextScores, read_scores
from leaderboard.checking.entries import Entry, Root
from leaderboard.checking.examples import ExampleChoice
from leaderboard.checking.recomputing import differences, shown_metrics
from schemas.columns import Column
from schemas.errors import DataError
from schemas.memory import Memory
from schemas.metric_comparison import TOLERANCE, key_of
from schemas.record import Record
from schemas.record_columns import RecordColumns
from schemas.record_counts import Tally
from schemas.record_hashes import items_sha256, joined_sha256
from schemas.result import Result, Signature
from schemas.run_folder import RESCORE_TEXTS, StoredParts, read_parts, read_result
from schemas.score import text_sha256

_NO_EXAMPLES = hashlib.sha256().hexdigest()


def verified_entry(path: Path, root: Root, memory: Memory) -> Entry:
    """Read one result and verify it by recomputing its metrics.

    Args:
        path: Path of the ``result.json``.
        root: Folder in which it was found.
        memory: Memory that may know the values of the baselines.

    Raises:
        DataError: the result or its records are invalid, or its metrics do not follow from its records.
    """
    result = read_result(path.parent)
    check_links(path, result)
    _check_signature(path, result)
    task = result.signature.task
    scores = read_scores(path.parent, result.scores)
    told = _Told(path, result.signature, scores)
    parts = told.listening(_checked_parts(path, result))
    measurement = Measurement(parts, task, scores, is_suite=bool(result.signature.parts))
    computed = measurement.metrics()
    for difference in differences(result.metrics, computed):
        raise DataError(f"{path}: {difference}")
    metrics = shown_metrics(result.metrics, computed)
    benchmark = load_benchmark(result.signature.benchmark)
    primary = metrics.get(key_of(benchmark.primary_metric or "", {}))
    versions = {(metric.name, metric.version) for metric in computed}
    index_names = benchmark.index_metrics(task)
    primary_names = [primary.name] if primary is not None and primary.value is not None else []
    resamples = measurement.resampled([*primary_names, *index_names])
    return Entry(
        result=result,
        origin=root.origin,
        place=root.place(path),
        metrics=metrics,
        n_recomputed=sum((metric.name, metric.version) in versions for metric in result.metrics),
        primary_resamples=resamples[primary_names[0]] if primary_names else None,
        index_resamples={name: resamples[name] for name in index_names},
        items_fingerprint=joined_sha256(told.items),
        coverage=told.tally.coverage,
        standing=_standing(benchmark, result, told, measurement, memory),
        rescored=told.rescored,
        folder=path.parent,
        examples=told.examples.chosen,
    )


class _Told:
    """All that the records of a result tell besides its metrics, gathered in the pass that measures them."""

    def __init__(self, path: Path, signature: Signature, scores: TextScores) -> None:
        self._path, self._signature, self._scores = path, signature, scores
        self.folder = path.parent
        self.only: list[RecordColumns] = []
        """The records, if they are a single part; empty if they are several, which are not kept."""
        self.items: list[str] = []
        """Hash of each part's items."""
        self.tally = Tally()
        self.examples = ExampleChoice(signature.task)
        self.rescored: tuple[str, ...] = ()
        """Labels of the scorers whose scores were computed again."""

    def listening(self, parts: Iterable[RecordColumns]) -> Iterator[RecordColumns]:
        """Yield the same parts, and note what each of them tells."""
        for records in parts:
            self.only = [] if self.items else [records]
            self.items.append(items_sha256(records, with_options=_brings_options(self._signature)))
            self.tally.add(records)
            self.examples.add(records)
            self.rescored = _check_scores(self._path, self._signature.task, records, self._scores)
            yield records


def _checked_parts(path: Path, result: Result) -> Iterator[RecordColumns]:
    """Yield the records of each part of a result, and check that they follow from the answers."""
    for records in read_parts(path.parent, result):
        _check_records(path.parent / result.records.path, result, records)
        yield records


def check_links(path: Path, result: Result) -> None:
    """Check that no file of a result is a link to somewhere else.

    Raises:
        DataError: a file is a link that leaves the folder.
    """
    for file in (result.records, result.scores):
        if file is not None and not (path.parent / file.path).resolve().is_relative_to(path.parent.resolve()):
            raise DataError(f"{path.parent / file.path}: is a link that leaves this folder; put the file itself there")


def _check_signature(path: Path, result: Result) -> None:
    """Check that the task version and the prompt of the signature are those of this code."""
    signature = result.signature
    task = load_task(signature.task)
    if signature.task_version != task.version:
        raise DataError(
            f"{path}: read by task {task.name} {signature.task_version}, the code has {task.version}; rescore the run"
        )
    prompt = prompt_of(task, signature.prompt)
    if signature.prompt_sha256 != prompt.sha256() or signature.n_outcomes != prompt.n_outcomes:
        raise DataError(f"{path}: prompt '{signature.prompt}' differs from the one in this code; run the model again")
    shows = isinstance(task, ShowsExamples)
    if shows != (signature.examples_sha256 is not None):
        raise DataError(
            f"{path}: task {task.name} {'shows' if shows else 'shows no'} examples, and examples_sha256 is "
            f"{signature.examples_sha256}; run the model again"
        )
    if shows and not prompt.n_examples and signature.examples_sha256 != _NO_EXAMPLES:
        raise DataError(f"{path}: prompt '{prompt.id}' shows no examples, but the signature names some; run it again")


def _check_records(path: Path, result: Result, records: RecordColumns) -> None:
    """Check that the requests of all records match their prompts, and that their readings follow from their answers."""
    signature = result.signature
    task = load_task(signature.task)
    is_sound = np.diff(records.first_exchanges) > 0
    is_sound[records.owners[~_sound_requests(records, signature)]] = False
    if isinstance(task, ReadsColumns):
        is_sound &= task.certain_readings(records, signature.normalisation)
    else:
        is_sound[:] = False
    places = np.flatnonzero(~is_sound)
    for place, record in zip(places.tolist(), records.rows(places), strict=True):
        _check_record(f"{path}: row {records.first_row + place}", signature, task, record)


def _sound_requests(records: RecordColumns, signature: Signature) -> BoolArray:
    """Return the mask of the exchanges with the hash of their request and the outcomes of the signature."""
    exchanges = records.exchanges
    options = exchanges["options"].lists
    is_sound: BoolArray = np.ones(len(records.owners), dtype=np.bool_)
    if _brings_options(signature):
        is_sound &= _have_distinct(exchanges["outcomes"]) & _have_distinct(exchanges["options"])
    else:
        is_sound &= exchanges["outcomes"].lists.lengths == (signature.n_outcomes or 0)
    prompts, hashes, texts = exchanges["prompt"].texts, exchanges["request_sha256"].texts, options.values.texts
    ends = options.offsets.tolist()
    for place in np.flatnonzero(exchanges["kind"].coded.is_one_of("choice") & exchanges["prompt"].known).tolist():
        offered = cast(tuple[str, ...], tuple(texts[ends[place] : ends[place + 1]]))
        is_sound[place] &= choice_sha256(prompts[place] or "", offered) == hashes[place]
    return is_sound


def _have_distinct(column: Column) -> BoolArray:
    """Return the mask of the lists of texts in which no text stands twice."""
    lists = column.lists
    n_codes = len(lists.values.coded.texts) + 1
    cells, counts = np.unique(lists.owners * n_codes + lists.values.coded.codes, return_counts=True)
    found: BoolArray = np.ones(len(lists.lengths), dtype=np.bool_)
    found[cells[counts > 1] // n_codes] = False
    return found


def _brings_options(signature: Signature) -> bool:
    """Return True if each item brings its own options, so that the prompt says nothing about their number."""
    return signature.scoring == "option_logprob" and signature.n_outcomes is None


def _check_record(where: str, signature: Signature, task: Task, record: Record) -> None:
    """Check that the requests of a record match its prompts, and that its reading follows from the model's answers."""
    for exchange in record.exchanges:
        is_choice = exchange.kind == "choice" and exchange.prompt is not None
        if is_choice and choice_sha256(exchange.prompt or "", exchange.options) != exchange.request_sha256:
            raise DataError(f"{where}: request_sha256 is not the hash of its prompt and options; run the model again")
        if _brings_options(signature):
            if len({*exchange.options}) < len(exchange.options) or len({*exchange.outcomes}) < len(exchange.outcomes):
                raise DataError(f"{where}: offers an option or an outcome twice; run the model again")
        elif len(exchange.outcomes) != (signature.n_outcomes or 0):
            raise DataError(
                f"{where}: has {len(exchange.outcomes)} outcomes, the signature {signature.n_outcomes}; rescore the run"
            )
    if not record.exchanges:
        raise DataError(f"{where}: holds no answer of the model; run the model again")
    try:
        read = task.read(record.exchanges, signature.normalisation)
    except (ValueError, LookupError) as error:
        raise DataError(f"{where}: task {task.name} cannot read its answers: {error}; run the model again") from error
    if read.status != record.status:
        raise DataError(f"{where}: status is '{record.status}', its answers give '{read.status}'; rescore the run")
    stored, computed = record.reading, read.reading
    if stored is None or computed is None:
        agrees = stored is computed
    else:
        same_words = (stored.outcomes, stored.answers) == (computed.outcomes, computed.answers)
        agrees = same_words and all(
            abs(ours - theirs) <= TOLERANCE
            for ours, theirs in zip(computed.probabilities, stored.probabilities, strict=True)
        )
    if not agrees:
        raise DataError(f"{where}: the reading does not follow from the stored answers; rescore the run")


def _check_scores(path: Path, task: str, records: Sequence[Record], scores: TextScores) -> tuple[str, ...]:
    """Check the stored scores of quick scorers by scoring the texts again; other scores are taken as stored.

    Returns:
        Labels of the scorers whose scores were computed again: those that are installed here in the same version.
    """
    loaded = load_task(task)
    if not isinstance(loaded, ReadsScores) or not scores.scorers:
        return ()
    rescored = []
    texts = loaded.texts(records)
    for scorer in quick_scorers():
        kind, label = scorer.identity.kind, scorer.identity.label
        if scores.label(kind) != label:
            continue
        for index, values in scorer.score(texts):
            said = scores.values[kind].get(text_sha256(texts[index]))
            if said is None or any(abs(one - other) > TOLERANCE for one, other in zip(said, values, strict=True)):
                raise DataError(f"{path}: {label} gives a text {values}, the stored scores say {said}; {RESCORE_TEXTS}")
        rescored.append(label)
    return tuple(rescored)


def _standing(
    benchmark: Benchmark, result: Result, told: _Told, measurement: Measurement, memory: Memory
) -> Standing | None:
    """Return the standing of a model among the baselines; None without a gate or without right answers."""
    signature = result.signature
    gate = benchmark.gate(signature.task)
    if gate is None:
        return None
    # A table with scores of texts is another one than that of the gate.
    table = None if isinstance(load_task(signature.task), ReadsScores) else measurement.table
    parts = told.only or StoredParts(told.folder, result)
    items = None if _brings_options(signature) else joined_sha256(told.items)
    check = GateCheck(benchmark, gate, signature, parts, table, items)
    if not check.applies:
        return None
    return check.standing(check.references(memory))
