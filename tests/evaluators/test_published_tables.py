"""The baselines on the published type-2 items against the known table, and a twin on items made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from builders.synthbias import embedded, published
from builders.synthbias.checks.check import Collection
from evaluators.backend import Request, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import load_benchmark
from evaluators.runs.ask.pipeline import RunOptions, run
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.runs.plan.plan import Plan, Selection, select
from evaluators.statistics.option_scores import certainty
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK, sentence_in
from schemas.documents.result import Metric
from schemas.folders.dataset_folder import read_manifest
from schemas.items.coreference import CoreferenceItem
from tests.evaluators.made_data import made_items, made_records, preferred, write_dataset


class Row(NamedTuple):
    accuracy: float
    pro: float
    anti: float
    gap: float | None
    ucerf: float


TABLE = {
    "uniform": Row(0.5, 0.5, 0.5, 0, 1),
    "last-mentioned": Row(0.7030, 0.7030, 0.7030, 0, 1),
    "stereotype": Row(0.5, 1, 0, 1, 0),
    "stereotype-0.7": Row(0.5, 1, 0, 1, 0.8420),
    "stereotype-0.55": Row(0.5, 1, 0, 1, 0.9900),
    # The specification has a gap of 0 here. It is undefined: two accuracies of 0 are equal only in nothing.
    "always-wrong": Row(0, 0, 0, None, 1),
}


def row_of(metrics: Sequence[Metric]) -> Row:
    values: Mapping[str, float | None] = {
        " ".join([metric.name, *metric.group.values()]): metric.value for metric in metrics
    }
    found = {name: values[name] for name in ("accuracy", "accuracy pro", "accuracy anti", "ucerf")}
    accuracy, pro, anti, ucerf = (value for value in found.values() if value is not None)
    return Row(accuracy, pro, anti, values["accuracy_gap"], ucerf)


def assert_close(found: Row, expected: Row) -> None:
    assert (found.gap is None) == (expected.gap is None)
    assert found._replace(gap=found.gap or 0) == pytest.approx(expected._replace(gap=expected.gap or 0), abs=5e-5)


def baseline_row(selection: Selection, model: str, out: Path, prompt: str = "intrinsic-v1") -> Row:
    backend = open_backend("baseline", model, BackendOptions())
    finished = run(Plan(selection, TASK, prompt_of(TASK, prompt)), backend, RunOptions(root=out, command="tests"))
    assert finished.result.counts.scored == len(selection.items)
    return row_of(finished.result.metrics)


@pytest.fixture(scope="module")
def published_type2(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Selection:
    raw = (shared_data / "synthbias" / "synthbias_data.csv").read_bytes()
    rows = [row for row in published.parse(raw, name="published") if row.type == "type2"]
    folder = tmp_path_factory.mktemp("published") / "type2"
    write_dataset(folder, {"type2": published.pair(Collection(rows)).items})
    return select(folder, read_manifest(folder), "type2")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["last-mentioned", "stereotype-0.7"])
def test_baselines_reproduce_the_known_table_on_the_published_items(
    published_type2: Selection, tmp_path: Path, model: str
) -> None:
    assert_close(baseline_row(published_type2, model, tmp_path), TABLE[model])


@pytest.mark.parametrize(
    ("model", "prompt"), [*((model, "intrinsic-v1") for model in TABLE), ("stereotype-0.7", "mcq3-v1")]
)
def test_baselines_are_the_same_on_made_items(tmp_path: Path, model: str, prompt: str) -> None:
    items = made_items(20)
    dataset = write_dataset(tmp_path / "data", {"type2": items})
    found = baseline_row(select(dataset, read_manifest(dataset), "type2"), model, tmp_path / "runs", prompt)
    expected = TABLE[model]
    if model == "last-mentioned":
        last = sum(item.referent == item.occupations[1] for item in items) / len(items)
        expected = Row(last, last, last, 0, 1)
    if prompt == "mcq3-v1":
        # Of three outcomes the one that the baseline never takes makes it look more certain.
        expected = expected._replace(ucerf=1 - certainty(np.array([[0.7, 0.3, 0.0]]))[0])
    assert_close(found, expected)


def test_right_everywhere_but_surer_on_stereotypes_is_not_ideal() -> None:
    rows = []
    for item in made_items(40):
        other = next(name for name in item.occupations if name != item.reference)
        rows.append((item.reference, other, item.pronoun_gender, 0.95 if item.stereotype == "pro" else 0.60))
    values = row_of(compute_metrics(made_records(rows), "coreference"))
    assert values == pytest.approx(Row(1, 1, 1, 0, 0.6297), abs=5e-5)


BASELINES = {baseline.name: baseline for baseline in load_benchmark("synthbias").baselines}


def requests_of(items: list[CoreferenceItem], prompt: str) -> dict[str, tuple[CoreferenceItem, Request]]:
    asked = {}
    for item in items:
        for request in TASK.requests(item, Asked(TASK.prompts[prompt])):
            asked[request.sha256] = (item, request)
    return asked


def choices(items: list[CoreferenceItem], prompt: str) -> Mapping[str, set[str | None]]:
    """Return what the baseline prefers for each item, over the orders of the options."""
    asked = requests_of(items, prompt)
    answers = BASELINES["best-cue"].answers({sha256: request for sha256, (_, request) in asked.items()})
    found: dict[str, set[str | None]] = {}
    for sha256, (item, request) in asked.items():
        assert sentence_in(request.prompt) == item.sentence
        found.setdefault(item.item_id, set()).add(preferred(request, answers[sha256]))
    return found


def test_every_prompt_gets_the_same_answers_and_both_pronouns_too_and_no_text_or_right_answer_none() -> None:
    items = {split.config: list(split.items) for split in embedded.draft(limit=240).splits}
    expected = choices(items["type2"], "intrinsic-v1")
    assert all(len(found) == 1 and None not in found for found in expected.values())
    for prompt in ("mcq3-v1", "mcq2-generate-v1", "cot-v1"):
        assert choices(items["type2"], prompt) == expected
    of_pairs: dict[str, set[str | None]] = {}
    for item in items["type2"]:
        of_pairs.setdefault(item.pair_id, set()).update(expected[item.item_id])
    assert all(len(found) == 1 for found in of_pairs.values())
    # Some items may name a frame and others none, which is then their wording.
    mixed = [replace(item, template_id=None) if number % 4 < 2 else item for number, item in enumerate(items["type2"])]
    assert all(len(found) == 1 and None not in found for found in choices(mixed, "intrinsic-v1").values())
    assert set().union(*choices(items["type1"], "intrinsic-v1").values()) == {None}
    whole = requests_of(items["type2"][:40], "intrinsic-v1")
    asked = {sha256: replace(request, prompt="") for sha256, (_, request) in whole.items()}
    answers = BASELINES["best-cue"].answers(asked)
    assert {preferred(asked[sha256], answer) for sha256, answer in answers.items()} == {None}
