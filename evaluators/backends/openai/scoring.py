"""Methods to get the log-probabilities of options from an endpoint, from exact ones to upper bounds.

The context "The nurse called" with the options " the engineer" and " the nurse"::

    option_trie   The nurse called                 -> the log-probability of "the"
                  The nurse called the             -> those of "engineer" and "nurse"
    echo          The nurse called the engineer    -> every token with its log-probability
                  The nurse called the nurse
    first_token   (message) The nurse called       -> the most probable first tokens of an answer

* ``option_trie``: completions with ``logprob_token_ids``. The options' tokens form a trie, and each of its inner nodes
  is a prompt. One token is generated, with the log-probabilities of exactly the tokens that may follow the node. The
  endpoint computes the context once and caches it, which ``echo`` prevents.
* ``echo``: completions that return the tokens of context and option with their log-probabilities.
* ``first_token``: chat with ``top_logprobs``. Options are scored by the first token of the answer and must differ in
  it. Every returned token that reads as the option counts, with its space or without. An option gets an upper bound
  if its first token is not returned, or if it has further tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.backends.openai.generation import Generation, shows_thinking
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.protocol import (
    COMPLETIONS,
    Call,
    check_refusal,
    choices,
    echo,
    first_logprobs,
    first_tokens,
    logprob,
    only_choice,
    token_id,
    total_usage,
)
from evaluators.models.option_trie import (
    MOST_TOKEN_IDS,
    Node,
    TokenQuestion,
    edges_of,
    end_logprobs,
    option_logprobs,
    split_wide,
)
from evaluators.models.tokenizer import ModelTokenizer, TokenRows

# Temperature 1 leaves log-probabilities unchanged even where a server applies sampling parameters to them. Even an echo
# generates a token, because llama-cpp-python reads max_tokens 0 as no limit.
_ONE_TOKEN: Mapping[str, Any] = {"max_tokens": 1, "temperature": 1.0, "top_p": 1.0}
_MOST_PROMPTS = 64
_TOP_LOGPROBS = (20, 5)
"""Numbers of alternatives to ask chat for: OpenAI gives at most 20, and some servers 5."""
# Added to the remaining probability, which has no logarithm if the alternatives hold all of it.
_ROUNDING = 1e-6
_SPACES = " ▁ĠĊ\n\r\t"
"""Spaces around a token, also as vocabularies write them."""
_SIGNS = _SPACES + "()[]*_`'\".,:"
"""What may stand around a letter in one token: models write "(A", "**A" or "A.", and mean the letter."""
_CONDITIONS = ("temperature", "top_p")
"""Parameters whose absence leaves it to the provider how answers are drawn."""


class OtherTokensError(NoAnswerError):
    """An echo whose tokens differ from those that were sent."""

    def __init__(self, tokens: Sequence[str], ids: Sequence[int]) -> None:
        super().__init__("the endpoint gives back other tokens than it was sent")
        self.tokens = tokens
        self.ids = ids


@dataclass(frozen=True)
class _Completions:
    """The calls of the methods that send token ids to complete."""

    generation: Generation
    lists: bool

    def _prompts(self, prompts: Sequence[Sequence[int]], rest: Mapping[str, Any]) -> list[Call]:
        # vLLM accepts lists of prompts; llama-cpp-python and ``transformers serve`` fail on them.
        size = _MOST_PROMPTS if self.lists else 1
        calls = []
        for start in range(0, len(prompts), size):
            part = [list(ids) for ids in prompts[start : start + size]]
            prompt = part if self.lists else part[0]
            body = {"model": self.generation.model, "prompt": prompt, **_ONE_TOKEN, **rest}
            calls.append(Call(COMPLETIONS, body, sum(map(len, part)), len(part)))
        return calls

    def _choices(self, n_prompts: int, replies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        size = _MOST_PROMPTS if self.lists else 1
        found: list[Mapping[str, Any]] = []
        for start, data in zip(range(0, n_prompts, size), replies, strict=True):
            found += choices(data, min(size, n_prompts - start))
        for choice in found:
            check_refusal(choice)
        return found

    def _rows(self, request: ChoiceRequest, n_further: int) -> TokenRows:
        """Return the token ids of a request, if they leave room for some further tokens in the model's context."""
        context = self.generation.context_tokens
        rows = self._tokenizer.rows(request, None if context is None else context - n_further)
        if isinstance(rows, str):
            raise NoAnswerError(rows)
        return rows

    @property
    def _tokenizer(self) -> ModelTokenizer:
        assert self.generation.tokenizer is not None
        return self.generation.tokenizer


@dataclass(frozen=True)
class OptionTrie(_Completions):
    """The scoring of options by completions with ``logprob_token_ids``."""

    name: ClassVar = "option_trie"
    needs: ClassVar = "logprob_token_ids"

    def calls(self, request: ChoiceRequest) -> list[Call]:
        """Return calls with one prompt for each inner node of the trie."""
        flags = {"logprobs": 1, "return_tokens_as_token_ids": True}
        return [
            call
            for nodes, ids in self._groups(self._rows(request, int(self.generation.end_id is not None)))
            for call in self._prompts(nodes, {**flags, "logprob_token_ids": ids})
        ]

    def _groups(self, rows: TokenRows) -> list[tuple[list[Node], list[int]]]:
        """Group the nodes by call, each group with the union of the tokens that may follow its nodes.

        A call has a single list of tokens. A node with too many successors is in several groups.
        """
        groups: list[tuple[list[Node], set[int]]] = []
        edges = edges_of([rows], end_id=self.generation.end_id)
        for node, tokens in split_wide(TokenQuestion(node, tuple(sorted(ids))) for node, ids in edges.items()):
            nodes, ids = groups[-1] if groups and self.lists else ([], set())
            if nodes and len(nodes) < _MOST_PROMPTS and len(ids.union(tokens)) <= MOST_TOKEN_IDS:
                nodes.append(node)
                ids.update(tokens)
            else:
                groups.append(([node], set(tokens)))
        return [(nodes, sorted(ids)) for nodes, ids in groups]

    def read(self, request: ChoiceRequest, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Sum the log-probabilities of the tokens along each option's path through the trie."""
        rows = self._rows(request, 0)
        edges: dict[Node, dict[int, float]] = {}
        for (nodes, ids), reply in zip(self._groups(rows), replies, strict=True):
            for node, choice in zip(nodes, self._choices(len(nodes), [reply]), strict=True):
                listed = first_logprobs(choice, "top_logprobs")
                returned = {token_id(str(token)): value for token, value in listed.items()}
                known = {id_: logprob(returned[id_], what=f"token {id_}") for id_ in ids if id_ in returned}
                edges.setdefault(node, {}).update(known)
        try:
            end_id = self.generation.end_id
            ends = () if end_id is None else end_logprobs(rows, edges, end_id)
            if None in ends:
                raise KeyError(end_id)
            return _scored(option_logprobs(rows, edges), rows.token_counts, rows.n_moved, replies, ends=ends)
        except KeyError as error:
            raise NoAnswerError(f"the answer lacks the log-probability of token {error.args[0]}") from error


@dataclass(frozen=True)
class EchoIds(_Completions):
    """The scoring of options by completions with ``echo``, with token ids as prompts."""

    as_ids: bool
    """True if the endpoint can write tokens as ``token_id:N``."""
    name: ClassVar = "echo"
    needs: ClassVar = "echo"

    def calls(self, request: ChoiceRequest) -> list[Call]:
        """Return calls with one prompt per option."""
        flag = {"return_tokens_as_token_ids": True} if self.as_ids else {}
        # One further token is generated after the prompt.
        return self._prompts(self._rows(request, 1).ids, {"echo": True, "logprobs": 1, **flag})

    def read(self, request: ChoiceRequest, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Sum the log-probabilities of each option's tokens."""
        rows = self._rows(request, 0)
        sums = []
        for ids, choice in zip(rows.ids, self._choices(len(rows.ids), replies), strict=True):
            tokens, values = echo(choice)
            if not echoes(tokens, ids, self._tokenizer):
                raise OtherTokensError(tokens, ids)
            scored = range(rows.n_context, len(ids))
            sums.append(sum(logprob(values[place], what=f"token {place} ('{tokens[place]}')") for place in scored))
        return _scored(sums, rows.token_counts, rows.n_moved, replies)


def echoes(tokens: Sequence[str], ids: Sequence[int], tokenizer: ModelTokenizer) -> bool:
    """Return True if the echoed tokens begin with those that were sent."""
    for token, id_ in zip(tokens, ids, strict=False):
        if (number := token_id(token)) is not None:
            is_same = number == id_
        else:
            text = str(tokenizer.pretrained.decode([id_]))
            # Servers write a token with or without its space, and differ in how they write part of a character.
            is_same = "\ufffd" in text or token.startswith("bytes:") or token.strip(" ▁Ġ") == text.strip(" ▁Ġ")
        if not is_same:
            return False
    return len(tokens) >= len(ids)


@dataclass(frozen=True)
class FirstTokens:
    """The scoring of options by chat with ``top_logprobs``."""

    generation: Generation
    top: int = _TOP_LOGPROBS[0]
    """Number of alternatives to ask for."""
    name: ClassVar = "first_token"
    needs: ClassVar = "top_logprobs"
    lists: ClassVar = False

    def calls(self, request: ChoiceRequest) -> list[Call]:
        """Return the one call to send."""
        options = [option.lstrip() for option in request.options]
        for position, option in enumerate(options):
            if not option or option in options[:position]:
                fault = f"'{option}' is there twice" if option else f"'{request.options[position]}' is empty"
                raise NoAnswerError(f"option {fault}")
        (call,) = self.generation.calls(GenerateRequest(prompt=request.prompt, max_tokens=1, temperature=1.0))
        return [call._replace(body={**call.body, "logprobs": True, "top_logprobs": self.top})]

    def read(self, request: ChoiceRequest, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Read the log-probability of each option: that of all first tokens that read as it, or an upper bound."""
        choice = only_choice(replies[0])
        if shows_thinking(choice):
            raise NoAnswerError("the first token is not of the answer: the model thinks before it")
        tokens = first_tokens(choice)
        known = [value for _, value in tokens if value is not None]
        if not known:
            raise NoAnswerError("the answer holds no log-probability of a token")
        # A token that was not returned is no more probable than the least probable that was, or than what is left.
        rest = max(0.0, 1.0 - sum(map(math.exp, known))) + _ROUNDING
        unseen = min(min(known), math.log(rest))
        options = [option.lstrip() for option in request.options]
        values: list[float | None] = []
        bounds: list[bool] = []
        for option in options:
            # A model may write an option with or without a space before it: each way is a part of its probability.
            found = [value for text, value in tokens if _reads_as(text, option)]
            bounds.append(not found)
            for token, value in tokens if not found else ():
                text = token.strip(_SPACES)
                if not text or not option.startswith(text):
                    continue
                if len(sharing := [other for other in options if other.startswith(text)]) > 1:
                    raise NoAnswerError(
                        f"options {', '.join(sharing)} begin with the same token; use letters as options"
                    )
                found.append(value)
            stated = [value for value in found if value is not None]
            # Unknown, and not unseen: it is among the returned tokens, however probable.
            is_unknown = bool(found) and not stated
            values.append(None if is_unknown else _log_sum(stated) if stated else unseen)
        counts = tuple(None if bound else 1 for bound in bounds)
        return _scored(values, counts, None, replies, tuple(bounds))


def _reads_as(token: str, option: str) -> bool:
    """Return True if a token is an option; a single letter may have signs around it, as in "(A" and "**A"."""
    text = token.strip(_SPACES)
    return text == option or (len(option) == 1 and text.strip(_SIGNS) == option)


def _log_sum(logprobs: Sequence[float]) -> float:
    """Return the log-probability of any of several tokens; rounding may not lift it above 0."""
    largest = max(logprobs)
    return min(0.0, largest + math.log(math.fsum(math.exp(value - largest) for value in logprobs)))


ScoringMethod: TypeAlias = OptionTrie | EchoIds | FirstTokens
"""A method: ``calls`` returns the calls for a request, and ``read`` reads the replies, in the same order.

Both raise a ``NoAnswerError`` if the request cannot be asked or a reply lacks what it needs. ``needs`` is the parameter
that the endpoint must support, and ``lists`` is true if one call may hold several prompts.
"""


def scoring_methods(generation: Generation) -> list[ScoringMethod]:
    """Return the methods that an endpoint may support through the API of a generation, best first."""
    many_or_one = (True, False)
    if generation.api == "chat":
        return [FirstTokens(generation, top) for top in _TOP_LOGPROBS]
    if generation.tokenizer is None:
        return []
    tries = [OptionTrie(generation, lists) for lists in many_or_one]
    return [*tries, *(EchoIds(generation, lists, as_ids) for lists in many_or_one for as_ids in (True, False))]


def _scored(
    values: Sequence[float | None],
    counts: tuple[int | None, ...],
    n_moved: int | None,
    replies: Sequence[Mapping[str, Any]],
    bounds: tuple[bool, ...] = (),
    ends: tuple[float | None, ...] = (),
) -> Response:
    n_prompt, n_completion = total_usage(replies)
    return Response(
        status="answered",
        option_logprobs=tuple(values),
        option_is_bound=bounds if any(bounds) else (),
        # The end of an option is one more token to score, which only the trie can ask for.
        option_end_logprobs=ends or (None,) * len(values),
        option_token_counts=counts,
        n_moved_tokens=n_moved,
        n_prompt_tokens=n_prompt,
        n_completion_tokens=n_completion,
    )


@dataclass(frozen=True)
class Methods:
    """The methods that work at a probed endpoint, or may work at one that is not probed yet."""

    choice: ScoringMethod | None
    """Method for option log-probabilities; None if the endpoint returns none."""
    generation: Generation
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Reasons why better methods are not used, by the name of the method."""
    without_secrets: Callable[[str], str] = str
    """Function that takes the endpoint's secrets out of what it says."""

    @property
    def api(self) -> str:
        """The API of all requests: ``chat`` or ``completions``."""
        return self.generation.api

    @property
    def option_scoring(self) -> str | None:
        """The name of the method for option log-probabilities; None if no method works."""
        return self.choice.name if self.choice else None

    @property
    def top_logprobs(self) -> int:
        """The number of alternatives that chat returns for the first token; 0 if it is not used."""
        return self.choice.top if isinstance(self.choice, FirstTokens) else 0

    @property
    def conditions(self) -> dict[str, str]:
        """What answers depend on beside the model and the prompt, by name; empty for an endpoint that takes all."""
        dialect = self.generation.dialect
        refused = {name: "the provider's" for name in _CONDITIONS if name in dialect.left_out}
        n_thinking = min(dialect.thinking_tokens, dialect.most_tokens or dialect.thinking_tokens)
        return refused | ({"thinking_tokens": str(n_thinking)} if n_thinking else {})

    @property
    def settings(self) -> dict[str, str]:
        """The methods as they are recorded in a result."""
        return {
            "api": self.api,
            "option_scoring": self.option_scoring or "none",
            "prompts_per_call": "many" if self.choice and self.choice.lists else "one",
            **self.conditions,
            **({"top_logprobs": str(self.top_logprobs)} if self.top_logprobs else {}),
            **self.generation.dialect.settings,
            **{f"not_{name}": reason for name, reason in self.reasons.items()},
        }

    def calls(self, request: Request) -> list[Call]:
        """Return the calls to send.

        Raises:
            NoAnswerError: the request cannot be asked.
        """
        if not isinstance(request, ChoiceRequest):
            return self.generation.calls(request)
        if self.choice is None:
            raise NoAnswerError("the endpoint returns no log-probabilities; use a prompt that is answered in text")
        return self.choice.calls(request)

    def response(self, request: Request, replies: Sequence[Mapping[str, Any]]) -> Response:
        """Build the response to a request from the replies to all its calls, in the order of the calls."""
        try:
            if isinstance(request, ChoiceRequest):
                assert self.choice is not None
                return self.choice.read(request, replies)
            return self.generation.read(request, replies)
        except NoAnswerError as error:
            error.reason = self.without_secrets(error.reason)
            return response_of(error, replies)


def response_of(error: NoAnswerError, replies: Sequence[Mapping[str, Any]] = ()) -> Response:
    """Return the response to a request without an answer: refused by the model or a filter, or failed."""
    n_prompt, n_completion = total_usage(replies)
    return Response(
        status="refused" if error.means == "refused" else "failed",
        error=error.reason,
        finish_reason=error.finish_reason,
        n_prompt_tokens=n_prompt,
        n_completion_tokens=n_completion,
    )
