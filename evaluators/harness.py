"""The interface to another evaluation harness: it is given our questions, and its logs hold the answers.

Each file in ``evaluators/harnesses`` is a harness. It holds ``HARNESS``, an object that fits :class:`Harness`. Its name
is that of its file, with dashes for underscores. Nothing of the harness need be installed: files are exchanged with it.

An export carries the facts of :class:`Exported`, and a log gives them back. An import therefore knows which items were
asked and how, and refuses answers to anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from pydantic import TypeAdapter, ValidationError

from evaluators.backend import ChoiceRequest, Request, Runtime
from schemas import plugins
from schemas.errors import ConfigError, DataError
from schemas.result import Signature
from schemas.strict_json import JsonValue

_PACKAGE = "evaluators.harnesses"
FORMAT = "1"
"""Version of the facts that an export carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The facts by which an import knows what was asked."""

    format: str
    """Version of these facts, :data:`FORMAT`."""
    signature: Signature
    """Signature of the result that ``run`` would have written with the default normalisation."""
    limit: int | None
    """Largest number of items per config; None if there was no limit."""
    n_requests: int
    requests_sha256: str
    """SHA-256 of the ids and hashes of all requests, in order."""
    tokenizer_sha256: str | None = None
    """SHA-256 of the tokenizer for which borders between context and options were moved; None if none was moved."""

    def as_json(self) -> dict[str, JsonValue]:
        """Return the facts as JSON, as an export stores them."""
        signature: dict[str, JsonValue] = {
            name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self.signature).items()
        }
        return {
            "format": self.format,
            "signature": signature,
            "limit": self.limit,
            "n_requests": self.n_requests,
            "requests_sha256": self.requests_sha256,
            "tokenizer_sha256": self.tokenizer_sha256,
        }


_EXPORTED = TypeAdapter(Exported)


def exported_facts(value: object, where: str) -> Exported:
    """Return the facts that an export stored.

    Args:
        value: The facts as JSON.
        where: Name of the log, for the error message.

    Raises:
        DataError: the facts are of another version, or are none.
    """
    found = value.get("format") if isinstance(value, dict) else None
    if found != FORMAT:
        raise DataError(
            f"{where}: its task was exported in format {found!r}, and this version reads {FORMAT!r}; "
            "export and ask again"
        )
    try:
        return _EXPORTED.validate_python(value)
    except ValidationError as error:
        first: Any = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(f"{where}: {place} of the exported facts: {first['msg']}; export and ask again") from error


class Question(NamedTuple):
    """A request of an item, as it is exported."""

    id: str
    """Id of the item and number of its request; unique within a task."""
    request: Request
    """Request that our task makes."""
    shown: Request
    """The same request with the border between context and options where the tokenizer merges nothing across it."""
    target: int | None
    """Index of the right option; None if there is no right answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTask:
    """The questions about one config or suite under one prompt."""

    name: str
    """Name of the task in the harness, which is also a file name."""
    exported: Exported
    questions: Sequence[Question]
    n_left_out: int = 0
    """Number of further questions that the harness cannot ask, because the tokenizer leaves no border."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAnswer:
    """The answer to one question in a log, and the text that the log says was asked."""

    where: str
    """File and line or sample, for error messages."""
    question_id: str
    prompt: str
    options: tuple[str, ...]
    option_logprobs: tuple[float, ...]
    """Log-probability of each option in nats, at most 0; -inf for a probability of zero."""

    @property
    def asked(self) -> ChoiceRequest:
        """The request as it was asked."""
        return ChoiceRequest(prompt=self.prompt, options=self.options, outcomes=())


class OptionTokens(NamedTuple):
    """The numbers of tokens that a harness scored in one request."""

    counts: tuple[int, ...]
    """Number of tokens of each option, with those of the prompt that were moved to it."""
    n_moved: int
    """Number of last prompt tokens that were scored with each option."""


class AskedRequest(NamedTuple):
    """A request of our task, and the same with the border between context and options where it was asked."""

    request: ChoiceRequest
    asked: ChoiceRequest


CountTokens: TypeAlias = Callable[[Sequence[AskedRequest]], Sequence[OptionTokens | str]]
"""Function that returns the tokens of each request, or the reason why its log-probabilities are none of its options."""
MoveBorders: TypeAlias = Callable[[Sequence[ChoiceRequest]], Sequence[ChoiceRequest | None]]
"""Function that moves the borders of requests to where a tokenizer merges nothing across; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedModel:
    """The model as a log describes it, without paths of the machine that it ran on."""

    name: str
    """Name or Hub id by which the harness loaded the model."""
    revision: str | None
    """Commit on the Hub; None if the log does not say it."""
    precision: str | None
    identity: Mapping[str, str | None]
    """Everything about the model that the log tells and that can change an answer."""
    context_tokens: int | None
    """Largest number of tokens of a context and an option; None if unknown. Longer contexts lost their beginning."""
    end_id: int | None
    """Id of the end token of the tokenizer; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessLog:
    """The log of one exported task."""

    name: str
    """Name of the file."""
    exported: Exported
    answers: Sequence[LoggedAnswer]
    model: LoggedModel
    runtime: Runtime
    """Device, packages and settings of the harness."""
    doubt: str | None = None
    """Reason why the log is not as the harness wrote it, told if no answer by itself is wrong; None if it is."""


@dataclass(frozen=True, slots=True)
class FoundLogs:
    """The logs in a folder."""

    logs: Sequence[HarnessLog]
    left_out: Sequence[str] = field(default=())
    """Names of files with tasks that were not exported by us."""


class Harness(Protocol):
    """Another evaluation harness."""

    @property
    def name(self) -> str:
        """The name of the harness, as users type it."""

    @property
    def summary(self) -> str:
        """One line for ``python -m evaluators list``."""

    def write(self, tasks: Sequence[ExportedTask], folder: Path) -> None:
        """Write what the harness needs to ask the questions of some tasks.

        Args:
            tasks: The tasks, whose names differ.
            folder: An empty folder.

        Raises:
            ConfigError: the harness cannot ask a question so that its answer means the same.
        """

    def usage(self, tasks: Sequence[ExportedTask], folder: Path) -> str:
        """Return the command that asks a model the exported questions.

        Args:
            tasks: The tasks that were written.
            folder: The folder that they were written to.
        """

    def read(self, path: Path) -> FoundLogs:
        """Read the logs of one model.

        Args:
            path: A log, or a folder with logs.

        Raises:
            ConfigError: there is no log of a task that was exported by us.
            DataError: a log is damaged, or its tasks were asked in another way than they were exported.
        """

    def as_scored(self, request: ChoiceRequest) -> ChoiceRequest:
        """Return a request with the border between context and options where the harness puts it."""


def harness_names() -> tuple[str, ...]:
    """Return the names of all harnesses, sorted."""
    return tuple(name.replace("_", "-") for name in plugins.names(_PACKAGE))


def load_harness(name: str) -> Harness:
    """Return the harness of a name.

    Raises:
        ConfigError: there is no such harness.
    """
    if name not in harness_names():
        raise ConfigError(f"harness '{name}' does not exist; have: {', '.join(harness_names())}")
    harness: Harness = plugins.load(_PACKAGE, name.replace("-", "_"), kind="harness", defines="HARNESS").HARNESS
    return harness
