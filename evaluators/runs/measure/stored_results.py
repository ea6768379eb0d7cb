"""Measures results in their folders again, copies them without texts, and makes answer keys.

A result without its texts has hashes in place of the texts, and the sums that its metrics need. Everything on the board
but the texts follows from these: values, intervals, ranks and comparisons. Whoever has the texts can make the same
files again and compare.

Makes answer keys: the hashes that every result on a dataset under a prompt must share.
"""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import machine_memory
from evaluators.backend import Response
from evaluators.benchmark import Gate
from evaluators.metric import MetricDefinition, MetricFacts, MetricName, StatisticsSource
from evaluators.runs.measure.baseline_gate import Reference, applying_gate
from evaluators.runs.measure.measuring import (
    Measurement,
    metric_definitions,
    present_names,
    read_inputs,
    retired_names,
    write_parts,
)
from evaluators.runs.measure.recording import first_asked, records_of
from evaluators.runs.plan.plan import Plan, Selection, select, with_examples
from evaluators.statistics.jackknife import Crossing
from evaluators.statistics.record_tables import Statistics, grouped
from evaluators.task import load_task, prompt_of
from evaluators.text_scores import TextScores, read_scores
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.board import AnswerKey, KeyExtent, KeyPart
from schemas.documents.dataset import Manifest
from schemas.documents.result import Result, Signature, SumsFile, Withheld, name_with_group
from schemas.documents.run_files import ClusterSums
from schemas.files import row_files
from schemas.files.record_columns import (
    RecordColumns,
    asked_sha256,
    item_hashes,
    items_sha256,
    without_prompts,
    without_texts,
)
from schemas.folders.run_folder import (
    SUBMIT_AGAIN,
    SUMS,
    StoredParts,
    path_of,
    read_complete_result,
    read_parts,
    read_sums,
    write_result,
)

_MOST_UNITS = 1_000
"""Largest plausible number of units, such as pairs of answers to a text, per answer."""


def measurement_of(
    folder: Path, result: Result, parts: Iterable[RecordColumns], scores: TextScores | None = None
) -> Measurement:
    """Return the measurement of a result: from its records and scores, or from its sums if it has no texts.

    Args:
        folder: Folder of the result.
        result: The result in it.
        parts: The records of each part, each of which is read once.
        scores: Scores of its texts; None to read them.

    Raises:
        DataError: a file is damaged, or the records do not come from the task.
    """
    if result.withheld is not None:
        return measured_by_sums(folder, result, parts)
    signature = result.signature
    inputs = read_inputs(folder, result, read_scores(folder, result.scores) if scores is None else scores)
    measurement = Measurement.of(parts, signature.task, inputs, is_suite=bool(signature.parts))
    # A correction that no metric applies would be stored and passed on without ever being checked.
    used = {(correction.config, correction.calibration) for correction in measurement.corrections}
    for correction in inputs.corrections:
        if (correction.config, correction.calibration) not in used:
            unused = f"{correction.calibration} of config {correction.config}"
            raise DataError(f"{folder}: corrections.json has {unused}, which no metric applies; rescore the run")
    return measurement


class StoredSums:
    """The statistics of a result, stored when its texts were available."""

    def __init__(
        self,
        rows: Iterable[ClusterSums],
        crossing: Crossing | None,
        baseline: str | None = None,
        *,
        is_suite: bool,
        sizes: FloatArray | None = None,
    ) -> None:
        """Index the statistics.

        Args:
            rows: All rows of a file of sums.
            crossing: The clusters of each cell in the records; None if they have one factor.
            baseline: Baseline whose statistics to take; None for those of the model.
            is_suite: True for a suite, False for a single config.
            sizes: Number of records in each cluster, or in each cell if two factors are crossed; None if unknown, as
                on a suite, or if nothing reads it.
        """
        self.crossing = crossing
        self.sizes = sizes
        self._is_suite = is_suite
        self._rows: dict[str, dict[tuple[tuple[str, str], ...], ClusterSums]] = {}
        for row in rows:
            if row.baseline == baseline:
                self._rows.setdefault(row.metric, {})[_key(row.group)] = row

    def facts(self, definition: MetricDefinition[Any]) -> MetricFacts:
        """Return the facts about a metric.

        It is undefined if its sums, and those that it can be derived from, are missing or of another version.
        """
        row, unit = self._rows.get(definition.name, {}).get(()), definition.unit_on(is_suite=self._is_suite)
        if row is None and definition.derivation is not None:
            undefined, ideal = self.facts(definition.derivation.base).undefined, definition.ideal
            return MetricFacts(definition.version, undefined, None if callable(ideal) else ideal, unit)
        if row is None:
            reason = "its sums were not stored, and the texts that it is computed from are kept elsewhere"
            return MetricFacts(definition.version, reason, None, unit)
        # The version of a metric that reads scores is followed by the scorer's label.
        if row.version != definition.version and not row.version.startswith(f"{definition.version}."):
            reason = f"its sums are of version {row.version}; version {definition.version} is computed from the texts"
            return MetricFacts(definition.version, f"{reason}, which are kept elsewhere", None, unit)
        return MetricFacts(row.version, row.reason, row.ideal, unit)

    def groups(self, definition: MetricDefinition[Any]) -> Sequence[Mapping[str, str]]:
        """Return the slices of a metric, all items first; only these if the metric is undefined."""
        if self.facts(definition).undefined is not None or definition.name not in self._rows:
            return [{}]
        keys = {frozenset(names) for names in definition.slice_keys}
        return [row.group for row in self._rows[definition.name].values() if frozenset(row.group) in keys]

    def statistics(self, definition: MetricDefinition[Any], group: Mapping[str, str]) -> Statistics:
        """Return the statistics of a metric on a slice.

        Raises:
            DataError: there are none.
        """
        row = self._rows.get(definition.name, {}).get(_key(group))
        if row is None and definition.derivation is not None:
            return definition.derivation.statistics(self.statistics(definition.derivation.base, group))
        if row is None:
            raise DataError(f"metric {definition.name} has no sums on {dict(group) or 'all items'}; {SUBMIT_AGAIN}")
        sums = np.array(row.sums, dtype=np.float64).reshape(row.n_columns, -1)
        return Statistics(np.ascontiguousarray(sums.T), row.n, row.n_excluded)


def _key(group: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(group.items()))


def rows_of(definitions: Sequence[MetricDefinition[Any]], source: StatisticsSource) -> Iterator[ClusterSums]:
    """Yield the statistics of a model's metrics on all their slices as rows."""
    for definition in definitions:
        facts = source.facts(definition)
        for group in source.groups(definition):
            statistics = None if facts.undefined is not None else source.statistics(definition, group)
            yield _row(definition.name, facts, statistics, group)


def _row(
    metric: str,
    facts: MetricFacts,
    statistics: Statistics | None,
    group: Mapping[str, str] = MappingProxyType({}),
    baseline: str | None = None,
) -> ClusterSums:
    return ClusterSums(
        metric=metric,
        version=facts.version,
        baseline=baseline,
        group=dict(group),
        reason=facts.undefined,
        ideal=facts.ideal,
        n=0 if statistics is None else statistics.n,
        n_excluded=0 if statistics is None else statistics.n_excluded,
        n_columns=0 if statistics is None else statistics.cluster_sums.shape[1],
        # Column by column; StoredSums.statistics transposes them back.
        sums=() if statistics is None else tuple(statistics.cluster_sums.T.ravel().tolist()),
    )


def measured_by_sums(folder: Path, result: Result, parts: Iterable[RecordColumns]) -> Measurement:
    """Return the measurement of a result that has sums in place of its texts.

    Each part is read once.

    Raises:
        DataError: the sums are damaged, or do not fit the records.
    """
    signature, is_suite = result.signature, bool(result.signature.parts)
    values_of: dict[str, set[str]] = {}
    n_answers, crossing, sizes = 0, None, np.zeros(0)
    for records in parts:
        _, keys, values = records.columns["groups"].entries
        for key, value in {*zip(keys.texts, values.texts, strict=True)}:
            values_of.setdefault(str(key), set()).add(str(value))
        n_answers += len(records.owners)
        # The sums of a suite are over its parts, so that its clusters are not crossed.
        of_records, _, _, crossing = grouped(records, crossed_by=load_task(signature.task).crossed_by)
        sizes = np.bincount(of_records).astype(np.float64)
    rows = sums_of(folder, result)
    names = retired_names(signature.task).union(definition.name for definition in metric_definitions(signature.task))
    # Made-up sums can only be recognised by what the records show. A group that no record has once made the build of a
    # board fail.
    for row in rows:
        n_clusters = len(row.sums) // row.n_columns if row.n_columns else 0
        n_units, problem = max(row.n, row.n_excluded), None
        if row.metric not in names:
            strange = f"has sums of '{row.metric}', which is no metric of {signature.task}"
            raise DataError(f"{folder}: {strange}; {SUBMIT_AGAIN}")
        if any(value not in values_of.get(key, {value}) for key, value in row.group.items()):
            problem = "are on a group that no record has"
        elif n_clusters not in {0, len(sizes)} and not is_suite:
            problem = f"are over {n_clusters} clusters, and the records have {len(sizes)}"
        elif n_units > _MOST_UNITS * n_answers:
            problem = f"count {n_units:,} units of {n_answers:,} answers"
        if problem is not None:
            raise DataError(f"{folder}: sums of {name_with_group(row.metric, row.group)} {problem}; {SUBMIT_AGAIN}")
    return Measurement(signature.task, StoredSums(rows, crossing, is_suite=is_suite, sizes=None if is_suite else sizes))


def sums_of(folder: Path, result: Result) -> list[ClusterSums]:
    """Return the stored sums of a result that has them in place of its texts, under the present names of its metrics.

    Raises:
        DataError: the file is damaged.
    """
    assert result.withheld is not None
    rows = read_sums(folder, result.withheld.sums)
    stored = [MetricName(row.metric, row.version) for row in rows]
    now = present_names(result.signature.task, stored)
    return [
        replace(row, metric=now[name].name, version=now[name].version) if name in now else row
        for row, name in zip(rows, stored, strict=True)
    ]


def write_without_texts(run: Path, target: Path, *, with_prompts: bool) -> Result:
    """Write the result of a run into another folder, without its generated texts.

    Args:
        run: Folder of the complete run.
        target: Existing folder to write ``result.json``, ``records.parquet`` and ``sums.parquet`` into.
        with_prompts: False to leave out the prompts too.

    Returns:
        The result as it was written. Its metrics are those of the run.

    Raises:
        DataError: the run is damaged, or is not complete.
    """
    result = read_complete_result(run)
    _copy_files_beside_records(run, target, result)
    signature = result.signature
    measurement = measurement_of(run, result, read_parts(run, result))
    rows = [*rows_of(metric_definitions(signature.task), measurement.source), *_baselines(run, result)]
    # 64 random digits an answer are half of a file, and these could be compared with nothing.
    kept = {"with_prompts": with_prompts, "with_requests": with_prompts or has_known_requests(signature)}
    written = write_parts(target, (without_texts(records, **kept) for records in StoredParts(run, result)))
    row_files.write_rows(target / SUMS, rows, ClusterSums)
    sums = SumsFile(path=SUMS, sha256=sha256_file(target / SUMS), n_rows=len(rows))
    withheld = Withheld(records=result.records, scores=result.scores, sums=sums)
    made = replace(result, records=written.file, scores=None, withheld=withheld)
    write_result(target, made)
    return made


def write_without_prompts(run: Path, target: Path) -> Result:
    """Write the result of a run that scores options into another folder, without its prompts.

    Its log-probabilities and the hashes of its requests stay, so that it is verified and measured by its records like
    one on a dataset whose texts may not be shown.

    Returns:
        The result as it was written, which differs from that of the run by the hash of its records.

    Raises:
        DataError: the run is damaged.
    """
    result = read_complete_result(run)
    _copy_files_beside_records(run, target, result)
    written = write_parts(target, (without_prompts(records) for records in StoredParts(run, result)))
    made = replace(result, records=written.file)
    write_result(target, made)
    return made


def _copy_files_beside_records(run: Path, target: Path, result: Result) -> None:
    """Copy the files besides the records that the metrics depend on."""
    for file in (result.adapters, result.corrections):
        if file is not None:
            shutil.copyfile(path_of(run, file), target / file.path)


def _baselines(run: Path, result: Result) -> Iterator[ClusterSums]:
    """Yield the sums of the baselines in the metric of the gate.

    They are stored because some baselines read the prompts, which may be withheld.
    """
    check = applying_gate(result.signature, StoredParts(run, result))
    for reference in () if check is None else check.references(machine_memory()):
        metric = reference.metric
        facts = MetricFacts(metric.version, None, metric.ideal, metric.unit)
        statistics = Statistics(reference.sums, metric.n, metric.n_excluded)
        yield _row(metric.name, facts, statistics, baseline=reference.baseline)


def stored_references(
    gate: Gate, rows: Sequence[ClusterSums], crossing: Crossing | None, *, is_suite: bool
) -> tuple[Reference, ...]:
    """Return the values of the baselines in the metric of a gate, from their stored sums.

    Args:
        gate: The gate.
        rows: All rows of the file of sums.
        crossing: The clusters of each cell in the records; None if they have one factor.
        is_suite: True for a suite, False for a single config.
    """
    (definition,) = (metric for metric in metric_definitions(gate.task) if metric.name == gate.metric)
    references = []
    for name in dict.fromkeys(row.baseline for row in rows if row.baseline is not None):
        source = StoredSums(rows, crossing, name, is_suite=is_suite)
        if source.facts(definition).undefined is None:
            sums = source.statistics(definition, {}).cluster_sums
            references.append(Reference(name, definition.compute(source, {}), sums))
    return tuple(references)


_UNASKED = Response(status="failed", error="nobody was asked")


class MadeKey(NamedTuple):
    """An answer key, and the contents of its file of item hashes."""

    key: AnswerKey
    items: bytes


def key_of_dataset(folder: Path, manifest: Manifest, *, config: str, task: str, prompt: str) -> MadeKey:
    """Return the answer key of a config or suite of a dataset under a prompt.

    The key is made from the items alone, by the code that would ask about them; no answer is needed. Anybody who has
    the dataset can make the same key.

    Raises:
        ConfigError: the prompt shows more examples than the dataset has.
        NoExamplesError: the rule of the prompt finds none in any part.
        DataError: the data files are damaged.
    """
    loaded = load_task(task)
    asked_with = prompt_of(loaded, prompt)
    without = asked_with.unread_splits
    whole, left_out = with_examples(select(folder, manifest, config, without=without), loaded, asked_with)
    limited = None
    if loaded.default_limit is not None:
        limit, support = loaded.default_limit, loaded.support_splits
        by_default = select(folder, manifest, config, limit=limit, support=support, without=without).without(left_out)
        limited = by_default if by_default.n_items < whole.n_items else None
    plan = Plan(whole, loaded, asked_with)
    unanswered = (
        records_of(plan, part, part.requests, [[_UNASKED] * len(asked) for asked in part.requests], chat=False)
        for part in plan.parts
    )
    made = key_of_parts(plan.signature, manifest.content_sha256, map(RecordColumns.of_stream, unanswered), limited)
    return made._replace(key=replace(made.key, licence=manifest.licence))


def key_of_parts(
    signature: Signature, dataset_sha256: str, parts: Iterable[RecordColumns], limited: Selection | None = None
) -> MadeKey:
    """Return the answer key of some records, whatever their answers.

    The hash is that of the dataset's contents; ``limited`` are the items asked by default, None if all are.
    """
    # The usual protocol of a large suite asks 100 items per task. These hashes identify a result on the default items,
    # which would otherwise look like an arbitrary slice.
    key_parts, hashes, limited_parts = [], [], []
    with_requests = has_known_requests(signature)
    prompt = prompt_of(load_task(signature.task), signature.prompt)
    for number, records in enumerate(first_asked(part, prompt) for part in parts):
        key_parts.append(_part(records, with_requests=with_requests))
        hashes.append(item_hashes(records, with_requests=with_requests))
        if limited is not None:
            chosen = {(split, item.item_id) for split, item in limited.parts[number].items}
            rows = zip(records.columns["split"].texts, records.columns["item_id"].texts, strict=True)
            only = RecordColumns(records.table.filter(pa.array([row in chosen for row in rows])))
            limited_parts.append(_part(only, with_requests=with_requests))
    file = io.BytesIO()
    np.save(file, np.concatenate(hashes), allow_pickle=False)
    items = file.getvalue()
    key = AnswerKey(
        schema_version=SCHEMA_VERSION,
        dataset_sha256=dataset_sha256,
        signature=signature,
        parts=tuple(key_parts),
        items_path=f"{key_name(signature)}.npy",
        items_file_sha256=hashlib.sha256(items).hexdigest(),
        limited=None
        if limited is None
        else KeyExtent(
            limit=limited.limit or 0,
            n_items=limited.n_items,
            items_sha256=limited.items_sha256,
            parts=tuple(limited_parts),
        ),
    )
    return MadeKey(key, items)


def _part(records: RecordColumns, *, with_requests: bool) -> KeyPart:
    return KeyPart(
        config=records[0].config,
        n_items=len(records),
        facts_sha256=items_sha256(records),
        requests_sha256=asked_sha256(records) if with_requests else None,
    )


def has_known_requests(signature: Signature) -> bool:
    """Return True if the first requests follow from the items and the prompt alone.

    Those of most imported answers do not, nor those of prompts that are cut by tokens, which depend on the tokenizer.
    Keys hold first requests only: what is asked after an answer follows from it, and is checked against it.
    """
    prompt = prompt_of(load_task(signature.task), signature.prompt)
    is_ours = prompt.requires != "import" or prompt.has_own_requests
    return is_ours and prompt.max_prompt_tokens is None


def key_name(signature: Signature) -> str:
    """Return the file name, without its ending, of the key for a signature's config, task and prompt."""
    return f"{signature.config}-{signature.task}-{signature.prompt}"


def item_hashes_in(content: bytes) -> npt.NDArray[np.uint8]:
    """Return the item hashes in the contents of a file, shape (n, 32).

    Raises:
        ValueError: the contents are not such an array.
    """
    # Loading a stranger's pickle would run its code.
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != hashlib.sha256().digest_size:
        raise ValueError(f"holds an array of {array.dtype} of shape {array.shape}, not of SHA-256 hashes")
    hashes: npt.NDArray[np.uint8] = array
    return hashes
