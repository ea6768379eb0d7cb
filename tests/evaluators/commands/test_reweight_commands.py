"""The commands of reweight on files and runs: what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import json
import tempfile
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluators.calibration.reweighting.rules import read_rules
from schemas.folders.run_folder import find_runs, read_run
from tests.commands import run
from tests.evaluators.invoking import evaluators
from tests.evaluators.label_data import made_dataset
from tests.evaluators.made_data import made_items, write_dataset
from tests.evaluators.reweighting import oracle
from tests.evaluators.reweighting.made import Made
from tests.suites.commands import ask
from tests.suites.commands import run as run_planted

NAMES = ("cat", "dog", "emu", "fox")


def made(n: int = 240, seed: int = 0) -> Made:
    """Return rows, rounded as in files, in which the last class is predicted too often, and the first too seldom."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(len(NAMES), size=n)
    scores = rng.normal(0, 1, (n, len(NAMES))) + np.array([-1.0, -0.3, 0.3, 1.0])
    scores[np.arange(n), targets] += 2.0
    odds = np.exp(scores)
    return Made((odds / odds.sum(axis=1, keepdims=True)).round(6), targets)


def frame(rows: Made, names: Sequence[str] = NAMES) -> pd.DataFrame:
    columns = dict(zip(names, rows.probabilities.T, strict=True))
    return pd.DataFrame({**columns, "label": [names[target] for target in rows.targets]})


def write_csv(path: Path, rows: Made, names: Sequence[str] = NAMES) -> Path:
    frame(rows, names).to_csv(path, index_label="id")
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


reweight = partial(evaluators, "reweight")


def said(*arguments: object) -> str:
    """Return what a command prints, which must end well."""
    done = reweight(*arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout


class ReadReport(NamedTuple):
    """What a file of measures says of some predictions."""

    classes: list[dict[str, str]]
    """The row of each class, with the texts of its cells."""
    measures: dict[str, str]
    """The value of each measure by its name."""

    @property
    def accuracies(self) -> list[float]:
        """The accuracy of each class that has rows."""
        return [float(row["value"]) for row in self.classes if row["value"]]


def measured(folder: Path, *arguments: object) -> dict[str, ReadReport]:
    """Return what a command measures, by the title of the rows and ``before`` or ``after``."""
    path = folder / "measures.csv"
    assert f"measures {path}" in said(*arguments, "--measures", path).splitlines()
    found: dict[str, ReadReport] = {}
    for row in read_csv(path):
        report = found.setdefault(f"{row['rows']}, {row['correction']}", ReadReport([], {}))
        if row["kind"] == "class":
            report.classes.append(row)
        else:
            report.measures[row["name"]] = row["value"]
    return found


def error(*arguments: object) -> str:
    """Return the one line of a command that must end with an error."""
    done = reweight(*arguments)
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (done.exit_code, len(lines), done.stdout) == (1, 1, ""), done.stderr
    return lines[0].removeprefix("error: ")


@pytest.fixture
def shares(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "shares.csv", made())


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return tmp_path / "rules.json"


def test_fitted_weights_multiplied_by_hand_give_the_figures_that_are_printed(
    shares: Path, rules: Path, tmp_path: Path
) -> None:
    other = write_csv(tmp_path / "other.csv", made(400, seed=1))
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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A model with planted answers, without examples and after one set of two."""
    folder = tmp_path_factory.mktemp("tasks")
    prompts = ("--prompt", "release-4096b-k0-v1", "--prompt", "release-4096b-k2-set0-v1")
    ask(
        made_dataset(folder / "tasks", ("two", "three", "letters")),
        folder / "runs",
        "--limit",
        "0",
        *prompts,
        PLANTED_LOG=folder / "log",
    )
    return find_runs(folder / "runs")


@pytest.mark.slow
def test_the_accuracies_are_those_of_a_plain_loop_over_the_records(runs: list[Path], tmp_path: Path) -> None:
    right: dict[str, list[bool]] = {}
    for one in read_run(runs[0]).records:
        # Some items of this config do not offer all labels.
        if one.config == "letters" and one.split in ("pool", "bias") and one.reading is not None:
            assert one.target is not None
            shares = dict(zip(one.reading.outcomes, one.reading.probabilities, strict=True))
            first = min(name for name, share in shares.items() if share == max(shares.values()))
            right.setdefault(one.target, []).append(first == one.target)
    choice = ("--config", "letters", "--split", "pool", "--split", "bias")
    (found,) = measured(tmp_path, "evaluate", runs[0], *choice).values()
    assert {one["name"]: int(one["n_rows"]) for one in found.classes} == {
        label: len(each) for label, each in right.items()
    }
    assert {one["name"]: float(one["value"]) for one in found.classes} == pytest.approx(
        {label: sum(each) / len(each) for label, each in right.items()}
    )


@pytest.mark.slow
def test_rules_are_fitted_on_some_splits_and_measured_on_others(runs: list[Path], tmp_path: Path) -> None:
    rules, chosen = tmp_path / "rules.json", ("--config", "three")
    said("fit", runs[0], *chosen, "--split", "pool", "--split", "bias", "--out", rules)
    *_, tested_on = measured(tmp_path, "evaluate", runs[0], *chosen, "--split", "test", "--rules", rules).values()
    said("apply", runs[0], *chosen, "--rules", rules, "--out", tmp_path / "out.csv")
    rows = read_csv(tmp_path / "out.csv")
    assert [row["item_id"] for row in rows] == [
        one.item_id for one in read_run(runs[0]).records if one.config == "three"
    ]
    tested = [row for row in rows if row["split"] == "test"]
    by_class = {one["name"]: int(one["n_predicted"]) for one in tested_on.classes}
    assert by_class == {name: sum(row["predicted"] == name for row in tested) for name in by_class}


@pytest.mark.slow
def test_items_that_the_prompt_shows_are_left_out_and_counted(runs: list[Path]) -> None:
    by_prompt = {}
    for folder in runs:
        records = [one for one in read_run(folder).records if one.config == "two" and one.split == "pool"]
        shown = {one.item_id for one in records if "shown_place" in one.groups}
        note = f"{len(shown)} records of items that the model was shown or trained on with labels are left out"
        told = said("evaluate", folder, "--config", "two", "--split", "pool")
        assert (note in told) == bool(shown)
        assert f"{len(records) - len(shown)} rows" in told
        by_prompt[folder] = len(shown)
    assert sorted(by_prompt.values()) == [0, 2]


@pytest.mark.slow
def test_a_choice_that_a_run_lacks_is_told_and_records_without_a_right_answer_are_left_out(runs: list[Path]) -> None:
    assert "13 records without a right answer are left out" in said("evaluate", runs[0], "--config", "two")
    for options, message in (
        ((), "configs; name one with --config: two, three"),
        (("--config", "x"), "--config x: the run has no such config; have: two, three"),
        (("--config", "two", "--split", "x"), "--split x: config 'two' has no such split; have: test, bias, pool"),
        (("--config", "two", "--classes", "yes,maybe"), "outcome 'no' is no class; have: yes, maybe"),
        (("--config", "two", "--split", "content_free"), "none of 13 records has a right answer; choose other splits"),
    ):
        assert message in error("evaluate", runs[0], *options)
    assert f"holds 2 runs; name one: {runs[0]}" in error("evaluate", runs[0].parent)


@pytest.mark.slow
def test_a_run_of_another_task_is_read_alike(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(10)})
    asked = ("--backend", "baseline", "--model", "stereotype", "--out", tmp_path / "runs")
    run_planted("-m", "evaluators", "run", "--dataset", dataset, *asked)
    (folder,) = find_runs(tmp_path / "runs")
    records = read_run(folder).records
    (found,) = measured(tmp_path, "evaluate", folder).values()
    assert sum(int(one["n_rows"]) for one in found.classes) == len(records)
    outcomes = {name for one in records for name in (one.reading.outcomes if one.reading else ())}
    assert {one["name"] for one in found.classes} == outcomes
