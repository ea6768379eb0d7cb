"""Finds the file of a source dataset: a local file, or one from the Hugging Face Hub at a commit that is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from builders.dataset.inputs import check_no_revision, downloading, is_on_hub


class SourceFile(NamedTuple):
    """A source file, with its revision and SHA-256."""

    path: Path
    revision: str | None
    """Commit on the Hub; None for a local file."""
    sha256: str


def source_file(given: Path, names: tuple[str, ...], *, hub_id: str, hub_file: str, revision: str | None) -> SourceFile:
    """Return the file that ``--input`` refers to, and download it from the Hub if necessary.

    Args:
        given: Path of the file, path of a folder that holds one of ``names``, or the Hub id.
        names: Usual names of the file, in order of preference.
        hub_id: Id of the dataset on the Hub, ``owner/name``.
        hub_file: Path of the file in the Hub repository.
        revision: Commit on the Hub; None for the newest one, and for a local file.

    Raises:
        DataError: there is no such file, it cannot be downloaded, or a revision is given for a local file.
    """
    if is_on_hub(given, hub_id):
        return _fetched(hub_id, hub_file, revision)
    if given.is_dir():
        found = next((given / name for name in names if (given / name).is_file()), None)
        if found is None:
            raise DataError(f"--input {given}: no {' or '.join(names)} here; give the file, or {hub_id} for the Hub")
        given = found
    if not given.is_file():
        raise DataError(f"--input {given}: no such file; give {names[0]}, or {hub_id} for the Hub")
    check_no_revision(revision, given, "file")
    return SourceFile(given, None, sha256_file(given))


def _fetched(hub_id: str, hub_file: str, revision: str | None) -> SourceFile:
    what = f"{hub_file} at {revision or 'main'}"
    with downloading(hub_id, what, [hub_file], revision=revision, kind="file"):
        import huggingface_hub

        path = Path(huggingface_hub.hf_hub_download(hub_id, hub_file, repo_type="dataset", revision=revision))
    # The Hub cache keeps each file in a folder named snapshots/<commit>/.
    commit = path.parts[path.parts.index("snapshots") + 1]
    return SourceFile(path, commit, sha256_file(path))
