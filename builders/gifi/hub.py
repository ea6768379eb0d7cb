"""Files of data sets: a local one, or one of the Hugging Face Hub at a commit that is recorded."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from schemas.errors import DataError


class SourceFile(NamedTuple):
    """A file that was read."""

    path: Path
    revision: str | None
    """Commit of the Hub; None for a local file."""
    sha256: str


def source_file(given: Path, names: tuple[str, ...], *, hub_id: str, hub_file: str, revision: str | None) -> SourceFile:
    """The file that ``--input`` means.

    Args:
        given: A file, a folder that holds one of ``names``, or the id of the Hub.
        names: Usual names of the file.
        hub_id: ``owner/name`` of the data set.
        hub_file: Path of the file in it.
        revision: Commit of the Hub; None for its newest.

    Raises:
        DataError: there is no such file, or the Hub does not give it.
    """
    if given.as_posix() == hub_id and not given.exists():
        return _fetched(hub_id, hub_file, revision)
    if given.is_dir():
        found = next((given / name for name in names if (given / name).is_file()), None)
        if found is None:
            raise DataError(f"--input {given}: no {' or '.join(names)} here; give the file, or {hub_id} for the Hub")
        given = found
    if not given.is_file():
        raise DataError(f"--input {given}: no such file; give {names[0]}, or {hub_id} for the Hub")
    if revision is not None:
        raise DataError(f"--revision {revision}: is of the Hub, and {given} is a local file; leave it out")
    return SourceFile(given, None, _sha256(given))


def _fetched(hub_id: str, hub_file: str, revision: str | None) -> SourceFile:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        path = Path(huggingface_hub.hf_hub_download(hub_id, hub_file, repo_type="dataset", revision=revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"--input {hub_id}: {hub_file} at {revision or 'main'} cannot be had from the Hub ({reason}); "
            "go online, or give a local file"
        ) from error
    # Files lie in snapshots/<commit>/.
    commit = path.parts[path.parts.index("snapshots") + 1]
    return SourceFile(path, commit, _sha256(path))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
