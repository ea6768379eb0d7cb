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
    **{
        f"options and answer {row!a}"[:80]: holding(f"{HEADER}Who?,{row}\n")
        for row in (
            *(",,,,,,", "x,,A,,,,", "x,X ,A,,,,", "x,y,z,,,,", "x,y,1,,,,", "x,y,H,,,,", "B,A,A,,,,", "x,y,A,A,A,,"),
            *(f"x,y,{'z' * 100_000},,,,", f"x,{'y' * 20_000},A,,,,", f"x,y,A,,,g,{'i' * 5_000}"),
            *(f"x,y,A,,,{'g' * 5_000},1", "x,y,\x1b[31mA,,,,", "x\u202e,y,A,,,,", "x\x00,y,A,,,,"),
            # Blank, a joiner, a filler; and options that differ by a joiner, a variant, composition or an alphabet.
            *("x,\u2800,A,,,,", "x,\u200d,A,,,,", "x,\u3164,A,,,,", "the man,the\u200d man,A,,,,"),
            *("man,man\ufe0f,A,,,,", "caf\u00e9,cafe\u0301,A,,,,", "man,m\u0430n,A,,,,"),
        )
    },
    "no options": holding("question,answer\nWho?,a\n"),
    "nine options": holding(f"question,options\nWho?,{'|'.join('abcdefghi')}\n"),
    "a side that is open": holding("question,a,b,c,stereotyped\nWho?,x,y,z,A\n"),
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
CHANGES: dict[str, tuple[JsonValue, ...]] = {
    "label": (10**299, "0", True, 0.5, None),
    "ans1": ("The baker", "  ", ["The clerk"], "x" * 200_000),
    "context_condition": ("\x1b[31mambig", 1),
    "question": ("Who?\u202e",),
    "answer_info": ({f"ans{place}": ["x", "unknown"] for place in range(3)},),
    "additional_metadata": ({"stereotyped_groups": "grey"}, {"stereotyped_groups": []}),
    "question_polarity": ("negative",),
}
BAD_BBQ: dict[str, Make] = (
    {
        f"BBQ without {name}": holding(json.dumps(without(AMBIGUOUS, name)) + "\n")
        for name in ("ans1", "answer_info", "additional_metadata", "label")
    }
    | {
        f"BBQ with {name}: {value!a}"[:80]: holding(json.dumps({**AMBIGUOUS, name: value}) + "\n")
        for name, values in CHANGES.items()
        for value in values
    }
    | {
        "BBQ in one list": holding(json.dumps([AMBIGUOUS]) + "\n"),
        "BBQ over several lines": holding(json.dumps(AMBIGUOUS, indent=1)),
        "BBQ as CSV": holding(GOOD),
        "BBQ in UTF-16": holding((json.dumps(AMBIGUOUS) + "\n").encode("utf-16")),
    }
)
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
