"""Where an endpoint is and what opens it; whatever is secret of it is kept out of every text that leaves the client."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from schemas.errors import ConfigError

OPENAI = "https://api.openai.com/v1"
_NO_KEY = "no-key-needed"
_LONGEST = 400
# What keys look like, whoever issued them: an error text may hold one that is not ours.
_KEYS = re.compile(r"(?i)(bearer\s+|basic\s+)[A-Za-z0-9._~+/=-]{6,}|\b(sk|pk|rk|hf|gsk)[-_][A-Za-z0-9_-]{8,}")


@dataclass(frozen=True)
class Address:
    """An endpoint. Its ``repr`` holds no secret."""

    url: str
    """Without user, password and query."""
    key: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must not be shown, longest first."""
        plain = {self.key, *self.headers.values(), *self.query.values()} - {_NO_KEY}
        for value in self.headers.values():
            encoded = value.removeprefix("Basic ")
            user, _, password = base64.b64decode(encoded).decode().partition(":")
            plain |= {encoded, user, password}
        spelled = plain | {quote(value, safe="") for value in plain}
        # Below four characters hiding would garble the text more than it protects.
        return tuple(sorted((value for value in spelled if len(value) > 3), key=len, reverse=True))

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own."""
        return urlsplit(self.url).hostname == "api.openai.com"

    def clean(self, text: str) -> str:
        """One line of a text that came from outside, without secrets and not longer than a message may be."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        text = _KEYS.sub("***", " ".join(text.split()))
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def parse_address(base_url: str | None, key: str | None) -> Address:
    """The endpoint that the user means.

    Args:
        base_url: Such as ``http://localhost:8000/v1``; OpenAI's own if None. User, password and
            query may be part of it.
        key: None or empty for an endpoint without keys.

    Raises:
        ConfigError: it is no address, or OpenAI's without a key.
    """
    parts = urlsplit((base_url or OPENAI).strip())
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        # The text itself is not shown: it may hold a password.
        raise ConfigError("--base-url (or OPENAI_BASE_URL) is no address; give one such as http://localhost:8000/v1")
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
