"""Numbers of examples that a model's context does not hold: left out before anything is asked, and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import OF_LANGUAGE_MODELS, Request
from evaluators.runs.ask.context_limit import check_context, longest_bytes
from evaluators.runs.ask.study import Study
from evaluators.runs.plan.earlier_answers import AnswerStores
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.folders.dataset_folder import read_manifest
from tests.evaluators.label_data import made_dataset
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset


@dataclass
class Narrow(LoggingBackend):
    """A model with a token for each byte, and room for so many."""

    context_tokens: int | None = None

    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        return [longest_bytes(request) for request in requests]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("narrow") / "tasks", ("two",))


def plans(dataset: Path, contexts: str) -> Sequence[Plan]:
    named = tuple(contexts.split(","))
    return Study(datasets=(dataset,), contexts=named, prompts=("release-4096b",), splits=("test",), limit=3).usual_plans


def longest(plan: Plan) -> int:
    """The largest number of tokens that a request of a plan needs, by plain loops."""
    most = 0
    for part in plan.parts:
        for of_item in part.requests:
            for request in of_item:
                most = max(most, longest_bytes(request))
    return most


def fitting(
    asked: Sequence[Plan], room: int | None, tmp_path: Path, max_failure_rate: float = 0.0, **fields: Any
) -> list[Plan]:
    backend = Narrow(log=tmp_path / "log", context_tokens=room, **fields)
    return check_context(asked, backend, AnswerStores(tmp_path / "runs", None), max_failure_rate)


def test_only_the_numbers_that_do_not_fit_are_left_out(
    dataset: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = plans(dataset, "0,2,8")
    by_number: dict[int | None, list[int]] = {}
    for plan in asked:
        by_number.setdefault(plan.prompt.n_examples, []).append(longest(plan))
    assert max(by_number[0]) < max(by_number[2]) < min(by_number[8])
    # A room that holds two of the three sets of eight: all three are left out.
    room = sorted(by_number[8])[1] if len({*by_number[8]}) > 1 else min(by_number[8]) - 1
    kept = fitting(asked, room, tmp_path)
    assert [plan.prompt.n_examples for plan in kept] == [0, 2, 2, 2]
    (line,) = [one for one in capfd.readouterr().err.splitlines() if "is not asked" in one]
    assert line == (
        f"config 'tasks' is not asked with 8 examples (release-4096b): they need up to {max(by_number[8]):,} tokens, "
        f"and the model's context has {room:,}"
    )
    assert fitting(asked, max(by_number[8]), tmp_path) == fitting(asked, None, tmp_path) == asked


def test_nothing_is_asked_if_no_number_fits(dataset: Path, tmp_path: Path) -> None:
    asked = plans(dataset, "2,8")
    with pytest.raises(ConfigError, match=r"prompt 'release-4096b-k2-set0-v1': .* its context has 90; .*nothing was"):
        fitting(asked, 90, tmp_path)


def test_what_is_answered_already_need_not_fit(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data", {"type2": made_items(3)})
    plan = Plan(select(data, read_manifest(data), "type2"), TASK, prompt_of(TASK, "mcq2-v1"))
    with pytest.raises(ConfigError, match="its context has 9"):
        fitting([plan], 9, tmp_path)
    ask(data, tmp_path / "runs", LoggingBackend(tmp_path / "log"))
    assert fitting([plan], 9, tmp_path) == [plan]


def test_the_longest_answer_and_the_options_after_it_must_fit(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data", {"type2": made_items(3)})
    plan = Plan(select(data, read_manifest(data), "type2"), TASK, prompt_of(TASK, "cot-logprob-v1"))
    # The question and its first token are 1, then the rest of the answer, and the line with an option.
    room = longest(plan) + (plan.prompt.max_tokens or 0) - 1 + len("\nAnswer: A")
    assert fitting([plan], room, tmp_path, capabilities=OF_LANGUAGE_MODELS) == [plan]
    with pytest.raises(ConfigError, match=rf"need up to {room:,} tokens with the longest answer, its context has"):
        fitting([plan], room - 1, tmp_path, capabilities=OF_LANGUAGE_MODELS)
    # Votes may be cut.
    votes = replace(plan, prompt=prompt_of(TASK, "cot-v1"))
    assert fitting([votes], room - 1, tmp_path, capabilities=OF_LANGUAGE_MODELS) == [votes]
