"""Serves a built site to browsers on this machine only."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from biasboard.ground.errors import ConfigError

HOST = "127.0.0.1"


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
        return ThreadingHTTPServer((HOST, port), partial(_QuietHandler, directory=str(folder)))
    except OSError as error:
        raise ConfigError(f"port {port} of {HOST}: {error.strerror or error}; choose another with --port") from error
