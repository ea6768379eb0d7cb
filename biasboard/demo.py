"""``biasboard demo``: the datasets that need no download, and the board of the results that biasboard brings."""

from __future__ import annotations

from biasboard.api import build
from biasboard.ground.command_line import one_line_errors
from builders.description import all_builders
from leaderboard.commands.build import build as build_board
from schemas.folders.dataset_folder import MANIFEST, read_manifest


@one_line_errors("stopped; the same command continues")
def demo() -> None:
    """Build the embedded datasets and the board.

    Datasets that are in out/datasets are kept. The board shows the accepted results, which biasboard brings along, and
    the runs in out/runs. It is written to site/_build.
    """
    for builder in all_builders():
        source = builder.sources[0]
        if source.input is None:
            kept = (source.default_out / MANIFEST).is_file()
            folder = source.default_out if kept else build(builder.name)
            print(f"{'kept' if kept else 'built'} {folder}, version {read_manifest(folder).version}")
    build_board()
