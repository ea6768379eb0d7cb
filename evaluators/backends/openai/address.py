"""The address of an endpoint and its credentials, which are kept out of messages, logs and results."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from biasboard.ground.errors import ConfigError

OPENAI = "https://api.openai.com/v1"
_NO_KEY = "no-key-needed"
_LONGEST = 400
# Matches API keys of any issuer, because an error text may quote a key that is not ours.
_KEYS = re.compile(r"(?i)(bearer\s+|basic\s+)[A-Za-z0-9._~+/=-]{6,}|\b(sk|pk|rk|hf|gsk)[-_][A-Za-z0-9_-]{8,}")


@dataclass(frozen=True)
class Address:
    """The URL and the credentials of an endpoint; its ``repr`` shows no secret."""

    url: str
    """The URL without user, password and query."""
    key: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """All secret texts, longest first: key, user, password, header and query values, also URL-encoded."""
        plain = {self.key, *self.headers.values(), *self.query.values()} - {_NO_KEY}
        for value in self.headers.values():
            encoded = value.removeprefix("Basic ")
            user, _, password = base64.b64decode(encoded).decode().partition(":")
            plain |= {encoded, user, password}
        spelled = plain | {quote(value, safe="") for value in plain}
        # Hiding texts of fewer than four characters would garble messages and protect little.
        return tuple(sorted((value for value in spelled if len(value) > 3), key=len, reverse=True))

    @property
    def is_openai(self) -> bool:
        """True if the endpoint is OpenAI's own API."""
        return urlsplit(self.url).hostname == "api.openai.com"

    @property
    def place(self) -> str:
        """The host and port, for messages on the console."""
        return urlsplit(self.url).netloc

    def clean(self, text: str) -> str:
        """Return a text from outside as one line without secrets, cut to the length of a message.

        The address counts as a secret, unless it is OpenAI's own: the text may be published, and the endpoint may be an
        internal machine.
        """
        host = urlsplit(self.url).hostname or ""
        # A host without a dot may be a plain word, such as "server".
        places = () if self.is_openai else (self.url, self.place, *([host] if {".", ":"} & set(host) else []))
        # A server may send halves of characters, which no file takes.
        text = text.encode("utf-8", "replace").decode()
        for place in places:
            text = text.replace(place, "the endpoint")
        for secret in self.secrets:
            text = text.replace(secret, "***")
        text = _KEYS.sub("***", " ".join(text.split()))
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def parse_address(base_url: str | None, key: str | None) -> Address:
    """Parse the URL of an endpoint and the credentials in it.

    Args:
        base_url: URL such as ``http://localhost:8000/v1``, which may contain user, password and query; OpenAI's own
            endpoint if None or empty.
        key: API key; None or empty if the endpoint needs none.

    Raises:
        ConfigError: the URL is not valid, or it is OpenAI's and there is no key.
    """
    parts = urlsplit((base_url or OPENAI).strip())
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        # The URL itself is not shown because it may contain a password.
        raise ConfigError("--base-url (or OPENAI_BASE_URL) is not valid; give a URL such as http://localhost:8000/v1")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    url = urlunsplit((parts.scheme, host if port is None else f"{host}:{port}", parts.path.rstrip("/"), "", ""))
    headers = {}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    address = Address(url, key or _NO_KEY, headers, dict(parse_qsl(parts.query)))
    if address.is_openai and not key:
        raise ConfigError("api.openai.com needs a key; set OPENAI_API_KEY, or name another endpoint with --base-url")
    return address
