"""Results of runs in a repository of a Hub on loopback: verified, beside those of others, and read again from there."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
import yaml

from biasboard.ground.errors import DataError
from leaderboard.publish.published_results import card_of
from schemas.folders.run_folder import find_runs, read_result
from tests.commands import run
from tests.fake_hub import FakeHub, Repository, serving, variables
from tests.leaderboard.forging import Places
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, uniform, write_model

REPO = "acme/results"
pytestmark = pytest.mark.slow


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


class Publisher(NamedTuple):
    """A Hub, and a folder with runs to publish there."""

    hub: FakeHub
    root: Path

    def publish(self, folder: Path | str, *options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        told = variables(self.hub, self.root / "home")
        command = ("-m", "biasboard", "publish", folder, "--repo", REPO, *options)
        done = run(*command, cwd=self.root, status=status, **told)
        assert "Traceback" not in done.stderr
        return done

    @property
    def repository(self) -> Repository:
        return self.hub.repositories[REPO]

    @property
    def files(self) -> dict[str, bytes]:
        files = self.repository.commits[self.repository.head].files
        return {name: content for name, content in files.items() if name != ".gitattributes"}

    @property
    def card(self) -> str:
        return self.files["README.md"].decode()

    def fetched(self, folder: Path) -> Path:
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder


@pytest.fixture
def here(root: Path) -> Iterator[Publisher]:
    with serving() as hub:
        yield Publisher(hub, root)


def test_results_of_several_models_lie_side_by_side_with_every_number_of_theirs(
    here: Publisher, tmp_path: Path
) -> None:
    done = here.publish("small")
    assert done.stdout.splitlines()[-1] == f"published 2 results of acme/small in {REPO}"
    first = {*here.files}
    assert [name.count("/") for name in sorted(first)] == [0, 0, 3, 3, 3, 3]
    assert not {name for name in first if "baseline" in name or name.endswith(".sqlite")}
    assert "published already: 2 results of acme/small" in here.publish("small").stdout
    here.publish("large")
    assert first < {*here.files}
    titles = [commit.title for commit in here.repository.log()]
    assert titles[:2] == ["1 result of acme/large", "2 results of acme/small"]
    # Both commands of the card, and the table of the viewer of the Hub.
    folder, card = here.fetched(tmp_path / "results"), here.card
    assert f"hf download {REPO} --repo-type dataset --local-dir results" in card
    verified = run("-m", "biasboard", "verify", folder, "--format", "json", cwd=here.root)
    assert {one["state"] for one in json.loads(verified.stdout)["verdicts"]} == {"accepted with warnings"}
    rows = pq.read_table(folder / "measures.parquet").to_pylist()
    assert {row["model"] for row in rows} == {"acme/small", "acme/large"}
    assert {row["measure"] for row in rows} >= {"accuracy", "worst_group_accuracy", "ucerf"}
    for row in rows:
        metrics = read_result(folder / row["result"]).metrics
        (metric,) = (one for one in metrics if one.name == row["measure"] and not one.group)
        ends = (None, None) if metric.interval is None else (metric.interval.low, metric.interval.high)
        assert (row["value"], row["reason"], row["ideal"]) == (metric.value, metric.reason, metric.ideal)
        assert (row["low"], row["high"]) == ends
        if metric.value is not None:
            (line,) = (line for line in card.splitlines() if line.startswith("| [") and f"/{row['result']})" in line)
            assert f"{abs(metric.value):.3f}" in line
    tables = [line for line in card.splitlines() if line.startswith("| model |")]
    assert len(tables) == 2
    assert "Accuracy" not in min(tables, key=len)  # Ambiguous sentences have no right answer.


def test_a_changed_result_takes_the_place_of_the_old_one_alone(here: Publisher, tmp_path: Path) -> None:
    here.publish("small")
    before = here.files
    (place,) = {name.rpartition("/")[0] for name in before if "/type2" in name}
    theirs = {"synthbias@9.0.0/acme__other/notes.txt": b"theirs"}
    here.repository.add("others", {**before, **theirs, f"{place}/old.parquet": b"", f"{place}/submission.json": b"{}"})
    assert "published already" in here.publish("small").stdout
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.4), endpoint="api")
    lines = [line.split() for line in here.publish(tmp_path / "runs", "--dry-run").stdout.splitlines()]
    assert [line[1] for line in lines if line[:1] == ["delete"]] == [f"{place}/old.parquet", f"{place}/submission.json"]
    assert [line[1] for line in lines if line[:1] == ["change"]] == [
        *(f"{place}/{name}" for name in ("result.json", "records.parquet")),
        "README.md",
        "measures.parquet",
    ]
    here.publish(tmp_path / "runs")
    assert {*here.files} == {*before, *theirs}


def test_what_people_write_into_the_card_stays(here: Publisher) -> None:
    ours = b"\xef\xbb\xbf---\r\nlicense: cc-by-4.0\r\nversion: 1.10 # ours\r\n---\r\n# Our models\r\n"
    here.hub.new(REPO, {"README.md": ours})
    here.publish("small")
    here.repository.add("edit", here.files | {"README.md": f"{here.card}\nMore of us.\n".encode()})
    here.publish("large")
    card = here.card
    metadata = card.split("---\n")[1]
    assert metadata.startswith("license: cc-by-4.0\nversion: 1.10 # ours\nconfigs:\n")
    assert yaml.safe_load(metadata)["configs"][0]["config_name"] == "measures"
    assert card.index("# Our models") < card.index("acme/large") < card.index("More of us.")
    assert card.count("<!-- results") == 1
    for damaged in (card.replace("<!-- end of results -->", ""), card + card):
        with pytest.raises(DataError, match=r"README\.md there has not both comments around the results"):
            card_of({}, REPO, damaged)


def test_what_cannot_be_published_is_one_line(here: Publisher, tmp_path: Path) -> None:
    path = write_model(tmp_path / "forged", "acme/small", leaning(1.0, 0.5), endpoint="api")
    told = json.loads(path.read_text())
    told["metrics"][0]["value"] = 0.123
    path.write_text(json.dumps(told))
    write_model(tmp_path / "useless", "baseline/uniform", uniform, endpoint="baseline")
    for folder, said in (("useless", "holds results of useless predictors only"), ("forged", "would be rejected: ")):
        assert said in here.publish(tmp_path / folder, status=1).stderr.splitlines()[-1]
    assert here.hub.repositories == {}
    here.hub.new(REPO, {"train.csv": b"a,b\n"})
    assert "holds other files than results (train.csv)" in here.publish("small", status=1).stderr
    assert set(here.hub.writes) == set()


def test_the_card_lists_only_sound_results_in_their_places(here: Publisher) -> None:
    here.publish("large")
    (result,) = (name for name in here.files if name.endswith("/result.json"))
    strange = {
        "synthbias@9.0.0/acme__x/type2-[1]/result.json": b"{",
        "synthbias@9.0.0/acme__y/type2 | x/result.json": here.files[result],
        "synthbias@9.0.0/acme__z/type2/result.json": b"\xff",
    }
    here.repository.add("strange", here.files | strange)
    done = here.publish("small")
    assert done.stderr.count("left out of the card: ") == 3
    assert f"belongs into {result.rpartition('/')[0]}" in done.stderr
    rows = [line for line in here.card.splitlines() if line.startswith("| [")]
    assert [line.partition("]")[0] for line in rows] == ["| [acme/small", "| [acme/large", "| [acme/small"]
    assert {*strange, result} <= {*here.files}


def test_other_versions_and_revisions_are_told_apart(root: Path) -> None:
    (folder,) = find_runs(root / "large")
    result = read_result(folder)
    newer = replace(result, model=replace(result.model, revision="second"))
    metrics = tuple(replace(metric, version="9.9") for metric in result.metrics)
    card = card_of({"a": result, "b": newer, "c": replace(result, metrics=metrics)}, REPO, None)
    tables = card.split("## ")[1:]
    assert [table.count("| [") for table in tables] == [2, 1]
    assert "| [acme/large (second, " in tables[0]


def test_what_was_withheld_is_not_published_by_mistake(here: Publisher, places: Places, tmp_path: Path) -> None:
    here = here._replace(root=tmp_path)
    write_gifi_model(tmp_path / "runs", "acme/wrong", 0.5, tasks=["recognition"])
    of_options = Path(shutil.copytree(places.honest, tmp_path / "runs" / "options"))
    write_keys(tmp_path / "leaderboard" / "keys", tmp_path / "runs")
    here.publish(of_options)
    here.publish("runs", "--withhold-texts")
    results = [json.loads(content) for name, content in here.files.items() if name.endswith("/result.json")]
    assert sorted(one.get("withheld") is None for one in results) == [False, True]  # Sums stand for texts alone.
    assert [name for name in here.files if name.endswith("/sums.parquet")]
    for runs, what in (("runs", "texts"), (of_options, "prompts")):
        refused = here.publish(runs, status=1).stderr
        assert f"was published without its {what}; repeat with --withhold-texts" in refused
