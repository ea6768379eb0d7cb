"""``python -m leaderboard build``: results are checked, computed again and written as a site."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import DataError
from biasboard.ground.memory import machine_memory
from biasboard.ground.plain_text import printable
from biasboard.ground.progress import note, steps
from leaderboard.benchmark_pages import check_plug_ins
from leaderboard.commands.comparable_results import known_benchmarks, of_benchmarks
from leaderboard.commands.shared_options import DATASETS, AcceptedResults, DatasetsFolder, Fresh, KeysFolder
from leaderboard.pages import publishing
from leaderboard.pages.dataset_views import BuiltDataset, built_datasets, kept_keys
from leaderboard.pages.publishing import DEFAULT_SITE, View, copies, generate, make_view, parquet_files
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.rows import with_own_identities
from leaderboard.verify.baselines import with_baselines
from leaderboard.verify.board_files import CONFIG, SITE, accepted_results, keys_folder, site_folder
from leaderboard.verify.entries import Root
from leaderboard.verify.keys import embedded_folder, open_book
from leaderboard.verify.submissions import read_register
from leaderboard.verify.verdicts import load
from schemas.outputs.documents import BenchmarkCounts, BuiltBoard, OwnResults, SetAside, with_format

_MOST = 2_000
"""Number of characters of a reason after which the rest is cut off."""


@one_line_errors("stopped; the site was not changed")
@with_format(BuiltBoard)
def build(
    results: AcceptedResults = None,
    runs: Annotated[Path, typer.Option(help="Folder of local runs; may be absent.")] = Path("out/runs"),
    datasets: DatasetsFolder = DATASETS,
    keys: KeysFolder = None,
    site: Annotated[
        Path | None,
        typer.Option(
            help=f"Folder of {CONFIG} and the hand-written pages. Default: {SITE} of the working folder if it has a "
            f"{CONFIG}, or else what biasboard brings."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Folder of the finished site. Default: _build in --site, or {DEFAULT_SITE} without it."),
    ] = None,
    benchmarks: Annotated[
        str | None,
        typer.Option(help="Benchmarks, separated by commas, whose results are checked and shown. Default: all."),
    ] = None,
    skip_invalid: Annotated[
        bool,
        typer.Option(
            "--skip-invalid", help="List invalid accepted results on the audit page, as invalid runs of yours are."
        ),
    ] = False,
    fresh: Fresh = False,
) -> BuiltBoard:
    """Check every result, recompute its metrics and write the site.

    The site has every table as CSV and Parquet files too, and a page for each dataset in --datasets, with results or
    without.
    """
    publishing.check_generator()
    check_plug_ins()
    target = out or (DEFAULT_SITE if site is None else site / DEFAULT_SITE.name)
    keys, site = keys or keys_folder(), site or site_folder()
    publishing.check_target(target)
    handwritten = publishing.handwritten_pages(site)
    settings = publishing.site_settings(site)
    chosen = None if benchmarks is None else known_benchmarks(benchmarks)
    memory = machine_memory(is_fresh=fresh)
    book = open_book(keys, datasets)
    with accepted_results(results) as folder:
        last = publishing.LastBuild(
            memory,
            target,
            {"results": folder, "runs": runs, "datasets": datasets, "keys": keys, "site": site},
            {"skip_invalid": skip_invalid, "benchmarks": list(chosen or ()), "date": publishing.build_date()},
        )
        if (built := last.board) is not None:
            _print(built)
            return built
        with steps("recomputing results") as step:
            loaded = load(
                (Root(folder, "accepted"), Root(runs, "local")),
                book,
                memory,
                progress=partial(step, "recomputing results"),
                keep=None if chosen is None else of_benchmarks(chosen),
            )
        # Runs of the user's, as of a prompt that has changed, are only told.
        unsound = [result for result in loaded.left_out if result.origin == "accepted" and not skip_invalid]
        if unsound:
            for result in unsound:
                note(f"error: {printable(result.reason, most=_MOST)}")
            n_found = len(loaded.left_out) + len(loaded.entries)
            raise DataError(
                f"{len(unsound)} of {n_found} results are invalid, the site was not changed; correct or remove "
                "them, or list them on the audit page with --skip-invalid"
            )
        if not loaded.entries:
            for result in loaded.left_out:
                note(f"left out: {printable(result.reason, most=_MOST)}")
            of = "" if chosen is None else f" of {', '.join(chosen)}"
            raise DataError(
                f"no valid result{of} in {results or folder} or {runs}; make one first, for example: "
                "biasboard run --dataset FOLDER --backend baseline --model all"
            )
        with steps("ranking models") as step:
            board = assemble(with_baselines(with_own_identities(loaded.entries), memory))
            view = make_view(
                board,
                loaded.left_out,
                _datasets(datasets, board),
                step,
                settings=settings,
                register=read_register(folder),
                keys=kept_keys(keys),
                chosen=chosen or (),
            )
            texts = generate(view, handwritten, step)
            files: dict[str, str | bytes] = {**texts, **parquet_files(view)}
            with publishing.combined(site, files, copies(view), target) as pages:
                step("running the site generator", 0, None)
                publishing.render(site, pages, target)
        memory.tidy()
        built = BuiltBoard(
            site=str(target),
            is_new=True,
            n_results=len(loaded.entries),
            benchmarks=tuple(_counted(board)),
            left_out=tuple(_set_aside(result.place, result.reason) for result in loaded.left_out),
            apart=tuple(_set_aside(entry.place, entry.match.reason) for entry in board.apart),
            repeated=tuple(
                _set_aside(one.entry.place, one.reason) for one in board.duplicates if one.entry.origin == "local"
            ),
            own=tuple(_own_results(view, target)),
            next="biasboard serve" + ("" if target == DEFAULT_SITE else f" --dir {target}"),
        )
        last.remember(built)
        _print(built)
        return built


def _datasets(folder: Path, board: Board) -> tuple[BuiltDataset, ...]:
    """Return the built datasets of a folder, and those with results that were built from the code to check these."""
    built = {dataset.name: dataset for dataset in built_datasets(folder)}
    asked = {(one.dataset, one.dataset_version) for table in board.tables for one in table.signatures}
    embedded = {one.name: one for one in built_datasets(embedded_folder()) if one.name in asked}
    return tuple((embedded | built).values())


def _set_aside(place: str, reason: str | None) -> SetAside:
    # Both are of strangers, and the memory of the last build takes no broken characters.
    return SetAside(place=printable(place), reason=printable(str(reason), most=_MOST))


def _print(built: BuiltBoard) -> None:
    for one in built.benchmarks:
        models = f"models {one.n_models} (ranked {one.n_ranked}), baselines {one.n_baselines}, tables {one.n_tables}"
        print(f"{one.benchmark}: {models}")
    for result in built.left_out:
        note(f"left out: {result.reason}")
    for result in built.apart:
        note(f"apart: {result.place}: {result.reason}")
    for result in built.repeated:
        note(f"not shown: {result.place}: {result.reason}")
    done = "wrote" if built.is_new else "nothing changed since the last build of"
    note(f"{done} {Path(built.site) / 'index.html'}; look at it with: {built.next}")
    for own in built.own:
        note(f"your runs on {own.dataset} {own.version}: {own.page}")


def _counted(board: Board) -> Iterator[BenchmarkCounts]:
    """Yield the numbers of tables, models and ranked models of each benchmark."""
    for benchmark in board.benchmarks:
        tables = [table for table in board.tables if table.signature.benchmark == benchmark]
        indices = [table for table in board.indices.tables if table.signature.benchmark == benchmark]
        entries = [row.entry for table in tables for row in table.rows]
        ranked = {row.entry.result.model.id for table in tables for row in table.ranked}
        ranked |= {row.model.id for table in indices for row in table.rows if row.rank is not None}
        yield BenchmarkCounts(
            benchmark=benchmark,
            n_models=len({entry.result.model.id for entry in entries if not entry.is_baseline}),
            n_ranked=len(ranked),
            n_baselines=len({entry.result.model.id for entry in entries if entry.is_baseline}),
            n_tables=len(tables) + len(indices),
        )


def _own_results(view: View, site: Path) -> Iterator[OwnResults]:
    """Yield where the first table of each dataset with runs of one's own is, by name and version."""
    pages: dict[tuple[str, str], str] = {}
    for table in (table for benchmark in view.board.benchmarks for table in view.tables_of(benchmark)):
        # Baselines that the board computes itself count as local, too, also beside accepted results.
        if any(entry.origin == "local" and not entry.is_computed for row in table.table.rows for entry in row.entries):
            for dataset in table.datasets:
                pages.setdefault(dataset, f"{site / table.page}#{table.anchor}")
    for (name, version), page in sorted(pages.items()):
        yield OwnResults(dataset=printable(name), version=version, page=page)
