"""Results that store metrics under the names that they had before: verified, told, rescored, and made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground import strict_json
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.metric import MetricName
from evaluators.runs.measure.measuring import metric_definitions, present_names, retired_names
from evaluators.runs.measure.rescoring import rescore
from evaluators.runs.measure.stored_results import measured_by_sums, sums_of, write_without_texts
from leaderboard.verify.comparisons import CompleteRuns
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.loading import load
from leaderboard.verify.verdicts import judge
from schemas.documents.result import Metric, Result
from schemas.documents.run_files import ClusterSums
from schemas.files import contract, row_files
from schemas.folders.run_folder import StoredParts, read_result
from schemas.outputs.documents import Verdict
from tests.evaluators.label_data import made_dataset
from tests.suites.commands import ask

TASK = "classification"
FORMER = {
    MetricName(definition.name, definition.version): definition.formerly
    for definition in metric_definitions(TASK)
    if definition.formerly is not None
}
"""Former names of the metrics that were renamed, by their present ones."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of two tasks, and the run of a planted model on both as it was stored before."""
    folder = tmp_path_factory.mktemp("renamed")
    dataset = made_dataset(folder / "datasets" / "tasks", ("two", "letters"))
    ask(dataset, folder / "runs", "--limit", "0", "--prompt", "release-4096b-k8-set0-v1")
    (found,) = (path.parent for path in (folder / "runs").rglob("result.json"))
    change(found, as_stored_before)
    return folder


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    (found,) = (path.parent for path in (root / "runs").rglob("result.json"))
    return Path(shutil.copytree(found, tmp_path / "runs" / found.name))


def named(metric: Metric, name: MetricName | None) -> Metric:
    return metric if name is None else replace(metric, name=name.name, version=name.version)


def as_stored_before(metrics: Iterable[Metric]) -> list[Metric]:
    return [named(metric, FORMER.get(MetricName(metric.name, metric.version))) for metric in metrics]


def with_retired(**fields: object) -> Callable[[Iterable[Metric]], list[Metric]]:
    """A change of the metric of a retired name on all items."""
    return lambda metrics: [
        replace(one, **fields) if one.name == "gini_paper" and not one.group else one  # type: ignore[arg-type]
        for one in metrics
    ]


def change(folder: Path, how: Callable[[Iterable[Metric]], Iterable[Metric]]) -> None:
    result = read_result(folder)
    strict_json.write(folder / "result.json", contract.dump(replace(result, metrics=tuple(how(result.metrics)))))


def book(root: Path) -> KeyBook:
    return KeyBook(None, root / "datasets")


def judged(folder: Path, root: Path) -> Verdict:
    (verdict,) = judge([folder], book(root), Memory(None), advance=lambda n_done, n: None)
    return verdict


def entry_of(folder: Path, root: Path, memory: Memory) -> Entry:
    (entry,) = load([Root(folder, "local")], book(root), memory).entries
    return entry


def about_metrics(verdict: Verdict) -> list[str]:
    return [warning for warning in verdict.warnings if "metrics" in warning]


def test_a_name_is_retired_where_nothing_has_it_now() -> None:
    retired = retired_names(TASK)
    assert {"gini_paper", "gini_paper_floor", "gini_paper_gini"} <= retired
    assert not retired & {definition.name for definition in metric_definitions(TASK)}
    assert retired_names("coreference") == frozenset()


def test_two_metrics_that_traded_a_name_are_told_apart_by_their_versions() -> None:
    paper, squared, other = MetricName("gini_paper", "1.1"), MetricName("gini", "2.1"), MetricName("accuracy", "1.1")
    now = {paper: MetricName("gini", "3.0"), squared: MetricName("squared_cv", "2.1")}
    assert present_names(TASK, (paper, squared, other)) == now
    # A version that nothing is known of keeps the name, and so does what would take it.
    assert present_names(TASK, (paper, MetricName("gini", "2.0"))) == {}
    assert present_names(TASK, (paper, MetricName("gini", "3.0"))) == {}
    # What stays because its present name is taken stays in the way of the next.
    assert present_names(TASK, (paper, squared, MetricName("squared_cv", "9.9"))) == {}
    assert present_names("coreference", (paper, squared)) == {}


@pytest.mark.slow
def test_a_result_with_former_names_is_verified_as_one_with_present_names(root: Path, run: Path) -> None:
    stored = json.loads((run / "result.json").read_text(encoding="utf-8"))["metrics"]
    assert {"gini_paper", "gini_paper_floor", "gini_paper_bc"} <= {metric["name"] for metric in stored}
    assert not any(metric["name"].startswith("squared_cv") for metric in stored)
    verdict = judged(run, root)
    assert (verdict.reason, about_metrics(verdict)) == (None, [])
    memory = Memory(run.parents[1] / "memory")
    for entry in (entry_of(run, root, memory), entry_of(run, root, memory)):
        assert entry.n_recomputed == len(stored)
        assert entry.earlier == ()
        of_file = {(one["name"], one["version"], str(one["group"])): one["value"] for one in stored}
        for name, version, former in (("gini", "3.0", "gini_paper"), ("squared_cv", "2.1", "gini")):
            metric = entry.metric(name)
            assert metric is not None
            assert metric.version == version
            assert metric.value == pytest.approx(of_file[former, {"gini": "2.1"}.get(former, "1.1"), "{}"], abs=1e-12)


@pytest.mark.slow
def test_a_made_up_value_under_a_former_name_is_refused(root: Path, run: Path) -> None:
    change(run, with_retired(value=0.123, interval=None, interval_reason="hidden"))
    assert "metric gini is 0.123, the records give " in str(judged(run, root).reason)


@pytest.mark.slow
def test_another_version_of_a_retired_name_is_told_and_not_compared(root: Path, run: Path) -> None:
    change(
        run,
        lambda metrics: [
            replace(m, version="0.9", value=None, reason="none", interval=None, interval_reason="none")
            if m.name == "gini_paper"
            else m
            for m in metrics
        ],
    )
    verdict = judged(run, root)
    assert verdict.reason is None
    assert about_metrics(verdict) == [
        "metrics that it leaves out were computed from its records: gini",
        "metrics of other versions were computed again: gini_paper 0.9",
    ]


@pytest.mark.slow
def test_a_value_beside_one_of_the_present_name_is_told_and_does_not_hide_it(root: Path, run: Path) -> None:
    def both(metrics: Iterable[Metric]) -> list[Metric]:
        found = list(metrics)
        return found + [named(one, MetricName("gini", "3.0")) for one in found if one.name == "gini_paper"]

    change(run, lambda metrics: [one for one in metrics if one.name != "gini"])
    change(run, both)
    change(run, with_retired(value=0.123, interval=None, interval_reason="hidden"))
    verdict = judged(run, root)
    assert verdict.reason is None
    assert "metrics of other versions were computed again: gini_paper 1.1" in verdict.warnings
    change(run, lambda metrics: [replace(m, n=1) if (m.name, m.group) == ("gini", {}) else m for m in metrics])
    assert "metric gini: n is 1, the records give " in str(judged(run, root).reason)


@pytest.mark.slow
def test_a_name_that_no_metric_ever_had_is_refused(root: Path, run: Path) -> None:
    change(run, lambda metrics: [replace(m, name="gini_article") if m.name == "gini_paper" else m for m in metrics])
    assert "metric gini_article cannot be computed from the records" in str(judged(run, root).reason)


@pytest.mark.slow
def test_scoring_again_changes_names_alone(run: Path) -> None:
    done = rescore(run)
    assert done.changes == ()
    assert {"gini", "squared_cv"} <= {metric.name for metric in done.result.metrics}
    assert not any(metric.name.startswith("gini_paper") for metric in read_result(run).metrics)


@pytest.mark.slow
def test_stored_sums_are_read_under_present_names(root: Path, run: Path, tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    write_without_texts(run, public, with_prompts=False)

    def rewritten(version_of_retired: str | None = None) -> Result:
        result = read_result(public)
        assert result.withheld is not None
        path = public / result.withheld.sums.path
        rows = row_files.read_rows(path, ClusterSums)
        former = [FORMER.get(MetricName(row.metric, row.version)) for row in rows]
        changed = [
            row if name is None else replace(row, metric=name.name, version=name.version)
            for row, name in zip(rows, former, strict=True)
        ]
        if version_of_retired is not None:
            changed = [
                replace(row, version=version_of_retired) if row.metric == "gini_paper" else row for row in changed
            ]
        row_files.write_rows(path, changed, ClusterSums)
        sums = replace(result.withheld.sums, sha256=sha256_file(path))
        made = replace(result, withheld=replace(result.withheld, sums=sums))
        strict_json.write(public / "result.json", contract.dump(made))
        return made

    result = rewritten()
    assert not any(row.metric.startswith("gini_paper") for row in sums_of(public, result))
    found = {
        (one.name, str(one.group)): one.value
        for one in measured_by_sums(public, result, StoredParts(public, result)).metrics()
    }
    known = entry_of(run, root, Memory(None))
    for name in ("gini", "squared_cv", "gini_floor", "gini_gini"):
        assert found[name, "{}"] == pytest.approx(known.metrics[name, ()].value)
    assert CompleteRuns(run.parent, book(root), Memory(None)).problem(public) is None
    older = rewritten("0.9")
    gini = next(m for m in measured_by_sums(public, older, StoredParts(public, older)).metrics() if m.name == "gini")
    assert (gini.value, str(gini.reason)[:25]) == (None, "its sums were not stored,")
