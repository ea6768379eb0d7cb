"""What tests rely on: no network and no keys, and skips that CI refuses."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.commands import run


def test_other_machines_and_settings_of_the_user_are_out_of_reach() -> None:
    message = r"socket\.connect to '192\.0\.2\.1': tests reach nothing but this machine"
    with socket.socket() as client, pytest.raises(RuntimeError, match=message):
        client.connect(("192.0.2.1", 80))
    with pytest.raises(RuntimeError, match=r"socket\.getaddrinfo to 'example\.org'"):
        socket.getaddrinfo("example.org", 443)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1]), timeout=5).close()
    assert [name for name in os.environ if name.endswith("_API_KEY") or name == "HF_TOKEN"] == []
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert Path(os.environ["HF_HOME"]) != Path.home() / ".cache/huggingface"


@pytest.mark.slow
@pytest.mark.parametrize(("reason", "exit_code"), [("torch is not installed", 1), ("../shared/data is absent", 0)])
def test_ci_refuses_skipped_tests(reason: str, exit_code: int, tmp_path: Path) -> None:
    tests = f"import pytest\ndef test_passes(): pass\ndef test_skips(): pytest.skip({reason!r})\n"
    (tmp_path / "test_example.py").write_text(tests, encoding="utf-8")
    (tmp_path / "pytest.ini").touch()
    command = ("-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-n1", tmp_path)
    done = run(*command, fresh=True, CI="true", status=exit_code)
    assert "1 passed, 1 skipped" in done.stdout
    assert ("skipped, which CI does not allow" in done.stdout) == bool(exit_code)
