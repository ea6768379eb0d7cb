"""Round trips: a plan is exported, answered on a platform, and taken in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation import platforms
from builders.synthbias.annotation.annotated import AnnotatedDataset, asked_id, sentence_of
from builders.synthbias.annotation.deciding import Policy, decide_pairs
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.planning import plan_batch
from builders.synthbias.annotation.platforms import Format
from builders.synthbias.annotation.safe_csv import render_records
from builders.synthbias.annotation.state import State, read_state, write_state
from builders.synthbias.annotation.vote_intake import Intake, take_in
from builders.synthbias.annotation.votes import AnnotatorKind, Ballot, Vote, VoteQuestion
from schemas.items.coreference import CoreferenceItem
from tests.builders.annotation.made_votes import BALLOTS, EMPTY, active, right, unanimous, wrong

WORDS = {True: "yes", False: "no", None: ""}
PEOPLE = {"A": (1, 2, 3, 4), "B": (5, 6, 7, 8)}


def exported(annotated: AnnotatedDataset, form: Format, names: Iterable[str] = ()) -> dict[str, str]:
    """The files of the first batch, by group, or by name of an assigned one."""
    requests = plan_batch(decide_pairs(annotated, EMPTY, Policy()), annotated.groups, EMPTY, tuple(names))
    sentences = {item_id: sentence_of(item) for item_id, item in annotated.items.items()}
    files = platforms.batch_files("0001", requests, sentences, form)
    return {name if names else name[5]: text for name, text in files.items() if name.startswith("0001-")}


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def item_of(annotated: AnnotatedDataset, task: Mapping[str, str]) -> CoreferenceItem:
    """The item that a task shows."""
    return annotated.items[annotated.item_ids[task["item_id"]]]


Answers = list[tuple[dict[str, Any], int, Ballot, dict[str, Any]]]
"""A task, a person, the answers, and what else the platform notes."""


def answered(annotated: AnnotatedDataset, group: str, tasks: Iterable[dict[str, Any]]) -> Answers:
    """Answers in which all agree, but for some accidents on the first sentence of group A."""
    found: Answers = [(task, person, right(item_of(annotated, task)), {}) for task in tasks for person in PEOPLE[group]]
    if group == "A":
        first = found[0][0]
        found.append((first, 9, BALLOTS["open"], {"is_skipped": True}))
        found.append((first, 10, Ballot(True, True, None), {}))
        found.append((first, 1, BALLOTS["incoherent"], {"time": 30}))
        # Somebody of group B on the other side of a pair, later than there.
        found.append((first, 5, BALLOTS["open"], {"time": 40}))
    return found


def annotation(person: int, ballot: Ballot, *, time: int = 0, is_skipped: bool = False) -> dict[str, Any]:
    results = [
        {"from_name": name, "to_name": "sentence", "type": "choices", "value": {"choices": [WORDS[answer]]}}
        for name, answer in zip(VoteQuestion, ballot, strict=True)
        if answer is not None
    ]
    return {
        "completed_by": person,
        "result": results,
        "was_cancelled": is_skipped,
        "created_at": f"2026-03-01T10:00:{time:02d}.000000Z",
    }


def label_studio_file(annotated: AnnotatedDataset, group: str, text: str) -> str:
    tasks = [{**task, "annotations": []} for task in json.loads(text)]
    by_id = {task["data"]["item_id"]: task for task in tasks}
    for data, person, ballot, more in answered(annotated, group, [task["data"] for task in tasks]):
        by_id[data["item_id"]]["annotations"].append(annotation(person, ballot, **more))
    return json.dumps(tasks)


def taken_in(annotated: AnnotatedDataset, state: State, paths: Iterable[Path], form: Format) -> Intake:
    submissions = [
        one for path in paths for one in platforms.read_submissions(path, form, platforms.column_map((), form))
    ]
    return take_in(annotated, state, submissions)


def test_a_round_trip_with_accidents_and_repetitions(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    form = Format.LABEL_STUDIO
    paths = []
    for group, text in exported(annotated, form).items():
        paths.append(tmp_path / group)
        paths[-1].write_text(label_studio_file(annotated, group, text), encoding="utf-8")
    intake = taken_in(annotated, EMPTY, paths, form)
    assert (intake.n_added, intake.n_known) == (sum(3 for _ in annotated.items) * 4, 0)
    expected = {"cancelled": 1, "rejected": 0, "incomplete": 1, "duplicate": 1, "both_sides": 1}
    assert intake.refusals == expected
    by_reason = {str(refused.refusal): refused for refused in intake.refused}
    assert by_reason["both_sides"].annotator_id == "label-studio-5"
    assert by_reason["duplicate"].annotator_id == "label-studio-1"
    assert str(paths[0]) in by_reason["duplicate"].where
    # People whose submissions were all refused are known, but have no votes.
    assert set(intake.state.annotators) == {f"label-studio-{n}" for n in range(1, 11)}
    assert {vote.submitted_at for vote in intake.state.rows} == {"2026-03-01T10:00:00.000Z"}

    # Taking in twice changes nothing.
    folder = tmp_path / "state"
    write_state(folder, EMPTY, intake.state)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert read_state(folder) == intake.state
    twice = taken_in(annotated, read_state(folder), paths, form)
    assert (twice.n_added, twice.n_known, twice.refusals) == (0, intake.n_added, intake.refusals)
    assert twice.state == intake.state
    write_state(folder, intake.state, twice.state)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_canonical_csv_round_trips_models_too(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    state = unanimous(annotated)
    path = tmp_path / "votes.csv"
    path.write_text(render_records(Vote, state.rows), encoding="utf-8")
    intake = take_in(annotated, EMPTY, platforms.read_submissions(path, Format.CSV, {}), kind=AnnotatorKind.MODEL)
    assert (intake.state.rows, intake.refused) == (state.rows, ())
    assert {one.kind for one in intake.state.annotators.values()} == {AnnotatorKind.MODEL}
    with pytest.raises(DataError, match=r"votes\.csv:2: annotator '.*' is a model, not a human; give --kind model"):
        taken_in(annotated, intake.state, [path], Format.CSV)
    # One broken line leaves the state alone.
    path.write_text(render_records(Vote, state.rows) + "x,y,anna,coherent,yes,,t\r\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"votes\.csv:{len(state.rows) + 2}: item 'x'"):
        taken_in(annotated, EMPTY, [path], Format.CSV)


def filled(text: str, name: str, answers: Callable[[str], Ballot], *, separator: str = ",") -> bytes:
    """A form as somebody hands it back: each row that has an answer, with their name and some empty rows at the end."""
    rows = rows_of(text)
    for row in rows:
        given = (WORDS[answer].upper() for answer in answers(row["item_id"]))
        row |= {"annotator_id": row["annotator_id"] or name} | dict(zip(VoteQuestion, given, strict=True))
    sheet = io.StringIO(newline="")
    writer = csv.DictWriter(sheet, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows([*rows, {}, {}])
    return ("\ufeff" + sheet.getvalue()).encode()


def test_a_form_is_filled_in_and_handed_back(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    def answer(given: str) -> Ballot:
        return right(annotated.items[annotated.item_ids[given]])

    paths = []
    for group, text in exported(annotated, Format.CSV).items():
        for person in range(4):
            paths.append(tmp_path / f"{group}{person}.csv")
            paths[-1].write_bytes(filled(text, f" {group}{person} ", answer, separator=";"))
    intake = taken_in(annotated, EMPTY, paths, Format.CSV)
    assert (intake.refused, set(intake.state.annotators)) == ((), {f"{group}{n}" for group in "AB" for n in range(4)})
    tested = State(intake.state.rows, active(*intake.state.annotators))
    assert {pair.verdict for pair in decide_pairs(annotated, tested, Policy())} == {"accepted"}


@pytest.mark.parametrize("form", [Format.CSV, Format.LABEL_STUDIO])
def test_neither_ids_nor_order_tell_what_is_expected(form: Format, annotated: AnnotatedDataset) -> None:
    texts = exported(annotated, form).values()
    secrets = {*annotated.items, *annotated.pairs, "type1", "type2", "feminine", "masculine", "stereotype"}
    assert [secret for secret in secrets if any(secret in text for text in texts)] == []
    for text in texts:
        is_json = form is Format.LABEL_STUDIO
        rows = [task["data"] for task in json.loads(text)] if is_json else rows_of(text)
        # No id may look like a number, which a spreadsheet would write in another way.
        assert all(row["item_id"][0] == "s" for row in rows)
        types = [item_of(annotated, row).referent is None for row in rows]
        pronouns = [item_of(annotated, row).pronoun for row in rows]
        # In the order of the dataset, a single change parts the types; at random, half the rows differ from the next.
        assert sum(one != next_one for one, next_one in pairwise(types)) >= len(rows) / 4
        assert len(set(pronouns[: len(rows) // 2])) > 1


def test_two_people_never_share_a_file(annotated: AnnotatedDataset) -> None:
    names = ("a/b", "a b", "A B", "c" * 200, "c" * 199)
    files = exported(annotated, Format.CSV, names)
    assert len({name.casefold() for name in files}) == len(names)
    assert all(len(name) < 200 for name in files)
    assert all(len({row["annotator_id"] for row in rows_of(text)}) == 1 for text in files.values())


def test_columns_of_other_tools_are_mapped(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    item = next(iter(annotated.items.values()))
    path = tmp_path / "prolific.csv"
    rows = ("abc,{},2026-03-01 10:00:00,Approved,Yes,1,FALSE", "def,{},,Returned,,,")
    heading = "PROLIFIC_PID,sentence_id,EndDate,State,Q1,Q2,Q3"
    path.write_text("\n".join((heading, *(row.format(item.item_id) for row in rows), "")))
    changes = ["annotator_id=PROLIFIC_PID", "item_id=sentence_id", "submitted_at=EndDate", "status=State"]
    columns = platforms.column_map([*changes, "coherent=Q1", "first=Q2", "second=Q3"], Format.CSV)
    submission, returned = platforms.read_submissions(path, Format.CSV, columns)
    assert (submission.annotator_id, submission.submitted_at) == ("abc", "2026-03-01T10:00:00.000Z")
    assert list(submission.answers.values()) == ["yes", "yes", "no"]
    assert (submission.refusal, returned.refusal) == (None, "rejected")
    with pytest.raises(DataError, match=r"no column for coherent, .*name it with --map"):
        platforms.read_submissions(path, Format.CSV, platforms.column_map(changes, Format.CSV))
    with pytest.raises(ConfigError, match="--map WorkerId=x: write FIELD=COLUMN; fields: item_id"):
        platforms.column_map(["WorkerId=x"], Format.CSV)


def test_the_test_goes_out_without_answers_and_its_score_comes_in(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    for form in Format:
        (name, text), *_ = platforms.entrance_files(form).items()
        assert name.startswith("entrance.")
        assert all(asked_id(solved.sentence.item_id) in text for solved in TEST)
        assert "coherent,yes" not in text
    tasks = json.loads(platforms.entrance_files(Format.LABEL_STUDIO)["entrance.json"])
    test = {asked_id(solved.sentence.item_id): solved.answers for solved in TEST}
    for number, task in enumerate(tasks):
        ballot = test[task["data"]["item_id"]]
        n_wrong = {1: 4, 2: 5, 3: 0} if number else {1: 4, 2: 5}
        task["annotations"] = [
            annotation(person, wrong(ballot) if number < n else ballot) for person, n in n_wrong.items()
        ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    annotators = taken_in(annotated, EMPTY, [path], Format.LABEL_STUDIO).state.annotators
    assert {name[-1]: (one.entrance, one.status.value, one.reason) for name, one in annotators.items()} == {
        "1": ("16/20", "active", ""),
        "2": ("15/20", "failed", "entrance test: 15/20, less than 80 percent"),
        "3": ("", "untested", ""),
    }
