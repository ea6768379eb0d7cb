"""``python -m leaderboard export``: verified results are written in the formats of others."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import EXIT_ERROR, one_line_errors
from biasboard.ground.errors import BiasboardError, ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory, machine_memory
from biasboard.ground.plain_text import printable
from biasboard.ground.progress import steps
from leaderboard.benchmark_pages import check_plug_ins, load_pages
from leaderboard.commands.shared_options import DATASETS, DatasetsFolder, Fresh, KeysFolder, ResultsFolder
from leaderboard.pages.markup import permalink
from leaderboard.result_format import Addresses, VerifiedResult, load_format
from leaderboard.verify.board_files import keys_folder, results_folder
from leaderboard.verify.entries import Entry, Root, why_withheld
from leaderboard.verify.intake import results_at
from leaderboard.verify.keys import KeyBook, open_book
from leaderboard.verify.submissions import read_submission
from leaderboard.verify.verdicts import verified_outcomes
from schemas.documents.dataset import Manifest
from schemas.folders.dataset_folder import MANIFEST, read_manifest
from schemas.folders.run_folder import RESULT

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


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
    if site_address is not None and not re.fullmatch(r"https?://[^\s\"<>]+", site_address):
        raise ConfigError(f"--site-address {site_address}: is no address of a site; give one that begins with https://")
    if dataset_repo is not None and not _REPO.fullmatch(dataset_repo):
        raise ConfigError(f"--dataset-repo {dataset_repo}: is no id of a repository; give one of the form ORG/NAME")
    if dataset_revision is not None and dataset_repo is None:
        raise ConfigError("--dataset-revision is a commit of a repository; name that with --dataset-repo")
    if dataset_revision is not None and not re.fullmatch("[0-9a-f]{40}", dataset_revision):
        raise ConfigError(f"--dataset-revision {dataset_revision}: is no commit; give its 40 hexadecimal digits")
    check_plug_ins()
    chosen = load_format(name)
    if chosen.why_dataset_repo is not None and dataset_repo is None:
        raise ConfigError(f"{chosen.why_dataset_repo}; name its repository with --dataset-repo ORG/NAME")
    book, memory = open_book(keys or keys_folder(), datasets), machine_memory(is_fresh=fresh)
    told = list(_verified(path, results or results_folder(), datasets, book, memory))
    sound = [one for one in told if isinstance(one, VerifiedResult)]
    found = {f"{one.result.signature.dataset}@{one.result.signature.dataset_version}" for one in sound}
    if dataset_repo is not None and len(found) > 1:
        raise ConfigError(
            f"--dataset-repo {dataset_repo}: is one dataset, and the results are of {', '.join(sorted(found))}; export "
            "those of one dataset at a time"
        )
    refused = chosen.refused(sound)
    addresses = Addresses(site_address, dataset_repo, dataset_revision)
    files = list(chosen.write([one for one in sound if one.folder not in refused], addresses, out))
    reasons = [one for one in told if not isinstance(one, VerifiedResult)]
    reasons += [(str(folder), reason) for folder, reason in refused.items()]
    for place, reason in reasons:
        print(f"not exported: {printable(place)}: {printable(reason, most=2_000)}", file=sys.stderr)
    for file in files:
        print(f"wrote {printable(str(file))}")
    if reasons:
        print(f"{len(reasons)} of {len(told)} results were not exported", file=sys.stderr)
        raise typer.Exit(EXIT_ERROR)


def _verified(
    paths: Sequence[Path], results: Path, datasets: Path, book: KeyBook, memory: Memory
) -> Iterator[VerifiedResult | tuple[str, str]]:
    """Yield every result at some paths with what an export says about it, or its place and why it is not exported.

    Results below the folder of accepted results are accepted ones, and others local.
    """
    found: dict[tuple[Path, Root], None] = {}
    for place in paths:
        folder = place.parent if place.name == RESULT else place
        is_accepted = folder.resolve().is_relative_to(results.resolve())
        for searched in results_at(place):
            if searched.problem is not None:
                yield str(searched.path), searched.problem
            elif is_accepted:
                # The register names places relative to the folder of all accepted results.
                below = searched.path.resolve().relative_to(results.resolve())
                found[results / below, Root(results, "accepted")] = None
            else:
                found[searched.path, Root(folder, "local")] = None
    with steps("verifying results") as step:
        outcomes = verified_outcomes([*found], book, memory, progress=partial(step, "verifying results"))
    manifests = [read_manifest(path.parent) for path in sorted(datasets.glob(f"*/{MANIFEST}"))]
    by_content = {manifest.content_sha256: manifest for manifest in manifests}
    for (path, root), outcome in zip(found, outcomes, strict=True):
        if not isinstance(outcome, Entry):
            yield str(path.parent), outcome.reason.removeprefix(f"{root.place(path)}/")
            continue
        try:
            yield _described(path, outcome, book, by_content, memory)
        except (BiasboardError, OSError) as error:
            yield str(path.parent), str(error)


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
    decision = entry.acceptance
    if decision is not None and decision.decision == "withdrawn":
        when = f" on {decision.decided}" if decision.decided else ""
        raise DataError(f"withdrawn{when}: {decision.reason}")
    manifest = manifests.get(known.key.dataset_sha256)
    # Why no text may go out to a place that shows it without our warnings.
    withheld = why_withheld(entry, manifest)
    if withheld is None and manifest is None:
        withheld = "the dataset was not on the machine of the export, so that nothing said that its texts may go out"
    if withheld is None:
        withheld = load_pages(signature.benchmark).may_offend.get(signature.task)
    return VerifiedResult(
        entry=entry,
        folder=path.parent,
        result_sha256=sha256_file(path),
        page=permalink(entry.result),
        dataset_sha256=known.key.dataset_sha256,
        manifest=manifest,
        submission=read_submission(path),
        withheld=withheld,
    )
