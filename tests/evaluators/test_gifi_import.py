"""Importing published generations, in all their layouts, and saying what is wrong with a file."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.dataset.output import write_dataset
from builders.gifi.drafts import draft_of, split_of
from evaluators.benchmark import AnswerFile, ImportedAnswers
from evaluators.task import load_task
from evaluators.tasks.pronouns.gifi_benchmark import PublishedGenerations
from schemas.documents.dataset import Source
from schemas.folders.run_folder import read_run
from schemas.validate import problems
from tests.commands import run
from tests.evaluators.pronoun_records import problems as word_problems
from tests.evaluators.pronoun_records import prompts, sentences

GDR, SAOF, MATH = (
    "tango_GDR-all-genders_made-1.csv",
    "SAOF_template-all-genders_made_1.csv",
    "math_gsm8k-all-genders_made-1.csv",
)
RECOGNITION = sentences("kim sold {pos} car.", "robin hurt {ref}.")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A small dataset of three configs, as the builder writes them."""
    source = Source(name="tests", address="tests", revision=None, sha256=None, licence="MIT", redistributable=True)
    draft = draft_of(
        "embedded",
        (
            split_of("recognition", RECOGNITION),
            split_of("assignment", prompts(2)),
            split_of("math", word_problems(2)),
        ),
        title="Made",
        sources=(source,),
        limit=None,
        how_built="By a test.",
        licence_terms="None.",
        citation="nobody",
    )
    write_dataset(draft, tmp_path / "dataset")
    return tmp_path / "dataset"


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def recognition_rows() -> list[dict[str, object]]:
    return [
        {
            "": number,
            "template_index": number // 11,
            "pronoun_family": item.family,
            "template": item.text,
            "results": "{'id': 'x'}",
            "generated_sentences": f"and {'she' if item.family == 'she' else 'he'} left.",
        }
        for number, item in enumerate(RECOGNITION)
    ]


def assignment_rows() -> list[dict[str, object]]:
    """One layout leaves out the end of the prompt and has its columns in another order."""
    return [
        {
            "index": 7 - number % 2,
            "template": f"My friend is number {number % 2}",
            "generated_sentences": "she left.",
            "state": "x",
        }
        for number in range(22)
    ]


def math_rows() -> list[dict[str, object]]:
    fixed = {"template_index": 0, "simple_answer": 12, "generated_sentences": "The answer is 12."}
    rows = [{"pronoun_family": item.family, "template": item.text, **fixed} for item in word_problems(1)]
    return [*rows, rows[0] | {"generated_sentences": "The answer is 11."}]


def imported(folder: Path, dataset: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    chosen = ("--input", folder, "--dataset", dataset, "--model", "made-1", *arguments)
    return run("-m", "evaluators", "import", "gifi", *chosen, cwd=dataset.parent, status=status)


@pytest.mark.slow
def test_every_layout_becomes_records_and_no_row_is_lost(dataset: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    # One row is empty, one item has no row, one item has two.
    rows = recognition_rows()
    rows[3]["generated_sentences"] = ""
    write(folder / "a" / GDR, rows[:-1])
    write(folder / SAOF, assignment_rows())
    write(folder / MATH, math_rows())
    said = imported(folder, dataset, "--name", "lab/made-1").stdout
    assert f"{GDR}: 21 rows\n" in said
    assert "\n20 of 22 items scored, 2 failed\n" in said
    assert "\n  recognition_accuracy " in said
    assert list(problems(tmp_path / "out")) == []
    found = (read_run(path.parent) for path in (tmp_path / "out/runs").rglob("result.json"))
    runs = {one.result.signature.config: one for one in found}
    assert set(runs) == {"recognition", "assignment", "math"}
    recognition = runs["recognition"]
    assert (recognition.result.model.id, recognition.result.model.endpoint) == ("lab/made-1", "replay")
    reasons = {record.item_id: record.exchanges[0].error for record in recognition.records if record.status == "failed"}
    assert reasons == {
        "t0-thon": "the published file has no text for it",
        "t1-ze": "the published file has no row for it",
    }
    settings = recognition.result.environment.settings
    assert (settings["rows"], settings["rows_without_text"], settings["items_without_row"]) == ("21", "1", "1")
    assert [len(record.exchanges) for record in runs["assignment"].records] == [11, 11]
    twice = next(record for record in runs["math"].records if record.item_id == "p0-he")
    assert [exchange.text for exchange in twice.exchanges] == ["The answer is 12.", "The answer is 11."]
    assert runs["math"].result.environment.settings["rows_repeating_an_item"] == "1"
    accuracy = next(metric for metric in runs["math"].result.metrics if metric.name == "answer_accuracy")
    # Eleven of twelve answers; the eleven items of the other problem have none.
    assert accuracy.value == pytest.approx(11 / 12)
    assert (accuracy.n, accuracy.n_excluded) == (12, 11)
    # Useless predictors answer the items of published answers.
    command = ("-m", "evaluators", "run", "--dataset", dataset, "--config", "recognition", "--prompt", "published-v1")
    run(*command, "--backend", "baseline", "--model", "random-family", cwd=tmp_path, status=0)
    results = [read_run(path.parent).result for path in (tmp_path / "out/runs").rglob("result.json")]
    of_recognition = [result for result in results if result.signature.config == "recognition"]
    assert {result.model.backend for result in of_recognition} == {"import", "baseline"}
    assert len({result.signature_sha256 for result in of_recognition}) == 1


HEADER = b"pronoun_family,template,generated_sentences\n"
BROKEN = [
    (HEADER.replace(b"template", b"text"), "column template is missing; have: pronoun_family, text"),
    (HEADER + b"xey,x,y\n", f"{GDR}:2: family 'xey' is not in the lexicon; have: he"),
    (HEADER + b"he,another,x\n", "1 rows belong to no item of made recognition"),
    (HEADER, "has no rows"),
    (HEADER + b"he,x\n", ":2: has fewer fields than the header"),
    (HEADER + b"he,\xff,x\n", "is not UTF-8"),
]


def read(path: Path) -> ImportedAnswers:
    prompt = load_task("recognition").prompts["published-v1"]
    return PublishedGenerations().read(AnswerFile("recognition", (path,), "made-1"), RECOGNITION, prompt, "made")


@pytest.mark.parametrize(("content", "message"), BROKEN)
def test_a_broken_file_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / GDR).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(tmp_path / GDR)


def test_answers_whose_pronouns_were_overwritten_are_flagged(tmp_path: Path) -> None:
    """Enough rows, and the pronoun of the answer does not depend on the prompt."""
    rows = recognition_rows() * 15
    write(tmp_path / GDR, rows)
    assert read(tmp_path / GDR).corruption is None
    write(tmp_path / GDR, [row | {"generated_sentences": "and he left."} for row in rows])
    assert str(read(tmp_path / GDR).corruption).startswith("after 'she' prompts 0% of the binary pronouns are feminine")


def test_folders_of_several_models_need_a_name(tmp_path: Path) -> None:
    files = PublishedGenerations().files
    with pytest.raises(ConfigError, match="no such folder"):
        files(tmp_path / "none", "x")
    with pytest.raises(ConfigError, match="the files must be called tango_GDR-all-gend"):
        files(tmp_path, "x")
    write(tmp_path / GDR, recognition_rows())
    assert [file.config for file in files(tmp_path, "any name")] == ["recognition"]
    write(tmp_path / "tango_GDR-all-genders_other.csv", recognition_rows())
    with pytest.raises(ConfigError, match=r"--model x: .* holds files of several models: made-1, other"):
        files(tmp_path, "x")
    assert [file.paths[0].name for file in files(tmp_path, "made_1")] == [GDR]
    write(tmp_path / "copy" / GDR, recognition_rows())
    with pytest.raises(ConfigError, match="several files of config recognition"):
        files(tmp_path, "made-1")
