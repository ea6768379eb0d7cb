"""Runs as inputs of reweight: one config, chosen splits, and any task with a distribution over its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.folders.run_folder import find_runs, read_run
from tests.evaluators.commands.made_shares import error, measured, read_csv, said
from tests.evaluators.label_data import made_dataset
from tests.evaluators.made_data import made_items, write_dataset
from tests.suites.commands import ask, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A model with planted answers, without examples and after one set of two."""
    folder = tmp_path_factory.mktemp("tasks")
    prompts = ("--prompt", "release-4096b-k0-v1", "--prompt", "release-4096b-k2-set0-v1")
    ask(
        made_dataset(folder / "tasks", ("two", "three", "letters")),
        folder / "runs",
        "--limit",
        "0",
        *prompts,
        PLANTED_LOG=folder / "log",
    )
    return find_runs(folder / "runs")


def test_the_accuracies_are_those_of_a_plain_loop_over_the_records(runs: list[Path], tmp_path: Path) -> None:
    right: dict[str, list[bool]] = {}
    for one in read_run(runs[0]).records:
        # Some items of this config do not offer all labels.
        if one.config == "letters" and one.split in ("pool", "bias") and one.reading is not None:
            assert one.target is not None
            shares = dict(zip(one.reading.outcomes, one.reading.probabilities, strict=True))
            first = min(name for name, share in shares.items() if share == max(shares.values()))
            right.setdefault(one.target, []).append(first == one.target)
    choice = ("--config", "letters", "--split", "pool", "--split", "bias")
    (found,) = measured(tmp_path, "evaluate", runs[0], *choice).values()
    assert {one["name"]: int(one["n_rows"]) for one in found.classes} == {
        label: len(each) for label, each in right.items()
    }
    assert {one["name"]: float(one["value"]) for one in found.classes} == pytest.approx(
        {label: sum(each) / len(each) for label, each in right.items()}
    )


def test_rules_are_fitted_on_some_splits_and_measured_on_others(runs: list[Path], tmp_path: Path) -> None:
    rules, chosen = tmp_path / "rules.json", ("--config", "three")
    said("fit", runs[0], *chosen, "--split", "pool", "--split", "bias", "--out", rules)
    *_, tested_on = measured(tmp_path, "evaluate", runs[0], *chosen, "--split", "test", "--rules", rules).values()
    said("apply", runs[0], *chosen, "--rules", rules, "--out", tmp_path / "out.csv")
    rows = read_csv(tmp_path / "out.csv")
    assert [row["item_id"] for row in rows] == [
        one.item_id for one in read_run(runs[0]).records if one.config == "three"
    ]
    tested = [row for row in rows if row["split"] == "test"]
    by_class = {one["name"]: int(one["n_predicted"]) for one in tested_on.classes}
    assert by_class == {name: sum(row["predicted"] == name for row in tested) for name in by_class}


def test_items_that_the_prompt_shows_are_left_out_and_counted(runs: list[Path]) -> None:
    by_prompt = {}
    for folder in runs:
        records = [one for one in read_run(folder).records if one.config == "two" and one.split == "pool"]
        shown = {one.item_id for one in records if "shown_place" in one.groups}
        note = f"{len(shown)} records of items that the model was shown or trained on with labels are left out"
        told = said("evaluate", folder, "--config", "two", "--split", "pool")
        assert (note in told) == bool(shown)
        assert f"{len(records) - len(shown)} rows" in told
        by_prompt[folder] = len(shown)
    assert sorted(by_prompt.values()) == [0, 2]


def test_a_choice_that_a_run_lacks_is_told_and_records_without_a_right_answer_are_left_out(runs: list[Path]) -> None:
    assert "13 records without a right answer are left out" in said("evaluate", runs[0], "--config", "two")
    for options, message in (
        ((), "configs; name one with --config: two, three"),
        (("--config", "x"), "--config x: the run has no such config; have: two, three"),
        (("--config", "two", "--split", "x"), "--split x: config 'two' has no such split; have: test, bias, pool"),
        (("--config", "two", "--classes", "yes,maybe"), "outcome 'no' is no class; have: yes, maybe"),
        (("--config", "two", "--split", "content_free"), "none of 13 records has a right answer; choose other splits"),
    ):
        assert message in error("evaluate", runs[0], *options)
    assert f"holds 2 runs; name one: {runs[0]}" in error("evaluate", runs[0].parent)


def test_a_run_of_another_task_is_read_alike(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(10)})
    asked = ("--backend", "baseline", "--model", "stereotype", "--out", tmp_path / "runs")
    run("-m", "evaluators", "run", "--dataset", dataset, *asked)
    (folder,) = find_runs(tmp_path / "runs")
    records = read_run(folder).records
    (found,) = measured(tmp_path, "evaluate", folder).values()
    assert sum(int(one["n_rows"]) for one in found.classes) == len(records)
    outcomes = {name for one in records for name in (one.reading.outcomes if one.reading else ())}
    assert {one["name"] for one in found.classes} == outcomes
