"""Files of questions that are none, for each source of the builder own_questions, and options that fit no file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biasboard.ground.strict_json import JsonValue
from tests.builders.test_published_json import AMBIGUOUS, dev_json, stereoset, without
from tests.hostile.inputs import NO_CSV, NO_FILES, NO_JSON, NO_TEXTS, Make, holding
from tests.hostile.runner import Row, ended, rows

BUILD = ["build", "own_questions", "--input", "INPUT", "--out", "OUT"]
HEADER = "question,option a,option b,answer,stereotyped,neutral,group,id\n"
GOOD = HEADER + "Who?,x,y,A,,,g,1\n"
BBQ = [*BUILD, "--source", "bbq"]
STEREOSET = [*BUILD, "--source", "stereoset"]

NO_QUESTIONS: dict[str, Make] = {
    "no options": holding("question,answer\nWho?,a\n"),
    "options without a word": holding(HEADER + "Who?,,,,,,,\n"),
    "one option": holding(HEADER + "Who?,x,,A,,,,\n"),
    "nine options": holding(f"question,options\nWho?,{'|'.join('abcdefghi')}\n"),
    "an option twice": holding(HEADER + "Who?,x,X ,A,,,,\n"),
    "an answer that is none": holding(HEADER + "Who?,x,y,z,,,,\n"),
    "an answer by number": holding(HEADER + "Who?,x,y,1,,,,\n"),
    "an answer that is a letter too far": holding(HEADER + "Who?,x,y,H,,,,\n"),
    "an answer of 100,000 letters": holding(HEADER + f"Who?,x,y,{'z' * 100_000},,,,\n"),
    "an answer with escapes of a terminal": holding(HEADER + "Who?,x,y,\x1b[31mA,,,,\n"),
    "a neutral side": holding(HEADER + "Who?,x,y,A,A,A,,\n"),
    "a side that is open": holding("question,a,b,c,stereotyped\nWho?,x,y,z,A\n"),
    "a right-to-left override": holding(HEADER + "Who?,x\u202e,y,A,,,,\n"),
    "a NUL in an option": holding(HEADER + "Who?,x\x00,y,A,,,,\n"),
    "an option that is blank": holding(HEADER + "Who?,x,\u2800,A,,,,\n"),
    "an option of a joiner": holding(HEADER + "Who?,x,\u200d,A,,,,\n"),
    "an option of a filler": holding(HEADER + "Who?,x,\u3164,A,,,,\n"),
    "options that differ by a joiner": holding(HEADER + "Who?,the man,the\u200d man,A,,,,\n"),
    "options that differ by a variant": holding(HEADER + "Who?,man,man\ufe0f,A,,,,\n"),
    "options that differ by how they are composed": holding(HEADER + "Who?,caf\u00e9,cafe\u0301,A,,,,\n"),
    "options that differ by an alphabet": holding(HEADER + "Who?,man,m\u0430n,A,,,,\n"),
    "an option of 20,000 letters": holding(HEADER + f"Who?,x,{'y' * 20_000},A,,,,\n"),
    "options that are each other's letters": holding(HEADER + "Who?,B,A,A,,,,\n"),
    "an id of 5,000 letters": holding(HEADER + f"Who?,x,y,A,,,g,{'i' * 5_000}\n"),
    "a group of 5,000 letters": holding(HEADER + f"Who?,x,y,A,,,{'g' * 5_000},1\n"),
    "a question of a megabyte in JSON": holding(
        json.dumps({"question": "x" * 1_000_000, "option a": "x", "option b": "y"}) + "\n"
    ),
    "names of their own in 5,000 rows": holding(
        "".join(f'{{"option a": "x", "option b": "y", "c{number}": 1}}\n' for number in range(5_000))
    ),
    "a line of ten million lists": holding('{"question": [' + "[]," * 10_000_000 + "0]}\n"),
    "bytes of another encoding": holding(HEADER.encode() + b"Who?,caf\xe9,y,A,,,,\n"),
    "too few cells": holding(HEADER + "Who?,x\n"),
    "too many cells": holding(HEADER + "Who?,x,y,A,,,g,1,2,3\n"),
    "a column named twice": holding("question,option a,option a,answer\nWho?,x,y,A\n"),
    "a quote that is never closed": holding(HEADER + 'Who?,"x,y,A,,,,\n'),
    "lines ended by a carriage return": holding(HEADER.replace("\n", "\r") + "Who?,x,y\r"),
    "a header of blanks": holding(" , ,\nWho?,x,y\n"),
    "a separator alone": holding("sep=;\n"),
    "a separator and a header": holding("sep=;\nquestion;option a;option b\n"),
    "a web page": holding("<!doctype html>\n<table><tr><td>Who?</td></tr></table>\n"),
    "JSON for CSV": holding(json.dumps(AMBIGUOUS) + "\n"),
    "100,000 rows that are none": holding(HEADER + "Who?,x,,A,,,,\n" * 100_000),
}
BAD_BBQ: dict[str, Make] = {
    f"BBQ {name}": holding(json.dumps(entry) + "\n")
    for name, entry in {
        "without options": without(AMBIGUOUS, "ans1"),
        "without groups": without(AMBIGUOUS, "answer_info"),
        "without metadata": without(AMBIGUOUS, "additional_metadata"),
        "without a label": without(AMBIGUOUS, "label"),
        "with a label of 300 digits": {**AMBIGUOUS, "label": 10**299},
        "with a label of text": {**AMBIGUOUS, "label": "0"},
        "with a label of true": {**AMBIGUOUS, "label": True},
        "with a fraction for a label": {**AMBIGUOUS, "label": 0.5},
        "with a label of null": {**AMBIGUOUS, "label": None},
        "with equal options": {**AMBIGUOUS, "ans1": "The baker"},
        "with an option of spaces": {**AMBIGUOUS, "ans1": "  "},
        "with a list for an option": {**AMBIGUOUS, "ans1": ["The clerk"]},
        "with an option of 200,000 letters": {**AMBIGUOUS, "ans1": "x" * 200_000, "label": 7},
        "with escapes of a terminal": {**AMBIGUOUS, "context_condition": "\x1b[31mambig"},
        "with an override": {**AMBIGUOUS, "question": "Who?\u202e"},
        "with two unknown options": {
            **AMBIGUOUS,
            "answer_info": {f"ans{place}": ["x", "unknown"] for place in range(3)},
        },
        "with groups that are no list": {**AMBIGUOUS, "additional_metadata": {"stereotyped_groups": "grey"}},
        "with no stereotyped group": {**AMBIGUOUS, "additional_metadata": {"stereotyped_groups": []}},
        "with an unknown polarity": {**AMBIGUOUS, "question_polarity": "negative"},
        "with an unknown condition": {**AMBIGUOUS, "context_condition": 1},
        "in one list": [AMBIGUOUS],
    }.items()
} | {
    "BBQ over several lines": holding(json.dumps(AMBIGUOUS, indent=1)),
    "BBQ as CSV": holding(GOOD),
    "BBQ in UTF-16": holding((json.dumps(AMBIGUOUS) + "\n").encode("utf-16")),
}
DOCUMENTS: dict[str, JsonValue] = {
    "without one part": {"data": {"intrasentence": []}},
    "with no examples": dev_json([]),
    "with examples that are texts": dev_json(["x"]),
    "with a sentence of no kind": dev_json([{**stereoset(1, "cook"), "sentences": [{"sentence": "x"}]}]),
    "with sentences of one kind": dev_json(
        [{**stereoset(1, "cook"), "sentences": [{"sentence": "x", "gold_label": "unrelated"}] * 3}]
    ),
    "without a target": dev_json([without(stereoset(1, "cook"), "target")]),
    "with a number for an id": dev_json([{**stereoset(1, "cook"), "id": 1}]),
    "between sentences without context": dev_json([], [without(stereoset(1, "cook"), "context")]),
    "as the list of its examples": [stereoset(1, "cook")],
}
BAD_STEREOSET: dict[str, Make] = {
    **{f"StereoSet {name}": holding(json.dumps(document)) for name, document in DOCUMENTS.items()},
    "StereoSet as lines": holding("\n".join(json.dumps(stereoset(number, "cook")) for number in range(2))),
}
GOOD_CSV = holding(GOOD)
TABLE: dict[str, Row] = {
    **rows(BUILD, NO_FILES, NO_TEXTS, NO_CSV, NO_QUESTIONS, named="mine.csv"),
    **rows(BBQ, NO_FILES, NO_TEXTS, NO_JSON, BAD_BBQ, named="Age.jsonl"),
    **rows(STEREOSET, NO_FILES, NO_TEXTS, NO_JSON, BAD_STEREOSET, named="dev.json"),
    **rows([*BUILD, "--source", "crows-pairs"], NO_FILES, NO_TEXTS, NO_CSV, {"own": GOOD_CSV}, named="pairs.csv"),
    **rows([*BUILD, "--source", "winoqueer"], NO_CSV, {"own": GOOD_CSV}, named="pairs.csv"),
    "an input twice": Row([*BUILD, "--input", "INPUT"], GOOD_CSV, says="rename it", named="mine.csv"),
    "a mapping without a heading": Row([*BUILD, "--map", "group"], GOOD_CSV, says="is not COLUMN=HEADING"),
    "a mapping of no column": Row([*BUILD, "--map", "colour=group"], GOOD_CSV, says="with a column out of"),
    "a mapping to no heading": Row([*BUILD, "--map", "group=people"], GOOD_CSV, says="no file has this heading"),
    "a mapping of BBQ": Row([*BBQ, "--map", "group=people"], GOOD_CSV, says="leave it out"),
    "a name with a slash": Row([*BUILD, "--name", "../x"], GOOD_CSV, says="single hyphens"),
    "a name of nothing": Row([*BUILD, "--name", ""], GOOD_CSV, says="single hyphens"),
    "a file name with a line break": Row(BUILD, GOOD_CSV, says="choose another name", named="my\nfile.csv"),
    "a file name with an override": Row(BUILD, GOOD_CSV, says="is no plain text", named="my\u202efile.csv"),
    "a folder that holds something": Row([*BUILD[:-1], "."], GOOD_CSV),
}


@pytest.mark.parametrize("name", TABLE)
def test_files_of_no_questions_end_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)


def test_the_files_that_the_bad_ones_vary_are_good(tmp_path: Path) -> None:
    for command, name, content in (
        (BUILD, "mine.csv", GOOD),
        (BBQ, "Age.jsonl", json.dumps(AMBIGUOUS)),
        (STEREOSET, "dev.json", json.dumps(dev_json([stereoset(1, "cook")], [stereoset(2, "cook")]))),
    ):
        here = tmp_path / name.partition(".")[0]
        here.mkdir()
        done = ended(Row(command, holding(content), named=name, may_pass=True), here)
        assert done.exit_code == 0
