"""Bad input of ``build synthbias``: a researcher's own sentences, ``lint``, and the options of every source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.inputs import NO_CSV, NO_FILES, NO_TEXTS, Make, holding
from tests.hostile.runner import Row, ended, rows

BUILD = ["build", "synthbias", "--source", "csv", "--input", "INPUT", "--out", "OUT"]
LINT = ["build", "synthbias", "lint", "INPUT"]
HEAD = "sentence,answer\n"
HE, SHE = (f"The cook and the nurse laughed when {form} came home." for form in ("he", "she"))
PAIR = f"{HEAD}{HE},cook\n{SHE},cook\n"

NO_SENTENCES: dict[str, Make] = {
    "no column of sentences": holding("a,answer\nx,cook\n"),
    "no column of answers": holding(f"sentence,note\n{HE},x\n"),
    "a separator that is none": holding("sentence|answer\nx|cook\n"),
    "two columns of sentences": holding(f"sentence,sentence,answer\n{HE},{HE},cook\n"),
    "a header of sentences alone": holding("sentence,answer\n"),
    "a header that stays open": holding('"text,answer\n'),
    "a header over two lines": holding('"sentence\nanswer"\nx\n'),
    "a header of formulas": holding("=1+1,@SUM(A1)\nx,y\n"),
    "a header of 5,000 digits": holding("9" * 5_000 + ",answer\nx,y\n"),
    "a spreadsheet": holding(b"PK\x03\x04xl/workbook.xml"),
    "a web page": holding("<!doctype html><title>Sign in</title>\n"),
    "UTF-16 with a mark": holding(PAIR.encode("utf-16")),
}
"""Files without the columns; lint and building refuse them alike."""

NO_PAIRS: dict[str, Make] = {
    "a header that reverses the line": holding("\u202esentence,\u202eanswer\nx,y\n"),
    "one side alone": holding(f"{HEAD}{HE},cook\n"),
    "rows of NUL bytes": holding(f"{HEAD}\0,\0\n"),
    "no occupation": holding(f"{HEAD}The cat saw the dog when he came home early.,cat\n"),
    "one occupation": holding(f"{HEAD}The cook saw the dog when he came home early.,cook\n"),
    "three occupations": holding(f"{HEAD}The cook and the nurse met the guard when he left.,cook\n"),
    "no pronoun": holding(f"{HEAD}The cook and the nurse laughed at the old party.,cook\n"),
    "an answer of 5,000 digits": holding(f"{HEAD}{HE},{'9' * 5_000}\n{SHE},{'9' * 5_000}\n"),
    "an unknown type": holding(f"sentence,type\n{HE},type9\n{SHE},type9\n"),
    "a formula as an answer": holding(f"{HEAD}{HE},=cmd()\n{SHE},=cmd()\n"),
    "invisible letters": holding(f"{HEAD}{HE[:8]}\u200b{HE[8:]},cook\n"),
    "a reversed line": holding(f"{HEAD}\u202e{HE},cook\n"),
    "Cyrillic letters": holding(f"{HEAD}{HE},cook\n{SHE},cook\n".replace("cook and", "c\u043e\u043ek and")),
    "a sentence of a million letters": holding(f"{HEAD}{'x' * 1_000_000} {HE},cook\n"),
    "100,000 pronouns": holding(f"{HEAD}The cook and the nurse {'he ' * 100_000}.,cook\n"),
    "bytes of another coding": holding(HEAD.encode() + HE.encode().replace(b"cook", b"c\xf6ok") + b",cook\n"),
    "markup": holding(f"{HEAD}<b>{HE}</b>,cook\n<b>{SHE}</b>,cook\n"),
    "a row with too few cells": holding(f"sentence,answer,pair\n{HE}\n"),
}
"""Files of which no minimal pair is left; for lint, each of their rows is a finding."""

SAYS = {
    "empty": "is empty; give a CSV file whose first line",
    "a header of sentences alone": "has a header and no rows; add a row",
    "no column of sentences": "has no column for the sentence, but 'a', 'answer'; name it: --map sentence=COLUMN",
    "no column of answers": "but 'sentence', 'note'; name one: --map answer=COLUMN",
    "a separator that is none": "but 'sentence|answer' alone (values are separated by commas, semicolons, tabs)",
    "two columns of sentences": "has 2 columns named 'sentence' (sentence); rename all but one",
    "a header that stays open": "its first line is not CSV",
    "a spreadsheet": "is a spreadsheet or an archive",
    "UTF-16 with a mark": "is UTF-16; save it as CSV UTF-8",
    "one side alone": "no minimal pair is left; rows rejected: 1 unpaired; the first, input:2, has 'he'",
}
"""What is said of some of them."""

SYNTHBIAS, PUBLISHED = ["build", "synthbias"], ["build", "synthbias", "--source", "synthbias", "--input", "INPUT"]
SOURCES: dict[str, Row] = {
    "a file that is missing": Row(BUILD, says="--input INPUT: no such file; give a CSV file"),
    "pairs to complete of no file": Row([*SYNTHBIAS, "--complete-pairs"], says="--complete-pairs: is for the csv"),
    "the published file missing": Row([*PUBLISHED, "--out", "OUT"], says="--input INPUT: no such file"),
    "the published file empty": Row([*PUBLISHED, "--out", "OUT"], holding(b""), "INPUT: is empty"),
    "another file": Row([*PUBLISHED, "--out", "OUT"], holding("a,b\r\n1,2\r\n"), "INPUT:1: column type, sample"),
    "a file for the frames": Row([*SYNTHBIAS, "--input", "INPUT"], holding("a"), "the embedded source reads no file"),
    "a seed of published files": Row(
        [*SYNTHBIAS, "--source", "winobias", "--input", "INPUT", "--seed", "1"],
        Path.mkdir,
        "--seed: is for the embedded and families sources alone",
    ),
    "a limit below a pair of each type": Row([*SYNTHBIAS, "--limit", "2"], says="--limit 2: one pair from each of"),
    "a folder of anything": Row(
        [*SYNTHBIAS, "--out", "INPUT", "--overwrite"],
        lambda path: holding("a")(path / "a"),
        "--out INPUT: holds files but no dataset.json",
    ),
    "generated of no run": Row([*SYNTHBIAS, "--source", "generated", "--input", "INPUT"], says="no result.json here"),
    "a limit of a round": Row(
        [*SYNTHBIAS, "generate", "--model", "m", "--backend", "openai", "--limit", "3"],
        says="--limit: generate itself chooses",
    ),
    "cells of frames": Row([*SYNTHBIAS, "--per-cell", "3"], says="for the generated source alone"),
}

WRONG_OPTIONS: dict[str, Row] = {
    name: Row([*BUILD, *options], holding(PAIR), says=says)
    for name, options, says in (
        ("a mapping without a heading", ["--map", "sentence="], "is not COLUMN=HEADING"),
        ("a mapping of no column", ["--map", "text=sentence"], "is not COLUMN=HEADING"),
        ("a mapping to no heading", ["--map", "sentence=Satz"], "no file has this heading"),
        ("a mapping of 5,000 letters", ["--map", "x" * 5_000], "is not COLUMN=HEADING"),
        ("a limit below a pair", ["--limit", "1"], "--limit"),
        ("a seed", ["--seed", "1"], "--seed: is for the embedded and families sources alone"),
        ("a licence that is none", ["--licence", "(c) me & you"], "--licence"),
        ("an empty licence", ["--licence", ""], "--licence"),
        ("a name that is none", ["--name", "My data"], "--name"),
        ("a name of 5,000 letters", ["--name", "x" * 5_000], "--name"),
        ("a folder that is no dataset", ["--with", "INPUT"], "INPUT"),
        ("a dataset that is missing", ["--with", "nowhere"], "nowhere"),
        ("a licence of 5,000 letters", ["--licence", "x" * 5_000], "--licence"),
        ("a version that is none", ["--dataset-version", "one"], "is not"),
        ("the same file twice", ["--input", "INPUT"], "another file is named"),
    )
}
LINT_OPTIONS: dict[str, Row] = {
    name: Row([*LINT, *options], holding(PAIR), says=says, named="input.csv")
    for name, options, says in (
        ("a check that is none", ["--ignore", "doubled_words"], "no such check; is doubled_word meant?"),
        ("a check of 5,000 letters", ["--ignore", "x" * 5_000], "no such check"),
        ("a mapping to no heading", ["--map", "sentence=Satz"], "no file has this heading"),
        ("a number of findings below 0", ["--most", "-1"], "--most"),
        ("a severity that is none", ["--show", "all"], "--show"),
    )
}

OF_FILES = rows(BUILD, NO_FILES, NO_TEXTS, NO_CSV, NO_SENTENCES, NO_PAIRS)
TABLE: dict[str, Row] = {
    **{name: row._replace(says=SAYS.get(name.partition(": ")[2], "")) for name, row in OF_FILES.items()},
    **rows(LINT, NO_FILES, NO_TEXTS, NO_CSV, NO_SENTENCES, named="input.csv"),
    **WRONG_OPTIONS,
    **SOURCES,
    **{f"lint: {name}": row for name, row in LINT_OPTIONS.items()},
}


@pytest.mark.parametrize("name", TABLE)
def test_a_bad_file_or_option_ends_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)
