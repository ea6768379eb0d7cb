"""The comparison of models: its files hold draws of the deviations, and its page pairs them."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page
from scipy import stats

from evaluators.metric import TableSource
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.statistics.jackknife import MIN_CLUSTERS, Deviations, draws
from evaluators.task import load_task
from schemas.files.record_columns import RecordColumns
from tests.leaderboard import synthetic
from tests.leaderboard.browsing import Opened, choose, serious_violations, settle
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.record_files import read_records
from tests.worlds import MadeBoard, render, silent

HOSTILE = "evil/<img src=x onerror=alert(1)>"
TWO = "compare.html#models=acme/small,acme/large"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compare") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        # So many that each of them is in enough clusters for an interval.
        patch.setattr(synthetic, "N_OCCUPATIONS", MIN_CLUSTERS)
        write_model(root, "acme/small", leaning(1.0, 0.5))
        write_model(root, "acme/large", leaning(2.0, 0.2))
        write_model(root, "baseline/uniform", uniform, endpoint="baseline")
        write_model(root, "acme/silent", silent)
        write_model(root, HOSTILE, leaning(1.0, 1.0))
    return root


@pytest.fixture(scope="module")
def made(runs: Path) -> MadeBoard:
    return MadeBoard(runs, any_name=True)


@pytest.fixture(scope="module")
def files(made: MadeBoard) -> dict[str, Any]:
    return made.json("files/compare/")


@pytest.fixture(scope="module")
def built(made: MadeBoard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render(made.view, tmp_path_factory.mktemp("site"))


def deviations(runs: Path, model: str, metric: str, group: dict[str, str]) -> Deviations:
    """The deviations of the metric, computed from the records by the metric itself."""
    (path,) = [one for one in runs.rglob("records.parquet") if one.parts[-3] == model]
    table = load_task("coreference").table(RecordColumns.of(list(read_records(path))))
    (definition,) = [one for one in metric_definitions("coreference") if one.name == metric]
    computed = definition.deviations(TableSource(table), group)
    assert isinstance(computed, Deviations)
    return computed


def found(files: dict[str, Any], model: str) -> tuple[str, dict[str, Any]]:
    """The key of a model, and its file in the only table."""
    listed = files["models.json"]
    (key,) = [one["key"] for one in listed["models"] if one["id"] == model]
    (table,) = listed["tables"]
    (result,) = [one["id"] for one in table["results"] if one["model"] == key]
    return key, files[f"{table['id']}/{result}.json"]


@pytest.mark.slow
def test_files_hold_draws_of_slices_and_verdicts_of_pairs(runs: Path, files: dict[str, Any], made: MadeBoard) -> None:
    listed = files["models.json"]
    assert sorted(one["id"] for one in listed["models"]) == ["acme/large", "acme/silent", "acme/small", HOSTILE]
    labels = [one["label"] for one in listed["tables"][0]["metrics"]]
    metrics = ["worst_group_accuracy", "accuracy_gap", "ucerf", "accuracy"]
    assert labels == ["Worst-group accuracy", "Stereotype gap", "Same for he and she (UCerF)", "Accuracy"]
    _, small = found(files, "acme/small")
    levels = np.frombuffer(base64.b64decode(small["draws"]), dtype=np.int8).reshape(-1, 200)
    assert len(small["slices"]) == len(levels)
    seen = set()
    for (number, key, value, _, scale), level in zip(small["slices"], levels, strict=True):
        of_slice = deviations(runs, "acme__small", metrics[number], {key: value} if key else {})
        t = stats.t.ppf(0.975, of_slice.n_effective - 1) / 1.959964
        assert level / 127 * scale == pytest.approx(t * draws([of_slice], 200)[0], abs=0.57 * scale / 127)
        seen.add((metrics[number], key))
    assert {("ucerf", ""), ("ucerf", "occupation"), ("accuracy", ""), ("accuracy", "pronoun_gender")} <= seen
    # The interval of each lead, computed from the records by the metric itself.
    keys = {model: found(files, f"acme/{model}")[0] for model in ("small", "large")}
    first, second = sorted(keys, key=keys.__getitem__)
    listed = files[f"pairs/{keys[first]}.json"][keys[second]]
    measures = files["models.json"]["measures"]
    named = {"Worst-group accuracy": "worst_group_accuracy", "Stereotype gap": "accuracy_gap"}
    named |= {"Same for he and she (UCerF)": "ucerf"}
    assert [measures[number]["label"] for number, *_ in listed] == list(named)
    (section,) = made.view.sections
    outcomes = {}
    for number, lead, low, high, at_worst, at_best, p_value, outcome in listed:
        measure = measures[number]
        toward = []
        for model in (first, second):
            value = measure["values"][keys[model]]
            of_model = deviations(runs, f"acme__{model}", named[measure["label"]], {})
            toward.append((abs(value - measure["ideal"]), of_model * (1.0 if value > measure["ideal"] else -1.0)))
        assert lead == pytest.approx(toward[1][0] - toward[0][0], abs=2e-6)
        assert (at_worst, at_best) == (lead, lead)
        apart = toward[1][1] - toward[0][1]
        half = stats.t.isf(0.025, min(one.n_effective for _, one in toward) - 1) * apart.variance**0.5
        # Every value lies between 0 and 1, or -1 and 1, and so does a difference of distances.
        assert (low, high) == pytest.approx((max(lead - half, -1), min(lead + half, 1)), abs=2e-6)
        (pair,) = (
            one
            for one in section.table.pairs[named[measure["label"]]]
            if {one.first[:12], one.second[:12]} == {keys[first], keys[second]}
        )
        assert p_value == pytest.approx(pair.p_adjusted, abs=1e-6)
        assert outcome == pair.outcome
        outcomes[measure["label"]] = {"first": first, "second": second}.get(outcome, outcome)
    # Both are always right, and differ in how sure they are of he and she only.
    assert list(outcomes.values()) == ["tied", "tied", "large"]


def compared(opened: Opened, path: str = TWO, **options: Any) -> Page:
    page = opened(path, **options)
    page.wait_for_selector("[data-bb-verdict] p")
    settle(page)
    return page


def cells(page: Page) -> dict[str, list[str]]:
    rows = page.locator("[data-bb-groups] tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def verdict(page: Page) -> str:
    return page.locator("[data-bb-verdict]").inner_text()


@pytest.mark.browser
@pytest.mark.slow
class TestPage:
    def test_a_verdict_in_words_names_the_measures(self, opened: Opened) -> None:
        page = compared(opened)
        named = "Same for he and she (UCerF)"
        same = "not to be told apart in 2: Worst-group accuracy and Stereotype gap"
        assert verdict(page) == (
            "Compared with large over 3 measures of Gender and occupation, small is separably better in 0; "
            f"separably worse in 1: {named}; {same}."
        )
        level = page.locator("[data-bb-level]").inner_text()
        assert "its interval of 95 % is of that pair alone. A verdict is more careful" in level
        choose(page, "Model", "large")
        assert f"large is separably better in 1: {named}; separably worse in 0; {same}." in page.inner_text("body")
        better = page.locator("[data-bb-measures] tbody td", has_text="large is better")
        assert better.count() == 1
        p_value = better.locator("small").first.inner_text()
        assert re.fullmatch(r"p (= \.0[0-4]\d|< \.001) for all pairs at once", p_value)

    def test_it_opens_with_two_that_have_a_common_measure_and_tells_those_without(self, opened: Opened) -> None:
        page = compared(opened, "compare.html#models=acme/small")
        assert verdict(page).startswith("Compared with")
        options = page.get_by_role("combobox", name="With", exact=True).locator("option").all_inner_texts()
        assert [text.endswith(", no measure in common") for text in options] == [False, False, True]
        choose(page, "With", "silent, no measure in common")
        words = verdict(page)
        assert words.startswith("small and silent have no headline measure under the same conditions")
        assert "silent has results in Gender and occupation." in words
        assert page.locator("[data-bb-measures]").is_hidden()
        assert cells(page)["all items"][1:] == ["unknown", "unknown"]

    def test_differences_by_group_are_paired(self, runs: Path, opened: Opened, address: str) -> None:
        page = compared(opened)
        choose(page, "Metric", "Accuracy")
        choose(page, "By", "occupation")
        shown = cells(page)
        assert len(shown) > 5
        for name, (one, other, difference) in shown.items():
            group = {} if name == "all items" else {"occupation": name.removeprefix("occupation: ")}
            small, large = (deviations(runs, f"acme__{model}", "accuracy", group) for model in ("small", "large"))
            value, low, high, *_ = difference.replace("[", " ").replace("]", " ").replace(",", " ").split()
            assert number(value) == pytest.approx(number(one) - number(other), abs=1.1e-3)
            # 200 draws know the standard error to 5 %, and count the noise of single items somewhat too often.
            half = stats.t.ppf(0.975, small.n_effective - 1) * (large - small).variance ** 0.5
            assert 0.85 * half - 2e-3 <= (number(high) - number(low)) / 2 <= 1.25 * half + 2e-3
        note = page.locator("[data-bb-note]").inner_text()
        assert f"Of {len(shown)} intervals between equal models, {len(shown) / 20:.1f} leave out 0 by chance" in note
        assert cells(compared(opened, page.url.removeprefix(address))) == shown

    def test_rows_of_a_table_open_it(self, opened: Opened) -> None:
        page = opened("benchmarks/synthbias.html")
        page.get_by_role("checkbox", name="Compare large").first.focus()
        page.keyboard.press("Space")
        bar = page.locator(".bb-chosen")
        assert "large: choose one to four more models" in bar.inner_text()
        assert bar.get_by_role("link").count() == 0
        page.get_by_role("checkbox", name="Compare small").first.check()
        page.get_by_role("checkbox", name="Compare silent").first.check()
        page.get_by_role("link", name="Compare 3 models").click()
        page.wait_for_selector("[data-bb-verdict] p")
        settle(page)
        for words in (
            "Compared with small over 3 measures of Gender and occupation, large is separably better in 1",
            "large and silent have no headline measure under the same conditions",
        ):
            assert words in verdict(page)

    def test_it_fits_a_phone_passes_axe_and_runs_no_name(self, opened: Opened) -> None:
        page = compared(opened, scheme="dark", width=390)
        hostile = page.get_by_role("combobox", name="With", exact=True).locator("option", has_text="onerror")
        choose(page, "With", hostile.inner_text())
        headings = page.locator("[data-bb-measures] thead th")
        assert "<img src=x onerror=alert(1)>" in " ".join(headings.all_inner_texts())
        assert page.locator(".bb-compare img").count() == 0
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
        assert serious_violations(page) == []
