"""Reads the prices of models behind an API from a file that the user writes; prices change too often to be shipped.

The file holds a table for each model id or glob, with prices in US dollars per million tokens::

    ["some-model-*"]
    input = 0.50
    cached_input = 0.25    # if left out, the same as input
    output = 1.50
    batch_discount = 0.5   # share of the price that the batch API takes off; none if left out
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.toml_files import read_toml

_PER = 1_000_000
_FIELDS = ("input", "cached_input", "output", "batch_discount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The prices of one model, in US dollars per million tokens."""

    input: float
    output: float
    cached_input: float
    """Price of prompt tokens that come from the endpoint's cache."""
    batch_discount: float = 0.0
    """Share of the price that the batch API takes off."""

    def cost_usd(self, n_prompt: int, n_completion: int, *, n_cached: int = 0, batch: bool = False) -> float:
        """Return the cost of tokens in US dollars, where ``n_cached`` of the ``n_prompt`` tokens came from the cache.

        >>> round(Price(input=2.0, output=8.0, cached_input=1.0).cost_usd(3_000_000, 500_000, n_cached=1_000_000), 6)
        9.0
        """
        cost = ((n_prompt - n_cached) * self.input + n_cached * self.cached_input + n_completion * self.output) / _PER
        return cost * (1 - self.batch_discount) if batch else cost


def read_price(path: Path, model: str) -> Price:
    """Read the price of a model from a file.

    Args:
        path: TOML file of prices.
        model: Id of the model. Its own entry is preferred to globs, and a longer glob to a shorter one.

    Raises:
        ConfigError: there is no such file, or no entry for the model.
        DataError: the file is not a valid file of prices.
    """
    tables = read_toml(path, option="--prices", what="prices")
    prices = {name: _price(table, where=f"{path}: model '{name}'") for name, table in tables.items()}
    matching = [name for name in prices if name == model or fnmatch.fnmatchcase(model, name)]
    if not matching:
        have = ", ".join(prices) or "none"
        raise ConfigError(f"{path}: no price for model '{model}'; have: {have}. Add a table of that name")
    return prices[max(matching, key=lambda name: (name == model, len(name)))]


def _price(table: object, *, where: str) -> Price:
    if not isinstance(table, Mapping):
        raise DataError(f'{where}: not a table; write ["MODEL"] and below it input = ..., output = ...')
    for field, value in table.items():
        if field not in _FIELDS:
            raise DataError(f"{where}: '{field}' does not exist; have: {', '.join(_FIELDS)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise DataError(f"{where}: {field} = {value!r} is no price; give US dollars per million tokens, 0 or more")
    for field in ("input", "output"):
        if field not in table:
            raise DataError(f"{where}: '{field}' is missing; give US dollars per million tokens")
    discount = float(table.get("batch_discount", 0.0))
    if discount > 1:
        raise DataError(f"{where}: batch_discount = {discount} is no share; give a number from 0 to 1, such as 0.5")
    return Price(
        input=float(table["input"]),
        output=float(table["output"]),
        cached_input=float(table.get("cached_input", table["input"])),
        batch_discount=discount,
    )
