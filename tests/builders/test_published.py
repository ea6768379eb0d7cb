"""The published SynthBias: parsing and pairing on made-up rows, counts on the real file where it is."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import DataError
from builders.dataset.output import Draft, write_dataset
from builders.synthbias import PUBLISHED_SHA256, published
from builders.synthbias.checks.catalogue import PUBLISHED_FLAGS, findings_in
from builders.synthbias.checks.check import Collection
from builders.synthbias.minimal_pairs import take_pairs
from builders.synthbias.published import parse
from schemas.items.coreference import CoreferenceItem

HEADER = ("type", "sample", "occ_1", "occ_2", "pronoun", "is_stereotypical")
ROWS = (
    ("type1", "The cook and the nurse laughed when he arrived.", "cook", "nurse", "he", "ambiguous"),
    ("type1", "The cook and the nurse laughed when she arrived.", "cook", "nurse", "she", "ambiguous"),
    ("type2", "The cook asked the nurse to call him, please.", "cook", "nurse", "him", "True"),
    ("type2", "The cook asked the nurse to call her, please.", "cook", "nurse", "her", "False"),
    ("type2", "The cook thanked the nurse for his advice.", "nurse", "cook", "his", "False"),
    ("type2", "The cook thanked the nurse for her advice.", "nurse", "cook", "her", "True"),
)


def as_csv(rows: Iterable[Sequence[str]], header: Sequence[str] = HEADER, delimiter: str = ",") -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows([header, *rows])
    return text.getvalue().encode()


def items_of(rows: list[tuple[str, ...]]) -> tuple[CoreferenceItem, ...]:
    return published.pair(Collection(parse(as_csv(rows), name="made-up.csv"))).items


def test_rows_become_items_with_pairs_referents_and_cases() -> None:
    items = items_of(list(ROWS))
    assert [item.sentence for item in items] == [row[1] for row in ROWS]
    assert [item.pair_id for item in items[::2]] == [item.pair_id for item in items[1::2]]
    assert len({item.pair_id for item in items}) == 3
    assert [(item.referent, item.reference, item.stereotype) for item in items] == [
        *[(None, "cook", None)] * 2,
        *(("cook", "cook", "pro"), ("cook", "cook", "anti"), ("nurse", "nurse", "anti"), ("nurse", "nurse", "pro")),
    ]
    cases = ("nominative", "accusative", "possessive_dependent")
    assert [item.pronoun_case for item in items] == [case for case in cases for _ in range(2)]
    assert {item.cluster for item in items} == {"cook|nurse"}
    assert {item.occupations for item in items} == {("cook", "nurse")}
    assert [item.source_row for item in items] == [f"synthbias_data.csv:{line}" for line in range(2, 8)]
    for item in items:
        assert item.sentence[item.pronoun_start :].startswith(item.pronoun)
    # The same text about the other occupation is another pair.
    other_way = [(row[0], row[1], row[3], row[2], *row[4:]) for row in ROWS[:2]]
    items = items_of([*ROWS[:2], *other_way])
    assert len({item.pair_id for item in items}) == 2
    assert all("duplicate_text" in item.flags for item in items)


def test_rows_are_named_by_physical_lines_and_one_without_counterpart_is_a_reject() -> None:
    first = ("type1", "The cook and the nurse laughed\nwhen he arrived.", *ROWS[0][2:])
    parsed = parse(as_csv([first, *ROWS[1:3]]), name="made-up.csv")
    assert [row.line for row in parsed] == [2, 4, 5]
    # A row without counterpart is a reject that shows no text.
    paired = published.pair(Collection(parse(as_csv(ROWS[:5]), name="made-up.csv")))
    assert len(paired.items) == 4
    (reject,) = paired.rejects
    assert (reject.candidate, reject.rule, reject.source_row) == ("", "unpaired", "synthbias_data.csv:6")


def test_each_peculiarity_is_flagged_and_kept() -> None:
    odd = "The cook and nurse's friend of the store manager smiled and gave his dog a bone."
    rows = parse(as_csv([("type1", odd, "cook", "nurse", "his", "ambiguous"), ROWS[0]]), name="made-up.csv")
    found = [{finding.check for finding in of} for of in findings_in(Collection(rows), PUBLISHED_FLAGS)]
    assert found == [
        {"third_occupation", "occupation_possessive", "coordinated_without_article", "dative_or_possessive"},
        set(),
    ]


def broken(column: int, value: str) -> bytes:
    row = list(ROWS[2])
    row[column] = value
    return as_csv([ROWS[0], tuple(row)])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b" \r\n", r"^f\.csv: is empty; use data/synthbias_data\.csv of"),
        (as_csv([]), r"^f\.csv: has a header and no rows"),
        (as_csv([tuple("abcde")], HEADER[:2] + HEADER[3:]), r"^f\.csv:1: column occ_1 is missing; have: type, samp"),
        (as_csv(list(ROWS[:1])) + b"type1,caf\xe9,cook,nurse,he,ambiguous\r\n", r"^f\.csv:3: byte 0xe9 is not UTF-8"),
        (as_csv([("type1", "too short")]), r"^f\.csv:2: has 2 fields, the header 6"),
        (as_csv([]) + b'type1,"never closed\r\n', r"^f\.csv:2: is not CSV \("),
        (broken(0, "type3"), r"^f\.csv:3: type 'type3' is not allowed; have: type1, type2"),
        (broken(4, "xem"), r"^f\.csv:3: pronoun 'xem' is not in the lexicon; have: he, him, "),
        (broken(4, "his"), r"^f\.csv:3: pronoun 'his' is not the one pronoun of the sentence; it has: him"),
        (broken(2, "astronaut"), r"^f\.csv:3: occupation 'astronaut' is not in the lexicon; have: CEO, "),
        (broken(3, "teacher"), r"^f\.csv:3: 'teacher' stands 0 times in the sentence, not once"),
        (broken(5, "False"), r"^f\.csv:3: label 'anti' contradicts the lexicon, which says pro for 'him' as 'cook'"),
        (
            as_csv([("type1", "The cook and the guard met him.", "cook", "guard", "him", "ambiguous")]),
            r"^f\.csv:2: 'cook' and 'guard' are both male-stereotyped, a pair has one of each list",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_of_one_line_with_a_remedy(raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        parse(raw, name="f.csv")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("as it was published")


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_bytes(as_csv(list(ROWS)))
    with pytest.raises(DataError, match=rf"mine\.csv: sha256 .* is not the published file's {PUBLISHED_SHA256}"):
        published.draft(tmp_path / "mine.csv", limit=None)


@pytest.fixture(scope="module")
def real(shared_data: Path) -> Draft[CoreferenceItem]:
    return published.draft(shared_data / "synthbias" / "synthbias_data.csv", limit=None)


@pytest.mark.slow
def test_the_published_file_gives_every_row_in_complete_pairs(real: Draft[CoreferenceItem]) -> None:
    items = [item for split in real.splits for item in split.items]
    assert {split.config: len(split.items) for split in real.splits} == {"type1": 14_120, "type2": 17_608}
    assert real.rejects == ()
    assert Counter(Counter(item.pair_id for item in items).values()) == {2: 15_864}
    assert len({item.item_id for item in items}) == 31_728
    assert len({item.cluster for item in items}) == 395
    assert Counter(item.stereotype for item in items) == {None: 14_120, "pro": 8_804, "anti": 8_804}
    assert all(item.pronoun_case is not None for item in items)
    last = sum(item.referent == item.occupations[1] for item in items if item.referent is not None)
    assert round(last / 17_608, 3) == 0.703


@pytest.mark.slow
def test_flags_agree_with_the_findings_about_the_published_file(
    real: Draft[CoreferenceItem], shared_data: Path
) -> None:
    path = shared_data.parent / "specs" / "synthbias_findings.json"
    if not path.is_file():
        pytest.skip("../shared/data has no findings file beside it")
    rules = {rule["id"]: rule for rule in json.loads(path.read_text(encoding="utf-8"))["rules"]}
    lines: dict[str, set[int]] = {}
    for split in real.splits:
        for item in split.items:
            for flag in item.flags:
                lines.setdefault(flag, set()).add(int(str(item.source_row).rpartition(":")[2]))
    by_lines = {
        "third_occupation": "R2_exactly_two_of_the_40_occupations",
        "first_person": "R3c_no_first_person_I",
        "multi_sentence": "R10c_multi_sentence",
        "dative_or_possessive": "R13c_dative_possessive_ambiguity (offered/gave/... his N)",
        "other_person": "R14_other_singular_human_noun_before_pronoun",
    }
    for flag, rule in by_lines.items():
        assert lines[flag] == set(rules[rule]["lines"]), flag
    for flag, rule in (
        ("duplicate_text", "R9a_exact_duplicate_same_type"),
        ("cross_type_text", "R9b_same_text_in_type1_and_type2 (contradictory label)"),
    ):
        assert lines[flag] == {line for group in rules[rule]["lines"] for line in group}
    assert len(lines["occupation_possessive"]) == rules["R11b_occupation_possessive"]["rows"]
    assert len(lines["coordinated_without_article"]) == rules["R11c_coordinated_noun_without_article"]["rows"]
    assert len(lines["cross_type_template"]) == rules["R9c_same_template_both_types"]["rows"]
    assert len(lines["shared_template"]) == 2 * rules["R9d_template_shared_by_2plus_pairs"]["pairs"]


@pytest.mark.slow
def test_the_folder_carries_the_licence_and_refuses_to_be_published(
    real: Draft[CoreferenceItem], shared_data: Path, tmp_path: Path
) -> None:
    draft = replace(real, splits=take_pairs(real.splits, 20))
    manifest = write_dataset(draft, tmp_path / "d")
    licence = (shared_data / "synthbias" / "LICENSE_DATA").read_bytes()
    assert (tmp_path / "d" / "LICENSE_DATA").read_bytes() == licence
    assert manifest.redistributable is False
    assert "CC BY-NC-ND 4.0" in str(manifest.publish_refusal)
    assert "**must not be republished**" in (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
