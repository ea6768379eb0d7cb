"""Requests over made sentences, in every shape that options have."""

from __future__ import annotations

from collections.abc import Iterator

from evaluators.backend import ChoiceRequest
from tests.evaluators.made_data import made_items

_HEADER = "The guard waited for the nurse. The nurse could leave. Who could leave? The nurse. "


def choices(n: int) -> list[ChoiceRequest]:
    """Different requests, in turn: options of one token, of several, the beginning of one another, after a header."""
    shapes = _shapes()
    return [next(shapes) for _ in range(n)]


def _shapes() -> Iterator[ChoiceRequest]:
    for index, item in enumerate(made_items(1000)):
        start, end = item.sentence[: item.pronoun_start - 1], item.sentence[item.pronoun_start + len(item.pronoun) :]
        first, second = item.occupations
        shape = index % 4
        if shape == 0:
            yield _choice(start, " he", " she")
        elif shape == 1:
            yield _choice(f"{item.sentence} '{item.pronoun.title()}' refers to", f" the {first}.", f" the {second}.")
        elif shape == 2:
            yield _choice(start, f" {item.pronoun}", f" {item.pronoun} could", f" {item.pronoun}{end}", " the")
        else:
            yield _choice(f"{_HEADER}{item.sentence} Who could leave?", f" The {first}", f" The {second}", " Both")


def _choice(prompt: str, *options: str) -> ChoiceRequest:
    return ChoiceRequest(prompt=prompt, options=options, outcomes=tuple(option.strip() for option in options))
