"""A Python process that has imported all that commands need, and forks one child for each command.

``tests/commands.py`` starts it and sends it what to run. A child has its own arguments, folder, environment and
streams; it differs from a fresh process only in what was imported before. That is most of what a short command takes:
1.4 s of 1.6.

The process that is started holds only what others wrote, which no plug-in changes; it forks one process for each folder
of plug-ins, which imports our modules and then forks the commands.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import multiprocessing.util
import os
import runpy
import signal
import socket
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

PACKAGES = ("biasboard", "schemas", "builders", "evaluators", "leaderboard")
IMPORTED = (
    *("numpy", "pandas", "pyarrow.parquet", "pyarrow.compute", "pydantic", "typer.core", "typer.rich_utils"),
    *("jsonschema", "jinja2", "scipy.stats", "scipy.optimize"),
)
"""None of them may read the environment when it is imported, but for what all tests have in common."""


def serve_plugins(line: socket.socket, modules: Sequence[str]) -> None:
    """Import these modules, and fork a process for each folder of plug-ins that is asked for; returns as ``serve``."""
    imported(modules)
    # The end of a process that nobody waits for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, sockets, _, _ = socket.recv_fds(line, 1 << 16, 1)
        if not message:
            sys.exit()
        (theirs,) = sockets
        if os.fork() == 0:
            line.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if plugins := message.decode().strip():
                os.environ["BIASBOARD_PLUGINS"] = plugins
            serve(socket.socket(fileno=theirs))
            return
        os.close(theirs)


def imported(modules: Sequence[str]) -> None:
    for name in modules:
        with suppress(ImportError):
            importlib.import_module(name)
    # Children then copy no pages only because the collector looks at old objects.
    gc.collect()
    gc.freeze()


def serve(line: socket.socket) -> None:
    """Import our modules, and run commands until the other side ends; returns only in a child, which runs one."""
    repository = Path(__file__).parents[1]
    paths = (path for package in PACKAGES for path in sorted((repository / package).rglob("*.py")))
    names = (".".join(path.relative_to(repository).with_suffix("").parts) for path in paths)
    imported([name.removesuffix(".__init__") for name in names if not name.endswith("__main__")])
    from leaderboard.pages.publishing import templates

    # Reading the templates of pages takes a fifth of a small board.
    for name in templates().list_templates():
        templates().get_template(name)
    while True:
        message, streams, _, _ = socket.recv_fds(line, 1 << 24, 3)
        if not message:
            sys.exit()
        while not message.endswith(b"\n"):
            message += line.recv(1 << 24)
        command = json.loads(message)
        child = os.fork()
        if child == 0:
            line.close()
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
            become(command)
            return
        if command["own_group"]:
            os.setpgid(child, child)
        for stream in streams:
            os.close(stream)
        line.sendall(b"%d\n" % child)
        line.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def become(command: dict[str, Any]) -> None:
    """Take over the arguments, the folder and the environment of a command."""
    if command["own_group"]:
        os.setpgid(0, 0)
    # Whoever runs the tests in the background may have told them to ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    arguments = command["arguments"]
    if arguments[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        arguments = arguments[2:]
    places = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:0] = [command["cwd"], *places]
    sys.argv = arguments
    # A copy of a process that holds torch takes longer than what it would spare, and asking a model needs no workers.
    if "torch" not in sys.modules:
        keep_fork_server_ready()


def keep_fork_server_ready() -> None:
    """Let the server from which ``leaderboard.verify.intake`` forks its workers be a copy of this process.

    A fresh one imports the same modules again, for 3 s. The copy is made now, while there are no threads whose locks it
    would inherit, and waits until it is wanted; it ends with this process.
    """
    ours, theirs = socket.socketpair()
    copy = os.fork()
    if copy == 0:
        ours.close()
        serve_workers(theirs)
    theirs.close()
    # Left to the end of the process, it would be warned of where warnings are errors.
    atexit.register(ours.close)
    util: Any = multiprocessing.util
    spawn = util.spawnv_passfds

    def spawn_or_wake(path: bytes, arguments: Sequence[str], passed: Sequence[int]) -> Any:
        program = arguments[-1]
        if "multiprocessing.forkserver" not in program:
            return spawn(path, arguments, passed)
        # Another one later would be fresh.
        util.spawnv_passfds = spawn
        socket.send_fds(ours, [json.dumps([program, passed]).encode()], passed)
        return copy

    util.spawnv_passfds = spawn_or_wake


def serve_workers(line: socket.socket) -> NoReturn:
    """Wait for the program of a server of workers and its open files, and run it under the same numbers of files."""
    status = 1
    try:
        message, received, _, _ = socket.recv_fds(line, 1 << 20, 8)
        if message:
            program, wanted = json.loads(message)
            # First out of the way of one another.
            moved = [fcntl.fcntl(number, fcntl.F_DUPFD, 1_000) for number in received]
            for source, number in zip(moved, wanted, strict=True):
                os.dup2(source, number)
            for number in {*moved, *received}.difference(wanted):
                os.close(number)
            exec(program, {"__name__": "__main__"})
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    # The folder of this file holds no modules for others.
    del sys.path[0]
    serve_plugins(socket.socket(fileno=int(sys.argv[1])), (*IMPORTED, *sys.argv[2:]))
    # Run here, where it ends as a module does that Python was started with.
    kind, name, *rest = sys.argv
    if kind == "-c":
        sys.argv = ["-c", *rest]
        exec(compile(name, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [name, *rest]
        # Another module may have imported it, which a fresh process would not know yet.
        sys.modules.pop(name, None)
        sys.modules.pop(f"{name}.__main__", None)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
