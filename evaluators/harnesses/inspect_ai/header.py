"""Types of the header of a log of inspect_ai, as far as it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from biasboard.ground.errors import DataError
from evaluators.harness import FACTS, validated
from evaluators.harnesses.inspect_ai.archive import AGAIN

VERSION = 2
"""Version of the format of logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of an evaluation."""

    epochs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The task and the model."""

    run_id: str
    task: str
    model: str
    config: Config
    model_args: dict[str, Any] = field(default_factory=dict)
    model_base_url: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A solver of the task."""

    solver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The solvers of the task and the settings of its calls."""

    steps: tuple[Step, ...]
    config: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header of a log."""

    version: int
    status: str
    eval: Spec
    plan: Plan


_HEADER = TypeAdapter(Header)


def read_header(value: object, where: str) -> Header:
    """Return the header of a log.

    Args:
        value: The header, or the whole log, as JSON.
        where: Name of the log, for error messages.

    Raises:
        DataError: the value is no header, or of a version that is not read.
    """
    version = value.get("version") if isinstance(value, dict) else None
    if version != VERSION:
        raise DataError(
            f"{where}: is a log of version {version!r}, and {VERSION} is read; convert it with inspect log convert"
        )
    return validated(_HEADER, value, where, AGAIN)


def facts_of(header: Header) -> object | None:
    """Return our facts in the metadata of the task; None if we did not export it."""
    return None if header.eval.metadata is None else header.eval.metadata.get(FACTS)


def check_asked_plainly(header: Header, facts: object, where: str) -> None:
    """Check that an evaluation is whole, and that its questions were asked as they are.

    Raises:
        DataError: it did not finish, or something was put around the questions.
    """
    if header.status != "success":
        raise DataError(
            f"{where}: the evaluation has the status '{header.status}', so that answers are missing; finish it with "
            "inspect eval-retry, and import the log that this writes"
        )
    solvers = [step.solver for step in header.plan.steps]
    if solvers != ["generate"]:
        raise DataError(f"{where}: asked with the solvers {solvers}; ask the exported task without --solver")
    exported = facts.get("epochs") if isinstance(facts, dict) else None
    if (header.eval.config.epochs or 1) != exported:
        raise DataError(
            f"{where}: asked in {header.eval.config.epochs or 1} epochs, and exported for {exported!r}; ask again "
            "without --epochs"
        )
