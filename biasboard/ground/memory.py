"""A cache on this machine, so that the same code does not compute a value from the same bytes twice.

A key covers everything that a value depends on, including the code: a changed line of this distribution or of a
plug-in, or another version of an installed package, gives every value another key. The folder can be removed at any
time, and files in it that were changed are ignored.

Nothing but the permissions of the folder keeps somebody from storing a value with the right key and digest: a forged
entry would pass as verified. The folder therefore belongs to one user, mode 0700, and another is not used.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import replacing
from biasboard.ground.plugins import ALL_PACKAGES, added_folders, installed_code
from biasboard.ground.strict_json import JsonValue

T = TypeVar("T")
VARIABLE = "BIASBOARD_MEMORY"
"""Name of the environment variable with the folder of the memory; ``off`` disables it."""
_NO_CODE = "leaderboard/results"
"""Accepted results, whose own hashes are in the keys of what is computed from them: one more makes no other unknown."""
_N_DIGEST = 64
_OLDEST_SECONDS = 60 * 24 * 3600
"""Time without use after which a value is deleted: 60 days."""

# Making an adapter takes milliseconds. A dictionary instead of functools.cache, which mypy refuses for types.
_ADAPTERS: dict[object, TypeAdapter[Any]] = {}


class Memory:
    """A folder of values, each in a file named by the hash of its key."""

    def __init__(self, folder: Path | None, *, is_fresh: bool = False) -> None:
        """Open a memory; the folder need not exist.

        Without a folder nothing is remembered; with ``is_fresh``, stored values are ignored, and new ones still
        stored.
        """
        self.folder = None if folder is None or not _is_private(folder) else folder
        """The folder of the memory; None if nothing is remembered."""
        self._is_fresh = is_fresh

    def get(self, kind: str, parts: Mapping[str, JsonValue]) -> JsonValue | None:
        """Return a value; None if there is none, or if its file was changed.

        The parts are everything that the value depends on besides the code.
        """
        if self.folder is None or self._is_fresh:
            return None
        key = _key(kind, parts)
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        # The digest covers the key too, so that a renamed file is not taken for another value.
        digest, text = content[:_N_DIGEST], content[_N_DIGEST:]
        if _digest(key, text) != digest:
            return None
        with suppress(OSError):
            os.utime(path)  # Used values are never deleted, however old they are.
        try:
            return strict_json.loads(text.decode(), where=str(path))
        except (DataError, UnicodeDecodeError):
            return None

    def put(self, kind: str, parts: Mapping[str, JsonValue], value: JsonValue) -> None:
        """Store a value. Errors of the disk are ignored, since nothing depends on the memory."""
        if self.folder is None:
            return
        key = _key(kind, parts)
        text = strict_json.canonical(value)
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(OSError), replacing(self._path(key)) as temporary:
            temporary.write_bytes(_digest(key, text) + text)

    def remembered(self, kind: str, parts: Mapping[str, JsonValue], of: type[T], make: Callable[[], T]) -> T:
        """Return a value that is made unless it was stored before.

        Args:
            kind: Kind of the value.
            parts: Everything that the value depends on besides the code.
            of: Its type, made of lists, tuples, mappings, named tuples and scalars, which need not be JSON values.
            make: Function that makes it.
        """
        adapter: TypeAdapter[T] = _ADAPTERS.get(of) or TypeAdapter(of)
        _ADAPTERS[of] = adapter
        stored = self.get(kind, parts)
        if stored is not None:
            return adapter.validate_python(stored)
        made = make()
        self.put(kind, parts, adapter.dump_python(made, mode="json"))
        return made

    def tidy(self) -> None:
        """Remove the values that were not used for 60 days."""
        oldest = time.time() - _OLDEST_SECONDS
        for path in [] if self.folder is None else self.folder.glob("*/*.json"):
            with suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def _path(self, key: str) -> Path:
        return (self.folder or Path()) / key[:2] / f"{key}.json"


def _is_private(folder: Path) -> bool:
    """Return True if only this user can write to a folder, and keep others from reading it; False is said once."""
    if os.name != "posix":
        return True
    try:
        status = folder.stat()
    except FileNotFoundError:
        return True  # It is made when the first value is stored.
    except OSError:
        return False
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        _warn_of(folder)
        return False
    if stat.S_ISDIR(status.st_mode):
        with suppress(OSError):
            folder.chmod(0o700)
    return True


@cache
def _warn_of(folder: Path) -> None:
    print(
        f"{folder}: others can write to this memory, so that nothing in it is used; remove the folder, or name one of "
        f"your own with {VARIABLE}",
        file=sys.stderr,
    )


def machine_memory(*, is_fresh: bool = False) -> Memory:
    """Return the memory of this user on this machine.

    Args:
        is_fresh: True to ignore stored values.
    """
    named = os.environ.get(VARIABLE, "")
    if named.lower() in ("off", "0", "no"):
        return Memory(None)
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        folder = Path(named).expanduser() if named else base.expanduser() / "biasboard" / "memory"
    except RuntimeError:  # There is no home folder.
        return Memory(None)
    return Memory(folder, is_fresh=is_fresh)


def _key(kind: str, parts: Mapping[str, JsonValue]) -> str:
    return strict_json.sha256({"kind": kind, "code": code_sha256(), "parts": dict(parts)})


def _digest(key: str, text: bytes) -> bytes:
    return hashlib.sha256(key.encode() + text).hexdigest().encode()


@cache
def code_sha256() -> str:
    """Return a hash of the code: this distribution, the added plug-ins, and the versions of Python and of packages."""
    digest = hashlib.sha256(sys.version.encode())
    layouts = [root / package for root in (Path(__file__).parents[2], *added_folders()) for package in ALL_PACKAGES]
    for root in (*layouts, *installed_code()):
        for path in sorted(_files(root)):
            digest.update(f"\0{path.relative_to(root.parent).as_posix()}\0".encode() + path.read_bytes())
    # Name and version of each installed package, and when it was installed.
    installed = []
    for entry in dict.fromkeys(sys.path):
        for info in Path(entry).glob("*.dist-info") if entry and Path(entry).is_dir() else ():
            installed.append(f"\0{info.name}")
            with suppress(OSError):
                installed.append(f"\0{info.name}\0{(info / 'RECORD').stat().st_mtime_ns}")
    digest.update("".join(sorted(installed)).encode())
    return digest.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    """Yield every file below a package, also behind links: a plug-in may read any of them; or the file that it is."""
    if root.is_file():
        yield root
    seen: set[Path] = set()
    for folder, folders, names in os.walk(root, followlinks=True):
        real = Path(folder).resolve()
        # A link to a folder above would be followed forever.
        folders[:] = [] if real in seen else [name for name in folders if name != "__pycache__"]
        if Path(folder) == root.parent / _NO_CODE:
            folders[:] = []
            continue
        seen.add(real)
        yield from (path for name in names if (path := Path(folder, name)).is_file())
