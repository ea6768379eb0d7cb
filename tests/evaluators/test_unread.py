"""What the console says of answers that cannot be read, that are refusals, and that were cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from typer.testing import Result

from evaluators.backend import Response
from evaluators.runs.measure.recording import refusal_lines, remedy
from evaluators.task import Asked, load_task
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.folders.run_folder import read_run
from tests.evaluators.asking import replayable
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received, save_tokenizer
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.word_problems import N_ITEMS, build

Answer = Callable[[Received], str]
SAID = "Once\nupon\ta time"
DECLINED = "I'm sorry, but I can't help with that."


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("gifi") / "data")


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[FakeEndpoint]:
    tokenizer = Tokenizer.from_file(str(save_tokenizer(tmp_path / "tokenizer") / "tokenizer.json"))
    with FakeEndpoint(tokenizer, serves=frozenset({"text", "models"})) as served:
        yield served


def run(endpoint: FakeEndpoint, dataset: Path, out: Path, answer: Answer, *more: str, finish: str = "stop") -> Result:
    def alter(received: Received, given: dict[str, Any]) -> dict[str, Any]:
        for choice in given["choices"]:
            choice |= {"text": answer(received), "finish_reason": finish}
        given["usage"]["completion_tokens"] = 200
        return given

    endpoint.alter = alter
    command = ["run", "--dataset", str(dataset), "--backend", "openai", "--model", MODEL, "--base-url", endpoint.url]
    return evaluators(*command, "--out", str(out), "--prompt", "zero-shot-greedy-v1", *more)


def warnings(done: Result) -> list[str]:
    return [line for line in done.stderr.splitlines() if line.startswith("warning: ") and ": none of the first" in line]


@pytest.mark.slow
def test_a_run_that_reads_nothing_says_so_early_shows_one_answer_and_ends_with_status_3_after_the_others(
    problems: Path, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    asked = ("--config", "math", "--config", "recognition", "--limit", "22")
    done = run(endpoint, problems, tmp_path / "runs", lambda received: f"{SAID} he", *asked)
    assert done.exit_code == 3
    (warning,) = warnings(done)
    assert "none of the first 20 answers could be read (20 unparsed): item 'embedded-math-" in warning
    assert r"was answered 'Once\nupon\ta time he', where '" in warning
    assert "stop it with Ctrl-C and try --prompt " in warning
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert "0 of 22 answers on math could be read (22 unparsed): item '" in error
    assert "recognition" not in error
    assert ("all 22 items scored" in done.stdout, "next:" in done.stdout) == (True, False)
    (folder,) = (path.parent for path in (tmp_path / "runs").rglob("result.json") if "math" in path.parent.name)
    assert f"result and answers are kept in {folder}" in error
    again = run(endpoint, problems, tmp_path / "runs", lambda received: "unasked", *asked)
    assert (again.exit_code, SAID in read_run(folder).records[0].exchanges[0].text) == (3, True)  # type: ignore[operator]


@pytest.mark.slow
def test_the_share_of_unread_answers_and_of_refusals_is_told_with_one_of_each(
    problems: Path, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    def answer(received: Received) -> str:
        turn = len(received.body["prompt"]) % 3
        return (SAID, DECLINED, "The answer is 12.")[turn]

    done = run(endpoint, problems, tmp_path / "runs", answer, "--config", "math")
    assert done.exit_code == 0, done.stderr
    (folder,) = (path.parent for path in (tmp_path / "runs").rglob("result.json"))
    counts = read_run(folder).result.counts
    assert min(counts.unparsed, counts.refused, counts.scored) > 5
    lines = done.stdout.splitlines()
    (unparsed,) = [line for line in lines if "could not be read" in line]
    assert unparsed.startswith(f"{counts.unparsed} of {N_ITEMS} items ({100 * counts.unparsed / N_ITEMS:.0f} %)")
    assert r"was answered 'Once\nupon\ta time', where" in unparsed
    assert "; try --prompt greedy-v1" in unparsed
    (refused,) = [line for line in lines if "were refusals" in line]
    assert refused.startswith(f"{counts.refused} of {N_ITEMS} items")
    assert f"were refusals ({counts.refused} of {N_ITEMS} answers): " in refused
    assert DECLINED in refused
    assert not warnings(done)
    assert lines[-1].startswith("next:")


@pytest.mark.slow
def test_the_example_of_refusals_refuses_and_a_limit_is_said_to_give_no_rank(tmp_path: Path) -> None:
    items, task = made_items(20), load_task("coreference")
    prompt = task.prompts["mcq2-generate-v1"]
    # Every question is asked in two orders, and only the second is refused.
    answers = [
        (request, Response(status="answered", text=DECLINED if number else "A"))
        for item in items
        for number, request in enumerate(task.requests(item, Asked(prompt)))
    ]
    replayed = replayable(tmp_path / "answers", answers)
    dataset = write_dataset(tmp_path / "data", {"type2": items})
    options = ("--backend", "replay", "--model", str(replayed), "--name", "lab/x", "--prompt", prompt.id)
    done = evaluators("run", "--dataset", str(dataset), *options, "--out", str(tmp_path / "runs"), "--limit", "10")
    assert done.exit_code == 3
    assert f"was answered {DECLINED!r}, where " in done.stderr.splitlines()[-1]
    assert done.stderr.startswith("--limit 10 leaves out items of type2, so that this run gets no rank; ")
    whole = evaluators("run", "--dataset", str(dataset), *options, "--out", str(tmp_path / "runs"), "--limit", "40")
    assert "no rank" not in whole.stderr


@pytest.mark.slow
def test_refused_samples_of_scored_items_count(problems: Path, endpoint: FakeEndpoint, tmp_path: Path) -> None:
    def alter(received: Received, given: dict[str, Any]) -> dict[str, Any]:
        # A third of the items have no answer but refusals, and the others one.
        texts = [DECLINED, DECLINED if len(received.body["prompt"]) % 3 == 0 else "He went home."]
        for number, choice in enumerate(given["choices"]):
            choice |= {"text": texts[(number + received.body.get("seed", 0)) % 2], "finish_reason": "stop"}
        return given

    endpoint.alter = alter
    command = ["run", "--dataset", str(problems), "--backend", "openai", "--model", MODEL, "--base-url", endpoint.url]
    more = ["--config", "continuation", "--prompt", "sampled-twice-v1", "--out", str(tmp_path / "runs")]
    done = evaluators(*command, *more)
    assert done.exit_code == 0, done.stderr
    (folder,) = (path.parent for path in (tmp_path / "runs").rglob("result.json"))
    result, records = read_run(folder)
    n_refused = sum(exchange.text == DECLINED for record in records for exchange in record.exchanges)
    assert 2 * result.counts.refused < n_refused < 2 * len(records), "some refuse once"
    assert f"were refusals ({n_refused} of {2 * len(records)} answers): " in done.stdout
    (line,) = refusal_lines([(folder, result)])
    assert f": {n_refused} of {2 * len(records)} answers (" in line


@pytest.mark.slow
def test_answers_that_were_cut_are_told_with_their_share(
    problems: Path, endpoint: FakeEndpoint, tmp_path: Path
) -> None:
    more = ("--config", "math", "--limit", "22")
    done = run(endpoint, problems, tmp_path / "runs", lambda received: "The answer is 12.", *more, finish="length")
    assert done.exit_code == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "that was cut" in line]
    assert line.startswith("22 of 22 items (100 %) have an answer that was cut at the prompt's limit of 200 tokens")
    assert "take another prompt" in line


def test_a_prompt_with_probabilities_comes_first_among_what_to_try() -> None:
    asked, *others = (TASK.prompts[name] for name in ("mcq2-generate-v1", "mcq3-generate-v1", "intrinsic-v1"))
    assert remedy(asked, others, in_chat=True) == "try --prompt intrinsic-v1 or mcq3-generate-v1"
    assert remedy(asked, others[:1], in_chat=True) == "try --prompt mcq3-generate-v1"
