"""Labels after examples through the real engine, plain and in chat: the readings are those of transformers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from evaluators.backend import Backend
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers import transformers_backend as transformers
from evaluators.backends.vllm.vllm_backend import VllmBackend, open_backend
from evaluators.runs.measure.recording import records_of
from evaluators.runs.plan.plan import Plan
from schemas.documents.record import Record
from schemas.documents.result import Normalisation
from tests.evaluators.asking import all_answers_of
from tests.evaluators.label_data import made_dataset, planned

CONFIG = "letters"
TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("tasks") / "tasks", [CONFIG, "two"])


def records(plan: Plan, backend: Backend, *, chat: bool) -> list[Record]:
    (part,) = plan.parts
    answers = all_answers_of(backend, [request for requests in part.requests for request in requests])
    return list(records_of(plan, part, part.requests, [[answer] for answer in answers], chat=chat))


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("context", ["k0", "k2-set1"])
def test_readings_are_those_of_transformers(
    dataset: Path, made_llama: Path, engine: VllmBackend, context: str, chat: bool
) -> None:
    plan = planned(dataset, CONFIG, f"release-1024b-{context}-v1")
    opened = open_backend(str(made_llama), BackendOptions(dtype="float32", end_logprobs=True, chat=chat))
    options = BackendOptions(device="cpu", dtype="float32", chat=chat)
    asked = records(plan, replace(opened, loaded=engine.pool()), chat=chat)
    local = records(plan, transformers.open_backend(str(made_llama), options), chat=chat)
    assert [one.status for one in asked] == [other.status for other in local]
    n_compared = 0
    for one, other in zip(asked, local, strict=True):
        for normalisation in get_args(Normalisation):
            first, second = (plan.task.read(record.exchanges, normalisation) for record in (one, other))
            assert first.status == second.status
            if first.reading is not None and second.reading is not None:
                assert first.reading.probabilities == pytest.approx(second.reading.probabilities, abs=TOLERANCE)
                n_compared += 1
    assert n_compared > len(asked)
