"""A dataset repository on the Hugging Face Hub: its contents, and the few requests that change it.

Failures are of three kinds. A mistake of the user, such as a token without the right to write, is an error of one line.
:class:`TryAgainError` means that the state of the repository is no longer known: it must be read again before anything
else is sent. A failure that no retry can fix is a :class:`~biasboard.ground.errors.RunError`.
"""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING

from biasboard.ground.errors import BiasboardError, ConfigError, DataError, RunError
from biasboard.ground.files import sha256_file
from biasboard.ground.hub import hub_fault, hub_host, hub_is_off, token_fault
from biasboard.ground.plain_text import one_line
from biasboard.ground.progress import working

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

_TYPE = "dataset"
_REPO = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
_MOVED, _BUSY = 412, 409
_AFTERWARDS = (408, 429, _BUSY, _MOVED)
"""Statuses below 500 after which the same request may succeed later."""
_TOKEN_REMEDY = "give a token that may write to it in HF_TOKEN, or run: hf auth login"


class TryAgainError(Exception):
    """A request that failed and may succeed once the repository has been read again."""

    def __init__(self, reason: str, *, waits: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.waits = waits
        """True if an immediate retry would fail again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file to send."""

    name: str
    """Path in the repository."""
    path: Path
    size: int
    sha256: str
    """Hash by which the Hub identifies a large file."""
    git_sha1: str
    """Hash by which git, and so the Hub, identifies a small file."""


def local_files(folder: Path) -> Iterator[LocalFile]:
    """Yield the files of a folder, sorted by name; hidden files count too.

    Raises:
        DataError: the folder holds a link, or something that is no regular file.
    """
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise DataError(f"{path}: is a link; put the file itself there, or remove it")
        if path.is_dir():
            continue
        if not path.is_file():
            raise DataError(f"{path}: is no regular file; remove it")
        yield local_file(path, name)


def local_file(path: Path, name: str) -> LocalFile:
    """Return a file to send, with its hashes.

    Args:
        path: The file.
        name: Its path in the repository.
    """
    size = path.stat().st_size
    # git hashes the content of a file after a header with its size.
    git_sha1 = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            git_sha1.update(block)
    return LocalFile(name=name, path=path, size=size, sha256=sha256_file(path), git_sha1=git_sha1.hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file in a repository."""

    size: int
    git_sha1: str
    sha256: str | None
    """Hash of the content of a large file; None for a small one, whose content is hashed by ``git_sha1``."""

    def is_same(self, file: LocalFile) -> bool:
        """Return True if a local file has the same content."""
        return file.git_sha1 == self.git_sha1 if self.sha256 is None else file.sha256 == self.sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class HubState:
    """The state of a repository at one moment."""

    head: str
    """Last commit of the main branch."""
    is_private: bool
    tags: Mapping[str, str]
    """Commit of each tag."""


class HubRepository:
    """A dataset repository on the Hub, which need not exist yet."""

    def __init__(self, repo: str) -> None:
        """Open a repository.

        Args:
            repo: Its id, ``ORG/NAME``.

        Raises:
            ConfigError: it is no id, the Hub is switched off, or the token is none.
            RunError: the Hub cannot be reached.
        """
        from huggingface_hub import HfApi

        if _REPO.fullmatch(repo) is None or "--" in repo or ".." in repo:
            raise ConfigError(f"--repo {repo}: is no id of a repository; give ORG/NAME")
        if hub_is_off():
            raise ConfigError(f"--repo {repo}: HF_HUB_OFFLINE forbids asking the Hub; unset it to publish")
        if (fault := token_fault()) is not None:
            raise ConfigError(f"--repo {repo}: {fault}")
        if (fault := hub_fault()) is not None:
            raise RunError(f"--repo {repo}: the Hub at {hub_host()} cannot be reached ({fault}); try again later")
        self.repo = repo
        self._api = HfApi()

    def check_token(self) -> None:
        """Check that there is a token, without sending it to the Hub.

        Raises:
            ConfigError: there is none.
        """
        if not _has_token():
            raise ConfigError(f"--repo {self.repo}: there is no token for the Hub; {_TOKEN_REMEDY}")

    def read(self) -> HubState | None:
        """Read the state of the repository; None if it does not exist or the token may not see it."""
        from huggingface_hub.errors import RepositoryNotFoundError

        with self._asking("reading"):
            try:
                info = self._api.repo_info(self.repo, repo_type=_TYPE)
            except RepositoryNotFoundError as error:
                if error.response.status_code != 404:
                    raise
                return None
            tags = self._api.list_repo_refs(self.repo, repo_type=_TYPE).tags
            targets = {tag.name: tag.target_commit for tag in tags}
            return HubState(head=str(info.sha), is_private=bool(info.private), tags=targets)

    def files(self, revision: str) -> dict[str, HubFile]:
        """Read the files of a commit or a reference, with their hashes, by name."""
        from huggingface_hub import RepoFile

        with self._asking("reading"):
            tree = self._api.list_repo_tree(self.repo, recursive=True, revision=revision, repo_type=_TYPE)
            return {
                entry.path: HubFile(
                    size=entry.size, git_sha1=entry.blob_id, sha256=None if entry.lfs is None else entry.lfs.sha256
                )
                for entry in tree
                if isinstance(entry, RepoFile)
            }

    def contents(self, names: Sequence[str], revision: str) -> dict[str, bytes]:
        """Read small files of a commit, by name; those of an earlier call come from the Hub's cache."""
        if not names:
            return {}
        with self._asking("reading"), working(f"reading {self.repo}"):
            folder = self._api.snapshot_download(
                self.repo, repo_type=_TYPE, revision=revision, allow_patterns=[glob.escape(name) for name in names]
            )
            return {name: Path(folder, name).read_bytes() for name in names}

    def commits(self, title: str) -> list[str]:
        """Read the commits of the main branch with a title, the latest first."""
        with self._asking("reading"):
            commits = self._api.list_repo_commits(self.repo, repo_type=_TYPE)
            return [commit.commit_id for commit in commits if commit.title == title]

    def pull_requests(self, title: str) -> dict[str, str]:
        """Read the open pull requests with a title: the reference of each, and its address."""
        with self._asking("reading"):
            requests = self._api.get_repo_discussions(
                self.repo, repo_type=_TYPE, discussion_type="pull_request", discussion_status="open"
            )
            return {f"refs/pr/{request.num}": request.url for request in requests if request.title == title}

    def address(self, commit: str) -> str:
        """Return the address of a commit."""
        return f"{self._api.endpoint}/datasets/{self.repo}/commit/{commit}"

    def create(self, *, private: bool) -> None:
        """Create the repository."""
        with self._asking("creating the repository"):
            self._api.create_repo(self.repo, repo_type=_TYPE, private=private)

    def commit(
        self, title: str, additions: Sequence[LocalFile], deletions: Sequence[str], *, parent: str, pull_request: bool
    ) -> str:
        """Send one commit with all changes.

        Args:
            title: First line of the commit.
            additions: Files to add or to replace.
            deletions: Names of files to delete.
            parent: Commit that the main branch must still be at.
            pull_request: True to open a pull request instead of changing the main branch.

        Returns:
            The commit, or the address of the pull request.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete

        # Not by upload_folder: with Xet it makes several commits, of which only the first checks its parent.
        operations: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
            *(CommitOperationAdd(path_in_repo=file.name, path_or_fileobj=file.path) for file in additions),
            *(CommitOperationDelete(path_in_repo=name, is_folder=False) for name in deletions),
        ]
        with self._asking("sending the commit"):
            made = self._api.create_commit(
                self.repo,
                operations,
                commit_message=title,
                repo_type=_TYPE,
                parent_commit=parent,
                create_pr=pull_request,
            )
            return str(made.pr_url if pull_request else made.oid)

    def tag(self, name: str, commit: str) -> None:
        """Create a tag on a commit; an existing tag is never moved."""
        with self._asking("tagging"):
            self._api.create_tag(self.repo, tag=name, revision=commit, repo_type=_TYPE)

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """Turn each failure of a request into one of the three kinds."""
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

        # The Hub's errors derive from those of the client's HTTP library, which was another in older versions.
        no_answer: type[Exception] = HfHubHTTPError.__bases__[0]
        try:
            yield
        except HfHubHTTPError as error:
            raise self._kind(error, doing) from error
        except (no_answer, LocalEntryNotFoundError) as error:
            raise TryAgainError(f"{doing}: no answer ({one_line(error)})", waits=True) from error
        except (JSONDecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError) as error:
            # The client trusts the form of each answer, and a proxy or a sign-in page may answer in place of the Hub.
            reason = f"{doing}: the answer is none of the Hub ({type(error).__name__}: {one_line(error)})"
            raise TryAgainError(reason, waits=True) from error
        except ValueError as error:
            raise DataError(f"--repo {self.repo}: {doing}: {one_line(error)}; correct what it names") from error
        except RuntimeError as error:
            # The thread that uploads a large file wraps its errors.
            if isinstance(error.__cause__, HfHubHTTPError):
                raise self._kind(error.__cause__, doing) from error
            raise TryAgainError(f"{doing}: {one_line(error.__cause__ or error)}", waits=True) from error

    def _kind(self, error: HfHubHTTPError, doing: str) -> BiasboardError | TryAgainError:
        status = error.response.status_code
        message = f": {one_line(error.server_message)}" if error.server_message else ""
        if status in (401, 403):
            what = "does not allow this with the token" if status == 403 else "does not accept the token"
            if not _has_token():
                what = "shows no such repository without a token"
            return ConfigError(f"--repo {self.repo}: {doing}: the Hub {what} ({status}{message}); {_TOKEN_REMEDY}")
        if status == _MOVED:
            return TryAgainError(f"{doing}: somebody else committed meanwhile ({status}{message})", waits=False)
        if status == _BUSY:
            return TryAgainError(f"{doing}: something else is going on there ({status}{message})", waits=True)
        if status in _AFTERWARDS or status >= 500:
            return TryAgainError(f"{doing}: the Hub failed ({status}{message})", waits=True)
        return RunError(
            f"--repo {self.repo}: {doing}: the Hub refused ({status}{message}); correct that and run it again"
        )


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None
