"""``biasboard build labelled_text``: tasks from a user's labelled texts, in files or on the Hub."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.dataset.output import rng_for
from builders.dataset.own_csv import _QUOTE
from builders.labelled_text.drafts import CONFIG
from builders.labelled_text.rows import label_names, read_texts
from schemas.folders.dataset_folder import read_manifest, read_split
from schemas.items.label import LabelItem
from schemas.validate import problems
from tests.commands import output_of
from tests.fake_hub import WRITER, serving, variables

NAMES = ("World", "Sports", "Business", "Sci/Tech")
PLACES = ("harbour", "kiosk", "attic", "forest", "school", "market")


def made(n: int, start: int = 0) -> list[tuple[str, int]]:
    """Texts that differ, with the numbers of their labels: 0 is right for half of them, 3 for a tenth."""
    labels = (0, 1, 0, 2, 0, 1, 0, 2, 0, 3)
    return [
        (f"Report {number} of the {PLACES[number % 6]} number {number // 6}", labels[number % 10])
        for number in range(start, start + n)
    ]


def write(path: Path, rows: Sequence[tuple[str, int]], names: Sequence[str] = ()) -> None:
    """Write texts and labels in the form of the ending, Parquet with the names of the labels if there are some."""
    frame = pd.DataFrame(rows, columns=["Sentence", "Class Index"])
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        # The key with a list is left out, and a key that some rows lack is empty there.
        lines = [{"sentence": text, "label": label, "tokens": text.split()} for text, label in rows]
        lines[0]["note"] = "x"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    else:
        table = pa.table({"text": [text for text, _ in rows], "label": [label for _, label in rows]})
        features = {"text": {"dtype": "string", "_type": "Value"}, "label": {"names": names, "_type": "ClassLabel"}}
        told = {"huggingface": json.dumps({"info": {"features": features}})} if names else None
        pq.write_table(table.replace_schema_metadata(told), path)


def build(folder: Path, *options: object, **more: Any) -> str:
    return output_of("-m", "biasboard", "build", "labelled_text", *options, "--out", folder, **more)


def items_of(folder: Path) -> dict[str, list[LabelItem]]:
    assert list(problems(folder)) == []
    splits = read_manifest(folder).splits
    return {
        entry.split: [item for item in read_split(folder, entry) if isinstance(item, LabelItem)] for entry in splits
    }


@pytest.mark.slow
def test_a_file_becomes_a_task_in_whatever_form_it_is(tmp_path: Path) -> None:
    path, rows = tmp_path / "news.csv", made(140)
    write(path, rows)
    _, texts = read_texts([path], [], None)
    for ending in ("jsonl", "parquet"):
        write(path.with_suffix(f".{ending}"), rows)
        _, same = read_texts([path.with_suffix(f".{ending}")], [], None)
        assert [(one.text, one.label) for one in same.train] == [(one.text, one.label) for one in texts.train]
    names = ",".join(f"{number}={name}" for number, name in enumerate(NAMES))
    told = build(tmp_path / "d", "--input", path, "--label-names", names, "--limit", "40", "--licence", "CC0-1.0")
    of_numbers = build(tmp_path / "numbers", "--input", path, "--limit", "40")
    assert "warning: the labels are numbers, which a model is asked for; name them: --label-names 0=NAME" in of_numbers
    assert "the labels are numbers" not in told
    items = items_of(tmp_path / "d")
    sizes = {split: len(of_split) for split, of_split in items.items()}
    assert sizes == {"test": 40, "bias": 32, "pool": 64, "content_free": 43}
    # The splits are those of a task of superni: parts of one permutation of all rows.
    order = rng_for(42, CONFIG).permutation(140).tolist()
    for split, places in (("bias", order[:32]), ("pool", order[32:96]), ("test", order[96:136])):
        expected = [(rows[place][0], NAMES[rows[place][1]]) for place in places]
        assert [(item.text, item.target) for item in items[split]] == expected
    assert items["test"][0].labels == tuple(sorted(NAMES))
    assert items["test"][0].instruction == (
        "Classify the text. Answer with one of these labels: Business, Sci/Tech, Sports, World."
    )
    assert "label_not_in_instruction" not in {flag for item in items["test"] for flag in item.flags}
    (label, n), *_ = Counter(item.target for item in items["test"]).most_common()
    assert f"always answering '{label}' is right in {n / 40:.1%} of test" in told
    card = (tmp_path / "d" / "README.md").read_text(encoding="utf-8")
    assert f"| World | {sum(item.target == 'World' for item in items['test'])} |" in card
    manifest = read_manifest(tmp_path / "d")
    assert (manifest.benchmark, manifest.licence, manifest.publish_refusal) == ("labelled_text", "CC0-1.0", None)


@pytest.mark.slow
def test_files_named_test_are_evaluated_and_nothing_else(tmp_path: Path) -> None:
    rows = made(120)
    write(tmp_path / "my_train.csv", rows)
    # One text is in both files: it is evaluated, and no example.
    held_out = [*made(50, start=1_000), (rows[5][0].upper(), rows[5][1])]
    write(tmp_path / "my_test.csv", held_out)
    inputs = ("--input", tmp_path / "my_train.csv", "--input", tmp_path / "my_test.csv", "--pool", "80")
    told = build(tmp_path / "d", *inputs, "--instructions", "Which section is it from?", "--name", "sections")
    items = items_of(tmp_path / "d")
    assert {item.text for item in items["test"]} == {text for text, _ in held_out}
    support = {item.text for split in ("bias", "pool") for item in items[split]}
    assert len(support) == 112
    assert support <= {text for text, _ in rows} - {rows[5][0]}
    assert items["pool"][0].instruction == "Which section is it from?"
    assert "rejected my_train.csv:7, repeated_text: repeats my_test.csv:52\n" in told
    assert "not for publishing: the licence of the texts is not known" in told
    assert read_manifest(tmp_path / "d").name == "sections"


def test_a_row_that_is_no_item_is_rejected_with_its_reason(tmp_path: Path) -> None:
    rows: dict[str, tuple[str, str] | None] = {
        "Fog,No ship left.,1,a": None,
        ",  ,1,b": ("no_text", "the text is empty"),
        ",No bus came.,,c": ("no_label", "the label is empty"),
        ",No train came.,9,d": ("unnamed_label", "the label '9' is none of 1, 2, 3"),
        "FOG,no ship LEFT.,1,e": ("repeated_text", "repeats mine.csv:2"),
        "Fog,No ship left.,2,f": ("repeated_text", "repeats mine.csv:2, with another label"),
        ",Three trams came.,Sports,a": ("repeated_id", "has the id of mine.csv:2"),
        ",Two trams came.,Sports,g,,": None,
        ",A tram,came.,Sports,h": ("broken_row", f"has 5 fields, the header 4; {_QUOTE}"),
        ",A\u200bcart came.,1,i": ("broken_row", "has the invisible sign U+200B; remove it"),
        # A line that is no CSV costs no other.
        '"a" b,Four,1,j': ("broken_row", "is not CSV (',' expected after '\"')"),
        ",Five trams came.,Sports,k": None,
    }
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["headline,text,label,id", *rows]), encoding="utf-8")
    _, texts = read_texts([path], [], {"1": "World", "2": "Sports", "3": "Business"})
    assert [(instance.item_id, instance.text, instance.label) for instance in texts.train] == [
        ("a", "Fog No ship left.", "World"),
        ("g", "Two trams came.", "Sports"),
        ("k", "Five trams came.", "Sports"),
    ]
    assert {str(reject.source_row): (reject.rule, reject.reason) for reject in texts.rejects} == {
        f"mine.csv:{line}": told for line, told in enumerate(rows.values(), start=2) if told
    }
    assert texts.unused == ("Business",)


def test_label_names_are_a_list_or_a_file_or_those_of_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "classes.txt"
    path.write_text("\ufeff1=World\n\n2 = Sci/Tech, and more\n", encoding="utf-8")
    assert label_names(str(path)) == {"1": "World", "2": "Sci/Tech, and more"}
    assert label_names("effect,int") == {"effect": "effect", "int": "int"}
    assert label_names(None) is None
    path = tmp_path / "train-00000-of-00001.parquet"
    write(path, [*made(30), ("A secret one", -1)], NAMES)
    _, texts = read_texts([path], [], None)
    assert [instance.label for instance in texts.train] == [NAMES[label] for _, label in made(30)]
    assert [reject.rule for reject in texts.rejects] == ["no_label"]
    # pandas writes whole numbers beside a missing one as floats.
    frame = pd.DataFrame({"text": ["One", "Two", "Three"], "label": [1.0, 0.0, np.nan]})
    frame.to_parquet(tmp_path / "floats.parquet")
    _, texts = read_texts([tmp_path / "floats.parquet"], [], None)
    assert [instance.label for instance in texts.train] == ["1", "0"]


@pytest.mark.slow
def test_a_dataset_of_the_hub_is_read_at_a_revision(tmp_path: Path) -> None:
    files = {}
    for split, rows in (("train", made(100)), ("test", made(20, start=500))):
        write(tmp_path / f"{split}.parquet", rows, NAMES)
        files[f"data/{split}-00000-of-00001.parquet"] = (tmp_path / f"{split}.parquet").read_bytes()
    with serving() as hub:
        repository = hub.new("acme/news", files)
        first = repository.head
        repository.add("other rows", {"data/train-00000-of-00001.parquet": b"PAR1 is broken"})
        environment = variables(hub, tmp_path / "home", WRITER)
        told = build(tmp_path / "d", "--input", f"acme/news@{first}", **environment)
        assert "own-news 1.1.0:" in told
    items = items_of(tmp_path / "d")
    of_test = {(text, NAMES[label]) for text, label in made(20, start=500)}
    assert {(item.text, item.target) for item in items["test"]} == of_test
    *sources, words = read_manifest(tmp_path / "d").sources
    assert words.address == "builders/superni/basic_english.toml"
    assert {(source.address, source.revision) for source in sources} == {
        (f"https://huggingface.co/datasets/acme/news, {split}-00000-of-00001.parquet", first)
        for split in ("train", "test")
    }
