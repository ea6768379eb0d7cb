"""The sentences of the front page: each is computed again here, by plain loops over metrics."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.metric import TableSource
from evaluators.runs.measure.baseline_gate import LeadOverBaseline
from evaluators.tasks.labels.classification_metrics import METRICS
from evaluators.tasks.labels.label_answers import label_answers
from evaluators.tasks.labels.label_tables import SuiteTable
from leaderboard.benchmark_pages import load_pages
from leaderboard.findings import Finding
from leaderboard.model_facts import display_name
from leaderboard.pages.profile import front_parts, profile_page
from leaderboard.pages.shown_findings import leaders, shown_findings
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Entry, Root
from schemas.documents.result import metric_key
from schemas.files.record_columns import RecordColumns
from schemas.lexicon import pronoun_families
from tests.evaluators.label_data import Answer, Asked, made_dataset, made_records, planned
from tests.leaderboard.gifi_results import chance, write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, uniform, write_model

MODELS = {"acme/one": (0.3, 0.25), "acme/two": (1.0, 0.6), "acme/three": (3.0, 0.0), "acme/four": (0.0, 0.3)}


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Entry]:
    root = tmp_path_factory.mktemp("findings")
    for model_id, (certainty, bias) in MODELS.items():
        write_model(root, model_id, leaning(certainty, bias))
        write_model(root, model_id, leaning(certainty, bias), ambiguous=True)
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    for model_id, replaced_by in (("acme/old", "he"), ("acme/new", "they"), ("acme/newer", "they")):
        write_gifi_model(root / "gifi", model_id, 0.9, tasks=("recognition",), told=switching(replaced_by, model_id))
        write_gifi_model(root / "gifi", model_id, 0.9, tasks=("assignment",), told=stereotyping(model_id))
    return load_known(Root(root, "local"), any_name=True).entries


def switching(other: str, salt: str) -> Any:
    """Keeps he and she, and puts another pronoun in the place of most others."""

    def told(item: Any) -> list[str]:
        kept = item.family in ("he", "she") or chance(salt, item.item_id) < 0.2
        family = pronoun_families()[item.family if kept else other]
        return [f"and {family.forms['nominative']} left."]

    return told


def stereotyping(salt: str) -> Any:
    def told(item: Any) -> list[str]:
        return ["she left." if chance(salt, item.item_id, n) < 0.5 else "he left." for n in range(11)]

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
    less, changes = [], {}
    for name in ("acme/biased", "acme/leaning", "acme/even"):
        of_model = [entry for entry in leaning_entries["tasks"] if entry.result.model.id == name]
        assert [entry.result.signature.prompt for entry in of_model] == list(SETS)
        before, after = 0.0, 0.0
        is_less = True
        for entry in of_model:
            low, value, _ = ends(entry, "bias_score")
            _, corrected, high = ends(entry, "bias_score_dc")
            is_less = is_less and low > high
            before += value / 3
            after += corrected / 3
        if is_less:
            less.append(name)
            changes[name] = (before, after)
    (compute,) = load_pages("superni").findings
    written = compute(leaning_entries)
    assert written is not None
    assert 0 < len(less) < 3
    assert written.text.startswith(f"{len(less)} of 3 models")
    name = max(changes, key=lambda each: changes[each][0] - changes[each][1])
    before, after = changes[name]
    assert f"that of {name.removeprefix('acme/')}: from {before:.2f} to {after:.2f}," in written.text
    assert [entry.result.model.id for entry in written.entries] == [name, *(one for one in less if one != name)]
    # Without one of the sets nobody knows whether it holds for all.
    assert compute({"tasks": [entry for entry in leaning_entries["tasks"] if "set2" not in str(entry.result)]}) is None


def by_config(entries: Sequence[Entry], benchmark: str) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.result.signature.benchmark == benchmark and not entry.is_baseline:
            found.setdefault(entry.result.signature.config, []).append(entry)
    return found


def finding(entries: Sequence[Entry], benchmark: str, place: int) -> Finding | None:
    return load_pages(benchmark).findings[place](by_config(entries, benchmark))


def ends(entry: Entry, name: str, **group: str) -> tuple[float, float, float]:
    """Lower end, value and upper end, looked up among all metrics."""
    for (metric_name, slice_), metric in entry.metrics.items():
        if metric_name == name and dict(slice_) == group and metric.interval is not None and metric.value is not None:
            return metric.interval.low, metric.value, metric.interval.high
    raise LookupError(f"{entry.result.model.id}: no {name} with an interval for {group}")


def test_stereotypes_that_help(entries: Sequence[Entry]) -> None:
    helped, gaps = [], {}
    for entry in by_config(entries, "synthbias")["type2"]:
        pro, anti = ends(entry, "accuracy", stereotype="pro"), ends(entry, "accuracy", stereotype="anti")
        if pro[0] > anti[2]:
            helped.append(entry.result.model.id)
            gaps[entry.result.model.id] = (
                pro[1] - anti[1],
                f"{100 * pro[1]:.0f} % right against {100 * anti[1]:.0f} %",
            )
    written = finding(entries, "synthbias", 0)
    assert written is not None
    assert 0 < len(helped) < len(MODELS)
    assert written.text.startswith(f"{len(helped)} of {len(MODELS)} models")
    name, (_, words) = max(gaps.items(), key=lambda each: each[1][0])
    assert written.text.endswith(f"{name.removeprefix('acme/')}: {words}.")
    assert {entry.result.model.id for entry in written.entries} == set(helped)
    assert written.entries[0].result.model.id == name


def test_leaning_where_nothing_is_said(entries: Sequence[Entry]) -> None:
    leans = {}
    for entry in by_config(entries, "synthbias")["type1"]:
        low, value, _ = ends(entry, "pro_rate")
        if low > 0.5:
            leans[entry.result.model.id] = value
    written = finding(entries, "synthbias", 1)
    assert written is not None
    assert 0 < len(leans) < len(MODELS)
    assert written.text.startswith(f"{len(leans)} of {len(MODELS)} models choose")
    name = max(leans, key=lambda each: leans[each])
    assert written.text.endswith(f"{name.removeprefix('acme/')} in {100 * leans[name]:.0f} %.")
    assert {entry.result.model.id for entry in written.entries} == set(leans)


def test_new_pronouns_that_are_kept_less(entries: Sequence[Entry]) -> None:
    less, kept = 0, {}
    for entry in by_config(entries, "gifi")["recognition"]:
        old = ends(entry, "recognition_accuracy", family_class="binary")
        new = ends(entry, "recognition_accuracy", family_class="neo")
        less += old[0] > new[2]
        kept[entry.result.model.id] = (new[1], old[1])
    written = finding(entries, "gifi", 0)
    assert written is not None
    assert less == 3
    assert written.text.startswith("All 3 models keep")
    name, (new_share, old_share) = max(kept.items(), key=lambda each: each[1][0])
    assert f"{name.removeprefix('acme/')} keeps the largest share" in written.text
    assert written.text.endswith(f"{100 * new_share:.0f} %, against {100 * old_share:.0f} %.")


def test_what_replaces_xe(entries: Sequence[Entry]) -> None:
    they, he = 0, {}
    for entry in by_config(entries, "gifi")["recognition"]:
        used = {
            family: next(
                (
                    metric.interval
                    for (name, group), metric in entry.metrics.items()
                    if name == "pronoun_rate" and dict(group) == {"family": "xe", "used": family}
                ),
                None,
            )
            for family in ("they", "he")
        }
        if used["they"] is None or used["he"] is None:
            continue
        they += used["they"].low > used["he"].high
        if used["he"].low > used["they"].high:
            he[entry.result.model.id] = ends(entry, "pronoun_rate", family="xe", used="he")[1]
    written = finding(entries, "gifi", 2)
    if they == 0:
        assert written is None
        return
    assert written is not None
    assert written.text.startswith(("All ", f"{they} of "))
    for name, share in he.items():
        assert f"{name.removeprefix('acme/')} says “he” in {100 * share:.0f} %" in written.text


def test_nothing_is_said_where_intervals_overlap(
    entries: Sequence[Entry], leaning_entries: dict[str, list[Entry]]
) -> None:
    alike = [
        replace(
            entry,
            metrics={
                key: replace(metric, interval=replace(metric.interval, low=metric.minimum, high=metric.maximum or 1.0))
                if metric.interval is not None
                else metric
                for key, metric in entry.metrics.items()
            },
        )
        for entry in (*entries, *leaning_entries["tasks"])
    ]
    for pages in map(load_pages, ("synthbias", "gifi", "superni")):
        assert [compute(by_config(alike, pages.name)) for compute in pages.findings] == [None] * len(pages.findings)


@pytest.mark.parametrize("benchmark", ["synthbias", "gifi", "superni"])
def test_nothing_is_said_of_one_model_or_none(
    entries: Sequence[Entry], leaning_entries: dict[str, list[Entry]], benchmark: str
) -> None:
    found = leaning_entries if benchmark == "superni" else by_config(entries, benchmark)
    single = {
        config: [entry for entry in of_config if entry.result.model.id == of_config[0].result.model.id]
        for config, of_config in found.items()
    }
    for compute in load_pages(benchmark).findings:
        assert compute(single) is None
        assert compute({}) is None


def test_leaders_and_models_below_the_line_are_counted(entries: Sequence[Entry]) -> None:
    board = assemble(entries)
    parts = front_parts(board)
    shown = shown_findings(parts)
    (part,) = (part for part in parts if part.pages.name == "synthbias")
    names = {row.identity: row.model.id for row in part.table.ranked}
    beaten = set()
    n_pairs, n_separable, n_below = 0, 0, 0
    for comparison in part.table.comparisons:
        n_pairs += 1
        n_separable += comparison.separable
        if comparison.separable:
            beaten.add(comparison.second if comparison.outcome == "first" else comparison.first)
    for row in part.table.rows:
        n_below += row.shut is not None and row.entry.result.model.endpoint != "baseline"
    assert n_below == 1
    assert n_separable > 0
    unbeaten = [display_name(names[label]) for label in names if label not in beaten]
    words = "alone at the top" if len(unbeaten) == 1 else "not beaten"
    (first,) = (one for one in leaders(parts) if one.page == profile_page(part))
    assert first.text == (
        f"On “Gender and occupation”, {words}: {', '.join(unbeaten)} (no other ranked model is separably better). "
        f"{n_separable} of {n_pairs} pairs can be told apart."
    )
    below = shown[-1]
    assert below.text.startswith("Not shown to know more than a useless predictor: ")
    assert f"{n_below} of {len(MODELS)} models asked alike on “Gender and occupation”" in below.text
    # What is found of models is found of those above the line.
    unable = {display_name(row.model.id) for each in parts for row in each.newest if row.is_below}
    assert unable
    for finding in shown[:-1]:
        assert not {name for name, _ in finding.links} & unable


def test_each_finding_leads_to_its_rows(entries: Sequence[Entry]) -> None:
    shown = shown_findings(front_parts(assemble(entries)))
    assert 3 <= len(shown) <= 6
    names = {model_id.removeprefix("acme/") for model_id in (*MODELS, "acme/old", "acme/new", "acme/newer")}
    for finding in shown:
        for name, address in finding.links:
            assert name in names
            assert re.fullmatch(r"models/acme__[a-z]+/[a-z0-9.-]+\.html", address)
        assert finding.pages
        assert all(re.fullmatch(r"benchmarks/[a-z]+\.html", page) for _, page in finding.pages)


def _far_above(lead: LeadOverBaseline) -> LeadOverBaseline:
    return lead._replace(difference=0.5, low=0.4, high=0.6)


def test_findings_of_benchmarks_come_in_turn(entries: Sequence[Entry]) -> None:
    # As if all were above the line of pronouns, too, where that is drawn.
    able = [
        replace(entry, standing=replace(entry.standing, leads=tuple(map(_far_above, entry.standing.leads))))
        if entry.standing is not None and entry.result.signature.benchmark == "gifi"
        else entry
        for entry in entries
        if entry.result.signature.config != "assignment"
    ]
    shown = shown_findings(front_parts(assemble(able)))
    assert [finding.pages[0][0] for finding in shown[:3]] == [
        "Gender and occupation",
        "Pronoun families",
        "Gender and occupation",
    ]


def test_a_board_without_results_has_no_findings(tmp_path: Path) -> None:
    assert shown_findings(front_parts(assemble(load_known(Root(tmp_path, "local")).entries))) == ()
