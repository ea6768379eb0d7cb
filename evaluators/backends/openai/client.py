"""Sends single calls through the library ``openai`` and tells faults that may pass from refusals that will not."""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any, NamedTuple, Self

from biasboard.ground.errors import import_extra
from evaluators.backends.openai.address import Address

_CONNECT_SECONDS = 4.0
_FILE_SECONDS = 1800.0
"""Seconds that a file of a batch may take in total."""
_MOST_DIGITS = 15
_MOST_BYTES = 64_000_000
MOST_BYTES_OF_FILE = 2_000_000_000
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
        timed_out: bool = False,
        unusable: bool = False,
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
        self.timed_out = timed_out
        """True if the endpoint took the call and did not answer in time."""
        self.unusable = unusable
        """True if the endpoint answered something else than a JSON object, such as a web page."""


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
        if 300 <= self.status < 400:
            return "redirects are not followed: give the address behind them with --base-url"
        return None


def require_library() -> ModuleType:
    """Import and return the library ``openai``.

    Raises:
        MissingExtraError: the library is not installed.
    """
    return import_extra("openai", "openai")


class Client:
    """A pool of connections to an endpoint; an asynchronous context manager."""

    def __init__(self, address: Address, timeout: float, *, most_bytes: int = _MOST_BYTES) -> None:
        """Create a client; no connection is made yet.

        Args:
            address: Address of the endpoint.
            timeout: Seconds that one attempt may take in total, not only between two bytes.
            most_bytes: Largest number of bytes in an answer.
        """
        self._address = address
        self._timeout = timeout
        self._library: Any = require_library()
        # Ask for the raw response: the library's models hide which fields a server left out.
        self._raw: Any = import_extra("httpx2", "openai").Response
        # Imported here, because it needs the extra.
        from evaluators.backends.openai.http import BoundedClient

        limits = import_extra("httpx2", "openai").Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS))
        self._client = self._library.AsyncOpenAI(
            base_url=address.url,
            api_key=address.key,
            default_headers=dict(address.headers),
            default_query=dict(address.query),
            max_retries=0,
            timeout=limits,
            http_client=BoundedClient(
                most_bytes, timeout=limits, limits=self._library.DEFAULT_CONNECTION_LIMITS, max_redirects=0
            ),
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

    async def get(self, route: str, *, seconds: float | None = None) -> Reply:
        """Fetch a JSON object that costs nothing, such as ``/models``; raise what ``post`` raises.

        Args:
            route: Path below the base URL.
            seconds: Seconds that the attempt may take; those of the client if left out.
        """
        return await self._attempt(self._client.get(route, cast_to=self._raw), seconds)

    async def get_text(self, route: str) -> str:
        """Fetch the text of a file; raise what ``post`` raises."""
        async with self._limited(max(self._timeout, _FILE_SECONDS)):
            return str((await self._client.get(route, cast_to=self._raw)).text)

    async def upload(self, name: str, content: bytes) -> str:
        """Upload a file for the batch API and return its id; raise what ``post`` raises."""
        async with self._limited(max(self._timeout, _FILE_SECONDS)):
            made = await self._client.files.create(file=(name, content, "application/jsonl"), purpose="batch")
        return str(made.id)

    async def _attempt(self, awaitable: Any, seconds: float | None = None) -> Reply:
        async with self._limited(self._timeout if seconds is None else seconds):
            response = await awaitable
            # Some servers write NaN for a missing number: read it as null instead of refusing the whole reply.
            data = _json(response.content)
        if isinstance(data, str):
            kind = response.headers.get("content-type", "").partition(";")[0].strip()
            raise FaultError(
                f"the answer is {self._address.clean(data)}{f', but {kind}' if 'json' not in kind and kind else ''}",
                overload=False,
                unusable=True,
            )
        error = data.get("error")
        if error and not data.keys() & {"choices", "data", "id"}:
            raise _error_in_answer(error, self._address.clean)
        return Reply(data, _pause(response.headers))

    @asynccontextmanager
    async def _limited(self, seconds: float) -> AsyncIterator[None]:
        # Never raise "from error": the library's exceptions quote the server, and a server may echo the key.
        library, clean = self._library, self._address.clean
        try:
            async with asyncio.timeout(seconds):
                yield
        except (TimeoutError, library.APITimeoutError) as error:
            if type(error.__cause__).__name__ == "ConnectTimeout":
                reason = f"no connection within {min(self._timeout, _CONNECT_SECONDS):g} s"
                raise FaultError(reason, sent=False) from None
            reason = f"no answer within {seconds:g} s; raise --timeout if the model is that slow"
            raise FaultError(reason, timed_out=True) from None
        except library.APIConnectionError as error:
            cause = error.__cause__
            kind = type(cause).__name__
            if kind == "TooLargeError":
                raise RejectedError(200, str(cause), "", "") from None
            raise FaultError(clean(_of_connection(kind, cause)), sent="Connect" not in kind) from None
        except library.APIStatusError as error:
            raise _refusal(error, clean) from None
        # The last two are raised for headers and bodies that no server should send.
        except (library.OpenAIError, ValueError, LookupError) as error:
            reason = clean(f"unusable answer ({type(error).__name__}: {error})")
            raise FaultError(reason, overload=False, unusable=True) from None


def _json(content: bytes) -> dict[str, Any] | str:
    """Return the JSON object in a body, or what the body is instead."""
    try:
        data = json.loads(content, parse_constant=lambda _: None, parse_int=_integer)
    except ValueError:
        return "not JSON"
    except RecursionError:
        return "JSON that is nested too deep to read"
    return data if isinstance(data, dict) else "no JSON object"


def _integer(digits: str) -> int | float:
    """Convert an integer in JSON; one of many digits is no count, and too large for what is computed from it."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _of_connection(kind: str, cause: BaseException | None) -> str:
    """Describe why a connection failed; the systems' words for it differ, so look at the error beneath."""
    beneath: BaseException | None = cause
    while beneath is not None:
        if isinstance(beneath, ConnectionRefusedError):
            return "connection refused"
        if isinstance(beneath, ConnectionResetError):
            return "connection reset"
        beneath = beneath.__cause__ or beneath.__context__
    return f"connection lost ({kind}: {cause})"


def _error_in_answer(error: object, clean: Callable[[str], str]) -> FaultError | RejectedError:
    """Return the exception for an answer of status 200 that holds an error, as some routers send it."""
    fields = error if isinstance(error, dict) else {"message": error}
    code = fields.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 200
    reason = clean(f"HTTP 200 with an error: {fields.get('message') or 'no reason given'}")
    if status == 200 or status in _AGAIN:
        return FaultError(reason, status=status, overload=status != 200)
    return RejectedError(status, reason, str(code or ""), "")


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
    """Return the exception that stands for an HTTP status of 300 or above."""
    status = int(error.status_code)
    if status < 400:
        where = error.response.headers.get("location", "nowhere")
        return RejectedError(status, clean(f"HTTP {status}: the endpoint redirects to {where}"), "", "")
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
    except (ValueError, OverflowError):
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
