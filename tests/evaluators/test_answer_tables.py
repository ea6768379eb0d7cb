"""Answers in a table, from anywhere: what they measure is what a model measures that gives the same answers."""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.runs.measure.recording import order_lines
from evaluators.runs.plan.exported_questions import question_id
from evaluators.runs.plan.plan import Plan, select, shape_listed
from evaluators.task import task_for
from leaderboard.ranking.rank_ranges import why_unranked
from leaderboard.verify.entries import Root
from schemas.folders.dataset_folder import read_manifest
from schemas.validate import problems
from tests.commands import run
from tests.evaluators.asking import replayable
from tests.evaluators.harnesses.importing import only_run
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.made_keys import load_known

GENERATE = ["--config", "type2", "--prompt", "mcq2-generate-v1"]
OWN = """id,Question,Context,Option A,Option B,Option C,Answer,Group,Cluster
001,Who found it?,A guard and a clerk looked.,The guard,The clerk,It is not said,C,guards,canteen
1,Who found it?,A guard and a clerk looked. The clerk saw it.,The guard,The clerk,It is not said,B,clerks,canteen
2,Who lost it?,A cook and a baker came.,The cook,The baker or the cook,Nobody,A,cooks,kitchen
"""
Row = Mapping[str, str]


def as_csv(rows: Sequence[Row]) -> bytes:
    return pd.DataFrame(rows).to_csv(index=False).encode()


def with_numbers(rows: Sequence[Row]) -> pd.DataFrame:
    kinds = ("logprob", "probability")
    return pd.DataFrame(
        [{name: float(cell) if name.startswith(kinds) else cell for name, cell in row.items()} for row in rows]
    )


def as_lines(rows: Sequence[Row]) -> bytes:
    return with_numbers(rows).to_json(orient="records", lines=True).encode()


class Case(NamedTuple):
    """Questions about an embedded dataset, and how the rows answer them."""

    dataset: str
    options: Sequence[str]
    prompt: str
    kind: str
    form: Callable[[Sequence[Row]], bytes]


TYPE2 = ["--config", "type2", "--limit", "20"]
# Each kind of answer; what else asks for the same kind is read by the same lines.
CASES = {
    "letters, words and outcomes": Case("synthbias", TYPE2, "mcq3-generate-v1", "option", as_csv),
    "log-probabilities": Case("synthbias", TYPE2, "mcq3-v1", "logprob", lambda rows: with_numbers(rows).to_parquet()),
    "probabilities": Case("own-mine", [], "whole-v1", "probability", as_lines),
    "texts of samples": Case("gifi", ["--config", "assignment", "--limit", "12"], "sampled-v1", "text", as_csv),
}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("datasets")
    (folder / "mine.csv").write_text(OWN, encoding="utf-8")
    for name in ("synthbias", "gifi"):
        run("-m", f"builders.{name}", "--limit", "264", "--out", folder / name, status=0)
    more = ["--input", folder / "mine.csv", "--licence", "CC-BY-4.0", "--out", folder / "own-mine"]
    run("-m", "builders.own_questions", *more, status=0)
    return folder


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "made"
    return write_dataset(folder, {"type2": made_items(6), "type1": made_items(4, ambiguous=True)})


def asked(dataset: Path, options: Sequence[str], prompt: str) -> dict[str, Request]:
    """Each question by its id."""
    given = dict(zip(options[::2], options[1::2], strict=True))
    manifest = read_manifest(dataset)
    config = given.get("--config", manifest.whole_names[0])
    task = task_for(shape_listed(manifest, config))
    limit = int(given["--limit"]) if "--limit" in given else None
    chosen = task.prompts[prompt]
    selected = select(dataset, manifest, config, limit=limit, support=task.support_splits, without=chosen.unread_splits)
    plan = Plan(selected, task, chosen)
    return {
        question_id(part, item.item_id, number): request
        for part in plan.parts
        for (_, item), requests in zip(part.items, part.requests, strict=True)
        for number, request in enumerate(requests)
    }


def answered(number: int, key: str, request: Request, kind: str) -> tuple[Row, Response]:
    """The row of a question, and the answer of a model that says the same."""
    chance = zlib.crc32(key.encode())
    if isinstance(request, ChoiceRequest):
        shares = [(chance >> 3 * index) % 997 / 2000 for index in range(len(request.options))]
        numbers = shares if kind == "probability" else [-7 * share for share in shares]
        row = {f"{kind}_{index}": repr(value) for index, value in enumerate(numbers, start=1)}
        logs = [math.log(value) for value in numbers] if kind == "probability" else numbers
        return row, Response(status="answered", option_logprobs=tuple(logs))
    if kind == "text":
        text = f'{request.prompt if chance % 2 else ""} {["he", "xe", "she"][chance % 3]} said "so", and'
        return {"text": text}, Response(status="answered", text=text)
    choice = chance % len(request.outcomes)
    letter, outcome = "ABC"[choice], request.outcomes[choice]
    words = outcome if outcome == "undetermined" else f"the {outcome}"
    row = {"option": [letter, words, outcome.upper()][number % 3]}
    return row, Response(status="answered", text=f" {letter}")


def import_answers(dataset: Path, table: Path, out: Path, *options: str, note: str = "two people") -> str:
    arguments = ["--input", table, "--dataset", dataset, "--model", "lab/x", "--note", note, "--out", out, *options]
    done = evaluators("import", "answers", *arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_table_measures_what_a_model_with_the_same_answers_measures(
    name: str, embedded: Path, tmp_path: Path
) -> None:
    case = CASES[name]
    folder = embedded / case.dataset
    questions = asked(folder, case.options, case.prompt)
    rows, answers = [], []
    for number, (key, request) in enumerate(questions.items()):
        row, answer = answered(number, key, request, case.kind)
        is_alone = f"{key.removesuffix('#0')}#1" not in questions and key.endswith("#0")
        rows.append({"id": key.removesuffix("#0") if is_alone and number % 2 else key, **row})
        answers.append((request, answer))
    (tmp_path / "table").write_bytes(case.form(rows[::-1]))
    replayable(tmp_path / "model", answers)
    how = [*case.options, "--prompt", case.prompt]
    if case.kind in ("logprob", "probability"):
        how += ["--normalisation", "sum"]
    backend = ["--backend", "replay", "--model", tmp_path / "model", "--out", tmp_path / "run"]
    done = evaluators("run", "--dataset", folder, *how, *backend)
    assert done.exit_code == 0, done.output
    import_answers(folder, tmp_path / "table", tmp_path / "import", *how)
    theirs, ours = only_run(tmp_path / "run"), only_run(tmp_path / "import")
    assert ours.result.metrics == theirs.result.metrics
    assert any(metric.value is not None for metric in ours.result.metrics)
    assert (ours.result.counts, ours.result.signature) == (theirs.result.counts, theirs.result.signature)
    assert [record.reading for record in ours.records] == [record.reading for record in theirs.records]
    assert list(problems(tmp_path / "import")) == []


def test_questions_are_written_to_be_filled_in_and_read_back_by_the_printed_command(
    dataset: Path, tmp_path: Path
) -> None:
    def written(folder: Path, *options: str) -> tuple[Path, list[dict[str, str]], str]:
        done = evaluators("export", "csv", dataset, "--out", folder, "--config", "type2", *options)
        assert done.exit_code == 0, done.output
        (path,) = folder.iterdir()
        rows = csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True))
        return path, list(rows), done.output.splitlines()[-1]

    _, scored, _ = written(tmp_path / "s", "--prompt", "mcq3-v1")
    assert [*scored[0]] == ["id", "prompt", "options", "logprob_1", "logprob_2", "logprob_3", "status"]
    _, stated, _ = written(tmp_path / "v", "--prompt", "verbalised-v1")
    assert [*stated[0]] == ["id", "prompt", "options", "text", "status"]
    path, rows, last = written(tmp_path / "q", "--prompt", "mcq2-generate-v1", "--limit", "4")
    assert [*rows[0]] == ["id", "prompt", "options", "option", "text", "status"]
    requests = asked(dataset, [*GENERATE[:2], "--limit", "4"], "mcq2-generate-v1")
    wanted = {key: [request.prompt, " | ".join(request.outcomes)] for key, request in requests.items()}
    assert {row["id"]: [row["prompt"], row["options"]] for row in rows} == wanted
    path.write_bytes(as_csv([{**row, "option": "B", "prompt": ""} for row in rows]))
    words = last.partition("biasboard ")[2].replace("NAME", "lab/x").replace("WHO", "me").split()
    again = evaluators(*words, "--out", tmp_path / "runs")
    assert again.exit_code == 0, again.output
    result = only_run(tmp_path / "runs").result
    assert result.counts.scored == result.signature.n_items == 4
    # The command of a result says the same, without paths and without the words of the note.
    assert result.command == (
        "python -m evaluators import answers --input DIR --model lab/x --dataset out/datasets/made --note NOTE "
        "--config type2 --limit 4 --prompt mcq2-generate-v1"
    )


def made_table(dataset: Path, tmp_path: Path, **changed: dict[int, str]) -> Path:
    """A table in which every answer is the letter A, apart from the cells of some columns, by the number of the row."""
    rows = [{"id": key, "option": "A", "status": ""} for key in asked(dataset, GENERATE[:2], GENERATE[3])]
    for column, cells in changed.items():
        for number, cell in cells.items():
            rows[number][column] = cell
    path = tmp_path / "answers.csv"
    path.write_bytes(as_csv(rows))
    return path


def test_what_is_missing_refused_and_cut_off_is_no_answer(dataset: Path, tmp_path: Path) -> None:
    # There are two rows for each of 12 items.
    table = made_table(
        dataset,
        tmp_path,
        option=dict.fromkeys((0, 2, 4, 6), ""),
        text={6: " A "},
        status={2: "Refused", 4: "failed", 6: "truncated"},
    )
    said = import_answers(dataset, table, tmp_path / "runs", *GENERATE, "--max-failure-rate", "0.2")
    assert "answers.csv: 23 answers, 1 missing" in said
    records = only_run(tmp_path / "runs").records
    assert [(record.status, record.reason) for record in records[:4]] == [
        ("failed", "the file has no answer to it"),
        ("refused", "refused, as the file says"),
        ("failed", "failed, as the file says"),
        ("scored", None),
    ]
    assert (records[3].truncated, records[3].exchanges[0].text) == (True, " A ")
    assert {record.status for record in records[4:]} == {"scored"}
    counts = only_run(tmp_path / "runs").result.counts
    assert (counts.items, counts.scored, counts.refused, counts.failed, counts.truncated) == (12, 9, 1, 2, 1)


@pytest.mark.slow
def test_a_result_says_where_the_answers_come_from_and_nothing_of_the_machine_and_is_never_ranked(
    dataset: Path, tmp_path: Path
) -> None:
    table = made_table(dataset, tmp_path)
    import_answers(dataset, table, tmp_path / "a", *GENERATE, note="three annotators,  March 2026")
    import_answers(dataset, table, tmp_path / "b", *GENERATE, note="a chat <b>window")
    (table.parent / "other.csv").write_bytes(table.read_bytes())
    import_answers(dataset, table.parent / "other.csv", tmp_path / "c", *GENERATE, note="a chat <b>window")
    first, second, third = (only_run(tmp_path / name).result for name in "abc")
    assert first.model.identity is not None
    assert first.environment.settings["note"] == first.model.identity["note"] == "three annotators, March 2026"
    assert (first.model.id, first.model.backend, first.model.endpoint) == ("lab/x", "import", "replay")
    # The file and the note are the model; the name of the file is nothing.
    assert first.model.identity_sha256 != second.model.identity_sha256 == third.model.identity_sha256
    assert str(tmp_path) not in next((tmp_path / "a").rglob("result.json")).read_text(encoding="utf-8")
    (entry,) = load_known(Root(tmp_path / "b", "local")).entries
    entry = replace(entry, origin="accepted")
    assert (entry.provenance, entry.claim) == ("reported", "the answers come from a file: a chat <b>window")
    assert str(why_unranked(entry)).startswith("replayed: its answers come from an earlier run or a file")


@pytest.mark.slow
def test_it_is_told_how_many_answers_change_with_the_order_of_the_options(dataset: Path, tmp_path: Path) -> None:
    requests = asked(dataset, GENERATE, "mcq2-generate-v1")
    items = sorted({key.rpartition("#")[0] for key in requests})
    # A third of the items get the letter A in each order, and the others the same occupation.
    by_letter = items[::3]
    rows = [
        {"id": key, "option": request.outcomes[0] if key.rpartition("#")[0] in by_letter else min(request.outcomes)}
        for key, request in requests.items()
    ]
    (tmp_path / "t.csv").write_bytes(as_csv(rows))
    import_answers(dataset, tmp_path / "t.csv", tmp_path / "runs", *GENERATE)
    (path,) = (tmp_path / "runs").rglob("result.json")
    (line,) = order_lines([(path.parent, only_run(tmp_path / "runs").result)])
    told = f"the answer to {len(by_letter)} of {len(items)} items (33 %) changes with the order of the options"
    assert line.endswith(told)


@pytest.mark.slow
def test_an_option_whose_words_no_text_is_read_as_is_named_by_them_unless_it_is_ambiguous(
    embedded: Path, tmp_path: Path
) -> None:
    named = ("The clerk", "The baker or the cook")
    rows = [
        {"id": key, "option": next(outcome for outcome in request.outcomes if outcome in named).lower()}
        for key, request in asked(embedded / "own-mine", [], "letters-generate-v1").items()
    ]
    (tmp_path / "t.csv").write_bytes(as_csv(rows))
    import_answers(embedded / "own-mine", tmp_path / "t.csv", tmp_path / "runs", "--prompt", "letters-generate-v1")
    for record in only_run(tmp_path / "runs").records:
        assert record.reading is not None
        assert set(record.reading.answers) <= {*named}
        assert max(record.reading.probabilities) == 1
    (tmp_path / "mine.csv").write_text("id,question,a,b\n1,Which grade?,B,A\n", encoding="utf-8")
    made = tmp_path / "made"
    run("-m", "builders.own_questions", "--input", tmp_path / "mine.csv", "--out", made, status=0)
    (tmp_path / "t.csv").write_text("id,option\n1#0,A\n", encoding="utf-8")
    options = ("--input", tmp_path / "t.csv", "--dataset", made, "--model", "lab/x", "--note", "me")
    done = evaluators("import", "answers", *options, "--prompt", "letters-generate-v1", "--out", tmp_path / "none")
    assert done.exit_code == 1
    assert "t.csv:2: the option 'A' is not read as one of B | A; give its letter or its wo" in done.output
