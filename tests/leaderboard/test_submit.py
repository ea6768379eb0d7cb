"""Handing results in, and what maintainers enter about them."""

from __future__ import annotations

import datetime
import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from tests.commands import run
from tests.fake_hub import READER, serving, variables
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, make_records, make_result, write_model, write_result

CONTACT, CARD = ("--contact", "bot@example.org"), ("--model-card", "https://example.org/card")
TOLD = (*CONTACT, *CARD)
TO_HUB = (*TOLD, "--repo", "acme/results")
FILES = ("result.json", "records.parquet", "submission.json")


class Places(NamedTuple):
    """A folder with keys, runs and room for results."""

    root: Path
    run: Path

    @property
    def results(self) -> Path:
        return self.root / "leaderboard" / "results"

    def call(self, *arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
        return run("-W", "error", "-m", "leaderboard", *arguments, cwd=self.root, **more)

    def submitted(self) -> Path:
        """The folder of the only result that was submitted."""
        (folder,) = (path.parent for path in self.results.rglob("result.json"))
        return folder


@pytest.fixture
def places(tmp_path: Path) -> Places:
    path = write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5), endpoint="api")
    write_keys(tmp_path / "leaderboard" / "keys", tmp_path / "runs")
    (path.parent / "responses.sqlite").write_bytes(b"private")
    (path.parent / ".lock").touch()
    return Places(tmp_path, path.parent)


@pytest.mark.slow
def test_a_run_is_handed_in_without_what_does_not_belong(places: Places) -> None:
    dry = places.call("submit", places.run, *TOLD, "--dry-run", status=0).stdout
    assert "nothing was written" in dry
    assert not places.results.exists()
    places.call("submit", places.run, *TOLD, "--train-data-disclosure", "not on it", status=0)
    folder = places.submitted()
    assert folder.relative_to(places.results).parts[:2] == ("synthbias@9.0.0", "acme__small")
    assert f"{places.run} -> {folder.relative_to(places.results)}" in dry
    assert {path.name for path in folder.iterdir()} == {*FILES}
    for name in FILES[:2]:
        assert (folder / name).read_bytes() == (places.run / name).read_bytes()
    told = json.loads((folder / "submission.json").read_text())
    assert (told["contact"], told["train_data_disclosure"]) == ("bot@example.org", "not on it")
    assert told["result_sha256"] == sha256_file(places.run / "result.json")
    places.call("submit", places.run, *TOLD, status=0)
    places.call("verify", places.results, status=2)
    (folder / "submission.json").write_text(json.dumps(told | {"result_sha256": "0" * 64}))
    rejected = places.call("verify", places.results, status=1)
    assert "is about another result.json than the one beside it" in rejected.stdout


@pytest.mark.slow
def test_limited_runs_are_left_out(places: Places) -> None:
    few, records = places.run.parent.with_name("acme__few") / "type2", make_records(leaning(1.0, 0.5))[:40]
    write_result(few, make_result(records, "acme/few", endpoint="api"), records)
    done = places.call("submit", places.root / "runs", *TOLD, status=0)
    assert f"left out: {few} asked only some items, and gets no rank" in done.stderr
    assert places.submitted().parent.name == "acme__small"
    alone = places.call("submit", few, *TOLD, status=1)
    assert alone.stderr.splitlines()[-1].startswith("error: each run asked only some items; ask all of them")


@pytest.mark.slow
def test_runs_of_which_nothing_was_read_are_left_out(places: Places) -> None:
    unread, records = places.run.parent.with_name("acme__mute") / "type2", make_records(lambda *_: None)
    write_result(unread, make_result(records, "acme/mute", endpoint="api"), records)
    done = places.call("submit", places.root / "runs", *TOLD, status=0)
    assert f"left out: {unread}: none of its answers could be read, so that it has no value" in done.stderr
    assert places.submitted().parent.name == "acme__small"
    alone = places.call("submit", unread, *TOLD, status=1)
    assert alone.stderr.splitlines()[-1] == "error: none of the answers could be read; try another prompt"


@pytest.mark.slow
def test_what_cannot_be_submitted_is_named_and_nothing_is_written(places: Places) -> None:
    for options, said in (
        (("--contact", "x", *CARD), "--contact x: give an address or account"),
        ((*CONTACT, "--model-card", "javascript:alert(1)"), "--model-card javascript:alert(1): give the https address"),
        ((*TOLD, "--train-data-disclosure", ""), "--train-data-disclosure : give 1 to 2,000 characters"),
    ):
        # Before anything is looked at.
        assert f"error: {said}" in places.call("submit", places.root / "none", *options, status=1).stderr
    absent = places.call("submit", places.root / "none", *TOLD, status=1).stderr
    assert "none: no such file or folder; name that of a finished run" in absent
    result = json.loads((places.run / "result.json").read_text())
    result["metrics"][0]["value"] = 0.123
    (places.run / "result.json").write_text(json.dumps(result))
    assert "would be rejected: " in places.call("submit", places.run, *TOLD, status=1).stderr
    assert not places.results.exists()
    write_model(places.root / "runs", "acme/large", leaning(2.0, 0.2), endpoint="api")
    write_keys(places.root / "leaderboard" / "keys", places.root / "runs")
    beside = places.call("submit", places.root / "runs", *TOLD, status=0)
    assert f"left out: {places.run}: would be rejected: " in beside.stderr
    assert places.submitted().parent.name == "acme__large"


@pytest.mark.slow
def test_one_pull_request_on_the_hub_holds_exactly_the_written_files(places: Places) -> None:
    runs = [places.run, write_model(places.root / "runs", "acme/large", leaning(2.0, 0.2), endpoint="api").parent]
    write_keys(places.root / "leaderboard" / "keys", places.root / "runs")
    with serving() as hub:
        repository = hub.new("acme/results", {"theirs.md": b"kept"})
        told = variables(hub, places.root / "home", READER)
        submit = partial(run, "-m", "leaderboard", "submit", cwd=places.root, **told)
        told_of = submit(*runs, *TO_HUB, status=0).stdout
        assert f"opened {hub.address}/datasets/acme/results/discussions/1" in told_of
        shown = [line.split(" -> ") for line in told_of.splitlines() if " -> " in line]
        assert [handed_in for handed_in, _ in shown] == [*map(str, runs)]
        assert all(f"wrote leaderboard/results/{place}" in told_of for _, place in shown)
        proposed = repository.commits[repository.pull_requests[1]]
        assert proposed.files["theirs.md"] == b"kept"
        ours = {name for name in proposed.files if name.startswith("synthbias")}
        assert ours == {f"{place}/{name}" for _, place in shown for name in FILES}
        assert proposed.title == "Submit acme/large, acme/small"
        missing = submit(places.run, *TO_HUB[:-1], "acme/none", status=1)
        assert "error: --repo acme/none: does not exist, or the token may not see it" in missing.stderr


def test_another_result_in_the_same_place_is_not_overwritten(places: Places) -> None:
    target = hand_in(places.run, places.results)
    assert json.loads((target / "submission.json").read_text())["submitted"] == datetime.date.today().isoformat()
    (target / "result.json").write_text("{}")
    with pytest.raises(DataError, match="another result of this model lies here"):
        hand_in(places.run, places.results)


@pytest.mark.slow
def test_the_register_keeps_dates_owners_and_decisions(places: Places) -> None:
    place = hand_in(places.run, places.results).relative_to(places.results).as_posix()

    def entered(*options: str) -> dict[str, Any]:
        places.call("accept", place, *options, status=0)
        (entry,) = json.loads((places.results / "register.json").read_text())["results"]
        return dict(entry)

    assert "name its --owner" in places.call("accept", place).stderr
    assert "decided" not in entered("--owner", "acme-bot")
    assert "--reason belongs to" in places.call("accept", place, "--decision", "withdrawn").stderr
    entry = entered("--decision", "withdrawn", "--reason", "wrong tokenizer")
    assert (entry["place"], entry["owner"], entry["decision"]) == (place, "acme-bot", "withdrawn")
    assert entry["decided"] >= entry["accepted"]
    assert "no such file" in places.call("accept", "nowhere", "--owner", "x").stderr
    places.call("verify", places.results, "--author", "acme-bot", status=2)
    by_other = places.call("verify", places.results, "--author", "somebody", status=1)
    assert "results of acme/small belong to acme-bot, and the author is somebody" in by_other.stdout
