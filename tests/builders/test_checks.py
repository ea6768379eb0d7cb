"""The catalogue of checks: names, profiles, and how well each finds what a test spoilt."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from builders.synthbias.checks import CATALOGUE, EMBEDDED, GENERATED, Sentence, all_findings, first_finding
from builders.synthbias.checks.catalogue import LINT, OLDER_NAMES, PUBLISHED_FLAGS, REFUSED, WINOBIAS_FLAGS, findings_in
from builders.synthbias.checks.check import SEVERITIES, Check, FileCheck, PairCheck, SentenceCheck
from builders.synthbias.checks.sentence import Claims, Collection, PairIndices
from tests.builders.synthbias_corruptions import SPOILT_CASE, Spoilt, sound_sentences, spoilt_sentences

PACKAGE = Path(__file__).parents[2] / "builders" / "synthbias"
SENTENCE_CHECKS = tuple(name for name, check in CATALOGUE.items() if isinstance(check, SentenceCheck))
CASE_CHECKS = {"pronoun_case_error", "pronoun_case_review"}


def test_no_other_rule_has_the_name_of_a_check() -> None:
    rules = {
        name
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r'Rule\(\s*name="(\w+)"', path.read_text(encoding="utf-8"))
    }
    assert rules.isdisjoint(CATALOGUE)


def test_each_check_says_what_it_finds_and_most_have_code_that_finds_it() -> None:
    for check in CATALOGUE.values():
        assert check.description
        assert check.requirement
        assert check.certainty in ("exact", "heuristic")
        assert "{" not in check.description + check.requirement
    assert {type(check) for check in CATALOGUE.values()} == {Check, SentenceCheck, PairCheck, FileCheck}
    # Readers of files, lint and Duplicates find these.
    assert {name for name, check in CATALOGUE.items() if type(check) is Check} == {
        *("broken_file", "broken_row", "one_sided", "telling_place", "wrong_answer", "near_duplicate"),
        *("repeated_text", "repeated_apart_from_pronoun", "repeated_template"),
    }


def test_every_profile_names_checks_of_the_catalogue_and_none_twice() -> None:
    for profile in (EMBEDDED, GENERATED, REFUSED, PUBLISHED_FLAGS, WINOBIAS_FLAGS, LINT):
        assert set(profile) <= set(CATALOGUE)
        assert len(set(profile)) == len(profile)
    assert {name for names in OLDER_NAMES.values() for name in names} <= set(CATALOGUE)
    assert {check.severity for check in CATALOGUE.values()} == set(SEVERITIES)


def named(names: set[str]) -> set[str]:
    """Take the two checks of case for one."""
    return {SPOILT_CASE if name in CASE_CHECKS else name for name in names}


@pytest.fixture(scope="module")
def examined() -> list[tuple[frozenset[str], set[str]]]:
    """The checks that should and those that do find something, for sound and for spoilt sentences."""
    sound = sound_sentences()
    rng = random.Random(0)
    cases = [Spoilt(sentence, frozenset()) for sentence in sound]
    cases += [found for sentence in sound[::4] for found in spoilt_sentences(sentence, rng)]
    assert len(cases) > 5_000
    return [(case.expected, named({f.check for f in all_findings(case.sentence, SENTENCE_CHECKS)})) for case in cases]


@pytest.mark.slow
@pytest.mark.parametrize("check", sorted({*SENTENCE_CHECKS, SPOILT_CASE} - CASE_CHECKS))
def test_precision_and_recall_on_spoilt_sentences(check: str, examined: list[tuple[frozenset[str], set[str]]]) -> None:
    wanted = sum(check in expected for expected, _ in examined)
    found = sum(check in names for _, names in examined)
    both = sum(check in expected and check in names for expected, names in examined)
    assert wanted >= 20
    assert both / wanted >= 0.95
    assert both / found >= 0.95


def test_building_takes_the_first_finding_and_flagging_all() -> None:
    sentence = Sentence(text="The nurse met a man and the guard before he left them.", meant=("nurse", "guard"))
    assert [finding.check for finding in all_findings(sentence, EMBEDDED)] == ["other_pronoun", "gendered_noun"]
    first = first_finding(sentence, EMBEDDED)
    assert first is not None
    assert (first.check, first.severity, first.reason) == ("other_pronoun", "warning", "has the pronoun 'them'")


def two_sides(text: str, other: str | None = None, **given: object) -> list[Sentence]:
    values = {"meant": ("cook", "nurse"), "type": "type1", **given}
    other = other or text.replace(" he ", " she ")
    return [
        Sentence(text=side, gender=gender, **values)  # type: ignore[arg-type]
        for side, gender in ((text, "masculine"), (other, "feminine"))
    ]


LAUGHED = "The cook and the nurse laughed when he arrived."
WAITED = "The cook saw the nurse while he waited."


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (two_sides(LAUGHED), [set(), set()]),
        (two_sides(LAUGHED)[:1], [{"unpaired"}]),
        ([*two_sides(LAUGHED), two_sides(LAUGHED)[0]], [{"unpaired", "duplicate_text", "shared_template"}, None, None]),
        ([*two_sides(LAUGHED), *two_sides(LAUGHED, type="type2")], [{"cross_type_text", "cross_type_template"}] * 4),
        ([*two_sides(LAUGHED), *two_sides(LAUGHED.replace("cook", "guard"), meant=("guard", "nurse"))], [set()] * 4),
        ([*two_sides(LAUGHED), *two_sides(WAITED)], [set()] * 4),
    ],
)
def test_repetition_is_found_over_the_whole_file(sentences: list[Sentence], expected: list[set[str] | None]) -> None:
    profile = ("unpaired", "duplicate_text", "cross_type_text", "shared_template", "cross_type_template")
    found = [{f.check for f in findings} for findings in findings_in(Collection(sentences), profile)]
    shared = {"shared_template"} if len(sentences) == 4 and sentences[2].text != WAITED else set()
    for names, wanted in zip(found, expected, strict=True):
        assert wanted is None or names == wanted | shared


def test_two_sides_are_compared_where_the_source_pairs_them() -> None:
    pairs = [PairIndices(0, 1)]
    differing = Collection(two_sides(LAUGHED, "The cook and the nurse cried when she arrived."), pairs)
    assert [[f.check for f in found] for found in findings_in(differing, ("not_minimal_pair",))] == [
        ["not_minimal_pair"],
        ["not_minimal_pair"],
    ]
    case = Collection(two_sides("The cook met the nurse at his door.", "The cook met the nurse at she door."), pairs)
    reason = "has 'his' where its counterpart has 'she': one is in the wrong case"
    assert {f.reason for found in findings_in(case, ("not_minimal_pair",)) for f in found} == {reason}


def test_a_label_follows_from_referent_and_pronoun() -> None:
    settled = two_sides(WAITED, type="type2", referent="cook", claimed=Claims(label="pro"))
    assert [[f.reason for f in all_findings(side, ("wrong_label",))] for side in settled] == [
        [],
        ["label 'pro' contradicts the lexicon, which says anti for 'she' as 'cook'"],
    ]
