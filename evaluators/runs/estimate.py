"""Estimates how many requests a run would send, and their tokens, cost and disk space, without sending any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table

from evaluators.backend import Backend, ChoiceRequest, Request, TokenCount
from evaluators.runs.plan import Plan, run_folder
from evaluators.stores.maintenance import known
from evaluators.stores.store import STORE
from schemas import strict_json

_BYTES_PER_ANSWER = 190
"""Bytes of a response besides its numbers and texts: key, index and other fields."""
_BYTES_PER_OPTION = 30
_BYTES_PER_TOKEN = 4
_OF_PAGES = 1.1


@runtime_checkable
class Remote(Protocol):
    """A backend that is paid per token, and whose exact model is known only after it was asked something."""

    def cost_usd(self, tokens: TokenCount) -> float | None:
        """Return the cost of that many tokens in US dollars; None if no price is known."""


class StoredAnswers(NamedTuple):
    """The places where responses may be stored already."""

    root: Path
    """Folder of all runs."""
    cache: Path | None
    """File of the cache that runs share; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate for one model on one config."""

    model: str
    dataset: str
    config: str
    n_items: int
    n_requests: int
    n_distinct_requests: int
    n_answered: int | None
    """Number of requests answered by an earlier run or the cache; None if unknown, and then all are to be sent."""
    n_prompt_tokens: int | None
    """Number of prompt tokens in the requests still to be sent; None without a tokenizer."""
    n_completion_tokens: int | None
    """Largest number of tokens to be generated; None without a tokenizer."""
    is_priced: bool
    """True if the backend costs money."""
    cost_usd: float | None
    """Highest cost in US dollars; None if no price is known."""
    store_bytes: int
    """Approximate number of bytes that the responses will add to the store of the run."""

    @property
    def n_to_ask(self) -> int:
        """The number of requests that would be sent."""
        return self.n_distinct_requests - (self.n_answered or 0)


def estimate(plan: Plan, backend: Backend, stores: StoredAnswers, name: str) -> Estimate:
    """Estimate what :func:`evaluators.runs.pipeline.run` would ask.

    Args:
        plan: The items, and how they are asked.
        backend: The model that would answer.
        stores: Places where responses may be stored already.
        name: Name to show for a model that is known only after it was asked something.

    Raises:
        ConfigError: the backend cannot ask what the plan needs.
        RunError: the store of an earlier run, or the cache, cannot be read.
    """
    selection = plan.selection
    asked = list(chain.from_iterable(plan.requests))
    remote = isinstance(backend, Remote)
    n_answered: int | None = None
    if remote:
        to_ask = list({request.sha256: request for request in asked}.values())
        n_distinct = len(to_ask)
    else:
        plan.check(backend)
        folder = run_folder(stores.root, plan.signature, backend.model)
        unique = dict(zip(chain.from_iterable(plan.keys(backend)), asked, strict=True))
        answered = known(folder / STORE, unique)
        if stores.cache is not None:
            answered |= known(stores.cache, unique)
        to_ask = [request for key, request in unique.items() if key not in answered]
        n_distinct, n_answered = len(unique), len(answered)
    tokens = backend.count_tokens(to_ask)
    return Estimate(
        model=name if remote else backend.model.id,
        dataset=selection.manifest.name,
        config=selection.config,
        n_items=len(selection.items),
        n_requests=len(asked),
        n_distinct_requests=n_distinct,
        n_answered=n_answered,
        n_prompt_tokens=None if tokens is None else tokens.n_prompt,
        n_completion_tokens=None if tokens is None else tokens.n_completion,
        is_priced=remote,
        cost_usd=backend.cost_usd(tokens) if isinstance(backend, Remote) and tokens is not None else None,
        store_bytes=_store_bytes(to_ask),
    )


def estimates_as_json(estimates: Sequence[Estimate]) -> strict_json.JsonValue:
    """Return estimates as JSON."""
    return [_as_json(one) for one in estimates]


def print_estimates(estimates: Sequence[Estimate]) -> None:
    """Print estimates as one table per model."""
    for model in dict.fromkeys(one.model for one in estimates):
        _print_table(model, [one for one in estimates if one.model == model])
    costs = [one.cost_usd for one in estimates]
    if any(one.is_priced for one in estimates):
        prices = [cost for cost in costs if cost is not None]
        if len(prices) == len(costs):
            print(f"at most US$ {sum(prices):.4f} in all, by the prices given")
        else:
            print("price unknown; give --prices FILE with what the model's tokens cost, and --tokenizer to count them")
        print("the endpoint was not probed and stored answers were not looked up, so every request is counted")
    print("nothing was asked and nothing was written; leave out --dry-run to start")


def _print_table(model: str, estimates: Sequence[Estimate]) -> None:
    table = Table(
        title=f"what would be asked of {model}", title_justify="left", box=None, pad_edge=False, collapse_padding=True
    )
    table.add_column("config", overflow="fold")
    # Headings in two lines, so that the table fits into a narrow window.
    counts = ("items", "requests", "distinct", "answered", "prompt\ntokens", "answer tokens\nat most")
    for column in (*counts, "US$", "store\nMB"):
        table.add_column(column, justify="right")
    for one in estimates:
        numbers = (
            one.n_items,
            one.n_requests,
            one.n_distinct_requests,
            one.n_answered,
            one.n_prompt_tokens,
            one.n_completion_tokens,
        )
        shown = ["unknown" if number is None else f"{number:,}" for number in numbers]
        price = "none" if not one.is_priced else "unknown" if one.cost_usd is None else f"{one.cost_usd:.4f}"
        table.add_row(one.config, *shown, price, f"{one.store_bytes / 1e6:.2f}")
    Console().print(table)


def _as_json(one: Estimate) -> strict_json.JsonValue:
    return {
        "model": one.model,
        "dataset": one.dataset,
        "config": one.config,
        "n_items": one.n_items,
        "n_requests": one.n_requests,
        "n_distinct_requests": one.n_distinct_requests,
        "n_answered": one.n_answered,
        "n_to_ask": one.n_to_ask,
        "n_prompt_tokens": one.n_prompt_tokens,
        "n_completion_tokens": one.n_completion_tokens,
        "cost_usd": one.cost_usd,
        "store_bytes": one.store_bytes,
    }


def _store_bytes(requests: Sequence[Request]) -> int:
    adapter: TypeAdapter[Request] = TypeAdapter(Request)
    total = 0
    for request in requests:
        total += len(adapter.dump_json(request)) + _BYTES_PER_ANSWER
        if isinstance(request, ChoiceRequest):
            total += _BYTES_PER_OPTION * len(request.options)
        else:
            total += _BYTES_PER_TOKEN * request.max_tokens
    return round(total * _OF_PAGES)
