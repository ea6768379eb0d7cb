"""What calls cost, and that no more is spent than the user allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from evaluators.backends.openai.client import Call
from evaluators.backends.openai.reading import usage
from evaluators.models.prices import Price
from schemas.errors import RunError

_FRAME = 64
"""Tokens that a chat template may add to a prompt."""


class Budget:
    """Counts what was spent, over all that a backend is asked."""

    def __init__(self, price: Price | None, most_usd: float | None) -> None:
        """Nothing is spent yet.

        Args:
            price: None where none is known.
            most_usd: None for no limit.
        """
        self.most_usd = most_usd
        self.has_price = price is not None
        self.spent_usd = 0.0
        self._price = price
        self._reserved = 0.0
        self._n_reserved = 0
        self._waiting: list[asyncio.Future[None]] = []

    async def reserve(self, call: Call) -> float:
        """Set aside what a call may cost at most, before it is sent; waits for calls under way, which may cost less.

        Raises:
            RunError: there is not enough left.
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
        """Refuse to send, all at once, what may cost so much.

        Raises:
            RunError: there is not enough left.
        """
        if self.most_usd is not None and self.spent_usd + most_usd > self.most_usd:
            raise RunError(
                f"--max-cost {self.most_usd:g} does not cover the batch, which may take {most_usd:.4f} USD and more; "
                "raise it, or ask fewer items with --limit"
            )

    def release(self, reserved: float, cost_usd: float | None) -> None:
        """A call is over.

        Args:
            reserved: What was set aside for it.
            cost_usd: What it cost; None if that is unknown, and then it counts as what was set aside.
        """
        self._reserved -= reserved
        self._n_reserved -= 1
        self.spent_usd += reserved if cost_usd is None else cost_usd
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def cost_usd(self, data: Mapping[str, Any], *, batch: bool = False) -> float | None:
        """What an answer cost; None where no price is known or the endpoint does not say how many tokens it took."""
        used = usage(data)
        if self._price is None or used.n_prompt is None:
            return None
        return self._price.cost_usd(
            used.n_prompt, used.n_completion or 0, n_cached=min(used.n_cached, used.n_prompt), batch=batch
        )

    def at_most(self, call: Call, *, batch: bool = False) -> float:
        """Bound of what a call costs; 0 where no price is known."""
        if self._price is None:
            return 0.0
        # A token is at least one byte of the text.
        size = len(json.dumps(call.body, ensure_ascii=False).encode())
        n_prompt = size if call.n_prompt is None else call.n_prompt + _FRAME
        return self._price.cost_usd(n_prompt, call.n_completion, batch=batch)
