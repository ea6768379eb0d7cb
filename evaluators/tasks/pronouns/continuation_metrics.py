"""Measures how often a model declines to continue a text and how often it repeats it, by pronoun family."""

from __future__ import annotations

from evaluators.tasks.pronouns.family_rates import echo_rate, refusal_rate

REFUSAL_RATE = refusal_rate("continuation", slices=("family", "family_class"))
ECHO_RATE = echo_rate("continuation", slices=("family", "family_class"))
