"""The rules that a JSON Schema cannot express, one generator for each kind of document.

The rules for items are in the files of their shapes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import date

from schemas.adapters import Adapters
from schemas.answer_key import AnswerKey
from schemas.cluster_sums import ClusterSums
from schemas.corrections import Corrections, corrections_problems
from schemas.dataset import Manifest
from schemas.record import Record
from schemas.register import Register
from schemas.result import Counts, Result, within
from schemas.reweighting import Reweighting, reweighting_problems
from schemas.score import TextScore

_PROBABILITY_TOLERANCE = 1e-9
_LENGTH_TOLERANCE = 1e-4
"""Largest deviation from a length or sum of 1, because scorers compute in single precision."""


def problems(document: object) -> Iterator[str]:
    """Yield a message for each rule that a document breaks."""
    match document:
        case TextScore():
            yield from _score_problems(document)
        case ClusterSums():
            yield from _sums_problems(document)
        case Record():
            yield from _record_problems(document)
        case Result():
            yield from _result_problems(document)
        case Corrections():
            yield from corrections_problems(document)
        case Reweighting():
            yield from reweighting_problems(document)
        case Adapters():
            yield from _adapters_problems(document)
        case Register():
            yield from _register_problems(document)
        case Manifest():
            yield from _manifest_problems(document)
        case AnswerKey():
            if (document.hash == "hmac-sha256") != (document.secret_id is not None):
                yield f"secret_id: is {document.secret_id} beside hash '{document.hash}'; make the key again"


def _record_problems(record: Record) -> Iterator[str]:
    if record.target is not None and record.target != record.reference:
        yield f"target: '{record.target}' differs from reference '{record.reference}'; set both to the target"
    if len({frozenset(exchange.outcomes) for exchange in record.exchanges}) > 1:
        yield "exchanges: have different sets of outcomes; all exchanges of an item must share one set"
    for index, exchange in enumerate(record.exchanges):
        if exchange.kind == "generate":
            if exchange.options or exchange.option_logprobs:
                yield f"exchanges[{index}]: kind 'generate' has no options to score; empty the lists of options"
            continue
        counts = {
            "options": len(exchange.options),
            "outcomes": len(exchange.outcomes),
            "option_byte_counts": len(exchange.option_byte_counts),
        }
        if exchange.status == "answered":
            counts["option_logprobs"] = len(exchange.option_logprobs)
            counts["option_end_logprobs"] = len(exchange.option_end_logprobs)
            counts["option_token_counts"] = len(exchange.option_token_counts)
        if exchange.option_is_bound:
            counts["option_is_bound"] = len(exchange.option_is_bound)
        if len(set(counts.values())) > 1:
            yield f"exchanges[{index}]: lists differ in length: {counts}; give one entry per option"
    reading = record.reading
    if reading is not None and reading.answers and len(reading.answers) != len(record.exchanges):
        yield (
            f"reading: {len(reading.answers)} answers for {len(record.exchanges)} exchanges; one per exchange, or none"
        )
    if reading is not None and reading.outcomes:
        if len(reading.outcomes) != len(reading.probabilities):
            yield "reading: outcomes and probabilities differ in length; give one probability per outcome"
        elif abs(math.fsum(reading.probabilities) - 1) > _PROBABILITY_TOLERANCE:
            yield f"reading.probabilities: sum to {math.fsum(reading.probabilities)}, not to 1; renormalise them"


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        date.fromisoformat(text)
        return True
    return False


def _register_problems(register: Register) -> Iterator[str]:
    places = Counter(one.place for one in register.results)
    for place, n in places.items():
        if n > 1:
            yield f"results: {place} stands {n} times; keep one decision about it"
    for one in register.results:
        for day in (one.accepted, one.decided, one.texts_compared, None if one.rerun is None else one.rerun.date):
            if day is not None and not _is_day(day):
                yield f"results: {one.place}: '{day}' is no day of the calendar; write one such as 2026-01-31"
        if one.rerun is not None and one.rerun.n_agreeing > one.rerun.n_items:
            yield f"results: {one.place}: more items agree than were asked again; correct it"


def _score_problems(score: TextScore) -> Iterator[str]:
    values = score.values
    fits = {
        "sentiment": (len(values) == 1 and -1 <= values[0] <= 1) or (len(values) == 3 and _are_probabilities(values)),
        "toxicity": len(values) == 1 and 0 <= values[0] <= 1,
        "embedding": len(values) > 1 and abs(math.hypot(*values) - 1) <= _LENGTH_TOLERANCE,
    }
    if not fits[score.kind]:
        shown = ", ".join(f"{value:.6g}" for value in values[:3]) + (", ..." if len(values) > 3 else "")
        wanted = {
            "sentiment": "one value in [-1, 1], or three probabilities that sum to 1",
            "toxicity": "one value in [0, 1]",
            "embedding": "a vector of length 1",
        }
        yield f"values: {shown} is not {wanted[score.kind]}, as {score.kind} needs; score the texts again"


def _sums_problems(row: ClusterSums) -> Iterator[str]:
    if (row.reason is None) != (row.n_columns > 0) or (row.n_columns == 0 and row.sums):
        yield "reason: a metric has either sums or a reason why it has none; submit the complete run again"
    elif row.n_columns and len(row.sums) % row.n_columns:
        yield f"sums: {len(row.sums)} values do not fill {row.n_columns} columns; submit the complete run again"
    if not all(math.isfinite(value) for value in (*row.sums, row.ideal or 0.0)):
        yield "sums: hold a value that is no number; submit the complete run again"


def _are_probabilities(values: tuple[float, ...]) -> bool:
    return min(values) >= 0 and abs(math.fsum(values) - 1) <= _LENGTH_TOLERANCE


def _result_problems(result: Result) -> Iterator[str]:
    counts = result.counts
    if counts.items != counts.scored + counts.refused + counts.unparsed + counts.failed:
        yield f"counts: items {counts.items} is not the sum of scored, refused, unparsed and failed; recount"
    if counts.items != result.signature.n_items or counts.items != result.records.n_rows:
        yield (
            f"counts.items {counts.items}, signature.n_items {result.signature.n_items} and records.n_rows "
            f"{result.records.n_rows} differ; rescore the run"
        )
    marks = {
        "endpoint": result.model.endpoint == "baseline",
        "backend": result.model.backend == "baseline",
        "id": result.model.id.startswith("baseline/"),
    }
    if len(set(marks.values())) > 1:
        told = ", ".join(name for name, is_baseline in marks.items() if is_baseline)
        yield f"model: marked as a baseline only by {told}; make endpoint, backend and id agree"
    if result.signature_sha256 != result.signature.sha256():
        yield "signature_sha256: is not the hash of the signature; rescore the run"
    yield from _coverage_problems(result)
    if (None if result.adapters is None else result.adapters.sha256) != result.model.adapters_sha256:
        yield "adapters: are not those that the model's identity names; run the model again"
    for metric in result.metrics:
        where = f"metrics: {metric.name} {metric.group or ''}".rstrip()
        if metric.value is not None and metric.value != within(metric.value, metric.minimum, metric.maximum):
            yield f"{where}: value {metric.value} lies outside [{metric.minimum}, {metric.maximum}]; rescore the run"
        if metric.interval is not None and metric.interval.low > metric.interval.high:
            yield f"{where}: interval low {metric.interval.low} is above high {metric.interval.high}; rescore the run"
    if result.withheld is not None and result.scores is not None:
        yield "scores: belong to texts that are withheld; leave them out, or submit the complete run again"
    if result.scorers:
        kinds = [scorer.kind for scorer in result.scorers]
        for kind in sorted({kind for kind in kinds if kinds.count(kind) > 1}):
            yield f"scores.scorers: names {kinds.count(kind)} scorers of kind {kind}; keep one"
    places = Counter((metric.name, *sorted(metric.group.items())) for metric in result.metrics)
    for key in (key for key, n in places.items() if n > 1):
        yield f"metrics: {key} stands twice; keep one"


def _adapters_problems(told: Adapters) -> Iterator[str]:
    for name, values in (
        ("context", [adapter.name for adapter in told.adapters]),
        ("path", [adapter.path for adapter in told.adapters]),
    ):
        for value in sorted({value for value in values if values.count(value) > 1}):
            yield f"adapters: {name} {value} stands twice; keep one adapter for each context"
    for adapter in told.adapters:
        if len(adapter.item_ids) != told.hyperparameters.n_items:
            yield (
                f"adapters: {adapter.name} names {len(adapter.item_ids)} items, the hyperparameters "
                f"{told.hyperparameters.n_items}; train it again"
            )


def _coverage_problems(result: Result) -> Iterator[str]:
    signature = result.signature
    if signature.config in signature.parts:
        yield f"signature.parts: names '{signature.config}' itself, which is the suite; run the model again"
    if bool(result.coverage) != bool(signature.parts):
        yield "coverage: a suite has counts of each of its parts, and a single config has none; rescore the run"
        return
    places = [(one.part, one.split) for one in result.coverage]
    if len(set(places)) < len(places):
        yield "coverage: two entries have the same part and split; rescore the run"
    for name in Counts.__dataclass_fields__ if result.coverage else ():
        total = sum(getattr(one.counts, name) for one in result.coverage)
        if total != getattr(result.counts, name):
            yield f"coverage: {name} add up to {total}, not to counts.{name} {getattr(result.counts, name)}; recount"


def _manifest_problems(manifest: Manifest) -> Iterator[str]:
    if manifest.redistributable and not all(source.redistributable for source in manifest.sources):
        names = ", ".join(source.name for source in manifest.sources if not source.redistributable)
        yield f"redistributable: true, but the licence of {names} forbids it; set false and fill in publish_refusal"
    places = [(entry.config, entry.split) for entry in manifest.splits]
    if len(set(places)) < len(places):
        yield "splits: two entries have the same config and split; keep one file for each"
    for path, n in Counter(entry.path for entry in manifest.files).items():
        if n > 1:
            yield f"files: '{path}' is listed {n} times; list it once"
    yield from _suite_problems(manifest)


def _suite_problems(manifest: Manifest) -> Iterator[str]:
    shapes = {entry.config: entry.item_shape for entry in manifest.splits}
    names = [suite.name for suite in manifest.suites]
    for name in dict.fromkeys(names):
        if names.count(name) > 1 or name in shapes:
            yield f"suites: '{name}' is the name of another suite or config; rename it"
    for suite in manifest.suites:
        unknown = [config for config in suite.configs if config not in shapes]
        if unknown:
            yield f"suites: '{suite.name}' names config '{unknown[0]}', which has no splits; leave it out"
        elif len({shapes[config] for config in suite.configs}) > 1:
            yield f"suites: the configs of '{suite.name}' have items of different shapes; make one suite for each shape"
