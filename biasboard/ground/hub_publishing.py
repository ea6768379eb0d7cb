"""Publishes files in a dataset repository of the Hugging Face Hub: one commit, then a tag of it.

What to send, a commit, a tag, both or nothing, follows from what is published and from what the repository holds. The
commit names as its parent the one that was looked at, so that the Hub refuses it if somebody else committed meanwhile.
The client repeats the requests that may be repeated. After any other failure the same command goes on from what the
Hub holds, so that nothing is committed or tagged twice; only pull requests are opened anew.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from biasboard.ground.errors import BiasboardError, ConfigError, DataError, RunError
from biasboard.ground.files import sha256_file
from biasboard.ground.hub import hub_fault, hub_host, hub_is_off, token_fault
from biasboard.ground.plain_text import listed, one_line
from biasboard.ground.progress import working

if TYPE_CHECKING:
    from huggingface_hub import RepoFile
    from huggingface_hub.errors import HfHubHTTPError

LocalFiles: TypeAlias = Mapping[str, Path]
"""Files to send, by their path in the repository."""
OF_THE_HUB = (".gitattributes",)
"""Files that the Hub itself adds to a repository and needs."""
MOST_NAMES = 3
"""Number of files that a message names."""
_REPO = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)
_TOKEN_REMEDY = "give a token that may write to it in HF_TOKEN, or run: hf auth login"
_GO_ON = "run the same command again, it goes on from what the Hub holds"
_PASSING = {
    408: "the Hub failed",
    409: "something else is going on there",
    412: "somebody else committed meanwhile",
    429: "the Hub failed",
}
"""What statuses below 500 mean after which the same request may succeed later."""


def local_files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by their path in it, sorted; hidden files count too.

    Raises:
        DataError: the folder holds a link, or something that is no regular file.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise DataError(f"{path}: is a link; put the file itself there, or remove it")
        if not path.is_file() and not path.is_dir():
            raise DataError(f"{path}: is no regular file; remove it")
        if path.is_file():
            files[path.relative_to(folder).as_posix()] = path
    return files


class HubRepository:
    """A dataset repository on the Hub, which need not exist yet."""

    def __init__(self, repo: str, *, writes: bool) -> None:
        """Open a repository, without looking at it.

        Args:
            repo: Its id, ``ORG/NAME``.
            writes: True if a token is needed, which is not sent to the Hub yet.

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
        if writes and not _has_token():
            raise ConfigError(f"--repo {repo}: there is no token for the Hub; {_TOKEN_REMEDY}")
        self.repo = repo
        self.api = HfApi()
        self.head: str | None = None
        """Last commit of the main branch; None if the repository does not exist or the token may not see it."""
        self.is_private = False
        self.tags: Mapping[str, str] = {}
        """Commit of each tag."""

    def look(self) -> None:
        """Look at the state of the repository."""
        from huggingface_hub.errors import RepositoryNotFoundError

        with self.asking("reading"):
            try:
                info = self.api.repo_info(self.repo, repo_type="dataset")
            except RepositoryNotFoundError as error:
                if error.response.status_code != 404:
                    raise
                return
            tags = self.api.list_repo_refs(self.repo, repo_type="dataset").tags
            self.head, self.is_private = str(info.sha), bool(info.private)
            self.tags = {tag.name: tag.target_commit for tag in tags}

    def files(self, revision: str | None) -> dict[str, RepoFile]:
        """Read the files of a commit or a reference, with their hashes, by name; None has no files."""
        from huggingface_hub import RepoFile

        if revision is None:
            return {}
        with self.asking("reading"):
            tree = self.api.list_repo_tree(self.repo, recursive=True, revision=revision, repo_type="dataset")
            return {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}

    def contents(self, names: Sequence[str]) -> dict[str, bytes]:
        """Read small files of the last commit, by name; those of an earlier call come from the Hub's cache."""
        if not names:
            return {}
        patterns = [glob.escape(name) for name in names]
        with self.asking("reading"), working(f"reading {self.repo}"):
            folder = self.api.snapshot_download(
                self.repo, repo_type="dataset", revision=self.head, allow_patterns=patterns
            )
            return {name: Path(folder, name).read_bytes() for name in names}

    def address(self, commit: str) -> str:
        """Return the address of a commit."""
        return f"{self.api.endpoint}/datasets/{self.repo}/commit/{commit}"

    def commit(self, title: str, additions: LocalFiles, deletions: Sequence[str], *, pull_request: bool) -> str:
        """Send one commit with all changes; the main branch must still be where it was when it was looked at.

        Args:
            title: First line of the commit.
            additions: Files to add or to replace.
            deletions: Names of files to delete.
            pull_request: True to open a pull request instead of changing the main branch.

        Returns:
            The commit, or the address of the pull request.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete

        # Not by upload_folder: with Xet it makes several commits, of which only the first checks its parent.
        operations: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = [
            *(CommitOperationAdd(path_in_repo=name, path_or_fileobj=path) for name, path in additions.items()),
            *(CommitOperationDelete(path_in_repo=name, is_folder=False) for name in deletions),
        ]
        with self.asking("sending the commit"):
            made = self.api.create_commit(
                self.repo,
                operations,
                commit_message=title,
                repo_type="dataset",
                parent_commit=self.head,
                create_pr=pull_request,
            )
            return str(made.pr_url if pull_request else made.oid)

    @contextmanager
    def asking(self, doing: str) -> Iterator[None]:
        """Turn whatever goes wrong in requests into an error of one line, which says whether to repeat the command."""
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

        where = f"--repo {self.repo}: {doing}"
        # The Hub's errors derive from those of the client's HTTP library, which was another in older versions.
        no_answer: type[Exception] = HfHubHTTPError.__bases__[0]
        try:
            yield
        except HfHubHTTPError as error:
            raise _refusal(error, where) from error
        except (no_answer, LocalEntryNotFoundError) as error:
            raise RunError(f"{where}: no answer ({one_line(error)}); {_GO_ON}") from error
        except (JSONDecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError) as error:
            # The client trusts the form of each answer, and a proxy or a sign-in page may answer in place of the Hub.
            what = f"{type(error).__name__}: {one_line(error)}"
            raise RunError(f"{where}: the answer is none of the Hub ({what}); {_GO_ON}") from error
        except ValueError as error:
            raise DataError(f"{where}: {one_line(error)}; correct what it names") from error
        except RuntimeError as error:
            # The thread that uploads a large file wraps its errors.
            if isinstance(error.__cause__, HfHubHTTPError):
                raise _refusal(error.__cause__, where) from error
            raise RunError(f"{where}: {one_line(error.__cause__ or error)}; {_GO_ON}") from error


def _refusal(error: HfHubHTTPError, where: str) -> BiasboardError:
    status = error.response.status_code
    told = f"({status}{f': {one_line(error.server_message)}' if error.server_message else ''})"
    if status in (401, 403):
        what = "does not allow this with the token" if status == 403 else "does not accept the token"
        if not _has_token():
            what = "shows no such repository without a token"
        return ConfigError(f"{where}: the Hub {what} {told}; {_TOKEN_REMEDY}")
    if status in _PASSING or status >= 500:
        return RunError(f"{where}: {_PASSING.get(status, 'the Hub failed')} {told}; {_GO_ON}")
    return RunError(f"{where}: the Hub refused {told}; correct that and run it again")


def _has_token() -> bool:
    from huggingface_hub import get_token

    return get_token() is not None


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What is published by one commit."""

    title: str
    """First line of the commit message."""
    files: LocalFiles
    tag: str | None = None
    """Tag of the commit, which never moves; None for no tag."""
    another_tag: str = ""
    """How to get another tag, for the message that the tag is on other files."""

    def files_for(self, repository: HubRepository) -> LocalFiles:
        """Return the files to publish, which may depend on those that the repository holds.

        Raises:
            DataError: the files cannot be published there.
        """
        return self.files

    def to_delete(self, repository: HubRepository, files: LocalFiles, present: Mapping[str, RepoFile]) -> Sequence[str]:
        """Return the files of the repository that those to publish take the place of.

        Raises:
            DataError: a commit would replace something else.
        """
        return ()


class Published(NamedTuple):
    """What became of a publication, or in a dry run would become of it; ``PublishedFiles`` describes each field."""

    repo: str
    title: str
    is_dry_run: bool
    is_sent: bool
    is_pull_request: bool
    commit: str | None
    tag: str | None
    address: str | None
    added: tuple[str, ...]
    replaced: tuple[str, ...]
    unchanged: tuple[str, ...]
    deleted: tuple[str, ...]


def publish(
    publication: Publication,
    repository: HubRepository,
    *,
    private: bool = False,
    pull_request: bool,
    is_dry_run: bool = False,
) -> Published:
    """Publish files, or tell what that would send; what is done is printed.

    Args:
        publication: What to publish.
        repository: Repository to publish it in.
        private: True to create the repository as a private one.
        pull_request: True to open a pull request, which is not tagged.
        is_dry_run: True to send nothing.

    Raises:
        ConfigError: the token has no right to do this, or an option does not fit the repository.
        DataError: the repository holds something that must not be replaced.
        RunError: the Hub failed, or somebody else committed meanwhile.
    """
    repository.look()
    where, title = f"--repo {repository.repo}", publication.title
    if repository.head is None and pull_request:
        raise ConfigError(
            f"{where}: does not exist, or the token may not see it, so nothing can be proposed to it; correct the id, "
            "or create it first: without --pr, or on the Hub"
        )
    if repository.head is not None and private and not repository.is_private:
        raise ConfigError(
            f"{where}: exists and is public, and --private is for new ones; leave it out, or change its settings on "
            "the Hub"
        )
    if repository.head is None and not is_dry_run:
        with repository.asking("creating the repository"):
            repository.api.create_repo(repository.repo, repo_type="dataset", private=private)
        print(f"created {repository.repo}{', private' if private else ''}")
        repository.look()
        if repository.head is None:
            raise RunError(f"{where}: was created and cannot be seen yet; {_GO_ON}")
    files = publication.files_for(repository)
    plan = _plan(publication, repository, files, pull_request=pull_request)
    additions = {name: path for name, path in files.items() if name in {*plan.added, *plan.replaced}}
    tag = publication.tag if publication.tag not in repository.tags else None
    if is_dry_run:
        state = f"at {repository.head[:12]}" if repository.head else f"new, {'private' if private else 'public'}"
        print(f"{title} to {repository.repo} ({state}):")
        for line in _told(plan, additions, publication.tag, is_tagged=tag is None):
            print(line)
        return plan._replace(is_dry_run=True)
    commit = plan.commit
    if pull_request:
        to_tag = "" if tag is None else f"run it without --pr to tag it {tag}"
        if commit is not None:
            print(f"{plan.repo} holds {title} already, in commit {commit}{to_tag and f'; {to_tag}'}")
            return plan
        address = repository.commit(title, additions, plan.deleted, pull_request=True)
        print(f"opened {address}{to_tag and f'; after it is merged, {to_tag}'}")
        return plan._replace(address=address, is_sent=True)
    if commit is None:
        commit = repository.commit(title, additions, plan.deleted, pull_request=False)
        print(f"commit {commit}: {len(additions)} added or changed, {len(plan.deleted)} deleted")
        if lacking := differences(files, repository.files(commit)):
            untagged = "" if tag is None else ", so it was not tagged"
            raise RunError(
                f"{where}: commit {commit[:12]} lacks {lacking[0]} as it is here{untagged}; look for a .gitignore "
                "there, and run it again"
            )
        if tag is None:
            print(f"published {title} in {repository.repo}")
    elif tag is None:
        print(f"published already: {title}, as {plan.tag or commit[:12]} of {repository.repo}; nothing to do")
        return plan
    else:
        print(f"commit {commit} holds {title} already")
    if tag is not None:
        with repository.asking("tagging"):
            repository.api.create_tag(repository.repo, tag=tag, revision=commit, repo_type="dataset")
        print(f"tagged {tag}: published {title} as {repository.repo}@{tag}")
    return plan._replace(commit=commit, address=repository.address(commit), is_sent=True)


def _plan(publication: Publication, repository: HubRepository, files: LocalFiles, *, pull_request: bool) -> Published:
    """Return what a repository would hold after publishing, with the commit or pull request that holds it already."""
    tag, head = publication.tag, repository.head
    commit = None if tag is None else repository.tags.get(tag)
    present = repository.files(head if commit is None else commit)
    changed, deleted = differences(files, present), list[str]()
    if commit is not None and changed:
        raise DataError(
            f"--repo {repository.repo}: tag {tag} is on commit {commit[:12]} with other content "
            f"({listed(changed, most=MOST_NAMES)}); a version never changes: {publication.another_tag}"
        )
    if commit is None and head is not None:
        deleted = list(publication.to_delete(repository, files, present))
        if not changed and not deleted:
            commit = head
    return Published(
        repo=repository.repo,
        title=publication.title,
        is_dry_run=False,
        is_sent=False,
        is_pull_request=pull_request,
        commit=commit,
        tag=None if pull_request and tag not in repository.tags else tag,
        address=None if commit is None else repository.address(commit),
        added=tuple(sorted({*changed} - present.keys())),
        replaced=tuple(sorted({*changed} & present.keys())),
        unchanged=tuple(sorted(files.keys() - {*changed})),
        deleted=tuple(deleted),
    )


def differences(files: LocalFiles, present: Mapping[str, RepoFile]) -> list[str]:
    """Return the names of the files that a commit lacks or has with other content."""
    from huggingface_hub.utils.sha import git_hash

    def is_same(path: Path, there: RepoFile) -> bool:
        if there.size != path.stat().st_size:
            return False
        return sha256_file(path) == there.lfs.sha256 if there.lfs else git_hash(path.read_bytes()) == there.blob_id

    return [name for name, path in files.items() if name not in present or not is_same(path, present[name])]


def _told(plan: Published, additions: LocalFiles, tag: str | None, *, is_tagged: bool) -> Iterator[str]:
    """Yield the lines of a dry run after the first."""
    for name, path in additions.items():
        yield f"  {'change' if name in plan.replaced else 'add   '}  {name}  {path.stat().st_size:,} bytes"
    for name in plan.deleted:
        yield f"  delete  {name}"
    if plan.commit is not None:
        yield f"  nothing to commit: {plan.commit} holds it"
    if tag is not None and is_tagged:
        yield f"  nothing to tag: {tag} is on it"
    elif plan.is_pull_request:
        yield "  a pull request, without a tag"
    elif tag is not None:
        yield f"  tag     {tag}"
