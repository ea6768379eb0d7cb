"""Opens pages of a built site in a browser, and notes what they ask for and complain about."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from leaderboard.commands.serve import open_server

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    # The pages of a test are friends: with a process for each, opening them takes a fifth more processor time.
    *("--renderer-process-limit=1", "--in-process-gpu"),
]
_FIND_VIOLATIONS = """async (onlyColours) => {
    const options = { resultTypes: ["violations"], preload: false };
    const colours = ["color-contrast", "link-in-text-block"];
    const found = onlyColours
        ? { violations: [] }
        : await axe.run({ ...options, rules: { "color-contrast": { enabled: false } } });
    // The contrast of every text takes six times as long as all other rules. Texts with the same tags, classes, states
    // and own styles up to the root have the same colours, so that two of each are enough.
    const counts = new Map();
    const lookOf = (element) => element && [
        lookOf(element.parentElement), element.tagName, ...[...element.attributes]
            .filter(({ name }) => /^(class|style|disabled|aria-(pressed|selected|current|sort|expanded))$/.test(name))
            .map(({ name, value }) => `${name}=${value}`),
    ].join(" ");
    const texts = [...document.body.querySelectorAll("*")].filter((element) => {
        const isText = element.matches("input, select, textarea")
            || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!isText || !element.checkVisibility({ visibilityProperty: true })) return false;
        const look = lookOf(element);
        counts.set(look, (counts.get(look) ?? 0) + 1);
        return counts.get(look) <= 2;
    });
    const contrast = await axe.run({ include: texts }, { ...options, runOnly: colours });
    return [...found.violations, ...contrast.violations]
        .filter((rule) => ["serious", "critical"].includes(rule.impact))
        .map((rule) => rule.id);
}"""
Scheme: TypeAlias = Literal["light", "dark"]
N_AT_ONCE = 8


@dataclass
class Visit:
    """An open page and what it did."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def check(self, address: str) -> None:
        """Check that the page complained about nothing and asked no other host."""
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith((address, "data:", "blob:"))] == []


Opened: TypeAlias = Callable[..., Page]
"""Opens a page of a site by its path, and checks and closes it after the test."""


def settle(page: Page) -> None:
    """Wait until a page has loaded the files that it shows."""
    page.wait_for_function("document.querySelector('main [aria-busy]') === null")


def choose(page: Page, label: str, value: str) -> None:
    """Choose in a box, which changes the address of the page."""
    before = page.evaluate("location.hash")
    page.get_by_role("combobox", name=label, exact=True).select_option(label=value)
    page.wait_for_function("before => location.hash !== before", arg=before)
    settle(page)


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a built site while it is served on this machine."""
    with open_server(site, 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def visit(
    browser: Browser, url: str, *, width: int = 1280, scheme: Scheme = "light", with_scripts: bool = True
) -> Visit:
    found = _watched(_context(browser, width, scheme, with_scripts=with_scripts).new_page())
    found.page.goto(url)
    found.page.wait_for_load_state("networkidle")
    return found


def visit_all(
    browser: Browser, address: str, paths: Sequence[str], *, with_scripts: bool = True
) -> Iterator[tuple[str, Visit]]:
    """Pages with their paths, opened some at a time: they share what they load, and the wait until all is loaded."""
    for first in range(0, len(paths), N_AT_ONCE):
        with _context(browser, with_scripts=with_scripts) as context:
            opened = [(path, _watched(context.new_page())) for path in paths[first : first + N_AT_ONCE]]
            for path, found in opened:
                found.page.goto(address + path, wait_until="commit")
            for _, found in opened:
                found.page.wait_for_load_state("networkidle")
            yield from opened


def serious_violations(page: Page, *, only_colours: bool = False) -> list[str]:
    """The rules of axe that a page breaks badly: all of them, or those on colours."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    # Only their names leave the browser: whole results, with the code of each element, take a third longer. Style
    # sheets and films would be loaded once more, for rules that are off or concern sound.
    rules = page.evaluate(_FIND_VIOLATIONS, only_colours)
    return list(rules)


def turn(page: Page, scheme: Scheme) -> None:
    """Change the colour scheme of the system under an open page, and wait until the page has followed."""
    # A page in the background draws nothing, and hears of the change at its next frame.
    page.bring_to_front()
    # Colours that fade over would be read half-way.
    page.add_style_tag(content="*, ::before, ::after { transition: none !important }")
    page.emulate_media(color_scheme=scheme)
    name = {"light": "default", "dark": "slate"}[scheme]
    page.wait_for_function("name => document.body.dataset.mdColorScheme === name", arg=name)


def _context(
    browser: Browser, width: int = 1280, scheme: Scheme = "light", *, with_scripts: bool = True
) -> BrowserContext:
    # Nothing fades or slides, which takes a fifth of the processor time of opening a page.
    return browser.new_context(
        viewport={"width": width, "height": 844},
        color_scheme=scheme,
        reduced_motion="reduce",
        java_script_enabled=with_scripts,
    )


def _watched(page: Page) -> Visit:
    found = Visit(page)
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("dialog", lambda dialog: found.complaints.append(f"dialog: {dialog.message}"))
    page.on(
        "console",
        lambda message: found.complaints.append(message.text) if message.type in ("error", "warning") else None,
    )
    return found


# Of a file alone: its event loop would stay in the process, where other files want to start one.
@pytest.fixture(scope="module")
def browser(chromium_executable: str | None) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium_executable, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    """Where the site of a file of tests is served."""
    with served(built) as found:
        yield found


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Opened]:
    visits: list[Visit] = []

    def open_page(path: str = "", **options: Any) -> Page:
        visits.append(visit(browser, address + path, **options))
        return visits[-1].page

    yield open_page
    for one in visits:
        one.check(address)
        one.page.context.close()
