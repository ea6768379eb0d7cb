"""Tables of answers that are none: each ends in one line with the file, the row, the value and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluators.made_data import made_items, write_dataset
from tests.hostile.inputs import NO_FILES, holding
from tests.hostile.runner import Row, ended, rows

COMMON = ["import", "answers", "--input", "INPUT", "--dataset", "DATA", "--model", "lab/x", "--out", "OUT"]
ASKED = [*COMMON, "--note", "two people", "--config", "type2", "--prompt"]
WRITTEN, SCORED, ONCE = [*ASKED, "mcq2-generate-v1"], [*ASKED, "mcq2-v1"], [*ASKED, "intrinsic-v1"]
KEY = "made-0-he#0"
OPTION, SCORES, SHARES = "id,option\n", "id,logprob_1,logprob_2\n", "id,probability_1,probability_2\n"
GOOD = holding(f"{OPTION}{KEY},A\n")


CONTENTS: dict[str, tuple[list[str], str, str]] = {
    "nothing filled in": (WRITTEN, f"{OPTION}{KEY},\n", "no row has an answer; fill in the file"),
    "no id": (WRITTEN, "question,option\nx,A\n", "has no column id; it has 'question', 'option'"),
    "no answers": (WRITTEN, f"id,prompt,answer\n{KEY},x,A\n", "has no column answers: option, text, or logprob_1"),
    "an id in two columns": (WRITTEN, f"id,item_id,option\n{KEY},x,A\n", "has 2 columns named 'id'"),
    "an unknown item": (WRITTEN, f"{OPTION}{KEY},A\nmade-99-he#0,A\n", "mine.csv:3: the id 'made-99-he#0' is none of"),
    "an id with escapes of a terminal": (WRITTEN, f"{OPTION}\x1b[31m,A\n", r"the id '\x1b[31m' is none of"),
    "no id in a row": (WRITTEN, f"{OPTION},A\n", "mine.csv:2: has no id"),
    "an item that is asked twice": (
        SCORED,
        f"{SCORES}made-0-he,-1,-2\n",
        "with the ids made-0-he#0 to #1, as biasboard questions csv does; or take --prompt intrinsic-v1, w",
    ),
    "another answer": (WRITTEN, f"{OPTION}{KEY},A\n{KEY},B\n", f"mine.csv:3: another answer to {KEY} than at mine.csv"),
    "an option that is none": (WRITTEN, f"{OPTION}{KEY},D\n", "mine.csv:2: the option 'D' is not read as one of"),
    "an option to be scored": (
        SCORED,
        f"{OPTION}{KEY},A\n",
        "option, and prompt 'mcq2-v1' scores options; give each",
    ),
    "scores where a text is asked for": (
        WRITTEN,
        f"{SCORES}{KEY},-1,-2\n",
        "asks for a text; give one; or take --prompt intrinsic-v1, mcq2-v1, mcq3-v1",
    ),
    "an option and a text": (WRITTEN, f"id,option,text\n{KEY},A,B\n", "is answered with option and text; keep one"),
    "one kind of score each": (ONCE, f"id,logprob_1,probability_2\n{KEY},-1,.2\n", "logprob and probability; keep one"),
    "a score too many": (ONCE, f"id,logprob_1,logprob_2,logprob_3\n{KEY},-1,-1,-1\n", "2 options need a number each"),
    "a score too few": (ONCE, f"{SCORES}{KEY},-1,\n", "2 options need a number each"),
    **{
        f"a score of {cell}": (ONCE, f"{SCORES}{KEY},-1,{cell}\n", f"mine.csv:2: logprob_2 is '{cell}', not a log-prob")
        for cell in ("nan", "0.1", "-1_0", "-\u0663")
    },
    **{
        f"a share of {cell}": (ONCE, f"{SHARES}{KEY},.5,{cell}\n", f"probability_2 is '{cell}', not a probability")
        for cell in ("-0.1", "1.01")
    },
    "a status that is none": (WRITTEN, f"id,option,status\n{KEY},,done\n", "the status 'done' is none of answered, tr"),
    "a refusal with an option": (WRITTEN, f"id,option,status\n{KEY},A,refused\n", "the status refused and is answered"),
    "other words": (WRITTEN, f"id,prompt,option\n{KEY},Sentence: Who?,A\n", f"{KEY} was asked in other words: from"),
    "a row too short": (WRITTEN, f"id,option,status\n{KEY},A\n", "mine.csv:2: has 2 fields, the header 3"),
    "too few answers": (WRITTEN, f"{OPTION}{KEY},A\n", "12 of 12 items failed, more than --max-failure-rate 0.05"),
}
TYPE2 = [*COMMON, "--config", "type2"]
LOG = ["import", "lm-eval", "--input", "INPUT", "--model", "x"]
QUESTIONS = ["questions", "csv", "DATA", "--out", "OUT"]
OPTIONS: dict[str, tuple[list[str], str]] = {
    "no note": (TYPE2, "--note: say where the answers come from"),
    "a note with an override": ([*TYPE2, "--note", "a\u202eb"], "--note: say where"),
    "two configs": ([*COMMON, "--note", "me"], "a table answers one config with one prompt; name one of"),
    "no dataset": (
        [word for word in COMMON if word not in ("--dataset", "DATA")] + ["--note", "me"],
        "--dataset: a table does not say which questions it answers",
    ),
    "a tokenizer": ([*WRITTEN, "--tokenizer", "x"], "--tokenizer: nobody counts the tokens"),
    "a normalisation of texts": ([*WRITTEN, "--normalisation", "sum"], "leave out --normalisation"),
    "a prompt that follows an answer": ([*ASKED, "cot-logprob-v1"], "scores options after the model's own"),
    "items for a log": ([*LOG, "--config", "type2"], "only for biasboard import"),
    "a tokenizer for questions": ([*QUESTIONS, "--tokenizer", "x"], "--tokenizer: csv leaves every text as it is"),
    "questions that follow an answer": ([*QUESTIONS, "--prompt", "cot-logprob-v1"], "csv cannot ask with prompt"),
}
TABLE: dict[str, Row] = {
    # The reader of tables is that of the builders, whose tests give it more.
    **rows(WRITTEN, {name: NO_FILES[name] for name in ("missing", "a pipe")}, named="mine.csv"),
    **{
        name: Row(command, holding(content), says=says, named="mine.csv")
        for name, (command, content, says) in CONTENTS.items()
    },
    **{name: Row(command, GOOD, says=says) for name, (command, says) in OPTIONS.items()},
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "made"
    return write_dataset(folder, {"type2": made_items(6), "type1": made_items(4, ambiguous=True)})


@pytest.mark.parametrize("name", TABLE)
def test_tables_of_no_answers_end_in_one_line(name: str, dataset: Path, tmp_path: Path) -> None:
    one = TABLE[name]
    ended(one._replace(command=[str(dataset) if word == "DATA" else word for word in one.command]), tmp_path)
