"""The inputs of reweight: every kind gives the same rows, and a fault is one line with its place and the way out."""

from __future__ import annotations

import io
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


def test_all_kinds_of_files_give_the_same_figures(tmp_path: Path) -> None:
    rows, table = made(), frame(made())
    probabilities, labels = rows.probabilities, table["label"].tolist()
    first = tmp_path / "a.csv"
    expected = report(write_csv(first, rows))
    right = probabilities.argmax(axis=1) == rows.targets
    assert classes(first) == [(name, int((rows.targets == place).sum())) for place, name in enumerate(NAMES)]
    assert expected.accuracies == pytest.approx([right[rows.targets == place].mean() for place in range(4)])
    table.to_parquet(tmp_path / "a.parquet")
    table.set_index("label").to_parquet(tmp_path / "indexed.parquet")
    np.savez(tmp_path / "a.npz", probabilities=probabilities, labels=labels, classes=NAMES)
    np.savez(tmp_path / "sorted.npz", probabilities=probabilities, labels=labels)
    # Programs turn whole numbers into floats where one is missing.
    numbers = frame(rows, ("0", "1", "2", "3")).astype({"label": float})
    numbers.to_parquet(tmp_path / "numbers.parquet")
    lines = [
        f"{number} {target} {shares.argmax()} {' '.join(f'{share:.6f}' for share in shares)}\n"
        for number, (shares, target) in enumerate(zip(probabilities, rows.targets, strict=True))
    ]
    (tmp_path / "vectors").write_text("".join(lines), encoding="utf-8")
    named = ("--classes", ",".join(NAMES))
    for name, options in (
        *((name, ()) for name in ("a.parquet", "indexed.parquet", "a.npz", "sorted.npz", "numbers.parquet", "vectors")),
        ("vectors", named),
    ):
        path = tmp_path / name
        assert report(path, *options).measures == expected.measures, name
        are_named = bool(options) or name not in ("vectors", "numbers.parquet")
        assert [one for one, _ in classes(path, *options)] == ([*NAMES] if are_named else ["0", "1", "2", "3"])
        assert [n for _, n in classes(path, *options)] == [n for _, n in classes(first)]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id;a;b;label\n1;0.6;0.4;a\n2;0.3;0.7;b\n", ()),
        ("sep=;\nid;a;b;label\n1;0.6;0.4;a\n2;0.3;0.7;b\n", ()),
        ("\ufeffa\tb\tlabel\r\n0.6\t0.4\ta\r\n0.3\t0.7\tb\r\n\r\n", ()),
        ("p_a,p_b,age,label\n0.6,0.4,30,a\n0.3,0.7,40,b\n", ()),
        ("q_a,q_b,kind,label\n0.6,0.4,x,a\n0.3,0.7,y,b\n", ("--prefix", "q_")),
        ("b,a,age,label\n0.4,0.6,30,a\n0.7,0.3,40,b\n", ("--ignore", "age", "--classes", "a,b")),
        ("a,b,right\n0.6,0.4,a\n0.3,0.7,b\n", ("--label-column", "right")),
        ('"a","b",label\n6,4,a\n3,7,b\n', ()),
    ],
)
def test_the_columns_of_classes_are_found(tmp_path: Path, text: str, options: tuple[str, ...]) -> None:
    path = tmp_path / "shares.csv"
    path.write_bytes(text.encode())
    assert classes(path, *options) == [("a", 1), ("b", 1)]
    assert report(path, *options).accuracies == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; give a header that names the columns"),
        (HEADER, "has a header and no row; give at least one row"),
        (
            HEADER + ROWS + "3,nan,0.5,a\n",
            ROW_3 + "the probability of class 'a' is missing (nan); leave the row out",
        ),
        (HEADER + ROWS + "3,-0.1,0.5,a\n", ROW_3 + "the probability of class 'a' is -0.1"),
        (HEADER + ROWS + "3,0.1,inf,a\n", ROW_3 + "the probability of class 'b' is inf"),
        (HEADER + ROWS + "3,0,0,a\n", ROW_3 + "the row has nothing but zeros; leave it out"),
        (HEADER + ROWS + "3,0.1,a\n", "line 4 has 3 fields, the header 4; correct it"),
        (HEADER + ROWS + "3,x,0.5,a\n", ROW_3 + "column 'a' is 'x', which is no number"),
        (HEADER + ROWS + "3,,0.5,a\n", ROW_3 + "column 'a' is empty"),
        (HEADER + ROWS + "3,0.5,0.5,\n", ROW_3 + "has no label; leave it out"),
        (HEADER + ROWS + "3,0.5,0.5,c\n", ROW_3 + "label 'c' is no class; have: a, b"),
        (HEADER + "1,0.5,0.5,a\n", "all 1 rows are of class 'a'; give rows of two classes at least"),
        ("a,b,kind\n0.5,0.5,a\n", "has no column 'label'; have: a, b, kind; name the column"),
        ("a,a,label\n0.5,0.5,a\n", "column 'a' stands 2 times; keep one, or rename it"),
        ("a,b,age,label\n0.6,0.4,30,a\n0.3,0.7,4,b\n", "column 'age' holds 30, which is no probability"),
        ('a,b,label\n0.6,0.4,"a\n', "line 2 is not CSV (unexpected end of data); correct it"),
        ('{"a": 1}', "looks like JSON; give a CSV"),
        ("1 0 0 0.5 0.5\n2 1 0 0.5\n", "row 2 (the first row is row 1): word 5 is empty"),
        ("1 0 0 0.5 0.5\n2 1 0 0.5 x\n", "row 2 (the first row is row 1): word 5 is 'x', which is no number"),
        ("1 a a 0.5 0.5\n2 b b 0.1 0.9\n", "has 2 columns of probabilities, and the labels are a, b; name the class"),
    ],
)
def test_a_fault_of_a_text_file_is_told_with_its_line_and_the_way_out(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "shares.csv"
    path.write_text(text, encoding="utf-8")
    assert error("evaluate", path).startswith(f"{path}: {message}")


ARRAYS: list[tuple[dict[str, Any], str]] = [
    ({"x": [1]}, "has no array 'probabilities'; have: x"),
    ({"probabilities": [1.0, 2.0], "labels": [0, 1]}, "array 'probabilities' has the shape (2,)"),
    ({"probabilities": [["x", "y"]], "labels": [0]}, "array 'probabilities' has the shape (1, 2) and the type <U1"),
    ({"probabilities": [[0.5, 0.5]] * 2}, "has no array 'labels'"),
    (
        {"probabilities": [[0.5, 0.5]] * 2, "labels": [0]},
        "array 'labels' has the shape (1,) and the type int64; give one text or number per row: (2,)",
    ),
    ({"probabilities": [[0.5, 0.5]] * 2, "labels": ["a", "b"], "classes": ["a", "a"]}, "two columns are of class 'a'"),
    (
        {"probabilities": [[0.5, 0.5, 0]] * 2, "labels": ["a", "b"]},
        "has 3 columns of probabilities, and the labels are",
    ),
    ({"probabilities": [[0.5, np.nan]] * 2, "labels": [0, 1]}, ROW_1 + "the probability of class"),
    (
        {"probabilities": [[0.5], [0.5]], "labels": [0, 0]},
        "has 1 column of a class (0); give one per class, two at least",
    ),
    # They would be unpickled.
    ({"probabilities": np.array([[0.5, 0.5]], dtype=object), "labels": [0]}, "not a readable NPZ file of plain arrays"),
]


@pytest.mark.parametrize(("arrays", "message"), ARRAYS)
def test_a_fault_of_arrays_is_told(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = tmp_path / "shares.npz"
    given: dict[str, Any] = {name: np.array(values) for name, values in arrays.items()}
    np.savez(path, **given)
    assert error("evaluate", path).startswith(f"{path}: {message}")


def npy(values: Any) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.array(values), allow_pickle=False)
    return content.getvalue()


def header(*shape: int, descr: str = "<f8") -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": descr, "fortran_order": False, "shape": shape})
    return content.getvalue()


SHARES = [[0.5, 0.25], [0.25, 0.75]]
P, L, X = "probabilities.npy", "labels.npy", "x.npy"
UNREADABLE = "not a readable NPZ file of plain arrays"
MEMBERS: dict[str, tuple[dict[str, bytes], str]] = {
    "a huge shape": ({P: header(10**9, 1000)}, UNREADABLE),
    "more than an index": ({P: header(10**18, 10**9)}, UNREADABLE),
    "a negative shape": ({P: header(-2, -2) + bytes(32)}, UNREADABLE),
    "cut data": ({P: npy(SHARES)[:-8]}, UNREADABLE),
    "a shape beside the rows": ({P: npy(SHARES), X: header(10**12)}, UNREADABLE),
    "complex numbers": (
        {P: npy([[0.5j, 0.5], [1, 0]])},
        "array 'probabilities' has the shape (2, 2) and the type comp",
    ),
    "complex labels": ({P: npy(SHARES), L: npy([1j, 2])}, "array 'labels' has the shape (2,) and the type complex128"),
    "nothing": ({P: b""}, "has no array 'probabilities'"),
    "no header": ({P: b"\x93NUMPY\x01\x00\x10\x00" + b"{" * 16}, UNREADABLE),
    "nested brackets": ({P: b"\x93NUMPY\x01\x00\x88\x13" + b"(" * 5000}, UNREADABLE),
    "a long header": ({P: b"\x93NUMPY\x02\x00\x20\x4e\x00\x00" + b" " * 20000}, UNREADABLE),
    "another version": ({P: b"\x93NUMPY\x09\x00"}, UNREADABLE),
    "no member": ({}, "has no array 'probabilities'; have: none"),
    "no array": ({"readme.txt": b"hello", "../x": b"x"}, "has no array 'probabilities'; have: none"),
    "1e308": ({P: npy([[1e308, 1e308], [1, 0]]), L: npy([0, 1])}, ROW_1 + "the row has a sum"),
    "zeros": ({P: npy(np.zeros((2, 2))), L: npy([0, 1])}, ROW_1 + "the row has nothing but"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_strange_member_of_an_npz_file_is_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "shares.npz"
    members, message = MEMBERS[name]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, content in members.items():
            file.writestr(member, content)
    assert error("evaluate", path).startswith(f"{path}: {message}")


def test_a_file_that_unpacks_to_more_than_may_be_read_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "shares.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr(P, npy(SHARES))
    # The directory at the end says what is unpacked; this one says 4 GB of 160 bytes.
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


@pytest.mark.parametrize("cut", [40, 400])
def test_damaged_files_and_folders_are_refused(tmp_path: Path, cut: int) -> None:
    np.savez(tmp_path / "a.npz", probabilities=made().probabilities, labels=made().targets)
    frame(made()).to_parquet(tmp_path / "a.parquet")
    for path, kind in ((tmp_path / "a.npz", "NPZ"), (tmp_path / "a.parquet", "parquet")):
        path.write_bytes(path.read_bytes()[:cut])
        assert f"not a readable {kind} file" in error("evaluate", path)
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 20)
    assert "is neither text in UTF-8 nor Parquet" in error("evaluate", tmp_path / "noise")
    assert "no such file" in error("evaluate", tmp_path / "nothing.csv")
    assert "no result.json here" in error("evaluate", tmp_path)


LISTS = [["x", "y"], ["z"]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": LISTS, "b": [0.1, 0.2], "label": ["a", "b"]}, ROW_1 + "column 'a' is \"['x' 'y']\""),
        ({"a": [0.9, 0.8], "b": [0.1, 0.2], "label": LISTS}, ROW_1 + "label '['x' 'y']' is no class; have: a, b"),
        (
            {"a": [0.5, None, 0.2], "b": [0.5, 0.5, 0.8], "label": ["a", "b", "b"]},
            "row 2 (the first row is row 1): the probability of class 'a'",
        ),
    ],
    ids=["lists as numbers", "lists as labels", "a missing value"],
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
        (("--split", "x"), "--split picks records of a run"),
        (("--ignore", "x"), "--ignore x: "),
        (("--classes", "cat,cat"), "--classes cat,cat: names 1 classes in 2 places"),
        (("--classes", "cat,cow"), "has no column for class 'cow'; have: "),
        (("--prefix", "z_"), "has 0 column of a class; give one per class"),
    ],
)
def test_options_that_do_not_fit_the_input_are_refused(tmp_path: Path, options: tuple[str, str], message: str) -> None:
    assert message in error("evaluate", write_csv(tmp_path / "a.csv", made()), *options)


def test_a_language_may_be_called_id(tmp_path: Path) -> None:
    path = tmp_path / "languages.csv"
    path.write_text("id,de,label\n0.6,0.4,id\n0.3,0.7,de\n", encoding="utf-8")
    assert [name for name, _ in classes(path)] == ["id", "de"]
