"""Bad input of ``build synthbias``: a researcher's own sentences, ``lint``, and the options of every source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.inputs import NO_FILES, Make, holding
from tests.hostile.runner import Row, ended, rows

BUILD = ["build", "synthbias", "--source", "csv", "--input", "INPUT", "--out", "OUT"]
LINT = ["build", "synthbias", "lint", "INPUT"]
HEAD = "sentence,answer\n"
HE, SHE = (f"The cook and the nurse laughed when {form} came home." for form in ("he", "she"))
PAIR = f"{HEAD}{HE},cook\n{SHE},cook\n"

NO_SENTENCES: dict[str, tuple[Make, str]] = {
    "no column of sentences": (
        holding("a,answer\nx,cook\n"),
        "has no column for the sentence, but 'a', 'answer'; name it: --map sentence=COLUMN",
    ),
    "no column of answers": (
        holding(f"sentence,note\n{HE},x\n"),
        "but 'sentence', 'note'; name one: --map answer=COLUMN",
    ),
    "a separator that is none": (
        holding("sentence|answer\nx|cook\n"),
        "but 'sentence|answer' alone (values are separated by commas, semicolons, tabs)",
    ),
    "two columns of sentences": (
        holding(f"sentence,sentence,answer\n{HE},{HE},cook\n"),
        "has 2 columns named 'sentence' (sentence); rename all but one",
    ),
    "empty": (holding(b""), "is empty; give a CSV file whose first line"),
    "a header of sentences alone": (holding(HEAD), "has a header and no rows; add a row"),
    "a header that stays open": (holding('"text,answer\n'), "its first line is not CSV"),
    "a header over two lines": (holding('"sentence\nanswer"\nx\n'), "has no column for the sentence"),
    "a header of 5,000 digits": (holding("9" * 5_000 + ",answer\nx,y\n"), "has no column for the sentence"),
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
OPTIONS: dict[str, Row] = {
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
    "generated of no run": Row([*SYNTHBIAS, "--source", "generated", "--input", "INPUT"], says="no result.json here"),
    "a limit of a round": Row(
        [*SYNTHBIAS, "generate", "--model", "m", "--backend", "openai", "--limit", "3"],
        says="--limit: generate itself chooses",
    ),
    "a mapping without a heading": Row([*BUILD, "--map", "sentence="], holding(PAIR), "is not COLUMN=HEADING"),
    "a mapping of no column": Row([*BUILD, "--map", "text=sentence"], holding(PAIR), "is not COLUMN=HEADING"),
    "a mapping to no heading": Row([*BUILD, "--map", "sentence=Satz"], holding(PAIR), "no file has this heading"),
    "one side alone": Row(BUILD, holding(f"{HEAD}{HE},cook\n"), "rows rejected: 1 unpaired; the first, input:2, has"),
    "a licence that is none": Row([*BUILD, "--licence", "(c) me & you"], holding(PAIR), "--licence"),
    "a name that is none": Row([*BUILD, "--name", "My data"], holding(PAIR), "--name"),
    "a name of 5,000 letters": Row([*BUILD, "--name", "x" * 5_000], holding(PAIR), "--name"),
    "the same file twice": Row([*BUILD, "--input", "INPUT"], holding(PAIR), "another file is named"),
    "a check that is none": Row(
        [*LINT, "--ignore", "doubled_words"], holding(PAIR), "no such check; is doubled_word meant?", named="input.csv"
    ),
}

TABLE: dict[str, Row] = {
    **{name: Row(BUILD, make, says) for name, (make, says) in NO_SENTENCES.items()},
    **rows(BUILD, NO_FILES, NO_PAIRS),
    **rows(LINT, NO_FILES, named="input.csv"),
    **OPTIONS,
}


@pytest.mark.parametrize("name", TABLE)
def test_a_bad_file_or_option_ends_in_one_line(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)
