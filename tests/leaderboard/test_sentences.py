"""Each generated sentence is taken apart, and its numbers are computed again from the CSV files of the site."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

from leaderboard.benchmark_pages import BenchmarkPages, load_pages
from leaderboard.model_facts import display_name
from leaderboard.pages.portraits import portraits
from leaderboard.pages.profile import front_parts
from leaderboard.pages.rendering import View, generate, make_view
from leaderboard.pages.shown_findings import leaders, shown_findings
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Root
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, stereotyped, uniform, write_model

Line: TypeAlias = Mapping[str, str]
MODELS = {"even": (3.0, 0.1), "biased": (0.2, 0.1), "worse": (1.0, 1.6), "other": (2.5, 0.3)}


class Site:
    """The texts of a site, of which sentences are checked against the CSV files alone."""

    def __init__(self, root: Path) -> None:
        self.view: View = make_view(assemble(load_known(Root(root, "local"), any_name=True).entries), (), ())
        markers = "\n".join(f"<!-- generated: {name} -->" for name in ("profile", "leaders", "findings"))
        self.texts = generate(self.view, {"index.md": markers})

    def lines(self, path: str) -> list[Line]:
        return list(csv.DictReader(io.StringIO(self.texts[path])))

    def values(self, model_id: str, metric: str) -> list[list[Line]]:
        """The values of a metric in each result of a model that has it, by slice."""
        results = [
            [line for line in self.lines(placement.files.csv) if line["metric"] == metric]
            for model in self.view.models
            if model.id == model_id
            for placement in model.placements
        ]
        return [of_result for of_result in results if of_result]

    def ranked(self, view: TableView) -> list[Line]:
        return [line for line in self.lines(view.files.csv) if line["rank_best"]]

    def pairs(self, view: TableView) -> list[Line]:
        if view.comparisons.csv not in self.texts:
            return []
        lines = self.lines(view.comparisons.csv)
        return [line for line in lines if line["metric"] == view.table.primary and line["both_ranked"] == "true"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    root = tmp_path_factory.mktemp("sentences")
    for name, weights in MODELS.items():
        write_model(root, f"acme/{name}", leaning(*weights))
        write_model(root, f"acme/{name}", leaning(*weights), ambiguous=True)
    write_model(root, "acme/stereotyped", stereotyped(1.0))
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    for name, skill in (("even", 0.5), ("biased", 0.9), ("new", 0.3)):
        write_gifi_model(root / "gifi", f"acme/{name}", skill, n_templates=12)
    write_gifi_model(root / "gifi", "acme/partial", 0.9, tasks=["recognition"], n_templates=12)
    return Site(root)


def percents(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"(\d+)\N{NO-BREAK SPACE}%", text)]


def distance(line: Line) -> float:
    return abs(float(line["value"]) - float(line["ideal"]))


def nearest_distance(low: float, high: float, ideal: float) -> tuple[float, float]:
    ends = sorted(abs(end - ideal) for end in (low, high))
    return (0.0 if low <= ideal <= high else ends[0]), ends[1]


def is_of_table(site: Site, model_id: str, pages: BenchmarkPages, n: int, best: int, worst: int) -> bool:
    lines = [line for view in site.view.tables if view.benchmark == pages.name for line in site.ranked(view)]
    expected = (model_id, str(best), str(worst), str(n))
    return expected in [(one["model"], one["rank_best"], one["rank_worst"], one["n_ranked"]) for one in lines]


def check_rank(site: Site, model_id: str, pages: BenchmarkPages, sentence: str) -> None:
    places = [int(place) for place in re.findall(r"(\d+)(?:st|nd|rd|th)", sentence)]
    (n,) = map(int, re.findall(r"of the (\d+) models", sentence))
    assert is_of_table(site, model_id, pages, n, places[0], places[-1])


def check_separable(site: Site, model_id: str, pages: BenchmarkPages, sentence: str) -> None:
    """The numbers of models that are better and worse, counted in the file of pairs."""
    said = re.findall(r"(?:better than|worse than) (\d+|none)", sentence) or ["none", "none"]
    found = []
    for view in site.view.tables:
        for line in site.ranked(view) if view.benchmark == pages.name else ():
            if line["model"] == model_id:
                # In the table of an index, the columns of each result begin with its config.
                identity = next(value for key, value in line.items() if key.endswith("identity_sha256"))
                winners = [
                    one[{"first": "first_identity_sha256", "second": "second_identity_sha256"}[one["outcome"]]]
                    for one in site.pairs(view)
                    if one["outcome"] in ("first", "second")
                    and identity in (one["first_identity_sha256"], one["second_identity_sha256"])
                ]
                n_better = winners.count(identity)
                found.append([str(n_better or "none"), str(len(winners) - n_better or "none")])
    assert said in found


def check_below(site: Site, model_id: str, pages: BenchmarkPages, sentence: str) -> None:
    lines = [
        line
        for view in site.view.tables
        if view.benchmark == pages.name
        for line in site.lines(view.files.csv)
        if line["model"] == model_id
    ]
    assert any(line["no_better_than_baselines_reason"] and not line["rank_best"] for line in lines)


def check_lacking(site: Site, model_id: str, pages: BenchmarkPages, sentence: str) -> None:
    (default,) = [view for view in site.view.tables if view.benchmark == pages.name and view.is_default]
    assert model_id not in [line["model"] for line in site.lines(default.files.csv)]


def check_alone(site: Site, model_id: str, pages: BenchmarkPages, sentence: str) -> None:
    assert is_of_table(site, model_id, pages, 1, 1, 1)


def check_share(site: Site, model_id: str, pages: BenchmarkPages, sentence: str) -> None:
    """The value, that of the nearest other model and that of the nearest useless predictor, in one table."""
    label = sentence.partition(": ")[0]
    (headline,) = [one for one in pages.headlines if one.label == label]
    own, *others = percents(re.sub(r"even is \d+\N{NO-BREAK SPACE}%(, )?", "", sentence))
    name = re.findall(r"the (?:best|only) other model asked the same, (.+?), \d", sentence)
    has_useless = "a useless predictor" in sentence
    agreeing = 0
    for view in site.view.tables:
        lines = site.lines(view.files.csv)
        columns = [column.key for column in view.all_columns if column.metric == headline.name and not column.group]
        if view.benchmark != pages.name or not columns or model_id not in [line["model"] for line in lines]:
            continue
        (example,) = [one.example for one in view.all_columns if one.key == columns[0]]
        assert example is not None
        values = {line["model"]: float(line[columns[0]]) for line in lines if line[columns[0]]}

        def far(name: str, values: Mapping[str, float] = values, ideal: float | None = example.ideal) -> float:
            return 0.0 if ideal is None else abs(values[name] - ideal)

        models = [one for one in values if not one.startswith("baseline/") and one != model_id]
        baselines = [one for one in values if one.startswith("baseline/")]
        expected = [round(100 * values.get(model_id, -1.0))]
        if name and models:
            expected.append(round(100 * values[min(models, key=lambda one: (far(one), one))]))
            assert display_name(min(models, key=lambda one: (far(one), one))) == name[0] or expected[0] != own
        if has_useless and baselines:
            expected.append(round(100 * values[min(baselines, key=far)]))
        # Without rows of baselines, the gate's own value of them is said, which no file has.
        agreeing += expected == [own, *others][: len(expected)]
    assert agreeing


def check_groups(site: Site, model_id: str, pages: BenchmarkPages, sentence: str) -> None:
    """The groups with the values nearest to the ideal and farthest from it, of those with an interval."""
    said = re.fullmatch(r"By (.+?), it goes from (\d+).% for (.+?) to (\d+).% for (.+?)(, of the .*)?\.", sentence)
    assert said is not None
    best, worst = (int(said[2]), said[3]), (int(said[4]), said[5])
    found = []
    for headline in pages.headlines:
        for lines in site.values(model_id, headline.name):
            by_group: dict[str, list[Line]] = {}
            for line in lines:
                key, equals, _ = line["slice"].partition("=")
                if equals and ", " not in line["slice"] and line["low"]:
                    by_group.setdefault(key, []).append(line)
            for key, of_group in by_group.items():
                if pages.group_names.get(key, key.replace("_", " ")) == said[1]:
                    ordered = sorted(of_group, key=distance)
                    found.append([(round(100 * float(one["value"])), words(one)) for one in (ordered[0], ordered[-1])])
                    nearest, farthest = (
                        nearest_distance(float(one["low"]), float(one["high"]), float(one["ideal"]))
                        for one in (ordered[0], ordered[-1])
                    )
                    if found[-1] == [best, worst]:
                        assert nearest[1] < farthest[0]
    assert [best, worst] in found


def words(line: Line) -> str:
    return line["slice"].partition("=")[2].replace("_", " ")


def check_unranked(site: Site, model_id: str, pages: BenchmarkPages, sentence: str) -> None:
    """The table has the model, without a rank and not for want of skill."""
    lines = [line for view in site.view.tables if view.benchmark == pages.name for line in site.lines(view.files.csv)]
    own = [line for line in lines if line["model"] == model_id]
    assert any(line["unranked_reason"] and not line["no_better_than_baselines_reason"] for line in own)


Check: TypeAlias = Callable[[Site, str, BenchmarkPages, str], None]
PORTRAIT: dict[str, Check] = {
    r"On .+ has no rank: see the table\.": check_unranked,
    r"On .+ has no rank: it lacks results that the ranking needs\.": check_lacking,
    r"On .+ has no rank: it is not shown to do better than a useless predictor( at .+)?\.": check_below,
    r"On .+ is the only model that can be ranked\.": check_alone,
    r"On .+ is (between \S+ and )?\S+ of the \d+ models that can be ranked\.": check_rank,
    r"It is separably better than \S+ of them and separably worse than \S+\.": check_separable,
    r"It cannot be told apart from any of them\.": check_separable,
    r"By .+, it goes from .+ to .+\.": check_groups,
    r".+: \d+\N{NO-BREAK SPACE}% of .+\.": check_share,
}


def test_sentences_of_model_pages(site: Site) -> None:
    seen = dict.fromkeys(PORTRAIT, 0)
    for model_id, of_model in portraits(site.view.board, site.view.tables).items():
        page = next(one.page for one in site.view.models if one.id == model_id)
        text = html.unescape(" ".join(site.texts[page.replace(".html", ".md")].split(" ")))
        for portrait in of_model:
            for sentence in portrait.sentences:
                assert sentence in text
                pattern = next((one for one in PORTRAIT if re.fullmatch(one, sentence)), None)
                assert pattern is not None, f"no template: {sentence}"
                PORTRAIT[pattern](site, model_id, portrait.pages, sentence)
                seen[pattern] += 1
    kinds = [check for pattern, check in PORTRAIT.items() if seen[pattern]]
    assert {check_below, check_lacking, check_rank, check_separable, check_groups, check_share} <= {*kinds}


def test_sentences_above_tables(site: Site) -> None:
    n_checked = 0
    for view in site.view.tables:
        lines = site.lines(view.files.csv)
        models = [line for line in lines if not line["model"].startswith("baseline/")]
        n_ranked = len(site.ranked(view))
        noun = "1 model" if len(models) == 1 else f"{len(models)} models"
        assert view.facts[0].startswith(f"{noun} ({n_ranked} ranked), ")
        pairs = site.pairs(view)
        sentence = view.separability
        if not sentence or n_ranked == 1:
            continue
        n_apart = sum(line["outcome"] in ("first", "second") for line in pairs)
        assert f"{n_apart} of {len(pairs)} pairs of ranked models can be told apart." in sentence
        tied = [display_name(line["model"]) for line in site.ranked(view) if line["rank_best"] == "1"]
        named = "alone at" if len(tied) == 1 else "tied for"
        assert sentence.startswith(f"By {view.primary_label}, {named} the top: {', '.join(tied)}; ")
        n_checked += 1
    assert n_checked


def test_sentences_of_the_front_page(site: Site) -> None:
    parts = front_parts(site.view.board)
    for one in leaders(parts):
        view = next(each for each in site.view.tables if each.is_default and each.page == one.page)
        n_apart = sum(line["outcome"] in ("first", "second") for line in site.pairs(view))
        assert f"{n_apart} of {len(site.pairs(view))} pairs can be told apart." in one.text
        tied = [display_name(line["model"]) for line in site.ranked(view) if line["rank_best"] == "1"]
        assert f"the top: {', '.join(tied)} (no other ranked model is separably better)" in one.text
    assert leaders(parts)
    below = [one.text for one in shown_findings(parts) if one.text.startswith("Not separably better than a predictor")]
    (text,) = below
    counted = re.findall(r"(\d+) of (\d+) models asked alike on “([^”]+)”", text)
    for n_below, n_models, heading in counted:
        view = next(each for each in site.view.tables if each.is_default and each.pages.heading == heading)
        models = [line for line in site.lines(view.files.csv) if not line["model"].startswith("baseline/")]
        assert int(n_models) == len(models)
        assert int(n_below) == sum(bool(line["no_better_than_baselines_reason"]) for line in models)
    assert counted


def uneven(site: Site) -> Iterable[tuple[str, BenchmarkPages, str, str]]:
    for model in site.view.models:
        for placement in model.placements:
            for sentence in placement.summary.uneven:
                yield model.id, load_pages(placement.section.benchmark), placement.files.csv, sentence


def test_sentences_on_groups_of_a_result(site: Site) -> None:
    n_checked = 0
    number = r"[\N{MINUS SIGN}+]?[\d.]+"
    for _, pages, path, sentence in uneven(site):
        said = re.fullmatch(
            rf"(?P<label>.+?) differs by (?P<group>.+?)(?:, of the \d+ with an interval)?: best for (?P<best>.+) with "
            rf"(?P<high>{number}) \[.+\] and worst for (?P<worst>.+) with (?P<low>{number}) \[.+\]\.",
            sentence,
        )
        assert said is not None, f"no template: {sentence}"
        by_metric: dict[tuple[str, str], list[Line]] = {}
        for line in site.lines(path):
            key, equals, _ = line["slice"].partition("=")
            if equals and ", " not in line["slice"] and line["low"] and line["ideal"]:
                by_metric.setdefault((line["metric"], key), []).append(line)
        expected = [said["best"], said["worst"], float(said["high"].lstrip("+").replace("\N{MINUS SIGN}", "-"))]
        found = []
        for (metric, key), lines in by_metric.items():
            group = pages.group_names.get(key, key.replace("_", " "))
            if (pages.label(metric), group) == (said["label"], said["group"]):
                ordered = sorted(lines, key=distance)
                found.append(
                    [words(ordered[0]), words(ordered[-1]), pytest.approx(float(ordered[0]["value"]), abs=6e-4)]
                )
        assert expected in found
        n_checked += 1
    assert n_checked > 3
