"""Finds out by small test calls what an endpoint supports, since servers differ and do not say.

A method works if it can answer a made-up request, with the same calls and the same parsing of replies as in a run.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import ChoiceRequest, Response
from evaluators.backends.openai.client import Client, Connection
from evaluators.backends.openai.concurrency import run_in_thread
from evaluators.backends.openai.costs import Ledger
from evaluators.backends.openai.dialect import Dialect
from evaluators.backends.openai.generation import TEST, VLLM_SAMPLING, Generation, thinks
from evaluators.backends.openai.meanings import NoAnswerError, mappings_in
from evaluators.backends.openai.pacing import Caller, Pacer, Patience
from evaluators.backends.openai.protocol import Call, count, total_usage
from evaluators.backends.openai.scoring import (
    FirstTokens,
    Methods,
    OtherTokensError,
    ScoringMethod,
    echoes,
    scoring_methods,
)

# The options differ in their first token and are short in all vocabularies; one has two words, so that their trie has
# two prompts.
_CHOICE = ChoiceRequest(prompt=TEST.prompt, options=(" a b", " c"), outcomes=("b", "c"))
_WAYS_OFF: Sequence[Mapping[str, Any]] = (
    {"reasoning_effort": "none"},  # OpenAI, Gemini, Ollama
    {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},  # vLLM, SGLang: Qwen and DeepSeek
    {"thinking": {"type": "disabled"}},  # Anthropic, DeepSeek, Z.ai
    {"enable_thinking": False},  # DashScope
    {"reasoning": {"enabled": False}},  # OpenRouter
    {"think": False},  # Ollama
)
"""Parameters by which endpoints switch thinking off."""
# Impatient: a feature that fails three times is missing, and an endpoint that is down fails at the first call.
_PATIENCE = Patience(
    n_tries=3, n_timeouts=1, retries_unusable=False, call_seconds=0.0, outage_seconds=30.0, longest_pause=1.0
)
_LISTING_SECONDS = 5.0
"""Seconds that the list of models may take; a server need compute nothing for it."""
_MOST_LISTED = 8
_ADDED_TOKENS = "log-probabilities would belong to another text; turn this off in the server, or use --api chat"


@dataclass
class Probe:
    """A few small calls that find out what an endpoint supports."""

    connection: Connection
    wanted: Generation
    """How the user wants texts to be generated: the model, and what is set for every call."""
    effort: str | None
    """Effort of thinking, or ``off``; None for the endpoint's own."""
    ledger: Ledger
    _reasons: dict[str, str] = field(default_factory=dict)
    """Reasons why methods do not work, by their names."""
    _missing: set[str] = field(default_factory=set)
    """Names of the methods whose route is not there."""
    _closed: dict[str, str] = field(default_factory=dict)
    """Remedies for methods whose route may not be used, as by a key without the right to it."""
    _listing: Mapping[str, Mapping[str, Any]] | None = None
    """Fields that describe each model of the endpoint, by its name; None if it has no list of them."""

    def run(self, api: str | None) -> Methods:
        """Return the best methods that work through an API: ``chat``, ``completions``, or either if None.

        Raises:
            ConfigError: the endpoint cannot be reached, refuses the key or the model, or changes the prompt; or the
                tokenizer is not that of the model.
        """
        pacer = Pacer(replace(self.connection, concurrency=2), _PATIENCE)
        try:
            return run_in_thread(self._run(pacer, api), lambda: pacer.look(1))
        except RunError as error:
            raise ConfigError(f"{self._where}: {error}") from None

    @property
    def _where(self) -> str:
        return self.connection.address.shown

    async def _run(self, pacer: Pacer, api: str | None) -> Methods:
        async with Client(self.connection) as client:
            self._caller = Caller(client, pacer, self.ledger)
            await self._read_models(client)
            methods = None if api == "chat" else await self._scoring(self._generation("completions"))
            # Completions come first, because they can score whole options; chat returns at most 20 alternatives for
            # the first token.
            if methods is None and api != "completions":
                methods = await self._texts("chat")
            if methods is None and api != "chat":
                methods = await self._texts("completions")
            if methods is None:
                raise ConfigError(self._failure())
            # OpenAI's own models have nothing but chat.
            if api != "chat" and self.wanted.tokenizer is None and not self.connection.address.is_openai:
                why = "completions score whole options only with --tokenizer, the model's own"
                methods = replace(methods, reasons={**methods.reasons, "echo": why})
            return methods

    async def _read_models(self, client: Client) -> None:
        """Read the endpoint's list of models for the context length and the kind of server, if it has such a list."""
        try:
            listed = await client.get("/models", seconds=_LISTING_SECONDS)
        except NoAnswerError as error:
            if not error.sent:
                raise ConfigError(
                    f"{self._where} cannot be reached: {error.reason}; start the server, or check --base-url"
                ) from None
            return
        entries = mappings_in(listed, "data")
        self._listing = {name: entry for entry in entries if isinstance(name := entry.get("id"), str)}

    def _generation(self, api: str) -> Generation:
        entry, wanted = (self._listing or {}).get(self.wanted.model, {}), self.wanted
        return replace(
            wanted,
            api=api,
            context_tokens=count(entry.get("max_model_len")) or None,
            extra={**(VLLM_SAMPLING if entry.get("owned_by") == "vllm" else {}), **wanted.extra},
            dialect=replace(wanted.dialect),
        )

    async def _scoring(self, generation: Generation) -> Methods | None:
        """Return the methods of an API with the best one that scores options; None if none does."""
        useless = set()
        for method in scoring_methods(generation):
            # A parameter that was ignored will be ignored in other spellings of the call too, but perhaps not with one
            # prompt per call.
            if (method.name, method.lists) in useless:
                continue
            calls = partial(method.calls, _CHOICE)
            replies = await self._replies(method.name, calls, generation.dialect)
            if method.name in self._closed:
                return None
            if replies is None:
                continue
            try:
                method.read(_CHOICE, replies)
            except OtherTokensError as error:
                self._check_length(method, calls(), replies)
                self._explain_echo(error)
                self._reasons[method.name] = "echo is not served (the prompt's tokens do not come back)"
            except NoAnswerError as error:
                self._reasons[method.name] = f"{method.needs} is not served ({error})"
            else:
                self._check_length(method, calls(), replies)
                self._reasons.pop(method.name, None)
                generation = replace(generation, gives_logprobs=True)
                if generation.api == "completions":
                    await self._trial(generation)
                return self._methods(method, generation)
            useless.add((method.name, method.lists))
        return None

    async def _texts(self, api: str) -> Methods | None:
        """Return the methods of an API that generates text, with log-probabilities of letters where it gives them."""
        generation = self._generation(api)
        answer = await self._trial(generation)
        if answer is None:
            return None
        if self.effort is not None:
            generation, answer = await self._with_effort(generation, self.effort)
        does_think = answer.status == "answered" and thinks(answer)
        if does_think:
            self._reasons["first_token"] = "the model thinks before it answers, so that its first token is no option"
            # Asked once more with these tokens, which may be more than the endpoint takes.
            if generation.dialect.grant_thinking() and await self._trial(generation) is None:
                return None
        scoring = await self._scoring(generation) if api == "chat" and not does_think else None
        return scoring or self._methods(None, generation)

    async def _with_effort(self, generation: Generation, effort: str) -> tuple[Generation, Response]:
        """Set the effort of thinking, or switch it off, in the first way that the endpoint takes; there must be one."""
        is_off = effort in ("off", "none")
        # The last is OpenRouter's.
        for way in _WAYS_OFF if is_off else ({"reasoning_effort": effort}, {"reasoning": {"effort": effort}}):
            tried = replace(generation, extra={**generation.extra, **way})
            answer = await self._trial(tried)
            # A server may ignore what it does not know.
            if answer is not None and not (is_off and thinks(answer)):
                return tried, answer
        why = self._reasons.get("chat", "it goes on thinking")
        raise ConfigError(
            f"{self._where}: --reasoning-effort {effort} has no effect here ({why}); leave it out, or give what this "
            "endpoint wants with --extra-body"
        )

    def _methods(self, choice: ScoringMethod | None, generation: Generation) -> Methods:
        reasons = {name: why for name, why in self._reasons.items() if name not in ("chat", "completions")}
        return Methods(choice, generation, reasons, self.connection.address.without_secrets)

    async def _trial(self, generation: Generation) -> Response | None:
        """Ask for a text, and return the answer; None if the endpoint gives no text."""
        replies = await self._replies(generation.api, partial(generation.calls, TEST), generation.dialect)
        return None if replies is None else Methods(None, generation).response(TEST, replies)

    async def _replies(
        self, name: str, calls: Callable[[], Sequence[Call]], dialect: Dialect
    ) -> list[Mapping[str, Any]] | None:
        """Return the replies to the calls of a method; if one fails, record the reason and return None."""
        try:
            return await self._caller.replies(calls, dialect)
        except NoAnswerError as error:
            # Other test calls would time out or fail the same way.
            is_lost = error.status is None and not error.unusable and not self._caller.pacer.n_answered
            if error.timed_out or (error.passes and is_lost):
                raise ConfigError(
                    f"{self._where}: {error.reason}; check --base-url, and that the server runs"
                ) from None
            self._reasons[name] = error.reason
            if not error.passes and error.status is None:
                self._reasons[name] = f"no test call: {error.reason}"
                if name in ("chat", "completions"):
                    raise ConfigError(
                        f"{self._reasons[name]}; name the model's own tokenizer with --tokenizer"
                    ) from None
            # A route that is missing or forbidden says nothing about the other routes.
            if error.status in (404, 405):
                self._missing.add(name)
            elif error.remedy is not None:
                self._closed[name] = error.remedy
            return None

    def _explain_echo(self, error: OtherTokensError) -> None:
        """Raise a ConfigError if the endpoint does echo, but with an added BOS or with other tokens."""
        assert self.wanted.tokenizer is not None
        if echoes(error.tokens[1:], error.ids, self.wanted.tokenizer):
            raise ConfigError(
                f"the endpoint silently puts '{error.tokens[0]}' before the prompt, as a BOS; {_ADDED_TOKENS}"
            )
        # Fewer tokens than were sent may be no echo, but the answer of a server that ignores the parameter.
        if len(error.tokens) >= len(error.ids):
            raise ConfigError(
                "the endpoint's tokens are not those of --tokenizer; name the tokenizer of the model that it serves"
            )

    @staticmethod
    def _check_length(method: ScoringMethod, calls: Sequence[Call], replies: Sequence[Mapping[str, Any]]) -> None:
        """Raise a ConfigError if the endpoint counts more prompt tokens than were sent."""
        if isinstance(method, FirstTokens):
            return  # The chat template adds some.
        n_sent = sum(call.n_prompt or 0 for call in calls)
        # llama-cpp-python adds a BOS, which shifted log-probabilities by 0.1 to 0.2 nats.
        n_counted, _ = total_usage(replies)
        if n_counted is not None and n_counted > n_sent:
            raise ConfigError(
                f"the endpoint counts {n_counted} prompt tokens where {n_sent} were sent: it silently adds some, such "
                f"as a BOS; {_ADDED_TOKENS}"
            )

    def _failure(self) -> str:
        # The answer of a route that is there says more than that another one is missing.
        telling = {name: why for name, why in self._reasons.items() if name not in self._missing} or self._reasons
        reasons = "; ".join(f"{name}: {why}" for name, why in telling.items())
        address, listing, model = self.connection.address, self._listing, self.wanted.model
        if closed := [name for name in telling if name in self._closed]:
            return f"{self._where}: {telling[closed[-1]]}; {self._closed[closed[-1]]}"
        if address.is_azure and "api-version" not in address.query:
            return f"{self._where} ({reasons}): Azure may want a version; add ?api-version=VERSION to --base-url"
        if listing and model not in listing:
            like = difflib.get_close_matches(model, listing, n=_MOST_LISTED, cutoff=0.0)
            more = len(listing) - len(like)
            return (
                f"{self._where} does not answer for model '{model}': {next(iter(telling.values()))}; the "
                f"endpoint has: {', '.join(like)}{f' and {more} more' if more else ''}; name one of them with --model"
            )
        usual = " which ends in /v1 for most endpoints," if listing is None and not self._where.endswith("/v1") else ""
        return (
            f"{self._where} does not answer for model '{model}' ({reasons}); check --model and --base-url,{usual} and "
            "that the server runs"
        )
