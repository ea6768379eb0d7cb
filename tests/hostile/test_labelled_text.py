"""Files of labelled texts that are none, and options that fit no file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hostile.inputs import NO_CSV, NO_FILES, NO_JSON, NO_TEXTS, Make, holding
from tests.hostile.runner import Row, ended, rows

BUILD = ["build", "labelled_text", "--input", "INPUT", "--out", "OUT"]
HEADER = "text,label\n"


def texts(n: int, n_labels: int = 2) -> str:
    return "".join(f"text {number},label {number % n_labels}\n" for number in range(n))


GOOD = holding(HEADER + texts(97))
NO_LABELLED_TEXTS: dict[str, Make] = {
    "no label": holding("text,colour\na,b\n"),
    "no text": holding("label\na\n"),
    "one label": holding(HEADER + texts(200, 1)),
    "65 labels": holding(HEADER + texts(300, 65)),
    "one text 200 times": holding(HEADER + "a,b\n" * 200),
    "a label of 100,000 letters": holding(HEADER + f"a,{'x' * 100_000}\n"),
    "a label with escapes of a terminal": holding(HEADER + "a,\x1b[31mred\n"),
    "labels that differ by an alphabet": holding(HEADER + "a,cat\nb,c\u0430t\n" + texts(200, 2)),
    "labels that are blank": holding(HEADER + texts(200).replace("label 0", "\u2800").replace("label 1", "\u3164")),
    "labels of 20,000 letters": holding(HEADER + texts(200).replace("label", "x" * 20_000)),
    "ids of 5,000 letters": holding(
        "text,label,id\n" + "".join(f"a{n},{n % 2},{n}{'i' * 5_000}\n" for n in range(200))
    ),
    "JSON Lines with lists for texts": holding(json.dumps({"text": ["a"], "label": 1}) + "\n"),
    "JSON Lines with broken lines": holding('{"text": "a", "label": "b"}\n{"text": \n[1]\n'),
}
TABLE: dict[str, Row] = {
    **rows(BUILD, NO_FILES, NO_TEXTS, NO_CSV, NO_JSON, NO_LABELLED_TEXTS, named="mine.csv"),
    "too few rows": Row(BUILD, holding(HEADER + texts(96)), says="96 rows can be used, and 97 are needed"),
    "instructions that are turned": Row([*BUILD, "--instructions", "a\u202eb"], GOOD, says="invisible sign U+202E"),
    "too large a pool": Row([*BUILD, "--pool", "65"], GOOD, says="lower --pool"),
    "a dataset that is not there": Row([*BUILD[:2], "--input", "acme/none@x", *BUILD[4:]], says="cannot be downloaded"),
    "a dataset beside a file": Row([*BUILD, "--input", "acme/none"], GOOD, says="give it alone"),
    "label names that are no file": Row([*BUILD, "--label-names", "World"], GOOD, says="nor a file"),
    "one label name": Row([*BUILD, "--label-names", "0=World"], GOOD, says="give two or more"),
    "a label name twice": Row([*BUILD, "--label-names", "0=a,1=a"], GOOD, says="names a label twice"),
    "a label name of nothing": Row([*BUILD, "--label-names", "0=a,1="], GOOD, says="is no VALUE=NAME"),
    "a label name with an override": Row([*BUILD, "--label-names", "a,b\u202e"], GOOD, says="that nobody sees"),
    "labels that no row has": Row([*BUILD, "--label-names", "a,b"], GOOD, says="no row can be used"),
    "a mapping of no column": Row([*BUILD, "--map", "colour=label"], GOOD, says="with a column out of"),
}


@pytest.mark.parametrize("name", TABLE)
def test_files_of_no_labelled_texts_end_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)


def test_the_file_that_the_bad_ones_vary_is_good(tmp_path: Path) -> None:
    assert ended(Row(BUILD, GOOD, may_pass=True), tmp_path).exit_code == 0
