"""``python -m schemas.validate`` as its users run it: in a process of its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from biasboard.ground import strict_json
from schemas.documents.record import Record
from schemas.files import contract, row_files
from schemas.items.coreference import CoreferenceItem
from tests.commands import run
from tests.schemas import examples

pytestmark = pytest.mark.slow


def validate(*arguments: str | Path) -> tuple[list[str], str]:
    """Return the problems and the summary, after a check that the exit status fits them."""
    done = run("-m", "schemas.validate", *arguments)
    lines = done.stdout.splitlines()
    assert done.returncode == bool(lines)
    return lines, done.stderr.strip()


def test_sound_folders_and_files_pass_and_unfinished_ones_are_passed_over(tmp_path: Path) -> None:
    dataset, run_folder = tmp_path / "datasets/example", tmp_path / "runs/example@1.0.0/org__name/run"
    examples.write_dataset(dataset)
    examples.write_run(run_folder)
    (tmp_path / ".run.half").mkdir()
    (tmp_path / ".run.half" / "result.json").write_text("{", encoding="utf-8")
    assert validate(tmp_path) == ([], "2 datasets, runs and files checked, no problems")
    named = (dataset / "dataset.json", run_folder / "result.json")
    assert validate(*named) == ([], "2 datasets, runs and files checked, no problems")


def test_every_problem_of_a_dataset_is_one_line_until_the_limit(tmp_path: Path) -> None:
    examples.write_dataset(tmp_path)
    path = tmp_path / examples.SPLIT_PATH
    faults: dict[int, dict[str, object]] = {
        2: {"pronoun_gender": "neuter", "item_id": ""},
        4: {"referent": "pilot", "pronoun_start": 0},
    }
    examples.replace_rows(path, CoreferenceItem, faults)
    (tmp_path / "README.md").unlink()
    lines = [
        f"{tmp_path}/README.md: no such file; a dataset has a card: build the dataset again",
        f"{path}: row 2: item_id: '' should be non-empty; correct it (schemas/items/coreference.schema.json)",
        f"{path}: row 2: pronoun_gender: 'neuter' is not allowed; have: masculine, feminine",
        f"{path}: row 4: pronoun_start: 0 is not where 'she' stands in the sentence; correct it",
        f"{path}: row 4: referent: 'pilot' is not one of the item's occupations; have: mechanic, nurse",
    ]
    assert validate(tmp_path, "--limit", "5") == (lines, "error: 5 problems")
    assert validate(tmp_path, "--limit", "3") == (lines[:3], "error: 3 problems and more; show them with --limit 30")


def test_files_that_disagree_with_the_manifest_are_found(tmp_path: Path) -> None:
    manifest = examples.write_dataset(tmp_path)
    first = examples.item()
    rows = [first, dataclasses.replace(first, flags=("odd",)), *examples.items()[2:], examples.item(pair="pair-3")]
    row_files.write_rows(tmp_path / examples.SPLIT_PATH, rows, CoreferenceItem)
    row_files.write_rows(tmp_path / "data/type2/extra.parquet", rows, CoreferenceItem)
    changed = dataclasses.replace(manifest, rejects=(), content_sha256=examples.HASH)
    strict_json.write(tmp_path / "dataset.json", contract.dump(changed))
    path = tmp_path / examples.SPLIT_PATH
    found, said = row_files.content_sha256(rows)[:12], manifest.splits[0].content_sha256[:12]
    assert validate(tmp_path)[0] == [
        f"{path}: 5 rows, dataset.json says 4; build the dataset again",
        f"{path}: content sha256 {found} is not the {said} of dataset.json; "
        "the items were changed after the build: build the dataset again",
        f"{path}: row 2: item_id: 'pair-1-he' stands in row 1 already; one row per item",
        f"{path}: row 2: flags: 'odd' is not in the flags of dataset.json; have: none",
        f"{tmp_path}/rejects.parquet: 1 rows of rule 'one-occupation', dataset.json says 0; build the dataset again",
        f"{tmp_path}/dataset.json: content_sha256: is not the hash of the splits' hashes; build the dataset again",
        f"{tmp_path}/data/type2/extra.parquet: not in the splits of dataset.json; remove it or build the dataset again",
    ]


def test_a_run_is_recounted(tmp_path: Path) -> None:
    examples.write_run(tmp_path)
    path = tmp_path / "records.parquet"
    row_files.write_rows(path, [examples.failed_record(), examples.failed_record()], Record)
    changed, *others = validate(tmp_path)[0]
    assert changed.startswith(f"{path}: sha256 ")
    assert changed.endswith(" was changed after the result was written: run or import the model again")
    assert others == [
        f"{path}: row 2: item_id: 'pair-1-she' stands in row 1 already; one row per item",
        f"{tmp_path}/result.json: counts.scored: 1, but the records have 0; rescore the run",
        f"{tmp_path}/result.json: counts.failed: 1, but the records have 2; rescore the run",
    ]


def test_what_is_nothing_to_validate_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "register.json").write_text("{}", encoding="utf-8")
    known = "dataset.json, result.json, register.json, adapters.json"
    of_register = "top level: field 'results', 'schema_version' is missing; add it"
    lines = [
        f"{tmp_path}/absent: no such file or folder; correct the path",
        f"{tmp_path}/notes.txt: nothing to validate here; looked for: {known}",
        f"{tmp_path}/below/register.json: {of_register} (schemas/documents/register.schema.json)",
    ]
    assert validate(tmp_path / "absent", tmp_path / "notes.txt", tmp_path) == (lines, "error: 3 problems")
