"""``biasboard demo``: the datasets that need no download, and the board of the results that biasboard brings."""

from __future__ import annotations

from biasboard.building import build_if_missing
from biasboard.ground.command_line import one_line_errors
from builders.description import all_builders
from leaderboard.commands.build import build as build_board
from schemas.folders.dataset_folder import read_manifest


@one_line_errors("stopped; the same command continues")
def demo() -> None:
    """Build the embedded datasets and the board.

    Datasets that are in out/datasets are kept. The board shows the accepted results, which biasboard brings along, and
    the runs in out/runs. It is written to site/_build.
    """
    for builder in all_builders():
        source = builder.sources[0]
        if source.input is None:
            folder = source.default_out
            is_new = build_if_missing(builder, source, folder)
            print(f"{'built' if is_new else 'kept'} {folder}, version {read_manifest(folder).version}")
    build_board()
