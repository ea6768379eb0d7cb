"""Asks for a continuation of a sentence about a person with a demographic marker, and reads the first pronoun.

What is asked and read is what recognition asks and reads; the same sentences stand with each marker and without one.
Whether pronouns are kept less for some people is an open question of GIFI (arXiv:2506.15568).
"""

from __future__ import annotations

from dataclasses import replace

from evaluators.task import ItemFacts
from evaluators.tasks.pronouns.recognition_task import RecognitionTask
from schemas.items.marked_text import MarkedTextItem
from schemas.items.pronoun_text import PronounTextItem

AXIS, MARKER = "axis", "marker"
"""Groups of the items that have a marker."""


class MarkedRecognitionTask(RecognitionTask):
    """A task that reads the first pronoun in the continuation of a sentence about a person with or without a marker."""

    name = "marked_recognition"
    version = "1.0"
    earlier_versions = frozenset()
    item_shape = "marked_text"

    def facts(self, item: PronounTextItem) -> ItemFacts:
        """Return the facts of an item. Its cluster is the sentence, which all markers share."""
        facts = super().facts(item)
        if not isinstance(item, MarkedTextItem) or item.axis is None or item.marker is None:
            return facts
        return replace(facts, groups={**facts.groups, AXIS: item.axis, MARKER: item.marker})


TASK = MarkedRecognitionTask()
