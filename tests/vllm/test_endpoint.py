"""What vLLM's own server is found to serve, and a mistake about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from tests.vllm.conftest import SERVED


def opened(server: str, model: str = SERVED, **options: Any) -> OpenAIBackend:
    return open_backend(model, BackendOptions(base_url=server, **options))


def test_a_wrong_model_is_one_message(server: str) -> None:
    with pytest.raises(ConfigError, match=f"the endpoint has: {SERVED}; name one of them with --model"):
        _ = opened(server, "made-lama").model


def test_completions_and_chat_are_found_out(server: str, made_llama: Path) -> None:
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
