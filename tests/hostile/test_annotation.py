"""Votes, states and requests of ``annotate`` that no reader and no browser sends."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from builders.dataset.output import write_dataset
from builders.synthbias import embedded
from builders.synthbias.annotation.annotated import AnnotatedDataset, asked_id, read_annotated
from builders.synthbias.annotation.session import Session
from builders.synthbias.annotation.vote_page import HOST
from tests.builders.annotation.made_votes import serving
from tests.hostile.inputs import NO_CSV, NO_FILES, NO_JSON, NO_TEXTS, Make, holding
from tests.hostile.runner import Row, ended, rows

DIGITS = "9" * 5_000
ANNOTATE = ["build", "synthbias", "annotate"]
INGEST = [*ANNOTATE, "ingest", "DATASET", "INPUT", "--state", "OUT"]
LABEL_STUDIO = [*INGEST, "--file-format", "label-studio"]
MODEL = [*INGEST, "--file-format", "model"]


def votes(*lines: str) -> Make:
    """A file like ``votes.csv``."""
    return holding("\n".join(("item_id,pair_id,annotator_id,question,answer,submitted_at,source", *lines)) + "\n")


def form(*lines: str, columns: str = "item_id,annotator_id,sentence,coherent,first,second") -> Make:
    """A form that somebody filled in."""
    return holding("\n".join((columns, *lines)) + "\n")


def tasks(annotation: object = None, **data: object) -> Make:
    """An export of Label Studio with one task."""
    return holding(json.dumps([{"data": {"item_id": "ASKED", **data}, "annotations": [annotation or answered()]}]))


def answered(**more: object) -> dict[str, object]:
    return {"completed_by": 1, "result": [choice("coherent", ["no"])], **more}


def choice(name: object, choices: object) -> dict[str, object]:
    return {"type": "choices", "from_name": name, "value": {"choices": choices}}


def within(name: str, make: Make) -> Make:
    """A state with a file of this name."""

    def make_state(path: Path) -> None:
        (path / name).parent.mkdir(parents=True)
        make(path / name)

    return make_state


ANNOTATORS = "annotator_id,kind,entrance,status,reason\n"
WITH_STATUS = "item_id,annotator_id,status,coherent,first,second"
VOTES: dict[str, Row] = {
    **rows(INGEST, NO_FILES, NO_TEXTS, NO_CSV),
    **rows(LABEL_STUDIO, NO_FILES, {name: NO_JSON[name] for name in ("cut off", "lists 100,000 deep")}),
    "a form without a heading": Row(INGEST, holding(""), "INPUT:1: has no heading; give a form that annotate export"),
    "Latin-1 in a later line": Row(
        INGEST, holding(b"item_id\ncaf\xe9\n"), "INPUT:2: is no CSV file in UTF-8; save it as"
    ),
    "a line with too few cells": Row(INGEST, votes("x,y"), "INPUT:2: has 2 cells, the heading 7"),
    "an item of another pair": Row(INGEST, votes("ITEM,y,anna,coherent,yes,,"), "is of pair 'PAIR', not 'y'"),
    "an answer that is none": Row(INGEST, votes("ITEM,PAIR,anna,coherent,YES!,,"), "answer is 'YES!'; have: yes, no"),
    "a time of 5,000 digits": Row(INGEST, votes(f"ITEM,PAIR,anna,coherent,yes,{DIGITS},"), "is not ISO 8601"),
    "a time out of range": Row(INGEST, votes("ITEM,PAIR,anna,coherent,yes,9999-12-31T23:59:59-05:00,"), "no year from"),
    "nobody": Row(INGEST, votes("ITEM,PAIR,,coherent,yes,,"), "annotator_id is empty"),
    "a name of 5,000 digits": Row(INGEST, votes(f"ITEM,PAIR,{DIGITS},coherent,yes,,"), "is no name of 1 to 200"),
    "a name that turns the line": Row(INGEST, votes("ITEM,PAIR,an\u202ena,coherent,yes,,"), "is no name of 1 to 200"),
    "a bad line after good ones": Row(
        INGEST, votes("ITEM,PAIR,anna,coherent,yes,,", "ITEM,PAIR,anna,first,2,,"), "INPUT:3: answer is '2'"
    ),
    "a good file and none": Row([*INGEST[:6], "OUT.csv", *INGEST[6:]], form("ASKED,anna,,no,,"), "no such file"),
    "more columns than votes.csv": Row(INGEST, form(columns="question,answer,mood"), "has the columns question"),
    "a form without names": Row(INGEST, form("ASKED,,,no,,"), "annotator_id is empty; fill it in"),
    "a form without a column": Row(INGEST, form(columns="item_id,annotator_id,coherent"), "no column for first"),
    "a form with a formula": Row(INGEST, form("ASKED,anna,,=1=1,,"), "not yes or no; correct the line"),
    "a form of another dataset": Row(INGEST, form(f"{asked_id('x')},anna,,no,,"), "is not in"),
    "a status that is none": Row(INGEST, form("ASKED,A,Lost,no,,", columns=WITH_STATUS), "is 'Lost'; have:"),
    "a map to no column": Row([*INGEST, "--map", "first=Q9"], form(), "no column for first (Q9)"),
    "a map of no table": Row([*LABEL_STUDIO, "--map", "first=Q9"], tasks(), "has no columns; leave --map out"),
    "an export that is an object": Row(LABEL_STUDIO, holding("{}"), "is no list of tasks; export the project as JSON"),
    "a task that is a number": Row(LABEL_STUDIO, holding("[1]"), "task 1: is no JSON object"),
    "annotations that are an object": Row(LABEL_STUDIO, holding('[{"data": {}, "annotations": {}}]'), "no list of"),
    "an id that is a number": Row(LABEL_STUDIO, tasks(item_id=5), "data has no item_id"),
    "an annotation without result": Row(LABEL_STUDIO, tasks({"completed_by": 1}), "has no list result"),
    "an annotator that is true": Row(LABEL_STUDIO, tasks(answered(completed_by=True)), "completed_by names nobody"),
    "a question that is a list": Row(LABEL_STUDIO, tasks(answered(result=[choice([1], ["no"])])), "is no question"),
    "an answer that is an object": Row(LABEL_STUDIO, tasks(answered(result=[choice("first", {})])), "is not yes or no"),
    "people who are models": Row([*MODEL, "--kind", "human"], says="--kind human: --file-format model reads"),
}
PLAN, EXCLUDE, EXPORT = ["plan", "DATASET"], ["exclude", "DATASET"], ["export", "DATASET", "--out", "OUT"]
STATE = ["--state", "INPUT"]
EXCLUDED = within("annotators.csv", holding(ANNOTATORS + "bad,human,,excluded,bot\n"))
BATCH = "item_id,pair_id,group,annotator_id,n_votes,n_before\n"
BAD_STATES: dict[str, tuple[list[str], str, str, str]] = {
    "one column": (PLAN, "votes.csv", "item_id\n", "has the columns item_id; restore"),
    "a column twice": (PLAN, "annotators.csv", "a,a\n", "column 'a' stands twice"),
    "a kind that is none": (PLAN, "annotators.csv", f"{ANNOTATORS}a,cat,,active,\n", ":2: kind is"),
    "one person twice": (
        *(PLAN, "annotators.csv", f"{ANNOTATORS}anna,human,,active,\n anna ,human,,active,\n"),
        "annotators.csv:3: annotator 'anna' stands twice; keep one line",
    ),
    "a list": (["serve", "DATASET"], "annotated.json", "[]\n", ""),
    "a number of 5,000 digits": (EXPORT, "batches/0001.csv", f"{BATCH}ITEM,PAIR,A,,{DIGITS},0\n", ""),
    "an item of another dataset": (EXPORT, "batches/0001.csv", f"{BATCH}x,PAIR,A,,4,0\n", ""),
}
"""A command, a file of the state, what it holds, and what is said."""
STATES: dict[str, Row] = {
    **{
        f"{file}: {name}": Row([*ANNOTATE, *command, *STATE], within(file, holding(content)), says)
        for name, (command, file, content, says) in BAD_STATES.items()
    },
    "a state that is a pipe": Row([*ANNOTATE, *PLAN, *STATE], NO_FILES["a pipe"]),
    "a person who is excluded": Row([*ANNOTATE, *PLAN, "--annotator", "bad", *STATE], EXCLUDED, "bad: is excluded"),
    "a state without batches": Row([*ANNOTATE, *EXPORT, *STATE], EXCLUDED, "--state INPUT: no batch here; plan one"),
    "an exclusion without a reason": Row(
        [*ANNOTATE, *EXCLUDE, "bad", *STATE], EXCLUDED, "--reason: is missing; say why"
    ),
    "an exclusion of nobody": Row(
        [*ANNOTATE, *EXCLUDE, "x", "--reason", "x", *STATE], EXCLUDED, "annotator 'x' is not in"
    ),
    "a decision without a state": Row([*ANNOTATE, "decide", "DATASET", *STATE], says="no such folder, so"),
    "no dataset": Row([*ANNOTATE, "plan", "INPUT", "--state", "OUT"], says="INPUT: no dataset.json here"),
    "the name of nobody": Row([*ANNOTATE, *PLAN, "--annotator", "", "--state", "OUT"], says="is no name"),
}
TABLE = {**VOTES, **STATES}


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> AnnotatedDataset:
    folder = tmp_path_factory.mktemp("annotated") / "data"
    write_dataset(embedded.draft(limit=8), folder)
    return read_annotated(folder)


@pytest.mark.parametrize("name", TABLE)
def test_votes_and_states_end_in_one_line(name: str, annotated: AnnotatedDataset, tmp_path: Path) -> None:
    item = next(iter(annotated.items.values()))
    words = {"ASKED": asked_id(item.item_id), "ITEM": item.item_id, "PAIR": item.pair_id}

    def filled(text: str) -> str:
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    def make(path: Path) -> None:
        TABLE[name].make(path)
        for file in (path, *path.rglob("*")) if path.is_dir() else (path,):
            if file.is_file() and not file.is_symlink():
                with suppress(UnicodeDecodeError):
                    file.write_bytes(filled(file.read_bytes().decode()).encode())

    row = TABLE[name]
    command = [word.replace("DATASET", str(annotated.folder)) for word in row.command]
    ended(row._replace(command=command, make=make, says=filled(row.says)), tmp_path)


OWN = "Host: HOST\r\nOrigin: http://HOST\r\nContent-Type: application/json\r\n"


def posted(body: str, headers: str = OWN, length: object = None) -> str:
    n_bytes = len(body) if length is None else length
    return f"POST /TOKEN/vote HTTP/1.1\r\n{headers}Content-Length: {n_bytes}\r\n\r\n{body}"


def answering(answers: object, **more: object) -> str:
    return posted(json.dumps({"item_id": "entrance-01", "answers": answers, **more}))


REQUESTS: dict[str, str] = {
    "a method alone": "GET\r\n\r\n",
    "an address of 100,000 letters": f"GET /{'x' * 100_000} HTTP/1.1\r\n\r\n",
    "a token that is not ASCII": "GET /\xff\xfe/turn HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "a length of 5,000 digits": posted("{}", length=DIGITS),
    "a length below 0": posted("{}", length=-1),
    "a length that is not ASCII": posted("{}", length="\xb2"),
    "no length": f"POST /TOKEN/vote HTTP/1.1\r\n{OWN}\r\n{{}}",
    "a body that ends early": posted("{", length=9_000),
    "a body nested deeply": posted("[" * 9_999),
    "a number of 5,000 digits": posted('{"item_id": ' + DIGITS + ', "answers": {}}'),
    "an item with a lone surrogate": answering({"coherent": "no"}, item_id="\ud800"),
    "answers that are a list": answering(["no"]),
    "an answer that is an object": answering({"coherent": {}}),
    "an answer that takes back": answering({"coherent": "withdrawn"}),
    "no answer": answering({}),
    "nothing to take back": f"POST /TOKEN/undo HTTP/1.1\r\n{OWN}\r\n",
}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def address(annotated: AnnotatedDataset, state: Path) -> Iterator[str]:
    with serving(Session(annotated=annotated, folder=state, annotator_id="anna", pairs=tuple(annotated.pairs))) as url:
        yield url


@pytest.mark.parametrize(("name", "is_reset"), [*((name, False) for name in REQUESTS), ("a body nested deeply", True)])
def test_requests_of_no_browser_neither_vote_nor_end_in_a_traceback(
    name: str, is_reset: bool, address: str, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    host, token = address.removeprefix("http://").strip("/").split("/")
    request = REQUESTS[name].replace("HOST", host).replace("TOKEN", token).encode("latin-1")
    server = (HOST, int(host.partition(":")[2]))
    with socket.create_connection(server, timeout=20) as connection, suppress(OSError):
        connection.sendall(request)
        if is_reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            connection.shutdown(socket.SHUT_WR)
            while received := connection.recv(65536):
                assert b"Traceback" not in received
    # The page is still served, and nothing was written.
    with socket.create_connection(server, timeout=20) as connection:
        connection.sendall(f"GET /{token}/turn HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        assert b" 200 OK" in connection.recv(200)
    assert not (state / "votes.csv").exists()
    assert capfd.readouterr().err == ""
