"""Chooses the items that a prompt shows by their labels, and those that an adapter for the prompt is trained on.

Reif & Schwartz (NAACL 2024, arXiv:2405.02743, §6.2) vary how many of the examples of a binary task have each label.
Here the first label of any task gets a share, and the others stand as the pool has them. They train an adapter for each
context on items that the context does not show (§5).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from schemas.items.label import LabelItem

SHARES = (0, 25, 50, 75, 100)
"""Shares of the examples that have the first label, in percent."""
_RULE = "share"


def rule_of(percent: int) -> str:
    """Return the name of the rule that gives the first label a share of the examples, in percent."""
    return f"{_RULE}{percent}"


def examples_by_rule(pool: Sequence[LabelItem], rule: str, n_examples: int, number: int) -> tuple[LabelItem, ...]:
    """Return the examples of a set, in the order of the pool.

    Sets share no item as long as the pool has enough of each kind; then they start over. If the pool has fewer items of
    a kind than a set wants, the set has only these.

    Args:
        pool: The items to choose from.
        rule: A name that :func:`rule_of` gave.
        n_examples: Number of examples that the set wants.
        number: Number of the set, from 0.
    """
    if not pool:
        return ()
    n_first = round(n_examples * int(rule.removeprefix(_RULE)) / 100)
    first_label = pool[0].labels[0]
    kinds = [place for place, item in enumerate(pool) if item.target == first_label]
    others = [place for place, item in enumerate(pool) if item.target != first_label]
    places = {*_of_set(kinds, n_first, number), *_of_set(others, n_examples - n_first, number)}
    return tuple(pool[place] for place in sorted(places))


def _of_set(places: Sequence[int], n_wanted: int, number: int) -> list[int]:
    """Return the places of a set, which starts where the set before it ended."""
    n = min(n_wanted, len(places))
    return [places[(n * number + step) % len(places)] for step in range(n)]


def training_items(
    pool: Sequence[LabelItem], shown: Sequence[LabelItem], n_examples: int, number: int, n_items: int
) -> tuple[LabelItem, ...]:
    """Return the items on which the adapter of a context is trained, in the order of the pool from a first place on.

    With k examples, set s and n items to train on, the first place is k(s + 1) if k is at least n, and k + ns if it is
    less, as in the code of Reif & Schwartz. After the last item of the pool comes the first one. Items that the context
    shows are skipped.

    Args:
        pool: The items to choose from.
        shown: The examples of the context.
        n_examples: Number k of examples that the context wants.
        number: Number s of their set.
        n_items: Number of items to train on, 16 in the release; fewer come back if there are not enough.
    """
    first = n_examples * (number + 1) if n_examples >= n_items else n_examples + n_items * number
    left_out = {item.item_id for item in shown}
    order = (pool[(first + step) % len(pool)] for step in range(len(pool)))
    return tuple(islice((item for item in order if item.item_id not in left_out), n_items))
