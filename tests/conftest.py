"""What every test gets: no network, no keys, an empty Hugging Face home, and the data beside the repository."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.commands import note_environment
from tests.workers import Workers

REPOSITORY = Path(__file__).parents[1]
# Plug-ins that tests add; they are no modules of ours before.
collect_ignore = ["made_suite"]
SHARED_DATA_ABSENT = "../shared/data is absent: the published data sets may not be copied into the repository"
LOOPBACK_HOSTS = ("localhost", "::1", "0.0.0.0", "::", "")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the environment before a test module imports huggingface_hub, which reads it once."""
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith("HF_"):
            del os.environ[name]
    home = tempfile.mkdtemp(prefix="biasboard-hf-home-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ.update(HF_HOME=home, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    # typer colours and wraps what it prints on some continuous integration hosts, also into a pipe.
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE"):
        os.environ.pop(name, None)
    os.environ.update(NO_COLOR="1", COLUMNS="200")
    # Tests change code and files under one path; only those of the memory itself may remember.
    os.environ["BIASBOARD_MEMORY"] = "off"
    sys.addaudithook(_refuse_other_hosts)
    # How long making data takes says something about the machine, and nothing about the code.
    with contextlib.suppress(ImportError):  # The tests with vLLM do without.
        from hypothesis import HealthCheck, settings

        settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("any-machine")
    config.pluginmanager.register(SkipPolicy(active=bool(os.environ.get("CI"))))
    config.pluginmanager.register(Workers())
    # Under nohup it is ignored, and so it would be in every command that a test starts.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    note_environment()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what opens a browser: its event loop stays in the process, where other tests want to start one."""
    for item in items:
        if "chromium_executable" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def _refuse_other_hosts(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        # The address of a Unix socket is a path.
        host = address[0] if isinstance(address, tuple) else None
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if isinstance(host, bytes):
        host = host.decode()
    if isinstance(host, str) and host not in LOOPBACK_HOSTS and not host.startswith("127."):
        raise RuntimeError(f"{event} to '{host}': tests reach nothing but this machine; serve it on 127.0.0.1")


class SkipPolicy:
    """In continuous integration a skipped test is a failure, unless it needs a harness or data we may not share."""

    def __init__(self, *, active: bool) -> None:
        self._active = active
        self._refused: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Note a test or a module that was skipped."""
        if not self._active or not report.skipped or hasattr(report, "wasxfail"):
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        # The harnesses are yardsticks, which are not installed where the tests run.
        excuses = ("../shared/data", "lm-eval is not installed", "inspect_ai is not installed")
        if not any(excuse in reason for excuse in excuses):
            self._refused.append(f"{report.nodeid}: {reason}")

    pytest_collectreport = pytest_runtest_logreport

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the session."""
        if self._refused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which tests, and why."""
        if self._refused:
            terminalreporter.section("skipped, which CI does not allow", red=True)
            for line in self._refused:
                terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of published data sets beside the repository."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(SHARED_DATA_ABSENT)
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture(scope="session")
def chromium_executable() -> str | None:
    """A browser on PATH for playwright's ``executable_path``; None for the one that playwright installed itself."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next((path for name in names if (path := shutil.which(name))), None)
    chosen = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    own = [Path.home() / caches / "ms-playwright" for caches in (".cache", "Library/Caches")]
    folders = [Path(chosen)] if chosen else own
    if found is None and not any(path for folder in folders for path in folder.glob("chromium*")):
        pytest.skip("no Chromium on PATH and none from playwright; install one, then run: make test-all")
    return found
