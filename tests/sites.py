"""Boards that tests build: of the repository's site, and of a view that a test has."""

from __future__ import annotations

import shutil
from pathlib import Path

from leaderboard.pages import publishing
from leaderboard.pages.exports import Line
from leaderboard.pages.rendering import View, copies, generate, parquet_files, tables_of
from tests.commands import REPOSITORY


def copy_site(folder: Path) -> Path:
    """Copy the settings and the hand-written pages to ``site`` in a folder, and return it."""
    return shutil.copytree(REPOSITORY / "site", folder / "site", ignore=shutil.ignore_patterns("_build"))


def table_rows(view: View, stem: str) -> list[Line]:
    """Return the rows of a table that the site of a view offers, by its path without an ending."""
    (table,) = (table for table in tables_of(view) if table.files.stem == stem)
    return list(table.lines)


def render(view: View, folder: Path, *, with_parquet: bool = False, site: Path | None = None) -> Path:
    """Render all pages of a view to ``built`` in a folder, as ``leaderboard build`` does, and return it.

    Args:
        view: What to show.
        folder: Folder for the pages.
        with_parquet: True to make the tables as Parquet files too.
        site: Folder of the settings and the hand-written pages; None for a copy of the repository's.
    """
    site, built = site or copy_site(folder), folder / "built"
    texts = generate(view, publishing.handwritten_pages(site))
    tables = parquet_files(view) if with_parquet else {}
    with publishing.combined(site, {**texts, **tables}, copies(view), built) as pages:
        publishing.render(site, pages, built)
    return built
