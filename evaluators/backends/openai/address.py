"""The address of an endpoint and the credentials in it, which are kept out of messages, logs and results."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import is_key, key_fault, masked

OPENAI = "https://api.openai.com/v1"
# The URL itself is not shown because it may contain a password.
INVALID = "--base-url (or OPENAI_BASE_URL) is not valid; give a URL such as http://localhost:8000/v1"
_NO_KEY = "no-key-needed"
_LONGEST_MESSAGE = 400
_DEEPEST = 64
"""Levels of objects and lists in a reply; no server needs a quarter of them."""
# API keys of any issuer, because an error text may quote a key that is not ours.
_KEYS = re.compile(r"(?i)(bearer\s+|basic\s+)[A-Za-z0-9._~+/=-]{6,}|\b(sk|pk|rk|hf|gsk)[-_][A-Za-z0-9_-]{8,}")
_HEADER = re.compile("[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HAS_DIGIT_AND_LETTER = re.compile(r"(?=.*\d)(?=.*[A-Za-z])")


@dataclass(frozen=True)
class Address:
    """The URL and the credentials of an endpoint; its ``repr`` shows no secret."""

    url: str = field(repr=False)
    """The URL without user, password and query, to send calls to."""
    key: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers beside the usual bearer of the key: the user's own, and what else carries the key or a password."""
    query: Mapping[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def secrets(self) -> frozenset[str]:
        """All secret texts: key, user, password, header and query values."""
        plain = {self.key, *self.headers.values(), *self.query.values(), *self._keys_in_path} - {_NO_KEY}
        # What stands behind a scheme, as in "Bearer KEY".
        plain |= {*(value.rpartition(" ")[2] for value in self.headers.values()), *self._basic}
        # Hiding texts of fewer than four characters would garble messages and protect little.
        return frozenset(value for value in plain if len(value) > 3)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The secrets that no answer holds by chance: passwords, and what looks like a key."""
        return frozenset(filter(is_key, self.secrets)) | (self.secrets & {*self._basic[2:]})

    @property
    def _basic(self) -> Sequence[str]:
        """User, colon and password."""
        basic = self.headers.get("Authorization", "")
        if not basic.startswith("Basic "):
            return ()
        return base64.b64decode(basic.removeprefix("Basic ")).decode().partition(":")

    @property
    def _keys_in_path(self) -> list[str]:
        """The parts of the path that look like keys, which some gateways take there: long, with digits and letters."""
        parts = urlsplit(self.url).path.split("/")
        return [part for part in parts if _KEYS.search(part) or (len(part) >= 20 and _HAS_DIGIT_AND_LETTER.match(part))]

    @property
    def shown(self) -> str:
        """The URL for messages on the console, without parts of the path that look like keys."""
        parts = urlsplit(self.url)
        path = "/".join("***" if part in self._keys_in_path else part for part in parts.path.split("/"))
        return urlunsplit((parts.scheme, parts.netloc, path, "", ""))

    @property
    def is_openai(self) -> bool:
        """True if the endpoint is OpenAI's own API."""
        return urlsplit(self.url).hostname == "api.openai.com"

    @property
    def is_azure(self) -> bool:
        """True if the endpoint is one of Azure's, which take the key in a header of their own."""
        return (urlsplit(self.url).hostname or "").endswith(".azure.com")

    @property
    def host_and_port(self) -> str:
        """The host and port, for messages on the console."""
        return urlsplit(self.url).netloc

    def clean(self, text: str) -> str:
        """Return a text from outside as one line without secrets, cut to the length of a message."""
        text = " ".join(self.without_secrets(text).split())
        return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]} ..."

    def without_secrets(self, text: str) -> str:
        """Return a text from outside without secrets.

        The address counts as a secret, unless it is OpenAI's own: the text may be published, and the endpoint may be an
        internal machine.
        """
        # A server may send lone surrogates, which UTF-8 files cannot hold.
        text = text.encode("utf-8", "replace").decode()
        if not self.is_openai:
            host = urlsplit(self.url).hostname or ""
            # Beside a port, a host without a dot may be a plain word, such as "server".
            for address in (self.url, self.host_and_port, *([host] if {".", ":"} & set(host) else [])):
                text = text.replace(address, "the endpoint")
        text = masked(text, self.keys)
        # In its own case alone, since a word such as EMPTY may stand where no key is needed.
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return _KEYS.sub("***", text)

    def without_keys(self, value: Any) -> Any:
        """Return a JSON value from outside with none of our keys in any text or name of it.

        Raises:
            RecursionError: the value is nested deeper than any answer.
        """

        def hidden(value: Any, deepest: int) -> Any:
            if isinstance(value, str):
                return masked(value, self.keys)
            if not deepest:
                raise RecursionError
            if isinstance(value, list):
                return [hidden(one, deepest - 1) for one in value]
            if isinstance(value, dict):
                return {masked(name, self.keys): hidden(one, deepest - 1) for name, one in value.items()}
            return value

        return hidden(value, _DEEPEST)


def parse_address(base_url: str | None, key: str | None, headers: Sequence[str] = ()) -> Address:
    """Parse the URL of an endpoint and the credentials in it.

    Args:
        base_url: URL such as ``http://localhost:8000/v1``, which may contain user, password and query; OpenAI's own
            endpoint if None or empty.
        key: API key; None or empty if the endpoint needs none.
        headers: Further headers, each as ``NAME=VALUE`` or ``NAME=$VARIABLE``.

    Raises:
        ConfigError: the URL, the key or a header is not valid, or the URL is OpenAI's and there is no key.
    """
    try:
        parts = urlsplit((base_url or OPENAI).strip())
        port = parts.port
    except ValueError:
        raise ConfigError(INVALID) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(INVALID)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    url = urlunsplit((parts.scheme, host if port is None else f"{host}:{port}", parts.path.rstrip("/"), "", ""))
    if (fault := key_fault("OPENAI_API_KEY", key or "")) is not None:
        raise ConfigError(fault)
    sent = dict(map(_header, headers))
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        sent["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    address = Address(url, key or _NO_KEY, sent, dict(parse_qsl(parts.query)))
    if key and address.is_azure:
        address = replace(address, headers={"api-key": key, **sent})
    if address.is_openai and not key:
        raise ConfigError("api.openai.com needs a key; set OPENAI_API_KEY, or name another endpoint with --base-url")
    return address


def _header(named: str) -> tuple[str, str]:
    """Return the name and the value of a header, which may stand in the environment."""
    name, equals, value = named.partition("=")
    if not equals or not _HEADER.fullmatch(name):
        raise ConfigError(f"--header {name} has no value; write NAME=VALUE, or NAME=$VARIABLE to keep it out of sight")
    if value.startswith("$"):
        variable = value[1:]
        if variable not in os.environ:
            raise ConfigError(f"--header {name}: the environment has no {variable}; set it")
        value = os.environ[variable]
    if (fault := key_fault(f"--header {name}", value.replace(" ", ""))) is not None:
        raise ConfigError(fault)
    return name, value.strip()
