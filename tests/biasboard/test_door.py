"""The command ``biasboard``: one door to the commands of all packages."""

from __future__ import annotations

import tomllib
from functools import partial

import pytest

from evaluators.__main__ import COMMANDS as EVALUATORS
from tests.commands import REPOSITORY, run

biasboard = partial(run, "-m", "biasboard")


@pytest.mark.slow
def test_the_help_names_every_command_and_the_exit_statuses_without_loading_any() -> None:
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from biasboard.commands import app\n"
        "shown = CliRunner().invoke(app, ['--help'], prog_name='biasboard').output\n"
        "print(shown)\n"
        "heavy = ('evaluators.commands.', 'leaderboard.commands.', 'numpy', 'pyarrow')\n"
        "loaded = [name for name in sys.modules if name.startswith(heavy)]\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)\n"
    )
    done = run("-c", program, fresh=True, status=0, COLUMNS="300")
    assert done.stderr == ""
    shown = " ".join(done.stdout.split())
    for name in (*EVALUATORS, "build", "board", "publish", "serve"):
        assert f" {name} " in shown
    # No command of a package hides one of another.
    assert [place for place in EVALUATORS.values() if place.summary[:40] not in shown] == []
    assert "Usage: biasboard" in shown
    assert "Exit status: 0 done; 1 bad input" in shown


def test_the_command_and_its_version_are_those_of_the_distribution() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"biasboard": "biasboard.__main__:main"}
    done = biasboard("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"biasboard {project['version']}\n", "")


@pytest.mark.slow
def test_a_shell_completes_commands_and_options() -> None:
    done = biasboard(_BIASBOARD_COMPLETE="complete_bash", COMP_WORDS="biasboard run --da", COMP_CWORD="2")
    assert "--dataset" in done.stdout.split(), done.stderr
