"""Runs a plan: sends the unanswered requests, stores the responses and writes the result."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.files import replacing
from biasboard.ground.progress import Advance, progress
from evaluators.backend import Backend, Request, Response, RunContext, Runtime, Sent
from evaluators.runs.ask.context_limit import other_prompts
from evaluators.runs.measure.measuring import (
    Origin,
    environment,
    finish_run,
    locked_folder,
    metric_definitions,
    scoring_after,
    write_parts,
)
from evaluators.runs.measure.recording import (
    FailureCount,
    are_many,
    early_look,
    records_of,
    remedy,
    sound,
    storable,
    well_formed,
)
from evaluators.runs.plan.earlier_answers import earlier_answers
from evaluators.runs.plan.plan import MAX_FAILURE_RATE, AskedPart, Plan, distinct_requests, run_folder
from evaluators.scorer import TextScorer
from evaluators.stores.store import STORE, ResponseStore
from schemas.documents.result import AdaptersFile, Result, Usage
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import hash_problems

# Work that goes on elsewhere, such as batches at a provider; after a stop, the same command collects its results.
_STATE = "pending.json"
_A_SERIES = 20
"""Number of requests after which a run ends whose every request has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The settings of a run besides its plan: the folder, the cache, the scorers, and how many requests may fail."""

    root: Path
    """Folder of all runs."""
    command: str
    """The command line that reproduces the run."""
    max_failure_rate: float = MAX_FAILURE_RATE
    """Share of requests that may fail; if more do, the run ends without a result."""
    cache: Path | None = None
    """Store that several runs share: its answers are reused, and new answers are added to it."""
    scorers: Sequence[TextScorer] = ()
    """Scorers of the texts, for tasks whose metrics read scores."""
    keep_scores: bool = False
    """True to keep all scores of an earlier result, even of other scorers, and score only missing kinds."""
    advance: Advance | None = None
    """Progress of several runs, in which this one counts its items; None for a bar of its own."""


class Finished(NamedTuple):
    """A finished run on disk."""

    folder: Path
    result: Result
    advice: str = ""
    """Advice on what may help if many answers could not be read; empty otherwise."""
    n_earlier: int = 0
    """Number of its requests that were answered before this call."""


def run(plan: Plan, backend: Backend, options: RunOptions) -> Finished:
    """Ask a model, or continue where an earlier run stopped, and write the result.

    Returns:
        The result, and the folder with result.json, records.parquet, responses.sqlite and, if texts were scored,
        scores.parquet.

    Raises:
        ConfigError: the backend cannot ask what the plan needs, or two metrics of the task share a name. Nothing was
            asked.
        RunError: too many requests failed, or another process holds the run. The answers so far are kept.
    """
    plan.check(backend)
    # Loads the metrics, so that a missing or misnamed one is reported before anything is asked.
    if not metric_definitions(plan.task.name) and not plan.task.measures_nothing:
        raise ConfigError(f"task '{plan.task.name}' has no metric; add one in a file NAME_metrics.py of its family")
    folder = run_folder(options.root, plan.signature, backend.model)
    with locked_folder(folder), ExitStack() as open_stores:
        store = open_stores.enter_context(ResponseStore(folder / STORE, backend.model))
        cache = options.cache
        shared = None if cache is None else open_stores.enter_context(ResponseStore(cache, backend.model))
        spent = store.totals().cost_usd or 0.0
        # Earlier cost counts against --max-cost. The earlier choice between packed and plain scoring is kept: made anew
        # on the remaining items, it could differ and change last digits within one run.
        backend.begin(RunContext(folder / _STATE, spent, store.choices(), store.keep_choice))
        asking = _RunInProgress(plan, backend, store, shared, options)
        shared_bar = None if options.advance is None else nullcontext(options.advance)
        with shared_bar or progress(folder.name, plan.selection.n_items) as advance:
            # Lazy: the model is asked about each part just before the part's records are written.
            answered_parts = asking.records(advance)
            written = write_parts(folder, answered_parts)
        origin = Origin(
            model=backend.model,
            signature=plan.signature,
            command=options.command,
            usage=asking.usage,
            environment=environment(store.runtimes() or [backend.runtime]),
            adapters=_kept_adapters(folder, backend),
        )
        scoring = scoring_after(folder, options.scorers, keep=options.keep_scores)
        result = finish_run(folder, written, origin, scoring)
        counts = result.counts
        unread = are_many(counts.unparsed + counts.refused, counts.items)
        return Finished(folder, result, _advice(plan, backend, options) if unread else "", asking.n_earlier)


def _kept_adapters(folder: Path, backend: Backend) -> AdaptersFile | None:
    """Copy the list of the model's adapters into the folder of a run; None if it has none."""
    # It lists the training items, which calibrations must not learn from, on machines without the adapters too.
    adapters = backend.adapters
    if adapters is None:
        return None
    with replacing(folder / adapters.file.path) as temporary:
        shutil.copyfile(adapters.path, temporary)
    for problem in hash_problems(folder, adapters.file):
        raise DataError(problem)
    return adapters.file


def _advice(plan: Plan, backend: Backend, options: RunOptions) -> str:
    others = other_prompts(plan, backend, options.max_failure_rate)
    # By a template here, or by the endpoint's.
    in_chat = backend.model.chat_template_sha256 is not None or "--api chat" in options.command
    return remedy(plan.prompt, others, in_chat=in_chat)


@dataclass
class _RunInProgress:
    """Asks a plan part by part, and sums up requests, tokens and failures."""

    plan: Plan
    backend: Backend
    store: ResponseStore
    shared: ResponseStore | None
    """The cache; None without one."""
    options: RunOptions
    failures: FailureCount = field(default_factory=FailureCount)
    n_failed_requests: int = 0
    n_earlier: int = 0
    has_looked: bool = False
    """True once :func:`early_look` has checked the first answers."""
    _counted: set[int] = field(default_factory=set, repr=False)
    """First bytes of the keys of all requests so far; several parts may share a request."""
    _n_prompt_tokens: int | None = 0
    _n_completion_tokens: int | None = 0

    @property
    def usage(self) -> Usage:
        """The numbers of requests and tokens, the time and the cost."""
        totals = self.store.totals()
        return Usage(
            n_requests=len(self._counted),
            n_attempts=totals.n_attempts,
            n_prompt_tokens=self._n_prompt_tokens,
            n_completion_tokens=self._n_completion_tokens,
            seconds=round(totals.seconds, 3),
            cost_usd=totals.cost_usd,
        )

    def records(self, advance: Advance) -> Iterator[RecordColumns]:
        """Ask the unanswered requests of each part, and then yield its records.

        Raises:
            RunError: too many requests failed; records that failed are counted after the last part.
        """
        chat = self.backend.model.chat_template_sha256 is not None
        for group in self.plan.groups(alone=self.backend.model.endpoint == "baseline"):
            asked, responses = self._responses([AskedPart.of(part, self.backend) for part in group], advance)
            for part, requests, keys in asked:
                answers = [[responses[key] for key in of_item] for of_item in keys]
                records = RecordColumns.of_stream(records_of(self.plan, part, requests, answers, chat=chat))
                self.failures.add(records)
                yield records
        self.failures.check(self.options.max_failure_rate)

    def _responses(
        self, asked: Sequence[AskedPart], advance: Advance
    ) -> tuple[Sequence[AskedPart], dict[bytes, Response]]:
        """Return some parts with all their requests, and the responses by their keys, after asking what is missing."""
        unique = distinct_requests(asked)
        n_items, n_rounds = sum(len(part.items) for part, *_ in asked), self.plan.prompt.n_rounds
        # Only this group's first requests exist by now, so the number in the whole run is estimated from its items.
        n_in_all = round(n_rounds * len(unique) / n_items * self.plan.selection.n_items)
        steps = _Steps(advance, n_items, n_rounds * len(unique))
        responses = self._round(unique, steps, n_in_all, None if n_rounds > 1 else self._look(asked))
        if n_rounds > 1:
            asked = [part.followed_up(responses, self.backend) for part in asked]
            follow_ups = {key: request for key, request in distinct_requests(asked).items() if key not in responses}
            look = self._look(asked)
            responses |= self._round(follow_ups, steps, n_in_all, lambda new: look({**responses, **new}))
        steps.finish()
        self._count(responses)
        return asked, responses

    def _look(self, asked: Sequence[AskedPart]) -> Callable[[Mapping[bytes, Response]], bool]:
        return early_look(self.plan, asked, self.backend.model, lambda: _advice(self.plan, self.backend, self.options))

    def _round(
        self,
        unique: dict[bytes, Request],
        steps: _Steps,
        n_in_all: int,
        look: Callable[[Mapping[bytes, Response]], bool] | None,
    ) -> dict[bytes, Response]:
        """Return the responses to requests that do not depend on each other, after asking for those that are missing.

        ``n_in_all`` is the estimated number of requests in the whole run, and ``look`` checks the first
        answers.
        """
        responses = self.store.responses(unique)
        if self.shared is not None:
            cached = self.shared.responses([key for key in unique if key not in responses])
            self._take_over(cached, self.shared.runtimes() if cached else (), unique)
            responses |= cached
        missing = [key for key in unique if key not in responses]
        earlier, runtimes, left_out = earlier_answers(
            self.options.root, self.plan.signature, self.backend.model, missing
        )
        for line in left_out:
            print(line, file=sys.stderr)
        self._take_over(earlier, runtimes, unique)
        responses |= earlier
        self.n_earlier += len(responses)
        steps(len(responses), earlier=True)
        self._ask_missing(unique, responses, steps, n_in_all, look)
        return responses

    def _take_over(
        self, answers: Mapping[bytes, Response], runtimes: Iterable[Runtime], unique: Mapping[bytes, Request]
    ) -> None:
        """Copy answers from elsewhere into the run's store, with the runtimes that computed them."""
        if answers:
            self.store.add({key: (unique[key], response) for key, response in answers.items()})
            for runtime in runtimes:
                self.store.note_runtime(runtime)

    def _ask_missing(
        self,
        unique: dict[bytes, Request],
        responses: dict[bytes, Response],
        step: Callable[[int], None],
        n_in_all: int,
        look: Callable[[Mapping[bytes, Response]], bool] | None,
    ) -> None:
        """Ask for each missing answer, and add all answers to ``responses``, including failed ones."""
        order, requests = list(unique), list(unique.values())
        missing = frozenset(index for index, key in enumerate(order) if key not in responses)
        if not missing:
            return
        max_failures, remote = round(self.options.max_failure_rate * n_in_all), self.backend.is_remote
        self.has_looked = self.has_looked or (look is not None and look(responses))
        # If the run ends early, closing makes the backend stop its work.
        with closing(self.backend.ask(requests, missing)) as events:
            for event in events:
                if isinstance(event, Sent):
                    self.store.sent(event)
                    continue
                # Only what an endpoint computes is beyond us, and paid for.
                if not event.responses.keys() <= missing:
                    raise ConfigError("the backend answers a request that it was not asked; correct the backend")
                checked = {index: well_formed(requests[index], answer) for index, answer in event.responses.items()}
                if remote:
                    checked = {index: sound(requests[index], answer) for index, answer in checked.items()}
                answers = {index: storable(answer, self.backend.without_keys) for index, answer in checked.items()}
                new = {order[index]: (requests[index], answer) for index, answer in answers.items()}
                # Stored first, so that no failure below loses answers that are paid for.
                for store in filter(None, (self.store, self.shared)):
                    store.add(new, event.seconds)
                    store.note_runtime(self.backend.runtime)
                responses.update((order[index], answer) for index, answer in answers.items())
                step(len(event.responses))
                self.has_looked = self.has_looked or (look is not None and look(responses))
                failed = [answer for answer in answers.values() if answer.status == "failed"]
                self.n_failed_requests += len(failed)
                is_series = remote and len(responses) == self.n_failed_requests >= _A_SERIES
                if self.n_failed_requests > max_failures or is_series:
                    why = f"more than the {max_failures} that may (in run: --max-failure-rate)"
                    raise RunError(
                        f"{self.n_failed_requests} of {n_in_all} requests failed, "
                        f"{'each so far' if is_series else why}; last error: {failed[-1].error}. Answers are kept in "
                        f"{self.store.path}: fix the cause and run the same command again"
                    )

    def _count(self, responses: Mapping[bytes, Response]) -> None:
        """Add requests and tokens to the sums, except requests that an earlier part shares."""
        for key, response in responses.items():
            # Saves memory in suites of hundreds of thousands of keys; 8 of the 32 bytes suffice to tell keys apart.
            name = int.from_bytes(key[:8])
            if name not in self._counted:
                self._counted.add(name)
                self._n_prompt_tokens = _sum_if_known(self._n_prompt_tokens, response.n_prompt_tokens)
                self._n_completion_tokens = _sum_if_known(self._n_completion_tokens, response.n_completion_tokens)


class _Steps:
    """A callback that turns answered requests into finished items of the progress bar."""

    def __init__(self, advance: Advance, n_items: int, n_requests: int) -> None:
        self._advance, self._per_item = advance, n_requests / n_items
        self._n_requests, self._n_items, self._shown = 0, n_items, 0

    def __call__(self, n_requests: int, *, earlier: bool = False) -> None:
        self._n_requests += n_requests
        self._show(int(self._n_requests / self._per_item + 1e-9), earlier=earlier)

    def finish(self) -> None:
        self._show(self._n_items)

    def _show(self, n_items: int, *, earlier: bool = False) -> None:
        self._advance(n_items - self._shown, earlier=earlier)
        self._shown = n_items


def _sum_if_known(total: int | None, more: int | None) -> int | None:
    """Return the sum; None if either is unknown, since a sum of the others would look complete."""
    return None if total is None or more is None else total + more
