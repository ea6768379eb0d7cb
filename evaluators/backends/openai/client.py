"""Sends single calls through the library ``openai``, and tells what became of them.

This module imports the library ``httpx2``, which comes with ``openai``: import it only where ``openai`` is installed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import httpx2

from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.plain_text import one_line
from evaluators.backends.openai.address import INVALID, Address
from evaluators.backends.openai.meanings import NoAnswerError, error_inside, error_of, rate_limit_pause
from evaluators.backends.openai.protocol import Call, is_stream, whole_reply

# Short, so that an address where nothing listens is an error within ten seconds.
_CONNECT_SECONDS = 4.0
_FILE_SECONDS = 1800.0
"""Seconds that the upload or download of a batch file may take in total."""
_MOST_DIGITS = 15
"""Largest number of digits of an integer: Python refuses more than 4,300, and float64 is exact up to 15."""
_MOST_BYTES = 64_000_000
_MOST_BYTES_OF_FILE = 2_000_000_000
_LEAST_BYTES = 4_000_000
"""Size that any answer may have: lists of models are long, and some servers think without being asked to."""
_BYTES_OF_TOKEN = 4_096
"""Largest size of a part of a stream, with the token's alternatives and their bytes."""
_BYTES_OF_LINE = 1_000_000
_BYTES_BACK = 64
"""Bytes that a byte of the call may come back as, where tokens are echoed with their log-probabilities."""
_LOGGERS = ("openai._base_client", "openai._response", "openai._legacy_response", "httpx2")
_FRAMING = frozenset({"content-encoding", "content-length", "content-type", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of an endpoint and the limits on calls to it."""

    address: Address
    timeout: float
    """Seconds that one attempt may take in total, not just between two bytes."""
    concurrency: int
    """Largest number of calls under way at a time."""


_room: ContextVar[int] = ContextVar("room", default=_LEAST_BYTES)
"""Number of bytes that the answer to the call under way may have."""


class _TooLargeError(httpx2.RequestError):
    """An answer that is larger than the limit."""


@cache
def _certificates() -> ssl.SSLContext:
    """Return the certificates of this machine. Loading them takes longer than many calls, so all clients share them."""
    return httpx2.create_ssl_context()


def _set(*names: str) -> str:
    """Return those of some environment variables that are set, which may be written in small letters."""
    return ", ".join(name for name in (*names, *map(str.lower, names)) if os.environ.get(name))


def _proxies() -> str:
    return _set("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class _BoundedClient(httpx2.AsyncClient):
    """A client that aborts an answer whose body is too large, before it fills the memory.

    Each call under way has a lane, a client with a single connection. A pool looks at all of its connections before and
    after each call: with 64 of them, this took a fifth of the time of a run.
    """

    def __init__(self, timeout: httpx2.Timeout) -> None:
        self._settings: dict[str, Any] = {"timeout": timeout, "verify": _certificates()}
        super().__init__(**self._settings)
        self._lanes: list[httpx2.AsyncClient] = []
        self._idle: list[httpx2.AsyncClient] = []

    async def send(self, request: httpx2.Request, *, stream: bool = False, **settings: Any) -> httpx2.Response:
        """Send a request and read the whole answer up to the limit, whether ``stream`` is true or not."""
        if not self._idle:
            self._idle.append(httpx2.AsyncClient(**self._settings, limits=httpx2.Limits(max_connections=1)))
            self._lanes += self._idle
        # The lane used last, whose connection is the least likely to have been closed meanwhile.
        lane = self._idle.pop()
        most_bytes = _room.get()
        try:
            # A redirect would take the key and the prompts to an address that nobody chose and no result mentions.
            response = await lane.send(request, stream=True, **{**settings, "follow_redirects": False})
            try:
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    # Counted after decompression: a few kilobytes of gzip can hold gigabytes.
                    if len(body) > most_bytes:
                        raise _TooLargeError(f"the answer is larger than {most_bytes / 1e6:.3g} MB", request=request)
            finally:
                await response.aclose()
        finally:
            if _holds_more(lane):
                self._lanes.remove(lane)
                await lane.aclose()
            else:
                self._idle.append(lane)
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _FRAMING]
        # Without its charset: JSON is UTF-8, and a server may name a charset that does not exist.
        kind = ("content-type", _media_type(response.headers))
        return httpx2.Response(response.status_code, headers=[*headers, kind], content=bytes(body), request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        for lane in self._lanes:
            await lane.aclose()
        await super().aclose()


def _holds_more(lane: Any) -> bool:
    """Return True if more than an answer has come, which would be taken for that to the next call."""
    for pool in (lane._transport, *lane._mounts.values()):
        for connection in [] if pool is None else pool._pool.connections:
            # Behind a proxy there are several layers; the library shows none of them.
            while (inner := getattr(connection, "_connection", None)) is not None:
                connection = inner
            if (state := getattr(connection, "_h11_state", None)) is not None and state.trailing_data[0]:
                return True
    return False


class Client:
    """A pool of connections to an endpoint; an asynchronous context manager.

    Each method sends one call once, and raises a ``NoAnswerError`` if it brings no answer. The library's own retries
    are off, since they would hide attempts that must be counted, paid for and paced (see ``pacing.py``).
    """

    def __init__(self, connection: Connection) -> None:
        """Create a client; no connection is made yet.

        Raises:
            ConfigError: the environment names a proxy or certificates that cannot be used.
        """
        self._address, self._timeout = connection.address, connection.timeout
        self._library: Any = import_extra("openai", "openai")
        limits = httpx2.Timeout(self._timeout, connect=min(self._timeout, _CONNECT_SECONDS))
        # With both, Azure takes the bearer for a token of a user.
        no_bearer = {"Authorization": self._library.Omit()} if "api-key" in self._address.headers else {}
        try:
            # Not litellm, which pins versions of openai and huggingface_hub that are too old for us.
            self._client = self._library.AsyncOpenAI(
                base_url=self._address.url,
                api_key=self._address.key,
                default_headers={**no_bearer, **self._address.headers},
                default_query=dict(self._address.query),
                max_retries=0,
                timeout=limits,
                http_client=_BoundedClient(limits),
            )
        except httpx2.InvalidURL:
            raise ConfigError(INVALID) from None
        except OSError as error:
            names = _set("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE") or "the certificates of this machine"
            raise ConfigError(f"{names}: cannot be read ({one_line(error)}); correct or unset it") from None
        except (ValueError, ImportError) as error:
            # The library shows no password that a proxy's address may hold.
            raise ConfigError(f"{_proxies()}: {one_line(error)}; give http://HOST:PORT, or unset it") from None

    async def __aenter__(self) -> Self:
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._hide_secrets)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._client.close()
        finally:
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(self._hide_secrets)

    def _hide_secrets(self, record: logging.LogRecord) -> bool:
        # The user may have turned on the logs of the HTTP libraries, which show addresses and headers.
        record.msg, record.args = self._address.clean(record.getMessage()), ()
        return True

    async def post(self, call: Call) -> tuple[dict[str, Any], float]:
        """Send a call; return the JSON object of the reply, and the seconds until rate limits allow another call."""
        # Ask for the raw response: the library's models hide which fields a server left out.
        n_bytes = _BYTES_OF_TOKEN * call.n_completion + _BYTES_BACK * len(json.dumps(call.body))
        request = self._client.post(call.route, body=call.body, cast_to=httpx2.Response)
        return await self._attempt(request, n_bytes=n_bytes)

    async def get(self, route: str, *, seconds: float | None = None) -> dict[str, Any]:
        """Fetch a JSON object that costs nothing, such as ``/models``, within ``seconds``; None for the usual limit."""
        data, _ = await self._attempt(self._client.get(route, cast_to=httpx2.Response), seconds)
        return data

    async def get_lines(self, route: str, n_lines: int) -> list[dict[str, Any]]:
        """Fetch the JSON objects in the lines of a file that has ``n_lines`` of them."""
        async with self._limited(max(self._timeout, _FILE_SECONDS), _BYTES_OF_LINE * n_lines, _MOST_BYTES_OF_FILE):
            content: bytes = (await self._client.get(route, cast_to=httpx2.Response)).content
        # Not splitlines(): it also splits at characters that a text may hold, such as U+2028.
        read = (self._read(line) for line in content.split(b"\n"))
        return [entry for entry in read if isinstance(entry, dict)]

    async def upload(self, name: str, content: bytes) -> object:
        """Upload a file for the batch API and return its unchecked id; None if the endpoint gives none."""
        async with self._limited(max(self._timeout, _FILE_SECONDS)):
            uploaded = await self._client.files.create(file=(name, content, "application/jsonl"), purpose="batch")
        # The library leaves out fields that the endpoint left out, and returns text for other content types.
        return self._address.without_keys(getattr(uploaded, "id", None))

    def _read(self, content: bytes, media_type: str = "", *, any_kind: bool = False) -> Any:
        """Read a body like :func:`read_json`; every reply comes this way, so that none holds a key of ours."""
        is_streamed = not any_kind and is_stream(content, media_type)
        try:
            data = whole_reply(content, read_json) if is_streamed else read_json(content, any_kind=any_kind)
            return self._address.without_keys(data)
        except RecursionError:
            return None if any_kind else "JSON that is nested too deep to read"

    async def _attempt(
        self, awaitable: Any, seconds: float | None = None, n_bytes: int = 0
    ) -> tuple[dict[str, Any], float]:
        async with self._limited(self._timeout if seconds is None else seconds, n_bytes):
            response = await awaitable
            kind = _media_type(response.headers)
            data = self._read(response.content, kind)
        if isinstance(data, str):
            but = f", but {kind}" if kind and "json" not in kind else ""
            raise NoAnswerError(self._address.clean(f"the answer is {data}{but}"), "passing", unusable=True)
        # Some routers pass on the errors of the servers behind them with status 200, beside what was written before.
        if (error := error_inside(data)) is not None:
            raise error_of(200, error, self._address.clean, response.headers)
        return data, rate_limit_pause(response.headers)

    @asynccontextmanager
    async def _limited(self, seconds: float, n_bytes: int = 0, most: int = _MOST_BYTES) -> AsyncIterator[None]:
        """Stop after some seconds or bytes of an answer, and translate the library's errors."""
        _room.set(min(_LEAST_BYTES + n_bytes, most))
        # Never raise "from error": the library's exceptions quote the server, and a server may echo the key.
        library, clean = self._library, self._address.clean
        try:
            async with asyncio.timeout(seconds):
                yield
        except (TimeoutError, library.APITimeoutError) as error:
            if isinstance(error.__cause__, httpx2.ConnectTimeout):
                reason = f"no connection within {min(self._timeout, _CONNECT_SECONDS):g} s"
                raise NoAnswerError(reason, "passing", overload=True, sent=False) from None
            reason = f"no answer within {seconds:g} s; raise --timeout if the model is that slow"
            raise NoAnswerError(reason, "passing", overload=True, timed_out=True) from None
        except library.APIConnectionError as error:
            if isinstance(error.__cause__, _TooLargeError):
                raise NoAnswerError(str(error.__cause__), status=200) from None
            sent = not isinstance(error.__cause__, httpx2.ConnectError)
            by_proxy = f", by the proxy in {_proxies()}" if _proxies() else ""
            reason = clean(f"{_connection_fault(error.__cause__)}{by_proxy}")
            raise NoAnswerError(reason, "passing", overload=True, sent=sent) from None
        except library.APIStatusError as error:
            # Not error.body, which lacks what stands beside the key "error".
            body = self._read(error.response.content, any_kind=True)
            raise error_of(int(error.status_code), body, clean, error.response.headers, error.response.text) from None
        # The last two are raised for headers and bodies that no server should send.
        except (library.OpenAIError, ValueError, LookupError) as error:
            reason = clean(f"unusable answer ({type(error).__name__}: {error})")
            raise NoAnswerError(reason, "passing", unusable=True) from None


def read_json(content: bytes | str, *, any_kind: bool = False) -> Any:
    """Return the JSON object in a body, or a description of the body if it is none.

    NaN and the infinities are read as null, because some servers write them for a missing number.

    Args:
        content: The body.
        any_kind: True to return any JSON value, and None for a body that is not JSON.

    Raises:
        RecursionError: the JSON is nested too deep.
    """
    try:
        text = content.decode("utf-8-sig", "replace") if isinstance(content, bytes) else content
        # An integer of many digits is no count, and would overflow the sums and prices computed from it.
        data = json.loads(
            text,
            parse_constant=lambda _: None,
            parse_int=lambda digits: int(digits) if len(digits) <= _MOST_DIGITS else float(digits),
        )
    except ValueError:
        return None if any_kind else "not JSON"
    return data if any_kind or isinstance(data, dict) else "no JSON object"


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip()


def _connection_fault(cause: BaseException | None) -> str:
    """Describe why a connection failed, by the error at the root: its messages differ between operating systems."""
    root = cause
    while root is not None:
        if isinstance(root, ConnectionRefusedError):
            return "connection refused"
        if isinstance(root, ConnectionResetError):
            return "connection reset"
        root = root.__cause__ or root.__context__
    return f"connection lost ({type(cause).__name__}: {cause})"
