"""The page of a result on one task: its classes before and after corrections, from a CSV file to the table."""

from __future__ import annotations

import re
from typing import Any

import pytest

from biasboard.ground.memory import Memory
from leaderboard.pages.model_views import class_table
from leaderboard.verify.entries import Entry
from tests.commands import output_of
from tests.evaluators.made_data import save_tiny_llama
from tests.leaderboard.synthetic import present
from tests.worlds import MadeBoard

pytest.importorskip("torch", reason="the extra hf is not installed")
pytestmark = pytest.mark.slow
LABELS = ("calm", "calm", "calm", "windy", "<b>stormy</b>")


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> Entry:
    """The result of a small model, without examples, on 60 of 160 texts, of which most are calm."""
    root = tmp_path_factory.mktemp("labelled")
    lines = [f"The sea on day {day} of the log,{LABELS[day * 7 % 5]}" for day in range(160)]
    (root / "log.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    build = ("--input", root / "log.csv", "--out", root / "dataset", "--limit", "60")
    output_of("-m", "biasboard", "build", "labelled_text", *build)
    save_tiny_llama(root / "model")
    asked = ("--dataset", root / "dataset", "--out", root / "runs", "--contexts", "0", "--limit", "0")
    opened = ("--backend", "transformers", "--model", root / "model", "--name", "lab/small", "--device", "cpu")
    output_of("-m", "biasboard", "run", *asked, *opened)
    (entry,) = MadeBoard(root / "runs", any_name=True).entries
    return entry


def test_the_table_has_the_metrics_of_the_result_and_compares_with_the_constant_answer(entry: Entry) -> None:
    table = present(class_table(entry, "x", Memory(None)))
    assert [column.label for column in table.columns] == ["Uncorrected", "BC", "BCL", "CC", "DC", "Gini"]
    assert [(column.label, column.reason) for column in table.missing] == [("LOOC", "the prompt shows no examples")]
    lines: dict[Any, Any] = {(line["row"], line["correction"]): line for line in table.table.lines}
    values = {place: line["value"] for place, line in lines.items()}
    for column, ending in zip(table.columns, ("", "_bc", "_bcl", "_cc", "_dc", "_gini"), strict=True):
        for heading, name in (("Accuracy", "accuracy"), ("Gini index", "gini"), ("COBias, paper", "cobias_paper")):
            metric = present(entry.metric(name + ending))
            assert values[heading, column.label] == metric.value
        classes = {name: values[name, column.label] for name in ("calm", "windy", "<b>stormy</b>")}
        assert values["Mean class accuracy", column.label] == pytest.approx(sum(classes.values()) / 3)
        # The accuracy over all items is the mean weighted by the items of the classes.
        weighted = sum(value * lines[name, column.label]["n_items"] for name, value in classes.items()) / 60
        assert values["Accuracy", column.label] == pytest.approx(weighted)
        before, after = values["Accuracy", "Uncorrected"], values["Accuracy", column.label]
        change = lines["Accuracy", column.label]["relative_change"]
        assert change == (None if not ending else pytest.approx((after - before) / before))
    n_calm = lines["calm", "Uncorrected"]["n_items"]
    assert (table.most_frequent, table.constant_accuracy) == ("calm", n_calm / 60)
    assert table.constant_mean == pytest.approx(1 / 3)
    labels = [column.label for column in table.columns]
    assert list(table.above) == [one for one in labels if values["Accuracy", one] > table.constant_accuracy]


def test_the_page_shows_it_with_its_drawings_and_its_file(entry: Entry) -> None:
    made = MadeBoard(entry)
    page, texts = made.page("models/lab__small/"), made.texts
    assert "How often the model is right in each class, before and after corrections" in page
    assert "<b>stormy" not in page
    share = re.search(
        r"Always answering <q>calm</q> is right in ([\d.]+) % of the 60 items, and in 33.3 % on average", page
    )
    assert share is not None
    assert "No LOOC (leave-one-out calibration): the prompt shows no examples." in page
    (file,) = (path for path in texts if path.endswith("-classes.csv"))
    rows = made.csv(file)
    assert {row["kind"] for row in rows} == {"class", "measure"}
    assert len(rows) == (3 + 5) * 6
    assert float(share[1]) == pytest.approx(100 * max(int(row["n_items"] or 0) for row in rows) / 60, abs=0.05)
