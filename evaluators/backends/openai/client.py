"""One attempt at one call, through the library ``openai``: an answer, or a fault that says whether to try again."""

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
    """What is sent."""

    route: str
    """Such as ``/completions``."""
    body: Mapping[str, Any]
    n_prompt: int | None = None
    """Prompt tokens; None where no tokenizer is known."""
    n_completion: int = 1
    """Completion tokens at most."""


class Reply(NamedTuple):
    """What came back with status 2xx."""

    data: Any
    pause_seconds: float
    """For how long the endpoint's limits allow nothing more; 0 where they do."""


class FaultError(Exception):
    """An attempt that failed in a way that may pass: it is made again."""

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
        """None if there was no answer, or an unusable one: then it may have been computed, and cost something."""
        self.retry_after = retry_after
        """Seconds that the endpoint asks to wait; None if it does not say."""
        self.overload = overload
        """Whether fewer calls at a time may help."""
        self.sent = sent
        """False if no connection came about, so that the endpoint saw nothing."""


class RejectedError(Exception):
    """The endpoint will not do this, however often it is asked."""

    def __init__(self, status: int, reason: str, code: str, parameter: str):
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.code = code
        self.parameter = parameter

    @property
    def remedy(self) -> str | None:
        """What would help every request; None if it is about this one."""
        if self.status in (401, 403):
            return "check OPENAI_API_KEY, and what the key may do"
        if self.status == 402 or self.code in ("insufficient_quota", "billing_hard_limit_reached"):
            return "the account's credit is used up; add some"
        if self.status == 404 or self.code == "model_not_found":
            return "check --model and --base-url"
        return None

    def is_about(self, parameter: str) -> bool:
        """Whether a parameter is what the endpoint dislikes."""
        return self.parameter == parameter or parameter in self.reason


def require_library() -> ModuleType:
    """The library ``openai``.

    Raises:
        MissingExtraError: it is not installed.
    """
    return import_extra("openai", "openai")


class Client:
    """An open connection pool; an asynchronous context manager."""

    def __init__(self, address: Address, timeout: float) -> None:
        """Connect nothing yet.

        Args:
            address: The endpoint.
            timeout: Seconds for one attempt as a whole, not only between two bytes.
        """
        self._address = address
        self._timeout = timeout
        self._library: Any = require_library()
        # The response as it came: the library's models would turn what a server leaves out into attributes that lie.
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
            FaultError: it may be sent again.
            RejectedError: sending it again would not help.
        """
        return await self._attempt(self._client.post(call.route, body=call.body, cast_to=self._raw))

    async def get(self, route: str) -> Reply:
        """Read something that costs nothing, such as ``/models``; raises as ``post`` does."""
        return await self._attempt(self._client.get(route, cast_to=self._raw))

    async def get_text(self, route: str) -> str:
        """Read a file; raises as ``post`` does."""
        with self._faults():
            return str((await self._client.get(route, cast_to=self._raw)).text)

    async def upload(self, name: str, content: bytes) -> str:
        """Upload a file for the batch API; returns its id. Raises as ``post`` does."""
        with self._faults():
            made = await self._client.files.create(file=(name, content, "application/jsonl"), purpose="batch")
        return str(made.id)

    async def _attempt(self, awaitable: Any) -> Reply:
        with self._faults():
            async with asyncio.timeout(self._timeout):
                response = await awaitable
        try:
            # Not strict: some servers write NaN, which is a missing number and not a broken answer.
            data = json.loads(response.text, parse_constant=lambda _: None)
        except ValueError:
            raise FaultError("the answer is not JSON", overload=False) from None
        if not isinstance(data, dict):
            raise FaultError("the answer is no JSON object", overload=False)
        return Reply(data, _pause(response.headers))

    @contextmanager
    def _faults(self) -> Iterator[None]:
        # Never "from error": the library's exceptions hold what the server wrote, and a server may echo the key.
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
    """Keep what is secret of an address out of the libraries' own logs, also where somebody turned them on."""

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
    """What a status of 400 and above means."""
    status = int(error.status_code)
    body = error.body if isinstance(error.body, dict) else {}
    # Some servers nest it, some do not.
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
    """Seconds that the endpoint asks to wait, in any of the ways in which it may say so."""
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
    """Seconds until a limit that is used up is renewed; 0 if none is."""
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}", "").strip() == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=0.0)


def _duration(text: str) -> float | None:
    """Seconds of ``6m0s``, ``20ms`` or ``1.5``; None if it is no duration."""
    text = text.strip()
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)
