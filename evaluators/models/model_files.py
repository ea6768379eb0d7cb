"""The files that make a model or an adapter: where they are, whether they are whole, and exactly which they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import ConfigError
from schemas.files import sha256_file

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A model of the Hub at one commit, or a local folder as it is now."""

    location: str
    """What a library loads: an id of the Hub, or the path of the folder."""
    public_name: str
    """The id of the Hub, or the folder's own name: no path of this machine."""
    revision: str
    """Commit of the Hub, or ``sha256:...`` of the folder's files."""
    is_local: bool

    @property
    def commit(self) -> str | None:
        """What a library is to load from the Hub; None for a folder."""
        return None if self.is_local else self.revision

    @property
    def default_id(self) -> str:
        """What to call it in results."""
        return f"local/{self.public_name}" if self.is_local else self.public_name

    @property
    def identity(self) -> str:
        """Which files exactly; two folders of different names may hold the same model."""
        return self.revision if self.is_local else f"{self.public_name}@{self.revision}"


def find_model(model: str, revision: str | None, *, own_tokenizer: bool = True) -> ModelFiles:
    """The files of a language model.

    Args:
        model: Id of the Hub, or path of a local folder.
        revision: Commit, tag or branch on the Hub; its main branch if left out.
        own_tokenizer: Whether the tokenizer has to be among them.

    Raises:
        ConfigError: there are none, or the folder lacks some.
    """
    found = find_files(model, revision, needed="config.json", what="model")
    if found.is_local and own_tokenizer and not any((Path(model) / name).is_file() for name in _TOKENIZER_FILES):
        raise ConfigError(
            f"model folder '{model}' has no tokenizer (one of {', '.join(_TOKENIZER_FILES)}); "
            "save it there with AutoTokenizer.from_pretrained(ID).save_pretrained(FOLDER), or name one with --tokenizer"
        )
    return found


def find_files(name: str, revision: str | None, *, needed: str, what: str) -> ModelFiles:
    """The files of anything that lies on the Hub or in a folder.

    Args:
        name: Id of the Hub, or path of a local folder.
        revision: Commit, tag or branch on the Hub; its main branch if left out.
        needed: A file that every one of its kind has.
        what: Its kind, for errors.

    Raises:
        ConfigError: there are none, or the folder lacks the file.
    """
    folder = Path(name)
    if folder.is_dir():
        if revision is not None:
            raise ConfigError(f"a local {what} folder has no revision; leave it out, its files are hashed")
        if not (folder / needed).is_file():
            raise ConfigError(f"{what} folder '{name}' has no {needed}; save the {what} there with save_pretrained")
        return ModelFiles(
            location=name, public_name=folder.resolve().name, revision=folder_revision(folder), is_local=True
        )
    if folder.is_absolute() or name.startswith((".", "~")):
        raise ConfigError(f"{what} folder '{name}' does not exist; name a folder or an id of the Hub")
    commit = hub_commit(name, revision, needed=needed, what=what)
    return ModelFiles(location=name, public_name=name, revision=commit, is_local=False)


def folder_revision(folder: Path) -> str:
    """Hash of the names and contents of all files of a folder and its sub-folders, hidden ones left out."""
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder).as_posix()}:{sha256_file(path)}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def _files(folder: Path) -> Iterator[Path]:
    """Files of a folder in an order that does not depend on the machine.

    Hidden files, such as what a download leaves behind or a version control keeps, are no part of a model.
    """
    found = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    yield from sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def hub_commit(name: str, revision: str | None, *, needed: str, what: str) -> str:
    """The commit that a revision of the Hub stands for; offline, the one that was downloaded.

    Raises:
        ConfigError: there is no such repository, revision or file, or it cannot be reached.
    """
    import huggingface_hub

    try:
        path = Path(huggingface_hub.hf_hub_download(name, needed, revision=revision))
    # Errors of the client and of the connection have no base in common; every one of them is about the name.
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"{what} '{name}' cannot be found: {reason}; check the id and the revision, or give a local folder"
        ) from error
    # A download lies in snapshots/<commit>/.
    return path.parent.name
