"""Writes results without their generated texts: with hashes of the texts, and with the sums that metrics need.

Everything on the board but the texts follows from such a result: values, intervals, ranks and comparisons. Whoever has
the texts can make the same files again and compare.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import machine_memory
from evaluators.benchmark import Gate, load_benchmark
from evaluators.runs.measure.finish import write_parts
from evaluators.runs.measure.gates import GateCheck, Reference
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.runs.measure.stored_results import measurement_of
from evaluators.runs.measure.stored_sums import StoredSums, rows_of
from evaluators.statistics.bootstrap import resample
from evaluators.task import load_task, prompt_of
from schemas.documents.cluster_sums import ClusterSums
from schemas.documents.result import Result, SumsFile, Withheld
from schemas.files import tables
from schemas.files.withheld_texts import without_texts
from schemas.folders.run_folder import SUMS, StoredParts, place_of, read_complete_result, read_parts, write_result


def write_without_texts(run: Path, target: Path, *, with_prompts: bool) -> Result:
    """Write the result of a run into another folder, without its generated texts.

    Args:
        run: Folder of the complete run.
        target: Existing folder to write ``result.json``, ``records.parquet`` and ``sums.parquet`` into.
        with_prompts: False to leave out the prompts too.

    Returns:
        The result as it was written. Its metrics are those of the run.

    Raises:
        DataError: the run is damaged, holds no generated texts, or is not complete.
    """
    result = read_complete_result(run)
    for file in (result.adapters, result.corrections):
        if file is not None:
            shutil.copyfile(place_of(run, file), target / file.path)
    signature = result.signature
    if prompt_of(load_task(signature.task), signature.prompt).scoring != "generation":
        raise DataError(f"{run}: holds probabilities of options and no generated texts; submit it as it is")
    measurement = measurement_of(run, result, read_parts(run, result))
    rows = [*rows_of(metric_definitions(signature.task), measurement.source), *_baselines(run, result)]
    written = write_parts(
        target, (without_texts(records, with_prompts=with_prompts) for records in StoredParts(run, result))
    )
    tables.write_rows(target / SUMS, rows, ClusterSums)
    sums = SumsFile(path=SUMS, sha256=sha256_file(target / SUMS), n_rows=len(rows))
    withheld = Withheld(records=result.records, scores=result.scores, sums=sums)
    made = replace(result, records=written.file, scores=None, withheld=withheld)
    write_result(target, made)
    return made


def _baselines(run: Path, result: Result) -> Iterator[ClusterSums]:
    """Yield the sums of the baselines in the metric of the gate: some of them answer what the prompt says."""
    signature = result.signature
    benchmark = load_benchmark(signature.benchmark)
    gate = benchmark.gate(signature.task)
    if gate is None:
        return
    check = GateCheck(benchmark, gate, signature, StoredParts(run, result))
    if not check.applies:
        return
    for reference in check.references(machine_memory()):
        metric = reference.metric
        yield ClusterSums(
            metric=metric.name,
            version=metric.version,
            baseline=reference.baseline,
            group={},
            reason=None,
            ideal=metric.ideal,
            n=metric.n,
            n_excluded=metric.n_excluded,
            n_columns=reference.sums.shape[1],
            sums=tuple(reference.sums.T.ravel().tolist()),
        )


def stored_references(gate: Gate, rows: Sequence[ClusterSums], *, is_suite: bool) -> tuple[Reference, ...]:
    """Return the values of the baselines in the metric of a gate, from their stored sums.

    Args:
        gate: The gate.
        rows: All rows of the file of sums.
        is_suite: True if they are of a suite, and not of a single config.
    """
    (definition,) = (metric for metric in metric_definitions(gate.task) if metric.name == gate.metric)
    references = []
    for name in dict.fromkeys(row.baseline for row in rows if row.baseline is not None):
        source = StoredSums(rows, name, is_suite=is_suite)
        if source.facts(definition).undefined is None:
            sums = source.statistics(definition, {}).cluster_sums
            resamples = resample(sums, definition.aggregate)
            references.append(Reference(name, definition.compute(source, {}), sums, resamples))
    return tuple(references)
