"""Facts about models: the files that come with the board, and what is said about faulty ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leaderboard import model_facts
from leaderboard.model_facts import display_name, facts_of, file_name
from schemas.documents.model_facts import FACTS
from tests.leaderboard.conftest import message_of

SOUND = """
id = "acme/small-1b"
short_name = "Small 1B"
family = "Small"
maker = "Acme"
parameters = 1_000_000_000
open_weights = true
kind = "base"
licence = "MIT"
released = 2026-01-31
address = "https://models.example/small-1b"

[[sources]]
facts = ["parameters", "open_weights", "kind", "licence", "released"]
address = "https://models.example/small-1b"
looked_at = 2026-02-01
"""


@pytest.fixture
def folder(package_folder: Path) -> Path:
    return package_folder / "models"


PUBLISHED = (
    *("HuggingFaceH4/zephyr-7b", "anthropic/claude-3-haiku-20240307", "google/gemini-1.5-flash"),
    *("google/gemini-1.5-pro", "google/gemma-2-9b", "gpt2", "lmsys/vicuna-7b", "meta-llama/Llama-2-7b"),
    *("meta-llama/Llama-3-8B", "microsoft/Phi-3-mini-4k-instruct", "mistralai/Mistral-7B", "openai/gpt-3.5-turbo"),
    *("openai/gpt-4", "openai/gpt-4o-2024-08-06", "openai/gpt-4o-mini"),
)
"""Ids under which the answers of the paper arXiv:2506.15568 are imported."""


@pytest.mark.parametrize(
    "model_id", [*PUBLISHED, "raincandy-u/TinyStories-656K", "HuggingFaceTB/SmolLM2-135M-Instruct"]
)
def test_each_model_of_the_board_has_facts(model_id: str) -> None:
    facts = facts_of(model_id)
    assert facts is not None
    assert facts.sources or set(facts.unknown) == set(FACTS)


OF_MAKERS = (
    *(f"github.com/{name}/" for name in ("anthropics", "huggingface", "lm-sys", "meta-llama", "mistralai", "openai")),
    *(f"huggingface.co/{name}/" for name in ("HuggingFaceTB", "lmsys", "microsoft", "raincandy-u")),
    *("ai.google.dev/", "docs.mistral.ai/", "developers.openai.com/", "openai.com/", "community.openai.com/"),
    "www.microsoft.com/",
)
PAPERS = ("arxiv.org/abs/", "openreview.net/forum")


def test_facts_come_from_makers_papers_and_licences() -> None:
    sources = [source for facts in model_facts._by_id().values() for source in facts.sources]
    assert len({source.address for source in sources}) > 10
    for source in sources:
        assert source.address.removeprefix("https://").startswith((*OF_MAKERS, *PAPERS)), source


def test_short_names_differ_and_no_fact_is_guessed_where_the_published_name_leaves_it_open() -> None:
    models = {facts.id: facts for facts in model_facts._by_id().values()}
    assert len({facts.short_name for facts in models.values()}) == len(models)
    llama = facts_of("meta-llama/Llama-3-8B")
    assert llama is not None
    assert llama.kind is None
    assert "base or the tuned" in llama.unknown["kind"]


def test_a_file_is_found_by_its_folder_under_each_id_of_the_model(folder: Path) -> None:
    (folder / "acme__small-1b.toml").write_text(SOUND.replace("short_name", 'other_ids = ["x/small"]\nshort_name'))
    facts = facts_of("x/small")
    assert facts is not None
    assert (facts.id, facts.parameters, facts.released) == ("acme/small-1b", 1_000_000_000, "2026-01-31")
    assert display_name("x/small") == display_name("acme/small-1b") == "Small 1B"
    # A model without a file is called by its id without the maker.
    assert facts_of("acme/unknown-2b") is None
    assert (display_name("acme/unknown-2b"), display_name("uniform")) == ("unknown-2b", "uniform")


BAD = {
    "two times": (SOUND.replace("released =", 'released_by = "2026-02"\nreleased ='), "released_by: released is given"),
    "a bound without a source": (
        SOUND.replace("released = 2026-01-31", 'released_by = "2026-02"') + '\n[unknown]\nreleased = "no page"\n',
        "released_by: has no source; name a page of that date",
    ),
    "no TOML": ("id = ", "not a TOML file"),
    "an unknown field": (f"size = 3\n{SOUND}", "field 'size' is not in schemas/documents/model_facts.schema.json"),
    "a missing field": (SOUND.replace('maker = "Acme"\n', ""), "field 'maker' is missing; add it"),
    "another kind": (SOUND.replace('"base"', '"tuned"'), "kind: 'tuned' is not allowed; have: base, instruction-tuned"),
    "a size in words": (SOUND.replace("1_000_000_000", '"1B"'), "parameters: '1B' is not of type integer"),
    "a fact without a source": (SOUND.replace('"kind", ', ""), "kind: has no source; name a page that states it"),
    "an unknown without a reason": (
        SOUND.replace('kind = "base"\n', ""),
        "kind: is missing; give it with a source, or",
    ),
    "a fact that is known and unknown": (
        f'{SOUND}\n[unknown]\nkind = "nobody says"\n',
        "unknown.kind: kind is given as well; remove one of them",
    ),
    "an address of no web page": (
        SOUND.replace('"https://models.example/small-1b"', '"javascript:alert(1)"', 1),
        "address: 'javascript:alert(1)' does not match",
    ),
    "a line break in a name": (SOUND.replace("Small 1B", "Small\\n1B"), "short_name: 'Small\\n1B' does not match"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_faulty_file_gets_one_clear_line(folder: Path, text: str, words: str) -> None:
    assert words in message_of(folder / "acme__small-1b.toml", text, lambda: facts_of("acme/small-1b"))


def test_a_file_under_another_name_and_a_second_one_are_told(folder: Path) -> None:
    said = message_of(folder / "small.toml", SOUND, lambda: facts_of("acme/small-1b"))
    assert f"rename it to {file_name('acme/small-1b')}" in said
    (folder / "small.toml").rename(folder / "acme__small-1b.toml")
    other = SOUND.replace("acme/small-1b", "x/small").replace("short_name", 'other_ids = ["acme/small-1b"]\nshort_name')
    said = message_of(folder / "x__small.toml", other, lambda: facts_of("x/small"))
    assert re.match("acme/small-1b is in .*acme__small-1b.toml too; keep it in one of them", said)
