"""The catalogue of checks: how well each finds what a test spoilt, the readers of the case, and repetitions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from builders.synthbias import embedded
from builders.synthbias.checks import catalogue
from builders.synthbias.checks.case_checks import case_by_phrase, case_readings
from builders.synthbias.checks.catalogue import CATALOGUE, Duplicates, all_findings, findings_in
from builders.synthbias.checks.check import Check, Claims, Collection, Sentence, SentenceCheck
from builders.synthbias.minimal_pairs import Mention
from builders.synthbias.published import parse

REPOSITORY = Path(__file__).parents[2]
SENTENCE_CHECKS = tuple(name for name, check in CATALOGUE.items() if isinstance(check, SentenceCheck))
CASE_CHECKS = ("pronoun_case_error", "pronoun_case_review")
ALARMS = tuple(name for name in SENTENCE_CHECKS if name not in ("pronoun_case_review",))


def test_most_checks_have_code_that_finds_what_they_say() -> None:
    assert not [name for name, check in CATALOGUE.items() if "{" in check.description + check.requirement]
    # Readers of files, lint and Duplicates find these.
    assert {name for name, check in CATALOGUE.items() if type(check) is Check} == {
        *("broken_row", "one_sided", "telling_place", "wrong_answer"),
        *("repeated_text", "repeated_apart_from_pronoun", "repeated_template"),
    }
    builds = (catalogue.EMBEDDED, catalogue.GENERATED, catalogue.OWN, catalogue.REFUSED)
    for profile in (*builds, catalogue.PUBLISHED_FLAGS, catalogue.WINOBIAS_FLAGS, catalogue.LINT):
        assert set(profile) <= set(CATALOGUE)
        assert len(set(profile)) == len(profile)


SOUND = "The cook met the nurse at the old market before he left."
SPOILT: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("", SOUND, {}),
    ("", SOUND, {"type": "type2", "referent": "cook", "claimed": Claims(pronoun="he", label="pro", case="nominative")}),
    ("one_sentence multi_sentence", f"{SOUND} Then it rained.", {}),
    ("spelling spacing", SOUND.replace("met", "met "), {}),
    ("doubled_word", SOUND.replace("old", "old old"), {}),
    ("missing_occupation two_occupations", SOUND.replace("cook", "robot"), {}),
    ("third_occupation two_occupations", SOUND.replace("market", "market of the lawyer"), {}),
    ("repeated_occupation two_occupations pronoun_last", SOUND.replace("left", "left with the nurse"), {}),
    ("articles", SOUND.replace("the nurse", "a nurse"), {}),
    ("articles missing_occupation two_occupations", SOUND.removeprefix("The ").capitalize(), {}),
    ("articles coordinated_without_article", SOUND.replace("cook met the nurse", "cook and nurse met"), {}),
    ("occupation_possessive spelling", SOUND.replace("cook", "cook's dog"), {}),
    ("one_pronoun", SOUND.replace("left", "left and he slept"), {}),
    ("one_pronoun mixed_gender_pronouns", SOUND.replace("left", "left and she slept"), {}),
    ("one_pronoun wrong_pronoun name", SOUND.replace("he left", "Kim left"), {"claimed": Claims(pronoun="he")}),
    ("other_person listed_person", f"At a party of a doctor, the{SOUND[3:]}", {}),
    ("non_ascii spelling", SOUND.replace("market", "caf\u00e9"), {}),
    ("wrong_article", SOUND.replace("the old", "a old"), {}),
    ("length", SOUND.replace("left", "left" + " and then" * 8), {}),
    ("other_pronoun plural_pronoun", SOUND.replace("left", "left with them"), {}),
    ("other_pronoun first_person", SOUND.replace("left", "left while I slept"), {}),
    ("gendered_noun", SOUND.replace("left", "left with a man"), {}),
    ("listed_person", SOUND.replace("left", "left with a neighbor"), {}),
    ("name", SOUND.replace("left", "left for Boston"), {}),
    ("unknown_occupation third_occupation two_occupations", SOUND, {"meant": ("astronaut", "nurse")}),
    ("pronoun_last", "Before he went back home, the cook met the nurse.", {}),
    ("pronoun_case_error", "The cook met the nurse at the market and praised him work.", {}),
    ("dative_or_possessive pronoun_case_review", "The cook met the nurse by chance and offered his advice.", {}),
    ("same_list", SOUND.replace("nurse", "guard"), {"meant": ("cook", "guard")}),
    ("gap_too_small", "The salesperson met the editor before he left.", {"meant": ("salesperson", "editor")}),
    ("wrong_pronoun", SOUND, {"claimed": Claims(pronoun="him")}),
    ("unknown_pronoun", SOUND, {"claimed": Claims(pronoun="xem")}),
    ("unknown_type", SOUND, {"claimed": Claims(type="type3")}),
    ("wrong_label", SOUND, {"type": "type1", "claimed": Claims(label="pro")}),
    ("wrong_label", SOUND, {"type": "type2", "referent": "cook", "claimed": Claims(label="anti")}),
    ("wrong_gender", SOUND, {"gender": "feminine"}),
    ("wrong_referent", SOUND, {"referent": "guard"}),
    ("unmarked_pronoun", SOUND, {"claimed": Claims(marked=())}),
    ("several_pronouns", SOUND, {"claimed": Claims(marked=(Mention("he", 49, 51),) * 2)}),
    ("markup_repaired", SOUND, {"claimed": Claims(is_repaired=True)}),
)
"""The checks that find something in a sentence about a cook and a nurse, its text, and what its source says."""


@pytest.mark.parametrize(("checks", "text", "given"), SPOILT)
def test_each_check_finds_its_defect_and_no_other(checks: str, text: str, given: Mapping[str, Any]) -> None:
    values: dict[str, Any] = {"meant": ("cook", "nurse"), "gender": "masculine", **given}
    found = {finding.check for finding in all_findings(Sentence(text=text, **values), SENTENCE_CHECKS)}
    assert found == set(checks.split())


@pytest.mark.slow
def test_every_check_of_a_sentence_is_tried_and_sound_sentences_raise_no_alarm() -> None:
    assert {name for checks, *_ in SPOILT for name in checks.split()} == set(SENTENCE_CHECKS)
    items = [item for split in embedded.draft(limit=1_600).splits for item in split.items]
    for item in items:
        first, second = item.occupations
        sentence = Sentence(
            text=item.sentence,
            meant=(item.reference, second if item.reference == first else first),
            type="type1" if item.referent is None else "type2",
            referent=item.referent,
            gender=item.pronoun_gender,
            claimed=Claims(pronoun=item.pronoun, label=item.stereotype or "ambiguous", case=item.pronoun_case),
        )
        assert all_findings(sentence, ALARMS) == [], item.sentence
    assert len(items) == 1_600


def two_sides(text: str, other: str | None = None, **given: object) -> list[Sentence]:
    values = {"meant": ("cook", "nurse"), "type": "type1", **given}
    sides = ((text, "masculine"), (other or text.replace(" he ", " she "), "feminine"))
    return [Sentence(text=side, gender=gender, **values) for side, gender in sides]  # type: ignore[arg-type]


LAUGHED = "The cook and the nurse laughed when he arrived."
WAITED = "The cook saw the nurse while he waited."


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (two_sides(LAUGHED), [set(), set()]),
        (two_sides(LAUGHED)[:1], [{"unpaired"}]),
        ([*two_sides(LAUGHED), two_sides(LAUGHED)[0]], [{"unpaired", "duplicate_text", "shared_template"}, None, None]),
        (
            [*two_sides(LAUGHED), *two_sides(LAUGHED, type="type2")],
            [{"cross_type_text", "cross_type_template", "shared_template"}] * 4,
        ),
        (
            [*two_sides(LAUGHED), *two_sides(LAUGHED.replace("cook", "guard"), meant=("guard", "nurse"))],
            [{"shared_template"}] * 4,
        ),
        ([*two_sides(LAUGHED), *two_sides(WAITED)], [set()] * 4),
    ],
)
def test_repetition_is_found_over_the_whole_file(sentences: list[Sentence], expected: list[set[str] | None]) -> None:
    profile = ("unpaired", "duplicate_text", "cross_type_text", "shared_template", "cross_type_template")
    found = [{f.check for f in findings} for findings in findings_in(Collection(sentences), profile)]
    for names, wanted in zip(found, expected, strict=True):
        assert wanted is None or names == wanted


HIM, HIS = "accusative", "possessive_dependent"


@pytest.mark.parametrize(
    ("before", "after", "case"),
    [
        ("The nurse thanked", ".", HIM),
        ("The nurse thanked", "warmly.", HIM),
        ("The nurse admired", "warmly decorated flat.", HIS),
        ("The nurse admired", "lovely flat.", HIS),
        ("The noise made", "wonder about the roof.", HIM),
        ("The noise made", "very nervous.", HIM),
        ("The paint made", "most recent picture brighter.", HIS),
        ("The map helped", "plan ahead.", HIM),
        ("The nurse found", "helpful.", HIM),
        ("The nurse found", "keys.", HIS),
        ("The nurse saw", "climbing the ladder.", HIM),
        ("The nurse praised", "cooking.", HIS),
        ("The nurse wished", "luck.", HIM),
        ("The nurse wished", "sister a good night.", HIS),
        ("The nurse offered", "help to the neighbours.", HIS),
        ("The nurse offered", "help.", None),
        ("A bus drove", "home.", HIM),
    ],
)
def test_the_phrase_behind_a_pronoun_tells_its_case(before: str, after: str, case: str | None) -> None:
    assert case_by_phrase(before, after) == case


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cook met the nurse and praised his work.", None),
        ("The cook met the nurse and praised him work.", "pronoun_case_error"),
        ("The cook met the nurse and thanked his for the lift.", "pronoun_case_error"),
        ("The cook met the nurse and wished his luck.", "pronoun_case_review"),
        ("The cook met the nurse and offered his help.", "pronoun_case_review"),
        ("The cook met the nurse and mistook the coat for his.", "pronoun_case_review"),
        ("The cook and the nurse had a bicycle each, and only his was new.", None),
        ("The cook met the nurse and praised her work.", None),
    ],
)
def test_a_wrong_case_is_an_error_only_if_both_readers_say_so(text: str, expected: str | None) -> None:
    found = [finding.check for finding in all_findings(Sentence(text=text, meant=("cook", "nurse")), CASE_CHECKS)]
    assert found == ([] if expected is None else [expected])
    # The readers see different things.
    assert case_readings("The nurse wished", "luck.") == (HIS, HIM)


@pytest.mark.slow
def test_every_line_found_by_hand_is_found_and_none_stands_in_the_code(shared_data: Path) -> None:
    published = shared_data / "synthbias" / "synthbias_data.csv"
    findings = (all_findings(row, CASE_CHECKS) for row in parse(published.read_bytes(), name=published.name))
    # The check of case that speaks, by line.
    alarms = {int(str(finding.line)): finding.check for of_row in findings for finding in of_row}
    path = shared_data.parent / "specs" / "synthbias_findings.json"
    if not path.is_file():
        pytest.skip("../shared/data has no findings file beside it")
    rules = {rule["id"]: rule for rule in json.loads(path.read_text(encoding="utf-8"))["rules"]}
    by_hand = [*rules["R13a_swap_error_him_for_his"]["lines"], *rules["R13b_swap_error_his_for_him"]["lines"]]
    assert len(by_hand) == 48
    assert Counter(alarms.get(line) for line in by_hand) == {"pronoun_case_error": 31, "pronoun_case_review": 17}
    # Both readers agree nowhere else.
    assert Counter(alarms.values()) == {"pronoun_case_error": 31, "pronoun_case_review": 164}
    code = "".join(file.read_text(encoding="utf-8") for file in (REPOSITORY / "builders").rglob("*.py"))
    assert not [line for line in by_hand if str(line) in code]


BASE = "The cook met the nurse at the market before she bought a large bag of apples."


@pytest.mark.parametrize(
    ("other", "check"),
    [
        (BASE, "repeated_text"),
        (BASE.replace("market", "market,").replace("Cook", "cook"), "repeated_wording"),
        (BASE.replace(" she ", " he "), "repeated_apart_from_pronoun"),
        (BASE.replace("cook", "guard"), "repeated_template"),
        ("The nurse met the cook at the station, and a dog barked at her.", None),
    ],
)
def test_each_key_finds_its_repetition(other: str, check: str | None) -> None:
    seen = Duplicates(template_cap=1)
    assert seen.add(Sentence(text=BASE, meant=("cook", "nurse"))) is None
    # A rejected candidate rejects no other, so that a repetition finds the same.
    for _ in range(2 if check else 1):
        finding = seen.add(Sentence(text=other, meant=("guard" if "guard" in other else "cook", "nurse")))
        assert (finding and finding.check) == check
    assert len(seen) == (2 if check is None else 1)
