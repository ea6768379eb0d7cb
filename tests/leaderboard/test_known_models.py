"""Models of which it is known what they know: WinoBias ranks these in the right order, and refusing costs no rank."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from biasboard.ground.memory import Memory
from builders.dataset.output import write_dataset
from builders.synthbias import winobias
from evaluators.backend import ChoiceRequest, Request, Response
from evaluators.runs.ask.pipeline import run
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.task import prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from leaderboard.pages.rendering import generate, make_view
from leaderboard.ranking.boards import Board, assemble
from leaderboard.verify.entries import Root
from leaderboard.verify.keys import open_book
from leaderboard.verify.loading import load
from leaderboard.verify.verdicts import judge
from schemas.documents.record import choice_sha256
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import find_runs
from tests.evaluators.logging_backend import LoggingBackend
from tests.evaluators.made_data import PRONOUNS, made_items, pairs_of_occupations
from tests.evaluators.made_data import write_dataset as write_made
from tests.leaderboard.gifi_results import answers, chance, write_gifi_model
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


def drawn(salt: str, request: ChoiceRequest) -> float:
    """A number in [0, 1) that depends on the item and the salt alone."""
    return int(choice_sha256(salt + request.prompt, request.options)[:8], 16) / 2**32


@dataclass
class KnowingBackend(LoggingBackend):
    """A model that is right as often as its knowledge says; tests may read the facts, models are never told."""

    knows: Knowledge = MODELS["acme/perfect"]
    refuses: float = 0.0
    """Share of the items, drawn at random, that it declines to answer."""

    def _answer(self, request: Request) -> Response:
        assert isinstance(request, ChoiceRequest)
        if drawn(f"refuses {self.name}", request) < self.refuses:
            return Response(status="refused", error="declined")
        is_right = self.knows(request.facts, drawn(self.name, request))
        chances = [0.9 if (outcome == request.facts["referent"]) == is_right else 0.1 for outcome in request.outcomes]
        return replace(super()._answer(request), option_logprobs=tuple(map(math.log, chances)))


def made_files(n_pairs: int) -> dict[str, bytes]:
    """The ten files of WinoBias with other sentences; in type 2 the referent comes last, as it does in all but four."""
    made = dict.fromkeys(winobias.SHA256, b"")
    for name in (name for name in made if "stereotyped" in name):
        lines = []
        for number, (male, female) in enumerate(pairs_of_occupations(n_pairs if name.endswith("test") else 2), 1):
            referent, other = (male, female) if number % 2 else (female, male)
            gender = "masculine" if (referent == male) == name.startswith("pro") else "feminine"
            if "type1" in name and number % 4 < 2:
                line = f"[The {referent}] led the {other} to door {number} before [{PRONOUNS[gender]}] rang."
            else:
                line = f"The {other} led [the {referent}] to door {number} before [{PRONOUNS[gender]}] rang."
            lines.append(f"{number} {line}\n")
        made[name] = "".join(lines).encode()
    return made


@pytest.fixture(scope="module", params=["made", "published"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp(request.param)
    folder = root / "datasets" / "winobias"
    if request.param == "published":
        write_dataset(winobias.draft(request.getfixturevalue("shared_data") / "winobias", limit=None), folder)
        return folder
    (root / "input").mkdir()
    for name, content in made_files(360).items():
        (root / "input" / name).write_bytes(content)
    with mock.patch.object(winobias, "check_hashes"):
        write_dataset(winobias.draft(root / "input", limit=None), folder)
    return folder


def board_of(dataset: Path, config: str, root: Path, models: Mapping[str, Knowledge], shy: str = "") -> Board:
    """The board of some models, after each was asked and its result was found in order."""
    plan = Plan(select(dataset, read_manifest(dataset), config), TASK, prompt_of(TASK, "intrinsic-v1"))
    for name, knows in models.items():
        backend = KnowingBackend(root / "log", name=name, knows=knows, refuses=0.1 if name == shy else 0.0)
        run(plan, backend, RunOptions(root=root / "runs", command="tests"))
    book, memory = open_book(root / "no-keys", dataset.parent), Memory(root / "memory")
    verdicts = list(judge(find_runs(root / "runs"), book, memory))
    assert [verdict.reason for verdict in verdicts] == [None] * len(models)
    return assemble(load([Root(root / "runs", "local")], book, memory).entries)


@pytest.fixture(scope="module", params=["type1", "type2"])
def board(request: pytest.FixtureRequest, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Board:
    return board_of(dataset, request.param, tmp_path_factory.mktemp("runs"), MODELS)


def test_a_perfect_a_biased_and_a_coin_model_come_in_that_order(board: Board) -> None:
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


def test_a_position_that_solves_type_2_is_drawn_as_a_line_and_keeps_nobody_from_a_rank(board: Board) -> None:
    (table,) = board.tables
    standing = table.rows[0].entry.standing
    assert standing is not None
    solvers = {lead.baseline for lead in standing.solvers}
    is_type_2 = table.signature.config == "type2"
    assert solvers == ({"last-mentioned", "best-cue"} if is_type_2 else set())
    assert "uniform" in {lead.baseline for lead in standing.judged}
    texts = generate(make_view(board, (), ()), {})
    page = texts["benchmarks/synthbias.md"]
    # Above the table, once for all choices of the ranking metric, and as a line where the useless predictors stand.
    note = "These items cannot show skill: best-cue alone is right in (0.99[0-9]|1.000), last-mentioned alone is right"
    assert len(re.findall(note, html.unescape(page))) == (2 if is_type_2 else 0)
    assert bool(re.search(f'<tbody class="bb-line">(?:(?!</tbody>).)*{note}', page)) == is_type_2
    assert ("A dotted line marks" in page) == is_type_2
    assert "A dashed line marks 0.5" in page


def check_that_refusals_widen(board: Board) -> None:
    """What the shy model refuses could have been wrong, so that the steady one may be before it."""
    page = generate(make_view(board, (), ()), {})[f"benchmarks/{board.benchmarks[0]}.md"]
    # A rank that missing answers could change has its bounds in a title.
    page = re.sub('<span title="The value that ranks is [^"]*">([^<]*)</span>', r"\1", page)
    page = re.sub('<span data-bb-by="[a-z_]+" hidden.*?</span>', "", page)
    found = re.findall(r'<td class="bb-rank"[^>]*>((?:(?!</td>).)*)</td><th [^>]*data-sort="([^"]*)"', page)
    cells = {name: " ".join(re.sub("<[^>]*>", " ", cell).split()) for cell, name in found[::-1]}
    between = "1\N{EN DASH}2 first in [0-9]+ % of redraws"
    assert re.fullmatch(f"{between}, missing answers at worst 1 by given answers", cells["shy"])
    assert re.fullmatch(f"{between} 2 by given answers", cells["steady"])
    assert cells["weak"] == "3"


def test_a_model_that_refuses_at_random_keeps_a_rank_in_synthbias(tmp_path: Path) -> None:
    dataset = write_made(tmp_path / "datasets" / "synthbias", {"type2": made_items(400)})
    models: Mapping[str, Knowledge] = {
        "acme/shy": lambda facts, own: own < 0.96,
        "acme/steady": lambda facts, own: own < 0.86,
        "acme/weak": lambda facts, own: own < 0.6,
    }
    board = board_of(dataset, "type2", tmp_path, models, shy="acme/shy")
    n_refused = {row.model.id: row.entry.result.counts.refused for row in board.tables[0].rows}
    assert 60 <= n_refused.pop("acme/shy") <= 100
    assert n_refused == {"acme/steady": 0, "acme/weak": 0}
    check_that_refusals_widen(board)


def test_a_model_that_refuses_at_random_to_recognise_keeps_a_rank_in_gifi(tmp_path: Path) -> None:
    def recognises(item: Any) -> Sequence[str]:
        is_refused = chance("refuses", item.item_id) < 0.1
        refusal = ["I'm sorry, but I cannot assist with that."]
        return refusal if is_refused else answers(0.99, "lab/shy")["recognition"](item)

    write_gifi_model(tmp_path, "lab/shy", 0.99, instead={"recognition": recognises})
    write_gifi_model(tmp_path, "lab/steady", 0.965)
    write_gifi_model(tmp_path, "lab/weak", 0.2)
    check_that_refusals_widen(MadeBoard(tmp_path).board)
