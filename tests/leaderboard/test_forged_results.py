"""What a stranger cannot make the board say."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from evaluators.backend import GenerateRequest, model_identity
from evaluators.task import load_task, prompt_of
from schemas.documents.record import Exchange, Record, choice_sha256, exchange_sha256
from schemas.documents.result import Result
from schemas.files.record_files import read_records
from schemas.folders.run_folder import read_result
from tests.leaderboard.forging import (
    Change,
    Places,
    board,
    constant,
    forge,
    on_each,
    rows,
    signed,
    verdict,
    with_exchange,
)

LIMITED = "a limited run, of 100 of 200 items: ask all, without --quick, --limit, --split and --part"


def easier(record: Record) -> Record:
    def change(exchange: Exchange) -> Exchange:
        text = f"The answer is {record.target}. {exchange.prompt}"
        return replace(exchange, prompt=text, request_sha256=choice_sha256(text, exchange.options))

    return with_exchange(record, change)


def without_prompt(record: Record) -> Record:
    return with_exchange(record, lambda one: replace(one, prompt=None, request_sha256="0" * 64))


def hidden_prompt(record: Record) -> Record:
    return with_exchange(record, lambda one: replace(one, prompt=None, request_sha256=exchange_sha256(one)))


def swapped_hashes(records: list[Record]) -> list[Record]:
    """The records without their prompts, the first two with each other's hashes."""
    first, second, *others = map(hidden_prompt, records)
    return [
        with_exchange(first, lambda one: replace(one, request_sha256=second.exchanges[0].request_sha256)),
        with_exchange(second, lambda one: replace(one, request_sha256=first.exchanges[0].request_sha256)),
        *others,
    ]


def with_request_hash(record: Record) -> Record:
    return with_exchange(record, lambda one: replace(one, request_sha256=exchange_sha256(one)))


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
    groups = record.groups | {
        "occupation": record.groups["other_occupation"],
        "other_occupation": record.groups["occupation"],
    }
    return replace(record, target=groups["occupation"], reference=groups["occupation"], groups=groups)


def swapped_outcomes(record: Record) -> Record:
    return with_exchange(record, lambda one: replace(one, outcomes=one.outcomes[::-1]))


def other_group(records: list[Record]) -> list[Record]:
    first = replace(records[0], groups=records[0].groups | {"stereotype": "neither"})
    return [first, *records[1:]]


def turned(records: list[Record]) -> list[Record]:
    return records[::-1]


def repeated(records: list[Record]) -> list[Record]:
    return [*records[:-2], *[replace(one, item_id=f"again-{one.item_id}") for one in records[:2]]]


NOT_THE_ITEM = "is not asked or described as in made@1.0.0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (on_each(easier), NOT_THE_ITEM),
        (on_each(without_prompt), NOT_THE_ITEM),
        (swapped_hashes, NOT_THE_ITEM),
        (on_each(swapped_target), NOT_THE_ITEM),
        (on_each(swapped_outcomes), NOT_THE_ITEM),
        (on_each(lambda record: replace(record, cluster=f"c-{record.item_id}")), NOT_THE_ITEM),
        (other_group, NOT_THE_ITEM),
        (turned, "stands in another order than in the dataset"),
        (repeated, NOT_THE_ITEM),
    ],
    ids=["easier", "no-prompt", "hashes", "target", "outcomes", "cluster", "group", "order", "repeated"],
)
def test_records_that_are_not_about_the_items_are_rejected(
    places: Places, tmp_path: Path, change: Change, said: str
) -> None:
    found = verdict(forge(places, tmp_path / "results" / "aaa", change), places)
    assert found.state == "rejected"
    assert said in (found.reason or "")
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    (table,) = board(tmp_path / "results", places).tables
    assert [(name, row.rank is not None) for name, row in rows(table).items()] == [("acme/honest", True)]


def on_choices(change: Callable[[Exchange], Exchange]) -> Change:
    return on_each(lambda record: with_exchange(record, lambda one: change(one) if one.kind == "choice" else one))


NOT_AFTER_THE_TEXT = "its options are not scored after the texts that the model wrote"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (list, None),
        # Another text than the model's own leads to the right letter.
        (on_choices(lambda one: replace(one, prompt=f"{one.prompt} Surely")), NOT_AFTER_THE_TEXT),
        (on_choices(lambda one: replace(one, prompt=None, request_sha256=exchange_sha256(one))), NOT_AFTER_THE_TEXT),
        (on_choices(lambda one: replace(one, outcomes=one.outcomes[::-1])), NOT_AFTER_THE_TEXT),
        (on_each(lambda record: replace(record, exchanges=record.exchanges[:3])), NOT_AFTER_THE_TEXT),
        (on_each(lambda record: replace(record, exchanges=record.exchanges[:2])), NOT_AFTER_THE_TEXT),
        (on_each(lambda record: replace(record, exchanges=record.exchanges[2:])), NOT_AFTER_THE_TEXT),
        (
            on_each(lambda record: replace(record, exchanges=(*record.exchanges, record.exchanges[-1]))),
            NOT_AFTER_THE_TEXT,
        ),
        (on_each(easier_to_reason_about), NOT_THE_ITEM),
    ],
    ids=["honest", "other-text", "hidden", "turned", "half", "unscored", "no-text", "twice", "easier"],
)
def test_what_is_scored_after_a_text_follows_from_it(
    reasoned: Places, tmp_path: Path, change: Change, said: str | None
) -> None:
    found = verdict(forge(reasoned, tmp_path / "results" / "aaa", change), reasoned)
    if said is None:
        assert (found.state, found.reason) == (verdict(reasoned.honest, reasoned).state, None)
        assert found.state != "rejected"
    else:
        assert found.state == "rejected"
        assert said in (found.reason or "")


@pytest.mark.parametrize("change", [with_request_hash, hidden_prompt])
def test_a_choice_may_say_its_hash_beside_its_prompt_as_in_older_files_or_in_its_place(
    places: Places, tmp_path: Path, change: Callable[[Record], Record]
) -> None:
    (record,) = read_records(places.honest / "records.parquet")[:1]
    assert {exchange.request_sha256 for exchange in record.exchanges} == {None}
    found = verdict(forge(places, tmp_path / "results" / "aaa", on_each(change)), places)
    assert (found.state, found.reason) == (verdict(places.honest, places).state, None)


@pytest.mark.slow
def test_a_sound_result_is_accepted_untouched(places: Places) -> None:
    before = [path.read_bytes() for path in sorted(places.honest.glob("*.*"))]
    found = verdict(places.honest, places)
    assert [path.read_bytes() for path in sorted(places.honest.glob("*.*"))] == before
    assert (found.reason, found.model, found.provenance) == (None, "acme/honest (1)", "recomputed")
    assert found.warnings == ()


@pytest.mark.slow
def test_fewer_items_are_a_slice_without_a_rank(places: Places, tmp_path: Path) -> None:
    folder = forge(
        places,
        tmp_path / "results" / "aaa",
        lambda records: records[:100],
        of_result=lambda result: signed(result, n_items=100, items_sha256="1" * 64),
    )
    assert LIMITED in verdict(folder, places).warnings
    (table,) = board(tmp_path / "results", places).tables
    assert not table.is_whole
    assert table.rows[0].unranked == LIMITED


@pytest.mark.slow
def test_slices_of_other_items_share_no_table(places: Places, tmp_path: Path) -> None:
    def sliced(result: Result) -> Result:
        return signed(result, n_items=100, items_sha256="1" * 64)

    forge(places, tmp_path / "results" / "a", lambda records: records[:100], of_result=sliced)
    forge(places, tmp_path / "results" / "b", lambda records: records[100:], model="evil/b", of_result=sliced)
    found = board(tmp_path / "results", places)
    assert [len(table.rows) for table in found.tables] == [1]
    assert [entry.place for entry in found.apart] == ["b"]
    assert "its items are not those of a, though the signature is the same" in (found.apart[0].match.reason or "")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"items_sha256": "1" * 64}, "200 items of made@1.0.0 type2 under prompt intrinsic-v1, which has 200 others"),
        ({"n_items": 202, "items_sha256": "1" * 64}, "counts.items 200, signature.n_items 202"),
        ({"splits": ("test", "more"), "items_sha256": "1" * 64}, "items of split more, which are not asked under"),
        ({"benchmark": "gifi"}, "benchmark is gifi, not synthbias"),
        ({"dataset": "x" * 5_000}, "signature.dataset: 'xxx"),
    ],
)
def test_a_signature_that_is_not_the_datasets_is_rejected(
    places: Places, tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    folder = forge(places, tmp_path / "aaa", of_result=lambda result: signed(result, **fields))
    assert said in (verdict(folder, places).reason or "")


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{"dataset_version": "99.0.0"}, {"dataset": "official"}, {"benchmark": "official"}])
def test_what_nobody_published_stands_apart(places: Places, tmp_path: Path, fields: dict[str, Any]) -> None:
    folder = forge(places, tmp_path / "results" / "aaa", of_result=lambda result: signed(result, **fields))
    assert verdict(folder, places).state == "accepted with warnings"
    found = board(tmp_path / "results", places)
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
    (table,) = board(tmp_path / "results", places).tables
    entry = table.rows[0].entry
    true = {metric.name: metric for metric in read_result(places.honest).metrics if not metric.group}
    assert entry.metric("accuracy") == true["accuracy"]
    assert entry.metric("ucerf") == true["ucerf"]


def test_impossible_probabilities_are_rejected(places: Places, tmp_path: Path) -> None:
    def doubled(record: Record) -> Record:
        return with_exchange(record, lambda one: replace(one, option_logprobs=tuple(-0.1 for _ in one.options)))

    found = verdict(forge(places, tmp_path / "aaa", on_each(doubled)), places)
    assert "have probabilities that sum to 1.81, and they exclude each other" in (found.reason or "")


@pytest.mark.slow
def test_byte_counts_follow_from_the_options(places: Places, tmp_path: Path) -> None:
    def counted(record: Record) -> Record:
        return with_exchange(record, lambda one: replace(one, option_byte_counts=(1, 900)))

    found = verdict(forge(places, tmp_path / "a", on_each(counted)), places)
    assert "option_byte_counts are [1, 900]" in (found.reason or "")


@pytest.mark.slow
@pytest.mark.parametrize("n_tokens", [0, 10**9])
def test_token_counts_are_possible(places: Places, tmp_path: Path, n_tokens: int) -> None:
    def counted(record: Record) -> Record:
        return with_exchange(record, lambda one: replace(one, option_token_counts=(n_tokens,) * len(one.options)))

    found = verdict(forge(places, tmp_path / "a", on_each(counted)), places)
    assert f"option_token_counts are [{n_tokens}, {n_tokens}], its options have [" in (found.reason or "")


@pytest.mark.parametrize("text", ["x", ""])
def test_a_text_beside_probabilities_hides_no_copy(places: Places, tmp_path: Path, text: str) -> None:
    def beside(record: Record) -> Record:
        return with_exchange(record, lambda one: replace(one, text=text))

    with pytest.raises(DataError, match="kind 'choice' has no text"):
        verdict(forge(places, tmp_path / "a", on_each(beside)), places)


def test_truncation_follows_from_the_answers(places: Places, tmp_path: Path) -> None:
    found = verdict(forge(places, tmp_path / "a", on_each(lambda one: replace(one, truncated=True))), places)
    assert "truncated is True, its answers say otherwise" in (found.reason or "")


def always_wrong(records: list[Record]) -> list[Record]:
    def wrong(record: Record) -> Record:
        return with_exchange(
            record,
            lambda one: replace(
                one, option_logprobs=tuple(-math.inf if name == record.target else 0.0 for name in one.outcomes)
            ),
        )

    return [wrong(record) for record in records]


@pytest.mark.slow
@pytest.mark.parametrize("change", [constant(0.5), constant(1.0), always_wrong], ids=["constant", "first", "wrong"])
def test_trivial_predictors_have_no_rank(places: Places, tmp_path: Path, change: Change) -> None:
    forge(places, tmp_path / "results" / "aaa", change)
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    (table,) = board(tmp_path / "results", places).tables
    found = rows(table)
    assert found["acme/honest"].rank is not None
    assert found["evil/forger"].rank is None
    assert found["evil/forger"].is_below


@pytest.mark.slow
def test_nobody_rises_by_refusing_what_is_hard(places: Places, tmp_path: Path) -> None:
    honest = list(read_records(places.honest / "records.parquet"))
    losses: dict[str, float] = {}
    for record in honest:
        assert record.reading is not None
        chance = dict(zip(record.reading.outcomes, record.reading.probabilities, strict=True))[record.target or ""]
        losses[record.pair_id or ""] = max(losses.get(record.pair_id or "", 0.0), 1 - chance)
    hardest = sorted(losses, key=losses.__getitem__)[-4:]

    def refused(record: Record) -> Record:
        if record.pair_id not in hardest:
            return record
        empty: dict[str, Any] = dict.fromkeys(
            ("option_logprobs", "option_end_logprobs", "option_token_counts", "option_is_bound"), ()
        )
        return with_exchange(record, lambda one: replace(one, status="refused", error="declined", **empty))

    forge(places, tmp_path / "results" / "aaa", on_each(refused))
    shutil.copytree(places.honest, tmp_path / "results" / "honest")
    (table,) = board(tmp_path / "results", places).tables
    found = rows(table)
    ours, theirs = found["acme/honest"], found["evil/forger"]
    assert ours.entry.primary is not None
    assert theirs.entry.primary is not None
    assert (theirs.entry.primary.value or 0) > (ours.entry.primary.value or 0)
    # Four pairs of two items, one of each group: as many as if one group lacked twice as many.
    assert theirs.entry.primary.n_excluded == 8
    assert theirs.bounds is not None
    assert theirs.bounds.worst < (ours.entry.primary.value or 0) < theirs.bounds.best
    assert [row.entry.result.model.id for row in table.rows] == ["acme/honest", "evil/forger"]
    assert ours.bounds is None


@pytest.mark.slow
def test_replayed_answers_are_a_claim_without_a_rank(places: Places, tmp_path: Path) -> None:
    def replayed(result: Result) -> Result:
        identity: dict[str, str | None] = {"backend": "replay", "id": result.model.id, "answers": "0" * 64}
        model = replace(result.model, identity=identity, identity_sha256=model_identity(identity))
        return replace(result, model=replace(model, backend="replay", endpoint="replay"))

    folder = forge(places, tmp_path / "results" / "a", of_result=replayed)
    found = verdict(folder, places)
    assert found.provenance == "reported"
    assert "its numbers rest on claims: the answers come from a file" in found.warnings
    (table,) = board(tmp_path / "results", places).tables
    assert (table.rows[0].unranked or "").startswith("replayed: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": "evil/\x1b[31mred"}, r"\x1b[31mred"),
        ({"id": "acme/sm\u0430ll"}, "must be NAME or ORG/NAME"),
        ({"id": "acme/small "}, "must be NAME or ORG/NAME"),
        ({"id": "acme/\u202elmals"}, r"\u202elmals"),
        ({"id": "acme/sm\u200ball"}, r"\u200ball"),
        ({"id": "x" * 200_000}, "model.id"),
        ({"precision": "float32\x1b[31m"}, "model.precision"),
        ({"precision": "float32\u202e"}, "model.precision"),
        ({"revision": "main\u200b"}, r"revision 'main\u200b' is not of letters"),
        ({"identity": {"backend": "transformers"}}, "identity_sha256 is not the hash of the identity"),
    ],
)
def test_names_that_cannot_be_told_apart_are_rejected(
    places: Places, tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    folder = forge(places, tmp_path / "a")
    told = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    told["model"] |= fields
    (folder / "result.json").write_text(json.dumps(told))
    reason = verdict(folder, places).reason or ""
    assert said in reason
    assert len(reason) < 1_000
    assert reason.isprintable()


def test_an_identity_that_contradicts_the_model_is_rejected(places: Places, tmp_path: Path) -> None:
    def claims(result: Result) -> Result:
        identity: dict[str, str | None] = {"backend": "vllm", "model": "acme/honest@1"}
        told = replace(result.model, identity=identity, identity_sha256=strict_json.sha256(dict(identity)))
        return replace(result, model=told)

    reason = verdict(forge(places, tmp_path / "a", of_result=claims), places).reason or ""
    assert "the identity says backend 'vllm', the model 'transformers'" in reason


@pytest.mark.slow
def test_settings_are_of_bounded_size(places: Places, tmp_path: Path) -> None:
    folder = forge(places, tmp_path / "a")
    told = json.loads((folder / "result.json").read_text())
    told["environment"]["settings"] = {"note": "x" * 10_000_000}
    (folder / "result.json").write_text(json.dumps(told))
    assert "environment.settings" in (verdict(folder, places).reason or "")
