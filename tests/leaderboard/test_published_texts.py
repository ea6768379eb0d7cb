"""Answers that others published: where they are, on what terms, and examples of them where the texts are at hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.benchmark import load_benchmark
from leaderboard.commands.accept import accept
from leaderboard.commands.verify import compared
from leaderboard.pages.dataset_views import BuiltDataset
from leaderboard.pages.rendering import copies, generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.comparisons import CompleteRuns
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.loading import load
from leaderboard.verify.verdicts import judge
from schemas.folders.run_folder import find_runs, read_result
from schemas.outputs.documents import Verdicts
from schemas.printed import as_json
from tests.evaluators.test_gifi_import import GDR, MATH, imported, math_rows, recognition_rows, write
from tests.evaluators.test_gifi_import import dataset as dataset
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.made_keys import load_known, write_keys
from tests.schemas.examples import items, manifest

RESULTS = Path(__file__).parents[2] / "leaderboard" / "results" / "gifi-published-compat@1.0.0"
NOT_HERE = "This site was built without the texts"
PRE = '<pre dir="auto">'
WRONG = "<strong>A wrong answer</strong>"


def accepted(runs: Path, root: Path) -> tuple[Path, KeyBook]:
    """The results of runs without their texts, which a maintainer has compared with them, and their answer keys."""
    keys, results = KeyBook(write_keys(root / "keys", runs)), root / "results"
    for run in find_runs(runs):
        hand_in(run, results, withhold=True)
    verdicts = list(judge([results], keys, Memory(None), advance=lambda n_done, n: None))
    (root / "report.json").write_text(
        as_json(Verdicts(verdicts=tuple(compared(verdicts, CompleteRuns(runs, keys, Memory(None))))))
    )
    places = [run.relative_to(results).as_posix() for run in find_runs(results)]
    accept(places, owner="bot", report=root / "report.json", results=results)
    return results, keys


class Site(NamedTuple):
    files: dict[str, str]
    downloads: list[str]

    def page(self, begin: str) -> str:
        (found,) = (text for path, text in self.files.items() if path.startswith(begin) and path.endswith(".md"))
        return found

    @property
    def why_absent(self) -> set[str | None]:
        listed = json.loads(self.files["files/explorer/tables.json"])
        return {result["why_absent"] for table in listed["tables"] for result in table["results"]}


def site(entries: Sequence[Entry], *built: BuiltDataset) -> Site:
    view = make_view(assemble(entries), (), built)
    return Site(generate(view, {}), list(copies(view)))


@pytest.mark.slow
def test_examples_of_published_answers_are_shown_where_the_complete_run_is(dataset: Path, tmp_path: Path) -> None:
    write(tmp_path / "files" / GDR, recognition_rows())
    write(tmp_path / "files" / MATH, math_rows())
    imported(tmp_path / "files", dataset)
    runs = tmp_path / "out/runs"
    results, keys = accepted(runs, tmp_path)
    apart = site(load([Root(results, "accepted")], keys, Memory(None)).entries)
    entries = load([Root(results, "accepted"), Root(runs, "local")], keys, Memory(None)).entries
    both = site(entries)
    address = "/gender-pronoun-recognition/tango_GDR-all-genders_made-1.csv"
    result = "models/made-1/gifi-recognition-"
    for page in (apart.page(result), both.page(result)):
        assert address in page
        assert "https://spdx.org/licenses/CC-BY-SA-4.0.html" in page
        assert "computed: Every ranked number was computed again from stored sums" in page
    assert NOT_HERE in apart.page(result)
    assert PRE not in apart.page(result)
    assert WRONG not in apart.page("models/made-1.md")
    assert "and <mark>he</mark> left." in both.page(result)
    assert NOT_HERE not in both.page(result)
    # Of both results with wrong answers, that of a headline measure is shown.
    wrong = both.page("models/made-1.md").partition(WRONG)[2]
    assert "and <mark>he</mark> left." in wrong
    assert address in wrong
    # The records that the site could offer or search hold hashes.
    assert apart.downloads == both.downloads == []
    assert all(why and "its page says where they are published" in why for why in both.why_absent)
    assert all(why and why.endswith("and shows examples") for why in both.why_absent)
    assert not any(str(why).endswith("and shows examples") for why in apart.why_absent)
    terms = replace(manifest(items()), name="gifi", version="1.0.0", redistributable=False, licence="CC-BY-ND-4.0")
    assert PRE not in site(entries, BuiltDataset(terms)).page(result)


@pytest.mark.slow
def test_texts_that_somebody_withholds_are_not_shown_though_the_complete_run_is_here(tmp_path: Path) -> None:
    write_gifi_model(tmp_path / "runs", "lab/one", 0.5, tasks=("recognition",), n_templates=6)
    results, keys = accepted(tmp_path / "runs", tmp_path)
    entries = load([Root(results, "accepted"), Root(tmp_path / "runs", "local")], keys, Memory(None)).entries
    assert {entry.origin for entry in entries} == {"accepted", "local"}
    found = site(entries)
    page = found.page("models/lab__one/gifi-recognition-")
    assert "Wrong: 5 of" in page
    assert PRE not in page
    assert found.downloads == []
    assert WRONG not in found.page("models/lab__one.md")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "is_shown"), [(lambda item: ["they left."], False), (lambda item: ["and xe left."], True)]
)
def test_a_wrong_answer_that_is_read_with_doubt_is_said_to_be_so_and_not_shown_on_the_page_of_the_model(
    tmp_path: Path, told: Callable[[Any], Sequence[str]], is_shown: bool
) -> None:
    write_gifi_model(tmp_path, "lab/one", 0.5, tasks=("recognition",), n_templates=6, told=told)
    found = site(load_known(Root(tmp_path, "local")).entries)
    result, model = found.page("models/lab__one/gifi-recognition-"), found.page("models/lab__one.md")
    assert "Wrong: 5 of" in result
    assert ("can also mean several people" in result) is not is_shown
    assert (WRONG in model) is is_shown
    assert "computed: Every ranked number was computed again from stored answers." in result


@pytest.mark.slow
def test_answers_that_may_offend_are_never_the_one_on_the_page_of_a_model(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "lab/one", 0.5, tasks=("continuation",), n_templates=6)
    found = site(load_known(Root(tmp_path, "local")).entries)
    assert WRONG not in found.page("models/lab__one.md")


@pytest.mark.parametrize(
    ("config", "file"),
    [
        ("recognition", "tango_GDR-all-genders_../../x.csv"),
        ("recognition", "tango_GDR-all-genders_x.csv?y"),
        ("recognition", 'tango_GDR-all-genders_">.csv'),
        ("recognition", "math_gsm8k-all-genders_x.csv"),
        ("recognition", ""),
        ("strange", "tango_GDR-all-genders_x.csv"),
    ],
)
def test_a_strange_name_of_a_file_leads_nowhere(config: str, file: str) -> None:
    importer = load_benchmark("gifi").importer
    assert importer is not None
    assert importer.published(config, {"generations": file}) is None
    assert importer.published(config, {}) is None


def test_each_accepted_result_names_its_published_file_by_folder_and_hash(shared_data: Path) -> None:
    importer, folder = load_benchmark("gifi").importer, shared_data / "gifi" / "model-generation"
    assert importer is not None
    of_all = [read_result(path.parent) for path in sorted(RESULTS.glob("*/*/result.json"))]
    found = [result for result in of_all if result.model.endpoint != "baseline"]
    assert len(found) == 57
    for result in found:
        settings = result.environment.settings
        part = importer.published(result.signature.config, settings)
        assert part is not None
        file = folder / part.address.partition("/data/model-generation/")[2]
        assert sha256_file(file) == settings["generations_sha256"]
