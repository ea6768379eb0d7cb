"""Several processes, each with the model: the same answers, also when one of them dies."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import Answers, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.vllm.pool import Workers
from evaluators.backends.vllm.vllm_backend import VllmBackend, open_backend
from tests.evaluators.asking import all_answers_of
from tests.evaluators.made_data import save_tiny_llama
from tests.vllm.conftest import choices


def test_work_is_shared_and_a_death_loses_nothing(made_llama: Path, engine: VllmBackend) -> None:
    opened = open_backend(str(made_llama), BackendOptions(dtype="float32", end_logprobs=True, data_parallel=2))
    backend = replace(opened, chunk_texts=20)
    asked = choices(80)
    expected = all_answers_of(engine, asked)
    pool = backend.pool()
    assert isinstance(pool, Workers)
    assert pool.runtime.settings["data_parallel"] == "2"
    alive = [process.pid or 0 for process in pool._workers.values()]
    assert len(alive) == 2
    assert_equal(all_answers_of(backend, asked), expected)

    found: dict[int, Response] = {}
    for event in backend.ask(asked, frozenset(range(len(asked)))):
        if isinstance(event, Answers):
            if not found:
                os.kill(alive[0], signal.SIGKILL)
            found.update(event.responses)
    assert [process.pid for process in pool._workers.values()] == alive[1:]
    assert_equal([found[place] for place in range(len(asked))], expected)

    # One run is given up while the engine computes for it; the next does not get its answers.
    for n_events in (1, 2, 3):
        events = backend.ask(asked, frozenset(range(len(asked))))
        for _ in range(n_events):
            next(events)
        events.close()
    assert_equal(all_answers_of(backend, asked[::-1]), expected[::-1])

    os.kill(alive[1], signal.SIGKILL)
    with pytest.raises(RunError, match="no vLLM process is left"):
        all_answers_of(backend, asked)


def assert_equal(found: list[Response], expected: list[Response]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.option_logprobs == pytest.approx(other.option_logprobs, abs=1e-3)
        assert one.option_token_counts == other.option_token_counts


def test_what_a_worker_says_against_a_model_is_said_here(tmp_path: Path) -> None:
    backend = open_backend(str(save_tiny_llama(tmp_path / "small-heads")), BackendOptions(data_parallel=2))
    with pytest.raises(ConfigError, match=r"head_dim=16.*; use --backend transformers$"):
        all_answers_of(backend, choices(1))
