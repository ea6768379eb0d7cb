"""What a backend is: the one place where a model is called.

A file in ``evaluators/backends`` is a backend. It holds

* ``open_backend(model, options)``, which checks what it is given and returns a :class:`Backend`;
* ``SUMMARY``, one line for ``python -m evaluators list``;
* ``MODELS``, the model ids that it knows by name (empty if any id will do).

Errors of a backend are those of :mod:`schemas.errors`: a ``ConfigError`` before the first request for a model or option
that cannot work, a ``RunError`` for a fault that no further request would survive. What goes wrong with one request is
a :class:`Response` with the status *failed*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, Protocol, TypeAlias

from schemas import plugins, strict_json
from schemas.errors import ConfigError
from schemas.record import ExchangeStatus
from schemas.result import Model

Capability: TypeAlias = Literal["option_logprobs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A context and its options; the answer is one log-probability per option."""

    prompt: str
    options: tuple[str, ...]
    """Continuations of the prompt, leading space included."""
    outcomes: tuple[str, ...]
    """What each option stands for."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What is known of the item. No model sees it: only baselines, which need no model to know the answer, read it."""

    def sha256(self) -> str:
        """Hash of what a model is asked; the facts are no part of it."""
        return strict_json.sha256({"kind": "choice", "prompt": self.prompt, "options": list(self.options)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back. Tuples have one entry per option; log-probabilities are in nats."""

    status: ExchangeStatus
    option_logprobs: tuple[float | None, ...] = ()
    """Sum over the option's tokens; -inf is a probability of zero, None was not returned."""
    option_end_logprobs: tuple[float | None, ...] = ()
    option_token_counts: tuple[int | None, ...] = ()
    n_moved_tokens: int | None = None
    """Last tokens of the context that are scored with every option, because the tokenizer merges them with one."""
    n_prompt_tokens: int | None = None
    n_completion_tokens: int | None = None
    finish_reason: str | None = None
    error: str | None = None
    """Why there is no answer; None if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """Options of the command line that concern a backend; None is the backend's own choice."""

    name: str | None = None
    """What to call the model in results, where the id that loads it is a path."""
    revision: str | None = None
    dtype: str | None = None
    device: str | None = None
    batch_tokens: int | None = None

    def refuse_others(self, backend: str, *, but: Sequence[str] = ()) -> None:
        """Refuse options that a backend would ignore.

        Raises:
            ConfigError: an option is set that is not in ``but``.
        """
        for option in fields(self):
            if option.name not in but and getattr(self, option.name) is not None:
                name = option.name.replace("_", "-")
                raise ConfigError(f"backend '{backend}' has no use for --{name}; leave it out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Where a backend computes."""

    device: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)


class Backend(Protocol):
    """A model that can be asked."""

    @property
    def model(self) -> Model:
        """Who answers; its identity is part of every store key."""

    @property
    def runtime(self) -> Runtime:
        """Where it computes, for the result."""

    @property
    def arguments(self) -> Sequence[str]:
        """Options that open the same model again, such as ``--model gpt2``; no path of this machine."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do; checked before the first request."""

    @property
    def reads_facts(self) -> bool:
        """Whether answers depend on ``Request.facts``, which then become part of the store key."""

    def plan(self, requests: Sequence[Request]) -> Sequence[Sequence[int]]:
        """Batches of indices into ``requests``, each index once.

        The plan depends on the requests alone, never on what is already answered: a resumed run forms the same batches,
        and so gets the same last bits.
        """

    def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Answer one batch, in its order."""


def model_identity(fields_of_model: Mapping[str, str | None]) -> str:
    """Hash of everything about a model that can change an answer."""
    return strict_json.sha256(dict(fields_of_model))


def open_backend(name: str, model: str, options: BackendOptions) -> Backend:
    """Open a backend by name.

    Raises:
        ConfigError: there is no such backend, or it refuses the model or an option.
        MissingExtraError: its library is not installed.
    """
    backend: Backend = plugins.load("evaluators.backends", name, kind="backend").open_backend(model, options)
    return backend
