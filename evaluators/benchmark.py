"""The interface of a benchmark: what ranks its models, what they are compared with, and how answers are brought in.

A file in ``evaluators/benchmarks`` is a benchmark. It holds ``BENCHMARK``, a :class:`Benchmark`, and has the name that
manifests give in their field ``benchmark``. A dataset of a benchmark without a file can be scored too: its results are
shown, and nothing ranks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from evaluators.backend import GenerateRequest, Response
from evaluators.baseline import Baseline
from evaluators.task import Prompt
from schemas import plugins
from schemas.errors import ConfigError
from schemas.item_shape import Item

_PACKAGE = "evaluators.benchmarks"


class Part(NamedTuple):
    """A metric that an index takes the mean of, and the task whose records it comes from."""

    metric: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDefinition:
    """An index: the mean of metrics that come from several results of one model."""

    name: str
    parts: tuple[Part, ...]
    description: str

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that it needs a result of."""
        return tuple(dict.fromkeys(part.task for part in self.parts))


class AnswerFile(NamedTuple):
    """A file of published answers."""

    config: str
    path: Path
    model: str
    """The model's name as the file's name has it."""


class ImportedAnswers(NamedTuple):
    """The answers in a file, arranged by the items that they belong to."""

    requests: list[list[GenerateRequest]]
    """Per item, as far as it is known what was asked."""
    responses: list[list[Response]]
    """Per item; a failed response for an item without an answer."""
    notes: dict[str, str]
    """Peculiarities of the file, by name."""
    corruption: str | None
    """Why the answers cannot be the model's own; None if nothing speaks against them."""


class AnswerImporter(Protocol):
    """Reads answers that somebody else published."""

    @property
    def prompt(self) -> str:
        """Id of the prompt under which such answers are recorded; each task of the benchmark has it."""

    @property
    def dataset(self) -> str:
        """Name of the dataset that was asked."""

    @property
    def build_command(self) -> str:
        """Command that builds that dataset, without its option ``--out``."""

    def files(self, folder: Path, model: str) -> Sequence[AnswerFile]:
        """Return the files of one model in a folder and below it, at most one per config.

        Raises:
            ConfigError: there is no such folder, file or model.
        """

    def read(self, file: AnswerFile, items: Sequence[Item], prompt: Prompt, dataset: str) -> ImportedAnswers:
        """Return the answers of a file to some items.

        Args:
            file: One that :meth:`files` found.
            items: All items of its config.
            prompt: The prompt named by :attr:`prompt`.
            dataset: Name of the dataset, for errors.

        Raises:
            DataError: the file cannot be read, or a row of it belongs to no item.
        """


def _no_other_baseline(name: str) -> Baseline | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """What the evaluation and the board have to know of a benchmark."""

    name: str
    primary_metric: str | None = None
    """The metric by which the models of each config are ranked; None if no config ranks by itself."""
    indices: tuple[IndexDefinition, ...] = ()
    """The first one ranks the models over all configs, the others stand beside it."""
    unparsed_is_wrong: frozenset[str] = frozenset()
    """Tasks whose metrics count an answer that says nothing as wrong, so that it is not missing."""
    baselines: tuple[Baseline, ...] = ()
    """In the order in which ``--model all`` scores them."""
    baseline_with_parameter: Callable[[str], Baseline | None] = _no_other_baseline
    """Gives further baselines, those whose names hold a parameter; None for a name that is not of that kind."""
    importer: AnswerImporter | None = None
    """Reader of published answers; None if there are none."""

    def baseline(self, name: str) -> Baseline | None:
        """Return a baseline by name; None if the benchmark has none of that name."""
        listed = next((baseline for baseline in self.baselines if baseline.name == name), None)
        return listed or self.baseline_with_parameter(name)

    def index_metrics(self, task: str) -> tuple[str, ...]:
        """Return the names of the metrics of a task that some index takes the mean of."""
        found = (part.metric for index in self.indices for part in index.parts if part.task == task)
        return tuple(dict.fromkeys(found))


@cache
def benchmarks() -> tuple[Benchmark, ...]:
    """Return every benchmark that has a file, by name.

    Raises:
        ConfigError: two benchmarks have different baselines of one name, which would be one model on the board.
    """
    found = []
    owners: dict[str, tuple[str, Baseline]] = {}
    for name in plugins.names(_PACKAGE):
        benchmark: Benchmark = plugins.load(_PACKAGE, name, kind="benchmark").BENCHMARK
        if benchmark.name != name:
            raise ConfigError(f"benchmark '{benchmark.name}' lies in a file called '{name}'; give both one name")
        for baseline in benchmark.baselines:
            owner, first = owners.setdefault(baseline.name, (name, baseline))
            if first != baseline:
                raise ConfigError(f"benchmarks {owner} and {name} both have a baseline '{baseline.name}'; rename one")
        found.append(benchmark)
    return tuple(found)


def load_benchmark(name: str) -> Benchmark:
    """Return a benchmark by name, one without ranks and baselines if it has no file."""
    return next((benchmark for benchmark in benchmarks() if benchmark.name == name), Benchmark(name=name))
