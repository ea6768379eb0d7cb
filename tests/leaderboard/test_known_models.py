"""Models of which it is known what they know: a board ranks these in the right order, and refusing costs no rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.memory import Memory
from builders.dataset.output import write_dataset
from builders.synthbias import winobias
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.runs.ask.pipeline import RunOptions, run
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from leaderboard.ranking.boards import Board, assemble
from leaderboard.verify.entries import Root
from leaderboard.verify.keys import open_book
from leaderboard.verify.verdicts import judge, load
from schemas.documents.record import choice_sha256
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import find_runs
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.made_data import made_items
from tests.evaluators.made_data import write_dataset as write_made
from tests.leaderboard.gifi_results import answers, chance, write_gifi_model
from tests.leaderboard.synthetic import present
from tests.worlds import MadeBoard

Knowledge = Callable[[Mapping[str, str], float], bool]
"""From the facts of an item and a number in [0, 1) that is the item's own: whether the answer is right."""


pytestmark = pytest.mark.slow


def is_pro(facts: Mapping[str, str]) -> bool:
    return facts["referent"] == facts["stereotyped"]


MODELS: Mapping[str, Knowledge] = {
    "acme/perfect": lambda facts, own: True,
    # Both are right wherever the stereotype is. What they get wrong elsewhere decides, and not a coin's .5.
    "acme/biased": lambda facts, own: is_pro(facts) or own < 0.7,
    "acme/very-biased": lambda facts, own: is_pro(facts) or own < 0.35,
    "acme/coin": lambda facts, own: own < 0.5,
    "acme/stereotype": lambda facts, own: is_pro(facts),
}


@dataclass
class KnowingBackend(LoggingBackend):
    """A model that is right as often as its knowledge says; tests may read the facts, models are never told."""

    knows: Knowledge = MODELS["acme/perfect"]

    def _answer(self, request: Request) -> Response:
        assert isinstance(request, ChoiceRequest)
        own = int(choice_sha256(self.name + request.prompt, request.options)[:8], 16) / 2**32
        is_right = self.knows(request.facts, own)
        chances = [0.9 if (outcome == request.facts["referent"]) == is_right else 0.1 for outcome in request.outcomes]
        return replace(super()._answer(request), option_logprobs=tuple(map(math.log, chances)))


@pytest.fixture(scope="module")
def dataset(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "datasets" / "winobias"
    write_dataset(winobias.draft(shared_data / "winobias", limit=None), folder)
    return folder


def board_of(dataset: Path, config: str, root: Path, models: Mapping[str, Knowledge]) -> Board:
    """The board of some models, after each was asked and its result was found in order."""
    plan = Plan(select(dataset, read_manifest(dataset), config), TASK, prompt_of(TASK, "intrinsic-v1"))
    for name, knows in models.items():
        backend = KnowingBackend(root / "log", name=name, knows=knows)
        run(plan, backend, RunOptions(root=root / "runs", command="tests"))
    book, memory = open_book(root / "no-keys", dataset.parent), Memory(root / "memory")
    verdicts = list(judge(find_runs(root / "runs"), book, memory))
    assert [verdict.reason for verdict in verdicts] == [None] * len(models)
    return assemble(load([Root(root / "runs", "local")], book, memory).entries)


@pytest.mark.parametrize("source", ["made", "type1", "type2"])
def test_models_rank_by_knowledge_despite_solvers(source: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if source == "made":
        made = write_made(tmp_path / "datasets" / "synthbias", {"type2": made_items(400)})
        board = board_of(made, "type2", tmp_path, MODELS)
    else:
        board = board_of(request.getfixturevalue("dataset"), source, tmp_path, MODELS)
    (table,) = board.tables
    rows = table.rows
    names = [row.entry.result.model.id.removeprefix("acme/") for row in rows]
    # A biased model that knows something is above a coin, even if it is right in less than half of its worse group.
    assert names == ["perfect", "biased", "very-biased", "coin", "stereotype"]
    assert [str(row.rank) for row in rows[:3]] == ["1", "2", "3"]
    values = {name: row.entry.primary.value for name, row in zip(names, rows, strict=True) if row.entry.primary}
    assert (values["perfect"], values["stereotype"]) == (1.0, 0.0)
    assert (values["very-biased"] or 0) < (values["coin"] or 0) < (values["biased"] or 0)
    # A stereotype alone knows no more than a coin, and is the least even of all: by the ranking metric it is last.
    for row in rows[3:]:
        assert row.rank is None
        assert row.is_below
        assert "than the baseline" in (row.shut or "")
    standing = present(table.rows[0].entry.standing)
    solvers = {lead.baseline for lead in standing.leads if lead.solves}
    is_solved = (table.signature.dataset, table.signature.config) == ("winobias", "type2")
    assert solvers == ({"last-mentioned", "best-cue"} if is_solved else set())
    assert "uniform" in {lead.baseline for lead in standing.judged}


def test_a_model_that_refuses_at_random_to_recognise_keeps_a_rank(tmp_path: Path) -> None:
    def recognises(item: Any) -> Sequence[str]:
        is_refused = chance("refuses", item.item_id) < 0.1
        refusal = ["I'm sorry, but I cannot assist with that."]
        return refusal if is_refused else answers(0.99, "lab/shy")["recognition"](item)

    write_gifi_model(tmp_path, "lab/shy", 0.99, instead={"recognition": recognises})
    write_gifi_model(tmp_path, "lab/steady", 0.965)
    write_gifi_model(tmp_path, "lab/weak", 0.2)
    (table,) = MadeBoard(tmp_path).board.indices.tables
    # What the shy model refuses could have been wrong, so that the steady one may be before it.
    ranks = {row.model.id: (row.rank, row.rank_of_answers) for row in table.ranked}
    assert {name.partition("/")[2]: tuple(map(str, of)) for name, of in ranks.items()} == {
        "shy": ("1\N{EN DASH}2", "1"),
        "steady": ("1\N{EN DASH}2", "2"),
        "weak": ("3", "3"),
    }
