"""WinoBias: parsing and flags on made-up lines, counts on the real files where they are."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from pathlib import Path

import pytest

from biasboard.ground.errors import DataError
from builders.dataset.output import Draft
from builders.synthbias import winobias
from builders.synthbias.winobias import MIT_NOTICE
from builders.synthbias.winobias_text import parse_file, without_markup
from schemas.items.coreference import CoreferenceItem

PRO = "[The cook] helped the nurse because [he] had time."
ANTI = "[The cook] helped the nurse because [she] had time."


def files(pro: list[str], anti: list[str]) -> dict[str, bytes]:
    """The eight text files: the lines as type 1 of dev, one sound pair everywhere else."""
    made = {}
    for name in winobias.SHA256:
        if name.endswith("occupations.txt"):
            continue
        lines = [PRO] if name.startswith("pro") else [ANTI]
        if name.endswith("type1.txt.dev"):
            lines = pro if name.startswith("pro") else anti
        made[name] = "".join(f"{number} {line}\n" for number, line in enumerate(lines, 1)).encode()
    return made


def items_of(pro: list[str], anti: list[str]) -> list[CoreferenceItem]:
    splits = winobias.to_splits(winobias.parse(files(pro, anti)))
    assert [(split.config, split.split) for split in splits] == [
        ("type1", "validation"),
        ("type1", "test"),
        ("type2", "validation"),
        ("type2", "test"),
    ]
    return list(splits[0].items)


def flags_of(pro: str, anti: str) -> tuple[set[str], set[str]]:
    # The sound pair of the other files is in every split, so texts are made different from it.
    one, other = items_of([pro], [anti])
    return set(one.flags), set(other.flags)


def test_a_pair_of_lines_becomes_two_items() -> None:
    he, she = items_of(
        ["The guard called [the nurse] and [she] came.", PRO], ["The guard called [the nurse] and [he] came.", ANTI]
    )[:2]
    assert he.sentence == "The guard called the nurse and she came."
    assert (he.item_id, she.item_id) == ("winobias-type1-validation-001-pro", "winobias-type1-validation-001-anti")
    assert he.pair_id == she.pair_id
    assert (he.pronoun, he.pronoun_start, he.pronoun_case) == ("she", 31, "nominative")
    assert (he.referent, he.reference, he.occupations) == ("nurse", "nurse", ("guard", "nurse"))
    assert (he.stereotype, she.stereotype) == ("pro", "anti")
    assert he.cluster == "guard|nurse"
    assert he.source_row == "pro_stereotyped_type1.txt.dev:1"
    assert he.flags == she.flags == ()


@pytest.mark.parametrize(
    ("marked", "sentence", "repaired"),
    [
        ("The nurse saw [the guard] .", "The nurse saw the guard .", False),
        ("The nurse saw the [ guard].", "The nurse saw the guard.", True),
        ("The nurse saw the [the guard].", "The nurse saw the guard.", True),
        ("The nurse saw the [guard] 's hat.", "The nurse saw the guard 's hat.", False),
        ("The nurse saw [an assistant].", "The nurse saw an assistant.", False),
        ("The  nurse saw them.", "The  nurse saw them.", False),
    ],
)
def test_only_markup_is_taken_away(marked: str, sentence: str, repaired: bool) -> None:
    plain = without_markup(marked)
    assert (plain.sentence, plain.repaired) == (sentence, repaired)


def test_several_pronouns_keep_their_places_and_the_first_is_asked_about() -> None:
    line = "The cook asked [the nurse] whether [she] could lend [her] bike."
    plain = without_markup(line)
    assert [plain.sentence[pronoun.start : pronoun.end] for pronoun in plain.pronouns] == ["she", "her"]
    (parsed,) = parse_file(f"1 {line}".encode(), name="f", side="pro")
    assert parsed.pronoun == plain.pronouns[0]


@pytest.mark.parametrize(
    ("flag", "pro", "anti"),
    [
        ("not_minimal_pair", "[The cook] met the nurse before [he] ate.", "[The cook] met the nurse when [she] ate."),
        (
            "not_minimal_pair",
            "The cook helped [the nurse] and got [her] pay.",
            "The cook helped [the nurse] and got [he] pay.",
        ),
        (
            "within_10_points",
            "[The salesperson] met the editor before [he] ate.",
            "[The salesperson] met the editor before [she] ate.",
        ),
        ("gendered_noun", "[The cook] met the nurse and [his] son.", "[The cook] met the nurse and [her] son."),
        (
            "plural_pronoun",
            "[The cook] told the nurse of them as [he] ate.",
            "[The cook] told the nurse of them as [she] ate.",
        ),
        (
            "third_occupation",
            "[The cook] met the nurse before [he] saw the teacher.",
            "[The cook] met the nurse before [she] saw the teacher.",
        ),
        (
            "repeated_occupation",
            "[The cook] met the nurse before [he] saw another nurse.",
            "[The cook] met the nurse before [she] saw another nurse.",
        ),
        (
            "several_pronouns",
            "[The cook] met the nurse before [he] sold [his] car.",
            "[The cook] met the nurse before [she] sold [her] car.",
        ),
        (
            "unmarked_pronoun",
            "[The cook] met the nurse before [he] sold his car.",
            "[The cook] met the nurse before [she] sold her car.",
        ),
    ],
)
def test_each_peculiarity_is_flagged_on_both_sides(flag: str, pro: str, anti: str) -> None:
    assert flags_of(pro, anti) == ({flag}, {flag})


def test_peculiarities_of_one_side() -> None:
    mixed = flags_of(
        "[The cook] lost his way and met the nurse when [he] ran.",
        "[The cook] lost his way and met the nurse when [she] ran.",
    )
    assert mixed == ({"unmarked_pronoun"}, {"unmarked_pronoun", "mixed_gender_pronouns"})
    repaired = flags_of("The nurse met the [ cook] before [he] ate.", "The nurse met [the cook] before [she] ate.")
    assert repaired == ({"markup_repaired"}, set())


def test_another_marked_pronoun_leaves_the_case_to_the_form() -> None:
    pro = "The cook told [the nurse] where he kept it and thanked [her]."
    anti = "The cook told [the nurse] where [she] kept it and thanked [him]."
    one, other = items_of([pro], [anti.replace("[she]", "[he]")])
    assert "other_pronoun_marked" in one.flags
    assert "other_pronoun_marked" in other.flags
    # "her" alone can be accusative and possessive, "he" can only be nominative.
    assert (one.pronoun_case, other.pronoun_case) == (None, "nominative")


def test_duplicates_are_found_across_splits() -> None:
    (pro, anti) = items_of([PRO], [ANTI])
    assert pro.flags == anti.flags == ("duplicate_text",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2 " + PRO, r"^f:1: starts with '2', not with its line number 1"),
        ("\n1 " + PRO, r"^f:1: starts with '', not with its line number 1"),
        ("1 [The cook] helped the nurse because he had time.", r"^f:1: no form of he or she stands in brackets"),
        ("1 The cook helped the nurse because [he] had time.", r"^f:1: exactly one of the 40 occupations .* not none"),
        ("1 [The cook] helped [the nurse] as [he] ran.", r"^f:1: exactly one of the 40 occupations .* 'cook', 'nurse'"),
        ("1 [The pilot] helped the nurse as [he] ran.", r"^f:1: exactly one of the 40 occupations .* not 'pilot'"),
        ("1 " + ANTI, r"^f:1: label 'pro' contradicts the lexicon, which says anti for 'she' as 'cook'"),
        ("1 [The cook] ran as [he] saw the nurse.", r"^f:1: two occupations have to stand before 'he', not cook"),
        ("1 [The cook] helped the guard as [he] ran.", r"^f:1: 'cook' and 'guard' are both male-stereotyped"),
    ],
)
def test_a_line_that_cannot_be_read_names_file_line_and_remedy(line: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        parse_file(line.encode(), name="f", side="pro")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("as it was published")


def test_files_that_cannot_be_read() -> None:
    with pytest.raises(DataError, match=r"^f: is empty"):
        parse_file(b"\n", name="f", side="pro")
    with pytest.raises(DataError, match=r"^f:2: byte 0xe9 is not UTF-8"):
        parse_file(f"1 {PRO}\n2 caf".encode() + b"\xe9\n", name="f", side="pro")
    with pytest.raises(
        DataError, match=r"lengths differ: pro_stereotyped_type1.txt.dev 2, anti_stereotyped_type1.txt.dev 1"
    ):
        winobias.parse(files([PRO, PRO], [ANTI]))


def test_other_files_than_the_published_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder; give the folder with the text files"):
        winobias.draft(tmp_path / "none", limit=None)
    for name, raw in {**files([PRO], [ANTI]), "male_occupations.txt": b"cook"}.items():
        (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=r"no female_occupations\.txt here"):
        winobias.draft(tmp_path, limit=None)
    (tmp_path / "female_occupations.txt").write_bytes(b"nurse")
    name, published = next(iter(winobias.SHA256.items()))
    found = hashlib.sha256(files([PRO], [ANTI])[name]).hexdigest()
    with pytest.raises(DataError, match=f"^{name}: sha256 {found} is not the published file's {published}"):
        winobias.draft(tmp_path, limit=None)


@pytest.fixture(scope="module")
def real(shared_data: Path) -> Draft[CoreferenceItem]:
    return winobias.draft(shared_data / "winobias", limit=None)


def test_the_published_files_give_every_line(real: Draft[CoreferenceItem]) -> None:
    assert [(split.config, split.split, len(split.items)) for split in real.splits] == [
        (config, split, 792) for config in ("type1", "type2") for split in ("validation", "test")
    ]
    items = [item for split in real.splits for item in split.items]
    assert real.rejects == ()
    assert Counter(item.stereotype for item in items) == {"pro": 1584, "anti": 1584}
    assert set(Counter(item.pair_id for item in items).values()) == {2}
    assert all(item.referent == item.reference for item in items)
    last = Counter(item.pair_id[:14] for item in items if item.referent == item.occupations[1])
    assert last == {"winobias-type1": 792, "winobias-type2": 1580}
    for item in items:
        assert item.sentence[item.pronoun_start : item.pronoun_start + len(item.pronoun)] == item.pronoun
        assert "[" not in item.sentence
        assert "  " not in item.sentence


def test_flag_counts_of_the_published_files(real: Draft[CoreferenceItem]) -> None:
    counts = Counter(flag for split in real.splits for item in split.items for flag in item.flags)
    assert counts == {
        "not_minimal_pair": 2 * 19,
        "other_pronoun_marked": 2 * 2,
        "several_pronouns": 87,
        "unmarked_pronoun": 5,
        "mixed_gender_pronouns": 2,
        "plural_pronoun": 12,
        "third_occupation": 2,
        "repeated_occupation": 12,
        "gendered_noun": 13,
        "within_10_points": 40,
        # Six texts stand twice.
        "duplicate_text": 12,
        "markup_repaired": 4,
    }


def test_the_distractor_is_not_taken_from_the_line_beside(real: Draft[CoreferenceItem]) -> None:
    rows = {item.source_row: item for split in real.splits for item in split.items}
    wrong = 0
    for number in range(381, 385):
        item = rows[f"anti_stereotyped_type2.txt.test:{number}"]
        beside = rows[f"anti_stereotyped_type2.txt.test:{number + 1 if number % 2 else number - 1}"]
        wrong += beside.referent not in item.occupations or beside.referent == item.referent
    assert wrong == 4


def test_the_notice_is_the_one_of_the_repository(shared_data: Path) -> None:
    assert (shared_data / "winobias" / "LICENSE").read_text(encoding="ascii") == MIT_NOTICE


def test_a_changed_line_is_refused_by_name(shared_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "winobias"
    shutil.copytree(shared_data / "winobias", folder)
    changed = folder / "pro_stereotyped_type2.txt.test"
    changed.chmod(0o644)
    changed.write_text(changed.read_text(encoding="ascii").replace("[him]", "[them]", 1), encoding="ascii")
    with pytest.raises(
        DataError, match=r"^pro_stereotyped_type2\.txt\.test:\d+: no form of he or she stands in brackets"
    ):
        winobias.draft(folder, limit=None)
