"""``python -m leaderboard serve``: the built site, to browsers on this machine only."""

from __future__ import annotations

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from leaderboard.pages.publishing import DEFAULT_SITE

_HOST = "127.0.0.1"


@one_line_errors("stopped")
def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8000,
    folder: Annotated[Path, typer.Option("--dir", help="Folder of the built site.")] = DEFAULT_SITE,
) -> None:
    """Serve the built site on this machine until Ctrl-C."""
    with open_server(folder, port) as server:
        print(f"http://{_HOST}:{server.server_port}/ (stop with Ctrl-C)", file=sys.stderr)
        server.serve_forever()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Discard the line for each request, so that the terminal shows only errors."""


def open_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Open a server for a folder; it listens on its port, but answers only when ``serve_forever`` is called.

    Args:
        folder: Folder of the built site.
        port: Port to listen on; 0 picks a free one, which the server's ``server_port`` holds.

    Raises:
        ConfigError: the site is not built, or the port cannot be used.
    """
    if not (folder / "index.html").is_file():
        raise ConfigError(f"{folder}: no site here; build it first: biasboard board")
    try:
        return ThreadingHTTPServer((_HOST, port), partial(_QuietHandler, directory=str(folder)))
    except OSError as error:
        raise ConfigError(f"port {port} of {_HOST}: {error.strerror or error}; choose another with --port") from error
