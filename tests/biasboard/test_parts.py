"""``biasboard new`` and ``biasboard check``: each part works as it is written, and passes its own test and lint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import REPOSITORY, run

PARTS = {
    "metric": (("even_share", "--task", "coreference"), "even_share  0.", 2),
    "task": (("other_words", "--shape", "pronoun_text"), "other_words_words  12.0000", 3),
    "backend": (("short",), "accuracy  ", 2),
    "calibration": (("uncut",), "accuracy_uncut ", 2),
    "benchmark": (("ages",), "ages_gap    0.0000 (all alike)", 7),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the embedded datasets are built once."""
    return tmp_path_factory.mktemp("parts")


@pytest.mark.slow
@pytest.mark.parametrize("kind", PARTS)
def test_a_new_part_works_as_it_is_written(folder: Path, kind: str) -> None:
    words, shown, n_files = PARTS[kind]
    out = folder / kind
    said = run("-m", "biasboard", "new", kind, *words, "--out", out, cwd=folder, status=0).stdout
    wrote = [Path(line.removeprefix("wrote ")) for line in said.splitlines() if line.startswith("wrote ")]
    assert len(wrote) == n_files
    (part,) = [line.rpartition(" ")[2] for line in said.splitlines() if line.startswith("next: biasboard check ")]
    checked = run("-m", "biasboard", "check", part, cwd=folder, status=0).stdout
    assert shown in checked
    assert checked.splitlines()[-1].startswith("written, and computed again from the stored answers: ")
    test = next(path for path in wrote if path.parent.name == "tests")
    environment = {"PYTHONPATH": str(REPOSITORY), "BIASBOARD_PLUGINS": str(out), "PATH": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(out), str(test)]
    tested = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    for action in (("check",), ("format", "--check")):
        ruff = [sys.executable, "-m", "ruff", *action, "--config", str(REPOSITORY / "pyproject.toml"), str(out)]
        linted = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert linted.returncode == 0, linted.stdout
    again = run("-m", "biasboard", "new", kind, *words, "--out", out, cwd=folder, status=1)
    assert "is there already; choose another name, or remove it" in again.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("metric", "Even"), "Even: give a name of small letters, digits and single underscores"),
        (("metric", "even"), "--task: it is needed; have: "),
        (("metric", "even", "--task", "none"), "--task: there is none called none; have: "),
        (("backend", "even", "--task", "coreference"), "--task: leave it out; have: "),
    ],
)
def test_what_cannot_be_written_is_one_line(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = run("-m", "biasboard", "new", *words, cwd=tmp_path, status=1)
    assert done.stderr.startswith(f"error: {message}")
    assert not list(tmp_path.iterdir())


def test_what_is_no_part_is_one_line(tmp_path: Path) -> None:
    for name, message in (
        ("none.py", "none.py: no Python file; name the file of the part"),
        ("elsewhere.py", "elsewhere.py: lies in none of the folders schemas, builders, evaluators, leaderboard"),
    ):
        if name == "elsewhere.py":
            (tmp_path / name).write_text("")
        assert message in run("-m", "biasboard", "check", name, cwd=tmp_path, status=1).stderr


@pytest.mark.slow
def test_a_part_with_a_fault_is_told(tmp_path: Path) -> None:
    run("-m", "biasboard", "new", "metric", "odd", "--task", "coreference", cwd=tmp_path, status=0)
    file = tmp_path / "mine/evaluators/tasks/odd_metrics.py"
    whole = file.read_text(encoding="utf-8")
    for old, new, message in (
        ("table.clusters % 2 == 0", "table.clusters / 0 + float('nan')", "no measure of the part has a value"),
        ("import mean_metric", "import no_metric", "cannot be imported: "),
        (whole, '"""Nothing."""', "no embedded dataset has items for it"),
        ("table.clusters % 2 == 0", "table.clusterz", "odd_metrics.py:8: AttributeError: "),
        ("table.clusters % 2 == 0", "table.clusters + 1.5", "metric 'odd' is "),
        (
            'task="coreference",',
            'task="coreference", slices=("gender",),',
            "slices names gender; give a tuple of groups",
        ),
    ):
        file.write_text(whole.replace(old, new), encoding="utf-8")
        done = run("-m", "biasboard", "check", file, cwd=tmp_path)
        assert done.returncode != 0
        assert message in done.stderr, done.stderr


@pytest.mark.slow
def test_an_option_outside_the_identity_is_told(tmp_path: Path) -> None:
    run("-m", "biasboard", "new", "backend", "short", cwd=tmp_path, status=0)
    file = tmp_path / "mine/evaluators/backends/short.py"
    check = ("-m", "biasboard", "check", file, "--backend-option", "slope=2")
    assert "warning" not in run(*check, cwd=tmp_path, status=0).stdout
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(', "slope": str(own.slope)}', "}").replace('{"name", "slope"}', '{"name"}'))
    assert "the model is the same without slope=2, so that answers" in run(*check, cwd=tmp_path, status=0).stdout
