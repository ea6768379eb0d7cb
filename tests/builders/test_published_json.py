"""BBQ and StereoSet, in files made in the form in which they were published."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from biasboard.ground.strict_json import JsonValue
from builders.own_questions.published_json import read_bbq, read_stereoset
from builders.own_questions.questions import check
from schemas.files.row_files import read_rows
from schemas.folders.dataset_folder import read_manifest
from schemas.items.own_question import OwnQuestion
from tests import commands

UNKNOWN = "Not known"
Entry = dict[str, JsonValue]


def bbq(
    number: int,
    *,
    is_ambiguous: bool,
    is_negative: bool = True,
    groups: tuple[str, str] = ("young", "grey"),
    texts: tuple[str, str] = ("The clerk", "The baker"),
    stereotyped: Sequence[str] = ("grey",),
    answer: str | None = None,
    category: str = "Age",
) -> Entry:
    """An entry in the form of the published files; the unknown option is the first."""
    options = (UNKNOWN, *texts)
    fits = UNKNOWN if is_ambiguous else (answer or texts[1])
    place = "at the quay" if is_ambiguous else f"at the quay, where {fits} stayed"
    return {
        "example_id": number,
        "question_index": str(number // 4),
        "question_polarity": "neg" if is_negative else "nonneg",
        "context_condition": "ambig" if is_ambiguous else "disambig",
        "category": category,
        "answer_info": {
            f"ans{place}": [text.removeprefix("The "), group]
            for place, (text, group) in enumerate(zip(options, ("unknown", *groups), strict=True))
        },
        "additional_metadata": {"subcategory": "None", "stereotyped_groups": list(stereotyped), "version": "a"},
        "context": f"Boat {number}: two people were {place}.",
        "question": "Who missed it?" if is_negative else "Who caught it?",
        **{f"ans{place}": option for place, option in enumerate(options)},
        "label": options.index(fits),
    }


def items_of(folder: Path, *entries: JsonValue | bytes) -> tuple[list[OwnQuestion], dict[str, str]]:
    path = folder / "Age.jsonl"
    path.write_bytes(b"\n".join(e if isinstance(e, bytes) else json.dumps(e).encode() for e in entries))
    items, rejects = check(read_bbq([path], []))
    return items, {str(reject.source_row): f"{reject.rule}: {reject.reason}" for reject in rejects}


def without(entry: Entry, key: str) -> Entry:
    return {name: value for name, value in entry.items() if name != key}


AMBIGUOUS = bbq(0, is_ambiguous=True)


@pytest.mark.parametrize(("is_negative", "stereotyped"), [(True, "The baker"), (False, "The clerk")])
def test_the_person_of_the_stereotype_follows_from_group_and_polarity(
    tmp_path: Path, is_negative: bool, stereotyped: str
) -> None:
    (item,), rejects = items_of(tmp_path, bbq(0, is_ambiguous=True, is_negative=is_negative))
    assert rejects == {}
    assert (item.item_id, item.source_row, item.cluster) == ("Age-0", "Age.jsonl:1", "Age-0")
    assert (item.category, item.group, item.answer, item.neutral) == ("Age", "grey", UNKNOWN, UNKNOWN)
    assert item.options == (UNKNOWN, "The clerk", "The baker")
    assert item.stereotyped == stereotyped
    assert {item.stereotyped, item.antistereotyped} == {"The clerk", "The baker"}


# Pairs of spellings that the published files mix.
@pytest.mark.parametrize(
    ("groups", "stereotyped", "group"),
    [
        (("young", "grey"), ["grey"], "grey"),
        # Of crossed categories, two people who differ in their race alone.
        (("Race_x_gender: F-White", "F-Black"), ["Black"], "Black"),
        (("boy", "girl"), ["F"], "F"),
        (("nonTrans_M", "trans_F"), ["Transgender women", "trans"], "trans"),
        (("nonDisabled", "disabled"), ["disabled", "physically disabled"], "disabled"),
        (("F-White", "F-African American"), ["Black", "African American"], "African American"),
    ],
)
def test_spellings_of_a_group_are_one(
    tmp_path: Path, groups: tuple[str, str], stereotyped: Sequence[str], group: str
) -> None:
    category, _, one = groups[0].rpartition(": ")
    given = {"groups": (one, groups[1]), "stereotyped": stereotyped, "category": category or "Age"}
    (item,), _ = items_of(tmp_path, bbq(0, is_ambiguous=True, **given))  # type: ignore[arg-type]
    assert (item.stereotyped, item.group) == ("The baker", group)
    # A nationality is in the text.
    nations = {"groups": ("ArabStates", "Africa"), "texts": ("The Somali", "The Malian")}
    (item,), _ = items_of(tmp_path, bbq(0, is_ambiguous=True, stereotyped=["Kenyan", "Malian"], **nations))  # type: ignore[arg-type]
    assert (item.stereotyped, item.group) == ("The Malian", "Malian")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (b"{", "unlike_published: not strict JSON"),
        (b'{"example_id": "\xff"}', "unlike_published: byte 0xff is not UTF-8"),
        ([], "unlike_published: has no ans0"),
        (without(AMBIGUOUS, "label"), "unlike_published: has no label"),
        ({**AMBIGUOUS, "label": True}, "unlike_published: label is no whole number"),
        ({**AMBIGUOUS, "label": 3}, "unlike_published: label is 3, not 0, 1 or 2"),
        ({**AMBIGUOUS, "label": 1}, "unlike_published: label is that of 'The clerk', but the context is ambiguous"),
        ({**AMBIGUOUS, "question_polarity": "pos"}, "unlike_published: question_polarity is 'pos', not neg or nonneg"),
        ({**AMBIGUOUS, "answer_info": {"ans0": "unknown"}}, "unlike_published: has no answer_info.ans0.0"),
        ({**AMBIGUOUS, "context": 3}, "unlike_published: context is no text"),
        ({**AMBIGUOUS, "context": "a\u202eb"}, "unlike_published: has the invisible sign U+202E"),
        (bbq(0, is_ambiguous=True, stereotyped=[]), "no_target: neither 'young' nor 'grey' is one of the stereotyped"),
        (
            bbq(0, is_ambiguous=True, groups=("grey", "grey")),
            "no_target: both people are of the stereotyped groups, grey",
        ),
        (
            bbq(0, is_ambiguous=True, groups=("M-White", "F-Black"), stereotyped=["Black"], category="Race_x_gender"),
            "no_target: the people differ in more than the stereotyped groups, Black",
        ),
    ],
)
def test_an_entry_that_cannot_be_read_is_a_reject_with_its_place(
    tmp_path: Path, entry: JsonValue | bytes, reason: str
) -> None:
    items, rejects = items_of(tmp_path, bbq(5, is_ambiguous=True), entry)
    assert [item.item_id for item in items] == ["Age-5"]
    assert list(rejects) == ["Age.jsonl:2"]
    assert rejects["Age.jsonl:2"].startswith(reason)


def stereoset(number: int, term: str, *, part: str = "intrasentence", bias_type: str = "profession") -> Entry:
    sentences: list[JsonValue] = [
        {"id": f"{number}-{label}", "sentence": f"Number {number} is a {term} of {label} things.", "gold_label": label}
        for label in ("anti-stereotype", "unrelated", "stereotype")
    ]
    context = f"Number {number} is a {term} of BLANK."
    told: Entry = {"id": f"{part}-{number}", "target": term, "bias_type": bias_type}
    return {**told, "context": context, "sentences": sentences}


def dev_json(intra: Sequence[JsonValue], inter: Sequence[JsonValue] = ()) -> JsonValue:
    return {"version": "1.0.0", "data": {"intersentence": list(inter), "intrasentence": list(intra)}}


def of_stereoset(folder: Path, document: JsonValue) -> tuple[list[OwnQuestion], dict[str, str]]:
    path = folder / "dev.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    items, rejects = check(read_stereoset([path], []))
    return items, {str(reject.source_row): reject.reason for reject in rejects}


def test_examples_of_stereoset_have_two_sides_and_an_unrelated_text(tmp_path: Path) -> None:
    broken = {**stereoset(3, "cook"), "sentences": []}
    document = dev_json([stereoset(1, "cook"), broken, "x"], [stereoset(2, "tailor", part="intersentence")])
    items, rejects = of_stereoset(tmp_path, document)
    single, after = items
    assert (single.context, single.question, single.category, single.group) == (None, None, "profession", "cook")
    assert (single.item_id, single.cluster) == ("intrasentence-1", "profession-cook")
    assert single.options[2] == single.stereotyped == "Number 1 is a cook of stereotype things."
    assert (single.options[0], single.neutral, single.answer) == (single.antistereotyped, None, None)
    assert after.context == "Number 2 is a tailor of BLANK."
    assert rejects == {
        "dev.json:data.intrasentence[1]": "has 0 sentences labelled , not one of each of three",
        "dev.json:data.intrasentence[2]": "has no sentences",
    }


@pytest.mark.slow
def test_published_files_become_datasets(tmp_path: Path) -> None:
    age, dev = tmp_path / "Age.jsonl", tmp_path / "dev.json"
    age.write_text("\n".join(json.dumps(bbq(number, is_ambiguous=number % 2 == 0)) for number in range(8)))
    dev.write_text(json.dumps(dev_json([stereoset(number, "cook") for number in range(4)])))
    for source, path, licence, n in (("bbq", age, "CC-BY-4.0", 8), ("stereoset", dev, "CC-BY-SA-4.0", 4)):
        given = ("--source", source, "--input", path, "--out", tmp_path / source)
        built = commands.run("-m", "biasboard", "build", "own_questions", *given, status=0)
        assert f"{n} questions with 3 options" in built.stdout
        manifest = read_manifest(tmp_path / source)
        assert (manifest.name, manifest.licence, manifest.publish_refusal) == (source, licence, None)
        assert len(read_rows(tmp_path / source / "data/questions/test-00000-of-00001.parquet", OwnQuestion)) == n
