"""What the openai backend makes of right, odd and wrong answers, against a server on 127.0.0.1."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest, GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.openai.openai_backend import OpenAIBackend, open_backend
from tests.evaluators.fake_endpoint import CHAT_TOP, MODEL, FakeEndpoint, Received, token_logprob
from tests.evaluators.openai_runs import ask

OPTIONS = (" the engineer", " the nurse", " he", " the engineer could")
REQUESTS = [
    ChoiceRequest(prompt=f"The nurse waited for the engineer in room {number} until", options=OPTIONS, outcomes=OPTIONS)
    for number in range(5)
]
LETTERS = ChoiceRequest(prompt="A, B or C? Answer:", options=(" A", " B", " C"), outcomes=("a", "b", "c"))
Serves = frozenset[str]
TRIE = frozenset({"option_trie", "echo", "lists", "chat", "top_logprobs", "models"})
ECHO = TRIE - {"option_trie"}
CHAT = frozenset({"chat", "top_logprobs"})


def opened(endpoint: FakeEndpoint, folder: Path | None = None, **options: Any) -> OpenAIBackend:
    tokenizer = None if folder is None else str(folder)
    return open_backend(MODEL, BackendOptions(base_url=endpoint.url, tokenizer=tokenizer, **options))


def expected(tokenizer: Tokenizer, request: ChoiceRequest) -> list[float]:
    """Token by token, for options that merge with nothing before them."""
    sums = []
    context = tokenizer.encode(request.prompt).ids
    for option in request.options:
        ids = tokenizer.encode(request.prompt + option).ids
        assert ids[: len(context)] == context
        sums.append(sum(token_logprob(ids[:at], ids[at]) for at in range(len(context), len(ids))))
    return sums


@pytest.mark.parametrize(
    ("serves", "way", "prompts_per_call"),
    [
        (TRIE, "option_trie", "many"),
        (TRIE - {"lists"}, "option_trie", "one"),
        (ECHO, "echo", "many"),
        (ECHO - {"lists"}, "echo", "one"),
    ],
)
def test_every_exact_way_gives_the_sums_of_the_model_in_whatever_order_choices_come(
    serves: Serves, way: str, prompts_per_call: str, folder: Path, tokenizer: Tokenizer
) -> None:
    def shuffled(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "choices": [*reversed(answer["choices"]), answer["choices"][0]]}

    with FakeEndpoint(tokenizer, serves=serves, alter=shuffled) as endpoint:
        backend = opened(endpoint, folder)
        settings = backend.runtime.settings
        assert (settings["option_scoring"], settings["prompts_per_call"]) == (way, prompts_per_call)
        assert backend.capabilities == {"option_logprobs", "generation"}
        found, n_attempts = ask(backend, REQUESTS)
        assert n_attempts == endpoint.n_received
    for place, request in enumerate(REQUESTS):
        assert found[place].status == "answered"
        assert found[place].option_logprobs == pytest.approx(expected(tokenizer, request), abs=1e-9)
        assert found[place].option_is_bound == ()
        context = len(tokenizer.encode(request.prompt).ids)
        lengths = [len(tokenizer.encode(request.prompt + option).ids) - context for option in OPTIONS]
        assert found[place].option_token_counts == tuple(lengths)
        assert found[place].n_moved_tokens == 0


def test_tokens_that_merge_across_the_border_are_scored_with_every_option(folder: Path, tokenizer: Tokenizer) -> None:
    # "engineer" is other tokens than "enginee" and "r".
    request = ChoiceRequest(prompt="The nurse asked the enginee", options=("r", " of"), outcomes=("a", "b"))
    rows = [tokenizer.encode(text).ids for text in (request.prompt, *(request.prompt + x for x in request.options))]
    n_common = next(place for place, column in enumerate(zip(*rows, strict=False)) if len(set(column)) > 1)
    sums = [sum(token_logprob(ids[:at], ids[at]) for at in range(n_common, len(ids))) for ids in rows[1:]]
    assert n_common < len(rows[0]), "the case does not test what it is for"
    for serves in (TRIE, ECHO):
        with FakeEndpoint(tokenizer, serves=serves) as endpoint:
            found, _ = ask(opened(endpoint, folder), [request])
        assert found[0].option_logprobs == pytest.approx(sums)
        assert found[0].n_moved_tokens == len(rows[0]) - n_common


def test_the_end_token_is_scored_where_it_is_wanted(folder: Path, tokenizer: Tokenizer) -> None:
    end = tokenizer.token_to_id("</s>")
    assert end is not None
    with FakeEndpoint(tokenizer) as endpoint:
        backend = opened(endpoint, folder, end_logprobs=True)
        found, _ = ask(backend, REQUESTS)
        assert backend.model != opened(endpoint, folder).model
        endpoint.serves = ECHO
        without = opened(endpoint, folder, end_logprobs=True)
        with pytest.raises(ConfigError, match="--end-logprobs"):
            _ = without.model
    for place, request in enumerate(REQUESTS):
        ends = [token_logprob(tokenizer.encode(request.prompt + option).ids, end) for option in OPTIONS]
        assert found[place].option_end_logprobs == pytest.approx(ends)
        assert found[place].option_logprobs == pytest.approx(expected(tokenizer, request))


def test_more_options_than_one_call_may_name(folder: Path, tokenizer: Tokenizer) -> None:
    words = [f" {word[1:]}" for word in tokenizer.get_vocab() if word.startswith("Ġ") and word[1:].isalpha()]
    options = (*sorted(words), *string.ascii_letters, *string.digits)
    request = ChoiceRequest(prompt="The nurse said:", options=options, outcomes=options)
    n_context = len(tokenizer.encode(request.prompt).ids)
    assert len({tokenizer.encode(request.prompt + option).ids[n_context] for option in options}) > 128
    with FakeEndpoint(tokenizer) as endpoint:
        found, _ = ask(opened(endpoint, folder), [request])
    assert found[0].option_logprobs == pytest.approx(expected(tokenizer, request))


def test_chat_gives_the_first_token_and_bounds_what_is_not_returned(tokenizer: Tokenizer) -> None:
    words = ChoiceRequest(prompt="Who?", options=(" The engineer", " nurse", " physician"), outcomes=("a", "b", "c"))
    alike = ChoiceRequest(prompt="Who?", options=(" The engineer", " The nurse"), outcomes=("a", "b"))
    with FakeEndpoint(tokenizer, serves=CHAT) as endpoint:
        backend = opened(endpoint)
        assert backend.runtime.settings["option_scoring"] == "first_token"
        found, n_attempts = ask(backend, [LETTERS, words, alike])
        assert n_attempts == endpoint.n_received
    rest = math.log(1 - sum(math.exp(value) for value in CHAT_TOP.values()))
    bound = min(rest, min(CHAT_TOP.values()))
    assert found[0].option_logprobs == pytest.approx((CHAT_TOP["A"], CHAT_TOP["B"], bound), abs=1e-4)
    assert found[0].option_is_bound == (False, False, True)
    # Never below the true bound, or it would be none.
    assert found[0].option_logprobs[2] is not None
    assert found[0].option_logprobs[2] >= bound
    assert found[0].option_token_counts == (1, 1, None)
    # "The engineer" is at most as probable as "The"; "nurse" came with its space.
    assert found[1].option_logprobs == pytest.approx((CHAT_TOP["The"], CHAT_TOP[" nurse"], bound), abs=1e-4)
    assert found[1].option_is_bound == (True, False, True)
    assert found[2].status == "failed"
    assert "letters" in str(found[2].error)


def test_what_is_sampled_with_is_sent_and_the_way_of_asking_is_part_of_the_identity(
    folder: Path, tokenizer: Tokenizer
) -> None:
    request = GenerateRequest(prompt="Go on", max_tokens=7, temperature=0.5, top_p=0.9, stop=("\n",), sample=1, seed=3)
    wanted = {"max_tokens": 7, "temperature": 0.5, "top_p": 0.9, "stop": ["\n"], "seed": request.sampling_seed}
    identities = set()
    with FakeEndpoint(tokenizer) as endpoint:
        for api in (None, "chat"):
            identities.add(opened(endpoint, folder, api=api).model.identity_sha256)
        ask(opened(endpoint, api="chat"), [request])
        sent = endpoint.received[-1].body
        assert {name: sent[name] for name in wanted} == wanted
        endpoint.serves = ECHO
        identities.add(opened(endpoint, folder).model.identity_sha256)
        identities.add(opened(endpoint).model.identity_sha256)
        identities.add(opened(endpoint, revision="2026-11").model.identity_sha256)
        assert len(identities) == 5
        assert opened(endpoint).model == opened(endpoint, concurrency=3, timeout=9.0).model


def test_a_bos_added_silently_and_a_tokenizer_of_another_model_are_refused(folder: Path, tokenizer: Tokenizer) -> None:
    def shifted(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            if choice.get("logprobs"):
                choice["logprobs"]["tokens"] = [f"{token}x" for token in choice["logprobs"]["tokens"]]
        return answer

    silent: list[tuple[dict[str, Any], str]] = [
        ({"serves": serves, "adds_bos": True}, r"silently .*BOS") for serves in (TRIE, ECHO)
    ]
    for fields, said in [*silent, ({"serves": ECHO, "alter": shifted}, "name the tokenizer")]:
        with FakeEndpoint(tokenizer, **fields) as endpoint, pytest.raises(ConfigError, match=said):
            _ = opened(endpoint, folder).model


def _nulls(answer: dict[str, Any]) -> Any:
    for choice in answer["choices"]:
        held = choice["logprobs"]
        held["token_logprobs"][-3:] = [None] * 3
        held["top_logprobs"][0] = dict.fromkeys(held["top_logprobs"][0])
    return answer


def _other_tokens(answer: dict[str, Any]) -> Any:
    for choice in answer["choices"]:
        choice["logprobs"]["tokens"] = ["q" for _ in choice["logprobs"]["tokens"]]
        choice["logprobs"]["top_logprobs"] = [{"token_id:499": -1.0}]
    return answer


def _twice(answer: dict[str, Any]) -> Any:
    other = json.loads(json.dumps(answer["choices"][0]))
    other["text"] = "something else"
    return {**answer, "choices": [*answer["choices"], other]}


FAILURES: Mapping[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "nulls": (_nulls, "null"),
    "other tokens": (_other_tokens, "other tokens|lacks the log-probability"),
    "one choice missing": (lambda answer: {**answer, "choices": answer["choices"][:-1]}, "lacks"),
    "a choice twice and differently": (_twice, "twice"),
    "a choice too many": (lambda answer: {**answer, "choices": [*answer["choices"], {"index": 99}]}, "index 99"),
}  # fmt: skip


@pytest.mark.parametrize("serves", [TRIE, ECHO])
@pytest.mark.parametrize("name", FAILURES)
def test_a_wrong_answer_fails_its_request_and_no_other(
    name: str, serves: Serves, folder: Path, tokenizer: Tokenizer
) -> None:
    alter, message = FAILURES[name]

    def third(received: Received, answer: dict[str, Any]) -> Any:
        ids = received.body.get("prompt")
        text = tokenizer.decode(ids[0]) if isinstance(ids, list) and isinstance(ids[0], list) else ""
        return alter(answer) if "room 2 " in text else answer

    with FakeEndpoint(tokenizer, serves=serves, alter=third) as endpoint:
        backend = opened(endpoint, folder)
        assert backend.model.endpoint == "api"
        endpoint.answered.clear()  # What was asked to find out what it can do.
        found, n_attempts = ask(backend, REQUESTS)
        assert n_attempts == endpoint.n_received
        # It would be as wrong the second time.
        assert list(endpoint.answered.values()) == [1] * 5
    assert [found[place].status for place in range(5)] == ["answered", "answered", "failed", "answered", "answered"]
    error = str(found[2].error)
    assert any(part in error for part in message.split("|")), error
