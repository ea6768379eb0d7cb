"""Builds the site: combines hand-written and generated pages, runs MkDocs, and replaces the old site at the end."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import yaml

from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.files import DISK_FULL, replacing_folder, sha256_file, unfinished
from biasboard.ground.memory import Memory
from biasboard.ground.strict_json import JsonValue
from evaluators.stores.store import STORE
from leaderboard.pages import compare, explorer
from leaderboard.verify.board_files import CONFIG, SITE
from schemas.files import contract
from schemas.outputs.documents import BuiltBoard

DEFAULT_SITE = SITE / "_build"
"""Folder of the built site, unless another is named."""
HANDWRITTEN = "docs"
_BUILD = "build"
_UNSAFE = re.compile(r"[\s<>\"'`()\[\]{}\\]")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_BLANK = re.compile(r"\s*\n\s*")
_PACKED = (f"{compare.FOLDER}/", f"{explorer.FOLDER}/")
"""Folders of files that only pages read. As text, those of 1,000 results would not fit a host's limit of 1 GB."""
SITE_MARK = "assets/board.js"
"""Path of a file that every finished site contains."""


def handwritten_pages(site: Path) -> dict[str, str]:
    """Return the text of each Markdown page in ``site/docs`` by its path relative to that folder.

    Raises:
        ConfigError: there is no folder ``docs`` or no ``mkdocs.yml`` in the site folder.
    """
    for name in (CONFIG, HANDWRITTEN):
        if not (site / name).exists():
            raise ConfigError(
                f"{site}: no {name} here; name the folder of the settings and hand-written pages with --site"
            )
    folder = site / HANDWRITTEN
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))
    }


class SiteSettings(NamedTuple):
    """Who runs a board, and where, as the settings of its site say; None where they say nothing."""

    address: str | None = None
    """Address of the finished site, which ends with a slash."""
    repository: str | None = None
    """Address of the repository with the results, which git can clone."""
    contact: str | None = None
    """Address of a page, or of mail, for questions and corrections."""


NO_SETTINGS = SiteSettings()


class _Reader(yaml.SafeLoader):
    """Reads settings; a value with a tag that only the site generator knows becomes the tag, which is no address."""


_Reader.add_constructor(None, lambda loader, node: node.tag)


def site_settings(site: Path) -> SiteSettings:
    """Return who runs a board, and where, from ``site_url``, ``repo_url`` and ``extra: contact`` of ``mkdocs.yml``.

    Raises:
        ConfigError: the file is no YAML, or an address is none of the web, or for the contact of mail.
    """
    path = site / CONFIG
    try:
        found = _Reader(path.read_text(encoding="utf-8")).get_single_data()
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}; correct the settings of the site") from error
    settings = found if isinstance(found, dict) else {}
    extra = settings.get("extra")
    address = _web_address(path, "site_url", settings.get("site_url"))
    contact = extra.get("contact") if isinstance(extra, dict) else None
    if contact is not None and not (isinstance(contact, str) and _MAIL.fullmatch(contact)):
        contact = _web_address(path, "extra: contact", contact)
    return SiteSettings(
        address=None if address is None else address.rstrip("/") + "/",
        repository=_web_address(path, "repo_url", settings.get("repo_url")),
        contact=contact,
    )


def _web_address(path: Path, name: str, value: object) -> str | None:
    """Return an address of the settings, None for an empty one."""
    if value is None or value == "":
        return None
    parts = urlsplit(str(value))
    if parts.scheme not in ("http", "https") or not parts.netloc or _UNSAFE.search(str(value)):
        raise ConfigError(f"{path}: {name}: '{value}' is no address of a website; write one such as https://x.org/")
    return str(value)


class LastBuild:
    """The last build of a site, which need not be repeated where nothing that it read has changed.

    What pages are made from is the code, which every key of the memory covers, the options, and the contents of a few
    folders. Links may lead out of these and pipes have no contents, so that a folder with one is always read anew.
    """

    def __init__(
        self, memory: Memory, out: Path, folders: Mapping[str, Path], options: Mapping[str, JsonValue]
    ) -> None:
        """Look at everything that the build is going to read.

        Args:
            memory: The memory of this machine.
            out: Folder of the finished site.
            folders: All folders that a build reads, by a name each; one may be absent.
            options: All else that decides about the pages.
        """
        self._memory, self._out, self._folders, self._options = memory, out, folders, options
        self._inputs = self._read()

    def _read(self) -> dict[str, JsonValue] | None:
        """Return what the build reads; None if no hash can stand for it."""
        if self._memory.folder is None:
            return None
        out = self._out.resolve()
        try:
            contents = {name: _contents(folder.resolve(), out) for name, folder in self._folders.items()}
        except OSError:
            return None
        return {"out": str(out), **contents, **self._options}

    @property
    def board(self) -> BuiltBoard | None:
        """What the last build made, if it read the same and its site is still there as it was; None otherwise."""
        known = None if self._inputs is None else self._memory.get(_BUILD, self._inputs)
        if not isinstance(known, list) or not self._out.is_dir() or known[0] != _state(self._out):
            return None
        return replace(contract.load(known[1], BuiltBoard, where="the last build"), is_new=False)

    def remember(self, board: BuiltBoard) -> None:
        """Keep what a finished build made, unless something changed while it was read."""
        if self._inputs is not None and self._inputs == self._read():
            self._memory.put(_BUILD, self._inputs, [_state(self._out), contract.dump(board)])


@contextmanager
def combined(site: Path, files: Mapping[str, str | bytes], copies: Mapping[str, Path], out: Path) -> Iterator[Path]:
    """Yield a folder of its own with everything that MkDocs reads: its configuration and, in ``docs``, all pages.

    The folder is temporary: that of the settings may be one of an installation, where nothing is written.

    Args:
        site: Folder that contains ``mkdocs.yml``.
        files: Text or bytes of each file by its path. What only pages read gets ``.gz`` behind its name, and whatever
            has such a name is packed.
        copies: File to copy by the path of the copy.
        out: Folder of the finished site, next to which the temporary one lies.
    """
    with unfinished(out) as folder:
        inherited = json.dumps(str((site / CONFIG).absolute()))
        (folder / CONFIG).write_text(f"INHERIT: {inherited}\ndocs_dir: {HANDWRITTEN}\n", encoding="utf-8")
        docs = folder / HANDWRITTEN
        shutil.copytree(site / HANDWRITTEN, docs, ignore=shutil.ignore_patterns("*.md", ".*"))
        for path, content in files.items():
            target, data = docs / path, content.encode() if isinstance(content, str) else content
            if path.startswith(_PACKED):
                target = docs / f"{path}.gz"
            if target.suffix == ".gz":
                data = gzip.compress(data, mtime=0)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        for path, source in copies.items():
            (docs / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, docs / path)
        yield folder


def build_date() -> str:
    """Return the date that pages give, in seconds since 1970; "0" for none, as no clock is read.

    References:
        ``SOURCE_DATE_EPOCH`` of reproducible-builds.org, which makes the same results give the same bytes.
    """
    return os.environ.get("SOURCE_DATE_EPOCH", "0")


def check_generator() -> None:
    """Check before the build that the site generator is installed.

    Raises:
        MissingExtraError: it is not.
    """
    import_extra("mkdocs", "site")
    import_extra("material", "site")


def check_target(out: Path) -> None:
    """Check before the build that the output folder may be replaced: it is absent, empty or an earlier site.

    Raises:
        ConfigError: the path is a link or a file, or the folder holds something else.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ConfigError(f"--out {out}: is a link or a file; give a folder")
    if out.exists() and any(out.iterdir()) and not (out / SITE_MARK).is_file():
        raise ConfigError(f"--out {out}: holds files but no earlier site, so it is not replaced; give another folder")


def render(site: Path, folder: Path, out: Path) -> None:
    """Run MkDocs to make the finished site; ``out`` is replaced only on success.

    Args:
        site: Folder that contains ``mkdocs.yml``.
        folder: Folder from :func:`combined`.
        out: Folder of the finished site.

    Raises:
        ConfigError: MkDocs found an error in its configuration or in a page.
        OSError: the disk is full.
    """
    with replacing_folder(out) as finished:
        # No --quiet: it would hide the warnings from --strict too.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(folder / CONFIG)]
        done = subprocess.run(
            [*command, "--site-dir", str(finished.resolve())],
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": build_date()},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            for number in DISK_FULL:
                if f"[Errno {number}]" in done.stderr:
                    raise OSError(number, os.strerror(number), str(out))
            raise ConfigError(f"{site / CONFIG}: mkdocs failed: {_complaint(done.stderr)}; correct it and build again")
        _trim(finished)


def _trim(site: Path) -> None:
    """Remove what no reader needs: source maps, languages that are not used, and blank lines around each page's text.

    They were 3.5 of the 40 MB of the demo's site.
    """
    for path in site.glob("assets/**/*.map"):
        path.unlink()
    search = site / "search" / "search_index.json"
    if search.is_file() and json.loads(search.read_text(encoding="utf-8"))["config"]["lang"] == ["en"]:
        shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
    for path in site.rglob("*.html"):
        before, start, text = path.read_text(encoding="utf-8").partition("<article")
        text, end, after = text.rpartition("</article>")
        if end:
            path.write_text(
                "".join((_BLANK.sub("\n", before), start, text, end, _BLANK.sub("\n", after))), encoding="utf-8"
            )


def _contents(folder: Path, out: Path) -> str:
    """Return a hash of the paths and the contents of all files in a folder.

    Args:
        folder: The folder; an absent one has no files.
        out: Folder of the finished site, which is passed over. So are stores of answers, which no board reads.

    Raises:
        OSError: a file cannot be read, or the folder holds a link or a pipe.
    """
    digest = hashlib.sha256()
    for below, folders, files in os.walk(folder, onerror=_raise_unless_absent):
        folders[:] = sorted(name for name in folders if Path(below, name) != out)
        for path in (Path(below, name) for name in sorted([*folders, *files]) if not name.startswith(STORE)):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                digest.update(f"\0{path.relative_to(folder).as_posix()}\0{sha256_file(path)}".encode())
            elif not stat.S_ISDIR(mode):
                raise OSError(f"{path}: no file")
    return digest.hexdigest()


def _raise_unless_absent(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _state(folder: Path) -> str:
    """Return a hash of the paths, sizes and times of all files in a folder, which changes with any of them."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        status = path.stat()
        digest.update(f"\0{path.relative_to(folder).as_posix()}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _complaint(output: str) -> str:
    """Return the line of the MkDocs output with the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wrong = [line for line in lines if line.startswith(("WARNING", "ERROR", "Error"))]
    return next(iter([*wrong, *reversed(lines)]), "it gave no reason")
