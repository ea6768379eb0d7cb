"""One run: items to requests, store, backend, records, metrics, result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from evaluators.backend import Backend, KeepsState, Request, Response, Runtime, Sent
from evaluators.progress import Advance, progress
from evaluators.runs.measuring import score_records
from evaluators.runs.records import check_failures, count, early_look, records_of, whole
from evaluators.runs.run_folder import LOCK, RECORDS, RESULT, STATE, environment, run_folder
from evaluators.runs.selection import Selection, sign
from evaluators.scorer import TextScorer
from evaluators.stores.store import STORE, ResponseStore, Totals, store_key
from evaluators.task import Prompt, Task
from evaluators.text_scores import NO_SCORES, TextScores, read_scores
from schemas import contract, strict_json, tables
from schemas.errors import ConfigError, DataError, RunError
from schemas.files import sha256_file
from schemas.record import Record
from schemas.result import SCHEMA_VERSION as RESULT_SCHEMA_VERSION
from schemas.result import Environment, Model, Normalisation, RecordsFile, Result, Signature, Usage

MAX_FAILURE_RATE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run after the backend was asked."""

    requests: Sequence[Sequence[Request]]
    """Per item."""
    keys: Sequence[Sequence[bytes]]
    responses: dict[bytes, Response] = field(repr=False)
    totals: Totals


class Finished(NamedTuple):
    """What a run left on disk."""

    folder: Path
    result: Result


def run(
    selection: Selection,
    task: Task,
    prompt: Prompt,
    backend: Backend,
    *,
    root: Path,
    normalisation: Normalisation | None = None,
    max_failure_rate: float = MAX_FAILURE_RATE,
    cache: Path | None = None,
    scorers: Sequence[TextScorer] = (),
    keep_scores: bool = False,
    command: str,
) -> Finished:
    """Ask a model, or go on where an earlier run stopped, and write the result.

    Args:
        selection: The items.
        task: Asks and reads them.
        prompt: How they are asked.
        backend: Who answers.
        root: Folder of all runs.
        normalisation: How option log-probabilities become probabilities; None for the sum, and for generated texts.
        max_failure_rate: Share of requests that may fail before the run ends without a result.
        cache: A store that several runs share: answers in it are not asked again, new ones are added to it.
        scorers: Of the texts, for tasks whose metrics read scores.
        keep_scores: Whether scores of an earlier result stay, whoever gave them, so that only other kinds are scored.
        command: The command line that reproduces the run.

    Returns:
        The result, and the folder with result.json, records.parquet and responses.sqlite; scores.parquet too where
        texts were scored.

    Raises:
        ConfigError: the backend cannot do what the prompt needs; nothing was asked.
        RunError: too many requests failed, or another process holds the run. What was answered is kept.
    """
    check_capability(task, prompt, backend)
    signature = sign(selection, task, prompt, normalisation)
    folder = run_folder(root, signature, backend.model)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        with lock, ExitStack() as open_stores:
            store = open_stores.enter_context(ResponseStore(folder / STORE, backend.model))
            shared = None if cache is None else open_stores.enter_context(ResponseStore(cache, backend.model))
            if isinstance(backend, KeepsState):
                backend.state_path = folder / STATE
                backend.count_spent(store.totals().cost_usd or 0.0)
            stores = _Stores(store, shared)
            reading = signature.normalisation
            asked = _ask(selection, task, prompt, backend, stores, max_failure_rate, reading, folder.name)
            in_chat = backend.model.chat_template_sha256 is not None
            answers = [[asked.responses[key] for key in item] for item in asked.keys]
            records = records_of(selection, task, asked.requests, answers, reading, chat=in_chat)
            check_failures(records, max_failure_rate)
            runtimes = store.runtimes() or [backend.runtime]
            where = environment(runtimes)
            earlier = earlier_scores(folder, scorers, keep=keep_scores)
            result = _write(folder, records, signature, backend.model, where, asked, earlier, command)
    except Timeout as error:
        raise RunError(f"{folder}: another process holds this run; wait for it or stop it") from error
    return Finished(folder, result)


def check_capability(task: Task, prompt: Prompt, backend: Backend) -> None:
    """Refuse a prompt that the backend cannot ask.

    Raises:
        ConfigError: it lacks a capability, or the prompt makes no sense in a chat.
    """
    model = backend.model
    if prompt.requires == "import":
        raise ConfigError(
            f"prompt '{prompt.id}' marks answers that were given elsewhere: python -m evaluators import brings them "
            "in; take another prompt to ask a model"
        )
    if prompt.requires not in backend.capabilities:
        others = [other.id for other in task.prompts.values() if other.requires in backend.capabilities]
        settings = backend.runtime.settings
        why = "".join(f"; {name}: {value}" for name, value in settings.items() if name.startswith("not_"))
        raise ConfigError(
            f"backend '{model.backend}' cannot do {prompt.requires}, which prompt '{prompt.id}' needs; "
            f"it can do: {', '.join(sorted(backend.capabilities)) or 'nothing'}; "
            f"prompts for that: {', '.join(others) or 'none'}{why}"
        )
    if model.chat_template_sha256 is not None and not prompt.chat:
        others = [other.id for other in task.prompts.values() if other.chat]
        raise ConfigError(
            f"prompt '{prompt.id}' is a text to go on from, not a message; leave out --chat, or take --prompt "
            f"{' or '.join(others)}"
        )


class _Stores(NamedTuple):
    """Where answers are looked up and kept."""

    run: ResponseStore
    shared: ResponseStore | None

    def known(self, keys: Sequence[bytes]) -> dict[bytes, Response]:
        """Answers that need not be asked for; those of the shared store become the run's too."""
        return self.run.responses(keys)

    def add(self, answers: dict[bytes, tuple[Request, Response]], seconds: float) -> None:
        """Keep answers in both."""
        self.run.add(answers, seconds)
        if self.shared is not None:
            self.shared.add(answers, seconds)

    def take_over(self, unique: dict[bytes, Request], known: dict[bytes, Response]) -> None:
        """Copy what the shared store knows and the run does not."""
        if self.shared is None:
            return
        found = self.shared.responses([key for key in unique if key not in known])
        if found:
            self.run.add({key: (unique[key], response) for key, response in found.items()})
            for runtime in self.shared.runtimes():
                self.run.note_runtime(runtime)
            known.update(found)

    def note_runtime(self, runtime: Runtime) -> None:
        """Note where this session's answers come from."""
        self.run.note_runtime(runtime)
        if self.shared is not None:
            self.shared.note_runtime(runtime)


def _ask(
    selection: Selection,
    task: Task,
    prompt: Prompt,
    backend: Backend,
    stores: _Stores,
    max_failure_rate: float,
    normalisation: Normalisation | None,
    label: str,
) -> Asked:
    requests = [task.requests(item, prompt) for _, item in selection.items]
    keys = [
        [store_key(backend.model, request, with_facts=backend.reads_facts) for request in asked] for asked in requests
    ]
    # A request that several items share is asked once.
    unique = dict(zip(chain.from_iterable(keys), chain.from_iterable(requests), strict=True))
    responses = stores.known(list(unique))
    stores.take_over(unique, responses)
    per_item = len(unique) / len(selection.items)
    with progress(label, len(selection.items), done=round(len(responses) / per_item)) as advance:
        steps = _Steps(advance, per_item)
        look = early_look(task, requests, keys, normalisation, chat=backend.model.chat_template_sha256 is not None)
        _ask_missing(unique, responses, backend, stores, round(max_failure_rate * len(unique)), steps, look)
    return Asked(requests=requests, keys=keys, responses=responses, totals=stores.run.totals())


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
    unique: dict[bytes, Request],
    responses: dict[bytes, Response],
    backend: Backend,
    stores: _Stores,
    max_failures: int,
    step: _Steps,
    look: Callable[[Mapping[bytes, Response]], bool],
) -> None:
    """Ask for every answer that is missing; ``responses`` takes the answers, failed ones too."""
    order, requests = list(unique), list(unique.values())
    missing = frozenset(index for index, key in enumerate(order) if key not in responses)
    if not missing:
        return
    n_failed = 0
    looked = look(responses)
    with closing(backend.ask(requests, missing)) as events:
        for event in events:
            if isinstance(event, Sent):
                stores.run.sent(event)
                continue
            answers = {index: whole(answer) for index, answer in event.responses.items()}
            stores.add({order[index]: (requests[index], answer) for index, answer in answers.items()}, event.seconds)
            responses.update((order[index], answer) for index, answer in answers.items())
            stores.note_runtime(backend.runtime)
            step(len(event.responses))
            looked = looked or look(responses)
            failed = [answer for answer in event.responses.values() if answer.status == "failed"]
            n_failed += len(failed)
            if n_failed > max_failures:
                raise RunError(
                    f"{n_failed} of {len(unique)} requests failed, more than the {max_failures} that "
                    f"--max-failure-rate allows; last error: {failed[-1].error}. Answers are kept in "
                    f"{stores.run.path}: mend the cause and run the same command again"
                )


def _write(
    folder: Path,
    records: list[Record],
    signature: Signature,
    model: Model,
    where: Environment,
    asked: Asked,
    earlier: Earlier,
    command: str,
) -> Result:
    """Records first, then the result that names their hash: a result without its records never exists."""
    responses = asked.responses.values()
    prompt_tokens = [response.n_prompt_tokens for response in responses]
    completion_tokens = [response.n_completion_tokens for response in responses]
    tables.write_rows(folder / RECORDS, records, Record)
    metrics, scores = score_records(folder, records, signature.task, earlier.scorers, known=earlier.known)
    result = Result(
        schema_version=RESULT_SCHEMA_VERSION,
        model=model,
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
            cost_usd=asked.totals.cost_usd,
        ),
        environment=where,
        records=RecordsFile(path=RECORDS, sha256=sha256_file(folder / RECORDS), n_rows=len(records)),
        scores=scores,
    )
    write_result(folder, result)
    return result


class Earlier(NamedTuple):
    """What is left to be scored in a folder that may hold an earlier result."""

    known: TextScores
    scorers: tuple[TextScorer, ...]


def earlier_scores(folder: Path, scorers: Sequence[TextScorer], *, keep: bool) -> Earlier:
    """What need not be scored again, since an earlier result has it; nothing where that is unsound.

    Args:
        folder: Of the run.
        scorers: Who is to score.
        keep: Whether scores stay that others have given; their kinds are then not scored.
    """
    path = folder / RESULT
    known = NO_SCORES
    if path.is_file():
        with suppress(DataError):
            known = read_scores(folder, contract.load(strict_json.read(path), Result, where=str(path)).scores)
    same = {scorer.identity.kind for scorer in scorers if known.scorers.get(scorer.identity.kind) == scorer.identity}
    kept = set(known.scorers) if keep else same
    return Earlier(
        TextScores(
            {kind: scorer for kind, scorer in known.scorers.items() if kind in kept},
            {kind: vectors for kind, vectors in known.values.items() if kind in kept},
        ),
        tuple(scorer for scorer in scorers if scorer.identity.kind in same or scorer.identity.kind not in kept),
    )


def write_result(folder: Path, result: Result) -> None:
    """Check a result and write it."""
    contract.check(result, where=str(folder / RESULT))
    strict_json.write(folder / RESULT, contract.dump(result))


def _sum_if_known(values: Sequence[int | None]) -> int | None:
    """None if any is unknown: a sum of the known ones would pass for all."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
