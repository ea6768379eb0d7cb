"""Decides what an error of an endpoint, or an odd ending of an answer, means, by the rows of ``meanings.toml``.

Providers report the same event in many ways: a filter, for instance, by status 400, 403 or 200, by a code, by a
sentence, by the reason why a choice ended, or by leaving every choice out. All that is known of it stands in one file.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, cast

from biasboard.ground.files import packaged_toml

Meaning: TypeAlias = Literal["refused", "limited", "passing", "credit", "key", "absent", "failed"]
"""``meanings.toml`` says what each stands for; *failed* is what no row says."""
_REMEDIES: Mapping[Meaning, str] = {
    "key": "check OPENAI_API_KEY, and what the key may do",
    "credit": "the account's credit is used up; add some",
    "absent": "check --model and --base-url",
}
_PATTERNS = ("code", "message", "finish_reason")
_STATUS = re.compile("[1-5][0-9][0-9]")
_FILTERED = frozenset({200, 400, 403, 406, 422, 424, 446, 451})
"""Statuses by which filters decline."""
_MESSAGES = ("message", "detail", "msg", "error_msg", "status_msg", "error")
_CODES = ("code", "type", "status", "error_code", "status_code", "provider_code")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(eq=False)
class NoAnswerError(Exception):
    """A call that brought no answer, or a request that cannot be asked; ``means`` tells what follows from it."""

    reason: str
    means: Meaning = "failed"
    _: KW_ONLY
    status: int | None = None
    """HTTP status; None if there was no usable reply, although the call may have been computed and billed."""
    words: str = ""
    """All that the endpoint says of it: message, codes and parameter, in small letters; empty for a web page."""
    finish_reason: str | None = None
    """Reason why the answer ended, if the endpoint declined to give one."""
    retry_after: float | None = None
    """Seconds that the endpoint asks to wait; None if it does not say."""
    overload: bool = False
    """True if fewer concurrent calls may help."""
    sent: bool = True
    """False if no connection was made, so that the endpoint never saw the call."""
    timed_out: bool = False
    """True if the endpoint took the call and did not answer in time."""
    unusable: bool = False
    """True if the endpoint answered with something other than a JSON object, such as a web page."""

    def __str__(self) -> str:
        return self.reason

    @property
    def passes(self) -> bool:
        """True if the same call may succeed later."""
        return self.means in ("limited", "passing")

    @property
    def remedy(self) -> str | None:
        """Advice if every call may end like this one; None if the reason lies in this call."""
        if self.status is not None and 300 <= self.status < 400:
            return "redirects are not followed: give the address behind them with --base-url"
        return _REMEDIES.get(self.means)


@cache
def _rows() -> list[dict[str, Any]]:
    """Return the rows of the table, with their patterns compiled."""
    return [
        {name: re.compile(value, re.IGNORECASE) if name in _PATTERNS else value for name, value in row.items()}
        for row in packaged_toml(__package__ or "", "meanings.toml")["row"]
    ]


def meaning_of_error(status: int, message: str, codes: str) -> Meaning:
    """Return the meaning of an error.

    >>> meaning_of_error(400, "Content Exists Risk", "invalid_request_error")
    'refused'
    """
    texts = {"code": codes, "message": message}
    for row in _rows():
        fits = "finish_reason" not in row and status in row.get("status", (status,))
        # A filter has looked at a prompt: it neither lacks a key, nor is it busy or broken.
        fits = fits and (row["means"] != "refused" or status in _FILTERED)
        if fits and all(row[name].search(text) for name, text in texts.items() if name in row):
            return cast(Meaning, row["means"])
    return "failed"


@cache
def meaning_of_ending(finish_reason: str) -> Meaning | None:
    """Return the meaning of the reason why a choice ended; None if it may end an answer.

    >>> meaning_of_ending("PROHIBITED_CONTENT"), meaning_of_ending("stop")
    ('refused', None)
    """
    endings = (row for row in _rows() if "finish_reason" in row)
    return next((row["means"] for row in endings if row["finish_reason"].fullmatch(finish_reason)), None)


def error_of(
    status: int, body: object, clean: Callable[[str], str], headers: Mapping[str, str], otherwise: str = ""
) -> NoAnswerError:
    """Return the exception for an error of the endpoint.

    Args:
        status: HTTP status; 200 for an error inside an answer.
        body: The error, in whatever form.
        clean: Function that takes secrets out of a text.
        headers: Headers of the answer, which may ask to wait.
        otherwise: Text of a body without a message.
    """
    message, codes, parameter, stated = error_text(body, otherwise)
    if 300 <= status < 400:
        message = f"the endpoint redirects to {headers.get('location', 'nowhere')}"
    # Routers state the status of the server behind them inside the error.
    known = stated if status == 200 and stated is not None else status
    means = meaning_of_error(known, message, codes)
    is_page = body is None and otherwise.lstrip().startswith("<")
    return NoAnswerError(
        clean(f"HTTP {status}{' with an error' if status == 200 else ''}: {message}"),
        means,
        status=known,
        words="" if is_page else f"{message} {codes} {parameter}".lower(),
        finish_reason="content_filter" if means == "refused" else None,
        retry_after=_retry_after(headers),
        overload=means == "limited" or (means == "passing" and status not in (200, 409)),
    )


def error_text(body: object, otherwise: str = "") -> tuple[str, str, str, int | None]:
    """Read an error: an object, a list of them or plain text, with or without the key "error".

    Returns:
        Its message; its codes, types and statuses, separated by spaces; the name of the parameter that it is about, or
        an empty text; and the HTTP status that it states itself, or None.
    """
    if isinstance(body, list) and body:
        return error_text(body[0], otherwise)
    fields: Mapping[str, Any] = body if isinstance(body, Mapping) else {"message": body}
    # What stands beside the key "error" tells of it too.
    if inner := fields.get("error"):
        fields = {**fields, **(inner if isinstance(inner, Mapping) else {"message": inner})}
    # LiteLLM and OpenRouter quote the provider's own words; Azure has its reason in an inner error.
    metadata = mapping_in(fields, "metadata")
    quoted = metadata.get("raw")
    codes = [*(fields.get(name) for name in _CODES), mapping_in(fields, "innererror").get("code")]
    codes += ["moderation"] if "flagged_input" in metadata else [metadata.get("error_type")]
    # Azure sends status 400 with a completion that its filter ended, and no error.
    codes += [choice.get("finish_reason") for choice in mappings_in(fields, "choices")]
    said = next((text for name in _MESSAGES if (text := _sentence(fields.get(name)))), "")
    parameter = fields.get("param")
    # FastAPI names the place of a wrong parameter: ["body", "seed"].
    for detail in mappings_in(fields, "detail")[:1]:
        parameter = parameter or next(reversed(list_in(detail, "loc")), None)
    words = [str(code) for code in codes if isinstance(code, str | int) and not isinstance(code, bool)]
    stated = next((int(word) for word in words if _STATUS.fullmatch(word)), None)
    message = f"{said}: {quoted}" if isinstance(quoted, str) and quoted and quoted not in said else said
    return message or otherwise or "no reason given", " ".join(words), str(parameter or ""), stated


def error_inside(data: Mapping[str, Any]) -> object | None:
    """Return the error that an answer with status 200 holds, wherever it stands; None if it holds none."""
    if _is_error(data.get("error")) or data.get("object") == "error" or _is_error(data.get("error_code")):
        return data
    if data.get("success") is False or ("choices" not in data and "msg" in data):
        return data
    # MiniMax's.
    if (base := mapping_in(data, "base_resp")).get("status_code"):
        return base
    for choice in mappings_in(data, "choices"):
        for holder in (choice, mapping_in(choice, "message")):
            if _is_error(holder.get("error")):
                return {"error": holder["error"]}
        ending = choice.get("finish_reason")
        if isinstance(ending, str) and meaning_of_ending(ending) == "passing":
            return {"message": f"the answer ended with finish_reason '{ending}'"}
    return None


def _is_error(value: object) -> bool:
    """Return True if a field tells of an error, and not that there is none, as with code 0."""
    if isinstance(value, Mapping):
        return not _is_ok(value.get("code")) and any(_is_error(value.get(name)) for name in (*_MESSAGES, *_CODES))
    return bool(value) and not _is_ok(value)


def _is_ok(code: object) -> bool:
    return str(code).lower() in ("0", "200", "ok", "success")


def mapping_in(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object in a field of a reply; an empty one if the field holds something else, or is left out."""
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def list_in(data: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list in a field of a reply; an empty one if the field holds something else, or is left out."""
    value = data.get(name)
    return value if isinstance(value, list) else []


def mappings_in(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects of the list in a field of a reply, without what else it holds."""
    return [value for value in list_in(data, name) if isinstance(value, Mapping)]


def _sentence(value: object) -> str:
    """Return a description of an error as text; a list of them as its first."""
    if isinstance(value, list) and value:
        return _sentence((value[0].get("msg") if isinstance(value[0], Mapping) else None) or value[0])
    return "" if value is None or isinstance(value, bool) else str(value)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the endpoint asks to wait, from any of the usual headers; None if it does not ask."""
    if (seconds := _duration(headers.get("retry-after-ms", ""), unit="ms")) is not None:
        return seconds
    text = headers.get("retry-after")
    if text is None:
        return rate_limit_pause(headers) or None
    if (seconds := _duration(text)) is not None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def rate_limit_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds until an exhausted rate limit resets; 0 if none is exhausted."""
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=0.0)


def _duration(text: str, unit: str = "s") -> float | None:
    """Convert a duration such as ``6m0s``, ``20ms`` or ``1.5`` to seconds; None if the text is not a duration."""
    parts = _DURATION.findall(text.strip())
    if not parts or "".join(number + own for number, own in parts) != text.strip():
        return None
    return sum(float(number) * _SECONDS[own or unit] for number, own in parts)
