"""The sentences of the front page: each is computed again here, by plain loops over metrics."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from evaluators.metric import TableSource
from evaluators.tasks.labels.classification_metrics import METRICS
from evaluators.tasks.labels.label_answers import label_answers
from evaluators.tasks.labels.label_tables import SuiteTable
from leaderboard.benchmark_pages import load_pages
from leaderboard.pages.profile import front_parts
from leaderboard.pages.shown_findings import shown_findings
from leaderboard.ranking.boards import assemble
from leaderboard.verify.entries import Entry, Root
from schemas.documents.result import Metric, metric_key
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


def test_findings_of_benchmarks_come_in_turn(entries: Sequence[Entry]) -> None:
    # As if all were above the line of pronouns, too, where that is drawn.
    able = []
    for entry in entries:
        if entry.standing is not None and entry.result.signature.benchmark == "gifi":
            leads = tuple(lead._replace(difference=0.5, low=0.4, high=0.6) for lead in entry.standing.leads)
            entry = replace(entry, standing=replace(entry.standing, leads=leads))
        if entry.result.signature.config != "assignment":
            able.append(entry)
    shown = shown_findings(front_parts(assemble(able)))
    turns = ["Gender and occupation", "Pronoun families", "Gender and occupation"]
    assert [finding.pages[0][0] for finding in shown[:3]] == turns
    assert shown_findings(front_parts(assemble(()))) == ()
