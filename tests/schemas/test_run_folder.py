"""The one reader of a run: every fault has one message, and the first one stops whoever reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from schemas.documents.record import Record
from schemas.documents.result import ScoresFile
from schemas.documents.run_files import Scorer, TextScore, text_sha256
from schemas.files import row_files
from schemas.folders.run_folder import find_runs, finished_runs, read_parts, read_result, read_run, write_result
from schemas.validate import problems
from tests.schemas import examples


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A sound run of two records."""
    folder = tmp_path / "runs" / "run"
    folder.mkdir(parents=True)
    examples.write_run(folder)
    return folder


def test_runs_are_found_below_a_folder_but_not_in_hidden_ones_and_read_through_links(run: Path, tmp_path: Path) -> None:
    (run.parent / ".unfinished").mkdir()
    examples.write_run(run.parent / ".unfinished")
    assert find_runs(run.parent) == finished_runs(run.parent) == finished_runs(run / "result.json") == [run]
    with pytest.raises(DataError, match=r"no such file or folder; name that of a finished run"):
        finished_runs(run.parent / "nowhere")
    blob = (run / "records.parquet").rename(tmp_path / "blob")
    (run / "records.parquet").symlink_to(blob)
    assert len(read_run(run).records) == 2
    blob.unlink()
    with pytest.raises(DataError, match=r"records\.parquet: no such file, though result\.json names it"):
        read_run(run)


def test_the_reader_stops_at_the_first_fault_and_validate_lists_all(run: Path) -> None:
    path = run / "records.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    changed, cut = problems(run)
    assert "the file was changed after the result was written: run or import the model again" in changed
    assert "not a readable parquet file" in cut
    with pytest.raises(DataError) as caught:
        read_run(run)
    assert str(caught.value) == changed


def test_many_rows_of_one_fault_are_one_line(run: Path) -> None:
    row_files.write_rows(
        run / "records.parquet", [replace(examples.record(f"{n}"), config="other") for n in range(50)], Record
    )
    result = examples.result()
    signature = replace(result.signature, n_items=50)
    records = replace(result.records, sha256=sha256_file(run / "records.parquet"), n_rows=50)
    counts = replace(result.counts, items=50, scored=50, failed=0)
    hashed = {"signature": signature, "signature_sha256": signature.sha256()}
    write_result(run, replace(result, records=records, counts=counts, **hashed))  # type: ignore[arg-type]
    (line,) = problems(run)
    assert "row 1: belongs to other/test, the signature says type2/test (50 such rows); run or import" in line
    # Scores of an unknown scorer.
    examples.write_run(run)
    rows = [
        TextScore(kind="toxicity", scorer="other-1", text_sha256=text_sha256(f"text {number}"), values=(0.5,))
        for number in range(30)
    ]
    row_files.write_rows(run / "scores.parquet", rows, TextScore)
    scorer = Scorer(kind="toxicity", name="made", revision="1", settings={})
    scores = run / "scores.parquet"
    said = ScoresFile(path=scores.name, sha256=sha256_file(scores), n_rows=30, scorers=(scorer,))
    write_result(run, replace(read_run(run).result, scores=said))
    (line,) = problems(run)
    assert "row 1: toxicity by 'other-1', which result.json does not name (30 such rows); score the texts" in line


def test_wrong_counts_are_refused_unless_the_reader_counts_anew(run: Path) -> None:
    result = read_run(run).result
    write_result(run, replace(result, counts=replace(result.counts, scored=0, unparsed=1)))
    with pytest.raises(DataError, match=r"counts\.scored: 0, but the records have 1; rescore the run"):
        read_run(run)
    assert [len(part) for part in read_parts(run, read_result(run), recount=False)] == [2]
