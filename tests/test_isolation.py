"""What tests rely on: no network and no keys, commands as in a fresh process, and skips that CI refuses."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.commands import run, started
from tests.workers import portion_of


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


SKIPPING = """
import pytest

def test_passes():
    assert True

def test_skips():
    pytest.skip("{reason}")
"""


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
    done = run(*command, fresh=True, CI=ci, status=exit_code)
    assert "1 passed, 1 skipped" in done.stdout
    assert ("skipped, which CI does not allow" in done.stdout) == bool(exit_code)


PROGRAM = """
import os, sys
print(sys.argv, os.getcwd(), os.environ.get("WORD"), __name__, sys.stdin.read())
print(sys.path[0] in ("", os.getcwd()), file=sys.stderr)
import atexit
atexit.register(print, "at the end")
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("fresh", [False, True])
def test_a_command_has_the_arguments_folder_environment_streams_and_status_of_a_process(
    tmp_path: Path, fresh: bool
) -> None:
    done = run("-c", PROGRAM, "7", "a b", cwd=tmp_path, input="asked", WORD="given", fresh=fresh, status=7)
    assert done.stdout == f"['-c', '7', 'a b'] {tmp_path} given __main__ asked\nat the end\n"
    assert done.stderr == "True\n"
    warns = "import warnings; warnings.warn('mind')"
    run("-c", warns, fresh=fresh, status=0)
    assert "UserWarning: mind" in run("-W", "error", "-c", warns, fresh=fresh, status=1).stderr
    # Another module imports this one too.
    assert run("-m", "schemas.validate", tmp_path, fresh=fresh, status=1).stderr == "error: 1 problem\n"


@pytest.mark.slow
def test_commands_leave_nothing_behind_and_their_ends_are_seen() -> None:
    run("-c", "import evaluators.task, os; evaluators.task.LEFT = 1; os.environ['LEFT'] = 'x'", status=0)
    seen = "import evaluators.task as t, os; print(hasattr(t, 'LEFT'), 'LEFT' in os.environ)"
    assert run("-c", seen, status=0).stdout == "False False\n"
    assert "ZeroDivisionError" in run("-c", "1 / 0", status=1).stderr
    assert run("-c", "import os; os.kill(os.getpid(), 9)").returncode == -9
    with pytest.raises(subprocess.TimeoutExpired):
        run("-c", "import time; time.sleep(60)", timeout=0.5)
    with pytest.raises(AssertionError, match="exit status 3: why"):
        run("-c", "import sys; print('why'); sys.exit(3)", status=0)
    assert run("-c", "print('goes on')", status=0).stdout == "goes on\n"


STARTS_ANOTHER = """
import subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(other.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"], ids=["forked", "fresh"])
def test_a_started_command_is_killed_with_what_it_started_or_hears_a_signal(zone: str | None) -> None:
    with started("-c", STARTS_ANOTHER, TZ=zone) as command:
        while not command.stdout.endswith("\n"):
            assert command.poll() is None
        other = command.stdout.strip()
        command.kill()
        assert command.wait() == -signal.SIGKILL
    # The signal is sent to both at once, and only the command itself is waited for: the other may end a moment later.
    deadline = time.monotonic() + 30
    status = ["ps", "-o", "stat=", "-p", other]
    while subprocess.run(status, capture_output=True, text=True, check=False).stdout.strip() not in ("", "Z", "Zs"):
        assert time.monotonic() < deadline, "what the command started outlived it"
    with started("-c", "import time; print('up', flush=True); time.sleep(60)", TZ=zone) as command:
        while not command.stdout:
            assert command.poll() is None
        command.send_signal(signal.SIGINT)
        assert command.wait() in (1, -signal.SIGINT)
        assert "KeyboardInterrupt" in command.stderr


ONE_TEST = "def test_one(): assert True\n"
TWO_TESTS = f"{ONE_TEST}def test_two(): assert True\n"
FILES = {
    "test_a.py": TWO_TESTS,
    "test_b.py": TWO_TESTS,
    "test_slow.py": f"import pytest\n{ONE_TEST}@pytest.mark.slow\ndef test_two(): assert True\n",
    "tests/ray/test_faults.py": TWO_TESTS,
    "tests/ray/test_parity.py": TWO_TESTS,
    "tests/rays/test_c.py": "import os\ndef test_one(): assert os.environ['OMP_NUM_THREADS'] == '1'\n",
}


@pytest.mark.slow
def test_folders_that_share_much_stay_in_one_process_and_portions_with_a_slow_test_come_first(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\nmarkers =\n    slow: long\n")
    options = ("-p", "no:cacheprovider", "-v", "-n2", "--dist=loadfile", "--no-loadscope-reorder")
    done = run(
        "-m", "pytest", "-p", "tests.conftest", *options, cwd=tmp_path, status=0, fresh=True, OMP_NUM_THREADS=None
    )
    found = re.findall(r"^\[(gw\d)\].* PASSED (\S+)", done.stdout, flags=re.MULTILINE)
    processes: dict[str, set[str]] = {}
    for process, name in found:
        processes.setdefault(portion_of(name), set()).add(process)
    assert {*processes} == {"test_a.py", "test_b.py", "test_slow.py", "tests/ray", "tests/rays/test_c.py"}
    assert (len(found), {*map(len, processes.values())}, set.union(*processes.values())) == (11, {1}, {"gw0", "gw1"})
    (slow,) = processes["test_slow.py"]
    assert next(name for process, name in found if process == slow) == "test_slow.py::test_one"
