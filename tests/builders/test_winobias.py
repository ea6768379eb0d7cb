"""WinoBias: parsing and flags on made-up lines, counts on the real files where they are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from biasboard.ground.errors import DataError
from builders.synthbias import winobias
from builders.synthbias.winobias import MIT_NOTICE, parse_file, without_markup
from schemas.items.coreference import CoreferenceItem

PRO = "[The cook] helped the nurse because [he] had time."
ANTI = PRO.replace("[he]", "[she]")


def files(pro: list[str], anti: list[str]) -> dict[str, bytes]:
    """The eight text files: the lines as type 1 of dev, one sound pair everywhere else."""
    made = {}
    for name in winobias.SHA256:
        if not name.endswith("occupations.txt"):
            lines = [PRO] if name.startswith("pro") else [ANTI]
            if name.endswith("type1.txt.dev"):
                lines = pro if name.startswith("pro") else anti
            made[name] = "".join(f"{number} {line}\n" for number, line in enumerate(lines, 1)).encode()
    return made


def items_of(pro: list[str], anti: list[str]) -> list[CoreferenceItem]:
    splits = winobias.to_splits(winobias.parse(files(pro, anti)))
    expected = [(config, split) for config in ("type1", "type2") for split in ("validation", "test")]
    assert [(split.config, split.split) for split in splits] == expected
    return list(splits[0].items)


def test_a_pair_of_lines_becomes_two_items() -> None:
    line = "The guard called [the nurse] and [she] came."
    she, he = items_of([line, PRO], [line.replace("[she]", "[he]"), ANTI])[:2]
    assert she.sentence == "The guard called the nurse and she came."
    assert (she.item_id, he.item_id) == ("winobias-type1-validation-001-pro", "winobias-type1-validation-001-anti")
    assert she.pair_id == he.pair_id
    assert (she.pronoun, she.pronoun_start, she.pronoun_case) == ("she", 31, "nominative")
    assert (she.referent, she.reference, she.occupations) == ("nurse", "nurse", ("guard", "nurse"))
    assert (she.stereotype, he.stereotype, she.cluster) == ("pro", "anti", "guard|nurse")
    assert (she.source_row, she.flags, he.flags) == ("pro_stereotyped_type1.txt.dev:1", (), ())
    # Several pronouns keep their places, and the first is asked about.
    line = "The cook asked [the nurse] whether [she] could lend [her] bike."
    text, pronouns, *_ = without_markup(line)
    assert [text[pronoun.start : pronoun.end] for pronoun in pronouns] == ["she", "her"]
    (parsed,) = parse_file(f"1 {line}".encode(), name="f", side="pro", sample_type="type1")
    assert parsed.pronoun == pronouns[0]


MET = "[The cook] met the nurse"


@pytest.mark.parametrize(
    ("flag", "pro", "anti"),
    [
        ("not_minimal_pair", f"{MET} before [he] ate.", f"{MET} when [she] ate."),
        ("not_minimal_pair", "The cook met [the nurse] and [her] dog.", "The cook met [the nurse] and [he] dog."),
        (
            "within_10_points gendered_noun plural_pronoun repeated_occupation",
            "[The salesperson] told the editor of them and a man as [he] met another editor.",
            "",
        ),
        ("several_pronouns", f"{MET} before [he] sold [his] car.", f"{MET} before [she] sold [her] car."),
        ("unmarked_pronoun", f"{MET} before [he] sold his car.", f"{MET} before [she] sold her car."),
        ("duplicate_text", PRO, ANTI),
        # Of one side alone.
        ("unmarked_pronoun; mixed_gender_pronouns", "[The cook] lost his way and met the nurse when [he] ran.", ""),
        ("; markup_repaired", "[The cook] saw the nurse when [he] ran.", "the [ cook] saw the nurse when [she] ran."),
    ],
)
def test_each_peculiarity_is_flagged(flag: str, pro: str, anti: str) -> None:
    one, other = items_of([pro], [anti.replace("the [", "The [") or pro.replace("[he]", "[she]")])
    of_both, _, of_other = flag.partition("; ")
    expected = {*of_both.split()}
    assert (set(one.flags), set(other.flags)) == (expected, expected | {*of_other.split()})


def test_another_marked_pronoun_leaves_the_case_to_the_form() -> None:
    pro = "The cook told [the nurse] where he kept it and thanked [her]."
    one, other = items_of([pro], ["The cook told [the nurse] where [he] kept it and thanked [him]."])
    assert "other_pronoun_marked" in one.flags
    assert "other_pronoun_marked" in other.flags
    # "her" alone can be accusative and possessive, "he" can only be nominative.
    assert (one.pronoun_case, other.pronoun_case) == (None, "nominative")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (f"2 {PRO}", r"^f:1: starts with '2', not with its line number 1"),
        ("1 [The cook] helped the nurse because he had time.", r"^f:1: no form of he or she stands in brackets"),
        ("1 The cook helped the nurse because [he] had time.", r"^f:1: exactly one of the 40 occupations .* not none"),
        ("1 [The pilot] helped the nurse as [he] ran.", r"^f:1: exactly one of the 40 occupations .* not 'pilot'"),
        (f"1 {ANTI}", r"^f:1: label 'pro' contradicts the lexicon, which says anti for 'she' as 'cook'"),
        ("1 [The cook] ran as [he] saw the nurse.", r"^f:1: two occupations have to stand before 'he', not cook"),
        ("1 [The cook] saw the nurse and the clerk as [he] ran.", r"^f:1: two occupations .* not clerk, cook, nurse"),
        ("1 [The cook] helped the guard as [he] ran.", r"^f:1: 'cook' and 'guard' are both male-stereotyped"),
        ("\n", r"^f: is empty"),
        (f"1 {PRO}\n2 caf\xe9\n", r"^f:2: byte 0xe9 is not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_read_names_file_line_and_remedy(raw: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        parse_file(raw.encode("latin-1"), name="f", side="pro", sample_type="type1")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("as it was published")


def test_other_files_than_the_published_ones_are_refused(tmp_path: Path) -> None:
    differ = r"lengths differ: pro_stereotyped_type1.txt.dev 2, anti_stereotyped_type1.txt.dev 1"
    with pytest.raises(DataError, match=differ):
        winobias.parse(files([PRO, PRO], [ANTI]))
    for name, raw in {**files([PRO], [ANTI]), "male_occupations.txt": b"cook"}.items():
        (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=r"no female_occupations\.txt here"):
        winobias.draft(tmp_path, limit=None)
    (tmp_path / "female_occupations.txt").write_bytes(b"nurse")
    with pytest.raises(DataError, match=r"sha256 .* is not the published file's"):
        winobias.draft(tmp_path, limit=None)


@pytest.mark.slow
def test_the_published_files_give_every_line(shared_data: Path) -> None:
    real = winobias.draft(shared_data / "winobias", limit=None)
    assert [(split.config, split.split, len(split.items)) for split in real.splits] == [
        (config, split, 792) for config in ("type1", "type2") for split in ("validation", "test")
    ]
    items = [item for split in real.splits for item in split.items]
    assert real.rejects == ()
    assert Counter(item.stereotype for item in items) == {"pro": 1584, "anti": 1584}
    assert set(Counter(item.pair_id for item in items).values()) == {2}
    last = Counter(item.pair_id[:14] for item in items if item.referent == item.occupations[1])
    assert last == {"winobias-type1": 792, "winobias-type2": 1580}
    assert Counter(flag for item in items for flag in item.flags) == {
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
    assert (shared_data / "winobias" / "LICENSE").read_text(encoding="ascii") == MIT_NOTICE
