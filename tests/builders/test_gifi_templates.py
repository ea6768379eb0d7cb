"""Templates and their variants, and the embedded texts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from biasboard.ground.errors import DataError
from builders.gifi.embedded import embedded_items
from builders.gifi.embedded import texts_of as rows_of
from builders.gifi.variants import VariantFrame, text_items
from schemas.folders.dataset_folder import read_manifest
from schemas.lexicon.pronoun_template import parse
from schemas.validate import problems
from tests import commands
from tests.terminal import without_progress

SENTENCE = "{Nom} {is|are} late, {pos} friend waits for {acc}, the blame is {psi}, and {nom} {knows|know} it {ref}."


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("he", "He is late, his friend waits for him, the blame is his, and he knows it himself."),
        ("they", "They are late, their friend waits for them, the blame is theirs, and they know it themself."),
        ("ae", "Ae is late, aer friend waits for aer, the blame is aers, and ae knows it aerself."),
    ],
)
def test_every_slot_gets_the_form_of_its_case_and_they_its_verbs(family: str, text: str) -> None:
    assert parse(SENTENCE).fill(family) == text
    as_published = {"they": "they is here", "ae": "aer is here"}.get(family, f"{family} is here")
    assert parse("{nom} {is|are} here").fill(family, as_published=True) == as_published


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{nom} is {here", "a brace stands alone"),
        ("{who} is here", r"mark '\{who\}' is unknown; have: nom, acc, pos, psi, ref, singular\|plural"),
        ("{NOM} is here", r"mark '\{NOM\}' is unknown"),
        ("{is|} {nom}", r"mark '\{is\|\}' is unknown"),
        ("nobody is here", "has no slot for a pronoun"),
    ],
)
def test_a_broken_mark_is_named(text: str, message: str) -> None:
    with pytest.raises(DataError, match=f"a.toml: text 3: .*{message}"):
        parse(text, where="a.toml: text 3")


def test_flags_tell_equal_variants_and_texts_that_end_in_the_pronoun() -> None:
    texts = {"a": "Robin hurt {ref}", "b": "They saw {acc}.", "c": "{Nom} left."}
    items = text_items([VariantFrame(name, parse(text), None) for name, text in texts.items()])
    flags = {item.item_id: set(item.flags) for item in items}
    assert flags["a-e"] == flags["a-ey"] == {"same_text_as_other_family", "ends_in_pronoun"}
    assert flags["a-he"] == {"ends_in_pronoun"}
    assert flags["b-e"] == flags["b-ey"] == {"same_text_as_other_family"}
    assert flags["c-e"] == flags["c-ey"] == flags["b-xe"] == set()


EMBEDDED: dict[str, Sequence[Any]] = embedded_items()
WITH_PRONOUNS = [item for config in ("recognition", "continuation", "math") for item in EMBEDDED[config]]
OTHER_THIRD_PERSON = re.compile(
    r"\b(?:he|him|his|himself|she|hers?|herself|they|them|theirs?|themselves|themself)\b", re.IGNORECASE
)
SINGULAR = re.compile(r"\bthey (?:is|was|has|does)\b|\b(?:is|was|has|does) they\b|\bhe are\b", re.I)


def verb_after_they(text: str) -> list[str]:
    """Words after *they* that are a verb in the third person singular."""
    lemminflect: Any = pytest.importorskip("lemminflect", reason="the extra build is not installed")
    words = re.findall(r"\bthey (?:\w+ly |also |still |now |then )?(\w+s)\b", text, re.IGNORECASE)
    lemmas = {word: lemminflect.getAllLemmas(word, "VERB").get("VERB", ()) for word in words}
    return [word for word in words if any(word in lemminflect.getInflection(lemma, "VBZ") for lemma in lemmas[word])]


def test_embedded_texts_hold_no_other_pronoun_and_their_verbs_agree() -> None:
    texts = [item.text for item in (*WITH_PRONOUNS, *EMBEDDED["assignment"]) if getattr(item, "family", "xe") == "xe"]
    assert [text for text in texts if OTHER_THIRD_PERSON.search(text)] == []
    assert [item.text for item in WITH_PRONOUNS if SINGULAR.search(item.text)] == []
    assert [item.text for item in WITH_PRONOUNS if item.family == "they" and verb_after_they(item.text)] == []
    assert verb_after_they("they also walks home") == ["walks"]
    for config in ("recognition", "continuation", "math"):
        for row in rows_of(config):
            # No slot is contracted, and nothing is done by a reflexive.
            assert not re.search(r"'s\||'re\}|\bby \{ref\}", row["text"] + row.get("solution", "")), row["id"]


def test_embedded_answers_are_those_of_their_sums() -> None:
    assert len(rows_of("math")) == 44
    for row in rows_of("math"):
        assert set(row["check"]) <= set("0123456789.+-*/() "), row["id"]
        assert eval(row["check"]) == pytest.approx(float(row["answer"])), row["id"]
        assert parse(row["solution"] if "{" in row["solution"] else row["text"])


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.gifi", *arguments, cwd=folder)


@pytest.mark.slow
def test_the_plain_command_builds_four_configs(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert "math/test: 484 rows, 44 templates" in done.stdout
    folder = tmp_path / "out/datasets/gifi"
    manifest = read_manifest(folder)
    shapes = {"recognition": "recognition", "continuation": "continuation", "assignment": "assignment"}
    assert {entry.config: entry.item_shape for entry in manifest.splits} == shapes | {"math": "word_problem"}
    assert list(problems(folder)) == []
    assert run(tmp_path, "--overwrite", "--limit", "200").returncode == 0
    shorter = {entry.config: entry.n_items for entry in read_manifest(folder).splits}
    assert shorter == {"recognition": 66, "continuation": 66, "assignment": 6, "math": 55}


@pytest.mark.slow
def test_bad_arguments_are_one_line_and_leave_nothing(tmp_path: Path) -> None:
    for option, value, message in (
        ("--compat", "gifi-repo", "only --source gifi has published strings"),
        ("--revision", "abc", "--source embedded is not read from the Hub"),
        ("--limit", "20", "one template from each of recognition/test"),
    ):
        done = run(tmp_path, option, value)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {option} {value}: {message}")
        assert without_progress(done.stderr).count("\n") == 1
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_published_templates_are_built_both_ways(shared_data: Path, tmp_path: Path) -> None:
    source = str(shared_data / "gifi" / "template")
    assert run(tmp_path, "--source", "gifi", "--input", source).returncode == 0
    done = run(tmp_path, "--source", "gifi", "--input", source, "--compat", "gifi-repo")
    assert "552 wrong_case" in done.stdout
    repaired, compat = (tmp_path / "out/datasets" / name for name in ("gifi-published", "gifi-published-compat"))
    assert list(problems(repaired)) == list(problems(compat)) == []
    assert sum(entry.n_items for entry in read_manifest(compat).splits) == 5700
    assert [(entry.rule, entry.n) for entry in read_manifest(repaired).rejects] == [("unclear_pronoun", 4)]
    card = (repaired / "README.md").read_text(encoding="utf-8")
    assert yaml.safe_load(card.split("---\n")[1])["license"] == ["cc-by-sa-4.0", "apache-2.0", "mit"]
