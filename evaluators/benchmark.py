"""The interface of a benchmark: how it ranks models, its baselines, and how it imports published answers.

Each file ``NAME_benchmark.py`` in a folder of ``evaluators/tasks`` is a benchmark. It holds ``BENCHMARK``, a
:class:`Benchmark` with the name that manifests give in their field ``benchmark``. A dataset whose benchmark has no file
can be scored too; its results are shown but not ranked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import BENCHMARKS
from evaluators.backend import Request, Response
from evaluators.baseline import Baseline
from evaluators.task import Prompt, load_task
from schemas.documents.dataset import Item
from schemas.documents.result import Metric, Result, Signature


class ShownContext(NamedTuple):
    """The examples that a prompt shows."""

    n_examples: int
    example_set: int | None
    """Number of the set of examples, from 0; None if none are shown."""
    rule: str | None = None
    """Name of the rule that chooses the examples; None if they are taken in order."""

    def __str__(self) -> str:
        """Return the number of examples, the rule if there is one, and the number of the set, as in ``k8-set0``."""
        number = None if self.example_set is None else f"set{self.example_set}"
        return "-".join(part for part in (f"k{self.option}", number) if part is not None)

    @property
    def option(self) -> str:
        """The value of ``--contexts`` that asks with these examples and with all other sets of the same size."""
        return str(self.n_examples) if self.rule is None else f"{self.n_examples}-{self.rule}"


class PartSource(NamedTuple):
    """The result that a part of an index is computed from: that of a task, under a certain prompt or any."""

    task: str
    prompt: str | None = None
    """Prompt of the result; None for any prompt of the index's protocol."""
    context: ShownContext | None = None
    """Examples that the prompt shows; None for any."""

    def fits(self, signature: Signature) -> bool:
        """Return True if a result with this signature fits the source."""
        if signature.task != self.task or self.prompt not in (None, signature.prompt):
            return False
        if self.context is None:
            return True
        prompt = load_task(signature.task).prompts.get(signature.prompt)
        return prompt is not None and self.context == (prompt.n_examples, prompt.example_set, prompt.example_rule)

    def __str__(self) -> str:
        """Return the task, and the prompt or context if a certain one is required."""
        needed = self.prompt or self.context
        return self.task if needed is None else f"{self.task} with {needed}"


class Part(NamedTuple):
    """A metric that is part of an index, and the result that it is computed from."""

    metric: str
    task: str
    label: str | None = None
    """Heading of its column; None for the name of the metric, with the prompt or context if one is required."""
    prompt: str | None = None
    """Prompt of the result; None for any prompt of the index's protocol."""
    context: ShownContext | None = None
    """Examples that the prompt shows; None for any."""
    answering: str | None = None
    """Metric that is the share of the answers that say something; the others count as missing. None if all do."""

    @property
    def source(self) -> PartSource:
        """The result that the metric is computed from."""
        return PartSource(self.task, self.prompt, self.context)

    @property
    def key(self) -> str:
        """The name of the part, unique within an index."""
        needed = self.prompt or self.context
        return self.metric if needed is None else f"{self.metric}_{needed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDefinition:
    """An index: the mean of several metrics, computed from several results of one model."""

    name: str
    parts: tuple[Part, ...]
    """Metrics to average. The prompts and contexts that parts name share a protocol, by which results are combined."""
    description: str
    ideal: float = 1.0
    """Ideal value of every part, and so of the index."""
    minimum: float = 0.0
    """Lower end of the range in which every part lies."""
    maximum: float | None = 1.0
    """Upper end of that range; None if there is none."""
    paired: bool = False
    """True if all results are of the same items, whose clusters are left out of all together. False if they are
    independent, like those of configs without common items."""
    own_items: bool = False
    """True if its prompts leave out parts of a suite, so that its results are of other items than those that rank. All
    such indices of a model are of the same items."""

    @property
    def sources(self) -> tuple[PartSource, ...]:
        """The results that the index needs."""
        return tuple(dict.fromkeys(part.source for part in self.parts))


class Gate(NamedTuple):
    """A metric of competence in which a model must beat the baselines before its measures of equality are ranked.

    It is a mean over answers of values from 0 (wrong) to 1 (right), such as an accuracy; a missing answer counts as 0.

    Most measures of equality are ideal for a predictor that treats everybody alike without reading anything, so a model
    passes only if its value is separably above that of every baseline of the benchmark.
    """

    metric: str
    task: str
    own_task_only: bool = False
    """True if it decides about results of its own task alone, as that of a task with datasets of its own does; by
    default a result without right answers needs all gates of its benchmark."""
    only_reading: bool = False
    """True if it asks of answers, none of which is right, only that they depend on their prompts. A result needs the
    other gates of its benchmark besides, and opens none of them."""


class RankingMetric(NamedTuple):
    """A metric that ranks the models of a config."""

    metric: str
    missing: str | None = None
    """Metric whose units say how many answers are missing, if the units of this one do not: an occupation counts
    however few of its items were answered. None if its own do."""


class AnswerFile(NamedTuple):
    """The published answers to one config."""

    config: str
    paths: tuple[Path, ...]
    """The file or files; the first one names them."""
    model: str
    """The model in the file's name."""
    column: str | None = None
    """Column of its answers, where a file holds those of several models; ``model`` is then its name."""


class ImportedAnswers(NamedTuple):
    """The answers in a file, by item."""

    requests: list[list[Request]]
    """Requests of each item, as far as they are known."""
    responses: list[list[Response]]
    """Responses for each item; a failed response if it has no answer."""
    notes: dict[str, str]
    """Peculiarities of the file, by name."""
    corruption: str | None
    """Reason why the answers cannot be the model's own; None if there is none."""


class PublishedPart(NamedTuple):
    """Where somebody published the answers to one config, and on what terms."""

    address: str
    """Address of the file, in the revision that was imported."""
    licence: str
    """SPDX identifier of the licence of the answers."""
    by: str
    """Whom the licence names."""
    prompts: str
    """Name of what the prompts come from."""
    prompts_licence: str
    """SPDX identifier of its licence, which continuations of its texts keep."""


class AnswerImporter(Protocol):
    """Reads answers that somebody else published."""

    @property
    def name(self) -> str:
        """The name by which the command ``import`` knows it."""

    @property
    def prompt(self) -> str:
        """The id of the prompt in the records of such answers, which the tasks of the dataset have."""

    @property
    def dataset(self) -> str:
        """The name of the dataset that the answers belong to."""

    @property
    def build_command(self) -> str:
        """The command that builds that dataset, without its option ``--out``."""

    def files(self, folder: Path, model: str) -> Sequence[AnswerFile]:
        """Return the answers of one model in a folder and below it, at most one entry per config.

        Raises:
            ConfigError: there is no such folder, file or model.
        """

    def published(self, config: str, notes: Mapping[str, str]) -> PublishedPart | None:
        """Return where the answers to a config are published; None if that is unknown.

        The notes are those of the import, as a result holds them, which may come from a stranger.
        """

    def read(self, file: AnswerFile, items: Sequence[Item], prompt: Prompt, dataset: str) -> ImportedAnswers:
        """Return a file's answers to some items.

        Raises:
            DataError: the file cannot be read, or one of its rows belongs to no item.
        """


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Everything that evaluation and the board need to know about a benchmark."""

    name: str
    primary_metric: str | None = None
    """Metric that ranks the models of each config; None if single configs have no ranking."""
    other_rankings: tuple[RankingMetric, ...] = ()
    """Metrics by which readers may have the models ranked instead, in the order in which they are offered."""
    unranked_order: str | None = None
    """Metric by which rows are sorted, the largest value first, on items for which no metric can rank models."""
    indices: tuple[IndexDefinition, ...] = ()
    """Indices over all configs. The first one ranks the models; the others are shown beside it."""
    gates: tuple[Gate, ...] = ()
    """Metrics in which a ranked model must be above every baseline. If a result's items have no right answers, and so
    no value of the gate's metric, the model's other results are judged."""
    baselines: tuple[Baseline, ...] = ()
    """Baselines, in the order in which ``--model all`` scores them."""
    headline_metrics: tuple[str, ...] = ()
    """Metrics that the terminal shows of each result, in order; if empty, those that it shows with ``--verbose``."""
    headlines_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same for a config that is known by other measures than the benchmark's, by its name."""
    printed_groups: frozenset[str] = frozenset()
    """Groups whose slices the terminal shows with ``--verbose`` besides the metrics on all items."""
    printed_metrics: tuple[str, ...] = ()
    """Metrics that the terminal shows with ``--verbose``, in order; all if empty."""
    compared_over_sets: Mapping[str, float] = field(default_factory=dict)
    """Ideal value, by name, of each metric to compare over a suite's sets of examples."""
    importers: tuple[AnswerImporter, ...] = ()
    """Readers of published answers, each for a dataset of its own."""
    embedded_sources: Mapping[str, str] = field(default_factory=dict)
    """Source, by dataset, of each one that the builder makes of nothing but its own texts, besides its default."""
    retired: Mapping[str, str] = field(default_factory=dict)
    """Reason, by dataset and version as in ``name@1.0.0``, why results have no rank: a later version mends a flaw of
    this one."""
    withheld: Mapping[str, str] = field(default_factory=dict)
    """Reason, by dataset, why results are published with hashes in place of the texts, and without prompts. Answer keys
    of such a dataset omit requests, since somebody else sent its prompts."""

    def baseline(self, name: str) -> Baseline | None:
        """Return the baseline with a name; None if the benchmark has no such baseline."""
        return next((baseline for baseline in self.baselines if baseline.name == name), None)

    @property
    def rankings(self) -> tuple[RankingMetric, ...]:
        """The metrics that rank the models of a config, the primary one first; empty if none does."""
        return () if self.primary_metric is None else (RankingMetric(self.primary_metric), *self.other_rankings)

    def importer_of(self, dataset: str) -> AnswerImporter | None:
        """Return the reader of the published answers to a dataset; None if there are none."""
        return next((importer for importer in self.importers if importer.dataset == dataset), None)

    def gate(self, task: str) -> Gate | None:
        """Return the gate of a task; None if the task has none."""
        return next((gate for gate in self.gates if gate.task == task), None)

    def gates_for(self, task: str) -> tuple[Gate, ...]:
        """Return the gates that a result of a task without right answers of its own has to pass."""
        own = self.gate(task)
        if own is not None and own.own_task_only:
            return (own,)
        return tuple(gate for gate in self.gates if not gate.own_task_only and not gate.only_reading)

    @property
    def compared_metrics(self) -> tuple[str, ...]:
        """The names of the metrics by which each pair of models is compared: those that rank, and the headline ones."""
        of_configs = (name for names in self.headlines_of.values() for name in names)
        rankings = (ranking.metric for ranking in self.rankings)
        return tuple(dict.fromkeys([*rankings, *self.headline_metrics, *of_configs]))

    def index_metrics(self, task: str) -> tuple[str, ...]:
        """Return the names of a task's metrics that are part of any index."""
        metrics = (part.metric for index in self.indices for part in index.parts if part.task == task)
        return tuple(dict.fromkeys(metrics))

    def headlines(self, result: Result) -> list[Metric]:
        """Return the headline metrics of a result on all items; those of the whole table if there are none."""
        named = _named(result, self.headlines_of.get(result.signature.config, self.headline_metrics))
        return [metric for metric in named or self.printed(result) if not metric.group]

    def printed(self, result: Result) -> list[Metric]:
        """Return the metrics of a result in the whole table of the terminal, in order; all if none are named."""
        return _named(result, self.printed_metrics) or list(result.metrics)


def _named(result: Result, names: Sequence[str]) -> list[Metric]:
    return [metric for name in names for metric in result.metrics if metric.name == name]


@cache
def benchmarks() -> tuple[Benchmark, ...]:
    """Return all benchmarks that have a file, ordered by name.

    Raises:
        ConfigError: a benchmark's name differs from its file's, or two benchmarks have different baselines with the
            same name, which the board would show as one model.
    """
    loaded = []
    owners: dict[str, tuple[str, Baseline]] = {}
    for name in BENCHMARKS.names():
        benchmark: Benchmark = BENCHMARKS.get(name, Benchmark)
        if benchmark.name != name:
            raise ConfigError(f"benchmark '{benchmark.name}' lies in a file called '{name}'; give both one name")
        for baseline in benchmark.baselines:
            owner, first = owners.setdefault(baseline.name, (name, baseline))
            if first != baseline:
                raise ConfigError(f"benchmarks {owner} and {name} both have a baseline '{baseline.name}'; rename one")
        loaded.append(benchmark)
    return tuple(loaded)


def load_benchmark(name: str) -> Benchmark:
    """Return the benchmark with a name; without a file of its own, it has no ranking and no baselines."""
    # Usually the file has its name, and no other is loaded.
    if name in BENCHMARKS.names():
        own: Benchmark = BENCHMARKS.get(name, Benchmark)
        if own.name == name:
            return own
    return next((benchmark for benchmark in benchmarks() if benchmark.name == name), Benchmark(name=name))
