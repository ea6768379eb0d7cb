"""Options of a run in a file."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.commands import REPOSITORY
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset

run = partial(evaluators, "run")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text: str) -> Path:
    Path("run.toml").write_text(text, encoding="utf-8")
    return Path("run.toml")


@pytest.mark.slow
def test_the_example_of_the_page_runs_and_the_command_line_wins() -> None:
    page = (REPOSITORY / "site/docs/commands.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert "biasboard run --config-file run.toml --limit 20" in page
    write_dataset(Path("out/datasets/synthbias"), {"type1": made_items(20, ambiguous=True), "type2": made_items(20)})
    done = run("--config-file", written(example), "--limit", "20", "--format", "json")
    assert done.exit_code == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert [(one["config"], one["prompt"], one["counts"]["items"]) for one in runs] == [
        ("type2", "mcq2-v1", 20),
        ("type2", "mcq3-v1", 20),
    ]
    one = run("--config-file", written(example), "--prompt", "mcq2-v1", "--format", "json")
    assert [(told["prompt"], told["counts"]["items"]) for told in json.loads(one.stdout)["runs"]] == [("mcq2-v1", 40)]


NEEDED = 'dataset = "data"\nbackend = "baseline"\nmodel = "uniform"\n'


def test_names_may_have_dashes_or_underscores_and_a_flag_that_is_off_is_left_out() -> None:
    write_dataset(Path("data"), {"type2": made_items(4)})
    for name in ("max-failure-rate", "max_failure_rate"):
        done = run("--config-file", written(f'{NEEDED}{name} = 0\nchat = false\nformat = "json"\n'))
        assert done.exit_code == 0, done.stderr
        assert len(json.loads(done.stdout)["runs"]) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("limit = true", "limit = true: "),
        ("limit = -1", "limit = -1: "),
        ("limit = [3]", "limit: give a text, a number, or true or false"),
        ("dry-run = false\ndry_run = true", "'dry_run' is there twice, with a dash and with an underscore; keep one"),
        ("revision = 12345e3", "revision = 12345000.0: is no text; put it in quotes"),
        ("prompt = ['mcq2-v1', true]", "prompt = mcq2-v1, true: is no text; put it in quotes"),
        ("limits = 3", "'limits' does not exist; did you mean 'limit'?"),
        ("walk = 3", "'walk' does not exist; have: dataset, config, part, split, limit, task, "),
        ("config_file = 'x'", "'config_file' does not exist; have: "),
        ("api_key = 'x'", "'api_key': no secret belongs in a file; set OPENAI_API_KEY or HF_TOKEN in the environment"),
        ("base_url = 'http://me:pass@host/v1'", "base_url: holds a password, which does not belong in a file"),
        ("limit = [1", "not a TOML file"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line_that_names_it(line: str, said: str) -> None:
    done = run("--config-file", written(line), "--dataset", "data", "--backend", "baseline", "--model", "uniform")
    assert done.exit_code == 1, done.output
    assert done.stderr.startswith("error: run.toml: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_a_file_that_is_not_there_is_named() -> None:
    done = run("--config-file", "none.toml")
    assert done.exit_code == 1
    assert done.stderr == "error: --config-file none.toml: No such file or directory; name a TOML file of options\n"
