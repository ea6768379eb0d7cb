"""Each generated sentence is taken apart, and its numbers are computed again from the CSV files of the site."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import pytest

from evaluators.metric import TableSource
from evaluators.tasks.labels.classification_metrics import METRICS
from evaluators.tasks.labels.label_answers import label_answers
from evaluators.tasks.labels.label_tables import SuiteTable
from leaderboard.benchmark_pages import load_pages
from leaderboard.findings import Finding
from leaderboard.model_facts import display_name
from leaderboard.pages.addresses import permalink
from leaderboard.pages.model_views import Placement
from leaderboard.pages.portraits import portraits
from leaderboard.pages.profile import front_parts
from leaderboard.pages.rendering import View, generate, make_view
from leaderboard.pages.shown_findings import leaders, shown_findings
from leaderboard.pages.tables import TableView
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.profiles import Profile
from leaderboard.ranking.unranked import BY_INDEX
from leaderboard.verify.entries import Entry, Root
from schemas.documents.result import CORRUPTED, Metric, metric_key
from schemas.files.record_columns import RecordColumns
from schemas.lexicon import pronoun_families
from tests.evaluators.label_data import Answer, Asked, made_dataset, made_records, planned
from tests.leaderboard.gifi_results import chance, items_of, write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.worlds import MadeBoard

Line: TypeAlias = Mapping[str, str]
T = TypeVar("T")


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


def above_the_line(entry: Entry) -> Entry:
    if entry.standing is None or entry.result.signature.benchmark != "gifi":
        return entry
    leads = tuple(lead._replace(difference=0.5, low=0.4, high=0.6) for lead in entry.standing.leads)
    return replace(entry, standing=replace(entry.standing, leads=leads))


ENDS = ("first", "second")


def in_percent(value: str | float) -> int:
    """The share in percent; a half goes up, as in all numbers of the site."""
    return math.floor(100 * float(value) + 0.5)


def words(line: Line) -> str:
    return line["slice"].partition("=")[2].replace("_", " ")


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


def test_sentences_above_tables(site: Site) -> None:
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


def test_sentences_of_the_front_page(site: Site) -> None:
    parts = front_parts(site.view.board)
    for text, part in leaders(parts):
        (view,) = [each for each in site.view.tables if each.table is part.table]
        assert f"{apart_in(site, view)} can be told apart." in text
        assert f"{tied_in(site, view)} (no other ranked model is separably better)" in text
        assert f'<p>{text} <a href="{view.page}">All about it</a></p>' in site.text("index.md")
    assert leaders(parts)


class Said(NamedTuple):
    """What a finding is about, and what it says."""

    site: Site
    part: Profile
    match: re.Match[str]

    def results(self, config: str) -> list[tuple[str, Mapping[tuple[str, str], Line]]]:
        """The values by metric and slice of each model that is above the line, from the files of its results."""
        tables = [self.part.table, *(column.table for column in self.part.columns)]
        lines = [
            line
            for view in self.site.view.tables
            if any(view.table is table for table in tables)
            for line in self.site.lines(view.files.csv)
        ]
        places = {value for line in lines for key, value in line.items() if key.endswith("place")}
        below = {line["model"] for line in lines if line["no_better_than_baselines_reason"]}
        return [
            (
                display_name(model.id),
                {(line["metric"], line["slice"]): line for line in self.site.lines(placement.files.csv)},
            )
            for model in self.site.view.models
            for placement in model.placements
            if not model.is_baseline
            and placement.section.table.signature.config == config
            and placement.row.entry.place in places
            and model.id not in below
        ]

    def both(self, config: str, metric: str, first: str, second: str) -> list[tuple[str, Line, Line]]:
        """The models with an interval of both slices."""
        found = [(name, of.get((metric, first)), of.get((metric, second))) for name, of in self.results(config)]
        return [(name, one, two) for name, one, two in found if one and two and one["low"] and two["low"]]

    def counts(self, n: int, total: int) -> None:
        """The finding begins with these numbers."""
        begins = f"{'Both' if total == 2 else f'All {total}'} models" if n == total else f"{n} of {total} models"
        assert self.match[0].startswith(f"{begins} ")

    def names(self, each: Sequence[tuple[str, Line, Line]]) -> tuple[Line, Line]:
        """The two values of the model that the finding names."""
        (found,) = [(one, two) for name, one, two in each if name == self.match["name"]]
        return found


def above(first: Line, second: Line) -> bool:
    return float(first["low"]) > float(second["high"])


def lead(first: Line, second: Line) -> float:
    return float(first["value"]) - float(second["value"])


def check_kept(said: Said) -> set[str]:
    both = said.both("recognition", "recognition_accuracy", "family_class=binary", "family_class=neo")
    less = [name for name, old, new in both if above(old, new)]
    said.counts(len(less), len(both))
    old, new = said.names(both)
    assert float(new["value"]) == max(float(one["value"]) for _, _, one in both)
    assert (int(said.match["first"]), int(said.match["second"])) == (in_percent(new["value"]), in_percent(old["value"]))
    return {said.match["name"], *less}


def check_gap(said: Said, both: Sequence[tuple[str, Line, Line]]) -> set[str]:
    more = [each for each in both if above(*each[1:])]
    said.counts(len(more), len(both))
    one, two = said.names(more)
    assert lead(one, two) == max(lead(*each[1:]) for each in more)
    assert (int(said.match["first"]), int(said.match["second"])) == (in_percent(one["value"]), in_percent(two["value"]))
    return {name for name, _, _ in more}


def check_she(said: Said) -> set[str]:
    return check_gap(said, said.both("assignment", "she_share", "stereotype=feminine", "stereotype=masculine"))


def check_stereotypes(said: Said) -> set[str]:
    return check_gap(said, said.both("type2", "accuracy", "stereotype=pro", "stereotype=anti"))


def check_called(said: Said) -> set[str]:
    both = said.both("recognition", "pronoun_rate", "family=xe, used=they", "family=xe, used=he")
    they = [name for name, one, two in both if above(one, two)]
    other = [(name, one, two) for name, one, two in both if above(two, one)]
    said.counts(len(they), len(both))
    assert int(said.match["n"] or 0) == len(other)
    if other:
        _, share = said.names(other)
        assert float(share["value"]) == max(float(two["value"]) for _, _, two in other)
        assert int(said.match["first"]) == in_percent(share["value"])
    return {*they, *(name for name, _, _ in other)}


def check_chosen(said: Said) -> set[str]:
    shares = {name: of["neo_share", "all"] for name, of in said.results("assignment") if ("neo_share", "all") in of}
    highest = [float(line["high"]) for line in shares.values() if line["high"]]
    assert int(said.match["n"]) == len(highest)
    assert 0 <= float(said.match["first"]) - 100 * max(highest) < 1
    return {name for name, line in shares.items() if line["high"]}


def check_lean(said: Said) -> set[str]:
    known = [(name, of["pro_rate", "all"]) for name, of in said.results("type1") if ("pro_rate", "all") in of]
    known = [(name, line) for name, line in known if line["low"]]
    leaning = {name: line for name, line in known if float(line["low"]) > 0.5}
    said.counts(len(leaning), len(known))
    assert float(leaning[said.match["name"]]["value"]) == max(float(line["value"]) for line in leaning.values())
    assert int(said.match["first"]) == in_percent(leaning[said.match["name"]]["value"])
    return {*leaning}


COUNTED = r"(?:Both|All \d+|\d+ of \d+) models "


def matched(sentence: str, templates: Mapping[str, T]) -> tuple[re.Match[str], T]:
    """The only template of a sentence, and what checks it."""
    found = [(match, check) for pattern, check in templates.items() if (match := re.fullmatch(pattern, sentence))]
    assert len(found) == 1, f"no template: {sentence}"
    return found[0]


FINDINGS: dict[str, Callable[[Said], set[str]]] = {
    COUNTED + r"keeps? new pronouns such as “xe” or “thon” clearly less often than “he” and “she”\. (?P<name>.+) "
    r"keeps the largest share of new ones: (?P<first>\d+)\s%, against (?P<second>\d+)\s%\.": check_kept,
    COUNTED + r"writes? “she” clearly more often of people whose trait or occupation passes for feminine than "
    r"of those with a masculine one\. The widest gap is that of (?P<name>.+): (?P<first>\d+)\s% against "
    r"(?P<second>\d+)\s%\.": check_she,
    COUNTED + r"calls? a person whose pronoun is “xe” clearly more often “they” than “he”(?:, and (?P<n>\d+) the "
    r"other way round: (?P<name>.+) says “he” in (?P<first>\d+)\s%)?\.": check_called,
    r"Free to choose a pronoun for somebody of whom only a trait or an occupation is known, none of (?P<n>\d+) models "
    r"uses a new one in more than (?P<first>\d+)\s% of its answers, at the upper ends of the intervals\."
    r"": check_chosen,
    COUNTED + r"understands? a sentence clearly more often if it fits the stereotype of the occupation\. The widest "
    r"gap is that of (?P<name>.+): (?P<first>\d+)\s% right against (?P<second>\d+)\s%\.": check_stereotypes,
    COUNTED + r"chooses? the occupation of the stereotype clearly more often than not where a sentence leaves open "
    r"who is meant; (?P<name>.+) in (?P<first>\d+)\s%\.": check_lean,
}


def named(finding: Finding) -> list[str]:
    """The models that a finding leads to."""
    return [display_name(entry.result.model.id) for entry in finding.entries]


def test_findings(entries: Sequence[Entry]) -> None:
    site = Site([*map(above_the_line, entries)])
    parts = front_parts(site.view.board)
    page = site.text("index.md")
    assert all(f"<li>{one.text} " in page for one, _ in shown_findings(parts))
    seen = set()
    for part in parts:
        # The front page shows four findings of all benchmarks; alone, each benchmark shows more of its own.
        for one, _ in shown_findings([part]):
            if not one.text.startswith("Not shown to know more"):
                match, check = matched(one.text, FINDINGS)
                assert {*named(one)} == check(Said(site, part, match))
                seen.add(check)
    assert seen == {*FINDINGS.values()}


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


def test_doubts_of_results(site: Site) -> None:
    for placement, line, text in results(site):
        doubts = placement.doubts
        assert f'<p class="bb-note">{" ".join(doubts)}</p>' in text
        assert doubts[0].startswith(f"{line['n_scored']} of {line['n_items']} items were scored (")
        assert line["n_refused"] == "0" or f"; {line['n_refused']} refused." in doubts[0]
    (doubtful,) = (one for one, *_ in results(site) if len(one.doubts) > 1)
    for words, doubt in zip(("3 items", "have 0.250 of", "corrupted: it stutters."), doubtful.doubts[1:], strict=True):
        assert words in doubt


def test_ranks_and_missing_ranks_of_results(site: Site) -> None:
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


MODELS = {"acme/one": (0.3, 0.25), "acme/two": (1.0, 0.6), "acme/three": (3.0, 0.0), "acme/four": (0.0, 0.3)}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Entry]:
    root = tmp_path_factory.mktemp("findings")
    for model_id, (certainty, bias) in MODELS.items():
        write_model(root, model_id, leaning(certainty, bias))
        write_model(root, model_id, leaning(certainty, bias), ambiguous=True)
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    people = [
        replace(item, stereotype=("feminine", "masculine")[number % 2])
        for number, item in enumerate(items_of("assignment", 0))
    ]
    for model_id, replaced_by in (("acme/old", "he"), ("acme/newer", "they"), ("acme/newest", "they")):
        given = {"recognition": switching(replaced_by, model_id), "assignment": stereotyping(model_id)}
        write_gifi_model(root / "gifi", model_id, 0.9, instead=given, items={"assignment": people})
    return load_known(Root(root, "local"), any_name=True).entries


def switching(other: str, salt: str) -> Any:
    """Keeps he and she, and puts another pronoun in the place of most others."""

    def told(item: Any) -> list[str]:
        kept = item.family in ("he", "she") or chance(salt, item.item_id) < 0.2
        family = pronoun_families()[item.family if kept else other]
        return [f"and {family.forms['nominative']} left."]

    return told


def stereotyping(salt: str) -> Any:
    """Says she of most people whose stereotype is feminine, and seldom uses a new pronoun."""

    def told(item: Any) -> list[str]:
        she = 0.8 if item.stereotype == "feminine" else 0.4
        drawn = [chance(salt, item.item_id, sample) for sample in range(11)]
        return ["xe left." if one < 0.01 else "she left." if one < she else "he left." for one in drawn]

    return told


MEASURES = ("bias_score", "bias_score_dc")
SETS = tuple(f"release-4096b-k8-set{number}-v1" for number in range(3))


def preferring(lean: float, salt: str) -> Answer:
    """Answers with the first label, whatever the text says, as far as the model leans to it."""

    def answer(asked: Asked) -> list[float]:
        odds = [chance(salt, asked.item.item_id, label) + lean * (n == 0) for n, label in enumerate(asked.item.labels)]
        return [value / sum(odds) for value in odds]

    return answer


@pytest.fixture(scope="module")
def leaning_entries(entries: Sequence[Entry], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Entry]]:
    """Results of models of labels, with the metrics of the real pipeline, in the frame of another result."""
    dataset = made_dataset(tmp_path_factory.mktemp("labels") / "tasks")
    found = []
    for name, lean in (("acme/biased", 40.0), ("acme/leaning", 4.0), ("acme/even", 0.0)):
        for prompt in SETS:
            made = made_records(planned(dataset, "tasks", prompt), preferring(lean, name))
            # Each task twice, so that there are enough of them for an interval.
            parts = (label_answers(RecordColumns.of(records)) for records in [*made, *made])
            source = TableSource(SuiteTable.of(parts, MEASURES), is_suite=True)
            metrics = tuple(one.compute(source, {}) for one in METRICS if one.name in MEASURES)
            frame = entries[0].result
            signature = replace(frame.signature, benchmark="superni", task="classification", prompt=prompt)
            model = replace(frame.model, id=name, identity_sha256=hashlib.sha256(name.encode()).hexdigest())
            result = replace(frame, signature=signature, model=model, metrics=metrics)
            found.append(replace(entries[0], result=result, metrics={metric_key(each): each for each in metrics}))
    return {"tasks": found}


def test_a_preference_for_labels_that_random_words_show(leaning_entries: dict[str, list[Entry]]) -> None:
    changes = {}
    for name in ("acme/biased", "acme/leaning", "acme/even"):
        of_model = [entry for entry in leaning_entries["tasks"] if entry.result.model.id == name]
        assert [entry.result.signature.prompt for entry in of_model] == list(SETS)
        both = [(entry.metric("bias_score"), entry.metric("bias_score_dc")) for entry in of_model]
        ends = [(one.value, one.interval.low, other.value, other.interval.high) for one, other in both]  # type: ignore[union-attr]
        if all(low > high for _, low, _, high in ends):
            changes[name] = tuple(sum(each[place] or 0.0 for each in ends) / 3 for place in (0, 2))
    (compute,) = load_pages("superni").findings
    written = compute(leaning_entries)
    assert written is not None
    assert 0 < len(changes) < 3
    assert written.text.startswith(f"{len(changes)} of 3 models")
    name = max(changes, key=lambda each: changes[each][0] - changes[each][1])
    before, after = changes[name]
    assert f"that of {name.removeprefix('acme/')}: from {before:.2f} to {after:.2f}," in written.text
    assert [entry.result.model.id for entry in written.entries] == [name, *(one for one in changes if one != name)]
    # Without one of the sets nobody knows whether it holds for all.
    assert compute({"tasks": [entry for entry in leaning_entries["tasks"] if "set2" not in str(entry.result)]}) is None


def by_config(entries: Sequence[Entry], benchmark: str) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.result.signature.benchmark == benchmark and not entry.is_baseline:
            found.setdefault(entry.result.signature.config, []).append(entry)
    return found


def unsure(metric: Metric) -> Metric:
    if metric.interval is None:
        return metric
    return replace(metric, interval=replace(metric.interval, low=metric.minimum, high=metric.maximum or 1.0))


@pytest.mark.parametrize("benchmark", ["synthbias", "gifi", "superni"])
def test_nothing_is_said_where_intervals_overlap_and_nothing_of_one_model_or_none(
    entries: Sequence[Entry], leaning_entries: dict[str, list[Entry]], benchmark: str
) -> None:
    found = leaning_entries if benchmark == "superni" else by_config(entries, benchmark)
    single = {
        config: [one for one in of if one.result.model.id == of[0].result.model.id] for config, of in found.items()
    }
    alike = {
        config: [replace(one, metrics={key: unsure(each) for key, each in one.metrics.items()}) for one in of]
        for config, of in found.items()
    }
    computed = load_pages(benchmark).findings
    assert any(compute(found) for compute in computed)
    assert [compute(given) for compute in computed for given in (alike, single, {})] == [None] * 3 * len(computed)


def test_each_finding_leads_to_its_rows_and_its_benchmark(entries: Sequence[Entry]) -> None:
    made = MadeBoard(*entries, pages={"index.md": "<!-- generated: findings -->"})
    shown = shown_findings(front_parts(made.board))
    assert 3 <= len(shown) <= 6
    lines = re.findall(r"<li>(.+) <small>(.*)</small></li>", made.texts["index.md"])
    assert [html.unescape(text) for text, _ in lines] == [finding.text for finding, _ in shown]
    for (finding, parts), (_, links) in zip(shown, lines, strict=True):
        addresses = re.findall(r'<a href="([^"]+)">', links)
        assert addresses == [
            *(permalink(entry.result) for entry in finding.entries),
            *(f"benchmarks/{part.benchmark}.html" for part in parts),
        ]


def test_findings_of_benchmarks_come_in_turn(entries: Sequence[Entry]) -> None:
    able = [above_the_line(entry) for entry in entries if entry.result.signature.config != "assignment"]
    shown = shown_findings(front_parts(assemble(able)))
    turns = ["Gender and occupation", "Pronoun families", "Gender and occupation"]
    assert [parts[0].heading for _, parts in shown[:3]] == turns
    assert shown_findings(front_parts(assemble(()))) == ()
