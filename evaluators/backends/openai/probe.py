"""Finds out by small test calls what an endpoint can do, since servers differ and do not say so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from biasboard.ground.errors import ConfigError, RunError
from biasboard.ground.progress import note
from evaluators.backends.openai.address import Address
from evaluators.backends.openai.budget import Budget
from evaluators.backends.openai.caller import Caller, Connection, GaveUpError, Tally, run_apart
from evaluators.backends.openai.client import Call, Client, FaultError, RejectedError, quiet_logs
from evaluators.backends.openai.generation import VLLM_SAMPLING
from evaluators.backends.openai.listing import LISTING_SECONDS, Listing, meant_address, read_listing
from evaluators.backends.openai.outage import Watch
from evaluators.backends.openai.pacing import Pacer, Patience
from evaluators.backends.openai.reading import AnswerError, choices, count, echo, logprob, token_id, usage
from evaluators.backends.openai.scoring import CHAT, COMPLETIONS, ONE_TOKEN, echoes, first_tokens, n_echoed
from evaluators.models.tokenizer import ModelTokenizer

_TEXT = "The clock on the wall showed"
# A feature that fails three times while others work is missing. If the endpoint is down, the first call fails.
_PATIENCE = Patience(
    n_tries=3, n_timeouts=1, retries_unusable=False, call_seconds=0.0, outage_seconds=30.0, longest_pause=1.0
)
_START_SECONDS = 1.5
"""Seconds for which an endpoint at whose address nothing listens is tried again."""
_START_PAUSE = 0.3
_TOP_LOGPROBS = (20, 5)
_ADDED = "log-probabilities would belong to another text; turn this off in the server, or use --api chat"
_MAX_TOKENS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, kw_only=True)
class Probed:
    """The features and limits that were found at an endpoint."""

    api: str
    """``chat`` or ``completions``."""
    option_scoring: str | None
    """Name of the method for option log-probabilities; None if no method works."""
    lists: bool = False
    """True if one call may hold several prompts."""
    as_ids: bool = False
    """True if the endpoint can write tokens as ``token_id:N``."""
    top_logprobs: int = 0
    """Number of alternatives that chat returns for the first token; 0 if it is not used."""
    max_tokens: str = "max_tokens"
    """Name of the endpoint's parameter for the largest number of tokens to generate."""
    unknown: frozenset[str] = frozenset()
    """Sampling parameters that the endpoint refuses."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further sampling parameters to send, which override the server's own defaults."""
    room: int | None = None
    """Largest number of tokens in prompt and answer together; None if the endpoint does not say."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons why better methods are not used, by the name of the method."""

    @property
    def settings(self) -> dict[str, str]:
        """The findings as they are recorded in a result."""
        found = {
            "api": self.api,
            "option_scoring": self.option_scoring or "none",
            "prompts_per_call": "many" if self.lists else "one",
            "max_tokens_parameter": self.max_tokens,
        }
        if self.top_logprobs:
            found["top_logprobs"] = str(self.top_logprobs)
        if self.unknown:
            found["parameters_left_out"] = ", ".join(sorted(self.unknown))
        return found | {f"not_{way}": reason for way, reason in self.reasons.items()}


def probe(
    connection: Connection,
    model: str,
    api: str | None,
    tokenizer: ModelTokenizer | None,
    budget: Budget,
    tally: Tally,
) -> Probed:
    """Find out with a few small calls what an endpoint can do.

    Args:
        connection: Address of the endpoint and limits on calls.
        model: Id of the model at the endpoint.
        api: API to use, ``chat`` or ``completions``; None for whichever can do more.
        tokenizer: Tokenizer of the model; None if the user named none.
        budget: Budget from which the calls are paid.
        tally: Tally to which the calls are added.

    Raises:
        ConfigError: the endpoint cannot be reached, refuses the key or the model, or changes the prompt; or the
            tokenizer is not that of the model.
    """
    pacer = Pacer(2, _PATIENCE, np.random.default_rng(0))
    watch = Watch(connection.address.place, pacer, connection.timeout)

    async def work() -> Probed:
        with quiet_logs(connection.address):
            async with Client(connection.address, connection.timeout) as client:
                caller = Caller(client, pacer, budget, tally)
                return await _Probe(client, caller, model, tokenizer, connection.address).run(api)

    try:
        return run_apart(work, lambda: watch.look(1))
    except RunError as error:
        raise ConfigError(f"{connection.address.url}: {error}") from None


class _Probe:
    def __init__(
        self, client: Client, caller: Caller, model: str, tokenizer: ModelTokenizer | None, address: Address
    ) -> None:
        self._where = address.url
        self._place = address.place
        self._client = client
        self._caller = caller
        self._model = model
        self._tokenizer = tokenizer
        self._reasons: dict[str, str] = {}
        self._listing: Listing | None = None
        self._n_replies = 0
        self._room: int | None = None
        self._extra: Mapping[str, Any] = {}

    async def run(self, api: str | None) -> Probed:
        """Find the best way in which the endpoint answers."""
        await self._read_models()
        found: Probed | None = None
        if api != "chat":
            found = await self._completions()
        if found is None and api != "completions":
            found = await self._chat()
        if found is None and api != "chat":
            found = await self._plain("completions")
        if found is None:
            raise ConfigError(await self._complaint())
        return found

    async def _complaint(self) -> str:
        reasons = "; ".join(f"{way}: {reason}" for way, reason in self._reasons.items())
        if self._listing is None:
            meant = await meant_address(self._client, self._where)
            if meant is not None:
                return f"{self._where} is not the address of an API; did you mean --base-url {meant}?"
        elif self._listing.entries and self._model not in self._listing.entries:
            return (
                f"{self._where} does not answer for model '{self._model}': {next(iter(self._reasons.values()))}; the "
                f"endpoint has: {self._listing.nearest(self._model)}; name one of them with --model"
            )
        return (
            f"{self._where} does not answer for model '{self._model}' ({reasons}); check --model and --base-url, and "
            "that the server runs"
        )

    async def _read_models(self) -> None:
        """Read the endpoint's list of models for the context length and the kind of server, if it has such a list.

        Raises:
            ConfigError: nothing listens at the address.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            try:
                self._listing = await read_listing(self._client)
                break
            except RejectedError:
                return
            except FaultError as fault:
                if fault.timed_out:
                    note(f"no answer from {self._place} to a first question within {LISTING_SECONDS:g} s; asking again")
                if fault.sent:
                    return
                # Nothing listens at the address yet: the server may be starting.
                if loop.time() - began >= _START_SECONDS:
                    raise ConfigError(
                        f"{self._where} cannot be reached: {fault.reason}; start the server, or check --base-url"
                    ) from None
                await asyncio.sleep(_START_PAUSE)
        entry = self._listing.entries.get(self._model, {})
        self._room = count(entry.get("max_model_len")) or None
        self._extra = VLLM_SAMPLING if entry.get("owned_by") == "vllm" else {}

    async def _ask(self, way: str, route: str, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the reply to a call; if there is none, note the reason under ``way`` and return None."""
        try:
            reply = await self._caller.call(Call(route, {"model": self._model, **body}))
        except GaveUpError as error:
            last = error.last
            # Other test calls would only take as long again, or meet the same closed door.
            if last.timed_out or (last.status is None and not last.unusable and not self._n_replies):
                raise ConfigError(f"{self._where}: {error}; check --base-url, and that the server runs") from None
            self._reasons[way] = str(error)
        except RejectedError as error:
            # A missing route (404) says nothing about the other routes.
            if error.remedy is not None and error.status != 404:
                raise ConfigError(f"{self._where}: {error.reason}; {error.remedy}") from None
            self._n_replies += 1
            self._reasons[way] = error.reason
        else:
            self._n_replies += 1
            return reply
        return None

    async def _completions(self) -> Probed | None:
        """Return what completions can do with their best method for scoring options; None if no method works."""
        ways = [self._trie, self._echo_ids] if self._tokenizer else [self._echo_text]
        for way in ways:
            for lists in (True, False):
                found = await way(lists=lists)
                if found is not None:
                    self._reasons = {name: why for name, why in self._reasons.items() if name != found.option_scoring}
                    return await self._with_sampling(found)
        return None

    def _ids(self) -> list[int]:
        assert self._tokenizer is not None
        ids = self._tokenizer.context_ids(_TEXT)
        if len(ids) < 2:
            raise ConfigError("the tokenizer makes a single token of a sentence; name the model's own with --tokenizer")
        return ids

    async def _trie(self, *, lists: bool) -> Probed | None:
        ids = self._ids()
        wanted = sorted(set(ids[-2:]))
        body = {**ONE_TOKEN, "logprobs": 1, "logprob_token_ids": wanted, "return_tokens_as_token_ids": True}
        prompts = [ids, ids[:-1]] if lists else [ids]
        data = await self._ask("option_trie", COMPLETIONS, {**body, "prompt": prompts if lists else ids})
        if data is None:
            return None
        try:
            for choice in choices(data, len(prompts)):
                held = choice.get("logprobs") or {}
                top = {token_id(str(token)): value for token, value in ((held.get("top_logprobs") or [{}])[0]).items()}
                for one in wanted:
                    logprob(top.get(one), what=f"token {one}")
        except (AnswerError, AttributeError, TypeError) as error:
            self._reasons["option_trie"] = f"logprob_token_ids is not served ({error})"
            return None
        self._check_length(data, sum(map(len, prompts)))
        return self._found("completions", "option_trie", lists=lists, as_ids=True)

    async def _echo_ids(self, *, lists: bool) -> Probed | None:
        assert self._tokenizer is not None
        ids = self._ids()
        prompts = [ids, ids[:-1]] if lists else [ids]
        for as_ids in (True, False):
            flag = {"return_tokens_as_token_ids": True} if as_ids else {}
            body = {**ONE_TOKEN, "echo": True, "logprobs": 1, **flag, "prompt": prompts if lists else ids}
            data = await self._ask("echo", COMPLETIONS, body)
            if data is None:
                continue
            try:
                for choice, sent in zip(choices(data, len(prompts)), prompts, strict=True):
                    given = echo(choice)
                    if not echoes(given.tokens, sent, self._tokenizer):
                        self._check_length(data, sum(map(len, prompts)))
                        self._complain_of_echo(given.tokens, sent)
                    for value, token in list(zip(given.logprobs, given.tokens, strict=True))[1 : len(sent)]:
                        logprob(value, what=f"the echoed token '{token}'")
            except AnswerError as error:
                self._reasons["echo"] = str(error)
                return None
            self._check_length(data, sum(map(len, prompts)))
            return self._found("completions", "echo", lists=lists, as_ids=as_ids)
        return None

    def _complain_of_echo(self, tokens: Sequence[str], ids: Sequence[int]) -> None:
        assert self._tokenizer is not None
        if echoes(tokens[1:], ids, self._tokenizer):
            raise ConfigError(f"the endpoint silently puts '{tokens[0]}' before the prompt, as a BOS; {_ADDED}")
        # With fewer tokens than were sent it may be no echo, but a server that ignores the parameter.
        if len(tokens) >= len(ids):
            raise ConfigError(
                "the endpoint's tokens are not those of --tokenizer; name the tokenizer of the model that it serves"
            )
        raise AnswerError("echo is not served: the prompt's tokens do not come back")

    def _check_length(self, data: Mapping[str, Any], n_sent: int) -> None:
        n_counted = usage(data).n_prompt
        if n_counted is not None and n_counted > n_sent:
            raise ConfigError(
                f"the endpoint counts {n_counted} prompt tokens where {n_sent} were sent or came back: it silently "
                f"adds some, such as a BOS; {_ADDED}"
            )

    async def _echo_text(self, *, lists: bool) -> Probed | None:
        texts = [_TEXT, f"{_TEXT} noon"] if lists else [_TEXT]
        body = {**ONE_TOKEN, "echo": True, "logprobs": 1, "prompt": texts if lists else _TEXT}
        data = await self._ask("echo_text", COMPLETIONS, body)
        if data is None:
            return None
        n_echo = 0
        try:
            for choice, text in zip(choices(data, len(texts)), texts, strict=True):
                given = echo(choice)
                n = n_echoed(given.tokens, text)
                n_echo += n
                for value, token in list(zip(given.logprobs, given.tokens, strict=True))[1:n]:
                    logprob(value, what=f"the echoed token '{token}'")
        except AnswerError as error:
            self._reasons["echo_text"] = str(error)
            return None
        self._check_length(data, n_echo)
        return self._found("completions", "echo_text", lists=lists)

    async def _chat(self) -> Probed | None:
        """Return what chat can do, with log-probabilities if it returns any; None if chat does not work."""
        message = {"messages": [{"role": "user", "content": _TEXT}], "temperature": 1.0}
        for name in _MAX_TOKENS:
            for top in _TOP_LOGPROBS:
                body = {**message, name: 1, "logprobs": True, "top_logprobs": top}
                data = await self._ask("first_token", CHAT, body)
                if data is None:
                    if name in self._reasons["first_token"]:
                        break
                    continue
                try:
                    first_tokens(choices(data, 1)[0])
                except AnswerError as error:
                    self._reasons["first_token"] = str(error)
                    return await self._plain("chat")
                self._reasons.pop("first_token", None)
                found = self._found("chat", "first_token", top_logprobs=top, max_tokens=name)
                return await self._with_sampling(found)
        return await self._plain("chat")

    async def _plain(self, api: str) -> Probed | None:
        """Return how an API generates text, without log-probabilities; None if it does not work."""
        for name in _MAX_TOKENS:
            found = await self._with_sampling(self._found(api, None, max_tokens=name), required=True)
            if found is not None:
                return found
        return None

    async def _with_sampling(self, found: Probed, *, required: bool = False) -> Probed | None:
        """Find out which sampling parameters may be sent, and add them to what was found.

        Args:
            found: Features found so far.
            required: True to return None if no text is generated; otherwise ``found`` is returned unchanged.
        """
        prompt = {"messages": [{"role": "user", "content": _TEXT}]} if found.api == "chat" else {"prompt": _TEXT}
        route = CHAT if found.api == "chat" else COMPLETIONS
        sampling = {found.max_tokens: 16, "temperature": 1.0, "top_p": 1.0, "seed": 1, **found.extra}
        unknown: set[str] = set()
        while True:
            body = {name: value for name, value in {**prompt, **sampling}.items() if name not in unknown}
            data = await self._ask("generation", route, body)
            if data is not None:
                self._reasons.pop("generation", None)
                break
            refused = [name for name in ("seed", "top_p", *found.extra) if name in self._reasons["generation"]]
            if not set(refused) - unknown:
                return None if required else found
            unknown |= set(refused)
        extra = {name: value for name, value in found.extra.items() if name not in unknown}
        return replace(found, unknown=frozenset(unknown & {"seed", "top_p"}), extra=extra, reasons=dict(self._reasons))

    def _found(self, api: str, way: str | None, **more: Any) -> Probed:
        return Probed(
            api=api, option_scoring=way, room=self._room, extra=self._extra, reasons=dict(self._reasons), **more
        )
