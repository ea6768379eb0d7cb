"""Runs a plan: sends the requests that are not answered yet, stores the responses and writes the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from evaluators.backend import Backend, KeepsState, Request, Response, Runtime, Sent
from evaluators.runs.context import other_prompts
from evaluators.runs.earlier import Found, earlier_answers
from evaluators.runs.environment import environment
from evaluators.runs.finish import Origin, finish_run, held, scoring_after
from evaluators.runs.measuring import metric_definitions
from evaluators.runs.options import RunOptions
from evaluators.runs.plan import Plan, run_folder
from evaluators.runs.records import check_failures, early_look, records_of, whole
from evaluators.runs.unread import are_many, is_chat, remedy
from evaluators.stores.store import STORE, ResponseStore, Totals
from schemas.errors import ConfigError, RunError
from schemas.progress import Advance, progress
from schemas.result import Result, Usage

_STATE = "pending.json"


class Finished(NamedTuple):
    """A finished run on disk."""

    folder: Path
    result: Result
    advice: str = ""
    """Advice on what may help if answers cannot be read; empty if most of them could."""


def run(plan: Plan, backend: Backend, options: RunOptions) -> Finished:
    """Ask a model, or continue where an earlier run stopped, and write the result.

    Args:
        plan: The items, and how they are asked and read.
        backend: The model that answers.
        options: The folder of all runs, and the rules for cache, scores and failures.

    Returns:
        The result, and the folder with result.json, records.parquet and responses.sqlite; with scores.parquet too if
        texts were scored.

    Raises:
        ConfigError: the backend cannot ask what the plan needs, or two metrics of the task share a name. Nothing was
            asked.
        RunError: too many requests failed, or another process holds the run. The answers so far are kept.
    """
    plan.check(backend)
    if not metric_definitions(plan.task.name):
        raise ConfigError(f"task '{plan.task.name}' has no metric; add one in evaluators/metrics that names this task")
    folder = run_folder(options.root, plan.signature, backend.model)
    with held(folder), ExitStack() as open_stores:
        store = open_stores.enter_context(ResponseStore(folder / STORE, backend.model))
        cache = options.cache
        shared = None if cache is None else open_stores.enter_context(ResponseStore(cache, backend.model))
        if isinstance(backend, KeepsState):
            backend.state_path = folder / _STATE
            backend.count_spent(store.totals().cost_usd or 0.0)
        asked = _ask(plan, backend, _Stores(store, shared), options, folder.name)
        records = records_of(plan, plan.requests, asked.answers, chat=backend.model.chat_template_sha256 is not None)
        check_failures(records, options.max_failure_rate)
        origin = Origin(
            model=backend.model,
            signature=plan.signature,
            command=options.command,
            usage=asked.usage,
            environment=environment(store.runtimes() or [backend.runtime]),
        )
        scoring = scoring_after(folder, options.scorers, keep=options.keep_scores)
        result = finish_run(folder, records, origin, scoring)
        unread = are_many(result.counts.unparsed + result.counts.refused, len(records))
        return Finished(folder, result, _advice(plan, backend, options) if unread else "")


def _advice(plan: Plan, backend: Backend, options: RunOptions) -> str:
    others = other_prompts(plan, backend, options.max_failure_rate)
    return remedy(plan.prompt, others, in_chat=is_chat(backend.model, options.command))


class _Stores(NamedTuple):
    """The stores of a run: its own, and the one that runs share, if there is one."""

    run: ResponseStore
    shared: ResponseStore | None

    def known(self, keys: Sequence[bytes]) -> dict[bytes, Response]:
        """Return the answers that the run's own store already holds."""
        return self.run.responses(keys)

    def add(self, answers: dict[bytes, tuple[Request, Response]], seconds: float) -> None:
        """Add answers to both stores."""
        self.run.add(answers, seconds)
        if self.shared is not None:
            self.shared.add(answers, seconds)

    def take_over(self, unique: dict[bytes, Request], known: dict[bytes, Response]) -> None:
        """Copy answers that only the shared store holds into the run's store and into ``known``."""
        if self.shared is None:
            return
        found = self.shared.responses([key for key in unique if key not in known])
        if found:
            self.run.add({key: (unique[key], response) for key, response in found.items()})
            for runtime in self.shared.runtimes():
                self.run.note_runtime(runtime)
            known.update(found)

    def take_earlier(self, found: Found, unique: dict[bytes, Request], known: dict[bytes, Response]) -> None:
        """Copy answers of other runs into the run's store and into ``known``."""
        if found.responses:
            self.run.add({key: (unique[key], response) for key, response in found.responses.items()})
            for runtime in found.runtimes:
                self.run.note_runtime(runtime)
            known.update(found.responses)

    def note_runtime(self, runtime: Runtime) -> None:
        """Note in both stores where this session's answers were computed."""
        self.run.note_runtime(runtime)
        if self.shared is not None:
            self.shared.note_runtime(runtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The answers to all requests of a run."""

    keys: Sequence[Sequence[bytes]]
    """Store keys of the requests of each item."""
    responses: Mapping[bytes, Response] = field(repr=False)
    totals: Totals

    @property
    def answers(self) -> Sequence[Sequence[Response]]:
        """The responses to the requests of each item."""
        return [[self.responses[key] for key in keys] for keys in self.keys]

    @property
    def usage(self) -> Usage:
        """The numbers of requests and tokens, the time and the cost."""
        responses = self.responses.values()
        return Usage(
            n_requests=len(self.responses),
            n_attempts=self.totals.n_attempts,
            n_prompt_tokens=_sum_if_known([response.n_prompt_tokens for response in responses]),
            n_completion_tokens=_sum_if_known([response.n_completion_tokens for response in responses]),
            seconds=round(self.totals.seconds, 3),
            cost_usd=self.totals.cost_usd,
        )


def _ask(plan: Plan, backend: Backend, stores: _Stores, options: RunOptions, label: str) -> _Asked:
    keys = plan.keys(backend)
    # A request that several items share is asked once.
    unique = dict(zip(chain.from_iterable(keys), chain.from_iterable(plan.requests), strict=True))
    responses = stores.known(list(unique))
    stores.take_over(unique, responses)
    missing = [key for key in unique if key not in responses]
    found = earlier_answers(options.root, plan.signature, backend.model, missing)
    for line in found.left_out:
        print(line, file=sys.stderr)
    stores.take_earlier(found, unique, responses)
    per_item = len(unique) / len(plan.selection.items)
    with progress(label, len(plan.selection.items), done=round(len(responses) / per_item)) as advance:
        steps = _Steps(advance, per_item)
        look = early_look(plan, keys, backend.model, lambda: _advice(plan, backend, options))
        _ask_missing(unique, responses, backend, stores, round(options.max_failure_rate * len(unique)), steps, look)
    return _Asked(keys=keys, responses=responses, totals=stores.run.totals())


class _Steps:
    """A callback that converts answered requests into finished items and carries fractions over."""

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
    """Ask for each missing answer, and add all answers to ``responses``, including failed ones.

    Raises:
        RunError: more than ``max_failures`` requests failed, or none of the first items could be read.
    """
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
                    f"{stores.run.path}: fix the cause and run the same command again"
                )


def _sum_if_known(values: Sequence[int | None]) -> int | None:
    """Return the sum of the values; None if one is unknown, since the sum of the others would look complete."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
