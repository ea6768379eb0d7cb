"""Serves a built site on this machine alone."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from schemas.errors import ConfigError

HOST = "127.0.0.1"


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal is for errors."""


def open_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of a folder that is bound, but does not answer before ``serve_forever``.

    Args:
        folder: The built site.
        port: 0 takes any free one; ``server_port`` says which.

    Raises:
        ConfigError: the site is not built, or the port is taken.
    """
    if not (folder / "index.html").is_file():
        raise ConfigError(f"{folder}: no site here; build it first: python -m leaderboard build")
    try:
        return ThreadingHTTPServer((HOST, port), partial(_QuietHandler, directory=str(folder)))
    except OSError as error:
        raise ConfigError(f"port {port} of {HOST}: {error.strerror or error}; choose another with --port") from error
