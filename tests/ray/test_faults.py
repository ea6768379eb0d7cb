"""Workers die and break; nothing is lost, and what cannot be answered says why."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, RunError
from schemas.folders.run_folder import read_run
from tests.ray.engines import LIMITS, LOG, Scripted, die, die_once, fail, finish, opened

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_killed_worker_loses_nothing(dataset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "alone").mkdir()
    expected = finish(dataset, tmp_path / "out-alone", Scripted(tmp_path / "alone")).result
    with opened(partial(Scripted, tmp_path, at=" room 50 ", does=die_once, n_workers=2)) as backend:
        result = finish(dataset, tmp_path / "out", backend).result
    assert (tmp_path / "died").exists()
    # Ray has a paragraph about it.
    said = capfd.readouterr()
    assert said.out == ""
    assert "raylet" not in said.err
    assert (result.model, result.metrics, result.records) == (expected.model, expected.metrics, expected.records)
    assert result.environment.settings == {**expected.environment.settings, "cluster": "ray", "workers": "2"}
    assert result.environment.packages.keys() == {*expected.environment.packages, "ray"}
    times = Counter((tmp_path / LOG).read_text().splitlines())
    assert len(times) == result.usage.n_requests
    # Only what the dead worker had not handed over yet is asked again.
    assert sum(times.values()) - len(times) <= LIMITS.n_texts


def test_a_block_that_always_fails_is_all_that_fails(dataset: Path, tmp_path: Path) -> None:
    with opened(partial(Scripted, tmp_path, at=" room 50 until he ", does=die), n_workers=1) as backend:
        finished = finish(dataset, tmp_path / "out", backend, rate=0.2)
    records = read_run(finished.folder).records
    failed = [record for record in records if record.status == "failed"]
    assert "made-50-he" in {record.item_id for record in failed}
    assert 1 <= len(failed) <= LIMITS.n_texts
    errors = {exchange.error for record in failed for exchange in record.exchanges if exchange.status == "failed"}
    assert errors == {"failed on 3 workers one after the other: a worker was lost: its process died"}
    assert finished.result.counts.scored == len(records) - len(failed)


def test_workers_that_fail_at_everything_end_the_run(dataset: Path, tmp_path: Path) -> None:
    with (
        opened(partial(Scripted, tmp_path, at="room", does=fail), n_workers=1) as backend,
        pytest.raises(RunError) as caught,
    ):
        finish(dataset, tmp_path / "out", backend, rate=1.0)
    assert "4 tries in a row failed" in str(caught.value)
    assert "OSError: made to fail" in str(caught.value)


def break_down() -> Scripted:
    raise OSError("made to fail")


def open_dying(folder: Path) -> Scripted:
    with (folder / "tries").open("a") as file:
        file.write("x")
    die(Scripted(folder))
    raise AssertionError


def test_workers_that_cannot_open_the_model_or_die_meanwhile_say_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^OSError: made to fail$"), opened(break_down):
        pass
    with pytest.raises(RunError, match=r"no worker is left: 3 in a row died"), opened(partial(open_dying, tmp_path)):
        pass
    assert (tmp_path / "tries").read_text() == "xxx"


def open_different(folder: Path) -> Scripted:
    first = not (folder / "first").exists()
    (folder / "first").touch()
    return Scripted(folder, n_workers=2, name="one" if first else "another")


def test_workers_with_another_model_are_refused(dataset: Path, tmp_path: Path) -> None:
    with (
        opened(partial(open_different, tmp_path)) as backend,
        pytest.raises(RunError, match=r"has model identity .*, others .*: their answers may differ"),
    ):
        finish(dataset, tmp_path / "out", backend)
