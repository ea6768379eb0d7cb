"""Publishes a dataset: one commit, then the tag of its version, and after every doubt a look at what the Hub holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from biasboard.ground.errors import ConfigError, RunError
from builders.publish.hub import HubRepository, HubState, TryAgainError
from builders.publish.local import LocalDataset
from builders.publish.plan import Plan, differences, make_plan

_MOST_TRIES = 6
_MOST_SECONDS = 16.0

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

    Whatever fails, the repository is read again before anything is sent again, so that a commit or a tag that was made
    is never made twice, and commits of others are kept.

    Args:
        dataset: Dataset to publish.
        repository: Repository to publish it in.
        private: True to create the repository as a private one.
        pull_request: True to open a pull request, which is not tagged.
        say: Called with each line to print.
        first_wait: Time before the first repetition that has to wait, in seconds; it doubles with each.

    Raises:
        ConfigError: the token has no right to do this, or an option does not fit the repository.
        DataError: the repository holds the version with other content, a later version, or another dataset.
        RunError: the Hub failed again and again.
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
        plan = make_plan(dataset, repository, state)
    except TryAgainError as error:
        raise RunError(f"--repo {repository.repo}: {error.reason}; try again later") from error
    yield from _described(dataset, repository, state, plan, private=private, pull_request=pull_request)


class _Sending:
    """The publishing of one dataset, over all its attempts."""

    def __init__(
        self, dataset: LocalDataset, repository: HubRepository, *, private: bool, pull_request: bool, say: Say
    ) -> None:
        self._dataset, self._repository = dataset, repository
        self._private, self._pull_request, self._say = private, pull_request, say
        self._deletable: frozenset[str] | None = None

    def attempt(self) -> None:
        """Read the repository and send what is missing; raise TryAgainError if it has to be read again."""
        state = self._repository.read()
        _check_options(self._repository, state, private=self._private, pull_request=self._pull_request)
        if state is None:
            self._repository.create(private=self._private)
            self._say(f"created {self._repository.repo}{', private' if self._private else ''}")
            state = self._repository.read()
        if state is None:
            raise TryAgainError("the repository was created and cannot be seen yet", waits=True)
        if self._deletable is None:
            # A file that another commit brings while this one is sent was not seen, and is not to be deleted.
            self._deletable = frozenset(self._repository.files(state.head))
        plan = make_plan(self._dataset, self._repository, state, deletable=self._deletable)
        if self._pull_request:
            self._propose(state, plan)
        else:
            self._commit_and_tag(state, plan)

    def _commit_and_tag(self, state: HubState, plan: Plan) -> None:
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

    def _propose(self, state: HubState, plan: Plan) -> None:
        dataset, repository = self._dataset, self._repository
        if plan.committed is not None:
            rest = "" if plan.is_tagged else f"; run it without --pr to tag it {dataset.tag}"
            self._say(f"{repository.repo} holds {dataset.title} already, in commit {plan.committed}{rest}")
            return
        for reference, address in repository.pull_requests(dataset.title).items():
            if not differences(dataset, repository.files(reference)):
                self._say(f"a pull request with {dataset.title} is open already: {address}")
                return
        address = repository.commit(dataset.title, plan.additions, plan.deletions, parent=state.head, pull_request=True)
        self._say(f"opened {address}; after it is merged, run it without --pr to tag it {dataset.tag}")

    def _check_arrived(self, commit: str) -> None:
        lacking = differences(self._dataset, self._repository.files(commit))
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


def _described(
    dataset: LocalDataset,
    repository: HubRepository,
    state: HubState | None,
    plan: Plan,
    *,
    private: bool,
    pull_request: bool,
) -> Iterator[str]:
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
