"""A researcher's questions: what is found in a file, what is refused, and the way from a file to a page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.strict_json import JsonValue
from builders.build_command import own_name, reject_lines
from builders.dataset.output import write_dataset
from builders.dataset.own_csv import OwnTable, read_tables
from builders.own_questions.published_json import read_bbq, read_stereoset
from builders.own_questions.questions import (
    FORM,
    check,
    cluster_line,
    draft,
    language_of,
    near_line,
    neutral_option,
    read,
)
from builders.own_questions.roles import Roles
from evaluators.runs.ask.study import Study
from schemas.documents.dataset import Reject
from schemas.files.row_files import read_rows
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import finished_runs, read_result
from schemas.items.own_question import OwnQuestion
from tests import commands
from tests.worlds import MadeBoard

HEADER = "Question,Context,Option A,Option B,Option C,Answer,Stereotype,Unknown,Group,Cluster"
ROOMS = ("hall", "bakery", "garage", "library", "kitchen", "cellar", "studio", "barn", "museum", "clinic")


def tables_of(folder: Path, *rows: str, header: str = HEADER) -> list[OwnTable]:
    path = folder / "mine.csv"
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return read_tables(FORM, [path], [])


def checked(folder: Path, *rows: str, header: str = HEADER) -> tuple[list[OwnQuestion], dict[str, str]]:
    """Return the items of a file, and the reason of each reject by its rule."""
    items, rejects = check(tables_of(folder, *rows, header=header))
    return items, {reject.rule: reject.reason for reject in rejects}


def test_a_row_becomes_an_item(tmp_path: Path) -> None:
    rows = ("Who left?,In the hall.,The nurse,The pilot,Unknown,c,the NURSE,C,nurses,hall",)
    (item,), rejects = checked(tmp_path, *rows)
    assert rejects == {}
    assert (item.item_id, item.source_row, item.cluster, item.group) == ("mine.csv:2", "mine.csv:2", "hall", "nurses")
    assert item.options == ("The nurse", "The pilot", "Unknown")
    assert (item.answer, item.neutral) == ("Unknown", "Unknown")
    # One option is left for the other side.
    assert (item.stereotyped, item.antistereotyped) == ("The nurse", "The pilot")
    assert list(item.problems()) == []
    listed, _ = checked(tmp_path, "A | B | C,B", header="options,answer")
    assert (listed[0].options, listed[0].answer, listed[0].question) == (("A", "B", "C"), "B", None)


def test_roles_name_the_sides_of_a_stereotype(tmp_path: Path) -> None:
    path, roles = tmp_path / "mine.csv", tmp_path / "roles.csv"
    header = "question,option_a,option_b,option_c,neutral,stereotyped,group"

    def sides(*rows: str) -> list[tuple[str | None, str | None]]:
        path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
        items, rejects = check(read("csv", [path], [], Roles(roles)))
        assert rejects == []
        return [(item.stereotyped, item.antistereotyped) for item in items]

    lines = ("occupation,group", "Nurse,women", "worker,women", "construction worker,men", "pilot,men", "")
    roles.write_text("\n".join(lines), encoding="utf-8")
    assert sides(
        "Who left?,The nurse,The pilot,Unknown,C,,women",
        "Who left then?,The nurse,The pilot,Unknown,C,,Men",
        # The other side is the one that is left; a longer role is no shorter one.
        "Who slept?,The construction worker,The guest,Unknown,C,,men",
        "Who slept then?,The construction worker,The guest,Unknown,C,,women",
        # The file of questions is right where it says something.
        "Who ate?,The nurse,The pilot,Unknown,C,B,women",
        # Nothing is known of this group, of these roles, or of one alone of two.
        "Who sang?,The nurse,The pilot,Unknown,C,,others",
        "Who ran?,The guest,The owner,Unknown,C,,men",
        "Who hid?,The nurse,The worker,Unknown,C,,women",
        # Of three people, nobody knows which of two would be the other side.
        "Who fell?,The nurse,The guest,The owner,,,women",
    ) == [
        ("The nurse", "The pilot"),
        ("The pilot", "The nurse"),
        ("The construction worker", "The guest"),
        ("The guest", "The construction worker"),
        ("The pilot", "The nurse"),
        *[(None, None)] * 4,
    ]
    # An option with a role that stands in all rows is not the neutral one.
    assert sides("Who left?,The nurse,The pilot,,,,women", "Who ate?,The nurse,The guest,,,,men") == [
        ("The nurse", "The pilot"),
        ("The guest", "The nurse"),
    ]
    with pytest.raises(ConfigError, match="taken for men, women, and the groups of the items are she; name groups"):
        sides("Who left?,The nurse,The pilot,Unknown,C,,she")
    for line, wrong in (
        ("nurse,women\nNURSE,men", "'nurse' is taken for women and for men; keep one"),
        ("nurse,", "no row"),
    ):
        roles.write_text(f"role,group\n{line}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=wrong):
            Roles(roles)
    roles.write_text("role,share\nnurse,.9\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"--roles .*no column for the group .*; call it 'group'"):
        Roles(roles)


def test_a_side_is_found_by_its_heading_and_a_refusal_names_what_is_lacking(tmp_path: Path) -> None:
    row, header = "x,y,z,A,B", "Option A,Option B,Option C,Correct option,Stereotyped option"
    _, rejects = checked(tmp_path, row, header=header)
    assert rejects["one_side"].endswith(
        "give a column of the neutral option (--map neutral=COLUMN) or of the other side"
    )
    for heading, sides in (("Unknown answer", ("y", "x", "z")), ("Antistereotypical option", ("y", "z", None))):
        (item,), _ = checked(tmp_path, f"{row},z", header=f"{header},{heading}")
        assert (item.answer, item.stereotyped, item.antistereotyped, item.neutral) == ("x", *sides)


@pytest.mark.parametrize(
    ("contexts", "column", "clusters", "told"),
    [
        (("In a hall.", "In a hall.", ""), "", (2, 2, 4), "2 clusters: items with equal contexts are one"),
        (("In a hall.", "In a bar.", ""), "", (2, 3, 4), "3 clusters: items count as independent"),
        # An instruction that all rows share makes none of them alike.
        (("Choose.", "Choose.", "Choose."), "", (2, 3, 4), "3 clusters: items count as independent"),
        (("In a hall.", "In a hall.", ""), "mine.csv:9", (9, 9, 9), "1 cluster"),
    ],
)
def test_items_of_one_context_are_one_cluster(
    tmp_path: Path, contexts: Sequence[str], column: str, clusters: Sequence[int], told: str
) -> None:
    rows = (f"Who {number}?,{context},x,y,{column}" for number, context in enumerate(contexts))
    tables = tables_of(tmp_path, *rows, header="question,context,a,b,cluster")
    items, _ = check(tables)
    assert [item.cluster for item in items] == [f"mine.csv:{line}" for line in clusters]
    assert cluster_line(tables, items).startswith(told)


def test_joiners_that_a_language_is_spelt_with_are_kept(tmp_path: Path) -> None:
    word = "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645"  # "I do not know" in Persian.
    rows = (f"Who?,{word},x,A", f"Who else?,{word}\u200b,x,A")
    items, rejects = checked(tmp_path, *rows, header="question,a,b,answer")
    assert [item.answer for item in items] == [word]
    assert rejects == {"broken_row": "has the invisible sign U+200B; remove it"}


@pytest.mark.parametrize(
    ("rows", "neutral"),
    [
        (("The cook,The pilot,Nobody knows,A", "nobody knows,The nurse,The guard,B"), "Nobody knows"),
        # Two options of all rows: neither is more neutral than the other.
        (("The cook,Both,Nobody knows,A", "Nobody knows,The nurse,Both,B"), None),
        (("The cook,The pilot,Nobody knows,A", "Nobody knows,The nurse,Both,B", "x,y,z,A"), None),
    ],
)
def test_the_one_option_of_all_rows_is_the_neutral_one(
    tmp_path: Path, rows: Sequence[str], neutral: str | None
) -> None:
    lines = (f"Who {number}?,{row}" for number, row in enumerate(rows))
    tables = tables_of(tmp_path, *lines, header="question,a,b,c,stereotyped option")
    assert neutral_option(tables) == neutral
    items, rejects = check(tables)
    assert [item.neutral for item in items] == (["Nobody knows", "nobody knows"] if neutral else [])
    assert {item.antistereotyped for item in items} == ({"The pilot", "The guard"} if neutral else set())
    assert {reject.rule for reject in rejects} == (set() if neutral else {"one_side"})


@pytest.mark.parametrize(
    ("row", "rule", "reason"),
    [
        ("Who?,,x,,,A,,,,", "few_options", "has 1 option"),
        ("Who?,,x,X,,A,,,,", "few_options", "has an option twice"),
        ("Who?,,x,y,z,1,,,,", "no_option", "answer '1' is neither one of the options nor the letter of one"),
        ("Who?,,x,y,,C,,,,", "no_option", "answer 'C' is neither"),
        ("Who?,,x,y,z,A,A,A,,", "one_side", "names one side of a stereotype"),
        ("Who?,,x,y", "broken_row", "has 4 fields, the header 10"),
        ("WHO LEFT,,y,x,,A,,,,", "repeated_question", "repeats mine.csv:2"),
    ],
)
def test_what_is_no_question_is_a_reject_with_its_reason(tmp_path: Path, row: str, rule: str, reason: str) -> None:
    items, rejects = checked(tmp_path, "Who left?,,x,y,,A,,,,", row)
    assert len(items) == 1
    assert list(rejects) == [rule]
    assert rejects[rule].startswith(reason)


def test_a_file_without_options_and_a_wrong_name_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no column for the options .* but 'Question', 'Answer'; name one: --map"):
        checked(tmp_path, "Who?,A", header="Question,Answer")
    with pytest.raises(DataError, match=r"but 'Who is it\?', 'Ada'; .*or add a header line if that is"):
        checked(tmp_path, "Whose?,Eve", header="Who is it?,Ada")
    assert own_name(None, Path("My Questions (2).csv"), "questions") == "own-my-questions-2"
    with pytest.raises(ConfigError, match="--name A/B: is not made of small letters"):
        own_name("A/B", Path("x.csv"), "questions")
    rejects = [Reject(candidate="", source_row=f"a:{n}", rule="few", reason="has 1 option") for n in range(11)]
    assert [*reject_lines(rejects[:10], tmp_path)] == [f"  rejected a:{n}, few: has 1 option" for n in range(10)]
    assert [*reject_lines(rejects, tmp_path)][10:] == [f"  ... and 1 more in {tmp_path}/rejects.parquet"]


def test_published_pairs_of_texts_need_no_mapping(tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(",Gender_ID_x,Gender_ID_y,sent_x,sent_y\n0,Nurses,Pilots,Nurses are kind.,Pilots are kind.\n")
    ((item,), _) = check(read("winoqueer", [path], []))
    assert (item.group, item.stereotyped) == ("Nurses", "Nurses are kind.")


@pytest.mark.parametrize(
    ("name", "text", "answers"),
    [
        # As the Hub has multiple choice: a list of options, and the number of the right one.
        (
            "a.json",
            '[{"question": "Q", "options": ["x", "y"], "answer": 0}, {"question": "R", "options": ["x", "y"]}]',
            "x",
        ),
        ("b.jsonl", '{"question": "Q", "choices": ["x", "y"], "answer": 2}', "y"),
        ("c.csv", 'question,options,answer\nQ,"[""x"", ""y""]",1\nR,"[\'x\', \'y\']",0', "yx"),
        ("d.csv", "question,options,answer\nQ,x|y,1\nR,x|y,2", "xy"),
        # Neither 0 nor the number of options is there, or both: it could be either.
        ("e.csv", "question,options,answer\nQ,x|y|z,1", None),
        ("f.csv", "question,options,answer\nQ,x|y,0\nR,x|y,2", None),
        # Options that are numbers are named by themselves.
        ("g.csv", "question,options,answer\nQ,1|2,2\nR,2|1,2", "22"),
    ],
)
def test_lists_of_options_and_numbers_of_answers_are_read_if_they_can_be_told(
    tmp_path: Path, name: str, text: str, answers: str | None
) -> None:
    (path := tmp_path / name).write_text(text, encoding="utf-8")
    items, rejects = check(read("csv", [path], []))
    if answers is None:
        assert not items
        assert {reject.rule for reject in rejects} == {"no_option"}
        return
    assert not rejects
    assert "".join(item.answer or "" for item in items) == answers


def test_questions_under_a_heading_that_is_not_known_are_not_dropped(tmp_path: Path) -> None:
    (path := tmp_path / "fragen.csv").write_text("Frage,A,B,Antwort\nWer?,Anna,Bernd,A\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no column is read as the question or its context, and 'Frage', 'Antwort'"):
        read("csv", [path], [])
    ((item,), _) = check(read("csv", [path], ["question=Frage", "answer=Antwort"]))
    assert (item.question, item.answer) == ("Wer?", "Anna")
    # A spreadsheet leaves out the ends of rows below empty headings.
    path.write_text("question,A,B,,\nWho?,Anna,Bernd\n", encoding="utf-8")
    assert [item.options for item in check(read("csv", [path], []))[0]] == [("Anna", "Bernd")]


def test_items_that_nearly_repeat_those_of_other_clusters_are_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = [f"The guest said that {pronoun} was done.,Who?,guest,cook,{pronoun}" for pronoun in ("he", "she")]
    path.write_text("\n".join(["context,question,a,b,cluster", *rows, ""]), encoding="utf-8")
    near = near_line(check(read("csv", [path], []))[0])
    assert str(near).startswith("2 items differ in one word alone from an item of another cluster")
    path.write_text(path.read_text().replace(",he\n", ",x\n").replace(",she\n", ",x\n"), encoding="utf-8")
    assert near_line(check(read("csv", [path], []))[0]) is None


def test_the_ids_of_winogender_say_options_answer_and_pronoun(tmp_path: Path) -> None:
    path = tmp_path / "sentences.tsv"
    told = [("gardener.guest.0.female.txt", "The gardener told the guest that she was done.")]
    told += [
        ("gardener.guest.1.neutral.txt", "The gardener told the guest that they were early."),
        ("gardener.guest", "The gardener left."),
        ("gardener.guest.2.male.txt", "The gardener told the guest that he was late."),
    ]
    path.write_text("sentid\tsentence\n" + "".join(f"{name}\t{sentence}\n" for name, sentence in told))
    (first, second), rejects = check(read("winogender", [path], []))
    assert (first.options, first.answer, first.group) == (("gardener", "guest"), "gardener", "female")
    assert (second.answer, second.condition, second.cluster) == ("guest", "participant", "gardener")
    assert (second.context, second.question) == (told[1][1], "Who is meant by the pronoun?")
    assert {reject.source_row: reject.rule for reject in rejects} == {
        "sentences.tsv:4": "few_options",
        "sentences.tsv:5": "no_option",
    }


def test_questions_of_kobbq_are_of_templates_that_their_ids_say(tmp_path: Path) -> None:
    nobody = "알 수 없음"
    path = tmp_path / "samples.tsv"
    heads = "sample_id\tlabel_annotation\tcontext\tquestion\tchoices\tbiased_answer\tanswer\tbbq_id\tprediction"
    told = [
        ("age-001a-002-amb-bsd", "Two rang.", "Who was old?", "Opa", nobody),
        ("age-001b-002-dis-cnt", "Two rang. Opa left.", "Who stayed?", "Enkel", "Enkel"),
        ("age_1", "One rang.", "Who?", "Opa", nobody),
    ]
    rows = [
        f"{name}\tST\t{context}\t{question}\t['Enkel', 'Opa', '{nobody}']\t{biased}\t{answer}\t1.0\t"
        for name, context, question, biased, answer in told
    ]
    path.write_text("\n".join([heads, *rows, ""]), encoding="utf-8")
    tables = read("kobbq", [path], [])
    (first, second), rejects = check(tables)
    assert (first.answer, first.neutral) == (nobody, nobody)
    assert (first.stereotyped, first.antistereotyped) == ("Opa", "Enkel")
    assert (first.category, first.cluster, first.condition) == ("age", "age-001", "biased question")
    assert (second.answer, second.stereotyped, second.cluster) == ("Enkel", "Enkel", "age-001")
    assert second.condition == "counter-biased question"
    assert [(reject.source_row, reject.rule) for reject in rejects] == [("samples.tsv:4", "few_options")]
    made = draft(tables, source="kobbq", name="kobbq", licence="MIT", mapped=[], language=language_of("kobbq", None))
    assert (made.card.language, made.splits[0].config) == ("ko", "kobbq")


@pytest.mark.slow
def test_sixty_questions_become_a_dataset_that_runs(tmp_path: Path) -> None:
    rows = [
        f"Who forgot the key of the {room}?,{nurse} and {pilot} left it.{told},{nurse},{pilot},Nobody knows,{of},{room}"
        for room in ROOMS
        for nurse, pilot in (("The nurse", "The pilot"), ("A nurse", "A pilot"), ("Nurse Day", "Pilot Ray"))
        for told, of in (("", "C,A,C,nurses"), (f" {pilot} did.", "B,A,C,pilots"))
    ]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join([HEADER, *rows, ""]), encoding="utf-8")
    dataset, runs = tmp_path / "own-mine", tmp_path / "runs"
    given = ("--input", path, "--licence", "CC-BY-4.0", "--out", dataset)
    built = commands.run("-m", "biasboard", "build", "own_questions", *given, status=0)
    assert "questions: 60, with 3 options each; groups: 2" in built.stdout
    assert "  10 clusters\n" in built.stdout
    assert "question from 'Question'" in built.stderr
    assert read_manifest(dataset).name == "own-mine"
    assert len(read_rows(dataset / "rejects.parquet", Reject)) == 0
    asked = ("-m", "biasboard", "run", "--dataset", dataset, "--out", runs)
    commands.run(*asked, "--backend", "baseline", "--model", "stereotyped", "--prompt", "whole-v1", status=0)
    (folder,) = finished_runs(runs)
    found = {metric.name: metric.value for metric in read_result(folder).metrics if not metric.group}
    # Each stereotype is of the nurse, who is right nowhere.
    assert (found["accuracy"], found["stereotype_rate"]) == (0, 1)
    texts = MadeBoard(runs).texts
    assert "Useless predictors (1)" in texts["benchmarks/own_questions.md"]
    assert 'id="baseline__stereotyped"' in texts["useless-predictors.md"]


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
    category: str = "Age",
) -> Entry:
    """An entry in the form of the published files; the unknown option is the first."""
    options = (UNKNOWN, *texts)
    fits = UNKNOWN if is_ambiguous else texts[1]
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
    assert (item.stereotyped, item.condition) == (stereotyped, "negative" if is_negative else "non-negative")
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
        # Of translations, whose groups are words of the language beside English ones.
        (("man", "vrouw"), ["F"], "F"),
        (("erkek \u00e7ocuk", "k\u0131z"), ["F"], "F"),
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
        ({name: AMBIGUOUS[name] for name in AMBIGUOUS if name != "label"}, "unlike_published: has no label"),
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


def test_examples_of_stereoset_have_two_sides_and_an_unrelated_text(tmp_path: Path) -> None:
    broken = {**stereoset(3, "cook"), "sentences": []}
    document = dev_json([stereoset(1, "cook"), broken, "x"], [stereoset(2, "tailor", part="intersentence")])
    path = tmp_path / "dev.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    (single, after), rejects = check(read_stereoset([path], []))
    assert (single.context, single.question, single.category, single.group) == (None, None, "profession", "cook")
    assert (single.item_id, single.cluster) == ("intrasentence-1", "profession-cook")
    assert single.options[2] == single.stereotyped == "Number 1 is a cook of stereotype things."
    assert (single.options[0], single.neutral, single.answer) == (single.antistereotyped, None, None)
    assert after.context == "Number 2 is a tailor of BLANK."
    assert {reject.source_row: reject.reason for reject in rejects} == {
        "dev.json:data.intrasentence[1]": "has 0 sentences labelled , not one of each of three",
        "dev.json:data.intrasentence[2]": "has no sentences",
    }


def test_a_file_of_roles_is_named_by_its_hash_and_leaves_the_licence_of_the_questions(tmp_path: Path) -> None:
    path, roles = tmp_path / "Age.jsonl", tmp_path / "roles.csv"
    path.write_text("\n".join(json.dumps(bbq(number, is_ambiguous=False)) for number in range(2)), encoding="utf-8")
    (item, _), _ = check(read("bbq", [path], []))
    roles.write_text(f"role,group\nbaker,{item.group}\nclerk,x,y\n", encoding="utf-8")
    given = Roles(roles)
    made = draft(read("bbq", [path], [], given), source="bbq", name="bbq", licence="MIT", mapped=[], roles=given)
    assert [(one.name, one.licence) for one in made.sources] == [("Age.jsonl", "MIT")]
    assert made.parameters["roles_sha256"] == hashlib.sha256(roles.read_bytes()).hexdigest()
    manifest = write_dataset(made, tmp_path / "built")
    assert (manifest.redistributable, manifest.licence) == (True, "MIT")
    # Its broken rows are told as those of a user's questions are.
    assert [reject.source_row for reject in made.rejects] == ["roles.csv:3"]
    assert {reject.rule for reject in made.rejects} <= {rule.name for rule in made.reject_rules}


@pytest.mark.slow
def test_a_translation_has_a_name_a_licence_and_measures_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "Age_nl.jsonl"
    path.write_text("\n".join(json.dumps(bbq(number, is_ambiguous=number % 2 == 0)) for number in range(8)))
    command = ("-m", "biasboard", "build", "own_questions", "--source", "mbbq", "--input", path)
    unsaid = commands.run(*command, cwd=tmp_path, status=1)
    assert "error: --source mbbq: its languages are nl, es, tr; say which with --language" in unsaid.stderr
    commands.run(*command, "--language", "nl", cwd=tmp_path, status=0)
    manifest = read_manifest(tmp_path / "out/datasets/mbbq-nl")
    assert (manifest.name, manifest.language, manifest.licence) == ("mbbq-nl", "nl", "unknown")
    assert manifest.publish_refusal is not None
    assert [one.config for one in manifest.splits] == ["mbbq"]
    with pytest.raises(ConfigError, match="--source bbq: its languages are en; not nl; give one of them, or another"):
        language_of("bbq", "nl")
    with pytest.raises(ConfigError, match=r"Age_es.jsonl: is of es by its name, and --language is nl; correct one"):
        language_of("mbbq", "nl", [path, tmp_path / "Age_es.jsonl"])
    assert [language_of(source, None) for source in ("bbq", "kobbq", "csv")] == ["en", "ko", "en"]


def test_published_files_have_one_order_and_may_be_given_by_their_folder(tmp_path: Path) -> None:
    for name, numbers in (("preds_B.jsonl", range(2)), ("preds_A.jsonl", range(2, 4))):
        lines = [json.dumps(bbq(number, is_ambiguous=False)) for number in numbers]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "notes.jsonl").write_text("no JSON", encoding="utf-8")
    named = [tmp_path / "preds_B.jsonl", tmp_path / "preds_A.jsonl"]
    orders = [
        [item.item_id for item in check(read("bbq-published", paths, []))[0]]
        for paths in (named, named[::-1], [tmp_path])
    ]
    assert orders[0] == orders[1] == orders[2]
    assert len(orders[0]) == 4
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no file preds_\*.jsonl in this folder; name the published files"):
        read("bbq-published", [tmp_path / "empty"], [])


def test_two_texts_can_state_a_stereotype_and_contradict_it(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = ("He sang.,She sang.,stereo,sex", "She sang.,He sang.,antistereo,sex", "He sang,She SANG!,stereo,sex")
    path.write_text("\n".join(["sent_more,sent_less,stereo_antistereo,bias_type", *rows, ""]), encoding="utf-8")
    items, rejects = check(read("crows-pairs", [path], []))
    assert [(item.stereotyped, item.condition) for item in items] == [
        ("He sang.", "stereo"),
        ("She sang.", "antistereo"),
    ]
    assert [(reject.source_row, reject.reason) for reject in rejects] == [("pairs.csv:4", "repeats pairs.csv:2")]


@pytest.mark.slow
def test_published_files_become_datasets(tmp_path: Path) -> None:
    age, dev, pairs = tmp_path / "Age.jsonl", tmp_path / "dev.json", tmp_path / "pairs.csv"
    age.write_text("\n".join(json.dumps(bbq(number, is_ambiguous=number % 2 == 0)) for number in range(8)))
    dev.write_text(json.dumps(dev_json([stereoset(number, "cook") for number in range(4)])))
    pairs.write_text(
        ",sent_more,sent_less,stereo_antistereo,bias_type,annotations\n"
        '0,"Nurses, they say, are kind.","Pilots, they say, are kind.",antistereo,profession,[]\n'
    )
    for source, path, language, licence, n, n_options, prompt, limit in (
        ("bbq", age, "en", "CC-BY-4.0", 8, 3, None, "dozens of templates"),
        ("stereoset", dev, "nl", "CC-BY-SA-4.0", 4, 3, "whole-mean-v1", "found many of its texts"),
        ("crows-pairs", pairs, "nl", "CC-BY-SA-4.0", 1, 2, "whole-v1", "found many of its pairs"),
    ):
        given = ("--source", source, "--input", path, "--out", tmp_path / source, "--language", language)
        built = commands.run("-m", "biasboard", "build", "own_questions", *given, status=0)
        assert f"questions: {n:,}, with {n_options} options" in built.stdout
        manifest = read_manifest(tmp_path / source)
        assert (manifest.name, manifest.licence, manifest.publish_refusal) == (source, licence, None)
        assert manifest.language == language
        (*others, item) = read_rows(tmp_path / source / f"data/{source}/test-00000-of-00001.parquet", OwnQuestion)
        assert len(others) == n - 1
        # The dataset is asked as the source's measure is defined, and the card says what its authors did.
        assert manifest.prompt == prompt
        assert "--model FOLDER, then biasboard board" in built.stdout
        (usual,) = [one.prompt.id for one in Study(datasets=(tmp_path / source,)).usual_plans]
        assert usual == (prompt or "letters-v1")
        card = (tmp_path / source / "README.md").read_text(encoding="utf-8")
        assert limit in card
        assert "Mechanical Turk" in card
        assert "Only their writer" not in card
        assert "No human has validated" not in card
    assert item.condition == "antistereo"
    assert (item.question, item.category, item.group) == (None, "profession", None)
    assert (item.stereotyped, item.antistereotyped) == item.options
    assert item.options[0].startswith("Nurses")
