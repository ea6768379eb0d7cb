"""Counts what was sent and what it cost, and stops before more is spent than the user allows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

from biasboard.ground.errors import RunError
from evaluators.backend import Sent
from evaluators.backends.openai.client import Call
from evaluators.backends.openai.reading import usage
from evaluators.models.prices import Price

_FRAME = 64
"""Largest number of tokens that a chat template is assumed to add to a prompt."""
_MOST_NAMES = 16


class Ledger:
    """The attempts, the money and the names of models in all calls of a backend; money is in US dollars.

    There is one for probing and all runs of a backend, so that --max-cost is one limit for all configs.
    """

    def __init__(self, price: Price | None, most_usd: float | None) -> None:
        """Create a ledger of nothing yet.

        Args:
            price: Price of the model's tokens; None if unknown.
            most_usd: Limit in US dollars; None for no limit.
        """
        self.earlier_usd = 0.0
        """Cost of earlier processes, which counts against the limit."""
        self.n_attempts = 0
        self.cost_usd = 0.0
        self.models: set[str] = set()
        """Names by which the endpoint called the model."""
        self.fingerprints: set[str] = set()
        self._price = price
        self._most_usd = most_usd
        self._reported = (0, 0.0)
        self._reserved = 0.0
        self._n_reserved = 0
        self._settled = asyncio.Event()
        """Set when the next call has ended."""

    @property
    def spent_usd(self) -> float:
        """What counts against the limit."""
        return self.earlier_usd + self.cost_usd

    def news(self) -> Sent | None:
        """Return the event of what was sent and spent since the last such event; None if nothing was."""
        now = self.n_attempts, self.cost_usd
        before, self._reported = self._reported, now
        return None if now == before else Sent(now[0] - before[0], now[1] - before[1] if self._price else None)

    def see(self, reply: Mapping[str, Any]) -> None:
        """Note the model and the system fingerprint that a reply names."""
        for names, key in ((self.models, "model"), (self.fingerprints, "system_fingerprint")):
            name = reply.get(key)
            if isinstance(name, str) and name and len(names) < _MOST_NAMES:
                names.add(name)

    async def reserve(self, call: Call) -> float:
        """Reserve the highest possible cost of a call before it is sent, and return it.

        If too little is left, wait until calls under way have ended: they may cost less than is reserved for them.

        Raises:
            RunError: too little is left, and no call is under way.
        """
        most = self.at_most(call)
        while self._most_usd is not None and self.spent_usd + self._reserved + most > self._most_usd:
            if self._n_reserved == 0:
                raise RunError(
                    f"--max-cost {self._most_usd:g} is reached: {self.spent_usd:.4f} USD are spent, "
                    f"and one more request may take {most:.4f} USD. Answers are kept: raise --max-cost and run again"
                )
            await self._settled.wait()
        self._reserved += most
        self._n_reserved += 1
        return most

    def release(self, reserved: float, cost_usd: float) -> None:
        """Replace the reservation of a call that has ended by its cost."""
        self._reserved -= reserved
        self._n_reserved -= 1
        self.cost_usd += cost_usd
        self._settled.set()
        self._settled = asyncio.Event()

    def check_batch(self, calls: Iterable[Call]) -> None:
        """Check that the limit covers calls that are sent all at once.

        Raises:
            RunError: too little is left.
        """
        most = sum(self.at_most(call, batch=True) for call in calls)
        if self._most_usd is not None and self.spent_usd + most > self._most_usd:
            raise RunError(
                f"--max-cost {self._most_usd:g} does not cover the batch, which may take {most:.4f} USD and more; "
                "raise it, or ask fewer items with --limit"
            )

    def cost_of(self, reply: Mapping[str, Any], *, batch: bool = False) -> float | None:
        """Return the cost of a reply; None if the price or the number of tokens is unknown."""
        used = usage(reply)
        if self._price is None or used.n_prompt is None:
            return None
        return self._price.cost_usd(
            used.n_prompt, used.n_completion or 0, n_cached=min(used.n_cached, used.n_prompt), batch=batch
        )

    def at_most(self, call: Call, *, batch: bool = False) -> float:
        """Return an upper bound on the cost of a call; 0 if no price is known."""
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
