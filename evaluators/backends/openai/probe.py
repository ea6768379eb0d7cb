"""Finds out by small test calls what an endpoint supports, since servers differ and do not say.

A method works if it can answer a made-up request, with the same calls and the same parsing of replies as in a run.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from biasboard.ground.errors import ConfigError, RunError
from biasboard.ground.progress import note
from evaluators.backend import ChoiceRequest, GenerateRequest
from evaluators.backends.openai.client import Client, Connection, FaultError, RejectedError
from evaluators.backends.openai.concurrency import run_in_thread
from evaluators.backends.openai.costs import Ledger
from evaluators.backends.openai.methods import VLLM_SAMPLING, Generation, Methods
from evaluators.backends.openai.pacing import Caller, Pacer, Patience, Watch
from evaluators.backends.openai.protocol import MAX_TOKENS, AnswerError, Call, RefusalError, count, total_usage
from evaluators.backends.openai.scoring import (
    EchoText,
    FirstToken,
    OtherTokensError,
    ScoringMethod,
    echoes,
    scoring_methods,
)
from evaluators.models.tokenizer import ModelTokenizer

# The options differ in their first token and are short in all vocabularies; one has two words, so that their trie has
# two prompts.
_CHOICE = ChoiceRequest(prompt="The clock on the wall showed", options=(" a b", " c"), outcomes=("b", "c"))
_TEXT = GenerateRequest(prompt=_CHOICE.prompt, max_tokens=16, temperature=1.0)
# Impatient: a feature that fails three times is missing, and an endpoint that is down fails at the first call.
_PATIENCE = Patience(
    n_tries=3, n_timeouts=1, retries_unusable=False, call_seconds=0.0, outage_seconds=30.0, longest_pause=1.0
)
_START_SECONDS = 1.5
"""Seconds of retries while nothing listens at the address."""
_START_PAUSE = 0.3
_LISTING_SECONDS = 5.0
"""Seconds that the list of models may take; a server need compute nothing for it."""
_MOST_LISTED = 8
_ADDED_TOKENS = "log-probabilities would belong to another text; turn this off in the server, or use --api chat"

_Listing = Mapping[str, Mapping[str, Any]]
"""Fields that describe each model of an endpoint, by its name."""


@dataclass
class Probe:
    """A few small calls that find out what an endpoint supports."""

    connection: Connection
    model: str
    """Id of the model at the endpoint."""
    tokenizer: ModelTokenizer | None
    """Tokenizer of the model; None if the user named none."""
    end_id: int | None
    """Id of the end token, if it is scored after options; otherwise None."""
    ledger: Ledger
    _reasons: dict[str, str] = field(default_factory=dict)
    _listing: _Listing | None = None
    _has_replied: bool = False

    def run(self, api: str | None) -> Methods:
        """Return the best methods that work through an API: ``chat``, ``completions``, or either if None.

        Raises:
            ConfigError: the endpoint cannot be reached, refuses the key or the model, or changes the prompt; or the
                tokenizer is not that of the model.
        """
        pacer = Pacer(2, _PATIENCE)
        watch = Watch(self.connection, pacer)
        try:
            return run_in_thread(self._run(pacer, api), lambda: watch.look(1))
        except RunError as error:
            raise ConfigError(f"{self._where}: {error}") from None
        except AnswerError as error:
            raise ConfigError(f"no test call: {error}; name the model's own tokenizer with --tokenizer") from None

    @property
    def _where(self) -> str:
        return self.connection.address.shown

    async def _run(self, pacer: Pacer, api: str | None) -> Methods:
        async with Client(self.connection) as client:
            self._caller = Caller(client, pacer, self.ledger)
            await self._read_models(client)
            methods: Methods | None = None
            if api != "chat":
                methods = await self._scoring("completions")
            # Completions come first, because they can score whole options; chat returns at most 20 alternatives for
            # the first token.
            if methods is None and api != "completions":
                methods = await self._scoring("chat") or await self._texts_alone("chat")
            if methods is None and api != "chat":
                methods = await self._texts_alone("completions")
            if methods is None:
                raise ConfigError(await self._failure(client))
            return methods

    async def _read_models(self, client: Client) -> None:
        """Read the endpoint's list of models for the context length and the kind of server, if it has such a list.

        Raises:
            ConfigError: nothing listens at the address.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        while self._listing is None:
            try:
                self._listing = await _read_listing(client)
            except RejectedError:
                return
            except FaultError as fault:
                if fault.timed_out:
                    host, seconds = self.connection.address.host_and_port, f"{_LISTING_SECONDS:g} s"
                    note(f"no answer from {host} to a first question within {seconds}; asking again")
                if fault.sent:
                    return
                # Nothing listens at the address yet: the server may be starting.
                if loop.time() - began >= _START_SECONDS:
                    raise ConfigError(
                        f"{self._where} cannot be reached: {fault.reason}; start the server, or check --base-url"
                    ) from None
                await asyncio.sleep(_START_PAUSE)

    def _generation(self, api: str) -> Generation:
        entry = (self._listing or {}).get(self.model, {})
        return Generation(
            model=self.model,
            api=api,
            tokenizer=self.tokenizer,
            context_tokens=count(entry.get("max_model_len")) or None,
            extra=VLLM_SAMPLING if entry.get("owned_by") == "vllm" else {},
        )

    async def _scoring(self, api: str) -> Methods | None:
        """Return the methods of an API with the best one that scores options; None if none does."""
        generation = self._generation(api)
        useless = set()
        for method in scoring_methods(api, self.model, self.tokenizer, generation.context_tokens, self.end_id):
            # A parameter that was ignored will be ignored in other spellings of the call too, but perhaps not with one
            # prompt per call.
            if (method.name, method.lists) in useless:
                continue
            try:
                calls = method.calls(_CHOICE)
            except AnswerError as error:
                # It may exceed a short context. Whether the prompts of the run fit is checked when it is planned.
                self._reasons[method.name] = f"no test call: {error}"
                continue
            replies = await self._replies(method.name, calls)
            if replies is None:
                continue
            try:
                method.read(_CHOICE, replies)
            except OtherTokensError as error:
                self._check_length(method, calls, replies)
                self._explain_echo(error)
                self._reasons[method.name] = "echo is not served (the prompt's tokens do not come back)"
            except (AnswerError, RefusalError, RecursionError) as error:
                self._reasons[method.name] = f"{method.needs} is not served ({error})"
            else:
                self._check_length(method, calls, replies)
                self._reasons.pop(method.name, None)
                generation = replace(generation, gives_logprobs=True)
                if isinstance(method, FirstToken):
                    generation = replace(generation, max_tokens=method.max_tokens)
                return self._methods(method, await self._with_sampling(generation) or generation)
            useless.add((method.name, method.lists))
        return None

    async def _texts_alone(self, api: str) -> Methods | None:
        """Return the methods of an API that only generates text; None if it does not."""
        for name in MAX_TOKENS:
            generation = await self._with_sampling(replace(self._generation(api), max_tokens=name))
            if generation is not None:
                return self._methods(None, generation)
        return None

    def _methods(self, choice: ScoringMethod | None, generation: Generation) -> Methods:
        return Methods(choice, generation, {name: why for name, why in self._reasons.items() if name != "generation"})

    async def _with_sampling(self, generation: Generation) -> Generation | None:
        """Leave out the sampling parameters that the endpoint refuses; return None if it generates no text."""
        while await self._replies("generation", generation.calls(_TEXT)) is None:
            optional = {"seed", "top_p", *generation.extra} - generation.left_out
            refused = {name for name in optional if name in self._reasons["generation"]}
            if not refused:
                return None
            generation = replace(
                generation,
                left_out=generation.left_out | (refused - generation.extra.keys()),
                extra={name: value for name, value in generation.extra.items() if name not in refused},
            )
        return generation

    async def _replies(self, name: str, calls: list[Call]) -> list[Mapping[str, Any]] | None:
        """Return the replies to the calls of a method; if a call fails, record the reason and return None."""
        replies = []
        for call in calls:
            try:
                replies.append(await self._caller.call(call))
            except FaultError as fault:
                # Other test calls would time out or fail the same way.
                if fault.timed_out or (fault.status is None and not fault.unusable and not self._has_replied):
                    raise ConfigError(
                        f"{self._where}: {fault.reason}; check --base-url, and that the server runs"
                    ) from None
                self._reasons[name] = fault.reason
                return None
            except RejectedError as error:
                # A missing route (404) says nothing about the other routes.
                if error.remedy is not None and error.status != 404:
                    raise ConfigError(f"{self._where}: {error.reason}; {error.remedy}") from None
                self._has_replied = True
                self._reasons[name] = error.reason
                return None
            self._has_replied = True
        return replies

    def _explain_echo(self, error: OtherTokensError) -> None:
        """Raise a ConfigError if the endpoint does echo, but with an added BOS or with other tokens."""
        assert self.tokenizer is not None
        if echoes(error.tokens[1:], error.ids, self.tokenizer):
            raise ConfigError(
                f"the endpoint silently puts '{error.tokens[0]}' before the prompt, as a BOS; {_ADDED_TOKENS}"
            )
        # Fewer tokens than were sent may be no echo, but the answer of a server that ignores the parameter.
        if len(error.tokens) >= len(error.ids):
            raise ConfigError(
                "the endpoint's tokens are not those of --tokenizer; name the tokenizer of the model that it serves"
            )

    @staticmethod
    def _check_length(method: ScoringMethod, calls: list[Call], replies: list[Mapping[str, Any]]) -> None:
        """Raise a ConfigError if the endpoint counts more prompt tokens than were sent or echoed."""
        if isinstance(method, FirstToken):
            return  # The chat template adds some.
        if isinstance(method, EchoText):
            n_sent = sum(len(echoed.tokens) for echoed in method.echoed(_CHOICE, replies))
        else:
            n_sent = sum(call.n_prompt or 0 for call in calls)
        # llama-cpp-python adds a BOS, which shifted log-probabilities by 0.1 to 0.2 nats.
        n_counted, _ = total_usage(replies)
        if n_counted is not None and n_counted > n_sent:
            raise ConfigError(
                f"the endpoint counts {n_counted} prompt tokens where {n_sent} were sent or came back: it silently "
                f"adds some, such as a BOS; {_ADDED_TOKENS}"
            )

    async def _failure(self, client: Client) -> str:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in self._reasons.items())
        listing = self._listing
        if listing is None:
            likely = await _likely_address(client, self._where)
            if likely is not None:
                return f"{self._where} is not the address of an API; did you mean --base-url {likely}?"
        elif listing and self.model not in listing:
            like = difflib.get_close_matches(self.model, listing, n=_MOST_LISTED, cutoff=0.0)
            more = len(listing) - len(like)
            return (
                f"{self._where} does not answer for model '{self.model}': {next(iter(self._reasons.values()))}; the "
                f"endpoint has: {', '.join(like)}{f' and {more} more' if more else ''}; name one of them with --model"
            )
        return (
            f"{self._where} does not answer for model '{self.model}' ({reasons}); check --model and --base-url, and "
            "that the server runs"
        )


async def _read_listing(client: Client, base: str = "") -> _Listing:
    """Read the list of models below a URL, or below the client's own; raise what ``Client.get`` raises."""
    data = (await client.get(f"{base}/models", seconds=_LISTING_SECONDS)).data.get("data")
    entries = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []
    return {name: entry for entry in entries if isinstance(name := entry.get("id"), str)}


async def _likely_address(client: Client, url: str) -> str | None:
    """Return a usual base URL on the same host that has a list of models; None if none of them has."""
    for candidate in _usual_addresses(url):
        try:
            if await _read_listing(client, candidate):
                return candidate
        except RejectedError as error:
            # Only an API asks for a key.
            if error.status in (401, 403):
                return candidate
        except FaultError as fault:
            if not fault.unusable:
                return None
    return None


def _usual_addresses(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    before, version, _ = parts.path.partition("/v1")
    for path in [f"{before}/v1"] if version else dict.fromkeys([f"{parts.path}/v1", "/v1"]):
        address = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        if address != url:
            yield address
