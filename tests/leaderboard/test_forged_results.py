"""What a stranger cannot make the board say: forged results, models, records and files, and what is said instead."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasboard.ground.files import sha256_file
from evaluators.backend import GenerateRequest
from evaluators.task import load_task, prompt_of
from schemas.documents.base import from_values
from schemas.documents.record import Exchange, Record, choice_sha256
from schemas.documents.result import Result
from schemas.folders.run_folder import read_result
from tests.evaluators.logging_backend import identity_of
from tests.leaderboard.forging import (
    AT_ENDPOINT,
    Change,
    Forged,
    Places,
    asking,
    board,
    entries,
    exchanges_with,
    forge,
    identified,
    judged,
    on_each,
    on_each_exchange,
    reason,
    told,
    verdict,
    with_exchange,
)
from tests.record_files import read_records

NAME = "evil/forger"
LIMITED = "a limited run, of 100 of 200 items of type2: ask all of them"
NOT_THE_ITEM = "is not asked or described as in made@1.0.0"
NO_FILES = "the identity names no files: its model is neither NAME@REVISION nor the sha256 of a folder"
OWN = identity_of(NAME)
SERVED = {"backend": "openai", "endpoint": "x", "id": NAME, "api": "chat"}


def easier(record: Record) -> Record:
    def change(exchange: Exchange) -> Exchange:
        text = f"The answer is {record.target}. {exchange.prompt}"
        return replace(exchange, prompt=text, request_sha256=choice_sha256(text, exchange.options))

    return with_exchange(record, change)


def easier_to_reason_about(record: Record) -> Record:
    """The question, and all that follows from it, with the right answer before it."""

    def change(exchange: Exchange) -> Exchange:
        text = f"The answer is {record.target}. {exchange.prompt}"
        if exchange.kind == "choice":
            return replace(exchange, prompt=text)
        prompt = prompt_of(load_task("coreference"), "cot-logprob-v1")
        made = GenerateRequest(prompt=text, max_tokens=prompt.max_tokens or 0, stop=prompt.stop or ())
        return replace(exchange, prompt=text, request_sha256=made.sha256)

    return with_exchange(record, change)


def swapped_target(record: Record) -> Record:
    other = record.groups["other_occupation"]
    groups = record.groups | {"occupation": other, "other_occupation": record.groups["occupation"]}
    return replace(record, target=other, reference=other, groups=groups)


def turned(one: Exchange) -> Exchange:
    return replace(one, outcomes=one.outcomes[::-1])


def other_group(records: list[Record]) -> list[Record]:
    return [replace(records[0], groups=records[0].groups | {"stereotype": "neither"}), *records[1:]]


def says(what: str, theirs: str, ours: str) -> str:
    return f"the identity says {what} '{theirs}', the model '{ours}'"


def not_at(endpoint: str, backend: str) -> str:
    return f"endpoint '{endpoint}' is not that of backend {backend}"


LACKS_ALL = "the identity lacks backend, chat_template, device, model, precision, scoring, tokenizer, which backend"
FOLDER, COMMIT = f"sha256:{'0' * 64}", "a" * 40
CLIP = {"backend": "clip", "model": f"{NAME}@1", "precision": None, "device": None, "processor": None}
BASELINE = {"backend": "baseline", "kind": "x", "version": "1"}
CLEVER = {"id": "baseline/clever", "endpoint": "baseline", "backend": "baseline"}
IMPORT = {"backend": "import"}
REJECTED: dict[str, tuple[Forged, str]] = {
    # Whose answers they are.
    "another model's files": (identified(identity_of("acme/honest")), says("id", "acme/honest", NAME)),
    "another revision than the files": (told(revision="2"), says("revision", "1", "2")),
    "another revision than a folder": (identified(OWN | {"model": FOLDER}), says("revision", FOLDER, "1")),
    "an adapter as its base": (identified(OWN | {"adapter": "evil/adapter@7"}), says("revision", "7", "1")),
    "the commit of a harness's log": (
        identified(IMPORT | {"commit": COMMIT}, **IMPORT, endpoint="replay"),
        says("commit", COMMIT, "1"),
    ),
    "another backend": (identified(OWN | {"backend": "vllm"}), says("backend", "vllm", "transformers")),
    "no parts of the identity": (told(identity=None), "says only the hash of its model's identity, not its parts"),
    "a hash of other parts": (told(identity={"backend": "transformers"}), "is not the hash of the identity"),
    "a stranger's baseline": (identified(BASELINE, **CLEVER), "is of a baseline, and the"),
    "a name like a baseline's": (identified(identity_of("Baseline/x"), id="Baseline/x"), "'baseline/' is reserved"),
    "an identity without parts": (identified({}, id="openai/gpt-9"), LACKS_ALL),
    "a model of images alone": (identified(CLIP, backend="clip"), "backend clip cannot ask prompt 'intrinsic-v1'"),
    "no files": (identified(OWN | {"model": None}), NO_FILES),
    "a hash of no form": (identified(OWN | {"model": "1"}), NO_FILES),
    "a local model at an endpoint": (told(endpoint="api"), not_at("api", "transformers")),
    "an import as local": (identified(IMPORT | {"model": NAME}, **IMPORT), not_at("local", "import")),
    "an endpoint's other name": (identified(SERVED | {"id": "mini"}, **AT_ENDPOINT), says("id", "mini", NAME)),
    "an endpoint's lack of a name": (identified(SERVED | {"id": None}, **AT_ENDPOINT), says("id", "", NAME)),
    "an endpoint's revision": (identified(SERVED | {"revision": "2"}, **AT_ENDPOINT), says("revision", "2", "1")),
    "an unknown precision": (identified(OWN | {"precision": "f9"}, precision="f9"), "precision f9 is none of float32"),
    # What was asked.
    "other items": (asking(items_sha256="1" * 64), "200 items of made@1.0.0 type2 under prompt intrinsic-v1"),
    "more items": (asking(n_items=202, items_sha256="1" * 64), "counts.items 200, signature.n_items 202"),
    "another split": (asking(splits=("test", "x"), items_sha256="1" * 64), "items of split x, which are not asked"),
    "another benchmark": (asking(benchmark="gifi"), "benchmark is gifi, not synthbias"),
    "an easier question": ({"change": on_each(easier)}, NOT_THE_ITEM),
    "no prompt": ({"change": exchanges_with(prompt=None, request_sha256="0" * 64)}, NOT_THE_ITEM),
    "another target": ({"change": on_each(swapped_target)}, NOT_THE_ITEM),
    "turned outcomes": ({"change": on_each_exchange(turned)}, NOT_THE_ITEM),
    "clusters": ({"change": on_each(lambda one: replace(one, cluster=f"c-{one.item_id}"))}, NOT_THE_ITEM),
    "another group": ({"change": other_group}, NOT_THE_ITEM),
    "another order": ({"change": lambda records: records[::-1]}, "stands in another order than in the dataset"),
    # What was answered.
    "probabilities": ({"change": exchanges_with(option_logprobs=(-0.1, -0.1))}, "have probabilities that sum to 1.81"),
    "bytes": ({"change": exchanges_with(option_byte_counts=(1, 900))}, "option_byte_counts are [1, 900]"),
    "no tokens": ({"change": exchanges_with(option_token_counts=(0, 0))}, "option_token_counts are [0, 0], its"),
    "many tokens": ({"change": exchanges_with(option_token_counts=(10**9,) * 2)}, "token_counts are [1000000000,"),
    "truncated": ({"change": on_each(lambda one: replace(one, truncated=True))}, "truncated is True, its answers say"),
}


@pytest.fixture(scope="module")
def reasons(places: Places, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """Why each of the forgeries is rejected, which lie side by side."""
    results = tmp_path_factory.mktemp("forged")
    for number, (forged, _) in enumerate(REJECTED.values()):
        forge(places, results / f"{number:03}", **forged)
    return dict(zip(REJECTED, [one.reason for one in judged([results], places)], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", REJECTED)
def test_a_forgery_is_rejected(reasons: dict[str, str | None], name: str) -> None:
    assert REJECTED[name][1] in (reasons[name] or "")


NOT_AFTER_THE_TEXT = "its options are not scored after the texts that the model wrote"


def on_choices(change: Callable[[Exchange], Exchange]) -> Change:
    return on_each_exchange(lambda one: change(one) if one.kind == "choice" else one)


def kept(*places: int) -> Change:
    """Records with some of their exchanges: two texts, and what follows each."""
    return on_each(lambda record: replace(record, exchanges=tuple(record.exchanges[place] for place in places)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (list, None),
        # Another text than the model's own leads to the right letter.
        (on_choices(lambda one: replace(one, prompt=f"{one.prompt} Surely")), NOT_AFTER_THE_TEXT),
        (on_choices(turned), NOT_AFTER_THE_TEXT),
        (kept(0, 1, 2), NOT_AFTER_THE_TEXT),
        (on_each(easier_to_reason_about), NOT_THE_ITEM),
    ],
    ids=["honest", "other-text", "turned", "half", "easier"],
)
def test_options_after_a_text_follow_from_it(
    reasoned: Places, tmp_path: Path, change: Change, said: str | None
) -> None:
    assert {len(record.exchanges) for record in read_records(reasoned.honest / "records.parquet")} == {4}
    found = verdict(forge(reasoned, tmp_path / "results" / "aaa", change), reasoned)
    if said is None:
        assert (found.state, found.reason) == (verdict(reasoned.honest, reasoned).state, None)
    else:
        assert said in (found.reason or "")


def in_no_time(result: Result) -> Result:
    """A result of answers that cost nothing, as an import has it."""
    usage = replace(result.usage, n_attempts=0, n_prompt_tokens=None, n_completion_tokens=None, seconds=None)
    return replace(result, usage=usage)


CLAIMED: dict[str, tuple[Forged, str]] = {
    "own backend": (
        identified({"backend": "own", "model": f"{NAME}@1"}, backend="own"),
        "no backend own is known here, so nothing says which model answered; if a plug-in defines it",
    ),
    "replay": (
        identified({"backend": "replay", "id": NAME, "answers": "0" * 64}, backend="replay", endpoint="replay"),
        "its numbers rest on claims: the answers come from a file",
    ),
    "import in all but usage": ({"of_result": in_no_time}, "the answers come from a file"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("forged", "said"), CLAIMED.values(), ids=CLAIMED)
def test_a_model_that_nobody_can_identify_is_a_claim(places: Places, tmp_path: Path, forged: Forged, said: str) -> None:
    found = verdict(forge(places, tmp_path / "results" / "aaa", **forged), places)
    assert (found.state, found.provenance) == ("accepted with warnings", "reported")
    assert said in " ".join(found.warnings)
    (table,) = board(tmp_path / "results", places).tables
    assert table.ranked == ()
    assert ("replay" in said) <= (table.rows[0].unranked or "").startswith("replayed: ")


def test_own_runs_may_have_any_name(places: Places, tmp_path: Path) -> None:
    forge(places, tmp_path / "runs" / "a", **REJECTED["another model's files"][0])
    assert len(entries(tmp_path / "runs", places, "local")) == 1


@pytest.mark.slow
def test_a_sound_result_is_accepted_untouched_and_an_endpoint_is_a_claim(places: Places, tmp_path: Path) -> None:
    before = [path.read_bytes() for path in sorted(places.honest.glob("*.*"))]
    found = verdict(places.honest, places)
    assert [path.read_bytes() for path in sorted(places.honest.glob("*.*"))] == before
    assert (found.reason, found.model, found.provenance) == (None, "acme/honest (1)", "recomputed")
    assert found.warnings == ()
    found = verdict(forge(places, tmp_path / "a", **told(identity=None, **AT_ENDPOINT)), places)
    assert found.state == "accepted with warnings"
    assert "which model answered is the word of who ran it" in " ".join(found.warnings)


@pytest.mark.slow
def test_fewer_items_and_what_nobody_published_have_no_rank_and_share_no_table(places: Places, tmp_path: Path) -> None:
    sliced = asking(n_items=100, items_sha256="1" * 64)
    folder = forge(places, tmp_path / "results" / "a", lambda records: records[:100], **sliced)
    assert LIMITED in verdict(folder, places).warnings
    forge(places, tmp_path / "results" / "b", lambda records: records[100:], model="evil/b", **sliced)
    found = board(tmp_path / "results", places)
    (table,) = found.tables
    assert not table.is_whole
    assert [row.unranked for row in table.rows] == [LIMITED]
    assert [entry.place for entry in found.apart] == ["b"]
    assert "its items are not those of a, though the signature is the same" in (found.apart[0].match.reason or "")
    folder = forge(places, tmp_path / "unknown" / "aaa", **asking(dataset_version="99.0.0"))
    assert verdict(folder, places).state == "accepted with warnings"
    found = board(tmp_path / "unknown", places)
    assert found.tables == ()
    assert [entry.place for entry in found.apart] == ["aaa"]


@pytest.mark.slow
def test_what_a_result_leaves_out_is_computed(places: Places, tmp_path: Path) -> None:
    def without(result: Result) -> Result:
        kept = [metric for metric in result.metrics if metric.name != "accuracy"]
        future = [replace(one, version="9.0", value=1.0) if one.name == "ucerf" else one for one in kept]
        return replace(result, metrics=tuple(future))

    folder = forge(places, tmp_path / "results" / "aaa", of_result=without)
    warnings = " ".join(verdict(folder, places).warnings)
    assert "metrics that it leaves out were computed from its records: accuracy" in warnings
    assert "metrics of other versions were computed again: ucerf 9.0" in warnings
    (entry,) = entries(tmp_path / "results", places)
    true = {metric.name: metric for metric in read_result(places.honest).metrics if not metric.group}
    assert [entry.metric(name) for name in ("accuracy", "ucerf")] == [true["accuracy"], true["ucerf"]]


Edit: TypeAlias = Callable[[Path], object]
"""A change of the files of a forged result."""


def pipe(folder: Path) -> None:
    (folder / "result.json").unlink()
    os.mkfifo(folder / "result.json")


def link_to(target: str, name: str) -> Edit:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def written(*where: str, **fields: Any) -> Edit:
    """A change of fields of an object in the ``result.json``."""

    def change(folder: Path) -> None:
        value = told = json.loads((folder / "result.json").read_text())
        for name in where:
            value = value[name]
        value |= {name: of(value) if callable(of) else of for name, of in fields.items()}
        (folder / "result.json").write_text(json.dumps(told))

    return change


def table_bomb(n_rows: int, **texts: str) -> Edit:
    """Equal rows that take a few bytes in the file."""

    def change(folder: Path) -> None:
        path = folder / "records.parquet"
        first = honest = pq.read_table(path).slice(0, 1)
        for name, text in texts.items():
            place, column = first.schema.get_field_index(name), pa.array([text])
            if place < 0:
                first = first.append_column(name, column)
            else:
                first = first.set_column(place, first.schema.field(place), column)
        many = honest.take(pa.array([0] * (n_rows - 1)))
        pq.write_table(pa.concat_tables([first, many], promote_options="default"), path, compression="zstd")
        written("records", sha256=sha256_file(path), n_rows=n_rows)(folder)
        written("signature", n_items=n_rows)(folder)
        written("counts", items=n_rows, scored=n_rows)(folder)
        told = from_values(json.loads((folder / "result.json").read_text()), Result)
        written(signature_sha256=told.signature.sha256())(folder)

    return change


LEAVES, CLOSED = "is a link that leaves this folder", "cannot be opened"
UNREADABLE: list[tuple[Edit, str]] = [
    (pipe, "is not a regular file"),
    (link_to("/dev/zero", "result.json"), LEAVES),
    (link_to("nowhere", "result.json"), CLOSED),
    (link_to("result.json", "result.json"), CLOSED),
    (link_to("/dev/zero", "records.parquet"), LEAVES),
    (lambda folder: os.truncate(folder / "result.json", 200 << 20), "has 209,715,200 bytes, more than the 16,777,216"),
    (table_bomb(200_000), "names 200000 items of made@1.0.0"),
    (table_bomb(200, extra="x" * 1000), "column extra is none of Record"),
    (table_bomb(200, reason="x" * 100_000_000), "more than the 46,661,632 of any result of such a size"),
    (written(metrics=lambda told: told["metrics"][:1] * 16_000), "stands twice"),
    (lambda folder: (folder / "records.parquet").write_bytes(b"PAR1"), "not a readable parquet file"),
    (written("environment", settings={"note": "x" * 10_000_000}), "environment.settings"),
    # Names that cannot be told apart, or that write to a terminal.
    (written("model", id="evil/\x1b[31mred"), r"\x1b[31mred"),
    (written("model", id="acme/sm\u0430ll"), "must be NAME or ORG/NAME"),
    (written("model", id="x" * 200_000), "model.id"),
    (written("model", precision="float32\x1b[31m"), "model.precision"),
    (written("model", revision="main\u200b"), r"revision 'main\u200b' is not of letters"),
]


@pytest.fixture(scope="module")
def why_unreadable(places: Places, tmp_path_factory: pytest.TempPathFactory) -> list[str | None]:
    """The reasons of changed results, which harm an honest one behind them no more than one another."""
    results = tmp_path_factory.mktemp("unreadable")
    for number, (change, _) in enumerate(UNREADABLE):
        change(forge(places, results / f"{number:03}"))
    shutil.copytree(places.honest, results / "honest")
    *reasons, of_honest = (one.reason for one in judged([results], places))
    assert of_honest is None
    return reasons


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(UNREADABLE)), ids=[row[1] for row in UNREADABLE])
def test_files_that_are_no_results_are_one_line(why_unreadable: list[str | None], number: int) -> None:
    why = why_unreadable[number] or ""
    assert UNREADABLE[number][1] in why
    assert "root" not in why
    assert (len(why) < 1_000, why.isprintable()) == (True, True)


@pytest.mark.slow
def test_groups_without_an_answer_key_are_bounded(places: Places, tmp_path: Path) -> None:
    def many(records: list[Record]) -> list[Record]:
        row, *_ = records
        return [
            replace(row, item_id=f"i{n}", cluster=f"c{n}", pair_id=None, groups={**row.groups, "occupation": f"o{n}"})
            for n in range(900)
        ]

    folder = forge(places, tmp_path / "aaa", many, **asking(dataset="own", n_items=900))
    assert "groups in 900 records without an answer key are too many to check" in reason(folder, places)


@pytest.mark.slow
def test_links_to_folders_are_named_and_not_followed(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    (tmp_path / "results" / "loop").symlink_to(tmp_path / "results")
    (tmp_path / "results" / "nowhere").symlink_to(tmp_path / "gone")
    found = {Path(one.place).name: one.reason for one in judged([tmp_path / "results"], places)}
    assert found["honest"] is None
    for name in ("loop", "nowhere"):
        assert "is a link, which is not followed" in (found[name] or "")
    assert len(entries(tmp_path / "results", places)) == 1
