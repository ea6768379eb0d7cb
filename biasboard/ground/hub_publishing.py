"""Publishes files on the Hugging Face Hub: one commit, then a tag; after every failure the repository is read again.

What to send, a commit, a tag, both or nothing, depends only on what is published and the state of the repository.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.hub_repository import HubFile, HubRepository, HubState, LocalFile, TryAgainError
from biasboard.ground.plain_text import listed

OF_THE_HUB = (".gitattributes",)
"""Files that the Hub itself adds to a repository and needs."""
MOST_NAMES = 3
"""Number of files that a message names."""
_MOST_TRIES = 6
_MOST_SECONDS = 16.0
"""Longest wait before a retry, in seconds: 1 + 2 + 4 + 8 + 16 + 16 = 47 seconds in all."""

Say = Callable[[str], None]


class Publication(ABC):
    """What is published by one commit."""

    title: str
    """First line of the commit message, by which earlier commits and open pull requests are found."""
    tag: str | None = None
    """Tag of the commit, which never moves; None for no tag."""
    another_tag: str = ""
    """How to get another tag, for the message that the tag is on other files."""

    def varies(self, name: str) -> bool:
        """Return True for a file that differs from call to call although what is published is the same."""
        return False

    @abstractmethod
    def files_for(self, repository: HubRepository, state: HubState | None) -> Mapping[str, LocalFile]:
        """Return the files to publish, by their path in the repository.

        Args:
            repository: The repository.
            state: Its state, on which the files may depend; None if it does not exist yet.

        Raises:
            DataError: the files cannot be published there.
        """

    def stale(self, files: Mapping[str, LocalFile], present: Mapping[str, HubFile]) -> Sequence[str]:
        """Return the files of the repository that those to publish take the place of, and that are to be deleted."""
        return ()

    def check_replaceable(  # noqa: B027 - most may replace anything
        self, repository: HubRepository, state: HubState, present: Mapping[str, HubFile]
    ) -> None:
        """Check that a commit replaces nothing else in the repository.

        Raises:
            DataError: it would.
        """


class Published(NamedTuple):
    """What became of a publication, or in a dry run would become of it."""

    repo: str
    title: str
    is_dry_run: bool
    is_sent: bool
    """True if a commit, a tag or a pull request was made."""
    is_pull_request: bool
    commit: str | None
    """Commit of the main branch that holds the files; None if none does."""
    tag: str | None
    """Tag of that commit; None for none."""
    address: str | None
    """Address of the commit, or else of the open pull request; None before there is any."""
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
    say: Say,
    first_wait: float = 1.0,
) -> Published:
    """Publish files.

    After any failure the repository is read again before anything is sent, so that no commit or tag is made twice, and
    commits of others are kept.

    Args:
        publication: What to publish.
        repository: Repository to publish it in.
        private: True to create the repository as a private one.
        pull_request: True to open a pull request, which is not tagged.
        say: Called with each line to print.
        first_wait: Time to wait before the first retry, in seconds; it doubles with each retry.

    Raises:
        ConfigError: the token has no right to do this, or an option does not fit the repository.
        DataError: the repository holds something that must not be replaced.
        RunError: the Hub failed repeatedly.
    """
    sending = _Sending(publication, repository, private=private, pull_request=pull_request, say=say)
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


def dry_run(
    publication: Publication, repository: HubRepository, *, private: bool, pull_request: bool, say: Say
) -> Published:
    """Tell what publishing would send, after reading the repository.

    Raises:
        ConfigError: an option does not fit the repository.
        DataError: the repository holds something that must not be replaced.
        RunError: the Hub failed.
    """
    try:
        state = repository.read()
        _check_options(repository, state, private=private, pull_request=pull_request)
        plan = _make_plan(publication, repository, state, pull_request=pull_request)
    except TryAgainError as error:
        raise RunError(f"--repo {repository.repo}: {error.reason}; try again later") from error
    what = "new, private" if private else "new, public"
    say(f"{publication.title} to {repository.repo} ({what if state is None else f'at {state.head[:12]}'}):")
    for file in plan.additions:
        say(f"  {'change' if file.name in plan.replaced else 'add   '}  {file.name}  {file.size:,} bytes")
    for name in plan.deletions:
        say(f"  delete  {name}")
    if plan.committed is not None:
        say(f"  nothing to commit: {plan.committed} holds it")
    if plan.is_tagged:
        say(f"  nothing to tag: {publication.tag} is on it")
    elif plan.proposed is not None:
        say(f"  nothing to propose: {plan.proposed} is open already")
    elif pull_request:
        say("  a pull request, without a tag")
    elif publication.tag is not None:
        say(f"  tag     {publication.tag}")
    return _published(publication, repository, plan, pull_request=pull_request, changes=plan)._replace(is_dry_run=True)


class _Sending:
    """Publishes something, in as many attempts as it takes."""

    def __init__(
        self, publication: Publication, repository: HubRepository, *, private: bool, pull_request: bool, say: Say
    ) -> None:
        self._publication, self._repository = publication, repository
        self._private, self._pull_request, self._say = private, pull_request, say
        self._deletable: frozenset[str] | None = None
        self._sent: _Plan | None = None
        """What was sent last, whether or not the Hub confirmed it."""
        self._has_tagged = False

    def attempt(self) -> Published:
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
        plan = _make_plan(
            self._publication, self._repository, state, deletable=self._deletable, pull_request=self._pull_request
        )
        plan = (self._propose if self._pull_request else self._commit_and_tag)(state, plan)
        published = _published(
            self._publication, self._repository, plan, pull_request=self._pull_request, changes=self._sent or plan
        )
        return published._replace(is_sent=self._has_tagged or self._sent is not None)

    def _commit_and_tag(self, state: HubState, plan: _Plan) -> _Plan:
        repository, title, tag = self._repository, self._publication.title, self._publication.tag
        commit = plan.committed
        if commit is None:
            self._sent = plan
            commit = repository.commit(title, plan.additions, plan.deletions, parent=state.head, pull_request=False)
            self._say(f"commit {commit}: {len(plan.additions)} added or changed, {len(plan.deletions)} deleted")
            self._check_arrived(plan, commit)
            if tag is None:
                self._say(f"published {title} in {repository.repo}")
        elif plan.is_tagged or tag is None:
            self._say(f"published already: {title}, as {tag or commit[:12]} of {repository.repo}; nothing to do")
        else:
            self._say(f"commit {commit} holds {title} already")
        if tag is not None and not plan.is_tagged:
            self._has_tagged = True
            repository.tag(tag, commit)
            self._say(f"tagged {tag}: published {title} as {repository.repo}@{tag}")
        return replace(plan, committed=commit)

    def _propose(self, state: HubState, plan: _Plan) -> _Plan:
        repository, title, tag = self._repository, self._publication.title, self._publication.tag
        if plan.committed is not None:
            rest = "" if plan.is_tagged or tag is None else f"; run it without --pr to tag it {tag}"
            self._say(f"{repository.repo} holds {title} already, in commit {plan.committed}{rest}")
            return plan
        if plan.proposed is not None:
            # Nothing that is added to it would mend a conflict with what was committed since: that takes git.
            self._say(
                f"a pull request with {title} is open already: {plan.proposed}; if it cannot be merged or is out of "
                "date, close it there and repeat this command"
            )
            return plan
        self._sent = plan
        address = repository.commit(title, plan.additions, plan.deletions, parent=state.head, pull_request=True)
        rest = "" if tag is None else f"; after it is merged, run it without --pr to tag it {tag}"
        self._say(f"opened {address}{rest}")
        return replace(plan, proposed=address)

    def _check_arrived(self, plan: _Plan, commit: str) -> None:
        lacking = _differences(plan.files, self._repository.files(commit))
        if lacking:
            untagged = "" if self._publication.tag is None else ", so it was not tagged"
            raise RunError(
                f"--repo {self._repository.repo}: commit {commit[:12]} lacks {lacking[0].name} as it is here"
                f"{untagged}; look for a .gitignore there, and run it again"
            )


def _check_options(repository: HubRepository, state: HubState | None, *, private: bool, pull_request: bool) -> None:
    if state is None and pull_request:
        raise ConfigError(
            f"--repo {repository.repo}: does not exist, or the token may not see it, so nothing can be proposed to it; "
            "correct the id, or create it first: without --pr, or on the Hub"
        )
    if state is not None and private and not state.is_private:
        raise ConfigError(
            f"--repo {repository.repo}: exists and is public, and --private is for new ones; leave it out, or change "
            "its settings on the Hub"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The changes to send."""

    files: Mapping[str, LocalFile]
    """All files of the publication."""
    additions: tuple[LocalFile, ...] = ()
    """Those that the repository lacks, or has with other content."""
    replaced: frozenset[str] = frozenset()
    """Names of the additions that the repository has with other content."""
    deletions: tuple[str, ...] = ()
    """Files of the repository that the publication does not have any more."""
    committed: str | None = None
    """Commit that holds the files already; None if one has to be made."""
    is_tagged: bool = False
    """True if the tag is on that commit."""
    proposed: str | None = None
    """Address of an open pull request with the files; None if there is none."""


def _published(
    publication: Publication, repository: HubRepository, plan: _Plan, *, pull_request: bool, changes: _Plan
) -> Published:
    """Return what became of a publication by its last plan, with the changes of the plan that was sent."""
    sent = {file.name for file in changes.additions}
    return Published(
        repo=repository.repo,
        title=publication.title,
        is_dry_run=False,
        is_sent=False,
        is_pull_request=pull_request,
        commit=plan.committed,
        tag=None if pull_request and not plan.is_tagged else publication.tag,
        address=plan.proposed if plan.committed is None else repository.address(plan.committed),
        added=tuple(sorted(sent - changes.replaced)),
        replaced=tuple(sorted(changes.replaced)),
        unchanged=tuple(sorted(changes.files.keys() - sent)),
        deleted=changes.deletions,
    )


def _make_plan(
    publication: Publication,
    repository: HubRepository,
    state: HubState | None,
    *,
    deletable: frozenset[str] | None = None,
    pull_request: bool,
) -> _Plan:
    """Decide what to send to a repository.

    Args:
        publication: What to publish.
        repository: The repository.
        state: Its state; None if it does not exist.
        deletable: Files that may be deleted; None for all that are stale.
        pull_request: True to look for an open pull request with the files.

    Raises:
        DataError: the repository holds something that must not be replaced.
    """
    files = publication.files_for(repository, state)
    if state is None:
        return _Plan(files=files, additions=tuple(files.values()))
    if publication.tag is not None and (tagged := state.tags.get(publication.tag)) is not None:
        if differing := _differences(files, repository.files(tagged)):
            names = listed([file.name for file in differing], most=MOST_NAMES)
            raise DataError(
                f"--repo {repository.repo}: tag {publication.tag} is on commit {tagged[:12]} with other content "
                f"({names}); a version never changes: {publication.another_tag}"
            )
        return _Plan(files=files, committed=tagged, is_tagged=True)
    present = repository.files(state.head)
    additions = _differences(files, present)
    stale = publication.stale(files, present)
    deletions = [name for name in stale if deletable is None or name in deletable]
    if not additions and not deletions:
        return _Plan(files=files, committed=state.head)
    # Somebody else may have committed after a commit of ours that was never tagged.
    for commit in repository.commits(publication.title) if publication.tag is not None else ():
        if not _differences(files, repository.files(commit)):
            return _Plan(files=files, committed=commit)
    publication.check_replaceable(repository, state, present)
    replaced = frozenset(file.name for file in additions if file.name in present)
    plan = _Plan(files=files, additions=tuple(additions), replaced=replaced, deletions=tuple(deletions))
    lasting = {name: file for name, file in files.items() if not publication.varies(name)}
    for reference, address in repository.pull_requests(publication.title).items() if pull_request else ():
        if not _differences(lasting, repository.files(reference)):
            return replace(plan, proposed=address)
    return plan


def _differences(files: Mapping[str, LocalFile], present: Mapping[str, HubFile]) -> list[LocalFile]:
    """Return the files that a commit lacks or has with other content."""
    return [file for name, file in files.items() if name not in present or not present[name].is_same(file)]
