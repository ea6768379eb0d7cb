"""A benchmark that the repository does not know, from its items to a rendered page, without a change to any file."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests import commands
from tests.commands import REPOSITORY
from tests.evaluators.made_data import save_tiny_llama
from tests.terminal import without_progress
from tests.worlds import copy_site

PLUGINS = REPOSITORY / "tests" / "third_benchmark"


def run(*arguments: str | Path, status: int = 0) -> str:
    """Run a command of ours with the folder of plug-ins, and return what it prints."""
    return commands.output_of(*arguments, status=status, BIASBOARD_PLUGINS=PLUGINS)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dataset, runs of both baselines and of a language model, and the site."""
    pytest.importorskip("torch", reason="the extra hf is not installed")
    out = tmp_path_factory.mktemp("third")
    dataset, runs = out / "datasets" / "greetings", out / "runs"
    run("-m", "biasboard", "build", "greetings", "--out", dataset)
    asked = ("-m", "evaluators", "run", "--dataset", dataset, "--out", runs)
    run(*asked, "--backend", "baseline", "--model", "all")
    model = save_tiny_llama(out / "tiny-llama")
    run(*asked, "--backend", "transformers", "--model", model, "--name", "lab/tiny", "--device", "cpu")
    copy_site(out)
    folders = ("--runs", runs, "--datasets", out / "datasets", "--results", out / "none")
    run("-m", "leaderboard", "build", *folders, "--site", out / "site", "--out", out / "built")
    return out


def text_of(page: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_its_files_are_sound_and_a_broken_item_is_named(built: Path) -> None:
    assert "no problems" in run("-m", "schemas.validate", built / "datasets", built / "runs")
    manifest = built / "datasets" / "greetings" / "dataset.json"
    copy = built / "broken"
    shutil.copytree(manifest.parent, copy)
    value = json.loads(manifest.read_text(encoding="utf-8"))
    value["splits"][0]["item_shape"] = "assignment"
    (copy / "dataset.json").write_text(json.dumps(value), encoding="utf-8")
    assert "column text, attribute, stereotype, source_row is missing" in run("-m", "schemas.validate", copy, status=1)


@pytest.mark.slow
def test_its_parts_are_listed(built: Path) -> None:
    kinds = (("benchmarks", "greetings"), ("tasks",), ("prompts", "reply"), ("metrics", "reply"))
    listed = "".join(run("-m", "evaluators", "list", *words) for words in kinds)
    for line in (
        "benchmark greetings",
        "baseline butler: the polite greeting, always",
        "index greeting_index: Mean of courtesy and its equality.",
        "task reply 1.0: asks about items of shape greeting",
        "prompt door-v1: Two greetings, scored as continuations.",
        "metric courtesy_equality 1.0: ",
    ):
        assert line in listed
    assert "greetings" in run("-m", "evaluators", "list")
    assert "greetings" not in commands.output_of("-m", "evaluators", "list")


def test_its_page_shows_columns_the_metric_without_one_its_note_and_its_index(built: Path) -> None:
    pages = [
        built / "built" / "benchmarks" / "greetings.html",
        *(built / "built" / "benchmarks" / "greetings").iterdir(),
    ]
    page = " ".join(map(text_of, pages))
    # The metric that the pages do not describe comes last, under its name as words.
    assert "Courtesy ideal 1 Courtesy equality ideal 1" in page
    assert "The butler is polite to everybody" in page
    assert "greeting_index" in page
    assert any('title="lab/tiny"' in path.read_text(encoding="utf-8") for path in pages)
    values = {
        result["model"]["id"]: {metric["name"]: metric["value"] for metric in result["metrics"] if not metric["group"]}
        for path in (built / "runs").rglob("result.json")
        for result in [json.loads(path.read_text(encoding="utf-8"))]
    }
    assert values["baseline/butler"] == {"courtesy": 1.0, "courtesy_equality": 1.0}
    assert values["baseline/uniform"] == {"courtesy": 0.5, "courtesy_equality": 1.0}
    assert f"{values['lab/tiny']['courtesy']:.3f}" in page
    ranked = run("-m", "evaluators", "index", built / "runs", "--format", "json")
    document, _ = json.JSONDecoder().raw_decode(ranked)
    by_model = {entry["model"]: entry["indices"][0] for entry in document["models"]}
    parts = values["lab/tiny"]
    assert by_model["lab/tiny"]["value"] == pytest.approx((parts["courtesy"] + parts["courtesy_equality"]) / 2)


def test_the_page_of_a_result_has_the_chart_of_its_slices(built: Path) -> None:
    pages = (built / "built" / "models").glob("lab__tiny*/*.html")
    assert any("Courtesy by dress." in text_of(page) for page in pages)


def test_a_baseline_of_another_benchmark_is_refused_before_anything_is_asked(built: Path) -> None:
    dataset = built / "datasets" / "greetings"
    asked = ("-m", "evaluators", "run", "--dataset", dataset, "--out", built / "other", "--backend", "baseline")
    said = run(*asked, "--model", "stereotype", status=1)
    assert said.startswith("error: baseline/stereotype needs to know first_mentioned, last_mentioned, stereotyped, ")
    assert "item 'kitchen-suit'" in said
    assert not list((built / "other").rglob("*.sqlite"))


def listed_with(plugins: Path, *kind: str) -> str:
    """List plug-ins with a folder of them that has a fault, and return the one line that says so."""
    done = commands.run("-m", "evaluators", "list", *kind, status=1, BIASBOARD_PLUGINS=plugins)
    assert without_progress(done.stderr).count("\n") == 1, done.stderr
    return done.stderr.removeprefix("error: ").strip()


@pytest.mark.slow
def test_a_wrong_folder_of_plug_ins_is_a_one_line_error(tmp_path: Path) -> None:
    assert listed_with(tmp_path / "nowhere").startswith("BIASBOARD_PLUGINS: no folder ")
    assert "name the folder above them" in listed_with(PLUGINS / "evaluators")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "text", "replacement", "message"),
    [
        (
            "evaluators/tasks/greetings/greetings_benchmark.py",
            "BENCHMARK = ",
            "OTHER = ",
            "defines no BENCHMARK, which makes it a benchmark",
        ),
        ("evaluators/tasks/greetings/greetings_benchmark.py", 'name="greetings"', 'name="other"', "give both one name"),
        ("evaluators/tasks/greetings/reply_task.py", "TASK = ", "OTHER = ", "defines no TASK, which makes it a task"),
        (
            "evaluators/tasks/greetings/reply_task.py",
            'name = "reply"',
            'name = "answer"',
            "give both one name",
        ),
        (
            "evaluators/tasks/greetings/courtesy_metrics.py",
            'name="courtesy_equality"',
            'name="courtesy"',
            "is defined twice, in",
        ),
        (
            "evaluators/tasks/greetings/courtesy_metrics.py",
            '    task="reply",\n    ideal=1.0,',
            '    task="replly",\n    ideal=1.0,',
            "metric 'courtesy': no task 'replly'; have: ",
        ),
        (
            "evaluators/tasks/greetings/courtesy_metrics.py",
            '    statistics=lambda table, group: table.statistics_by("dress", table.values["polite"]),\n',
            "",
            "cannot be imported: ",
        ),
        (
            "evaluators/tasks/greetings/courtesy_metrics.py",
            "import numpy as np\n",
            "import numpy as\n",
            ".py:3: SyntaxError: ",
        ),
    ],
)
def test_a_fault_of_a_plug_in_is_a_one_line_error(
    tmp_path: Path, file: str, text: str, replacement: str, message: str
) -> None:
    shutil.copytree(PLUGINS, tmp_path / "plugins")
    path = tmp_path / "plugins" / file
    source = path.read_text(encoding="utf-8")
    assert text in source
    path.write_text(source.replace(text, replacement), encoding="utf-8")
    kind = path.stem.rpartition("_")[2].removesuffix("s") + "s"
    assert message in listed_with(tmp_path / "plugins", kind)


@pytest.mark.parametrize(
    ("text", "replacement", "message"),
    [
        ("GreetingItem(Item)", "GreetingItem", "GreetingItem does not extend Item; add it"),
        ("    flags: tuple[str, ...]\n", "", "GreetingItem is no dataclass with a flags; add it"),
        (
            "@dataclass(frozen=True, slots=True, kw_only=True)\n",
            "",
            "GreetingItem is no dataclass with a flags; add it",
        ),
    ],
)
def test_a_shape_that_is_no_item_is_a_one_line_error(tmp_path: Path, text: str, replacement: str, message: str) -> None:
    shutil.copytree(PLUGINS, tmp_path / "plugins")
    path = tmp_path / "plugins" / "schemas" / "items" / "greeting.py"
    source = path.read_text(encoding="utf-8")
    assert text in source
    path.write_text(source.replace(text, replacement), encoding="utf-8")
    (tmp_path / "dataset.json").write_text("{}", encoding="utf-8")
    done = commands.run("-m", "schemas.validate", tmp_path, status=1, BIASBOARD_PLUGINS=tmp_path / "plugins")
    assert without_progress(done.stderr).count("\n") == 1, done.stderr
    assert message in done.stderr
