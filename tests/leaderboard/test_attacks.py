"""What strangers tried to make verification or the board say, and what is said instead.

Forged results and their files are rows of test_forged_results, names those of test_hostile_names.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import pytest

from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.backend import GenerateRequest
from evaluators.task import load_task, prompt_of
from leaderboard.pages.publishing import generate, make_view
from leaderboard.ranking.boards import assemble, missing_bounds
from leaderboard.ranking.rank_ranges import why_unranked
from leaderboard.verify.comparisons import compare_scores
from leaderboard.verify.entries import Entry
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.submissions import place_for, read_register, why_not_owner
from schemas.documents.board import Rerun
from schemas.documents.record import Record
from schemas.folders.run_folder import find_runs, read_result
from schemas.outputs.documents import Verdict, Verdicts, as_json
from tests.commands import run
from tests.evaluators.text_scoring import MadeScorer
from tests.leaderboard.forging import (
    AT_ENDPOINT,
    Places,
    Pull,
    accepted,
    constant,
    entries,
    forge,
    judged,
    nudged,
    reason,
    told,
)
from tests.leaderboard.gifi_results import scorers
from tests.leaderboard.synthetic import present
from tests.leaderboard.test_forged_results import table_bomb
from tests.leaderboard.withheld_world import World


def voting(places: Places, folder: Path, n_right: int, gone: dict[str, Any], *, n_items: int = 200) -> Path:
    """A result of ten samples per item, some of them right; of the wrong ones of some items nothing else is left."""

    def ask(number: int, record: Record) -> Record:
        sampled = []
        for index in range(10):
            outcomes = record.exchanges[0].outcomes[:: 1 if index < 5 else -1]
            is_right, request = index % 5 < n_right, prompt_of(load_task("coreference"), "cot-v1")
            letter = "AB"[outcomes.index(record.target or "") if is_right else 1 - outcomes.index(record.target or "")]
            text, stop = f"{record.item_id}{index}", request.stop or ()
            asked = GenerateRequest(prompt=text, max_tokens=512, temperature=1.0, stop=stop, sample=index)
            of_options = ("options", "option_logprobs", "option_end_logprobs", "option_token_counts")
            fields: dict[str, Any] = dict.fromkeys((*of_options, "option_byte_counts"), ())
            fields |= {"n_moved_tokens": None, "kind": "generate"}
            fields |= {"text": f"Answer: {letter}", "finish_reason": "stop", "status": "answered"}
            fields |= gone if number < n_items and not is_right else {}
            fields |= {"prompt": asked.prompt, "request_sha256": asked.sha256, "sample": index, "outcomes": outcomes}
            sampled.append(replace(record.exchanges[0], **fields))
        is_cut = any(exchange.finish_reason == "length" for exchange in sampled)
        return replace(record, exchanges=tuple(sampled), truncated=is_cut)

    return forge(places, folder, lambda records: [*map(ask, range(len(records)), records)], sampled="cot-v1")


GONE: dict[str, dict[str, Any]] = {
    "refused": {"text": None, "finish_reason": None, "status": "refused", "error": "declined"},
    "cut": {"finish_reason": "length"},
    "unread": {"text": "I do not know what to think of it."},
}


@pytest.mark.slow
@pytest.mark.parametrize(("n_right", "gone"), [*zip((1, 2, 4), GONE.values(), strict=True)], ids=GONE)
def test_lost_samples_are_missing_answers(places: Places, tmp_path: Path, n_right: int, gone: dict[str, Any]) -> None:
    voting(places, tmp_path / "results" / "a", n_right, gone)
    (entry,) = entries(tmp_path / "results", KeyBook(None), "local")
    accuracy = present(entry.metric("accuracy"))
    assert accuracy.value == 1.0
    assert present(missing_bounds(entry, accuracy)).worst == pytest.approx(0.8 if n_right == 4 else 0.0)
    assert entry.standing is None or not entry.standing.passes or n_right == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n_completion_tokens": 10**6}, "is said to have 1,000,000 tokens"),
        ({"text": "B" * 300, "n_completion_tokens": 1}, "is said to have 1 tokens"),
        ({"text": "so " * 50_000}, "150,000 bytes, more than 512 tokens can hold"),
        ({"n_completion_tokens": 512}, None),
    ],
    ids=["more-tokens-than-anybody-thinks", "fewer-than-the-text-takes", "longer-than-the-limit", "sound"],
)
def test_texts_fit_their_numbers(places: Places, tmp_path: Path, fields: dict[str, Any], said: str | None) -> None:
    why = reason(voting(places, tmp_path / "a", 4, fields, n_items=1), places)
    assert why == "" if said is None else said in why


def verdicts(pull: Pull, places: Places) -> list[Verdict]:
    pull.check_out()
    return judged([pull.submitted], places, since=pull.base)


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


def write(name: str) -> Callable[[Pull, Places], None]:
    def change(pull: Pull, places: Places) -> None:
        path = pull.submitted / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("own\n")

    return change


def link(name: str) -> Callable[[Pull, Places], None]:
    def change(pull: Pull, places: Places) -> None:
        shutil.rmtree(pull.submitted / name)
        (pull.submitted / name).symlink_to(pull.base / name)

    return change


def into(place: str) -> Callable[[Pull, Places], None]:
    """A result in a folder where it does not belong."""

    def change(pull: Pull, places: Places) -> None:
        submitted(pull, places, Path(place), change=constant(0.6))

    return change


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


def withdrawn(pull: Pull, places: Places) -> None:
    shutil.rmtree(pull.results / place_for(read_result(places.honest)))


RESULTS, DECIDES, NO_RESULT = "leaderboard/results", ": decides how results are verified", ": belongs to no result"
PULLS: dict[str, tuple[Callable[[Pull, Places], None], str]] = {
    "another model's folder": (into("made@1.0.0/acme__honest/other"), "belongs into made@1.0.0/evil__forger/"),
    "the results as a link": (link(RESULTS), "leaderboard/results: is a link or a file"),
    "their parent as a link": (link("leaderboard"), "leaderboard: is a link or a file"),
    "an answer key": (write("leaderboard/keys/a.json"), f"keys/a.json{DECIDES}"),
    "a workflow": (write(".github/workflows/verify.yml"), f"verify.yml{DECIDES}"),
    "no workflow": (deleted, f"verify.yml{DECIDES}"),
    "code": (write("leaderboard/ranking.py"), f"leaderboard/ranking.py{NO_RESULT}"),
    "a hidden result": (into(".hidden/a"), f"{RESULTS}/.hidden/a/records.parquet{NO_RESULT}"),
    "a report beside its result": (with_a_report, f"verdicts.json{NO_RESULT}"),
    "a result that is gone": (withdrawn, ": is gone; to withdraw a result, ask a maintainer"),
    "a rerun in the register": (registered, "register.json: only maintainers change the register"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("change", "said"), PULLS.values(), ids=PULLS)
def test_pull_requests_that_change_something_else_are_rejected(
    pull: Pull, places: Places, change: Callable[[Pull, Places], None], said: str
) -> None:
    change(pull, places)
    reasons = [one.reason or "" for one in verdicts(pull, places)]
    assert any(said in reason for reason in reasons), reasons


def again(**fields: Any) -> dict[str, Any]:
    return {"date": "2026-01-02", "n_items": 50, "n_agreeing": 50, "tolerance": 1e-3} | fields


@pytest.mark.parametrize(
    ("rerun", "place", "said"),
    [
        (again(n_items=1, n_agreeing=1), None, "1 items were asked again, and 50 are needed"),
        (again(tolerance=99), None, "answers may differ by 99 nats, and by 0.001 in"),
        (again(n_agreeing=51), None, "more items agree than were asked again"),
        (again(), "made@1.0.0/mine/type2", "made@1.0.0/mine/type2: belongs into made@1.0.0/acme__honest/"),
    ],
)
def test_reports_that_show_nothing_and_results_in_another_folder_are_not_entered(
    places: Places, tmp_path: Path, rerun: dict[str, Any], place: str | None, said: str
) -> None:
    place = place or str(place_for(read_result(places.honest)))
    folder, report = tmp_path / "results" / place, tmp_path / "report.json"
    shutil.copytree(places.honest, folder)
    verdict = Verdict(place=str(folder), result_sha256=sha256_file(folder / "result.json"), rerun=Rerun(**rerun))
    report.write_text(as_json(Verdicts(verdicts=(verdict,))))
    command = ("-m", "leaderboard", "accept", place, "--owner", "acme-bot", "--report", report)
    assert said in run(*command, "--results", tmp_path / "results", status=1).stderr
    assert not (tmp_path / "results" / "register.json").exists()


@pytest.mark.parametrize(("mode", "is_used"), [(0o755, True), (0o770, False)])
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
    (found,) = judged([forge(places, tmp_path / "forged", **forged)], places, against=tmp_path / "there")
    return found


@pytest.mark.slow
def test_a_result_is_compared_with_those_there_those_beside_it_and_their_names(places: Places, tmp_path: Path) -> None:
    honest = read_result(places.honest)
    stolen = told(identity_sha256=honest.model.identity_sha256, identity=None, **AT_ENDPOINT)
    rejected = compared(places, tmp_path / "a", **stolen, change=constant(0.6))
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
    for number in range(2):
        forge(places, tmp_path / "forged" / str(number), model=f"evil/copy{number}", change=nudged(1e-6 * number))
    found = judged([tmp_path / "forged"], places, against=tmp_path / "none")
    assert [len(each.likenesses) for each in found] == [0, 1]
    name = "Acme_/h0nest."
    rejected = compared(places, tmp_path / "f", model=name, change=constant(0.6))
    assert f"its id {name} looks like that of acme/honest (1) in " in (rejected.reason or "")
    results = tmp_path / "f" / "there"
    accepted(results, place_for(honest).as_posix(), "2026-01-01")
    why = why_not_owner(read_register(results), f"made@1.0.0/{name.replace('/', '__')}/type2", "evil-bot")
    assert "belong to acme-bot, and the author is evil-bot" in (why or "")


@pytest.mark.slow
def test_rejected_results_harm_no_others_beside_them(places: Places, tmp_path: Path) -> None:
    """A bomb and a lie with a stolen identity come first: the other results would be compared with them."""
    forge(places, tmp_path / "forged" / "c", model="acme/other", change=constant(0.6))
    stolen = read_result(tmp_path / "forged" / "c").model.identity_sha256
    claim = told(identity_sha256=stolen, identity=None, **AT_ENDPOINT)
    table_bomb(200, reason="x" * 300_000_000)(forge(places, tmp_path / "forged" / "a", **claim))
    forge(places, tmp_path / "forged" / "b", lambda records: records[::-1], **claim)
    found = judged([tmp_path / "forged"], places, against=tmp_path / "none")
    assert [verdict.state for verdict in found] == ["rejected", "rejected", "accepted"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"submitted": "2999-12-31"}, "names the day 2999-12-31, which is still to come"),
        ({"run_date": "2026-99-99"}, "'2026-99-99' is no day of the calendar"),
        ({"run_date": "2026-01-03"}, "submitted: 2026-01-02 is before the run, of 2026-01-03; submit the run again"),
    ],
)
def test_misleading_statements_are_rejected(places: Places, tmp_path: Path, fields: dict[str, str], said: str) -> None:
    folder = forge(places, tmp_path / "a")
    statement: dict[str, str | None] = {"schema_version": "1.0", "biasboard": "1", "train_data_disclosure": None}
    of_run = {"run_date": "2026-01-01", "submitted": "2026-01-02", "result_sha256": sha256_file(folder / "result.json")}
    statement |= {"contact": "bot@example.org", "model_card": "https://example.org/card", **of_run}
    (folder / "submission.json").write_text(json.dumps(statement))
    assert reason(folder, places) == ""
    (folder / "submission.json").write_text(json.dumps(statement | fields))
    assert said in reason(folder, places)


@pytest.mark.slow
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
    said = "results that evil-bot has handed in to made@1.0.0, type2-intrinsic-v1, withdrawn ones included: of many"
    # A result that is gone counts as long as the register knows it.
    shutil.rmtree(results / handed_in[1])
    found = entries(results, places)
    assert {entry.result.model.id for entry in found} == {"acme/honest", "evil/try0", "evil/try2"}
    pages = generate(make_view(assemble(found), (), (), register=read_register(results)), {})
    assert [path.split("/")[1][:9] for path, page in pages.items() if f"One of 3 {said}" in page] == ["evil__try"] * 2
    author = ("--author", "evil-bot", "--keys", places.keys, "--results", results)
    assert f"One of 4 {said}" in run("-m", "leaderboard", "verify", folders[3], *author).stderr
    shutil.copytree(folders[3], results / handed_in[3])
    entered = run("-m", "leaderboard", "accept", handed_in[3], "--owner", "evil-bot", "--results", results, status=0)
    assert f"One of 4 {said}" in entered.stdout


@pytest.mark.slow
def test_stored_scores_that_nobody_computed_again_give_no_rank(made_world: World, tmp_path: Path) -> None:
    # By scorers that nobody has.
    (stored,) = (run for run in find_runs(made_world.runs) if run.parts[-2:] == ("acme__fair", "continuation"))
    folder = Path(shutil.copytree(stored, tmp_path / "results" / "a"))

    def entry(origin: Literal["accepted", "local"] = "accepted") -> Entry:
        (loaded,) = entries(tmp_path / "results", made_world.book, origin)
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
def test_published_answers_are_reported_until_a_maintainer_compared_them(places: Places, tmp_path: Path) -> None:
    forge(places, tmp_path / "results" / "a")
    (entry,) = entries(tmp_path / "results", places)
    with mock.patch.object(Entry, "is_imported", property(lambda self: True)):
        assert "reported only: no maintainer has compared" in (why_unranked(entry) or "")
        assert why_unranked(replace(entry, origin="local")) is None
