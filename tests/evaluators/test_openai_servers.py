"""A table of the servers of 2025 and 2026, by what they send: the status of each item, the calls made, the words told.

Each row names a page that documents the behaviour, or a thread that shows it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import ChoiceRequest, GenerateRequest, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.generation import TEST
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from evaluators.backends.openai.pacing import Patience
from evaluators.stores.read_only import answered_keys, read_answers
from evaluators.stores.store import ResponseStore, store_key
from tests.evaluators.fake_endpoint import MODEL
from tests.evaluators.openai_runs import Asked, made
from tests.evaluators.raw_server import Raw, RawServer, chat, models, plain

PATIENCE = Patience(n_tries=3, n_timeouts=2, call_seconds=0.0, outage_seconds=4.0, longest_pause=0.02)
N = 6
ODD = "Say 3"
"""The one prompt that a server takes offence at."""
Sent = Mapping[str, Any]
OPENROUTER = "https://openrouter.ai/docs/api/reference/errors-and-debugging"
GENKIT = "https://github.com/genkit-ai/genkit/pull/6259"
QWEN = "https://www.alibabacloud.com/help/en/model-studio/error-code"


def prompt_of(sent: Sent) -> str:
    content = sent["messages"][-1]["content"]
    assert isinstance(content, str)
    return content


def served(answer: Callable[[Sent], Raw]) -> RawServer:
    """A server of chats alone, whose log-probabilities are not asked for in vain."""

    def serve(path: str, sent: Sent) -> Raw:
        if path.endswith("/models"):
            return plain(models())
        if not path.endswith("/chat/completions"):
            return plain({"error": {"message": "no such route"}}, 404)
        return answer(sent)

    return RawServer(serve)


def opened(server: RawServer, **options: Any) -> OpenAIBackend:
    backend = open_backend(MODEL, BackendOptions(base_url=server.url, **options))
    backend.patience = PATIENCE
    return backend


def ended(reason: str, text: str | None = "", **message: Any) -> dict[str, Any]:
    """A chat answer that ended for a reason."""
    answer = chat()
    answer["choices"] = [{"index": 0, "finish_reason": reason, "message": {"content": text, **message}}]
    return answer


def choice(**fields: Any) -> dict[str, Any]:
    answer = chat()
    answer["choices"] = [{**answer["choices"][0], **fields}]
    return answer


class Failure(NamedTuple):
    """An answer with status 200 that is none."""

    source: str
    body: dict[str, Any]
    words: str


INSIDE: dict[str, Failure] = {
    "an error in a choice": Failure(
        "https://github.com/UKGovernmentBEIS/inspect_ai/pull/1536",
        choice(finish_reason="error", message={"content": ""}, error={"code": 502, "message": "upstream is gone"}),
        "upstream is gone",
    ),
    "an error beside id": Failure(
        "https://github.com/UKGovernmentBEIS/inspect_ai/pull/1536",
        {"id": "gen-1", "error": {"code": 429, "message": "rate limited upstream"}},
        "rate limited upstream",
    ),
    "an error beside a whole choice": Failure(OPENROUTER, chat(error={"message": "cut upstream"}), "cut upstream"),
    "an error in a message": Failure(GENKIT, choice(message={"content": "", "error": "lost"}), "lost"),
    "finish_reason error": Failure(OPENROUTER, ended("error"), "finish_reason 'error'"),
    "finish_reason error after words": Failure(OPENROUTER, ended("error", "They ag"), "finish_reason 'error'"),
    "network_error": Failure(GENKIT, ended("network_error"), "network_error"),
    "insufficient_system_resource": Failure(GENKIT, ended("insufficient_system_resource"), "insufficient_system"),
    "abort": Failure("https://github.com/vllm-project/vllm/pull/47933", ended("abort"), "abort"),
    "an object of type error": Failure(
        "https://docs.vllm.ai/en/v0.8.3/serving/openai_compatible_server.html",
        {"object": "error", "message": "engine is dead", "type": "InternalServerError", "code": 500},
        "engine is dead",
    ),
    "error as a text": Failure(OPENROUTER, {"error": "no instances"}, "no instances"),
    "error_code": Failure(
        "https://cloud.baidu.com/doc/WENXINWORKSHOP/s/tlmyncueh",
        {"error_code": 336100, "error_msg": "try again later"},
        "try again later",
    ),
    "base_resp": Failure(
        "https://github.com/NousResearch/hermes-agent/pull/37851",
        {"choices": None, "base_resp": {"status_code": 1000, "status_msg": "unknown error"}},
        "unknown error",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INSIDE)
def test_an_error_inside_an_answer_is_a_failure_and_is_tried_again(name: str) -> None:
    row, tries = INSIDE[name], Counter[str]()

    def answer(sent: Sent, n_times: int) -> Raw:
        tries[prompt_of(sent)] += 1
        is_odd = prompt_of(sent) == ODD and tries[ODD] <= n_times
        return plain(row.body if is_odd else chat())

    with served(lambda sent: answer(sent, 1)) as server:
        backend = opened(server, api="chat")
        assert Asked().of(backend, made(N)).statuses() == {"answered": N}
    assert tries[ODD] == 2
    tries.clear()
    with served(lambda sent: answer(sent, 10**6)) as server:
        backend = opened(server, api="chat")
        # A limit on calls is waited for without end; whatever else fails is given up.
        if name != "an error beside id":
            asked = Asked().of(backend, made(N))
            assert asked.statuses() == {"answered": N - 1, "failed": 1}
            assert row.words in str(asked.responses[3].error)
            assert tries[ODD] == PATIENCE.n_tries


class Filter(NamedTuple):
    """How a provider says that it declines a prompt."""

    source: str
    status: int
    body: Any
    tries: int = 1
    """Calls until it is believed."""


FILTERS: dict[str, Filter] = {
    "OpenAI, code": Filter(
        "https://platform.openai.com/docs/guides/error-codes",
        400,
        {"error": {"message": "no", "type": "invalid_request_error", "code": "content_policy_violation"}},
    ),
    "OpenAI, words": Filter(
        "https://platform.openai.com/docs/guides/error-codes",
        400,
        {"error": {"message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy."}},
    ),
    "Azure, content_filter": Filter(
        "https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter",
        400,
        {"error": {"message": "The response was filtered", "code": "content_filter", "param": "prompt"}},
    ),
    "Azure, inner error": Filter(
        "https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter",
        400,
        {"error": {"message": "no", "code": "BadRequest", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
    ),
    "Azure, a completion": Filter(
        "https://github.com/experientiallabs/experiential/pull/967", 400, ended("content_filter", "They")
    ),
    "xAI": Filter(
        "https://github.com/UKGovernmentBEIS/inspect_ai/pull/2267",
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
        },
    ),
    "OpenRouter, moderation": Filter(
        OPENROUTER,
        403,
        {"error": {"code": 403, "message": "x needs it", "metadata": {"reasons": ["hate"], "flagged_input": "..."}}},
    ),
    "OpenRouter, words": Filter(OPENROUTER, 403, {"error": {"code": 403, "message": "Your input was flagged"}}),
    "OpenRouter, inside": Filter(OPENROUTER, 200, {"error": {"code": 403, "message": "Your input was flagged"}}),
    "DeepSeek": Filter(
        "https://github.com/666ghj/BettaFish/issues/108",
        400,
        {"error": {"message": "Content Exists Risk", "type": "invalid_request_error", "code": "invalid_request_error"}},
    ),
    "Qwen": Filter(QWEN, 400, {"error": {"code": "data_inspection_failed", "message": "no", "param": None}}),
    "Qwen, DashScope": Filter(
        QWEN, 400, {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}
    ),
    "Qwen, streamed words": Filter(
        QWEN, 400, {"error": {"message": "<400> Output data may contain inappropriate content."}}
    ),
    "Moonshot": Filter(
        "https://github.com/MoonshotAI/kimi-cli/issues/1002",
        400,
        {"error": {"code": 400, "message": "it was considered high risk", "type": "content_filter"}},
    ),
    "Z.ai": Filter(
        "https://docs.z.ai/api-reference/api-code", 400, {"error": {"code": "1301", "message": "System detected"}}
    ),
    "MiniMax": Filter(
        "https://github.com/NousResearch/hermes-agent/pull/37851",
        200,
        {"choices": None, "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}},
    ),
    "BytePlus": Filter(
        "https://docs.byteplus.com/en/docs/ModelArk/1299023",
        400,
        {"error": {"code": "InputTextSensitiveContentDetected", "message": "may contain sensitive information"}},
    ),
    "Gemini, an error in a list": Filter(
        "https://ai.google.dev/gemini-api/docs/troubleshooting",
        400,
        [{"error": {"code": 400, "message": "The prompt was blocked due to PROHIBITED_CONTENT", "status": "INVALID"}}],
    ),
    "Gemini, no choice": Filter("https://github.com/affaan-m/ECC/pull/1976", 200, {**chat(), "choices": []}, 3),
    "Bedrock": Filter(
        "https://platform.claude.com/docs/en/api/errors",
        400,
        {"error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}},
    ),
    "LiteLLM": Filter(
        "https://docs.litellm.ai/docs/exception_mapping",
        400,
        {"error": {"message": "litellm.ContentPolicyViolationError: no", "type": "content_policy_violation"}},
    ),
    "a 403 in words of its own": Filter("https://github.com/theopenco/llmgateway/pull/1785", 403, {"error": "no"}, 2),
    "a refusal": Filter(
        "https://platform.openai.com/docs/guides/structured-outputs",
        200,
        ended("stop", None, refusal="I will not."),
    ),
    "a refusal as a part": Filter(
        "https://platform.openai.com/docs/api-reference/chat",
        200,
        ended("stop", [{"type": "refusal", "refusal": "I will not."}]),  # type: ignore[arg-type]
    ),
    **{
        f"finish_reason {reason}": Filter(GENKIT, 200, ended(reason, text))
        for reason, text in {
            "content_filter": "",
            "refusal": "",
            "sensitive": "",
            "SAFETY": None,
            "PROHIBITED_CONTENT": None,
            "FINISH_REASON_SAFETY": "",
            "BLOCKLIST": "",
            "SPII": "",
            "RECITATION": "They ag",
            "guardrail_intervened": "Sorry",
        }.items()
    },
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_prompt_that_a_filter_declines_is_refused_by_whatever_name(name: str) -> None:
    row, tries = FILTERS[name], Counter[str]()

    def answer(sent: Sent) -> Raw:
        tries[prompt_of(sent)] += 1
        return plain(row.body, row.status) if prompt_of(sent) == ODD else plain(chat())

    with served(answer) as server:
        asked = Asked().of(opened(server, api="chat"), made(N))
    assert asked.statuses() == {"answered": N - 1, "refused": 1}
    assert asked.responses[3].status == "refused"
    assert tries[ODD] == row.tries


def test_a_filter_that_takes_offence_at_everything_ends_the_run() -> None:
    words = {"error": {"message": "your account violates our usage guidelines"}}
    seen: list[Sent] = []

    def answer(sent: Sent) -> Raw:
        seen.append(sent)
        return plain(chat()) if len(seen) <= 4 else plain(words, 403)

    asked = Asked()
    with served(answer) as server:
        backend = opened(server, api="chat", concurrency=1)
        _ = backend.model
        n_before, seen[:] = len(seen), seen[:2]
        with pytest.raises(RunError, match="forbids every prompt"):
            asked.of(backend, made(N))
    assert n_before
    assert asked.statuses() == {"answered": 2}


def test_what_one_request_teaches_in_vain_is_forgotten() -> None:
    # The refusal quotes the prompt, which holds the name of a parameter.
    words = {"error": {"message": "this input is invalid: 'the temperature of room 3'"}}
    sent_by_others: list[Sent] = []

    def answer(sent: Sent) -> Raw:
        if prompt_of(sent) == ODD:
            return plain(words, 400)
        sent_by_others.append(sent)
        return plain(chat())

    with served(answer) as server:
        asked = Asked().of(opened(server, api="chat", concurrency=1), made(N))
    assert asked.statuses() == {"answered": N - 1, "failed": 1}
    assert all("temperature" in sent for sent in sent_by_others)


def test_what_a_request_teaches_is_kept_if_a_fault_follows() -> None:
    sent_by: list[tuple[str, bool]] = []

    def answer(sent: Sent) -> Raw:
        if not prompt_of(sent).startswith("Say"):
            return plain(chat())
        sent_by.append((prompt_of(sent), "stop" in sent))
        if "stop" in sent:
            return plain({"error": {"message": "Unsupported parameter: 'stop' is not supported"}}, 400)
        return plain({"error": {"message": "broken"}}, 500) if prompt_of(sent) == "Say 0" else plain(chat())

    requests = [replace(request, stop=("#",)) for request in made(N) if isinstance(request, GenerateRequest)]
    with served(answer) as server:
        asked = Asked().of(opened(server, api="chat", concurrency=1), requests)
    assert asked.statuses() == {"answered": N - 1, "failed": 1}
    assert [name for name, has_stop in sent_by if has_stop] == ["Say 0"]


def test_an_estimate_leaves_no_trace_in_the_settings() -> None:
    request = GenerateRequest(prompt="Say 1", max_tokens=3, json_schema='{"type": "object"}')
    with served(lambda sent: plain(chat())) as server:
        backend = opened(server, api="chat")
        assert backend.most_tokens([request]).n_completion == 3
        assert "json_schema" not in backend.runtime.settings


NO_FILTERS: dict[str, tuple[str, int, Any]] = {
    "too long": (
        "https://docs.vllm.ai/en/stable/serving/openai_compatible_server/",
        400,
        {"error": {"message": "This model's maximum context length is 512 tokens; you sent 600 tokens", "code": 400}},
    ),
    "a key for one prompt": (OPENROUTER, 401, {"error": {"message": "no auth"}}),
    "no server for one prompt": (OPENROUTER, 404, {"error": {"message": "No endpoints found"}}),
    "unprocessable": ("https://docs.mistral.ai/api/", 422, {"detail": [{"msg": "too deep", "loc": ["body", "x"]}]}),
    "no credit for one": (OPENROUTER, 402, {"error": {"message": "This request requires more credits"}}),
    "a firewall's page": (OPENROUTER, 403, b"<!DOCTYPE html><title>Attention Required!</title>"),
    "no JSON": ("https://docs.litellm.ai/docs/exception_mapping", 400, b"bad"),
    "a null message": ("https://github.com/affaan-m/ECC/pull/1976", 200, choice(message=None)),
    "no content": ("https://github.com/affaan-m/ECC/pull/1976", 200, ended("stop", None)),
    "null choices": ("https://github.com/affaan-m/ECC/pull/1976", 200, {**chat(), "choices": None}),
}


@pytest.mark.parametrize("name", NO_FILTERS)
def test_what_is_no_refusal_has_failed_alone(name: str) -> None:
    _, status, body = NO_FILTERS[name]
    with served(lambda sent: plain(body, status) if prompt_of(sent) == ODD else plain(chat())) as server:
        asked = Asked().of(opened(server, api="chat"), made(N))
    assert asked.statuses() == {"answered": N - 1, "failed": 1}
    assert asked.responses[3].error


class Lesson(NamedTuple):
    """A refusal of a parameter, and what is sent after it."""

    source: str
    refuses: Callable[[Sent], bool]
    words: Any
    sent: Mapping[str, Any] = {}
    """Fields of the last call."""
    unsent: tuple[str, ...] = ()
    status: int = 400
    options: Mapping[str, Any] = {}


def has(*names: str) -> Callable[[Sent], bool]:
    return lambda sent: all(name in sent for name in names)


LESSONS: dict[str, Lesson] = {
    "only temperature 1": Lesson(
        "https://github.com/QwenLM/qwen-code/issues/921",
        lambda sent: sent.get("temperature", 1) != 1,
        {
            "message": "Unsupported value: 'temperature' does not support 0 with this model. "
            "Only the default (1) value is supported.",
            "param": "temperature",
            "code": "unsupported_value",
        },
        unsent=("temperature",),
    ),
    "temperature and top_p exclude each other": Lesson(
        "https://github.com/SalesforceAIResearch/MCP-Universe/issues/49",
        has("temperature", "top_p"),
        {"message": "`temperature` and `top_p` cannot both be specified for this model. Please use only one."},
        sent={"temperature": 0.0},
        unsent=("top_p",),
    ),
    "neither": Lesson(
        "https://platform.claude.com/docs/en/api/openai-sdk",
        lambda sent: "temperature" in sent or "top_p" in sent,
        {"message": "temperature and top_p are deprecated for this model"},
        unsent=("temperature", "top_p"),
    ),
    "no stop": Lesson(
        "https://github.com/EleutherAI/lm-evaluation-harness/issues/2441",
        has("stop"),
        {"message": "Unsupported parameter: 'stop' is not supported with this model.", "param": "stop"},
        unsent=("stop",),
    ),
    "no seed": Lesson(
        "https://ai.google.dev/gemini-api/docs/openai",
        has("seed"),
        [{"error": {"code": 400, "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}}],
        unsent=("seed",),
    ),
    "extra fields": Lesson(
        "https://docs.mistral.ai/api/",
        has("seed"),
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
        unsent=("seed",),
        status=422,
    ),
    "max_completion_tokens": Lesson(
        "https://platform.openai.com/docs/api-reference/chat/create",
        has("max_tokens"),
        {
            "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "param": "max_tokens",
        },
        sent={"max_completion_tokens": 3},
        unsent=("max_tokens",),
    ),
    "at least 16 tokens": Lesson(
        "https://platform.openai.com/docs/api-reference/responses/create",
        lambda sent: sent.get("max_tokens", 99) < 20,
        {"message": "Invalid 'max_tokens': integer below minimum value. Expected a value >= 20, but got 16 instead."},
        sent={"max_tokens": 20},
    ),
    "a range of tokens": Lesson(
        QWEN,
        lambda sent: sent["max_tokens"] > 1000,
        {"message": "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 1000]"},
        sent={"max_tokens": 1000},
        options={"thinking_tokens": 5000},
    ),
    "fewer tokens than wanted": Lesson(
        "https://platform.openai.com/docs/api-reference/chat/create",
        lambda sent: sent["max_tokens"] > 4096,
        {"message": "max_tokens is too large: 5016. This model supports at most 4096 completion tokens"},
        sent={"max_tokens": 4096},
        options={"thinking_tokens": 5000},
    ),
    "a context that is short": Lesson(
        "https://github.com/vllm-project/vllm/issues/42474",
        lambda sent: sent["max_tokens"] > 3000,
        {
            "message": "This model's maximum context length is 3100 tokens. However, you requested 5016 output tokens "
            "and your prompt contains at least 9 input tokens."
        },
        sent={"max_tokens": 2508},
        options={"thinking_tokens": 5000},
    ),
    "a context that names its parameter, in thousands": Lesson(
        "https://github.com/vllm-project/vllm/issues/42474",
        lambda sent: sent["max_tokens"] > 3000,
        {
            "message": "'max_tokens' or 'max_completion_tokens' is too large: 5,016. Prompt and answer together may "
            "take 3,100 tokens, and this prompt takes 9."
        },
        sent={"max_tokens": 2508},
        options={"thinking_tokens": 5000},
    ),
    "a limit in thousands": Lesson(
        "https://platform.openai.com/docs/api-reference/chat/create",
        lambda sent: sent["max_tokens"] > 4096,
        {"message": "max_tokens must be at most 4,096, got 5,003"},
        sent={"max_tokens": 4096},
        options={"thinking_tokens": 5000},
    ),
    "a request too large for a minute": Lesson(
        "https://github.com/continuedev/continue/issues/10218",
        lambda sent: sent["max_tokens"] > 3000,
        {"message": "Request too large for model on tokens per minute (TPM): Limit 3000, Requested 5012"},
        sent={"max_tokens": 2508},
        options={"thinking_tokens": 5000},
        status=413,
    ),
    "several, one by one": Lesson(
        "https://github.com/agno-agi/agno/issues/9951",
        lambda sent: bool({"temperature", "top_p", "stop", "max_tokens"} & set(sent)),
        None,
        sent={"max_completion_tokens": 3},
        unsent=("temperature", "top_p", "stop", "max_tokens"),
    ),
    "no system role": Lesson(
        "https://github.com/PowerShell/AIShell/pull/368",
        lambda sent: any(message["role"] == "system" for message in sent["messages"]),
        {"message": "Unsupported value: 'messages[0].role' does not support 'system' with this model."},
        options={"system_prompt": "Be brief."},
    ),
    "no developer instruction": Lesson(
        "https://ai.google.dev/gemma/docs/core/gemma_on_gemini_api",
        lambda sent: any(message["role"] == "system" for message in sent["messages"]),
        {"message": "Developer instruction is not enabled for models/gemma-3-27b-it", "code": 400},
        options={"system_prompt": "Be brief."},
    ),
    "roles that alternate": Lesson(
        "https://huggingface.co/google/gemma-2-9b-it",
        lambda sent: len(sent["messages"]) > 1,
        {"message": "System role not supported; roles must alternate user/assistant"},
        options={"system_prompt": "Be brief."},
    ),
}


@pytest.mark.parametrize("name", LESSONS)
def test_what_an_endpoint_accepts_is_learnt_once(name: str, tmp_path: Any) -> None:
    row = LESSONS[name]
    all_sent: list[Sent] = []
    options = dict(row.options)
    if "system_prompt" in options:
        path = tmp_path / "system.txt"
        path.write_text(str(options["system_prompt"]))
        options["system_prompt"] = path

    def answer(sent: Sent) -> Raw:
        all_sent.append(sent)
        if not row.refuses(sent):
            return plain(chat())
        wrong = next((one for one in ("temperature", "top_p", "stop", "max_tokens") if one in sent), "")
        words = row.words or {"message": f"Unsupported parameter: '{wrong}' is not supported.", "param": wrong}
        return plain(words if isinstance(words, list) or "detail" in words else {"error": words}, row.status)

    requests = [GenerateRequest(prompt=f"Say {k}", max_tokens=3, stop=("\n",)) for k in range(N)]
    with served(answer) as server:
        backend = opened(server, api="chat", **options)
        first = backend.model
        n_before = len(all_sent)
        asked = Asked().of(backend, requests)
        settings = backend.runtime.settings
        assert opened(server, api="chat", **options).model == first, "another condition each time"
    assert asked.statuses() == {"answered": N}
    of_run = [sent for sent in all_sent[n_before:] if prompt_of(sent).endswith(tuple(map(str, range(N))))][:N]
    # What the probe learns is not learnt again with each request.
    assert [sent for sent in of_run if row.refuses(sent)] == []
    last = of_run[-1]
    assert {key: last[key] for key in row.sent} == dict(row.sent)
    assert not {*row.unsent} & {*last}
    for parameter in {"temperature", "top_p"} & {*row.unsent}:
        assert settings[parameter] == "the provider's"
        assert (first.conditions or {})[parameter] == "the provider's"
    if "system_prompt" in options:
        text = "\n".join(message["content"] for message in last["messages"])
        assert "Be brief." in text
        assert "system_prompt" in (first.conditions or {})


def streamed(*parts: Mapping[str, Any], end: str = "data: [DONE]\n\n") -> Raw:
    body = "".join(f": keep-alive\n\ndata: {json.dumps(part)}\n\n" for part in parts) + end
    return plain(body.encode(), kind="text/event-stream; charset=utf-8")


def deltas(*messages: Mapping[str, Any], reason: str = "stop") -> list[dict[str, Any]]:
    parts = [{"model": MODEL, "choices": [{"index": 0, "delta": message}]} for message in messages]
    end = {"model": MODEL, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    return [*parts, end, {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (QWEN, "This model only support stream mode, please enable the stream parameter to access the model."),
        (QWEN, "parameter.enable_thinking must be set to false for non-streaming calls"),
        ("https://github.com/langchain4j/langchain4j/issues/3974", "Stream must be set to true"),
    ],
)
def test_an_endpoint_that_only_streams_is_read_as_a_stream(source: str, words: str) -> None:
    def answer(sent: Sent) -> Raw:
        if not sent.get("stream"):
            return plain({"error": {"message": words, "code": "invalid_parameter_error"}}, 400)
        said = {"role": "assistant", "reasoning_content": "The "}, {"reasoning_content": "cook."}, {"content": "B is"}
        return streamed(*deltas(*said, {"content": " it\u2028"}))

    with served(answer) as server:
        backend = opened(server, api="chat")
        found = Asked().of(backend, made(N)).responses[2]
        assert backend.runtime.settings["streamed"] == "true"
    assert (found.text, found.thinking, found.finish_reason) == ("B is it\u2028", "The cook.", "stop")
    assert (found.n_prompt_tokens, found.n_completion_tokens) == (9, 3)


STREAMS: dict[str, tuple[Callable[[], Raw], str, str]] = {
    "cut off": (lambda: streamed(*deltas({"content": "B"})[:1], end=""), "failed", "cut off"),
    "an error in the middle": (
        lambda: streamed(*deltas({"content": "B"})[:1], {"error": {"code": 502, "message": "lost the model"}}),
        "failed",
        "lost the model",
    ),
    "a filter at the end": (lambda: streamed(*deltas({"content": "B"}, reason="content_filter")), "refused", "filter"),
    "nothing but its end": (streamed, "failed", "a stream without parts"),
    "no JSON in it": (lambda: streamed(end="data: {oops\n\n"), "failed", "not JSON"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_breaks_is_no_answer(name: str) -> None:
    raw, status, words = STREAMS[name]
    whole = streamed(*deltas({"content": "B"}))
    with served(lambda sent: raw() if prompt_of(sent) == ODD else whole) as server:
        asked = Asked().of(opened(server, api="chat"), made(N))
    assert asked.statuses() == {"answered": N - 1, status: 1}
    assert words in str(asked.responses[3].error)


def delta_with(message: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "choices": [{"index": 0, "delta": message, **fields}]}


ODD_STREAMS: dict[str, Callable[[], Raw]] = {
    "empty reasons to end": lambda: streamed(
        delta_with({"content": "B is"}, finish_reason=""), delta_with({"content": " it"}, finish_reason="stop")
    ),
    "the whole message at the end": lambda: streamed(
        *deltas({"content": "B is"}, {"content": " it"}),
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "B is it"}, "finish_reason": "stop"}]},
    ),
    "a text that goes on as parts": lambda: streamed(
        *deltas({"content": ""}, {"content": [{"type": "text", "text": "B is"}]}, {"content": " it"})
    ),
    "JSON that is called a stream": lambda: plain(chat("B is it"), kind="text/event-stream"),
    "a mark of UTF-8": lambda: plain(b"\xef\xbb\xbf" + json.dumps(chat("B is it")).encode()),
}


@pytest.mark.parametrize("name", ODD_STREAMS)
def test_a_stream_may_be_odd(name: str) -> None:
    odd, whole = ODD_STREAMS[name](), streamed(*deltas({"content": "B is it"}))
    with served(lambda sent: odd if prompt_of(sent) == ODD else whole) as server:
        asked = Asked().of(opened(server, api="chat"), made(N))
    assert {(found.text, found.status) for found in asked.responses.values()} == {("B is it", "answered")}


def parts(*texts: tuple[str, Any]) -> dict[str, Any]:
    """A message whose content is a list of parts."""
    return {"content": [{"type": kind, kind: text} for kind, text in texts]}


THOUGHTS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "reasoning_content": (
        "https://api-docs.deepseek.com/guides/reasoning_model",
        {"content": "B", "reasoning_content": "The cook."},
    ),
    "reasoning": (
        "https://docs.vllm.ai/en/stable/features/reasoning_outputs/",
        {"content": "B", "reasoning": "The cook."},
    ),
    "thinking": ("https://github.com/open-webui/open-webui/issues/23923", {"content": "B", "thinking": "The cook."}),
    "parts": (
        "https://github.com/UKGovernmentBEIS/inspect_ai/pull/2000",
        parts(("thinking", "The cook."), ("text", "B")),
    ),
    "parts of parts": (
        "https://docs.mistral.ai/capabilities/reasoning/",
        parts(("thinking", [{"type": "text", "text": "The cook."}]), ("text", "B")),
    ),
    "parts that are texts": ("https://github.com/UKGovernmentBEIS/inspect_ai/pull/2389", {"content": ["B"]}),
    "<think>": ("https://docs.sglang.io/docs/advanced_features/separate_reasoning", {"content": "<think>A?</think>B"}),
    "only the end of <think>": (
        "https://docs.sglang.io/docs/advanced_features/separate_reasoning",
        {"content": "The cook is A?\n</think>B"},
    ),
    "[THINK]": ("https://docs.mistral.ai/capabilities/reasoning/", {"content": "[THINK]A?[/THINK]B"}),
    "Kimi's": (
        "https://docs.sglang.io/docs/advanced_features/separate_reasoning",
        {"content": "\u25c1think\u25b7A?\u25c1/think\u25b7B"},
    ),
    "channels": (
        "https://docs.sglang.io/docs/advanced_features/separate_reasoning",
        {"content": "<|channel|>analysis<|message|>A?<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>"},
    ),
    "channels without marks": (
        "https://github.com/oobabooga/textgen/issues/7374",
        {"content": "analysisA?assistantfinalB"},
    ),
    "a part that is a thought": (
        "https://ai.google.dev/gemini-api/docs/thinking",
        {"content": [{"type": "text", "text": "The cook.", "thought": True}, {"type": "text", "text": "B"}]},
    ),
    "the end of a channel without marks": (
        "https://github.com/llama-farm/llamafarm/issues/753",
        {"content": "We need a letter. A?assistantfinalB"},
    ),
    "an answer after a channel": (
        "https://github.com/ggml-org/llama.cpp/pull/15181",
        {"content": "<|channel|>analysis<|message|>A?<|end|>B"},
    ),
}


@pytest.mark.parametrize("name", THOUGHTS)
def test_what_a_model_thinks_is_kept_apart_and_has_tokens_of_its_own(name: str) -> None:
    from evaluators.runs.measure.recording import exchange_of

    _, message = THOUGHTS[name]
    budgets: list[int] = []

    def answer(sent: Sent) -> Raw:
        budgets.append(sent["max_tokens"])
        return plain(choice(message=message))

    request = GenerateRequest(prompt="Say 3", max_tokens=5, stop=("?",))
    with served(answer) as server:
        backend = opened(server, api="chat")
        response = Asked().of(backend, [request]).responses[0]
        conditions = backend.model.conditions
    assert exchange_of(request, response, show_prompt=True, chat=False).text == "B"
    # It is not stopped while it thinks.
    if name == "parts that are texts":
        assert (budgets[-1], conditions) == (5, None)
    else:
        assert (budgets[-1], conditions) == (5 + 8192, {"thinking_tokens": "8192"})


@pytest.mark.parametrize(
    ("message", "thinking"),
    [
        ({"content": "", "reasoning_content": "It could be"}, "It could be"),
        ({"content": None}, None),
        ({"content": ""}, None),
        ({"content": "<think>It could be"}, None),
    ],
)
def test_an_answer_that_is_cut_while_thinking_is_truncated_and_told_of(
    message: Mapping[str, Any], thinking: str | None
) -> None:
    from evaluators.runs.measure.recording import exchange_of
    from evaluators.tasks.coreference.coreference_task import TASK

    budgets: list[int] = []

    def answer(sent: Sent) -> Raw:
        budgets.append(sent["max_tokens"])
        return plain(choice(message=message, finish_reason="length"))

    request = GenerateRequest(prompt="Say 3", max_tokens=5, outcomes=("first", "second"))
    with served(answer) as server:
        response = Asked().of(opened(server, api="chat", thinking_tokens=100), [request]).responses[0]
    assert (response.status, response.thinking, budgets[-1]) == ("answered", thinking, 105)
    exchange = exchange_of(request, response, show_prompt=True, chat=False)
    read = TASK.reading((exchange,), None, "mcq2-generate-v1")
    assert (read.status, exchange.finish_reason) == ("unparsed", "length")
    assert "--thinking-tokens" in str(read.reason)


WAYS: dict[str, tuple[str, Callable[[Sent], bool]]] = {
    "OpenAI": (
        "https://platform.openai.com/docs/guides/reasoning",
        lambda sent: sent.get("reasoning_effort") == "none",
    ),
    "vLLM": (
        "https://docs.vllm.ai/en/stable/features/reasoning_outputs/",
        lambda sent: sent.get("chat_template_kwargs", {}).get("enable_thinking") is False,
    ),
    "Z.ai": (
        "https://docs.z.ai/guides/capabilities/thinking",
        lambda sent: sent.get("thinking") == {"type": "disabled"},
    ),
    "DashScope": (QWEN, lambda sent: sent.get("enable_thinking") is False),
}


@pytest.mark.parametrize("name", WAYS)
def test_thinking_is_switched_off_in_the_way_of_the_endpoint(name: str) -> None:
    _, is_off = WAYS[name]

    def answer(sent: Sent) -> Raw:
        return plain(choice(message={"content": "B"} if is_off(sent) else {"content": "B", "reasoning": "Well"}))

    with served(answer) as server:
        backend = opened(server, api="chat", reasoning_effort="off")
        found = Asked().of(backend, made(N)).responses[0]
        assert backend.model.conditions == {"reasoning_effort": "off"}
    assert (found.text, found.thinking) == ("B", None)


def test_thinking_that_cannot_be_switched_off_is_told_before_the_first_item() -> None:
    thinking = plain(choice(message={"content": "B", "reasoning": "Well"}))
    with served(lambda sent: thinking) as server, pytest.raises(ConfigError, match="off has no effect here"):
        _ = opened(server, api="chat", reasoning_effort="off").model


def alternatives(*tokens: tuple[str, Any]) -> Any:
    listed = [{"token": token, "logprob": value} for token, value in tokens]
    return {"content": [{**listed[0], "top_logprobs": listed}]}


LN = math.log
TOKENS: dict[str, tuple[str, Any, tuple[float | None, float | None]]] = {
    "with and without a space": (
        "https://github.com/chujiezheng/LLM-MCQ-Bias/issues/6",
        alternatives((" A", LN(0.6)), ("B", LN(0.3)), ("A", LN(0.05)), ("The", LN(0.05))),
        (0.65, 0.3),
    ),
    "equal texts twice": (
        "https://github.com/sgl-project/sglang/issues/32290",
        alternatives(("A", LN(0.4)), ("A", LN(0.2)), ("B", LN(0.3))),
        (0.6, 0.3),
    ),
    "the chosen token once": (
        "https://platform.openai.com/docs/api-reference/chat/object",
        alternatives(("A", LN(0.7)), ("B", LN(0.3))),
        (0.7, 0.3),
    ),
    "the same entry twice": (
        "https://github.com/sgl-project/sglang/issues/32290",
        alternatives(("A", LN(0.7)), ("A", LN(0.7)), ("B", LN(0.3))),
        (0.7, 0.3),
    ),
    "marks of vocabularies": (
        "https://github.com/vllm-project/vllm/pull/2918",
        alternatives(("\u2581A", LN(0.5)), ("\u0120B", LN(0.3)), ("<0x41>", LN(0.1))),
        (0.6, 0.3),
    ),
    "bytes": (
        "https://github.com/vllm-project/vllm/issues/2706",
        alternatives(("bytes: A", LN(0.5)), ("bytes:B", LN(0.3))),
        (0.5, 0.3),
    ),
    "letters with signs": (
        "https://platform.openai.com/docs/api-reference/chat/object",
        alternatives(("**A", LN(0.4)), ("A.", LN(0.2)), ("(B", LN(0.3)), ("Be", LN(0.05))),
        (0.6, 0.3),
    ),
    "a null of no option": (
        "https://github.com/sgl-project/sglang/issues/4097",
        alternatives(("A", LN(0.6)), ("B", LN(0.3)), ("#", None)),
        (0.6, 0.3),
    ),
    "-Infinity of no option": (
        "https://github.com/sgl-project/sglang/pull/20714",
        alternatives(("A", LN(0.6)), ("B", LN(0.3)), ("#", "-Infinity"), ("%", -math.inf)),
        (0.6, 0.3),
    ),
    "-9999 of no option": (
        "https://docs.vllm.ai/en/stable/serving/openai_compatible_server/",
        alternatives(("A", LN(0.6)), ("B", LN(0.3)), ("#", -9999.0)),
        (0.6, 0.3),
    ),
    "a null of an option": (
        "https://github.com/sgl-project/sglang/pull/20323",
        alternatives(("A", LN(0.6)), ("B", None)),
        (0.6, None),
    ),
    "a null of one way to write it": (
        "https://github.com/sgl-project/sglang/pull/20323",
        alternatives(("A", LN(0.6)), (" A", None), ("B", LN(0.3))),
        (0.6, 0.3),
    ),
}


def letters(number: int = 3) -> ChoiceRequest:
    return ChoiceRequest(prompt=f"Say {number}", options=(" A", " B"), outcomes=("a", "b"))


def scored(logprobs: Any) -> Response:
    """The response to a choice among letters of an endpoint that gives these alternatives."""

    def answer(sent: Sent) -> Raw:
        if "top_logprobs" not in sent:
            return plain(chat("A"))
        found = alternatives(("A", LN(0.6)), ("B", LN(0.3))) if prompt_of(sent) == TEST.prompt else logprobs
        return plain(json.dumps(choice(logprobs=found)).encode())

    with served(answer) as server:
        backend = opened(server, api="chat")
        assert backend.capabilities == {"generation", "option_logprobs"}
        return Asked().of(backend, [letters()]).responses[0]


@pytest.mark.parametrize("name", TOKENS)
def test_every_token_that_reads_as_an_option_counts(name: str) -> None:
    _, logprobs, expected = TOKENS[name]
    response = scored(logprobs)
    assert response.status == "answered"
    found = [None if value is None else math.exp(value) for value in response.option_logprobs]
    assert found == [None if value is None else pytest.approx(value) for value in expected]
    assert response.option_is_bound == ()


def test_a_model_that_thinks_first_is_asked_for_texts() -> None:
    def answer(sent: Sent) -> Raw:
        logprobs = alternatives(("<think>", LN(0.9999)), ("A", LN(0.00005)), ("B", LN(0.00004)))
        return plain(choice(logprobs=logprobs, message={"content": "<think>Well</think>A"}))

    with served(answer) as server:
        backend = opened(server)
        assert backend.capabilities == {"generation"}
        assert "thinks before it answers" in backend.runtime.settings["not_first_token"]


def test_letters_behind_something_else_are_unread() -> None:
    from evaluators.runs.measure.recording import exchange_of
    from evaluators.tasks.coreference.coreference_task import TASK

    response = scored(alternatives(("<think>", LN(0.9999)), ("A", LN(0.00005)), ("B", LN(0.00004))))
    exchange = exchange_of(letters(), response, show_prompt=True, chat=False)
    read = TASK.reading((exchange,), "sum", "mcq2-v1")
    assert read.status == "unparsed"
    assert "9e-05 of the first token's probability" in str(read.reason)


def test_probabilities_of_more_than_all_are_no_answer() -> None:
    response = scored(alternatives(("A", LN(0.9)), ("B", LN(0.8))))
    assert (response.status, response.error) == ("failed", "the probabilities of the first token add up to more than 1")


def test_the_reason_of_the_route_that_exists_is_told() -> None:
    words = {"error": {"message": "the model wants something else, by all means", "code": "wants"}}
    with served(lambda sent: plain(words, 400)) as server, pytest.raises(ConfigError) as caught:
        _ = opened(server).model
    assert "wants something else" in str(caught.value)
    assert "no such route" not in str(caught.value)


def test_azure_takes_its_own_header_and_others_are_sent_and_kept_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluators.backends.openai.address import parse_address

    address = parse_address("https://made.openai.azure.com/openai/deployments/x?api-version=2026-01", "made-key-123")
    assert address.headers == {"api-key": "made-key-123"}
    assert address.query == {"api-version": "2026-01"}
    monkeypatch.setenv("TEAM_TOKEN", "team-secret-9")
    seen: list[str] = []
    words = {"error": {"message": "team-secret-9 is no team, nor is made4token a token"}}
    with served(lambda sent: plain(words, 400)) as server:
        backend = opened(server, api="chat", header=("X-Team=$TEAM_TOKEN", "X-Auth=Bearer made4token"))
        with pytest.raises(ConfigError) as caught:
            _ = backend.model
        seen.append(str(caught.value))
    assert "*** is no team, nor is *** a token" in seen[0]
    assert "team-secret-9" not in seen[0]
    for wrong in ("X-Team", "X Team=1", "X-Team=$NOT_THERE_AT_ALL"):
        with pytest.raises(ConfigError, match="--header X"):
            parse_address("http://127.0.0.1:9/v1", None, (wrong,))


@pytest.mark.parametrize("body", ["[]", "{", '{"model": "other"}', '{"messages": []}'])
def test_an_extra_body_that_cannot_be_is_refused(body: str) -> None:
    with pytest.raises(ConfigError, match="--extra-body"):
        open_backend(MODEL, BackendOptions(base_url="http://127.0.0.1:9/v1", extra_body=body))


def test_an_extra_body_is_sent_and_is_a_condition() -> None:
    bodies: list[Sent] = []

    def answer(sent: Sent) -> Raw:
        bodies.append(sent)
        return plain(chat())

    with served(answer) as server:
        plain_model = opened(server, api="chat").model
        backend = opened(server, api="chat", extra_body='{"top_k": 1}')
        Asked().of(backend, made(2))
        assert backend.model.conditions == {"extra_body": '{"top_k":1}'}
        assert backend.model.identity_sha256 != plain_model.identity_sha256
        assert "--extra-body '{\"top_k\": 1}'" in backend.arguments
    assert bodies[-1]["top_k"] == 1


def test_what_was_stored_as_an_answer_by_mistake_is_asked_again(tmp_path: Path) -> None:
    with served(lambda sent: plain(chat())) as server:
        backend = opened(server, api="chat")
        requests = made(3)
        keys = [store_key(backend.model, request, with_facts=False) for request in requests]
        responses = Asked().of(backend, requests).responses
        # As earlier versions stored an error in a choice, beside a text that only speaks of one.
        responses[0] = Response(status="answered", text="", finish_reason="error")
        responses[1] = Response(status="answered", text='"finish_reason":"error"', finish_reason="stop")
        with ResponseStore(tmp_path / "responses.sqlite", backend.model) as store:
            store.add({key: (requests[place], responses[place]) for place, key in enumerate(keys)})
            found = store.responses(keys)
        assert {*found} == {keys[1], keys[2]}
        assert answered_keys(tmp_path / "responses.sqlite", keys) == {keys[1], keys[2]}
        assert len(read_answers(tmp_path / "responses.sqlite")) == 2
