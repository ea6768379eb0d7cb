"""Each generated sentence is taken apart, and its numbers are computed again from the CSV files of the site."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import NamedTuple, TypeAlias

import pytest

from leaderboard.benchmark_pages import Finding, load_pages
from leaderboard.model_facts import display_name
from leaderboard.pages.markup import permalink
from leaderboard.pages.model_views import Placement
from leaderboard.pages.profile import front_parts, leaders, portraits, shown_findings
from leaderboard.pages.publishing import View, generate, make_view
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.rank_ranges import BY_INDEX
from leaderboard.verify.entries import Entry
from schemas.documents.result import CORRUPTED, Interval, Metric, metric_key
from tests.schemas import examples
from tests.worlds import MadeBoard

pytestmark = pytest.mark.slow

Line: TypeAlias = Mapping[str, str]


class Site:
    """The texts of a site, of which sentences are checked against the CSV files alone."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.view: View = make_view(assemble(entries), (), ())
        markers = "\n".join(f"<!-- generated: {name} -->" for name in ("profile", "leaders", "findings"))
        self.texts = generate(self.view, {"index.md": markers})

    def lines(self, path: str) -> list[Line]:
        return list(csv.DictReader(io.StringIO(self.texts[path])))

    def ranked(self, view: TableView) -> list[Line]:
        return [line for line in self.lines(view.files.csv) if line["rank_best"]]

    def models(self, view: TableView) -> list[Line]:
        return [line for line in self.lines(view.files.csv) if not line["model"].startswith("baseline/")]

    def text(self, page: str) -> str:
        return html.unescape(self.texts[page.replace(".html", ".md")])

    def pairs(self, view: TableView) -> list[Line]:
        if view.comparisons.csv not in self.texts:
            return []
        lines = self.lines(view.comparisons.csv)
        return [line for line in lines if line["metric"] == view.table.primary and line["both_ranked"] == "true"]


@pytest.fixture(scope="module")
def site(models: MadeBoard) -> Site:
    return Site([*map(with_doubts, models.entries)])


def with_doubts(entry: Entry) -> Entry:
    """The result of one model as if answers had been cut off, had no letter and looked corrupted."""
    result = entry.result
    if (result.model.id, result.signature.config) != ("acme/other", "type1"):
        return entry
    environment = replace(result.environment, settings={CORRUPTED: "it stutters"})
    result = replace(result, counts=replace(result.counts, truncated=3), environment=environment)
    return replace(entry, first_token_share=0.25, result=result)


ENDS = ("first", "second")


def test_model_pages_lead_to_all_results_and_say_where_the_model_stands(site: Site) -> None:
    for model_id, of_model in portraits(site.view.board, site.view.tables).items():
        (model,) = (one for one in site.view.models if one.id == model_id)
        text = site.text(model.page)
        for placement in model.placements:
            assert f'<li id="{placement.anchor}"><a href="../{placement.page}">' in text
        assert not [line for line in text.splitlines() if line.startswith("#") and "-v1" in line]
        for portrait in of_model:
            assert f">{portrait.pages.heading}</a>: {portrait.placing}</span></th>" in text


def tied_in(site: Site, view: TableView) -> str:
    """The words on who is not beaten in a table."""
    tied = [display_name(line["model"]) for line in site.ranked(view) if line["rank_best"] == "1"]
    return f"{'alone at the top' if len(tied) == 1 else 'not beaten'}: {', '.join(tied)}"


def apart_in(site: Site, view: TableView) -> str:
    pairs = site.pairs(view)
    return f"{sum(line['outcome'] in ENDS for line in pairs)} of {len(pairs)} pairs"


def test_sentences_above_tables_and_of_the_front_page(site: Site) -> None:
    n_checked = 0
    for view in site.view.tables:
        n_models, n_ranked = len(site.models(view)), len(site.ranked(view))
        noun = "1 model" if n_models == 1 else f"{n_models} models"
        assert view.facts[0].startswith(f"{noun} ({n_ranked} ranked), ")
        if view.separability and n_ranked > 1:
            assert f"{apart_in(site, view)} of ranked models can be told apart." in view.separability
            assert view.separability.startswith(f"By {view.primary_label}, {tied_in(site, view)}; ")
            n_checked += 1
    assert n_checked
    parts = front_parts(site.view.board)
    for text, part in leaders(parts):
        (view,) = [each for each in site.view.tables if each.table is part.table]
        assert f"{apart_in(site, view)} can be told apart." in text
        assert f"{tied_in(site, view)} (no other ranked model is separably better)" in text
        assert f'<p>{text} <a href="{view.page}">All about it</a></p>' in site.text("index.md")
    assert leaders(parts)


def named(finding: Finding) -> list[str]:
    """The models that a finding leads to."""
    return [display_name(entry.result.model.id) for entry in finding.entries]


def test_finding_on_models_below_the_line(site: Site) -> None:
    findings = shown_findings(front_parts(site.view.board))
    (one,) = [each for each, _ in findings if each.text.startswith("Not shown to know")]
    counted = re.findall(r"(\d+) of (\d+) models asked alike on “([^”]+)”", one.text)
    found = []
    for n_below, n_models, heading in counted:
        view = next(each for each in site.view.tables if each.is_default and each.pages.heading == heading)
        models = site.models(view)
        below = [line["model"] for line in models if line["no_better_than_baselines_reason"]]
        assert (int(n_below), int(n_models)) == (len(below), len(models))
        found += below
    # Each is named once, however many tables it is below the line of.
    assert sorted(named(one)) == sorted(map(display_name, {*found}))
    assert counted


def results(site: Site) -> Iterable[tuple[Placement, Line, str]]:
    """Each result of a model, with its row in the file of its table and the text of its page."""
    for placement in (one for model in site.view.models if not model.is_baseline for one in model.placements):
        place = placement.row.entry.place
        (line,) = [one for one in site.lines(placement.section.files.csv) if one["place"] == place]
        yield placement, line, site.text(placement.page)


def test_doubts_ranks_and_missing_ranks_of_results(site: Site) -> None:
    for placement, line, text in results(site):
        doubts = placement.doubts
        assert f'<p class="bb-note">{" ".join(doubts)}</p>' in text
        assert doubts[0].startswith(f"{line['n_scored']} of {line['n_items']} items were scored (")
        assert line["n_refused"] == "0" or f"; {line['n_refused']} refused." in doubts[0]
    (doubtful,) = (one for one, *_ in results(site) if len(one.doubts) > 1)
    for words, doubt in zip(("3 items", "have 0.250 of", "corrupted: it stutters."), doubtful.doubts[1:], strict=True):
        assert words in doubt
    n_reasons = 0
    for _, line, text in results(site):
        ranked = re.search(r"Rank <strong>(\d+)(?:\N{EN DASH}(\d+))?</strong> of (\d+) in ", text)
        assert (ranked is not None) == bool(line["rank_best"])
        if ranked is not None:
            assert (ranked[1], ranked[2] or ranked[1], ranked[3]) == (
                line["rank_best"],
                line["rank_worst"],
                line["n_ranked"],
            )
            continue
        reasons = dict.fromkeys([line["unranked_reason"], line["no_better_than_baselines_reason"]])
        shown = [reason for reason in reasons if reason and reason != BY_INDEX]
        said = re.search(r"No rank in <a [^>]+>its table</a>: (.+)\.</p>", text)
        assert (said[1] if said else "") == "; ".join(shown)
        n_reasons += len(shown)
        for reason in shown:
            if scored := re.fullmatch(r"(\d+) of (\d+) items scored; a rank needs at least half", reason):
                assert (scored[1], scored[2]) == (line["n_scored"], line["n_items"])
                assert int(scored[1]) < int(scored[2]) / 2
    assert n_reasons > 3


SETS = tuple(f"release-4096b-k8-set{number}-v1" for number in range(3))
"""Prompts of all results that the finding on answers to random words needs."""
Measured: TypeAlias = tuple[str, dict[str, str]]


class Case(NamedTuple):
    """Values of three models, each known to .04, and the finding that they give."""

    benchmark: str
    config: str
    measures: tuple[Measured, ...]
    values: Mapping[str, tuple[float, ...]]
    named: tuple[str, ...]
    """Models that the finding leads to, those that it names first."""
    text: str
    prompts: tuple[str, ...] = ("intrinsic-v1",)


CASES = {
    "kept": Case(
        *("gifi", "recognition", tuple(("recognition_accuracy", {"family_class": name}) for name in ("binary", "neo"))),
        *({"one": (0.9, 0.5), "two": (0.8, 0.78), "three": (0.95, 0.6)}, ("two", "one", "three")),
        "2 of 3 models keep .+ two keeps the largest share of new ones: 78 %, against 80 %",
    ),
    "she": Case(
        *("gifi", "assignment", tuple(("she_share", {"stereotype": name}) for name in ("feminine", "masculine"))),
        *({"one": (0.6, 0.3), "two": (0.5, 0.48), "three": (0.7, 0.2)}, ("three", "one")),
        "2 of 3 models write .+ widest gap is that of three: 70 % against 20 %",
    ),
    "called": Case(
        *("gifi", "recognition", tuple(("pronoun_rate", {"family": "xe", "used": name}) for name in ("they", "he"))),
        *({"one": (0.6, 0.2), "two": (0.1, 0.7), "three": (0.5, 0.1)}, ("two", "one", "three")),
        "2 of 3 models call .+, and 1 the other way round: two says “he” in 70 %",
    ),
    "chosen": Case(
        *("gifi", "assignment", (("neo_share", {}),)),
        *({"one": (0.002,), "two": (0.0,), "three": (0.001,)}, ("one", "two", "three")),
        "none of 3 models uses a new one in more than 5 % of its answers",
    ),
    "stereotypes": Case(
        *("synthbias", "type2", tuple(("accuracy", {"stereotype": name}) for name in ("pro", "anti"))),
        *({"one": (0.9, 0.7), "two": (0.8, 0.4), "three": (0.5, 0.52)}, ("two", "one")),
        "2 of 3 models understand .+ widest gap is that of two: 80 % right against 40 %",
    ),
    "lean": Case(
        *("synthbias", "type1", (("pro_rate", {}),)),
        *({"one": (0.6,), "two": (0.52,), "three": (0.71,)}, ("three", "one")),
        "2 of 3 models choose .+ leaves open who is meant; three in 71 %",
    ),
    "random words": Case(
        *("superni", "tasks", (("bias_score", {}), ("bias_score_dc", {}))),
        *({"one": (0.5, 0.2), "two": (0.3, 0.28), "three": (0.4, 0.2)}, ("one", "three")),
        "2 of 3 models prefer .+ largest change is that of one: from 0.50 to 0.20,",
        SETS,
    ),
}


def measured(name: str, group: dict[str, str], value: float, width: float) -> Metric:
    low, high = max(0.0, value - width), min(1.0, value + width)
    interval = Interval(low=low, high=high, level=0.95, method="m", n_clusters=9, n_resamples=None)
    return replace(examples.metric(), name=name, group=group, value=value, interval=interval)


def given(frame: Entry, case: Case, *, width: float = 0.04, most: int = 3) -> dict[str, list[Entry]]:
    """The results of a case, in the frame of another result."""
    found = []
    for name, values in [*case.values.items()][:most]:
        metrics = [measured(*measure, value, width) for measure, value in zip(case.measures, values, strict=True)]
        model = replace(frame.result.model, id=f"acme/{name}", identity_sha256=sha256(name.encode()).hexdigest())
        for prompt in case.prompts:
            task = "classification" if case.benchmark == "superni" else frame.result.signature.task
            signature = replace(frame.result.signature, benchmark=case.benchmark, task=task, prompt=prompt)
            result = replace(frame.result, model=model, signature=signature)
            found.append(replace(frame, result=result, metrics={metric_key(metric): metric for metric in metrics}))
    return {case.config: found}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_findings_name_what_is_separable_and_say_nothing_else(models: MadeBoard, case: Case) -> None:
    frame = models.entries[0]
    computed = load_pages(case.benchmark).findings
    (finding,) = filter(None, (compute(given(frame, case)) for compute in computed))
    assert re.search(case.text.replace(" %", r"\s%"), finding.text)
    assert named(finding) == [*case.named]
    for unsure in (given(frame, case, width=1.0), given(frame, case, most=1), {}):
        assert [compute(unsure) for compute in computed] == [None] * len(computed)
    # Without one of the sets of examples nobody knows whether it holds for all.
    if len(case.prompts) > 1:
        assert computed[0](given(frame, case._replace(prompts=SETS[:2]))) is None


def test_each_finding_leads_to_its_rows_and_its_benchmark(models: MadeBoard) -> None:
    made = MadeBoard(*models.entries, pages={"index.md": "<!-- generated: findings -->"})
    shown = shown_findings(front_parts(made.board))
    # Those of two benchmarks in turn, and then who is below the line.
    turns = [parts[0].heading for _, parts in shown[:3]]
    assert turns == ["Gender and occupation", "Pronoun families", "Gender and occupation"]
    # What models below the line do says nothing of those that can read.
    below = {row.model.id for part in shown[0][1] for row in part.table.rows if row.is_below and not row.is_baseline}
    assert below
    assert below.isdisjoint(entry.result.model.id for entry in shown[0][0].entries)
    lines = re.findall(r"<li>(.+) <small>(.*)</small></li>", made.texts["index.md"])
    assert [html.unescape(text) for text, _ in lines] == [finding.text for finding, _ in shown]
    for (finding, parts), (_, links) in zip(shown, lines, strict=True):
        addresses = re.findall(r'<a href="([^"]+)">', links)
        assert addresses == [
            *(permalink(entry.result) for entry in finding.entries),
            *(f"benchmarks/{part.benchmark}.html" for part in parts),
        ]
    assert shown_findings(front_parts(assemble(()))) == ()
