"""Papers and how far they are reproduced: their files, what is compared, and the pages."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.rendering import generate, make_view
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.reproduced import ReproducedPaper, Sighting, costs_of, reproduced, side_of
from leaderboard.reproductions import citation_of, reproductions
from tests.commands import REPOSITORY
from tests.leaderboard import synthetic
from tests.leaderboard.conftest import message_of
from tests.worlds import MadeBoard

PAPERS = reproductions()
CITED = {"gifi": "2506.15568", "gini": "2603.15654", "label-bias": "2405.02743", "synthbias": "2505.23996"}


@pytest.mark.parametrize(("name", "arxiv"), CITED.items())
def test_every_paper_has_findings_all_its_parts_and_a_citation(name: str, arxiv: str) -> None:
    paper = PAPERS[name]
    assert PAPERS.keys() == CITED.keys()
    assert citation_of(paper).title
    assert citation_of(paper).arxiv == arxiv
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
UNKEPT = """
[[unkept]]
run = "texts"
model = "acme/other"
n_parts = 1
n_requests = 10
seconds = 180
device = "abacus"
why = "they are large"
missing = "the rest is too long"
"""


@pytest.fixture
def file(package_folder: Path) -> Path:
    return package_folder / "papers" / "made.toml"


BAD = {
    "no such benchmark": (SOUND.replace('["synthbias"]', '["synthbais"]'), "benchmarks: 'synthbais' does not exist"),
    "no such citation": (
        SOUND.replace("wang2025ucerf", "wang"),
        "the pages of synthbias cite no 'wang'; have: ",
    ),
    "no such metric": (SOUND.replace('"ucerf"', '"ucref"'), "metric 'ucref' does not exist; see biasboard list"),
    "no such prompt": (SOUND.replace("intrinsic-v1", "intrinsic-v9"), "prompt 'intrinsic-v9' does not exist"),
    "no such run": (SOUND.replace('runs = ["all"]', 'runs = ["some"]'), "Table 2: 'some' is no run; have: all"),
    "two comparisons": (SOUND.replace("than = 0.5", 'than = 0.5, lower = { metric = "ucerf" }'), "only one of these"),
    "no words": (SOUND.replace('words = "UCerF against 1", ', ""), "words: say what is compared"),
    "a part without anything": (SOUND.replace('impossible = "It has no numbers."', ""), "or say in impossible why"),
    "numbers without how": (
        SOUND.replace('counted = "by hand"\n', ""),
        "and counted, or uncounted",
    ),
    "a set without an interval": (
        SOUND.replace('metric = "accuracy" }, than', 'metric = "accuracy", set_row = "mean", n_examples = 8 }, than'),
        "set_row: a row of chosen sets has no interval to test by",
    ),
    "no such row of sets": (
        SOUND.replace('accuracy = { metric = "accuracy" }', 'a = { metric = "ucerf", set_row = "x", n_examples = 8 }'),
        "parts: Table 2: measures.a: no row 'x'; have: mean of the sets, standard deviation over the sets",
    ),
    "no such run that is not kept": (
        SOUND + UNKEPT,
        "unkept: 'texts' is no run; have: all",
    ),
    "one run twice that is not kept": (SOUND + 2 * UNKEPT.replace("texts", "all"), "unkept: all of acme/other stands"),
    "one part twice": (SOUND.replace("Table 3", "Table 2"), "parts: Table 2 stands twice; keep one"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_faulty_file_gets_one_clear_line(file: Path, text: str, words: str) -> None:
    assert words in message_of(file, text, reproductions)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Two models: one that follows the stereotype, and one that is right without it."""
    folder = tmp_path_factory.mktemp("results")
    synthetic.write_model(folder, "acme/even", synthetic.leaning(2.0, 0.0))
    synthetic.write_model(folder, "acme/leaning", synthetic.leaning(1.0, 3.0))
    return MadeBoard(folder).board


@pytest.fixture
def compared(file: Path, board: Board) -> ReproducedPaper:
    file.write_text(SOUND)
    return reproduced("made", reproductions()["made"], board)


def test_claims_are_tested_by_the_intervals_of_each_model(compared: ReproducedPaper) -> None:
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


@pytest.mark.parametrize(
    ("signs", "outcome"),
    [
        ((1, 1, 1), "holds"),
        ((1, 1, 0), "holds in most"),
        ((1, 1, 0, 0, 0), "holds in some"),
        # One model of several may be chance.
        ((1, 0, 0, 0, 0), "undecided"),
        ((1, -1, -1), "does not hold"),
    ],
)
def test_an_outcome_needs_more_models_than_chance_gives(
    compared: ReproducedPaper, signs: tuple[int, ...], outcome: str
) -> None:
    sightings = tuple(Sighting(f"acme/{number}", (), sign) for number, sign in enumerate(signs))
    assert replace(compared.claims[0], sightings=sightings).outcome == outcome


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
    claim = reproduced("made", reproductions()["made"], made.board).claims[1]
    assert [(one.model, one.sign) for one in claim.sightings] == [("acme/one", 1)]


def test_a_value_without_an_interval_decides_nothing_and_of_other_data_has_no_deviation(
    compared: ReproducedPaper,
) -> None:
    """Of a single cluster nobody knows how sure it is; a p-value is what it is."""
    cell = next(iter(compared.parts[0].rows[0].cells.values()))
    assert cell.ours is not None
    single = replace(cell.ours.metric, value=0.9, interval=None, interval_reason="there is 1 cluster")
    assert side_of(single, 0.5) == 0
    assert side_of(replace(single, name="pe_p_value"), 0.5) == 1
    assert cell._replace(published=0.1).deviation == pytest.approx(cell.ours.value - 0.1)
    assert cell._replace(published=0.1, is_of_other_data=True).deviation is None


def test_a_part_is_run_here_or_needs_models_or_is_impossible(compared: ReproducedPaper) -> None:
    here, elsewhere, drawing = compared.parts
    assert (here.status, here.models) == ("run here on small models", ("acme/even", "acme/leaning"))
    assert [(row.label, row.is_of_paper) for row in here.rows] == [("even", False), ("leaning", False)]
    assert (elsewhere.status, elsewhere.models) == ("needs these models", ())
    assert drawing.status == "not reproducible"


def test_hours_follow_from_parameters_and_tokens(compared: ReproducedPaper) -> None:
    # 2 operations for each of 7 billion parameters and 81.36 million tokens, at 40 % of 790 TFLOP/s, take an hour.
    large, experts, served = costs_of(compared.paper, 81_360_000, 0)
    assert [large.n_gpus, experts.n_gpus, served.n_gpus] == [4, 4, None]
    assert large.hours == pytest.approx(10.0, rel=2e-3)
    assert experts.hours == pytest.approx(1.0, rel=2e-3)
    assert served.hours is None
    assert costs_of(compared.paper, None, 0)[0].hours is None


def plain(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))


def test_the_page_says_what_was_found_and_what_is_seen(file: Path, board: Board) -> None:
    file.write_text(SOUND)
    pages = generate(make_view(board, (), ()), {})
    page = plain(pages["papers/made.md"])
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


PRINTED = """
benchmark = "synthbias"
title = "Ranks"
paper = "A paper"
address = "https://papers.example/1"
place = "Table 4"
page = 3
measured = ["Ranks among ten models."]
digits = 0

[[columns]]
key = "rank"
label = "Rank"
text = "1 is best"

[[rows]]
label = "Large"
values = { rank = 8 }
"""


def test_a_printed_table_is_shown_alone_or_with_the_name_of_what_is_compared(file: Path, board: Board) -> None:
    (file.parent.parent / "reported" / "ranks.toml").write_text(PRINTED)
    alone = '[[parts]]\nnumber = "Table 4"\nshows = "Ranks."\nreported = "ranks"\nruns = ["all"]\n'
    compared = alone.replace("Table 4", "Table 5") + 'measures = { rank = { metric = "ucerf" } }\n'
    file.write_text(f"{SOUND}\n{alone}\n{compared}")
    page = generate(make_view(board, (), ()), {})["papers/made.md"]
    of_part = [*map(plain, page.split("### "))]
    (ranks,) = [part for part in of_part if part.startswith("Table 4")]
    assert "As published Model Rank Large 8" in ranks
    assert "no result here" not in ranks
    (beside,) = [part for part in of_part if part.startswith("Table 5")]
    assert f"Rank ours: {load_pages('synthbias').label('ucerf')} Large 8 no result here" in beside


MORE_RUNS = """
[[runs]]
name = "twice"
words = "Two configs"
dataset = "synthbias"
build = "synthbias"
configs = ["type2", "type1"]
prompts = ["intrinsic-v1"]
n_requests = 2000
n_prompt_tokens = 360_000
n_completion_tokens = 0
counted = "by hand"

[[runs]]
name = "texts"
words = "Texts"
dataset = "texts"
build = "gifi"
configs = ["math"]
prompts = ["sampled-v1"]
unasked = "nobody has the files"
n_requests = 10
n_prompt_tokens = 100
n_completion_tokens = 1000
counted = "by hand"
"""


def test_what_runs_took_and_what_is_left_of_them(file: Path, board: Board) -> None:
    file.write_text(SOUND + MORE_RUNS + UNKEPT)
    entries = [row.entry for table in board.tables for row in table.rows]
    usage = replace(entries[0].result.usage, n_requests=500, seconds=60.0)
    board = assemble([replace(entry, result=replace(entry.result, usage=usage)) for entry in entries])
    (view,) = make_view(board, (), ()).papers
    even, _, other = view.spent
    assert even.cells["all"].n_parts == 0  # Of another dataset.
    half = even.cells["twice"]
    assert (half.n_parts, half.n_requests, half.seconds) == (1, usage.n_requests, 60)
    assert half.left == pytest.approx((2000 - 500) * 60 / 500)
    assert even.cells["texts"] == (0, 0, 0.0, (), None)  # How fast it writes is unknown.
    assert (other.devices, other.seconds) == (("abacus",), 180)
    page = plain(generate(make_view(board, (), ()), {})["papers/made.md"])
    for words in (
        f"{usage.n_requests:,} requests 1 of 2 configs and prompts; the rest takes about 3 min",
        "Texts not run nobody has the files not run nobody has the files 3 min 10 requests results not kept: they",
        "large the rest is too long",
    ):
        assert words in page, words
