"""The commands of reweight: what they print and write, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import typer

from evaluators.calibration.reweighting.command import COMMANDS, HELP, app
from evaluators.calibration.reweighting.rules_file import StoredRules
from tests.commands import run
from tests.evaluators.commands.made_shares import (
    NAMES,
    Made,
    error,
    made,
    measured,
    read_csv,
    reweight,
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


def accuracies(rows: Made, values: np.ndarray) -> list[float]:
    predicted = [oracle.first_largest(row) for row in values.tolist()]
    return oracle.accuracies(rows.targets.tolist(), predicted, len(NAMES))


def test_every_command_says_of_itself_what_the_list_says() -> None:
    command: Any = typer.main.get_command(app)
    for name in COMMANDS:
        loaded = command.get_command(typer.Context(command), name)
        assert " ".join(loaded.help.split("\n\n")[0].split()) == COMMANDS[name].summary
        assert [option.name for option in loaded.params if not getattr(option, "help", "")] == []
    from evaluators.__main__ import COMMANDS as ALL

    assert ALL["reweight"].summary == HELP


def test_fitted_weights_multiplied_by_hand_give_the_figures_that_are_printed(
    shares: Path, other: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.json"
    found = measured(tmp_path, "fit", shares, "--test", other, "--out", rules)
    document = json.loads(rules.read_text(encoding="utf-8"))
    assert document["classes"] == [*NAMES]
    titles = {"fitted on shares.csv": made(), "measured on other.csv": made(400, seed=1)}
    assert [*found] == [f"{title}, {state}" for title in titles for state in ("before", "after")]
    for title, rows in titles.items():
        for state, weights in (("before", np.ones(4)), ("after", np.array(document["weights"]))):
            report = found[f"{title}, {state}"]
            expected = accuracies(rows, rows.shares * weights)
            assert report.accuracies == pytest.approx(expected)
            assert float(report.measures["gini"]) == pytest.approx(oracle.gini(expected))
            assert float(report.measures["mean_class_accuracy"]) == pytest.approx(sum(expected) / 4)
    before, after = (
        float(found[f"fitted on shares.csv, {one}"].measures["sen_welfare"]) for one in ("before", "after")
    )
    assert after > before


@pytest.mark.slow
def test_the_same_rows_and_options_give_the_same_bytes(shares: Path, tmp_path: Path) -> None:
    for options in ((), ("--preset", "paper", "--seed", "3")):
        said("fit", shares, "--out", tmp_path / "a.json", *options)
        said("fit", shares, "--out", tmp_path / "b.json", *options)
        assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.mark.slow
def test_what_is_traded_and_doubted_is_said(shares: Path, other: Path, tmp_path: Path) -> None:
    asked = ("fit", shares, "--out", tmp_path / "rules.json")
    alone = said(*asked)
    assert "traded: mean class accuracy" in alone
    assert "warning: these rows were fitted on" in alone
    assert "give other rows with --test" in alone
    assert "'fox' loses most" in alone, "the class that loses is named"
    tested = said(*asked, "--test", other)
    assert "read those of the other rows below" in tested
    assert "measured on other.csv" in tested
    (tmp_path / "few.csv").write_text("a,b,label\n0.9,0.1,a\n0.8,0.2,b\n0.7,0.3,b\n", encoding="utf-8")
    assert "the smallest class has 1 rows, fewer than 50" in said(
        "fit", tmp_path / "few.csv", "--out", tmp_path / "few.json", "--preset", "paper"
    )


def test_rules_that_change_nothing_say_so(tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    path.write_text("a,b,label\n" + "0.8,0.2,a\n0.8,0.2,b\n" * 20, encoding="utf-8")
    assert "these rules change nothing" in said("fit", path, "--out", tmp_path / "rules.json")


def test_names_that_are_whole_numbers_are_stored_as_such(tmp_path: Path) -> None:
    rows = made()
    names = ("7", "8", "9", "10")
    path = write_csv(tmp_path / "numbers.csv", rows, names)
    text = path.read_text(encoding="utf-8")
    for old, new in zip(NAMES, names, strict=True):
        text = text.replace(f",{old}\n", f",{new}\n").replace(f",{old}\r\n", f",{new}\r\n")
    path.write_text(text, encoding="utf-8")
    said("fit", path, "--out", tmp_path / "rules.json")
    assert StoredRules.read(tmp_path / "rules.json").classes == [7, 8, 9, 10]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_corrected_rows_keep_their_ids_and_can_be_read_again(shares: Path, tmp_path: Path, ending: str) -> None:
    rules, out = tmp_path / "rules.json", tmp_path / f"out.{ending}"
    said("fit", shares, "--out", rules)
    told = said("apply", shares, "--rules", rules, "--out", out)
    rows, weights = made(), np.array(json.loads(rules.read_text(encoding="utf-8"))["weights"])
    values = rows.shares * weights
    predicted = [NAMES[place] for place in values.argmax(axis=1)]
    n_changed = int((values.argmax(axis=1) != rows.shares.argmax(axis=1)).sum())
    assert n_changed > 0
    assert f"{n_changed} of 240 predictions changed" in told
    read = read_csv(out) if ending == "csv" else pq.read_table(out).to_pylist()
    assert [row["predicted"] for row in read] == predicted
    assert [str(row["id"]) for row in read] == [str(number) for number in range(240)]
    assert [row["label"] for row in read] == rows.labels
    first = [float(read[0][f"p_{name}"]) for name in NAMES]
    assert first == pytest.approx((values[0] / values[0].sum()).tolist())
    (again,) = measured(tmp_path, "evaluate", out).values()
    *_, after = measured(tmp_path, "evaluate", shares, "--rules", rules).values()
    assert again.accuracies == after.accuracies
    assert again.measures == after.measures
    assert "has a column 'predicted' already" in error("apply", out, "--rules", rules, "--out", tmp_path / "b.csv")
    assert "has a column 'predicted' already" in error("evaluate", out, "--rules", rules)


def test_rows_without_labels_and_with_other_columns_are_corrected(shares: Path, tmp_path: Path) -> None:
    rules, path = tmp_path / "rules.json", tmp_path / "new.csv"
    said("fit", shares, "--out", rules)
    path.write_text("file,p_fox,p_dog,p_cat,p_emu,age\nx.png,0.4,0.1,0.4,0.1,30\n", encoding="utf-8")
    said("apply", path, "--rules", rules, "--out", tmp_path / "out.csv")
    (row,) = read_csv(tmp_path / "out.csv")
    assert (row["file"], row["age"], row["predicted"]) == ("x.png", "30", "cat")
    assert list(row) == ["file", "age", "predicted", *(f"p_{name}" for name in NAMES)]


def test_classes_in_another_order_are_matched_by_name(shares: Path, tmp_path: Path) -> None:
    rules, path, rows = tmp_path / "rules.json", tmp_path / "turned.npz", made()
    said("fit", shares, "--out", rules)
    np.savez(path, probabilities=rows.shares[:, ::-1], classes=NAMES[::-1], labels=rows.labels)
    said("apply", shares, "--rules", rules, "--out", tmp_path / "a.csv")
    said("apply", path, "--rules", rules, "--out", tmp_path / "b.csv")
    one, other = ([row["predicted"] for row in read_csv(tmp_path / name)] for name in ("a.csv", "b.csv"))
    assert one == other


def test_no_input_and_no_other_file_is_overwritten(shares: Path, other: Path, tmp_path: Path) -> None:
    rules, before = tmp_path / "rules.json", shares.read_bytes()
    assert "is an input of this command" in error("fit", shares, "--out", shares)
    assert "is an input of this command" in error("fit", shares, "--test", other, "--out", other)
    assert "is an input of this command" in error("evaluate", shares, "--measures", shares)
    assert "does not end with .csv" in error("evaluate", shares, "--measures", tmp_path / "measures.json")
    note = tmp_path / "note.txt"
    note.write_text("mine", encoding="utf-8")
    assert "exists and holds no rules; choose another name" in error("fit", shares, "--out", note)
    assert "is a folder; name a file" in error("fit", shares, "--out", tmp_path)
    said("fit", shares, "--out", rules)
    said("fit", shares, "--out", rules, "--preset", "balanced")
    assert StoredRules.read(rules).document.solver == "convex"
    assert "is an input of this command" in error("apply", shares, "--rules", rules, "--out", shares)
    assert "ends with neither .csv nor .parquet" in error("apply", shares, "--rules", rules, "--out", note)
    assert (shares.read_bytes(), note.read_text(encoding="utf-8")) == (before, "mine")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--preset", "magic"), "--preset: preset 'magic' does not exist; have: default, balanced, paper"),
        (("--preset", ""), "--preset: preset '' does not exist"),
    ],
)
def test_choices_that_do_not_exist_are_refused(
    shares: Path, options: tuple[str, str], message: str, tmp_path: Path
) -> None:
    assert message in error("fit", shares, "--out", tmp_path / "rules.json", *options)
    assert not (tmp_path / "rules.json").exists()


def test_files_that_are_no_rules_of_these_classes_are_refused(shares: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    assert "no such file; name a file that 'fit' wrote" in error("evaluate", shares, "--rules", rules)
    rules.write_text('{"weights": [1, 2]}', encoding="utf-8")
    assert "name a file that 'fit' wrote" in error("evaluate", shares, "--rules", rules)
    said("fit", shares, "--out", tmp_path / "good.json")
    names = ("cat", "dog", "emu", "owl")
    path = write_csv(tmp_path / "owls.csv", made(), names, has_labels=False)
    fault = error("apply", path, "--rules", tmp_path / "good.json", "--out", tmp_path / "out.csv")
    assert "has no column for class 'fox'; have: id, cat, dog, emu, owl" in fault
    np.savez(tmp_path / "owls.npz", probabilities=made().shares, labels=made().labels, classes=names)
    assert "has the classes cat, dog, emu, owl, and these are wanted: cat, dog, emu, fox" in error(
        "evaluate", tmp_path / "owls.npz", "--rules", tmp_path / "good.json"
    )


def test_names_cannot_change_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    path.write_text("\x1b[31mred,[bold]b,label\n0.6,0.4,\x1b[31mred\n0.3,0.7,[bold]b\n", encoding="utf-8")
    told = said("evaluate", path)
    assert "\x1b" not in told
    assert "[bold]b" in told


@pytest.mark.slow
def test_the_command_needs_no_scikit_learn(shares: Path, tmp_path: Path) -> None:
    program = "import sys\nsys.modules['sklearn'] = None\nfrom evaluators.__main__ import app\napp()\n"
    run("-c", program, "reweight", "fit", shares, "--out", tmp_path / "rules.json", fresh=True, status=0)
    assert StoredRules.read(tmp_path / "rules.json").document.solver == "shrunk"


def test_many_classes_are_shown_in_part_and_written_whole(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"={number}" for number in range(100)]
    labels = np.repeat(names, 3)
    np.savez(tmp_path / "many.npz", probabilities=rng.dirichlet(np.ones(100), 300), labels=labels, classes=names)
    assert "100 classes; --measures FILE.csv writes all of them" in said("evaluate", tmp_path / "many.npz")
    (report,) = measured(tmp_path, "evaluate", tmp_path / "many.npz").values()
    assert [row["name"] for row in report.classes] == [f"'{name}" for name in names], "no cell is a formula"
    assert {row["n_rows"] for row in report.classes} == {"3"}


def test_a_value_that_is_unknown_has_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text("a,b,c,label\n0.1,0.9,0,a\n0.9,0.1,0,b\n", encoding="utf-8")
    assert "without a value: Gini index (nothing is right" in said("evaluate", path)
    (report,) = measured(tmp_path, "evaluate", path).values()
    assert (report.measures["gini"], report.measures["sen_welfare"]) == ("", "0.0")
    assert [(row["value"], row["reason"]) for row in report.classes] == [
        *[("0.0", "")] * 2,
        ("", "no row is of this class"),
    ]
    reasons = {row["name"]: row["reason"] for row in read_csv(tmp_path / "measures.csv")}
    assert reasons["gini"].startswith("nothing is right")


def test_help_is_printed_without_arguments() -> None:
    assert "evaluate" in reweight().output


def test_a_terminal_of_80_columns_shows_every_number_whole(
    shares: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A terminal, as rich understands these variables.
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "80")
    told = re.sub(r"\x1b\[[0-9;]*m", "", said("fit", shares, "--out", tmp_path / "rules.json"))
    tables = [line for line in told.splitlines() if line.startswith(("│", " "))]
    assert tables
    assert max(map(len, tables)) <= 80
    assert "…" not in "".join(tables)
    assert "emu" in "".join(tables)
