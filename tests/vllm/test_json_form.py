"""Texts that the real engine holds to a JSON Schema, in process and through its server."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from builders.synthbias.generation.instructions import answer_schema
from evaluators.backend import Backend, GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai import openai_backend as openai
from evaluators.backends.vllm.vllm_backend import VllmBackend
from schemas.lexicon import CASES
from tests.evaluators.asking import all_answers_of
from tests.vllm.conftest import SERVED

SHORT = json.dumps({"type": "object", "properties": {"case": {"enum": list(CASES)}}, "required": ["case"]})
N_REQUESTS = 6


@pytest.fixture(params=["in process", "server"])
def backend(request: pytest.FixtureRequest, engine: VllmBackend, made_llama: Path) -> Backend:
    if request.param == "in process":
        return engine
    url = request.getfixturevalue("server")
    return openai.open_backend(SERVED, BackendOptions(base_url=url, tokenizer=str(made_llama), api="completions"))


def asked(json_schema: str, max_tokens: int) -> list[GenerateRequest]:
    return [
        GenerateRequest(
            prompt="Name a case.", max_tokens=max_tokens, temperature=1.0, sample=n, json_schema=json_schema
        )
        for n in range(N_REQUESTS)
    ]


@pytest.mark.parametrize(("json_schema", "max_tokens"), [(SHORT, 150), (answer_schema(2), 200)])
def test_a_text_satisfies_its_schema_or_was_cut_off(backend: Backend, json_schema: str, max_tokens: int) -> None:
    validator = Draft202012Validator(json.loads(json_schema))
    found: Counter[str] = Counter()
    for response in all_answers_of(backend, asked(json_schema, max_tokens)):
        assert response.status == "answered", response.error
        if response.finish_reason == "length":
            found["cut off"] += 1
            continue
        validator.validate(json.loads(response.text or ""))
        found["valid"] += 1
    assert found.total() == N_REQUESTS
    if json_schema == SHORT:
        assert found["valid"], "all were cut off"
    if not isinstance(backend, VllmBackend):
        assert backend.runtime.settings["json_schema"] == "json_schema"
