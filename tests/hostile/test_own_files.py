"""A user's own labelled texts, questions and sentences: files that hold none, and options that fit no file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.test_own_questions import AMBIGUOUS
from tests.hostile.inputs import NO_CSV, NO_FILES, NO_JSON, NO_TEXTS, Make, holding
from tests.hostile.runner import Row, ended, rows

TEXTS = ["build", "labelled_text", "--input", "INPUT", "--out", "OUT"]
LABELLED = "text,label\n"


def texts(n: int, n_labels: int = 2) -> str:
    return "".join(f"text {number},label {number % n_labels}\n" for number in range(n))


GOOD_TEXTS = holding(LABELLED + texts(97))
NO_LABELLED_TEXTS: dict[str, Make] = {
    "no label": holding("text,colour\na,b\n"),
    "no text": holding("label\na\n"),
    "one label": holding(LABELLED + texts(200, 1)),
    "65 labels": holding(LABELLED + texts(300, 65)),
    "one text 200 times": holding(LABELLED + "a,b\n" * 200),
    "a label of 100,000 letters": holding(LABELLED + f"a,{'x' * 100_000}\n"),
    "a label with escapes of a terminal": holding(LABELLED + "a,\x1b[31mred\n"),
    "labels that differ by an alphabet": holding(LABELLED + "a,cat\nb,c\u0430t\n" + texts(200, 2)),
    "labels that are blank": holding(LABELLED + texts(200).replace("label 0", "\u2800").replace("label 1", "\u3164")),
    "labels of 20,000 letters": holding(LABELLED + texts(200).replace("label", "x" * 20_000)),
    "ids of 5,000 letters": holding(
        "text,label,id\n" + "".join(f"a{n},{n % 2},{n}{'i' * 5_000}\n" for n in range(200))
    ),
    "JSON Lines with lists for texts": holding(json.dumps({"text": ["a"], "label": 1}) + "\n"),
    "JSON Lines with broken lines": holding('{"text": "a", "label": "b"}\n{"text": \n[1]\n'),
}
OF_TEXTS: dict[str, Row] = {
    **rows(TEXTS, NO_FILES, NO_TEXTS, NO_CSV, NO_JSON, NO_LABELLED_TEXTS, named="mine.csv"),
    "too few rows": Row(TEXTS, holding(LABELLED + texts(96)), says="96 rows can be used, and 97 are needed"),
    "instructions that are turned": Row(
        [*TEXTS, "--instructions", "a\u202eb"], GOOD_TEXTS, says="invisible sign U+202E"
    ),
    "too large a pool": Row([*TEXTS, "--pool", "65"], GOOD_TEXTS, says="lower --pool"),
    "a dataset that is not there": Row([*TEXTS[:2], "--input", "acme/none@x", *TEXTS[4:]], says="cannot be downloaded"),
    "a dataset beside a file": Row([*TEXTS, "--input", "acme/none"], GOOD_TEXTS, says="give it alone"),
    "label names that are no file": Row([*TEXTS, "--label-names", "World"], GOOD_TEXTS, says="nor a file"),
    "one label name": Row([*TEXTS, "--label-names", "0=World"], GOOD_TEXTS, says="give two or more"),
    "a label name twice": Row([*TEXTS, "--label-names", "0=a,1=a"], GOOD_TEXTS, says="names a label twice"),
    "a label name of nothing": Row([*TEXTS, "--label-names", "0=a,1="], GOOD_TEXTS, says="is no VALUE=NAME"),
    "a label name with an override": Row([*TEXTS, "--label-names", "a,b\u202e"], GOOD_TEXTS, says="that nobody sees"),
    "labels that no row has": Row([*TEXTS, "--label-names", "a,b"], GOOD_TEXTS, says="no row can be used"),
    "a mapping of no column": Row([*TEXTS, "--map", "colour=label"], GOOD_TEXTS, says="with a column out of"),
}

QUESTIONS = ["build", "own_questions", "--input", "INPUT", "--out", "OUT"]
ASKED = "question,option a,option b,answer,stereotyped,neutral,group,id\n"
BBQ = [*QUESTIONS, "--source", "bbq"]
STEREOSET = [*QUESTIONS, "--source", "stereoset"]

NO_QUESTIONS: dict[str, Make] = {
    **{
        f"options and answer {row!a}"[:80]: holding(f"{ASKED}Who?,{row}\n")
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
    "100,000 rows that are none": holding(ASKED + "Who?,x,,A,,,,\n" * 100_000),
}
BAD_BBQ: dict[str, Make] = {
    "BBQ in one list": holding(json.dumps([AMBIGUOUS]) + "\n"),
    "BBQ with a label of 300 digits": holding(json.dumps({**AMBIGUOUS, "label": 10**299}) + "\n"),
    "BBQ with an option of 200,000 letters": holding(json.dumps({**AMBIGUOUS, "ans1": "x" * 200_000}) + "\n"),
}
GOOD_QUESTIONS = holding(ASKED + "Who?,x,y,A,,,g,1\n")
OF_QUESTIONS: dict[str, Row] = {
    **rows(QUESTIONS, NO_QUESTIONS, named="mine.csv"),
    **rows(BBQ, NO_TEXTS, BAD_BBQ, named="Age.jsonl"),
    **rows(STEREOSET, NO_TEXTS, NO_JSON, named="dev.json"),
    **rows([*QUESTIONS, "--source", "crows-pairs"], {"own": GOOD_QUESTIONS}, named="pairs.csv"),
    "an input twice": Row([*QUESTIONS, "--input", "INPUT"], GOOD_QUESTIONS, says="rename it", named="mine.csv"),
    "a mapping of BBQ": Row([*BBQ, "--map", "group=people"], GOOD_QUESTIONS, says="leave it out"),
    "a name with a slash": Row([*QUESTIONS, "--name", "../x"], GOOD_QUESTIONS, says="single hyphens"),
    "a file name with a line break": Row(QUESTIONS, GOOD_QUESTIONS, says="choose another name", named="my\nfile.csv"),
    "a file name with an override": Row(QUESTIONS, GOOD_QUESTIONS, says="is no plain text", named="my\u202efile.csv"),
    "a folder that holds something": Row([*QUESTIONS[:-1], "."], GOOD_QUESTIONS),
}

SENTENCES = ["build", "synthbias", "--source", "csv", "--input", "INPUT", "--out", "OUT"]
LINT = ["build", "synthbias", "lint", "INPUT"]
HEAD = "sentence,answer\n"
HE, SHE = (f"The cook and the nurse laughed when {form} came home." for form in ("he", "she"))
PAIR = f"{HEAD}{HE},cook\n{SHE},cook\n"

NO_SENTENCES: dict[str, tuple[Make, str]] = {
    "no column of sentences": (holding("a,answer\nx,cook\n"), "but 'a', 'answer'; name it: --map sentence=COLUMN"),
    "no column of answers": (holding(f"sentence,note\n{HE},x\n"), "'note'; name one: --map answer=COLUMN"),
    "another separator": (holding("sentence|answer\nx|cook\n"), "but 'sentence|answer' alone (values are separated by"),
    "column twice": (holding(f"sentence,sentence,answer\n{HE},{HE},cook\n"), "2 columns named 'sentence' (sentence)"),
    "empty": (holding(b""), "is empty; give a CSV file whose first line"),
    "a header of sentences alone": (holding(HEAD), "has a header and no rows; add a row"),
    "a header that stays open": (holding('"text,answer\n'), "its first line is not CSV"),
    "a header over two lines": (holding('"sentence\nanswer"\nx\n'), "has no column for the sentence"),
    "a spreadsheet": (holding(b"PK\x03\x04xl/workbook.xml"), "is a spreadsheet or an archive"),
    "UTF-16 with a mark": (holding(PAIR.encode("utf-16")), "is UTF-16; save it as CSV UTF-8"),
}
"""Files without the columns, and what is said of them."""

NO_PAIRS: dict[str, Make] = {
    "a header that reverses the line": holding("\u202esentence,\u202eanswer\nx,y\n"),
    "no occupation": holding(f"{HEAD}The cat saw the dog when he came home early.,cat\n"),
    "an answer of 5,000 digits": holding(f"{HEAD}{HE},{'9' * 5_000}\n{SHE},{'9' * 5_000}\n"),
    "a formula as an answer": holding(f"{HEAD}{HE},=cmd()\n{SHE},=cmd()\n"),
    "Cyrillic letters": holding(f"{HEAD}{HE},cook\n{SHE},cook\n".replace("cook and", "c\u043e\u043ek and")),
    "a sentence of a million letters": holding(f"{HEAD}{'x' * 1_000_000} {HE},cook\n"),
    "100,000 pronouns": holding(f"{HEAD}The cook and the nurse {'he ' * 100_000}.,cook\n"),
    "markup": holding(f"{HEAD}<b>{HE}</b>,cook\n<b>{SHE}</b>,cook\n"),
}
"""Files of which no minimal pair is left."""

SYNTHBIAS = ["build", "synthbias"]
WRONG_OPTIONS: dict[str, Row] = {
    "pairs to complete of no file": Row([*SYNTHBIAS, "--complete-pairs"], says="--complete-pairs: is for the csv"),
    "a file for the frames": Row([*SYNTHBIAS, "--input", "INPUT"], holding("a"), "the embedded source reads no file"),
    "a seed of published files": Row(
        [*SYNTHBIAS, "--source", "winobias", "--input", "INPUT", "--seed", "1"],
        Path.mkdir,
        "--seed: is for the embedded and families sources alone",
    ),
    "a folder of anything": Row(
        [*SYNTHBIAS, "--out", "INPUT", "--overwrite"],
        lambda path: holding("a")(path / "a"),
        "--out INPUT: holds files but no dataset.json",
    ),
    "generated of no run": Row(
        [*SYNTHBIAS, "--source", "generated", "--input", "INPUT"], says="no such file or folder"
    ),
    "a limit of a round": Row(
        [*SYNTHBIAS, "generate", "--model", "m", "--backend", "openai", "--limit", "3"],
        says="--limit: generate itself chooses",
    ),
    "a mapping of no column": Row([*SENTENCES, "--map", "text=sentence"], holding(PAIR), "is not COLUMN=HEADING"),
    "a mapping to no heading": Row([*SENTENCES, "--map", "sentence=Satz"], holding(PAIR), "no file has this heading"),
    "one side alone": Row(SENTENCES, holding(f"{HEAD}{HE},cook\n"), "rows rejected: 1 unpaired; the first, input:2"),
    "a licence that is none": Row([*SENTENCES, "--licence", "(c) me & you"], holding(PAIR), "--licence"),
    "a name that is none": Row([*SENTENCES, "--name", "My data"], holding(PAIR), "--name"),
    "a check that is none": Row(
        [*LINT, "--ignore", "doubled_words"], holding(PAIR), "no such check; is doubled_word meant?", named="input.csv"
    ),
}

OF_SENTENCES: dict[str, Row] = {
    **{name: Row(SENTENCES, make, says) for name, (make, says) in NO_SENTENCES.items()},
    **rows(SENTENCES, NO_PAIRS),
    **rows(LINT, NO_FILES, named="input.csv"),
    **WRONG_OPTIONS,
}

TABLE = {
    f"{kind}: {name}": row
    for kind, table in (("texts", OF_TEXTS), ("questions", OF_QUESTIONS), ("sentences", OF_SENTENCES))
    for name, row in table.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_a_bad_file_or_option_ends_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)


def test_the_files_that_the_bad_ones_vary_are_good(tmp_path: Path) -> None:
    assert ended(Row(TEXTS, GOOD_TEXTS, may_pass=True), tmp_path).exit_code == 0
