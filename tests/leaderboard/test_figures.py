"""The figures that benchmarks describe, drawn for all models of a board at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from xml.etree import ElementTree

import pytest

from biasboard.ground import strict_json
from biasboard.ground.charts import drawing
from evaluators.runs.measure.measuring import compute_metrics
from leaderboard.benchmark_figures import Clouds, HeatMap, Matrix, Strips
from leaderboard.benchmark_pages import load_pages
from leaderboard.charts.grids import short_number
from leaderboard.pages.figures import figures_of, figures_of_result
from leaderboard.pages.pictures import PageChart
from leaderboard.ranking.boards import Board, assemble
from leaderboard.verify.entries import Entry, Root
from schemas.files.record_columns import RecordColumns, count
from schemas.lexicon import pronoun_families
from tests.evaluators.made_families import made_set, record_of
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import (
    N_OCCUPATIONS,
    leaning,
    make_records,
    make_result,
    stereotyped,
    uniform,
    write_model,
    write_result,
)

FAMILIES = tuple(pronoun_families())


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    root = tmp_path_factory.mktemp("results")
    write_gifi_model(root, "lab/even", 0.9, tasks=("recognition",))
    write_gifi_model(root, "lab/uneven", 0.15, tasks=("recognition",))
    return assemble(load_known(Root(root, "local")).entries)


def entries(board: Board) -> list[Entry]:
    return [row.entry for table in board.tables for row in table.rows]


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


def test_a_heat_map_has_the_value_of_each_model_and_family_in_the_order_of_the_table(board: Board) -> None:
    heat_map = next(figure for figure in load_pages("gifi").figures if isinstance(figure, HeatMap))
    (picture,) = (one for one in pictures_of(board) if one.path.endswith("families.svg"))
    expected = [["all", *FAMILIES]]
    for entry in entries(board):
        metrics = [entry.metric(shown.metric, shown.group) for shown in heat_map.columns]
        values = [short_number(metric.value or 0.0) for metric in metrics if metric is not None]
        expected.append([entry.result.model.id.removeprefix("lab/"), *(value for value in values if value)])
    assert lines(picture.chart.svg)[1:] == expected
    assert "for 2 models" in picture.alt
    assert picture.caption == heat_map.caption


def test_cells_that_chance_explains_are_pale(board: Board) -> None:
    (picture,) = (one for one in pictures_of(board) if one.path.endswith("families.svg"))
    chance = 1 / len(FAMILIES)
    pale = 0
    for entry in entries(board):
        for family in (None, *FAMILIES):
            metric = entry.metric("recognition_accuracy", {} if family is None else {"family": family})
            assert metric is not None
            assert metric.interval is not None
            pale += metric.interval.low <= chance
    assert 0 < pale < 24
    (frames,) = re.findall(r'<g [^>]*stroke-dasharray="1.5 2.5"[^>]*>(.*?)</g>', picture.chart.svg)
    assert frames.count("<rect") == pale


def test_a_matrix_is_the_mean_over_the_models_and_that_of_a_result_its_own(board: Board) -> None:
    matrix = next(figure for figure in load_pages("gifi").figures if isinstance(figure, Matrix))
    (together,) = (one for one in pictures_of(board) if one.path.endswith("replaced.svg"))
    of_models = []
    for entry in entries(board):
        (own,) = figures_of_result(entry, "charts/own")
        of_models.append(
            {
                (asked, used): (metric.value or 0.0)
                for asked in FAMILIES
                for used in FAMILIES
                if (metric := entry.metric(matrix.metric, {"family": asked, "used": used})) is not None
            }
        )
        rows = {name: numbers for name, *numbers in lines(own.chart.svg)}
        assert rows["xe"][0] == short_number(of_models[-1]["xe", "he"])
        assert entry.result.model.id.removeprefix("lab/") in own.alt
    first, second = of_models
    rows = {name: numbers for name, *numbers in lines(together.chart.svg)}
    for asked in FAMILIES[1:]:
        means = [(first.get((asked, used), 0.0) + second.get((asked, used), 0.0)) / 2 for used in FAMILIES]
        assert rows[asked] == [*filter(None, map(short_number, means))]
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
        made = make_result(make_records(uniform), name)
        signature = replace(
            made.signature,
            task="family_coreference",
            task_version="1.0",
            items_sha256=strict_json.sha256([record.item_id for record in records]),
            n_items=len(records),
        )
        result = replace(
            made,
            signature=signature,
            signature_sha256=signature.sha256(),
            metrics=compute_metrics(records, "family_coreference"),
            counts=count(RecordColumns.of(records)),
            records=replace(made.records, n_rows=len(records)),
        )
        write_result(tmp_path / name, result, records)
    board = assemble(load_known(Root(tmp_path, "local")).entries)
    families, pairs, occupations = pictures_of(board)
    assert [picture.path.rpartition("intrinsic-v1-")[2] for picture in (families, pairs, occupations)] == [
        "families.svg",
        "two-families.svg",
        "occupations-families.svg",
    ]
    rows = {name: numbers for name, *numbers in lines(pairs.chart.svg)}
    assert [len(rows[family]) for family in FAMILIES[:-1]] == [*range(10, 0, -1)]
    for one, other, column in (("he", "she", 0), ("he", "xe", 7), ("they", "thon", 0)):
        values = [entry.metric("ucerf_of_two_families", {"families": f"{one}/{other}"}) for entry in entries(board)]
        mean = sum(metric.value or 0.0 for metric in values if metric is not None) / 2
        assert rows[one][column] == short_number(mean)
    assert "means over 2 models: the smallest value is that of he and they" in pairs.alt
    # The values are 1 and .795, and the eight colours begin at .7: .795 has the third one.
    steps = [*drawing.STEPS]
    assert {*re.findall(r'fill="(#[0-9a-f]{6})"', pairs.chart.svg)} & {*steps} == {steps[2], steps[-1]}


def test_strips_have_a_dot_for_each_value_and_no_panel_without_one(board: Board) -> None:
    (picture,) = (one for one in pictures_of(board) if one.path.endswith("stages.svg"))
    heading, key, *rows = lines(picture.chart.svg)
    assert (heading, key) == (["Recognition"], ["●\N{NO-BREAK SPACE}GDR"])
    assert [row for row, *_ in rows[:2]] == [entry.result.model.id.removeprefix("lab/") for entry in entries(board)]
    values = [metric.value or 0.0 for entry in entries(board) if (metric := entry.metric("gdr")) is not None]
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
    return assemble(load_known(Root(root, "local")).entries)


@pytest.mark.slow
def test_a_bump_chart_orders_the_models_that_pass_by_each_value(four: Board) -> None:
    (picture,) = (one for one in pictures_of(four) if one.path.endswith("order.svg"))
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
    (strips,) = (figure for figure in load_pages("gifi").figures if isinstance(figure, Strips))
    assert strips.needed is not None
    (picture,) = (one for one in pictures_of(four) if one.path.endswith("stages.svg"))
    names = {text.replace("\N{NO-BREAK SPACE}", " ") for line in lines(picture.chart.svg) for text in line}
    assert {"high", "middle", "low", "below \N{DAGGER}"} <= names
    assert picture.caption == f"{strips.caption} \N{DAGGER} {strips.needed.note}"
    # Without such a model, the caption says nothing about a sign.
    (passing,) = (one for one in pictures_of(assemble(entries(board)[:1])) if one.path.endswith("stages.svg"))
    assert passing.caption == strips.caption


def test_a_benchmark_without_results_or_figures_has_none(board: Board) -> None:
    assert {scope.benchmark for scope in figures_of(board)} == {"gifi"}
    assert figures_of(assemble(())) == {}


def test_clouds_have_a_point_for_each_occupation_and_the_stereotype_rises(tmp_path: Path) -> None:
    write_model(tmp_path, "lab/able", leaning(0.9, 0.8))
    write_model(tmp_path, "lab/able", stereotyped(0.8), ambiguous=True)
    write_model(tmp_path, "baseline/uniform", uniform, endpoint="baseline")
    board = assemble(load_known(Root(tmp_path, "local")).entries)
    of_type2, of_type1 = pictures_of(board)
    assert (of_type2.path[-9:], of_type1.path[-9:]) == ("type2.svg", "type1.svg")
    for picture in (of_type1, of_type2):
        assert picture.chart.svg.count("<circle") == 2 * N_OCCUPATIONS
        assert "able" in picture.alt
        assert "uniform" not in picture.chart.svg
    (entry,) = (
        entry
        for entry in entries(board)
        if entry.metric("accuracy", {"stereotype": "pro"}) is not None and not entry.is_baseline
    )
    # What is read off pro_rate is the difference that it claims to be.
    figure = next(figure for figure in load_pages("synthbias").figures if isinstance(figure, Clouds))
    records = make_records(leaning(0.9, 0.8))
    for occupation in {record.reference for record in records}:
        right = {
            gender: [
                float(record.reading.probabilities[0] > 0.5)
                for record in records
                if record.reading is not None
                and record.reference == occupation
                and record.groups["pronoun_gender"] == gender
            ]
            for gender in ("feminine", "masculine")
        }
        difference = sum(right["feminine"]) / len(right["feminine"]) - sum(right["masculine"]) / len(right["masculine"])
        metric = entry.metric("pro_rate", {"occupation": str(occupation)})
        assert metric is not None
        assert figure.y(str(occupation), metric.value or 0.0) == pytest.approx(difference)


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


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
