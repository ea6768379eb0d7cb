"""The figures that benchmarks describe, drawn for all models of a board at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import TypeVar
from xml.etree import ElementTree

import pytest

from biasboard.ground.charts import drawing
from leaderboard.benchmark_figures import Clouds, HeatMap, Matrix, Strips
from leaderboard.benchmark_pages import load_pages
from leaderboard.charts.grids import short_number
from leaderboard.pages.figures import figures_of, figures_of_result
from leaderboard.pages.pictures import PageChart
from leaderboard.ranking.boards import Board, assemble
from leaderboard.verify.entries import Entry
from schemas.lexicon import pronoun_families
from tests.evaluators.made_families import made_set, record_of
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.synthetic import (
    N_OCCUPATIONS,
    leaning,
    make_records,
    make_result,
    signature_of,
    stereotyped,
    uniform,
    write_model,
    write_result,
)
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


def test_a_heat_map_has_the_value_of_each_model_and_family_and_pales_what_chance_explains(board: Board) -> None:
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
        result = make_result(records, name, signature=signature_of(records, task="family_coreference"))
        write_result(tmp_path / name, result, records)
    board = MadeBoard(tmp_path).board
    families, pairs, occupations = pictures_of(board)
    assert [picture.path.rpartition("intrinsic-v1-")[2] for picture in (families, pairs, occupations)] == [
        "families.svg",
        "two-families.svg",
        "occupations-families.svg",
    ]
    rows = rows_in(pairs)
    assert [len(rows[family]) for family in FAMILIES[:-1]] == [*range(10, 0, -1)]
    for one, other, column in (("he", "she", 0), ("he", "xe", 7), ("they", "thon", 0)):
        mean = fmean(value(entry, "ucerf_of_two_families", families=f"{one}/{other}") for entry in entries(board))
        assert rows[one][column] == short_number(mean)
    assert "means over 2 models: the smallest value is that of he and they" in pairs.alt
    # The values are 1 and .795, and the eight colours begin at .7: .795 has the third one.
    steps = [*drawing.STEPS]
    assert {*re.findall(r'fill="(#[0-9a-f]{6})"', pairs.chart.svg)} & {*steps} == {steps[2], steps[-1]}


def test_strips_have_a_dot_for_each_value_and_no_panel_without_one(board: Board) -> None:
    picture = picture_of(board, "stages")
    heading, key, *rows = lines(picture.chart.svg)
    assert (heading, key) == (["Recognition"], ["●\N{NO-BREAK SPACE}GDR"])
    assert [row for row, *_ in rows[:2]] == [entry.result.model.id.removeprefix("lab/") for entry in entries(board)]
    values = [value(entry, "gdr") for entry in entries(board)]
    assert f"GDR from {min(values):.2f} to {max(values):.2f}" in picture.alt
    dots = re.findall(r'<circle cx="([\d.]+)"', picture.chart.svg)
    assert [float(x) / 104 for x in dots] == pytest.approx(values, abs=0.001)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Three models that recognise pronouns, and one that does not."""
    root = tmp_path_factory.mktemp("four")
    for name, skill in (("high", 0.97), ("middle", 0.9), ("low", 0.8)):
        write_gifi_model(root, f"lab/{name}", skill, n_templates=8)
    write_gifi_model(root, "lab/below", 0.0, n_templates=8, instead={"recognition": lambda item: ["and he left."]})
    return MadeBoard(root).board


@pytest.mark.slow
def test_a_bump_chart_orders_the_models_that_pass_by_each_value(four: Board) -> None:
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
    others = {
        row.model.id.removeprefix("lab/"): fmean(
            part.value or 0.0 for part in row.parts if part.name not in ("sn", "nts")
        )
        for row in passing
    }
    by_others = sorted(others, key=lambda name: -others[name])
    assert [of_row[-2:] for of_row in drawn] == [[f"{others[name]:.3f}", name] for name in by_others]
    assert picture.caption.endswith("Left out: below (below the line of the benchmark's table).")


@pytest.mark.slow
def test_strips_mark_the_models_that_fail_the_stage_that_the_others_need(four: Board, board: Board) -> None:
    strips, picture = described("gifi", Strips), picture_of(four, "stages")
    assert strips.needed is not None
    names = {text.replace("\N{NO-BREAK SPACE}", " ") for line in lines(picture.chart.svg) for text in line}
    assert {"high", "middle", "low", "below \N{DAGGER}"} <= names
    assert picture.caption == f"{strips.caption} \N{DAGGER} {strips.needed.note}"
    # Without such a model, the caption says nothing about a sign.
    assert picture_of(assemble(entries(board)[:1]), "stages").caption == strips.caption
    assert {scope.benchmark for scope in figures_of(board)} == {"gifi"}
    assert figures_of(assemble(())) == {}


def test_clouds_have_a_point_for_each_occupation_and_the_stereotype_rises(tmp_path: Path) -> None:
    write_model(tmp_path, "lab/able", leaning(0.9, 0.8))
    write_model(tmp_path, "lab/able", stereotyped(0.8), ambiguous=True)
    write_model(tmp_path, "baseline/uniform", uniform, endpoint="baseline")
    made = MadeBoard(tmp_path)
    of_type2, of_type1 = pictures_of(made.board)
    assert (of_type2.path[-9:], of_type1.path[-9:]) == ("type2.svg", "type1.svg")
    for picture in (of_type1, of_type2):
        assert picture.chart.svg.count("<circle") == 2 * N_OCCUPATIONS
        assert "able" in picture.alt
        assert "uniform" not in picture.chart.svg
    (entry,) = (one for one in made.of("lab/able") if one.result.signature.config == "type2")
    # What is read off pro_rate is the difference that it claims to be.
    figure = described("synthbias", Clouds)
    right: dict[tuple[str, str], list[float]] = {}
    for record in make_records(leaning(0.9, 0.8)):
        assert record.reading is not None
        of_both = right.setdefault((str(record.reference), record.groups["pronoun_gender"]), [])
        of_both.append(float(record.reading.probabilities[0] > 0.5))
    for occupation in {name for name, _ in right}:
        difference = fmean(right[occupation, "feminine"]) - fmean(right[occupation, "masculine"])
        assert figure.y(occupation, value(entry, "pro_rate", occupation=occupation)) == pytest.approx(difference)


def contrast(colour: str, other: str) -> float:
    low, high = sorted((luminance(colour), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_numbers_can_be_read_on_each_step_of_a_scale_in_both_schemes() -> None:
    steps = list(drawing.STEPS.items())
    for number, (light, dark) in enumerate(steps):
        ink = drawing.INK if number < drawing.N_INKED else drawing.PAPER
        assert contrast(light, ink) >= 4.5
        assert contrast(dark, drawing.DARK[ink]) >= 4.5
    # More is farther from the page, whose colours are white and #1e2129.
    assert [luminance(light) for light, _ in steps] == sorted((luminance(light) for light, _ in steps), reverse=True)
    assert [luminance(dark) for _, dark in steps] == sorted(luminance(dark) for _, dark in steps)
