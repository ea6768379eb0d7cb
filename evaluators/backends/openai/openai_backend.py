"""Asks models behind endpoints that speak OpenAI's protocol, such as vLLM's server, llama.cpp, a router or a provider.

Servers differ in what they support, and some return nothing or wrong values without an error. The endpoint is therefore
probed when the model is first needed, before the first request. The method of scoring options is part of the model's
identity, because the methods return different values.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from typing_extensions import override

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import masked
from biasboard.ground.progress import note
from evaluators.backend import (
    Backend,
    Capability,
    Events,
    Request,
    RunContext,
    Runtime,
    TokenCount,
    check_model_id,
    model_identity,
)
from evaluators.backend_options import BackendOptions, as_arguments, json_object
from evaluators.backends.openai.address import parse_address
from evaluators.backends.openai.batch_api import BatchLimits, BatchRun
from evaluators.backends.openai.client import Connection
from evaluators.backends.openai.concurrency import ConcurrentRun
from evaluators.backends.openai.costs import Ledger, Price, most_prompt_tokens, read_price
from evaluators.backends.openai.dialect import Dialect
from evaluators.backends.openai.generation import Generation
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.pacing import Patience
from evaluators.backends.openai.probe import Probe
from evaluators.backends.openai.protocol import Call
from evaluators.backends.openai.scoring import FirstTokens, Methods, scoring_methods
from evaluators.models.tokenizer import ModelTokenizer, load_tokenizer, local_name
from schemas.documents.result import MODELS_THAT_ANSWERED, Model

_OPTIONS = (
    *("name", "revision", "tokenizer", "chat", "base_url", "api", "header", "concurrency", "timeout", "batch"),
    *("prices", "max_cost", "end_logprobs", "extra_body", "chat_template_args", "system_prompt"),
    *("thinking_tokens", "reasoning_effort"),
)
_OWN_FIELDS = frozenset({"model", "messages", "prompt", "stream", "n", "max_tokens", "max_completion_tokens"})
# Providers report the dated snapshot behind a name; servers report a file name or a tag.
_NAME_ENDS = re.compile(r"(\.gguf|[-:@]latest|[-:@_]v?\d{4}-\d{2}(-\d{2})?|[-:@_]\d{8}|-\d{4})$")


@dataclass
class OpenAIBackend(Backend):
    """A model that is reached through an OpenAI-compatible endpoint."""

    options: BackendOptions
    connection: Connection
    wanted: Generation
    """How the user wants texts to be generated: the model, and what is set for every call."""
    api: str | None
    """``chat`` or ``completions``; None to take what the endpoint has."""
    price: Price | None
    patience: Patience = field(default_factory=Patience)
    batch_limits: BatchLimits = field(default_factory=BatchLimits)
    state_path: Path | None = None
    """File in which unfinished batches are recorded; None to record none."""
    is_remote: bool = True
    _has_warned: bool = False

    def __post_init__(self) -> None:
        self._ledger = Ledger(self.price, self.options.max_cost)

    @override
    def begin(self, context: RunContext) -> None:
        self.state_path = context.state_path
        # A limit on cost covers all sessions of a run.
        self._ledger.earlier_usd += context.spent_usd

    @cached_property
    def probed(self) -> Methods:
        """The methods that work at the endpoint, which is probed on first access."""
        methods = Probe(self.connection, self.wanted, self.options.reasoning_effort, self._ledger).run(self.api)
        if self.options.end_logprobs and methods.option_scoring != "option_trie":
            raise ConfigError(
                f"--end-logprobs needs an endpoint with logprob_token_ids and --tokenizer; this one is asked through "
                f"{methods.option_scoring or 'text alone'}. Leave it out"
            )
        return methods

    @property
    def tokenizer(self) -> ModelTokenizer | None:
        """The tokenizer that the user named; None if there is none."""
        return self.wanted.tokenizer

    @cached_property
    def model(self) -> Model:
        """The description of the model for results; probes the endpoint on first access."""
        options, methods = self.options, self.probed
        template = self.tokenizer.chat_template_sha256 if self.tokenizer and methods.api == "completions" else None
        identity = {
            "backend": "openai",
            "endpoint": self.connection.address.url,
            "id": self.wanted.model,
            "revision": options.revision,
            "api": methods.api,
            "option_scoring": methods.option_scoring,
            "top_logprobs": str(methods.top_logprobs),
            "tokenizer": self._tokenizer_name,
            "chat_template": template,
            "end_logprobs": "true" if options.end_logprobs else None,
            # An endpoint shows no weights: whoever gives a release a name of its own says that it is another model.
            **({"name": options.name} if options.name else {}),
            # Absent where an endpoint takes all as it is sent, so that the identities of such models stay as they were.
            **self._conditions,
        }
        return Model(
            id=check_model_id(options.name or self.wanted.model),
            revision=options.revision
            or next(map(self.connection.address.clean, sorted(self._ledger.fingerprints)), None),
            backend="openai",
            precision=None,
            chat_template_sha256=template,
            endpoint="api",
            identity_sha256=model_identity(identity),
            conditions=self._conditions or None,
        )

    @cached_property
    def _conditions(self) -> dict[str, str]:
        """What the answers depend on beside the model and the prompt, as it was when the endpoint was probed."""
        options = self.options
        chosen = options.chat_conditions(0)
        if options.reasoning_effort is not None:
            chosen["reasoning_effort"] = options.reasoning_effort
        if fields := json_object("--extra-body", options.extra_body):
            chosen["extra_body"] = strict_json.canonical(dict(fields)).decode()
        return chosen | self.probed.conditions

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities of the endpoint, which is probed on first access."""
        return frozenset({"generation", "option_logprobs"} if self.probed.choice else {"generation"})

    @property
    def scores_first_token_only(self) -> bool:
        """True if options are scored by the alternatives for the first token of an answer; probes on first access."""
        return isinstance(self.probed.choice, FirstTokens)

    @property
    def _tokenizer_name(self) -> str | None:
        return None if self.options.tokenizer is None else local_name(self.options.tokenizer)

    @property
    @override
    def arguments(self) -> Sequence[str]:
        options = self.options
        arguments: dict[str, object] = {
            "model": self.wanted.model,
            "name": options.name,
            "revision": options.revision,
            # A result is published, and the address may be that of an internal machine.
            "base-url": "$OPENAI_BASE_URL" if not self.connection.address.is_openai else None,
            "api": self.probed.api,
            "tokenizer": self._tokenizer_name,
            "chat": options.chat,
            "end-logprobs": options.end_logprobs,
            "batch": options.batch,
            "extra-body": f"'{options.extra_body}'" if options.extra_body else None,
            "reasoning-effort": options.reasoning_effort,
            **options.chat_arguments,
        }
        headers = (f"--header {header.partition('=')[0]}=$VALUE" for header in options.header or ())
        return (*as_arguments(arguments), *headers)

    @property
    @override
    def runtime(self) -> Runtime:
        settings = dict(self.probed.settings)
        if self._ledger.models - {self.wanted.model}:
            # A server may report the path of its file.
            names = {name.rpartition("/")[2] if name.startswith("/") else name for name in self._ledger.models}
            settings[MODELS_THAT_ANSWERED] = ", ".join(sorted(names))
        if self._ledger.fingerprints:
            settings["system_fingerprints"] = ", ".join(sorted(self._ledger.fingerprints))
        settings["concurrency"] = str(self.connection.concurrency)
        return Runtime(
            packages=self._packages,
            settings={name: self.connection.address.clean(value) for name, value in settings.items()},
            obstacles={name: self.connection.address.clean(reason) for name, reason in self.probed.reasons.items()},
        )

    # Kept, because the runtime is asked for with every group of answers, and finding a version reads files.
    @cached_property
    def _packages(self) -> dict[str, str]:
        own = {"openai": importlib.metadata.version("openai")}
        return own | (self.tokenizer.packages if self.tokenizer else {})

    @override
    def without_keys(self, text: str) -> str:
        return super().without_keys(masked(text, self.connection.address.keys))

    @override
    def sends_messages(self) -> bool:
        return self.probed.api == "chat"

    def surely_sends_messages(self) -> bool:
        """Return True if the options or the address leave nothing but a chat."""
        # With a template of its own, the tokenizer makes messages of prompts that go through completions.
        has_template = self.tokenizer is not None and self.tokenizer.chat_template_sha256 is not None
        return has_template or all(possible.api == "chat" for possible in self._possible())

    def completion_options(self) -> Sequence[str]:
        """Return what lets completions score options: a tokenizer, and not to choose a chat."""
        if self.connection.address.is_openai:
            return ()
        needed = [] if self.tokenizer else ["--tokenizer NAME"]
        if self.api == "chat":
            needed.append("--api completions without --chat" if self.options.chat else "--api completions")
        return (f"{' and '.join(needed)}, where the endpoint has completions",) if needed else ()

    @override
    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        methods = self.probed
        if (sent := self._ledger.news()) is not None:
            yield sent
        if not missing:
            return
        self._check_names()
        run: BatchRun | ConcurrentRun
        if self.options.batch:
            identity = self.model.identity_sha256
            run = BatchRun(self.connection, methods, self._ledger, identity, self.state_path, self.batch_limits)
        else:
            run = ConcurrentRun(self.connection, methods, self._ledger, self.patience)
        # Closed with the caller's iterator, so that calls under way are cancelled then, not at garbage collection.
        with closing(run.ask(requests, missing)) as events:
            for event in events:
                yield event
                self._check_names()

    def _check_names(self) -> None:
        """Warn once if the endpoint answers in the name of another model, or of several; results record the names."""
        names = sorted(self._ledger.models)
        others = [name for name in names if not is_same_model(self.wanted.model, name)]
        if not (others or len(names) > 1) or self._has_warned:
            return
        self._has_warned = True
        address = self.connection.address
        shown = " and ".join(f"'{address.clean(name)}'" for name in (others[:1] if others else names))
        note(
            f"warning: {address.host_and_port} answers as {shown} and was asked for '{self.wanted.model}'; results "
            "record it; check --model, and what the endpoint routes to"
        )

    @override
    def count_tokens(self, requests: Sequence[Request]) -> TokenCount | None:
        if self.tokenizer is None:
            return None
        calls = _calls(self._possible()[0], requests)
        return TokenCount(sum(call.n_prompt or 0 for call in calls), sum(call.n_completion for call in calls))

    def most_tokens(self, requests: Sequence[Request]) -> TokenCount:
        """Return an upper bound on the tokens of the requests, without sending any; no tokenizer is needed.

        Before the endpoint is probed, the bound holds for chat and for completions, unless the user chose one.
        """
        calls_of_methods = [_calls(methods, requests) for methods in self._possible()]
        return TokenCount(
            max(sum(map(most_prompt_tokens, calls)) for calls in calls_of_methods),
            max(sum(call.n_completion for call in calls) for calls in calls_of_methods),
        )

    @property
    def context_tokens(self) -> int | None:
        """The endpoint's context length; None if not probed, not reported, or if there is no tokenizer to apply it."""
        probed: Methods | None = vars(self).get("probed")
        return probed.generation.context_tokens if probed and self.tokenizer and probed.api == "completions" else None

    @override
    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        return self.tokenizer.needed_tokens(requests) if self.tokenizer else ()

    @override
    def cost_usd(self, tokens: TokenCount) -> float | None:
        if self.price is None:
            return None
        return self.price.cost_usd(tokens.n_prompt, tokens.n_completion, batch=bool(self.options.batch))

    def _possible(self) -> list[Methods]:
        """Return the methods of the endpoint; before it is probed, those that may work, best first."""
        if "probed" in vars(self):
            return [self.probed]
        if self.api == "chat" or self.connection.address.is_openai:
            apis = ["chat"]
        else:
            apis = ["completions", "chat"] if self.api is None else ["completions"]
        generations = [replace(self.wanted, api=api, dialect=replace(self.wanted.dialect)) for api in apis]
        # The best one, for completions with many prompts per call and with one; none, where only texts can be asked.
        return [
            Methods(method, generation)
            for generation in generations
            for method in (*scoring_methods(generation)[: 1 if generation.api == "chat" else 2],) or (None,)
        ]


def _calls(methods: Methods, requests: Sequence[Request]) -> list[Call]:
    """Return the calls for all requests that can be asked."""
    calls: list[Call] = []
    for request in requests:
        with suppress(NoAnswerError):
            calls += methods.calls(request)
    return calls


def is_same_model(asked: str, answered: str) -> bool:
    """Return True if the name that an endpoint reports may mean the requested model.

    >>> is_same_model("gpt-4o", "openai/gpt-4o-2024-08-06")
    True
    >>> is_same_model("org/llama3", "/srv/models/llama3.gguf")
    True
    >>> is_same_model("gpt-4o", "gpt-4o-mini")
    False
    """
    # A server may leave out the organisation, or put a provider's name before it.
    names = [_parts(asked), _parts(answered)]
    n_common = min(map(len, names))
    return names[0][-n_common:] == names[1][-n_common:]


def _parts(name: str) -> list[str]:
    """Return the parts of a name between slashes; only the last for an absolute path."""
    *before, last = name.strip().lower().rstrip("/").split("/")
    return [*([] if name.startswith("/") else before), _NAME_ENDS.sub("", last)]


def open_backend(model: str, options: BackendOptions) -> OpenAIBackend:
    """Open a model behind an endpoint; nothing is sent yet.

    Args:
        model: Id of the model at the endpoint.
        options: Address, tokenizer, prices and limits. The API key is read from ``OPENAI_API_KEY``.

    Raises:
        ConfigError: the address or an option is not valid.
    """
    options.refuse_others("openai", but=_OPTIONS)
    check_model_id(options.name or model)
    if options.api not in (None, "chat", "completions"):
        raise ConfigError(f"--api {options.api} does not exist; have: chat, completions")
    if options.system_prompt is not None and options.api == "completions":
        raise ConfigError("--system-prompt is the first message of a chat; take --api chat, or leave it out")
    if options.chat and options.api == "completions" and options.tokenizer is None:
        raise ConfigError("--chat through completions needs --tokenizer, whose template is used; or take --api chat")
    if options.end_logprobs and (options.tokenizer is None or options.api == "chat"):
        raise ConfigError("--end-logprobs needs --tokenizer and --api completions; give both, or leave it out")
    if options.max_cost is not None and options.prices is None:
        raise ConfigError("--max-cost needs --prices FILE, with what the model's tokens cost")
    address = parse_address(
        options.base_url or os.environ.get("OPENAI_BASE_URL"),
        os.environ.get("OPENAI_API_KEY", "").strip(),
        options.header or (),
    )
    # With the chat API, the endpoint applies its own template.
    settings = options.chat_settings if options.chat and options.api != "chat" else {}
    tokenizer = load_tokenizer(options.tokenizer, **settings) if options.tokenizer else None
    extra = json_object("--extra-body", options.extra_body)
    if taken := sorted(extra.keys() & _OWN_FIELDS):
        raise ConfigError(f"--extra-body sets {', '.join(taken)}, as the prompt or another option does; leave it out")
    if arguments := options.template_arguments:
        extra = {**extra, "chat_template_kwargs": dict(arguments)}
    return OpenAIBackend(
        options=replace(options, base_url=address.shown),  # The URL as given may contain a password.
        connection=Connection(address, options.timeout or 120.0, options.concurrency or 64),
        wanted=Generation(
            model=model,
            api="chat",
            tokenizer=tokenizer,
            end_id=tokenizer.end_id if tokenizer and options.end_logprobs else None,
            extra=extra,
            system_prompt=options.system_text,
            dialect=Dialect(
                thinking_tokens=options.thinking_tokens or 0,
                has_chosen_budget=options.thinking_tokens is not None,
                wanted=frozenset(extra),
            ),
        ),
        # Without a tokenizer, only the endpoint has a template.
        api=options.api or ("chat" if options.chat and tokenizer is None else None),
        price=read_price(options.prices, model) if options.prices else None,
    )
