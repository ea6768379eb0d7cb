"""How fast the openai backend asks: limits, outages, memory."""

from __future__ import annotations

import asyncio
import email.utils
import re
import threading
import time
import tracemalloc

import numpy as np
import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import RunError
from evaluators.backend import Answers, GenerateRequest
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.pacing import Pacer, Patience
from tests.evaluators.fake_endpoint import FakeEndpoint, Fault, Received
from tests.evaluators.openai_runs import SERVES, Asked, error, made, number_in, opened


@pytest.mark.slow
@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_waited_for_by_everybody(as_date: bool, tokenizer: Tokenizer) -> None:
    limited: list[float] = []

    def before(received: Received) -> Fault | None:
        if number_in(received) < 0 or limited:
            return None
        limited.append(received.seconds)
        after = email.utils.formatdate(time.time() + 3, usegmt=True) if as_date else "2"
        return Fault(429, {"retry-after": after})

    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, concurrency=4)
        endpoint.before = before
        assert Asked().of(backend, made(60)).statuses() == {"answered": 60}
        # A date has whole seconds: of three, two are sure. What was under way may still come in.
        too_early = [one for one in endpoint.received if 0 < one.seconds - limited[0] < 1.9]
        assert len(too_early) <= 3


@pytest.mark.slow
def test_a_limit_that_is_used_up_is_waited_for(tokenizer: Tokenizer) -> None:
    spent = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1s20ms"}
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, concurrency=1)
        endpoint.headers = lambda received: spent if number_in(received) == 2 else {}
        assert Asked().of(backend, made(5)).statuses() == {"answered": 5}
        times = [received.seconds for received in endpoint.received]
        assert times[3] - times[2] >= 1.0


def test_a_wait_that_is_too_long_ends_the_run(tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint)
        endpoint.before = lambda received: Fault(429, {"retry-after": "86400"})
        with pytest.raises(RunError, match="86400 s"):
            Asked().of(backend, made(5))


def test_a_limit_that_one_request_alone_meets_is_given_up(tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, Patience(n_limited=4, call_seconds=0.2, longest_pause=0.02), concurrency=4)
        endpoint.before = lambda received: Fault(429, {}, error("slow down")) if number_in(received) == 3 else None
        asked = Asked().of(backend, made(20))
        assert asked.n_attempts == endpoint.n_received
    assert asked.statuses() == {"answered": 19, "failed": 1}
    assert "slow down" in str(asked.responses[3].error)


@pytest.mark.slow
def test_an_endpoint_that_stays_silent_ends_the_run(tokenizer: Tokenizer) -> None:
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, Patience(n_tries=1000, outage_seconds=1.0, longest_pause=0.05))
        endpoint.before = lambda received: Fault(503, {}, error("down"))
        asked = Asked()
        with pytest.raises(RunError, match="answered nothing for 1 s"):
            asked.of(backend, made(50))
        # Those in flight when the run ended may not have reached the endpoint.
        assert 0 <= asked.n_attempts - endpoint.n_received <= endpoint.most_at_a_time


@pytest.mark.slow
def test_a_server_that_dies_is_told_of_with_its_first_words(
    tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    said = threading.Event()

    def before(received: Received) -> Fault | None:
        if number_in(received) < 20:
            return None
        said.set()
        return Fault(500, {}, error("EngineDeadError: see the stack trace above"))

    raised: list[RunError] = []

    def ask() -> None:
        with pytest.raises(RunError) as caught:
            asked.of(backend, made(50))
        raised.append(caught.value)

    asked, patience = Asked(), Patience(n_tries=1000, outage_seconds=1.5, longest_pause=0.05, fault_seconds=0.5)
    with FakeEndpoint(tokenizer, serves=SERVES) as endpoint:
        backend = opened(endpoint, patience, concurrency=4)
        endpoint.before = before
        thread = threading.Thread(target=ask)
        thread.start()
        assert said.wait(30)
    thread.join()
    assert asked.statuses() == {"answered": 20}
    both = r"connection re\w+; the first was HTTP 500: EngineDeadError: see the stack trace above"
    assert re.search(f"last fault: {both}. Answers are kept", str(raised[0]))
    assert re.search(f"no answer from .*: {both}; 30 requests wait", capsys.readouterr().err)


@pytest.mark.slow
def test_throughput_recovers_within_ten_seconds_after_an_outage(tokenizer: Tokenizer) -> None:
    down = (150, 170)

    def before(received: Received) -> Fault | None:
        # Down for twenty requests, however long they take.
        return Fault(500) if down[0] <= received.number < down[1] else None

    # Slow enough that the endpoint, and not the client, is what limits the rate.
    with FakeEndpoint(tokenizer, serves=SERVES, delay=0.25) as endpoint:
        backend = opened(endpoint, Patience(), concurrency=16)
        endpoint.before = before
        asked = Asked().of(backend, made(400))
        assert asked.statuses() == {"answered": 400}
        assert asked.n_attempts == endpoint.n_received
        last_fault = max(received.seconds for received in endpoint.received if received.number < down[1])
        before_it = sorted(received.seconds for received in endpoint.received if received.number < down[0])
        after = sorted(received.seconds - last_fault for received in endpoint.received if received.number >= down[1])
        per_second = 100 / (before_it[-1] - before_it[-101])
        # At the latest after ten seconds, at least half as much is done in one second as before.
        recovered = [start for start in range(10) if sum(start <= one < start + 1 for one in after) > per_second * 0.5]
        assert recovered


@pytest.mark.slow
def test_as_many_calls_as_asked_for_and_fewer_when_it_is_too_much(tokenizer: Tokenizer) -> None:
    under_way: list[int] = []

    # Slow enough that the client, however slow itself, has sent all that it may before the first answer comes.
    with FakeEndpoint(tokenizer, serves=SERVES, delay=0.4) as endpoint:
        backend = opened(endpoint, concurrency=24)
        Asked().of(backend, made(150))
        assert endpoint.most_at_a_time == 24
        endpoint.delay = 0.02

        def before(received: Received) -> Fault | None:
            under_way.append(endpoint._under_way)
            return Fault(429) if endpoint._under_way > 6 else None

        endpoint.before = before
        asked = Asked().of(backend, made(600))
        assert asked.statuses() == {"answered": 600}
    # It settles around what the endpoint bears instead of trying 24 every time.
    assert np.mean(under_way[300:]) < 9


def test_a_pause_in_which_the_limit_falls_ends_with_one_call_at_a_time() -> None:
    down, most = NoAnswerError("down", "passing", status=503, overload=True), 64
    under_way: list[int] = []

    async def call(pacer: Pacer) -> None:
        await pacer.start()
        under_way.append(pacer.n_under_way)
        await asyncio.sleep(0.01)
        pacer.end()

    async def simulated() -> None:
        pacer = Pacer(most, Patience(longest_pause=0.05))
        for _ in range(most):
            pacer.answered()
        # All calls wait for a limit that is used up, and meanwhile the endpoint goes down.
        pacer.answered(0.3)
        waiting = [asyncio.create_task(call(pacer)) for _ in range(most)]
        for _ in range(8):
            await asyncio.sleep(0.01)
            pacer.failed(down, time.monotonic())
        await asyncio.gather(*waiting)

    asyncio.run(simulated())
    assert len(under_way) == most
    assert max(under_way) == 1


@pytest.mark.slow
def test_memory_is_flat_however_much_is_queued(tokenizer: Tokenizer) -> None:
    n = 100_000
    requests = [GenerateRequest(prompt=f"Say {number}", max_tokens=3) for number in range(n)]
    with FakeEndpoint(tokenizer, serves=SERVES, keeps=0) as endpoint:
        backend = opened(endpoint)
        endpoint.n_received = 0
        steps = backend.ask(requests, frozenset(range(n)))
        n_answered = 0
        peaks = []
        for bound in (300, 800):
            for step in steps:
                n_answered += len(step.responses) if isinstance(step, Answers) else 0
                if n_answered >= bound:
                    break
            if not tracemalloc.is_tracing():
                tracemalloc.start()
            peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        steps.close()
        # Five hundred answers more, and not more than a few megabytes were ever held for them.
        assert peaks[-1] < 8_000_000
        # What was not handed over was under way: nothing ran ahead of what was taken.
        assert endpoint.n_received <= n_answered + 4096 + 2 * 64
