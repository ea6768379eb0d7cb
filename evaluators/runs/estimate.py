"""What a run would ask, how many tokens that takes and what they cost: nothing is asked and nothing is written."""

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
from evaluators.stores.cache import known
from evaluators.stores.store import STORE
from schemas import strict_json

_BYTES_PER_ANSWER = 190
"""Key, index and whatever an answer holds besides its numbers and texts."""
_BYTES_PER_OPTION = 30
_BYTES_PER_TOKEN = 4
_OF_PAGES = 1.1


@runtime_checkable
class Remote(Protocol):
    """A backend that is paid by the token, and that learns by asking which model it is: an estimate does neither."""

    def cost_usd(self, tokens: TokenCount) -> float | None:
        """What so many tokens cost; None where no price is known."""


class Stores(NamedTuple):
    """Where answers may lie already."""

    root: Path
    """Folder of all runs."""
    cache: Path | None
    """What runs share; None for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Of one model on one config."""

    model: str
    dataset: str
    config: str
    n_items: int
    n_requests: int
    n_distinct_requests: int
    n_answered: int | None
    """By an earlier run or the cache; None where a model is only known once it was asked, and all is counted."""
    n_prompt_tokens: int | None
    """Of what is still to be asked; None where no tokenizer is at hand."""
    n_completion_tokens: int | None
    """At most."""
    is_priced: bool
    """Whether the backend is one that costs money."""
    cost_usd: float | None
    """At most; None where no price is known."""
    store_bytes: int
    """About what the answers will add to the store of the run."""

    @property
    def n_to_ask(self) -> int:
        """Requests that would be sent."""
        return self.n_distinct_requests - (self.n_answered or 0)


def estimate(plan: Plan, backend: Backend, stores: Stores, name: str) -> Estimate:
    """Estimate what :func:`evaluators.runs.pipeline.run` would ask.

    Args:
        plan: The items, and how they are asked.
        backend: The model that would answer.
        stores: Where answers may lie already.
        name: What to call a model that is only known once it was asked.

    Raises:
        ConfigError: the backend cannot ask what the plan needs.
        RunError: the store of the earlier run, or the cache, is not a store of answers.
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


def print_estimates(estimates: Sequence[Estimate], *, as_json: bool) -> None:
    """Show them, as a table or as JSON."""
    if as_json:
        print(strict_json.dumps([_as_json(one) for one in estimates]), end="")
        return
    for model in dict.fromkeys(one.model for one in estimates):
        _print_table(model, [one for one in estimates if one.model == model])
    costs = [one.cost_usd for one in estimates]
    if any(one.is_priced for one in estimates):
        prices = [cost for cost in costs if cost is not None]
        if len(prices) == len(costs):
            print(f"at most US$ {sum(prices):.4f} in all, by the prices given")
        else:
            print("price unknown; give --prices FILE with what the model's tokens cost, and --tokenizer to count them")
        print("the endpoint was not asked what it can do, nor which of this it has answered; all is counted")
    print("nothing was asked and nothing was written; leave out --dry-run to start")


def _print_table(model: str, estimates: Sequence[Estimate]) -> None:
    table = Table(
        title=f"what would be asked of {model}", title_justify="left", box=None, pad_edge=False, collapse_padding=True
    )
    table.add_column("config", overflow="fold")
    # In two lines, so that it fits into a narrow window.
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
