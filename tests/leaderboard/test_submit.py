"""Handing results in, and what maintainers enter about them."""

from __future__ import annotations

import datetime
import json
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from tests.commands import run
from tests.fake_hub import READER, FakeHub, Fault, serving, variables
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, make_records, make_result, write_model, write_result

TOLD = ("--contact", "bot@example.org", "--model-card", "https://example.org/card")


class Places(NamedTuple):
    """A folder with keys, runs and room for results."""

    root: Path
    run: Path

    @property
    def results(self) -> Path:
        return self.root / "leaderboard" / "results"

    def call(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return run("-W", "error", "-m", "leaderboard", *arguments, cwd=self.root)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    path = write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5), endpoint="api")
    write_keys(tmp_path / "leaderboard" / "keys", tmp_path / "runs")
    (path.parent / "responses.sqlite").write_bytes(b"private")
    (path.parent / ".lock").touch()
    return Places(tmp_path, path.parent)


@pytest.mark.slow
def test_a_run_is_handed_in_without_what_does_not_belong(places: Places) -> None:
    dry = places.call("submit", places.run, *TOLD, "--dry-run")
    assert dry.returncode == 0
    assert "nothing was written" in dry.stdout
    assert not places.results.exists()
    done = places.call("submit", places.run, *TOLD, "--train-data-disclosure", "not trained on it", "--pr", "git")
    assert done.returncode == 0, done.stderr
    (folder,) = (path.parent for path in places.results.rglob("result.json"))
    assert folder.relative_to(places.results).parts[:2] == ("synthbias@9.0.0", "acme__small")
    assert f"{places.run} -> {folder.relative_to(places.results)}" in dry.stdout
    assert {path.name for path in folder.iterdir()} == {"result.json", "records.parquet", "submission.json"}
    for name in ("result.json", "records.parquet"):
        assert (folder / name).read_bytes() == (places.run / name).read_bytes()
    told = json.loads((folder / "submission.json").read_text())
    assert (told["contact"], told["train_data_disclosure"]) == ("bot@example.org", "not trained on it")
    assert told["result_sha256"] == sha256_file(places.run / "result.json")
    assert f"git add {folder.relative_to(places.root)}" in done.stdout
    again = places.call("submit", places.run, *TOLD)
    assert again.returncode == 0
    verified = places.call("verify", places.results)
    assert verified.returncode == 2
    assert "no problems" in run("-m", "schemas.validate", places.results, status=0).stderr


@pytest.mark.slow
def test_limited_runs_are_left_out(places: Places) -> None:
    few, records = places.run.parent.with_name("acme__few") / "type2", make_records(leaning(1.0, 0.5))[:40]
    write_result(few, make_result(records, "acme/few", endpoint="api"), records)
    done = places.call("submit", places.root / "runs", *TOLD)
    assert done.returncode == 0, done.stderr
    assert f"left out: {few} asked only some items, and gets no rank" in done.stderr
    (folder,) = (path.parent for path in places.results.rglob("result.json"))
    assert folder.parent.name == "acme__small"
    alone = places.call("submit", few, *TOLD)
    assert alone.returncode == 1
    assert alone.stderr.splitlines()[-1].startswith("error: each run asked only some items; ask all, without --quick")


def test_a_branch_of_git_needs_a_clone(places: Places, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = run("-m", "leaderboard", "submit", places.run, *TOLD, "--pr", "git", cwd=elsewhere, status=1)
    assert done.stderr.startswith("error: --pr git: no leaderboard/results here; run in a clone of the board")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.slow
def test_what_would_be_rejected_is_not_handed_in(places: Places) -> None:
    result = json.loads((places.run / "result.json").read_text())
    result["metrics"][0]["value"] = 0.123
    (places.run / "result.json").write_text(json.dumps(result))
    done = places.call("submit", places.run, *TOLD)
    assert done.returncode == 1
    assert "would be rejected: " in done.stderr
    assert not places.results.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--contact", "x", "--model-card", "https://example.org/card"), "contact"),
        (("--contact", "bot@example.org", "--model-card", "javascript:alert(1)"), "model_card"),
        ((*TOLD, "--pr", "hub"), "--pr hub needs --repo"),
        ((*TOLD, "--repo", "acme/results"), "--pr hub needs --repo"),
    ],
)
def test_words_that_cannot_be_published_are_refused(places: Places, options: tuple[str, ...], said: str) -> None:
    done = places.call("submit", places.run, *options)
    assert done.returncode == 1
    assert said in done.stderr
    assert not places.results.exists()


@pytest.mark.slow
def test_all_missing_options_are_named_at_once(places: Places) -> None:
    done = places.call("submit", places.run)
    assert done.returncode == 2
    assert "Missing options '--contact', '--model-card'." in done.stderr
    done = places.call("submit", "--contact", "bot@example.org")
    assert (done.returncode, "Missing arguments and options 'RUN', '--model-card'." in done.stderr) == (2, True)
    done = places.call("submit", places.run, "--contact", "bot@example.org")
    assert (done.returncode, "Missing option '--model-card'." in done.stderr) == (2, True)


@pytest.mark.slow
def test_a_pull_request_on_the_hub_holds_exactly_the_written_files(places: Places) -> None:
    with serving() as hub:
        repository = hub.new("acme/results", {"theirs.md": b"kept"})
        hub.faults["commit"].append(Fault(500, after=True))
        told, words = variables(hub, places.root / "home", READER), ("--pr", "hub", "--repo", "acme/results")
        run("-m", "leaderboard", "submit", places.run, *TOLD, *words, cwd=places.root, status=3, **told)
        done = run("-m", "leaderboard", "submit", places.run, *TOLD, *words, cwd=places.root, status=0, **told)
        # The Hub failed after it had opened the pull request, and no second one was made.
        assert f"is open already: {hub.address}/datasets/acme/results/discussions/1" in done.stdout
        assert list(repository.pull_requests) == [1]
        missing = run(
            "-m", "leaderboard", "submit", places.run, *TOLD, *words[:3], "acme/none", cwd=places.root, **told
        )
        assert missing.returncode == 1
        assert "error: --repo acme/none: does not exist, or the token may not see it" in missing.stderr
    proposed = repository.commits[repository.pull_requests[1]].files
    assert {name for name in proposed if name.startswith("synthbias")} == {
        path.relative_to(places.results).as_posix()
        for path in places.results.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    assert proposed["theirs.md"] == b"kept"


@pytest.mark.slow
def test_one_pull_request_names_its_models_and_is_found_on_another_day(places: Places) -> None:
    runs = [places.run]
    for name in ("acme/large", "acme/medium", "acme/other"):
        runs.append(write_model(places.root / "runs", name, leaning(2.0, 0.2), endpoint="api").parent)
    write_keys(places.root / "leaderboard" / "keys", places.root / "runs")

    def submit(hub: FakeHub, *runs: Path) -> str:
        words = (*TOLD, "--pr", "hub", "--repo", "acme/results")
        told = variables(hub, places.root / "home", READER)
        return run("-m", "leaderboard", "submit", *runs, *words, cwd=places.root, status=0, **told).stdout

    with serving() as hub:
        repository = hub.new("acme/results")
        first = submit(hub, *runs[:2])
        shown = [line.split(" -> ") for line in first.splitlines() if " -> " in line]
        assert [handed_in for handed_in, _ in shown] == [str(run) for run in runs[:2]]
        assert all(f"wrote leaderboard/results/{place}" in first for _, place in shown)
        address = f"{hub.address}/datasets/acme/results/discussions/1"
        assert f"opened {address}" in first
        proposed = repository.commits[repository.pull_requests[1]]
        names = ("result.json", "records.parquet", "submission.json")
        assert {f"{place}/{name}" for _, place in shown for name in names} <= proposed.files.keys()
        # As if it had been called on an earlier day, before somebody else committed.
        for name in [name for name in proposed.files if name.endswith("submission.json")]:
            told = json.loads(proposed.files[name])
            proposed.files[name] = json.dumps(told | {"submitted": "2026-01-02"}).encode()
        repository.add("theirs", repository.commits[repository.head].files | {"theirs.md": b"new"})
        assert f"is open already: {address}" in submit(hub, *runs[:2])
        submit(hub, *runs)
        titles = [repository.commits[oid].title for oid in repository.pull_requests.values()]
    assert titles == ["Submit acme/large, acme/small", "Submit 4 models"]
    done = places.call("submit", *runs, *TOLD, "--pr", "git")
    assert "git commit --message 'Submit 4 models'" in done.stdout
    assert "git switch --create submit-4-models-" in done.stdout


def test_another_result_in_the_same_place_is_not_overwritten(places: Places) -> None:
    target = hand_in(places.run, places.results)
    assert json.loads((target / "submission.json").read_text())["submitted"] == datetime.date.today().isoformat()
    (target / "result.json").write_text("{}")
    with pytest.raises(DataError, match="another result of this model lies here"):
        hand_in(places.run, places.results)


@pytest.mark.slow
def test_a_statement_about_another_result_is_rejected(places: Places) -> None:
    assert places.call("submit", places.run, *TOLD).returncode == 0
    (statement,) = places.results.rglob("submission.json")
    told = json.loads(statement.read_text())
    statement.write_text(json.dumps(told | {"result_sha256": "0" * 64}))
    done = places.call("verify", places.results)
    assert done.returncode == 1
    assert "is about another result.json than the one beside it" in done.stdout


@pytest.mark.slow
def test_the_register_keeps_dates_owners_and_decisions(places: Places) -> None:
    assert places.call("submit", places.run, *TOLD).returncode == 0
    (folder,) = (path.parent for path in places.results.rglob("result.json"))
    place = folder.relative_to(places.results).as_posix()
    assert "name its --owner" in places.call("accept", place).stderr
    assert places.call("accept", place, "--owner", "acme-bot").returncode == 0
    (entry,) = json.loads((places.results / "register.json").read_text())["results"]
    assert "decided" not in entry
    assert "--reason belongs to" in places.call("accept", place, "--decision", "withdrawn").stderr
    withdrawn = ("--decision", "withdrawn", "--reason", "wrong tokenizer")
    assert places.call("accept", place, *withdrawn).returncode == 0
    (entry,) = json.loads((places.results / "register.json").read_text())["results"]
    assert (entry["place"], entry["owner"], entry["decision"]) == (place, "acme-bot", "withdrawn")
    assert entry["decided"] >= entry["accepted"]
    assert "no such file" in places.call("accept", "nowhere", "--owner", "x").stderr
    by_owner = places.call("verify", places.results, "--author", "acme-bot")
    assert by_owner.returncode == 2
    by_other = places.call("verify", places.results, "--author", "somebody")
    assert by_other.returncode == 1
    assert "results of acme/small belong to acme-bot, and the author is somebody" in by_other.stdout
