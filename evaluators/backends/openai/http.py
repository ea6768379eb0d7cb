"""An HTTP client that follows no redirect and reads no more of an answer than a limit, also when it is compressed.

This module imports the library ``httpx2``, which comes with ``openai``: import it only where that one is installed.
"""

from __future__ import annotations

from typing import Any

import httpx2

_FRAMING = frozenset({"content-encoding", "content-length", "content-type", "transfer-encoding"})


class TooLargeError(httpx2.RequestError):
    """An answer that is larger than the limit."""


class BoundedClient(httpx2.AsyncClient):
    """A client that gives up an answer whose body is too large, before it fills the memory."""

    def __init__(self, most_bytes: int, **settings: Any) -> None:
        """Create a client.

        Args:
            most_bytes: Largest number of bytes in a body, after decompression.
            settings: Settings of ``httpx2.AsyncClient``.
        """
        super().__init__(**settings)
        self._most_bytes = most_bytes

    async def send(self, request: httpx2.Request, *, stream: bool = False, **settings: Any) -> httpx2.Response:
        """Send a request and read the whole answer, whether ``stream`` is true or not.

        Raises:
            TooLargeError: the body of the answer is larger than the limit.
        """
        # A redirect would take the key and the prompts to an address that nobody named, unsaid in the result.
        response = await super().send(request, stream=True, **{**settings, "follow_redirects": False})
        try:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > self._most_bytes:
                    raise TooLargeError(f"the answer is larger than {self._most_bytes / 1e6:g} MB", request=request)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _FRAMING]
        # JSON is UTF-8, and a server may name a charset that is none.
        kind = ("content-type", response.headers.get("content-type", "").partition(";")[0].strip())
        return httpx2.Response(response.status_code, headers=[*headers, kind], content=bytes(body), request=request)
