"""The secret under which the answer keys of held-out datasets are hashed.

There are few possible right answers, such as two options. If a key held plain hashes, anybody who knows the rest of an
item could hash it with each option and see which hash is in the key. Computing an HMAC takes the secret.
"""

from __future__ import annotations

import hmac
import os
import re
import shlex
import stat
from dataclasses import dataclass, field
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import check_readable

VARIABLE = "BIASBOARD_KEY_SECRET_FILE"
"""Name of the environment variable with the path of a board's secret."""
MIN_BYTES = 32
_MOST_BYTES = 4_096
_N_ID = 16


@dataclass(frozen=True, slots=True)
class KeySecret:
    """A secret of a board. It is never printed: its representation leaves the value out."""

    value: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """The name of the secret in keys, which tells a wrong secret apart from wrong answers."""
        return hmac.digest(self.value, b"biasboard answer key", "sha256").hex()[:_N_ID]

    def seal(self, sha256: bytes) -> bytes:
        """Return the HMAC-SHA-256 of a SHA-256, also 32 bytes."""
        return hmac.digest(self.value, sha256, "sha256")


def read_key_secret(path: Path) -> KeySecret:
    """Read the secret of a board from a file with at least 32 bytes in hexadecimal digits.

    Raises:
        ConfigError: the file is missing, can be read by others, lies in a git repository, or holds no such secret. The
            message reveals nothing of its contents.
        DataError: the path is no regular file, or the file is too large.
    """
    if not os.path.lexists(path):
        raise ConfigError(f"{path}: no such file of a secret; make one with: {_command(path)}")
    check_readable(path, most=_MOST_BYTES)
    _check_outside_git(path)
    with path.open("rb") as file:
        _check_mode(path, os.fstat(file.fileno()).st_mode)
        text = file.read().strip()
    if not re.fullmatch(rb"([0-9A-Fa-f]{2})*", text):
        raise ConfigError(
            f"{path}: holds other characters than pairs of hexadecimal digits; make it with: {_command(path)}"
        )
    if len(text) < 2 * MIN_BYTES:
        raise ConfigError(
            f"{path}: holds {len(text) // 2} bytes, and a secret has at least {MIN_BYTES}; make it with: "
            f"{_command(path)}"
        )
    return KeySecret(bytes.fromhex(text.decode()))


def _command(path: Path) -> str:
    """Return the command that makes a secret which only its owner can read."""
    return f"(umask 077; openssl rand -hex {MIN_BYTES} > {shlex.quote(str(path))})"


def _check_outside_git(path: Path) -> None:
    """Refuse a file in a git repository, from which it could be published by accident."""
    for folder in (*path.absolute().parents, *path.resolve().parents):
        if (folder / ".git").exists():
            raise ConfigError(
                f"{path}: lies in the git repository {folder}, whose files are published; move the secret out of it"
            )


def _check_mode(path: Path, mode: int) -> None:
    # Windows has no such permissions, and reports every file as readable by all.
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise ConfigError(
            f"{path}: others on this machine can read or change it (mode {stat.S_IMODE(mode):04o}); "
            f"run: chmod 600 {shlex.quote(str(path))}"
        )
