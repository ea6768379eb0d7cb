"""The command ``biasboard``: one door to the commands of all packages."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path

import pytest

from evaluators.__main__ import COMMANDS as EVALUATORS
from tests.commands import REPOSITORY, run
from tests.evaluators.made_data import made_items, write_dataset

biasboard = partial(run, "-m", "biasboard")


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
    done = run("-c", program, fresh=True)
    assert (done.returncode, done.stderr) == (0, "")
    for name in (
        "build",
        "run",
        "rescore",
        "import",
        "export",
        "questions",
        "texts",
        "index",
        "list",
        "cache",
        "doctor",
        "board",
        "publish",
        "serve",
    ):
        assert f" {name} " in done.stdout
    assert "Usage: biasboard" in done.stdout
    assert "Exit status: 0 done; 1 bad input" in done.stdout


@pytest.mark.slow
def test_no_command_of_a_package_hides_one_of_another() -> None:
    shown = " ".join(biasboard("--help", COLUMNS="300").stdout.split())
    for place in EVALUATORS.values():
        assert place.summary[:40] in shown


def test_the_command_and_its_version_are_those_of_the_distribution() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"biasboard": "biasboard.__main__:main"}
    done = biasboard("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"biasboard {project['version']}\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [("biasboard val", "validate"), ("biasboard build syn", "synthbias"), ("biasboard run --da", "--dataset")],
)
def test_a_shell_completes_commands_and_options(words: str, found: str) -> None:
    n_before = len(words.split()) - 1
    done = biasboard(_BIASBOARD_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(n_before))
    assert found in done.stdout.split(), done.stderr
    # The shell is looked for among the parents of the process, which may be any shell or none where tests run.
    shown = biasboard("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_BIASBOARD_COMPLETE=complete_bash" in shown.stdout, shown.stderr


@pytest.mark.slow
def test_both_forms_of_a_command_do_the_same(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(4)})
    options = ("--dataset", dataset, "--backend", "baseline", "--model", "uniform")
    one = biasboard("run", *options, "--out", tmp_path / "one")
    two = run("-m", "evaluators", "run", *options, "--out", tmp_path / "two")
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    (first,), (second,) = ((tmp_path / name).rglob("records.parquet") for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()
    assert biasboard("validate", tmp_path / "one").returncode == 0
    assert f"next: biasboard board --runs {tmp_path / 'one'}" in one.stdout


@pytest.mark.slow
def test_builders_are_found_by_their_files_also_those_of_others(tmp_path: Path) -> None:
    listed = biasboard("build")
    assert "biasboard build synthbias [--source NAME]" in listed.stdout
    built = biasboard("build", "synthbias", "--limit", "4", cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "out/datasets/synthbias/dataset.json").is_file()
    theirs = REPOSITORY / "tests" / "third_benchmark"
    done = biasboard("build", "greetings", "--out", tmp_path / "greetings", BIASBOARD_PLUGINS=str(theirs))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "greetings" / "dataset.json").is_file()
    assert "greetings" in biasboard("build", "--help", BIASBOARD_PLUGINS=str(theirs)).stdout
    assert "No such command 'card'" in biasboard("build", "card").stderr
    # Publishing builds nothing, so that it is a command of its own.
    assert "biasboard build publish" not in listed.stdout
    assert " publish " not in biasboard("build", "--help").stdout
    assert "No such command 'publish'" in biasboard("build", "publish").stderr
    assert "HF_HUB_OFFLINE forbids asking the Hub" in biasboard("publish", tmp_path, "--repo", "acme/data").stderr
