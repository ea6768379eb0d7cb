"""Minimal pairs that a model wrote: cells, instructions, answers, rounds, and a process that is killed."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biasboard.ground.progress import silent
from builders.synthbias.checks.check import word_list
from builders.synthbias.generation import instructions
from builders.synthbias.generation.generate import design_cells
from builders.synthbias.generation.generated import check
from builders.synthbias.generation.written_sentences import WrittenSentence, candidate_of
from builders.synthbias.minimal_pairs import CheckedItems
from schemas.documents.dataset import Manifest, Reject
from schemas.files.row_files import read_rows
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.folders.run_folder import finished_runs, read_result, read_run
from schemas.items.coreference import CoreferenceItem
from schemas.validate import problems
from tests.commands import run, started
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received

N_PAIRS = 2
PER_CELL = 4
PER_REQUEST = 2
CONCURRENCY = 4
MAX_COST = 1.0
KILLED_AT = 18
"""Number of answers after which it is killed, in the first round."""
PRICE = (500 * 10 + 100 * 30) / 1e6
"""Price of an answer of the server, in US dollars."""


def test_the_design_has_every_order_and_referent_of_each_pair() -> None:
    cells = design_cells(None)
    assert len(cells) == len({cell.key for cell in cells}) == 395 * (4 + 2)
    assert all(instructions.cell_of(cell.key) == cell for cell in cells)
    assert Counter((cell.config, cell.referent) for cell in cells) == {
        ("type1", None): 790,
        ("type2", "first"): 790,
        ("type2", "second"): 790,
    }
    for key in ("", "type2-nurse-guard-open", "type1-nurse-guard-first", "type2-nurse-pilot-first", "a-b-c-d-e"):
        assert instructions.cell_of(key) is None


def checked(*endings: str, per_cell: int = 5) -> CheckedItems:
    """What becomes of sentences of a model about a cook and a nurse."""
    cell, before = next(instructions.cells_of([("cook", "nurse")])), "The cook met the nurse at the gate before"
    found = [candidate_of({"before": before, "case": "nominative", "after": after}, "row", cell) for after in endings]
    candidates = [candidate for candidate in found if isinstance(candidate, WrittenSentence)]
    assert len(candidates) == len(endings)
    return check(candidates, per_cell, report=silent, published=frozenset())


def test_a_word_for_nobody_in_particular_is_no_other_person() -> None:
    for word in ("nobody", "anybody", "everybody", "anyone", "everyone"):
        assert checked(f"saw that {word} had left, but came back.").rejects == ()
    assert [reject.rule for reject in checked("saw that a neighbor had left.").rejects] == ["listed_person"]
    # What repeats another sentence is told so, though the cell is full.
    rejects = checked("left.", "left.", "left late.", per_cell=1).rejects
    assert [reject.rule for reject in rejects] == ["repeated_text", "cell_full"]


def test_requests_ask_for_what_is_missing_and_never_for_a_number_again() -> None:
    cells = list(instructions.cells_of([("guard", "nurse")]))
    first = instructions.wanted(cells, {}, {}, per_cell=5, per_request=2)
    assert [samples for _, samples in first] == [range(3)] * 6
    have = {cells[0].key: 5, cells[1].key: 3}
    samples = dict.fromkeys((cell.key for cell in cells), 3)
    second = instructions.wanted(cells, have, samples, per_cell=5, per_request=2, share_kept=0.5)
    assert second == [(cells[1], range(3, 5)), *((cell, range(3, 8)) for cell in cells[2:])]
    splits = [split for one in (first, second) for split in instructions.requests_draft(one, per_request=2).splits]
    ids = [item.item_id for split in splits for item in split.items]
    assert len(ids) == len({*ids})
    assert json.loads(instructions.answer_schema(2))["properties"]["sentences"]["maxItems"] == 2


ASKED = re.compile(r"Write (\d+) different English sentences about the (.+?) and the (.+?), in each")
SETTINGS = sorted(word_list("cellar attic stable harbor orchard bakery corridor courtyard museum station theater lawn"))
STATES = sorted(word_list("cold tired hungry late early ready thirsty certain curious anxious calm famous busy angry"))
THINGS = sorted(word_list("basket bucket ladder lantern kettle pillow helmet compass blanket hammer shovel umbrella"))


def sentence(first: str, second: str, place: int) -> dict[str, str]:
    """A sentence in the form of an answer; other places give other sentences."""
    setting, state = SETTINGS[place % 12], STATES[place // 12 % 14]
    thing = THINGS[place // 168 % 12]
    if place % 2:
        return {
            "before": f"In the {setting} the {first} and the {second} put down a {thing} because",
            "case": "nominative",
            "after": f"was {state}.",
        }
    return {
        "before": f"Near the {setting} the {first} saw how the {second} lifted a {thing} with",
        "case": "possessive_dependent",
        "after": f"{state} hands.",
    }


def written(prompt: str, seed: int) -> tuple[str, str]:
    """The text of an answer, and why it ended."""
    asked = ASKED.search(prompt)
    if asked is None:
        return "Hello there.", "stop"
    n, first, second = int(asked[1]), asked[2], asked[3]
    drawn = hashlib.sha256(f"{prompt}{seed}".encode()).digest()
    sentences = [sentence(first, second, drawn[2 * number] * 256 + drawn[2 * number + 1]) for number in range(n)]
    kind = drawn[30] % 20
    if kind == 0:
        sentences[0]["after"] = "told the manager of the farmer."
    elif kind == 1:
        sentences[0]["case"] = "genitive"
    elif kind == 2:
        return "I'm sorry, but I cannot help with that.", "stop"
    text = json.dumps({"sentences": sentences})
    if kind == 3:
        return text[: len(text) // 2], "length"
    if kind == 4:
        return f"Here you are:\n```json\n{text}\n```\nAnything else?", "stop"
    return text, "stop"


@dataclass
class WritingEndpoint(FakeEndpoint):
    """Writes sentences on instruction; its answers follow from the request alone.

    Some are wrapped, cut off, wrong or refused, and some requests get 429 or 500 the first time.
    """

    tokenizer: Any = None
    delay: float = 0.03
    is_useful: bool = True
    """False for one that answers in prose alone."""
    sent: list[str] = field(default_factory=list)
    """Instructions in the wanted form that were answered."""
    refused: set[str] = field(default_factory=set)

    def answer(self, received: Received) -> tuple[int, dict[str, Any]]:
        body = received.body
        if received.route != "/chat/completions" or body.get("logprobs"):
            return 400, {"error": {"message": "logprobs are not served"}}
        prompt, seed = body["messages"][0]["content"], body["seed"]
        key = hashlib.sha256(f"{prompt}{seed}".encode()).hexdigest()
        number = int(key[:4], 16)
        is_instruction = ASKED.search(prompt) is not None
        if is_instruction and number % 10 < 2 and key not in self.refused:
            self.refused.add(key)
            return 429 if number % 2 else 500, {"error": {"message": "slow down"}}
        text, finish = written(prompt, seed) if self.is_useful else ("There once was a baker.", "stop")
        if is_instruction and body.get("response_format"):
            self.sent.append(key)
        choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 500, "completion_tokens": 100}
        return 200, {"model": body["model"], "choices": [choice], "usage": usage}


@pytest.fixture(scope="module")
def server() -> Iterator[WritingEndpoint]:
    with WritingEndpoint() as endpoint:
        yield endpoint


def arguments(folder: Path, server: WritingEndpoint, *more: str) -> list[str]:
    prices = folder / "prices.toml"
    prices.parent.mkdir(parents=True, exist_ok=True)
    prices.write_text(f'["{MODEL}"]\ninput = 10.0\noutput = 30.0\n', encoding="utf-8")
    return [
        *("-m", "builders.synthbias", "generate", "--backend", "openai", "--model", MODEL),
        *("--pairs", str(N_PAIRS), "--per-cell", str(PER_CELL), "--per-request", str(PER_REQUEST), "--pilot", "3"),
        *("--max-cost", str(MAX_COST), "--prices", str(prices), "--base-url", server.url, "--api", "chat"),
        *("--concurrency", str(CONCURRENCY), "--work", str(folder / "work"), "--out", str(folder / "dataset"), *more),
    ]


class Generated(NamedTuple):
    """What the generation left, and how it went."""

    folder: Path
    output: str
    n_sent_twice: int
    n_distinct: int

    @property
    def dataset(self) -> Path:
        return self.folder / "dataset"

    def manifest(self) -> Manifest:
        return read_manifest(self.dataset)

    def items(self) -> list[CoreferenceItem]:
        found = [item for entry in self.manifest().splits for item in read_split(self.dataset, entry)]
        assert all(isinstance(item, CoreferenceItem) for item in found)
        return found  # type: ignore[return-value]


@pytest.fixture(scope="module")
def generated(server: WritingEndpoint, tmp_path_factory: pytest.TempPathFactory) -> Generated:
    """The dataset after a kill when some answers have been sent."""
    folder = tmp_path_factory.mktemp("generated")
    with started(*arguments(folder, server)) as command:
        while len(server.sent) < KILLED_AT and command.poll() is None:
            time.sleep(0.005)
        assert command.poll() is None, f"it ended before answer {KILLED_AT}: {command.stdout}{command.stderr}"
        command.kill()
    done = run(*arguments(folder, server), status=0)
    times = Counter(server.sent)
    return Generated(folder, done.stdout, sum(n - 1 for n in times.values()), len(times))


@pytest.mark.slow
def test_after_a_kill_every_cell_is_full_and_every_sentence_is_an_item_or_a_reject(generated: Generated) -> None:
    cells = design_cells(N_PAIRS)
    have = instructions.pairs_by_cell(generated.items())
    assert {cell.key: have[cell.key] for cell in cells} == dict.fromkeys((cell.key for cell in cells), PER_CELL)
    assert list(problems(generated.dataset)) == []
    manifest = generated.manifest()
    assert (manifest.generator_model, manifest.human_validated) == (MODEL, False)
    # Only what was under way was asked twice.
    assert generated.n_sent_twice <= CONCURRENCY
    folders = finished_runs(generated.folder / "work" / "runs")
    records = {record.item_id for folder in folders for record in read_run(folder).records}
    rejects = read_rows(generated.dataset / "rejects.parquet", Reject)
    n_empty = sum(reject.source_row in records for reject in rejects)
    rows = Counter(item.source_row for item in generated.items())
    assert set(rows.values()) == {2}
    told = [reject.source_row for reject in rejects if reject.source_row not in records]
    assert len(told) == len({*told})
    assert not {*told} & rows.keys()
    assert len(rows) + len(told) == PER_REQUEST * (len(records) - n_empty)
    counts = Counter(reject.rule for reject in rejects)
    assert {"refused_answer", "truncated_answer", "malformed_sentence"} <= counts.keys()
    assert counts == {entry.rule: entry.n for entry in manifest.rejects if entry.n}


@pytest.mark.slow
def test_the_bill_is_known_and_below_the_limit_and_the_dataset_tells_it(generated: Generated) -> None:
    assert "pilot: " in generated.output
    # Each round may cost what the earlier ones left.
    assert min(map(float, re.findall(r"--max-cost (\d\.\d{6})", generated.output))) < MAX_COST
    runs = [read_result(folder) for folder in finished_runs(generated.folder / "work" / "runs")]
    parameters = generated.manifest().parameters
    calls, cost = parameters["n_calls"], parameters["cost_usd"]
    assert isinstance(calls, int)
    assert isinstance(cost, float)
    assert cost == pytest.approx(sum(result.usage.cost_usd or 0.0 for result in runs))
    assert generated.n_distinct <= calls
    assert PRICE * generated.n_distinct <= cost + 1e-9 <= MAX_COST
    card = (generated.dataset / "README.md").read_text(encoding="utf-8")
    assert f"It took {calls} calls of the model, with those repeated after errors, and {cost:.2f} US dollars" in card


@pytest.mark.slow
def test_the_kept_answers_give_the_same_items_again_without_the_model(
    server: WritingEndpoint, generated: Generated, tmp_path: Path
) -> None:
    n_before, manifest = len(server.sent), generated.manifest()
    chosen = ("--source", "generated", "--out", tmp_path / "again")
    # A dataset knows its own limits; of runs, they must be told.
    sources = ((generated.dataset, ()), (generated.folder / "work" / "runs", ("--per-cell", str(PER_CELL))))
    for source, limits in sources:
        run("-m", "builders.synthbias", *chosen, *limits, "--input", source, "--overwrite", status=0, TZ="Asia/Tokyo")
        again = read_manifest(tmp_path / "again")
        assert (again.content_sha256, again.files) == (manifest.content_sha256, manifest.files)
    done = run(*arguments(generated.folder, server), status=0)
    assert f"complete: each of the {6 * N_PAIRS} cells has {PER_CELL} minimal pairs" in done.stdout
    assert (len(server.sent), generated.manifest()) == (n_before, manifest)


ATTIC = "In the attic the cook met the nurse because"


@pytest.mark.parametrize(
    ("value", "is_candidate"),
    [
        ({"before": ATTIC, "case": "nominative", "after": "was late."}, True),
        ({"before": f"{ATTIC} \ud800", "case": "nominative", "after": "was late."}, False),
        ({"before": "The {cook} and {0} saw that", "case": "nominative", "after": "was late."}, True),
        ({"before": ATTIC, "case": "genitive", "after": "left."}, False),
        ({"before": [ATTIC], "case": "nominative", "after": "left."}, False),
        (None, False),
    ],
)
def test_a_sentence_in_another_form_is_a_reject_that_can_be_written(value: object, is_candidate: bool) -> None:
    found = candidate_of(value, "row", next(instructions.cells_of([("cook", "nurse")])))
    assert isinstance(found, WrittenSentence) == is_candidate
    text = found.slotted.filled("feminine") if isinstance(found, WrittenSentence) else found.candidate
    assert text.encode("utf-8")


@pytest.mark.slow
def test_a_model_that_writes_nothing_usable_is_found_out_by_the_pilot(tmp_path: Path) -> None:
    with WritingEndpoint(is_useful=False) as server:
        done = run(*arguments(tmp_path, server), status=1, timeout=200)
        assert len(server.sent) == 6, "three instructions of each type"
    assert "0 can be used" in done.stderr
    assert "take another model" in done.stderr
    assert not (tmp_path / "dataset").exists()


@pytest.mark.slow
def test_a_limit_on_the_cost_holds_over_all_rounds(server: WritingEndpoint, tmp_path: Path) -> None:
    n_before, limit = len(server.sent), 0.15
    stopped = run(*arguments(tmp_path, server, "--max-cost", str(limit), "--pilot", "0"), status=3, timeout=200)
    assert "run the same command again, with more than --max-cost 0.15" in stopped.stderr
    assert 0 < (len(server.sent) - n_before) * PRICE <= limit
    assert not [*tmp_path.rglob("dataset")]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are listed in /proc")
def test_the_model_is_asked_no_more_once_the_command_is_killed(server: WritingEndpoint, tmp_path: Path) -> None:
    n_before, n_pairs = len(server.sent), 60
    n_wanted = n_pairs * 6 * PER_CELL // PER_REQUEST
    more = ("--pilot", "0", "--pairs", str(n_pairs), "--max-cost", "100")
    with started(*arguments(tmp_path, server, *more)) as command:
        while len(server.sent) == n_before and command.poll() is None:
            time.sleep(0.005)
        process = command.process.pid
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        assert children, "it asks in a process of its own"
        command.send_signal(signal.SIGKILL)
        command.wait()
        n_at_kill = len(server.sent)
        deadline = time.monotonic() + 60
        # A process that has ended may wait for whoever adopted it to ask for its status.
        while any(is_running(child) for child in children):
            assert time.monotonic() < deadline, "its child goes on"
            time.sleep(0.01)
    # It was answered a few more that were under way; left alone, it went on until it next printed a line.
    assert len(server.sent) - n_at_kill < n_wanted / 10


def is_running(process: str) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
