"""Estimates how many requests a run would send, and their tokens, cost and disk space, without sending any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table

from evaluators.backend import Backend, ChoiceRequest, GenerateRequest, Request, TokenCount
from evaluators.runs.plan.earlier_answers import AnswerStores, pace_of, unanswered
from evaluators.runs.plan.plan import Plan, sampled
from evaluators.stores.store import Heads, Pace, request_bytes
from evaluators.task import Prompt
from schemas.outputs.documents import RunEstimate, RunEstimates

# With these sizes, the estimates for 20,000 choices and for 20,000 texts of 40 tokens were 3 % above the real stores.
_BYTES_PER_ANSWER = 190
"""Bytes of a response besides its numbers and texts: key, index and other fields."""
_BYTES_PER_OPTION = 30
_BYTES_PER_TOKEN = 4
_PAGE_OVERHEAD = 1.1
_WIDTH_OF_FILES = 200
"""Columns of a table that goes into a file."""
_Counts: TypeAlias = tuple[TokenCount | None, TokenCount | None, bool]
"""The tokens to be sent and generated, the same or an upper bound of them, each None if it is unknown; and True if the
backend could only bound them by bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(RunEstimate):
    """The estimate for one model on one config or suite, with what only the lines for people say."""

    is_counted_in_bytes: bool
    """True if the bound on the prompt tokens is from bytes, so that a tokenizer would tell more."""
    is_priced: bool
    """True if the backend costs money."""
    cost_by_pace_usd: float | None
    """Price by the tokens of the answers that the model gave before; None if it gave none, or stated no tokens."""
    left_out: tuple[str, ...]
    """One line for each store of another run that could not be read."""

    @property
    def is_free(self) -> bool:
        """True if no model computes anything, as for baselines and replayed answers."""
        return not self.is_priced and self.n_prompt_tokens == 0 and self.n_completion_tokens == 0


def estimate(plan: Plan, backend: Backend, stores: AnswerStores, name: str, *, probed: bool = False) -> Estimate:
    """Estimate what :func:`evaluators.runs.ask.pipeline.run` would ask.

    Args:
        plan: What would be asked.
        backend: Who would answer.
        stores: Answers that are there already.
        name: Name that is shown for a remote model, whose id is known only once it has been asked.
        probed: True if a remote model has been asked, so that its answers can be looked up.

    Raises:
        ConfigError: the backend cannot ask what the plan needs.
        RunError: the store of an earlier run, or the cache, cannot be read.
    """
    plan.check(backend, probe=False)
    model = None if backend.is_remote and not probed else backend.model
    name = name if model is None else model.id
    n_requests = n_to_ask = n_answered = store_bytes = 0
    counts: list[_Counts] = []
    left_out: dict[str, None] = {}
    for parts in plan.groups():
        asked = [request for part in parts for of_item in part.requests for request in of_item]
        if model is None:
            # Store keys include the model's identity, and learning that would take a request to the endpoint.
            to_ask = list({(request.sha256, request.adapter): request for request in asked}.values())
            to_follow_up: Sequence[GenerateRequest] = _texts_in(plan.prompt, to_ask)
        else:
            left, to_follow_up, n_known, lines = unanswered(plan, parts, backend, stores)
            to_ask = list(left.values())
            n_answered += n_known
            left_out |= dict.fromkeys(lines)
        n_requests += plan.prompt.n_rounds * len(asked)
        n_to_ask += len(to_ask) + len(to_follow_up)
        counts.append(_counted(plan.prompt, to_ask, to_follow_up, backend))
        store_bytes += _store_bytes(plan.prompt, to_ask, to_follow_up)
    return _estimate(
        plan,
        backend,
        pace_of(plan, model, name, stores),
        counts,
        model=name,
        n_requests=n_requests,
        n_distinct_requests=n_to_ask + n_answered,
        n_answered=None if model is None else n_answered,
        left_out=tuple(left_out),
        store_bytes=store_bytes,
    )


def sampled_estimate(plan: Plan, backend: Backend, stores: AnswerStores, name: str, *, n_items: int) -> Estimate:
    """Estimate what a run would ask from some of its items, without looking up answers that are there already."""
    parts = list(replace(plan, selection=sampled(plan.selection, n_items)).parts)
    requests = [request for part in parts for of_item in part.requests for request in of_item]
    factor = plan.selection.n_items / max(1, sum(len(part.items) for part in parts))
    distinct = list({(request.sha256, request.adapter): request for request in requests}.values())
    return _estimate(
        plan,
        backend,
        pace_of(plan, None, name, stores),
        [_counted(plan.prompt, distinct, _texts_in(plan.prompt, distinct), backend)],
        factor,
        model=name,
        n_requests=round(factor * plan.prompt.n_rounds * len(requests)),
        n_distinct_requests=round(factor * plan.prompt.n_rounds * len(distinct)),
        n_answered=None,
        left_out=(),
        store_bytes=None,
    )


def _estimate(
    plan: Plan, backend: Backend, pace: Pace | None, counts: Sequence[_Counts], factor: float = 1.0, **numbers: Any
) -> Estimate:
    """Return the estimate with the sums of some counts, for so many times as many items."""
    tokens = _token_sum([one for one, _, _ in counts], factor)
    bound = _token_sum([one for _, one, _ in counts], factor)
    n_to_ask = numbers["n_distinct_requests"] - (numbers["n_answered"] or 0)
    seconds = None if pace is None else n_to_ask * pace.seconds / pace.n_answers
    return Estimate(
        dataset=plan.selection.manifest.name,
        config=plan.selection.config,
        prompt=plan.prompt.id,
        n_items=plan.selection.n_items,
        n_to_ask=n_to_ask,
        is_priced=backend.is_remote,
        cost_by_pace_usd=None
        if pace is None or pace.tokens is None
        else backend.cost_usd(_times(pace.tokens, n_to_ask)),
        cost_usd=None if bound is None else backend.cost_usd(bound),
        n_timed_answers=0 if pace is None else pace.n_answers,
        seconds_left=seconds if n_to_ask else 0.0,
        n_prompt_tokens=None if tokens is None else tokens.n_prompt,
        n_completion_tokens=None if bound is None else bound.n_completion,
        n_prompt_tokens_at_most=None if bound is None or tokens is not None else bound.n_prompt,
        is_counted_in_bytes=bound is not None and any(in_bytes for *_, in_bytes in counts),
        **numbers,
    )


def _times(means: tuple[float, float], n: int) -> TokenCount:
    return TokenCount(*(round(n * mean) for mean in means))


def _counted(
    prompt: Prompt, requests: Sequence[Request], to_follow_up: Sequence[GenerateRequest], backend: Backend
) -> _Counts:
    """Count the tokens of requests, and bound those of requests that will follow from unknown answers."""
    counted = backend.count_tokens(requests)
    count = backend.most_tokens if counted is None else backend.count_tokens
    own = counted or count(requests)
    if not to_follow_up or own is None:
        return counted, own, counted is None
    around, answers = count([prompt.following(request, "") for request in to_follow_up]), count(to_follow_up)
    if around is None or answers is None:
        return None, None, counted is None
    # A follow-up holds the question and the whole answer.
    longest = answers.n_completion
    bound = TokenCount(own.n_prompt + around.n_prompt + longest, own.n_completion + around.n_completion)
    return bound if counted is not None and not longest else None, bound, counted is None


def _texts_in(prompt: Prompt, requests: Sequence[Request]) -> list[GenerateRequest]:
    """Return the requests whose answers are followed up; none under a prompt that asks once."""
    if prompt.follow_up is None:
        return []
    return [request for request in requests if isinstance(request, GenerateRequest)]


def _token_sum(counts: Sequence[TokenCount | None], factor: float) -> TokenCount | None:
    """Return so many times the sum of some counts; None if any is unknown."""
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    return TokenCount(*(round(factor * sum(count[place] for count in known)) for place in (0, 1)))


def estimates_document(estimates: Sequence[Estimate], notes: Sequence[str] = ()) -> RunEstimates:
    """Return estimates, with notes about them, as the document that commands print."""
    names = [one.name for one in fields(RunEstimate)]
    runs = (RunEstimate(**{name: getattr(estimated, name) for name in names}) for estimated in estimates)
    return RunEstimates(runs=tuple(runs), notes=tuple(notes))


def print_estimates(estimates: Sequence[Estimate], notes: Sequence[str] = (), *, pilot: str = "--limit 20") -> None:
    """Print estimates as one table per model.

    ``pilot`` is the option that asks a few items, whose pace tells the time.
    """
    for model in dict.fromkeys(estimated.model for estimated in estimates):
        _print_table(model, [estimated for estimated in estimates if estimated.model == model])
    for line in (*notes, *dict.fromkeys(line for estimated in estimates for line in estimated.left_out)):
        print(line)
    if any(estimated.is_priced for estimated in estimates):
        print(_price_line(estimates))
    for line in _time_lines(estimates, pilot):
        print(line)
    if any(estimated.n_answered is None for estimated in estimates):
        # Estimates from a sample probe the endpoint: which prompts fit depends on what it can do.
        unprobed = "" if estimates[0].store_bytes is None else "the endpoint was not probed; "
        print(f"{unprobed}every request is counted, also those with stored answers, which takes the model to look up")
    print("no item was asked; leave out --dry-run to start")


def _price_line(estimates: Sequence[Estimate]) -> str:
    prices = [estimated.cost_usd for estimated in estimates if estimated.cost_usd is not None]
    if len(prices) < len(estimates):
        return "price unknown; give --prices FILE with what the model's tokens cost"
    expected = [one.cost_by_pace_usd for one in estimates if one.cost_by_pace_usd is not None]
    if len(expected) == len(estimates):
        n_answers = sum(estimated.n_timed_answers for estimated in estimates)
        known = f"by the tokens of {n_answers:,} answers that this model gave before"
        return f"about US$ {sum(expected):.4f} in all, {known}; at most US$ {sum(prices):.4f}"
    if any(estimated.is_counted_in_bytes for estimated in estimates):
        how = "tokens bounded by bytes of the prompt; give --tokenizer for an estimate"
        return f"at most US$ {sum(prices):.4f} in all, by the prices given ({how})"
    return f"at most US$ {sum(prices):.4f} in all, by the prices given"


def _time_lines(estimates: Sequence[Estimate], pilot: str) -> Iterator[str]:
    """Yield lines with the remaining time and the pace behind it, or with which option to measure a pace."""
    asking = [estimated for estimated in estimates if estimated.n_to_ask and not estimated.is_free]
    timed = [estimated for estimated in asking if estimated.seconds_left is not None]
    if timed:
        seconds = sum(estimated.seconds_left or 0.0 for estimated in timed)
        n_answers = sum(estimated.n_timed_answers for estimated in timed)
        of = " in all" if len(timed) == len(asking) else f" for {', '.join(dict.fromkeys(one.config for one in timed))}"
        pace = f"at the pace of {n_answers:,} answers that this model gave before"
        yield f"about {rough_duration(seconds)}{of}, {pace}"
    if untimed := [estimated for estimated in asking if estimated.seconds_left is None]:
        of = f" for {', '.join(dict.fromkeys(one.config for one in untimed))}" if timed else ""
        yield f"time unknown{of}: no earlier answers of this model; {pilot} makes a pilot, whose answers are kept"


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
    console = Console()
    # Where nobody looks at it, as in the log of a job, a name in pieces could be neither read nor copied.
    (console if console.is_terminal else Console(width=_WIDTH_OF_FILES)).print(table)


def _in_all(estimates: Sequence[Estimate]) -> Estimate:
    """Return the sums of estimates, each unknown if one of them is."""
    names = ("n_items", "n_requests", "n_distinct_requests", "n_answered", "n_prompt_tokens", "n_completion_tokens")
    sums: Any = {"dataset": "", "config": "in all", "prompt": ""}
    for name in (*names, "cost_usd", "store_bytes"):
        values = [getattr(estimated, name) for estimated in estimates]
        sums[name] = None if None in values else sum(values)
    most = [
        estimated.n_prompt_tokens if estimated.n_prompt_tokens_at_most is None else estimated.n_prompt_tokens_at_most
        for estimated in estimates
    ]
    is_bound = any(estimated.n_prompt_tokens_at_most is not None for estimated in estimates) and None not in most
    sums["n_prompt_tokens_at_most"] = sum(filter(None, most)) if is_bound else None
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
