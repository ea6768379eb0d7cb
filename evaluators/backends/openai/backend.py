"""Asks models behind endpoints that speak OpenAI's protocol, such as vLLM's server, llama.cpp, a router or a provider.

Servers differ in what they support, and some return nothing or wrong values without an error. The backend therefore
probes the endpoint when the model is first needed, before the first request. The method that was used to get option
log-probabilities is part of the model's identity, because the methods differ in what they return.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from typing_extensions import override

from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import note
from evaluators.backend import (
    Backend,
    Capability,
    Events,
    Request,
    RunContext,
    Runtime,
    Sent,
    TokenCount,
    model_identity,
)
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.address import parse_address
from evaluators.backends.openai.batch import BatchLimits, BatchRun
from evaluators.backends.openai.budget import Budget, most_prompt_tokens
from evaluators.backends.openai.caller import Connection, Tally
from evaluators.backends.openai.calls import Ways
from evaluators.backends.openai.client import require_library
from evaluators.backends.openai.engine import Engine
from evaluators.backends.openai.generation import Generation
from evaluators.backends.openai.json_form import JsonForm
from evaluators.backends.openai.naming import is_same_model
from evaluators.backends.openai.pacing import Patience
from evaluators.backends.openai.probe import Probed, probe
from evaluators.backends.openai.scoring import EchoIds, EchoText, FirstToken, OptionTrie, Way
from evaluators.models.ids import check_model_id
from evaluators.models.prices import Price, read_price
from evaluators.models.tokenizer import ModelTokenizer, load_tokenizer
from schemas.documents.result import Model

_OPTIONS = (
    "name",
    "revision",
    "tokenizer",
    "chat",
    "base_url",
    "api",
    "concurrency",
    "timeout",
    "prices",
    "max_cost",
    "batch",
    "end_logprobs",
)
_CONCURRENCY = 64
_TIMEOUT = 120.0
_CHAT_FRAME = 7
"""Number of tokens that OpenAI's chat format adds around a single message."""


@dataclass
class OpenAIBackend(Backend):
    """A model that is reached through an OpenAI-compatible endpoint."""

    model_name: str
    options: BackendOptions
    connection: Connection
    tokenizer: ModelTokenizer | None
    price: Price | None
    patience: Patience = field(default_factory=Patience)
    batch_limits: BatchLimits = field(default_factory=BatchLimits)
    state_path: Path | None = None
    """File in which unfinished batches are recorded; None to record none."""
    is_remote: bool = True
    _tally: Tally = field(default_factory=Tally)
    _reported: tuple[int, float] = (0, 0.0)
    """Number of attempts, and their cost in US dollars, that ``ask`` has already reported."""
    _has_warned: bool = False
    _form: JsonForm = field(default_factory=JsonForm)
    """Way in which texts are held to a JSON Schema; found out by the first calls, and the same from then on."""

    def __post_init__(self) -> None:
        # One budget for all calls, so that --max-cost is one limit for all configs.
        self._budget = Budget(self.price, self.options.max_cost)

    @override
    def begin(self, context: RunContext) -> None:
        self.state_path = context.state_path
        # A limit on cost covers all sessions of a run.
        self._budget.spent_usd += context.spent_usd

    @cached_property
    def probed(self) -> Probed:
        """The features of the endpoint, which is probed on first access."""
        found = probe(self.connection, self.model_name, self._api, self.tokenizer, self._budget, self._tally)
        if self.options.end_logprobs and found.option_scoring != "option_trie":
            raise ConfigError(
                f"--end-logprobs needs an endpoint with logprob_token_ids and --tokenizer; this one is asked through "
                f"{found.option_scoring or 'text alone'}. Leave it out"
            )
        return found

    @property
    def _api(self) -> str | None:
        if self.options.api is None and self.options.chat and self.tokenizer is None:
            return "chat"  # The endpoint applies its own template.
        return self.options.api

    @cached_property
    def model(self) -> Model:
        """The description of the model for results; probes the endpoint on first access."""
        options, probed = self.options, self.probed
        template = self.tokenizer.chat_template_sha256 if self.tokenizer and probed.api == "completions" else None
        identity = {
            "backend": "openai",
            "endpoint": self.connection.address.url,
            "id": self.model_name,
            "revision": options.revision,
            "api": probed.api,
            "option_scoring": probed.option_scoring,
            "top_logprobs": str(probed.top_logprobs),
            "tokenizer": self._tokenizer_name,
            "chat_template": template,
            "end_logprobs": "true" if options.end_logprobs else None,
        }
        return Model(
            id=check_model_id(options.name or self.model_name),
            revision=options.revision
            or next(map(self.connection.address.clean, sorted(self._tally.fingerprints)), None),
            backend="openai",
            precision=None,
            chat_template_sha256=template,
            endpoint="api",
            identity_sha256=model_identity(identity),
        )

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of the endpoint, which is probed on first access."""
        can: set[Capability] = {"generation"}
        return frozenset(can if self.probed.option_scoring is None else can | {"option_logprobs"})

    @property
    def _end_id(self) -> int | None:
        return self.tokenizer.end_id if self.tokenizer and self.options.end_logprobs else None

    @property
    def _tokenizer_name(self) -> str | None:
        name = self.options.tokenizer
        return Path(name).resolve().name if name is not None and Path(name).is_dir() else name

    @property
    def arguments(self) -> Sequence[str]:
        """The options that open the same model again, without the key and without paths of this machine."""
        options = self.options
        known = {
            "model": self.model_name,
            "name": options.name,
            "revision": options.revision,
            # A result is published, and the address may be that of an internal machine.
            "base-url": "$OPENAI_BASE_URL" if not self.connection.address.is_openai else None,
            "api": self.probed.api,
            "tokenizer": self._tokenizer_name,
        }
        flags = [f"--{name}" for name in ("chat", "end-logprobs", "batch") if getattr(options, name.replace("-", "_"))]
        return [*(f"--{name} {value}" for name, value in known.items() if value is not None), *flags]

    @property
    def runtime(self) -> Runtime:
        """The settings of the calls, the model names that the endpoint reported, and package versions."""
        settings = dict(self.probed.settings)
        if self._tally.models - {self.model_name}:
            # A server may say the path of its file.
            names = {name.rpartition("/")[2] if name.startswith("/") else name for name in self._tally.models}
            settings["models_that_answered"] = ", ".join(sorted(names))
        if self._tally.fingerprints:
            settings["system_fingerprints"] = ", ".join(sorted(self._tally.fingerprints))
        if self._form.is_used:
            settings["json_schema"] = self._form.way
        settings["concurrency"] = str(self.connection.concurrency)
        packages = {"openai": importlib.metadata.version("openai")}
        return Runtime(
            packages=packages | (self.tokenizer.packages if self.tokenizer else {}),
            settings={name: self.connection.address.clean(value) for name, value in settings.items()},
            obstacles={way: self.connection.address.clean(reason) for way, reason in self.probed.reasons.items()},
        )

    def sends_messages(self) -> bool:
        """Return True if prompts are sent as messages of a chat; the first call probes the endpoint."""
        return self.probed.api == "chat"

    def surely_sends_messages(self) -> bool:
        """Return True if the options or the address leave nothing but a chat."""
        return all(possible.api == "chat" for possible in self._possible())

    def other_ways(self) -> Sequence[str]:
        """Return ``--api completions`` if the user chose chat, and completions return log-probabilities of options."""
        if self._api != "chat":
            return ()  # Completions were tried first.
        try:
            found = probe(
                self.connection, self.model_name, "completions", self.tokenizer, self._budget, self._tally
            ).option_scoring
        except ConfigError:
            found = None
        leave_out = " without --chat" if self.options.chat else ""
        return () if found is None else (f"--api completions{leave_out}",)

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests, many at a time; see ``Backend.ask``."""
        ways = self._ways(self.probed)
        n_attempts, cost = self._reported
        if self._tally.n_attempts > n_attempts:
            yield Sent(self._tally.n_attempts - n_attempts, self._tally.cost_usd - cost if self.price else None)
        if missing and self.options.batch:
            identity = self.model.identity_sha256
            run = BatchRun(
                self.connection, ways, self._budget, self._tally, identity, self.state_path, self.batch_limits
            )
            yield from self._watched(run.ask(requests, missing))
        elif missing:
            engine = Engine(self.connection, ways, self._budget, self._tally, self.patience)
            yield from self._watched(engine.ask(requests, missing))
        self._reported = (self._tally.n_attempts, self._tally.cost_usd)

    def _watched(self, events: Events) -> Events:
        self._check_names()
        with closing(events):
            for event in events:
                yield event
                self._check_names()

    def _check_names(self) -> None:
        """Warn once if the endpoint answers in the name of another model; results record the name."""
        others = sorted(name for name in self._tally.models if not is_same_model(self.model_name, name))
        if others and not self._has_warned:
            self._has_warned = True
            note(
                f"warning: {self.connection.address.place} answers as '{self.connection.address.clean(others[0])}' and "
                f"was asked for '{self.model_name}'; results record it; check --model, and what the endpoint routes to"
            )

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount | None:
        """Return how many tokens the requests take, without sending any; None without ``--tokenizer``."""
        if self.tokenizer is None:
            return None
        ways = self._ways(self.__dict__.get("probed") or self._assumed())
        counted = [calls for request in requests if not isinstance(calls := ways.calls(request), str)]
        return TokenCount(
            n_prompt=sum(call.n_prompt or 0 for calls in counted for call in calls),
            n_completion=sum(call.n_completion for calls in counted for call in calls),
        )

    def most_tokens(self, requests: Sequence[Request]) -> TokenCount:
        """Return an upper bound on the tokens of the requests, without sending any; no tokenizer is needed.

        Before the endpoint is probed, the bound holds for chat and for completions, unless the user chose one.
        """
        known = self.__dict__.get("probed")
        counts = []
        for probed in [known] if known else self._possible():
            ways = self._ways(probed)
            calls = [call for request in requests if not isinstance(made := ways.calls(request), str) for call in made]
            counts.append((sum(map(most_prompt_tokens, calls)), sum(call.n_completion for call in calls)))
        return TokenCount(max(n_prompt for n_prompt, _ in counts), max(n_completion for _, n_completion in counts))

    @property
    def context_tokens(self) -> int | None:
        """The largest number of tokens, if a probed endpoint told it and ``--tokenizer`` counts those of a prompt."""
        probed: Probed | None = self.__dict__.get("probed")
        return probed.room if probed and self.tokenizer and probed.api == "completions" else None

    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        """Return the least number of tokens that each request needs; none without ``--tokenizer``."""
        return self.tokenizer.needed_tokens(requests) if self.tokenizer else ()

    def cost_usd(self, tokens: TokenCount) -> float | None:
        """Return the cost of that many tokens in US dollars; None if no price is known."""
        if self.price is None:
            return None
        return self.price.cost_usd(tokens.n_prompt, tokens.n_completion, batch=bool(self.options.batch))

    def _assumed(self) -> Probed:
        """Return the features that an endpoint probably has, for estimates made before it is probed."""
        if self._api == "chat" or self.connection.address.is_openai:
            return Probed(api="chat", option_scoring="first_token", top_logprobs=20)
        return Probed(api="completions", option_scoring="option_trie", lists=True)

    def _possible(self) -> list[Probed]:
        """Return the features that an endpoint may have, those that take most tokens, before it is probed."""
        chat = Probed(api="chat", option_scoring="first_token", top_logprobs=20)
        if self._api == "chat" or self.connection.address.is_openai:
            return [chat]
        scoring = "option_trie" if self.tokenizer else "echo_text"
        completions = [Probed(api="completions", option_scoring=scoring, lists=lists) for lists in (True, False)]
        return completions if self._api == "completions" else [*completions, chat]

    def _ways(self, probed: Probed) -> Ways:
        name, tokenizer = self.model_name, self.tokenizer
        choice: Way | None = None
        if probed.option_scoring == "option_trie" and tokenizer:
            choice = OptionTrie(name, tokenizer, probed.lists, probed.room, self._end_id)
        elif probed.option_scoring == "echo" and tokenizer:
            choice = EchoIds(name, tokenizer, probed.lists, probed.room, probed.as_ids)
        elif probed.option_scoring == "echo_text":
            choice = EchoText(name, probed.lists)
        elif probed.option_scoring == "first_token":
            choice = FirstToken(name, probed.top_logprobs, probed.max_tokens, self._n_chat_tokens)
        return Ways(
            choice,
            Generation(
                model=name,
                api=probed.api,
                max_tokens=probed.max_tokens,
                unknown=probed.unknown,
                extra=probed.extra,
                tokenizer=tokenizer if probed.api == "completions" else None,
                n_tokens=self._n_chat_tokens if probed.api == "chat" else self._n_tokens,
                room=probed.room,
                form=self._form,
            ),
        )

    def _n_tokens(self, prompt: str) -> int | None:
        return len(self.tokenizer.context_ids(prompt)) if self.tokenizer else None

    def _n_chat_tokens(self, prompt: str) -> int | None:
        if self.tokenizer is None:
            return None
        if self.tokenizer.pretrained.chat_template:
            return len(ModelTokenizer(self.tokenizer.pretrained, chat=True).context_ids(prompt))
        ids: list[int] = self.tokenizer.pretrained(prompt, add_special_tokens=False)["input_ids"]
        return len(ids) + _CHAT_FRAME


def open_backend(model: str, options: BackendOptions) -> OpenAIBackend:
    """Open a model behind an endpoint; nothing is sent yet.

    Args:
        model: Id of the model at the endpoint.
        options: Address, tokenizer, prices and limits. The API key is read from ``OPENAI_API_KEY``.

    Raises:
        ConfigError: the address or an option is not valid.
        MissingExtraError: the library ``openai`` is not installed.
    """
    options.refuse_others("openai", but=_OPTIONS)
    require_library()
    check_model_id(options.name or model)
    if options.api not in (None, "chat", "completions"):
        raise ConfigError(f"--api {options.api} does not exist; have: chat, completions")
    if options.chat and options.api == "completions" and options.tokenizer is None:
        raise ConfigError("--chat through completions needs --tokenizer, whose template is used; or take --api chat")
    if options.end_logprobs and (options.tokenizer is None or options.api == "chat"):
        raise ConfigError("--end-logprobs needs --tokenizer and --api completions; give both, or leave it out")
    if options.max_cost is not None and options.prices is None:
        raise ConfigError("--max-cost needs --prices FILE, with what the model's tokens cost")
    address = parse_address(
        options.base_url or os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY", "").strip()
    )
    # With the chat API, the endpoint applies its own template.
    tokenizer = (
        load_tokenizer(options.tokenizer, chat=bool(options.chat) and options.api != "chat")
        if options.tokenizer
        else None
    )
    return OpenAIBackend(
        model_name=model,
        options=replace(options, base_url=address.url),  # The URL as given may contain a password.
        connection=Connection(address, options.timeout or _TIMEOUT, options.concurrency or _CONCURRENCY),
        tokenizer=tokenizer,
        price=read_price(options.prices, model) if options.prices else None,
    )
