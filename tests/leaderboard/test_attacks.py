"""The table of attacks: what strangers tried to make verification or the board say, and what is said instead.

Attacks on files and names are rows of test_hostile_files and test_hostile_names, those on records and metrics of
test_forged_results.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unittest import mock

import pytest

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.backend import GenerateRequest, model_identity
from evaluators.task import load_task, prompt_of
from leaderboard.pages.rendering import generate, make_view
from leaderboard.ranking.boards import assemble, missing_bounds
from leaderboard.ranking.unranked import why_unranked
from leaderboard.verify.comparisons import compare_scores
from leaderboard.verify.entries import Entry, Root
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.loading import load
from leaderboard.verify.public_files import place_for
from leaderboard.verify.submissions import read_register, why_not_owner
from leaderboard.verify.verdicts import judge
from schemas.documents.board import Rerun
from schemas.documents.record import Record
from schemas.documents.result import Model, Result
from schemas.folders.run_folder import find_runs, read_result
from schemas.outputs.documents import Verdict, Verdicts
from schemas.printed import as_json
from tests.commands import run
from tests.evaluators.logging_backend import identity_of
from tests.evaluators.text_scoring import MadeScorer
from tests.leaderboard.forging import AT_ENDPOINT, Places, accepted, board, constant, forge, nudged, on_each, verdict
from tests.leaderboard.gifi_results import scorers
from tests.leaderboard.test_hostile_files import table_bomb
from tests.leaderboard.withheld_world import World


def with_model(**fields: Any) -> Callable[[Result], Result]:
    """A result that says something else about its model."""
    return lambda result: replace(result, model=replace(result.model, **fields))


def with_identity(change: Callable[[Model], dict[str, str | None]], **fields: Any) -> Callable[[Result], Result]:
    """A result whose identity has other parts, and the hash of these."""

    def changed(result: Result) -> Result:
        identity = change(result.model)
        model = replace(result.model, identity=identity, identity_sha256=model_identity(identity), **fields)
        return replace(result, model=model)

    return changed


def without_identity(result: Result) -> Result:
    return replace(result, model=replace(result.model, identity=None))


CLAIMS: list[tuple[str, Callable[[Result], Result], str]] = [
    (
        "another model's files under an own name",
        with_identity(lambda model: identity_of("acme/honest")),
        "the identity says id 'acme/honest', the model 'evil/forger'",
    ),
    (
        "another revision than that of the files",
        with_model(revision="2"),
        "the identity says revision '1', the model '2'",
    ),
    (
        "another revision than that of a folder's files",
        with_identity(lambda model: identity_of("") | {"model": "sha256:" + "0" * 64}),
        f"the identity says revision 'sha256:{'0' * 64}', the model '1'",
    ),
    (
        "an adapter under the name of its base",
        with_identity(lambda model: identity_of("evil/forger") | {"adapter": "evil/adapter@7"}),
        "the identity says revision '7', the model '1'",
    ),
    (
        "the commit of a harness's log",
        with_identity(lambda model: {"backend": "import", "commit": "a" * 40}, backend="import", endpoint="replay"),
        f"the identity says commit '{'a' * 40}', the model '1'",
    ),
    ("no parts of the identity", without_identity, "says only the hash of its model's identity, not its parts"),
    (
        "a baseline of a stranger",
        with_identity(
            lambda model: {"backend": "baseline", "kind": "clever", "version": "1"},
            id="baseline/clever",
            endpoint="baseline",
            backend="baseline",
        ),
        "is of a baseline, and the board computes baselines itself",
    ),
    (
        "a name that looks like that of a baseline",
        with_identity(lambda model: identity_of("Baseline/clever"), id="Baseline/clever"),
        "'baseline/' is reserved for the baselines",
    ),
    (
        "an identity without parts",
        with_identity(lambda model: {}, id="openai/gpt-9"),
        "the identity lacks backend, chat_template, device, model, precision, scoring, tokenizer, which backend",
    ),
    (
        "an identity of unknown parts",
        with_identity(lambda model: {"weights": "openai/gpt-9@1"}, id="openai/gpt-9"),
        "the identity lacks backend, chat_template, device, model, precision, scoring, tokenizer, which backend",
    ),
    (
        "an identity without its device",
        with_identity(lambda model: {name: part for name, part in identity_of(model.id).items() if name != "device"}),
        "the identity lacks device, which backend transformers states",
    ),
    (
        "a model that knows images alone",
        with_identity(
            lambda model: (
                {"model": f"{model.id}@1", **dict.fromkeys(("precision", "device", "processor"))} | {"backend": "clip"}
            ),
            backend="clip",
        ),
        "backend clip cannot ask prompt 'intrinsic-v1', which needs option_logprobs",
    ),
    (
        "no files",
        with_identity(lambda model: identity_of("") | {"model": None}),
        "the identity names no files: its model is neither NAME@REVISION nor the sha256 of a folder",
    ),
    (
        "a hash of no form",
        with_identity(lambda model: identity_of("") | {"model": "1"}),
        "the identity names no files: its model is neither NAME@REVISION nor the sha256 of a folder",
    ),
    (
        "a local model at an endpoint",
        with_model(endpoint="api"),
        "endpoint 'api' is not that of backend transformers",
    ),
    (
        "an endpoint's model on this machine",
        with_identity(lambda model: identity_of(model.id) | {"backend": "openai"}, backend="openai"),
        "endpoint 'local' is not that of backend openai",
    ),
    (
        "an endpoint's model of another name than it was asked by",
        with_identity(lambda model: {"backend": "openai", "endpoint": "x", "id": "mini", "api": "chat"}, **AT_ENDPOINT),
        "the identity says id 'mini', the model 'evil/forger'",
    ),
    (
        "an endpoint's model of no name",
        with_identity(lambda model: {"backend": "openai", "endpoint": "x", "id": None, "api": "chat"}, **AT_ENDPOINT),
        "the identity says id '', the model 'evil/forger'",
    ),
    (
        "an endpoint's model of another name, with files",
        with_identity(
            lambda model: {"backend": "openai", "endpoint": "x", "id": "mini", "api": "c", "model": "evil/forger@1"},
            **AT_ENDPOINT,
        ),
        "the identity says id 'mini', the model 'evil/forger'",
    ),
    (
        "an endpoint's model of another revision",
        with_identity(
            lambda model: {"backend": "openai", "endpoint": "x", "id": model.id, "api": "chat", "revision": "2"},
            **AT_ENDPOINT,
        ),
        "the identity says revision '2', the model '1'",
    ),
    (
        "an import that calls itself local",
        with_identity(lambda model: {"backend": "import", "model": model.id}, backend="import", endpoint="local"),
        "endpoint 'local' is not that of backend import",
    ),
    (
        "a replay that calls itself local",
        with_identity(lambda model: {"backend": "replay", "id": model.id, "answers": "0" * 64}, backend="replay"),
        "endpoint 'local' is not that of backend replay",
    ),
    (
        "an import of another backend",
        with_identity(lambda model: {"backend": "transformers", "model": f"{model.id}@1", "commit": "1"}),
        "the identity lacks chat_template, device, precision, scoring, tokenizer, which backend transformers states",
    ),
    (
        "an unknown precision",
        with_identity(lambda model: identity_of(model.id) | {"precision": "float9"}, precision="float9"),
        "precision float9 is none of float32, bfloat16, float16",
    ),
    (
        "a precision that writes to the terminal",
        with_identity(lambda model: identity_of(model.id) | {"precision": "\x1b[31m"}, precision="\x1b[31m"),
        "model.precision",
    ),
]


@pytest.mark.parametrize(("change", "said"), [row[1:] for row in CLAIMS], ids=[row[0] for row in CLAIMS])
def test_claims_about_the_model_are_rejected(
    places: Places, tmp_path: Path, change: Callable[[Result], Result], said: str
) -> None:
    folder = forge(places, tmp_path / "results" / "aaa", of_result=change)
    judged = verdict(folder, places)
    assert judged.state == "rejected"
    assert said in (judged.reason or "")
    assert board(tmp_path / "results", places).tables == ()


def test_the_hash_of_an_endpoint_is_a_claim_that_readers_are_warned_of(places: Places, tmp_path: Path) -> None:
    folder = forge(places, tmp_path / "a", of_result=lambda result: without_identity(with_model(**AT_ENDPOINT)(result)))
    judged = verdict(folder, places)
    assert judged.state == "accepted with warnings"
    assert "the identity of its model is a claim" in " ".join(judged.warnings)


def in_no_time(result: Result) -> Result:
    """A result of answers that cost nothing, as an import has it."""
    usage = replace(result.usage, n_attempts=0, n_prompt_tokens=None, n_completion_tokens=None, seconds=None)
    return replace(result, usage=usage)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            with_identity(lambda model: {"backend": "own", "model": f"{model.id}@1"}, backend="own"),
            "no backend own is known here, so nothing says which model answered; if a plug-in defines it",
        ),
        (
            with_identity(lambda model: {}, backend="imported", id="openai/gpt-9"),
            "no backend imported is known here",
        ),
        (lambda result: without_identity(with_model(backend="own", endpoint="api")(result)), "no backend own is known"),
        (with_model(endpoint="replay", backend="own"), "the answers come from a file"),
        (in_no_time, "the answers come from a file"),
    ],
    ids=["own-backend", "renamed-import", "own-endpoint", "replay", "import-in-all-but-usage"],
)
def test_a_result_whose_model_nobody_here_can_identify_is_a_claim(
    places: Places, tmp_path: Path, change: Callable[[Result], Result], said: str
) -> None:
    def told(result: Result) -> Result:
        changed = change(result)
        identity = changed.model.identity
        if not identity or identity.get("backend") in (None, changed.model.backend):
            return changed
        return with_identity(lambda model: {**identity, "backend": model.backend})(changed)

    judged = verdict(forge(places, tmp_path / "results" / "aaa", of_result=told), places)
    assert (judged.state, judged.provenance) == ("accepted with warnings", "reported")
    assert said in " ".join(judged.warnings)
    (table,) = board(tmp_path / "results", places).tables
    assert table.ranked == ()


def test_own_runs_may_have_any_name(places: Places, tmp_path: Path) -> None:
    forge(places, tmp_path / "runs" / "a", of_result=CLAIMS[0][1])
    assert load([Root(tmp_path / "runs", "local")], places.book, Memory(None)).left_out == ()


def voting(places: Places, folder: Path, n_right: int, gone: dict[str, Any] | None = None) -> Path:
    """A result of ten samples per item, some of them right; of the wrong ones nothing else is left if they are gone."""

    def ask(record: Record) -> Record:
        sampled = []
        for index in range(10):
            outcomes = record.exchanges[0].outcomes[:: 1 if index < 5 else -1]
            is_right, request = index % 5 < n_right, prompt_of(load_task("coreference"), "cot-v1")
            letter = "AB"[outcomes.index(record.target or "") if is_right else 1 - outcomes.index(record.target or "")]
            text, stop = f"{record.item_id}{index}", request.stop or ()
            asked = GenerateRequest(prompt=text, max_tokens=512, temperature=1.0, stop=stop, sample=index)
            fields: dict[str, Any] = dict.fromkeys(
                ("option_logprobs", "option_end_logprobs", "option_token_counts"), ()
            )
            fields |= {"options": (), "option_byte_counts": (), "n_moved_tokens": None, "kind": "generate"}
            fields |= {"text": f"Answer: {letter}", "finish_reason": "stop", "status": "answered"}
            fields |= {} if is_right or gone is None else gone
            fields |= {"prompt": asked.prompt, "request_sha256": asked.sha256, "sample": index, "outcomes": outcomes}
            sampled.append(replace(record.exchanges[0], **fields))
        is_cut = any(exchange.finish_reason == "length" for exchange in sampled)
        return replace(record, exchanges=tuple(sampled), truncated=is_cut)

    return forge(places, folder, on_each(ask), sampled="cot-v1")


GONE: dict[str, dict[str, Any]] = {
    "refused": {"text": None, "finish_reason": None, "status": "refused", "error": "declined"},
    "cut": {"finish_reason": "length"},
    "unread": {"text": "I do not know what to think of it."},
}


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
@pytest.mark.parametrize("n_right", [1, 2, 4])
def test_samples_that_are_left_out_are_missing_answers(
    places: Places, tmp_path: Path, n_right: int, gone: dict[str, Any]
) -> None:
    voting(places, tmp_path / "results" / "a", n_right, gone)
    (entry,) = load([Root(tmp_path / "results", "local")], KeyBook(None), Memory(None)).entries
    accuracy = entry.metric("accuracy")
    assert accuracy is not None
    assert accuracy.value == 1.0
    bounds = missing_bounds(entry, accuracy)
    assert bounds is not None
    assert bounds.worst == pytest.approx(0.8 if n_right == 4 else 0.0)
    assert entry.standing is None or not entry.standing.passes or n_right == 4


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "more tokens than anybody thinks": ({"n_completion_tokens": 10**6}, "is said to have 1,000,000 tokens"),
    "fewer tokens than the text takes": ({"text": "B" * 300, "n_completion_tokens": 1}, "is said to have 1 tokens"),
    "a text longer than the limit": ({"text": "so " * 50_000}, "150,000 bytes, more than 512 tokens can hold"),
}


@pytest.mark.parametrize(("fields", "said"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_texts_that_contradict_what_is_said_of_them_are_rejected(
    places: Places, tmp_path: Path, fields: dict[str, Any], said: str
) -> None:
    assert said in (verdict(voting(places, tmp_path / "a", 4, fields), places).reason or "")


def test_texts_that_contradict_nothing_are_verified(places: Places, tmp_path: Path) -> None:
    fields = {"n_completion_tokens": 512}
    assert verdict(voting(places, tmp_path / "a", 4, fields), places).reason is None


class Pull(NamedTuple):
    """A checkout of the base branch and one of a pull request, as a code host makes them."""

    base: Path
    submitted: Path

    @property
    def results(self) -> Path:
        return self.submitted / "leaderboard" / "results"

    def verdicts(self, places: Places) -> list[Verdict]:
        for checkout in self:
            for command in (["init", "--quiet"], ["add", "--all", "--force"]):
                subprocess.run(["git", "-C", checkout, *command], check=True, capture_output=True)
        return list(judge([self.submitted], places.book, Memory(None), advance=lambda n_done, n: None, since=self.base))


@pytest.fixture
def pull(places: Places, tmp_path: Path) -> Pull:
    base = tmp_path / "base"
    place = place_for(read_result(places.honest))
    shutil.copytree(places.honest, base / "leaderboard" / "results" / place, ignore=lambda *_: ["log"])
    for name in (".github/workflows/verify.yml", ".ci/run", "leaderboard/keys/a.json", "leaderboard/ranking.py"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text("as it is\n")
    shutil.copytree(base, tmp_path / "submitted")
    return Pull(base, tmp_path / "submitted")


def submitted(pull: Pull, places: Places, place: Path | None = None, **forged: Any) -> Path:
    """A result in a pull request: where it belongs, or elsewhere."""
    folder = forge(places, pull.submitted / "made", **forged)
    target = pull.results / (place or place_for(read_result(folder)))
    target.parent.mkdir(parents=True, exist_ok=True)
    return folder.rename(target)


@pytest.mark.slow
def test_a_pull_request_with_a_result_alone_is_verified(pull: Pull, places: Places) -> None:
    assert pull.verdicts(places) == []
    folder = submitted(pull, places, change=constant(0.6))
    (judged,) = pull.verdicts(places)
    assert (judged.reason, judged.place) == (None, str(folder))


def write(name: str, text: str = "own\n") -> Callable[[Pull, Places], None]:
    def change(pull: Pull, places: Places) -> None:
        path = pull.submitted / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return change


def link(name: str) -> Callable[[Pull, Places], None]:
    def change(pull: Pull, places: Places) -> None:
        shutil.rmtree(pull.submitted / name)
        (pull.submitted / name).symlink_to(pull.base / name)

    return change


def hidden(pull: Pull, places: Places) -> None:
    submitted(pull, places, place=Path(".hidden") / "a")


def of_another_model(pull: Pull, places: Places) -> None:
    submitted(pull, places, place=place_for(read_result(places.honest)).parent / "other", change=constant(0.6))


def of_another_dataset(pull: Pull, places: Places) -> None:
    submitted(pull, places, place=Path("made@2.0.0/evil__forger/type2"), change=constant(0.6))


def with_a_report(pull: Pull, places: Places) -> None:
    folder = submitted(pull, places, change=constant(0.6))
    verdict = Verdict(place="", result_sha256=sha256_file(folder / "result.json"), rerun=Rerun(**again()))
    (folder / "verdicts.json").write_text(as_json(Verdicts(verdicts=(verdict,))))


def registered(pull: Pull, places: Places) -> None:
    folder = submitted(pull, places, change=constant(0.6))
    place = folder.relative_to(pull.results).as_posix()
    accepted(pull.results, place, "2026-01-01", owner="evil-bot", rerun=again())


def deleted(pull: Pull, places: Places) -> None:
    (pull.submitted / ".github/workflows/verify.yml").unlink()


PULLS: list[tuple[str, Callable[[Pull, Places], None], str]] = [
    ("results in another model's folder", of_another_model, "belongs into made@1.0.0/evil__forger/"),
    ("results in another dataset's folder", of_another_dataset, "belongs into made@1.0.0/evil__forger/"),
    ("leaderboard/results as a link", link("leaderboard/results"), "leaderboard/results: is a link or a file"),
    ("leaderboard as a link", link("leaderboard"), "leaderboard: is a link or a file"),
    ("an answer key", write("leaderboard/keys/a.json"), "keys/a.json: decides how results are verified"),
    ("a workflow", write(".github/workflows/verify.yml"), "verify.yml: decides how results are verified"),
    ("no workflow", deleted, "verify.yml: decides how results are verified"),
    ("a script of CI", write(".ci/run"), ".ci/run: decides how results are verified"),
    ("code", write("leaderboard/ranking.py"), "leaderboard/ranking.py: belongs to no result"),
    ("a hidden result", hidden, "leaderboard/results/.hidden/a/records.parquet: belongs to no result"),
    ("a page", write("leaderboard/results/index.html"), "leaderboard/results/index.html: belongs to no result"),
    ("a report of a rerun", write("verdicts.json"), "verdicts.json: belongs to no result"),
    ("a report of a rerun beside its result", with_a_report, "verdicts.json: belongs to no result"),
    ("a rerun in the register", registered, "register.json: only maintainers change the register"),
    ("attributes of git", write("leaderboard/results/.gitattributes"), ".gitattributes: belongs to no result"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "said"), [row[1:] for row in PULLS], ids=[row[0] for row in PULLS])
def test_pull_requests_that_change_something_else_are_rejected(
    pull: Pull, places: Places, change: Callable[[Pull, Places], None], said: str
) -> None:
    change(pull, places)
    reasons = [judged.reason or "" for judged in pull.verdicts(places)]
    assert any(said in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (".github/workflows/verify.yml", "This pull request changes what decides"),
        (".ci/verify-submission", "This pull request changes what decides"),
        ("leaderboard/keys/made@1.0.0/a.json", "This pull request changes what decides"),
        ("\n".join(f"leaderboard/results/{number}" for number in range(300)), "of which the code host lists no others"),
        ("leaderboard/results/made@1.0.0/a/result.json", "sound"),
    ],
)
def test_verdicts_of_a_pull_request_that_decides_about_itself_are_not_shown(
    tmp_path: Path, changed: str, said: str
) -> None:
    (tmp_path / "verdicts.json").write_text(as_json(Verdicts(verdicts=(Verdict(place="sound"),))))
    (tmp_path / "changed").write_text(changed)
    command = ("-m", "leaderboard", "comment", tmp_path / "verdicts.json", "--changed", tmp_path / "changed")
    printed = run(*command, status=0).stdout
    assert said in printed
    assert ("sound" in printed) == (said == "sound")


def again(**fields: Any) -> dict[str, Any]:
    return {"date": "2026-01-02", "n_items": 50, "n_agreeing": 50, "tolerance": 1e-3} | fields


REPORTS: list[tuple[str, dict[str, Any], str]] = [
    ("one item", again(n_items=1, n_agreeing=1), "1 items were asked again, and 50 are needed"),
    ("a tolerance that forgives all", again(tolerance=99), "answers may differ by 99 nats, and by 0.001 in"),
    ("more agreeing than asked", again(n_agreeing=51), "more items agree than were asked again"),
]


@pytest.mark.parametrize(("rerun", "said"), [row[1:] for row in REPORTS], ids=[row[0] for row in REPORTS])
def test_reports_that_show_nothing_are_not_entered(
    places: Places, tmp_path: Path, rerun: dict[str, Any], said: str
) -> None:
    printed = run(*accepting(places, tmp_path, rerun), status=1).stderr
    assert said in printed
    assert not (tmp_path / "results" / "register.json").exists()


def accepting(places: Places, tmp_path: Path, rerun: dict[str, Any], place: Path | None = None) -> list[str | Path]:
    place = place or place_for(read_result(places.honest))
    folder = Path(shutil.copytree(places.honest, tmp_path / "results" / place))
    report = tmp_path / "report.json"
    verdict = Verdict(place=str(folder), result_sha256=sha256_file(folder / "result.json"), rerun=Rerun(**rerun))
    report.write_text(as_json(Verdicts(verdicts=(verdict,))))
    command = ["-m", "leaderboard", "accept", str(place), "--owner", "acme-bot"]
    return [*command, "--report", report, "--results", tmp_path / "results"]


def test_a_result_in_another_folder_is_not_accepted(places: Places, tmp_path: Path) -> None:
    printed = run(*accepting(places, tmp_path, again(), Path("made@1.0.0/mine/type2")), status=1).stderr
    assert "made@1.0.0/mine/type2: belongs into made@1.0.0/acme__honest/" in printed


def test_fifty_answers_that_agree_reproduce_a_result(places: Places, tmp_path: Path) -> None:
    run(*accepting(places, tmp_path, again()), status=0)
    (entry,) = load([Root(tmp_path / "results", "accepted")], places.book, Memory(None)).entries
    assert entry.provenance == "reproduced"


@pytest.mark.parametrize(("mode", "is_used"), [(0o700, True), (0o755, True), (0o777, False), (0o770, False)])
def test_a_memory_that_others_can_write_to_is_not_used(
    tmp_path: Path, mode: int, is_used: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "memory"
    Memory(folder).put("kind", {}, "value")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(mode)
    assert Memory(folder).get("kind", {}) == ("value" if is_used else None)
    assert ("others can write to this memory" in capsys.readouterr().err) == (not is_used)
    assert folder.stat().st_mode & 0o777 == (0o700 if is_used else mode)


def compared(places: Places, tmp_path: Path, **forged: Any) -> Verdict:
    """The verdict about a forged result where an honest one is there."""
    place = place_for(read_result(places.honest))
    if not (tmp_path / "there").exists():
        shutil.copytree(places.honest, tmp_path / "there" / place)
    folder = forge(places, tmp_path / "forged", **forged)
    advance: Callable[[int, int], None] = lambda n_done, n: None  # noqa: E731
    (judged,) = judge([folder], places.book, Memory(None), advance=advance, against=tmp_path / "there")
    return judged


@pytest.mark.slow
def test_a_result_is_compared_with_those_that_are_there(places: Places, tmp_path: Path) -> None:
    honest = read_result(places.honest)
    stolen = with_model(identity_sha256=honest.model.identity_sha256, identity=None, **AT_ENDPOINT)
    rejected = compared(places, tmp_path / "a", of_result=stolen, change=constant(0.6))
    assert "claims the identity of acme/honest (1) in " in (rejected.reason or "")
    copied = compared(places, tmp_path / "b")
    assert copied.state == "accepted with warnings"
    assert "gives exactly the answers of acme/honest (1) in " in copied.warnings[0]
    assert copied.likenesses == ()
    alike = compared(places, tmp_path / "e", change=nudged(1e-6))
    assert (alike.state, alike.warnings) == ("accepted", ())
    assert "acme/honest (1) in " in alike.likenesses[0]
    disputing = compared(places, tmp_path / "c", model="acme/honest", change=constant(0.6))
    assert "has other answers than " in disputing.warnings[0]
    assert compared(places, tmp_path / "d", change=constant(0.6)).warnings == ()


@pytest.mark.parametrize("name", ["Acme/Honest", "acme/h0nest", "acme/honest.", "acme_/honest"])
def test_a_name_that_looks_like_another_is_rejected(places: Places, tmp_path: Path, name: str) -> None:
    rejected = compared(places, tmp_path, model=name, change=constant(0.6))
    assert f"its id {name} looks like that of acme/honest (1) in " in (rejected.reason or "")
    results = tmp_path / "there"
    accepted(results, place_for(read_result(places.honest)).as_posix(), "2026-01-01")
    why = why_not_owner(read_register(results), f"made@1.0.0/{name.replace('/', '__')}/type2", "evil-bot")
    assert "belong to acme-bot, and the author is evil-bot" in (why or "")


@pytest.mark.slow
def test_rejected_results_harm_no_others_beside_them(places: Places, tmp_path: Path) -> None:
    """A bomb with a stolen identity comes first: the other results would be compared with it."""
    forge(places, tmp_path / "forged" / "b", model="acme/other", change=constant(0.6))
    stolen = read_result(tmp_path / "forged" / "b").model.identity_sha256
    claim = with_model(identity_sha256=stolen, identity=None, **AT_ENDPOINT)
    table_bomb(200, reason="x" * 300_000_000)(forge(places, tmp_path / "forged" / "a", of_result=claim))
    advance: Callable[[int, int], None] = lambda n_done, n: None  # noqa: E731
    judged = list(judge([tmp_path / "forged"], places.book, Memory(None), advance=advance, against=tmp_path / "none"))
    assert [verdict.state for verdict in judged] == ["rejected", "accepted"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"submitted": "2999-12-31"}, "names the day 2999-12-31, which is still to come"),
        ({"run_date": "2026-99-99"}, "'2026-99-99' is no day of the calendar"),
        ({"model_card": "https://evil.test@acme.org/x"}, "model_card"),
        ({"contact": "a\nb"}, "contact"),
        ({"run_date": "2026-01-03"}, "submitted: 2026-01-02 is before the run, of 2026-01-03; submit the run again"),
    ],
)
def test_statements_that_mislead_are_rejected(
    places: Places, tmp_path: Path, fields: dict[str, str], said: str
) -> None:
    folder = forge(places, tmp_path / "a")
    statement = {
        "schema_version": "1.0",
        "contact": "bot@example.org",
        "model_card": "https://example.org/card",
        "train_data_disclosure": None,
        "run_date": "2026-01-01",
        "submitted": "2026-01-02",
        "biasboard": "1",
        "result_sha256": sha256_file(folder / "result.json"),
    }
    (folder / "submission.json").write_text(json.dumps(statement))
    assert verdict(folder, places).reason is None
    (folder / "submission.json").write_text(json.dumps(statement | fields))
    assert said in (verdict(folder, places).reason or "")


@pytest.mark.slow
def test_copies_of_one_pull_request_are_compared_with_one_another(places: Places, tmp_path: Path) -> None:
    for number in range(3):
        forge(places, tmp_path / "forged" / str(number), model=f"evil/copy{number}", change=nudged(1e-6 * number))
    advance: Callable[[int, int], None] = lambda n_done, n: None  # noqa: E731
    judged = judge([tmp_path / "forged"], places.book, Memory(None), advance=advance, against=tmp_path / "none")
    assert [(len(each.warnings), len(each.likenesses)) for each in judged] == [(0, 0), (0, 1), (0, 2)]


def test_whoever_tries_often_is_said_to(places: Places, tmp_path: Path) -> None:
    results, honest = tmp_path / "results", place_for(read_result(places.honest)).as_posix()
    folders = [forge(places, tmp_path / str(n), constant(0.4 + 0.01 * n), model=f"evil/try{n}") for n in range(4)]
    handed_in = [place_for(read_result(folder)).as_posix() for folder in folders]
    for number, place in enumerate([*handed_in[:3], honest]):
        shutil.copytree([*folders[:3], places.honest][number], results / place)
        decision = {"decision": "withdrawn", "reason": "too good"} if number == 0 else {}
        # The code host ignores the case of an account.
        owner = "acme-bot" if place == honest else "Evil-bot" if number == 1 else "evil-bot"
        accepted(results, place, "2026-01-01", owner=owner, **decision)
        assert bool(read_register(results).tries()) == (number >= 2), "two are no choice among many"
    said = (
        "results that evil-bot has handed in to made@1.0.0, type2-intrinsic-v1, withdrawn ones included: of many, one"
    )
    # A result that is gone counts as long as the register knows it.
    shutil.rmtree(results / handed_in[1])
    entries = load([Root(results, "accepted")], places.book, Memory(None)).entries
    assert {entry.result.model.id for entry in entries} == {"acme/honest", "evil/try0", "evil/try2"}
    pages = generate(make_view(assemble(entries), (), (), register=read_register(results)), {})
    assert [path.split("/")[1][:9] for path, page in pages.items() if f"One of 3 {said}" in page] == ["evil__try"] * 2
    with mock.patch.object(Entry, "is_imported", property(lambda self: True)):
        pages = generate(make_view(assemble(entries), (), (), register=read_register(results)), {})
        assert said not in "".join(pages.values())
    author = ("--author", "evil-bot", "--keys", places.keys, "--results", results)
    assert f"One of 4 {said}" in run("-m", "leaderboard", "verify", folders[3], *author).stderr
    shutil.copytree(folders[3], results / handed_in[3])
    entered = run("-m", "leaderboard", "accept", handed_in[3], "--owner", "evil-bot", "--results", results, status=0)
    assert f"One of 4 {said}" in entered.stdout


def continuation(world: World) -> Path:
    """A complete result with stored scores of its texts, by scorers that nobody has."""
    return next(run for run in find_runs(world.runs) if run.parts[-2:] == ("acme__fair", "continuation"))


@pytest.mark.slow
def test_stored_scores_that_nobody_computed_again_give_no_rank(made_world: World, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(continuation(made_world), tmp_path / "results" / "a"))

    def entry(origin: Literal["accepted", "local"] = "accepted") -> Entry:
        (loaded,) = load([Root(tmp_path / "results", origin)], made_world.book, Memory(None)).entries
        return loaded

    assert entry().provenance == "reported"
    reason = "reported only: scores of stored-1, stored-1, stored-1 are taken as stored"
    assert why_unranked(entry()) == reason
    assert entry("local").provenance == "recomputed"
    accepted(tmp_path / "results", "a", "2026-01-01")
    assert why_unranked(entry()) == reason
    (tmp_path / "results" / "register.json").unlink()
    accepted(tmp_path / "results", "a", "2026-01-01", scores_compared="2026-01-02")
    assert (entry().provenance, why_unranked(entry())) == ("recomputed", None)
    assert compare_scores(folder, scorers("stored"), seed=1) == ("stored-1",) * 3
    assert compare_scores(folder, scorers("another"), seed=1) == ()
    other = MadeScorer("toxicity", lambda text: (0.5,), name="stored")
    with pytest.raises(DataError, match="stored-1 gives a text other scores than the stored ones"):
        compare_scores(folder, [other], seed=1)


@pytest.mark.slow
def test_answers_that_were_published_are_reported_until_a_maintainer_compared_them(
    places: Places, tmp_path: Path
) -> None:
    folder = forge(places, tmp_path / "results" / "a")
    (entry,) = load([Root(tmp_path / "results", "accepted")], places.book, Memory(None)).entries
    with mock.patch.object(Entry, "is_imported", property(lambda self: True)):
        assert "reported only: no maintainer has compared" in (why_unranked(entry) or "")
        assert why_unranked(replace(entry, origin="local")) is None
    assert folder.is_dir()
