"""The command ``export``: what it exports, what it refuses, and the evaluation results of the Hub."""

from __future__ import annotations

import datetime
import json
import shutil
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest
import yaml

from leaderboard.pages.addresses import permalink
from leaderboard.pages.rendering import generate, make_view
from leaderboard.ranking.boards import assemble
from leaderboard.result_format import VerifiedResult, load_format
from leaderboard.verify.entries import Root
from schemas.folders.run_folder import find_runs, read_result
from tests.leaderboard.exporting import export
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known, write_keys
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.leaderboard.test_submit import Places
from tests.leaderboard.test_submit import places as board  # noqa: F401

HUB = ("hub-results", "--dataset-repo", "acme/made")
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A good model on both configs, and a coin toss; with keys beside them."""
    for ambiguous in (False, True):
        write_model(tmp_path / "runs", "acme/good", leaning(2.0, 0.5), ambiguous=ambiguous)
    write_model(tmp_path / "runs", "acme/coin", uniform)
    write_keys(tmp_path / "keys", tmp_path / "runs")
    return tmp_path / "runs"


@pytest.mark.slow
def test_the_hub_gets_one_value_for_each_config(runs: Path, tmp_path: Path) -> None:
    options = ("--dataset-revision", SHA, "--site-address", "https://board.example", "--out", tmp_path / "o")
    good = runs / "synthbias@9.0.0" / "acme__good" / "type2"
    done = export(*HUB, good, *options, "--keys", runs.parent / "keys")
    assert done.returncode == 0, done.stderr
    path = tmp_path / "o" / "acme__good" / ".eval_results" / "synthbias.yaml"
    assert done.stdout == f"wrote {path}\n"
    entries = huggingface_hub.parse_eval_result_entries(yaml.safe_load(path.read_text()))
    assert [entry.task_id for entry in entries] == ["type2"]
    for entry in entries:
        folder = runs / "synthbias@9.0.0" / "acme__good" / entry.task_id
        metrics = json.loads((folder / "result.json").read_text())["metrics"]
        (worst,) = (metric for metric in metrics if metric["name"] == "worst_group_accuracy" and not metric["group"])
        assert entry.value == worst["value"]
        assert (entry.dataset_id, entry.dataset_revision, entry.date) == ("acme/made", SHA, None)
        assert str(entry.source_url).startswith("https://board.example/models/acme__good/synthbias-")
        low, high = worst["interval"]["low"], worst["interval"]["high"]
        assert entry.notes is not None
        assert f"[{low:.4f}, {high:.4f}]" in entry.notes
        assert f"n = {worst['n']} {worst['unit']}" in entry.notes
        assert "scoring option_logprob, sum, prompt intrinsic-v1" in entry.notes
    before = path.read_bytes()
    export(*HUB, good, *options, "--keys", runs.parent / "keys")
    assert path.read_bytes() == before


@pytest.mark.slow
def test_the_hub_gets_nothing_that_the_board_would_not_rank(runs: Path, tmp_path: Path) -> None:
    write_model(runs, "flat", leaning(2.0, 0.5))
    write_model(runs, "baseline/uniform", uniform, endpoint="baseline")
    done = export(*HUB, runs, "--out", tmp_path / "o", "--keys", runs.parent / "keys")
    assert done.returncode == 1
    lines = sorted(
        line.rpartition("synthbias@9.0.0/")[2] for line in done.stderr.splitlines() if "not exported:" in line
    )
    assert len(lines) == 4
    assert lines[0].startswith("acme__coin/type2: has no rank: accuracy 0.500 is no better than the baseline")
    assert lines[1].startswith("acme__good/type1: worst_group_accuracy has no value: the items have no right answer")
    assert lines[2].startswith("baseline__uniform/type2: has no rank: baselines are shown for comparison")
    assert lines[3].startswith("flat/type2: model 'flat' has no repository on the Hub")
    assert done.stderr.splitlines()[-1] == "4 of 5 results were not exported"
    assert [path.parts[-3] for path in (tmp_path / "o").rglob("*.yaml")] == ["acme__good"]


@pytest.mark.slow
def test_a_config_without_right_answers_has_no_value_to_rank_by(runs: Path, tmp_path: Path) -> None:
    alone = runs / "synthbias@9.0.0" / "acme__good" / "type1"
    done = export(*HUB, alone, "--out", tmp_path / "o", "--keys", runs.parent / "keys")
    assert done.returncode == 1
    assert "worst_group_accuracy has no value: the items have no right answer" in done.stderr
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_the_hub_takes_one_result_for_each_model_and_task(runs: Path, tmp_path: Path) -> None:
    first = runs / "synthbias@9.0.0" / "acme__good" / "type2"
    second = shutil.copytree(first, tmp_path / "second")
    done = export(*HUB, first, second, "--out", tmp_path / "o", "--keys", runs.parent / "keys")
    assert done.returncode == 1
    assert f"not exported: {second}: {first} is of the same model and task" in done.stderr
    assert done.stdout.count("wrote") == 1


@pytest.mark.slow
def test_an_unsound_result_stops_no_other(runs: Path, tmp_path: Path) -> None:
    bad = runs / "synthbias@9.0.0" / "acme__coin" / "type2" / "result.json"
    bad.write_text(bad.read_text().replace('"value": 0.5', '"value": 0.75', 1))
    arguments = ("every-eval-ever", runs, tmp_path / "nowhere", "--out", tmp_path / "o")
    done = export(*arguments, "--keys", runs.parent / "keys")
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("not exported: ")]
    assert lines[0] == f"not exported: {tmp_path / 'nowhere'}: no such folder; name the folder of a finished run"
    assert lines[1].startswith(f"not exported: {bad.parent}: result.json: metric ")
    assert len(lines) == 2
    assert {path.parent.name for path in (tmp_path / "o").rglob("*.json")} == {"good"}


@pytest.mark.slow
def test_items_that_nobody_knows_are_not_exported(runs: Path, tmp_path: Path) -> None:
    done = export("every-eval-ever", runs, "--out", tmp_path / "o", "--keys", tmp_path / "none")
    assert done.returncode == 1
    assert done.stderr.count("the board has no answer key of synthbias@9.0.0") == 3
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_a_submission_gives_dates_and_a_withdrawal_stops_the_export(board: Places) -> None:  # noqa: F811
    done = board.call("submit", board.run, "--contact", "a@b.example", "--model-card", "https://example.org/card")
    assert done.returncode == 0, done.stderr
    (path,) = board.results.rglob("result.json")
    place = path.parent.relative_to(board.results).as_posix()
    board.call("accept", place, "--owner", "acme")
    done = export("every-eval-ever", "leaderboard/results", "--out", "out", folder=board.root)
    assert done.returncode == 0, done.stderr
    (written,) = (board.root / "out").rglob("*.json")
    log = json.loads(written.read_text())
    told = json.loads(path.with_name("submission.json").read_text())
    seconds = int(log["evaluation_timestamp"])
    assert seconds % 86_400 == 0
    assert told["run_date"] == datetime.date.fromordinal(719_163 + seconds // 86_400).isoformat()
    assert log["source_metadata"]["additional_details"]["origin"] == "accepted"
    assert log["source_metadata"]["additional_details"]["model_card"] == "https://example.org/card"
    board.call("accept", place, "--decision", "withdrawn", "--reason", "wrong template")
    done = export("every-eval-ever", path.parent, "--out", "out2", folder=board.root)
    assert done.returncode == 1
    assert "wrong template" in done.stderr
    assert not (board.root / "out2").exists()


@pytest.mark.slow
def test_the_permalink_leads_to_the_result_on_the_site(runs: Path) -> None:
    entry = load_known(Root(runs, "local")).entries[0]
    signature = replace(entry.result.signature, splits=("test", "train"))
    several = replace(entry, result=replace(entry.result, signature=signature))
    one = VerifiedResult(
        entry=several,
        folder=runs,
        result_sha256=SHA,
        page="",
        dataset_sha256=SHA,
        manifest=None,
        submission=None,
        withheld=None,
    )
    assert "one config and one split" in load_format("hub-results").refused([one])[runs]
    files = generate(make_view(assemble(load_known(Root(runs, "local")).entries), (), ()), {})
    for run in find_runs(runs):
        page, _, anchor = permalink(read_result(run)).partition("#")
        assert not anchor or f'<tr id="{anchor}">' in files[page.replace(".html", ".md")]
        assert page.replace(".html", ".md") in files


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("parquet", "."), "format 'parquet' does not exist; have: every-eval-ever, hub-results"),
        (("hub-results", "."), "name its repository with --dataset-repo ORG/NAME"),
        (("hub-results", ".", "--dataset-repo", "made"), "--dataset-repo made: is no id of a repository"),
        ((*HUB, ".", "--dataset-revision", "main"), "--dataset-revision main: is no commit"),
        (("every-eval-ever", ".", "--dataset-revision", SHA), "name that with --dataset-repo"),
        (("every-eval-ever", ".", "--site-address", "board"), "--site-address board: is no address of a site"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_read(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = export(*arguments, "--out", tmp_path / "o")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert said in done.stderr


@pytest.mark.slow
def test_one_repository_is_of_one_dataset(runs: Path, tmp_path: Path) -> None:
    write_gifi_model(tmp_path / "gifi", "lab/even", 0.5, tasks=("recognition",))
    write_keys(tmp_path / "keys", tmp_path / "gifi")
    done = export(*HUB, runs, tmp_path / "gifi", "--out", tmp_path / "o", "--keys", tmp_path / "keys")
    assert done.returncode == 1
    assert "--dataset-repo acme/made: is one dataset, and the results are of gifi@1.0.0, synthbias@9.0.0" in done.stderr
