"""Figures of models, as benchmarks describe them, and the charts that they are drawn as."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TypeVar
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from biasboard.ground import charts
from biasboard.ground.charts import Chart
from leaderboard.benchmark_figures import BumpChart, Clouds, HeatMap, Matrix, Strips
from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.charts import (
    BumpColumn,
    Panel,
    RowValue,
    ScatterPoint,
    SizedModel,
    Training,
    bump_chart,
    curves,
    dots,
    scatter,
    short_number,
    size_chart,
)
from leaderboard.pages.figures import PageChart, figures_of, figures_of_result
from leaderboard.ranking.boards import Board
from leaderboard.ranking.rank_ranges import rank_correlation
from leaderboard.verify.entries import Entry
from schemas.documents.result import Metric
from schemas.lexicon import pronoun_families
from tests.evaluators.made_families import made_set, record_of
from tests.leaderboard import synthetic
from tests.leaderboard.gifi_results import write_gifi_model
from tests.schemas import examples
from tests.worlds import MadeBoard, luminance

T = TypeVar("T")

FAMILIES = tuple(pronoun_families())


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    root = tmp_path_factory.mktemp("results")
    write_gifi_model(root, "lab/even", 0.9, tasks=("recognition",))
    write_gifi_model(root, "lab/uneven", 0.15, tasks=("recognition",))
    return MadeBoard(root).board


def entries(board: Board) -> list[Entry]:
    return [row.entry for table in board.tables for row in table.rows]


def picture_of(board: Board, name: str) -> PageChart:
    (picture,) = (one for one in pictures_of(board) if one.path.endswith(f"{name}.svg"))
    return picture


def described(benchmark: str, kind: type[T]) -> T:
    return next(figure for figure in load_pages(benchmark).figures if isinstance(figure, kind))


def value(entry: Entry, name: str, **group: str) -> float:
    metric = entry.metric(name, group)
    return 0.0 if metric is None else metric.value or 0.0


def pictures_of(board: Board) -> tuple[PageChart, ...]:
    (pictures,) = figures_of(board).values()
    return pictures


def lines(svg: str) -> list[list[str]]:
    """The horizontal texts of a drawing from the top, each line from the left."""
    groups: list[list[tuple[float, float, str]]] = []
    for text in sorted(texts(ElementTree.fromstring(svg)), key=lambda each: each[1]):
        if not groups or text[1] - groups[-1][-1][1] > 4:
            groups.append([])
        groups[-1].append(text)
    return [[text for *_, text in sorted(group)] for group in groups]


def texts(drawn: ElementTree.Element) -> Iterator[tuple[float, float, str]]:
    """The anchor of each horizontal text of a drawing."""
    for text in drawn.iter("{http://www.w3.org/2000/svg}text"):
        if "transform" not in text.attrib:
            yield float(text.attrib["x"]), float(text.attrib["y"]), text.text or ""


def rows_in(picture: PageChart) -> dict[str, list[str]]:
    return {name: numbers for name, *numbers in lines(picture.chart.svg)}


def test_a_matrix_is_the_mean_over_the_models_and_that_of_a_result_its_own(board: Board) -> None:
    matrix, together = described("gifi", Matrix), picture_of(board, "replaced")
    for entry in entries(board):
        (own,) = figures_of_result(entry, "charts/own")
        assert rows_in(own)["xe"][0] == short_number(value(entry, matrix.metric, family="xe", used="he"))
        assert entry.result.model.id.removeprefix("lab/") in own.alt
    for asked in FAMILIES[1:]:
        means = [
            fmean(value(entry, matrix.metric, family=asked, used=used) for entry in entries(board)) for used in FAMILIES
        ]
        assert rows_in(together)[asked] == [*filter(None, map(short_number, means))]
    assert "over 2 models" in together.alt


@pytest.mark.slow
def test_a_matrix_of_pairs_is_half_and_its_colours_begin_at_the_smallest_value(tmp_path: Path) -> None:
    of_model = {"lab/able": 0.95, "lab/unsure": 0.6}
    for name, certainty in of_model.items():
        records = [
            record_of(item, certainty if item.family in ("he", "she") else 0.5)
            for number in range(80)
            for item in made_set(number, frame=f"frame {number % 4}")
        ]
        result = synthetic.make_result(
            records, name, signature=synthetic.signature_of(records, task="family_coreference")
        )
        synthetic.write_result(tmp_path / name, result, records)
    board = MadeBoard(tmp_path).board
    _, pairs, _ = pictures_of(board)
    rows = rows_in(pairs)
    assert [len(rows[family]) for family in FAMILIES[:-1]] == [*range(10, 0, -1)]
    for one, other, column in (("he", "she", 0), ("he", "xe", 7), ("they", "thon", 0)):
        mean = fmean(value(entry, "ucerf_of_two_families", families=f"{one}/{other}") for entry in entries(board))
        assert rows[one][column] == short_number(mean)
    assert "means over 2 models: the smallest value is that of he and they" in pairs.alt
    # The values are 1 and .795, and the eight colours begin at .7: .795 has the third one.
    steps = [*charts.STEPS]
    assert {*re.findall(r'fill="(#[0-9a-f]{6})"', pairs.chart.svg)} & {*steps} == {steps[2], steps[-1]}


def test_a_heat_map_has_the_value_of_each_model_and_family_and_strips_a_dot_for_each_value(board: Board) -> None:
    heat_map, picture = described("gifi", HeatMap), picture_of(board, "families")
    expected, pale = [["all", *FAMILIES]], 0
    for entry in entries(board):
        metrics = [entry.metric(shown.metric, shown.group) for shown in heat_map.columns]
        known = [metric for metric in metrics if metric is not None and metric.value is not None]
        values = [short_number(metric.value or 0.0) for metric in known]
        expected.append([entry.result.model.id.removeprefix("lab/"), *(text for text in values if text)])
        pale += sum(one.interval is not None and one.interval.low <= 1 / len(FAMILIES) for one in known)
    assert lines(picture.chart.svg)[1:] == expected
    assert "for 2 models" in picture.alt
    assert picture.caption == heat_map.caption
    assert 0 < pale < 24
    (frames,) = re.findall(r'<g [^>]*stroke-dasharray="1.5 2.5"[^>]*>(.*?)</g>', picture.chart.svg)
    assert frames.count("<rect") == pale
    strips = picture_of(board, "stages")
    heading, key, *_ = lines(strips.chart.svg)
    assert (heading, key) == (["Recognition"], ["●\N{NO-BREAK SPACE}GDR"])
    of_models = [value(entry, "gdr") for entry in entries(board)]
    assert f"GDR from {min(of_models):.2f} to {max(of_models):.2f}" in strips.alt
    drawn = re.findall(r'<circle cx="([\d.]+)"', strips.chart.svg)
    assert [float(x) / 104 for x in drawn] == pytest.approx(of_models, abs=0.001)


@pytest.mark.slow
def test_a_bump_chart_orders_the_models_that_pass_and_strips_mark_those_that_fail(board: Board, tmp_path: Path) -> None:
    """Of three models that recognise pronouns, and one that does not."""
    for name, skill in (("high", 0.97), ("middle", 0.9), ("low", 0.8)):
        write_gifi_model(tmp_path, f"lab/{name}", skill, n_templates=8)
    write_gifi_model(tmp_path, "lab/below", 0.0, n_templates=8, instead={"recognition": lambda item: ["and he left."]})
    four = MadeBoard(tmp_path).board
    picture = picture_of(four, "order")
    (table,) = four.indices.tables
    passing = [row for row in table.rows if not row.is_below]
    passing.sort(key=lambda row: -(row.primary.value or 0.0))
    assert len(passing) == 3
    drawn = lines(picture.chart.svg)[-3:]
    for row, (name, index, *_) in zip(passing, drawn, strict=True):
        assert (name, index) == (row.model.id.removeprefix("lab/"), f"{row.primary.value:.3f}")
    lowest = sorted((min(part.value or 0.0 for part in row.parts) for row in passing), reverse=True)
    assert [of_row[-3] for of_row in drawn] == [f"{value:.3f}" for value in lowest]
    assert picture.caption.endswith("Left out: below (below the line of the benchmark's table).")
    strips, picture = described("gifi", Strips), picture_of(four, "stages")
    needed = synthetic.present(strips.needed)
    names = {text.replace("\N{NO-BREAK SPACE}", " ") for line in lines(picture.chart.svg) for text in line}
    assert {"high", "middle", "low", "below \N{DAGGER}"} <= names
    assert picture.caption == f"{strips.caption} \N{DAGGER} {needed.note}"
    # Without such a model, the caption says nothing about a sign.
    assert picture_of(board, "stages").caption == strips.caption


def test_clouds_have_a_point_for_each_occupation_and_the_stereotype_rises(tmp_path: Path) -> None:
    synthetic.write_model(tmp_path, "lab/able", synthetic.leaning(0.9, 0.8))
    synthetic.write_model(tmp_path, "lab/able", synthetic.stereotyped(0.8), ambiguous=True)
    synthetic.write_model(tmp_path, "baseline/uniform", synthetic.uniform, endpoint="baseline")
    made = MadeBoard(tmp_path)
    of_type2, of_type1 = pictures_of(made.board)
    assert (of_type2.path[-9:], of_type1.path[-9:]) == ("type2.svg", "type1.svg")
    for picture in (of_type1, of_type2):
        assert picture.chart.svg.count("<circle") == 2 * synthetic.N_OCCUPATIONS
        assert "able" in picture.alt
        assert "uniform" not in picture.chart.svg
    (entry,) = (one for one in made.of("lab/able") if one.result.signature.config == "type2")
    # What is read off pro_rate is the difference that it claims to be.
    figure = described("synthbias", Clouds)
    right: dict[tuple[str, str], list[float]] = {}
    for record in synthetic.make_records(synthetic.leaning(0.9, 0.8)):
        reading = synthetic.present(record.reading)
        of_both = right.setdefault((str(record.reference), record.groups["pronoun_gender"]), [])
        of_both.append(float(reading.probabilities[0] > 0.5))
    for occupation in {name for name, _ in right}:
        difference = fmean(right[occupation, "feminine"]) - fmean(right[occupation, "masculine"])
        assert figure.y(occupation, value(entry, "pro_rate", occupation=occupation)) == pytest.approx(difference)


def contrast(colour: str, other: str) -> float:
    low, high = sorted((luminance(colour), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_numbers_can_be_read_on_each_step_of_a_scale_in_both_schemes() -> None:
    steps = list(charts.STEPS.items())
    for number, (light, dark) in enumerate(steps):
        ink = charts.INK if number < charts.N_INKED else charts.PAPER
        assert contrast(light, ink) >= 4.5
        assert contrast(dark, charts.DARK[ink]) >= 4.5
    # More is farther from the page, whose colours are white and #1e2129.
    assert [luminance(light) for light, _ in steps] == sorted((luminance(light) for light, _ in steps), reverse=True)
    assert [luminance(dark) for _, dark in steps] == sorted(luminance(dark) for _, dark in steps)


FOUR = ("alpha", "beta", "gamma", "delta")


def tau_b(values: Sequence[float], others: Sequence[float]) -> float:
    """Kendall's tau-b, pair by pair."""
    agreeing = reversed_ = untied = other_untied = 0
    for i in range(len(values)):
        for j in range(i):
            product = (values[i] - values[j]) * (others[i] - others[j])
            agreeing += product > 0
            reversed_ += product < 0
            untied += values[i] != values[j]
            other_untied += others[i] != others[j]
    return float((agreeing - reversed_) / (untied * other_untied) ** 0.5)


def drawn_bumps(*columns: BumpColumn) -> Chart:
    chart = synthetic.present(bump_chart(FOUR, columns, subject="by two measures"))
    return chart


def test_rows_stand_by_distance_and_one_without_a_value_is_left_out_of_all_columns() -> None:
    other = BumpColumn("Other, with a long title", [1.3, 0.9, 0.8, 0.6])
    chart = drawn_bumps(BumpColumn("Index", [0.9, 0.8, 0.7, 0.6]), other)
    assert lines(chart.svg)[-4:] == [
        ["alpha", "0.900", "0.900", "beta"],
        ["beta", "0.800", "0.800", "gamma"],
        ["gamma", "0.700", "1.300", "alpha"],
        ["delta", "0.600", "0.600", "delta"],
    ]
    # alpha has fallen below two of three: four pairs agree, two do not.
    assert "Other, with a long title: τ 0.33, first is beta, last delta" in chart.alt
    assert "τ 0.33" in re.findall(r">([^<>]+)</t(?:ext|span)>", chart.svg)
    assert "over these 4 models" in chart.note
    assert "Left out" not in chart.note
    orders = [BumpColumn("a", [0.1, 0.2, 0.3, 0.4]), BumpColumn("b", [0.1, "no SA", 0.3, 0.4])]
    chart = drawn_bumps(*orders)
    assert chart.note.endswith("Left out: beta (no SA).")
    assert "over these 3 models" in chart.note
    assert "beta" not in chart.svg
    # Two rows agree or are reversed by chance.
    assert bump_chart(FOUR[:3], [order._replace(values=order.values[:3]) for order in orders], subject="") is None


def test_rank_correlations_are_those_of_plain_loops_ties_included() -> None:
    dice = random.Random(7)
    for n in range(3, 15):
        values = [dice.randrange(6) / 5 for _ in range(n)]
        others = [dice.randrange(6) / 5 for _ in range(n)]
        assert rank_correlation(values, others) == pytest.approx(tau_b(values, others))
    assert rank_correlation([0.1, 0.2, 0.3], [0.5] * 3) is None
    assert "tied: τ undefined" in drawn_bumps(BumpColumn("a", [0.1, 0.2, 0.3, 0.4]), BumpColumn("tied", [0.5] * 4)).alt


PARTS = ("gdr", "sn", "nts", "cf", "sa", "of", "pe")


def test_the_orders_of_published_models_are_those_of_plain_loops_and_of_the_docs() -> None:
    found: dict[str, dict[str, float]] = {}
    for path in Path("leaderboard/results/gifi-published-compat@1.0.0").glob("*/*/result.json"):
        for metric in json.loads(path.read_text("utf-8"))["metrics"]:
            name = metric["name"] + metric["group"].get("gamma", "")
            if metric["value"] is not None and metric["group"].keys() <= {"gamma"}:
                found.setdefault(path.parts[-3], {})[name] = metric["value"]
    # Of the models that have all parts and recognise pronouns.
    models = [values for name, values in found.items() if not name.startswith("baseline__") and name != "gpt2"]
    whole = [values for values in models if values.keys() >= {*PARTS}]
    published = [values | {"index": fmean(values[name] for name in PARTS)} for values in whole]
    assert len(published) == 12
    columns: dict[str, list[float]] = {}
    for values in published:
        gdr, sn, nts, cf, sa, of, pe = parts = [values[name] for name in PARTS]
        for title, value in (
            ("Index", sum(parts) / 7),
            ("CF at gamma 0.2", (sum(parts) - cf + values["cf0.20"]) / 7),
            ("CF at gamma 0.4", (sum(parts) - cf + values["cf0.40"]) / 7),
            ("Four stages alike", (gdr + (sn + nts + cf) / 3 + (sa + of) / 2 + pe) / 4),
            ("Geometric mean", math.prod(parts) ** (1 / 7)),
            ("Lowest part", sorted(parts)[0]),
        ):
            columns.setdefault(title, []).append(value)
    (figure,) = (figure for figure in load_pages("gifi").figures if isinstance(figure, BumpChart))
    orderings = {one.label.replace("\N{NO-BREAK SPACE}", " "): one for one in figure.orderings}
    docs = Path("site/docs/pronouns.md").read_text("utf-8")
    for title, column in columns.items():
        names = [shown.metric + shown.group.get("gamma", "") for shown in orderings[title].parts]
        own = [orderings[title].together([values[name] for name in names]) for values in published]
        assert own == pytest.approx(column), title
        tau = f"{tau_b(columns['Index'], column):.2f}"[1:]
        assert title == "Index" or f"| {title} | {tau} |" in docs
    # A geometric mean of a part at 0 is unknown with the reason.
    reason = "no geometric mean, since a part is not above 0"
    assert orderings["Geometric mean"].together([*[0.5] * 6, 0.0]) == reason


def a_metric(value: float, width: float = 0.0) -> Metric:
    made, low, high = examples.metric(), max(0.0, value - width), min(1.0, value + width)
    interval = replace(synthetic.present(made.interval), low=low, high=high) if width else None
    reason = None if width else "one cluster"
    return replace(made, value=value, interval=interval, interval_reason=reason, ideal=None, minimum=0.0, maximum=1.0)


NAMES = [
    f"{maker} {size}B" for maker in ("Alpha 3", "Beta-2.5", "Gamma", "Delta 1.5 Instruct", "Eps") for size in range(10)
]
_BOXES = """() => [...document.querySelectorAll("text")].map((text) => {
  const box = text.getBoundingClientRect();
  return [text.textContent, box.left, box.top, box.right, box.bottom];
})"""


def values(n: int, seed: str, spread: float = 0.12) -> list[Metric]:
    dice = random.Random(seed)
    return [a_metric(min(1.0, max(0.0, dice.gauss(0.7, spread))), 0.03) for _ in range(n)]


def a_scatter() -> Chart | None:
    points = [ScatterPoint(*each, False) for each in zip(NAMES, values(50, "x"), values(50, "y"), strict=True)]
    points += [ScatterPoint(name, a_metric(0.5), a_metric(1.0), True) for name in ("uniform", "first-mentioned")]
    return scatter(points, x_title="Accuracy", y_title="UCerF")


def some_curves() -> Chart:
    rows = [values(5, name, 0.2) for name in NAMES]
    places = ("0", "2", "4", "8", "16")
    panels = [Panel("Macro-F1", places, rows), Panel("RSD", places, rows[::-1])]
    return curves([("", panels)], NAMES, x_title="Examples", alt="Curves.")


def columns(*titles: str) -> list[BumpColumn]:
    return [BumpColumn(title, [metric.value or 0.0 for metric in values(50, title)]) for title in titles]


DRAWN: dict[str, tuple[Callable[[], Chart | None], int]] = {
    "scatter": (a_scatter, 25),
    "dots": (lambda: dots(list(map(RowValue, NAMES, values(50, "x"))), title="Accuracy"), 50),
    "curves": (some_curves, 16),
    "bumps": (lambda: bump_chart(NAMES, columns("Index", "Geometric mean", "Four stages alike"), subject=""), 100),
}


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "n_named"), DRAWN.values(), ids=DRAWN)
def test_no_two_labels_of_fifty_models_overlap(
    draw: Callable[[], Chart | None], n_named: int, browser: Browser, tmp_path: Path
) -> None:
    chart = synthetic.present(draw())
    path = tmp_path / "chart.svg"
    path.write_text(chart.svg)
    page = browser.new_page()
    page.goto(path.as_uri())
    boxes = page.evaluate(_BOXES)
    width, height = page.evaluate(
        "[document.documentElement.width, document.documentElement.height].map((_) => _.baseVal.value)"
    )
    page.close()
    assert sum(name in NAMES for name, *_ in boxes) >= n_named
    for name, left, top, right, bottom in boxes:
        assert left >= 0, name
        assert top >= 0, name
        assert right <= width, name
        assert bottom <= height, name
    # Boxes are as high as a line, which is higher than its letters.
    slack = 2
    for (name, *box), (other, *other_box) in itertools.combinations(boxes, 2):
        across = min(box[2], other_box[2]) - max(box[0], other_box[0])
        down = min(box[3], other_box[3]) - max(box[1], other_box[1])
        assert across <= 0 or down <= slack, (name, other)


def sized(label: str, parameters: int, value: float, kind: Training = "tuned") -> SizedModel:
    return SizedModel(label, parameters, kind, a_metric(value, 0.02))


MODELS = (
    sized("Tiny", 656_000, 0.61, "base"),
    sized("Small", 135_000_000, 0.55),
    sized("Large", 9_240_000_000, 0.7, "kind unknown"),
)


def middle(tag: str) -> tuple[float, float]:
    """The middle of a circle, a square or a triangle."""
    if centre := re.search(r'cx="([\d.]+)" cy="([\d.]+)"', tag):
        return float(centre[1]), float(centre[2])
    points = [pair.split(",") for pair in tag.split('d="M')[1].split("Z")[0].split("L")]
    across, down = ([float(point[axis]) for point in points] for axis in (0, 1))
    return (min(across) + max(across)) / 2, (min(down) + max(down)) / 2


def test_marks_stand_at_the_logarithm_of_the_size_and_at_the_value() -> None:
    chart = synthetic.present(size_chart(MODELS, title="Evenness"))
    texts = set(re.findall(r">([^<>]+)</text>", chart.svg))
    assert {"Tiny", "Small", "Large", "1 M", "100 M", "1 B", "Evenness", "parameters"} <= texts
    # The last three shapes; those before them are of the legend.
    found = [middle(tag) for tag in re.findall(r"<(?:circle|path [^>]*Z)[^>]*>", chart.svg)[-3:]]
    logs = [math.log10(model.parameters) for model in MODELS]
    (x0, y0), (x1, y1), (x2, y2) = found
    # Coordinates are rounded to hundredths of a pixel.
    assert (x1 - x0) / (x2 - x0) == pytest.approx((logs[1] - logs[0]) / (logs[2] - logs[0]), abs=1e-3)
    assert (y1 - y0) / (y2 - y0) == pytest.approx((0.55 - 0.61) / (0.7 - 0.61), abs=1e-3)
    assert y1 > y0 > y2, "a better value stands higher"
    assert "3 models" in chart.alt
