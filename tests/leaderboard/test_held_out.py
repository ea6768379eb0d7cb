"""Answer keys of held-out data: without the secret nobody can confirm a guess, and with it results are verified."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.memory import Memory
from evaluators.runs.measure.answer_keys import KeyHashes
from leaderboard.publish.published_results import refuse_held_out
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.unranked import why_unranked
from leaderboard.verify.entries import Entry, Root, why_withheld
from leaderboard.verify.keys import KeyBook, open_book
from leaderboard.verify.loading import load
from schemas.documents.board import AnswerKey
from schemas.documents.record import Record
from schemas.documents.result import Signature
from schemas.files import contract
from schemas.files.key_secret import read_key_secret
from schemas.files.record_files import read_records
from schemas.files.record_hashes import item_hashes
from tests.commands import run
from tests.evaluators.logging_backend import ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.leaderboard.forging import Places, SkilledBackend, forge, on_each
from tests.sites import copy_site

APART = "its items are compared with a secret key, which this board does not have"
NAME = "type2-coreference-intrinsic-v1"


leaderboard = partial(run, "-W", "error", "-m", "leaderboard")


def write_secret(path: Path, value: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(value)
    return path


class HeldOut(NamedTuple):
    """A dataset with secret answers, its keys, a result, and plain keys for comparison."""

    root: Path
    dataset: Path
    honest: Path
    said: str
    """All that the command printed."""

    @property
    def secret(self) -> Path:
        return self.root / "secret"

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    @property
    def plain(self) -> Path:
        return self.root / "plain"

    def key(self, folder: Path, name: str = NAME) -> dict[str, object]:
        told: dict[str, object] = json.loads((folder / "made@1.0.0" / f"{name}.json").read_text())
        return told

    def items(self, folder: Path) -> list[bytes]:
        return [row.tobytes() for row in np.load(folder / "made@1.0.0" / f"{NAME}.npy")]

    def book(self, secret: Path | None) -> KeyBook:
        return open_book(self.keys, None, secret)

    def entry(self, secret: Path | None, memory: Memory | None = None, folder: Path | None = None) -> Entry:
        (entry,) = load([Root(folder or self.honest, "accepted")], self.book(secret), memory or Memory(None)).entries
        return entry

    @property
    def other(self) -> Path:
        """Another secret."""
        return self.root / "other"


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> HeldOut:
    root = tmp_path_factory.mktemp("held-out")
    dataset = write_dataset(root / "dataset", {"type2": made_items(100)})
    secret, _ = (write_secret(root / name, secrets.token_hex(32)) for name in ("secret", "other"))
    sealed = leaderboard("keys", dataset, "--out", root / "keys", "--secret-file", secret)
    plain = leaderboard("keys", dataset, "--out", root / "plain")
    assert (sealed.returncode, plain.returncode) == (0, 0), sealed.stderr + plain.stderr
    honest = ask(dataset, root / "runs", SkilledBackend(root / "log", name="acme/honest"), prompt="intrinsic-v1")
    return HeldOut(root, dataset, honest, sealed.stdout + sealed.stderr)


def sealed(held_out: HeldOut, digest: bytes) -> bytes:
    return hmac.new(bytes.fromhex(held_out.secret.read_text()), digest, hashlib.sha256).digest()


@pytest.mark.slow
def test_every_hash_of_items_is_sealed(held_out: HeldOut) -> None:
    plain, ours = held_out.key(held_out.plain), held_out.key(held_out.keys)
    assert held_out.items(held_out.keys) == [sealed(held_out, one) for one in held_out.items(held_out.plain)]
    expected = json.loads(json.dumps(plain))
    for place, name in (
        (expected, "dataset_sha256"),
        (expected["signature"], "items_sha256"),
        (expected["parts"][0], "facts_sha256"),
        (expected["parts"][0], "requests_sha256"),
    ):
        place[name] = sealed(held_out, bytes.fromhex(place[name])).hex()
    items = (held_out.keys / "made@1.0.0" / f"{NAME}.npy").read_bytes()
    secret_id = sealed(held_out, b"biasboard answer key").hex()[:16]
    expected |= {"items_file_sha256": hashlib.sha256(items).hexdigest(), "hash": "hmac-sha256", "secret_id": secret_id}
    assert ours == expected
    assert "hash" not in plain
    # Nothing that follows from the items alone is left: only the prompt is public.
    known = {value for value in json.dumps(plain).split('"') if len(value) == 64}
    left = known & {value for value in json.dumps(ours).split('"') if len(value) == 64}
    assert left == {json.loads(json.dumps(plain))["signature"]["prompt_sha256"]}


@pytest.mark.slow
def test_shown_examples_are_sealed_too(held_out: HeldOut) -> None:
    signature = held_out.entry(held_out.secret).result.signature
    shown = replace(signature, examples_sha256="ab" * 32)
    ours = KeyHashes(read_key_secret(held_out.secret)).of_signature(shown)
    assert ours.examples_sha256 == sealed(held_out, b"\xab" * 32).hex()
    changed = {name for name in Signature.__dataclass_fields__ if getattr(ours, name) != getattr(shown, name)}
    assert changed == {"items_sha256", "examples_sha256"}


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"secret_id": None}, {"hash": "sha256"}, {"secret_id": "short"}, {"hash": "md5"}])
def test_a_key_names_its_secret_if_and_only_if_it_has_one(held_out: HeldOut, change: dict[str, str | None]) -> None:
    key = held_out.key(held_out.keys)
    assert contract.load(json.loads(json.dumps(key)), AnswerKey, where="key").secret_id is not None
    (name,) = change
    with pytest.raises(DataError, match="secret_id" if name == "secret_id" or change[name] == "sha256" else name):
        contract.load(json.loads(json.dumps(key | change)), AnswerKey, where="key")


def flipped(record: Record) -> Record:
    """The same item with the other right answer."""
    (other,) = {outcome for exchange in record.exchanges for outcome in exchange.outcomes} - {record.target}
    return replace(record, target=other, reference=other)


def test_a_guess_is_confirmed_by_a_plain_key_and_not_by_a_secret_one(held_out: HeldOut) -> None:
    record = read_records(held_out.honest / "records.parquet")[0]
    guesses = [row.tobytes() for row in item_hashes([record, flipped(record)], with_requests=True)]
    assert [guess in held_out.items(held_out.plain) for guess in guesses] == [True, False]
    assert [guess in held_out.items(held_out.keys) for guess in guesses] == [False, False]


@pytest.mark.slow
def test_with_the_secret_a_result_is_verified_as_with_a_plain_key(held_out: HeldOut, tmp_path: Path) -> None:
    entry = held_out.entry(held_out.secret)
    assert (entry.match.extent, why_unranked(entry)) == ("whole", None)
    (table,) = assemble([entry]).tables
    assert table.rows[0].entry.result.model.id == "acme/honest"
    book = held_out.book(held_out.secret)
    liar = forge(Places(held_out.keys, held_out.honest), tmp_path / "forged" / "liar", on_each(flipped))
    (left_out,) = load([Root(liar.parent, "accepted")], book, Memory(None)).left_out
    assert "row 1: item 'made-0-he' is not asked or described as in made@1.0.0" in left_out.reason
    # One wrong answer among 200 leaves the quick comparison of all, and is found among the items.
    one = forge(
        Places(held_out.keys, held_out.honest),
        tmp_path / "one" / "liar",
        lambda records: [*records[:7], flipped(records[7]), *records[8:]],
    )
    (left_out,) = load([Root(one.parent, "accepted")], book, Memory(None)).left_out
    assert "row 8: item 'made-3-she' is not asked or described" in left_out.reason


@pytest.mark.slow
@pytest.mark.parametrize("has_secret", [True, False])
def test_a_result_on_it_is_not_published(held_out: HeldOut, has_secret: bool) -> None:
    with pytest.raises(DataError, match="its dataset is held out, and its records hold the right answers"):
        refuse_held_out([held_out.honest], held_out.book(held_out.secret if has_secret else None))


@pytest.mark.slow
def test_without_the_secret_a_result_stands_apart(held_out: HeldOut) -> None:
    entry = held_out.entry(None)
    assert entry.match.extent == "unknown"
    assert (why_unranked(entry) or "").startswith(APART)
    board = assemble([entry])
    assert (board.tables, [one.place for one in board.apart]) == ((), [entry.place])


@pytest.mark.slow
def test_a_large_result_stands_apart_too_if_its_key_is_as_large(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset", {"type2": made_items(2_501)})
    secret = write_secret(tmp_path / "secret", secrets.token_hex(32))
    keys = leaderboard("keys", dataset, "--out", tmp_path / "keys", "--secret-file", secret, "--prompt", "intrinsic-v1")
    assert keys.returncode == 0, keys.stderr
    run = ask(dataset, tmp_path / "runs", SkilledBackend(tmp_path / "log", name="acme/honest"), prompt="intrinsic-v1")
    (apart,) = load([Root(run, "accepted")], open_book(tmp_path / "keys", None, None), Memory(None)).entries
    assert (apart.result.counts.items, apart.match.extent) == (5_002, "unknown")
    (left_out,) = load([Root(run, "accepted")], KeyBook(tmp_path / "none"), Memory(None)).left_out
    assert "5,002 records without an answer key are too many to check" in left_out.reason


@pytest.mark.slow
def test_texts_of_held_out_items_are_withheld(held_out: HeldOut) -> None:
    for secret in (held_out.secret, None):
        assert "held out" in (why_withheld(held_out.entry(secret), None) or "")
    (public,) = load([Root(held_out.honest, "accepted")], KeyBook(held_out.plain), Memory(None)).entries
    assert why_withheld(public, None) is None


@pytest.mark.slow
def test_a_wrong_secret_is_told_apart_from_wrong_answers(held_out: HeldOut) -> None:
    ours, theirs = (read_key_secret(path).id for path in (held_out.secret, held_out.other))
    with pytest.raises(
        ConfigError, match=rf"other: holds the secret {theirs}, and .*\.json was made with {ours}; give"
    ):
        held_out.book(held_out.other)
    # A book that is made without the check, as before the keys of a dataset were made again, leaves them locked.
    book = KeyBook(held_out.keys, None, read_key_secret(held_out.other))
    (entry,) = load([Root(held_out.honest, "accepted")], book, Memory(None)).entries
    assert (entry.match.reason or "").startswith(APART)


@pytest.mark.slow
def test_the_option_and_the_variable_give_the_secret_to_verify(held_out: HeldOut) -> None:
    command = ("verify", held_out.honest, "--keys", held_out.keys, "--datasets", held_out.root / "none")
    apart = leaderboard(*command)
    assert apart.returncode == 2
    assert APART in apart.stdout
    by_option = leaderboard(*command, "--key-secret", held_out.secret)
    by_variable = leaderboard(*command, BIASBOARD_KEY_SECRET_FILE=held_out.secret)
    assert by_option.stdout == by_variable.stdout
    assert APART not in by_option.stdout
    assert by_option.stdout.startswith("accepted")
    wrong = leaderboard(*command, "--key-secret", held_out.other)
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "was made with" in wrong.stderr
    # The option goes before the variable.
    by_both = leaderboard(*command, "--key-secret", held_out.secret, BIASBOARD_KEY_SECRET_FILE="/nowhere")
    assert by_both.stdout == by_option.stdout


@pytest.mark.slow
def test_memory_keeps_apart_what_was_verified_with_the_secret_and_without(held_out: HeldOut, tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory")
    for _ in range(2):
        assert held_out.entry(None, memory).match.extent == "unknown"
        assert held_out.entry(held_out.secret, memory).match == ("whole", None, True)
    assert n_remembered(tmp_path) == 2
    # Keys that are made again with another secret are other keys: nothing is known about them.
    again = replace_keys(held_out, tmp_path / "again")
    (entry,) = load([Root(held_out.honest, "accepted")], open_book(again, None, None), memory).entries
    assert entry.match.extent == "unknown"
    (entry,) = load([Root(held_out.honest, "accepted")], open_book(again, None, held_out.other), memory).entries
    assert entry.match.extent == "whole"
    assert n_remembered(tmp_path) == 4


def n_remembered(folder: Path) -> int:
    """Count the verified results in a memory."""
    return sum(path.read_bytes()[64:81] == b'{"answers_sha256"' for path in (folder / "memory").glob("*/*.json"))


def replace_keys(held_out: HeldOut, target: Path) -> Path:
    shutil.copytree(held_out.keys, target)
    done = leaderboard("keys", held_out.dataset, "--out", target, "--secret-file", held_out.other)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.slow
def test_a_secret_key_is_not_replaced_by_a_plain_one(held_out: HeldOut, tmp_path: Path) -> None:
    shutil.copytree(held_out.keys, tmp_path / "keys")
    before = {path.name: path.read_bytes() for path in (tmp_path / "keys").glob("*/*")}
    refused = leaderboard("keys", held_out.dataset, "--out", tmp_path / "keys")
    assert refused.returncode == 1
    assert "anybody could confirm guessed answers; give --secret-file, or remove the key first" in refused.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "keys").glob("*/*")} == before
    again = leaderboard("keys", held_out.dataset, "--out", tmp_path / "keys", "--secret-file", held_out.secret)
    assert again.returncode == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "keys").glob("*/*")} == before


def test_keys_without_the_secret_write_nothing(held_out: HeldOut, tmp_path: Path) -> None:
    done = leaderboard("keys", held_out.dataset, "--out", tmp_path / "keys", "--secret-file", tmp_path / "gone")
    assert done.returncode == 1
    assert "openssl rand -hex 32" in done.stderr
    assert not (tmp_path / "keys").exists()


@pytest.mark.slow
def test_the_secret_is_in_nothing_that_is_written_or_printed(held_out: HeldOut, tmp_path: Path) -> None:
    """Keys, verdicts, submissions, the site, exports and the memory are searched for every spelling of the secret."""
    board = tmp_path / "board"
    copy_site(board)
    keys = shutil.copytree(held_out.keys, board / "keys")
    told = ("--keys", keys, "--key-secret", held_out.secret, "--datasets", held_out.dataset.parent)
    results = ("--results", board / "results")
    words = ("--contact", "bot@example.org", "--model-card", "https://example.org/card")
    printed = [held_out.said]
    for command in (
        ("submit", held_out.honest, *words, *told, *results),
        ("verify", board / "results", *told, *results, "--report", board / "report.json"),
        ("export", "every-eval-ever", board / "results", "--out", board / "exports", *told, *results),
        ("build", "--runs", board / "none", "--site", board / "site", *told, *results),
    ):
        done = leaderboard(*command, BIASBOARD_MEMORY=tmp_path / "memory", BIASBOARD_KEY_SECRET_FILE="")
        assert done.returncode in (0, 2), done.stderr
        printed.append(done.stdout + done.stderr)
    assert APART not in "".join(printed)
    assert "models 1 (ranked 1)" in printed[-1]
    value = bytes.fromhex(held_out.secret.read_text())
    spellings = [value, value[:16], value.hex()[:32].encode(), base64.b64encode(value)[:24], str(list(value)).encode()]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"result.json", "report.json", "index.html", f"{NAME}.npy"} <= {path.name for path in written}
    assert any(path.is_relative_to(tmp_path / "memory") for path in written)
    contents = [path.read_bytes().lower() for path in written] + [text.lower().encode() for text in printed]
    for spelling in spellings:
        assert not any(spelling.lower() in content for content in contents)
    # The site and the export have the numbers, and nothing of the items: neither texts nor ids nor verdicts about them.
    public = [path for path in written if path.is_relative_to(board / "site" / "_build")]
    public += [path for path in written if path.is_relative_to(board / "exports")]
    assert {path.suffix for path in public} >= {".json", ".html"}
    item = made_items(1)[0]
    for hidden in (item.sentence, item.item_id, hashlib.sha256(str(item.referent).encode()).hexdigest()):
        assert [path for path in public if hidden.encode() in path.read_bytes()] == []
    (log,) = (board / "exports").rglob("*.json")
    assert "none: the right answers are secret" in log.read_text()
