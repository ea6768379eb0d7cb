"""A run of two benchmarks over a chat server that refuses, limits and fails, is killed, and goes on."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from schemas.folders.run_folder import read_result
from tests.commands import run, started
from tests.evaluators import word_problems
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Fault, Received
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.openai_runs import SERVES, error
from tests.evaluators.test_pipeline import wait_for_answers

CONCURRENCY = 4
PROBE = "The clock on the wall showed"


def whole(received: Received) -> str:
    """The whole question: samples of one prompt differ in their seeds."""
    return json.dumps(received.body, sort_keys=True)


def draw(received: Received, what: str) -> float:
    """A number in [0, 1) that depends on the question; 1 where the endpoint is only probed."""
    asked = whole(received)
    return 1.0 if PROBE in asked else zlib.crc32(f"{what} {asked}".encode()) / 2**32


@pytest.mark.slow
def test_killed_and_resumed_nothing_that_was_answered_is_asked_again(tokenizer: Tokenizer, tmp_path: Path) -> None:
    datasets = (write_dataset(tmp_path / "pairs", {"type2": made_items(30)}), word_problems.build(tmp_path / "texts"))
    tries: Counter[str] = Counter()
    answered: Counter[str] = Counter()

    def failing(received: Received) -> Fault | None:
        """Fail the first try of 8 % of the questions: 5 % as too many, 3 % as an error."""
        tries[whole(received)] += 1
        number = draw(received, "fault")
        if tries[whole(received)] > 1 or number >= 0.08:
            return None
        return Fault(429, {"retry-after": "0"}) if number < 0.05 else Fault(500, {}, error("failed"))

    def refusing(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        """Decline 15 % of the questions, and answer the others so that each task can read it."""
        answered[whole(received)] += PROBE not in whole(received)
        text = "A" if "letter of one option" in whole(received) else "She said: they are 12."
        refusal = "I will not say that." if draw(received, "refusal") < 0.15 else None
        answer["choices"][0]["message"] = {"role": "assistant", "content": text, "refusal": refusal}
        return answer

    out = tmp_path / "runs"
    with FakeEndpoint(tokenizer, serves=SERVES, before=failing, alter=refusing, delay=0.002) as endpoint:
        named = [word for dataset in datasets for word in ("--dataset", dataset)]
        model = ("--backend", "openai", "--model", MODEL, "--base-url", endpoint.url, "--concurrency", CONCURRENCY)
        rest = ("--prompt", "mcq2-generate-v1", "--limit", 20, "--scorer", "none", "--out", out)
        command = ("-m", "biasboard", "run", *named, *model, *rest)
        with started(*command) as first:
            wait_for_answers(out, first, at_least=12)
            first.kill()
        n_answered, n_stored = answered.total(), 0
        for path in out.rglob("responses.sqlite"):
            with closing(sqlite3.connect(path)) as connection:
                n_stored += connection.execute("SELECT COUNT(*) FROM responses").fetchone()[0]
        assert not list(out.rglob("result.json")), "it was over before it could be killed"
        run(*command, status=0)
    # Only what was on its way when the process was killed is asked again.
    assert answered.total() - len(+answered) == n_answered - n_stored <= CONCURRENCY
    results = [read_result(path.parent) for path in out.rglob("result.json")]
    counts = {result.signature.config: result.counts for result in results}
    assert {*counts} == {"type2", "recognition", "continuation", "assignment", "math"}
    assert counts["type2"].refused > 0
    assert sum(of_config.failed for of_config in counts.values()) == 0
    assert max(tries.values()) > 1
