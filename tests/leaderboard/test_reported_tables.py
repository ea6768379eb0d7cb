"""Tables quoted from papers: what the files hold, what is said about faulty ones, and how a page shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluators.benchmark import benchmarks
from leaderboard.model_facts import facts_of
from leaderboard.pages.rendering import templates
from leaderboard.reported_tables import reported_tables
from schemas.documents.reported_table import ReportedTable
from tests.leaderboard.conftest import message_of

SHIPPED = [table for benchmark in benchmarks() for table in reported_tables(benchmark.name)]


def of_title(title: str) -> ReportedTable:
    return next(table for table in SHIPPED if table.title == title)


@pytest.mark.parametrize("table", SHIPPED, ids=lambda table: str(table.title))
def test_every_table_says_where_it_stands_and_knows_its_models(table: ReportedTable) -> None:
    assert table.place
    assert table.page or table.page_reason
    assert all(facts_of(row.model) for row in table.rows if row.model)


def test_quoted_means_lie_between_the_best_and_the_worst_choice() -> None:
    # A slip in copying six tables would most likely break the order that their definitions give.
    means = of_title("Label bias after eight examples")
    of_choice = {
        key: of_title(f"{name} by the choice of eight examples")
        for key, name in (("f1", "Macro-F1"), ("rsd", "RSD"), ("biasscore", "BiasScore"))
    }
    ends = {"f1": ("worst_f1", "best_f1"), "rsd": ("least_rsd", "most_rsd")}
    ends["biasscore"] = ("least_biasscore", "most_biasscore")
    for number, mean in enumerate(means.rows):
        for key, table in of_choice.items():
            chosen = table.rows[number]
            assert mean.label == chosen.label
            assert len(chosen.values) == 7
            low, high = ends[key]
            assert chosen.values[low] < mean.values[key] < chosen.values[high]
            # No other choice lies beyond those by the metric itself.
            values = chosen.values.values()
            assert (chosen.values[low], chosen.values[high]) == (min(values), max(values))
        f1 = of_choice["f1"].rows[number].values
        assert f1["worst_f1"] < f1["median_f1"] < f1["best_f1"]


def test_quoted_relative_changes_of_images_follow_from_their_values() -> None:
    table = of_title("CIFAR-100 before and after a correction by the Gini index")
    before, after = (row.values for row in table.rows)
    printed = {"mean": 3, "dominance": 3, "cobias": 58, "gini": 61}
    assert {key: round(100 * abs(after[key] - before[key]) / before[key]) for key in printed} == printed
    assert before["highest"] / before["mean"] == pytest.approx(before["dominance"], abs=0.01)


def test_the_quoted_index_is_the_mean_of_the_quoted_parts() -> None:
    table = of_title("The authors' own table of 22 models")
    assert len(table.rows) == 22
    for row in table.rows:
        parts = [value for key, value in row.values.items() if key != "index"]
        assert len(parts) == 7
        # Two digits are printed, and one of the 22 is rounded down.
        assert abs(sum(parts) / 7 - row.values["index"]) < 0.01, row.label


SOUND = """
benchmark = "synthbias"
title = "Scores of two models"
paper = "A paper with <b>markup</b>"
address = "https://papers.example/1"
place = "Table 2"
page = 7
measured = ["All items were asked."]

[[columns]]
key = "accuracy"
label = "Accuracy"
text = "Share of right answers; 1 is best"

[[columns]]
key = "gap"
label = "Gap"
text = "0 is best"

[[rows]]
label = "Small *1B*"
model = "acme/small-1b"
values = { accuracy = 0.5, gap = -0.125 }

[[rows]]
label = "Large"
values = { accuracy = 1 }
"""


@pytest.fixture
def file(package_folder: Path) -> Path:
    return package_folder / "reported" / "table.toml"


BAD = {
    "no such benchmark": (SOUND.replace("synthbias", "synthbais"), "benchmark: 'synthbais' does not exist; have: "),
    "neither page nor reason": (SOUND.replace("page = 7\n", ""), "page: give the page, or say in page_reason why"),
    "page and reason": (SOUND.replace("page = 7", 'page = 7\npage_reason = "no"'), "page: give the page, or say"),
    "no rows and no reason": (SOUND[: SOUND.index("[[rows]]")], "rows: give the published rows, or say in missing"),
    "a value of no column": (SOUND.replace("gap = -", "gape = -"), "'gape' is no key of a column; have: accuracy, gap"),
    "a row without values": (SOUND.replace("{ accuracy = 1 }", "{}"), "rows: Large has no value; remove the row"),
    "one row twice": (SOUND.replace("Large", "Small *1B*"), "rows: Small *1B* stands twice; keep one"),
    "a value in words": (SOUND.replace("0.5", '".5"'), "rows[0].values.accuracy: '.5' is not of type number"),
    "no number": (SOUND.replace("0.5", "nan"), "holds NaN or an infinity; write null and a reason"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_faulty_file_gets_one_clear_line(file: Path, text: str, words: str) -> None:
    assert words in message_of(file, text, lambda: reported_tables("synthbias"))


def rendered(benchmark: str) -> str:
    return templates().get_template("reported.html.j2").render(benchmark=benchmark)


def test_a_quoted_table_is_hatched_with_its_source_and_has_no_rank(file: Path) -> None:
    file.write_text(SOUND)
    page = rendered("synthbias")
    assert rendered("gifi").strip() == ""
    assert '<div class="bb-board bb-reported"' in page
    assert "Rank" not in page
    source = '<a href="https://papers.example/1">A paper with &lt;b&gt;markup&lt;/b&gt;</a>, Table 2, page 7.'
    assert f"Source: {source}" in page
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", page)]
    assert cells[3:] == ["Small *1B*", "0.500", "\N{MINUS SIGN}0.125", "Large", "1.000", "—"]


def test_a_paper_whose_numbers_nobody_copied_says_so(file: Path) -> None:
    file.write_text(SOUND[: SOUND.index("[[columns]]")] + 'missing = "nobody has copied them"\n')
    page = rendered("synthbias")
    assert "No number is quoted here: nobody has copied them." in page
    assert "<table" not in page
