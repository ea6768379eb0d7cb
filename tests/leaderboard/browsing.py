"""Opens pages of a built site in a browser, and notes what they ask for and complain about."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from playwright.sync_api import Browser, Page

from leaderboard.site.serving import open_server

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
Scheme: TypeAlias = Literal["light", "dark"]


@dataclass
class Visit:
    """An open page and what it did."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a built site while it is served on this machine."""
    with open_server(site, 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def visit(browser: Browser, url: str, *, width: int = 1280, scheme: Scheme = "light") -> Visit:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    found = Visit(context.new_page())
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("dialog", lambda dialog: found.complaints.append(f"dialog: {dialog.message}"))
    found.page.on(
        "console",
        lambda message: found.complaints.append(message.text) if message.type in ("error", "warning") else None,
    )
    found.page.goto(url)
    found.page.wait_for_load_state("networkidle")
    return found
