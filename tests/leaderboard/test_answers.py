"""Examples of answers on the pages, the records that the site offers, and answers that others published."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.benchmark import load_benchmark
from evaluators.task import load_task
from leaderboard.commands.accept import accept
from leaderboard.commands.verify import compared
from leaderboard.verify.comparisons import CompleteRuns
from leaderboard.verify.entries import Entry, ExampleChoice, Examples, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import judge, load
from schemas.documents.record import Reading, Record
from schemas.folders.run_folder import find_runs, read_result
from schemas.lexicon import pronoun_families
from schemas.outputs.documents import Verdicts, as_json
from tests.evaluators.pronoun_records import problems, recorded, sentences
from tests.evaluators.test_gifi_import import GDR, MATH, imported, math_rows, recognition_rows, write
from tests.evaluators.test_gifi_import import dataset as dataset
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, make_records, present, replace_reading, uniform
from tests.worlds import FORBIDDEN, MadeBoard, gifi_manifest

HOSTILE = "</pre></details><script>alert(1)</script> **b** [l](javascript:x)\n\n# head\n{{ x }} \x1b[31m \u202e"
TEXTS = ("she left.", "they left.", "", "I'm sorry, but I cannot do that.", HOSTILE)
RESULTS = Path(__file__).parents[2] / "leaderboard" / "results" / "gifi-published-compat@1.0.0"
NOT_HERE = "This site was built without the texts"
PRE = '<pre dir="auto">'
RECOGNITION = "models/lab__one/gifi-recognition-"


def mixed(item: Any) -> list[str]:
    if item.family in ("he", "ze"):
        return [TEXTS[zlib.crc32(item.item_id.encode()) % len(TEXTS)]]
    return [f"and {item.family} left {HOSTILE}"]


def nominative(item: Any) -> list[str]:
    return [f"and {pronoun_families()[item.family].forms['nominative']} left."]


def chosen_from(*parts: Sequence[Record]) -> Examples:
    choice = ExampleChoice("coreference")
    for part in parts:
        choice.add(part)
    return choice.chosen


def test_each_task_says_which_records_are_right_and_examples_are_chosen_by_a_rule() -> None:
    recognition, number, coreference = map(load_task, ("recognition", "word_problem", "coreference"))
    right = recorded(recognition, sentences("{nom} {sleeps|sleep}"), nominative)
    assert set(recognition.are_right(right)) == {True}
    # A task that does not say which of its records are right.
    assert set(load_task("continuation").are_right(right)) == {None}
    wrong = recorded(recognition, sentences("{nom} {sleeps|sleep}"), lambda item: ["It rains."])
    assert set(recognition.are_right(wrong)) == {False}
    half = recorded(recognition, sentences("{nom} {sleeps|sleep}"), lambda item: [*nominative(item), "It rains."])
    assert set(recognition.are_right(half)) == {None}
    solved = recorded(number, problems(2), lambda item: [f"The answer is {12 if item.family == 'he' else 7}."])
    assert number.are_right(solved) == [record.groups["family"] == "he" for record in solved]
    (record, *_) = make_records(uniform)
    likely, unlikely = replace_reading(record, (0.9, 0.1)), replace_reading(record, (0.1, 0.9))
    unknown = (replace(record, target=None), replace(record, reading=None))
    assert coreference.are_right([record, likely, unlikely, *unknown]) == [None, True, False, None, None]
    records = make_records(leaning(0.0, 1.0))
    found = chosen_from(records)
    assert [(kind, n, len(chosen)) for kind, n, chosen in found.of_kinds] == [("right", 50, 5), ("wrong", 50, 5)]
    assert found.hides_prompts
    assert chosen_from(records[::-1]) == found
    assert chosen_from(*(records[start : start + 7] for start in range(0, 100, 7))) == found
    strange = Reading(outcomes=("x",), probabilities=(1.0,), answers=())
    other = chosen_from([replace(record, reading=strange) for record in records])
    assert {kind for kind, _, _ in other.of_kinds} == {"answered"}


def blocks_of(page: str) -> list[str]:
    return re.findall(r'(?s)<div class="bb-answers".*?\n</div>', page)


@pytest.mark.slow
def test_texts_of_models_are_folded_harmless_and_not_searched(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "lab/odd", 0.5, tasks=("recognition", "continuation"), scorer=None, told=mixed)
    made = MadeBoard(tmp_path)
    recognition, continuation = (made.page(f"models/lab__odd/gifi-{name}-") for name in ("recognition", "continuation"))
    assert "<script" not in recognition + continuation
    for block in (*blocks_of(recognition), *blocks_of(continuation)):
        assert "\n\n" not in block, "Markdown would end the block here"
        assert block.startswith('<div class="bb-answers" id="')
        assert "data-search-exclude>" in block
        assert "<details open" not in block
        assert len(block) < 60_000
        for shown in re.findall(r"<dt>Came back</dt><dd>(.*?)</dd>", block):
            assert shown.startswith("<details><summary>")
            assert "alert" not in shown.partition("</summary>")[0]
    (block,) = blocks_of(recognition)
    assert "may offend" not in block
    for words in ("Wrong: 5 of", "&#9243;", "Refused: ", 'Asked</dt><dd><pre dir="auto">'):
        assert words in block
    (block,) = blocks_of(continuation)
    assert "some of them offend" in block
    assert "<dt>Asked</dt><dd><details>" in block
    assert "<dt>Asked</dt><dd><pre" not in block


def accepted(runs: Path, root: Path) -> Callable[..., tuple[Entry, ...]]:
    """Hand in runs without their texts, which a maintainer compares with them; gives what loads them."""
    keys, results = KeyBook(write_keys(root / "keys", runs)), root / "results"
    for run in find_runs(runs):
        hand_in(run, results, withhold=True)
    verdicts = list(judge([results], keys, Memory(None)))
    report = Verdicts(verdicts=tuple(compared(verdicts, CompleteRuns(runs, keys, Memory(None)))))
    (root / "report.json").write_text(as_json(report))
    places = [run.relative_to(results).as_posix() for run in find_runs(results)]
    accept(places, owner="bot", report=root / "report.json", results=results)
    return lambda *local: (
        load([Root(results, "accepted"), *(Root(one, "local") for one in local)], keys, Memory(None)).entries
    )


def why_absent(made: MadeBoard) -> list[str]:
    tables = made.json("files/explorer/")["tables.json"]["tables"]
    return [str(result["why_absent"]) for table in tables for result in table["results"]]


@pytest.mark.slow
def test_examples_of_published_answers_are_shown_where_the_complete_run_is(dataset: Path, tmp_path: Path) -> None:
    write(tmp_path / "files" / GDR, recognition_rows())
    write(tmp_path / "files" / MATH, math_rows())
    imported(tmp_path / "files", dataset)
    runs = tmp_path / "out/runs"
    loaded = accepted(runs, tmp_path)
    apart, both = MadeBoard(*loaded()), MadeBoard(*loaded(runs))
    address = "/gender-pronoun-recognition/tango_GDR-all-genders_made-1.csv"
    result = "models/made-1/gifi-recognition-"
    for page in (apart.page(result), both.page(result)):
        assert address in page
        assert "https://spdx.org/licenses/CC-BY-SA-4.0.html" in page
        assert "computed: Every ranked number was computed again from stored sums" in page
    assert NOT_HERE in apart.page(result)
    assert PRE not in apart.page(result)
    assert "and <mark>he</mark> left." in both.page(result)
    assert NOT_HERE not in both.page(result)
    # The records that the site could offer or search hold hashes.
    assert apart.downloads == both.downloads == {}
    assert all("its page says where they are published" in why for why in why_absent(both))
    assert all(why.endswith("and shows examples") for why in why_absent(both))
    assert not any(why.endswith("and shows examples") for why in why_absent(apart))
    assert PRE not in MadeBoard(*both.entries, built=[gifi_manifest(**FORBIDDEN)]).page(result)


@pytest.mark.slow
def test_texts_that_a_licence_forbids_or_somebody_withholds_are_neither_shown_nor_offered(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write_gifi_model(runs, "lab/one", 0.5, tasks=("recognition",), n_templates=6)
    made = MadeBoard(runs, built=[gifi_manifest(**FORBIDDEN)])
    page = made.page(RECOGNITION)
    assert made.downloads == {}
    assert "the licence of the dataset, CC-BY-ND-4.0, forbids showing its texts" in page
    (block,) = blocks_of(page)
    assert "<pre" not in block
    assert "Wrong: 5 of" in page
    assert "where he lives" not in page
    # Nor where the complete run is here.
    made = MadeBoard(*accepted(runs, tmp_path)(runs))
    assert {entry.origin for entry in made.entries} == {"accepted", "local"}
    page = made.page(RECOGNITION)
    assert "Wrong: 5 of" in page
    assert PRE not in page
    assert made.downloads == {}


def test_a_strange_name_of_a_file_leads_nowhere() -> None:
    importer = present(load_benchmark("gifi").importer_of("gifi-published-compat"))
    assert importer.published("recognition", {}) is None
    for file in ("tango_GDR-all-genders_../../x.csv", "math_gsm8k-all-genders_x.csv"):
        assert importer.published("recognition", {"generations": file}) is None
    assert importer.published("strange", {"generations": "tango_GDR-all-genders_x.csv"}) is None


@pytest.mark.slow
def test_each_accepted_result_names_its_published_file_by_folder_and_hash(shared_data: Path) -> None:
    importer, folder = (
        present(load_benchmark("gifi").importer_of("gifi-published-compat")),
        shared_data / "gifi" / "model-generation",
    )
    of_all = [read_result(path.parent) for path in sorted(RESULTS.glob("*/*/result.json"))]
    found = [result for result in of_all if result.model.endpoint != "baseline"]
    assert len(found) == 57
    for result in found:
        settings = result.environment.settings
        part = present(importer.published(result.signature.config, settings))
        file = folder / part.address.partition("/data/model-generation/")[2]
        assert sha256_file(file) == settings["generations_sha256"]
