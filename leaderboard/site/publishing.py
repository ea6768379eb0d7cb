"""Builds the site: combines hand-written and generated pages, runs MkDocs, and replaces the old site at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from schemas.errors import ConfigError, import_extra
from schemas.files import replacing_folder

DEFAULT_SITE = Path("site/_build")
"""Folder of the built site, unless another is named."""
CONFIG = "mkdocs.yml"
HANDWRITTEN = "docs"
COMBINED = "_docs"
SITE_MARK = "assets/board.js"
"""Path of a file that every finished site contains."""


def handwritten_pages(site: Path) -> dict[str, str]:
    """Return the text of each Markdown page in ``site/docs`` by its path relative to that folder.

    Raises:
        ConfigError: there is no folder ``docs`` or no ``mkdocs.yml`` in the site folder.
    """
    for name in (CONFIG, HANDWRITTEN):
        if not (site / name).exists():
            raise ConfigError(f"{site}: no {name} here; run in the repository, or name its site folder with --site")
    folder = site / HANDWRITTEN
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))
    }


def combine(site: Path, texts: Mapping[str, str], copies: Mapping[str, Path]) -> None:
    """Fill ``site/_docs``, which MkDocs reads, with the assets of ``site/docs`` and all pages.

    Args:
        site: Folder that contains ``mkdocs.yml``.
        texts: Text of each file by its path.
        copies: File to copy by the path of the copy.
    """
    with replacing_folder(site / COMBINED) as folder:
        shutil.copytree(site / HANDWRITTEN, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.md", ".*"))
        for path, text in texts.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        for path, source in copies.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / path)


def check_target(out: Path) -> None:
    """Check before the build that the output folder may be replaced: it is absent, empty or an earlier site.

    Raises:
        ConfigError: the path is a link or a file, or the folder holds something else.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ConfigError(f"--out {out}: is a link or a file; give a folder")
    if out.exists() and any(out.iterdir()) and not (out / SITE_MARK).is_file():
        raise ConfigError(f"--out {out}: holds files but no earlier site, so it is not replaced; give another folder")


def render(site: Path, out: Path) -> None:
    """Run MkDocs to turn ``site/_docs`` into the finished site; ``out`` is replaced only on success.

    Raises:
        MissingExtraError: MkDocs is not installed.
        ConfigError: MkDocs found an error in its configuration or in a page.
    """
    import_extra("mkdocs", "site")
    import_extra("material", "site")
    with replacing_folder(out) as folder:
        # No --quiet: it would hide the warnings from --strict too.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(site / CONFIG)]
        done = subprocess.run(
            [*command, "--site-dir", str(folder.resolve())],
            # MkDocs writes the date into the site. A fixed one makes the same results give the same bytes.
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ConfigError(f"{site / CONFIG}: mkdocs failed: {_complaint(done.stderr)}; correct it and build again")


def _complaint(said: str) -> str:
    """Return the line of the MkDocs output that says what is wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    wrong = [line for line in lines if line.startswith(("WARNING", "ERROR", "Error"))]
    return next(iter([*wrong, *reversed(lines)]), "it gave no reason")
