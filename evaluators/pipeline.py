"""One run: items to requests, store, backend, records, metrics, result."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from evaluators.backend import Backend, Request, Response
from evaluators.progress import Advance, progress
from evaluators.run_folder import LOCK, RECORDS, RESULT, environment, run_folder
from evaluators.scoring import compute_metrics
from evaluators.store import STORE, ResponseStore, Totals, store_key
from evaluators.task import Prompt, Task
from schemas import contract, strict_json, tables
from schemas.dataset import CoreferenceItem, Manifest
from schemas.dataset_folder import read_split
from schemas.errors import ConfigError, RunError
from schemas.files import sha256_file
from schemas.record import Exchange, Record
from schemas.result import SCHEMA_VERSION as RESULT_SCHEMA_VERSION
from schemas.result import Counts, Normalisation, RecordsFile, Result, Signature, Usage

MAX_FAILURE_RATE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The items of one config that are asked, each with its split."""

    manifest: Manifest
    config: str
    splits: tuple[str, ...]
    items: tuple[tuple[str, CoreferenceItem], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run after the backend was asked."""

    requests: Sequence[Sequence[Request]]
    """Per item."""
    keys: Sequence[Sequence[str]]
    responses: dict[str, Response] = field(repr=False)
    totals: Totals


class Finished(NamedTuple):
    """What a run left on disk."""

    folder: Path
    result: Result


def select(
    folder: Path, manifest: Manifest, config: str, *, splits: Sequence[str] = (), limit: int | None = None
) -> Selection:
    """The items to ask.

    Args:
        folder: The dataset folder.
        manifest: Its manifest.
        config: Name of the config.
        splits: All of the config if empty.
        limit: At most this many items, as whole minimal pairs, drawn by the hash of the pair: the same ones on every
            machine. All if None.

    Raises:
        ConfigError: there is no such config or split, or the limit leaves nothing.
        DataError: the data is unsound.
    """
    entries = [entry for entry in manifest.splits if entry.config == config]
    if not entries:
        have = ", ".join(dict.fromkeys(entry.config for entry in manifest.splits))
        raise ConfigError(f"config '{config}' is not in dataset '{manifest.name}'; have: {have}")
    have_splits = [entry.split for entry in entries]
    for split in splits:
        if split not in have_splits:
            raise ConfigError(f"split '{split}' is not in config '{config}'; have: {', '.join(have_splits)}")
    wanted = [entry for entry in entries if not splits or entry.split in splits]
    items = [(entry.split, item) for entry in wanted for item in read_split(folder, manifest, entry)]
    if limit is not None:
        items = _limited(items, limit)
    if not items:
        raise ConfigError(f"--limit {limit} leaves no whole minimal pair of config '{config}'; raise it to 2 or more")
    return Selection(
        manifest=manifest, config=config, splits=tuple(entry.split for entry in wanted), items=tuple(items)
    )


def _limited(items: Sequence[tuple[str, CoreferenceItem]], limit: int) -> list[tuple[str, CoreferenceItem]]:
    sizes = Counter(item.pair_id for _, item in items)
    chosen: set[str] = set()
    room = limit
    for pair in sorted(sizes, key=lambda pair: hashlib.sha256(pair.encode()).digest()):
        if sizes[pair] > room:
            break
        chosen.add(pair)
        room -= sizes[pair]
    return [(split, item) for split, item in items if item.pair_id in chosen]


def sign(selection: Selection, task: Task, prompt: Prompt, normalisation: Normalisation) -> Signature:
    """The signature of asking these items in this way."""
    manifest = selection.manifest
    return Signature(
        benchmark=manifest.benchmark,
        dataset=manifest.name,
        dataset_version=manifest.version,
        config=selection.config,
        splits=selection.splits,
        items_sha256=tables.content_sha256(item for _, item in selection.items),
        n_items=len(selection.items),
        task=task.name,
        task_version=task.version,
        prompt=prompt.id,
        prompt_sha256=prompt.sha256(),
        scoring=prompt.scoring,
        normalisation=normalisation,
        n_outcomes=len(prompt.outcomes),
    )


def run(
    selection: Selection,
    task: Task,
    prompt: Prompt,
    backend: Backend,
    *,
    root: Path,
    normalisation: Normalisation = "sum",
    max_failure_rate: float = MAX_FAILURE_RATE,
    command: str,
) -> Finished:
    """Ask a model, or go on where an earlier run stopped, and write the result.

    Args:
        selection: The items.
        task: Asks and reads them.
        prompt: How they are asked.
        backend: Who answers.
        root: Folder of all runs.
        normalisation: How option log-probabilities become probabilities.
        max_failure_rate: Share of requests that may fail before the run ends without a result.
        command: The command line that reproduces the run.

    Returns:
        The result, and the folder with result.json, records.parquet and responses.sqlite.

    Raises:
        ConfigError: the backend cannot do what the prompt needs; nothing was asked.
        RunError: too many requests failed, or another process holds the run. What was answered is kept.
    """
    if prompt.requires not in backend.capabilities:
        raise ConfigError(
            f"backend '{backend.model.backend}' cannot do {prompt.requires}, which prompt '{prompt.id}' needs; "
            f"it can do: {', '.join(sorted(backend.capabilities)) or 'nothing'}"
        )
    signature = sign(selection, task, prompt, normalisation)
    folder = run_folder(root, signature, backend.model)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        with lock, ResponseStore(folder / STORE, backend.model) as store:
            asked = _ask(selection, task, prompt, backend, store, max_failure_rate, label=folder.name)
            records = _records(selection, task, asked, normalisation)
            check_failures(records, max_failure_rate)
            result = _write(folder, records, signature, backend, asked, command)
    except Timeout as error:
        raise RunError(f"{folder}: another process holds this run; wait for it or stop it") from error
    return Finished(folder, result)


def _ask(
    selection: Selection,
    task: Task,
    prompt: Prompt,
    backend: Backend,
    store: ResponseStore,
    max_failure_rate: float,
    *,
    label: str,
) -> Asked:
    requests = [task.requests(item, prompt) for _, item in selection.items]
    keys = [
        [store_key(backend.model, request, with_facts=backend.reads_facts) for request in asked] for asked in requests
    ]
    # A request that several items share is asked once.
    unique = dict(zip(chain.from_iterable(keys), chain.from_iterable(requests), strict=True))
    responses = store.responses(unique)
    per_item = len(unique) / len(selection.items)
    with progress(label, len(selection.items), done=round(len(responses) / per_item)) as advance:
        steps = _Steps(advance, per_item)
        _ask_missing(unique, responses, backend, store, round(max_failure_rate * len(unique)), steps)
    return Asked(requests=requests, keys=keys, responses=responses, totals=store.totals())


class _Steps:
    """Turns answered requests into finished items without losing fractions."""

    def __init__(self, advance: Advance, per_item: float) -> None:
        self._advance, self._per_item, self._rest = advance, per_item, 0.0

    def __call__(self, n_requests: int) -> None:
        self._rest += n_requests / self._per_item
        whole = int(self._rest + 1e-9)
        self._rest -= whole
        self._advance(whole)


def _ask_missing(
    unique: dict[str, Request],
    responses: dict[str, Response],
    backend: Backend,
    store: ResponseStore,
    max_failures: int,
    step: _Steps,
) -> None:
    """Send every batch that holds an unanswered request; ``responses`` takes the answers, failed ones too."""
    order = list(unique)
    n_failed = 0
    for indices in backend.plan(list(unique.values())):
        batch = [order[index] for index in indices]
        # Batches are stored whole: where only a part is known, the rest of it failed before and is asked anew.
        missing = [key for key in batch if key not in responses]
        if not missing:
            continue
        number = store.started(len(missing))
        start = time.perf_counter()
        answers = dict(zip(missing, backend.answer([unique[key] for key in missing]), strict=True))
        seconds = time.perf_counter() - start
        store.add(number, {key: (unique[key], answer) for key, answer in answers.items()}, seconds)
        responses.update(answers)
        step(len(missing))
        failed = [answer for answer in answers.values() if answer.status == "failed"]
        n_failed += len(failed)
        if n_failed > max_failures:
            raise RunError(
                f"{n_failed} of {len(unique)} requests failed, more than the {max_failures} that --max-failure-rate "
                f"allows; last error: {failed[-1].error}. Answers are kept in {store.path}: mend the cause and run the "
                "same command again"
            )


def _records(selection: Selection, task: Task, asked: Asked, normalisation: Normalisation) -> list[Record]:
    records = []
    for (split, item), requests, keys in zip(selection.items, asked.requests, asked.keys, strict=True):
        show = selection.manifest.redistributable
        exchanges = tuple(
            _exchange(request, asked.responses[key], show_prompt=show)
            for request, key in zip(requests, keys, strict=True)
        )
        read = task.read(exchanges, normalisation)
        facts = task.facts(item)
        records.append(
            Record(
                item_id=item.item_id,
                config=selection.config,
                split=split,
                status=read.status,
                truncated=any(exchange.finish_reason == "length" for exchange in exchanges),
                reason=read.reason,
                cluster=facts.cluster,
                pair_id=facts.pair_id,
                target=facts.target,
                reference=facts.reference,
                groups=dict(facts.groups),
                exchanges=exchanges,
                reading=read.reading,
            )
        )
    return records


def _exchange(request: Request, response: Response, *, show_prompt: bool) -> Exchange:
    return Exchange(
        kind="choice",
        request_sha256=request.sha256(),
        prompt=request.prompt if show_prompt else None,
        outcomes=request.outcomes,
        options=request.options,
        option_logprobs=response.option_logprobs,
        option_end_logprobs=response.option_end_logprobs,
        option_token_counts=response.option_token_counts,
        option_byte_counts=tuple(len(option.encode()) for option in request.options),
        n_moved_tokens=response.n_moved_tokens,
        text=None,
        finish_reason=response.finish_reason,
        sample=None,
        n_prompt_tokens=response.n_prompt_tokens,
        n_completion_tokens=response.n_completion_tokens,
        status=response.status,
        error=response.error,
    )


def check_failures(records: Sequence[Record], max_failure_rate: float) -> None:
    """Refuse records too many of which failed, be it in the asking or in the reading.

    Raises:
        RunError: more of them failed than the rate allows.
    """
    failed = [record for record in records if record.status == "failed"]
    if len(failed) > max_failure_rate * len(records):
        raise RunError(
            f"{len(failed)} of {len(records)} items failed, more than --max-failure-rate {max_failure_rate:g} allows: "
            f"{failed[-1].reason}; answers are kept, no result was written"
        )


def count(records: Sequence[Record]) -> Counts:
    """How many records ended how."""
    by_status = Counter(record.status for record in records)
    return Counts(
        items=len(records),
        scored=by_status["scored"],
        refused=by_status["refused"],
        unparsed=by_status["unparsed"],
        failed=by_status["failed"],
        truncated=sum(record.truncated for record in records),
    )


def _write(
    folder: Path, records: list[Record], signature: Signature, backend: Backend, asked: Asked, command: str
) -> Result:
    """Records first, then the result that names their hash: a result without its records never exists."""
    metrics = compute_metrics(records, signature.task)
    responses = asked.responses.values()
    prompt_tokens = [response.n_prompt_tokens for response in responses]
    completion_tokens = [response.n_completion_tokens for response in responses]
    tables.write_rows(folder / RECORDS, records, Record)
    result = Result(
        schema_version=RESULT_SCHEMA_VERSION,
        model=backend.model,
        signature=signature,
        signature_sha256=signature.sha256(),
        command=command,
        counts=count(records),
        metrics=metrics,
        usage=Usage(
            n_requests=len(asked.responses),
            n_attempts=asked.totals.n_attempts,
            n_prompt_tokens=_sum_if_known(prompt_tokens),
            n_completion_tokens=_sum_if_known(completion_tokens),
            seconds=round(asked.totals.seconds, 3),
            cost_usd=None,
        ),
        environment=environment(backend.runtime),
        records=RecordsFile(path=RECORDS, sha256=sha256_file(folder / RECORDS), n_rows=len(records)),
    )
    write_result(folder, result)
    return result


def write_result(folder: Path, result: Result) -> None:
    """Check a result and write it."""
    contract.check(result, where=str(folder / RESULT))
    strict_json.write(folder / RESULT, contract.dump(result))


def _sum_if_known(values: Sequence[int | None]) -> int | None:
    """None if any is unknown: a sum of the known ones would pass for all."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
