"""Finishes a run from its records: scores the texts, computes the metrics and writes the files of the folder."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from biasboard.ground import strict_json
from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.files import remove_unfinished, sha256_file
from biasboard.ground.kinds import METRICS, TASKS
from biasboard.ground.memory import machine_memory
from biasboard.ground.progress import working
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import Runtime
from evaluators.metric import NO_INPUTS, MetricDefinition, MetricInputs, MetricName, StatisticsSource, TableSource
from evaluators.scorer import TextScorer
from evaluators.statistics.jackknife import Deviations, ratio
from evaluators.task import ReadsScores, load_task, table_of
from evaluators.text_scores import NO_SCORES, TextScores, read_scores, score_texts, write_scores
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.record import Record
from schemas.documents.result import (
    AdaptersFile,
    CorrectionsFile,
    Environment,
    Metric,
    Model,
    RecordsFile,
    Result,
    ScoresFile,
    Signature,
    Usage,
)
from schemas.documents.run_files import Corrections, FittedCorrection
from schemas.files import contract
from schemas.files.record_columns import RecordColumns, Tally
from schemas.files.record_files import read_parts_unchecked, writing_records
from schemas.folders.run_folder import CORRECTIONS, RECORDS, read_corrections, read_result, write_result


@cache
def metric_definitions(task: str) -> tuple[MetricDefinition[Any], ...]:
    """Return every metric of a task, ordered by file name and then as defined.

    A definition that one file imports from another is returned once. A family's folder holds the metrics of its own
    tasks, so that those of other families are not loaded.

    Raises:
        ConfigError: two different metrics of the task have the same name, or a metric names a task that does not exist
            or is of another family.
    """
    definitions: dict[str, tuple[str, MetricDefinition[Any]]] = {}
    tasks = {name: TASKS.module_name(name).rpartition(".")[0] for name in TASKS.names()}
    for file in METRICS.names():
        folder = METRICS.module_name(file).rpartition(".")[0]
        is_of_family = folder.startswith(f"{METRICS.package}.")
        if is_of_family and folder != tasks.get(task):
            continue
        for value in definitions_in(vars(METRICS.load(file)).values()):
            # A metric of a misspelled task would be missing from every result without a word.
            if value.task not in tasks:
                have = ", ".join(tasks)
                raise ConfigError(
                    f"{METRICS.module_name(file)}: metric '{value.name}': no task '{value.task}'; have: {have}"
                )
            if is_of_family and tasks[value.task] != folder:
                place = tasks[value.task].replace(".", "/")
                raise ConfigError(
                    f"{METRICS.module_name(file)}: metric '{value.name}': task '{value.task}' is of another family; "
                    f"move the file to {place}"
                )
            if value.task != task:
                continue
            first_file, first = definitions.setdefault(value.name, (file, value))
            if first is not value:
                modules = " and in ".join(dict.fromkeys(METRICS.module_name(name) for name in (first_file, file)))
                raise ConfigError(f"metric '{value.name}' of task '{task}' is defined twice, in {modules}; rename one")
    return tuple(definition for _, definition in definitions.values())


def definitions_in(values: Iterable[object]) -> Iterator[MetricDefinition[Any]]:
    """Yield the metric definitions among the values of a module, including those in tuples."""
    for value in values:
        for definition in value if isinstance(value, tuple) else (value,):
            if isinstance(definition, MetricDefinition):
                yield definition


@cache
def retired_names(task: str) -> frozenset[str]:
    """Return the names that metrics of a task once had, and that no metric has now."""
    definitions = metric_definitions(task)
    former = {definition.formerly.name for definition in definitions if definition.formerly is not None}
    return frozenset(former - {definition.name for definition in definitions})


def present_names(task: str, stored: Iterable[MetricName]) -> Mapping[MetricName, MetricName]:
    """Return the present names of those stored metrics whose values have another one now.

    A metric keeps its former name if the present one is taken by values that keep theirs: two of one name would hide
    each other from whoever checks them.

    ``stored`` are all metrics of the result.
    """
    former = {
        definition.formerly: MetricName(definition.name, definition.version)
        for definition in metric_definitions(task)
        if definition.formerly is not None
    }
    distinct = set(stored)
    now = {name: former[name] for name in distinct & former.keys()}
    # One that keeps its name can take that of another in turn.
    while taken := {kept.name for kept in distinct - now.keys()} & {present.name for present in now.values()}:
        now = {name: present for name, present in now.items() if present.name not in taken}
    return now


def under_present_names(result: Result) -> Result:
    """Return a result with the present names and versions of metrics that were renamed since, and the same values."""
    stored = [MetricName(metric.name, metric.version) for metric in result.metrics]
    now = present_names(result.signature.task, stored)
    if not now:
        return result
    metrics = (
        replace(metric, **now[name]._asdict()) if name in now else metric
        for metric, name in zip(result.metrics, stored, strict=True)
    )
    return replace(result, metrics=tuple(metrics))


class Measurement:
    """The metrics of one result."""

    def __init__(self, task: str, source: StatisticsSource, corrections: tuple[FittedCorrection, ...] = ()) -> None:
        """Measure from statistics."""
        self._task = task
        self.source = source
        self.corrections = corrections

    @classmethod
    def of(
        cls, parts: Iterable[RecordColumns], task: str, inputs: MetricInputs = NO_INPUTS, *, is_suite: bool = False
    ) -> Measurement:
        """Measure from records.

        Records without a reading are counted too.

        Raises:
            DataError: the records do not come from this task, or come from several prompts or configs.
        """
        table = table_of(load_task(task), parts, inputs, is_suite=is_suite)
        return cls(task, TableSource(table, is_suite=is_suite), table.corrections)

    def metrics(self) -> tuple[Metric, ...]:
        """Compute every metric of the task, overall and by slice, with an entry even for null values."""
        return tuple(
            definition.compute(self.source, group)
            for definition in metric_definitions(self._task)
            for group in self.source.groups(definition)
        )

    def deviations(self, names: Sequence[str]) -> dict[str, Deviations]:
        """Return the deviations of metrics over all items by name; without those that have none.

        Results of one signature have the deviations of the same clusters, so that differences between them are paired.

        Raises:
            ConfigError: there is no such metric.
        """
        definitions = {definition.name: definition for definition in metric_definitions(self._task)}
        for name in names:
            if name not in definitions:
                have = ", ".join(definitions)
                raise ConfigError(f"metric '{name}' does not exist for task '{self._task}'; have: {have}")
        deviations = {name: definitions[name].deviations(self.source, {}) for name in names}
        return {name: of_metric for name, of_metric in deviations.items() if isinstance(of_metric, Deviations)}

    def by_cluster(self, names: Sequence[str]) -> dict[str, FloatArray]:
        """Return the value in each cluster, such as a part of a suite, of metrics that are means over clusters.

        Args:
            names: Names of the metrics; undefined ones and those that are not means are left out.

        Returns:
            The values of each metric by name, shape (n_clusters,); nan for clusters without a value.
        """
        values = {}
        for definition in metric_definitions(self._task):
            if definition.name in names and self.source.facts(definition).undefined is None:
                sums = self.source.statistics(definition, {}).cluster_sums
                # The statistics of a mean have two columns: sum and count.
                if sums.shape[1] == 2:
                    values[definition.name] = ratio(sums[:, 0], sums[:, 1])
        return values

    def sliced(self, names: Sequence[str]) -> Iterator[SliceValue]:
        """Yield metrics on all items and on each slice with their deviations, without those that have none.

        Names that the task does not have are skipped.
        """
        for definition in metric_definitions(self._task):
            for group in self.source.groups(definition) if definition.name in names else ():
                value = definition.value_of(self.source, group).value
                deviations = definition.deviations(self.source, group)
                if value is not None and isinstance(deviations, Deviations):
                    yield SliceValue(definition.name, group, value, deviations)


class SliceValue(NamedTuple):
    """The value of a metric on a slice, and its deviations."""

    name: str
    group: Mapping[str, str]
    value: float
    deviations: Deviations


def compute_metrics(records: Sequence[Record], task: str, scores: TextScores = NO_SCORES) -> tuple[Metric, ...]:
    """Compute every metric of a task from the records of one config; see :class:`Measurement`."""
    return Measurement.of([RecordColumns.of(records)], task, MetricInputs(scores)).metrics()


class Computed(NamedTuple):
    """The metrics and scores computed from the records of a run."""

    metrics: tuple[Metric, ...]
    scores: ScoresFile | None
    """File of the texts' scores in the folder of the run; None if the task reads no scores or nothing was scored."""
    corrections: CorrectionsFile | None = None
    """File of the corrections of calibrated metrics; None if no metric of the task needs one."""


def score_records(
    folder: Path,
    parts: Iterable[RecordColumns],
    task: str,
    scorers: Sequence[TextScorer] = (),
    *,
    is_suite: bool = False,
    inputs: MetricInputs = NO_INPUTS,
    stored: ScoresFile | None = None,
) -> Computed:
    """Score the texts of a run, write scores and corrections, and compute every metric.

    Args:
        folder: Folder of the run; ``scores.parquet`` and ``corrections.json`` are written there if they are needed.
        parts: The records of each part of the run.
        task: Name of the task that wrote the records.
        scorers: Scorers, at most one of each kind; those of a kind that the task does not read are not used.
        is_suite: True for the result of a suite, False for that of a single config.
        inputs: Earlier scores, kept for each kind without a scorer, and earlier corrections.
        stored: File in this folder that holds exactly these scores; left unchanged if there are no scorers.

    Raises:
        DataError: the records do not come from this task, or come from several prompts or configs.
    """
    loaded = load_task(task)
    if loaded.measures_nothing:
        return Computed((), None)
    if not isinstance(loaded, ReadsScores):
        measurement = Measurement.of(parts, task, inputs, is_suite=is_suite)
        return Computed(measurement.metrics(), None, write_corrections(folder, measurement.corrections))
    scorers = [scorer for scorer in scorers if scorer.identity.kind in loaded.score_kinds]
    # Without scorers the texts need not be gathered, and the file of scores stays unchanged.
    if stored is not None and not scorers:
        return Computed(Measurement.of(parts, task, inputs, is_suite=is_suite).metrics(), stored)
    records = RecordColumns.joined(parts)
    scores = score_texts(loaded.texts(records), scorers, known=inputs.scores, folder=folder)
    metrics = Measurement.of([records], task, inputs._replace(scores=scores), is_suite=is_suite).metrics()
    return Computed(metrics, write_scores(folder, scores))


def read_inputs(folder: Path, result: Result, scores: TextScores = NO_SCORES, *, may_fit: bool = False) -> MetricInputs:
    """Return what the metrics of a result need besides records: its corrections, and its adapters' training items.

    Args:
        folder: Folder of the result.
        result: The result in it.
        scores: Scores of its texts.
        may_fit: True to fit corrections that are missing.

    Raises:
        DataError: a file is missing or damaged.
    """
    stored = read_corrections(folder, result)
    corrections = () if stored is None else stored.corrections
    trained: Mapping[str, frozenset[str]] = {}
    if result.adapters is not None:
        # Few models answer with adapters.
        from evaluators.adapter_set import trained_items

        trained = trained_items(folder, result)
    return MetricInputs(scores, corrections, trained, may_fit)


def write_corrections(folder: Path, corrections: Sequence[FittedCorrection]) -> CorrectionsFile | None:
    """Write the corrections of a run to its folder; if there are none, remove an earlier file.

    Returns:
        The reference to the file for the result; None if there are no corrections.
    """
    path = folder / CORRECTIONS
    if not corrections:
        # The result would not name a file left by an earlier scoring, so nothing would ever check it.
        path.unlink(missing_ok=True)
        return None
    document = Corrections(schema_version=SCHEMA_VERSION, corrections=tuple(corrections))
    contract.check(document, where=str(path))
    strict_json.write(path, contract.dump(document))
    return CorrectionsFile(path=CORRECTIONS, sha256=sha256_file(path))


_LOCK = ".lock"
_FOLLOWED = "readings that follow from their answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where records come from: everything in a result that does not follow from its records."""

    model: Model
    signature: Signature
    command: str
    """The command line that reproduces the result."""
    usage: Usage
    environment: Environment
    adapters: AdaptersFile | None = None
    """List of the adapters with which the model answered, in the folder of the run."""
    corrections: CorrectionsFile | None = None
    """Earlier corrections in the folder of the run, to be kept; None to fit all anew."""


@dataclass(frozen=True, slots=True)
class TextScoring:
    """The scorers and known scores for the texts of a run."""

    scorers: Sequence[TextScorer] = ()
    """Scorers, at most one of each kind; they are not used if the task reads no scores."""
    known: TextScores = NO_SCORES
    """Earlier scores, kept for each kind that has no scorer in ``scorers``."""
    stored: ScoresFile | None = None
    """File in the run's folder that holds exactly the known scores; None if there is none."""


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Create the folder of a run and keep other processes from writing into it.

    A new folder is removed again if nothing was written into it.

    Raises:
        RunError: another process holds the folder.
    """
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # Do not wait: the other process may take hours.
        with FileLock(folder / _LOCK, timeout=0):
            try:
                yield
            finally:
                if is_new and {path.name for path in folder.iterdir()} <= {_LOCK}:
                    shutil.rmtree(folder, ignore_errors=True)
    except Timeout as error:
        raise RunError(f"{folder}: another process holds this run; wait for it or stop it") from error


class WrittenRecords(NamedTuple):
    """The file of records in the folder of a run, and their counts."""

    file: RecordsFile
    tally: Tally
    only: RecordColumns | None = None
    """The records of a single part; None if there are several, which are read from the file one by one."""

    def parts(self, folder: Path) -> Iterator[RecordColumns]:
        """Yield the records of each part."""
        if self.only is not None:
            return iter([self.only])
        return read_parts_unchecked(folder / self.file.path)


def write_parts(folder: Path, parts: Iterable[Sequence[Record]]) -> WrittenRecords:
    """Write the records of a run part by part; an earlier file stays until all parts are written.

    The caller holds the folder. A lazy iterable may ask a model for each part when it is needed.

    Raises:
        DataError: a record is invalid; nothing is written.
    """
    tally = Tally()
    only: RecordColumns | None = None
    n_parts = 0
    path = folder / RECORDS
    # Left by a run that was killed while writing.
    remove_unfinished(path)
    with writing_records(path) as add:
        for records in parts:
            n_parts += 1
            columns = add(records)
            only = columns if n_parts == 1 else None
            tally.add(columns)
    file = RecordsFile(path=RECORDS, sha256=sha256_file(path), n_rows=tally.counts.items)
    return WrittenRecords(file, tally, only)


def finish_run(folder: Path, written: WrittenRecords, origin: Origin, scoring: TextScoring) -> Result:
    """Score the texts of records, compute every metric and write the result.

    The caller must hold the folder. The records are already written and the result names their hash, so there is never
    a result without its records.

    Raises:
        DataError: the records do not come from the signature's task, or come from several prompts or configs.
    """
    signature = origin.signature
    draft = Result(
        schema_version=SCHEMA_VERSION,
        model=origin.model,
        signature=origin.signature,
        signature_sha256=origin.signature.sha256(),
        command=origin.command,
        counts=written.tally.counts,
        metrics=(),
        usage=origin.usage,
        environment=origin.environment,
        records=written.file,
        scores=None,
        coverage=written.tally.coverage if signature.parts else (),
        adapters=origin.adapters,
        corrections=origin.corrections,
    )
    with working(f"computing the metrics of {folder.name}"):
        computed = score_records(
            folder,
            written.parts(folder),
            signature.task,
            scoring.scorers,
            is_suite=bool(signature.parts),
            inputs=read_inputs(folder, draft, scoring.known, may_fit=True),
            stored=scoring.stored,
        )
    result = replace(draft, metrics=computed.metrics, scores=computed.scores, corrections=computed.corrections)
    write_result(folder, result)
    # The current code has just made these readings, so a rescoring need not repeat them.
    machine_memory().put(_FOLLOWED, _depends_on(written.file, signature), True)
    return result


def are_known_to_follow(file: RecordsFile, signature: Signature) -> bool:
    """Return True if this machine has noted that the current code reads these answers in this way.

    The hash of the file was checked before.
    """
    return machine_memory().get(_FOLLOWED, _depends_on(file, signature)) is True


def _depends_on(file: RecordsFile, signature: Signature) -> dict[str, JsonValue]:
    return {"records": file.sha256, "signature": signature.sha256()}


def scoring_after(folder: Path, scorers: Sequence[TextScorer], *, keep: bool) -> TextScoring:
    """Return how to score the texts of a run whose folder may hold an earlier result.

    Scores of an earlier result that cannot be read are ignored, so that their texts are scored again.

    Args:
        folder: The folder of the run.
        scorers: The scorers that the user chose.
        keep: True to keep all earlier scores, even those of other scorers, and score only missing kinds.
    """
    known = NO_SCORES
    with suppress(DataError):
        known = read_scores(folder, read_result(folder).scores)
    # Scores of another scorer or revision are dropped: the result would attribute them to this one.
    same = {scorer.identity.kind for scorer in scorers if known.scorers.get(scorer.identity.kind) == scorer.identity}
    kept = set(known.scorers) if keep else same
    return TextScoring(
        tuple(scorer for scorer in scorers if scorer.identity.kind in same or scorer.identity.kind not in kept),
        known.of_kinds(kept),
    )


def environment(runtimes: Sequence[Runtime]) -> Environment:
    """Describe where the answers were computed; where sessions differ, all their values are listed."""
    # Metrics and intervals are computed with numpy, whatever backend answered.
    numpy = {"numpy": importlib.metadata.version("numpy")}
    devices = [runtime.device for runtime in runtimes if runtime.device is not None]
    return Environment(
        biasboard=importlib.metadata.version("biasboard"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        device=" / ".join(dict.fromkeys(devices)) or None,
        packages=_merged([numpy, *(runtime.packages for runtime in runtimes)]),
        settings=_merged([runtime.settings for runtime in runtimes]),
    )


def _merged(mappings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            values.setdefault(key, {})[value] = None
    return {key: " / ".join(values[key]) for key in sorted(values)}
