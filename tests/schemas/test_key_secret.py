"""The file of a board's secret: what is taken for one, and what is refused without a word of its contents."""

from __future__ import annotations

import hashlib
import hmac
import pickle
import subprocess
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from schemas.files.key_secret import KeySecret, read_key_secret

SECRET = bytes(range(100, 132))


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_secret_seals_hashes_as_rfc_2104_says(tmp_path: Path) -> None:
    secret = read_key_secret(written(tmp_path / "secret", f"{SECRET.hex().upper()}\n"))
    # The definition of HMAC, for a key that is shorter than a block of 64 bytes.
    inner, outer = (bytes(byte ^ pad for byte in SECRET.ljust(64, b"\0")) for pad in (0x36, 0x5C))
    told = hashlib.sha256(b"facts").digest()
    assert secret.seal(told) == hashlib.sha256(outer + hashlib.sha256(inner + told).digest()).digest()
    assert secret.id == hmac.new(SECRET, b"biasboard answer key", hashlib.sha256).hexdigest()[:16]
    assert pickle.loads(pickle.dumps(secret)) == secret
    assert repr(secret) == "KeySecret()"


def test_the_command_that_an_error_names_makes_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "a folder's" / "secret"
    path.parent.mkdir()
    with pytest.raises(ConfigError) as missing:
        read_key_secret(path)
    told = str(missing.value)
    assert told.startswith(f"{path}: no such file of a secret; make one with: ")
    command = told.partition("make one with: ")[2].replace("openssl rand -hex 32", f"printf %s {SECRET.hex()}")
    subprocess.run(["sh", "-c", command], check=True)
    assert read_key_secret(path) == KeySecret(SECRET)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SECRET.hex()[:-2], "holds 31 bytes, and a secret has at least 32"),
        ("", "holds 0 bytes"),
        (SECRET.hex()[:-1], "holds other characters than pairs of hexadecimal digits"),
        ("correct horse battery staple " * 3, "holds other characters"),
        (f"{SECRET.hex()}\n{SECRET.hex()}", "holds other characters"),
    ],
)
def test_a_file_without_a_secret_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_key_secret(written(tmp_path / "secret", text))
    assert said in str(refused.value)
    assert "openssl rand -hex 32" in str(refused.value)
    assert not text or text[:8] not in str(refused.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "secret", SECRET.hex(), mode)
    with pytest.raises(ConfigError, match=f"mode {mode:04o}.*; run: chmod 600 {path}"):
        read_key_secret(path)
    path.chmod(0o400)
    assert read_key_secret(path) == KeySecret(SECRET)


def test_a_file_in_a_git_repository_is_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path / "board"], check=True)
    inside = written(tmp_path / "board" / "keys" / "secret", SECRET.hex())
    link = tmp_path / "link"
    link.symlink_to(inside)
    for path in (inside, link):
        with pytest.raises(ConfigError, match=f"lies in the git repository {tmp_path / 'board'}"):
            read_key_secret(path)


def test_what_is_no_small_regular_file_is_refused(tmp_path: Path) -> None:
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "gone")
    for path in (tmp_path, dangling, Path("/dev/zero")):
        with pytest.raises(DataError, match="is not a regular file"):
            read_key_secret(path)
    with pytest.raises(DataError, match="has 5,000 bytes, more than the 4,096 that are read"):
        read_key_secret(written(tmp_path / "long", "ab" * 2_500))
