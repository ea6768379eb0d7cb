"""Verifies one result: all that it says is checked, and every metric, score and correction computed again."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from biasboard.ground.columns import BoolArray, Column, IntArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.memory import Memory
from biasboard.ground.plain_text import printable
from biasboard.ground.plugins import HINT
from evaluators.adapter_set import base_identity, trained_items
from evaluators.backend import GenerateRequest, check_model_id, identified_by, model_identity
from evaluators.backend_options import PRECISIONS
from evaluators.metric import MetricInputs
from evaluators.runs.ask.importing import BACKEND, IDENTIFIED
from evaluators.runs.measure.baseline_gate import applying_gate
from evaluators.runs.measure.measuring import retired_names
from evaluators.runs.measure.recording import why_too_long
from evaluators.runs.measure.stored_results import has_known_requests, measurement_of, stored_references, sums_of
from evaluators.scorer import TextScorer, quick_scorers
from evaluators.statistics.jackknife import METHODS
from evaluators.statistics.option_scores import MOST_TOGETHER, FirstTokenShares, exclude_each_other, why_impossible
from evaluators.statistics.record_tables import UnsettledShares, settled
from evaluators.task import (
    MeasuresParts,
    Prompt,
    ReadsScores,
    ShowsExamples,
    Task,
    TrainsAdapters,
    load_task,
    prompt_of,
)
from evaluators.text_scores import TextScores, read_scores
from leaderboard.verify.baselines import gate_references
from leaderboard.verify.entries import Entry, ExampleChoice, Root, measured
from leaderboard.verify.intake import read_untrusted
from leaderboard.verify.keys import KeyBook, KeyCheck
from leaderboard.verify.sketches import SketchMaker
from schemas.documents.adapters import Adapters
from schemas.documents.record import Exchange, Record, choice_sha256
from schemas.documents.result import (
    TOLERANCE,
    Interval,
    Metric,
    Model,
    Result,
    Signature,
    is_close,
    metric_key,
    name_with_group,
    same_interval,
)
from schemas.documents.run_files import text_sha256
from schemas.files.record_columns import RecordColumns, Tally, answers_sha256, is_hashed, items_sha256, joined_sha256
from schemas.folders.run_folder import (
    ADAPTERS,
    CORRECTIONS,
    RESCORE_TEXTS,
    SUBMIT_AGAIN,
    StoredParts,
    read_adapters,
    read_corrections,
    read_parts,
)

_MOST_UNKNOWN = 5_000
"""Maximum number of records of an untrusted result on a dataset without an answer key."""
_MOST_UNKNOWN_CELLS = 500_000
"""Maximum number of records times groups of such a result, since each metric is computed for each group."""


def verified_entry(path: Path, root: Root, memory: Memory, keys: KeyBook) -> Entry:
    """Read one result and verify it by recomputing its metrics.

    Raises:
        DataError: the result or its records are invalid, its records are not about the items of the dataset, or its
            metrics do not follow from its records.
    """
    folder, is_foreign = path.parent, root.origin == "accepted"
    result = read_untrusted(path)
    check_claims(path, result, is_foreign=is_foreign)
    signature, task = result.signature, load_task(result.signature.task)
    scores = read_scores(folder, result.scores)
    key_check = KeyCheck(str(folder / result.records.path), signature, keys.find(signature, memory))
    is_unknown = is_foreign and key_check.match.extent == "unknown"
    n_rows, groups = result.records.n_rows, set[tuple[str | None, str | None]]()
    if is_unknown and n_rows > _MOST_UNKNOWN:
        raise _too_many(path, f"{n_rows:,} records")
    trained = trained_items(folder, result)
    items: list[str] = []
    answers: list[str] = []
    parts = StoredParts(folder, result)
    rescored: tuple[str, ...] = ()
    sketch, tally, examples = SketchMaker(), Tally(), ExampleChoice(signature.task)
    shares, unsettled = FirstTokenShares(), UnsettledShares(task.unread_answers)

    def checked() -> Iterator[RecordColumns]:
        """Yield each part once it is checked, and keep what an entry says of it."""
        nonlocal rescored
        for records in read_parts(folder, result):
            if trained and len(records):
                check_training(folder / ADAPTERS, records, task, trained[records[0].config])
            check_records(folder / result.records.path, result, records)
            if is_unknown:
                _, names, values = records.columns["groups"].entries
                groups.update(zip(names.texts, values.texts, strict=True))
                if len(groups) * n_rows > _MOST_UNKNOWN_CELLS:
                    raise _too_many(path, f"{len(groups):,} groups in {n_rows:,} records")
            parts.keep(records)
            with_options = brings_options(signature)
            items.append(items_sha256(records, with_options=with_options))
            key_check.add(records, None if with_options else items[-1])
            answers.append(answers_sha256(records))
            for kept in (sketch, tally, examples, shares, unsettled):
                kept.add(records)
            if scores.scorers and isinstance(task, ReadsScores):
                rescored = scored_again(path, quick_scorers(), task.texts(records), scores)
            yield records

    measurement = firm = measurement_of(folder, result, checked(), scores)
    computed, deviations, by_part = measured(measurement, signature)
    for difference in differences(result.metrics, computed, retired_names(signature.task)):
        raise DataError(f"{path}: {difference}")
    if unsettled.may_turn and result.withheld is None:
        firm = measurement_of(folder, result, (settled(records, task.unread_answers) for records in parts), scores)
    for difference in _differing_corrections(folder, result, parts):
        raise DataError(f"{folder / CORRECTIONS}: {difference}; rescore the run")
    versions = {(metric.name, metric.version) for metric in computed}
    entry = Entry(
        result=result,
        origin=root.origin,
        place=root.place(path),
        metrics={metric_key(metric): metric for metric in computed},
        n_recomputed=sum((metric.name, metric.version) in versions for metric in result.metrics),
        deviations=deviations,
        by_part=by_part,
        match=key_check.match,
        items_sha256=joined_sha256(items),
        answers_sha256=joined_sha256(answers),
        sketch=sketch.sketch,
        first_token_share=shares.median,
        earlier=earlier_metrics(result.metrics, computed),
        coverage=tally.coverage,
        rescored=rescored,
        settled=firm.metrics() if firm is not measurement else (),
        unread_share=unsettled.mean(with_turned=firm is measurement),
        folder=folder,
        examples=examples.chosen,
    )
    check = applying_gate(signature, parts, firm.source, None if brings_options(signature) else entry.items_sha256)
    if check is None or result.withheld is None:
        references = gate_references(entry, parts, check, memory)
    else:
        crossing, rows = firm.source.crossing, sums_of(folder, result)
        references = stored_references(check.gate, rows, crossing, is_suite=bool(signature.parts))
    # Without a gate or without right answers, a model has no standing among the baselines.
    return entry if check is None else replace(entry, standing=check.standing(references))


def _too_many(path: Path, what: str) -> DataError:
    return DataError(f"{path}: {what} without an answer key are too many to check; add it: biasboard keys DATASET")


def scored_again(
    where: Path, scorers: Iterable[TextScorer], texts: Sequence[str], scores: TextScores, tolerance: float = TOLERANCE
) -> tuple[str, ...]:
    """Score texts again with those scorers that gave the stored scores, and return their labels.

    Raises:
        DataError: a stored score is missing, or differs by more than the tolerance.
    """
    used = [scorer for scorer in scorers if scores.label(scorer.identity.kind) == scorer.identity.label]
    for scorer in used:
        for index, values in scorer.score(texts):
            stored = scores.values[scorer.identity.kind].get(text_sha256(texts[index]), ())
            pairs = itertools.zip_longest(values, stored, fillvalue=math.inf)
            if any(abs(ours - theirs) > tolerance for ours, theirs in pairs):
                ours, theirs = (", ".join(f"{value:g}" for value in vector[:3]) for vector in (values, stored))
                raise DataError(
                    f"{where}: {scorer.identity.label} gives a text other scores than the stored ones: {ours}, not "
                    f"{theirs or 'none'}; {RESCORE_TEXTS}"
                )
    return tuple(scorer.identity.label for scorer in used)


def differences(
    stored: Iterable[Metric], computed: Iterable[Metric], retired: Container[str] = frozenset()
) -> Iterator[str]:
    """Yield a sentence for every difference between the stored metrics of a result and those computed from its records.

    Metrics of different versions cannot be compared and are skipped, and so are those of retired names. Metrics that
    the result lacks completely are skipped too. But if the result has a metric without one of its slices, that is a
    difference. Intervals by a method of earlier code are not compared, since boards show those computed here.

    Args:
        stored: The metrics of the result, under their present names.
        computed: Those that the records give.
        retired: Names that no metric has any more.
    """
    ours = {metric_key(metric): metric for metric in computed}
    theirs = {metric_key(metric): metric for metric in stored}
    are_current = {metric.interval.method for metric in theirs.values() if metric.interval is not None} <= METHODS
    current = {metric.name: metric.version for metric in ours.values()}
    for key, metric in theirs.items():
        name, same = name_with_group(metric.name, metric.group), ours.get(key)
        if same is None:
            # A newer version that the stored sums do not give is undefined, and has no slices. The label of a scorer
            # after the present version is no other version: its scores are missing.
            version = current.get(metric.name, metric.version)
            if metric.name not in retired and f"{metric.version}.".startswith(f"{version}."):
                yield f"metric {name} cannot be computed from the records; rescore the run; {HINT}"
            continue
        if metric.version != same.version:
            continue
        if not is_close(metric.value, same.value):
            yield f"metric {name} is {metric.value}, the records give {same.value}; rescore the run"
        for field in ("n", "n_excluded", "unit", "ideal", "minimum", "maximum"):
            if getattr(metric, field) != getattr(same, field):
                yield (
                    f"metric {name}: {field} is {getattr(metric, field)}, the records give {getattr(same, field)}; "
                    "rescore the run"
                )
        if are_current and not same_interval(metric.interval, same.interval):
            yield (
                f"metric {name}: interval is {_spelt(metric.interval)}, the records give {_spelt(same.interval)}; "
                "rescore the run"
            )
    versions = {metric.name: metric.version for metric in theirs.values()}
    for key, metric in ours.items():
        if key not in theirs and versions.get(metric.name) == metric.version:
            name = name_with_group(metric.name, metric.group)
            yield f"metric {name} follows from the records but is not in the result; rescore the run"


def _spelt(interval: Interval | None) -> str:
    if interval is None:
        return "null"
    ends = f"[{interval.low}, {interval.high}]"
    return f"{ends} at level {interval.level} ({interval.method}, {interval.n_clusters} clusters)"


def earlier_metrics(stored: Iterable[Metric], computed: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the stored metrics of other versions than the computed ones, which stay visible beside them."""
    versions = {metric_key(metric): metric.version for metric in computed}
    return tuple(metric for metric in stored if versions.get(metric_key(metric)) != metric.version)


_SAME = 1e-3
"""Largest difference of the logarithms of two weights that count as equal: processors round differently, and this moves
a probability of .5 by .00025."""


def _differing_corrections(folder: Path, result: Result, parts: Iterable[RecordColumns]) -> Iterator[str]:
    """Fit the corrections of a result again from its records, and yield each difference from the stored ones.

    Metrics are computed with the stored corrections, so that weights chosen by hand would give a model any correction
    that it likes, and agree with its metrics.
    """
    document = read_corrections(folder, result)
    if document is None:
        return
    signature = result.signature
    inputs = MetricInputs(trained=trained_items(folder, result))
    task = load_task(signature.task)
    computed = task.fitted_corrections(parts, inputs) if isinstance(task, MeasuresParts) else ()
    stored, fitted = (
        {(correction.config, correction.calibration): correction for correction in corrections}
        for corrections in (document.corrections, computed)
    )
    for key in {**stored, **fitted}:
        name, theirs, ours = f"{key[1]} of config {key[0]}", stored.get(key), fitted.get(key)
        if theirs is None or ours is None:
            yield f"{name} cannot be fitted" if ours is None else f"{name} can be fitted and is not stored"
            continue
        for field in ("reason", "version", "labels", "n_items") if theirs.reason is None else ("reason",):
            if getattr(theirs, field) != getattr(ours, field):
                yield f"{name}: {field} is {getattr(theirs, field)}, the records give {getattr(ours, field)}"
        pairs = zip(theirs.weights, ours.weights, strict=False)
        distance = max((abs(math.log(weight) - math.log(other)) for weight, other in pairs), default=0.0)
        if distance > _SAME:
            yield f"a weight of {name} differs by the factor {math.exp(distance):.4g}"


_NO_EXAMPLES = hashlib.sha256().hexdigest()
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+@-]*")
_FILES = re.compile(r"sha256:[0-9a-f]{64}|[^@]+@[^@]+")
_STATED = ("backend", "revision", "precision", "chat_template", "chat_template_sha256")
"""Parts of identities that models have as fields of that name, apart from the ending."""


def check_claims(path: Path, result: Result, *, is_foreign: bool) -> None:
    """Check that the names in a result are unambiguous, and that task, prompt and training data are those of this code.

    Args:
        path: Path of the ``result.json``.
        result: The result in it.
        is_foreign: True if a stranger may have written it; a user may name own runs as they like.

    Raises:
        DataError: no run says such a thing, or the list of adapters is damaged.
    """
    for fault in chain(_faults_of_model(result.model, is_foreign=is_foreign), _faults_of_signature(result)):
        raise DataError(f"{path}: {fault}")
    # Published answers say too little of their requests for that. As with these, a maintainer has to compare the texts.
    if is_foreign and result.model.endpoint == "baseline" and _prompt(result).requires != "import":
        raise DataError(f"{path}: is of a baseline, and the board computes baselines itself; leave it out")
    if (adapters := read_adapters(path.parent, result)) is not None:
        for fault in _faults_of_adapters(adapters, result.signature, result.model):
            raise DataError(f"{path.with_name(ADAPTERS)}: {fault}")


def _faults_of_model(model: Model, *, is_foreign: bool) -> Iterator[str]:
    try:
        # Baselines are the only models whose ids users cannot choose.
        check_model_id(model.id.removeprefix("baseline/") if model.endpoint == "baseline" else model.id)
    except ConfigError as error:
        yield printable(str(error))
    if model.revision is not None and not _REVISION.fullmatch(model.revision):
        yield f"revision '{printable(model.revision)}' is not of letters, digits and . _ : / + @ - alone; run it again"
    identity, again = model.identity or {}, "run the model again"
    if model.identity is not None and model_identity(identity) != model.identity_sha256:
        yield f"identity_sha256 is not the hash of the identity; {again}"
    # What both say: the name, both values, and the remedy if they differ.
    told = asdict(model)
    said = [
        (name, told.get(name, model.chat_template_sha256), identity[name], again)
        for name in _STATED
        if name in identity
    ]
    if is_foreign:
        said += _said_of_files(model, identity)
    for name, ours, theirs, remedy in said:
        if ours != theirs:
            yield f"the identity says {name} '{printable(str(theirs))}', the model '{printable(str(ours))}'; {remedy}"
    # The address of an endpoint is part of its identity and is not shown, so that its hash has to be believed.
    if is_foreign and model.identity is None and model.endpoint != "api":
        yield f"says only the hash of its model's identity, not its parts; {again}"
    declared = IDENTIFIED if model.backend == BACKEND else identified_by(model.backend)
    if declared is None or not is_foreign:
        return
    if model.endpoint != declared.endpoint:
        yield f"endpoint '{model.endpoint}' is not that of backend {model.backend}; {again}"
    parts = set() if model.identity is None else {"backend", *declared.parts}
    if lacking := sorted(parts - identity.keys()):
        yield f"the identity lacks {', '.join(lacking)}, which backend {model.backend} states; {again}"
    if "model" in parts and not _FILES.fullmatch(identity.get("model") or ""):
        yield f"the identity names no files: its model is neither NAME@REVISION nor the sha256 of a folder; {again}"
    if "precision" in parts and model.precision not in (None, *PRECISIONS):
        yield f"precision {model.precision} is none of {', '.join(PRECISIONS)}; {again}"


def _said_of_files(model: Model, identity: Mapping[str, str | None]) -> Iterator[tuple[str, str | None, str, str]]:
    rename = "run it again without --name, or name the folder that was loaded"
    files = identity.get("adapter") or identity.get("model")
    if model.backend == BACKEND:
        # Harnesses log the name and the commit apart, and a published file is named by its hash alone.
        if commit := identity.get("commit"):
            yield "commit", model.revision, commit, rename
    elif files is not None:
        name, _, revision = files.rpartition("@")
        yield "revision", model.revision, revision, rename
        if name:
            # With one adapter per context, an id has this suffix.
            yield "id", model.id.removesuffix("-LoRA") if "adapters" in identity else model.id, name, rename
    if model.backend != BACKEND and "id" in identity:
        yield "id", model.id, identity["id"] or "", rename


def _faults_of_signature(result: Result) -> Iterator[str]:
    signature, backend = result.signature, result.model.backend
    task, declared = load_task(signature.task), identified_by(backend)
    if task.measures_nothing:
        yield f"answers of task {task.name} are data to build from, which no board shows; name a run of another task"
    if signature.task_version not in (task.version, *task.earlier_versions):
        yield f"read by task {task.name} {signature.task_version}, the code has {task.version}; rescore the run"
    prompt = prompt_of(task, signature.prompt)
    if signature.prompt_sha256 != prompt.sha256():
        yield f"prompt '{signature.prompt}' differs from the one in this code; run the model again"
    if declared is not None and declared.abilities is not None and not prompt.needs <= declared.abilities:
        yield f"backend {backend} cannot ask prompt '{prompt.id}', which needs {', '.join(sorted(prompt.needs))}"
    shows = isinstance(task, ShowsExamples)
    if shows != (signature.examples_sha256 is not None):
        what = f"{'shows' if shows else 'shows no'} examples, and examples_sha256 is {signature.examples_sha256}"
        yield f"task {task.name} {what}; run the model again"
    if shows and not prompt.n_examples and signature.examples_sha256 != _NO_EXAMPLES:
        yield f"prompt '{prompt.id}' shows no examples, but the signature names some; run it again"


def _faults_of_adapters(adapters: Adapters, signature: Signature, model: Model) -> Iterator[str]:
    if not isinstance(load_task(signature.task), TrainsAdapters):
        yield f"task {signature.task} trains no adapters; run the model without"
    data, asked = adapters.data, (signature.dataset, signature.dataset_version, signature.task)
    if (data.name, data.version, data.task) != asked:
        yield (
            f"was trained on {data.name} {data.version} for task {data.task}, the result is on {' '.join(asked)}; "
            "train adapters on that dataset and run the model again"
        )
    base = adapters.base
    for name, trained_with, answered_with in (
        ("model", base.identity_sha256, base_identity((model.identity or {}).get("model") or "")),
        ("chat template", base.chat_template_sha256, model.chat_template_sha256),
    ):
        if trained_with != answered_with:
            yield f"was trained for another {name} than the one that answered; train adapters for that one"


def check_training(path: Path, records: RecordColumns, task: Task, trained: frozenset[str]) -> None:
    """Compare the records of a config with the items that its adapter was trained on.

    Raises:
        DataError: one is outside the split of the examples, has no record though the others of its split have one, or
            is an example that the prompt shows.
    """
    support = task.examples_split if isinstance(task, ShowsExamples) else None
    splits = dict(zip(records.columns["item_id"].texts, records.columns["split"].texts, strict=True))
    shown = task.shown_items(records) if trained and isinstance(task, ShowsExamples) else frozenset()
    for item_id in sorted(trained):
        split = splits.get(item_id)
        if split is None and support in splits.values():
            why = f"is no item of split {support}"
        elif split is not None and split != support:
            why = f"is of split {split}, which is measured"
        elif item_id in shown:
            why = "is an example that the prompt shows"
        else:
            continue
        raise DataError(
            f"{path}: the adapter of config {records[0].config} was trained on item '{item_id[:60]}', which {why}; "
            "train it on other items and run the model again"
        )


def check_records(path: Path, result: Result, records: RecordColumns) -> None:
    """Check that all requests match their stored texts, and that the readings follow from possible answers.

    Raises:
        DataError: a request is not the one that its prompt and options make, its probabilities are impossible, or a
            reading does not follow from the answers.
    """
    for check in _CHECKS:
        are_sound, fault = check(records, result)
        wrong = np.flatnonzero(~are_sound)
        if len(wrong):
            index = int(records.owners[wrong[0]])
            exchange = records[index].exchanges[int(wrong[0]) - int(records.first_exchanges[index])]
            raise DataError(f"{path}: row {records.first_row + index}: {fault(exchange)}")
    if len(records):
        signature, task = result.signature, load_task(result.signature.task)
        n_outcomes = task.n_outcomes(prompt_of(task, signature.prompt), records[0])
        if signature.n_outcomes != n_outcomes:
            raise DataError(
                f"{path}: the signature has n_outcomes {signature.n_outcomes}, and prompt '{signature.prompt}' is "
                f"measured on {n_outcomes} here; run the model again, which takes the answers that it has"
            )
    _check_readings(path, result, records)


def brings_options(signature: Signature) -> bool:
    """Return True if each item brings its own options, so that the prompt does not determine their number."""
    if signature.n_outcomes is not None:
        return False
    # A prompt that asks for a text may name options, and one that scores options need not have templates of them.
    return signature.scoring != "generation" or bool(prompt_of(load_task(signature.task), signature.prompt).options)


_Checked: TypeAlias = tuple[BoolArray, Callable[[Exchange], str]]
"""Mask of the exchanges of which a rule holds, and the words about one that breaks it."""


def _prompt(result: Result) -> Prompt:
    return prompt_of(load_task(result.signature.task), result.signature.prompt)


def _are_kept_as_stated(records: RecordColumns, result: Result) -> _Checked:
    """Check that exchanges hold a hash in place of a text if, and only if, the result says so."""
    exchanges, prompt = records.exchanges, _prompt(result)
    texts = exchanges["text"].texts
    hashed = np.array([text is not None and is_hashed(text) for text in texts], dtype=np.bool_)
    if result.withheld is None:
        return ~hashed, lambda exchange: "holds a hash in place of a text; submit the run with --withhold-texts"
    is_empty = np.array([not text for text in texts], dtype=np.bool_) & ~exchanges["status"].coded.is_one_of("answered")
    is_choice = exchanges["kind"].coded.is_one_of("choice")
    # The prompt of what follows a text holds it.
    is_hidden = ~exchanges["prompt"].known if prompt.follow_up is not None else np.zeros_like(is_choice)

    def fault(exchange: Exchange) -> str:
        if exchange.kind == "choice" and not prompt.has_texts:
            return f"holds probabilities of options, which are no texts to withhold; {SUBMIT_AGAIN}"
        what = "a text" if exchange.text else "no hash of its text"
        if exchange.kind == "choice":
            what = "a text in its prompt"
        return f"holds {what}, though the result names complete records elsewhere; {SUBMIT_AGAIN}"

    return np.where(is_choice, is_hidden, hashed | is_empty), fault


def _have_their_hash(records: RecordColumns, result: Result) -> _Checked:
    """Check that the hash of each request is that of its prompt and options."""
    exchanges, prompt = records.exchanges, _prompt(result)
    options, samples = exchanges["options"].lists, exchanges["sample"]
    ends, offered = options.offsets.tolist(), options.values.texts
    is_choice = exchanges["kind"].coded.is_one_of("choice")
    hashes, are_theirs = exchanges["request_sha256"].texts, np.ones(len(records.owners), dtype=np.bool_)
    may_lack_hash = not has_known_requests(result.signature)
    for index, text in enumerate(exchanges["prompt"].texts):
        if text is None:
            are_theirs[index] = hashes[index] is not None or may_lack_hash
            continue
        if is_choice[index]:
            if hashes[index] is None:  # It follows from what is here, so that nothing can contradict it.
                continue
            made = choice_sha256(text, tuple(offered[ends[index] : ends[index + 1]]))
        else:
            made = GenerateRequest(
                prompt=text,
                max_tokens=prompt.max_tokens or 0,
                temperature=prompt.temperature or 0.0,
                top_p=1.0 if prompt.top_p is None else prompt.top_p,
                stop=prompt.stop or (),
                sample=int(samples.integers[index]) if samples.known[index] else None,
            ).sha256
        are_theirs[index] = made == hashes[index]
    return are_theirs, lambda exchange: "request_sha256 is not the hash of its prompt and options; run the model again"


def _follow_from_answers(records: RecordColumns, result: Result) -> _Checked:
    """Check that all answers of a record are followed up as its prompt says.

    Where texts are kept elsewhere, their number, options and outcomes are compared.
    """
    prompt = _prompt(result)
    sound, is_hidden = np.ones(len(records.owners), dtype=np.bool_), result.withheld is not None
    for index, record in enumerate(records if prompt.follow_up is not None else ()):
        first = [exchange for exchange in record.exchanges if exchange.kind == "generate"]
        requests = [
            GenerateRequest(prompt=exchange.prompt or "", max_tokens=1, outcomes=exchange.outcomes)
            for exchange in first
        ]
        # They stand behind all first requests.
        given, expected = record.exchanges[len(first) :], prompt.follow_ups(requests, first)
        agree = len(given) == len(expected) and all(
            exchange.kind == "choice"
            and (exchange.options, exchange.outcomes) == (request.options, request.outcomes)
            and exchange.prompt == (None if is_hidden or text.prompt is None else request.prompt)
            for exchange, text, request in zip(given, first, expected, strict=True)
        )
        sound[records.first_exchanges[index] : records.first_exchanges[index + 1]] = agree
    return (
        sound,
        lambda exchange: "its options are not scored after the texts that the model wrote; run the model again",
    )


def _offer_their_outcomes(records: RecordColumns, result: Result) -> _Checked:
    """Check that exchanges have as many outcomes as their prompt offers, or distinct options of their own."""
    exchanges = records.exchanges
    if brings_options(result.signature):
        are_distinct = _have_distinct(exchanges["outcomes"]) & _have_distinct(exchanges["options"])
        return are_distinct, lambda exchange: "offers an option or an outcome twice; run the model again"
    # They may be more than certainty is measured on.
    n_offered = _prompt(result).n_outcomes or 0
    return (
        exchanges["outcomes"].lists.lengths == n_offered,
        lambda exchange: f"has {len(exchange.outcomes)} outcomes, the prompt {n_offered}; run the model again",
    )


def _have_distinct(column: Column) -> BoolArray:
    """Return the mask of the lists of texts without repeated texts."""
    lists = column.lists
    n_codes = len(lists.values.coded.texts) + 1
    cells, counts = np.unique(lists.owners * n_codes + lists.values.coded.codes, return_counts=True)
    distinct: BoolArray = np.ones(len(lists.lengths), dtype=np.bool_)
    distinct[cells[counts > 1] // n_codes] = False
    return distinct


def _without(wrong: BoolArray, owners: IntArray, records: RecordColumns) -> BoolArray:
    """Return the mask of the exchanges that own none of some wrong options."""
    return np.asarray(np.bincount(owners, weights=wrong, minlength=len(records.owners)) == 0)


def _count_their_bytes(records: RecordColumns, result: Result) -> _Checked:
    """Check the stored numbers of bytes of options as the model got them."""
    # Right after a chat template an option has no space.
    is_first = result.model.chat_template_sha256 is not None and _prompt(result).follow_up is None

    def n_bytes(option: str) -> int:
        return len((option.lstrip() if is_first else option).encode())

    def fault(exchange: Exchange) -> str:
        stored, expected = list(exchange.option_byte_counts), list(map(n_bytes, exchange.options))
        return f"option_byte_counts are {stored}, its options have {expected} bytes; run the model again"

    options, counts = records.exchanges["options"].lists, records.exchanges["option_byte_counts"].lists
    if not np.array_equal(options.offsets, counts.offsets):
        return options.lengths == counts.lengths, fault
    coded = options.values.coded
    lengths = np.array([*map(n_bytes, cast(list[str], coded.texts)), 0], dtype=np.int64)
    return _without(lengths[coded.codes] != counts.values.integers, options.owners, records), fault


def _count_their_tokens(records: RecordColumns, result: Result) -> _Checked:
    """Check that options have possible numbers of tokens: from 1 to one for each byte."""
    tokens, counts = (records.exchanges[f"option_{name}_counts"].lists for name in ("token", "byte"))
    moved = records.exchanges["n_moved_tokens"].integers[tokens.owners] + 1
    if np.array_equal(tokens.offsets, counts.offsets):
        n_bytes = counts.values.integers
    else:  # Exchanges that were not answered have no numbers of tokens.
        n_bytes = np.bincount(counts.owners, weights=counts.values.integers, minlength=len(records.owners))[
            tokens.owners
        ]
    numbers = tokens.values.integers
    wrong = tokens.values.known & ((numbers < 1) | (numbers > n_bytes + moved))
    return (
        _without(wrong, tokens.owners, records),
        lambda exchange: (
            f"option_token_counts are {list(exchange.option_token_counts)}, its options have "
            f"{list(exchange.option_byte_counts)} bytes; run the model again"
        ),
    )


def _are_possible_together(records: RecordColumns, result: Result) -> _Checked:
    """Check that the probabilities of options that exclude each other are possible together."""
    exchanges, n = records.exchanges, len(records.owners)
    logprobs, bounds = exchanges["option_logprobs"].lists, exchanges["option_is_bound"].lists
    sums = np.bincount(logprobs.owners, weights=np.nan_to_num(np.exp(logprobs.values.numbers)), minlength=n)
    are_possible = (sums <= MOST_TOGETHER) | ~_without(bounds.values.flags, bounds.owners, records)
    options = exchanges["options"].lists
    ends, texts = options.offsets.tolist(), cast(list[str], options.values.texts)
    for index in np.flatnonzero(~are_possible).tolist():
        are_possible[index] = not exclude_each_other(texts[ends[index] : ends[index + 1]])
    return (
        are_possible,
        lambda exchange: f"{why_impossible(exchange.options, exchange.option_logprobs)}; run the model again",
    )


def _fit_their_tokens(records: RecordColumns, result: Result) -> _Checked:
    """Check that generated texts fit their numbers of tokens and the limit of their prompt."""
    texts, used = records.exchanges["text"].texts, records.exchanges["n_completion_tokens"]
    limit, sound = _prompt(result).max_tokens, np.ones(len(records.owners), dtype=np.bool_)
    if limit is None:
        return sound, lambda exchange: ""
    for index, text in enumerate(texts):
        if text and not is_hashed(text):
            n_used = int(used.integers[index]) if used.known[index] else None
            sound[index] = why_too_long(text, n_used, limit) is None

    return sound, lambda one: f"{why_too_long(one.text or '', one.n_completion_tokens, limit)}; run the model again"


_CHECKS: tuple[Callable[[RecordColumns, Result], _Checked], ...] = (
    _are_kept_as_stated,
    _have_their_hash,
    _follow_from_answers,
    _offer_their_outcomes,
    _count_their_bytes,
    _count_their_tokens,
    _are_possible_together,
    _fit_their_tokens,
)
"""The rules for exchanges, in the order in which a result hears of the first one that it breaks."""


def _check_readings(path: Path, result: Result, records: RecordColumns) -> None:
    """Check that all records say whether an answer was cut, and that their readings follow from the answers."""
    signature = result.signature
    task = load_task(signature.task)
    is_cut = np.zeros(len(records), dtype=np.bool_)
    is_cut[records.owners[records.exchanges["finish_reason"].coded.is_one_of("length")]] = True
    is_certain = (np.diff(records.first_exchanges) > 0) & (is_cut == records.columns["truncated"].flags)
    if result.withheld is None:
        is_certain &= task.certain_readings(records, signature.normalisation)
    indices = np.flatnonzero(~is_certain)
    for index, record in zip(indices.tolist(), records.rows(indices), strict=True):
        fault = None if result.withheld is not None else _fault_of_reading(record, task, signature)
        if record.truncated != is_cut[index]:
            fault = f"truncated is {record.truncated}, its answers say otherwise; rescore the run"
        if fault is not None:
            raise DataError(f"{path}: row {records.first_row + index}: {fault}")


def _fault_of_reading(record: Record, task: Task, signature: Signature) -> str | None:
    """Return why the reading of a record does not follow from the model's answers; None if it does."""
    if not record.exchanges:
        return "holds no answer of the model; run the model again"
    try:
        read = task.reading(record.exchanges, signature.normalisation, signature.prompt)
    except (ValueError, LookupError) as error:
        return f"task {task.name} cannot read its answers: {error}; run the model again"
    if read.status != record.status:
        return f"status is '{record.status}', its answers give '{read.status}'; rescore the run"
    stored, computed = record.reading, read.reading
    if stored is None or computed is None:
        agrees = stored is computed
    else:
        agrees = (stored.outcomes, stored.answers) == (computed.outcomes, computed.answers) and all(
            abs(ours - theirs) <= TOLERANCE
            for ours, theirs in zip(computed.probabilities, stored.probabilities, strict=True)
        )
    return None if agrees else "the reading does not follow from the stored answers; rescore the run"
