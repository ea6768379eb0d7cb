"""What a build believes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.files import sha256_file
from evaluators.runs.measure.measuring import compute_metrics
from leaderboard.commands.comparable_results import known_benchmarks, of_benchmarks
from leaderboard.verify.entries import Root
from leaderboard.verify.verification import differences, earlier_metrics
from schemas.documents.record import Record
from schemas.documents.result import Metric
from schemas.folders.run_folder import read_result
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import (
    TASK,
    leaning,
    make_records,
    make_result,
    present,
    replace_reading,
    write_model,
    write_result,
)
from tests.record_files import write_records

Edit: TypeAlias = Callable[[Path], object]
"""A change of the files of a sound result, by the path of its ``result.json``."""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """``result.json`` of a sound result."""
    return write_model(tmp_path, "acme/small", leaning(1.0, 0.5))


def reason(root: Path) -> str:
    """Why the only result below a folder is left out."""
    loaded = load_known(Root(root, "local"))
    assert loaded.entries == ()
    (left_out,) = loaded.left_out
    assert "\n" not in left_out.reason
    return left_out.reason


def test_results_of_some_benchmarks_can_be_chosen(written: Path, tmp_path: Path) -> None:
    place = written.parent.relative_to(tmp_path).as_posix()
    root, benchmark = Root(tmp_path, "local"), read_result(written.parent).signature.benchmark
    assert of_benchmarks(known_benchmarks(f"{benchmark}, gifi"))(root, place)
    assert not of_benchmarks(known_benchmarks("gifi"))(root, place)
    # What cannot be read is told, whatever it is of.
    written.write_text("{", encoding="utf-8")
    assert of_benchmarks(("gifi",))(root, place)
    for text, named in (("gifi,synthbis", "synthbis"), (",", ",")):
        with pytest.raises(ConfigError, match=f"--benchmarks {named}: no such benchmark; have: gifi, "):
            known_benchmarks(text)


def told(change: Callable[[Any], object]) -> Edit:
    def edit(path: Path) -> None:
        value = json.loads(path.read_text(encoding="utf-8"))
        change(value)
        path.write_text(json.dumps(value), encoding="utf-8")

    return edit


def asked(**fields: object) -> Edit:
    """Another signature, and its hash."""

    def change(value: Any) -> None:
        value["signature"] |= fields
        value["signature_sha256"] = strict_json.sha256(value["signature"])

    return told(change)


def records_at(path: str) -> Edit:
    return told(lambda value: value["records"].update(path=path))


def touch_up(value: Any) -> None:
    next(metric for metric in value["metrics"] if metric["name"] == "ucerf")["value"] = 0.999


def of_another_type(path: Path) -> None:
    """A column of another type in the file of records, with its hash."""
    records = path.with_name("records.parquet")
    table = pq.read_table(records)
    column = pa.array([0] * table.num_rows, pa.timestamp("s"))
    pq.write_table(table.set_column(table.column_names.index("reason"), "reason", column), records)
    told(lambda value: value["records"].update(sha256=sha256_file(records)))(path)


DAMAGED: list[tuple[Edit, str]] = [
    (lambda path: path.write_text("{"), "synthbias@9.0.0/acme__small/type2/result.json: not strict JSON"),
    (lambda path: path.write_text("{}"), "is missing; add it"),
    (
        lambda path: write_records(path.with_name("records.parquet"), make_records(leaning(3.0, 0.0))),
        "the file was changed after the result was written: run or import the model again",
    ),
    (of_another_type, "column reason is of type timestamp"),
    (records_at("../records.parquet"), "records.path: '../records.parquet'"),
    (records_at("https://example.org/records.parquet"), "records.path 'https://example.org/records.parquet'"),
    (
        lambda path: path.with_name("records.parquet").unlink(),
        "records.parquet: no such file, though result.json names",
    ),
    (told(touch_up), "metric ucerf is 0.999, the records give"),
    (asked(task_version="9.9"), "read by task coreference 9.9, the code has 1.1; rescore the run"),
    (asked(prompt_sha256="0" * 64), "prompt 'intrinsic-v1' differs from the one in this code; run the model again"),
    (asked(n_outcomes=5), "has n_outcomes 5, and prompt 'intrinsic-v1' is measured on 2 here; run the model again"),
    (asked(prompt="own-v1"), "prompt 'own-v1' does not exist for task 'coreference'; have: intrinsic-v1"),
    (asked(normalisation=None), "normalisation: null, and scoring is 'option_logprob'; make it a text"),
    (told(lambda value: value["model"].update(id="baseline/uniform")), "marked as a baseline only by id;"),
]


@pytest.mark.parametrize(("edit", "said"), DAMAGED, ids=[row[1] for row in DAMAGED])
def test_a_damaged_result_is_refused(written: Path, tmp_path: Path, edit: Edit, said: str) -> None:
    edit(written)
    assert said in reason(tmp_path)


def first(**fields: Any) -> Callable[[list[Record]], list[Record]]:
    return lambda records: [replace(records[0], **fields), *records[1:]]


def never_asked(records: list[Record]) -> list[Record]:
    exchange = replace(records[0].exchanges[0], prompt="Never asked")
    return first(exchanges=(exchange,))(records)


# Records, hash and metrics agree with each other; only the stored answers tell otherwise.
CHEATING: dict[str, tuple[Callable[[list[Record]], list[Record]], str]] = {
    "readings": (lambda all: [replace_reading(one, (0.9, 0.1)) for one in all], "the reading does not follow from the"),
    "a status": (first(status="refused", reading=None, reason="x"), "status is 'refused', its answers give 'scored'"),
    "no answers": (lambda all: [replace(one, exchanges=()) for one in all], "holds no answer of the model;"),
    "an item twice": (
        lambda records: [records[0], replace(records[1], item_id=records[0].item_id), *records[2:]],
        "row 2: item_id: 'p0000-m' stands in row 1 already",
    ),
    "two configs": (lambda all: [*all[:3], replace(all[3], config="type1"), *all[4:]], "row 4: belongs to type1/test,"),
    "a request": (never_asked, "row 1: request_sha256 is not the hash of its prompt and options"),
}


@pytest.mark.parametrize(("change", "said"), CHEATING.values(), ids=CHEATING)
def test_forged_records_are_refused(tmp_path: Path, change: Callable[[list[Record]], list[Record]], said: str) -> None:
    records = change(make_records(leaning(0.2, 0.9)))
    write_result(tmp_path / "a", make_result(records, "acme/cheat"), records)
    assert said in reason(tmp_path)


def test_counts_must_be_those_of_the_records(tmp_path: Path) -> None:
    records = make_records(lambda reference, other, gender, pair: None if pair == 0 else 0.8)
    result = make_result(records, "acme/refuser")
    write_result(tmp_path / "a", replace(result, counts=replace(result.counts, scored=100, refused=0)), records)
    assert "counts.scored: 100, but the records have 98; rescore the run" in reason(tmp_path)


def test_a_sound_result_is_loaded_counted_and_every_number_recomputed(written: Path, tmp_path: Path) -> None:
    # A folder that is still being written is no result.
    (tmp_path / ".tmp").mkdir()
    (tmp_path / ".tmp" / "result.json").write_text("half", encoding="utf-8")
    loaded = load_known(Root(tmp_path, "local"), Root(tmp_path / "absent", "accepted"))
    assert loaded.left_out == ()
    (entry,) = loaded.entries
    assert entry.place == "synthbias@9.0.0/acme__small/type2"
    assert entry.n_recomputed == len(entry.result.metrics)
    compared = [present(entry.primary).name, "accuracy", "equalized_odds", "ucerf", "accuracy_gap", "pro_rate"]
    assert [*entry.deviations] == compared
    write_model(tmp_path, "acme/other", leaning(2.0, 0.1))
    seen: list[tuple[int, int]] = []
    load_known(Root(tmp_path, "local"), progress=lambda n_done, n_found: seen.append((n_done, n_found)))
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.slow
def test_much_to_read_is_shared_out_and_gives_the_same(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_model(tmp_path, f"acme/{name}", leaning(1.0, len(name) / 3))
    folder = tmp_path / "synthbias@9.0.0"
    (folder / "acme__b" / "type2" / "result.json").write_text("{", encoding="utf-8")
    alone = load_known(Root(tmp_path, "local"))
    # A big file beside the records is what makes the work look large.
    (folder / "acme__a" / "type2" / "ballast.parquet").write_bytes(bytes(3_000_000))
    together = load_known(Root(tmp_path, "local"))
    assert [(one.place, dict(one.metrics)) for one in together.entries] == [
        (one.place, dict(one.metrics)) for one in alone.entries
    ]
    assert together.left_out == alone.left_out


@pytest.fixture(scope="module")
def computed() -> tuple[Metric, ...]:
    return compute_metrics(make_records(leaning(1.0, 0.5)), TASK)


def changed(metrics: tuple[Metric, ...], fields: Mapping[str, Any]) -> list[Metric]:
    """The metrics, the accuracy on all items with other fields."""
    is_changed = [metric.name == "accuracy" and not metric.group for metric in metrics]
    return [replace(one, **fields) if is_it else one for one, is_it in zip(metrics, is_changed, strict=True)]


def test_every_changed_field_is_named_and_rounding_is_not_seen(computed: tuple[Metric, ...]) -> None:
    assert (list(differences(computed, computed)), earlier_metrics(computed, computed)) == ([], ())
    fields: Mapping[str, Any]
    for fields, said in (
        ({"value": 0.5}, "metric accuracy is 0.5, the records give"),
        ({"n": 3}, "metric accuracy: n is 3, the records give 100"),
        ({"interval": None, "interval_reason": "hidden"}, "metric accuracy: interval is null, the records give ["),
    ):
        (line,) = differences(changed(computed, fields), computed)
        assert line.startswith(said)
        assert line.endswith("; rescore the run")
    interval = present(next(one.interval for one in computed if one.name == "accuracy" and not one.group))
    for by, n in ((1e-6, 1), (1e-12, 0)):
        shifted = changed(computed, {"interval": replace(interval, low=interval.low + by)})
        assert len(list(differences(shifted, computed))) == n


def test_metrics_that_are_taken_out_invented_or_of_another_version(computed: tuple[Metric, ...]) -> None:
    without_slice = [metric for metric in computed if metric.group != {"stereotype": "anti"}]
    assert list(differences(without_slice, computed)) == [
        "metric accuracy (stereotype=anti) follows from the records but is not in the result; rescore the run"
    ]
    assert list(differences([*computed, replace(computed[0], name="goodness")], computed)) == [
        "metric goodness cannot be computed from the records; rescore the run; if a plug-in defines it, install its "
        "package or name its folder in BIASBOARD_PLUGINS"
    ]
    older = [replace(metric, version="0.9", value=0.123) if metric.name == "ucerf" else metric for metric in computed]
    assert list(differences(older, computed)) == []
    kept = [(metric.name, metric.version, metric.value) for metric in earlier_metrics(older, computed)]
    assert kept == [("ucerf", "0.9", 0.123)] * sum(metric.name == "ucerf" for metric in computed)
    without = [metric for metric in computed if metric.name != "ucerf_macro"]
    assert list(differences(without, computed)) == []
    assert earlier_metrics(without, computed) == ()
