"""Tables of answers that are none: each ends in one line with the file, the row, the value and what to do."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluators.made_data import made_items, write_dataset
from tests.hostile.inputs import NO_CSV, NO_FILES, NO_JSON, NO_TEXTS, Make, holding
from tests.hostile.runner import Row, ended, rows

COMMON = ["import", "answers", "--input", "INPUT", "--dataset", "DATA", "--model", "lab/x", "--out", "OUT"]
ASKED = [*COMMON, "--note", "two people", "--config", "type2", "--prompt"]
WRITTEN, SCORED, ONCE = [*ASKED, "mcq2-generate-v1"], [*ASKED, "mcq2-v1"], [*ASKED, "intrinsic-v1"]
KEY = "made-0-he#0"
OPTION, SCORES = "id,option\n", "id,logprob_1,logprob_2\n"
GOOD = holding(f"{OPTION}{KEY},A\n")


def parquet(**columns: object) -> Make:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return holding(sink.getvalue())


ONE_MIB = pa.DictionaryArray.from_arrays(np.zeros(4096, "int32"), pa.array(["x" * (1 << 20)]))
CONTENTS: dict[str, tuple[list[str], str | bytes | Make, str]] = {
    "a header alone": (WRITTEN, OPTION, "no row has an answer; fill in the file"),
    "nothing filled in": (WRITTEN, f"{OPTION}{KEY},\n", "no row has an answer; fill in the file"),
    "no id": (WRITTEN, "question,option\nx,A\n", "has no column id; it has 'question', 'option'"),
    "no answers": (WRITTEN, f"id,prompt,answer\n{KEY},x,A\n", "has no column answers: option, text, or logprob_1"),
    "two columns of one name": (WRITTEN, f"id,option,Option\n{KEY},A,A\n", "has 2 columns named 'option'"),
    "an id in two columns": (WRITTEN, f"id,item_id,option\n{KEY},x,A\n", "has 2 columns named 'id'"),
    "an unknown item": (WRITTEN, f"{OPTION}{KEY},A\nmade-99-he#0,A\n", "mine.csv:3: the id 'made-99-he#0' is none of"),
    "an unknown number": (WRITTEN, f"{OPTION}made-0-he#2,A\n", "the id 'made-0-he#2' is none of 24 questions"),
    "an id of 100,000 letters": (WRITTEN, f"{OPTION}{'x' * 100_000},A\n", "correct it, or name what was asked"),
    "an id with escapes of a terminal": (WRITTEN, f"{OPTION}\x1b[31m,A\n", r"the id '\x1b[31m' is none of"),
    "no id in a row": (WRITTEN, f"{OPTION},A\n", "mine.csv:2: has no id"),
    "an item that is asked twice": (
        WRITTEN,
        f"{OPTION}made-0-he,A\n",
        "asks 2 times; write a row for each question, with the ids made-0-he#0 to #1",
    ),
    "a score of an item that is asked twice": (
        SCORED,
        f"{SCORES}made-0-he,-1,-2\n",
        "or take --prompt intrinsic-v1, w",
    ),
    "another answer": (WRITTEN, f"{OPTION}{KEY},A\n{KEY},B\n", f"mine.csv:3: another answer to {KEY} than at mine.csv"),
    "another answer by another name": (
        ONCE,
        f"{SCORES}made-0-he,-1,-2\n{KEY},-2,-1\n",
        f"another answer to {KEY} than",
    ),
    "an option that is none": (WRITTEN, f"{OPTION}{KEY},D\n", "mine.csv:2: the option 'D' is not read as one of"),
    "two options": (WRITTEN, f"{OPTION}{KEY},A or B\n", "the option 'A or B' is not read as one of"),
    "an option without a confidence": ([*ASKED, "verbalised-v1"], f"{OPTION}{KEY},A\n", "the option 'A' is not read"),
    "an option where options are scored": (
        SCORED,
        f"{OPTION}{KEY},A\n",
        "mine.csv:2: is answered with option, and prompt 'mcq2-v1' scores options; give each",
    ),
    "a text where options are scored": (SCORED, f"id,text\n{KEY},A\n", "or take --prompt mcq2-generate-v1, mcq3-gen"),
    "scores where a text is asked for": (
        WRITTEN,
        f"{SCORES}{KEY},-1,-2\n",
        "asks for a text; give one; or take --prompt intrinsic-v1, mcq2-v1, mcq3-v1",
    ),
    "an option and a text": (WRITTEN, f"id,option,text\n{KEY},A,B\n", "is answered with option and text; keep one"),
    "both kinds of scores": (
        ONCE,
        f"id,logprob_1,logprob_2,probability_1,probability_2\n{KEY},-1,-2,.1,.2\n",
        "logprob and probability; keep",
    ),
    "one kind of score each": (ONCE, f"id,logprob_1,probability_2\n{KEY},-1,.2\n", "logprob and probability; keep one"),
    "a score too few": (ONCE, f"{SCORES}{KEY},-1,\n", "2 options need a number each"),
    "a score too many": (ONCE, f"id,logprob_1,logprob_2,logprob_3\n{KEY},-1,-1,-1\n", "2 options need a number each"),
    "scores from 0": (ONCE, f"id,logprob_0,logprob_1\n{KEY},-1,-1\n", "the row has logprob_1; give each its"),
    "no score": (ONCE, f"{SCORES[:-1]},status\n{KEY},,,answered\n", "and the row has none; give each its"),
    **{
        f"a score of {cell}": (
            ONCE,
            f'{SCORES}{KEY},-1,"{cell}"\n',
            f"mine.csv:2: logprob_2 is '{cell}', not a log-prob",
        )
        for cell in ("nan", "NaN", "inf", "1e999", "0.1", "-0,5", "-1_0", "-٣", "--1", "null", "-infinity")
    },
    **{
        f"a probability of {cell}": (
            ONCE,
            f"id,probability_1,probability_2\n{KEY},.5,{cell}\n",
            f"probability_2 is '{cell}', not a probability",
        )
        for cell in ("-0.1", "1.01", "50%", "nan", "-inf", "1e999")
    },
    "a status that is none": (WRITTEN, f"id,option,status\n{KEY},,done\n", "the status 'done' is none of answered, tr"),
    "a refusal with an option": (WRITTEN, f"id,option,status\n{KEY},A,refused\n", "the status refused and is answered"),
    "other words": (
        WRITTEN,
        f"id,prompt,option\n{KEY},Sentence: Who?,A\n",
        f"mine.csv:2: question {KEY} was asked in other words: from",
    ),
    "a row too short": (WRITTEN, f"id,option,status\n{KEY},A\n", "mine.csv:2: has 2 fields, the header 3"),
    "another encoding": (WRITTEN, OPTION.encode() + b"caf\xe9,A\n", "mine.csv:2: byte 0xe9 is not UTF-8"),
    "an unclosed quote": (WRITTEN, f'{OPTION}"{KEY},A\n', "mine.csv:2: is not CSV"),
    "no JSON": (WRITTEN, f'{{"id": "{KEY}", "option": "A"}}\n[1]\n', "mine.csv:2: is no JSON obj"),
    "too few answers": (
        WRITTEN,
        f"{OPTION}{KEY},A\n",
        "12 of 12 items failed, more than --max-failure-rate 0.05 allows",
    ),
    "Parquet that lacks a score": (
        ONCE,
        parquet(id=[KEY], logprob_1=[-1.0], logprob_2=[np.nan]),
        "2 options need a number each",
    ),
    "Parquet of lists": (ONCE, parquet(id=[KEY], logprobs=[[-1.0, -2.0]]), "has no column answers"),
    "Parquet of two million rows": (
        ONCE,
        parquet(id=pa.nulls(2_000_000, pa.string()), option=pa.nulls(2_000_000, pa.string())),
        "2,000,000 rows",
    ),
    "Parquet of 4 GiB in a small file": (ONCE, parquet(id=ONE_MIB, option=["A"] * 4096), "GiB of memory"),
    "a name that is no id": ([*WRITTEN, "--name", "a b"], GOOD, ""),
}
TYPE2 = [*COMMON, "--config", "type2"]
LOG = ["import", "lm-eval", "--input", "INPUT", "--model", "x"]
QUESTIONS = ["questions", "csv", "DATA", "--out", "OUT"]
OPTIONS: dict[str, tuple[list[str], str]] = {
    "no note": (TYPE2, "--note: say where the answers come from"),
    "an empty note": ([*TYPE2, "--note", " "], "--note: say where"),
    "a note with an override": ([*TYPE2, "--note", "a\u202eb"], "--note: say where"),
    "a note of 201 letters": ([*TYPE2, "--note", "x" * 201], "at most 200"),
    "two configs": ([*COMMON, "--note", "me"], "a table answers one config with one prompt; name one of"),
    "no dataset": (
        [word for word in COMMON if word not in ("--dataset", "DATA")] + ["--note", "me"],
        "--dataset: a table does not say which questions it answers",
    ),
    "a tokenizer": ([*WRITTEN, "--tokenizer", "x"], "--tokenizer: nobody counts the tokens"),
    "a normalisation of texts": ([*WRITTEN, "--normalisation", "sum"], "leave out --normalisation"),
    "a prompt that follows an answer": ([*ASKED, "cot-logprob-v1"], "scores options after the model's own"),
    "items for a log": ([*LOG, "--config", "type2"], "only for biasboard import"),
    "a note for a log": ([*LOG, "--note", "me"], "only for biasboard import"),
    "a tokenizer for questions": ([*QUESTIONS, "--tokenizer", "x"], "--tokenizer: csv leaves every text as it is"),
    "questions that follow an answer": ([*QUESTIONS, "--prompt", "cot-logprob-v1"], "csv cannot ask with prompt"),
}
TABLE: dict[str, Row] = {
    **rows(WRITTEN, NO_FILES, NO_TEXTS, NO_JSON, NO_CSV, named="mine.csv"),
    **{
        name: Row(command, content if callable(content) else holding(content), says=says, named="mine.csv")
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
