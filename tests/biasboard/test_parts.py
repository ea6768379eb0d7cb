"""``biasboard new`` and ``check``: each part works as it is written, and a benchmark of others reaches a board."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from biasboard.building import build_if_missing
from builders.description import DATASETS_FOLDER, all_builders
from tests.commands import REPOSITORY, output_of, run
from tests.terminal import without_progress
from tests.worlds import copy_site

PARTS = {
    "metric": (("even_share", "--task", "coreference"), "even_share  0.", 2),
    "task": (("other_words", "--shape", "pronoun_text"), "other_words_words  12.0000", 3),
    "backend": (("short",), "accuracy  ", 2),
    "calibration": (("uncut",), "accuracy_uncut ", 2),
    "benchmark": (("job_references",), "job_references_gap    0.0000 (all alike)", 7),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the embedded datasets are built once."""
    made = tmp_path_factory.mktemp("parts")
    for builder in all_builders():
        for source in builder.sources:
            if source.input is None:
                build_if_missing(builder, source, made / DATASETS_FOLDER / source.dataset)
    return made


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


@pytest.mark.slow
def test_what_is_there_already_or_no_part_is_one_line(tmp_path: Path) -> None:
    run("-m", "biasboard", "new", "backend", "short", cwd=tmp_path, status=0)
    again = run("-m", "biasboard", "new", "backend", "short", cwd=tmp_path, status=1)
    assert "is there already; choose another name, or remove it" in again.stderr
    (tmp_path / "elsewhere.py").touch()
    for name, message in (
        ("none.py", "none.py: no Python file; name the file of the part"),
        ("elsewhere.py", "elsewhere.py: lies in none of the folders schemas, builders, evaluators, leaderboard"),
    ):
        assert message in run("-m", "biasboard", "check", name, cwd=tmp_path, status=1).stderr


@pytest.mark.slow
def test_a_part_with_a_fault_is_told(folder: Path) -> None:
    run("-m", "biasboard", "new", "metric", "odd", "--task", "coreference", "--out", "odd", cwd=folder, status=0)
    file = folder / "odd/evaluators/tasks/odd_metrics.py"
    whole = file.read_text(encoding="utf-8")
    for old, new, message in (
        ("table.clusters % 2 == 0", "table.clusters / 0 + float('nan')", "no measure of the part has a value"),
        (whole, '"""Nothing."""', "no embedded dataset has items for it"),
        ("table.clusters % 2 == 0", "table.clusterz", "odd_metrics.py:8: AttributeError: "),
        ("table.clusters % 2 == 0", "table.clusters + 1.5", "metric 'odd' is "),
        ('task="coreference"', 'task="corefrence"', "no task 'corefrence'; have: "),
        ('task="coreference",', 'task="coreference", slices=("gender",),', "slices names gender; give a tuple of"),
    ):
        file.write_text(whole.replace(old, new), encoding="utf-8")
        done = run("-m", "biasboard", "check", file, cwd=folder)
        assert done.returncode != 0
        assert message in done.stderr, done.stderr


@pytest.mark.slow
def test_an_option_outside_the_identity_is_told(folder: Path) -> None:
    run("-m", "biasboard", "new", "backend", "brief", "--out", "brief", cwd=folder, status=0)
    file = folder / "brief/evaluators/backends/brief.py"
    check = ("-m", "biasboard", "check", file, "--backend-option", "slope=2")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(', "slope": str(own.slope)}', "}").replace('{"name", "slope"}', '{"name"}'))
    assert "the model is the same without slope=2, so that answers" in run(*check, cwd=folder, status=0).stdout
    file.write_text(text.replace(', "slope": str(own.slope)}', "}"))
    lacking = run(*check, cwd=folder, status=1).stderr
    assert "the identity of its model lacks slope, which IDENTIFIED names" in lacking


class Plugged(NamedTuple):
    """A folder of plug-ins with a benchmark and a backend, and one with a dataset, a run and a board."""

    plugins: Path
    out: Path

    def run(self, *arguments: object, status: int = 0) -> str:
        return output_of("-m", *arguments, cwd=self.out, status=status, BIASBOARD_PLUGINS=self.plugins)


@pytest.fixture(scope="module")
def plugged(tmp_path_factory: pytest.TempPathFactory) -> Plugged:
    made = Plugged(tmp_path_factory.mktemp("mine"), tmp_path_factory.mktemp("third"))
    for kind, name in (("benchmark", "ages"), ("backend", "short")):
        run("-m", "biasboard", "new", kind, name, "--out", made.plugins, cwd=made.out, status=0)
    made.run("biasboard", "build", "ages")
    made.run("biasboard", "run", "--dataset", "out/datasets/ages", "--backend", "short", "--model", "lab/one")
    copy_site(made.out)
    made.run("biasboard", "board", "--site", "site", "--out", "built", "--results", "none")
    return made


@pytest.mark.slow
def test_a_benchmark_that_the_repository_does_not_know_has_a_page(plugged: Plugged) -> None:
    assert "no problems" in plugged.run("biasboard", "validate", "out/datasets", "out/runs")
    (path,) = (plugged.out / "out/runs").rglob("result.json")
    values = {one["name"]: one["value"] for one in json.loads(path.read_text())["metrics"] if not one["group"]}
    # It repeats its prompt, in which one topic and one group stand.
    assert values == {"ages_words": 11.0, "ages_gap": 0.0}
    built = plugged.out / "built"
    page = text_of(built / "benchmarks" / "ages.html", *(built / "benchmarks" / "ages").glob("*.html"))
    assert "Ages gap ideal 0 Ages words no ideal" in page
    assert "11.000" in page
    assert any("The same metrics by slice" in text_of(page) for page in (built / "models").glob("lab__one*/*.html"))
    listed = "".join(plugged.run("biasboard", "list", *words.split()) for words in ("prompts ages", "metrics ages"))
    for line in ("task ages 1.0: asks about items of", "prompt ages-v1: A question", "metric ages_gap 1.0: "):
        assert line in listed
    assert "ages" in plugged.run("biasboard", "build", "--help")
    assert "ages" not in output_of("-m", "biasboard", "list", "benchmarks")


def text_of(*pages: Path) -> str:
    markup = " ".join(page.read_text(encoding="utf-8") for page in pages)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup))


TASKS = "evaluators/tasks/ages_"
FAULTS = (
    (f"{TASKS}benchmark.py", "BENCHMARK = ", "OTHER = ", "defines no BENCHMARK, which makes it a benchmark"),
    (f"{TASKS}benchmark.py", 'name="ages"', 'name="other"', "give both one name"),
    (f"{TASKS}metrics.py", 'name="ages_gap"', 'name="ages_words"', "is defined twice, in"),
    (f"{TASKS}metrics.py", '    task="ages",\n    slices', '    task="agse",\n    slices', "no task 'agse'; have: "),
    (f"{TASKS}metrics.py", '    name="ages_gap",\n', "", "cannot be imported: "),
    ("schemas/items/ages.py", "AgesItem(Item)", "AgesItem", "AgesItem does not extend Item; add it"),
    ("schemas/items/ages.py", "    flags: tuple[str, ...]\n", "", "AgesItem is no dataclass with a flags; add it"),
    ("", "", "", "name the folder above them"),
    ("none", "", "", "BIASBOARD_PLUGINS: no folder "),
)


@pytest.mark.slow
@pytest.mark.parametrize(("file", "text", "replacement", "message"), FAULTS)
def test_a_fault_of_a_plug_in_is_a_one_line_error(
    plugged: Plugged, tmp_path: Path, file: str, text: str, replacement: str, message: str
) -> None:
    copy = tmp_path / "plugins"
    shutil.copytree(plugged.plugins, copy)
    if file.endswith(".py"):
        source = (copy / file).read_text(encoding="utf-8")
        assert text in source
        (copy / file).write_text(source.replace(text, replacement), encoding="utf-8")
    else:
        copy = copy / file if file else copy / "evaluators"
    kind = file.removesuffix(".py").rpartition("_")[2].removesuffix("s") if "_" in file else "benchmark"
    words = ("validate", plugged.out / "out/datasets") if "items" in file else ("list", f"{kind}s")
    done = run("-m", "biasboard", *words, status=1, BIASBOARD_PLUGINS=copy)
    assert without_progress(done.stderr).count("\n") == 1, done.stderr
    assert message in done.stderr
