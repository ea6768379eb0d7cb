"""Results that are handed in with hashes in place of their texts, or of the prompts of options."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.benchmark import load_benchmark
from evaluators.models.parity import differing
from evaluators.runs.measure.rescoring import rescore
from leaderboard.verify.comparisons import CompleteRuns
from leaderboard.verify.entries import Root
from leaderboard.verify.submissions import public_files
from leaderboard.verify.verdicts import judge, load
from schemas.documents.base import as_row
from schemas.documents.record import exchange_sha256
from schemas.documents.result import Result
from schemas.documents.run_files import ClusterSums
from schemas.files import arrow_files, contract, row_files
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import find_runs, read_result
from schemas.validate import problems
from tests.commands import output_of
from tests.leaderboard.forging import Places, verdict, with_exchange
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.synthetic import present
from tests.leaderboard.withheld_world import World, better, change_exchange, change_sums, rewritten
from tests.record_files import read_records, write_records
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow


def test_where_the_benchmark_asks_for_it_prompts_stay_behind_too(made_world: World, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(made_world.runs / "acme__fair" / "recognition", tmp_path / "run"))
    result = read_result(copy)
    (dataset,) = load_benchmark("gifi").withheld
    signature = replace(result.signature, dataset=dataset)
    changed = replace(result, signature=signature, signature_sha256=signature.sha256())
    strict_json.write(copy / "result.json", contract.dump(changed))
    assert public_files(copy, tmp_path, withhold=False).withheld == load_benchmark("gifi").withheld[dataset]
    target = hand_in(copy, tmp_path / "results")
    complete = read_records(copy / "records.parquet")
    for stored, record in zip(read_records(target / "records.parquet"), complete, strict=True):
        for one, other in zip(stored.exchanges, record.exchanges, strict=True):
            assert other.prompt is not None
            assert one.prompt is None
            assert one.text == f"sha256:{hashlib.sha256(str(other.text).encode()).hexdigest()[:16]}"


def test_no_text_is_left_but_its_hash_and_all_numbers_are_those_of_the_complete_runs(world: World) -> None:
    for run in find_runs(world.runs):
        texts = {exchange.text for record in read_records(run / "records.parquet") for exchange in record.exchanges}
        result = read_result(run)
        folder = world.result(result.model.id, result.signature.task)
        stored = read_records(folder / "records.parquet")
        contents = b"".join(path.read_bytes() for path in folder.iterdir())
        assert not [text for text in texts if text and len(text) > 12 and text.encode() in contents]
        shown = {exchange.text for record in stored for exchange in record.exchanges}
        assert shown.isdisjoint(texts)
        assert len(shown) == len(texts)
        assert list(problems(folder)) == []
    complete, withheld = world.entries(world.runs), world.entries(world.results)
    assert complete.keys() == withheld.keys()
    for name, theirs in complete.items():
        ours = withheld[name]
        assert dict(ours.metrics) == dict(theirs.metrics)
        assert ours.standing == theirs.standing
        assert ours.answers_sha256 == theirs.answers_sha256
        assert ours.deviations.keys() == theirs.deviations.keys()
        for metric, deviations in theirs.deviations.items():
            assert all(map(np.array_equal, ours.deviations[metric].parts, deviations.parts))


def refusal(world: World, folder: Path) -> str:
    (verdict,) = judge([folder], world.book, Memory(None))
    assert verdict.state == "rejected"
    return str(verdict.reason)


def _without_spread(row: ClusterSums) -> ClusterSums:
    """The row with the same total, and so the same value, in equal parts: its interval has no width."""
    columns = np.array(row.sums).reshape(max(row.n_columns, 1), -1)
    return replace(row, sums=tuple(np.repeat(columns.mean(axis=1, keepdims=True), columns.shape[1], axis=1).flat))


def _of(metric: str, change: Callable[[ClusterSums], ClusterSums]) -> Callable[[Path], None]:
    """What changes the sums of one metric, or of all."""
    return lambda folder: change_sums(folder, lambda row: change(row) if metric in ("", row.metric) else row)


def _with_text(text: str | None, place: int) -> Callable[[Path], None]:
    """What changes the text of the first exchange of a record."""
    return lambda folder: change_exchange(folder, place, lambda one: replace(one, text=text))


def _with_infinity(folder: Path) -> None:
    path = folder / "sums.parquet"
    rows = row_files.read_rows(path, ClusterSums)
    arrow_files.write(path, [as_row(replace(row, sums=(float("inf"), *row.sums[1:]))) for row in rows], ClusterSums)


def _twice(folder: Path) -> None:
    rows = row_files.read_rows(folder / "sums.parquet", ClusterSums)
    row_files.write_rows(folder / "sums.parquet", [*rows, rows[0]], ClusterSums)
    result = read_result(folder)
    withheld = present(result.withheld)
    withheld = replace(withheld, sums=replace(withheld.sums, n_rows=len(rows) + 1))
    strict_json.write(folder / "result.json", contract.dump(replace(result, withheld=withheld)))


FORGED: dict[str, tuple[Callable[[Path], None], str]] = {
    "better": (_of("", better), "metric recognition_accuracy"),
    "without spread": (_of("", _without_spread), "metric gdr: interval is"),
    "with a text": (_with_text("A text.", 3), "row 4: holds a text"),
    "without a hash": (_with_text(None, 0), "row 1: holds no hash of its text"),
    "renamed": (
        _of("recognition_accuracy", lambda row: replace(row, metric="fairness")),
        "has sums of 'fairness', which is no metric of recognition",
    ),
    "over more clusters": (_of("", lambda row: replace(row, sums=row.sums * 20)), "clusters, and the records have 30"),
    "over other clusters": (_of("gdr", lambda row: replace(row, sums=(*row.sums, *row.sums))), "has sums over"),
    "infinite": (_with_infinity, "row 1: sums[0]: holds NaN or"),
    "twice": (_twice, "has sums twice for one slice"),
    "of nobody": (
        _of("gdr", lambda row: replace(row, group={"family": "nobody"})),
        "are on a group that no record has",
    ),
    "of too many": (_of("gdr", lambda row: replace(row, n=10**9)), "count 1,000,000,000 units of 330 answers"),
}


@pytest.mark.parametrize(("forge", "told"), FORGED.values(), ids=FORGED)
def test_forged_files_are_rejected_with_a_reason(world: World, forge: Callable[[Path], None], told: str) -> None:
    folder = world.result("acme/fair", "recognition")
    forge(folder)
    assert forge is _twice or "the file was changed after the result was written" in refusal(world, folder)
    rewritten(folder, lambda result: result)
    assert told in refusal(world, folder)


def test_hashes_of_the_texts_of_others_are_no_texts(world: World, tmp_path: Path) -> None:
    """Otherwise a result that was made from public hashes would seem to be the first with these answers."""
    copy = Path(shutil.copytree(world.runs / "acme__fair" / "recognition", tmp_path / "copy"))
    shutil.copyfile(world.result("acme/fair", "recognition") / "records.parquet", copy / "records.parquet")
    result = read_result(copy)
    records = replace(result.records, sha256=sha256_file(copy / "records.parquet"))
    strict_json.write(copy / "result.json", contract.dump(replace(result, records=records)))
    (verdict,) = judge([copy], world.book, Memory(None))
    assert "holds a hash in place of a text" in str(verdict.reason)


def test_sums_of_another_version_give_a_null_with_a_reason(world: World) -> None:
    folder = world.result("acme/fair", "recognition")
    change_sums(folder, lambda row: replace(row, version="0.1") if row.metric == "gdr" else row)

    def older(result: Result) -> Result:
        metrics = (replace(one, version="0.1") if one.name == "gdr" else one for one in result.metrics)
        return replace(result, metrics=tuple(metrics))

    rewritten(folder, older)
    metric = present(world.entries(world.results)["acme/fair", "recognition"].metric("gdr"))
    assert metric.value is None
    assert str(metric.reason).startswith("its sums are of version 0.1")


def test_what_needs_texts_asks_for_the_complete_run_and_hashes_are_compared(world: World, tmp_path: Path) -> None:
    folder = world.result("acme/fair", "continuation")
    with pytest.raises(DataError, match="name the folder of the complete run"):
        rescore(folder)
    with pytest.raises(DataError, match="name the folder of the complete run"):
        public_files(folder, tmp_path, withhold=True)
    folder = world.result("acme/fair", "recognition")
    run = world.runs / "acme__fair" / "recognition"
    stored, complete = (RecordColumns.of(read_records(one / "records.parquet"))[0] for one in (folder, run))
    assert differing([stored.exchanges], [complete.exchanges], 1e-3) == []
    other = [replace(exchange, text=f"{exchange.text}!") for exchange in complete.exchanges]
    assert differing([stored.exchanges], [other], 1e-3) == [0]


def test_a_result_of_options_goes_all_the_way_without_its_prompts(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.keys, tmp_path / "leaderboard" / "keys")
    results = tmp_path / "leaderboard" / "results"

    def call(*arguments: str | Path) -> str:
        return output_of("-W", "error", "-m", "leaderboard", *arguments, cwd=tmp_path)

    stated = ("--contact", "bot@example.org", "--model-card", "https://example.org/card")
    submitted = call("submit", places.honest, *stated, "--withhold-texts")
    assert "hashes in place of the prompts: as --withhold-texts asks" in submitted
    (folder,) = find_runs(results)
    complete = list(read_records(places.honest / "records.parquet"))
    assert all("waited for the" in str(exchange.prompt) for record in complete for exchange in record.exchanges)
    assert list(read_records(folder / "records.parquet")) == [
        with_exchange(record, lambda one: replace(one, prompt=None, request_sha256=exchange_sha256(one)))
        for record in complete
    ]
    stored, of_run = read_result(folder), read_result(places.honest)
    assert replace(stored, records=of_run.records) == of_run
    assert call("verify", results).startswith("accepted: ")
    call("accept", folder.relative_to(results).as_posix(), "--owner", "acme-bot")
    (entry,) = load([Root(results, "accepted")], places.book, Memory(None)).entries
    assert entry.acceptance is not None
    assert (entry.match.extent, entry.claim) == ("whole", None)
    assert {key: metric for key, metric in entry.metrics.items() if metric in of_run.metrics} == dict(entry.metrics)
    page = MadeBoard(entry).page("models/acme__honest/")
    assert "the records hold hashes in place of the prompts" in page
    assert "waited for the" not in page


def test_options_after_a_text_are_handed_in_without_the_prompt_that_holds_it(reasoned: Places, tmp_path: Path) -> None:
    run, memory = reasoned.honest, Memory(None)
    folder = hand_in(run, tmp_path / "results", withhold=True)
    complete, stored = (list(read_records(one / "records.parquet")) for one in (run, folder))
    texts = {exchange.text for record in complete for exchange in record.exchanges if exchange.text}
    contents = b"".join(path.read_bytes() for path in folder.iterdir())
    assert texts
    assert not [text for text in texts if text.strip().encode() in contents]
    for record, without in zip(complete, stored, strict=True):
        assert without.reading == record.reading
        for exchange, hashed in zip(record.exchanges, without.exchanges, strict=True):
            is_choice = exchange.kind == "choice"
            assert hashed.prompt == (None if is_choice else exchange.prompt)
            assert exchange_sha256(hashed) == exchange_sha256(exchange)
            assert (hashed.text is None) == is_choice
            assert hashed.option_logprobs == exchange.option_logprobs
    loaded = [load([Root(one, "accepted")], reasoned.book, memory) for one in (run, folder)]
    (ours,), (theirs,) = (one.entries for one in loaded)
    assert dict(ours.metrics) == dict(theirs.metrics)
    assert (ours.standing, ours.answers_sha256) == (theirs.standing, theirs.answers_sha256)
    assert CompleteRuns(run, reasoned.book, memory).problem(folder) is None

    records = [with_exchange(stored[0], lambda one: replace(one, prompt="Question It is A.\nAnswer:")), *stored[1:]]
    write_records(folder / "records.parquet", records)
    rewritten(folder, lambda result: result)
    assert "row 1: holds a text in its prompt" in str(verdict(folder, reasoned).reason)


def test_a_changed_log_probability_is_found_without_prompts(places: Places, tmp_path: Path) -> None:
    folder = hand_in(places.honest, tmp_path, withhold=True)
    change_exchange(folder, 5, lambda one: replace(one, option_logprobs=one.option_logprobs[::-1]))
    assert "the file was changed after the result was written" in str(verdict(folder, places).reason)
    file = replace(read_result(folder).records, sha256=sha256_file(folder / "records.parquet"))
    strict_json.write(folder / "result.json", contract.dump(replace(read_result(folder), records=file)))
    assert "row 6: the reading does not follow from the stored answers" in str(verdict(folder, places).reason)
