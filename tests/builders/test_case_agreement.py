"""Two readers of the case of him, his and her, on made sentences and on the published file where it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from builders.synthbias.checks import Sentence, all_findings
from builders.synthbias.checks.case_checks import case_by_phrase, case_readings
from builders.synthbias.published_csv import parse

CASE_CHECKS = ("pronoun_case_error", "pronoun_case_review")
SAMPLE = Path(__file__).parents[1] / "data" / "pronoun_case_sample.json"

HIM = "accusative"
HIS = "possessive_dependent"


@pytest.mark.parametrize(
    ("before", "after", "case"),
    [
        ("The nurse thanked", ".", HIM),
        ("The nurse thanked", "for the lift.", HIM),
        ("The nurse thanked", "warmly.", HIM),
        ("The nurse admired", "warmly decorated flat.", HIS),
        ("The nurse admired", "lovely flat.", HIS),
        ("The nurse forgot", "own umbrella.", HIS),
        ("The noise made", "wonder about the roof.", HIM),
        ("The noise made", "very nervous.", HIM),
        ("The paint made", "most recent picture brighter.", HIS),
        ("The joke made", "laugh.", HIM),
        ("The crowd heard", "laugh.", HIS),
        ("The map helped", "plan ahead.", HIM),
        ("The map helped", "team.", HIS),
        ("The nurse found", "helpful.", HIM),
        ("The nurse found", "keys.", HIS),
        ("The nurse saw", "climbing the ladder.", HIM),
        ("The nurse praised", "cooking.", HIS),
        ("The nurse wished", "luck.", HIM),
        ("The nurse wished", "sister a good night.", HIS),
        ("The nurse gave", "dog a bone.", HIS),
        ("The nurse offered", "help to the neighbours.", HIS),
        ("The nurse offered", "help.", None),
        ("The nurse made", "coffee.", None),
        ("A bus drove", "home.", HIM),
    ],
)
def test_the_phrase_behind_a_pronoun_tells_its_case(before: str, after: str, case: str | None) -> None:
    assert case_by_phrase(before, after) == case


def test_the_readers_see_different_things() -> None:
    assert case_readings("The nurse wished", "luck.") == (HIS, HIM)
    assert case_readings("The nurse made", "laugh.") == (None, HIM)


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


@pytest.fixture(scope="module")
def alarms(shared_data: Path) -> dict[int, str]:
    """The check that speaks, by line of the published file."""
    path = shared_data / "synthbias" / "synthbias_data.csv"
    rows = parse(path.read_bytes(), name=path.name)
    found = [finding for row in rows for finding in all_findings(row, CASE_CHECKS)]
    return {int(str(finding.line)): finding.check for finding in found}


@pytest.mark.slow
def test_every_line_found_by_hand_is_found_and_none_stands_in_the_code(
    alarms: dict[int, str], shared_data: Path
) -> None:
    path = shared_data.parent / "specs" / "synthbias_findings.json"
    if not path.is_file():
        pytest.skip("../shared/data has no findings file beside it")
    rules = {rule["id"]: rule for rule in json.loads(path.read_text(encoding="utf-8"))["rules"]}
    by_hand = [*rules["R13a_swap_error_him_for_his"]["lines"], *rules["R13b_swap_error_his_for_him"]["lines"]]
    assert len(by_hand) == 48
    assert Counter(alarms.get(line) for line in by_hand) == {"pronoun_case_error": 31, "pronoun_case_review": 17}
    # Both readers agree nowhere else.
    assert Counter(alarms.values()) == {"pronoun_case_error": 31, "pronoun_case_review": 164}
    code = "".join(file.read_text(encoding="utf-8") for file in (Path(__file__).parents[2] / "builders").rglob("*.py"))
    assert not [line for line in by_hand if str(line) in code]


@pytest.mark.slow
def test_false_alarms_are_rare_on_a_labelled_sample(alarms: dict[int, str]) -> None:
    labels = json.loads(SAMPLE.read_text(encoding="utf-8"))["labels"]
    assert {label: len(lines) for label, lines in labels.items()} == {"right": 297, "either": 3, "wrong": 0}
    false = [line for line in labels["right"] if line in alarms]
    assert len(false) == 8
    assert len(false) / len(labels["right"]) <= 0.05
    assert not [line for line in false if alarms[line] == "pronoun_case_error"]
