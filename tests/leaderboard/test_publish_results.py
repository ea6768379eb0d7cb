"""Results of runs in a repository of a Hub on loopback: verified, beside those of others, and read again from there."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import datasets
import pytest
import yaml

from leaderboard.publish.results_card import card_of
from schemas.folders.run_folder import find_runs, read_result
from tests.commands import run
from tests.fake_hub import FakeHub, Fault, serving, variables
from tests.leaderboard.forging import Places
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, uniform, write_model

REPO = "acme/results"
pytestmark = pytest.mark.slow


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with serving() as hub:
        yield hub


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two models and of a useless predictor, with their keys."""
    root = tmp_path_factory.mktemp("runs")
    write_model(root / "small", "acme/small", leaning(1.0, 0.5), endpoint="api")
    write_model(root / "small", "acme/small", leaning(1.0, 0.5), endpoint="api", ambiguous=True)
    write_model(root / "small", "baseline/uniform", uniform, endpoint="baseline")
    write_model(root / "large", "acme/large", leaning(2.0, 0.2), endpoint="api")
    for runs in ("small", "large"):
        write_keys(root / "leaderboard" / "keys", root / runs)
        for path in find_runs(root / runs):
            (path / "responses.sqlite").write_bytes(b"private")
    return root


def call(
    hub: FakeHub, root: Path, folder: Path | str, *options: str, status: int = 0
) -> subprocess.CompletedProcess[str]:
    told = variables(hub, root / "home")
    done = run("-m", "biasboard", "publish", folder, "--repo", REPO, *options, cwd=root, status=status, **told)
    assert "Traceback" not in done.stderr
    return done


def names(hub: FakeHub) -> set[str]:
    repository = hub.repositories[REPO]
    return set(repository.commits[repository.head].files) - {".gitattributes"}


def text(hub: FakeHub, name: str) -> str:
    repository = hub.repositories[REPO]
    return repository.commits[repository.head].files[name].decode()


def fetched(hub: FakeHub, folder: Path) -> Path:
    repository = hub.repositories[REPO]
    for name, content in repository.commits[repository.head].files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_results_of_several_models_lie_side_by_side(hub: FakeHub, root: Path, tmp_path: Path) -> None:
    done = call(hub, root, "small")
    assert done.stdout.splitlines()[-1] == f"published 2 results of acme/small in {REPO}"
    assert [name.count("/") for name in sorted(names(hub))] == [0, 0, 3, 3, 3, 3]
    assert not {name for name in names(hub) if "baseline" in name or name.endswith(".sqlite")}
    first = names(hub)
    assert "published already: 2 results of acme/small" in call(hub, root, "small").stdout
    done = call(hub, root, "large")
    assert "3 added or changed, 0 deleted" not in done.stdout
    assert first < names(hub)
    assert [commit.title for commit in hub.repositories[REPO].log()][:2] == [
        "1 result of acme/large",
        "2 results of acme/small",
    ]
    # Both commands of the card, and what the viewer of the Hub does.
    folder = fetched(hub, tmp_path / "results")
    assert f"hf download {REPO} --repo-type dataset --local-dir results" in text(hub, "README.md")
    verified = run("-m", "biasboard", "verify", folder, "--format", "json", cwd=root)
    assert {one["state"] for one in json.loads(verified.stdout)["verdicts"]} == {"accepted with warnings"}
    scores = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"), split="test")
    assert set(scores["model"]) == {"acme/small", "acme/large"}


def test_every_number_of_the_card_and_the_table_is_the_result_s(hub: FakeHub, root: Path, tmp_path: Path) -> None:
    call(hub, root, "small")
    call(hub, root, "large")
    folder, card = fetched(hub, tmp_path / "results"), text(hub, "README.md")
    rows = datasets.load_dataset(str(folder), "measures", cache_dir=str(tmp_path / "cache"), split="test")
    assert {row["measure"] for row in rows} >= {"accuracy", "worst_group_accuracy", "ucerf"}
    for row in rows:
        metrics = read_result(folder / row["result"]).metrics
        (metric,) = (one for one in metrics if one.name == row["measure"] and not one.group)
        assert (row["value"], row["reason"], row["ideal"]) == (metric.value, metric.reason, metric.ideal)
        assert (row["low"], row["high"]) == (
            (None, None) if metric.interval is None else (metric.interval.low, metric.interval.high)
        )
        if metric.value is not None:
            (line,) = (line for line in card.splitlines() if line.startswith("| [") and f"/{row['result']})" in line)
            assert f"{abs(metric.value):.3f}" in line
    tables = [line for line in card.splitlines() if line.startswith("| model |")]
    assert len(tables) == 2
    assert "Accuracy" not in min(tables, key=len)  # Ambiguous sentences have no right answer.


def test_a_changed_result_takes_the_place_of_the_old_one_alone(hub: FakeHub, root: Path, tmp_path: Path) -> None:
    call(hub, root, "small")
    repository = hub.repositories[REPO]
    files = dict(repository.commits[repository.head].files)
    (place,) = {name.rpartition("/")[0] for name in files if "/type2" in name}
    others = {"synthbias@9.0.0/acme__other/notes.txt": b"theirs", f"{place}/old.parquet": b"old"}
    others[f"{place}/submission.json"] = b"{}"
    repository.add("others", files | others)
    assert "published already" in call(hub, root, "small").stdout
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.4), endpoint="api")
    lines = call(hub, root, tmp_path / "runs", "--dry-run").stdout.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("  delete")] == [
        ["delete", f"{place}/old.parquet"],
        ["delete", f"{place}/submission.json"],
    ]
    assert [line.split()[1] for line in lines if line.startswith("  change")] == [
        f"{place}/result.json",
        f"{place}/records.parquet",
        "README.md",
        "measures.parquet",
    ]
    call(hub, root, tmp_path / "runs")
    assert names(hub) == (set(files) | {"synthbias@9.0.0/acme__other/notes.txt"}) - {".gitattributes"}


def test_what_people_write_into_the_card_stays(hub: FakeHub, root: Path) -> None:
    hub.new(
        REPO, {"README.md": b"\xef\xbb\xbf---\r\nlicense: cc-by-4.0\r\nversion: 1.10 # ours\r\n---\r\n# Our models\r\n"}
    )
    call(hub, root, "small")
    repository = hub.repositories[REPO]
    edited = text(hub, "README.md") + "\nMore of us.\n"
    repository.add("edit", repository.commits[repository.head].files | {"README.md": edited.encode()})
    call(hub, root, "large")
    card = text(hub, "README.md")
    metadata = card.split("---\n")[1]
    assert metadata.startswith("license: cc-by-4.0\nversion: 1.10 # ours\nconfigs:\n")
    assert yaml.safe_load(metadata)["configs"][0]["config_name"] == "measures"
    assert card.index("# Our models") < card.index("acme/large") < card.index("More of us.")
    assert card.count("<!-- results") == 1
    for damaged in (card.replace("<!-- end of results -->", ""), card + card):
        hub.new(REPO, {"README.md": damaged.encode()})
        assert "README.md there has not both comments around the results" in call(hub, root, "small", status=1).stderr
    hub.new(REPO, {"README.md": card.encode("utf-16")})
    assert "README.md: is not UTF-8" in call(hub, root, "small", status=1).stderr


def test_a_commit_of_somebody_else_in_between_is_in_the_card(hub: FakeHub, root: Path) -> None:
    call(hub, root, "large")
    repository = hub.repositories[REPO]
    large = dict(repository.commits[repository.head].files)
    repository = hub.new(REPO)

    def somebody_commits() -> None:
        repository.add("theirs", large)

    hub.faults["commit"].append(Fault(first=somebody_commits))
    assert "somebody else committed meanwhile (412" in call(hub, root, "small", status=3).stderr
    call(hub, root, "small")
    assert text(hub, "README.md").count("| [acme/large]") == 1


def test_one_pull_request_is_open_for_the_same_results_also_after_others_commit(hub: FakeHub, root: Path) -> None:
    repository = hub.new(REPO)
    assert f"opened {hub.address}/datasets/{REPO}/discussions/1" in call(hub, root, "small", "--pr").stdout
    call(hub, root, "large")
    done = call(hub, root, "small", "--pr")
    # The card in it lacks the other model now, and only git could merge both.
    assert f"is open already: {hub.address}/datasets/{REPO}/discussions/1; if it cannot be merged" in done.stdout
    assert f"  nothing to propose: {hub.address}/" in call(hub, root, "small", "--pr", "--dry-run").stdout
    assert list(repository.pull_requests) == [1]
    repository.closed.add(1)
    assert "/discussions/2" in call(hub, root, "small", "--pr").stdout
    proposed = repository.commits[repository.pull_requests[2]]
    assert proposed.parent == repository.head
    assert b"| [acme/large]" in proposed.files["README.md"]


def test_what_cannot_be_published_is_one_line(hub: FakeHub, root: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    path = write_model(tmp_path / "forged", "acme/small", leaning(1.0, 0.5), endpoint="api")
    told = json.loads(path.read_text())
    told["metrics"][0]["value"] = 0.123
    path.write_text(json.dumps(told))
    write_model(tmp_path / "useless", "baseline/uniform", uniform, endpoint="baseline")
    for folder, said in (
        ("empty", "holds neither dataset.json nor result.json"),
        ("nowhere", "no such folder; name that of a dataset or of runs"),
        ("useless", "holds results of useless predictors only"),
        ("forged", "would be rejected: "),
    ):
        done = call(hub, root, tmp_path / folder, status=1)
        assert said in done.stderr.splitlines()[-1]
    assert hub.repositories == {}
    hub.new(REPO, {"train.csv": b"a,b\n"})
    assert "holds other files than results (train.csv)" in call(hub, root, "small", status=1).stderr
    assert set(hub.writes) == set()


def test_the_card_lists_only_sound_results_in_their_places(hub: FakeHub, root: Path) -> None:
    call(hub, root, "large")
    repository = hub.repositories[REPO]
    files = dict(repository.commits[repository.head].files)
    (result,) = (name for name in files if name.endswith("/result.json"))
    files |= {
        "synthbias@9.0.0/acme__x/type2-[1]/result.json": b"{",
        "synthbias@9.0.0/acme__y/type2 | x/result.json": files[result],
        "synthbias@9.0.0/acme__z/type2/result.json": b"\xff",
    }
    repository.add("strange", files)
    done = call(hub, root, "small")
    assert done.stderr.count("left out of the card: ") == 3
    assert f"belongs into {result.rpartition('/')[0]}" in done.stderr
    rows = [line for line in text(hub, "README.md").splitlines() if line.startswith("| [")]
    assert [line.partition("]")[0] for line in rows] == ["| [acme/small", "| [acme/large", "| [acme/small"]
    assert set(files) <= names(hub) | {".gitattributes"}


def test_other_versions_and_revisions_are_told_apart(tmp_path: Path) -> None:
    path = write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5), endpoint="api")
    result = read_result(path.parent)
    newer = replace(result, model=replace(result.model, revision="second"))
    assert isinstance(newer.metrics[0].version, str)
    metrics = tuple(replace(metric, version="9.9") for metric in result.metrics)
    card = card_of({"a": result, "b": newer, "c": replace(result, metrics=metrics)}, REPO, None)
    tables = card.split("## ")[1:]
    assert [table.count("| [") for table in tables] == [2, 1]
    assert "| [acme/small (second, " in tables[0]


def test_what_was_withheld_is_not_published_by_mistake(hub: FakeHub, places: Places, tmp_path: Path) -> None:
    write_gifi_model(tmp_path / "runs", "acme/wrong", 0.5, tasks=["recognition"])
    of_options = Path(shutil.copytree(places.honest, tmp_path / "runs" / "options"))
    write_keys(tmp_path / "leaderboard" / "keys", tmp_path / "runs")
    call(hub, tmp_path, of_options)
    call(hub, tmp_path, "runs", "--withhold-texts")
    withheld = [json.loads(text(hub, name)).get("withheld") for name in names(hub) if name.endswith("/result.json")]
    assert sorted(one is None for one in withheld) == [False, True]  # Sums stand for texts alone.
    assert [name for name in names(hub) if name.endswith("/sums.parquet")]
    for runs, what in (("runs", "texts"), (of_options, "prompts")):
        refused = call(hub, tmp_path, runs, status=1).stderr
        assert f"was published without its {what}; repeat with --withhold-texts" in refused
