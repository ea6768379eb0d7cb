"""Reads an endpoint's list of models, and finds the base address that was meant where another was given."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from evaluators.backends.openai.client import Client, FaultError, RejectedError

LISTING_SECONDS = 5.0
"""Seconds that a list of models may take; a server has it at hand."""
_MOST_NAMED = 8
_UNAUTHORISED = (401, 403)


class Listing(NamedTuple):
    """The models that an endpoint says it has."""

    entries: Mapping[str, Mapping[str, Any]]
    """Fields that describe each model, by its name."""

    def nearest(self, model: str) -> str:
        """Return the names for a message, those most like ``model`` first."""
        like = difflib.get_close_matches(model, self.entries, n=_MOST_NAMED, cutoff=0.0)
        more = len(self.entries) - len(like)
        return ", ".join(like) + (f" and {more} more" if more else "")


async def read_listing(client: Client, base: str = "") -> Listing:
    """Read the list of models.

    Args:
        client: Client of the endpoint.
        base: URL to look below instead of the client's own.

    Raises:
        FaultError: there is no usable answer.
        RejectedError: the endpoint refuses, or has no list.
    """
    data = (await client.get(f"{base}/models", seconds=LISTING_SECONDS)).data.get("data")
    entries = [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []
    return Listing({name: entry for entry in entries if isinstance(name := entry.get("id"), str)})


async def meant_address(client: Client, url: str) -> str | None:
    """Return the base URL on the same host that has a list of models; None if none of the usual ones has.

    Args:
        client: Client of the endpoint.
        url: Base URL that was given, and that has no such list.
    """
    for candidate in _candidates(url):
        try:
            if (await read_listing(client, candidate)).entries:
                return candidate
        except RejectedError as error:
            if error.status in _UNAUTHORISED:
                return candidate
        except FaultError as fault:
            if not fault.unusable:
                return None
    return None


def _candidates(url: str) -> Sequence[str]:
    parts = urlsplit(url)
    before, found, _ = parts.path.partition("/v1")
    paths = [f"{before}/v1"] if found else [f"{parts.path}/v1", "/v1"]
    usual = (urlunsplit((parts.scheme, parts.netloc, path, "", "")) for path in paths)
    return [one for one in dict.fromkeys(usual) if one != url]
