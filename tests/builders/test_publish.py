"""Publishing on a Hub on loopback with the real client: what a repository holds after moves, faults and kills."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.dataset.output import write_dataset
from builders.synthbias import embedded
from schemas.files import contract
from schemas.outputs.documents import PublishedFiles
from tests.builders.test_output import files_of
from tests.commands import run
from tests.fake_hub import READER, WRITER, FakeHub, Fault, Repository, serving, variables

pytestmark = pytest.mark.slow
REPO = "acme/synthbias"
OF_WHERE = "(HF_TOKEN, or that of hf auth login)"
STALE = "data/old/test.parquet"


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first") / "d"
    write_dataset(embedded.draft(limit=40), folder, version="1.0.0")
    return folder


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("second") / "d"
    write_dataset(embedded.draft(limit=44), folder, version="1.1.0")
    return folder


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with serving() as hub:
        yield hub


@pytest.fixture
def repository(hub: FakeHub, first: Path) -> Repository:
    """A repository that holds the first dataset, as the command leaves it."""
    repository = hub.new(REPO)
    there = repository.commits[repository.head].files
    repository.tags["v1.0.0"] = repository.add("synthbias 1.0.0", there | files_of(first))
    return repository


def call(
    hub: FakeHub, folder: Path, *options: str, token: str | None = WRITER, status: int = 0
) -> subprocess.CompletedProcess[str]:
    told = variables(hub, folder.parent / "home", token)
    words = ("-m", "biasboard", "publish", folder, "--repo", REPO, *options)
    done = run(*words, cwd=folder.parent, status=status, timeout=100, **told)
    assert "Traceback" not in done.stderr
    return done


def refusal(hub: FakeHub, folder: Path, *options: str, token: str | None = WRITER, status: int = 1) -> str:
    said = call(hub, folder, *options, token=token, status=status).stderr
    assert said.count("\n") == 1, said
    return said


def published(hub: FakeHub, folder: Path, *options: str) -> PublishedFiles:
    done = call(hub, folder, *options, "--format", "json")
    return contract.load(json.loads(done.stdout), PublishedFiles, where="standard output")


def add(repository: Repository, title: str, **files: bytes) -> None:
    """Commit as somebody else; ``_`` stands for a dot in names, and the manifest lists a file that is stale."""
    named = {STALE if name == "stale" else name.replace("_", "."): content for name, content in files.items()}
    there = repository.commits[repository.head].files
    if STALE in named:
        manifest = json.loads(there["dataset.json"])
        named["dataset.json"] = json.dumps(manifest | {"files": [{"path": STALE}, {"path": []}]}).encode()
    repository.add(title, there | named)


def titles(repository: Repository) -> list[str]:
    return [commit.title for commit in repository.log()]


def holds(repository: Repository, commit: str, folder: Path) -> bool:
    files = repository.commits[repository.tags.get(commit, commit)].files
    return {name: content for name, content in files.items() if name != ".gitattributes"} == files_of(folder)


def test_a_dataset_is_one_commit_and_a_tag_and_is_not_committed_again(hub: FakeHub, first: Path) -> None:
    done = call(hub, first)
    repository = hub.repositories[REPO]
    assert titles(repository) == ["synthbias 1.0.0", "initial commit"]
    assert holds(repository, "v1.0.0", first)
    assert ".gitattributes" in repository.commits[repository.head].files
    assert repository.tags == {"v1.0.0": repository.head}
    assert not repository.private
    assert done.stdout.splitlines()[-1] == f"tagged v1.0.0: published synthbias 1.0.0 as {REPO}@v1.0.0"
    assert [kind for kind in hub.writes if kind != "upload"] == ["create", "commit", "tag"]
    hub.writes.clear()
    assert "published already" in call(hub, first).stdout
    # Also after the main branch went on.
    add(repository, "somebody edits the card", README_md=b"edited")
    assert "published already" in call(hub, first).stdout
    assert hub.writes == []


def test_as_json_it_says_what_was_sent_and_where_it_is(hub: FakeHub, first: Path, second: Path) -> None:
    planned = published(hub, first, "--dry-run")
    assert (planned.is_dry_run, planned.is_sent, planned.commit, planned.address) == (True, False, None, None)
    assert (hub.repositories, hub.writes) == ({}, [])
    sent = published(hub, first)
    repository = hub.repositories[REPO]
    assert (sent.commit, sent.tag, sent.is_dry_run, sent.is_sent) == (repository.head, "v1.0.0", False, True)
    assert sent.address == f"{hub.address}/datasets/{REPO}/commit/{repository.head}"
    assert sent.added == planned.added == tuple(sorted(files_of(first)))
    add(repository, "old file", stale=b"old")
    proposed = published(hub, second, "--pr")
    assert (proposed.is_pull_request, proposed.is_sent, proposed.commit, proposed.tag) == (True, True, None, None)
    assert proposed.address == f"{hub.address}/datasets/{REPO}/discussions/1"
    ours, theirs = files_of(second), files_of(first)
    assert set(proposed.added) == ours.keys() - theirs.keys()
    assert set(proposed.replaced) == {name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]}
    assert {*proposed.added, *proposed.replaced, *proposed.unchanged} == ours.keys()
    assert proposed.deleted == (STALE,)


def test_a_new_version_deletes_stale_files_and_keeps_the_old_version_and_commits_of_others(
    hub: FakeHub, repository: Repository, first: Path, second: Path
) -> None:
    add(repository, "old files", stale=b"old", notes_md=b"old")
    fault = Fault(first=lambda: add(repository, "theirs", theirs_md=b"new", README_md=b"x"))
    hub.faults["commit"].append(fault)
    assert "somebody else committed meanwhile (412" in refusal(hub, second, status=3)
    assert titles(repository)[0] == "theirs"
    assert list(repository.tags) == ["v1.0.0"]
    # Whoever repeats the command can see first what becomes of it; files of others stay.
    planned = call(hub, second, "--dry-run").stdout
    assert (f"  delete  {STALE}" in planned, "theirs.md" in planned) == (True, False)
    assert "1 deleted" in call(hub, second).stdout
    assert titles(repository) == ["synthbias 1.1.0", "theirs", "old files", "synthbias 1.0.0", "initial commit"]
    files = repository.commits[repository.head].files
    assert files == files_of(second) | {name: files[name] for name in (".gitattributes", "notes.md", "theirs.md")}
    assert holds(repository, "v1.0.0", first)
    del repository.tags["v1.0.0"]
    assert "holds version 1.1.0, later than 1.0.0" in refusal(hub, first)


@pytest.mark.parametrize(
    ("kind", "fault", "said"),
    [
        ("create", Fault(500, after=True), "creating the repository: the Hub failed (500"),
        ("commit", Fault(503), "sending the commit: the Hub failed (503"),
        ("tag", Fault(500, after=True), "tagging: the Hub failed (500"),
    ],
)
def test_after_a_failure_the_command_goes_on(hub: FakeHub, first: Path, kind: str, fault: Fault, said: str) -> None:
    hub.faults[kind].append(fault)
    failed = refusal(hub, first, "--private", status=3)
    assert (said in failed, "run the same command again" in failed) == (True, True)
    call(hub, first, "--private")
    repository = hub.repositories[REPO]
    assert repository.private
    assert titles(repository) == ["synthbias 1.0.0", "initial commit"]
    assert holds(repository, "v1.0.0", first)
    # What was done although the answer was lost is not done again.
    repeated = [] if fault.after else [kind]
    assert sorted(kind for kind in hub.writes if kind != "upload") == sorted(["create", "commit", "tag", *repeated])


def test_an_answer_of_somebody_else_is_none_of_the_hub(hub: FakeHub, first: Path) -> None:
    repository = hub.new(REPO)
    for kind, content in (("info", b"\xff\xfe"), ("tree", b"<html>sign in</html>"), ("commit", b"[]")):
        hub.faults[kind].append(Fault(content=content))
        assert ": the answer is none of the Hub (" in refusal(hub, first, status=3)
        assert (titles(repository), repository.tags) == (["initial commit"], {})


def test_other_content_under_an_old_version_is_refused(
    hub: FakeHub, repository: Repository, first: Path, tmp_path: Path
) -> None:
    before = repository.head
    write_dataset(embedded.draft(limit=44), tmp_path / "d", version="1.0.0")
    said = refusal(hub, tmp_path / "d")
    assert f"tag v1.0.0 is on commit {before[:12]} with other content (README.md, croissant.json" in said
    assert "higher --dataset-version" in said
    # The tag was lost, but the main branch still holds the version.
    del repository.tags["v1.0.0"]
    assert "holds version 1.0.0 with other items; a version never changes" in refusal(hub, tmp_path / "d")
    assert (repository.head, repository.tags, hub.writes) == (before, {}, [])


def test_a_repository_of_something_else_is_left_alone(hub: FakeHub, first: Path, tmp_path: Path) -> None:
    repository = hub.new(REPO, {"train.csv": b"a,b\n", "README.md": b"# Mine\n"})
    assert "holds files but no dataset.json (train.csv)" in refusal(hub, first)
    write_dataset(dataclasses.replace(embedded.draft(limit=40), name="other"), tmp_path / "other")
    repository.add("another dataset", files_of(tmp_path / "other"))
    assert "holds the dataset 'other', not 'synthbias'" in refusal(hub, first)
    assert hub.writes == []


def test_a_file_that_the_hub_left_out_is_noticed_before_tagging(
    hub: FakeHub, repository: Repository, second: Path
) -> None:
    add(repository, "ignore", _gitignore=b"eval.yaml\n")
    said = refusal(hub, second, status=3)
    assert "lacks eval.yaml as it is here, so it was not tagged; look for a .gitignore" in said
    assert list(repository.tags) == ["v1.0.0"]
    files = repository.commits[repository.head].files
    repository.add("ignore nothing", {name: content for name, content in files.items() if name != ".gitignore"})
    call(hub, second)
    assert holds(repository, "v1.1.0", second)


def test_a_token_without_the_right_is_one_line(hub: FakeHub, first: Path) -> None:
    repository = hub.new(REPO)
    odd = f"the token for the Hub {OF_WHERE} holds a space, a line break or a letter that no key has"
    for token, said in {
        None: "there is no token for the Hub; give a token that may write to it in HF_TOKEN",
        "hf_unknown": "the Hub does not accept the token (401",
        READER: "the Hub does not allow this with the token (403",
        "hf_one\nhf_two": odd,
    }.items():
        stderr = refusal(hub, first, token=token)
        assert said in stderr
        assert token is None or token[3:6] not in stderr
        assert (titles(repository), repository.tags) == (["initial commit"], {})


def test_a_pull_request_has_the_files_and_no_tag(hub: FakeHub, first: Path) -> None:
    assert "does not exist, or the token may not see it" in refusal(hub, first, "--pr")
    repository = hub.new(REPO)
    start = repository.head
    # Who may only read may propose.
    assert f"opened {hub.address}/datasets/{REPO}/discussions/1" in call(hub, first, "--pr", token=READER).stdout
    assert (repository.head, repository.tags, list(repository.pull_requests)) == (start, {}, [1])
    proposed = repository.commits[repository.pull_requests[1]]
    assert holds(repository, proposed.oid, first)
    assert proposed.parent == start
    repository.add("Merge #1", proposed.files)
    call(hub, first)
    assert repository.tags == {"v1.0.0": repository.head}
    assert titles(repository) == ["Merge #1", "initial commit"]


def test_what_is_no_repository_or_no_hub_is_one_line(hub: FakeHub, first: Path) -> None:
    told = variables(hub, first.parent / "home")
    for repo, added, said, status in (
        ("synthbias", {}, "--repo synthbias: is no id of a repository; give ORG/NAME", 1),
        (REPO, {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE forbids asking the Hub; unset it", 1),
        (REPO, {"HF_ENDPOINT": "http://127.0.0.1:9"}, "the Hub at 127.0.0.1:9 cannot be reached", 3),
    ):
        words = ("-m", "biasboard", "publish", first, "--repo", repo)
        done = run(*words, status=status, timeout=60, **{**told, **added})
        assert (said in done.stderr, done.stderr.count("\n")) == (True, 1)
