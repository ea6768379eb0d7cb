"""What a task is: items to requests, responses to records.

A file in ``evaluators/tasks`` is a task: it holds ``TASK``, an object that fits :class:`Task`, for one item shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from evaluators.backend import Capability, Request
from schemas import plugins, strict_json
from schemas.errors import ConfigError
from schemas.item_shape import shape_of
from schemas.record import Exchange, Reading, RecordStatus
from schemas.result import Normalisation, ScoringMode

if TYPE_CHECKING:
    from evaluators.metric import RecordTable
    from evaluators.text_scores import TextScores

_PACKAGE = "evaluators.tasks"
_GENERATION = frozenset({"max_tokens", "temperature", "stop", "top_p", "n_samples"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A versioned way of asking. Its text never changes under one id: a change is a new id."""

    id: str
    template: str
    """With named slots in braces."""
    options: tuple[str, ...]
    """Templates of the options in one order; none where the answer is a text."""
    outcomes: tuple[str, ...]
    """What the options stand for: ``first`` and ``second`` occupation of the sentence, or ``undetermined``."""
    outcome_texts: tuple[str, ...]
    """How the prompt names the outcomes, with named slots; empty where the options alone name them."""
    orders: tuple[tuple[int, ...], ...]
    """Orders in which the outcomes are offered; what is read is averaged over them."""
    scoring: ScoringMode
    requires: Capability
    description: str
    protocol: str | None = None
    """Name that it shares with prompts of other tasks, where the answers to all of them make up one index; None if the
    protocol has the prompt's own id."""
    chat: bool = True
    """Whether it makes sense as a message; one that is a text to go on from does not."""
    max_tokens: int | None = None
    """Of a generated answer; None, like the next two, where none is generated."""
    temperature: float | None = None
    stop: tuple[str, ...] | None = None
    top_p: float | None = None
    n_samples: int | None = None
    """Answers that are asked for per item; None for one."""

    @property
    def n_outcomes(self) -> int | None:
        """Between how many outcomes an answer decides; None where a free text decides between none."""
        return len(self.outcomes) or None

    def sha256(self) -> str:
        """Hash of every text that the prompt brings along, and of how it is asked."""
        value = {
            name: field
            for name, field in asdict(self).items()
            # What a prompt does not have is no part of it, so that older ones keep their hashes.
            if name not in ("description", "chat", "protocol") and not (name in _GENERATION and field is None)
        }
        return strict_json.sha256(strict_json.loads(strict_json.dumps(value), where=self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFacts:
    """What a record takes over from its item."""

    cluster: str
    pair_id: str | None
    target: str | None
    reference: str | None
    groups: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read from the responses to one item."""

    status: RecordStatus
    reading: Reading | None
    reason: str | None


class Task(Protocol):
    """Items of one shape, asked and read."""

    @property
    def name(self) -> str:
        """Also the name of its file."""

    @property
    def version(self) -> str:
        """Raised with every change that can move a record."""

    @property
    def item_shape(self) -> str:
        """The shape of the items that it can ask."""

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """By id; the first is the default."""

    def requests(self, item: Any, prompt: Prompt) -> Sequence[Request]:
        """What to ask about an item of the task's shape."""

    def facts(self, item: Any) -> ItemFacts:
        """What the record keeps of the item."""

    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the answers; needs nothing but the stored exchanges.

        Args:
            exchanges: Of one item.
            normalisation: How option log-probabilities become probabilities; None for generated answers.
        """

    def table(self, records: Sequence[Any]) -> RecordTable:
        """Records as arrays, for the metrics of this task."""


@runtime_checkable
class ReadsScores(Protocol):
    """A task some of whose metrics read what scorers say of the answers."""

    def texts(self, records: Sequence[Any]) -> Sequence[str]:
        """The texts that have to be scored, equal ones once."""

    def scored_table(self, records: Sequence[Any], scores: TextScores) -> RecordTable:
        """Records and the scores of their texts as arrays."""


def load_task(name: str) -> Task:
    """A task by name.

    Raises:
        ConfigError: there is no such task.
    """
    task: Task = plugins.load(_PACKAGE, name, kind="task").TASK
    return task


def task_for(listed: str, name: str | None = None) -> Task:
    """Return the task that asks the items of a config.

    Args:
        listed: The item shape as the manifest lists it. It may have the name of one of the tasks that ask the shape.
        name: The task that the user chose; None to find it.

    Raises:
        ConfigError: no task asks such items, the chosen one does not, or several do and none is chosen.
        DataError: there is no such item shape.
    """
    shape = shape_of(listed, where="manifest").name
    tasks = [load_task(known) for known in plugins.names(_PACKAGE)]
    fitting = {task.name: task for task in tasks if task.item_shape == shape}
    if not fitting:
        shapes = ", ".join(sorted({task.item_shape for task in tasks}))
        raise ConfigError(f"no task asks items of shape '{shape}'; have tasks for: {shapes}")
    chosen = name or (listed if listed in fitting else next(iter(fitting)) if len(fitting) == 1 else None)
    if chosen is None:
        raise ConfigError(f"several tasks ask items of shape '{shape}'; choose one with --task: {', '.join(fitting)}")
    if chosen not in fitting:
        raise ConfigError(f"--task {chosen}: asks no items of shape '{shape}'; tasks that do: {', '.join(fitting)}")
    return fitting[chosen]


def prompt_of(task: Task, prompt_id: str | None) -> Prompt:
    """A prompt of a task, the default one for None.

    Raises:
        ConfigError: there is no such prompt.
    """
    if prompt_id is None:
        return next(iter(task.prompts.values()))
    if prompt_id not in task.prompts:
        raise ConfigError(
            f"prompt '{prompt_id}' does not exist for task '{task.name}'; have: {', '.join(task.prompts)}"
        )
    return task.prompts[prompt_id]
