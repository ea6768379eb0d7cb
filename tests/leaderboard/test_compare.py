"""The comparison of models: its files hold draws of the deviations, and its page pairs them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from scipy import stats

from evaluators.metric import TableSource
from evaluators.runs.measure.measuring import metric_definitions
from evaluators.statistics.jackknife import Deviations, draws
from evaluators.task import load_task
from leaderboard.pages.rendering import View, generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from schemas.files.record_columns import RecordColumns
from schemas.files.record_files import read_records
from tests.leaderboard.browsing import Scheme, serious_violations, served, visit
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.sites import render

HOSTILE = "evil/<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compare")
    write_model(root / "runs", "acme/small", leaning(1.0, 0.5))
    write_model(root / "runs", "acme/large", leaning(2.0, 0.2))
    write_model(root / "runs", "baseline/uniform", uniform, endpoint="baseline")
    write_model(root / "runs", "acme/silent", lambda reference, other, gender, pair: None)
    write_model(root / "runs", HOSTILE, leaning(1.0, 1.0))
    return root / "runs"


@pytest.fixture(scope="module")
def view(runs: Path) -> View:
    return make_view(assemble(load_known(Root(runs, "local"), any_name=True).entries), (), ())


@pytest.fixture(scope="module")
def files(view: View) -> dict[str, Any]:
    begins = "files/compare/"
    texts = generate(view, {})
    return {path.removeprefix(begins): json.loads(text) for path, text in texts.items() if path.startswith(begins)}


def deviations(runs: Path, model: str, metric: str, group: dict[str, str]) -> Deviations:
    """The deviations of the metric, computed from the records by the metric itself."""
    (path,) = [one for one in runs.rglob("records.parquet") if one.parts[-3] == model]
    table = load_task("coreference").table(RecordColumns.of(list(read_records(path))))
    (definition,) = [one for one in metric_definitions("coreference") if one.name == metric]
    computed = definition.deviations(TableSource(table), group)
    assert isinstance(computed, Deviations)
    return computed


@pytest.mark.slow
def test_files_hold_draws_of_every_slice(runs: Path, files: dict[str, Any]) -> None:
    (table,) = files["tables.json"]["tables"]
    assert len(table["results"]) == 5
    metrics = [one["name"] for one in table["metrics"]]
    assert metrics[:3] == ["worst_group_accuracy", "accuracy", "ucerf"]
    (small,) = [one["id"] for one in table["results"] if one["model"] == "acme/small"]
    found = files[f"{table['id']}/{small}.json"]
    levels = np.frombuffer(base64.b64decode(found["draws"]), dtype="<i2").reshape(-1, 200)
    assert len(found["slices"]) == len(levels)
    seen = set()
    for (number, key, value, _), level in zip(found["slices"], levels, strict=True):
        low, high = table["metrics"][number]["minimum"], table["metrics"][number]["maximum"]
        of_slice = deviations(runs, "acme__small", metrics[number], {key: value} if key else {})
        t = stats.t.ppf(0.975, of_slice.n_clusters - 1) / 1.959964
        expected = np.clip(t * draws([of_slice], 200)[0], low - high, high - low)
        assert level / 32767 * (high - low) == pytest.approx(expected, abs=(high - low) / 65534)
        seen.add((metrics[number], key))
    assert {("ucerf", ""), ("ucerf", "occupation"), ("accuracy", ""), ("accuracy", "pronoun_gender")} <= seen


@pytest.mark.slow
def test_a_model_without_answers_has_no_values(files: dict[str, Any]) -> None:
    (table,) = files["tables.json"]["tables"]
    (silent,) = [one["id"] for one in table["results"] if one["model"] == "acme/silent"]
    assert files[f"{table['id']}/{silent}.json"] == {"draws": "", "slices": []}


@pytest.fixture(scope="module")
def address(view: View, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(render(view, tmp_path_factory.mktemp("site"))) as found:
        yield found


def choose(page: Page, label: str, value: str) -> None:
    before = page.evaluate("location.hash")
    page.get_by_role("combobox", name=label, exact=True).select_option(label=value)
    page.wait_for_function("before => location.hash !== before", arg=before)
    settle(page)


def settle(page: Page) -> None:
    page.wait_for_function("document.querySelector('.bb-compare .bb-scroll[aria-busy]') === null")


def compared(browser: Browser, address: str, *, scheme: Scheme = "light", width: int = 1280) -> Page:
    page = visit(browser, address + "compare.html", scheme=scheme, width=width).page
    choose(page, "Model", "acme/small")
    choose(page, "With", "acme/large")
    return page


def cells(page: Page) -> dict[str, list[str]]:
    rows = page.locator(".bb-compare tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows}


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


@pytest.mark.browser
@pytest.mark.slow
class TestPage:
    def test_differences_and_intervals_are_paired(self, runs: Path, browser: Browser, address: str) -> None:
        page = compared(browser, address)
        choose(page, "Metric", "Accuracy")
        choose(page, "By", "occupation")
        told = cells(page)
        assert len(told) > 5
        for name, (one, other, difference) in told.items():
            group = {} if name == "all items" else {"occupation": name.removeprefix("occupation: ").replace(" ", "_")}
            small, large = (deviations(runs, f"acme__{model}", "accuracy", group) for model in ("small", "large"))
            value, low, high, *_ = difference.replace("[", " ").replace("]", " ").replace(",", " ").split()
            assert number(value) == pytest.approx(number(other) - number(one), abs=1.1e-3)
            # 200 draws know the standard error to 5 %, and count the noise of single items somewhat too often.
            half = stats.t.ppf(0.975, small.n_clusters - 1) * (large - small).variance ** 0.5
            assert 0.85 * half - 2e-3 <= (number(high) - number(low)) / 2 <= 1.25 * half + 2e-3
        note = page.locator("[data-bb-note]").inner_text()
        assert f"Of {len(told)} intervals between equal models, {len(told) / 20:.1f} leave out 0 by chance" in note
        page.context.close()

    def test_the_address_brings_a_choice_back_and_a_third_model_joins(self, browser: Browser, address: str) -> None:
        page = compared(browser, address)
        choose(page, "And", "baseline/uniform")
        assert page.locator(".bb-compare thead th").count() == 6
        again = visit(browser, page.url).page
        settle(again)
        assert cells(again) == cells(page)
        choose(page, "With", "acme/silent")
        assert cells(page)["all items"][1:4:2] == ["unknown", "unknown"]
        page.context.close()
        again.context.close()

    def test_a_model_differs_from_itself_by_nothing(self, browser: Browser, address: str) -> None:
        page = compared(browser, address)
        choose(page, "With", "acme/small")
        assert {texts[-1].split()[0] for texts in cells(page).values()} == {"0.000"}
        assert page.locator("[data-bb-status]").inner_text().split("; ")[1].startswith("0 of ")
        page.context.close()

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_it_fits_a_phone_passes_axe_and_runs_no_name(self, browser: Browser, address: str, scheme: Scheme) -> None:
        page = compared(browser, address, scheme=scheme, width=390)
        choose(page, "And", HOSTILE)
        assert "<img src=x onerror=alert(1)>" in page.locator(".bb-compare thead").inner_text()
        assert page.locator(".bb-compare img").count() == 0
        assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
        assert serious_violations(page) == []
        page.context.close()
