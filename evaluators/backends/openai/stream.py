"""Puts the parts of a streamed answer together, for endpoints that answer in no other way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_DATA, _END = "data:", "[DONE]"
_STARTS = (b"data:", b"event:", b"id:", b": ")
_BLANK = b" \t\r\n\xef\xbb\xbf"
"""What may stand before a body: white space, and the mark of UTF-8."""
_NAMES = frozenset({"role", "finish_reason", "id", "type", "object", "model"})
"""Fields whose texts do not grow."""


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
    choices: dict[Any, dict[str, Any]] = {}
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
        listed = part.get("choices")
        for choice in listed if isinstance(listed, list) else []:
            if isinstance(choice, Mapping):
                # Some servers write an empty reason until there is one.
                ending = choice.get("finish_reason")
                known = {**choice, "finish_reason": None if ending in ("", "null") else ending}
                has_ended |= known["finish_reason"] is not None
                _join(choices.setdefault(choice.get("index", 0), {}), known)
    if not reply and not choices:
        return "a stream without parts"
    return {**reply, "choices": list(choices.values())} if has_ended else "a stream that was cut off"


def _join(whole: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Add a part of a choice or message to what came before: texts and lists grow, other values replace earlier."""
    for name, value in part.items():
        kept = "message" if name == "delta" else name
        before = whole.get(kept)
        if isinstance(value, Mapping):
            inner = dict(before) if isinstance(before, Mapping) else {}
            if name == "message" and _is_whole(inner, value):
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


def _is_whole(before: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    """Return True if a message repeats all that came before, as some servers do at the end."""
    begun = before.get("content")
    return isinstance(begun, str) and bool(begun) and str(message.get("content")).startswith(begun)


def _parts(value: str | list[Any]) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []
