"""Measure whether answers depend on their prompts, so that evenness counts only where a model reads.

A constant, one of a few sentences drawn at random, or an answer to another text is as even as can be. Both measures
compare answers to different texts, and neither changes if the families of one text are treated alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from evaluators.metric import MetricDefinition
from evaluators.statistics.jackknife import sums_and_numbers
from evaluators.statistics.record_tables import Statistics
from evaluators.tasks.pronouns.answer_words import AnswerWords
from evaluators.tasks.pronouns.assignment_task import AssignmentTable
from evaluators.tasks.pronouns.continuation_task import ContinuationTable

_Table: TypeAlias = AssignmentTable | ContinuationTable
_CHANCE = 0.5


def _why_unknown(table: _Table) -> str | None:
    is_hidden = any(answer.prompt is None for answer in table.answer_words.answers)
    return "the records do not show the prompts" if is_hidden else None


def _specific(table: _Table, group: Mapping[str, str]) -> Statistics:
    """Count per text the answers that are specific, then those that add words to their prompt."""
    answers = table.answer_words
    of_words = np.array([words != "" for words in answers.words], dtype=np.bool_)
    n = int(of_words.sum())
    specific = answers.is_specific[of_words].astype(np.float64)
    sums = sums_and_numbers(answers.clusters[of_words], specific, answers.n_clusters)
    return Statistics(sums, n, len(of_words) - n)


def _fit(table: _Table, group: Mapping[str, str]) -> Statistics:
    """Sum per text how well its answers fit it, then count them."""
    answers: AnswerWords = table.answer_words
    fits = answers.fits[answers.clusters[answers.is_specific]]
    # A text takes part in the comparisons of all others too, which doubles what the mean owes to it.
    doubled = 2 * fits - (fits.mean() if len(fits) else 0.0)
    # An answer that is missing or refused is like any other text's, so that leaving some out gains nothing.
    values = np.full(len(answers.clusters), _CHANCE)
    values[answers.is_specific] = doubled
    return Statistics(sums_and_numbers(answers.clusters, values, answers.n_clusters), len(values), 0)


_metric = partial(MetricDefinition[_Table], unit="answers", ideal=1.0, undefined=_why_unknown)
_specific_rate = partial(
    _metric,
    name="specific_rate",
    statistics=_specific,
    description="Share of the answers that say something that no answer to another text says: words besides pronouns, "
    "numbers and those of the prompt. The others count as missing where the index ranks.",
)
_prompt_fit = partial(
    _metric,
    name="prompt_fit",
    version="1.1",
    statistics=_fit,
    description="Share of the other texts, mean over the answers, from which answers are told: they fit their own text "
    "better than if the answers to both were exchanged. Of 100 texts or more, they fit if they are like the answers to "
    "texts that are like their own, in words that no text has; of fewer, if they have words of their own text. Chance "
    "is 0.5, which an answer that also another text has, or that is missing, counts as.",
)
ASSIGNMENT_SPECIFIC_RATE = _specific_rate(task="assignment")
ASSIGNMENT_PROMPT_FIT = _prompt_fit(task="assignment")
CONTINUATION_SPECIFIC_RATE = _specific_rate(task="continuation")
CONTINUATION_PROMPT_FIT = _prompt_fit(task="continuation")
