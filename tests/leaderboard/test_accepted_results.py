"""The results in this repository: they verify against the code's own datasets or a committed key, and were accepted."""

from __future__ import annotations

import html
import re
import zlib
from pathlib import Path

import pytest

from biasboard.ground.memory import Memory
from leaderboard.pages.publishing import handwritten_pages, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from leaderboard.verify.intake import strange_files
from leaderboard.verify.keys import open_book
from leaderboard.verify.submissions import place_for, read_submission
from leaderboard.verify.verdicts import LoadedResults, load
from schemas.files.record_columns import TEXT_ELSEWHERE, is_hashed
from schemas.folders.run_folder import RESULT
from tests.leaderboard.synthetic import present
from tests.record_files import read_records
from tests.worlds import render

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "leaderboard" / "results"
MOST_BYTES = 15_000_000
"""Maximum size in a clone of the repository, where git compresses files by zlib."""
MOST_OF_A_PAGE = 300_000
"""Maximum size of a page in bytes before compression: it is read on a phone."""
MOST_OF_A_RESULT = 370_000
"""Maximum size in bytes of a site per result; one of a thousand results must fit a host that takes a GB."""
ID_OR_VERSION = re.compile(r"\d+\.\d+\.\d+|@|_|-v\d|\b[0-9a-f]{8,}\b")
TINY = "raincandy-u/TinyStories-656K"
"""A model of 656 thousand parameters, which achieves no more than a baseline on any benchmark."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedResults:
    # Results on the same items share what a baseline scores on them.
    memory = Memory(tmp_path_factory.mktemp("memory"))
    return load([Root(RESULTS, "accepted")], open_book(REPOSITORY / "leaderboard" / "keys", None), memory)


def test_every_result_verifies_and_is_the_accepted_one_in_a_table(loaded: LoadedResults) -> None:
    assert loaded.left_out == ()
    assert len(loaded.entries) == len(list(RESULTS.rglob(RESULT))) > 0
    for entry in loaded.entries:
        assert entry.place == place_for(entry.result).as_posix()
        assert entry.match.extent == "whole"
        assert entry.acceptance is not None, f"{entry.place}: changed after its acceptance"
        assert entry.result.model.identity is not None
        path = present(entry.folder) / RESULT
        assert read_submission(path) is not None
        assert strange_files(path) == ()
    board = assemble(loaded.entries)
    assert board.apart == ()
    assert not any(row.rank for table in board.tables for row in table.rows if row.model.id == TINY)


def test_texts_and_prompts_of_others_are_there_by_hash_alone(loaded: LoadedResults) -> None:
    """Others published them, so neither they nor the prompts are ours to hand on; a maintainer had them."""
    imported = [entry for entry in loaded.entries if entry.is_imported and not entry.is_baseline]
    # Others have no texts at all, and names of options in their place.
    found = [entry for entry in imported if entry.result.withheld is not None]
    assert {entry.result.signature.dataset for entry in imported if entry not in found} == {
        "bbq-published",
        "stereoset-published",
    }
    configs: dict[str, set[str]] = {}
    for entry in found:
        configs.setdefault(entry.result.model.id, set()).add(entry.result.signature.config)
    every = {"recognition", "continuation", "assignment", "math"}
    # Three of 60 files are missing at the source.
    lacking = {model: every - theirs for model, theirs in configs.items() if theirs != every}
    assert len(configs) == 15
    assert lacking == {"openai/gpt-4": {"assignment"}, "meta-llama/Llama-3-8B": {"assignment", "continuation"}}
    for entry in found:
        assert entry.has_compared_texts
        for record in read_records(present(entry.folder) / entry.result.records.path):
            for exchange in record.exchanges:
                assert exchange.prompt is exchange.request_sha256 is None
                assert exchange.text is None or is_hashed(exchange.text)
            assert record.reason in (None, TEXT_ELSEWHERE) or record.status == "failed"
    # The code does not hold them, so their sentences are not ours to hand on; a choice is there by its hash.
    others = {path.name for path in (REPOSITORY / "leaderboard" / "keys").iterdir()}
    found = [entry for entry in loaded.entries if entry.place.partition("/")[0] in others and not entry.is_imported]
    assert found
    for entry in found:
        assert entry.result.withheld is None
        for record in read_records(present(entry.folder) / entry.result.records.path):
            for exchange in record.exchanges:
                assert exchange.prompt is exchange.text is None
                assert exchange.request_sha256 is not None


def test_they_and_their_pages_are_small_and_headings_have_human_words(loaded: LoadedResults, tmp_path: Path) -> None:
    assert sum(len(zlib.compress(path.read_bytes())) for path in RESULTS.rglob("*") if path.is_file()) < MOST_BYTES
    built = render(make_view(assemble(loaded.entries), (), ()), tmp_path, with_parquet=True)
    n_bytes = sum(path.stat().st_size for path in built.rglob("*") if path.is_file())
    assert n_bytes < MOST_OF_A_RESULT * len(loaded.entries)
    pages = {path.relative_to(built).as_posix(): path.read_text() for path in built.rglob("*.html")}
    assert len([path for path in pages if path.startswith("models/")]) > len(loaded.entries)
    assert {path: size for path, text in pages.items() if (size := len(text.encode())) > MOST_OF_A_PAGE} == {}
    sets = [path for path, text in pages.items() if "How much depends on the choice of 8 examples" in text]
    assert sets
    assert all(path.startswith("models/") for path in sets)
    docs = {path.removesuffix(".md") + ".html" for path in handwritten_pages(tmp_path / "site")} - {"index.html"}
    for path in pages.keys() - docs:
        headings = re.findall(r"<(h[1-4]|title)\b[^>]*>(.*?)</\1>", pages[path], re.DOTALL)
        assert headings
        words = [html.unescape(re.sub(r"<[^>]+>", "", heading)) for _, heading in headings]
        assert [text for text in words if ID_OR_VERSION.search(text)] == [], path
