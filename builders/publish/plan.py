"""Compares a dataset with a repository and decides what has to be sent: a commit, a tag, both or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from builders.dataset.output import version_key
from builders.publish.hub import HubFile, HubRepository, HubState
from builders.publish.local import LocalDataset, LocalFile
from schemas.folders.dataset_folder import CARD, MANIFEST

_OF_THE_HUB = (".gitattributes",)
"""Files that the Hub puts into a repository and needs there."""
_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The changes that have to be sent."""

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


def make_plan(
    dataset: LocalDataset, repository: HubRepository, state: HubState | None, *, deletable: frozenset[str] | None = None
) -> Plan:
    """Decide what has to be sent to a repository.

    Args:
        dataset: Dataset to publish.
        repository: The repository.
        state: Its state; None if it does not exist.
        deletable: Files that may be deleted; None for all that the dataset does not have.

    Raises:
        DataError: the repository holds the version with other content, a later version, or another dataset.
    """
    if state is None:
        return Plan(additions=tuple(dataset.files.values()))
    if (tagged := state.tags.get(dataset.tag)) is not None:
        _check_tagged(dataset, repository, tagged)
        return Plan(committed=tagged, is_tagged=True)
    files = repository.files(state.head)
    additions = differences(dataset, files)
    stale = sorted(set(files) - set(dataset.files) - set(_OF_THE_HUB))
    deletions = [name for name in stale if deletable is None or name in deletable]
    if not additions and not deletions:
        return Plan(committed=state.head)
    for commit in repository.commits(dataset.title):
        # Somebody else committed after a commit of ours that was never tagged.
        if not differences(dataset, repository.files(commit)):
            return Plan(committed=commit)
    _check_replaceable(dataset, repository, state, files)
    replaced = frozenset(file.name for file in additions if file.name in files)
    return Plan(additions=tuple(additions), replaced=replaced, deletions=tuple(deletions))


def differences(dataset: LocalDataset, files: Mapping[str, HubFile]) -> list[LocalFile]:
    """Return the files of a dataset that a commit lacks or has with other content."""
    return [file for name, file in dataset.files.items() if name not in files or not files[name].is_same(file)]


def _check_tagged(dataset: LocalDataset, repository: HubRepository, commit: str) -> None:
    found = differences(dataset, repository.files(commit))
    if found:
        raise DataError(
            f"--repo {repository.repo}: tag {dataset.tag} is on commit {commit[:12]} with other content "
            f"({_shown([file.name for file in found])}); a version never changes: build the dataset with a higher "
            "--dataset-version"
        )


def _check_replaceable(
    dataset: LocalDataset, repository: HubRepository, state: HubState, files: Mapping[str, HubFile]
) -> None:
    """Check that what a commit would replace is an earlier version of the same dataset, or nothing."""
    where, manifest = f"--repo {repository.repo}", dataset.manifest
    if MANIFEST not in files:
        foreign = sorted(set(files) - {*_OF_THE_HUB, CARD})
        if foreign:
            raise DataError(
                f"{where}: holds files but no {MANIFEST} ({_shown(foreign)}), so it is no dataset of ours; give a new "
                "repository, or remove them there"
            )
        return
    told = strict_json.loads(
        repository.content(MANIFEST, state.head).decode("utf-8", "replace"), where=f"{where}: {MANIFEST}"
    )
    told = told if isinstance(told, dict) else {}
    if told.get("name") != manifest.name:
        raise DataError(f"{where}: holds the dataset '{told.get('name')}', not '{manifest.name}'; give another one")
    there, here = version_key(str(told.get("version"))), version_key(manifest.version)
    if there is not None and here is not None and there > here:
        raise DataError(
            f"{where}: holds version {told['version']}, later than {manifest.version}; build the dataset with a higher "
            "--dataset-version"
        )
    if there == here and told.get("content_sha256") != manifest.content_sha256:
        raise DataError(
            f"{where}: holds version {manifest.version} with other items; a version never changes: build the dataset "
            "with a higher --dataset-version"
        )


def _shown(names: list[str]) -> str:
    rest = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + rest
