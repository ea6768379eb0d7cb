"""The calls of OpenAI's protocol, and the fields of their replies, checked because servers differ and omit fields."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evaluators.backends.openai.meanings import NoAnswerError, meaning_of_ending
from evaluators.models.tokenizer import ModelTokenizer

# Servers write this for a probability of zero, since JSON has no infinity.
_ZERO = -9999.0
_ROUNDING = 1e-4
_MOST_ROUNDING = 0.02
"""Excess over 1 that rounding of 20 log-probabilities may cause, as where a server computes them in bfloat16."""
_LONGEST_ID = 9
_LONGEST_VALUE = 80
_MOST_COUNT = 2**31 - 1
"""Largest number that is accepted as a count: larger ones come from broken servers and would break sums and prices."""
COMPLETIONS = "/completions"
CHAT = "/chat/completions"
_CHAT_FRAME = 7
"""Number of tokens that OpenAI's chat format adds around a single message."""


class Call(NamedTuple):
    """An HTTP call to an endpoint."""

    route: str
    """Path below the base URL, such as ``/completions``."""
    body: Mapping[str, Any]
    n_prompt: int | None = None
    """Number of prompt tokens; None if unknown."""
    n_completion: int = 1
    """Largest number of completion tokens."""


def chat_tokens(tokenizer: ModelTokenizer | None, prompt: str) -> int | None:
    """Return the number of tokens of a prompt that is sent as a message; None without a tokenizer."""
    if tokenizer is None:
        return None
    if tokenizer.pretrained.chat_template:
        return len(ModelTokenizer(tokenizer.pretrained, chat=True).context_ids(prompt))
    ids: list[int] = tokenizer.pretrained(prompt, add_special_tokens=False)["input_ids"]
    return len(ids) + _CHAT_FRAME


class TokenUsage(NamedTuple):
    """The token counts that an endpoint reports; None if it does not."""

    n_prompt: int | None
    n_completion: int | None
    n_cached: int
    """Number of prompt tokens that came from the endpoint's cache; 0 if it does not say."""


def usage(data: Mapping[str, Any]) -> TokenUsage:
    """Return the token counts that a reply reports."""
    counts = data.get("usage")
    if not isinstance(counts, Mapping):
        return TokenUsage(None, None, 0)
    details = counts.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    n_completion = count(counts.get("completion_tokens"))
    n_prompt, n_total = count(counts.get("prompt_tokens")), count(counts.get("total_tokens"))
    # Some leave the tokens of thinking out of the completion, and count them in the total alone.
    if n_prompt is not None and n_total is not None and n_total >= n_prompt:
        n_completion = max(n_completion or 0, n_total - n_prompt)
    return TokenUsage(n_prompt, n_completion, cached or 0)


def total_usage(replies: Sequence[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """Return the numbers of prompt and completion tokens in several replies; None if a reply does not report them."""
    counts = [usage(data) for data in replies]
    return _total([n.n_prompt for n in counts]), _total([n.n_completion for n in counts])


def _total(counts: Sequence[int | None]) -> int | None:
    reported = [n for n in counts if n is not None]
    return sum(reported) if counts and len(reported) == len(counts) else None


def count(value: object) -> int | None:
    """Return a number of tokens or of choices; None if the value is no valid count."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_COUNT else None


def shown(value: object) -> str:
    """Return a value of any type as text for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} ..."


def choices(data: Mapping[str, Any], n: int) -> list[Mapping[str, Any]]:
    """Return the ``n`` choices of a reply in the order of their index.

    Choices may come in any order, and repeatedly if their contents are equal.

    Raises:
        NoAnswerError: a choice is missing, unexpected, or came twice with different contents.
    """
    by_index: dict[int, Mapping[str, Any]] = {}
    listed = data.get("choices")
    for choice in listed if isinstance(listed, list) else []:
        if not isinstance(choice, Mapping):
            raise NoAnswerError("a choice of the answer is no JSON object")
        # A single choice needs no index.
        index = count(choice.get("index", 0 if n == 1 else None))
        if index is None or index >= n:
            raise NoAnswerError(
                f"the answer holds a choice with index {shown(choice.get('index'))}; {n} were asked for"
            )
        if index in by_index and by_index[index] != choice:
            raise NoAnswerError(f"the answer holds choice {index} twice, with different contents")
        by_index[index] = choice
    missing = [index for index in range(n) if index not in by_index]
    if missing:
        raise NoAnswerError(
            f"the answer lacks {len(missing)} of {n} choices, the first of them with index {missing[0]}"
        )
    return [by_index[index] for index in range(n)]


def logprob(value: object, *, what: str) -> float:
    """Check a log-probability and return it in nats.

    Args:
        value: Value in the reply; -9999 and less mean a probability of zero and give -inf.
        what: What the log-probability belongs to, for errors.

    Raises:
        NoAnswerError: the value is null, or not a log-probability.
    """
    # ``transformers serve`` does this without an error.
    if value is None:
        raise NoAnswerError(f"the log-probability of {what} is null; the endpoint does not compute it")
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value > _ROUNDING:
        raise NoAnswerError(f"{shown(value)} is no log-probability of {what}")
    return -math.inf if value <= _ZERO else min(0.0, float(value))


class FirstToken(NamedTuple):
    """A token that an answer may begin with."""

    text: str
    logprob: float | None
    """Its log-probability in nats; None if the endpoint does not say."""


def first_tokens(choice: Mapping[str, Any]) -> list[FirstToken]:
    """Return the most probable first tokens of an answer in a chat, and the chosen one, without those of probability 0.

    Two tokens may have the same text: a vocabulary may hold it with and without its space, and some servers leave the
    space out.

    Raises:
        NoAnswerError: the choice holds no such tokens.
    """
    first = first_logprobs(choice, "content")
    listed = first.get("top_logprobs")
    entries = [entry for entry in (listed if isinstance(listed, list) else ()) if _is_token(entry)]
    if not entries:
        raise NoAnswerError("the answer holds no top_logprobs")
    if _is_token(first) and _text_of(first) not in map(_text_of, entries):
        entries.append(first)
    tokens = [FirstToken(_text_of(entry), _known(entry.get("logprob"))) for entry in entries]
    # More than all of the probability: the same token was listed twice.
    if _total_probability(tokens) > 1 + _MOST_ROUNDING:
        tokens = list(dict.fromkeys(tokens))
        if _total_probability(tokens) > 1 + _MOST_ROUNDING:
            raise NoAnswerError("the probabilities of the first token add up to more than 1")
    return [token for token in tokens if token.logprob != -math.inf]


def _total_probability(tokens: Sequence[FirstToken]) -> float:
    return math.fsum(math.exp(value) for _, value in tokens if value is not None)


def _is_token(entry: object) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("token"), str)


def _known(value: object) -> float | None:
    """Return a log-probability; None if it is none, such as null or "-Infinity" for what a server masked."""
    try:
        return logprob(value, what="a token")
    except NoAnswerError:
        return None


_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


def _text_of(entry: Mapping[str, Any]) -> str:
    """Return the text of a token, which may be written as bytes or as a number with its bytes beside it."""
    token, given = str(entry["token"]), entry.get("bytes")
    spelled = bytes(given) if isinstance(given, list) and all(_is_byte(one) for one in given) else b""
    if token.startswith("bytes:"):
        spelled = token.removeprefix("bytes:").encode("latin-1", "ignore").decode("unicode_escape").encode("latin-1")
    elif token_id(token) is None:
        return _BYTE.sub(lambda byte: chr(int(byte[1], 16)), token) if _BYTE.fullmatch(token) else token
    return spelled.decode(errors="replace") if spelled else token


def _is_byte(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 256


def first_logprobs(choice: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """Return the first entry, that of the first generated token, of a list in a choice's log-probabilities.

    Raises:
        NoAnswerError: the choice holds no such list.
    """
    logprobs = choice.get("logprobs")
    listed = logprobs.get(field) if isinstance(logprobs, Mapping) else None
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, Mapping):
        raise NoAnswerError("the answer holds no log-probabilities")
    return first


class EchoedTokens(NamedTuple):
    """The tokens that a completion with ``echo`` returns, and the unchecked log-probability of each."""

    tokens: tuple[str, ...]
    logprobs: tuple[object, ...]

    def cut(self, n: int) -> EchoedTokens:
        """Return the first ``n`` tokens."""
        return EchoedTokens(self.tokens[:n], self.logprobs[:n])


def echo(choice: Mapping[str, Any]) -> EchoedTokens:
    """Return the tokens that a choice echoes.

    Raises:
        NoAnswerError: the choice does not hold one log-probability per token.
    """
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, Mapping):
        raise NoAnswerError("the answer holds no log-probabilities")
    tokens, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
    if not isinstance(tokens, list) or not isinstance(values, list) or len(tokens) != len(values):
        raise NoAnswerError("the answer does not hold one log-probability per token")
    return EchoedTokens(tuple(map(str, tokens)), tuple(values))


def token_id(token: str) -> int | None:
    """Return the number in ``token_id:123``; None if the token is written as text."""
    prefix, _, number = token.partition("token_id:")
    # Digits of other scripts are converted too; a number too large for any vocabulary is text.
    return int(number) if prefix == "" and number.isdecimal() and len(number) <= _LONGEST_ID else None


def only_choice(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the choice of a reply to a single prompt.

    Raises:
        NoAnswerError: there is none, or more than one, or the endpoint declined to answer.
    """
    if data.get("choices") == []:
        # Gemini answers a blocked prompt like this; whatever else loses a choice says so by an error.
        reason = "the endpoint gave no choice, as where a filter blocks the prompt"
        raise NoAnswerError(reason, "refused", finish_reason="content_filter")
    (choice,) = choices(data, 1)
    check_refusal(choice)
    return choice


def check_refusal(choice: Mapping[str, Any]) -> None:
    """Check that the endpoint did not decline to answer.

    Raises:
        NoAnswerError: the endpoint declined.
    """
    message, ending = choice.get("message"), choice.get("finish_reason")
    message = message if isinstance(message, Mapping) else {}
    content = message.get("content")
    parts = [part for part in (content if isinstance(content, list) else ()) if isinstance(part, Mapping)]
    for refusal in (message.get("refusal"), *(part.get("refusal") for part in parts)):
        if isinstance(refusal, str) and refusal.strip().lower() not in ("", "null", "none", "false"):
            ending = ending if isinstance(ending, str) and ending != "stop" else None
            raise NoAnswerError(refusal, "refused", finish_reason=ending)
    if isinstance(ending, str) and meaning_of_ending(ending) == "refused":
        reason = f"the answer ended with finish_reason {shown(ending)}"
        raise NoAnswerError(reason, "refused", finish_reason="content_filter")
