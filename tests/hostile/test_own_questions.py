"""Files of questions that are none, for each source of the builder own_questions, and options that fit no file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.test_published_json import AMBIGUOUS
from tests.hostile.inputs import NO_FILES, NO_JSON, NO_TEXTS, Make, holding
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
            *(f"x,y,{'z' * 100_000},,,,", f"x,{'y' * 20_000},A,,,,", f"x,y,A,,,g,{'i' * 5_000}"),
            *("x,y,\x1b[31mA,,,,", "x\u202e,y,A,,,,"),
            # Blank, a filler; and options that differ by a joiner, composition or an alphabet.
            *("x,\u2800,A,,,,", "x,\u3164,A,,,,", "the man,the\u200d man,A,,,,"),
            *("caf\u00e9,cafe\u0301,A,,,,", "man,m\u0430n,A,,,,"),
        )
    },
    "no options": holding("question,answer\nWho?,a\n"),
    "nine options": holding(f"question,options\nWho?,{'|'.join('abcdefghi')}\n"),
    "names of their own in 5,000 rows": holding(
        "".join(f'{{"option a": "x", "option b": "y", "c{number}": 1}}\n' for number in range(5_000))
    ),
    "a line of ten million lists": holding('{"question": [' + "[]," * 10_000_000 + "0]}\n"),
    "a separator alone": holding("sep=;\n"),
    "a separator and a header": holding("sep=;\nquestion;option a;option b\n"),
    "a web page": holding("<!doctype html>\n<table><tr><td>Who?</td></tr></table>\n"),
    "100,000 rows that are none": holding(HEADER + "Who?,x,,A,,,,\n" * 100_000),
}
BAD_BBQ: dict[str, Make] = {
    "BBQ in one list": holding(json.dumps([AMBIGUOUS]) + "\n"),
    "BBQ with a label of 300 digits": holding(json.dumps({**AMBIGUOUS, "label": 10**299}) + "\n"),
    "BBQ with an option of 200,000 letters": holding(json.dumps({**AMBIGUOUS, "ans1": "x" * 200_000}) + "\n"),
}
GOOD_CSV = holding(GOOD)
TABLE: dict[str, Row] = {
    **rows(BUILD, NO_QUESTIONS, named="mine.csv"),
    **rows(BBQ, NO_FILES, NO_TEXTS, NO_JSON, BAD_BBQ, named="Age.jsonl"),
    **rows(STEREOSET, NO_FILES, NO_TEXTS, NO_JSON, named="dev.json"),
    **rows([*BUILD, "--source", "crows-pairs"], {"own": GOOD_CSV}, named="pairs.csv"),
    "an input twice": Row([*BUILD, "--input", "INPUT"], GOOD_CSV, says="rename it", named="mine.csv"),
    "a mapping of BBQ": Row([*BBQ, "--map", "group=people"], GOOD_CSV, says="leave it out"),
    "a name with a slash": Row([*BUILD, "--name", "../x"], GOOD_CSV, says="single hyphens"),
    "a file name with a line break": Row(BUILD, GOOD_CSV, says="choose another name", named="my\nfile.csv"),
    "a file name with an override": Row(BUILD, GOOD_CSV, says="is no plain text", named="my\u202efile.csv"),
    "a folder that holds something": Row([*BUILD[:-1], "."], GOOD_CSV),
}


@pytest.mark.parametrize("name", TABLE)
def test_files_of_no_questions_end_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)
