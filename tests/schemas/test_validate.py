"""``python -m schemas.validate`` as its users run it: in a process of its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from schemas.documents.record import Record
from schemas.files import contract, row_files
from schemas.files.arrow_files import arrow_schema
from schemas.items.coreference import CoreferenceItem
from tests.commands import run
from tests.schemas import examples


class Outcome(NamedTuple):
    """What a command left behind."""

    exit_code: int
    problems: list[str]
    summary: str


def validate(*arguments: str | Path) -> Outcome:
    done = run("-m", "schemas.validate", *arguments)
    return Outcome(done.returncode, done.stdout.splitlines(), done.stderr.strip())


def replace_rows(path: Path, row_type: type, changes: dict[int, dict[str, object]]) -> None:
    """Change fields of rows by number, past every check."""
    values = pq.read_table(path).to_pylist(maps_as_pydicts="strict")
    for number, fields in changes.items():
        values[number - 1].update(fields)
    pq.write_table(pa.Table.from_pylist(values, schema=arrow_schema(row_type)), path)


@pytest.mark.slow
def test_sound_folders_and_files_pass(tmp_path: Path) -> None:
    examples.write_dataset(tmp_path / "datasets" / "example")
    examples.write_run(tmp_path / "runs" / "example@1.0.0" / "org__name" / "run")
    assert validate(tmp_path) == Outcome(0, [], "2 datasets, runs and files checked, no problems")
    dataset = tmp_path / "datasets" / "example"
    files = [dataset / "dataset.json", dataset / "rejects.parquet", dataset / examples.SPLIT_PATH]
    run = next((tmp_path / "runs").glob("*/*/run"))
    files += [run / "result.json", run / "records.parquet"]
    assert validate(*files) == Outcome(0, [], "5 datasets, runs and files checked, no problems")


@pytest.mark.slow
def test_every_problem_of_a_dataset_is_one_line(tmp_path: Path) -> None:
    examples.write_dataset(tmp_path)
    path = tmp_path / examples.SPLIT_PATH
    replace_rows(
        path,
        CoreferenceItem,
        {2: {"pronoun_gender": "neuter", "item_id": ""}, 4: {"referent": "pilot", "pronoun_start": 0}},
    )
    (tmp_path / "README.md").unlink()
    outcome = validate(tmp_path)
    assert outcome.exit_code == 1
    assert outcome.problems == [
        f"{tmp_path}/README.md: no such file; a dataset has a card: build the dataset again",
        f"{path}: row 2: item_id: '' should be non-empty; correct it (schemas/items/coreference.schema.json)",
        f"{path}: row 2: pronoun_gender: 'neuter' is not allowed; have: masculine, feminine",
        f"{path}: row 4: pronoun_start: 0 is not where 'she' stands in the sentence; correct it",
        f"{path}: row 4: referent: 'pilot' is not one of the item's occupations; have: mechanic, nurse",
    ]
    assert outcome.summary == "error: 5 problems"


@pytest.mark.slow
def test_files_that_disagree_with_the_manifest_are_found(tmp_path: Path) -> None:
    manifest = examples.write_dataset(tmp_path)
    first = examples.item()
    rows = [first, dataclasses.replace(first, flags=("odd",)), *examples.items()[2:], examples.item(pair="pair-3")]
    row_files.write_rows(tmp_path / examples.SPLIT_PATH, rows, CoreferenceItem)
    row_files.write_rows(tmp_path / "data/type2/extra.parquet", rows, CoreferenceItem)
    changed = dataclasses.replace(manifest, rejects=(), content_sha256=examples.HASH)
    strict_json.write(tmp_path / "dataset.json", contract.dump(changed))
    path = tmp_path / examples.SPLIT_PATH
    found = row_files.content_sha256(rows)[:12]
    said = manifest.splits[0].content_sha256[:12]
    assert validate(tmp_path).problems == [
        f"{path}: 5 rows, dataset.json says 4; build the dataset again",
        f"{path}: content sha256 {found} is not the {said} of dataset.json; "
        "the items were changed after the build: build the dataset again",
        f"{path}: row 2: item_id: 'pair-1-he' stands in row 1 already; one row per item",
        f"{path}: row 2: flags: 'odd' is not in the flags of dataset.json; have: none",
        f"{tmp_path}/rejects.parquet: 1 rows of rule 'one-occupation', dataset.json says 0; build the dataset again",
        f"{tmp_path}/dataset.json: content_sha256: is not the hash of the splits' hashes; build the dataset again",
        f"{tmp_path}/data/type2/extra.parquet: not in the splits of dataset.json; remove it or build the dataset again",
    ]


@pytest.mark.slow
def test_a_run_is_recounted(tmp_path: Path) -> None:
    examples.write_run(tmp_path)
    row_files.write_rows(tmp_path / "records.parquet", [examples.failed_record(), examples.failed_record()], Record)
    outcome = validate(tmp_path)
    assert outcome.exit_code == 1
    assert len(outcome.problems) == 4
    assert outcome.problems[0].startswith(f"{tmp_path}/records.parquet: sha256 ")
    assert outcome.problems[0].endswith(" was changed after the result was written: run or import the model again")
    assert outcome.problems[1:] == [
        f"{tmp_path}/records.parquet: row 2: item_id: 'pair-1-she' stands in row 1 already; one row per item",
        f"{tmp_path}/result.json: counts.scored: 1, but the records have 0; rescore the run",
        f"{tmp_path}/result.json: counts.failed: 1, but the records have 2; rescore the run",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 2}', "not strict JSON: key 'a' stands twice; keep one"),
        ('{"metrics": [NaN]}', "not strict JSON: NaN is not JSON; write null and a reason"),
        (
            "",
            "not strict JSON: Expecting value: line 1 column 1 (char 0); correct it, or take the file from where it "
            "was made",
        ),
        ("[]", "top level: [] is not of type object; correct it (schemas/documents/result.schema.json)"),
    ],
)
def test_a_result_that_is_not_strict_json_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    assert validate(tmp_path) == Outcome(1, [f"{tmp_path}/result.json: {problem}"], "error: 1 problem")


@pytest.mark.slow
def test_a_truncated_parquet_file_is_one_problem(tmp_path: Path) -> None:
    examples.write_run(tmp_path)
    path = tmp_path / "records.parquet"
    path.write_bytes(path.read_bytes()[:200])
    problems = validate(path).problems
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}: not a readable parquet file (truncated?): ")


def test_nothing_to_validate_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    known = (
        "dataset.json, result.json, records.parquet, scores.parquet, sums.parquet, rejects.parquet, submission.json, "
        "register.json, adapters.json, corrections.json, data/<config>/<split>-*.parquet"
    )
    assert validate(tmp_path, tmp_path / "absent", tmp_path / "notes.txt") == Outcome(
        1,
        [
            f"{tmp_path}: nothing to validate here; looked for: {known}",
            f"{tmp_path}/absent: no such file or folder; correct the path",
            f"{tmp_path}/notes.txt: not a file of the contract; have: {known}",
        ],
        "error: 3 problems",
    )


@pytest.mark.slow
def test_unfinished_writes_are_passed_over(tmp_path: Path) -> None:
    examples.write_run(tmp_path / "run")
    (tmp_path / ".run.half").mkdir()
    (tmp_path / ".run.half" / "result.json").write_text("{", encoding="utf-8")
    assert validate(tmp_path).exit_code == 0


@pytest.mark.slow
def test_items_without_a_manifest_cannot_be_checked(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    row_files.write_rows(path, examples.items(), CoreferenceItem)
    assert validate(path).problems == [
        f"{path}: no dataset.json above it, so its kind is unknown; name a dataset folder, or a file in one"
    ]


@pytest.mark.slow
def test_the_limit_stops_early_and_says_so(tmp_path: Path) -> None:
    examples.write_dataset(tmp_path)
    changes: dict[int, dict[str, object]] = {number: {"pronoun_gender": "neuter"} for number in range(1, 5)}
    replace_rows(tmp_path / examples.SPLIT_PATH, CoreferenceItem, changes)
    outcome = validate(tmp_path, "--limit", "3")
    assert [line.split(": ")[1] for line in outcome.problems] == ["row 1", "row 2", "row 3"]
    assert outcome.summary == "error: 3 problems and more; show them with --limit 30"
    assert validate(tmp_path, "--limit", "4").summary == "error: 4 problems"
