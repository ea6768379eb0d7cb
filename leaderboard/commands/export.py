"""``python -m leaderboard export``: verified results are written in the formats of others."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from biasboard.ground.command_line import EXIT_ERROR, one_line_errors
from biasboard.ground.errors import BiasboardError, ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.plain_text import printable
from biasboard.ground.progress import steps
from leaderboard.benchmark_pages import check_plug_ins, load_pages
from leaderboard.commands.shared_options import DATASETS, DatasetsFolder, Fresh, KeysFolder, ResultsFolder
from leaderboard.pages.addresses import permalink
from leaderboard.result_format import Addresses, VerifiedResult, load_format
from leaderboard.verify.board_files import keys_folder, results_folder
from leaderboard.verify.entries import Entry, Root, why_withheld
from leaderboard.verify.intake import results_at
from leaderboard.verify.keys import KeyBook, open_book
from leaderboard.verify.loading import verified_outcomes
from leaderboard.verify.submissions import read_submission
from schemas.documents.dataset import Manifest
from schemas.folders.dataset_folder import MANIFEST, read_manifest
from schemas.folders.run_folder import RESULT

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SITE = re.compile(r"https?://[^\s\"<>]+")


class NotExported(NamedTuple):
    """A result that is not exported, and the reason."""

    place: str
    reason: str


@one_line_errors("stopped; every file that was written is complete")
def export(
    *,
    name: Annotated[
        str, typer.Argument(metavar="FORMAT", help="Name of the format; a wrong name lists those that there are.")
    ],
    path: Annotated[list[Path], typer.Argument(help="Folders of results, or folders that contain them at any depth.")],
    out: Annotated[Path, typer.Option(help="Folder for the files, beside other exports.")],
    site_address: Annotated[
        str | None, typer.Option(help="Address of the published board, for links to the page of each result.")
    ] = None,
    dataset_repo: Annotated[
        str | None, typer.Option(help="Repository of the dataset on the Hub, ORG/NAME; all results are then of it.")
    ] = None,
    dataset_revision: Annotated[
        str | None, typer.Option(help="Commit of that repository with the version of the dataset that was asked.")
    ] = None,
    keys: KeysFolder = None,
    datasets: DatasetsFolder = DATASETS,
    results: ResultsFolder = None,
    fresh: Fresh = False,
) -> None:
    """Write verified results in a format of somebody else.

    Every result is verified first, as for the board. One that is unsound, withdrawn, or cannot be told truly in the
    format is named with the reason, and the others are exported. Texts go out only if the manifest of a dataset in
    --datasets allows that. The same results give the same bytes.

    Exit status: 0 all were exported; 1 one was not, or bad input.
    """
    addresses = _addresses(site_address, dataset_repo, dataset_revision)
    check_plug_ins()
    chosen = load_format(name)
    if chosen.why_dataset_repo is not None and addresses.dataset_repo is None:
        raise ConfigError(f"{chosen.why_dataset_repo}; name its repository with --dataset-repo ORG/NAME")
    book, memory = open_book(keys or keys_folder(), datasets), machine_memory(is_fresh=fresh)
    told = list(_verified(path, results or results_folder(), datasets, book, memory))
    sound = [one for one in told if isinstance(one, VerifiedResult)]
    _check_one_dataset(sound, addresses)
    refused = chosen.refused(sound)
    files = list(chosen.write([one for one in sound if one.folder not in refused], addresses, out))
    reasons = [one for one in told if isinstance(one, NotExported)]
    reasons += [NotExported(str(folder), reason) for folder, reason in refused.items()]
    for refusal in reasons:
        print(f"not exported: {printable(refusal.place)}: {printable(refusal.reason, most=2_000)}", file=sys.stderr)
    for file in files:
        print(f"wrote {printable(str(file))}")
    if reasons:
        print(f"{len(reasons)} of {len(told)} results were not exported", file=sys.stderr)
        raise typer.Exit(EXIT_ERROR)


def _addresses(site: str | None, repo: str | None, revision: str | None) -> Addresses:
    if site is not None and not _SITE.fullmatch(site):
        raise ConfigError(f"--site-address {site}: is no address of a site; give one that begins with https://")
    if repo is not None and not _REPO.fullmatch(repo):
        raise ConfigError(f"--dataset-repo {repo}: is no id of a repository; give one of the form ORG/NAME")
    if revision is not None and repo is None:
        raise ConfigError("--dataset-revision is a commit of a repository; name that with --dataset-repo")
    if revision is not None and not _COMMIT.fullmatch(revision):
        raise ConfigError(f"--dataset-revision {revision}: is no commit; give its 40 hexadecimal digits")
    return Addresses(site, repo, revision)


def _check_one_dataset(results: Sequence[VerifiedResult], addresses: Addresses) -> None:
    found = {f"{one.result.signature.dataset}@{one.result.signature.dataset_version}" for one in results}
    if addresses.dataset_repo is not None and len(found) > 1:
        raise ConfigError(
            f"--dataset-repo {addresses.dataset_repo}: is one dataset, and the results are of "
            f"{', '.join(sorted(found))}; export those of one dataset at a time"
        )


def _verified(
    paths: Sequence[Path], results: Path, datasets: Path, book: KeyBook, memory: Memory
) -> Iterator[VerifiedResult | NotExported]:
    """Yield every result at some paths with what an export says about it, or the reason why it is not exported."""
    found: list[tuple[Path, Root]] = []
    for place in paths:
        for one in _found(place, results):
            if isinstance(one, NotExported):
                yield one
            elif one not in found:
                found.append(one)
    with steps("verifying results") as step:
        outcomes = verified_outcomes(
            found, book, memory, progress=lambda n_done, n: step("verifying results", n_done, n)
        )
    manifests = _manifests(datasets)
    for (path, root), outcome in zip(found, outcomes, strict=True):
        if not isinstance(outcome, Entry):
            yield NotExported(str(path.parent), outcome.reason.removeprefix(f"{root.place(path)}/"))
            continue
        try:
            yield _described(path, outcome, book, manifests, memory)
        except (BiasboardError, OSError) as error:
            yield NotExported(str(path.parent), str(error))


def _found(place: Path, results: Path) -> Iterator[tuple[Path, Root] | NotExported]:
    """Yield the results at a path with their origin: accepted below the folder of accepted results, else local."""
    folder = place.parent if place.name == RESULT else place
    is_accepted = folder.resolve().is_relative_to(results.resolve())
    for searched in results_at(place):
        if searched.problem is not None:
            yield NotExported(str(searched.path), searched.problem)
        elif is_accepted:
            # The register names places relative to the folder of all accepted results.
            yield results / searched.path.resolve().relative_to(results.resolve()), Root(results, "accepted")
        else:
            yield searched.path, Root(folder, "local")


def _manifests(datasets: Path) -> dict[str, Manifest]:
    """Return the manifests of the built datasets, by the hash of their contents."""
    found = map(read_manifest, sorted(path.parent for path in datasets.glob(f"*/{MANIFEST}")))
    return {manifest.content_sha256: manifest for manifest in found}


def _described(
    path: Path, entry: Entry, book: KeyBook, manifests: dict[str, Manifest], memory: Memory
) -> VerifiedResult:
    """Return a verified result with what an export says about it.

    Raises:
        DataError: nothing says which items it asks, it is withdrawn, or the statement beside it is invalid.
    """
    signature = entry.result.signature
    known = book.find(signature, memory)
    if known is None or entry.match.extent == "unknown":
        raise DataError(entry.match.reason or "the board has no answer key of it")
    if entry.acceptance is not None and entry.acceptance.decision == "withdrawn":
        raise DataError(f"withdrawn on {entry.acceptance.accepted}: {entry.acceptance.reason}")
    manifest = manifests.get(known.key.dataset_sha256)
    return VerifiedResult(
        entry=entry,
        folder=path.parent,
        result_sha256=sha256_file(path),
        page=permalink(entry.result),
        dataset_sha256=known.key.dataset_sha256,
        manifest=manifest,
        submission=read_submission(path),
        withheld=_withheld(entry, manifest),
    )


def _withheld(entry: Entry, manifest: Manifest | None) -> str | None:
    """Return why no text may go out to a place that shows it without our warnings; None if texts may."""
    if (reason := why_withheld(entry, manifest)) is not None:
        return reason
    if manifest is None:
        return "the dataset was not on the machine of the export, so that nothing said that its texts may go out"
    signature = entry.result.signature
    return load_pages(signature.benchmark).may_offend.get(signature.task)
