"""Counts what calls cost and stops before more is spent than the user allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from biasboard.ground.errors import RunError
from evaluators.backends.openai.client import Call
from evaluators.backends.openai.reading import usage
from evaluators.models.prices import Price

_FRAME = 64
"""Largest number of tokens that a chat template is assumed to add to a prompt."""


class Budget:
    """The money spent and reserved for all calls of a backend, in US dollars."""

    def __init__(self, price: Price | None, most_usd: float | None) -> None:
        """Create a budget of which nothing is spent yet.

        Args:
            price: Price of the model's tokens; None if unknown.
            most_usd: Limit in US dollars; None for no limit.
        """
        self.most_usd = most_usd
        self.has_price = price is not None
        self.spent_usd = 0.0
        self._price = price
        self._reserved = 0.0
        self._n_reserved = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(self, call: Call) -> float:
        """Reserve the highest possible cost of a call before it is sent.

        If too little is left, wait until calls under way have ended: they may cost less than is reserved for them.

        Returns:
            The reserved amount in US dollars.

        Raises:
            RunError: too little is left, and no call is under way.
        """
        most = self.at_most(call)
        while self.most_usd is not None and self.spent_usd + self._reserved + most > self.most_usd:
            if self._n_reserved == 0:
                raise RunError(
                    f"--max-cost {self.most_usd:g} is reached: {self.spent_usd:.4f} USD are spent, and one more "
                    f"request may take {most:.4f} USD. Answers are kept: raise --max-cost and run again"
                )
            settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled
        self._reserved += most
        self._n_reserved += 1
        return most

    def check(self, most_usd: float) -> None:
        """Check that the budget covers calls that are sent all at once.

        Args:
            most_usd: Highest possible cost of the calls together, in US dollars.

        Raises:
            RunError: too little is left.
        """
        if self.most_usd is not None and self.spent_usd + most_usd > self.most_usd:
            raise RunError(
                f"--max-cost {self.most_usd:g} does not cover the batch, which may take {most_usd:.4f} USD and more; "
                "raise it, or ask fewer items with --limit"
            )

    def release(self, reserved: float, cost_usd: float | None) -> None:
        """Replace the reservation of a call that has ended by its cost.

        Args:
            reserved: Amount that was reserved for the call, in US dollars.
            cost_usd: Cost of the call; None if unknown, and then the reserved amount counts as spent.
        """
        self._reserved -= reserved
        self._n_reserved -= 1
        self.spent_usd += reserved if cost_usd is None else cost_usd
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def cost_usd(self, data: Mapping[str, Any], *, batch: bool = False) -> float | None:
        """Return the cost of a reply in US dollars; None if the price or the number of tokens is unknown."""
        used = usage(data)
        if self._price is None or used.n_prompt is None:
            return None
        return self._price.cost_usd(
            used.n_prompt, used.n_completion or 0, n_cached=min(used.n_cached, used.n_prompt), batch=batch
        )

    def at_most(self, call: Call, *, batch: bool = False) -> float:
        """Return an upper bound on the cost of a call in US dollars; 0 if no price is known."""
        if self._price is None:
            return 0.0
        return self._price.cost_usd(most_prompt_tokens(call), call.n_completion, batch=batch)


def most_prompt_tokens(call: Call) -> int:
    """Return an upper bound on the number of prompt tokens of a call, with what a chat template adds."""
    if call.n_prompt is not None:
        # A schema may be shown to the model; every token takes at least one byte.
        form = call.body.get("response_format")
        return call.n_prompt + _FRAME + (0 if form is None else len(json.dumps(form, ensure_ascii=False).encode()))
    # Every token takes at least one byte of the text, so bytes bound tokens if no tokenizer is known. The names of the
    # other fields take more bytes than a chat template adds tokens.
    return len(json.dumps(call.body, ensure_ascii=False).encode())
