"""Papers and how far they are reproduced, tables quoted from them, and facts about models: files, faults and pages."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.benchmark import benchmarks
from leaderboard import model_facts
from leaderboard.model_facts import display_name, facts_of, file_name
from leaderboard.pages.profile import facts_sentence
from leaderboard.pages.publishing import generate, make_view, templates
from leaderboard.ranking import reproduced
from leaderboard.ranking.boards import Board
from leaderboard.verify.entries import Root
from schemas.documents.model_facts import FACTS
from schemas.documents.papers import ReportedTable
from tests.commands import REPOSITORY
from tests.leaderboard import synthetic
from tests.leaderboard.conftest import message_of
from tests.leaderboard.synthetic import present
from tests.worlds import MadeBoard

PAPERS = reproduced.reproductions()
CITED = {
    "bbq": "2110.08193",
    "gifi": "2506.15568",
    "gini": "2603.15654",
    "label-bias": "2405.02743",
    "stereoset": "2004.09456",
    "synthbias": "2505.23996",
}


@pytest.mark.parametrize(("name", "arxiv"), CITED.items())
def test_every_paper_has_findings_all_its_parts_and_a_citation(name: str, arxiv: str) -> None:
    paper = PAPERS[name]
    assert PAPERS.keys() == CITED.keys()
    assert reproduced.citation_of(paper).title
    assert reproduced.citation_of(paper).arxiv == arxiv
    assert len(paper.claims) >= 5
    for part in paper.parts:
        for test in part.tests:
            file, _, name = test.partition("::")
            functions = ast.walk(ast.parse((REPOSITORY / file).read_text(encoding="utf-8")))
            assert name in {one.name for one in functions if isinstance(one, ast.FunctionDef)}, test


SOUND = """
benchmarks = ["synthbias"]
cites = "wang2025ucerf"
title = "A paper"
asks = "What?"
sources = "Its text."
claims = [
    { text = "Models are more often right than a coin.", place = "Table 2", words = "accuracy against one half", \
      higher = { metric = "accuracy" }, than = 0.5 },
    { text = "Stereotypes help.", place = "Table 2", words = "accuracy with and against the stereotype", \
      higher = { metric = "accuracy", group = { stereotype = "pro" } }, \
      lower = { metric = "accuracy", group = { stereotype = "anti" } } },
    { text = "Models are uneven.", place = "Table 2", words = "UCerF against 1", lower = { metric = "ucerf" }, \
      than = 1.0 },
    { text = "Orders agree.", place = "Table 2", words = "orders by accuracy and by UCerF", \
      orders = [{ metric = "accuracy" }, { metric = "ucerf" }] },
    { text = "Nobody knows.", place = "Table 3", untested = "no data" },
]
models = [
    { label = "Large", parameters = 70_000_000_000 },
    { label = "Experts", parameters = 70_000_000_000, active_parameters = 7_000_000_000 },
    { label = "Served", is_remote = true },
]

[[parts]]
number = "Table 2"
shows = "Accuracies."
runs = ["all"]
measures = { accuracy = { metric = "accuracy" } }

[[parts]]
number = "Table 3"
shows = "Accuracies on other data."
runs = ["all"]
measures = { accuracy = { metric = "accuracy", dataset = "other" } }

[[parts]]
number = "Figure 1"
shows = "A drawing."
impossible = "It has no numbers."

[[runs]]
name = "all"
words = "Everything"
dataset = "made"
build = "synthbias"
configs = ["type2"]
prompts = ["intrinsic-v1"]
n_requests = 1000
n_prompt_tokens = 81_360_000
n_completion_tokens = 0
counted = "by hand"
"""


@pytest.fixture
def file(package_folder: Path) -> Path:
    return package_folder / "papers" / "made.toml"


BAD = {
    "no such benchmark": (SOUND.replace('["synthbias"]', '["synthbais"]'), "benchmarks: 'synthbais' does not exist"),
    "no such citation": (SOUND.replace("wang2025ucerf", "wang"), "the pages of synthbias cite no 'wang'; have: "),
    "no such metric": (SOUND.replace('"ucerf"', '"ucref"'), "metric 'ucref' does not exist; see biasboard list"),
    "no such prompt": (SOUND.replace("intrinsic-v1", "intrinsic-v9"), "prompt 'intrinsic-v9' does not exist"),
    "no such run": (SOUND.replace('runs = ["all"]', 'runs = ["some"]'), "Table 2: 'some' is no run; have: all"),
    "two comparisons": (SOUND.replace("than = 0.5", 'than = 0.5, lower = { metric = "ucerf" }'), "only one of these"),
    "a part without anything": (SOUND.replace('impossible = "It has no numbers."', ""), "or say in impossible why"),
    "numbers without how": (SOUND.replace('counted = "by hand"\n', ""), "and counted, or uncounted"),
    "one part twice": (SOUND.replace("Table 3", "Table 2"), "parts: Table 2 stands twice; keep one"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_faulty_file_gets_one_clear_line(file: Path, text: str, words: str) -> None:
    assert words in message_of(file, text, reproduced.reproductions)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Two models: one that follows the stereotype, and one that is right without it."""
    folder = tmp_path_factory.mktemp("results")
    synthetic.write_model(folder, "acme/even", synthetic.leaning(2.0, 0.0))
    synthetic.write_model(folder, "acme/leaning", synthetic.leaning(1.0, 3.0))
    return MadeBoard(folder).board


@pytest.fixture
def compared(file: Path, board: Board) -> reproduced.ReproducedPaper:
    file.write_text(SOUND)
    return reproduced.reproduced("made", reproduced.reproductions()["made"], board)


def test_claims_are_tested_by_intervals_and_need_more_than_chance_gives(compared: reproduced.ReproducedPaper) -> None:
    right, helped, uneven, ordered, unknown = compared.claims
    # The model that follows the stereotype is right in one half, like a coin, and shows nothing.
    at_chance = "1 is no better than a useless predictor"
    assert (right.outcome, str(right.asked), right.published) == ("holds", f"in the only model; {at_chance}", None)
    undecided = f"in none of 1 model, undecided in 1; {at_chance}"
    assert (helped.outcome, str(helped.asked)) == ("undecided", undecided)
    assert (uneven.outcome, str(uneven.asked)) == ("undecided", undecided)
    assert [(one.model, one.sign, str(one)) for one in helped.sightings] == [
        ("acme/even", 0, "undecided"),
        (
            "acme/leaning",
            1,
            "does not count: on synthbias, accuracy 0.500 is no better than the baseline uniform (0.500)",
        ),
    ]
    # Two models have an order by chance alone.
    assert ordered.order is not None
    assert (ordered.order.n, ordered.order.tau, ordered.outcome) == (2, None, "too few models")
    assert unknown.outcome == "not tested"
    for signs, outcome in (
        ((1, 1, 1), "holds"),
        ((1, 1, 0), "holds in most"),
        ((1, 1, 0, 0, 0), "holds in some"),
        # One model of several may be chance.
        ((1, 0, 0, 0, 0), "undecided"),
        ((1, -1, -1), "does not hold"),
    ):
        sightings = tuple(reproduced.Sighting(f"acme/{number}", (), sign) for number, sign in enumerate(signs))
        assert replace(compared.claims[0], sightings=sightings).outcome == outcome


@pytest.mark.slow
def test_a_run_of_the_same_weights_under_another_name_is_no_second_model(file: Path, tmp_path: Path) -> None:
    file.write_text(SOUND)
    records = synthetic.make_records(synthetic.leaning(3.0, 1.0))
    result = synthetic.make_result(records, "acme/one")
    synthetic.write_result(tmp_path / "accepted" / "one", result, records)
    renamed = replace(result, model=replace(result.model, id="mine/copy"))
    synthetic.write_result(tmp_path / "runs" / "copy", renamed, records)
    made = MadeBoard(Root(tmp_path / "accepted", "accepted"), tmp_path / "runs")
    assert {row.model.id for table in made.board.tables for row in table.rows} == {"acme/one", "mine/copy"}
    claim = reproduced.reproduced("made", reproduced.reproductions()["made"], made.board).claims[1]
    assert [one.model for one in claim.sightings] == ["acme/one"]


@pytest.mark.slow
def test_values_of_different_versions_of_a_model_or_a_dataset_are_no_pair(file: Path, tmp_path: Path) -> None:
    """One revision asked in one way and another asked in the other way show nothing about the ways."""
    one_way, other_way = ('prompt = "intrinsic-v1"', 'prompt = "mcq2-v1"')
    text = SOUND.replace('group = { stereotype = "pro" }', one_way)
    file.write_text(text.replace('group = { stereotype = "anti" }', other_way))
    sure, even = (synthetic.make_records(synthetic.leaning(*of)) for of in ((3.0, 0.0), (0.0, 0.0)))
    others = {"acme/one": ("0", "9.0.0"), "acme/revised": ("1", "9.0.0"), "acme/elsewhere": ("0", "9.1.0")}
    for model, (revision, version) in others.items():
        for records, prompt, of in ((sure, "intrinsic-v1", ("0", "9.0.0")), (even, "mcq2-v1", (revision, version))):
            result = synthetic.make_result(records, model, revision=of[0] * 40, prompt=prompt, dataset_version=of[1])
            synthetic.write_result(tmp_path / "runs" / model / prompt, result, records)
    made = MadeBoard(tmp_path / "runs")
    assert len(made.entries) == 2 * len(others)
    claim = reproduced.reproduced("made", reproduced.reproductions()["made"], made.board).claims[1]
    assert [(one.model, one.sign) for one in claim.sightings] == [("acme/one", 1)]


def test_parts_have_a_status_hours_and_deviations_where_they_are_known(compared: reproduced.ReproducedPaper) -> None:
    here, elsewhere, drawing = compared.parts
    assert (here.status, here.models) == ("run here on small models", ("acme/even", "acme/leaning"))
    assert [(row.label, row.is_of_paper) for row in here.rows] == [("even", False), ("leaning", False)]
    assert (elsewhere.status, elsewhere.models) == ("needs these models", ())
    assert drawing.status == "not reproducible"
    # 2 operations for each of 7 billion parameters and 81.36 million tokens, at 40 % of 790 TFLOP/s, take an hour.
    large, experts, served = reproduced.costs_of(compared.paper, 81_360_000, 0)
    assert [large.n_gpus, experts.n_gpus, served.n_gpus] == [4, 4, None]
    assert large.hours == pytest.approx(10.0, rel=2e-3)
    assert experts.hours == pytest.approx(1.0, rel=2e-3)
    assert served.hours is None
    assert reproduced.costs_of(compared.paper, None, 0)[0].hours is None
    # Of a single cluster nobody knows how sure it is; a p-value is what it is.
    cell = next(iter(compared.parts[0].rows[0].cells.values()))
    ours = present(cell.ours)
    single = replace(ours.metric, value=0.9, interval=None, interval_reason="there is 1 cluster")
    assert reproduced.side_of(single, 0.5) == 0
    assert reproduced.side_of(replace(single, name="pe_p_value"), 0.5) == 1
    assert cell._replace(published=0.1).deviation == pytest.approx(ours.value - 0.1)
    assert cell._replace(published=0.1, is_of_other_data=True).deviation is None


def test_the_page_says_what_was_found_and_what_is_seen(file: Path, board: Board) -> None:
    file.write_text(SOUND)
    pages = generate(make_view(board, (), ()), {})
    page = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", pages["papers/made.md"]))
    for words in (
        "holds Models are more often right than a coin. Table 2 Accuracy against one half. Models asked here: in the",
        "2 models; five are needed to compare two orders",
        "Run here on small models 1 \N{MIDDLE DOT} needs these models 1 \N{MIDDLE DOT} not reproducible 1",
        "Figure 1 not reproducible A drawing. It has no numbers.",
        "Large, Experts, Served: everything ( biasboard reproduce made ).",
        "Large 70 B 4 \N{MULTIPLICATION SIGN} H100 10.0 30",
        "Served unknown its endpoint by the endpoint",
    ):
        assert words in page, words
    assert "A paper" in pages["papers/index.md"]
    # What has a section is linked at the top and in the table; a drawing without results has none.
    text = pages["papers/made.md"]
    assert text.count('<a href="#part-1">Table 2</a>') == 2
    assert "### Table 2 {: #part-1 }" in text
    assert "#part-3" not in text


SHIPPED = [table for benchmark in benchmarks() for table in reproduced.reported_tables(benchmark.name)]


def of_title(title: str) -> ReportedTable:
    return next(table for table in SHIPPED if table.title == title)


def test_quoted_tables_name_their_place_and_agree_with_themselves() -> None:
    for table in SHIPPED:
        assert table.page or table.page_reason, table.title
        assert all(facts_of(row.model) for row in table.rows if row.model), table.title
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
    table = of_title("CIFAR-100 before and after a correction by the Gini index")
    before, after = (row.values for row in table.rows)
    printed = {"mean": 3, "dominance": 3, "cobias": 58, "gini": 61}
    assert {key: round(100 * abs(after[key] - before[key]) / before[key]) for key in printed} == printed
    assert before["highest"] / before["mean"] == pytest.approx(before["dominance"], abs=0.01)
    table = of_title("The authors' own table of 22 models")
    assert len(table.rows) == 22
    for row in table.rows:
        parts = [value for key, value in row.values.items() if key != "index"]
        assert len(parts) == 7
        # Two digits are printed, and one of the 22 is rounded down.
        assert abs(sum(parts) / 7 - row.values["index"]) < 0.01, row.label


TABLE = """
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


BAD_TABLES = {
    "no such benchmark": (TABLE.replace("synthbias", "synthbais"), "benchmark: 'synthbais' does not exist; have: "),
    "no rows and no reason": (TABLE[: TABLE.index("[[rows]]")], "rows: give the published rows, or say in missing"),
    "a value of no column": (TABLE.replace("gap = -", "gape = -"), "'gape' is no key of a column; have: accuracy, gap"),
}


@pytest.mark.parametrize(("text", "words"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_faulty_table_gets_one_clear_line(package_folder: Path, text: str, words: str) -> None:
    assert words in message_of(
        package_folder / "reported" / "table.toml", text, lambda: reproduced.reported_tables("synthbias")
    )


def rendered(benchmark: str) -> str:
    return templates().get_template("reported.html.j2").render(benchmark=benchmark)


def test_a_quoted_table_is_hatched_with_its_source_and_has_no_rank(package_folder: Path) -> None:
    (package_folder / "reported" / "table.toml").write_text(TABLE)
    page = rendered("synthbias")
    assert rendered("gifi").strip() == ""
    assert '<div class="bb-board bb-reported"' in page
    assert "Rank" not in page
    source = '<a href="https://papers.example/1">A paper with &lt;b&gt;markup&lt;/b&gt;</a>, Table 2, page 7.'
    assert f"Source: {source}" in page
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", page)]
    assert cells[3:] == ["Small *1B*", "0.500", "\N{MINUS SIGN}0.125", "Large", "1.000", "—"]


MODEL = """
id = "acme/small-1b"
short_name = "Small 1B"
family = "Small"
maker = "Acme"
parameters = 1_000_000_000
open_weights = true
kind = "base"
licence = "MIT"
released = 2026-01-31
address = "https://models.example/small-1b"

[[sources]]
facts = ["parameters", "open_weights", "kind", "licence", "released"]
address = "https://models.example/small-1b"
looked_at = 2026-02-01
"""


BAD_MODELS = {
    "a fact without a source": (MODEL.replace('"kind", ', ""), "kind: has no source; name a page that states it"),
    "an unknown without a reason": (MODEL.replace('kind = "base"\n', ""), "kind: is missing; give it with a source"),
    "a known unknown": (f'{MODEL}\n[unknown]\nkind = "nobody says"\n', "kind is given as well; remove one of them"),
    "an address of no web page": (
        MODEL.replace('"https://models.example/small-1b"', '"javascript:alert(1)"', 1),
        "address: 'javascript:alert(1)' does not match",
    ),
}


@pytest.mark.parametrize(("text", "words"), BAD_MODELS.values(), ids=BAD_MODELS)
def test_a_faulty_file_about_a_model_gets_one_clear_line(package_folder: Path, text: str, words: str) -> None:
    assert words in message_of(
        package_folder / "models" / "acme__small-1b.toml", text, lambda: facts_of("acme/small-1b")
    )


def test_a_file_is_found_by_its_folder_under_each_id_of_the_model(package_folder: Path) -> None:
    path = package_folder / "models" / "acme__small-1b.toml"
    path.write_text(MODEL.replace("short_name", 'other_ids = ["x/small"]\nshort_name'))
    facts = present(facts_of("x/small"))
    assert (facts.id, facts.parameters, facts.released) == ("acme/small-1b", 1_000_000_000, "2026-01-31")
    assert display_name("x/small") == display_name("acme/small-1b") == "Small 1B"
    # A model without a file is called by its id without the maker.
    assert facts_of("acme/unknown-2b") is None
    assert (display_name("acme/unknown-2b"), display_name("uniform")) == ("unknown-2b", "uniform")


def test_a_file_under_another_name_and_a_second_one_are_told(package_folder: Path) -> None:
    folder = package_folder / "models"
    said = message_of(folder / "small.toml", MODEL, lambda: facts_of("acme/small-1b"))
    assert f"rename it to {file_name('acme/small-1b')}" in said
    (folder / "small.toml").rename(folder / "acme__small-1b.toml")
    other = MODEL.replace("acme/small-1b", "x/small").replace("short_name", 'other_ids = ["acme/small-1b"]\nshort_name')
    said = message_of(folder / "x__small.toml", other, lambda: facts_of("x/small"))
    assert re.match("acme/small-1b is in .*acme__small-1b.toml too; keep it in one of them", said)


def test_each_model_of_the_board_has_facts_a_short_name_of_its_own_and_a_sentence() -> None:
    names = {path.name for path in (REPOSITORY / "leaderboard" / "results").glob("*/*/")}
    models = [name.replace("__", "/") for name in names if not name.startswith("baseline__")]
    assert len({*models}) >= 30
    for model_id in models:
        facts = facts_of(model_id)
        assert facts is not None, model_id
        assert facts.sources or set(facts.unknown) == set(FACTS)
    known = model_facts._by_id().values()
    assert len({facts.short_name for facts in known}) == len({facts.id for facts in known})
    assert facts_sentence("gpt2") == (
        "GPT-2 is a base model by OpenAI with 124 M parameters, open weights, licence Modified MIT License, "
        "released 2019-02."
    )
    assert facts_sentence("nobody/knows") == ""
