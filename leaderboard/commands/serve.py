"""``python -m leaderboard serve``: the built site on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from leaderboard.pages import serving
from leaderboard.pages.publishing import DEFAULT_SITE


@one_line_errors("stopped")
def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8000,
    folder: Annotated[Path, typer.Option("--dir", help="Folder of the built site.")] = DEFAULT_SITE,
) -> None:
    """Serve the built site on this machine until Ctrl-C."""
    with serving.open_server(folder, port) as server:
        print(f"http://{serving.HOST}:{server.server_port}/ (stop with Ctrl-C)", file=sys.stderr)
        server.serve_forever()
