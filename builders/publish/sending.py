"""Publishes a dataset: one commit, then the tag of its version; after every failure the repository is read again.

What to send, a commit, a tag, both or nothing, depends only on the dataset and the state of the repository.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.hub_repository import HubFile, HubRepository, HubState, LocalFile, TryAgainError
from biasboard.ground.plain_text import listed
from builders.dataset.output import version_key
from builders.publish.publishable import LocalDataset
from schemas.folders.dataset_folder import CARD, MANIFEST

_MOST_TRIES = 6
_MOST_SECONDS = 16.0
"""Longest wait before a retry, in seconds: 1 + 2 + 4 + 8 + 16 + 16 = 47 seconds in all."""
_OF_THE_HUB = (".gitattributes",)
"""Files that the Hub itself adds to a repository and needs."""
_MOST_NAMES = 3

Say = Callable[[str], None]


def publish(
    dataset: LocalDataset,
    repository: HubRepository,
    *,
    private: bool,
    pull_request: bool,
    say: Say,
    first_wait: float = 1.0,
) -> None:
    """Publish a dataset.

    After any failure the repository is read again before anything is sent, so that no commit or tag is made twice, and
    commits of others are kept.

    Args:
        dataset: Dataset to publish.
        repository: Repository to publish it in.
        private: True to create the repository as a private one.
        pull_request: True to open a pull request, which is not tagged.
        say: Called with each line to print.
        first_wait: Time to wait before the first retry, in seconds; it doubles with each retry.

    Raises:
        ConfigError: the token has no right to do this, or an option does not fit the repository.
        DataError: the repository holds the version with other content, a later version, or another dataset.
        RunError: the Hub failed repeatedly.
    """
    sending = _Sending(dataset, repository, private=private, pull_request=pull_request, say=say)
    wait = first_wait
    for _ in range(_MOST_TRIES):
        try:
            return sending.attempt()
        except TryAgainError as error:
            failure = error
        say(f"{failure.reason}; reading the repository again")
        if failure.waits:
            time.sleep(wait)
            wait = min(2 * wait, _MOST_SECONDS)
    raise RunError(
        f"--repo {repository.repo}: {failure.reason}, {_MOST_TRIES} times; run the same command again later, it goes "
        "on from what the Hub holds"
    )


def plan_lines(dataset: LocalDataset, repository: HubRepository, *, private: bool, pull_request: bool) -> Iterator[str]:
    """Yield what publishing would send, after reading the repository.

    Raises:
        ConfigError: an option does not fit the repository.
        DataError: the repository holds the version with other content, a later version, or another dataset.
        RunError: the Hub failed.
    """
    try:
        state = repository.read()
        _check_options(repository, state, private=private, pull_request=pull_request)
        plan = _make_plan(dataset, repository, state)
    except TryAgainError as error:
        raise RunError(f"--repo {repository.repo}: {error.reason}; try again later") from error
    what = "new, private" if private else "new, public"
    yield f"{dataset.title} to {repository.repo} ({what if state is None else f'at {state.head[:12]}'}):"
    for file in plan.additions:
        yield f"  {'change' if file.name in plan.replaced else 'add   '}  {file.name}  {file.size:,} bytes"
    for name in plan.deletions:
        yield f"  delete  {name}"
    if plan.committed is not None:
        yield f"  nothing to commit: {plan.committed} holds the dataset"
    if plan.is_tagged:
        yield f"  nothing to tag: {dataset.tag} is on it"
    elif pull_request:
        yield "  a pull request, without a tag"
    else:
        yield f"  tag     {dataset.tag}"


class _Sending:
    """Publishes one dataset, in as many attempts as it takes."""

    def __init__(
        self, dataset: LocalDataset, repository: HubRepository, *, private: bool, pull_request: bool, say: Say
    ) -> None:
        self._dataset, self._repository = dataset, repository
        self._private, self._pull_request, self._say = private, pull_request, say
        self._deletable: frozenset[str] | None = None

    def attempt(self) -> None:
        """Read the repository and send what it lacks; raise TryAgainError if it has to be read again."""
        state = self._repository.read()
        _check_options(self._repository, state, private=self._private, pull_request=self._pull_request)
        if state is None:
            self._repository.create(private=self._private)
            self._say(f"created {self._repository.repo}{', private' if self._private else ''}")
            state = self._repository.read()
        if state is None:
            raise TryAgainError("the repository was created and cannot be seen yet", waits=True)
        if self._deletable is None:
            # Only files of the first look may be deleted, not one that somebody else commits in the meantime.
            self._deletable = frozenset(self._repository.files(state.head))
        plan = _make_plan(self._dataset, self._repository, state, deletable=self._deletable)
        if self._pull_request:
            self._propose(state, plan)
        else:
            self._commit_and_tag(state, plan)

    def _commit_and_tag(self, state: HubState, plan: _Plan) -> None:
        dataset, repository = self._dataset, self._repository
        commit = plan.committed
        if commit is None:
            commit = repository.commit(
                dataset.title, plan.additions, plan.deletions, parent=state.head, pull_request=False
            )
            self._say(f"commit {commit}: {len(plan.additions)} added or changed, {len(plan.deletions)} deleted")
            self._check_arrived(commit)
        if plan.is_tagged:
            self._say(f"{dataset.title} is published already, as {dataset.tag} of {repository.repo}: nothing to do")
            return
        if plan.committed is not None:
            self._say(f"commit {commit} holds {dataset.title} already")
        repository.tag(dataset.tag, commit)
        self._say(f"tagged {dataset.tag}: published {dataset.title} as {repository.repo}@{dataset.tag}")

    def _propose(self, state: HubState, plan: _Plan) -> None:
        dataset, repository = self._dataset, self._repository
        if plan.committed is not None:
            rest = "" if plan.is_tagged else f"; run it without --pr to tag it {dataset.tag}"
            self._say(f"{repository.repo} holds {dataset.title} already, in commit {plan.committed}{rest}")
            return
        for reference, address in repository.pull_requests(dataset.title).items():
            if not _differences(dataset, repository.files(reference)):
                self._say(f"a pull request with {dataset.title} is open already: {address}")
                return
        address = repository.commit(dataset.title, plan.additions, plan.deletions, parent=state.head, pull_request=True)
        self._say(f"opened {address}; after it is merged, run it without --pr to tag it {dataset.tag}")

    def _check_arrived(self, commit: str) -> None:
        lacking = _differences(self._dataset, self._repository.files(commit))
        if lacking:
            raise RunError(
                f"--repo {self._repository.repo}: commit {commit[:12]} lacks {lacking[0].name} as it is here, so it "
                "was not tagged; look for a .gitignore there, and run it again"
            )


def _check_options(repository: HubRepository, state: HubState | None, *, private: bool, pull_request: bool) -> None:
    if state is None and pull_request:
        raise ConfigError(
            f"--repo {repository.repo}: does not exist, or the token may not see it, so nothing can be proposed to it; "
            "leave --pr out to create it"
        )
    if state is not None and private and not state.is_private:
        raise ConfigError(
            f"--repo {repository.repo}: exists and is public, and --private is for new ones; leave it out, or change "
            "its settings on the Hub"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The changes to send."""

    additions: tuple[LocalFile, ...] = ()
    """Files that the repository lacks, or has with other content."""
    replaced: frozenset[str] = frozenset()
    """Names of the additions that the repository has with other content."""
    deletions: tuple[str, ...] = ()
    """Files of the repository that the dataset does not have any more."""
    committed: str | None = None
    """Commit that holds the dataset already; None if one has to be made."""
    is_tagged: bool = False
    """True if the tag of the version is on that commit."""


def _make_plan(
    dataset: LocalDataset, repository: HubRepository, state: HubState | None, *, deletable: frozenset[str] | None = None
) -> _Plan:
    """Decide what to send to a repository.

    Args:
        dataset: Dataset to publish.
        repository: The repository.
        state: Its state; None if it does not exist.
        deletable: Files that may be deleted; None for all that the dataset does not have.

    Raises:
        DataError: the repository holds the version with other content, a later version, or another dataset.
    """
    if state is None:
        return _Plan(additions=tuple(dataset.files.values()))
    if (tagged := state.tags.get(dataset.tag)) is not None:
        if differing := _differences(dataset, repository.files(tagged)):
            names = listed([file.name for file in differing], most=_MOST_NAMES)
            raise DataError(
                f"--repo {repository.repo}: tag {dataset.tag} is on commit {tagged[:12]} with other content ({names}); "
                "a version never changes: build the dataset with a higher --dataset-version"
            )
        return _Plan(committed=tagged, is_tagged=True)
    files = repository.files(state.head)
    additions = _differences(dataset, files)
    stale = sorted(set(files) - set(dataset.files) - set(_OF_THE_HUB))
    deletions = [name for name in stale if deletable is None or name in deletable]
    if not additions and not deletions:
        return _Plan(committed=state.head)
    for commit in repository.commits(dataset.title):
        # Somebody else may have committed after a commit of ours that was never tagged.
        if not _differences(dataset, repository.files(commit)):
            return _Plan(committed=commit)
    _check_replaceable(dataset, repository, state, files)
    replaced = frozenset(file.name for file in additions if file.name in files)
    return _Plan(additions=tuple(additions), replaced=replaced, deletions=tuple(deletions))


def _differences(dataset: LocalDataset, files: Mapping[str, HubFile]) -> list[LocalFile]:
    """Return the files of a dataset that a commit lacks or has with other content."""
    return [file for name, file in dataset.files.items() if name not in files or not files[name].is_same(file)]


def _check_replaceable(
    dataset: LocalDataset, repository: HubRepository, state: HubState, files: Mapping[str, HubFile]
) -> None:
    """Check that a commit would replace nothing but an earlier version of the same dataset."""
    where, manifest = f"--repo {repository.repo}", dataset.manifest
    if MANIFEST not in files:
        foreign = sorted(set(files) - {*_OF_THE_HUB, CARD})
        if foreign:
            raise DataError(
                f"{where}: holds files but no {MANIFEST} ({listed(foreign, most=_MOST_NAMES)}), so it is no dataset of "
                "ours; give a new repository, or remove them there"
            )
        return
    value = strict_json.loads(
        repository.content(MANIFEST, state.head).decode("utf-8", "replace"), where=f"{where}: {MANIFEST}"
    )
    published = value if isinstance(value, dict) else {}
    if published.get("name") != manifest.name:
        raise DataError(
            f"{where}: holds the dataset '{published.get('name')}', not '{manifest.name}'; give another one"
        )
    old, new = version_key(str(published.get("version"))), version_key(manifest.version)
    if old is not None and new is not None and old > new:
        raise DataError(
            f"{where}: holds version {published['version']}, later than {manifest.version}; build the dataset with a "
            "higher --dataset-version"
        )
    if old == new and published.get("content_sha256") != manifest.content_sha256:
        raise DataError(
            f"{where}: holds version {manifest.version} with other items; a version never changes: build the dataset "
            "with a higher --dataset-version"
        )
