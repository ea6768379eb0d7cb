"""Asking a model again: honest answers agree, invented ones do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import sha256_file
from evaluators.backend import GenerateRequest, Request, Response, model_identity
from evaluators.models.parity import differing, tolerance_for
from evaluators.runs.measure.recording import exchange_of
from evaluators.task import load_task
from leaderboard.commands.accept import accept
from leaderboard.commands.verify import _asked_again
from leaderboard.verify import comparisons
from leaderboard.verify.comparisons import rerun
from leaderboard.verify.entries import is_reproduced
from leaderboard.verify.submissions import place_for
from schemas.documents.board import Rerun
from schemas.documents.record import Exchange, Record
from schemas.documents.result import Model, Normalisation, Result
from schemas.folders.run_folder import read_result
from schemas.outputs.documents import Verdict, Verdicts, as_json
from tests.evaluators.logging_backend import ask
from tests.evaluators.pronoun_records import recorded, sentences
from tests.leaderboard import forging
from tests.record_files import read_records

NAME = "acme/honest"


class World(NamedTuple):
    """A dataset, honest results and the model that gave them, which may be another one than that of the first."""

    datasets: Path
    places: forging.Places
    backend: forging.SkilledBackend

    def asking(self, folder: Path, backend: forging.SkilledBackend, **more: Any) -> World:
        """The same with the result of another model."""
        honest = ask(self.datasets / "dataset", folder, backend, prompt="intrinsic-v1", **more)
        return World(self.datasets, self.places._replace(honest=honest), backend)

    def forged(self, folder: Path, change: forging.Change = list, **fields: Any) -> Path:
        return forging.forge(self.places, folder, change, **{"model": NAME, **fields})

    def again(
        self, folder: Path, n: int = 200, *, seed: int = 1, backend: forging.SkilledBackend | None = None
    ) -> tuple[Rerun, tuple[str, ...]]:
        return rerun(folder / "result.json", backend or self.backend, self.datasets, n, seed=seed)

    def is_reproduced(self, folder: Path, n: int = 200, **options: Any) -> bool:
        found, others = self.again(folder, n, **options)
        assert (found.n_agreeing == found.n_items) == (others == ())
        return is_reproduced(found, read_result(folder))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("rerun")
    return World(root, forging.honest_places(root, "intrinsic-v1"), forging.SkilledBackend(root / "log", name=NAME))


@dataclass
class Opened(forging.SkilledBackend):
    """A model whose result says something else than by default; in half precision, each answer has an own error."""

    fields: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, str | None] = field(default_factory=dict)
    error: float = 0.0
    seed: int = 0

    @property
    def model(self) -> Model:
        """The same files, opened in a certain way."""
        return opened(replace(super().model, **self.fields), self.parts)

    def _answer(self, request: Request) -> Response:
        answer, rng = super()._answer(request), random.Random(f"{self.seed}{request.sha256}")
        rounded = (value + rng.gauss(0.0, self.error) for value in answer.option_logprobs if value is not None)
        return replace(answer, option_logprobs=tuple(rounded)) if self.error else answer


def opened(model: Model, parts: dict[str, str | None]) -> Model:
    identity = {**(model.identity or {}), **parts}
    return replace(model, identity=identity, identity_sha256=model_identity(identity)) if parts else model


HALF = {"precision": "bfloat16"}


def in_half(result: Result) -> Result:
    return replace(result, model=replace(result.model, **HALF))  # type: ignore[arg-type]


def shifted(record: Record, by: float) -> Record:
    return forging.with_exchange(
        record, lambda one: replace(one, option_logprobs=tuple((value or 0.0) - by for value in one.option_logprobs))
    )


@pytest.mark.slow
@pytest.mark.parametrize(("by", "n_differing"), [(0.05, 20), (1e-4, 0)])
def test_invented_answers_are_found_beyond_tolerance(world: World, tmp_path: Path, by: float, n_differing: int) -> None:
    def tenth(records: list[Record]) -> list[Record]:
        return [shifted(one, by) if number % 10 == 0 else one for number, one in enumerate(records)]

    folder = world.forged(tmp_path / "forged", tenth)
    found, differing = world.again(folder)
    assert found.n_items - found.n_agreeing == len(differing) == n_differing


STATED: dict[str, dict[str, Any]] = {
    "another border": {"n_moved_tokens": 1},
    "one number of tokens": {"option_token_counts": (2, 1)},
    "bounds": {"option_is_bound": (False, True), "option_logprobs": (-0.001, -9.0)},
    "a probability of zero": {"option_logprobs": (-math.inf, 0.0)},
    "end tokens": {"option_end_logprobs": (-9.0, 0.0)},
    "a refusal": {"status": "refused", "error": "no"},
    "a cut": {"finish_reason": "length"},
}


@pytest.mark.parametrize("fields", STATED.values(), ids=STATED)
def test_what_records_state_comes_from_the_model(world: World, tmp_path: Path, fields: dict[str, Any]) -> None:
    folder = world.forged(tmp_path / "forged", forging.exchanges_with(**fields))
    found, differing = world.again(folder, 60)
    assert (found.n_items, found.n_agreeing, len(differing)) == (60, 0, 60)
    assert not world.is_reproduced(folder, 60)


def likelier(record: Record) -> str:
    assert record.reading is not None
    return max(zip(record.reading.probabilities, record.reading.outcomes, strict=True))[1]


NO_ANSWER: dict[str, Any] = dict.fromkeys(("option_logprobs", "option_end_logprobs", "option_token_counts"), ()) | {
    "n_moved_tokens": None,
    "error": "connection reset",
}
LEFT_OPEN: dict[str, tuple[dict[str, Any], Normalisation]] = {
    "a failed answer": (NO_ANSWER | {"status": "failed"}, "sum"),
    "the other option": ({"option_logprobs": (None, -1.0)}, "sum"),
    "an end token": ({"option_end_logprobs": (None, -1.0)}, "sum_with_end"),
    "a number of tokens": ({"option_token_counts": (None, 1)}, "token_mean"),
    "moved tokens": ({"n_moved_tokens": None}, "byte_mean"),
}


class WithEnds(forging.SkilledBackend):
    """A model with an end token, which it gives the same probability everywhere."""

    def _answer(self, request: Request) -> Response:
        return replace(super()._answer(request), option_end_logprobs=(-1.0, -1.0))


@pytest.mark.slow
@pytest.mark.parametrize(("fields", "normalisation"), LEFT_OPEN.values(), ids=LEFT_OPEN)
def test_what_a_record_leaves_open_is_not_left_out(
    world: World, tmp_path: Path, fields: dict[str, Any], normalisation: Normalisation
) -> None:
    world = world.asking(tmp_path / "runs", WithEnds(tmp_path / "log", name=NAME))
    left_open = forging.exchanges_with(**fields)
    where_wrong = forging.on_each(lambda one: one if likelier(one) == one.target else left_open([one])[0])
    folder = world.forged(tmp_path / "forged", where_wrong, normalisation=normalisation)
    counts = read_result(folder).counts
    n_wrong = counts.items - counts.scored
    assert accuracy(folder) > 0.98 > 1 - n_wrong / counts.items
    found, others = world.again(folder)
    assert (found.n_items, len(others)) == (200, n_wrong)
    assert not world.is_reproduced(folder)


def accuracy(folder: Path) -> float:
    metrics = read_result(folder).metrics
    return next(one.value or 0.0 for one in metrics if one.name == "accuracy" and not one.group)


@pytest.mark.slow
def test_small_parts_are_drawn_as_often_as_large(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world.forged(tmp_path / "forged", lambda all: [*(shifted(one, 0.05) for one in all[:10]), *all[10:]])
    records = list(read_records(folder / "records.parquet"))
    monkeypatch.setattr(comparisons, "StoredParts", lambda folder, result: [records[:10], records[10:]])
    for n, n_small in ((20, 10), (9, 4), (200, 10)):
        found, others = world.again(folder, n)
        assert found.n_items == n
        assert len(others) in {n_small, n_small + n % 2}


@pytest.mark.slow
def test_items_that_fail_again_agree(world: World, tmp_path: Path) -> None:
    class Limited(forging.SkilledBackend):
        def _answer(self, request: Request) -> Response:
            answer = super()._answer(request)
            return answer if int(request.sha256[:8], 16) % 8 else Response(status="failed", error="too long")

    world = world.asking(tmp_path / "runs", Limited(tmp_path / "log", name=NAME), rate=0.5)
    result = read_result(world.places.honest)
    assert result.counts.failed
    found, others = world.again(world.places.honest)
    assert (found.n_items, others) == (200, ())
    assert is_reproduced(found, result)
    # Who asks only what was answered says nothing about the others.
    assert not is_reproduced(replace(found, n_items=49, n_agreeing=49), result)


Side = Callable[[Record], str | None]
"""The outcome of an item that a forger favours."""
MOVED: dict[str, Side] = {
    "the right ones": lambda record: record.target,
    "the stereotype": lambda record: record.groups["stereotyped_occupation"],
    "the likelier": likelier,
    "those that widen a gap": lambda record: (
        record.target if record.groups["stereotype"] == "pro" else other_than(record.target, record)
    ),
}


def other_than(outcome: str | None, record: Record) -> str:
    (other,) = {*record.exchanges[0].outcomes} - {outcome}
    return other


def towards(side: Side, by: float) -> forging.Change:
    """Log-probabilities that favour one outcome over the other by some nats more than the model does."""

    def moved(one: Exchange, favoured: str | None) -> Exchange:
        pairs = zip(one.outcomes, one.option_logprobs, strict=True)
        told = tuple((logprob or 0.0) - (0 if outcome == favoured else by) for outcome, logprob in pairs)
        return replace(one, option_logprobs=told)

    return forging.on_each(lambda record: forging.with_exchange(record, lambda one: moved(one, side(record))))


@pytest.mark.slow
@pytest.mark.parametrize("side", MOVED.values(), ids=MOVED)
def test_answers_that_lean_within_the_tolerance_do_not_agree(world: World, tmp_path: Path, side: Side) -> None:
    folder = world.forged(tmp_path / "forged", towards(side, 0.4), of_result=in_half)
    backend = Opened(tmp_path / "log", name=NAME, fields=HALF, error=0.01)
    found, differing = world.again(folder, 60, backend=backend)
    assert "(leans " in differing[0]
    assert not is_reproduced(found, read_result(folder))


@pytest.mark.slow
def test_rounding_does_not_lean(world: World, tmp_path: Path) -> None:
    folder = world.forged(tmp_path / "forged", of_result=in_half)
    for seed in range(8):
        backend = Opened(tmp_path / "log", name=NAME, fields=HALF, error=0.08, seed=seed)
        assert world.is_reproduced(folder, seed=seed, backend=backend)


def lead_of(record: Record) -> float:
    (one,) = record.exchanges
    by_outcome = dict(zip(one.outcomes, one.option_logprobs, strict=True))
    return (by_outcome[record.target or ""] or 0.0) - (by_outcome[other_than(record.target, record)] or 0.0)


@dataclass
class Undecided(forging.SkilledBackend):
    """A model whose options nearly tie, by default; or one with huge logits, by which tolerances grow."""

    spread: float = 2e-4
    nats: float = 0.0

    def _answer(self, request: Request) -> Response:
        lead = random.Random(request.sha256).gauss(0.0, self.spread)
        logprobs = tuple(-math.log1p(math.exp(-one)) - self.nats for one in (lead, -lead))
        return replace(super()._answer(request), option_logprobs=logprobs)


def turned(of_right: float, of_wrong: float) -> forging.Change:
    """Some of the right decisions turned, and some of the wrong ones."""
    rng = random.Random(1)

    def turn(record: Record) -> Record:
        is_turned = rng.random() < (of_right if lead_of(record) > 0 else of_wrong)
        return forging.with_exchange(
            record, lambda one: replace(one, option_logprobs=one.option_logprobs[:: -1 if is_turned else 1])
        )

    return forging.on_each(turn)


# Turned in both directions, no test of signs finds the gain in few items.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "change", "found_by"),
    [
        ({}, turned(0, 1), "(leans towards the right outcome in decisions)"),
        ({}, turned(0.2, 0.6), "rounding may change "),
        ({"spread": 0.4, "nats": 1e6}, turned(0.2, 0.6), " other decisions, and rounding explains "),
    ],
    ids=["near ties for the right outcome", "near ties", "huge logits"],
)
def test_a_model_that_leaves_its_decisions_to_rounding_vouches_for_none(
    world: World, tmp_path: Path, fields: dict[str, Any], change: forging.Change, found_by: str
) -> None:
    world = world.asking(tmp_path / "runs", Undecided(tmp_path / "log", name=NAME, **fields))
    folder = world.forged(tmp_path / "forged", change)
    found, others = world.again(folder, 60)
    assert not is_reproduced(found, read_result(folder))
    assert found_by in others[0]


@pytest.mark.slow
@pytest.mark.parametrize("is_same", [False, True])
def test_another_precision_vouches_for_nothing(world: World, tmp_path: Path, is_same: bool) -> None:
    folder = world.forged(tmp_path / "forged", of_result=in_half)
    backend = Opened(tmp_path / "log", name=NAME, fields=HALF, error=0.05) if is_same else world.backend
    verdict = _asked_again(Verdict(place=str(folder)), lambda name: backend, None, world.datasets, 200, 1)
    assert verdict.provenance == ("reproduced" if is_same else None)
    assert (verdict.rerun is not None) == is_same
    said = "200 of 200 items asked again (seed 1) agree in an unknown precision, which vouches for nothing: "
    assert verdict.warnings == (() if is_same else (f"{said}the result is in bfloat16; open it so with --dtype",))


@pytest.mark.slow
def test_honest_answers_agree_and_what_a_log_leaves_open_is_no_statement(world: World, tmp_path: Path) -> None:
    coarse, _ = world.again(world.places.honest, 5, backend=Opened(tmp_path / "log", name=NAME, fields=HALF))
    assert coarse.tolerance == tolerance_for("bfloat16") > tolerance_for(world.backend.model.precision)
    found, differing = world.again(world.places.honest, 30)
    assert (found.n_items, found.n_agreeing, differing) == (30, 30, ())
    assert world.again(world.places.honest, 10_000)[0].n_items == 200
    none = (None, None)
    unknown = forging.exchanges_with(option_token_counts=none, n_moved_tokens=None, option_end_logprobs=none)
    assert world.is_reproduced(world.forged(tmp_path / "unknown", unknown), 60)


def test_a_missing_dataset_is_an_error(world: World, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no dataset made 1\.0\.0"):
        world._replace(datasets=tmp_path).again(world.places.honest, 5)


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        ({"gguf_file": "q8.gguf"}, {"gguf_file": "q2.gguf"}, "with gguf_file q8.gguf, the opened model has q2.gguf"),
        ({"tokenizer": None}, {"tokenizer": "5a" * 32}, "with tokenizer None, the opened model has another"),
        ({"adapter": "a/b@1", "model": "acme/base@1"}, {"adapter": "a/b@1"}, "with model acme/base@1"),
        ({}, {"revision": "2"}, "with revision 1, the opened model has 2; open the same one"),
    ],
)
def test_a_model_opened_in_another_way_is_an_error(
    world: World, tmp_path: Path, theirs: dict[str, str | None], ours: dict[str, str | None], said: str
) -> None:
    folder = world.forged(
        tmp_path / "claimed", of_result=lambda result: replace(result, model=opened(result.model, theirs))
    )
    fields = {name: part for name, part in ours.items() if name == "revision"}
    backend = Opened(tmp_path / "log", name=NAME, fields=fields, parts={} if fields else ours)
    with pytest.raises(ConfigError, match=said):
        world.again(folder, 60, backend=backend)


def test_generated_texts_agree_if_they_are_equal() -> None:
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
def test_the_board_says_that_answers_were_rerun_as_long_as_the_result_is_the_same(world: World, tmp_path: Path) -> None:
    folder = world.forged(tmp_path / "forged")
    place, results = place_for(read_result(folder)), tmp_path / "results"
    (results / place).parent.mkdir(parents=True)
    folder = folder.rename(results / place)
    found, _ = world.again(folder, 60)
    for n_agreeing, provenance in ((60, "reproduced"), (59, "recomputed"), (60, "reproduced")):
        rerun = replace(found, n_agreeing=n_agreeing)
        verdict = Verdict(place=str(folder), result_sha256=sha256_file(folder / "result.json"), rerun=rerun)
        (tmp_path / "report.json").write_text(as_json(Verdicts(verdicts=(verdict,))))
        accept([place.as_posix()], owner="acme-bot", report=tmp_path / "report.json", results=results)
        (entry,) = forging.entries(results, world.places)
        assert entry.provenance == provenance
    (folder / "result.json").write_text((folder / "result.json").read_text() + "\n")
    accept([place.as_posix()], owner="acme-bot", results=results)
    (entry,) = forging.entries(results, world.places)
    assert (entry.acceptance is not None, entry.provenance) == (True, "recomputed")
