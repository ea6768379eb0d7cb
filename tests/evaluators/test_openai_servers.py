"""A table of the servers of 2025 and 2026, by what they send: the status of each item, the calls made, the words told.

``meanings.toml`` names the pages that document refusals and errors; other rows have theirs here, or are hostile.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biasboard.ground.errors import ConfigError, RunError
from evaluators.backend import ChoiceRequest, GenerateRequest, Response
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.address import parse_address
from evaluators.backends.openai.generation import TEST
from evaluators.backends.openai.openai_backend import open_backend
from evaluators.runs.measure.recording import exchange_of
from evaluators.tasks.coreference.coreference_task import TASK
from tests.evaluators.fake_endpoint import MODEL
from tests.evaluators.openai_runs import (
    IMPATIENT,
    ODD,
    Asked,
    Body,
    N,
    Raw,
    among_others,
    chat,
    choice,
    connected,
    delta_with,
    deltas,
    ended,
    made,
    plain,
    prompt_of,
    served,
    streamed,
)

GITHUB = "https://github.com"
OPENAI = "https://platform.openai.com/docs"


def fault(message: Any = "no", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


class Odd(NamedTuple):
    """An odd answer to one of several requests."""

    raw: Raw | Callable[[], Raw]
    words: str = ""
    """What is told of it, if it is no answer."""
    tries: int = 0
    """Calls until it is believed; 0 for as many as it takes."""


def refuses(body: Any, status: int = 400, tries: int = 1, words: str = "") -> Odd:
    return Odd(plain(body, status), words, tries)


def lasts(body: Any, words: str) -> Odd:
    """An error inside an answer, which may pass."""
    return Odd(plain(body), words, IMPATIENT.n_tries)


REFUSED: dict[str, Odd] = {
    "OpenAI, words": refuses(
        fault("Invalid prompt: your prompt was flagged as potentially violating our usage policy.")),
    "Azure, content_filter": refuses(fault("It was filtered", code="content_filter", param="prompt")),
    "Azure, inner error": refuses(fault(code="Bad", innererror={"code": "ResponsibleAIPolicyViolation"})),
    "Azure, a completion": refuses(ended("content_filter", "They")),
    "xAI": refuses(
        {"code": "The caller does not have permission to execute the specified operation",
        "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}, 403),
    "OpenRouter, moderation": refuses(
        fault("x needs it", code=403, metadata={"reasons": ["hate"], "flagged_input": "..."}), 403),
    "OpenRouter, inside": refuses(fault("Your input was flagged", code=403), 200),
    "DeepSeek": refuses(fault("Content Exists Risk", type="invalid_request_error")),
    "Qwen, DashScope": refuses(
        {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."}),
    "Moonshot": refuses(fault("it was considered high risk", code=400)),
    "Z.ai": refuses(fault("System detected", code="1301")),
    "MiniMax": refuses(
        {"choices": None, "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}}, 200),
    "BytePlus": refuses(fault("may contain sensitive information", code="InputTextSensitiveContentDetected")),
    "Gemini, an error in a list": refuses(
        [fault("The prompt was blocked due to PROHIBITED_CONTENT", code=400, status="INVALID")]),
    "Gemini, no choice": refuses({**chat(), "choices": []}, 200, tries=3),
    "Bedrock": refuses(fault("Output blocked by content filtering policy", type="invalid_request_error")),
    "a 403 in words of its own": refuses({"error": "no"}, 403, tries=2),
    "a refusal": refuses(ended("stop", None, refusal="I will not."), 200, words="I will not."),
    "a refusal as a part": refuses(ended("stop", [{"type": "refusal", "refusal": "I will not."}]), 200),
    "a filter at the end of a stream": Odd(streamed(*deltas({"content": "B"}, reason="content_filter")), "filter"),
    **{
        f"finish_reason {reason}": refuses(ended(reason, "Sorry"), 200, words=repr(reason))
        for reason in ("refusal", "content_filter", "sensitive", "guardrail_intervened", "RECITATION")
    },
    "finish_reason FINISH_REASON_SAFETY": refuses(ended("FINISH_REASON_SAFETY", None), 200, words="_SAFETY'"),
}  # fmt: skip
FAILED: dict[str, Odd] = {
    "too long": refuses(
        fault("This model's maximum context length is 512 tokens; you sent 600 tokens", code=400),
        words="maximum context length"),
    "a key for one prompt": refuses(fault("no auth"), 401, words="HTTP 401"),
    "no server for one prompt": refuses(fault("No endpoints found"), 404, words="HTTP 404"),
    "unprocessable": refuses({"detail": [{"msg": "too deep", "loc": ["body", "x"]}]}, 422),
    "no credit for one": refuses(fault("This request requires more credits"), 402),
    "a redirect for one": refuses(b"", 307, words="HTTP 307"),
    "a firewall's page": refuses(b"<!DOCTYPE html><title>Attention Required!</title>", 403, tries=2),
    "half a character": refuses(b'{"error": {"message": "half \\ud800 of one"}}'),
    "a null message": refuses(choice(message=None), 200),
    "choices that are numbers": refuses({"choices": [1]}, 200),
    "an error in another charset": Odd(plain(b"\xff", 400, kind="text/plain; charset=hex")),
}  # fmt: skip
NESTED = b"[" * 200_000
GZIP = "content-encoding: gzip\r\n"
LOST: dict[str, Odd] = {
    "an error in a choice": lasts(
        choice(finish_reason="error", message={"content": ""}, **fault("it is gone", code=502)), "gone"),
    "an error beside a whole choice": lasts(chat(**fault("cut upstream")), "cut upstream"),
    "an error in a message": lasts(choice(message={"content": "", "error": "lost"}), "lost"),
    "finish_reason abort": lasts(ended("abort"), "finish_reason 'abort'"),
    "an object of type error": lasts(
        {"object": "error", "message": "engine is dead", "type": "InternalServerError", "code": 500}, "engine is dead"),
    "error_code": lasts({"error_code": 336100, "error_msg": "try again later"}, "try again later"),
    "base_resp": lasts(
        {"choices": None, "base_resp": {"status_code": 1000, "status_msg": "unknown error"}}, "unknown error"),
    "a stream that is cut off": Odd(streamed(*deltas({"content": "B"})[:1], end=""), "cut off"),
    "an error in the middle of a stream": Odd(
        streamed(*deltas({"content": "B"})[:1], fault("lost the model", code=502)), "lost the model"),
    "nothing but the end of a stream": Odd(streamed(), "a stream without parts"),
    "no JSON in a stream": Odd(streamed(end="data: {oops\n\n"), "not JSON"),
    "nested": Odd(lambda: plain(NESTED), "nested too deep"),
    "a web page": Odd(plain(b"<html>hello</html>", kind="text/html"), "text/html"),
    "half of what was promised": Odd(Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n{}")),
    "no HTTP": Odd(Raw(b"\x16\x03\x01 hello\r\n\r\n")),
    "a gzip bomb": Odd(lambda: plain(gzip.compress(b" " * 20_000_000), more=GZIP), "larger than"),
    "a body without end": Odd(lambda: Raw(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 20_000_000), "larger than"),
    "a byte a second": Odd(Raw(plain(chat()).content, pause=0.2), "no answer within 0.3 s", tries=IMPATIENT.n_timeouts),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        *((name, "refused") for name in REFUSED),
        *((name, "failed") for name in FAILED),
        *(pytest.param(name, "failed", marks=pytest.mark.slow) for name in LOST),
    ],
)
def test_an_odd_answer_concerns_one_request_alone_and_says_why(name: str, ends: str) -> None:
    row = (REFUSED | FAILED | LOST)[name]
    raw = row.raw() if callable(row.raw) else row.raw
    asked, tries = among_others(lambda _: raw, timeout=0.3 if raw.pause else 20.0)
    assert asked.statuses() == {"answered": N - 1, ends: 1}
    answer, error = asked.responses[3], str(asked.responses[3].error)
    assert row.words in error
    assert (len(error) < 600, error.isprintable(), bool(error)) == (True, True, True)
    error.encode()
    assert answer.finish_reason == ("content_filter" if ends == "refused" and "I will not" not in error else None)
    assert row.tries in (0, tries)


@pytest.mark.parametrize(
    ("status", "fields", "remedy"),
    [
        (403, {"message": "your account violates our usage guidelines"}, "forbids every prompt"),
        (401, {"message": "no auth"}, "check OPENAI_API_KEY"),
        (404, {"message": "no such model"}, "check --model"),
        (429, {"message": "quota", "code": "insufficient_quota"}, "credit is used up"),
    ],
)
def test_an_error_of_everything_ends_the_run(status: int, fields: dict[str, str], remedy: str) -> None:
    n_sound = 9

    def answer(sent: Body) -> Raw:
        nonlocal n_sound
        n_sound -= 1
        return plain(chat()) if n_sound >= 0 else plain({"error": fields}, status)

    asked = Asked()
    with served(answer) as server:
        backend = connected(server, concurrency=1)
        _ = backend.model
        n_sound = 2
        with pytest.raises(RunError, match=remedy):
            asked.of(backend, made(N))
    assert asked.statuses() == {"answered": 2}


def test_what_one_request_teaches_in_vain_is_forgotten() -> None:
    # The refusal quotes the prompt, which holds the name of a parameter.
    words = {"error": {"message": "this input is invalid: 'the temperature of room 3'"}}
    sent_by_others: list[Body] = []

    def answer(sent: Body) -> Raw:
        if prompt_of(sent) == ODD:
            return plain(words, 400)
        sent_by_others.append(sent)
        return plain(chat())

    with served(answer) as server:
        asked = Asked().of(connected(server, concurrency=1), made(N))
    assert asked.statuses() == {"answered": N - 1, "failed": 1}
    assert all("temperature" in sent for sent in sent_by_others)


class Lesson(NamedTuple):
    """A refusal of a parameter, and what is sent after it."""

    source: str
    refuses: Callable[[Body], bool]
    words: Any
    sent: Mapping[str, Any] = {}
    """Fields of the last call."""
    unsent: tuple[str, ...] = ()
    status: int = 400
    options: Mapping[str, Any] = {}


def has(*names: str) -> Callable[[Body], bool]:
    return lambda sent: all(name in sent for name in names)


def more_than(n_tokens: int) -> Callable[[Body], bool]:
    return lambda sent: bool(sent["max_tokens"] > n_tokens)


BRIEF = {"system_prompt": "Be brief."}
THINKS = {"thinking_tokens": 5000}
LESSONS: dict[str, Lesson] = {
    "only temperature 1": Lesson(f"{GITHUB}/QwenLM/qwen-code/issues/921", lambda sent: bool(sent.get("temperature",
        1) != 1), "'temperature' does not support 0 with this model. Only the default (1) value is supported.",
        unsent=("temperature",)),
    "temperature and top_p exclude each other": Lesson(f"{GITHUB}/SalesforceAIResearch/MCP-Universe/issues/49",
        has("temperature", "top_p"),
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        sent={"temperature": 0.0}, unsent=("top_p",)),
    "temperature and one of the user exclude each other": Lesson(
        f"{GITHUB}/SalesforceAIResearch/MCP-Universe/issues/49", has("temperature", "top_k"),
        "temperature is not supported together with top_k", sent={"top_k": 5}, unsent=("temperature",),
        options={"extra_body": '{"top_k": 5}'}),
    "no seed": Lesson("https://ai.google.dev/gemini-api/docs/openai", has("seed"),
        [fault('Invalid JSON payload received. Unknown name "seed": Cannot find field.', code=400)], unsent=("seed",)),
    "extra fields": Lesson("https://docs.mistral.ai/api/", has("seed"), {"detail": [{"type": "extra_forbidden",
        "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, unsent=("seed",), status=422),
    "max_completion_tokens": Lesson(f"{OPENAI}/api-reference/chat/create", has("max_tokens"),
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        sent={"max_completion_tokens": 3}, unsent=("max_tokens",)),
    "at least 16 tokens": Lesson(f"{OPENAI}/api-reference/responses/create", lambda sent: bool(sent.get("max_tokens",
        99) < 20), "Invalid 'max_tokens': integer below minimum value. Expected a value >= 20, but got 16 instead.",
        sent={"max_tokens": 20}),
    "a context that names its parameter, in thousands": Lesson(f"{GITHUB}/vllm-project/vllm/issues/42474",
        more_than(3000), "'max_tokens' or 'max_completion_tokens' is too large: 5,016. Prompt and answer together may "
        "take 3,100 tokens, and this prompt takes 9.", sent={"max_tokens": 2508}, options=THINKS),
    "a limit in thousands": Lesson(f"{OPENAI}/api-reference/chat/create", more_than(4096),
        "max_tokens must be at most 4,096, got 5,003", sent={"max_tokens": 4096}, options=THINKS),
    "several, one by one": Lesson(f"{GITHUB}/agno-agi/agno/issues/9951",
        lambda sent: bool({"temperature", "top_p", "stop", "max_tokens"} & set(sent)), None,
        sent={"max_completion_tokens": 3}, unsent=("temperature", "top_p", "stop", "max_tokens")),
    "no system role": Lesson(f"{GITHUB}/PowerShell/AIShell/pull/368",
        lambda sent: any(message["role"] == "system" for message in sent["messages"]),
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.", options=BRIEF),
}  # fmt: skip


@pytest.mark.parametrize("name", LESSONS)
def test_what_an_endpoint_accepts_is_learnt_once(name: str, tmp_path: Path) -> None:
    row = LESSONS[name]
    all_sent: list[Body] = []
    options = dict(row.options)
    if "system_prompt" in options:
        path = tmp_path / "system.txt"
        path.write_text(str(options["system_prompt"]))
        options["system_prompt"] = path

    def answer(sent: Body) -> Raw:
        all_sent.append(sent)
        if not row.refuses(sent):
            return plain(chat())
        wrong = next((one for one in ("temperature", "top_p", "stop", "max_tokens") if one in sent), "")
        words = row.words or {"message": f"Unsupported parameter: '{wrong}' is not supported.", "param": wrong}
        words = {"message": words} if isinstance(words, str) else words
        return plain(words if isinstance(words, list) or "detail" in words else {"error": words}, row.status)

    requests = [GenerateRequest(prompt=f"Say {k}", max_tokens=3, stop=("\n",)) for k in range(N)]
    with served(answer) as server:
        backend = connected(server, **options)
        first = backend.model
        n_before = len(all_sent)
        asked = Asked().of(backend, requests)
        settings = backend.runtime.settings
        assert connected(server, **options).model == first, "another condition each time"
    assert asked.statuses() == {"answered": N}
    of_run = [sent for sent in all_sent[n_before:] if prompt_of(sent).endswith(tuple(map(str, range(N))))][:N]
    # What the probe learns is not learnt again with each request.
    assert [sent for sent in of_run if row.refuses(sent)] == []
    last = of_run[-1]
    assert {key: last[key] for key in row.sent} == dict(row.sent)
    assert not {*row.unsent} & {*last}
    assert {*row.unsent} - {"max_tokens"} <= {*settings.get("parameters_left_out", "").split(", ")}
    for parameter in {"temperature", "top_p"} & {*row.unsent}:
        assert settings[parameter] == "the provider's"
        assert (first.conditions or {})[parameter] == "the provider's"
    if "system_prompt" in options:
        assert "Be brief." in "\n".join(message["content"] for message in last["messages"])
        assert "system_prompt" in (first.conditions or {})


@pytest.mark.parametrize(
    "words",
    [
        "This model only support stream mode, please enable the stream parameter to access the model.",
        "parameter.enable_thinking must be set to false for non-streaming calls",
    ],
)
def test_an_endpoint_that_only_streams_is_read_as_a_stream(words: str) -> None:
    def answer(sent: Body) -> Raw:
        if not sent.get("stream"):
            return plain(fault(words, code="invalid_parameter_error"), 400)
        said = {"role": "assistant", "reasoning_content": "The "}, {"reasoning_content": "cook."}, {"content": "B is"}
        return streamed(*deltas(*said, {"content": " it\u2028"}))

    with served(answer) as server:
        backend = connected(server)
        found = Asked().of(backend, made(N)).responses[2]
        assert backend.runtime.settings["streamed"] == "true"
    assert (found.text, found.thinking, found.finish_reason) == ("B is it\u2028", "The cook.", "stop")
    assert (found.n_prompt_tokens, found.n_completion_tokens) == (9, 3)


ODD_STREAMS: dict[str, Raw] = {
    "empty reasons to end": streamed(delta_with({"content": "B is"}, finish_reason=""),
        delta_with({"content": " it"}, finish_reason="stop")),
    "the whole message at the end": streamed(*deltas({"content": "B is"}, {"content": " it"}),
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "B is it"}, "finish_reason": "stop"}]}),
    "a text that goes on as parts": streamed(*deltas({"content": ""}, {"content": [{"type": "text", "text": "B is"}]},
        {"content": " it"})),
    "JSON that is called a stream": plain(chat("B is it"), kind="text/event-stream"),
    "a mark of UTF-8": plain(b"\xef\xbb\xbf" + json.dumps(chat("B is it")).encode()),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_STREAMS)
def test_a_stream_may_be_odd(name: str) -> None:
    asked, _ = among_others(lambda _: ODD_STREAMS[name], streamed(*deltas({"content": "B is it"})))
    assert {(found.text, found.status) for found in asked.responses.values()} == {("B is it", "answered")}


def parts(*texts: tuple[str, Any]) -> dict[str, Any]:
    """A message whose content is a list of parts."""
    return {"content": [{"type": kind, kind: text} for kind, text in texts]}


THOUGHTS: dict[str, Mapping[str, Any]] = {
    "reasoning_content": {"content": "B", "reasoning_content": "Well"},
    "parts": parts(("thinking", "Well"), ("text", "B")),
    "parts of parts": parts(("thinking", [{"type": "text", "text": "W"}]), ("text", "B")),
    "parts that are texts": {"content": ["B"]},
    "a part that is a thought": {"content": [{"type": "text", "text": "Well", "thought": True}, "B"]},
    # Stop texts of an answer may stand in what is thought; test_thinking has more marks.
    "<think>": {"content": "<think>A?</think>B"},
}


@pytest.mark.parametrize("name", THOUGHTS)
def test_what_a_model_thinks_is_kept_apart_and_has_tokens_of_its_own(name: str) -> None:
    asked: list[tuple[int, bool]] = []

    def answer(sent: Body) -> Raw:
        asked.append((sent["max_tokens"], "stop" in sent))
        return plain(choice(message=THOUGHTS[name]))

    request = GenerateRequest(prompt="Say 3", max_tokens=5, stop=("?",))
    with served(answer) as server:
        backend = connected(server)
        response = Asked().of(backend, [request]).responses[0]
        conditions = backend.model.conditions
    assert exchange_of(request, response, show_prompt=True, chat=False).text == "B"
    # It is not stopped while it thinks.
    if name == "parts that are texts":
        assert (asked[-1], conditions) == ((5, True), None)
    else:
        assert (asked[-1], conditions) == ((5 + 8192, False), {"thinking_tokens": "8192"})


@pytest.mark.parametrize(
    ("message", "reason", "thinking"),
    [
        ({"content": "", "reasoning_content": "It could be"}, "length", "It could be"),
        ({"content": None}, "length", None),
        ({"content": "<think>It could be"}, "length", None),
        # No text at all is an answer too.
        ({"content": ""}, "stop", None),
    ],
)
def test_an_answer_that_is_cut_while_thinking_is_truncated_and_told_of(
    message: Mapping[str, Any], reason: str, thinking: str | None
) -> None:
    budgets: list[int] = []

    def answer(sent: Body) -> Raw:
        budgets.append(sent["max_tokens"])
        return plain(choice(message=message, finish_reason=reason))

    request = GenerateRequest(prompt="Say 3", max_tokens=5, outcomes=("first", "second"))
    with served(answer) as server:
        response = Asked().of(connected(server, thinking_tokens=100), [request]).responses[0]
    assert (response.status, response.thinking, budgets[-1]) == ("answered", thinking, 105)
    exchange = exchange_of(request, response, show_prompt=True, chat=False)
    read = TASK.reading((exchange,), None, "mcq2-generate-v1")
    assert (read.status, exchange.finish_reason) == ("unparsed", reason)
    assert ("--thinking-tokens" in str(read.reason)) == (reason == "length")


WAYS: dict[str, Callable[[Body], bool]] = {
    "the first": lambda sent: sent.get("reasoning_effort") == "none",
    "a later one": lambda sent: sent.get("enable_thinking") is False,
}


@pytest.mark.parametrize("name", WAYS)
def test_thinking_is_switched_off_in_the_way_of_the_endpoint_or_it_is_told_that_none_works(name: str) -> None:
    def answer(sent: Body) -> Raw:
        return plain(choice(message={"content": "B"} | ({} if WAYS[name](sent) else {"reasoning": "Well"})))

    with served(answer) as server:
        backend = connected(server, reasoning_effort="off")
        found = Asked().of(backend, made(N)).responses[0]
        assert backend.model.conditions == {"reasoning_effort": "off"}
    assert (found.text, found.thinking) == ("B", None)
    thinking = plain(choice(message={"content": "B", "reasoning": "Well"}))
    with served(lambda sent: thinking) as server, pytest.raises(ConfigError, match="off has no effect here"):
        _ = connected(server, reasoning_effort="off").model


def alternatives(*tokens: tuple[str, Any]) -> Any:
    listed = [{"token": token, "logprob": value} for token, value in tokens]
    return {"content": [{**listed[0], "top_logprobs": listed}]}


def shares(*tokens: tuple[str, Any], **more: Any) -> Any:
    """Alternatives by their probabilities, and then some by what stands in place of a logarithm."""
    return alternatives(*((token, math.log(share)) for token, share in tokens), *more.items())


TOKENS: dict[str, tuple[Any, tuple[float | None, float | None]]] = {
    "with and without a space": (shares((" A", 0.6), ("B", 0.3), ("A", 0.05), ("The", 0.05)), (0.65, 0.3)),
    "equal texts twice": (shares(("A", 0.4), ("A", 0.2), ("B", 0.3)), (0.6, 0.3)),
    "the same entry twice": (shares(("A", 0.7), ("A", 0.7), ("B", 0.3)), (0.7, 0.3)),
    "marks of vocabularies": (shares(("\u2581A", 0.5), ("\u0120B", 0.3), ("<0x41>", 0.1)), (0.6, 0.3)),
    "bytes": (shares(("bytes: A", 0.5), ("bytes:B", 0.3)), (0.5, 0.3)),
    "letters with signs": (shares(("**A", 0.4), ("A.", 0.2), ("(B", 0.3), ("Be", 0.05)), (0.6, 0.3)),
    "-Infinity of no option": (shares(("A", 0.6), ("B", 0.3), **{"#": "-Infinity", "%": -math.inf}), (0.6, 0.3)),
    "-9999 of no option": (shares(("A", 0.6), ("B", 0.3), **{"#": -9999.0}), (0.6, 0.3)),
    "a null of an option": (shares(("A", 0.6), B=None), (0.6, None)),
    "a null of one way to write it": (shares(("A", 0.6), ("B", 0.3), **{" A": None}), (0.6, 0.3)),
}


def letters(number: int = 3) -> ChoiceRequest:
    return ChoiceRequest(prompt=f"Say {number}", options=(" A", " B"), outcomes=("a", "b"))


def scored(logprobs: Any) -> Response:
    """The response to a choice among letters of an endpoint that gives these alternatives."""

    def answer(sent: Body) -> Raw:
        if "top_logprobs" not in sent:
            return plain(chat("A"))
        found = shares(("A", 0.6), ("B", 0.3)) if prompt_of(sent) == TEST.prompt else logprobs
        return plain(json.dumps(choice(logprobs=found)).encode())

    with served(answer) as server:
        backend = connected(server)
        assert backend.capabilities == {"generation", "option_logprobs"}
        return Asked().of(backend, [letters()]).responses[0]


@pytest.mark.parametrize("name", TOKENS)
def test_every_token_that_reads_as_an_option_counts(name: str) -> None:
    logprobs, expected = TOKENS[name]
    response = scored(logprobs)
    assert response.status == "answered"
    found = [None if value is None else math.exp(value) for value in response.option_logprobs]
    assert found == [None if value is None else pytest.approx(value) for value in expected]
    assert response.option_is_bound == ()


THINKS_FIRST = shares(("<think>", 0.9999), ("A", 0.00005), ("B", 0.00004))


def test_a_model_that_thinks_first_is_asked_for_texts_and_what_no_letters_are_is_no_answer() -> None:
    with served(lambda _: plain(choice(logprobs=THINKS_FIRST, message={"content": "<think>Well</think>A"}))) as server:
        backend = connected(server, api=None)
        assert backend.capabilities == {"generation"}
        assert "thinks before it answers" in backend.runtime.settings["not_first_token"]
    exchange = exchange_of(letters(), scored(THINKS_FIRST), show_prompt=True, chat=False)
    read = TASK.reading((exchange,), "sum", "mcq2-v1")
    assert read.status == "unparsed"
    assert "9e-05 of the first token's probability" in str(read.reason)
    response = scored(shares(("A", 0.9), ("B", 0.8)))
    assert (response.status, response.error) == ("failed", "the probabilities of the first token add up to more than 1")


def test_azure_takes_its_own_header_and_others_are_sent_and_kept_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    address = parse_address("https://made.openai.azure.com/openai/deployments/x?api-version=2026-01", "made-key-123")
    assert (address.headers, address.query) == ({"api-key": "made-key-123"}, {"api-version": "2026-01"})
    monkeypatch.setenv("TEAM_TOKEN", "team-secret-9")
    words = fault("team-secret-9 is no team, nor is made4token a token")
    with served(lambda sent: plain(words, 400)) as server, pytest.raises(ConfigError) as caught:
        _ = connected(server, header=("X-Team=$TEAM_TOKEN", "X-Auth=Bearer made4token")).model
    assert "*** is no team, nor is *** a token" in str(caught.value)
    for wrong in ("X-Team", "X Team=1", "X-Team=$NOT_THERE_AT_ALL"):
        with pytest.raises(ConfigError, match="--header X"):
            parse_address("http://127.0.0.1:9/v1", None, (wrong,))


def test_an_extra_body_is_sent_and_is_a_condition_or_refused_where_it_cannot_be() -> None:
    bodies: list[Body] = []

    def answer(sent: Body) -> Raw:
        bodies.append(sent)
        return plain(chat())

    with served(answer) as server:
        plain_model = connected(server).model
        backend = connected(server, extra_body='{"top_k": 1}')
        Asked().of(backend, made(2))
        assert backend.model.conditions == {"extra_body": '{"top_k":1}'}
        assert backend.model.identity_sha256 != plain_model.identity_sha256
        assert "--extra-body '{\"top_k\": 1}'" in backend.arguments
    assert bodies[-1]["top_k"] == 1
    for body in ("[]", '{"model": "other"}'):
        with pytest.raises(ConfigError, match="--extra-body"):
            open_backend(MODEL, BackendOptions(base_url="http://127.0.0.1:9/v1", extra_body=body))
