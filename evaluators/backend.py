"""The interface of a backend, through which every model is called.

Each file in ``evaluators/backends`` is a backend. It holds

* ``open_backend(model, options)``, which checks its arguments and returns a :class:`Backend`;
* ``SUMMARY``, one line for ``python -m evaluators list``;
* ``EXTRA``, the name of the extra that installs its library, or None;
* ``MODELS``, the model ids that it knows by name (empty if it accepts any id);
* ``CAPABILITIES``, the abilities of all its models, so that messages can name it; left out if they depend on the model
  or the endpoint;
* ``IDENTIFIED``, an :class:`Identified`: what each of its results says about the model. Without it, verification takes
  every result of the backend for a claim, which gets no rank;
* ``open_outline(model, options)``, only where opening a model takes long: a :class:`Backend` that can count the tokens
  of requests, but not ask them.

A backend raises the errors of :mod:`biasboard.ground.errors`: a ``ConfigError`` before the first request if the
model or an option cannot work, and a ``RunError`` if no further request could succeed. If a single request goes wrong,
its :class:`Response` has the status *failed*.

A backend receives all requests of a run at once and yields the responses as they arrive. A network client can thus keep
its connections busy, and a local model can fill its batches. A backend that computes batch by batch only needs a plan
of its batches and a function that answers one batch: see :func:`ask_in_batches`. One that also computes on many
machines asks in blocks (:func:`ask_in_blocks`), and one whose texts hold what the model thinks asks with
:func:`ask_with_thinking`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import ConfigDict, Field

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import BACKENDS
from biasboard.ground.plain_text import without_keys
from evaluators.backend_options import BackendOptions
from evaluators.thinking import cut_answer
from schemas.documents.record import ExchangeStatus, choice_sha256
from schemas.documents.result import Endpoint, Model

if TYPE_CHECKING:
    from evaluators.adapter_set import AdapterSet

Capability: TypeAlias = Literal["option_logprobs", "generation", "image_option_logprobs", "pseudo_logprobs", "import"]
"""Abilities of a backend: to score options that continue a text, to generate a text, to score options that describe an
image, and to score texts by what a model predicts from both sides of each token. No backend has ``import``: it marks
answers imported from elsewhere."""
OF_LANGUAGE_MODELS: frozenset[Capability] = frozenset({"option_logprobs", "generation"})
"""Abilities of a language model whose every logit a backend sees."""
_AT_A_TIME = 256
"""Number of requests that a backend without batches of its own answers before the answers are stored."""
_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


class Identified(NamedTuple):
    """How the results of a backend say which model answered. A result that says less was not written by a run of it."""

    endpoint: Endpoint
    parts: frozenset[str]
    """Names of the parts that each identity has beside ``backend``, even if they are null. One named ``model`` is
    ``ORG/NAME@COMMIT``, or ``sha256:...`` of a folder's files."""
    abilities: frozenset[Capability] | None = None
    """All that its models can be asked for; None if that is not known, as where answers come from a file."""


def image_prompt(image_sha256: str) -> str:
    """Return the prompt of a request about an image, which names the image by the SHA-256 of its file."""
    return f"image sha256:{image_sha256}"


@dataclass(frozen=True, kw_only=True)
class ChoiceRequest:
    """A prompt and its options; the response holds one log-probability per option."""

    prompt: str
    options: tuple[str, ...]
    """Continuations of the prompt, including their leading space."""
    outcomes: tuple[str, ...]
    """Outcome of each option."""
    n_begun: int = 0
    """Number of last characters of the prompt that are the beginning of the model's own answer. In a chat, they stand
    in its message and not in the user's. They are not hashed: it is the same text."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Known facts about the item, by name. Only baselines read them; they are never sent to a model."""
    adapter: str | None = None
    """Name of the adapter with which the model answers; None for the model alone. It is part of the store key, so that
    two contexts which ask the same text never share an answer."""
    image: Annotated[bytes | None, Field(exclude=True)] = field(default=None, repr=False)
    """File of the image that the options describe; None if they continue a text. The prompt then names the image by its
    SHA-256 (see :func:`image_prompt`), so that it is hashed by that, and it is never written to a store or a record."""

    @cached_property
    def sha256(self) -> str:
        """The hash of what a model is asked; the facts and the adapter are not hashed."""
        return choice_sha256(self.prompt, self.options)


@dataclass(frozen=True, kw_only=True)
class GenerateRequest:
    """A prompt to continue; the response is a text."""

    prompt: str
    max_tokens: int
    temperature: float = 0.0
    """Sampling temperature; 0 takes the most probable token each time."""
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    """Texts at which generation stops; they are not included in the response."""
    sample: int | None = None
    """Number of this sample if the prompt is sampled several times; None if it is sampled once."""
    seed: int = 0
    """Seed of the run. Backends seed each request with :attr:`sampling_seed`."""
    outcomes: tuple[str, ...] = ()
    """Outcomes of the options that the prompt offers, in its order. They are not hashed: the prompt names them."""
    json_schema: str | None = None
    """JSON Schema that the text should satisfy; None for any text. A backend that cannot hold a model to it asks
    without, and says so in its settings."""
    with_logprob: bool = False
    """True to ask for the log-probability of the text too; a backend that cannot give it leaves it out. It is not
    hashed, since it changes no text."""
    asks_confidence: bool = False
    """True if the prompt asks to state a confidence in percent, so that baselines state theirs. It is not hashed: the
    prompt says so."""
    facts: Mapping[str, str] = field(default_factory=dict)
    adapter: str | None = None

    @cached_property
    def sha256(self) -> str:
        """The hash of what a model is asked; the facts and the adapter are not hashed."""
        value: dict[str, strict_json.JsonValue] = {
            "kind": "generate",
            "prompt": self.prompt,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "stop": list(self.stop),
            "sample": self.sample,
            "seed": self.seed,
        }
        if self.json_schema is not None:
            value["json_schema"] = self.json_schema
        return strict_json.sha256(value)

    @property
    def sampling_seed(self) -> int:
        """A seed for this request alone, in [0, 2**31), so that samples do not depend on the order of requests."""
        return int(self.sha256[:8], 16) >> 1


Request: TypeAlias = ChoiceRequest | GenerateRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response to one request.

    Tuples have one entry per option and are empty for generations. Log-probabilities are in nats.
    """

    # JSON has no infinity. This setting writes the log-probability of zero as a text, which validation reads back.
    # Without it, the value would become null, which means unknown.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(ser_json_inf_nan="strings")

    status: ExchangeStatus
    text: str | None = None
    """The generated text; None for choices."""
    thinking: str | None = None
    """What the model thought before the text, where the endpoint returns it by itself; None otherwise. It is stored and
    never read; a text that holds its thinking is taken apart when it becomes part of a record."""
    option_logprobs: tuple[float | None, ...] = ()
    """Log-probability of each option, summed over its tokens; -inf for a probability of zero, None if not returned."""
    option_is_bound: tuple[bool, ...] = ()
    """True for each log-probability that is only an upper bound; empty if all are exact."""
    option_end_logprobs: tuple[float | None, ...] = ()
    """Log-probability of the end token after each option."""
    option_token_counts: tuple[int | None, ...] = ()
    n_moved_tokens: int | None = None
    """Number of last prompt tokens that are scored with each option, because the tokenizer merges them with one."""
    n_prompt_tokens: int | None = None
    n_completion_tokens: int | None = None
    finish_reason: str | None = None
    """Reason why a generation ended: ``stop``, ``length`` if it was cut off, ``content_filter``."""
    error: str | None = None
    """Reason why there is no answer; None if there is one."""
    text_logprob: float | None = None
    """Log-probability of the generated text at temperature 1: the sum over its ``n_completion_tokens`` tokens, the end
    token among them; None if it was not asked for or is unknown."""

    def stopped_at(self, stop: Sequence[str]) -> Response:
        """Return the response with an answer that ends before the first of some texts, as not every server does."""
        text = None if self.text is None else cut_answer(self.text, stop)
        # A log-probability would be that of what was cut off too.
        return self if text == self.text else replace(self, text=text, finish_reason="stop", text_logprob=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """The device, packages and settings with which a backend computes."""

    device: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Chosen or detected settings that may change last digits, such as ``option_scoring`` or ``batch_invariant``."""
    obstacles: Mapping[str, str] = field(default_factory=dict)
    """Reasons why capabilities are not available, by the name of the capability."""


class Sent(NamedTuple):
    """An event: requests have been sent or are about to be.

    A process that is killed afterwards may have paid for them without receiving an answer.
    """

    n_attempts: int
    cost_usd: float | None = None
    """Cost of these requests in US dollars; None if no price is known."""


class Answers(NamedTuple):
    """An event: some responses have arrived. They must be stored before the next event is awaited."""

    responses: Mapping[int, Response]
    """Responses by the index of their request in the sequence that the backend was given."""
    seconds: float
    """Seconds that the model took since the previous responses."""


Events: TypeAlias = Generator[Sent | Answers, None, None]


class TokenCount(NamedTuple):
    """Numbers of tokens that some requests need."""

    n_prompt: int
    n_completion: int
    """Number of completion tokens; an upper bound if texts are generated."""


class BlockLimits(NamedTuple):
    """The largest size of a block of requests; a request that exceeds it gets a block of its own."""

    n_texts: int
    """Largest number of options, or of prompts to continue."""
    n_characters: int
    """Largest number of characters in the prompts, each prompt counted once per option."""


class RunContext(NamedTuple):
    """The state of a run that outlasts the process, handed to the backend before the first request."""

    state_path: Path
    """File in the run's folder that records work under way elsewhere, such as batches at a provider."""
    spent_usd: float
    """Cost of the answers that the run has already, which counts against a limit on cost."""
    choices: Mapping[str, str]
    """Choices of how to compute that earlier sessions of the run made by trial, by name."""
    keep_choice: Callable[[str, str], None]
    """Function that stores such a choice under a name."""


class Backend:
    """A model that can be asked. The defaults fit most backends; each backend states what differs."""

    if TYPE_CHECKING:
        # A backend may store these as fields or compute them; declared as properties, type checkers accept both. At
        # runtime they must not exist: a dataclass would take the property objects for defaults of its fields.
        @property
        def model(self) -> Model:
            """The model that answers; its identity is part of each store key."""

        @property
        def runtime(self) -> Runtime:
            """The environment in which it computes, as written to the result."""

        @property
        def arguments(self) -> Sequence[str]:
            """The options that open the same model again, such as ``--model gpt2``, without paths of this machine."""

        @property
        def capabilities(self) -> frozenset[Capability]:
            """The abilities of the backend; they are checked before the first request."""

        @property
        def reads_facts(self) -> bool:
            """True if answers depend on ``Request.facts``, which are then part of the store key."""

        @property
        def is_remote(self) -> bool:
            """True if an endpoint answers: its exact model is known only after it was asked, and answers may cost."""

        @property
        def needed_facts(self) -> frozenset[str]:
            """The names of the facts that each request must carry."""

        @property
        def adapters(self) -> AdapterSet | None:
            """The adapters with which requests are answered, one for each context; None if requests name none."""

        @property
        def block_limits(self) -> BlockLimits | None:
            """The limits of the blocks within which the backend plans its batches; None if it plans none."""

        @property
        def scores_first_token_only(self) -> bool:
            """True if the log-probability of an option is that of its first token, so that options must be letters."""

        @property
        def context_tokens(self) -> int | None:
            """The largest number of tokens in a prompt and its answer; None if it is unknown, perhaps only for now."""

    else:
        reads_facts, is_remote, scores_first_token_only = False, False, False
        needed_facts, adapters, block_limits, context_tokens = frozenset(), None, None, None

    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        """Return the least number of tokens that each request needs: its prompt and an option, or one more token.

        Raises:
            ConfigError: the backend has no tokenizer.
        """
        raise ConfigError(f"backend '{self.model.backend}' has no tokenizer; take a prompt that counts bytes")

    def begin(self, context: RunContext) -> None:
        """Take over the state that earlier sessions of a run left, before the first request."""

    def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Answer some requests, in their order: all that a backend needs whose answers do not depend on each other."""
        raise NotImplementedError("define answer or ask")

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the requests that are missing an answer, by default in batches in their order.

        Args:
            requests: All requests of the run. Batches depend on all of them and never on which are answered already, so
                that a resumed run computes exactly the same numbers.
            missing: Indices of the requests that need an answer.

        Yields:
            Events that answer each missing index once, in any order. The caller gives each event's responses to the
            store before it takes the next event, and closes the iterator early to stop.

        Raises:
            RunError: no further request can be answered.
        """
        every = range(len(requests))
        batches = [every[start : start + _AT_A_TIME] for start in every[::_AT_A_TIME]]
        return ask_in_batches(batches, self.answer, requests, missing)

    def without_keys(self, text: str) -> str:
        """Return a text of an answer without the keys of this machine, which an endpoint may say back to it."""
        return without_keys(text)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount | None:
        """Return the number of tokens that the requests need, without sending them; None if it is unknown."""
        return None

    def most_tokens(self, requests: Sequence[Request]) -> TokenCount | None:
        """Return an upper bound on the tokens that the requests take, by the bytes of their texts; None if unknown."""
        return None

    def cost_usd(self, tokens: TokenCount) -> float | None:
        """Return the cost of that many tokens in US dollars; None if no price is known."""
        return None

    # A method: as a property, it was read where nothing may be sent, as in a dry run.
    def sends_messages(self) -> bool:
        """Return True if prompts become messages of a chat, in a template that only the endpoint knows.

        The endpoint may be asked to find out.
        """
        return False

    def surely_sends_messages(self) -> bool:
        """Return True if :meth:`sends_messages` is known to be true without asking the endpoint."""
        return False

    def completion_options(self) -> Sequence[str]:
        """Return options with which a model that now takes messages would continue texts and score options."""
        return ()


def check_model_id(model_id: str) -> str:
    """Return a model id unchanged if a folder can be named after it.

    Raises:
        ConfigError: the id is neither ``name`` nor ``org/name`` of letters, digits, dots, dashes and single
            underscores, or it begins like the id of a baseline.
    """
    if model_id.casefold().startswith("baseline/"):
        raise ConfigError(
            f"model id '{model_id}': 'baseline/' is reserved for the baselines; give another name with --name"
        )
    if not _MODEL_ID.fullmatch(model_id) or "__" in model_id:
        cleaned = (re.sub("[^A-Za-z0-9.]+", "-", part).strip("-.") for part in model_id.split("/"))
        parts = [part for part in cleaned if part]
        name = "/".join(parts if len(parts) == 2 and parts[0].casefold() != "baseline" else parts[-1:]) or "my-model"
        raise ConfigError(
            f"model id '{model_id}' must be NAME or ORG/NAME of letters, digits, '.', '-' and single '_', as folders "
            f"are named after it; name it in results, as with --name {name}"
        )
    return model_id


def model_identity(fields_of_model: Mapping[str, str | None]) -> str:
    """Return a hash of everything about a model that can change an answer."""
    return strict_json.sha256(dict(fields_of_model))


def identified_model(
    model_id: str,
    identity: Mapping[str, str | None],
    *,
    endpoint: Endpoint = "local",
    revision: str | None = None,
    precision: str | None = None,
    chat_template_sha256: str | None = None,
    conditions: Mapping[str, str] | None = None,
) -> Model:
    """Return a model that is identified by everything about it that can change an answer.

    Args:
        model_id: The id in results: NAME or ORG/NAME.
        identity: All that can change an answer, by name, with ``backend`` among it.
        endpoint: Where it answers.
        revision: Commit of its weights; None if it is unknown.
        precision: Data type of the computation; None if it is unknown or has no meaning.
        chat_template_sha256: SHA-256 of the chat template; None if prompts are sent as they are.
        conditions: What answers depend on beside the model and the prompt, by name.
    """
    return Model(
        id=model_id,
        revision=revision,
        backend=identity["backend"] or "",
        precision=precision,
        chat_template_sha256=chat_template_sha256,
        endpoint=endpoint,
        identity_sha256=model_identity(identity),
        identity=dict(identity),
        conditions=dict(conditions) if conditions else None,
    )


def identified_by(backend: str) -> Identified | None:
    """Return how the results of a backend identify models; None if no backend here of that name says so."""
    return getattr(BACKENDS.load(backend), "IDENTIFIED", None) if backend in BACKENDS.names() else None


def ask_in_batches(
    batches: Sequence[Sequence[int]],
    answer: Callable[[Sequence[Request]], Sequence[Response]],
    requests: Sequence[Request],
    missing: frozenset[int],
) -> Events:
    """Answer requests one batch after the other: ``Backend.ask`` for a backend that computes in batches.

    Args:
        batches: Indices into ``requests`` for each batch, planned over all requests.
        answer: Function that answers one batch and returns the responses in its order.
        requests: All requests of the run.
        missing: Indices of the requests that need an answer.

    Yields:
        A ``Sent`` event before each batch, and an ``Answers`` event after it.
    """
    for batch in batches:
        # A batch is stored as a whole, so if only part of it is missing, that part failed earlier and is asked again.
        wanted = [index for index in batch if index in missing]
        if not wanted:
            continue
        yield Sent(len(wanted))
        start = time.perf_counter()
        responses = answer([requests[index] for index in wanted])
        yield Answers(dict(zip(wanted, responses, strict=True)), time.perf_counter() - start)


def plan_blocks(requests: Sequence[Request], limits: BlockLimits) -> list[list[int]]:
    """Return the indices of requests in blocks, in which prompts with a common beginning are neighbours.

    The last bits of a log-probability depend on what a model computes in the same batch. A backend that plans its
    batches within blocks therefore gives a block the same responses on every machine, whatever else is asked. Blocks
    also limit how many requests are held in memory as tokens.

    All requests of a block have the same adapter. Planning the requests of a block again, in its order, gives the same
    block.

    >>> asked = [ChoiceRequest(prompt=text, options=(" a", " b"), outcomes=()) for text in ("two", "one", "two", "six")]
    >>> plan_blocks(asked, BlockLimits(n_texts=4, n_characters=100))
    [[1, 3], [0, 2]]
    """
    blocks: list[list[int]] = []
    n_texts = n_characters = 0
    for index in sorted(range(len(requests)), key=lambda at: (requests[at].adapter or "", requests[at].prompt, at)):
        request = requests[index]
        weight = len(request.options) if isinstance(request, ChoiceRequest) else 1
        n_texts += weight
        n_characters += weight * len(request.prompt)
        is_other = not blocks or requests[blocks[-1][-1]].adapter != request.adapter
        if is_other or n_texts > limits.n_texts or n_characters > limits.n_characters:
            blocks.append([])
            n_texts, n_characters = weight, weight * len(request.prompt)
        blocks[-1].append(index)
    return blocks


def ask_in_blocks(
    ask: Callable[[Sequence[Request], frozenset[int]], Events],
    limits: BlockLimits,
    requests: Sequence[Request],
    missing: frozenset[int],
) -> Events:
    """Ask one block after the other, as an implementation of ``Backend.ask``.

    Args:
        ask: Function that answers the missing requests of one block.
        limits: Largest size of a block.
        requests: All requests of the run.
        missing: Indices of the requests that need an answer.

    Yields:
        The events of all blocks, with indices into ``requests``.
    """
    for block in plan_blocks(requests, limits):
        missing_in_block = frozenset(position for position, index in enumerate(block) if index in missing)
        if missing_in_block:
            for event in ask([requests[index] for index in block], missing_in_block):
                yield in_run(event, block)


def in_run(event: Sent | Answers, block: Sequence[int]) -> Sent | Answers:
    """Convert an event of a block to one of the run."""
    if isinstance(event, Sent):
        return event
    return event._replace(responses={block[position]: response for position, response in event.responses.items()})


def ask_with_thinking(
    ask: Callable[[Sequence[Request], frozenset[int]], Events],
    requests: Sequence[Request],
    missing: frozenset[int],
    n_tokens: int,
) -> Events:
    """Ask with more tokens for each text than its answer may take, and cut answers where they should have stopped.

    In a text of a local model, nothing but marks separates its thinking from its answer, so that the text may not end,
    while the model thinks, where an answer would.

    Args:
        ask: ``Backend.ask`` of a model that writes what it thinks into its texts.
        requests: All requests of the run.
        missing: Indices of those that need an answer.
        n_tokens: Number of tokens to think with; 0 to ask as it is.
    """
    if not n_tokens:
        yield from ask(requests, missing)
        return
    longer = [
        replace(request, max_tokens=request.max_tokens + n_tokens, stop=())
        if isinstance(request, GenerateRequest)
        else request
        for request in requests
    ]
    for event in ask(longer, missing):
        if isinstance(event, Answers):
            cut = {
                index: response.stopped_at(request.stop)
                for index, response in event.responses.items()
                if isinstance(request := requests[index], GenerateRequest)
            }
            yield event._replace(responses={**event.responses, **cut})
        else:
            yield event


def backends_with(capabilities: frozenset[Capability]) -> list[str]:
    """Return the names of the backends that declare some capabilities."""
    loaded = {name: BACKENDS.load(name) for name in BACKENDS.names()}
    return [name for name, module in loaded.items() if capabilities <= getattr(module, "CAPABILITIES", frozenset())]


def open_backend(name: str, model: str, options: BackendOptions) -> Backend:
    """Open a backend by name.

    Raises:
        ConfigError: there is no such backend, or the backend refuses the model or an option.
        DataError: the backend describes its model in a way that no result may have.
        MissingExtraError: the library of the backend is not installed.
    """
    # Imported here, because listing backends needs none of it.
    from schemas.files import contract

    backend: Backend = BACKENDS.get(name)(model, options)
    # A remote one would be sent a test call for it.
    if not backend.is_remote:
        contract.check(backend.model, where=f"backend '{name}': its model")
        identified, identity = identified_by(name), backend.model.identity
        if identified and identity is not None and (lacking := sorted(identified.parts - identity.keys())):
            raise ConfigError(
                f"backend '{name}': the identity of its model lacks {', '.join(lacking)}, which IDENTIFIED names; give "
                "all of them to identified_model"
            )
    return backend


def open_outline(name: str, model: str, options: BackendOptions) -> Backend:
    """Open what planning needs of a model, without its weights where there are any.

    Raises:
        ConfigError: there is no such backend or model.
    """
    module = BACKENDS.load(name)
    opener = getattr(module, "open_outline", module.open_backend)
    backend: Backend = opener(model, options)
    return backend
