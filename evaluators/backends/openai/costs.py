"""Reads prices, counts attempts and their cost, and stops before the user's limit on cost is exceeded.

Prices come from a file of the user, because they change too often to be shipped. It holds a table for each model id or
glob, with prices in US dollars per million tokens::

    ["some-model-*"]
    input = 0.50
    cached_input = 0.25    # if left out, the same as input
    output = 1.50
    batch_discount = 0.5   # share of the price that the batch API takes off; none if left out
"""

from __future__ import annotations

import asyncio
import fnmatch
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from biasboard.ground.errors import ConfigError, DataError, RunError
from biasboard.ground.files import read_toml
from evaluators.backend import Sent
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.backends.openai.protocol import Call, usage

_TEMPLATE_TOKENS = 64
"""Largest number of tokens that a chat template is assumed to add to a prompt."""


_Dollars: TypeAlias = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True)
class Price:
    """The prices of one model, in US dollars per million tokens."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None
    """Price of prompt tokens that the endpoint reads from its cache; None if it is that of others."""
    batch_discount: Annotated[_Dollars, Field(le=1)] = 0.0
    """Share of the price that the batch API takes off."""

    def cost_usd(self, n_prompt: int, n_completion: int, *, n_cached: int = 0, batch: bool = False) -> float:
        """Return the cost of tokens in US dollars, where ``n_cached`` of the ``n_prompt`` tokens came from the cache.

        >>> round(Price(input=2.0, output=8.0, cached_input=1.0).cost_usd(3_000_000, 500_000, n_cached=1_000_000), 6)
        9.0
        """
        cached_input = self.input if self.cached_input is None else self.cached_input
        cost = (n_prompt - n_cached) * self.input + n_cached * cached_input + n_completion * self.output
        return cost / 1_000_000 * (1 - self.batch_discount if batch else 1)


def read_price(path: Path, model: str) -> Price:
    """Read the price of a model from a file.

    Args:
        path: TOML file of prices.
        model: Id of the model. Its own entry is preferred to globs, and a longer glob to a shorter one.

    Raises:
        ConfigError: there is no such file, or no entry for the model.
        DataError: the file is not a valid file of prices.
    """
    try:
        prices = TypeAdapter(dict[str, Price]).validate_python(read_toml(path, option="--prices", what="prices"))
    except ValidationError as error:
        # The last, since a field that is misspelt comes after the one that is missing for it.
        fault = error.errors()[-1]
        raise DataError(
            f"{path}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}; give each model a table with input, output "
            "and perhaps cached_input, in US dollars per million tokens, and a batch_discount from 0 to 1"
        ) from None
    matching = [name for name in prices if name == model or fnmatch.fnmatchcase(model, name)]
    if not matching:
        have = ", ".join(prices) or "none"
        raise ConfigError(f"{path}: no price for model '{model}'; have: {have}. Add a table of that name")
    return prices[max(matching, key=lambda name: (name == model, len(name)))]


class Ledger:
    """The attempts, costs in US dollars and reported model names of all calls of a backend.

    Probing and all runs of a backend share one ledger, so that --max-cost is a single limit for all configs.
    """

    def __init__(self, price: Price | None, most_usd: float | None) -> None:
        """Create an empty ledger.

        Args:
            price: Price of the model's tokens; None if unknown.
            most_usd: Limit in US dollars; None for no limit.
        """
        self.earlier_usd = 0.0
        """Cost of earlier processes, which counts against the limit."""
        self.n_attempts = 0
        self.n_replies = 0
        """Number of attempts that brought an answer."""
        self.cost_usd = 0.0
        self.models: set[str] = set()
        """Names by which the endpoint called the model."""
        self.fingerprints: set[str] = set()
        self._price = price
        self._most_usd = most_usd
        self._reported = (0, 0.0)
        self._reserved: list[float] = []
        """Highest possible costs of the calls under way."""
        self._settled = asyncio.Event()
        """Set when the next call has ended."""

    @property
    def _spent_usd(self) -> float:
        """The cost that counts against the limit, including that of earlier processes."""
        return self.earlier_usd + self.cost_usd

    def news(self) -> Sent | None:
        """Return an event with the attempts and cost since the last call; None if there were none."""
        now = self.n_attempts, self.cost_usd
        before, self._reported = self._reported, now
        return None if now == before else Sent(now[0] - before[0], now[1] - before[1] if self._price else None)

    @asynccontextmanager
    async def attempt(self, call: Call) -> AsyncIterator[Callable[[Mapping[str, Any]], None]]:
        """Count an attempt at a call and its cost, of which the highest possible is reserved meanwhile.

        Yields a function to call with the reply. If the cost stays unknown, all that was reserved counts, since a call
        that was cut off may be billed.

        Raises:
            RunError: the limit leaves too little, and no call is under way that may cost less than was reserved for it.
        """
        most = cost = self._at_most(call)
        while self._most_usd is not None and self._spent_usd + sum(self._reserved) + most > self._most_usd:
            if not self._reserved:
                raise RunError(
                    f"--max-cost {self._most_usd:g} is reached: {self._spent_usd:.4f} USD are spent, "
                    f"and one more request may take {most:.4f} USD. Answers are kept: raise --max-cost and run again"
                )
            await self._settled.wait()

        def charge(reply: Mapping[str, Any]) -> None:
            nonlocal cost
            known = self._record(reply)
            cost = most if known is None else known

        self._reserved.append(most)
        self.n_attempts += 1
        try:
            yield charge
        except NoAnswerError as error:
            self.n_attempts -= not error.sent
            if error.status is not None or not error.sent:
                cost = 0.0
            raise
        finally:
            self._reserved.remove(most)
            self.cost_usd += cost
            # This event wakes all waiting calls; those that must wait again wait for the new one.
            self._settled.set()
            self._settled = asyncio.Event()

    def charge_batch(self, reply: Mapping[str, Any]) -> None:
        """Record a reply of the batch API, whose attempt was counted before, and its cost if it is known."""
        self.cost_usd += self._record(reply, batch=True) or 0.0

    def _record(self, reply: Mapping[str, Any], *, batch: bool = False) -> float | None:
        """Record what a reply names, and return its cost; None if the price or the number of tokens is unknown."""
        self.n_replies += 1
        for names, key in ((self.models, "model"), (self.fingerprints, "system_fingerprint")):
            name = reply.get(key)
            if isinstance(name, str) and name and len(names) < 16:
                names.add(name)
        n_prompt, n_completion, n_cached = usage(reply)
        if self._price is None or n_prompt is None:
            return None
        return self._price.cost_usd(n_prompt, n_completion or 0, n_cached=min(n_cached, n_prompt), batch=batch)

    def check_batch(self, calls: Iterable[Call]) -> None:
        """Check that the limit covers calls that are sent all at once.

        Raises:
            RunError: too little is left.
        """
        most = sum(self._at_most(call, batch=True) for call in calls)
        if self._most_usd is not None and self._spent_usd + most > self._most_usd:
            raise RunError(
                f"--max-cost {self._most_usd:g} does not cover the batch, which may take {most:.4f} USD and more; "
                "raise it, or ask fewer items"
            )

    def _at_most(self, call: Call, *, batch: bool = False) -> float:
        """Return an upper bound on the cost of a call; 0 if no price is known."""
        if self._price is None:
            return 0.0
        return self._price.cost_usd(most_prompt_tokens(call), call.n_completion, batch=batch)


def most_prompt_tokens(call: Call) -> int:
    """Return an upper bound on the number of prompt tokens of a call, including those of a chat template."""
    # Every token takes at least one byte, so bytes bound tokens where no tokenizer is known. The names of the other
    # fields take more bytes than a chat template adds tokens.
    if call.n_prompt is None:
        return len(json.dumps(call.body, ensure_ascii=False).encode())
    # The server may show the schema to the model.
    form = call.body.get("response_format")
    n_form = 0 if form is None else len(json.dumps(form, ensure_ascii=False).encode())
    return call.n_prompt + _TEMPLATE_TOKENS + n_form
