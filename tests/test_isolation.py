"""What conftest.py promises to every test."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from tests.commands import run

SKIPPING = """
import pytest

def test_passes():
    assert True

def test_skips():
    pytest.skip("{reason}")
"""


def test_other_machines_cannot_be_reached() -> None:
    message = r"socket\.connect to '192\.0\.2\.1': tests reach nothing but this machine"
    with socket.socket() as client, pytest.raises(RuntimeError, match=message):
        client.connect(("192.0.2.1", 80))
    with pytest.raises(RuntimeError, match=r"socket\.getaddrinfo to 'example\.org'"):
        socket.getaddrinfo("example.org", 443)


def test_loopback_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(("localhost", server.getsockname()[1]), timeout=5)
        thread = threading.Thread(target=client.sendall, args=(b"hello",))
        thread.start()
        connection, _ = server.accept()
        with connection, client:
            assert connection.recv(5) == b"hello"
            thread.join()


def test_no_key_and_no_cache_of_the_user_is_seen() -> None:
    assert [name for name in os.environ if name.endswith("_API_KEY")] == []
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert Path(os.environ["HF_HOME"]) != Path.home() / ".cache/huggingface"
    assert "HF_TOKEN" not in os.environ


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ci", "reason", "exit_code", "options"),
    [
        ("true", "torch is not installed", 1, ()),
        ("true", "torch is not installed", 1, ("-n1",)),
        ("true", "../shared/data is absent", 0, ("-n1",)),
        ("", "torch is not installed", 0, ()),
    ],
)
def test_ci_refuses_skipped_tests(
    ci: str, reason: str, exit_code: int, options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "test_example.py").write_text(SKIPPING.format(reason=reason), encoding="utf-8")
    (tmp_path / "pytest.ini").touch()
    command = ("-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", *options, tmp_path)
    done = run(*command, fresh=True, CI=ci)
    assert "1 passed, 1 skipped" in done.stdout
    assert done.returncode == exit_code
    assert ("skipped, which CI does not allow" in done.stdout) == bool(exit_code)
