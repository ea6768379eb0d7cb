"""Texts that the real engine holds to a JSON Schema, in process and through its server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from evaluators.backend import Backend, GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai import openai_backend as openai
from evaluators.backends.vllm.vllm_backend import VllmBackend
from schemas.lexicon import CASES
from tests.evaluators.asking import all_answers_of
from tests.vllm.conftest import SERVED

SCHEMA = json.dumps({"type": "object", "properties": {"case": {"enum": list(CASES)}}, "required": ["case"]})


@pytest.fixture(params=["in process", "server"])
def backend(request: pytest.FixtureRequest, engine: VllmBackend, made_llama: Path) -> Backend:
    if request.param == "in process":
        return engine
    url = request.getfixturevalue("server")
    return openai.open_backend(SERVED, BackendOptions(base_url=url, tokenizer=str(made_llama), api="completions"))


def test_a_text_satisfies_its_schema_or_was_cut_off(backend: Backend) -> None:
    validator = Draft202012Validator(json.loads(SCHEMA))
    asked = [
        GenerateRequest(prompt="Name a case.", max_tokens=150, temperature=1.0, sample=n, json_schema=SCHEMA)
        for n in range(6)
    ]
    answers = all_answers_of(backend, asked)
    assert {answer.status for answer in answers} == {"answered"}
    whole = [answer for answer in answers if answer.finish_reason != "length"]
    assert whole, "all were cut off"
    for answer in whole:
        validator.validate(json.loads(answer.text or ""))
    if not isinstance(backend, VllmBackend):
        assert backend.runtime.settings["json_schema"] == "json_schema"
