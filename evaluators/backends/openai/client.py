"""Sends single calls through the library ``openai`` and tells faults that may pass from refusals that will not."""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple, Self

from evaluators.backends.openai.address import Address
from schemas.errors import import_extra

_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LOGGERS = ("openai._base_client", "openai._response", "openai._legacy_response", "httpx2")


class Call(NamedTuple):
    """An HTTP call to an endpoint."""

    route: str
    """Path below the base URL, such as ``/completions``."""
    body: Mapping[str, Any]
    n_prompt: int | None = None
    """Number of prompt tokens; None if unknown."""
    n_completion: int = 1
    """Largest number of completion tokens."""


class Reply(NamedTuple):
    """An endpoint's reply with an HTTP status 2xx."""

    data: Any
    """JSON object of the body."""
    pause_seconds: float
    """Seconds until the endpoint's rate limits allow another call; 0 if they allow one now."""


class FaultError(Exception):
    """A failed attempt at a call that may succeed later."""

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        overload: bool = True,
        sent: bool = True,
    ):
        super().__init__(reason)
        self.reason = reason
        self.status = status
        """HTTP status; None if there was no usable reply, and then the call may still have been computed and billed."""
        self.retry_after = retry_after
        """Seconds that the endpoint asks to wait; None if it does not say."""
        self.overload = overload
        """True if fewer calls at a time may help."""
        self.sent = sent
        """False if no connection was made, so that the endpoint never saw the call."""


class RejectedError(Exception):
    """A refusal by the endpoint that repeating the call would not change."""

    def __init__(self, status: int, reason: str, code: str, parameter: str):
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.code = code
        self.parameter = parameter

    @property
    def remedy(self) -> str | None:
        """Advice if every call would be refused for the same reason; None if the reason is this call alone."""
        if self.status in (401, 403):
            return "check OPENAI_API_KEY, and what the key may do"
        if self.status == 402 or self.code in ("insufficient_quota", "billing_hard_limit_reached"):
            return "the account's credit is used up; add some"
        if self.status == 404 or self.code == "model_not_found":
            return "check --model and --base-url"
        return None


def require_library() -> ModuleType:
    """Import and return the library ``openai``.

    Raises:
        MissingExtraError: the library is not installed.
    """
    return import_extra("openai", "openai")


class Client:
    """A pool of connections to an endpoint; an asynchronous context manager."""

    def __init__(self, address: Address, timeout: float) -> None:
        """Create a client; no connection is made yet.

        Args:
            address: Address of the endpoint.
            timeout: Seconds that one attempt may take in total, not only between two bytes.
        """
        self._address = address
        self._timeout = timeout
        self._library: Any = require_library()
        # Ask for the raw response: the library's models hide which fields a server left out.
        self._raw: Any = import_extra("httpx2", "openai").Response
        self._client = self._library.AsyncOpenAI(
            base_url=address.url,
            api_key=address.key,
            default_headers=dict(address.headers),
            default_query=dict(address.query),
            max_retries=0,
            timeout=timeout,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def post(self, call: Call) -> Reply:
        """Send a call once.

        Raises:
            FaultError: the attempt failed, but the call may be sent again.
            RejectedError: the endpoint refuses the call, and would refuse it again.
        """
        return await self._attempt(self._client.post(call.route, body=call.body, cast_to=self._raw))

    async def get(self, route: str) -> Reply:
        """Fetch a JSON object that costs nothing, such as ``/models``; raise what ``post`` raises."""
        return await self._attempt(self._client.get(route, cast_to=self._raw))

    async def get_text(self, route: str) -> str:
        """Fetch the text of a file; raise what ``post`` raises."""
        with self._faults():
            return str((await self._client.get(route, cast_to=self._raw)).text)

    async def upload(self, name: str, content: bytes) -> str:
        """Upload a file for the batch API and return its id; raise what ``post`` raises."""
        with self._faults():
            made = await self._client.files.create(file=(name, content, "application/jsonl"), purpose="batch")
        return str(made.id)

    async def _attempt(self, awaitable: Any) -> Reply:
        with self._faults():
            async with asyncio.timeout(self._timeout):
                response = await awaitable
        try:
            # Some servers write NaN for a missing number: read it as null instead of refusing the whole reply.
            data = json.loads(response.text, parse_constant=lambda _: None)
        except ValueError:
            raise FaultError("the answer is not JSON", overload=False) from None
        if not isinstance(data, dict):
            raise FaultError("the answer is no JSON object", overload=False)
        return Reply(data, _pause(response.headers))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        # Never raise "from error": the library's exceptions quote the server, and a server may echo the key.
        library, clean = self._library, self._address.clean
        try:
            yield
        except (TimeoutError, library.APITimeoutError):
            reason = f"no answer within {self._timeout:g} s; raise --timeout if the model is that slow"
            raise FaultError(reason) from None
        except library.APIConnectionError as error:
            cause = error.__cause__
            kind = type(cause).__name__
            raise FaultError(clean(f"connection lost ({kind}: {cause})"), sent="Connect" not in kind) from None
        except library.APIStatusError as error:
            raise _refusal(error, clean) from None
        except library.OpenAIError as error:
            raise FaultError(clean(f"unusable answer ({type(error).__name__}: {error})"), overload=False) from None


@contextmanager
def quiet_logs(address: Address) -> Iterator[None]:
    """Mask the secrets of an address in the logs of the HTTP libraries, in case somebody turned these on."""

    def hide(record: logging.LogRecord) -> bool:
        record.msg, record.args = address.clean(record.getMessage()), ()
        return True

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(hide)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(hide)


def _refusal(error: Any, clean: Any) -> Exception:
    """Return the exception that stands for an HTTP status of 400 or above."""
    status = int(error.status_code)
    body = error.body if isinstance(error.body, dict) else {}
    # Some servers nest these fields under "error", some do not.
    inner = body.get("error", body)
    fields = inner if isinstance(inner, dict) else {"message": inner}
    message = fields.get("message") or fields.get("detail") or error.response.text or "no reason given"
    reason = clean(f"HTTP {status}: {message}")
    code = str(fields.get("code") or fields.get("type") or "")
    if status in _AGAIN and code not in ("insufficient_quota", "billing_hard_limit_reached"):
        headers = error.response.headers
        return FaultError(reason, status=status, retry_after=_retry_after(headers), overload=status != 409)
    return RejectedError(status, reason, code, str(fields.get("param") or ""))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the endpoint asks to wait, from any of the usual headers; None if it does not ask."""
    milliseconds = headers.get("retry-after-ms")
    if milliseconds is not None and _DURATION.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    text = headers.get("retry-after")
    if text is not None:
        seconds = _duration(text)
        return _until(text) if seconds is None else seconds
    return _pause(headers) or None


def _until(date: str) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())


def _pause(headers: Mapping[str, str]) -> float:
    """Return the seconds until an exhausted rate limit is renewed; 0 if none is exhausted."""
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=0.0)


def _duration(text: str) -> float | None:
    """Convert a duration such as ``6m0s``, ``20ms`` or ``1.5`` to seconds; None if the text is not a duration."""
    text = text.strip()
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
