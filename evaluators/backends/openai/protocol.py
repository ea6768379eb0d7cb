"""The calls of OpenAI's protocol, and the fields of their replies, checked because servers differ and omit fields."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from evaluators.backends.openai.meanings import NoAnswerError, list_in, mapping_in, mappings_in, meaning_of_ending
from evaluators.models.tokenizer import ModelTokenizer

# Servers write this for a probability of zero, since JSON has no infinity.
_ZERO = -9999.0
_ROUNDING = 1e-4
_MOST_ROUNDING = 0.02
"""Excess over 1 that rounding of 20 log-probabilities may cause, as where a server computes them in bfloat16."""
_LONGEST_VALUE = 80
_MOST_COUNT = 2**31 - 1
"""Largest number that is accepted as a count: larger ones come from broken servers and would break sums and prices."""
# Of streams of server-sent events:
_DATA, _END = "data:", "[DONE]"
_STARTS = (b"data:", b"event:", b"id:", b": ")
_BLANK = b" \t\r\n\xef\xbb\xbf"
"""What may stand before a body: white space, and the mark of UTF-8."""
_NAMES = frozenset({"role", "finish_reason", "id", "type", "object", "model"})
"""Fields whose texts do not grow from part to part."""
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


def usage(data: Mapping[str, Any]) -> tuple[int | None, int | None, int]:
    """Return the token counts that a reply reports.

    Returns:
        Number of prompt tokens, and that of completion tokens, each None if the endpoint does not say; and how many
        prompt tokens came from its cache, 0 if it does not say.
    """
    counts = mapping_in(data, "usage")
    n_cached = count(mapping_in(counts, "prompt_tokens_details").get("cached_tokens")) or 0
    n_completion = count(counts.get("completion_tokens"))
    n_prompt, n_total = count(counts.get("prompt_tokens")), count(counts.get("total_tokens"))
    # Some leave the tokens of thinking out of the completion, and count them in the total alone.
    if n_prompt is not None and n_total is not None and n_total >= n_prompt:
        n_completion = max(n_completion or 0, n_total - n_prompt)
    return n_prompt, n_completion, n_cached


def total_usage(replies: Sequence[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """Return the numbers of prompt and completion tokens in several replies; None if a reply does not report them."""
    counts = [usage(data) for data in replies]
    prompts, completions = ([n for of_reply in counts if (n := of_reply[part]) is not None] for part in (0, 1))
    return (
        sum(prompts) if counts and len(prompts) == len(counts) else None,
        sum(completions) if counts and len(completions) == len(counts) else None,
    )


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
    for choice in list_in(data, "choices"):
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


def first_tokens(choice: Mapping[str, Any]) -> list[tuple[str, float | None]]:
    """Return the most probable first tokens of an answer in a chat, and the chosen one, without those of probability 0.

    Each comes with its log-probability in nats, which is None if the endpoint does not say. Two tokens may have the
    same text: a vocabulary may hold it with and without its space, and some servers leave the space out.

    Raises:
        NoAnswerError: the choice holds no such tokens.
    """
    first = first_logprobs(choice, "content")
    entries = [entry for entry in mappings_in(first, "top_logprobs") if isinstance(entry.get("token"), str)]
    if not entries:
        raise NoAnswerError("the answer holds no top_logprobs")
    if isinstance(first.get("token"), str) and _text_of(first) not in map(_text_of, entries):
        entries.append(first)
    tokens: list[tuple[str, float | None]] = []
    for entry in entries:
        known = None
        # Unknown, such as null or "-Infinity" for what a server masked.
        with suppress(NoAnswerError):
            known = logprob(entry.get("logprob"), what="a token")
        tokens.append((_text_of(entry), known))
    # The same token may be listed twice, which adds up to more than all of the probability.
    for distinct in (tokens, list(dict.fromkeys(tokens))):
        if math.fsum(math.exp(value) for _, value in distinct if value is not None) <= 1 + _MOST_ROUNDING:
            return [(text, value) for text, value in distinct if value != -math.inf]
    raise NoAnswerError("the probabilities of the first token add up to more than 1")


_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


def _text_of(entry: Mapping[str, Any]) -> str:
    """Return the text of a token, which may be written as bytes or as a number with its bytes beside it."""
    token, given = str(entry["token"]), entry.get("bytes")
    spelled = b""
    if isinstance(given, list) and all(type(one) is int and 0 <= one < 256 for one in given):
        spelled = bytes(given)
    if token.startswith("bytes:"):
        spelled = token.removeprefix("bytes:").encode("latin-1", "ignore").decode("unicode_escape").encode("latin-1")
    elif token_id(token) is None:
        return _BYTE.sub(lambda byte: chr(int(byte[1], 16)), token) if _BYTE.fullmatch(token) else token
    return spelled.decode(errors="replace") if spelled else token


def first_logprobs(choice: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """Return the first entry, that of the first generated token, of a list in a choice's log-probabilities.

    Raises:
        NoAnswerError: the choice holds no such list.
    """
    listed = list_in(mapping_in(choice, "logprobs"), field)
    if not listed or not isinstance(listed[0], Mapping):
        raise NoAnswerError("the answer holds no log-probabilities")
    return listed[0]


def echo(choice: Mapping[str, Any]) -> tuple[list[str], list[object]]:
    """Return the tokens that a completion with ``echo`` returns, and the unchecked log-probability of each.

    Raises:
        NoAnswerError: the choice does not hold one log-probability per token.
    """
    logprobs = mapping_in(choice, "logprobs")
    if not logprobs:
        raise NoAnswerError("the answer holds no log-probabilities")
    tokens, values = list_in(logprobs, "tokens"), list_in(logprobs, "token_logprobs")
    if not tokens or len(tokens) != len(values):
        raise NoAnswerError("the answer does not hold one log-probability per token")
    return list(map(str, tokens)), values


def token_id(token: str) -> int | None:
    """Return the number in ``token_id:123``; None if the token is written as text."""
    prefix, _, number = token.partition("token_id:")
    # Digits of other scripts are converted too; a number too large for any vocabulary is text.
    return int(number) if prefix == "" and number.isdecimal() and len(number) <= 9 else None


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
    message, ending = mapping_in(choice, "message"), choice.get("finish_reason")
    for refusal in (part.get("refusal") for part in (message, *mappings_in(message, "content"))):
        if isinstance(refusal, str) and refusal.strip().lower() not in ("", "null", "none", "false"):
            ending = ending if isinstance(ending, str) and ending != "stop" else None
            raise NoAnswerError(refusal, "refused", finish_reason=ending)
    if isinstance(ending, str) and meaning_of_ending(ending) == "refused":
        reason = f"the answer ended with finish_reason {shown(ending)}"
        raise NoAnswerError(reason, "refused", finish_reason="content_filter")


def is_stream(content: bytes, media_type: str) -> bool:
    """Return True if a body is a stream of server-sent events, and not JSON that is only called one."""
    begun = content.lstrip(_BLANK)
    return begun.startswith(_STARTS) or (media_type == "text/event-stream" and not begun.startswith(b"{"))


def whole_reply(content: bytes, read: Callable[[str], dict[str, Any] | str]) -> dict[str, Any] | str:
    """Return the answer that the parts of a stream make up, as it would come without streaming.

    Returns:
        The answer; the first error in it, as an answer; or why the stream is none.
    """
    reply: dict[str, Any] = {}
    by_index: dict[Any, dict[str, Any]] = {}
    has_ended = is_error = False
    # Not splitlines(), which also splits at characters that a text may hold, such as U+2028.
    for line in content.decode("utf-8-sig", "replace").split("\n"):
        if not line.startswith(_DATA):
            is_error = line.strip() == "event: error" or (is_error and bool(line.strip()))
            continue
        text = line.removeprefix(_DATA).strip()
        if text in ("", _END):
            has_ended |= text == _END
            continue
        part = read(text)
        if isinstance(part, str) or part.get("error") or is_error:
            return part if isinstance(part, str) or part.get("error") else {"error": part}
        reply |= {name: value for name, value in part.items() if name != "choices" and value is not None}
        for choice in mappings_in(part, "choices"):
            # Some servers write an empty reason until there is one.
            ending = choice.get("finish_reason")
            known = {**choice, "finish_reason": None if ending in ("", "null") else ending}
            has_ended |= known["finish_reason"] is not None
            _join(by_index.setdefault(choice.get("index", 0), {}), known)
    if not reply and not by_index:
        return "a stream without parts"
    return {**reply, "choices": list(by_index.values())} if has_ended else "a stream that was cut off"


def _join(whole: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Add a part of a choice or message to what came before: texts and lists grow, other values replace earlier."""
    for name, value in part.items():
        kept = "message" if name == "delta" else name
        before = whole.get(kept)
        if isinstance(value, Mapping):
            inner = dict(before) if isinstance(before, Mapping) else {}
            begun = inner.get("content")
            # Some servers repeat at the end all that came before.
            if name == "message" and isinstance(begun, str) and begun and str(value.get("content")).startswith(begun):
                inner.update(value)
            else:
                _join(inner, value)
            whole[kept] = inner
        elif isinstance(before, str) and isinstance(value, str) and name not in _NAMES:
            whole[kept] = before + value
        elif isinstance(before, str | list) and isinstance(value, str | list) and name not in _NAMES:
            # A text may go on as a list of parts.
            whole[kept] = [*_parts(before), *_parts(value)]
        elif value is not None or kept not in whole:
            whole[kept] = value


def _parts(value: str | list[Any]) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []
