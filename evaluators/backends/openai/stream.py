"""Puts the parts of a streamed answer together, for endpoints that answer in no other way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_DATA, _END = "data:", "[DONE]"


def is_stream(content: bytes, media_type: str) -> bool:
    """Return True if a body is a stream of server-sent events."""
    return media_type == "text/event-stream" or content.startswith(_DATA.encode())


def whole_reply(content: bytes, read: Callable[[str], dict[str, Any] | str]) -> dict[str, Any] | str:
    """Return the answer that the parts of a stream make up, as it would come without streaming.

    Args:
        content: The body.
        read: Function that returns the JSON object in a text, or why there is none.

    Returns:
        The answer; the first error in it, as an answer; or why the stream is none.
    """
    reply: dict[str, Any] = {}
    choices: dict[Any, dict[str, Any]] = {}
    has_ended = False
    # Not splitlines(), which also splits at characters that a text may hold, such as U+2028.
    for line in content.decode("utf-8", "replace").split("\n"):
        if not line.startswith(_DATA):
            continue
        text = line.removeprefix(_DATA).strip()
        if text in ("", _END):
            has_ended |= text == _END
            continue
        part = read(text)
        if isinstance(part, str) or part.get("error"):
            return part
        reply |= {name: value for name, value in part.items() if name != "choices" and value is not None}
        listed = part.get("choices")
        for choice in listed if isinstance(listed, list) else []:
            if isinstance(choice, Mapping):
                has_ended |= choice.get("finish_reason") is not None
                _join(choices.setdefault(choice.get("index", 0), {}), choice)
    return {**reply, "choices": list(choices.values())} if has_ended else "a stream that was cut off"


def _join(whole: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Add a part of a choice or message to what came before: texts and lists grow, other values replace earlier."""
    for name, value in part.items():
        kept = "message" if name == "delta" else name
        before = whole.get(kept)
        if isinstance(value, Mapping):
            inner = whole[kept] = dict(before) if isinstance(before, Mapping) else {}
            _join(inner, value)
        elif _grows(kept, before, value):
            whole[kept] = before + value
        elif value is not None or kept not in whole:
            whole[kept] = value


def _grows(name: str, before: object, value: object) -> bool:
    is_text = isinstance(before, str) and isinstance(value, str) and name not in ("role", "finish_reason", "id")
    return is_text or (isinstance(before, list) and isinstance(value, list))
