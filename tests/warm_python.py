"""A Python process that has imported all that commands need, and forks one child for each command.

``tests/commands.py`` starts it and sends it what to run. A child has its own arguments, folder, environment and
streams; it differs from a fresh process only in what was imported before. That is most of what a short command takes:
1.4 s of 1.6.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import socket
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PACKAGES = ("biasboard", "schemas", "builders", "evaluators", "leaderboard")
IMPORTED = (
    *(
        "numpy",
        "pandas",
        "pyarrow.parquet",
        "pyarrow.compute",
        "pydantic",
        "typer.core",
        "typer.rich_utils",
        "jsonschema",
    ),
    *("jinja2", "scipy.stats", "scipy.optimize"),
)
"""None of them may read the environment when it is imported, but for what all tests have in common."""


def serve(line: socket.socket, more: Sequence[str]) -> None:
    """Import these modules too, and run commands until the other side ends; returns only in a child, which runs one."""
    for name in (*IMPORTED, *more, *modules_of_ours()):
        with suppress(ImportError):
            importlib.import_module(name)
    # Children then copy no pages only because the collector looks at old objects.
    gc.collect()
    gc.freeze()
    while True:
        message, streams, _, _ = socket.recv_fds(line, 1 << 24, 3)
        if not message:
            sys.exit()
        while not message.endswith(b"\n"):
            message += line.recv(1 << 24)
        child = os.fork()
        if child == 0:
            line.close()
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
            become(json.loads(message))
            return
        for stream in streams:
            os.close(stream)
        line.sendall(b"%d\n" % child)
        line.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def modules_of_ours() -> list[str]:
    """Return the names of all modules of the packages."""
    repository = Path(__file__).parents[1]
    paths = (path for package in PACKAGES for path in sorted((repository / package).rglob("*.py")))
    names = (".".join(path.relative_to(repository).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def become(command: dict[str, Any]) -> None:
    """Take over the arguments, the folder and the environment of a command."""
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


if __name__ == "__main__":
    # The folder of this file holds no modules for others.
    del sys.path[0]
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
    # Run here, where it ends as a module does that Python was started with.
    kind, name, *rest = sys.argv
    if kind == "-c":
        sys.argv = ["-c", *rest]
        exec(compile(name, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [name, *rest]
        # Another module may have imported it, which a fresh process would not know yet.
        sys.modules.pop(name, None)
        runpy.run_module(name, run_name="__main__", alter_sys=True)
