"""The five functions for Python."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from biasboard import build, evaluate, load_result, score
from biasboard.ground.errors import ConfigError, DataError, RunError
from evaluators.__main__ import COMMANDS as EVALUATORS
from evaluators.backend import GenerateRequest, Response
from schemas.files import contract
from tests.commands import REPOSITORY, run
from tests.evaluators.asking import replayable
from tests.evaluators.made_data import made_items, write_dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", {"type1": made_items(6, ambiguous=True), "type2": made_items(6)})


@pytest.mark.slow
def test_the_example_of_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    page = (REPOSITORY / "site/docs/python.md").read_text(encoding="utf-8")
    example, *_ = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    done = run("-W", "error", "-c", example, cwd=tmp_path, status=0)
    first, *metrics = done.stdout.splitlines()
    assert re.fullmatch(r"baseline/stereotype-0\.7 (\d+) of \1", first)
    assert any(line.startswith("ucerf 0.") for line in metrics)


def test_importing_loads_nothing_else() -> None:
    program = "import sys; import biasboard; print([m for m in sys.modules if m in {'typer','numpy','pyarrow','rich'}])"
    done = run("-c", program, fresh=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.slow
def test_evaluate_gives_what_the_command_writes(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = evaluate(dataset, backend="baseline", model="uniform", config=["type2"], out=tmp_path / "runs", limit=8)
    assert capsys.readouterr().out == ""
    ((folder, result),) = [(finished.folder, finished.result) for finished in runs]
    assert load_result(folder) == load_result(folder / "result.json") == result
    command = ["run", "--dataset", dataset, "--backend", "baseline", "--model", "uniform", "--config", "type2"]
    done = run("-m", "biasboard", *command, "--limit", "8", "--out", tmp_path / "cli", "--format", "json", status=0)
    (told,) = json.loads(done.stdout)["runs"]
    assert told["metrics"] == contract.dump(result)["metrics"]
    assert Path(told["folder"], "records.parquet").read_bytes() == (folder / "records.parquet").read_bytes()
    (folder / "records.parquet").write_bytes(b"changed")
    with pytest.raises(DataError, match=r"records\.parquet"):
        load_result(folder)


# What is wrong with a value is told by tests/biasboard/ground/test_options.py.
MISTAKES: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
    ({"limit": -1}, ConfigError, "limit = -1: give 0 or more"),
    ({"dtype": "float16"}, ConfigError, "backend 'baseline' has no use for --dtype"),
    ({"chat_template_args": {"a": False}}, ConfigError, "has no use for --chat-template-args"),
    ({"dtyp": "a"}, TypeError, r"evaluate\(\) got an unexpected option 'dtyp'; did you mean 'dtype'\?"),
    ({"backend": "replay", "model": "answers", "name": "lab/x"}, RunError, "requests failed"),
)


def test_a_mistake_is_an_exception_with_the_line_of_the_command(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replayable(Path("answers"), [(GenerateRequest(prompt="x", max_tokens=1), Response(status="answered", text="x"))])
    for options, kind, message in MISTAKES:
        with pytest.raises(kind, match=message):
            evaluate(dataset, **{"backend": "baseline", "model": "uniform", **options})
    with pytest.raises(ConfigError, match="builder 'synthbais' does not exist; have: gifi, image_labels, lab"):
        build("synthbais")
    with pytest.raises(ConfigError, match=r"No such option: --sed; did you mean --seed\?"):
        build("synthbias", out=tmp_path / "x", sed=3)
    with pytest.raises(ConfigError, match=r"--source winobias needs --input"):
        build("synthbias", out=tmp_path / "x", source="winobias")
    with pytest.raises(TypeError, match=r"score\(\) got an unexpected option 'qick'; did you mean 'quick'\?"):
        score("acme/one", qick=True)


@pytest.mark.slow
def test_a_dataset_is_built_with_the_options_of_its_builder(tmp_path: Path) -> None:
    folder = build("synthbias", out=tmp_path / "small", limit=8, seed=3)
    assert folder == tmp_path / "small"
    assert json.loads((folder / "dataset.json").read_text())["seed"] == 3
    with pytest.raises(ConfigError, match="overwrite"):
        build("synthbias", out=tmp_path / "small", limit=8)


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
    done = run("-m", "biasboard", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"biasboard {project['version']}\n", "")


@pytest.mark.slow
def test_a_shell_completes_commands_and_options() -> None:
    done = run("-m", "biasboard", _BIASBOARD_COMPLETE="complete_bash", COMP_WORDS="biasboard run --da", COMP_CWORD="2")
    assert "--dataset" in done.stdout.split(), done.stderr
