"""The task *classification* answered in words: what is asked, read and measured, and which items are asked at all."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from biasboard.ground.errors import DataError
from biasboard.ground.memory import Memory
from evaluators.backend import Response, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.runs.ask.pipeline import RunOptions, run
from evaluators.runs.measure.measuring import Measurement
from evaluators.runs.measure.recording import records_of
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import Asked
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_answers import SHOWN
from evaluators.tasks.labels.label_baselines import BASELINES
from evaluators.tasks.labels.label_tables import IN_WORDS
from leaderboard.verify.keys import KeyCheck, open_book
from schemas.files.record_columns import RecordColumns
from schemas.folders.dataset_folder import read_manifest
from schemas.items.label import LabelItem
from tests.commands import output_of
from tests.evaluators import label_oracle
from tests.evaluators.label_data import made_dataset, made_items, planned
from tests.record_files import write_records
from tests.suites.commands import told

pytestmark = pytest.mark.slow

PROMPT = "words-1024b-k8-set1-v1"
CONFIGS = ("two", "three", "six")
RIGHT = ("{}", "Label: {}", "**{}**", '"{}".', "{}\n\nThe text says so.", "The answer is {}.")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("words") / "datasets" / "tasks", CONFIGS)


def test_a_prompt_names_the_labels_of_the_item_and_asks_for_one_of_them() -> None:
    prompt = TASK.prompts["words-4096b-k8-set0-v1"]
    item, shown = made_items("three", "test")[0], made_items("three", "pool")[:2]
    labels = "".join(f"- {label}\n" for label in ("positive", "neutral", "negative"))
    examples = "".join(f"Input: {one.text.strip()}\nLabel: {one.target}\n\n" for one in shown)
    (request,) = TASK.requests(item, Asked(prompt, shown))
    assert request.prompt == (
        f"Label the text of three: positive, neutral, negative.\n\n{examples}Input: {item.text.strip()}\n\n"
        f"Labels:\n{labels}Answer with one label only.\nLabel:"
    )
    assert request.outcomes == item.labels
    assert (prompt.scoring, prompt.requires, prompt.temperature, prompt.chat) == ("generation", "generation", 0, True)


class Said(NamedTuple):
    """An answer, and what must be read from it."""

    text: str
    status: str
    label: str | None


def answer_about(prompt: str, item: LabelItem) -> Said:
    """An answer that is right in half of the cases."""
    draw = zlib.crc32(prompt.encode())
    wrong = next(label for label in reversed(item.labels) if label != item.target)
    kind, shape = draw % 20, RIGHT[draw // 20 % len(RIGHT)]
    if kind < 10 and item.target is not None:
        return Said(shape.format(item.target), "scored", item.target)
    if kind < 14:
        return Said(shape.format(wrong), "scored", wrong)
    if kind < 17:
        return Said("I'm sorry, but I can't help with that.", "refused", None)
    if kind < 18:
        return Said("It depends on who reads it.", "unparsed", None)
    if kind < 19:
        return Said(f"{item.labels[0]} or {item.labels[1]}", "unparsed", None)
    return Said(f"{item.labels[0]}? No, rather {wrong}", "unparsed", None)


def test_answers_are_read_as_they_were_meant_and_metrics_are_those_of_plain_loops(
    dataset: Path, tmp_path: Path
) -> None:
    plan = planned(dataset, "tasks", PROMPT, splits=("test", "bias"))
    measures, parts = [], []
    for part in plan.parts:
        said = [
            answer_about(requests[0].prompt, item)
            for (_, item), requests in zip(part.items, part.requests, strict=True)
            if isinstance(item, LabelItem)
        ]
        responses = [[Response(status="answered", text=one.text, finish_reason="stop")] for one in said]
        records = list(records_of(plan, part, part.requests, responses, chat=True))
        assert [one.status for one in records] == [one.status for one in said]
        assert [one.reading and one.reading.answers[0] for one in records] == [one.label for one in said]
        assert {one.status for one in said} == {"scored", "refused", "unparsed"}
        write_records(tmp_path / f"{part.config}.parquet", records)
        (rows,) = label_oracle.rows_of(tmp_path / f"{part.config}.parquet").values()
        measures.append(label_oracle.measures(rows))
        parts.append(RecordColumns.of(records))
    measurement = Measurement.of(parts, "classification", is_suite=True)
    expected = label_oracle.shown({name: label_oracle.mean_over(measures, name) for name in measures[0]})
    expected["f1_rsd_correlation"] = label_oracle.correlation(measures, "f1_rsd_correlation")
    found = {metric.name: metric for metric in measurement.metrics() if not metric.group}
    assert {name: found[name].value for name in expected} == pytest.approx(expected, abs=1e-9)
    nulls = {name for name, value in expected.items() if value is None}
    assert {"bias_score", "bias_score_floor", "macro_f1_cc", "gini_gini", "f1_bias_score_correlation"} <= nulls
    assert not nulls & {"accuracy", "macro_f1", "rsd_paper", "gini", "cobias", "bias_score_answers"}
    assert {found[name].reason for name in nulls} == {IN_WORDS}
    assert not measurement.corrections


def test_baselines_choose_the_first_label_and_the_one_that_is_shown_most(dataset: Path) -> None:
    first, majority = (one for one in BASELINES if one.name in ("first-label", "shown-majority"))
    (part,) = planned(dataset, "six", "words-4096b-k8-set1-v1", splits=("test",)).parts
    n_of_shown = set()
    for (request,) in part.requests:
        shown = Counter(json.loads(request.facts[SHOWN]))
        assert first.answer(request).text == request.outcomes[0]
        assert shown[str(majority.answer(request).text)] == max(shown.values(), default=0)
        n_of_shown |= {*shown.values()}
    assert len(n_of_shown) > 1, "no label is shown more often than another"


def test_items_that_only_calibrations_read_are_not_asked_and_change_no_value_and_results_with_them_are_refused(
    dataset: Path, tmp_path: Path
) -> None:
    # A result that also has these items, as results in words had before.
    plan = Plan(select(dataset, read_manifest(dataset), "tasks"), TASK, TASK.prompts[PROMPT])
    backend = open_backend("baseline", "uniform", BackendOptions())
    before = run(plan, backend, RunOptions(root=tmp_path / "before", command="tests"))
    asked = ("-m", "evaluators", "run", "--dataset", dataset, "--limit", "0", "--backend", "baseline")
    uniform = ("--model", "uniform", "--prompt", PROMPT)
    output_of(*asked, *uniform, "--out", tmp_path / "now")
    (path,) = (tmp_path / "now").rglob("result.json")
    assert told(path)["signature"]["splits"] == ["test", "bias"]
    now, then = (told(one)["metrics"] for one in (path, before.folder / "result.json"))
    assert [one for one in now if not one["group"]] == [one for one in then if not one["group"]]
    told_why = output_of(*asked, *uniform, "--out", tmp_path, "--split", "pool", status=1)
    assert f"--split pool: no measure reads it with prompt '{PROMPT}'; leave it out" in told_why
    known = open_book(tmp_path, dataset.parent).find(before.result.signature, Memory(None))
    with pytest.raises(DataError, match="items of split pool and content_free, which are not asked under prompt"):
        KeyCheck("before", before.result.signature, known)
