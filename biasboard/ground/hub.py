"""Downloads datasets of the Hugging Face Hub, after checking once and quickly that it can be reached.

Its client alone would retry for half a minute.
"""

from __future__ import annotations

import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import key_fault, one_line
from biasboard.ground.progress import working

_SECONDS = 2.5
_NO_ANSWER = f"no answer within {_SECONDS:g} s"
_PROXY_REFUSES = 407

REMEDY = "check the id, go online, or give a local folder or HF_ENDPOINT for a mirror"
_OFFLINE_REMEDY = "check the id, give a local folder, or unset HF_HUB_OFFLINE to download it"
# In every repository of the Hub, so that one without the files that are looked for can be seen to be in the cache too.
_ALWAYS = ".gitattributes"
_DATASET = re.compile(r"(?:hf://datasets/)?(?P<id>\w[\w.-]{0,95}/\w[\w.-]{0,95})(?:@(?P<revision>[^@]+?))?/?", re.ASCII)


class HubDataset(NamedTuple):
    """A dataset repository of the Hub, as users name it."""

    id: str
    revision: str | None
    """Branch, tag or commit; None for the main branch."""


def hub_dataset(text: str) -> HubDataset | None:
    """Return the dataset that a user names; None if the text has another form.

    >>> hub_dataset("org/name@v1.0.0")
    HubDataset(id='org/name', revision='v1.0.0')
    >>> hub_dataset("hf://datasets/org/name")
    HubDataset(id='org/name', revision=None)
    >>> hub_dataset("out/datasets/name")
    """
    match = _DATASET.fullmatch(text)
    return None if match is None else HubDataset(match["id"], match["revision"])


def downloaded(dataset: HubDataset, patterns: Sequence[str], *, named: str) -> Path:
    """Download files of a dataset into the Hub's cache, or find them there; return their folder, named by the commit.

    An asterisk in a pattern stands for any characters, and files may be missing; errors say ``named`` for the
    dataset.

    Raises:
        DataError: there is no such dataset or revision, or it is not in the cache and the Hub cannot be reached.
    """
    wanted = [_ALWAYS, *patterns]
    obstacle = hub_obstacle(dataset.id, wanted, revision=dataset.revision, repo_type="dataset")
    if obstacle is not None:
        raise DataError(f"{named}: cannot be downloaded: {obstacle}")
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        with working(f"downloading {dataset.id}"):
            folder = huggingface_hub.snapshot_download(
                dataset.id, repo_type="dataset", revision=dataset.revision, allow_patterns=wanted
            )
    except RepositoryNotFoundError as error:
        reason = f"the Hub at {hub_host()} shows no such dataset"
        remedy = "correct the id, or give a local folder; for a private one, a token in HF_TOKEN, or run: hf auth login"
        raise DataError(f"{named}: cannot be downloaded: {reason}; {remedy}") from error
    except RevisionNotFoundError as error:
        reason = f"dataset {dataset.id} has no branch, tag or commit '{dataset.revision}'"
        raise DataError(f"{named}: cannot be downloaded: {reason}; correct it, or give a local folder") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise DataError(
            f"{named}: cannot be downloaded ({one_line(error)}); check the address, go online, or give a local folder"
        ) from error
    return Path(folder)


def hub_host() -> str:
    """Return the host of the Hub or of its mirror in ``HF_ENDPOINT``, with the port if it is not the default one."""
    from huggingface_hub import constants

    return urlsplit(constants.ENDPOINT).netloc.rpartition("@")[2]


def hub_is_off() -> bool:
    """Return True if ``HF_HUB_OFFLINE`` forbids connections to the Hub, or if it cannot be reached."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def token_fault() -> str | None:
    """Return why the token for the Hub can be none, without showing it; None if it can, or if there is no token."""
    from huggingface_hub import get_token

    # The client takes out line breaks, and then sends what is no token.
    token = os.environ.get("HF_TOKEN", "").strip() or get_token() or ""
    return key_fault("the token for the Hub (HF_TOKEN, or that of hf auth login)", token)


def check_endpoint() -> None:
    """Check the address in ``HF_ENDPOINT``, which the client takes apart when it is imported.

    Raises:
        ConfigError: it is no address; it is not shown, because it may contain a password.
    """
    address = os.environ.get("HF_ENDPOINT", "").strip()
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if address and not is_address:
        raise ConfigError("HF_ENDPOINT is no address; set it to one such as https://huggingface.co, or unset it")


def hub_fault() -> str | None:
    """Return why the Hub cannot be reached; None if it answers. Each process checks only once."""
    from huggingface_hub import constants

    return _fault(str(constants.ENDPOINT))


def hub_obstacle(
    name: str, needed: Sequence[str], *, revision: str | None = None, repo_type: str = "model"
) -> str | None:
    """Return why a repository of the Hub cannot be downloaded, without waiting for the client's retries.

    If the Hub cannot be reached but the repository is in the cache, the client is switched offline and uses the cache.

    Args:
        name: Id of the repository.
        needed: Names of files; the repository counts as downloaded if one of them is in the cache.
        revision: Commit, tag or branch; the main branch if left out.
        repo_type: ``model`` or ``dataset``.

    Returns:
        The reason and the remedy; None if the client may be used.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    try:
        cached = [try_to_load_from_cache(name, file, revision=revision, repo_type=repo_type) for file in needed]
    except ValueError:  # The name is not an id; the client says what is wrong with it.
        return None
    is_here = any(isinstance(path, str) for path in cached)
    if hub_is_off():
        reason = f"it is neither a folder nor downloaded, and HF_HUB_OFFLINE is set; {_OFFLINE_REMEDY}"
        return None if is_here else reason
    if (fault := token_fault()) is not None:
        return fault
    fault = hub_fault()
    if fault is None:
        return None
    if not is_here:
        return (
            f"it is neither a folder nor downloaded, and the Hub at {hub_host()} cannot be reached ({fault}); {REMEDY}"
        )
    # The client reads the variable only when it is imported, and processes started from here read it themselves.
    constants.HF_HUB_OFFLINE = True
    os.environ["HF_HUB_OFFLINE"] = "1"
    return None


@cache
def _fault(endpoint: str) -> str | None:
    proxies = urllib.request.getproxies()
    if proxies.get(urlsplit(endpoint).scheme, "").startswith("socks"):
        return None  # Only the client speaks this protocol, so only it can find a fault.
    faults: list[str | None] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=_SECONDS):
                faults.append(None)
        except urllib.error.HTTPError as error:
            faults.append(f"HTTP {error.code}" if error.code == _PROXY_REFUSES or error.code >= 500 else None)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            said = str(getattr(reason, "strerror", None) or reason)
            # Worded like the limit of the thread, since it depends on the machine which of the two ends first.
            said = _NO_ANSWER if isinstance(reason, TimeoutError) else said
            # The client may trust certificates that this module does not.
            faults.append(None if "CERTIFICATE_VERIFY_FAILED" in str(reason) else said)

    # In a thread, because the DNS lookup of a host has no time limit.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return faults[0] if faults else _NO_ANSWER
