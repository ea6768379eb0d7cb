"""What commands show while they work: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from biasboard.ground.progress import progress, steps, working
from tests.commands import REPOSITORY
from tests.terminal import on_terminal


def said_until(capsys: pytest.CaptureFixture[str], is_enough: Callable[[str], bool]) -> str:
    said = ""
    for _ in range(1000):
        said += capsys.readouterr().err
        if is_enough(said):
            break
        threading.Event().wait(0.01)
    return said


def test_a_silent_command_says_what_it_does_inside(capsys: pytest.CaptureFixture[str]) -> None:
    with working("loading lab/model", silence=0.01):
        said = said_until(capsys, lambda said: said.count("\n") >= 3)
    assert re.match(r"(loading lab/model(: \d+ s so far| \.\.\.)\n){3}", said), said
    assert not any(thread.name == "progress" for thread in threading.enumerate())
    with working("computing metrics", silence=0.01), progress("sentiment by x", 40, done=3):
        said = said_until(capsys, lambda said: "sentiment" in said)
    assert "sentiment by x: 3 of 40, 0 s so far\n" in said


def test_quick_work_says_nothing_and_longer_work_a_line_at_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress("asking", 50) as advance:
        for _ in range(50):
            advance(1)
    with steps("reading") as step, working("writing"):
        step("reading more", 1, 3)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("biasboard.ground.progress._LEAST_SECONDS", 0.1)
    # Items of an earlier run say nothing about the pace.
    for n_earlier, n, pace in ((0, 50, r"[\d,.]+"), (10_000, 1, r"[0-5]\.\d")):
        with progress("asking", n_earlier + n) as advance:
            advance(n_earlier, earlier=True)
            threading.Event().wait(0.2)
            advance(n)
        counted = f"{n_earlier + n:,} of {n_earlier + n:,}"
        assert re.fullmatch(rf"asking: {counted}, {pace} items/s, 0 s in all\n", capsys.readouterr().err)


def test_an_error_ends_what_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="wrong"), working("outer"), steps() as step:
        step("inner", 0, 10)
        raise ValueError("wrong")
    monkeypatch.setattr("biasboard.ground.progress._LEAST_SECONDS", 0.0)
    with progress("again", 1) as advance:
        advance(1)
    assert capsys.readouterr().err.startswith("again: 1 of 1")


def test_a_terminal_shows_a_bar_with_the_time_left() -> None:
    program = (
        "import time\n"
        "from biasboard.ground.progress import progress, working\n"
        "with working('opening lab/model'), progress('type2', 1_000_000, done=10) as advance:\n"
        "    while True:\n"
        "        advance(1); time.sleep(0.01)\n"
    )
    shown = on_terminal([sys.executable, "-c", program], until=" left")
    assert "opening lab/model" in shown
    assert re.search(r"type2 .*/1000000 [\d.]+ items/s, \d+ (h|min) \d+ (min|s) left", shown), shown[-300:]


def test_results_reach_standard_output_beside_a_bar(tmp_path: Path) -> None:
    program = (
        "from biasboard.ground.progress import steps\n"
        "with steps() as step:\n"
        "    step('computing', 1, 2); print('a result')\n"
        f"open({str(tmp_path / 'ended')!r}, 'w').close()\n"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    os.close(ours)
    assert done.stdout == b"a result\n"
