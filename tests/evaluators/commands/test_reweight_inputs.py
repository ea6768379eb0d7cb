"""The inputs of reweight: every kind gives the same rows, and a fault is one line with its place and the way out."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.evaluators.commands.made_shares import (
    NAMES,
    ReadReport,
    error,
    frame,
    made,
    measured,
    read_csv,
    said,
    write_csv,
)

HEADER = "id,a,b,label\n"
ROWS = "1,0.6,0.4,a\n2,0.3,0.7,b\n"
ROW_1, ROW_3 = "row 1 (the first row is row 1): ", "row 3 (the first row is row 1): "


def report(*arguments: object) -> ReadReport:
    with tempfile.TemporaryDirectory() as folder:
        (found,) = measured(Path(folder), "evaluate", *arguments).values()
        return found


def classes(*arguments: object) -> list[tuple[str, int]]:
    return [(row["name"], int(row["n_rows"])) for row in report(*arguments).classes]


@pytest.mark.slow
def test_all_kinds_of_files_give_the_same_figures(tmp_path: Path) -> None:
    rows, table = made(), frame(made())
    first = tmp_path / "a.csv"
    expected = report(write_csv(first, rows))
    right = rows.probabilities.argmax(axis=1) == rows.targets
    assert classes(first) == [(name, int((rows.targets == place).sum())) for place, name in enumerate(NAMES)]
    assert expected.accuracies == pytest.approx([right[rows.targets == place].mean() for place in range(4)])
    table.to_parquet(tmp_path / "a.parquet")
    table.set_index("label").to_parquet(tmp_path / "indexed.parquet")
    # Programs turn whole numbers into floats where one is missing.
    numbers = frame(rows, ("0", "1", "2", "3")).astype({"label": float})
    numbers.to_parquet(tmp_path / "numbers.parquet")
    np.savez(tmp_path / "a.npz", probabilities=rows.probabilities, labels=table["label"].tolist(), classes=NAMES)
    for name in ("a.parquet", "indexed.parquet", "numbers.parquet", "a.npz"):
        path = tmp_path / name
        assert report(path).measures == expected.measures, name
        assert [one for one, _ in classes(path)] == (["0", "1", "2", "3"] if name == "numbers.parquet" else [*NAMES])
        assert [n for _, n in classes(path)] == [n for _, n in classes(first)]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id;a;b;label\n1;0.6;0.4;a\n2;0.3;0.7;b\n", ()),
        ("p_a,p_b,age,label\n0.6,0.4,30,a\n0.3,0.7,40,b\n", ()),
        ("b,a,age,label\n0.4,0.6,30,a\n0.7,0.3,40,b\n", ("--classes", "a,b")),
        ("a,b,right\n0.6,0.4,a\n0.3,0.7,b\n", ("--label-column", "right")),
        ('"a","b",label\n6,4,a\n3,7,b\n', ()),
    ],
)
def test_the_columns_of_classes_are_found(tmp_path: Path, text: str, options: tuple[str, ...]) -> None:
    path = tmp_path / "shares.csv"
    path.write_bytes(text.encode())
    assert classes(path, *options) == [("a", 1), ("b", 1)]
    assert ("columns of no class: age" in said("evaluate", path, *options)) == ("age" in text)
    assert report(path, *options).accuracies == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER, "has a header and no row; give at least one row"),
        (HEADER + ROWS + "3,nan,0.5,a\n", ROW_3 + "column 'a' is 'nan'; give the probability of the class"),
        (HEADER + ROWS + "3,-0.1,0.5,a\n", ROW_3 + "the row has a negative value"),
        (HEADER + ROWS + "3,0.1,inf,a\n", ROW_3 + "the row has no finite sum"),
        (HEADER + ROWS + "3,0,0,a\n", ROW_3 + "the row has nothing but zeros; leave it out"),
        (HEADER + ROWS + "3,0.5,0.5,\n", ROW_3 + "has no label; leave it out"),
        (HEADER + ROWS + "3,0.5,0.5,c\n", ROW_3 + "label 'c' is no class; have: a, b"),
        ("p_a,p_b,label\n0.5,0.5,a\n", "all 1 rows are of class 'a'; give rows of two classes at least"),
        ("a,b,kind\n0.5,0.5,a\n", "has no column 'label'; have: a, b, kind; name the column"),
        ("a,a,label\n0.5,0.5,a\n", "column 'a' stands 2 times; keep one, or rename it"),
        (HEADER + "1,0.5,0.5,a\n", "has 1 columns that bear the name of a label; give one per class"),
    ],
)
def test_a_fault_of_a_text_file_is_told_with_its_line_and_the_way_out(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "shares.csv"
    path.write_text(text, encoding="utf-8")
    assert error("evaluate", path).startswith(f"{path}: {message}")


HALF = np.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": [1]}, "holds no plain arrays 'probabilities'"),
        ({"probabilities": HALF, "classes": np.array(["a", None])}, "holds no plain arrays"),
        ({"probabilities": HALF, "classes": ["a", "label"], "labels": ["a", "b"]}, "column 'label' stands 2 times"),
    ],
)
def test_a_fault_of_arrays_is_one_line(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = tmp_path / "shares.npz"
    np.savez(path, **arrays)
    assert error("evaluate", path).startswith(f"{path}: {message}")


def test_arrays_that_are_damaged_or_unpack_to_more_than_may_be_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "shares.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("probabilities.npy", b"\x93NUMPY\x01\x00\x88\x13" + b"(" * 5000)
    assert error("evaluate", path).startswith(f"{path}: holds no plain arrays")
    # The directory at the end says what is unpacked; this one says 4 GB.
    content = path.read_bytes()
    place = content.rindex(b"PK\x01\x02") + 24
    path.write_bytes(content[:place] + b"\xf0\xff\xff\xff" + content[place + 4 :])
    assert error("evaluate", path).startswith(f"{path}: its rows take more than 1 GiB of memory")


def test_no_written_cell_is_a_formula_and_each_is_read_as_it_was(tmp_path: Path) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "b.csv"
    ids = ("=cmd|' /C calc'!A0", "@SUM(A1)", "+x", "-x", "\tx", "-3", "7" * 5000, "plain")
    rows = [f'"{name}",{"=a" if place % 2 else "-1"},0.7,{place / 10}\n' for place, name in enumerate(ids)]
    path.write_text(f"id,label,p_=a,p_-1\n{''.join(rows)}", encoding="utf-8")
    said("fit", path, "--out", tmp_path / "rules.json")
    said("apply", path, "--rules", tmp_path / "rules.json", "--out", out)
    written = read_csv(out)
    assert [row["id"] for row in written] == [f"'{name}" for name in ids[:5]] + ["-3", "7" * 5000, "plain"]
    assert {row["label"] for row in written} == {"'=a", "-1"}, "a number is no formula"
    assert classes(out) == classes(path)


LISTS = [["x", "y"], ["z"]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": LISTS, "b": [0.1, 0.2], "label": ["a", "b"]}, ROW_1 + "column 'a' is \"['x' 'y']\"; give the"),
        ({"a": [0.9, 0.8], "b": [0.1, 0.2], "label": LISTS}, "has 0 columns that bear the name of a label"),
    ],
    ids=["lists as numbers", "lists as labels"],
)
def test_a_fault_of_a_parquet_file_is_told_with_its_row(
    tmp_path: Path, columns: dict[str, list[Any]], message: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path)
    assert error("evaluate", path).startswith(f"{path}: {message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--config", "x"), "--config picks records of a run"),
        (("--classes", "cat,dog,cat"), "--classes cat,dog,cat: names 2 classes in 3 places; name each once"),
        (("--classes", "cat,cow"), "has no column for class 'cow'; have: "),
    ],
)
def test_options_that_do_not_fit_the_input_are_refused(tmp_path: Path, options: tuple[str, str], message: str) -> None:
    assert message in error("evaluate", write_csv(tmp_path / "a.csv", made()), *options)
    assert "no such file" in error("evaluate", tmp_path / "nothing.csv")
    assert "no result.json here" in error("evaluate", tmp_path)
