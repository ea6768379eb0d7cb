"""Round trips: a plan is exported, answered on a platform, and taken in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation.annotated import AnnotatedDataset, asked_id, sentence_of
from builders.synthbias.annotation.deciding import Policy, counting_ballots, decide_pairs, tally_of
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.planning import plan_batch
from builders.synthbias.annotation.platforms import (
    COLUMNS,
    Format,
    batch_files,
    column_map,
    entrance_files,
    read_submissions,
)
from builders.synthbias.annotation.safe_csv import render_records
from builders.synthbias.annotation.state import State, read_state, write_state
from builders.synthbias.annotation.vote_intake import Intake, take_in
from builders.synthbias.annotation.votes import AnnotatorKind, Ballot, Status, Vote, VoteQuestion
from schemas.items.coreference import CoreferenceItem
from tests.builders.annotation.made_votes import BALLOTS, active, right, unanimous

WORDS = {True: "yes", False: "no"}
EMPTY = State((), {})
PEOPLE = {"A": (1, 2, 3, 4), "B": (5, 6, 7, 8)}


class Exported(NamedTuple):
    """The tasks of a group as a platform has them, and the rows or annotations to be filled in."""

    group: str
    text: str


def exported(annotated: AnnotatedDataset, form: Format) -> list[Exported]:
    """The first batch, one file for each group."""
    requests = plan_batch(decide_pairs(annotated, EMPTY, Policy()), annotated.groups, EMPTY)
    assert {request.n_votes for request in requests} == {4}
    sentences = {item_id: sentence_of(item) for item_id, item in annotated.items.items()}
    files = batch_files("0001", requests, sentences, form)
    return [Exported(name[5], text) for name, text in files.items() if name.startswith("0001-")]


def item_of(annotated: AnnotatedDataset, task: Mapping[str, str]) -> CoreferenceItem:
    """The item that a task shows."""
    return annotated.items[annotated.item_ids[task["item_id"]]]


def annotation(person: int, ballot: Ballot, *, time: int = 0, **more: Any) -> dict[str, Any]:
    results = [
        {"from_name": name, "to_name": "sentence", "type": "choices", "value": {"choices": [WORDS[answer]]}}
        for name, answer in zip(("coherent", "first", "second"), ballot, strict=True)
        if answer is not None
    ]
    return {
        "id": person,
        "completed_by": person,
        "result": results,
        "was_cancelled": False,
        "lead_time": 4.2,
        "created_at": f"2026-03-01T10:00:{time:02d}.000000Z",
        **more,
    }


def label_studio_files(annotated: AnnotatedDataset, folder: Path) -> list[Path]:
    """Two projects, in which all agree, but for some accidents on the first sentence of group A."""
    paths = []
    for group, text in exported(annotated, Format.LABEL_STUDIO):
        tasks = json.loads(text)
        for number, task in enumerate(tasks):
            ballot = right(item_of(annotated, task["data"]))
            task["id"] = number
            task["annotations"] = [annotation(person, ballot) for person in PEOPLE[group]]
        if group == "A":
            first = tasks[0]["annotations"]
            first.append(annotation(9, Ballot(None, None, None), was_cancelled=True))
            first.append(annotation(10, Ballot(True, True, None)))
            first.append(annotation(1, BALLOTS["incoherent"], time=30))
            # Somebody of group B on the other side of a pair, later than there.
            first.append(annotation(5, BALLOTS["open"], time=40))
        paths.append(folder / f"{group}.json")
        paths[-1].write_text(json.dumps(tasks), encoding="utf-8")
    return paths


def assignment(
    hit: dict[str, str], person: int, ballot: Ballot, *, status: str = "Approved", time: int = 0
) -> list[str]:
    given = ["" if answer is None else WORDS[answer] for answer in ballot]
    submitted = f"Sun Mar 01 02:00:{time:02d} PST 2026"
    known = [hit["item_id"], f"{person}", f"label-studio-{person}", status, submitted, hit["item_id"], hit["sentence"]]
    return [*known, *given]


def mturk_files(annotated: AnnotatedDataset, folder: Path) -> list[Path]:
    """The same as assignments of Mechanical Turk."""
    paths = []
    heading = ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "SubmitTime", "Input.item_id", "Input.sentence")
    for group, text in exported(annotated, Format.MTURK):
        hits = list(csv.DictReader(text.splitlines()))
        rows = [assignment(hit, person, right(item_of(annotated, hit))) for hit in hits for person in PEOPLE[group]]
        if group == "A":
            rows.append(assignment(hits[0], 9, BALLOTS["open"], status="Rejected"))
            rows.append(assignment(hits[0], 10, Ballot(True, True, None)))
            rows.append(assignment(hits[0], 1, BALLOTS["incoherent"], time=30))
            rows.append(assignment(hits[0], 5, BALLOTS["open"], time=40))
        paths.append(folder / f"{group}.csv")
        with paths[-1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*heading, "Answer.coherent", "Answer.first", "Answer.second"])
            writer.writerows(rows)
    return paths


CASES: tuple[tuple[Format, Callable[[AnnotatedDataset, Path], list[Path]], str], ...] = (
    (Format.LABEL_STUDIO, label_studio_files, "cancelled"),
    (Format.MTURK, mturk_files, "rejected"),
)


def taken_in(annotated: AnnotatedDataset, state: State, paths: Iterable[Path], form: Format) -> Intake:
    submissions = [one for path in paths for one in read_submissions(path, form, column_map((), form))]
    return take_in(annotated, state, submissions)


@pytest.mark.parametrize(("form", "files", "skipped"), CASES)
def test_a_round_trip_with_accidents(
    form: Format,
    files: Callable[[AnnotatedDataset, Path], list[Path]],
    skipped: str,
    annotated: AnnotatedDataset,
    tmp_path: Path,
) -> None:
    paths = files(annotated, tmp_path)
    intake = taken_in(annotated, EMPTY, paths, form)
    n_complete = sum(3 for _ in annotated.items) * 4
    assert (intake.n_added, intake.n_known) == (n_complete, 0)
    expected = {"cancelled": 0, "rejected": 0, "incomplete": 1, "duplicate": 1, "both_sides": 1}
    assert intake.refusals == {**expected, skipped: 1}
    by_reason = {refused.reason.value: refused for refused in intake.refused}
    assert by_reason["both_sides"].annotator_id == "label-studio-5"
    assert by_reason["duplicate"].annotator_id == "label-studio-1"
    assert str(paths[0]) in by_reason["duplicate"].where

    # People whose submissions were all refused are known, but have no votes.
    assert set(intake.state.annotators) == {f"label-studio-{n}" for n in range(1, 11)}
    tested = State(intake.state.rows, active(*intake.state.annotators))
    decisions = decide_pairs(annotated, tested, Policy())
    assert {pair.verdict for pair in decisions} == {"accepted"}
    assert {vote.submitted_at for vote in intake.state.rows} == {"2026-03-01T10:00:00.000Z"}


@pytest.mark.parametrize(("form", "files", "skipped"), CASES)
def test_taking_in_twice_changes_nothing(
    form: Format,
    files: Callable[[AnnotatedDataset, Path], list[Path]],
    skipped: str,
    annotated: AnnotatedDataset,
    tmp_path: Path,
) -> None:
    paths = files(annotated, tmp_path)
    once = taken_in(annotated, EMPTY, paths, form)
    write_state(tmp_path / "state", EMPTY, once.state)
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}
    assert read_state(tmp_path / "state") == once.state

    twice = taken_in(annotated, read_state(tmp_path / "state"), paths, form)
    assert (twice.n_added, twice.n_known) == (0, once.n_added)
    assert twice.refusals == once.refusals
    assert twice.state == once.state
    write_state(tmp_path / "state", once.state, twice.state)
    assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == before


@pytest.mark.parametrize(("form", "files", "skipped"), CASES)
def test_an_excluded_annotator_leaves_votes_but_no_weight(
    form: Format,
    files: Callable[[AnnotatedDataset, Path], list[Path]],
    skipped: str,
    annotated: AnnotatedDataset,
    tmp_path: Path,
) -> None:
    rows = taken_in(annotated, EMPTY, files(annotated, tmp_path), form).state.rows
    everybody = active(*(f"label-studio-{n}" for n in range(1, 9)))
    bot = replace(everybody["label-studio-2"], status=Status.EXCLUDED, reason="bot")
    excluded = {**everybody, bot.annotator_id: bot}
    state = State(rows, excluded)
    ballots = counting_ballots(state, Policy())
    for item_id, group in annotated.groups.items():
        assert tally_of(list(ballots[item_id].values())).coherent.n == (3 if group == "A" else 4)
    assert {pair.verdict for pair in decide_pairs(annotated, state, Policy())} == {"undecided"}
    # One more vote each on the sides that lost one.
    requests = plan_batch(decide_pairs(annotated, state, Policy()), annotated.groups, state)
    assert {(request.group, request.n_votes) for request in requests} == {("A", 1)}
    assert {pair.verdict for pair in decide_pairs(annotated, State(rows, everybody), Policy())} == {"accepted"}


def test_the_canonical_csv_round_trips_models_too(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    state = unanimous(annotated)
    path = tmp_path / "votes.csv"
    path.write_text(render_records(Vote, state.rows), encoding="utf-8")
    intake = take_in(annotated, EMPTY, read_submissions(path, Format.CSV, COLUMNS), kind=AnnotatorKind.MODEL)
    assert intake.state.rows == state.rows
    assert intake.refused == ()
    assert {one.kind for one in intake.state.annotators.values()} == {AnnotatorKind.MODEL}
    with pytest.raises(DataError, match=r"votes\.csv:2: annotator '.*' is a model, not a human; give --kind model"):
        taken_in(annotated, intake.state, [path], Format.CSV)


def test_a_model_may_vote_on_both_sides_and_a_person_may_not(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    pair = next(iter(annotated.pairs.values()))
    rows = [
        f"{side.item_id},{side.pair_id},anna,coherent,no,2026-03-01T10:00:0{number}Z,x"
        for number, side in enumerate(pair.sides)
    ]
    path = tmp_path / "v.csv"
    path.write_text("item_id,pair_id,annotator_id,question,answer,submitted_at,source\n" + "\n".join(rows[::-1]))
    submissions = read_submissions(path, Format.CSV, COLUMNS)
    assert take_in(annotated, EMPTY, submissions, kind=AnnotatorKind.MODEL).n_added == 2
    intake = take_in(annotated, EMPTY, submissions)
    assert intake.refusals["both_sides"] == 1
    # The earlier vote is kept, whatever the order of the lines.
    assert [vote.item_id for vote in intake.state.rows] == [pair.sides[0].item_id]


def filled(text: str, name: str, answers: Callable[[str], Ballot], *, separator: str = ",") -> bytes:
    """A form as somebody hands it back: each row that has an answer, with their name and some empty rows at the end."""
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    for row in rows:
        given = ("" if answer is None else WORDS[answer].upper() for answer in answers(row["item_id"]))
        row |= {"annotator_id": row["annotator_id"] or name} | dict(zip(VoteQuestion, given, strict=True))
    sheet = io.StringIO(newline="")
    writer = csv.DictWriter(sheet, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows([*rows, {}, {}])
    return ("\ufeff" + sheet.getvalue()).encode()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_form_is_filled_in_and_handed_back(separator: str, annotated: AnnotatedDataset, tmp_path: Path) -> None:
    paths = []
    for group, text in exported(annotated, Format.CSV):
        for person in range(4):
            paths.append(tmp_path / f"{group}{person}.csv")
            paths[-1].write_bytes(
                filled(
                    text,
                    f" {group}{person} ",
                    lambda given: right(annotated.items[annotated.item_ids[given]]),
                    separator=separator,
                )
            )
    intake = taken_in(annotated, EMPTY, paths, Format.CSV)
    assert (intake.refused, set(intake.state.annotators)) == ((), {f"{group}{n}" for group in "AB" for n in range(4)})
    tested = State(intake.state.rows, active(*intake.state.annotators))
    assert {pair.verdict for pair in decide_pairs(annotated, tested, Policy())} == {"accepted"}
    twice = taken_in(annotated, intake.state, paths, Format.CSV)
    assert (twice.n_added, twice.n_known, twice.refused) == (0, intake.n_added, ())


def test_a_form_may_be_unfinished_and_a_row_without_a_name_is_told(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    (_, text), _ = exported(annotated, Format.CSV)
    path = tmp_path / "anna.csv"
    path.write_text(text, encoding="utf-8")
    assert read_submissions(path, Format.CSV, column_map((), Format.CSV)) == []
    first = next(csv.DictReader(text.removeprefix("\ufeff").splitlines()))["item_id"]
    begun = filled(text, "anna", lambda given: Ballot(given == first or None, True if given == first else None, None))
    path.write_bytes(begun)
    intake = taken_in(annotated, EMPTY, [path], Format.CSV)
    assert (intake.n_added, intake.refusals["incomplete"]) == (0, len(annotated.items) // 2)
    path.write_bytes(filled(text, "", lambda _: BALLOTS["open"]))
    with pytest.raises(DataError, match=r"anna\.csv:2: annotator_id is empty; fill it in, or take out rows"):
        taken_in(annotated, EMPTY, [path], Format.CSV)
    path.write_bytes(b"PK\x03\x04\xff")
    with pytest.raises(DataError, match=r"anna\.csv:1: is no CSV file in UTF-8; save it as 'CSV UTF-8'"):
        taken_in(annotated, EMPTY, [path], Format.CSV)


@pytest.mark.parametrize("form", [Format.CSV, Format.LABEL_STUDIO, Format.MTURK])
def test_neither_ids_nor_order_tell_what_is_expected(form: Format, annotated: AnnotatedDataset) -> None:
    texts = [part.text for part in exported(annotated, form)]
    secrets = {*annotated.items, *annotated.pairs, "type1", "type2", "feminine", "masculine", "stereotype"}
    assert [secret for secret in secrets if any(secret in text for text in texts)] == []
    for text in texts:
        rows = (
            [task["data"] for task in json.loads(text)]
            if form is Format.LABEL_STUDIO
            else list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
        )
        # No id may look like a number, which a spreadsheet would write in another way.
        assert all(row["item_id"][0] == "s" for row in rows)
        types = [item_of(annotated, row).referent is None for row in rows]
        pronouns = [item_of(annotated, row).pronoun for row in rows]
        changes = sum(one != next_one for one, next_one in pairwise(types))
        # In the order of the dataset, a single change parts the types; at random, half the rows differ from the next.
        assert changes >= len(rows) / 4
        assert len(set(pronouns[: len(rows) // 2])) > 1


def test_two_people_never_share_a_file(annotated: AnnotatedDataset) -> None:
    names = ("a/b", "a b", "A B", "c" * 200, "c" * 199)
    requests = plan_batch(decide_pairs(annotated, EMPTY, Policy()), annotated.groups, EMPTY, names)
    sentences = {item_id: sentence_of(item) for item_id, item in annotated.items.items()}
    files = batch_files("0001", requests, sentences, Format.CSV)
    assert len({name.casefold() for name in files}) == len(names)
    assert all(len(name) < 200 for name in files)
    for text in files.values():
        rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
        assert len({row["annotator_id"] for row in rows}) == 1


def test_columns_of_other_tools_are_mapped(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    item = next(iter(annotated.items.values()))
    path = tmp_path / "prolific.csv"
    path.write_text(f"PROLIFIC_PID,sentence_id,EndDate,Q1,Q2,Q3\nabc,{item.item_id},2026-03-01 10:00:00,Yes,1,FALSE\n")
    changes = ["annotator_id=PROLIFIC_PID", "item_id=sentence_id", "submitted_at=EndDate"]
    columns = column_map([*changes, "coherent=Q1", "first=Q2", "second=Q3"], Format.MTURK)
    (submission,) = read_submissions(path, Format.MTURK, columns)
    assert submission.annotator_id == "abc"
    assert submission.submitted_at == "2026-03-01T10:00:00.000Z"
    assert list(submission.answers.values()) == ["yes", "yes", "no"]
    with pytest.raises(DataError, match=r"no column for coherent \(Answer\.coherent\).*name it with --map"):
        read_submissions(path, Format.MTURK, column_map(changes, Format.MTURK))
    with pytest.raises(ConfigError, match="--map a=b: --file-format label-studio has no columns; leave --map out"):
        column_map(["a=b"], Format.LABEL_STUDIO)
    with pytest.raises(ConfigError, match="--map WorkerId=x: write FIELD=COLUMN; fields: item_id"):
        column_map(["WorkerId=x"], Format.MTURK)


def test_the_test_goes_out_without_answers_and_its_score_comes_in(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    for form in Format:
        (name, text), *_ = entrance_files(form).items()
        assert name.startswith("entrance.")
        assert all(asked_id(solved.sentence.item_id) in text for solved in TEST)
        assert "coherent,yes" not in text
    tasks = json.loads(entrance_files(Format.LABEL_STUDIO)["entrance.json"])
    test = {asked_id(solved.sentence.item_id): solved for solved in TEST}
    for number, task in enumerate(tasks):
        solved = test[task["data"]["item_id"]]
        wrong = BALLOTS["open"] if solved.answers.coherent is False else BALLOTS["incoherent"]
        task["annotations"] = [
            annotation(1, wrong if number < 4 else solved.answers),
            annotation(2, wrong if number < 5 else solved.answers),
        ]
        if number:
            task["annotations"].append(annotation(3, solved.answers))
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    annotators = taken_in(annotated, EMPTY, [path], Format.LABEL_STUDIO).state.annotators
    found = {name: (one.entrance, one.status.value) for name, one in annotators.items()}
    assert found == {
        "label-studio-1": ("16/20", "active"),
        "label-studio-2": ("15/20", "failed"),
        "label-studio-3": ("", "untested"),
    }
    assert annotators["label-studio-2"].reason == "entrance test: 15/20, less than 80 percent"


LONG = "item_id,pair_id,annotator_id,question,answer,submitted_at,source\n"
BROKEN: tuple[tuple[Format, str, str], ...] = (
    (Format.CSV, "", r"f:1: has no heading; give a form that annotate export wrote"),
    (Format.CSV, "a,b\n1,2\n", r"f:1: no column for item_id, annotator_id, coherent, first, second; name it with"),
    (Format.CSV, LONG + "x,y,anna,coherent,yes,,t\n", r"f:2: item 'x' is not in .*; give the dataset"),
    (Format.CSV, LONG + "PAIR,y,anna,coherent,yes,,t\n", r"f:2: item '.*' is of pair '.*', not 'y'; correct the line"),
    (Format.CSV, LONG + "x,y,anna,coherent,maybe,,t\n", r"f:2: answer is 'maybe'; have: yes, no, withdrawn; correct"),
    (Format.CSV, LONG + "x,y,anna,grammar,yes,,t\n", r"f:2: question is 'grammar'; have: coherent, first, second"),
    (Format.CSV, LONG + "x,y,,coherent,yes,,t\n", r"f:2: annotator_id is empty; correct the line"),
    (Format.CSV, LONG + "x,y,anna,coherent,yes,today,t\n", r"f:2: time 'today' is not ISO 8601; write it like 2026-"),
    (
        Format.CSV,
        LONG + "x,y,anna,coherent,yes,9999-12-31T23:59:59-05:00,t\n",
        r"f:2: time '9999-12-31T23:59:59-05:00' has no year from 1 to 9999 in UTC; correct it",
    ),
    (
        Format.CSV,
        LONG + "x,y,anna,coherent,yes,0001-01-01T00:00:00+05:00,t\n",
        r"f:2: time '0001-01-01T00:00:00\+05:00' has no year",
    ),
    (Format.CSV, LONG + "x,y\n", r"f:2: has 2 cells, the heading 7"),
    (Format.CSV, LONG + 'x,"y\n', r"f:2: not CSV: .*"),
    (Format.LABEL_STUDIO, "{", r"f: not strict JSON"),
    (Format.LABEL_STUDIO, "{}", r"f: is no list of tasks; export the project as JSON"),
    (Format.LABEL_STUDIO, "[{}]", r"f: task 1: data: is no JSON object; export"),
    (Format.LABEL_STUDIO, '[{"data": {}}]', r"f: task 1: has no list of annotations; export"),
    (
        Format.LABEL_STUDIO,
        '[{"data": {"item_id": "x", "pair_id": "y"}, "annotations": [{"completed_by": null, "result": []}]}]',
        r"f: task 1, annotation 1: completed_by names nobody",
    ),
    (
        Format.LABEL_STUDIO,
        '[{"data": {}, "annotations": [{"completed_by": 1, "result": []}]}]',
        r"f: task 1: data has no item_id; export a project",
    ),
    (
        Format.LABEL_STUDIO,
        '[{"data": {}, "annotations": [{"completed_by": 1, "result": '
        '[{"type": "choices", "from_name": "mood", "value": {"choices": ["yes"]}}]}]}]',
        r"f: task 1, annotation 1: from_name 'mood' is no question; have: coherent, first, second",
    ),
    (Format.MTURK, "WorkerId\nA\n", r"f:1: no column for item_id \(Input\.item_id\), coherent"),
    (
        Format.MTURK,
        "WorkerId,Input.item_id,Answer.coherent,Answer.first,Answer.second\nA,x,perhaps,,\n",
        r"f:2: Answer\.coherent is 'perhaps', not yes or no; correct the line",
    ),
    (
        Format.MTURK,
        "WorkerId,Input.item_id,AssignmentStatus,Answer.coherent,Answer.first,Answer.second\nA,x,Lost,no,,\n",
        r"f:2: AssignmentStatus is 'Lost'; have: submitted, approved",
    ),
)


@pytest.mark.parametrize(("form", "text", "message"), BROKEN)
def test_a_broken_file_is_refused_with_its_line_and_a_remedy(
    form: Format, text: str, message: str, annotated: AnnotatedDataset, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_text(text.replace("PAIR", next(iter(annotated.items))), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        taken_in(annotated, EMPTY, [path], form)


def test_one_broken_line_leaves_the_state_alone(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    state = unanimous(annotated)
    good = render_records(Vote, state.rows)
    path = tmp_path / "votes.csv"
    path.write_text(good + "x,y,anna,coherent,yes,,t\r\n", encoding="utf-8")
    n_lines = good.count("\n")
    with pytest.raises(DataError, match=rf"votes\.csv:{n_lines + 1}: item 'x'"):
        taken_in(annotated, EMPTY, [path], Format.CSV)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(LONG.encode() + b"caf\xe9\n")
    with pytest.raises(DataError, match=r"latin\.csv:2: is no CSV file in UTF-8; save it as"):
        taken_in(annotated, EMPTY, [latin], Format.CSV)
    with pytest.raises(DataError, match=r"none\.csv: no such file"):
        taken_in(annotated, EMPTY, [tmp_path / "none.csv"], Format.CSV)
