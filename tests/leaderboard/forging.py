"""Forged results: consistent lies about an honest one, as a stranger would hand them in."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from biasboard.ground import strict_json
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import Memory
from evaluators.backend import OF_LANGUAGE_MODELS, ChoiceRequest, Request, Response, model_identity
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.runs.measure.stored_results import key_of_dataset
from evaluators.task import load_task
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.rows import Row, Table
from leaderboard.verify.entries import Entry, Origin, Root
from leaderboard.verify.keys import KeyBook, write_key
from leaderboard.verify.verdicts import judge, load
from schemas.documents.record import Exchange, Record, choice_sha256
from schemas.documents.result import Model, Normalisation, Result, Signature
from schemas.files import contract
from schemas.files.record_columns import RecordColumns
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_result
from schemas.outputs.documents import Verdict
from tests.evaluators.logging_backend import LoggingBackend, ask
from tests.evaluators.made_data import made_items, write_dataset
from tests.record_files import count, read_records, write_records

Change = Callable[[list[Record]], list[Record]]
Forged: TypeAlias = dict[str, Any]
"""What is forged about an honest result: arguments of ``forge``."""
AT_ENDPOINT: Mapping[str, Any] = {"backend": "openai", "endpoint": "api"}
"""Of a model whose identity is not shown."""


class SkilledBackend(LoggingBackend):
    """A model that is mostly right; tests may read the facts, models are never told."""

    def _answer(self, request: Request) -> Response:
        if not isinstance(request, ChoiceRequest):
            return super()._answer(request)
        drawn = int(choice_sha256(request.prompt + self.name, request.options)[:8], 16) / 2**32
        right = request.facts.get("referent", request.facts["first_mentioned"])
        likely = 0.55 + 0.4 * drawn if drawn > 0.1 else 0.3
        chances = [likely if outcome == right else 1 - likely for outcome in request.outcomes]
        answer = super()._answer(request)
        return replace(answer, option_logprobs=tuple(map(math.log, chances)))


class Places(NamedTuple):
    """A dataset, its answer keys and an honest result of each config."""

    keys: Path
    honest: Path

    @property
    def book(self) -> KeyBook:
        return KeyBook(self.keys)


class Pull(NamedTuple):
    """A checkout of the base branch and one of a pull request, as a code host makes them."""

    base: Path
    submitted: Path

    @property
    def results(self) -> Path:
        return self.submitted / "leaderboard" / "results"

    def check_out(self) -> None:
        for checkout in self:
            for command in (["init", "--quiet"], ["add", "--all", "--force"]):
                subprocess.run(["git", "-C", checkout, *command], check=True, capture_output=True)


def honest_places(root: Path, prompt: str) -> Places:
    """Make a dataset, its key under a prompt, and the result of a model that is mostly right."""
    dataset = write_dataset(root / "dataset", {"type2": made_items(100)})
    made = key_of_dataset(dataset, read_manifest(dataset), config="type2", task="coreference", prompt=prompt)
    write_key(root / "keys", made)
    model = SkilledBackend(root / "log", name="acme/honest", capabilities=OF_LANGUAGE_MODELS)
    return Places(root / "keys", ask(dataset, root / "runs", model, prompt=prompt))


def judged(
    paths: Sequence[Path], keys: Places | KeyBook, *, since: Path | None = None, against: Path | None = None
) -> list[Verdict]:
    book, memory = _known(keys)
    return list(judge(paths, book, memory, since=since, against=against))


def verdict(folder: Path, keys: Places | KeyBook) -> Verdict:
    (found,) = judged([folder], keys)
    return found


def reason(folder: Path, keys: Places | KeyBook) -> str:
    """Why a result is rejected; empty if it is not."""
    return verdict(folder, keys).reason or ""


def entries(results: Path, keys: Places | KeyBook, origin: Origin = "accepted") -> tuple[Entry, ...]:
    return load([Root(results, origin)], *_known(keys)).entries


def _known(keys: Places | KeyBook) -> tuple[KeyBook, Memory]:
    """The keys, and a memory in which the values of baselines are computed once."""
    if isinstance(keys, Places):
        return keys.book, Memory(keys.keys.with_name("memory"))
    return keys, Memory(None)


def board(results: Path, places: Places) -> Board:
    return assemble(entries(results, places))


def rows(table: Table) -> dict[str, Row]:
    return {row.entry.result.model.id: row for row in table.rows}


def forge(
    places: Places,
    target: Path,
    change: Change = list,
    *,
    model: str = "evil/forger",
    normalisation: Normalisation = "sum",
    sampled: str | None = None,
    of_result: Callable[[Result], Result] = lambda result: result,
) -> Path:
    """A consistent lie: changed records with right counts, metrics and hashes, under an own name."""
    target.mkdir(parents=True)
    records = change(list(read_records(places.honest / "records.parquet")))
    result = read_result(places.honest)
    task, prompt = load_task("coreference"), sampled or result.signature.prompt
    read = [task.reading(record.exchanges, normalisation, prompt) for record in records]
    records = [
        replace(record, status=one.status, reason=one.reason, reading=one.reading)
        for record, one in zip(records, read, strict=True)
    ]
    write_records(target / "records.parquet", records)
    told = named(result.model, model)
    file = replace(result.records, sha256=sha256_file(target / "records.parquet"), n_rows=len(records))
    columns = RecordColumns.of(records)
    metrics, counts = compute_metrics(columns, "coreference"), count(columns)
    forged = replace(result, model=told, metrics=metrics, counts=counts, records=file)
    forged = forged if normalisation == "sum" else signed(forged, normalisation=normalisation)
    if sampled is not None:
        hashed = {"prompt": sampled, "prompt_sha256": task.prompts[sampled].sha256()}
        forged = signed(forged, scoring="generation", normalisation=None, **hashed)
    strict_json.write(target / "result.json", contract.dump(of_result(forged)))
    return target


def named(model: Model, name: str) -> Model:
    """The same model under another name, with the identity that belongs to it."""
    identity = (model.identity or {}) | {"model": f"{name}@{model.revision}"}
    return replace(model, id=name, identity_sha256=model_identity(identity), identity=identity)


def signed(result: Result, **fields: Any) -> Result:
    signature: Signature = replace(result.signature, **fields)
    return replace(result, signature=signature, signature_sha256=signature.sha256())


def told(**fields: Any) -> Forged:
    """A result that says something else about its model."""
    return {"of_result": lambda result: replace(result, model=replace(result.model, **fields))}


def identified(parts: Mapping[str, str | None], **fields: Any) -> Forged:
    """A result whose identity has other parts, and the hash of these."""
    return told(identity=dict(parts), identity_sha256=model_identity(parts), **fields)


def asking(**fields: Any) -> Forged:
    """A result with another signature."""
    return {"of_result": lambda result: signed(result, **fields)}


def on_each(change: Callable[[Record], Record]) -> Change:
    return lambda records: [change(record) for record in records]


def with_exchange(record: Record, change: Callable[[Exchange], Exchange]) -> Record:
    return replace(record, exchanges=tuple(map(change, record.exchanges)))


def on_each_exchange(change: Callable[[Exchange], Exchange]) -> Change:
    return on_each(lambda record: with_exchange(record, change))


def exchanges_with(**fields: Any) -> Change:
    """Records of which each exchange has other fields."""
    return on_each_exchange(lambda one: replace(one, **fields))


def accepted(results: Path, place: str, date: str, **fields: Any) -> None:
    path = results / "register.json"
    told: dict[str, Any] = {"schema_version": "1.0", "results": []}
    told = json.loads(path.read_text()) if path.exists() else told
    of_file = {"place": place, "result_sha256": sha256_file(results / place / "result.json"), "accepted": date}
    decision = {"owner": "acme-bot", "decision": "accepted", "reason": None, "rerun": None}
    told["results"].append(of_file | decision | fields)
    path.write_text(json.dumps(told))


def constant(first: float) -> Change:
    logprobs = (math.log(first) if first else -math.inf, math.log(1 - first) if first < 1 else -math.inf)
    return exchanges_with(option_logprobs=logprobs)


def nudged(by: float) -> Change:
    def nudge(one: Exchange) -> Exchange:
        low, high = (math.exp(value or 0.0) for value in one.option_logprobs)
        return replace(one, option_logprobs=(math.log(low * (1 - by)), math.log(high)))

    return on_each_exchange(nudge)
