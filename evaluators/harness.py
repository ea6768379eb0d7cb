"""The interface to another evaluation harness: it asks our questions, and its logs hold the answers.

Each file in ``evaluators/harnesses`` is a harness. It holds ``HARNESS``, a :class:`Harness`, whose name is that of the
file with dashes for underscores. The harness need not be installed: only files are exchanged with it.

An export carries the facts of :class:`Exported`, and the log repeats them. An import therefore knows which items were
asked and how, and refuses answers to anything else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.kinds import HARNESSES
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import ChoiceRequest, Request, Response, Runtime
from schemas.documents.result import Signature
from schemas.files import contract

FORMAT = "1"
"""Version of the facts that an export carries."""
FACTS = "biasboard"
"""Key of these facts in the metadata of a task."""
_COMMIT = re.compile("[0-9a-f]{40}")
_ADAPTING = re.compile("adapter|delta|lora|peft|steer")
"""What names of arguments contain that put other weights onto those of a model."""
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
    """SHA-256 of the tokenizer for which the borders between context and options were moved; None if they were not."""


def exported_facts(value: object, where: str) -> Exported:
    """Return the facts that an export stored.

    Raises:
        DataError: the facts are missing or of another version.
    """
    version = value.get("format") if isinstance(value, dict) else None
    if version != FORMAT:
        raise DataError(
            f"{where}: its task was exported in format {version!r}, and this version reads {FORMAT!r}; "
            "export and ask again"
        )
    return validated(Exported, value, f"{where}, the exported facts", "export and ask again")


def validated(of: Callable[..., _T], value: object, where: str, remedy: str) -> _T:
    """Return a part of a log, converted to the required type.

    Raises:
        DataError: a field is missing or has another type.
    """
    try:
        # Not strict: in JSON, our tuples are lists and our documents are objects.
        converted: _T = _adapter_of(of).validate_python(value, strict=False)
        return converted
    except ValidationError as error:
        first: Any = error.errors()[0]
        field_name = ".".join(map(str, first["loc"]))
        raise DataError(f"{where}: {field_name + ': ' if field_name else ''}{first['msg']}; {remedy}") from error


_adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


class ExportedQuestion(NamedTuple):
    """A request of an item, as it is exported."""

    id: str
    """Id of the item and number of its request; unique within a task."""
    request: Request
    """Request that our task makes."""
    shown: Request | None
    """The same request, with the border between context and options moved to where the tokenizer merges nothing across
    it; None if it merges across every border, so that the question is left out."""
    target: int | None
    """Index of the right option; None if there is no right answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTask:
    """The questions about one config or suite under one prompt."""

    name: str
    """Name of the task in the harness, which is also a file name."""
    exported: Exported
    questions: Sequence[ExportedQuestion]
    n_left_out: int = 0
    """Number of questions left out because the tokenizer merges across every possible border."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedAnswer:
    """The answer to one question in a log, with the request that the log records."""

    where: str
    """File and line or sample, for error messages."""
    question_id: str
    asked: Request
    """Request as it was sent. Logs lack its outcomes, sample number and seed."""
    response: Response
    """Response without the token counts of options, which no log holds."""


class OptionTokens(NamedTuple):
    """The numbers of tokens that a harness scored in one request."""

    counts: tuple[int, ...]
    """Number of tokens of each option, including prompt tokens that were moved to it."""
    n_moved: int
    """Number of last prompt tokens that were scored with each option."""


AsScored: TypeAlias = Callable[[ChoiceRequest], ChoiceRequest]
"""Function that moves the border between context and options of a request to where a harness puts it."""
CountOptionTokens: TypeAlias = Callable[
    [Sequence[ChoiceRequest], Sequence[ChoiceRequest]], Sequence[OptionTokens | str]
]
"""Function of requests of our task and of what a log records for each, perhaps with another border: it counts the
tokens of each, or says why its log-probabilities are not those of its options."""
MoveBorders: TypeAlias = Callable[[Sequence[ChoiceRequest]], Sequence[ChoiceRequest | None]]
"""Function that moves the borders of requests to where a tokenizer merges nothing across; None if nowhere."""


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
    """Everything in the log about the model that can change an answer, without paths of the machine that it ran on.
    ``commit`` is its commit on the Hub and ``precision`` its data type; each is None if the log lacks it."""
    runtime: Runtime
    """Device, packages and settings of the harness."""
    context_tokens: int | None = None
    """Largest number of tokens of context and option together, beyond which contexts were cut at the start; None if
    unknown."""
    end_id: int | None = None
    """Id of the end token of the tokenizer; None if unknown."""
    doubt: str | None = None
    """Sign that the log was altered after the harness wrote it, which no single answer shows; None if there is none. A
    wrong answer is reported by itself."""
    missing: str = "the log has no answer to it"
    """Reason of the records of questions that are not answered."""
    remarks: Sequence[str] = ()
    """Sentences about how the harness asks, for whoever imports the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """Another evaluation harness: what it can ask, a function that writes tasks for it, and one that reads its logs."""

    name: str
    """Name of its file, as users type it."""
    summary: str
    """One line for ``python -m evaluators list``."""
    how_to_ask: str
    """The command that writes logs into a FOLDER, for error messages."""
    log_form: str
    """The form of a log's name, for error messages: ``file samples_TASK_TIME.jsonl``."""
    log_name: re.Pattern[str]
    """What the name of a log looks like in a folder that may hold other files."""
    write_tasks: Callable[[Sequence[ExportedTask], Path], str]
    """Function that writes tasks, which have distinct names, into an empty folder, with the facts that their logs are
    to repeat; it returns the command that asks them, and raises ConfigError if a question cannot be asked so that its
    answer means the same."""
    read_log: Callable[[Path], HarnessLog | None]
    """Function that reads a log; None if its task was not exported by us. It raises ConfigError if the file is no log,
    and DataError if the log is damaged or its task was not asked as it was exported."""
    as_scored: AsScored | None = None
    """None if it scores no options."""
    no_options: str | None = None
    """Why a prompt that scores options cannot be asked, in words that follow its name and "which"; None if it can."""
    no_texts: str | None = None
    """The same of a prompt that is answered in text."""
    no_continuations: str | None = None
    """The same of one whose text is to be continued, and makes no sense as a message."""

    def check_tokenizer(self, name: str | None) -> None:
        """Check that the model's tokenizer is named if the harness scores options, and only then.

        Without it nobody knows whether the log-probabilities are those of the options, and metrics of others look as
        good as any.

        Args:
            name: Folder or Hub id of the tokenizer; None if none was given.

        Raises:
            ConfigError: it is missing, or of no use.
        """
        if name is None and self.as_scored is not None:
            raise ConfigError(
                f"--tokenizer: {self.name} leaves tokens out of an option where the tokenizer merges them with the "
                "context; give the folder or Hub id of the model's tokenizer, so that this is checked"
            )
        if name is not None and self.as_scored is None:
            raise ConfigError(f"--tokenizer: {self.name} scores no options, whose tokens it would count; leave it out")

    def read(self, path: Path) -> tuple[list[HarnessLog], list[str]]:
        """Return the logs of one model, and the names of those whose tasks were not exported by us.

        The path is that of a log or of a folder with logs.

        Raises:
            ConfigError: there is no log of a task that was exported by us, a task has several logs, or the logs may be
                of different models.
            DataError: a log is damaged, or its task was not asked as it was exported.
        """
        where = f"--input {path}"
        if not path.exists():
            raise ConfigError(f"{where}: no such file or folder; ask with {self.how_to_ask}, and name what it wrote")
        files = [path]
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if self.log_name.fullmatch(file.name)]
        if not files:
            raise ConfigError(f"{where}: no {self.log_form} here; ask with {self.how_to_ask}")
        found = [(file.name, self.read_log(file)) for file in files]
        logs = [log for _, log in found if log is not None]
        left_out = [name for name, log in found if log is None]
        if not logs:
            raise ConfigError(
                f"{path}: {left_out[0]} is the log of a task that biasboard did not export, so that its items are not "
                f"ours; export the questions with biasboard questions {self.name}, and ask those"
            )
        for task, n in Counter(log.task for log in logs).items():
            if n > 1:
                names = ", ".join(log.name for log in logs if log.task == task)
                raise ConfigError(f"{where}: several logs of task {task}: {names}; name one of them")
        for log in logs:
            if log.identity != logs[0].identity:
                raise ConfigError(
                    f"{where}: {logs[0].name} and {log.name} need not be of one model, since their evaluations differ; "
                    "name one of the files"
                )
        return logs, left_out


def load_harness(name: str) -> Harness:
    """Return a harness by name.

    Raises:
        ConfigError: there is no such harness.
    """
    harness: Harness = HARNESSES.get(name, Harness)
    return harness


def write_questions(task: ExportedTask, rows: Iterable[Mapping[str, JsonValue]], folder: Path) -> dict[str, JsonValue]:
    """Write the questions of a task as JSON lines; return its facts with the name and hash of the file."""
    path = folder / f"{task.name}.jsonl"
    with path.open("w", encoding="ascii", newline="\n") as file:
        for row in rows:
            # ASCII only: some readers end a line at characters such as U+2028.
            file.write(json.dumps(row, allow_nan=False) + "\n")
    facts = cast(dict[str, JsonValue], contract.plain(asdict(task.exported)))
    return {**facts, "file": path.name, "file_sha256": sha256_file(path)}


def write_manifest(harness: Harness, facts: Mapping[str, JsonValue], folder: Path) -> None:
    """Write which harness a folder is for, and the facts of each task by its name."""
    strict_json.write(folder / "biasboard.json", {"harness": harness.name, "tasks": dict(facts)})


def commit_of_weights(commit: object, arguments: Iterable[str]) -> str | None:
    """Return the commit of the weights that answered; None if it is unknown, or of the weights below an adapter.

    ``commit`` is what a log has for it, and the arguments are the names of those with which the model was loaded.
    """
    if not isinstance(commit, str) or _COMMIT.fullmatch(commit) is None:
        return None
    return None if any(map(_ADAPTING.search, arguments)) else commit


def precision_of(dtype: object) -> str | None:
    """Return the data type of a model as results name it; None for any other value, such as ``auto``."""
    name = str(dtype or "").removeprefix("torch.")
    return name if name in ("float32", "float16", "bfloat16", "float64") else None


def argument_fields(shown: Mapping[str, str], hidden: Mapping[str, str]) -> dict[str, str | None]:
    """Return the arguments of a model as two fields of its identity.

    Those that results may not show may be keys or addresses, of which only the hash is kept.
    """
    return {
        "arguments": ",".join(f"{name}={without_path(value)}" for name, value in shown.items()) or None,
        "other_arguments": strict_json.sha256(dict(hidden)) if hidden else None,
    }


def without_path(name: str) -> str:
    """Return the name of a folder without its path, and a Hub id as it is.

    >>> without_path("/home/me/models/mine"), without_path("org/name"), without_path("https://host/name?key=1")
    ('mine', 'org/name', 'name')
    """
    name = name.partition("?")[0]  # Of an address, what follows may be a key.
    is_path = name.startswith((".", "~", "/")) or "\\" in name or name.count("/") > 1
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1] if is_path else name
