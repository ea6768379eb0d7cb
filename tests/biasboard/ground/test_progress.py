"""What commands show while they work: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable

import pytest

from biasboard.ground.progress import progress, steps, working
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


@pytest.mark.slow
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


def test_a_terminal_shows_a_bar_with_the_time_left() -> None:
    program = (
        "import time\n"
        "from biasboard.ground.progress import progress, working\n"
        "with working('opening lab/model'), progress('type2', 1_000_000, done=10) as advance:\n"
        "    print('a result', flush=True)\n"
        "    while True:\n"
        "        advance(1); time.sleep(0.01)\n"
    )
    shown = on_terminal([sys.executable, "-c", program], until=" left")
    # Standard output is no terminal here: what is printed goes to its file, and not above the bar.
    assert "a result" not in shown
    assert "opening lab/model" in shown
    assert re.search(r"type2 .*/1000000 [\d.]+ items/s, \d+ (h|min) \d+ (min|s) left", shown), shown[-300:]
