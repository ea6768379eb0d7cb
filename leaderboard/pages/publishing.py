"""Builds the site: combines hand-written and generated pages, runs MkDocs, and replaces the old site at the end."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.files import replacing_folder, sha256_file
from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue

DEFAULT_SITE = Path("site/_build")
"""Folder of the built site, unless another is named."""
CONFIG = "mkdocs.yml"
HANDWRITTEN = "docs"
_SITE = "site"
# The file may hold tags that only the site generator knows, so that it is not read as a whole.
_ADDRESS = re.compile(r"^site_url:[ \t]+([^\s#]+)", re.MULTILINE)
_UNSAFE = re.compile(r"[\s<>\"'`()\[\]{}\\]")
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


def site_address(site: Path) -> str | None:
    """Return the address of the finished site, which ends with a slash; None if ``mkdocs.yml`` names none.

    Raises:
        ConfigError: the address is none of the web.
    """
    path = site / CONFIG
    match = _ADDRESS.search(path.read_text(encoding="utf-8"))
    if match is None:
        return None
    address = match[1].strip("'\"")
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc or _UNSAFE.search(address):
        raise ConfigError(f"{path}: site_url: '{address}' is no address of a website; write one such as https://x.org/")
    return address.rstrip("/") + "/"


@contextmanager
def combined(site: Path, files: Mapping[str, str | bytes], copies: Mapping[str, Path]) -> Iterator[Path]:
    """Yield a folder of its own with everything that MkDocs reads: its configuration and, in ``docs``, all pages.

    The folder is next to ``mkdocs.yml`` and removed at the end. Concurrent builds do not share it.

    Args:
        site: Folder that contains ``mkdocs.yml``.
        files: Text or bytes of each file by its path.
        copies: File to copy by the path of the copy.
    """
    with tempfile.TemporaryDirectory(prefix=".board-", dir=site) as name:
        folder = Path(name)
        (folder / CONFIG).write_text(f"INHERIT: ../{CONFIG}\ndocs_dir: {HANDWRITTEN}\n", encoding="utf-8")
        docs = folder / HANDWRITTEN
        shutil.copytree(site / HANDWRITTEN, docs, ignore=shutil.ignore_patterns("*.md", ".*"))
        for path, content in files.items():
            target = docs / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        for path, source in copies.items():
            (docs / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, docs / path)
        yield folder


def check_target(out: Path) -> None:
    """Check before the build that the output folder may be replaced: it is absent, empty or an earlier site.

    Raises:
        ConfigError: the path is a link or a file, or the folder holds something else.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ConfigError(f"--out {out}: is a link or a file; give a folder")
    if out.exists() and any(out.iterdir()) and not (out / SITE_MARK).is_file():
        raise ConfigError(f"--out {out}: holds files but no earlier site, so it is not replaced; give another folder")


def render(site: Path, folder: Path, out: Path, memory: Memory) -> bool:
    """Run MkDocs to make the finished site; ``out`` is replaced only on success.

    Args:
        site: Folder that contains ``mkdocs.yml``.
        folder: Folder from :func:`combined`.
        out: Folder of the finished site.
        memory: Memory that knows which site was made from which pages.

    Returns:
        True if the site was made; False if it is there already, made from the same pages and not changed since.

    Raises:
        MissingExtraError: MkDocs is not installed.
        ConfigError: MkDocs found an error in its configuration or in a page.
    """
    made_from: dict[str, JsonValue] = {
        "out": str(out.resolve()),
        "config": (site / CONFIG).read_text(encoding="utf-8"),
        "pages": _contents(folder / HANDWRITTEN),
    }
    if out.is_dir() and memory.get(_SITE, made_from) == _state(out):
        return False
    import_extra("mkdocs", "site")
    import_extra("material", "site")
    with replacing_folder(out) as finished:
        # No --quiet: it would hide the warnings from --strict too.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(folder / CONFIG)]
        done = subprocess.run(
            [*command, "--site-dir", str(finished.resolve())],
            # MkDocs writes the date into the site. A fixed one makes the same results give the same bytes.
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ConfigError(f"{site / CONFIG}: mkdocs failed: {_complaint(done.stderr)}; correct it and build again")
    memory.put(_SITE, made_from, _state(out))
    return True


def _contents(folder: Path) -> str:
    """Return a hash of the paths and the contents of all files in a folder."""
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"\0{path.relative_to(folder).as_posix()}\0{sha256_file(path)}".encode())
    return digest.hexdigest()


def _state(folder: Path) -> str:
    """Return a hash of the paths, sizes and times of all files in a folder, which changes with any of them."""
    digest = hashlib.sha256()
    for path in _files(folder):
        status = path.stat()
        digest.update(f"\0{path.relative_to(folder).as_posix()}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _complaint(output: str) -> str:
    """Return the line of the MkDocs output with the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wrong = [line for line in lines if line.startswith(("WARNING", "ERROR", "Error"))]
    return next(iter([*wrong, *reversed(lines)]), "it gave no reason")
