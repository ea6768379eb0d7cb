"""Each exit status that the page of commands promises."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest
import typer

from biasboard.ground import command_line
from biasboard.ground.command_line import ANSWERS_KEPT, EXIT_ERROR, EXIT_RUN_FAILED, one_line_errors
from biasboard.ground.errors import DataError
from tests.commands import REPOSITORY, run, started
from tests.evaluators.fake_endpoint import FakeEndpoint, Fault, save_tokenizer
from tests.evaluators.made_data import made_items, write_dataset
from tests.terminal import without_progress

STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type2": made_items(20)})


def test_the_page_and_the_help_name_the_same_statuses() -> None:
    page = (REPOSITORY / "site/docs/commands.md").read_text(encoding="utf-8")
    table = page.partition("## Exit status")[2].partition("##")[0]
    usage = 2
    failures = (EXIT_ERROR, usage, EXIT_RUN_FAILED, command_line.EXIT_GATE)
    expected = [0, *failures, *(128 + number for number in STOPPING)]
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE)] == expected
    assert [int(number) for number in re.findall(r"\d+", command_line.EXIT_STATUS)] == expected


def with_room_for(n_bytes: int, *arguments: str | Path) -> tuple[int, str]:
    """A command whose files cannot grow beyond a size, as on a full disk."""
    program = (
        "import resource, sys\n"
        "from biasboard.__main__ import main\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({n_bytes}, {n_bytes}))\n"
        f"sys.argv = {['biasboard', *map(str, arguments)]!r}\n"
        "main()\n"
    )
    done = run("-c", program)
    return done.returncode, done.stderr


@pytest.mark.slow
def test_3_is_a_run_whose_disk_is_full_and_1_a_dataset(dataset: Path, tmp_path: Path) -> None:
    asked = ("run", "--backend", "baseline", "--model", "uniform", "--dataset", dataset, "--out", tmp_path / "runs")
    code, said = with_room_for(20_000, *asked)
    assert (code, without_progress(said).count("\n")) == (EXIT_RUN_FAILED, 1), said
    assert "responses.sqlite: " in said
    assert ", and the answers so far are kept; free space on the disk or of your quota, and repeat the same" in said
    run("-m", "biasboard", *asked, status=0)
    built = ("build", "synthbias", "--limit", "80", "--out", tmp_path / "new")
    code, said = with_room_for(5_000, *built)
    full = f"error: {tmp_path / 'new'}: the disk is full; free space on the disk or of your quota, and repeat the same"
    assert (code, without_progress(said)) == (EXIT_ERROR, f"{full} command\n")
    assert {path.name for path in tmp_path.iterdir()} == {"data", "runs"}


@pytest.mark.slow
@pytest.mark.parametrize("number", STOPPING)
def test_129_130_and_143_are_signals_and_the_last_line_says_how_to_go_on(
    number: signal.Signals, dataset: Path, tmp_path: Path
) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(save_tokenizer(tmp_path / "tokenizer") / "tokenizer.json"))
    with FakeEndpoint(tokenizer, before=lambda received: Fault(hang=True)) as endpoint:
        words = ("-m", "biasboard", "run", "--dataset", dataset, "--backend", "openai", "--model", "made")
        asked = ("--base-url", endpoint.url, "--prompt", "mcq2-generate-v1", "--out", tmp_path / "runs")
        with started(*words, *asked, OPENAI_API_KEY="none") as command:
            while not endpoint.n_received:
                assert command.poll() is None, command.stderr
                time.sleep(0.01)
            command.send_signal(number)
            assert command.wait() == 128 + number, command.stderr
            assert command.stderr.splitlines()[-1] == ANSWERS_KEPT


@pytest.mark.slow
def test_a_signal_before_a_command_begins_is_told_in_a_line() -> None:
    number = signal.SIGHUP
    # The command is still importing when it raises the signal itself.
    signals = f"import signal; signal.raise_signal({number:d})"
    program = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'evaluators.commands.run': {signals}\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['biasboard', 'run']\n"
        "from biasboard.__main__ import main\n"
        "main()\n"
    )
    done = run("-c", program, fresh=True, status=128 + number)
    assert done.stderr == "stopped before anything was asked or written; repeat the same command\n"


def test_a_signal_that_was_ignored_stays_so() -> None:
    program = (
        "import signal\n"
        "from biasboard.ground.errors import stop_at_once, stoppable\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "stop_at_once()\n"
        "with stoppable():\n"
        "    signal.raise_signal(signal.SIGHUP)\n"
    )
    assert run("-c", program, fresh=True, status=0).stderr == ""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError(), "this is a fault of biasboard (ZeroDivisionError: ZeroDivisionError)"),
        (ValueError("\x1b[31m" + "x" * 9000), "this is a fault of biasboard (ValueError: \\x1b[31mxxx"),
        (MemoryError(), "no memory is left"),
        (DataError("a\x1b[31m\nb"), "a\\x1b[31m\\nb"),
        (ExceptionGroup("many", [ValueError("one")]), "this is a fault of biasboard (ExceptionGroup: many"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_that_nobody_expects_is_a_line_too(
    error: Exception, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(typer.Exit) as ended, one_line_errors():
        raise error
    assert ended.value.exit_code == EXIT_ERROR
    is_ours = isinstance(error, DataError)
    with pytest.raises(typer.Exit) as ended, one_line_errors(ANSWERS_KEPT):
        raise error
    assert ended.value.exit_code == (EXIT_ERROR if is_ours else EXIT_RUN_FAILED)
    first, second = capsys.readouterr().err.splitlines()
    assert first == second
    assert first.startswith(f"error: {told}")
    assert len(first) < 600
    if not isinstance(error, MemoryError) and not is_ours:
        monkeypatch.setenv(command_line.TRACEBACK, "1")
        with pytest.raises(type(error)), one_line_errors():
            raise error


def test_a_command_that_cannot_be_imported_says_so_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    broken = command_line.LazyCommand("tests.not_there:app", "Made.")
    application = command_line.command_group("made", {"broken": broken})
    with pytest.raises(SystemExit):
        application(["broken"])
    assert capsys.readouterr().err.count("\n") == 1
