"""Commands that change the files of a board at the same time."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest

from biasboard.ground import strict_json
from biasboard.ground.command_line import _raises
from biasboard.ground.errors import BiasboardError
from evaluators.runs.measure.stored_results import key_name, key_of_dataset
from leaderboard.commands.accept import accept
from leaderboard.verify.keys import KeyBook, dataset_name, write_key
from leaderboard.verify.submissions import place_for, read_register
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import find_runs, read_result
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.synthetic import leaning, present, write_model

N = 3
FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def as_function() -> Iterator[None]:
    """Called from Python, a command raises its errors."""
    token = _raises.set(True)
    yield
    _raises.reset(token)


def at_once(work: Callable[[int], object], said: Path) -> list[str]:
    """Do a work in as many processes, each of which writes slowly; gives the error of each, "" for none."""
    said.mkdir()
    write = strict_json.write

    def slow(path: Path, value: strict_json.JsonValue) -> None:
        time.sleep(0.2)
        write(path, value)

    def call(number: int) -> None:
        try:
            work(number)
            error = ""
        except (BiasboardError, OSError) as raised:
            error = str(raised)
        (said / str(number)).write_text(error)

    with mock.patch.object(strict_json, "write", slow):
        # Every process needs what the test has made and patched.
        processes = [FORK.Process(target=call, args=(number,)) for number in range(N)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    return [(said / str(number)).read_text() for number in range(N)]


def run_of(root: Path, model: str, certainty: float = 1.0) -> Path:
    return write_model(root, model, leaning(certainty, 0.1)).parent


@pytest.mark.slow
def test_one_of_several_results_of_a_model_is_handed_in(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / "runs" / str(number), "acme/small", 1.0 + number) for number in range(N)]
    said = at_once(lambda number: hand_in(runs[number], tmp_path / "results"), tmp_path / "said")
    assert [error for error in said if "another result of this model lies here" not in error] == [""]
    (found,) = find_runs(tmp_path / "results")
    assert found == tmp_path / "results" / place_for(read_result(runs[0]))
    assert (found / "result.json").read_bytes() == (runs[said.index("")] / "result.json").read_bytes()


@pytest.mark.slow
def test_a_key_and_its_items_are_written_together(tmp_path: Path) -> None:
    made, asked = [], {"config": "type2", "task": "coreference", "prompt": "intrinsic-v1"}
    for number in range(N):
        dataset = write_dataset(tmp_path / str(number), {"type2": made_items(number + 1)})
        made.append(key_of_dataset(dataset, read_manifest(dataset), **asked))
    assert at_once(lambda number: write_key(tmp_path / "keys", made[number]), tmp_path / "said") == [""] * N
    signature = made[0].key.signature
    known = present(KeyBook(tmp_path / "keys")._read(dataset_name(signature), key_name(signature)))
    assert known.items == next(one.items for one in made if one.key == known.key)


@pytest.mark.slow
def test_a_mistake_makes_no_folder_and_the_register_keeps_what_each_maintainer_enters(tmp_path: Path) -> None:
    with pytest.raises(BiasboardError, match="no such file; name a folder below"):
        accept(["made@1.0.0/acme__small/x"], owner="acme-bot", results=tmp_path / "results")
    assert list(tmp_path.iterdir()) == []
    results = tmp_path / "results"
    runs = [run_of(tmp_path / "runs", f"acme/{number}") for number in range(N)]
    places = [hand_in(run, results).relative_to(results).as_posix() for run in runs]

    def enter(number: int) -> None:
        accept([places[number]], owner="acme-bot", results=results)

    assert at_once(enter, tmp_path / "said") == [""] * N
    assert sorted(one.place for one in read_register(results).results) == sorted(places)
