"""What a backend is: the one place where a model is called.

A file in ``evaluators/backends`` is a backend. It holds

* ``open_backend(model, options)``, which checks what it is given and returns a :class:`Backend`;
* ``SUMMARY``, one line for ``python -m evaluators list``;
* ``EXTRA``, the name of the extra that installs its library, or None;
* ``MODELS``, the model ids that it knows by name (empty if any id will do).

Errors of a backend are those of :mod:`schemas.errors`: a ``ConfigError`` before the first request for a model or option
that cannot work, a ``RunError`` for a fault that no further request would survive. What goes wrong with one request is
a :class:`Response` with the status *failed*.

A backend is asked for all missing answers of a run at once and yields them as they come, so that a network client keeps
its connections busy and a local model its batches full. One that computes batch by batch needs no more than a plan and
a function of one batch: :func:`ask_in_batches`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pydantic import ConfigDict

from evaluators.backend_options import BackendOptions
from schemas import plugins, strict_json
from schemas.record import ExchangeStatus
from schemas.result import Model

Capability: TypeAlias = Literal["option_logprobs", "generation", "import"]
"""``import`` is what no backend can do: the answers were given elsewhere."""


@dataclass(frozen=True, kw_only=True)
class ChoiceRequest:
    """A context and its options; the answer is one log-probability per option."""

    prompt: str
    options: tuple[str, ...]
    """Continuations of the prompt, leading space included."""
    outcomes: tuple[str, ...]
    """What each option stands for."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What is known of the item. No model sees it: only baselines, which need no model to know the answer, read it."""

    @cached_property
    def sha256(self) -> str:
        """Hash of what a model is asked; the facts are no part of it."""
        return strict_json.sha256({"kind": "choice", "prompt": self.prompt, "options": list(self.options)})


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """A prompt to go on from; the answer is text."""

    prompt: str
    max_tokens: int
    temperature: float = 0.0
    """0 takes the most probable token each time."""
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    """Texts at which generation ends; they are no part of the answer."""
    sample: int | None = None
    """Which of several samples of one prompt; None where one answer is asked for."""
    seed: int = 0
    """Of the run; what a backend seeds with is :attr:`sampling_seed`."""
    outcomes: tuple[str, ...] = ()
    """What the options stand for that the prompt offers, in its order; the prompt names them, so the hash need not."""
    facts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def sha256(self) -> str:
        """Hash of what a model is asked; the facts are no part of it."""
        return strict_json.sha256(
            {
                "kind": "generate",
                "prompt": self.prompt,
                "max_tokens": self.max_tokens,
                "temperature": self.temperature,
                "top_p": self.top_p,
                "stop": list(self.stop),
                "sample": self.sample,
                "seed": self.seed,
            }
        )

    @property
    def sampling_seed(self) -> int:
        """A seed of its own for every request, in [0, 2**31), so that the order of requests changes no sample."""
        return int(self.sha256[:8], 16) >> 1


Request: TypeAlias = ChoiceRequest | GenerateRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back. Tuples have one entry per option and are empty for generations; log-probabilities are in nats."""

    # JSON has no infinity: a probability of zero becomes a text that validation reads back. Without this it would be
    # null, which means that it is unknown.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(ser_json_inf_nan="strings")

    status: ExchangeStatus
    text: str | None = None
    """What was generated; None for choices."""
    option_logprobs: tuple[float | None, ...] = ()
    """Sum over the option's tokens; -inf is a probability of zero, None was not returned."""
    option_is_bound: tuple[bool, ...] = ()
    """True for a log-probability that is only known not to exceed the given value; empty if all are exact."""
    option_end_logprobs: tuple[float | None, ...] = ()
    option_token_counts: tuple[int | None, ...] = ()
    n_moved_tokens: int | None = None
    """Last tokens of the context that are scored with every option, because the tokenizer merges them with one."""
    n_prompt_tokens: int | None = None
    n_completion_tokens: int | None = None
    finish_reason: str | None = None
    """Of a generation: ``stop``, ``length`` where it was cut off, ``content_filter``."""
    error: str | None = None
    """Why there is no answer; None if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Where and how a backend computes."""

    device: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was chosen or found out and may matter to the last digits: ``option_scoring``, ``batch_invariant``."""
    obstacles: Mapping[str, str] = field(default_factory=dict)
    """Why a way of answering is not available, by its name."""


class Sent(NamedTuple):
    """Requests have been sent, or are about to be: what a killed process may have spent without an answer."""

    n_attempts: int
    cost_usd: float | None = None
    """What they cost; None where no price is known."""


class Answers(NamedTuple):
    """Some answers, to be stored before the next ones are waited for."""

    responses: Mapping[int, Response]
    """By the place of the request in what the backend was asked."""
    seconds: float
    """Time that passed for the model since the last ones."""


Events: TypeAlias = Generator[Sent | Answers, None, None]


class TokenCount(NamedTuple):
    """What requests take."""

    n_prompt: int
    n_completion: int
    """At most, where texts are generated."""


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

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer what is missing.

        Args:
            requests: All requests of the run. What is batched together depends on all of them, never on what is already
                answered, so that a resumed run gets the same last bits.
            missing: Places of those that need an answer.

        Yields:
            Every missing place once, in any order. The caller stores what it gets before it takes the next, and closes
            the iterator early to stop.

        Raises:
            RunError: no further request could be answered.
        """

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount | None:
        """What asking all of these would take, without asking; None where it is unknown."""


@runtime_checkable
class NeedsFacts(Protocol):
    """A backend that answers from facts about the items."""

    @property
    def needed_facts(self) -> frozenset[str]:
        """Names of the facts that every request must carry."""


@runtime_checkable
class KeepsState(Protocol):
    """A backend of which something lasts beyond one session: ids of batches that a provider works on, money spent."""

    state_path: Path | None
    """In the run's folder; set by the pipeline before it asks."""

    def count_spent(self, cost_usd: float) -> None:
        """What earlier sessions spent on the run that is asked next, so that a limit on cost holds for all of them."""


def model_identity(fields_of_model: Mapping[str, str | None]) -> str:
    """Hash of everything about a model that can change an answer."""
    return strict_json.sha256(dict(fields_of_model))


def ask_in_batches(
    batches: Sequence[Sequence[int]],
    answer: Callable[[Sequence[Request]], Sequence[Response]],
    requests: Sequence[Request],
    missing: frozenset[int],
) -> Events:
    """``Backend.ask`` of a backend that answers one batch after the other.

    Args:
        batches: Places in ``requests``, planned over all of them.
        answer: Answers one batch, in its order.
        requests: All requests of the run.
        missing: Places of those that need an answer.

    Yields:
        Before each batch that it is being sent, and its answers.
    """
    for batch in batches:
        # Batches are stored whole: where only a part is known, the rest of it failed before and is asked anew.
        wanted = [index for index in batch if index in missing]
        if not wanted:
            continue
        yield Sent(len(wanted))
        start = time.perf_counter()
        responses = answer([requests[index] for index in wanted])
        yield Answers(dict(zip(wanted, responses, strict=True)), time.perf_counter() - start)


def open_backend(name: str, model: str, options: BackendOptions) -> Backend:
    """Open a backend by name.

    Raises:
        ConfigError: there is no such backend, or it refuses the model or an option.
        MissingExtraError: its library is not installed.
    """
    backend: Backend = plugins.load("evaluators.backends", name, kind="backend").open_backend(model, options)
    return backend
