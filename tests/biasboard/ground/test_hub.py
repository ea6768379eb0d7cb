"""Looking for the Hub: once, briefly, and never where a copy or a setting makes it needless."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.commands import run
from tests.evaluators.fake_endpoint import save_tokenizer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """A Hub that has nothing, and notes what it is asked."""

    asked: ClassVar[list[str]] = []
    status: ClassVar[int] = 404

    def do_HEAD(self) -> None:
        self.asked.append(self.path)
        is_root = self.path.removeprefix("http://hub.invalid") in ("", "/")
        self.send_response(200 if is_root and self.status < 500 else self.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def hub(status: int = 404) -> Iterator[str]:
    Hub.asked, Hub.status = [], status
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextmanager
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def online(endpoint: str, home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the Hub may be looked for."""
    variables: dict[str, Any] = {name: None for name in os.environ if name.startswith("HF_")} | more
    variables |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    return run(*arguments, timeout=60, **variables)


def found_model(endpoint: str, home: Path) -> subprocess.CompletedProcess[str]:
    program = (
        "from biasboard.ground.errors import BiasboardError\nfrom evaluators.models.model_files import find_model\n"
        "try:\n    print(find_model('made-org/made-model', None))\n"
        "except BiasboardError as error:\n    print(error)\n"
    )
    return online(endpoint, home, "-c", program)


@pytest.mark.slow
@pytest.mark.parametrize(("trouble", "told"), [("silent", "2.5 s"), ("HTTP 503", "HTTP 503")])
def test_a_hub_that_cannot_be_reached_is_said_in_one_line_with_the_ways_out(
    trouble: str, told: str, tmp_path: Path
) -> None:
    with silent() if trouble == "silent" else hub(503) as endpoint:
        done = found_model(endpoint, tmp_path)
    if trouble == "HTTP 503":
        assert len(Hub.asked) == 1, "it was asked again after it was known to be away"
    assert done.stderr == "", "the client's own tries are seen"
    assert done.stdout.count("\n") == 1
    reason = ("'made-org/made-model'", "neither a folder nor downloaded", endpoint.removeprefix("http://"), told)
    assert [part for part in (*reason, "local folder", "go online", "HF_ENDPOINT") if part not in done.stdout] == []


@pytest.mark.slow
def test_the_hub_is_looked_for_behind_a_proxy_and_asked_by_the_client(tmp_path: Path) -> None:
    with hub() as endpoint:
        done = found_model(endpoint, tmp_path)
    assert "cannot be found" in done.stdout
    assert "reached" not in done.stdout
    assert any("made-org/made-model" in path for path in Hub.asked)
    program = "from biasboard.ground.hub import hub_fault\nprint(hub_fault())\n"
    with hub() as proxy:
        behind = online("http://hub.invalid", tmp_path, "-c", program, http_proxy=proxy, no_proxy="")
        assert [path.rstrip("/") for path in Hub.asked] == ["http://hub.invalid"]
    assert behind.stdout == "None\n"


@pytest.mark.slow
def test_what_was_downloaded_is_taken_without_the_hub(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra hf is not installed")
    folder = tmp_path / "hub" / "models--made-org--made-model"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs/main").write_text(COMMIT)
    snapshot = save_tokenizer(folder / "snapshots" / COMMIT)
    (snapshot / "config.json").write_text("{}")
    program = (
        "from evaluators.models.model_files import find_model\nfrom evaluators.models.tokenizer import load_tokenizer\n"
        "print(find_model('made-org/made-model', None).revision, load_tokenizer('made-org/made-model').end_id)\n"
    )
    with hub(503) as endpoint:
        done = online(endpoint, tmp_path, "-c", program)
        assert (done.returncode, done.stdout) == (0, f"{COMMIT} 1\n"), done.stderr
        assert len(Hub.asked) == 1
        shutil.rmtree(folder)
        assert "neither a folder nor downloaded" in online(endpoint, tmp_path, "-c", program).stderr
