"""The commands of reweight: what they print and write, and what they refuse."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluators.calibration.reweighting.rules import read_rules
from tests.commands import run
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
from tests.evaluators.reweighting import oracle


@pytest.fixture
def shares(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "shares.csv", made())


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "other.csv", made(400, seed=1))


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return tmp_path / "rules.json"


def test_fitted_weights_multiplied_by_hand_give_the_figures_that_are_printed(
    shares: Path, other: Path, rules: Path, tmp_path: Path
) -> None:
    said("fit", shares, "--out", rules)
    found: dict[str, ReadReport] = {}
    for path in (shares, other):
        found |= measured(tmp_path, "evaluate", path, "--rules", rules)
    document = json.loads(rules.read_text(encoding="utf-8"))
    assert document["classes"] == [*NAMES]
    titles = {"shares.csv": made(), "other.csv": made(400, seed=1)}
    assert [*found] == [f"{title}, {state}" for title in titles for state in ("before", "after")]
    for title, rows in titles.items():
        for state, weights in (("before", [1.0] * 4), ("after", document["weights"])):
            report = found[f"{title}, {state}"]
            predicted = oracle.weighted(rows.probabilities.tolist(), weights)
            expected = oracle.accuracies(rows.targets.tolist(), predicted, 4)
            assert report.accuracies == pytest.approx(expected)
            assert float(report.measures["gini"]) == pytest.approx(oracle.gini(expected))
            assert float(report.measures["mean_class_accuracy"]) == pytest.approx(sum(expected) / 4)
    before, after = (found[f"shares.csv, {one}"].measures["sen_welfare"] for one in ("before", "after"))
    assert float(after) > float(before)


def test_what_is_traded_and_doubted_is_said_and_whole_numbers_stay_such(
    shares: Path, rules: Path, tmp_path: Path
) -> None:
    told = said("fit", shares, "--out", rules)
    assert f"evaluate FILE --rules {rules}" in told
    assert "'fox' loses most" in told
    path = tmp_path / "few.csv"
    path.write_text("a,b,label\n" + "0.8,0.2,a\n0.8,0.2,b\n" * 20, encoding="utf-8")
    assert "these rules change nothing" in said("fit", path, "--out", rules)
    said("fit", write_csv(tmp_path / "numbers.csv", made(), ("7", "8", "9", "10")), "--out", rules)
    assert read_rules(rules).has_integer_classes


@pytest.mark.slow
def test_corrected_rows_keep_their_ids_and_can_be_read_again(shares: Path, rules: Path, tmp_path: Path) -> None:
    out, rows = tmp_path / "out.csv", made()
    said("fit", shares, "--out", rules)
    told = said("apply", shares, "--rules", rules, "--out", out)
    values = rows.probabilities * json.loads(rules.read_text(encoding="utf-8"))["weights"]
    predicted = values.argmax(axis=1)
    n_changed = int((predicted != rows.probabilities.argmax(axis=1)).sum())
    assert n_changed > 0
    assert f"{n_changed} of 240 predictions changed" in told
    read = read_csv(out)
    assert [(row["id"], row["label"], row["predicted"]) for row in read] == [
        (str(number), NAMES[target], NAMES[place])
        for number, (target, place) in enumerate(zip(rows.targets, predicted, strict=True))
    ]
    first = [float(read[0][f"p_{name}"]) for name in NAMES]
    assert first == pytest.approx((values[0] / values[0].sum()).tolist())
    (again,) = measured(tmp_path, "evaluate", out).values()
    *_, after = measured(tmp_path, "evaluate", shares, "--rules", rules).values()
    assert (again.accuracies, again.measures) == (after.accuracies, after.measures)
    assert "has a column 'predicted' already" in error("evaluate", out, "--rules", rules)
    assert "--classes is of no use with --rules" in error("evaluate", shares, "--rules", rules, "--classes", "a,b")
    said("apply", shares, "--rules", rules, "--out", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").column("predicted").to_pylist() == [row["predicted"] for row in read]


def test_rows_without_labels_with_other_columns_or_classes_in_another_order_are_corrected(
    shares: Path, rules: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "new.csv", tmp_path / "out.csv"
    said("fit", shares, "--out", rules)
    path.write_text("file,p_fox,p_dog,p_cat,p_emu,age\nx.png,0.4,0.1,0.4,0.1,30\n", encoding="utf-8")
    said("apply", path, "--rules", rules, "--out", out)
    (row,) = read_csv(out)
    assert (row["file"], row["age"], row["predicted"]) == ("x.png", "30", "cat")
    assert list(row) == ["file", "age", "predicted", *(f"p_{name}" for name in NAMES)]
    turned = tmp_path / "turned.parquet"
    frame(made())[["label", *NAMES[::-1]]].to_parquet(turned)
    predicted = []
    for path in (shares, turned):
        said("apply", path, "--rules", rules, "--out", out)
        predicted.append([row["predicted"] for row in read_csv(out)])
    assert predicted[0] == predicted[1]


def test_no_file_is_overwritten_and_options_that_do_not_fit_are_refused(
    shares: Path, rules: Path, tmp_path: Path
) -> None:
    note, before = tmp_path / "note.txt", shares.read_bytes()
    note.write_text("mine", encoding="utf-8")
    said("fit", shares, "--out", rules)
    for command, message in (
        (("fit", shares, "--out", shares), "is an input of this command"),
        (("apply", shares, "--rules", rules, "--out", shares), "is an input of this command"),
        (("evaluate", shares, "--measures", shares), "is an input of this command"),
        (("evaluate", shares, "--measures", tmp_path / "measures.json"), "does not end with .csv"),
        (("fit", shares, "--out", note), "exists and holds no rules; choose another name"),
        (("fit", shares, "--out", tmp_path), "is a folder; name a file"),
        (("apply", shares, "--rules", rules, "--out", note), "does not end with .csv or .parquet"),
        (("fit", shares, "--out", note, "--preset", "magic"), "--preset: preset 'magic' does not exist; have: default"),
        (("evaluate", shares, "--config", "x"), "--config picks records of a run"),
        (("evaluate", shares, "--classes", "cat,dog,cat"), "cat,dog,cat: names 2 classes in 3 places; name each once"),
        (("evaluate", shares, "--classes", "cat,cow"), "has no column for class 'cow'; have: "),
        (("evaluate", tmp_path / "nothing.csv"), "no such file"),
        (("evaluate", tmp_path), "no result.json here"),
    ):
        assert message in error(*command)
    assert (shares.read_bytes(), note.read_text(encoding="utf-8")) == (before, "mine")
    said("fit", shares, "--out", rules, "--preset", "balanced")
    assert read_rules(rules).solver == "convex"


def test_files_that_are_no_rules_of_these_classes_are_refused(shares: Path, rules: Path, tmp_path: Path) -> None:
    assert "no such file; fit rules first, and name the file" in error("evaluate", shares, "--rules", rules)
    said("fit", shares, "--out", rules)
    names, out = ("cat", "dog", "emu", "owl"), tmp_path / "out.csv"
    path = write_csv(tmp_path / "owls.csv", made(), names)
    fault = error("apply", path, "--rules", rules, "--out", out)
    assert "has no column for class 'fox'; have: id, cat, dog, emu, owl" in fault
    assert not out.exists()


@pytest.mark.slow
def test_the_command_needs_no_scikit_learn(shares: Path, rules: Path) -> None:
    program = "import sys\nsys.modules['sklearn'] = None\nfrom evaluators.__main__ import app\napp()\n"
    run("-c", program, "reweight", "fit", shares, "--out", rules, fresh=True, status=0)
    assert read_rules(rules).solver == "shrunk"


def test_a_value_that_is_unknown_has_its_reason_and_no_name_changes_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text("p_=a,p_b,p_c,label\n0.1,0.9,0,=a\n0.9,0.1,0,b\n", encoding="utf-8")
    assert "without a value: Gini index (nothing is right" in said("evaluate", path)
    (report,) = measured(tmp_path, "evaluate", path).values()
    assert (report.measures["gini"], report.measures["sen_welfare"]) == ("", "0.0")
    told = [(row["name"], row["value"], row["reason"]) for row in report.classes]
    assert told == [("'=a", "0.0", ""), ("b", "0.0", ""), ("c", "", "no row is of this class")], "no cell is a formula"
    path.write_text("\x1b[31mred,[bold]b,label\n0.6,0.4,\x1b[31mred\n0.3,0.7,[bold]b\n", encoding="utf-8")
    printed = said("evaluate", path)
    assert ("\x1b" in printed, "[bold]b" in printed) == (False, True)


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
    ("name", "columns", "message"),
    [
        ("a.npz", {"x": [1]}, "holds no plain arrays 'probabilities'"),
        ("a.npz", {"probabilities": HALF, "classes": np.array(["a", None])}, "holds no plain arrays"),
        ("a.npz", {"probabilities": HALF, "classes": ["a", "label"], "labels": ["a", "b"]},
            "column 'label' stands 2 times"),
        ("a.parquet", {"a": [["x", "y"], ["z"]], "b": [0.1, 0.2], "label": ["a", "b"]},
            ROW_1 + "column 'a' is \"['x' 'y']\"; give the"),
        ("a.parquet", {"a": [0.9, 0.8], "b": [0.1, 0.2], "label": [["x", "y"], ["z"]]},
            "has 0 columns that bear the name of a label"),
    ],
)  # fmt: skip
def test_a_fault_of_arrays_or_of_a_parquet_file_is_one_line(
    tmp_path: Path, name: str, columns: dict[str, Any], message: str
) -> None:
    path = tmp_path / name
    if name == "a.npz":
        np.savez(path, **columns)
    else:
        pq.write_table(pa.table(columns), path)
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
