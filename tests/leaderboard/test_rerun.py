"""Asking a model again: honest answers agree, invented ones do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.backend import GenerateRequest, Response
from evaluators.models.parity import tolerance_for
from evaluators.runs.measure.answer_keys import key_of_dataset
from evaluators.task import load_task
from leaderboard.commands.accept import accept
from leaderboard.commands.verify import verdicts_document
from leaderboard.verify.comparisons import _agree, rerun
from leaderboard.verify.entries import Root
from leaderboard.verify.keys import KeyBook, write_key
from leaderboard.verify.loading import load
from leaderboard.verify.public_files import place_for
from leaderboard.verify.verdicts import Verdict
from schemas.documents.record import Record
from schemas.documents.result import Model
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_result
from schemas.printed import as_json
from tests.evaluators.logging_backend import ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.pronoun_records import recorded, sentences
from tests.leaderboard.forging import Places, SkilledBackend, forge, with_exchange

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


def test_generated_texts_agree_if_they_are_equal(world: World) -> None:
    items = sentences("Here is where {nom} {lives|live}")
    (record, *_) = recorded(load_task("recognition"), items, lambda item: ["and she left."])
    request = GenerateRequest(prompt=record.exchanges[0].prompt or "", max_tokens=9)
    for text, is_same in (("and she left.", True), ("and he left.", False)):
        ours = [Response(status="answered", text=text)]
        assert _agree(record.exchanges, [request], ours, 1e-3) is is_same
    refused = [Response(status="refused", error="no")]
    assert not _agree(record.exchanges, [request], refused, 1e-3)


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
        report.write_text(as_json(verdicts_document([verdict])))
        accept([place.as_posix()], owner="acme-bot", report=report, results=tmp_path / "results")
        book = KeyBook(world.places.keys)
        (entry,) = load([Root(tmp_path / "results", "accepted")], book, Memory(None)).entries
        assert entry.provenance == ("reproduced" if name == "all" else "recomputed")
