"""The runner of commands gives what a fresh process gives."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import run, started

PROGRAM = """
import os, sys
print(sys.argv, os.getcwd(), os.environ.get("WORD"), __name__, sys.stdin.read())
print(sys.path[0] in ("", os.getcwd()), file=sys.stderr)
import atexit
atexit.register(print, "at the end")
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("fresh", [False, True])
def test_arguments_folder_environment_streams_and_status_are_those_of_the_command(tmp_path: Path, fresh: bool) -> None:
    done = run("-c", PROGRAM, "7", "a b", cwd=tmp_path, input="asked", WORD="given", fresh=fresh)
    assert done.returncode == 7
    assert done.stdout == f"['-c', '7', 'a b'] {tmp_path} given __main__ asked\nat the end\n"
    assert done.stderr == "True\n"


@pytest.mark.slow
def test_a_command_prints_what_it_prints_in_a_fresh_process() -> None:
    words = ["-m", "evaluators", "run", "--help"]
    fresh = run(*words, fresh=True)
    assert (run(*words).stdout, fresh.returncode) == (fresh.stdout, 0)
    assert "Usage: python -m evaluators run" in fresh.stdout


@pytest.mark.slow
def test_commands_leave_nothing_behind_for_each_other() -> None:
    run("-c", "import evaluators.task, os; evaluators.task.LEFT = 1; os.environ['LEFT'] = 'x'", status=0)
    seen = "import evaluators.task as t, os; print(hasattr(t, 'LEFT'), 'LEFT' in os.environ)"
    assert run("-c", seen, status=0).stdout == "False False\n"


def test_warnings_are_errors_where_that_is_asked_for() -> None:
    program = "import warnings; warnings.warn('mind')"
    assert run("-c", program).returncode == 0
    assert "UserWarning: mind" in run("-W", "error", "-c", program, status=1).stderr


@pytest.mark.slow
def test_a_traceback_and_a_kill_are_seen() -> None:
    assert "ZeroDivisionError" in run("-c", "1 / 0", status=1).stderr
    assert run("-c", "import os; os.kill(os.getpid(), 9)").returncode == -9
    with pytest.raises(subprocess.TimeoutExpired):
        run("-c", "import time; time.sleep(60)", timeout=0.5)
    assert run("-c", "print('goes on')", status=0).stdout == "goes on\n"
    with pytest.raises(AssertionError, match="exit status 3: why"):
        run("-c", "import sys; print('why'); sys.exit(3)", status=0)


STARTS_ANOTHER = """
import subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(other.pid, flush=True)
time.sleep(60)
"""


def is_running(process: int) -> bool:
    """Whether there is such a process, and it is not one that ended and that nobody has waited for."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return shown.stdout.strip() not in ("", "Z", "Zs")


@pytest.mark.slow
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"], ids=["forked", "fresh"])
def test_a_started_command_is_killed_with_what_it_started_or_hears_a_signal(zone: str | None) -> None:
    with started("-c", STARTS_ANOTHER, TZ=zone) as command:
        while not command.stdout.endswith("\n"):
            assert command.poll() is None
        other = int(command.stdout)
        command.kill()
        assert command.wait() == -signal.SIGKILL
    # The signal is sent to both at once, and only the command itself is waited for: the other may end a moment later.
    deadline = time.monotonic() + 30
    while is_running(other):
        assert time.monotonic() < deadline, "what the command started outlived it"
    with started("-c", "import time; print('up', flush=True); time.sleep(60)", TZ=zone) as command:
        while not command.stdout:
            assert command.poll() is None
        command.send_signal(signal.SIGINT)
        assert command.wait() in (1, -signal.SIGINT)
        assert "KeyboardInterrupt" in command.stderr
    assert run("-c", "print('goes on')", status=0).stdout == "goes on\n"


def test_a_module_that_others_import_runs_as_a_program_without_a_warning(tmp_path: Path) -> None:
    assert run("-m", "schemas.validate", tmp_path, status=1).stderr == "error: 1 problem\n"
    assert sys.executable in run("-c", "import sys; print(sys.executable)").stdout
