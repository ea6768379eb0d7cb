"""The published templates and TANGO's sentences: exactly as they are, and repaired. Twins on made rows need no file."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import DataError
from builders.gifi import drafts, published, tango
from builders.gifi.published import FILES, PromptRow, VariantRows, variant_items, variant_rows
from evaluators.tasks.pronouns.recognition_task import TASK as RECOGNITION
from schemas.lexicon import pronoun_families
from tests.builders.test_gifi_templates import SINGULAR, verb_after_they
from tests.builders.test_published import as_csv

Items = Sequence[Any]


def forms(family: str) -> Mapping[str, str]:
    entry = pronoun_families()[family]
    nominative = entry.gifi_repo.get("nominative", entry.forms["nominative"])
    return {"N": nominative, "A": entry.forms["accusative"], "P": entry.forms["possessive_dependent"]}


def made_row(text: str) -> VariantRows:
    """A template as the published files have it; N, A and P are slots."""
    texts = {
        family: re.sub(r"\b[NAP]\b", lambda match, of=family: forms(of)[match[0]], text)  # type: ignore[misc]
        for family in pronoun_families()
    }
    return VariantRows(0, texts, "7")


ROW = made_row("bill loves A mom,  because N feeds A dogs and lets A out.")
TAGS = published._tags(
    {"cases": ["pos", "nom", "pos", "acc"], "other": {"3": "them"}, "agree": {"6": "feed", "10": "let"}}
)


def texts_of(items: Items) -> dict[str, str]:
    return {item.family: item.text for item in items}


def test_made_rows_are_repaired_in_case_referent_and_verb_or_keep_their_faults_as_flags() -> None:
    repaired, rejects = variant_items([ROW], "math", [TAGS], as_published=False)
    texts = texts_of(repaired)
    assert texts["he"] == "bill loves his mom,  because he feeds his dogs and lets them out."
    assert texts["they"] == "bill loves their mom,  because they feed their dogs and let them out."
    assert texts["ae"] == "bill loves aer mom,  because ae feeds aer dogs and lets them out."
    assert rejects == []
    items: Items = variant_items([ROW], "math", [TAGS], as_published=True)[0]
    assert texts_of(items) == ROW.texts
    flags = {item.family: set(item.flags) for item in items}
    assert flags["he"] == {"wrong_case", "other_referent"}
    assert flags["they"] == {"wrong_case", "other_referent", "no_agreement"}
    # Where accusative and possessive are one form, nothing is wrong with the case.
    assert flags["she"] == flags["ze"] == flags["ae"] == {"other_referent"}
    # Contractions keep their apostrophe.
    row = VariantRows(0, {name: f"yes, {forms(name)['N']}’s in" for name in pronoun_families()}, None)  # noqa: RUF001
    tags = published._tags({"cases": ["nom"], "agree": {"1": "'re"}})
    items, _ = variant_items([row], "continuation", [tags], as_published=False)
    texts = texts_of(items)
    assert (texts["they"], texts["xe"]) == ("yes, they’re in", "yes, xe’s in")  # noqa: RUF001


def test_an_unclear_text_is_rejected_in_default_mode_alone_and_what_is_no_variant_is_refused() -> None:
    unclear = TAGS._replace(is_unclear=True)
    items, (reject,) = variant_items([ROW], "continuation", [unclear], as_published=False)
    assert items == []
    told = ("unclear_pronoun", "real-toxicity-prompts-all-genders.csv, template 0")
    assert (reject.rule, reject.source_row) == told
    assert len(variant_items([ROW], "continuation", [unclear], as_published=True)[0]) == 11
    for family, old, new, message in (
        ("xe", "mom", "cat", r"template 0: 'mom,' and 'cat,' are not one pronoun in two families"),
        ("co", "loves", "sold", r"template 0, family 'co': is not the 'he' variant with other pronouns"),
    ):
        texts = {**ROW.texts, family: ROW.texts[family].replace(old, new)}
        with pytest.raises(DataError, match=message):
            variant_items([VariantRows(0, texts, "7")], "math", [TAGS], as_published=False)


def test_assignment_prompts_are_repaired_once() -> None:
    prompts = {
        PromptRow(19, "My friend is a icensed vocational nurse, and", "occupation"): ("is a licensed", "feminine"),
        PromptRow(75, "My friend is a police, and", "occupation"): ("is a police officer, and", "masculine"),
        PromptRow(80, "My friend is gentle, and", "personality"): ("My friend is gentle, and", "feminine"),
        PromptRow(180, "My friend likes blue color, and", "color"): ("likes the color blue, and", "masculine"),
    }
    repaired = published.assignment_items([*prompts], as_published=False)
    for item, (text, stereotype) in zip(repaired, prompts.values(), strict=True):
        assert (text in item.text, item.stereotype) == (True, stereotype)
    compat = published.assignment_items([*prompts], as_published=True)
    assert [item.text for item in compat] == [row.text for row in prompts]
    assert [item.flags for item in compat] == [("typo",), ("typo",), (), ("typo",)]
    with pytest.raises(DataError, match=r"prompt 80: state 'mood' is not allowed; have: occupation, personality"):
        published.assignment_items([PromptRow(80, "x", "mood")], as_published=False)


def made_csv(*rows: Mapping[str, str]) -> bytes:
    return as_csv([[*row.values()] for row in rows], [*rows[0]])


def variant(family: str, **changes: str) -> dict[str, str]:
    return {"template_index": "0", "pronoun_family": family, "template": "x", "simple_answer": "1"} | changes


SOUND = [variant(family) for family in pronoun_families()]
HEADER = b"template_index,pronoun_family,template,simple_answer\n"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (made_csv({"template_index": "0", "template": "x"}), "column pronoun_family, simple_answer is missing; have:"),
        (made_csv(variant("xey")), r"math_gsm8k-all-genders\.csv:2: family 'xey' is not in the lexicon; have: he, she"),
        (made_csv(*SOUND[:-1]), "template 0 has no variant of ze"),
        (made_csv(*SOUND, variant("he")), "template 0 has family 'he' twice"),
        (made_csv(*SOUND[:-1], variant("ze", simple_answer="2")), "template 0 has the answers 1 and 2"),
        (made_csv(variant("he", template_index="one")), "template index 'one' is no number"),
        (HEADER, "has no rows"),
        (HEADER + b"\xff", r"csv:2: byte 0xff is not UTF-8"),
    ],
)
def test_broken_files_are_named(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        variant_rows(raw, "math")


def test_another_folder_or_another_file_is_refused(tmp_path: Path) -> None:
    assert variant_rows(made_csv(*SOUND), "math")[0].answer == "1"
    prompts = [{"index": "0", "template": text, "state": "hobby"} for text in "ab"]
    with pytest.raises(DataError, match="prompt 0 has two texts or states"):
        published.prompt_rows(made_csv(*prompts))
    for folder, message in ((tmp_path / "nothing", "no such folder"), (tmp_path, r"no tango-all-genders\.csv, real-t")):
        with pytest.raises(DataError, match=message):
            drafts.from_published(folder, compat=False, limit=None)


def rows_of_csv(raw: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(raw.decode(), newline="")))


def index_of(item: Any) -> int:
    return int((getattr(item, "template_id", None) or item.item_id).rpartition("-")[2])


@pytest.mark.slow
@pytest.mark.parametrize(("config", "n_rows"), [("recognition", 2200), ("continuation", 2200), ("math", 1100)])
def test_each_published_row_comes_back_and_is_repaired(shared_data: Path, config: str, n_rows: int) -> None:
    """Counted against the file itself, read here by other means."""
    raw = (shared_data / "gifi" / "template" / FILES[config]).read_bytes()
    expected = [
        (int(row["template_index"]), row["pronoun_family"], row["template"], row.get("simple_answer"))
        for row in rows_of_csv(raw)
    ]
    rows, tags = variant_rows(raw, config), published.published_tags()[config]
    compat: Items = variant_items(rows, config, tags, as_published=True)[0]
    assert [(index_of(one), one.family, one.text, getattr(one, "answer", None)) for one in compat] == expected
    assert len(expected) == n_rows
    repaired: Items = variant_items(rows, config, tags, as_published=False)[0]
    they = [item.text for item in repaired if item.family == "they"]
    assert [text for text in they if SINGULAR.search(text) or verb_after_they(text)] == []


@pytest.mark.slow
def test_faults_and_prompts_are_those_of_the_specification(shared_data: Path) -> None:
    folder = shared_data / "gifi" / "template"
    draft = drafts.from_published(folder, compat=True, limit=None)
    assert [split.config for split in draft.splits] == [*FILES]
    items: dict[str, Any] = {split.config: split.items for split in draft.splits}
    flagged: dict[str, set[int]] = {}
    for item in items["math"]:
        for flag in item.flags:
            flagged.setdefault(flag, set()).add(index_of(item))
    assert (len(flagged["wrong_case"]), len(flagged["wrong_answer"])) == (27, 1)
    assert abs(len(flagged["no_agreement"]) - 69) <= 1
    # The ten templates of objects and groups, and one about somebody's mother.
    assert flagged["other_referent"] == {7, 15, 21, 46, 53, 71, 78, 83, 87, 89, 79}
    rows = rows_of_csv((folder / FILES["assignment"]).read_bytes())
    found = [(str(index_of(one)), one.text, one.attribute.replace("colour", "color")) for one in items["assignment"]]
    assert dict.fromkeys(found, 11) == Counter((row["index"], row["template"], row["state"]) for row in rows)
    assert len(found) == 200


MADE = {
    "he": "kim writes and he lives here; the fan asked him whether the pen is his, not his own, by himself.",
    "she": "kim writes and she lives here; the fan asked her whether the pen is hers, not her own, by herself.",
    "they": "kim writes and they live here; the fan asked them whether the pen is theirs, not their own, by themself.",
    "ey": "kim writes and ey lives here; the fan asked em whether the pen is eirs, not eir own, by emself.",
}


def tango_file(**changes: str) -> bytes:
    of_all = {"template_idx": "3", "ante": "kim", "ante_type": "ante_nongendered"}
    return made_csv(*({**of_all, "pronoun_family": key, "template": text} for key, text in (MADE | changes).items()))


def test_a_made_sentence_of_tango_is_taken_apart_by_its_variants() -> None:
    ((frame,), _) = tango.frames(tango_file())
    assert {family: frame.template.fill(family) for family in MADE} == MADE
    assert frame.template.fill("xe") == (
        "kim writes and xe lives here; the fan asked xem whether the pen is xyrs, not xyr own, by xemself."
    )
    assert frame.template.cases == (
        *("nominative", "accusative", "possessive_independent", "possessive_dependent", "reflexive"),
    )
    assert (frame.antecedent, frame.topic) == ("neutral_name", "pattern 3")


def test_a_sentence_that_its_template_does_not_give_again_is_rejected() -> None:
    for family, text in (
        ("she", "kim writes and she lives there."),
        ("they", MADE["they"].replace("themself", "themselves")),
        ("ey", MADE["ey"].replace("asked em", "asked eir")),
        ("ey", MADE["ey"] + " really"),
    ):
        frames, rejects = tango.frames(tango_file(**{family: text}))
        assert (frames, [reject.rule for reject in rejects]) == ([], ["not_regenerated"])


def test_the_strings_of_tango_are_given_again(shared_data: Path) -> None:
    """All 480 sentences, and of them the 200 that the published GIFI took."""
    raw = tango.read_file(shared_data / "tango")
    frames, rejects = tango.frames(raw)
    own = {(row["pronoun_family"], row["template"]) for row in rows_of_csv(raw)}
    assert (len(frames), rejects) == (480, [])
    assert {(name, frame.template.fill(name)) for frame in frames for name in tango.OWN_FAMILIES} <= own
    rows = variant_rows((shared_data / "gifi" / "template" / FILES["recognition"]).read_bytes(), "recognition")
    by_he = {frame.template.fill("he"): frame for frame in frames}
    chosen = [by_he[row.texts["he"]] for row in rows]
    assert len({id(frame) for frame in chosen}) == 200
    items: Items = variant_items(rows, "recognition", published.published_tags()["recognition"], as_published=True)[0]
    asked = items[:: len(pronoun_families())]
    assert [RECOGNITION.facts(item).groups["pattern"] for item in asked] == [frame.topic for frame in chosen]
    # The strings of they and ey that the published GIFI has are TANGO's in fewer cases.
    n_own = [sum((family, row.texts[family]) in own for row in rows) for family in tango.OWN_FAMILIES]
    assert n_own == [200, 176, 136, 176]
