"""What commands print with ``--format json``: one document in place of lines for people."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import typer
from annotated_types import Ge

from schemas.documents.base import Count, Document, Name, Sha256, Text
from schemas.documents.board import Rerun
from schemas.documents.model_facts import ModelId
from schemas.documents.result import Counts, Metric, Usage

ListedKind: TypeAlias = Literal[
    "benchmark",
    "baseline",
    "index",
    "backend",
    "scorer",
    "kind",
    "harness",
    "calibration",
    "item shape",
    "pages",
    "format",
    "task",
    "prompt",
    "metric",
]
VerdictState: TypeAlias = Literal["accepted", "accepted with warnings", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry(Document):
    """A plug-in, or something that one defines."""

    kind: ListedKind
    """``kind`` is a kind of scores that a scorer gives."""
    name: Text
    of: Text | None = None
    """Name of the plug-in that defines it; None for a plug-in."""
    version: Text | None = None
    """Version of a task or metric."""
    description: Text | None = None
    extra: Text | None = None
    """Extra of the installation that a backend needs."""
    item_shape: Text | None = None
    """Shape of the items that a task asks about."""
    requires: Text | None = None
    """What a backend must be able to do for a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Document):
    """The outcome of ``list``."""

    schema_file = "schemas/outputs/listing.schema.json"

    entries: tuple[ListedEntry, ...]
    """Without a kind, the names of all plug-ins and nothing else about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation(Document):
    """The outcome of ``validate``."""

    schema_file = "schemas/outputs/validation.schema.json"

    n_checked: Count
    """Number of datasets, runs and single files that were checked."""
    problem_lines: tuple[str, ...]
    has_more: bool
    """True if there are more problems than ``--limit`` allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun(Document):
    """A run and what its result says."""

    folder: Text
    status: Literal["finished", "unreadable"]
    """``unreadable`` if none of the model's answers could be read."""
    model: ModelId
    benchmark: Name
    dataset: Name
    dataset_version: Text
    config: Name
    task: Name
    prompt: Name
    signature: Text
    signature_sha256: Sha256
    counts: Counts
    metrics: tuple[Metric, ...]
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRuns(Document):
    """The runs of a command. If one could not finish, those before it are here."""

    schema_file = "schemas/outputs/finished_runs.schema.json"

    runs: tuple[FinishedRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate(Document):
    """What one model would be asked on one config or suite."""

    model: Text
    dataset: Name
    config: Name
    prompt: Name
    n_items: Count
    n_requests: Count
    n_distinct_requests: Count
    n_answered: Count | None
    """Number of requests that earlier runs have answered; None if unknown, and then all are to be sent."""
    n_to_ask: Count
    n_prompt_tokens: Count | None
    n_prompt_tokens_at_most: Count | None
    """Upper bound, from the bytes of the prompts or the longest answers that some hold; None if the number is known."""
    n_completion_tokens: Count | None
    """Largest number of tokens to be generated."""
    cost_usd: Annotated[float, Ge(0)] | None
    """Highest cost in US dollars; None if no price is known."""
    store_bytes: Count | None
    seconds_left: Annotated[float, Ge(0)] | None
    """Time that the requests would take at the pace of earlier answers; None if there are none."""
    n_timed_answers: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimates(Document):
    """What a dry run estimates; nothing was asked."""

    schema_file = "schemas/outputs/run_estimates.schema.json"

    runs: tuple[RunEstimate, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Document):
    """The outcome of the verification of one result."""

    place: str
    """Folder of the result as the user named it, which may hold any characters."""
    state: VerdictState = "accepted"
    """It follows from the reason and the warnings, whatever is given."""
    reason: Text | None = None
    """Reason why the result is rejected."""
    warnings: tuple[str, ...] = ()
    """What readers of an accepted result should know."""
    likenesses: tuple[str, ...] = ()
    """Results of other models that it is like, for a maintainer to judge: nobody else is told before that."""
    belongs: Text | None = None
    """Folder of the result, relative to the folder of all accepted results; None if it is rejected."""
    model: Text | None = None
    """Id of the model, with its revision and precision."""
    signature: Text | None = None
    provenance: Text | None = None
    is_limited: bool = False
    """True if only some of the items were asked, so that the result gets no rank."""
    records_sha256: Sha256 | None = None
    result_sha256: Sha256 | None = None
    rerun: Rerun | None = None
    """Comparison with answers that the model gave again; None if it was not asked."""
    scorers_taken: tuple[str, ...] = ()
    """Labels of the text scorers whose scores were taken as stored."""
    scores_compared: bool = False
    """True if all of these scored some of the texts again, and gave the stored scores."""
    texts_compared: bool = False
    """True if the result was made again from its texts, which are kept elsewhere."""

    def __post_init__(self) -> None:
        state: VerdictState = "accepted with warnings" if self.warnings else "accepted"
        object.__setattr__(self, "state", state if self.reason is None else "rejected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts(Document):
    """The outcome of ``verify``, and the file that ``verify --report`` writes."""

    schema_file = "schemas/outputs/verdicts.schema.json"

    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkCounts(Document):
    """What a board shows of one benchmark."""

    benchmark: Name
    n_models: Count
    n_ranked: Count
    """Number of the models that have a rank in some table."""
    n_baselines: Count
    n_tables: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside(Document):
    """A result that no table of a board shows."""

    place: str
    """Folder of the result below that of all results, or its ``result.json``."""
    reason: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnResults(Document):
    """Where a board shows the runs of whoever built it on one dataset."""

    dataset: Text
    version: Text
    page: Text
    """Path of the page of the first table with such a run, with the anchor of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltBoard(Document):
    """A board that was built."""

    schema_file = "schemas/outputs/built_board.schema.json"

    site: Text
    """Folder of the finished site."""
    is_new: bool
    """False if nothing has changed since the last build."""
    n_results: Count
    benchmarks: tuple[BenchmarkCounts, ...]
    left_out: tuple[SetAside, ...]
    """Invalid results, which the audit page lists."""
    apart: tuple[SetAside, ...]
    """Results on questions that the board does not know."""
    repeated: tuple[SetAside, ...]
    """Runs of one's own that are not shown, because an accepted result of the same model is."""
    own: tuple[OwnResults, ...]
    """Runs of one's own that are shown, by dataset and version."""
    next: Text
    """Command that shows the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFiles(Document):
    """The outcome of ``publish``: what a repository of the Hub holds, or in a dry run would hold."""

    schema_file = "schemas/outputs/published_files.schema.json"

    repo: Text
    title: Text
    is_dry_run: bool
    is_sent: bool
    """True if this command made a commit, a tag or a pull request."""
    is_pull_request: bool
    commit: Text | None
    """Commit of the main branch that holds the files; None if none does."""
    tag: Text | None
    """Tag of that commit; None for none."""
    address: Text | None
    """Address of the commit, or else of the open pull request; None before there is any."""
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]
    deleted: tuple[str, ...]


class Printed(NamedTuple):
    """What a command returns that can fail although it has a document to print."""

    document: Document
    status: int = 0
    """Exit status, if no error is raised."""
    error: BaseException | None = None
    """Raised after the document was printed."""


def with_format(
    *documents: type[Document], others: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the option ``--format``, whose value ``json`` prints one document and nothing else.

    The command prints lines for people and returns a document, or an :class:`Printed`. As JSON, its lines go to
    standard error, and the document to standard output. An error is a line on standard error in both forms.

    Args:
        documents: The kinds of documents that the command returns.
        others: Further values of the option. A command that has them takes the value as its parameter ``output``.
    """
    schemas = " or ".join(PurePosixPath(document.schema_file).name for document in documents)
    choices: Any = Literal[("text", "json", *others)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command, eval_str=True)
        takes_output = "output" in signature.parameters

        @functools.wraps(command)
        def wrapped(*args: Any, output: str = "text", **values: Any) -> Document | None:
            if takes_output:
                values["output"] = output
            if output != "json":
                return _ended(command(*args, **values))
            stdout = sys.stdout
            with redirect_stdout(sys.stderr):
                returned = command(*args, **values)
            document = returned.document if isinstance(returned, Printed) else returned
            print(as_json(document), end="", file=stdout, flush=True)
            return _ended(returned)

        option = typer.Option("--format", help=f"Lines for people, or one JSON document ({schemas}).")
        parameter = inspect.Parameter(
            "output", inspect.Parameter.KEYWORD_ONLY, default="text", annotation=Annotated[choices, option]
        )
        own = [each for each in signature.parameters.values() if each.name != "output"]
        wrapped.__signature__ = signature.replace(parameters=[*own, parameter])  # type: ignore[attr-defined]
        return wrapped

    return decorate


def _ended(returned: Document | Printed | None) -> Document | None:
    if not isinstance(returned, Printed):
        return returned
    if returned.error is not None:
        raise returned.error
    if returned.status:
        raise typer.Exit(returned.status)
    return returned.document


def as_json(document: Document | None) -> str:
    """Return a document as JSON in ASCII alone, so that no name from a stranger's file acts on a terminal or page.

    That of a command that only listed something is null.
    """
    # Imported here because printing text does not need it.
    from schemas.files import contract

    return json.dumps(None if document is None else contract.dump(document), indent=2, allow_nan=False) + "\n"
