"""What vLLM's own server is found to serve, and texts that the real engine holds to a JSON Schema, there too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from biasboard.ground.errors import ConfigError
from evaluators.backend import Backend, GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from evaluators.backends.vllm.vllm_backend import VllmBackend
from schemas.lexicon import CASES
from tests.evaluators.asking import all_answers_of
from tests.vllm.conftest import SERVED


def opened(server: str, model: str = SERVED, **options: Any) -> OpenAIBackend:
    return open_backend(model, BackendOptions(base_url=server, **options))


def test_completions_and_chat_are_found_out_and_a_wrong_model_is_one_message(server: str, made_llama: Path) -> None:
    with pytest.raises(ConfigError, match=f"the endpoint has: {SERVED}; name one of them with --model"):
        _ = opened(server, "made-lama").model
    found = {
        (api, named): opened(server, api=api, tokenizer=str(made_llama) if named else None).probed.option_scoring
        for api in (None, "chat")
        for named in (False, True)
    }
    assert found[None, True] == "option_trie"
    assert found[None, False] == "first_token"
    assert found["chat", False] == found["chat", True] == "first_token"
    named = opened(server, api="chat", tokenizer=str(made_llama))
    assert named.completion_options() == ("--api completions, where the endpoint has completions",)


SCHEMA = json.dumps({"type": "object", "properties": {"case": {"enum": list(CASES)}}, "required": ["case"]})


@pytest.fixture(params=["in process", "server"])
def backend(request: pytest.FixtureRequest, engine: VllmBackend, made_llama: Path) -> Backend:
    if request.param == "in process":
        return engine
    return opened(request.getfixturevalue("server"), tokenizer=str(made_llama), api="completions")


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
