"""Runs commands of ours, each in a process of its own, and returns what it printed."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

REPOSITORY = Path(__file__).parents[1]
_PLUGINS = "BIASBOARD_PLUGINS"
_SHARED_PLUGINS = ("", str(REPOSITORY / "tests" / "made_suite"))
_READ_AT_IMPORT = ("PYTHON", "OMP_", "XDG_", "HOME", "TZ")
"""Beginnings of variables that are read by imports: a command with others than the tests have is a fresh process."""
_READ_WITH_TORCH = ("HF_",)
"""More of them, for commands that ask a model: only with torch is huggingface_hub imported before a command begins."""
_ASK_TORCH = frozenset({"transformers", "clip", "finetune", "--tokenizer", "--lora"})
"""Words in commands that then load a model or a tokenizer."""
_TORCH = (
    *("torch", "tokenizers", "transformers.generation.utils", "transformers.models.auto.modeling_auto"),
    *("transformers.models.llama.modeling_llama", "transformers.models.clip.modeling_clip", "peft"),
)
_at_start: dict[str, str] = {}


def note_environment() -> None:
    """Take the variables of now for those that all tests have; conftest.py calls it once it has set them."""
    _at_start.clear()
    _at_start.update({"PYTHONPATH": str(REPOSITORY)} | os.environ)


def run(
    *arguments: object,
    cwd: Path = REPOSITORY,
    status: int | None = None,
    input: str = "",
    timeout: float = 580,
    fresh: bool = False,
    with_torch: bool = False,
    **variables: str | Path | None,
) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments that begin with ``-m`` or ``-c``, as a command on the terminal would.

    Args:
        arguments: What follows ``python``; ``-W error`` may stand before ``-m``.
        cwd: Folder to run in.
        status: Exit status that it must have; None for any.
        input: What it reads.
        timeout: Seconds after which it is killed.
        fresh: True for a process that begins with nothing imported and with hashes of its own.
        with_torch: True for a command that imports torch, known of those that name a backend or a tokenizer.
        variables: Environment variables beside those of the tests; None to leave one out.

    Raises:
        AssertionError: another exit status; the message is what was printed.
        subprocess.TimeoutExpired: it took too long.
    """
    options: dict[str, Any] = {"cwd": cwd, "input": input, "fresh": fresh, "with_torch": with_torch}
    with _command(arguments, variables, own_group=False, **options) as command:
        exit_status = command.wait(timeout)
        done = subprocess.CompletedProcess(command.words, exit_status, command.stdout, command.stderr)
    assert status is None or exit_status == status, f"exit status {exit_status}: {done.stdout}{done.stderr}"
    return done


def started(
    *arguments: object, cwd: Path = REPOSITORY, with_torch: bool = False, **variables: str | Path | None
) -> AbstractContextManager[Command]:
    """Start what ``run`` would wait for, in a group of processes of its own; at the end it is killed.

    Until then, no other command of the same kind may begin.
    """
    return _command(arguments, variables, cwd=cwd, input="", fresh=False, with_torch=with_torch, own_group=True)


@dataclass
class Command:
    """A command that is under way."""

    words: list[str]
    process: subprocess.Popen[bytes] | _Child
    files: tuple[IO[bytes], IO[bytes]]

    def poll(self) -> int | None:
        return self.process.poll()

    def wait(self, timeout: float = 580) -> int:
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            raise

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill a started command, and what it has started, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def stdout(self) -> str:
        """What was printed so far."""
        return self._printed(0)

    @property
    def stderr(self) -> str:
        """What was said beside it so far."""
        return self._printed(1)

    def _printed(self, number: int) -> str:
        # Read without moving the position that the command writes at.
        return os.pread(self.files[number].fileno(), 1 << 30, 0).decode()


@contextmanager
def _command(
    arguments: tuple[object, ...],
    variables: Mapping[str, str | Path | None],
    *,
    cwd: Path,
    input: str,
    fresh: bool,
    with_torch: bool,
    own_group: bool,
) -> Iterator[Command]:
    given = {"PYTHONPATH": str(REPOSITORY), **os.environ, "COLUMNS": "200", **variables}
    environment = {name: str(value) for name, value in given.items() if value is not None}
    words = [str(word) for word in arguments]
    plugins = environment.get(_PLUGINS, "")
    # A command that a test calls in its own process leaves switches of progress bars, which every command sets anyway.
    changed = (
        name
        for name in {*environment, *_at_start}
        if environment.get(name) != _at_start.get(name) and not name.endswith("_PROGRESS_BARS")
    )
    with_torch = with_torch or not _ASK_TORCH.isdisjoint(words)
    read_at_import = _READ_AT_IMPORT + (_READ_WITH_TORCH if with_torch else ())
    # Folders of plug-ins that a test makes are those of a single command: only torch takes longer than all our modules.
    is_of_one_command = plugins not in _SHARED_PLUGINS and not with_torch
    is_fresh = fresh or any(name.startswith(read_at_import) for name in changed) or is_of_one_command
    with ExitStack() as opened:
        stdin, stdout, stderr = streams = [opened.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        stdin.write(input.encode())
        stdin.seek(0)
        process: subprocess.Popen[bytes] | _Child
        if is_fresh:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=cwd,
                env=environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=0 if own_group else None,
                # Whoever runs the tests in the background may have told them to ignore Ctrl-C.
                preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
            )
        else:
            message = {"arguments": words, "cwd": str(cwd), "env": environment, "own_group": own_group}
            process = _Child(_warm(plugins, with_torch=with_torch), message, [stream.fileno() for stream in streams])
        command = Command(words, process, (stdout, stderr))
        try:
            yield command
        finally:
            if command.poll() is None:
                command.kill() if own_group else command.send_signal(signal.SIGKILL)
                command.wait()


def output_of(*arguments: object, status: int = 0, **more: Any) -> str:
    """Call ``run``, which takes the same, and return what was printed on both streams."""
    done = run(*arguments, status=status, **more)
    return done.stdout + done.stderr


class _Child:
    """A command in a process that was forked, with the methods of ``subprocess.Popen``."""

    def __init__(self, line: socket.socket, message: Mapping[str, Any], streams: list[int]) -> None:
        content = json.dumps(message).encode() + b"\n"
        sent = socket.send_fds(line, [content], streams)
        line.sendall(content[sent:])
        self._line = line
        self.pid = self._number()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            is_ended, _, _ = select.select([self._line], [], [], timeout)
            if not is_ended:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = self._number()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _number(self) -> int:
        # Byte by byte: a buffer might hold the exit status too, for which wait waits.
        read = b""
        while not read.endswith(b"\n"):
            read += self._line.recv(1)
        return int(read)


@cache
def _warm(plugins: str, *, with_torch: bool) -> socket.socket:
    """The line to the process that forks one for each command; see ``tests/warm_python.py``."""
    line, theirs = socket.socketpair()
    # A process that holds torch takes .5 s longer to copy, so that only commands that ask a model have one of it.
    socket.send_fds(_base(with_torch=with_torch), [f"{plugins}\n".encode()], [theirs.fileno()])
    theirs.close()
    atexit.register(line.close)
    return line


@cache
def _base(*, with_torch: bool) -> socket.socket:
    """The line to a process that imports what no plug-in changes, once; it ends with the line."""
    ours, theirs = socket.socketpair()
    program = str(Path(__file__).with_name("warm_python.py"))
    process = subprocess.Popen(
        [sys.executable, program, str(theirs.fileno()), *(_TORCH if with_torch else ())],
        pass_fds=[theirs.fileno()],
        cwd="/",
        env={name: value for name, value in os.environ.items() if name != _PLUGINS} | {"PYTHONPATH": str(REPOSITORY)},
    )
    theirs.close()

    def end() -> None:
        ours.close()
        process.kill()
        process.wait()

    atexit.register(end)
    return ours
