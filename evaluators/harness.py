"""The interface to another evaluation harness: it is given our questions, and its logs hold the answers.

Each file in ``evaluators/harnesses`` is a harness. It holds ``HARNESS``, an object of a class that extends
:class:`Harness`. Its name is that of its file, with dashes for underscores. Nothing of the harness need be installed:
files are exchanged with it.

An export carries the facts of :class:`Exported`, and a log gives them back. An import therefore knows which items were
asked and how, and refuses answers to anything else.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.plugins import PlugIns
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import ChoiceRequest, Request, Response, Runtime
from evaluators.task import Prompt
from schemas.documents.result import Signature
from schemas.files import contract

HARNESSES = PlugIns("harnesses", "evaluators.harnesses", word="harness", defines="HARNESS")
FORMAT = "1"
"""Version of the facts that an export carries."""
FACTS = "biasboard"
"""Name of the facts in what a harness calls the metadata of a task."""
_T = TypeVar("_T")


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


_EXPORTED = TypeAdapter(Exported)


def exported_facts(value: object, where: str) -> Exported:
    """Return the facts that an export stored.

    Args:
        value: The facts as JSON.
        where: Name of the log, for the error message.

    Raises:
        DataError: the facts are of another version, or are none.
    """
    version = value.get("format") if isinstance(value, dict) else None
    if version != FORMAT:
        raise DataError(
            f"{where}: its task was exported in format {version!r}, and this version reads {FORMAT!r}; "
            "export and ask again"
        )
    return validated(_EXPORTED, value, f"{where}, the exported facts", "export and ask again")


def validated(adapter: TypeAdapter[_T], value: object, where: str, remedy: str) -> _T:
    """Return a part of a log as the type that it must have.

    Args:
        adapter: The type.
        value: The part as JSON.
        where: Place of the part, for the error message.
        remedy: The way out, for the error message.

    Raises:
        DataError: a field is missing or has another type.
    """
    try:
        # A log is JSON, whose lists stand for tuples and whose objects stand for documents of ours.
        return adapter.validate_python(value, strict=False)
    except ValidationError as error:
        first: Any = error.errors()[0]
        field_name = ".".join(map(str, first["loc"]))
        raise DataError(f"{where}: {field_name + ': ' if field_name else ''}{first['msg']}; {remedy}") from error


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
    """The answer to one question in a log, with the request that the log says was sent."""

    where: str
    """File and line or sample, for error messages."""
    question_id: str
    asked: Request
    """Request as it was sent, as far as a log knows it: without outcomes, number of the sample and seed."""
    response: Response
    """Response without the tokens of options, which no log tells."""


class OptionTokens(NamedTuple):
    """The numbers of tokens that a harness scored in one request."""

    counts: tuple[int, ...]
    """Number of tokens of each option, with those of the prompt that were moved to it."""
    n_moved: int
    """Number of last prompt tokens that were scored with each option."""


class AskedRequest(NamedTuple):
    """A request of our task, and what a log says was asked for it."""

    request: ChoiceRequest
    asked: ChoiceRequest
    """The same texts, perhaps with another border between context and options."""


CountOptionTokens: TypeAlias = Callable[[Sequence[AskedRequest]], Sequence[OptionTokens | str]]
"""Function that returns the tokens of each request, or the reason why its log-probabilities are none of its options."""
MoveBorders: TypeAlias = Callable[[Sequence[ChoiceRequest]], Sequence[ChoiceRequest | None]]
"""Function that moves the borders of requests to where a tokenizer merges nothing across; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessLog:
    """The log of one exported task."""

    name: str
    """Name of the file."""
    task: str
    """Name of the task in the harness."""
    exported: Exported
    answers: Sequence[LoggedAnswer]
    identity: Mapping[str, str | None]
    """Everything about the model that the log tells and that can change an answer, without paths of the machine that it
    ran on. ``commit`` is its commit on the Hub and ``precision`` its data type; None if the log does not say it."""
    runtime: Runtime
    """Device, packages and settings of the harness."""
    context_tokens: int | None = None
    """Largest number of tokens of a context and an option; None if unknown. Longer contexts lost their beginning."""
    end_id: int | None = None
    """Id of the end token of the tokenizer; None if unknown."""
    doubt: str | None = None
    """Why the log cannot be as the harness wrote it, although no single answer is wrong; None if nothing says so. An
    answer that is wrong by itself is reported instead."""
    remarks: Sequence[str] = ()
    """Sentences about how the harness asks that whoever imports the log should know."""


class Harness(ABC):
    """Another evaluation harness."""

    if TYPE_CHECKING:
        # Fields or properties of a harness, for the reason that evaluators.backend.Backend gives.
        @property
        def name(self) -> str:
            """The name of the harness, as users type it."""

        @property
        def summary(self) -> str:
            """One line for ``python -m evaluators list``."""

        @property
        def how_to_ask(self) -> str:
            """The command that writes logs into a FOLDER, for error messages."""

        @property
        def log_names(self) -> str:
            """What a log is called, for error messages: ``file samples_TASK_TIME.jsonl``."""

        @property
        def scores_options(self) -> bool:
            """True if it scores options, for which :meth:`as_scored` says where they begin."""

    else:
        scores_options = False

    @abstractmethod
    def obstacle(self, prompt: Prompt) -> str | None:
        """Return why the harness cannot ask with a prompt so that its answers mean the same; None if it can."""

    @abstractmethod
    def write_task(self, task: ExportedTask, folder: Path) -> dict[str, JsonValue]:
        """Write what the harness needs to ask the questions of a task, and return the facts that its logs give back.

        Args:
            task: The task, whose name no other task in the folder has.
            folder: The folder of the export.

        Raises:
            ConfigError: the harness cannot ask a question so that its answer means the same.
        """

    @abstractmethod
    def usage(self, tasks: Sequence[ExportedTask], folder: Path) -> str:
        """Return the command that asks a model the exported questions.

        Args:
            tasks: The tasks that were written.
            folder: The folder that they were written to.
        """

    @abstractmethod
    def is_log(self, path: Path) -> bool:
        """Return True if a file in a folder of logs has the name of one."""

    @abstractmethod
    def read_log(self, path: Path) -> HarnessLog | None:
        """Read a log; None if its task was not exported by us.

        Raises:
            ConfigError: the file is no log.
            DataError: the log is damaged, or its task was asked in another way than it was exported.
        """

    def as_scored(self, request: ChoiceRequest) -> ChoiceRequest:
        """Return a request with the border between context and options where the harness puts it; by default, ours."""
        return request

    def write(self, tasks: Sequence[ExportedTask], folder: Path) -> None:
        """Write what the harness needs to ask the questions of some tasks, and a manifest with the facts of each.

        Args:
            tasks: The tasks, whose names differ.
            folder: An empty folder.

        Raises:
            ConfigError: the harness cannot ask a question so that its answer means the same.
        """
        facts: dict[str, JsonValue] = {task.name: self.write_task(task, folder) for task in tasks}
        strict_json.write(folder / "biasboard.json", {"harness": self.name, "tasks": facts})

    def read(self, path: Path) -> tuple[list[HarnessLog], list[str]]:
        """Return the logs of one model, and the names of those whose tasks were not exported by us.

        Args:
            path: A log, or a folder with logs.

        Raises:
            ConfigError: there is no log of a task that was exported by us, a task has several logs, or the logs need
                not be of one model.
            DataError: a log is damaged, or its task was asked in another way than it was exported.
        """
        if not path.exists():
            raise ConfigError(
                f"--input {path}: no such file or folder; ask with {self.how_to_ask}, and name what it wrote"
            )
        files = [file for file in sorted(path.rglob("*")) if self.is_log(file)] if path.is_dir() else [path]
        if not files:
            raise ConfigError(f"--input {path}: no {self.log_names} here; ask with {self.how_to_ask}")
        logs, left_out = [], []
        for file in files:
            log = self.read_log(file)
            if log is None:
                left_out.append(file.name)
            else:
                logs.append(log)
        if not logs:
            raise ConfigError(
                f"{path}: {left_out[0]} is the log of a task that biasboard did not export, so that its items are not "
                f"ours; export the questions with biasboard questions {self.name}, and ask those"
            )
        _check_one_model(path, logs)
        return logs, left_out


def _check_one_model(path: Path, logs: Sequence[HarnessLog]) -> None:
    """Check that the logs in a place that the user named are of one model and of different tasks."""
    names = defaultdict(list)
    for log in logs:
        names[log.task].append(log.name)
    for task, of_task in names.items():
        if len(of_task) > 1:
            raise ConfigError(f"--input {path}: several logs of task {task}: {', '.join(of_task)}; name one of them")
    first = logs[0]
    for log in logs:
        if log.identity != first.identity:
            raise ConfigError(
                f"--input {path}: {first.name} and {log.name} need not be of one model, since their evaluations "
                "differ; name one of the files"
            )


def harness_names() -> tuple[str, ...]:
    """Return the names of all harnesses, sorted."""
    return tuple(name.replace("_", "-") for name in HARNESSES.names())


def load_harness(name: str) -> Harness:
    """Return the harness of a name.

    Raises:
        ConfigError: there is no such harness.
    """
    if name not in harness_names():
        raise ConfigError(f"harness '{name}' does not exist; have: {', '.join(harness_names())}")
    harness: Harness = HARNESSES.get(name.replace("-", "_"))
    return harness


def write_questions(task: ExportedTask, rows: Iterable[Mapping[str, JsonValue]], folder: Path) -> dict[str, JsonValue]:
    """Write the questions of a task as JSON lines, and return its facts with the name and the hash of the file.

    Args:
        task: The task, which names the file.
        rows: The questions in the form of the harness.
        folder: The folder of the export.
    """
    path = folder / f"{task.name}.jsonl"
    with path.open("w", encoding="ascii", newline="\n") as file:
        for row in rows:
            # Escaped, because a text may hold characters that some readers take for the end of a line.
            file.write(json.dumps(row, allow_nan=False) + "\n")
    facts = cast(dict[str, JsonValue], contract.plain(asdict(task.exported)))
    return {**facts, "file": path.name, "file_sha256": sha256_file(path)}


def precision_of(dtype: object) -> str | None:
    """Return the data type of a model as results name it; None for one that they do not know, such as ``auto``."""
    name = str(dtype or "").removeprefix("torch.")
    return name if name in ("float32", "float16", "bfloat16", "float64") else None


def argument_fields(shown: Mapping[str, str], hidden: Mapping[str, str]) -> dict[str, str | None]:
    """Return the arguments of a model as two fields of its identity.

    Args:
        shown: The arguments that results may show, without paths.
        hidden: The others, which may be keys or addresses, so that only their hash is kept.
    """
    return {
        "arguments": ",".join(f"{name}={without_path(value)}" for name, value in shown.items()) or None,
        "other_arguments": strict_json.sha256(dict(hidden)) if hidden else None,
    }


def without_path(name: str) -> str:
    """Return the name of a folder without its path, and a Hub id as it is.

    >>> without_path("/home/me/models/mine"), without_path("org/name"), without_path("runs/mine/last")
    ('mine', 'org/name', 'last')
    """
    is_path = name.startswith((".", "~", "/")) or "\\" in name or name.count("/") > 1
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1] if is_path else name
