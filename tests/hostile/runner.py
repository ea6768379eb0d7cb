"""Runs a command on bad input in this process, and checks that it ends as every command promises to.

A table is a dictionary of rows, ``{name: Row(...)}``, and a test over it::

    TABLE = {
        "no options": Row(["validate", "INPUT"], holding('{"options": []}'), says="has no option"),
        **rows(["build", "choices", "--input", "INPUT", "--out", "OUT"], NO_FILES, NO_TEXTS, NO_CSV),
    }

    @pytest.mark.parametrize("name", TABLE)
    def test_my_inputs_end_in_one_line(name: str, tmp_path: Path) -> None:
        ended(TABLE[name], tmp_path)

In a command, ``INPUT`` stands for the path that is made, and ``OUT`` for one where nothing is yet. A row takes a few
milliseconds, since no process is started.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from typer.testing import CliRunner, Result

from biasboard.commands import app
from biasboard.ground.command_line import EXIT_ERROR, EXIT_RUN_FAILED
from tests.hostile.inputs import Make
from tests.terminal import without_progress

_SECONDS = 20
_MOST_CHARACTERS = 1_300
"""Length of a message, in which the folder of the test counts as one character."""
_JUDGES = {"export", "validate", "verify"}
"""Commands that say a line about each input, and then how many are bad."""
USAGE = 2


class Row(NamedTuple):
    """A command on some input."""

    command: Sequence[str]
    """Words after ``biasboard``."""
    make: Make = lambda path: None
    """Makes the input at a path."""
    says: str = ""
    """A part of the message, with ``INPUT`` for the path."""
    environment: Mapping[str, str | None] = {}
    """Environment variables to set, or to leave out where None."""
    named: str = "input"
    """Name of the input within the folder of the test."""
    may_pass: bool = False
    """True if the input may also be accepted."""


def rows(command: Sequence[str], *tables: Mapping[str, Make], **more: object) -> dict[str, Row]:
    """Return a row of this command for each input of the tables; ``more`` are other fields of ``Row``."""
    words = " ".join(word for word in command if word not in ("INPUT", "OUT"))
    return {f"{words}: {name}": Row(command, make, **more) for table in tables for name, make in table.items()}  # type: ignore[arg-type]


def ended(row: Row, here: Path) -> Result:
    """Make the input, run the command, and check its end.

    It ends with status 1 or 3 after one printable line of bounded length with a remedy, or, for an option that the row
    says something about, with a box of usage and status 2; with no traceback, within 20 s; and every file of the empty
    folder in which it runs is as it was before.
    """
    place = here / row.named
    row.make(place)
    words = [word.replace("INPUT", str(place)).replace("OUT", str(here / "made")) for word in row.command]
    before = _tree(here)
    with _within_seconds(words), patch.object(sys, "argv", ["biasboard", *words]), chdir(here):
        done = CliRunner().invoke(app, words, env=row.environment, prog_name="biasboard")
    error = done.exception
    if error is not None and not isinstance(error, SystemExit):
        raise AssertionError(f"{words}: ends with {type(error).__name__}") from error
    said = without_progress(done.stderr).replace(str(here), "~")
    if done.exit_code == 0:
        assert row.may_pass, f"{words}: was accepted: {done.stdout}"
        return done
    assert _tree(here) == before, f"{words}: left something behind: {said}"
    assert "Traceback" not in said + done.stdout
    assert row.says.replace("INPUT", f"~/{row.named}") in re.sub(r"\s*│\n│\s*", " ", said), said
    if done.exit_code == USAGE:
        assert row.says, f"a wrong option of the table, or say what is wrong with it: {said}"
        assert len(said) < 3 * _MOST_CHARACTERS, said
        return done
    assert done.exit_code in (EXIT_ERROR, EXIT_RUN_FAILED), done.exit_code
    is_judged = row.command[0] in _JUDGES
    line, end, more = (done.stdout.replace(str(here), "~") + said if is_judged else said).partition("\n")
    assert (end, more) == ("\n", "") or (is_judged and more.count("\n") < 10), f"more than a line: {said}"
    assert is_judged or line.startswith("error: "), line
    assert line.isprintable(), ascii(line)
    assert len(line) < _MOST_CHARACTERS, f"{len(line)} characters: {line[:3000]}"
    assert "; " in line or ": give " in line, f"no remedy: {line}"
    return done


def _tree(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return what lies in a folder, without following links: kind, size and time of each file."""
    found = {}
    for path in sorted(folder.rglob("*")):
        is_at = path.lstat()
        of_file = (is_at.st_size, is_at.st_mtime_ns) if path.is_file() and not path.is_symlink() else (0, 0)
        found[os.fsdecode(path.relative_to(folder))] = (is_at.st_mode, *of_file)
    return found


class _HangsError(BaseException):
    """A command that takes too long; no handler of ours takes it for an error of the user."""


@contextmanager
def _within_seconds(words: Sequence[str]) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise _HangsError(f"{words}: takes more than {_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
