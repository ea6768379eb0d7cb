"""Estimates how many requests a run would send, and their tokens, cost and disk space, without sending any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from evaluators.backend import Backend, ChoiceRequest, GenerateRequest, Request, TokenCount
from evaluators.runs.plan.earlier_answers import AnswerStores, pace_of, unanswered
from evaluators.runs.plan.plan import Plan, PlannedPart
from evaluators.runs.plan.selection import sampled
from evaluators.stores.read_only import Pace
from evaluators.stores.store import Heads, request_bytes
from evaluators.task import Prompt
from schemas.documents.result import Model
from schemas.outputs.documents import RunEstimate, RunEstimates

# With these sizes, the estimates for 20,000 choices and for 20,000 texts of 40 tokens were 3 % above the real stores.
_BYTES_PER_ANSWER = 190
"""Bytes of a response besides its numbers and texts: key, index and other fields."""
_BYTES_PER_OPTION = 30
_BYTES_PER_TOKEN = 4
_PAGE_OVERHEAD = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate for one model on one config or suite."""

    model: str
    dataset: str
    config: str
    prompt: str
    n_items: int
    n_requests: int
    n_distinct_requests: int
    n_answered: int | None
    """Number of requests answered by an earlier run or the cache; None if unknown, and then all are to be sent."""
    n_prompt_tokens: int | None
    """Number of prompt tokens in the requests still to be sent; None if it is unknown: without a tokenizer, or if some
    prompts hold answers that are not there yet."""
    n_completion_tokens: int | None
    """Largest number of tokens to be generated; None if it is unknown."""
    n_prompt_tokens_at_most: int | None
    """Upper bound on the prompt tokens, from the bytes of the prompts or the longest answers; None if their number is
    known."""
    is_counted_in_bytes: bool
    """True if the bound is from bytes, so that a tokenizer would tell more."""
    is_priced: bool
    """True if the backend costs money."""
    cost_usd: float | None
    """Highest cost in US dollars; None if no price is known."""
    pace: Pace | None
    """Number and time of the model's earlier answers to such requests; None if there are none."""
    left_out: tuple[str, ...]
    """One line for each store of another run that could not be read."""
    store_bytes: int | None
    """Approximate number of bytes that the responses will add to the store of the run; None if it was not computed."""

    @property
    def n_to_ask(self) -> int:
        """The number of requests that would be sent."""
        return self.n_distinct_requests - (self.n_answered or 0)

    @property
    def n_timed_answers(self) -> int:
        """The number of earlier answers whose pace tells the time."""
        return 0 if self.pace is None else self.pace.n_answers

    @property
    def document(self) -> RunEstimate:
        """The estimate as commands print it for programs."""
        return RunEstimate(**{one.name: getattr(self, one.name) for one in fields(RunEstimate)})

    @property
    def is_free(self) -> bool:
        """True if no model computes anything, as for baselines and replayed answers."""
        return not self.is_priced and self.n_prompt_tokens == 0 and self.n_completion_tokens == 0

    @property
    def seconds_left(self) -> float | None:
        """The seconds that the requests would take at the earlier pace; None if that is unknown."""
        if not self.n_to_ask:
            return 0.0
        return None if self.pace is None else self.n_to_ask * self.pace.seconds / self.pace.n_answers


def estimate(plan: Plan, backend: Backend, stores: AnswerStores, name: str) -> Estimate:
    """Estimate what :func:`evaluators.runs.ask.pipeline.run` would ask.

    ``name`` is shown for a remote model, whose id is known only once it has been asked.

    Raises:
        ConfigError: the backend cannot ask what the plan needs.
        RunError: the store of an earlier run, or the cache, cannot be read.
    """
    plan.check(backend, probe=False)
    groups = [_group(plan, parts, backend, stores) for parts in plan.groups()]
    counts = _Counts.joined([group.counts for group in groups])
    model = None if backend.is_remote else backend.model
    return Estimate(
        n_requests=sum(group.n_requests for group in groups),
        n_distinct_requests=sum(group.n_to_ask + group.n_answered for group in groups),
        n_answered=None if backend.is_remote else sum(group.n_answered for group in groups),
        left_out=tuple(dict.fromkeys(line for group in groups for line in group.left_out)),
        store_bytes=sum(group.store_bytes for group in groups),
        **_shared_fields(plan, backend, stores, name if model is None else model.id, model, counts),
    )


def sampled_estimate(plan: Plan, backend: Backend, stores: AnswerStores, name: str, *, n_items: int) -> Estimate:
    """Estimate what a run would ask from some of its items, without looking up answers that are there already."""
    selection = plan.selection
    parts = list(replace(plan, selection=sampled(selection, n_items)).parts)
    requests = [request for part in parts for of_item in part.requests for request in of_item]
    factor = selection.n_items / max(1, sum(len(part.items) for part in parts))
    counts = _Counts.of(plan.prompt, requests, _texts_in(plan.prompt, requests), backend).times(factor)
    n_requests = round(factor * plan.prompt.n_rounds * len(requests))
    return Estimate(
        n_requests=n_requests,
        n_distinct_requests=n_requests,
        n_answered=None,
        left_out=(),
        store_bytes=None,
        **_shared_fields(plan, backend, stores, name, None, counts),
    )


def _shared_fields(
    plan: Plan, backend: Backend, stores: AnswerStores, name: str, model: Model | None, counts: _Counts
) -> dict[str, Any]:
    """Return what both kinds of estimates say of a plan, and of its tokens."""
    return {
        "model": name,
        "dataset": plan.selection.manifest.name,
        "config": plan.selection.config,
        "prompt": plan.prompt.id,
        "n_items": plan.selection.n_items,
        "is_priced": backend.is_remote,
        "cost_usd": None if counts.bound is None else backend.cost_usd(counts.bound),
        "pace": pace_of(plan, model, name, stores),
        **counts.fields,
    }


class _Counts(NamedTuple):
    """The tokens still to be sent and generated."""

    tokens: TokenCount | None
    """Their numbers; None if they are unknown."""
    bound: TokenCount | None
    """The same, or an upper bound of them; None if that is unknown too."""
    is_in_bytes: bool
    """True if the backend could only bound them by bytes."""

    @classmethod
    def of(
        cls, prompt: Prompt, requests: Sequence[Request], to_follow_up: Sequence[GenerateRequest], backend: Backend
    ) -> _Counts:
        """Count the tokens of requests, and bound those of requests that will follow from unknown answers."""
        counted = backend.count_tokens(requests)
        count = backend.most_tokens if counted is None else backend.count_tokens
        own = counted or count(requests)
        if not to_follow_up or own is None:
            return cls(counted, own, counted is None)
        around, answers = count([prompt.following(request, "") for request in to_follow_up]), count(to_follow_up)
        if around is None or answers is None:
            return cls(None, None, counted is None)
        # A follow-up holds the question and the whole answer.
        longest = answers.n_completion
        bound = TokenCount(own.n_prompt + around.n_prompt + longest, own.n_completion + around.n_completion)
        return cls(bound if counted is not None and not longest else None, bound, counted is None)

    @classmethod
    def joined(cls, counts: Sequence[_Counts]) -> _Counts:
        """Return the sums, which are unknown if any is."""
        tokens, bounds = ([getattr(count, name) for count in counts] for name in ("tokens", "bound"))
        return cls(_token_sum(tokens), _token_sum(bounds), any(count.is_in_bytes for count in counts))

    def times(self, factor: float) -> _Counts:
        """Return the counts for so many times as many items."""

        def scaled(count: TokenCount | None) -> TokenCount | None:
            return None if count is None else TokenCount(*(round(factor * n) for n in count))

        return _Counts(scaled(self.tokens), scaled(self.bound), self.is_in_bytes)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of an estimate that tell them."""
        tokens, bound = self.tokens, self.bound
        return {
            "n_prompt_tokens": None if tokens is None else tokens.n_prompt,
            "n_completion_tokens": None if bound is None else bound.n_completion,
            "n_prompt_tokens_at_most": None if bound is None or tokens is not None else bound.n_prompt,
            "is_counted_in_bytes": self.is_in_bytes and bound is not None,
        }


class _Group(NamedTuple):
    """Numbers of the requests of some parts of a plan."""

    n_requests: int
    n_to_ask: int
    n_answered: int
    left_out: tuple[str, ...]
    counts: _Counts
    store_bytes: int


def _group(plan: Plan, parts: Sequence[PlannedPart], backend: Backend, stores: AnswerStores) -> _Group:
    asked = [request for part in parts for of_item in part.requests for request in of_item]
    n_answered = 0
    left_out: tuple[str, ...] = ()
    if backend.is_remote:
        # Store keys include the model's identity, and learning that would take a request to the endpoint.
        to_ask = list({(request.sha256, request.adapter): request for request in asked}.values())
        to_follow_up: Sequence[GenerateRequest] = _texts_in(plan.prompt, to_ask)
    else:
        left = unanswered(plan, parts, backend, stores)
        to_ask, n_answered, left_out = list(left.requests.values()), left.n_answered, left.left_out
        to_follow_up = left.to_follow_up
    return _Group(
        n_requests=plan.prompt.n_rounds * len(asked),
        n_to_ask=len(to_ask) + len(to_follow_up),
        n_answered=n_answered,
        left_out=left_out,
        counts=_Counts.of(plan.prompt, to_ask, to_follow_up, backend),
        store_bytes=_store_bytes(plan.prompt, to_ask, to_follow_up),
    )


def _texts_in(prompt: Prompt, requests: Sequence[Request]) -> list[GenerateRequest]:
    """Return the requests whose answers are followed up; none under a prompt that asks once."""
    if prompt.follow_up is None:
        return []
    return [request for request in requests if isinstance(request, GenerateRequest)]


def _token_sum(counts: Sequence[TokenCount | None]) -> TokenCount | None:
    counted = [count for count in counts if count is not None]
    if len(counted) < len(counts):
        return None
    return TokenCount(sum(count.n_prompt for count in counted), sum(count.n_completion for count in counted))


def estimates_document(estimates: Sequence[Estimate], notes: Sequence[str] = ()) -> RunEstimates:
    """Return estimates, with notes about them, as the document that commands print."""
    return RunEstimates(runs=tuple(estimated.document for estimated in estimates), notes=tuple(notes))


def print_estimates(estimates: Sequence[Estimate], notes: Sequence[str] = (), *, pilot: str = "--limit 20") -> None:
    """Print estimates as one table per model.

    ``pilot`` is the option that asks a few items, whose pace tells the time.
    """
    for model in dict.fromkeys(estimated.model for estimated in estimates):
        _print_table(model, [estimated for estimated in estimates if estimated.model == model])
    for line in (*notes, *dict.fromkeys(line for estimated in estimates for line in estimated.left_out)):
        print(line)
    if any(estimated.is_priced for estimated in estimates):
        print(price_line(estimates))
    for line in time_lines(estimates, pilot=pilot):
        print(line)
    if any(estimated.n_answered is None for estimated in estimates):
        # Estimates from a sample probe the endpoint: which prompts fit depends on what it can do.
        unprobed = "" if estimates[0].store_bytes is None else "the endpoint was not probed and "
        print(f"{unprobed}stored answers were not looked up, so every request is counted")
    print("nothing was asked and nothing was written; leave out --dry-run to start")


def price_line(estimates: Sequence[Estimate]) -> str:
    """Return what the requests cost at most."""
    prices = [estimated.cost_usd for estimated in estimates if estimated.cost_usd is not None]
    if len(prices) < len(estimates):
        return "price unknown; give --prices FILE with what the model's tokens cost"
    if any(estimated.is_counted_in_bytes for estimated in estimates):
        how = "tokens bounded by bytes of the prompt; give --tokenizer for an estimate"
        return f"at most US$ {sum(prices):.4f} in all, by the prices given ({how})"
    return f"at most US$ {sum(prices):.4f} in all, by the prices given"


def time_lines(estimates: Sequence[Estimate], *, pilot: str = "--limit 20") -> Iterator[str]:
    """Yield lines with the remaining time and the pace behind it, or with which option to measure a pace."""
    asking = [estimated for estimated in estimates if estimated.n_to_ask and not estimated.is_free]
    timed = [estimated for estimated in asking if estimated.pace is not None]
    if timed:
        seconds = sum(estimated.seconds_left or 0.0 for estimated in timed)
        n_answers = sum(estimated.n_timed_answers for estimated in timed)
        of = " in all" if len(timed) == len(asking) else f" for {_configs(timed)}"
        each = ", ".join(f"{estimated.config} {rough_duration(estimated.seconds_left or 0.0)}" for estimated in timed)
        parts = f" ({each})" if len(timed) > 1 else ""
        pace = f"at the pace of {n_answers:,} answers that this model gave before"
        yield f"about {rough_duration(seconds)}{of}{parts}, {pace}"
    if untimed := [estimated for estimated in asking if estimated.pace is None]:
        of = f" for {_configs(untimed)}" if timed else ""
        yield f"time unknown{of}: no earlier answers of this model; {pilot} makes a pilot, whose answers are kept"


def _configs(estimates: Sequence[Estimate]) -> str:
    return ", ".join(dict.fromkeys(estimated.config for estimated in estimates))


def rough_duration(seconds: float) -> str:
    """Return a duration in words, as rough as an estimate is.

    >>> [rough_duration(seconds) for seconds in (0.2, 75, 200, 7000, 30000, 2.8e6)]
    ['1 s', '75 s', '3 min', '117 min', '8.3 h', '32 days']
    """
    if seconds < 120:
        return f"{math.ceil(seconds)} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 72 * 3600 else f"{seconds / 86400:.0f} days"


def _print_table(model: str, estimates: Sequence[Estimate]) -> None:
    # Two-line headings keep the table narrow; a column that tells nothing is left out.
    headings = (
        *("dataset", "config", "prompt", "items", "requests", "distinct", "answered", "prompt\ntokens"),
        *("answer tokens\nat most", "US$", "store\nMB"),
    )
    several = estimates if len(estimates) == 1 else [*estimates, _in_all(estimates)]
    rows = [_cells(estimated) for estimated in several]
    columns = [{*column} - {"", "unknown", "none"} for column in zip(*rows, strict=True)]
    told = [number for number, cells in enumerate(columns) if number == 1 or len(cells) > (number in (0, 2))]
    by = "" if 2 in told else f", by prompt {rows[0][2]}"
    table = Table(
        title=f"what would be asked of {model}{by}",
        title_justify="left",
        box=None,
        pad_edge=False,
        collapse_padding=True,
    )
    for number in told:
        table.add_column(headings[number], justify="left" if number < 3 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(row[number] for number in told))
    Console().print(table)


def _in_all(estimates: Sequence[Estimate]) -> Estimate:
    """Return the sums of estimates, each unknown if one of them is."""
    names = ("n_items", "n_requests", "n_distinct_requests", "n_answered", "n_prompt_tokens", "n_completion_tokens")
    sums: Any = {"dataset": "", "config": "in all", "prompt": ""}
    for name in (*names, "cost_usd", "store_bytes"):
        values = [getattr(estimated, name) for estimated in estimates]
        sums[name] = None if None in values else sum(values)
    most = [estimated.n_prompt_tokens_at_most or estimated.n_prompt_tokens for estimated in estimates]
    if sums["n_prompt_tokens"] is None and None not in most:
        sums["n_prompt_tokens_at_most"] = sum(filter(None, most))
    return replace(estimates[0], **sums)


def _cells(estimated: Estimate) -> tuple[str, ...]:
    """Return the cells of an estimate, in the order of the headings."""
    counts = (
        *(estimated.n_items, estimated.n_requests, estimated.n_distinct_requests, estimated.n_answered),
        *(estimated.n_prompt_tokens, estimated.n_completion_tokens),
    )
    shown = ["unknown" if count is None else f"{count:,}" for count in counts]
    if estimated.n_prompt_tokens_at_most is not None:
        shown[4] = f"≤ {estimated.n_prompt_tokens_at_most:,}"
    price = "unknown" if estimated.cost_usd is None else f"{estimated.cost_usd:.4f}"
    store = "unknown" if estimated.store_bytes is None else f"{estimated.store_bytes / 1e6:.2f}"
    named = (estimated.dataset, estimated.config, estimated.prompt)
    return *named, *shown, price if estimated.is_priced else "none", store


def _store_bytes(prompt: Prompt, requests: Sequence[Request], to_follow_up: Sequence[GenerateRequest]) -> int:
    heads, counted_heads = Heads(), set()
    # The prompt of a follow-up holds the answer.
    total = sum(_BYTES_PER_TOKEN * request.max_tokens for request in to_follow_up)
    for request in (*requests, *(prompt.following(request, "") for request in to_follow_up)):
        head = heads.head_of(request.prompt)
        # The store keeps a beginning that several prompts share only once.
        total += 0 if head in counted_heads else len(head.encode())
        counted_heads.add(head)
        total += len(request_bytes(request, head)) + _BYTES_PER_ANSWER
        if isinstance(request, ChoiceRequest):
            total += _BYTES_PER_OPTION * len(request.options)
        else:
            total += _BYTES_PER_TOKEN * request.max_tokens
    return round(total * _PAGE_OVERHEAD)
