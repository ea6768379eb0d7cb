"""What commands show while they work: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from biasboard.ground.progress import duration, longest_silence, progress, steps, working
from tests.terminal import on_terminal

REPOSITORY = Path(__file__).parents[3]


def test_a_silent_command_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    said = ""
    with working("loading lab/model", silence=0.01):
        for _ in range(1000):
            said += capsys.readouterr().err
            if said.count("\n") >= 3:
                break
            threading.Event().wait(0.01)
    assert re.match(r"(loading lab/model(: \d+ s so far| \.\.\.)\n){3}", said), said
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_hours_of_work_take_few_lines() -> None:
    at, n = 0.0, 0
    while at < 4 * 3600:
        at, n = at + longest_silence(at), n + 1
    assert n < 90


def test_what_is_done_inside_is_what_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = ""
    with working("computing metrics", silence=0.01), progress("sentiment by x", 40, done=3):
        for _ in range(1000):
            said += capsys.readouterr().err
            if "sentiment" in said:
                break
            threading.Event().wait(0.01)
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
    with progress("asking", 50) as advance:
        threading.Event().wait(0.2)
        advance(50)
    assert re.fullmatch(r"asking: 50 of 50, [\d,.]+ items/s, 0 s in all\n", capsys.readouterr().err)


def test_items_of_an_earlier_run_say_nothing_about_the_pace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("biasboard.ground.progress._LEAST_SECONDS", 0.1)
    with progress("asking", 10_001) as advance:
        advance(10_000, earlier=True)
        threading.Event().wait(0.2)
        advance(1)
    assert re.fullmatch(r"asking: 10,001 of 10,001, [0-5]\.\d items/s, 0 s in all\n", capsys.readouterr().err)


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
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=theirs, check=True
    )
    os.close(theirs)
    os.close(ours)
    assert done.stdout == b"a result\n"


def test_durations_are_words() -> None:
    assert duration(59.6) == "1 min 0 s"
