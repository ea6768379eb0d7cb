"""The interface of a task, which turns items into requests and responses into records, and what only some can do.

Each file ``NAME_task.py`` in a folder of ``evaluators/tasks`` is a task for one item shape. It holds ``TASK``, an
object of a class that extends :class:`Task`.

What only some tasks can do, each as a subclass of :class:`evaluators.task.Task` that such a task extends.

General code asks ``isinstance(task, ShowsExamples)`` and the like, and never for a family of tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import TASKS
from evaluators.backend import Capability, ChoiceRequest, GenerateRequest, Request, Response
from schemas.documents.dataset import shape_of
from schemas.documents.record import Exchange, Reading, RecordStatus
from schemas.documents.result import Normalisation, ScoringMode
from schemas.documents.run_files import ScorerKind

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from evaluators.baseline import Facts
    from evaluators.metric import MetricInputs, RecordTable
    from evaluators.text_scores import TextScores
    from schemas.documents.run_files import FittedCorrection
    from schemas.files.record_columns import RecordColumns


_OPTIONAL = frozenset(
    {"max_tokens", "temperature", "stop", "top_p", "n_samples", "asks_confidence", "follow_up"}
    | {"n_examples", "example_set", "example_rule", "max_prompt_bytes", "max_prompt_tokens"}
)
_CUT = "cut off before it answered, as in the middle of thinking; --thinking-tokens gives it more to think with"
_UNHASHED = frozenset(
    {"description", "chat", "protocol", "normalisation", "unread_splits", "is_extra", "has_own_requests"}
)
"""Fields that change neither what is asked nor how, or that a signature names by themselves."""


class UnfitPromptError(ConfigError):
    """A prompt that cannot ask about an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A versioned way of asking about an item. A prompt never changes under its id: a changed one gets a new id."""

    id: str
    template: str
    """Text of the prompt, with named slots in braces."""
    options: tuple[str, ...] = ()
    """Templates of the options in one order; empty if the answer is a free text."""
    outcomes: tuple[str, ...] = ()
    """Outcomes that the options stand for, such as ``first`` and ``second`` occupation, or ``undetermined``; empty if
    each item has its own."""
    outcome_texts: tuple[str, ...] = ()
    """Texts by which the prompt names the outcomes, with named slots; empty if only the options name them."""
    orders: tuple[tuple[int, ...], ...] = ((),)
    """Orders in which the outcomes are offered, one request each; the reading is averaged over them. The single empty
    order is for prompts that ask for a text and offer no outcomes."""
    scoring: ScoringMode
    requires: Capability
    description: str
    protocol: str | None = None
    """Name shared by prompts of several tasks whose answers form one index; None if it is the prompt's own id."""
    chat: bool = True
    """True if the prompt makes sense as a chat message; False if it is a text to continue."""
    max_tokens: int | None = None
    """Largest number of tokens in a generated answer; like the next two, None if no text is generated."""
    temperature: float | None = None
    stop: tuple[str, ...] | None = None
    top_p: float | None = None
    n_samples: int | None = None
    """Number of sampled answers per item, or per order of the outcomes; None for a single answer."""
    asks_confidence: bool | None = None
    """True if the answer also states how confident the model is; None if it does not."""
    follow_up: str | None = None
    """Text to put after the generated answer; the options, which have no slots, are then scored as its continuations in
    a second request. None if nothing is asked again."""
    n_examples: int | None = None
    """Number of solved examples that the prompt shows; None if the task shows none."""
    example_set: int | None = None
    """Number of the set of examples, from 0: set s shows examples s·k to s·k + k - 1 of their split."""
    example_rule: str | None = None
    """Name of the rule by which the task chooses the examples; None to take them in the order of their split."""
    max_prompt_bytes: int | None = None
    """Largest number of UTF-8 bytes of a prompt, kept by leaving out examples and cutting inputs; None for any."""
    max_prompt_tokens: int | None = None
    """The same in tokens, which makes the prompts depend on the model's tokenizer; None for any."""
    normalisation: Normalisation | None = None
    """Normalisation of option log-probabilities unless the user chooses another; None for ``sum``."""
    is_extra: bool = False
    """True for a further set of examples, which ``--contexts`` asks with only under the name ``K-more``."""
    unread_splits: frozenset[str] = frozenset()
    """Splits that are not asked, because no measure reads answers to this prompt about them."""

    has_own_requests: bool = False
    """Of a prompt of imported answers: True if its requests follow from the items, as those that are asked do; False
    if whoever asked sent others."""

    @property
    def n_outcomes(self) -> int | None:
        """The number of outcomes of an answer; None for free texts and for items with options of their own."""
        return len(self.outcomes) or None

    @property
    def needs(self) -> frozenset[Capability]:
        """The abilities that a backend needs: ``requires``, and to write what the options are scored after."""
        return frozenset({self.requires} if self.follow_up is None else {self.requires, "generation"})

    @property
    def as_message(self) -> bool:
        """True if an endpoint that takes whole messages can be asked: none lets its model's message be begun."""
        return self.chat and self.follow_up is None

    @property
    def n_rounds(self) -> int:
        """The number of requests that follow each other: 2 if options are scored after a generated answer, else 1."""
        return 1 if self.follow_up is None else 2

    @property
    def has_texts(self) -> bool:
        """True if answers are or begin with generated texts."""
        return self.scoring == "generation" or self.follow_up is not None

    def asking(
        self,
        text: str,
        *,
        options: tuple[str, ...] | None = None,
        outcomes: tuple[str, ...] | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> list[Request]:
        """Return the first requests with a filled template: one that scores options, or one for each text to write.

        Args:
            text: The filled template.
            options: Continuations of the text to score, if the prompt scores options; None for its own, unfilled.
            outcomes: Outcome of each option, or of each one that the text offers; None for those of the prompt.
            facts: Facts about the item that only baselines read; None for none.
        """
        outcomes, facts = self.outcomes if outcomes is None else outcomes, facts or {}
        if self.max_tokens is None:
            options = self.options if options is None else options
            return [ChoiceRequest(prompt=text, options=options, outcomes=outcomes, facts=facts)]
        return [
            GenerateRequest(
                prompt=text,
                max_tokens=self.max_tokens,
                temperature=self.temperature or 0.0,
                top_p=1.0 if self.top_p is None else self.top_p,
                stop=self.stop or (),
                sample=sample,
                outcomes=outcomes,
                # By which samples that choose among outcomes can be weighted.
                with_logprob=sample is not None and bool(outcomes),
                asks_confidence=self.asks_confidence or False,
                facts=facts,
            )
            for sample in ((None,) if self.n_samples is None else range(self.n_samples))
        ]

    def following(self, request: GenerateRequest, text: str) -> ChoiceRequest:
        """Return the request that scores the options after a generated answer.

        Nothing is done to the text: what the model reads again is what it wrote.
        """
        return ChoiceRequest(
            prompt=f"{request.prompt}{text}{self.follow_up}",
            n_begun=len(f"{text}{self.follow_up}"),
            options=self.options,
            outcomes=request.outcomes,
            facts=request.facts,
            adapter=request.adapter,
        )

    def follow_ups(
        self, requests: Sequence[Request], answers: Sequence[Response | Exchange | None]
    ) -> Sequence[ChoiceRequest]:
        """Return the requests that follow from the answers to an item: one for each, or none.

        There are none if one of the answers is missing, failed or refused, since the item then has no reading.

        Args:
            requests: The first requests about an item.
            answers: The answer to each of them; None if it is not there yet.
        """
        if self.follow_up is None or any(answer is None or answer.status != "answered" for answer in answers):
            return ()
        return [
            self.following(request, answer.text or "")
            for request, answer in zip(requests, answers, strict=True)
            if isinstance(request, GenerateRequest) and answer is not None
        ]

    def sha256(self) -> str:
        """Return a hash of the fields that determine what is asked and how."""
        value = {
            name: field
            for name, field in asdict(self).items()
            # Unused optional fields are left out, so that prompts older than a field keep their hashes.
            if name not in _UNHASHED and not (name in _OPTIONAL and field is None)
        }
        return strict_json.sha256(strict_json.loads(strict_json.dumps(value), where=self.id))


def by_id(*prompts: Prompt) -> dict[str, Prompt]:
    """Return the prompts of a task by their ids."""
    return {prompt.id: prompt for prompt in prompts}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFacts:
    """Facts about an item that its record keeps."""

    cluster: str
    pair_id: str | None = None
    target: str | None = None
    reference: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The reading of the responses to one item, or the reason why there is none."""

    status: RecordStatus
    reading: Reading | None = None
    reason: str | None = None


class Mark(NamedTuple):
    """A part of a generated text on which its reading rests, such as the pronoun that was read."""

    start: int
    """Offset of its first character in the text."""
    end: int
    """Offset behind its last one."""
    doubt: str | None
    """Words that say what else it can mean than was read; None if it is certain."""


def quoted(text: str | None) -> str:
    """Quote the beginning of an answer, for the reason why it has no reading."""
    return repr((text or "")[:60])


def unanswered(exchange: Exchange) -> Read:
    """Return the reading of an item of which this exchange has no answer: none, with the reason."""
    status = "failed" if exchange.status == "answered" else exchange.status
    return Read(status=status, reason=exchange.error or "no answer")


def cut_before_answer(exchanges: Sequence[Exchange]) -> Read | None:
    """Return the reading of an item whose model did not come to its answer: none, with the reason; None if it did."""
    cut = [exchange for exchange in exchanges if is_cut_before_answer(exchange)]
    # Options that follow a text are scored after any text, and samples stand for each other.
    if cut and (len(cut) == len(exchanges) or (cut[0].sample is None and exchanges[-1].kind == "generate")):
        return Read(status="unparsed", reason=_CUT)
    return None


def is_cut_before_answer(exchange: Exchange) -> bool:
    """Return True if a text reached its limit on tokens before it said anything, as in the middle of thinking."""
    return exchange.kind == "generate" and exchange.finish_reason == "length" and exchange.text == ""


CountTokens: TypeAlias = Callable[[str], int]
"""Function that returns the number of tokens of a text."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How an item is asked about."""

    prompt: Prompt
    examples: Sequence[Any] = ()
    """Items that the prompt shows as solved examples, in order, without the item itself."""
    count_tokens: CountTokens | None = None
    """Function that returns the number of tokens of a text, for prompts with ``max_prompt_tokens``."""
    position: int | None = None
    """Position of the item among the examples of the prompt, from 0; None if it is not one of them."""


class Task(ABC):
    """A way to ask about the items of one shape and to read the responses.

    What only some tasks can do, such as to show examples, is a subclass of its own in ``evaluators/task.py``.
    """

    name: str
    """The name of the task, which is also the name of its file."""
    version: str = "1.0"
    """The version of the task; raised by each change that can alter a record."""
    earlier_versions: frozenset[str] = frozenset()
    """Earlier versions whose records are read alike, though they lack facts that are recorded now."""
    item_shape: str
    """The shape of the items that the task asks about."""
    prompts: Mapping[str, Prompt]
    """The prompts by id; the first is the default."""
    unread_answers: frozenset[str] = frozenset({""})
    """Readings of one of several answers to an item that say that it could not be read: it is missing."""
    measures_nothing: bool = False
    """True if the answers are data to build from: the task has no metrics, and boards leave its results out."""
    support_splits: frozenset[str] = frozenset()
    """The splits that only support a measurement, such as that of the examples; ``--limit`` spares them."""
    crossed_by: str | None = None
    """The group whose values are the clusters of a second factor, which cross those of the first or, like patterns of
    sentences, contain them; None without one."""
    default_limit: int | None = None
    """The largest number of items of each config if the user gives no limit; None for all."""

    @abstractmethod
    def requests(self, item: Any, asked: Asked) -> Sequence[Request]:
        """Return the requests for an item of the task's shape.

        Raises:
            UnfitPromptError: the prompt cannot ask about such an item.
        """

    @abstractmethod
    def facts(self, item: Any) -> ItemFacts:
        """Return the facts about an item that its record keeps."""

    @abstractmethod
    def read(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None) -> Read:
        """Read the answers to one item from its stored exchanges alone.

        The reading of choices must depend only on their options and log-probabilities, not on the prompts.

        Args:
            exchanges: The exchanges of one item.
            normalisation: How option log-probabilities become probabilities; None for generated answers.
        """

    def reading(self, exchanges: Sequence[Exchange], normalisation: Normalisation | None, prompt_id: str) -> Read:
        """Read the answers to one item as :meth:`read` does, unless the model did not come to its answer.

        A task overrides it if its prompts ask for different things in the same form.

        Args:
            exchanges: The exchanges of one item.
            normalisation: How option log-probabilities become probabilities; None for generated answers.
            prompt_id: Id of the prompt that asked.
        """
        return cut_before_answer(exchanges) or self.read(exchanges, normalisation)

    @abstractmethod
    def table(self, records: Sequence[Any]) -> RecordTable:
        """Return records as arrays, for the metrics of this task."""

    def marks(self, exchange: Exchange) -> Sequence[Mark]:
        """Return the parts of a generated text on which its reading rests, in order; by default none are known."""
        return ()

    def are_right(self, records: Sequence[Any]) -> Sequence[bool | None]:
        """Return whether the reading of each record is right.

        The value is None if there is no right answer or no reading, or if the reading is partly right.
        """
        return [None] * len(records)

    def certain_readings(self, records: Sequence[Any], normalisation: Normalisation | None) -> npt.NDArray[np.bool_]:
        """Return the mask of the records whose stored reading certainly follows from their answers, shape (n,).

        The others are read one by one. The default certifies none.
        """
        # Imported here because loading numpy takes as long as some whole commands.
        import numpy

        return numpy.zeros(len(records), dtype=numpy.bool_)

    def n_outcomes(self, prompt: Prompt, facts: Facts) -> int | None:
        """Return the number k of outcomes that certainty is measured on; by default all that the prompt offers.

        The facts are those of any of the items.
        """
        return prompt.n_outcomes

    def baseline_facts(self, facts: Facts) -> Mapping[str, str]:
        """Return the facts that the item's requests carry for baselines, from those in its record."""
        return {}


def load_task(name: str) -> Task:
    """Return the task of a name.

    Raises:
        ConfigError: there is no such task.
    """
    task: Task = TASKS.get(name, Task)
    if task.name != name:
        raise ConfigError(f"task '{task.name}' is in a file called '{name}'; give both one name")
    return task


def task_for(listed: str, name: str | None = None) -> Task:
    """Return the task that asks about the items of a config.

    Args:
        listed: The item shape in the manifest. If several tasks fit the shape, the one with the same name is taken.
        name: The task that the user chose; None to find it by the shape.

    Raises:
        ConfigError: no task fits the items, the chosen task does not fit them, or several fit and none is chosen.
        DataError: there is no such item shape.
    """
    shape = shape_of(listed, where="manifest").name
    # Most configs are listed by the name of their task, which alone is loaded then.
    likely = name or listed
    if likely in TASKS.names() and load_task(likely).item_shape == shape:
        return load_task(likely)
    fitting = _fitting(shape)
    chosen = name or (listed if listed in fitting else next(iter(fitting)) if len(fitting) == 1 else None)
    if chosen is None:
        raise ConfigError(
            f"several tasks can ask about items of shape '{shape}'; choose one with --task: {', '.join(fitting)}"
        )
    if chosen not in fitting:
        raise ConfigError(
            f"--task {chosen} cannot ask about items of shape '{shape}'; tasks that can: {', '.join(fitting)}"
        )
    return fitting[chosen]


def tasks_for(listed: str) -> Sequence[Task]:
    """Return the tasks that a config is made for: the one with the name of its shape, or else all that fit its items.

    Args:
        listed: The item shape in the manifest.

    Raises:
        ConfigError: no task fits the items.
        DataError: there is no such item shape.
    """
    shape = shape_of(listed, where="manifest").name
    if listed in TASKS.names() and load_task(listed).item_shape == shape:
        return [load_task(listed)]
    return list(_fitting(shape).values())


def _fitting(shape: str) -> Mapping[str, Task]:
    tasks = [load_task(known) for known in TASKS.names()]
    fitting = {task.name: task for task in tasks if task.item_shape == shape}
    if not fitting:
        shapes = ", ".join(sorted({task.item_shape for task in tasks}))
        raise ConfigError(f"no task can ask about items of shape '{shape}'; have tasks for: {shapes}")
    return fitting


def prompt_names(task: Task, prompts: Iterable[Prompt]) -> list[str]:
    """Return option values that choose prompts, for messages: a protocol in place of all its prompts with examples."""
    chosen = list(prompts)
    ids = {prompt.id for prompt in chosen}
    names: dict[str, None] = {}
    for prompt in chosen:
        same = {other.id for other in task.prompts.values() if other.protocol == prompt.protocol}
        is_whole = prompt.n_examples is not None and prompt.protocol is not None and same <= ids
        names[str(prompt.protocol) if is_whole else prompt.id] = None
    return list(names)


def prompt_of(task: Task, prompt_id: str | None) -> Prompt:
    """Return a prompt of a task by its id, or the default one for None.

    Raises:
        ConfigError: there is no such prompt.
    """
    if prompt_id is None:
        return next(iter(task.prompts.values()))
    if prompt_id not in task.prompts:
        raise ConfigError(
            f"prompt '{prompt_id}' does not exist for task '{task.name}'; have: "
            f"{', '.join(prompt_names(task, task.prompts.values()))}"
        )
    return task.prompts[prompt_id]


class ShowsExamples(Task):
    """A task whose prompts show solved examples, which are items of one split."""

    examples_split: str
    """The split whose items are shown, in its order."""
    default_contexts: tuple[int, ...] = (0,)
    """The numbers of examples to ask with if the user chooses neither contexts nor a prompt."""

    def shown_groups(self, item: Any, asked: Asked) -> Mapping[str, str]:
        """Return the groups of an item's record that tell what its prompt shows; by default none."""
        return {}

    def chosen_examples(self, pool: Sequence[Any], prompt: Prompt) -> Sequence[Any]:
        """Return the examples that a prompt's rule chooses, in order; fewer if there are not enough of a kind.

        Args:
            pool: The items of the split that examples come from, in order.
            prompt: A prompt with a rule.
        """
        raise ConfigError(
            f"prompt '{prompt.id}' has its examples chosen by rule '{prompt.example_rule}', and task '{self.name}' "
            "defines no chosen_examples; take another prompt"
        )

    def why_no_examples(self, pool: Sequence[Any], prompt: Prompt) -> str | None:
        """Return why the rule of a prompt finds no examples in a pool, as in ``3 labels``; None if it does.

        A run of a suite leaves out such parts.
        """
        return None

    def shown_items(self, records: RecordColumns) -> frozenset[str]:
        """Return the ids of the items that the prompt of some records of one part shows as examples."""
        return frozenset()


class TrainsAdapters(ShowsExamples):
    """A task for whose prompts adapters can be trained, on other items than they show."""

    @abstractmethod
    def training_items(self, pool: Sequence[Any], prompt: Prompt, shown: Sequence[Any], n_items: int) -> Sequence[Any]:
        """Return the items on which the adapter of a prompt is trained; fewer if there are not enough.

        Args:
            pool: The items of the split that examples come from, in order.
            prompt: The prompt, which shows the same examples in training as in the run.
            shown: The examples that the prompt shows; the adapter is trained on none of them.
            n_items: Number of items to train on.
        """


class ReadsScores(Task):
    """A task with metrics that read scores of texts."""

    score_kinds: frozenset[ScorerKind]
    """The kinds of scores that any metric of the task reads; texts get no others."""

    @abstractmethod
    def texts(self, records: Sequence[Any]) -> Sequence[str]:
        """Return the distinct texts that need scores."""

    @abstractmethod
    def scored_table(self, records: Sequence[Any], scores: TextScores) -> RecordTable:
        """Return records as arrays, with the scores of their texts."""

    def table(self, records: Sequence[Any]) -> RecordTable:
        """Return records as arrays, without scores."""
        from evaluators.text_scores import NO_SCORES

        return self.scored_table(records, NO_SCORES)


class MeasuresParts(Task):
    """A task that takes records part by part, to keep only what metrics need, or whose metrics apply corrections."""

    @abstractmethod
    def table_of_parts(
        self,
        parts: Iterable[RecordColumns],
        inputs: MetricInputs,
        *,
        is_suite: bool,
        metrics: frozenset[str] | None = None,
    ) -> RecordTable:
        """Return the records of a run as arrays, together with other inputs of its metrics.

        Args:
            parts: The records of each part. Those of a whole suite may not fit into memory together.
            inputs: Earlier corrections.
            is_suite: True for the result of a suite, False for that of a single config.
            metrics: Names of the metrics that are needed; None for all.

        Raises:
            DataError: a stored correction does not fit the records.
        """

    def table(self, records: Sequence[Any]) -> RecordTable:
        """Return the records of a config as arrays."""
        from evaluators.metric import NO_INPUTS
        from schemas.files.record_columns import RecordColumns

        return self.table_of_parts([RecordColumns.of(records)], NO_INPUTS, is_suite=False)

    def fitted_corrections(self, parts: Iterable[RecordColumns], inputs: MetricInputs) -> tuple[FittedCorrection, ...]:
        """Return the corrections of the table of some parts, without the rest of it; by default there are none."""
        return ()


def table_of(
    task: Task,
    parts: Iterable[RecordColumns],
    inputs: MetricInputs,
    *,
    is_suite: bool,
    metrics: frozenset[str] | None = None,
) -> RecordTable:
    """Return the records of a run as arrays; the arguments are those of :meth:`MeasuresParts.table_of_parts`."""
    from schemas.files.record_columns import RecordColumns

    if isinstance(task, MeasuresParts):
        return task.table_of_parts(parts, inputs, is_suite=is_suite, metrics=metrics)
    records = RecordColumns.joined(parts)
    return task.scored_table(records, inputs.scores) if isinstance(task, ReadsScores) else task.table(records)


class ReportsLabels(Task):
    """A task whose items have labels, with reports on the pages of how a model uses those of a part."""

    @abstractmethod
    def part_report(self, records: RecordColumns) -> PartReport:
        """Return how the model uses the labels of a part, from all its records."""

    @abstractmethod
    def part_text(self, item: Any) -> str:
        """Return the text that all items of a part share, such as the instruction, given any of them."""

    def class_report(self, records: RecordColumns, inputs: MetricInputs) -> ClassReport | None:
        """Return how often the model is right in each class of one config; None if the task knows no such classes."""
        return None


class LabelUse(NamedTuple):
    """A label of a part, and how often a model chooses it."""

    name: str
    n_right: int
    """Number of evaluated items whose right label it is."""
    predicted_share: float | None
    """Share of the evaluated answers that choose it; ties are split. None if there are no answers."""
    prior: float | None
    """Mean probability of the label over items among which all labels are right equally often; None if unknown."""


class PartReport(NamedTuple):
    """The labels of a part, how a model uses them, and facts about the part."""

    groups: Mapping[str, str]
    """Facts about the part that all of its items share, by name."""
    labels: tuple[LabelUse, ...]
    are_same: bool
    """True if all items offer the same labels; False if each has its own, which are then texts of the items."""
    why_no_share: str | None
    """Reason why the predicted shares are unknown; None if they are known."""
    why_no_prior: str | None
    """Reason why the priors are unknown; None if they are known."""


class ClassAccuracy(NamedTuple):
    """How often a model is right among the items of one class."""

    n_items: int
    """Number of the class's items with a reading."""
    value: float | None
    """Share of them that is right, ties split; None if there are none."""
    low: float | None
    """Lower end of its 95 % interval; None if there is no interval."""
    high: float | None


class CorrectedClasses(NamedTuple):
    """The accuracies of all classes under one correction of the model's probabilities, or under none."""

    label: str
    """Heading of the correction."""
    title: str
    """Its full name."""
    accuracies: tuple[ClassAccuracy, ...]
    """Accuracy of each class; empty if there is no such correction."""
    metrics: tuple[str, ...]
    """Names of the metrics of ``ClassReport.measures`` under the correction."""
    reason: str | None
    """Reason why there is no such correction; None if there is one."""


class ClassReport(NamedTuple):
    """How often a model is right in each class of a task, before and after each correction."""

    labels: tuple[str, ...]
    columns: tuple[CorrectedClasses, ...]
    """The corrections, of which the first is none."""
    measures: tuple[str, ...]
    """Headings of measures over the classes that belong beside the accuracies."""
