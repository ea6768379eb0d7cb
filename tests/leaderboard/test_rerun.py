"""Asking a model again: honest answers agree, invented ones do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.backend import GenerateRequest, Request, Response, model_identity
from evaluators.models.parity import differing, tolerance_for
from evaluators.runs.measure.answer_keys import key_of_dataset
from evaluators.runs.measure.recording import exchange_of
from evaluators.task import load_task
from leaderboard.commands.accept import accept
from leaderboard.commands.verify import _asked_again
from leaderboard.verify import comparisons
from leaderboard.verify.comparisons import rerun
from leaderboard.verify.entries import Root, is_reproduced
from leaderboard.verify.keys import KeyBook, write_key
from leaderboard.verify.loading import load
from leaderboard.verify.public_files import place_for
from schemas.documents.record import Record
from schemas.documents.result import Model, Normalisation, Result
from schemas.files.record_files import read_records
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_result
from schemas.outputs.documents import Verdict, Verdicts
from schemas.printed import as_json
from tests.evaluators.logging_backend import ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.pronoun_records import recorded, sentences
from tests.leaderboard.forging import Change, Places, SkilledBackend, forge, on_each, with_exchange

NAME = "acme/honest"


class World(NamedTuple):
    """A dataset, an honest result and the model that gave it."""

    datasets: Path
    places: Places
    backend: SkilledBackend


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("rerun")
    dataset = write_dataset(root / "datasets" / "made", {"type2": made_items(100)})
    made = key_of_dataset(dataset, read_manifest(dataset), config="type2", task="coreference", prompt="intrinsic-v1")
    write_key(root / "keys", made)
    backend = SkilledBackend(root / "log", name=NAME)
    honest = ask(dataset, root / "runs", backend, prompt="intrinsic-v1")
    return World(root / "datasets", Places(root / "keys", honest), backend)


def shifted(record: Record, by: float) -> Record:
    return with_exchange(
        record, lambda one: replace(one, option_logprobs=tuple((value or 0.0) - by for value in one.option_logprobs))
    )


def test_honest_answers_agree(world: World, tmp_path: Path) -> None:
    class Coarse(SkilledBackend):
        @property
        def model(self) -> Model:
            """The same model in a coarser precision."""
            return replace(super().model, precision="bfloat16")

    coarse, _ = rerun(
        world.places.honest / "result.json", Coarse(tmp_path / "log", name=NAME), world.datasets, 5, seed=1
    )
    assert coarse.tolerance == tolerance_for("bfloat16") > tolerance_for(world.backend.model.precision)
    found, differing = rerun(world.places.honest / "result.json", world.backend, world.datasets, 30, seed=1)
    assert (found.n_items, found.n_agreeing, differing) == (30, 30, ())
    every, _ = rerun(world.places.honest / "result.json", world.backend, world.datasets, 10_000, seed=1)
    assert every.n_items == 200


@pytest.mark.slow
@pytest.mark.parametrize(("by", "n_differing"), [(0.05, 20), (1e-4, 0)])
def test_invented_answers_are_found_beyond_the_tolerance(
    world: World, tmp_path: Path, by: float, n_differing: int
) -> None:
    folder = forge(
        world.places,
        tmp_path / "forged",
        lambda records: [shifted(one, by) if number % 10 == 0 else one for number, one in enumerate(records)],
    )
    found, differing = rerun(folder / "result.json", world.backend, world.datasets, 200, seed=1)
    assert found.n_items - found.n_agreeing == len(differing) == n_differing
    drawn = [rerun(folder / "result.json", world.backend, world.datasets, 30, seed=seed)[1] for seed in range(20)]
    # With a tenth of the answers invented, 30 items find one in 96 of 100 draws.
    assert sum(map(bool, drawn)) >= (15 if n_differing else 0)
    assert n_differing or not any(drawn)


def told(**fields: Any) -> Change:
    """Records that state something else about every exchange than the model gives, and answers that it never gave."""
    return on_each(lambda record: with_exchange(record, lambda one: replace(one, **fields)))


STATED: list[tuple[str, dict[str, Any]]] = [
    (
        "many tokens",
        {"option_token_counts": (10**12, 10**12), "n_moved_tokens": 10**12, "option_logprobs": (-9.0, 0.0)},
    ),
    ("another border", {"n_moved_tokens": 1}),
    ("one number of tokens", {"option_token_counts": (2, 1)}),
    ("bounds", {"option_is_bound": (False, True), "option_logprobs": (-0.001, -9.0)}),
    ("a probability of zero", {"option_logprobs": (-math.inf, 0.0)}),
    ("end tokens", {"option_end_logprobs": (-9.0, 0.0)}),
    ("a refusal", {"status": "refused", "error": "no"}),
    ("a cut", {"finish_reason": "length"}),
]


@pytest.mark.parametrize("fields", [row[1] for row in STATED], ids=[row[0] for row in STATED])
def test_what_records_state_comes_from_the_model(world: World, tmp_path: Path, fields: dict[str, Any]) -> None:
    folder = forge(world.places, tmp_path / "forged", told(**fields), model=NAME)
    found, differing = rerun(folder / "result.json", world.backend, world.datasets, 60, seed=1)
    assert (found.n_items, found.n_agreeing, len(differing)) == (60, 0, 60)
    assert not is_reproduced(found, read_result(folder))


def likelier(record: Record) -> str:
    assert record.reading is not None
    return max(zip(record.reading.probabilities, record.reading.outcomes, strict=True))[1]


def where_wrong(**fields: Any) -> Change:
    """Records that leave something open about items that the model gets wrong."""

    def change(record: Record) -> Record:
        return record if likelier(record) == record.target else told(**fields)([record])[0]

    return on_each(change)


NO_ANSWER: dict[str, Any] = {
    "option_logprobs": (),
    "option_end_logprobs": (),
    "option_token_counts": (),
    "n_moved_tokens": None,
    "error": "connection reset",
}
LEFT_OPEN: list[tuple[str, dict[str, Any], str]] = [
    ("a failed answer", NO_ANSWER | {"status": "failed"}, "sum"),
    ("a refused answer", NO_ANSWER | {"status": "refused"}, "sum"),
    ("the other option", {"option_logprobs": (None, -1.0)}, "sum"),
    ("both options", {"option_logprobs": (None, None)}, "sum"),
    ("an end token", {"option_end_logprobs": (None, -1.0)}, "sum_with_end"),
    ("all end tokens", {"option_end_logprobs": (None, None)}, "sum_with_end"),
    ("a number of tokens", {"option_token_counts": (None, 1)}, "token_mean"),
    ("moved tokens", {"n_moved_tokens": None}, "byte_mean"),
]


class WithEnds(SkilledBackend):
    """A model with an end token, which it gives the same probability everywhere."""

    def _answer(self, request: Request) -> Response:
        return replace(super()._answer(request), option_end_logprobs=(-1.0, -1.0))


@pytest.mark.parametrize(("fields", "normalisation"), [row[1:] for row in LEFT_OPEN], ids=[row[0] for row in LEFT_OPEN])
def test_what_a_record_leaves_open_is_not_left_out(
    world: World, tmp_path: Path, fields: dict[str, Any], normalisation: Normalisation
) -> None:
    backend = WithEnds(tmp_path / "log", name=NAME)
    honest = ask(world.datasets / "made", tmp_path / "runs", backend, prompt="intrinsic-v1")
    places, change = world.places._replace(honest=honest), where_wrong(**fields)
    folder = forge(places, tmp_path / "forged", change, model=NAME, normalisation=normalisation)
    result = read_result(folder)
    (accuracy,) = (metric.value for metric in result.metrics if metric.name == "accuracy" and not metric.group)
    n_wrong = result.counts.items - result.counts.scored
    assert (accuracy or 0.0) > 0.98 > 1 - n_wrong / result.counts.items
    found, others = rerun(folder / "result.json", backend, world.datasets, 200, seed=1)
    assert (found.n_items, len(others)) == (200, n_wrong)
    assert not is_reproduced(found, result)


def test_small_parts_of_a_suite_are_drawn_as_often_as_large_ones(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = forge(
        world.places,
        tmp_path / "forged",
        lambda records: [shifted(one, 0.05) if number < 10 else one for number, one in enumerate(records)],
    )
    records = list(read_records(folder / "records.parquet"))
    monkeypatch.setattr(comparisons, "StoredParts", lambda folder, result: [records[:10], records[10:]])
    for n, n_small in ((20, 10), (9, 4), (200, 10)):
        found, others = rerun(folder / "result.json", world.backend, world.datasets, n, seed=1)
        assert found.n_items == n
        assert len(others) in {n_small, n_small + n % 2}


def test_items_that_fail_again_agree(world: World, tmp_path: Path) -> None:
    class Limited(SkilledBackend):
        def _answer(self, request: Request) -> Response:
            answer = super()._answer(request)
            return answer if int(request.sha256[:8], 16) % 8 else Response(status="failed", error="too long")

    backend = Limited(tmp_path / "log", name=NAME)
    folder = ask(world.datasets / "made", tmp_path / "runs", backend, prompt="intrinsic-v1", rate=0.5)
    result = read_result(folder)
    assert result.counts.failed
    found, others = rerun(folder / "result.json", backend, world.datasets, 200, seed=1)
    assert (found.n_items, others) == (200, ())
    assert is_reproduced(found, result)
    # Who asks only what was answered says nothing about the others.
    assert not is_reproduced(replace(found, n_items=49, n_agreeing=49), result)


Side = Callable[[Record], str | None]
"""The outcome of an item that a forger favours."""
MOVED: list[tuple[str, Side]] = [
    ("the right ones", lambda record: record.target),
    ("the wrong ones", lambda record: other_than(record.target, record)),
    ("the stereotype", lambda record: record.groups["stereotyped_occupation"]),
    ("the first", lambda record: record.groups["first_occupation"]),
    ("the likelier", lambda record: likelier(record)),
    (
        "those that widen a gap",
        lambda record: record.target if record.groups["stereotype"] == "pro" else other_than(record.target, record),
    ),
]


def other_than(outcome: str | None, record: Record) -> str:
    (other,) = {*record.exchanges[0].outcomes} - {outcome}
    return other


def towards(side: Side, by: float) -> Change:
    """Log-probabilities that favour one outcome over the other by some nats more than the model does."""

    def moved(record: Record) -> Record:
        favoured = side(record)
        return with_exchange(
            record,
            lambda one: replace(
                one,
                option_logprobs=tuple(
                    (logprob or 0.0) - (0 if outcome == favoured else by)
                    for outcome, logprob in zip(one.outcomes, one.option_logprobs, strict=True)
                ),
            ),
        )

    return on_each(moved)


def in_half(result: Result) -> Result:
    return replace(result, model=replace(result.model, precision="bfloat16"))


@dataclass
class Rounding(SkilledBackend):
    """A model in half precision: each log-probability is off by an own error."""

    error: float = 0.0
    seed: int = 0

    @property
    def model(self) -> Model:
        """The same model, opened in half precision."""
        return replace(super().model, precision="bfloat16")

    def _answer(self, request: Request) -> Response:
        answer, rng = super()._answer(request), random.Random(f"{self.seed}{request.sha256}")
        rounded = (value + rng.gauss(0.0, self.error) for value in answer.option_logprobs if value is not None)
        return replace(answer, option_logprobs=tuple(rounded))


@pytest.mark.parametrize("side", [row[1] for row in MOVED], ids=[row[0] for row in MOVED])
def test_answers_that_lean_within_the_tolerance_do_not_agree(world: World, tmp_path: Path, side: Side) -> None:
    folder = forge(world.places, tmp_path / "forged", towards(side, 0.4), model=NAME, of_result=in_half)
    backend = Rounding(tmp_path / "log", name=NAME, error=0.01)
    for n in (60, 200):
        found, differing = rerun(folder / "result.json", backend, world.datasets, n, seed=1)
        assert found.n_agreeing < found.n_items
        assert "(leans " in differing[0]
        assert not is_reproduced(found, read_result(folder))


def test_rounding_does_not_lean(world: World, tmp_path: Path) -> None:
    folder = forge(world.places, tmp_path / "forged", model=NAME, of_result=in_half)
    for seed in range(20):
        backend = Rounding(tmp_path / "log", name=NAME, error=0.08, seed=seed)
        found, differing = rerun(folder / "result.json", backend, world.datasets, 200, seed=seed)
        assert differing == ()
        assert is_reproduced(found, read_result(folder))


class Torn(Rounding):
    """A model that hardly knows the answers, so that many are near a tie."""

    def _answer(self, request: Request) -> Response:
        rng, lead = random.Random(f"{self.seed}{request.sha256}"), random.Random(request.sha256).gauss(0.0, 1.0)
        rounded = tuple(min(0.0, math.log(share(one)) + rng.gauss(0.0, self.error)) for one in (lead, -lead))
        return replace(super()._answer(request), option_logprobs=rounded)


def share(lead: float) -> float:
    return 1 / (1 + math.exp(-lead))


def near_ties(by: float, n_against: int) -> Change:
    """Near ties decided for the right outcome, one in some against it, and its probability given back elsewhere."""

    def change(records: list[Record]) -> list[Record]:
        leads = {number: lead_of(record) for number, record in enumerate(records)}
        near = [number for number, lead in leads.items() if abs(lead) < by]
        signs = [-1 if n_against and row % n_against == 0 else 1 for row in range(len(near))]
        led = leads | {number: sign * abs(leads[number]) for sign, number in zip(signs, near, strict=True)}
        debt = sum(share(led[number]) - share(lead) for number, lead in leads.items())
        for number in sorted(leads.keys() - near):
            if debt > 0:
                led[number] -= by if leads[number] < 0 else min(by, leads[number] - 0.02)
                debt -= share(leads[number]) - share(led[number])
        return [leading(record, led[number]) for number, record in enumerate(records)]

    return change


def lead_of(record: Record) -> float:
    (one,) = record.exchanges
    by_outcome = dict(zip(one.outcomes, one.option_logprobs, strict=True))
    return (by_outcome[record.target or ""] or 0.0) - (by_outcome[other_than(record.target, record)] or 0.0)


def leading(record: Record, lead: float) -> Record:
    return with_exchange(
        record,
        lambda one: replace(
            one,
            option_logprobs=tuple(
                math.log(share(lead if outcome == record.target else -lead)) for outcome in one.outcomes
            ),
        ),
    )


@pytest.mark.parametrize(
    ("by", "n_against", "found_by"),
    [(0.25, 0, "(leans towards the right outcome in decisions)"), (0.4, 4, " other decisions, and rounding explains ")],
    ids=["for the right outcome", "also against it"],
)
def test_decisions_near_a_tie_cannot_be_chosen(
    world: World, tmp_path: Path, by: float, n_against: int, found_by: str
) -> None:
    honest = ask(world.datasets / "made", tmp_path / "runs", Torn(tmp_path / "log", name=NAME), prompt="intrinsic-v1")
    places, backend = world.places._replace(honest=honest), Torn(tmp_path / "log", name=NAME, error=0.03)
    folder = forge(places, tmp_path / "forged", near_ties(by, n_against), model=NAME, of_result=in_half)
    result = read_result(folder)
    before, after = (
        next(metric.value or 0.0 for metric in one.metrics if metric.name == "accuracy" and not metric.group)
        for one in (read_result(honest), result)
    )
    assert after > before + 0.03
    for n in (60, 200):
        found, others = rerun(folder / "result.json", backend, world.datasets, n, seed=1)
        assert not is_reproduced(found, result)
    assert found_by in others[0]
    # Honest answers do not change so many.
    folder = forge(places, tmp_path / "honest", model=NAME, of_result=in_half)
    for seed in range(10):
        rounding = replace(backend, seed=seed)
        found, others = rerun(folder / "result.json", rounding, world.datasets, 200, seed=seed)
        assert others == ()
        assert is_reproduced(found, result)


@dataclass
class Undecided(SkilledBackend):
    """A model whose options nearly tie, by default; or one with huge logits, by which tolerances grow."""

    spread: float = 2e-4
    nats: float = 0.0

    def _answer(self, request: Request) -> Response:
        lead = random.Random(request.sha256).gauss(0.0, self.spread)
        logprobs = tuple(math.log(share(one)) - self.nats for one in (lead, -lead))
        return replace(super()._answer(request), option_logprobs=logprobs)


def turned(records: list[Record]) -> list[Record]:
    """Most wrong decisions turned, and some right ones, by which no test of signs finds the gain in few items."""
    rng = random.Random(1)
    return [
        with_exchange(record, lambda one: replace(one, option_logprobs=one.option_logprobs[::-1]))
        if rng.random() < (0.2 if lead_of(record) > 0 else 0.6)
        else record
        for record in records
    ]


@pytest.mark.parametrize(
    ("fields", "found_by"),
    [({}, "rounding may change "), ({"spread": 0.4, "nats": 1e6}, " other decisions, and rounding explains ")],
    ids=["near ties", "huge logits"],
)
def test_a_model_that_leaves_its_decisions_to_rounding_vouches_for_none(
    world: World, tmp_path: Path, fields: dict[str, Any], found_by: str
) -> None:
    backend = Undecided(tmp_path / "log", name=NAME, **fields)
    honest = ask(world.datasets / "made", tmp_path / "runs", backend, prompt="intrinsic-v1")
    folder = forge(world.places._replace(honest=honest), tmp_path / "forged", turned, model=NAME)
    for seed in range(5):
        found, others = rerun(folder / "result.json", backend, world.datasets, 60, seed=seed)
        assert not is_reproduced(found, read_result(folder))
        assert found_by in others[0] or "(leans towards the right outcome in decisions)" in others[0]


@pytest.mark.parametrize("precision", [None, "bfloat16"])
def test_another_precision_vouches_for_nothing(world: World, tmp_path: Path, precision: str | None) -> None:
    folder = forge(world.places, tmp_path / "forged", model=NAME, of_result=in_half)
    backend = world.backend if precision is None else Rounding(tmp_path / "log", name=NAME, error=0.05)
    verdict = _asked_again(Verdict(place=str(folder)), lambda name: backend, None, world.datasets, 200, 1)
    if precision is not None:
        assert (verdict.provenance, verdict.warnings) == ("reproduced", ())
        assert verdict.rerun is not None
        return
    assert (verdict.provenance, verdict.rerun) == (None, None)
    (warning,) = verdict.warnings
    assert warning.startswith(
        "200 of 200 items asked again (seed 1) agree in an unknown precision, which vouches for nothing: "
    )
    assert warning.endswith("the result is in bfloat16; open it so with --dtype")


def test_what_a_log_leaves_open_is_no_statement(world: World, tmp_path: Path) -> None:
    unknown = told(option_token_counts=(None, None), n_moved_tokens=None, option_end_logprobs=(None, None))
    folder = forge(world.places, tmp_path / "log", unknown, model=NAME)
    found, _ = rerun(folder / "result.json", world.backend, world.datasets, 60, seed=1)
    assert is_reproduced(found, read_result(folder))


def test_another_model_or_a_missing_dataset_is_an_error(world: World, tmp_path: Path) -> None:
    class Other(SkilledBackend):
        @property
        def model(self) -> Model:
            """The same model, changed since."""
            return replace(super().model, revision="2")

    path = world.places.honest / "result.json"
    with pytest.raises(ConfigError, match="with revision 1, the opened model has 2; open the same one"):
        rerun(path, Other(tmp_path / "log", name=NAME), world.datasets, 5, seed=1)
    with pytest.raises(ConfigError, match=r"holds no dataset made 1\.0\.0"):
        rerun(path, world.backend, tmp_path, 5, seed=1)


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        ({"gguf_file": "q8.gguf"}, {"gguf_file": "q2.gguf"}, "with gguf_file q8.gguf, the opened model has q2.gguf"),
        ({"system_prompt": "5a" * 32}, {}, "with system_prompt 5a5a"),
        ({}, {"thinking_tokens": "64"}, "with thinking_tokens None, the opened model has 64"),
        ({"tokenizer": None}, {"tokenizer": "5a" * 32}, "with tokenizer None, the opened model has another"),
        ({"adapter": "a/b@1"}, {}, "with adapter a/b@1, the opened model has None"),
        ({"adapter": "a/b@1", "model": "acme/base@1"}, {"adapter": "a/b@1"}, "with model acme/base@1"),
    ],
)
def test_a_model_opened_in_another_way_is_an_error(
    world: World, tmp_path: Path, theirs: dict[str, str | None], ours: dict[str, str | None], said: str
) -> None:
    def opened(model: Model, parts: dict[str, str | None]) -> Model:
        identity = {**(model.identity or {}), **parts}
        return replace(model, identity=identity, identity_sha256=model_identity(identity))

    class Opened(SkilledBackend):
        @property
        def model(self) -> Model:
            """The same files, opened in a certain way."""
            return opened(super().model, ours)

    folder = forge(
        world.places,
        tmp_path / "claimed",
        model=NAME,
        of_result=lambda result: replace(result, model=opened(result.model, theirs)),
    )
    with pytest.raises(ConfigError, match=said):
        rerun(folder / "result.json", Opened(tmp_path / "log", name=NAME), world.datasets, 60, seed=1)


def test_generated_texts_agree_if_they_are_equal(world: World) -> None:
    items = sentences("Here is where {nom} {lives|live}")
    (record, *_) = recorded(load_task("recognition"), items, lambda item: ["and she left."])
    request = GenerateRequest(prompt=record.exchanges[0].prompt or "", max_tokens=9)
    for ours, is_same in (
        (Response(status="answered", text="and she left.", finish_reason="stop"), True),
        (Response(status="answered", text="and he left.", finish_reason="stop"), False),
        (Response(status="answered", text="and she left.", finish_reason="length"), False),
        (Response(status="refused", error="no"), False),
    ):
        exchange = exchange_of(request, ours, show_prompt=True, chat=False)
        assert (differing([record.exchanges], [[exchange]], 1e-3) == []) is is_same


@pytest.mark.slow
def test_the_board_says_that_answers_were_rerun(world: World, tmp_path: Path) -> None:
    folder = forge(world.places, tmp_path / "forged", model=NAME)
    place = place_for(read_result(folder))
    (tmp_path / "results" / place).parent.mkdir(parents=True)
    folder = folder.rename(tmp_path / "results" / place)
    found, _ = rerun(folder / "result.json", world.backend, world.datasets, 60, seed=1)
    for name, n_agreeing in (("all", 60), ("most", 59)):
        made = replace(found, n_agreeing=n_agreeing)
        report = tmp_path / f"{name}.json"
        verdict = Verdict(place=str(folder), result_sha256=sha256_file(folder / "result.json"), rerun=made)
        report.write_text(as_json(Verdicts(verdicts=(verdict,))))
        accept([place.as_posix()], owner="acme-bot", report=report, results=tmp_path / "results")
        book = KeyBook(world.places.keys)
        (entry,) = load([Root(tmp_path / "results", "accepted")], book, Memory(None)).entries
        assert entry.provenance == ("reproduced" if name == "all" else "recomputed")
