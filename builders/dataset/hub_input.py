"""What ``--input`` and ``--revision`` mean for a source that is a dataset on the Hugging Face Hub, or a copy of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.hub import hub_obstacle


def is_on_hub(given: Path, hub_id: str) -> bool:
    """Return True if ``--input`` names a dataset on the Hub; a file or folder of that name goes before it."""
    return given.as_posix() == hub_id and not given.exists()


def check_no_revision(revision: str | None, given: Path, kind: str) -> None:
    """Check that no revision is asked of a local copy.

    Args:
        revision: Value of ``--revision``; None if it is not given.
        given: Path of the copy.
        kind: ``file`` or ``folder``.

    Raises:
        DataError: there is one.
    """
    if revision is not None:
        raise DataError(f"--revision {revision}: applies to the Hub only, and {given} is a local {kind}; leave it out")


@contextmanager
def downloading(hub_id: str, what: str, needed: Sequence[str], *, revision: str | None, kind: str) -> Iterator[None]:
    """Turn every failure of a download into one line.

    Args:
        hub_id: Id of the dataset on the Hub.
        what: Commit, or file and commit, for messages.
        needed: Names of files; the dataset counts as downloaded if one of them is in the cache.
        revision: Commit on the Hub; None for the main branch.
        kind: ``file`` or ``folder``, which can be given in its place.

    Raises:
        DataError: the dataset cannot be had.
    """
    obstacle = hub_obstacle(hub_id, needed, revision=revision, repo_type="dataset")
    if obstacle is not None:
        raise DataError(f"--input {hub_id}: {what} cannot be had: {obstacle}")
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        yield
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = (str(error).splitlines() or ["no message"])[0]
        raise DataError(
            f"--input {hub_id}: {what} cannot be downloaded from the Hub ({reason}); go online, or give a local {kind}"
        ) from error
