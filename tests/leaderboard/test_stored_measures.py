"""What a run stores of its measures: under names that they had before, and the corrections of calibrated ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.metric import MetricName
from evaluators.runs.measure.measuring import metric_definitions, present_names, retired_names
from evaluators.runs.measure.rescoring import rescore
from evaluators.runs.measure.stored_results import write_without_texts
from leaderboard.verify.comparisons import CompleteRuns
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import load
from schemas.documents.result import Metric
from schemas.documents.run_files import ClusterSums
from schemas.files import row_files
from schemas.folders.run_folder import read_result, write_result
from tests.evaluators.label_data import made_dataset
from tests.leaderboard import forging
from tests.leaderboard.handed_in import hand_in
from tests.suites.commands import ask

TASK = "classification"
FORMER = {
    MetricName(definition.name, definition.version): definition.formerly
    for definition in metric_definitions(TASK)
    if definition.formerly is not None
}
"""Former names of the metrics that were renamed, by their present ones."""
GINI, PAPER = MetricName("gini", "3.0"), MetricName("gini_paper", "1.1")
HIDDEN: dict[str, Any] = {"interval": None, "interval_reason": "hidden"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of two tasks, and the run of a planted model on both."""
    folder = tmp_path_factory.mktemp("measures")
    dataset = made_dataset(folder / "datasets" / "tasks", ("two", "letters"))
    ask(dataset, folder / "runs", "--limit", "0", "--prompt", "release-4096b-k8-set0-v1")
    return folder


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    (found,) = (path.parent for path in (root / "runs").rglob("result.json"))
    return Path(shutil.copytree(found, tmp_path / "runs" / found.name))


@pytest.fixture
def older(run: Path) -> Path:
    """The copy as it was stored before metrics were renamed."""
    change(run, lambda one: named(one, FORMER.get(MetricName(one.name, one.version))))
    return run


@pytest.fixture
def book(root: Path) -> KeyBook:
    return KeyBook(None, root / "datasets")


def named(metric: Metric, name: MetricName | None) -> Metric:
    return metric if name is None else replace(metric, name=name.name, version=name.version)


def change(folder: Path, how: Callable[[Metric], Metric]) -> None:
    result = read_result(folder)
    write_result(folder, replace(result, metrics=tuple(map(how, result.metrics))))


def change_overall(folder: Path, name: str, **fields: Any) -> None:
    """Change the metric of a name on all items."""
    change(folder, lambda one: replace(one, **fields) if one.name == name and not one.group else one)


def entry_of(folder: Path, book: KeyBook, memory: Memory) -> Entry:
    (entry,) = load([Root(folder, "local")], book, memory).entries
    return entry


def test_a_name_is_retired_where_nothing_has_it_now_and_a_traded_one_told_by_its_version() -> None:
    retired = retired_names(TASK)
    assert {"gini_paper", "gini_paper_floor", "gini_paper_gini"} <= retired
    assert not retired & {definition.name for definition in metric_definitions(TASK)}
    assert retired_names("coreference") == frozenset()
    squared, other = MetricName("gini", "2.1"), MetricName("accuracy", "1.1")
    assert present_names(TASK, (PAPER, squared, other)) == {PAPER: GINI, squared: MetricName("squared_cv", "2.1")}
    # A version that nothing is known of keeps the name, and so does what would take it.
    assert present_names(TASK, (PAPER, MetricName("gini", "2.0"))) == {}
    assert present_names(TASK, (PAPER, GINI)) == {}
    # What stays because its present name is taken stays in the way of the next.
    assert present_names(TASK, (PAPER, squared, MetricName("squared_cv", "9.9"))) == {}
    assert present_names("coreference", (PAPER, squared)) == {}


@pytest.mark.slow
def test_a_result_with_former_names_is_verified_and_scored_as_one_of_present_names(older: Path, book: KeyBook) -> None:
    stored = json.loads((older / "result.json").read_text(encoding="utf-8"))["metrics"]
    assert {"gini_paper", "gini_paper_floor", "gini_paper_bc"} <= {metric["name"] for metric in stored}
    assert not any(metric["name"].startswith("squared_cv") for metric in stored)
    verdict = forging.verdict(older, book)
    assert (verdict.reason, [one for one in verdict.warnings if "metrics" in one]) == (None, [])
    memory = Memory(older.parents[1] / "memory")
    of_file = {(one["name"], one["version"], str(one["group"])): one["value"] for one in stored}
    for entry in (entry_of(older, book, memory), entry_of(older, book, memory)):
        assert (entry.n_recomputed, entry.earlier) == (len(stored), ())
        for name, version, former in (("gini", "3.0", PAPER), ("squared_cv", "2.1", MetricName("gini", "2.1"))):
            metric = entry.metric(name)
            assert metric is not None
            assert metric.version == version
            assert metric.value == pytest.approx(of_file[former.name, former.version, "{}"], abs=1e-12)
    done = rescore(older)
    assert done.changes == ()
    assert {"gini", "squared_cv"} <= {metric.name for metric in done.result.metrics}
    assert not any(metric.name.startswith("gini_paper") for metric in read_result(older).metrics)


@pytest.mark.slow
def test_made_up_values_and_names_are_refused(older: Path, book: KeyBook, tmp_path: Path) -> None:
    renamed = Path(shutil.copytree(older, tmp_path / "renamed"))
    change_overall(older, "gini_paper", value=0.123, **HIDDEN)
    assert "metric gini is 0.123, the records give " in forging.reason(older, book)
    change(renamed, lambda one: replace(one, name="gini_article") if one.name == "gini_paper" else one)
    assert "metric gini_article cannot be computed from the records" in forging.reason(renamed, book)


@pytest.mark.slow
def test_a_value_beside_one_of_the_present_name_is_told_and_does_not_hide_it(older: Path, book: KeyBook) -> None:
    result = read_result(older)
    kept = [one for one in result.metrics if one.name != "gini"]
    both = [*kept, *(named(one, GINI) for one in kept if one.name == "gini_paper")]
    write_result(older, replace(result, metrics=tuple(both)))
    change_overall(older, "gini_paper", value=0.123, **HIDDEN)
    verdict = forging.verdict(older, book)
    assert verdict.reason is None
    assert "metrics of other versions were computed again: gini_paper 1.1" in verdict.warnings
    change_overall(older, "gini", n=1)
    assert "metric gini: n is 1, the records give " in forging.reason(older, book)


@pytest.mark.slow
def test_stored_sums_are_read_under_present_names(older: Path, book: KeyBook, tmp_path: Path) -> None:
    (public := tmp_path / "public").mkdir()
    write_without_texts(older, public, with_prompts=False)
    result = read_result(public)
    assert result.withheld is not None
    path, rows = public / result.withheld.sums.path, []
    for row in row_files.read_rows(path, ClusterSums):
        present = MetricName(row.metric, row.version)
        former = FORMER.get(present, present)
        rows.append(replace(row, metric=former.name, version=former.version))
    assert "gini_paper" in {row.metric for row in rows}
    row_files.write_rows(path, rows, ClusterSums)
    sums = replace(result.withheld.sums, sha256=sha256_file(path))
    write_result(public, replace(result, withheld=replace(result.withheld, sums=sums)))
    assert CompleteRuns(older.parent, book, Memory(None)).problem(public) is None


def change_corrections(folder: Path, how: Callable[[Any], object], *, rehash: bool = True) -> None:
    """Change the stored corrections of a result, and its hash of them."""
    path, result = folder / "corrections.json", folder / "result.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    how(value["corrections"])
    path.write_text(json.dumps(value), encoding="utf-8")
    if rehash:
        told = json.loads(result.read_text(encoding="utf-8"))
        told["corrections"]["sha256"] = sha256_file(path)
        result.write_text(json.dumps(told), encoding="utf-8")


def weigh_first_label(weight: float) -> Callable[[Any], None]:
    return lambda corrections: corrections[0]["weights"].__setitem__(0, weight)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "said", "rehash"),
    [
        (weigh_first_label(1e-9), "corrections.json: sha256 ", False),
        (weigh_first_label(1e-9), "_gini is ", True),
        (lambda told: told.pop(0), "no correction gini 1.0 of config two is stored, though others are", True),
    ],
)
def test_a_changed_correction_is_refused(
    book: KeyBook, run: Path, how: Callable[[Any], object], said: str, rehash: bool
) -> None:
    change_corrections(run, how, rehash=rehash)
    assert said in forging.reason(run, book)
    (run / "corrections.json").unlink()
    assert "corrections.json: no such file, though result.json names it" in forging.reason(run, book)


@pytest.mark.slow
def test_other_weights_with_their_metrics_are_refused(book: KeyBook, run: Path) -> None:
    change_corrections(run, weigh_first_label(1e-9))
    assert any("_gini: " in line for line in rescore(run).changes)
    said = forging.reason(run, book)
    assert "corrections.json: a weight of gini of config two differs by the factor " in said
    assert said.endswith("; rescore the run")


@pytest.mark.slow
def test_corrections_are_stored_handed_on_verified_and_fitted_anew(book: KeyBook, run: Path, tmp_path: Path) -> None:
    stored = json.loads((run / "corrections.json").read_text(encoding="utf-8"))["corrections"]
    assert [(one["config"], one["calibration"]) for one in stored] == [("two", "gini"), ("letters", "gini")]
    assert all(one["n_items"] > 20 and max(one["weights"]) == 1.0 for one in stored)
    handed = hand_in(run, tmp_path / "results")
    assert (handed / "corrections.json").read_bytes() == (run / "corrections.json").read_bytes()
    assert [forging.reason(folder, book) for folder in (run, handed)] == ["", ""]
    before = (run / "corrections.json").read_bytes()
    other = rescore(run, normalisation="byte_mean", root=run.parent / "others")
    assert (other.folder / "corrections.json").read_bytes() != before
    assert forging.reason(other.folder, book) == ""
    assert rescore(run).changes == ()
    assert (run / "corrections.json").read_bytes() == before
