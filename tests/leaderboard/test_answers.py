"""Examples of answers on the pages, and the records that the site offers."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.task import load_task
from leaderboard.pages.dataset_views import BuiltDataset
from leaderboard.pages.publishing import combined
from leaderboard.pages.rendering import copies, generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import ExampleChoice, Examples, Root
from schemas.documents.dataset import Manifest
from schemas.documents.record import Reading, Record
from schemas.lexicon import pronoun_families
from tests.evaluators.pronoun_records import problems, recorded, sentences
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, make_records, replace_reading, uniform, write_model
from tests.schemas.examples import items, manifest

HOSTILE = "</pre></details><script>alert(1)</script> **b** [l](javascript:x)\n\n# head\n{{ x }} \x1b[31m \u202e"
TEXTS = ("she left.", "they left.", "", "I'm sorry, but I cannot do that.", HOSTILE)


def pages_of(root: Path, manifests: Sequence[Manifest] = ()) -> tuple[dict[str, str], dict[str, Path]]:
    view = make_view(assemble(load_known(Root(root, "local")).entries), (), [*map(BuiltDataset, manifests)])
    return generate(view, {}), copies(view)


def mixed(item: Any) -> list[str]:
    if item.family in ("he", "ze"):
        return [TEXTS[zlib.crc32(item.item_id.encode()) % len(TEXTS)]]
    return [f"and {item.family} left {HOSTILE}"]


def nominative(item: Any) -> list[str]:
    return [f"and {pronoun_families()[item.family].forms['nominative']} left."]


def test_each_task_says_which_of_its_records_are_right() -> None:
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
    assert {
        (record.groups["family"] == "he", is_right)
        for record, is_right in zip(solved, number.are_right(solved), strict=True)
    } == {
        (True, True),
        (False, False),
    }
    (record, *_) = make_records(uniform)
    likely, unlikely = replace_reading(record, (0.9, 0.1)), replace_reading(record, (0.1, 0.9))
    unknown = (replace(record, target=None), replace(record, reading=None))
    assert coreference.are_right([record, likely, unlikely, *unknown]) == [None, True, False, None, None]


def chosen_from(records: Sequence[Record], task: str) -> Examples:
    choice = ExampleChoice(task)
    choice.add(records)
    return choice.chosen


def test_examples_are_chosen_by_a_rule_that_knows_no_answer() -> None:
    records = make_records(leaning(0.0, 1.0))
    found = chosen_from(records, "coreference")
    assert [(kind, n, len(chosen)) for kind, n, chosen in found.of_kinds] == [("right", 50, 5), ("wrong", 50, 5)]
    assert chosen_from(records[::-1], "coreference") == found
    assert found.hides_prompts
    in_parts = ExampleChoice("coreference")
    for start in range(0, 100, 7):
        in_parts.add(records[start : start + 7])
    assert in_parts.chosen == found
    strange = Reading(outcomes=("x",), probabilities=(1.0,), answers=())
    other = chosen_from([replace(record, reading=strange) for record in records], "coreference")
    assert {kind for kind, _, _ in other.of_kinds} == {"answered"}


def result_page(files: Mapping[str, str], model: str) -> str:
    """The page of a model's only result."""
    (page,) = [text for path, text in files.items() if path.startswith(f"models/{model}/") and "-index-" not in path]
    return page


@pytest.mark.slow
def test_texts_of_models_are_folded_harmless_and_not_searched(tmp_path: Path) -> None:
    write_gifi_model(tmp_path, "lab/odd", 0.5, tasks=("recognition", "continuation"), scorer=None, told=mixed)
    files, _ = pages_of(tmp_path)
    pages = [text for path, text in files.items() if path.startswith("models/lab__odd/")]
    assert not any("<script" in page for page in pages)
    blocks = [block for page in pages for block in re.findall(r'<div class="bb-answers".*?\n</div>', page, re.DOTALL)]
    assert len(blocks) == 2
    for block in blocks:
        assert "\n\n" not in block, "Markdown would end the block here"
        assert block.startswith('<div class="bb-answers" id="')
        assert "data-search-exclude>" in block
        assert "<details open" not in block
        assert len(block) < 60_000
        for shown in re.finditer(r"<dt>Came back</dt><dd>(.*?)</dd>", block):
            assert shown[1].startswith("<details><summary>")
            assert "alert" not in shown[1].partition("</summary>")[0]
    recognition = next(block for block in blocks if "Wrong: 5 of" in block)
    assert "may offend" not in recognition
    assert "&#9243;" in recognition
    assert "Refused: " in recognition
    assert 'Asked</dt><dd><pre dir="auto">' in recognition
    continuation = next(block for block in blocks if block != recognition)
    assert "some of them offend" in continuation
    assert "<dt>Asked</dt><dd><details>" in continuation
    assert "<dt>Asked</dt><dd><pre" not in continuation


@pytest.mark.slow
def test_records_and_scores_are_offered_with_their_sizes(tmp_path: Path) -> None:
    folders = write_gifi_model(tmp_path / "runs", "lab/even", 0.5, tasks=("continuation",))
    files, offered = pages_of(tmp_path / "runs")
    assert sorted(path.rpartition("-")[2] for path in offered) == ["records.parquet", "scores.parquet"]
    page = result_page(files, "lab__even")
    size = f"{(folders['continuation'] / 'records.parquet').stat().st_size / 1e3:.1f} kB"
    assert f'.parquet" download>Parquet, {size}</a>' in page
    (tmp_path / "site" / "docs").mkdir(parents=True)
    with combined(tmp_path / "site", files, offered, tmp_path / "out") as folder:
        for path, source in offered.items():
            assert f'href="../../{path}"' in page
            assert (folder / "docs" / path).read_bytes() == source.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("refusal", ["the licence is CC BY-NC-ND", None])
def test_texts_that_a_licence_forbids_are_neither_shown_nor_offered(tmp_path: Path, refusal: str | None) -> None:
    write_gifi_model(tmp_path, "lab/even", 0.5, tasks=("recognition",))
    terms = replace(
        manifest(items()),
        name="gifi",
        version="1.0.0",
        redistributable=False,
        publish_refusal=refusal,
        licence="CC-BY-ND-4.0",
    )
    files, offered = pages_of(tmp_path, [terms])
    page = result_page(files, "lab__even")
    assert offered == {}
    assert refusal or "the licence of the dataset, CC-BY-ND-4.0, forbids showing its texts" in page
    assert "Texts are neither shown nor offered for download, only the ids of the items" in page
    (block,) = re.findall(r'<div class="bb-answers".*?\n</div>', page, re.DOTALL)
    assert "<pre" not in block
    assert "Wrong: 5 of" in page
    assert "where he lives" not in page


@pytest.mark.slow
def test_records_without_prompts_show_ids_alone(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(0.0, 1.0))
    files, offered = pages_of(tmp_path)
    page = result_page(files, "acme__small")
    assert offered == {}
    assert "the records hold hashes in place of the prompts" in page
    assert re.search(r"Right: 5 of 50</summary>\n<p class=\"bb-fact\">(<code>p\d{4}&#45;|<code>p\d{4}-)", page)
