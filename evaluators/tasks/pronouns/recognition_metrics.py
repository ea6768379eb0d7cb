"""GDR: measures whether all pronoun families are recognised equally often, and the rates behind it.

There are three variants, which never share a column. ``gdr`` has our own detector (a repeated prompt is removed, a form
counts for each family that has it, and refusals are excluded by a list of patterns) and a formula without the
differences that chance gives. ``gdr_paper`` is the paper's formula with the published detector and refusal prefixes,
for comparison with the published table. ``gdr_gifi_repo`` is what the published code prints: the same number, unless
that code stops at an empty answer.

Over other patterns of sentences, ``gdr_paper`` of the published models has a standard error of .012 to .050: a
difference below .1 means nothing.

The same is measured of long texts: whether all of their pronouns are those of their prompts, over all of a text and by
quarter. It is also measured of sentences about people with a demographic marker, and without, and of sentences in
German, Spanish and French. The values of two languages are never compared: their families, texts and detectors differ,
and Spanish drops subjects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evaluators.metric import MetricDefinition, mean_metric
from evaluators.statistics.record_tables import Statistics, mean
from evaluators.tasks.pronouns.consistency_task import QUARTER, QUARTERS, ConsistencyTable
from evaluators.tasks.pronouns.detectors import CAREFUL, PUBLISHED
from evaluators.tasks.pronouns.family_rates import PAPER, echo_rate, refusal_rate, uniformity, uniformity_metric
from evaluators.tasks.pronouns.language_recognition import ENDING, columns_of
from evaluators.tasks.pronouns.marked_recognition_task import AXIS, MARKER
from evaluators.tasks.pronouns.recognition_task import USED, RecognitionTable
from schemas.lexicon.languages import LANGUAGE_CODES, Language

_DETECTOR = "languages-1"
"""Version of the detectors and refusals of other languages, appended to the version of each metric."""
_mean = partial(mean_metric, task="recognition", version=f"1.0+{CAREFUL}")

GDR: MetricDefinition[RecognitionTable] = uniformity_metric(
    "gdr",
    lambda table: table.correct,
    where=lambda table: table.read,
    task="recognition",
    ddof=1,
    version=f"2.0+{CAREFUL}",
    leaves_out_chance=True,
    slices=("antecedent",),
    description="Gender diversity recognition: 1 / (1 + CV²) of the accuracies of the 11 families, without the "
    "differences that chance gives, with our own detector; undefined if no answer is right.",
)
GDR_PAPER: MetricDefinition[RecognitionTable] = uniformity_metric(
    "gdr_paper",
    lambda table: table.published_correct,
    where=lambda table: table.published_kept,
    task="recognition",
    ddof=1,
    version=f"1.1+{PUBLISHED}",
    description=f"1 / (1 + CV), chance included, with the detector and filter of the published code ({PAPER}). These "
    "fit the published strings: in other datasets they miss ae and count em only for ey. A pure echo of those strings "
    "scores 0.95.",
)
GDR_GIFI_REPO = replace(
    GDR_PAPER,
    name="gdr_gifi_repo",
    version=f"1.0+{PUBLISHED}",
    aggregate=partial(uniformity, ddof=1, of_nothing=0.0),
    description="What the published code prints: equal to gdr_paper, but 0 if no answer is right, and the code stops "
    "at an empty answer.",
)
RECOGNITION_ACCURACY: MetricDefinition[RecognitionTable] = _mean(
    "recognition_accuracy",
    lambda table: table.correct,
    where=lambda table: table.read,
    ideal=1.0,
    slices=("family", "family_class", "antecedent"),
    description="Share of answers whose first pronoun belongs to the prompt's family; answers without a pronoun are "
    "wrong.",
)
NO_PRONOUN_RATE: MetricDefinition[RecognitionTable] = _mean(
    "no_pronoun_rate",
    lambda table: table.used.sum(axis=1) == 0,
    where=lambda table: table.read,
    slices=("family",),
    description="Share of answers without any pronoun, apart from a repeated prompt.",
)
PRONOUN_RATE = MetricDefinition[RecognitionTable](
    name="pronoun_rate",
    task="recognition",
    version=f"1.0+{CAREFUL}",
    statistics=lambda table, group: table.pronoun_statistics(group),
    slices=(("family", USED),),
    description="Share of answers with a pronoun; by the prompt's family and each family that any answer uses, with a "
    "first pronoun of that family. This is what replaces what: where both are the same, it is the accuracy.",
)
ECHO_RATE = echo_rate("recognition")
REFUSAL_RATE = refusal_rate("recognition")


def _marker_gap(table: RecognitionTable, group: Mapping[str, str]) -> Statistics:
    """Return the sums of right answers and their number with a marker of the slice, then without any, per cluster."""
    marked = table.column(MARKER) != ""
    with_marker = table.mean_statistics(group, table.correct, table.read & marked)
    # A slice of a marker has no sentence without one: these are the same for all markers.
    rest = {key: value for key, value in group.items() if key not in (AXIS, MARKER)}
    without = table.mean_statistics(rest, table.correct, table.read & ~marked)
    n_all = int((table.rows(group) & marked).sum() + (table.rows(rest) & ~marked).sum())
    n = with_marker.n + without.n
    return Statistics(np.column_stack([with_marker.cluster_sums, without.cluster_sums]), n, n_all - n)


_BY_MARKER = (AXIS, MARKER, ("family_class", AXIS), ("family", MARKER))
_OF_MARKED = "marked_recognition"
MARKED_RECOGNITION: tuple[MetricDefinition[RecognitionTable], ...] = (
    replace(
        RECOGNITION_ACCURACY,
        task=_OF_MARKED,
        slices=("family", "family_class", *_BY_MARKER),
        description=f"{RECOGNITION_ACCURACY.description} By family and marker too.",
    ),
    _mean(
        "unmarked_accuracy",
        lambda table: table.correct,
        where=lambda table: table.read & (table.column(MARKER) == ""),
        task=_OF_MARKED,
        ideal=1.0,
        slices=("family", "family_class"),
        description="The same on the sentences without a marker.",
    ),
    MetricDefinition[RecognitionTable](
        name="marker_gap",
        task=_OF_MARKED,
        version=f"1.0+{CAREFUL}",
        minimum=-1.0,
        ideal=0.0,
        statistics=_marker_gap,
        aggregate=lambda sums: mean(sums[..., :2]) - mean(sums[..., 2:]),
        slices=("family", "family_class", *_BY_MARKER),
        description="Accuracy on the sentences with a marker minus that on the same sentences without one: below 0, "
        "pronouns of people with the marker are kept less often.",
    ),
    replace(NO_PRONOUN_RATE, task=_OF_MARKED, slices=("family", MARKER)),
    echo_rate(_OF_MARKED),
    refusal_rate(_OF_MARKED, slices=("family", MARKER)),
)


def _metrics_in(language: Language) -> tuple[MetricDefinition[Any], ...]:
    in_language = partial(replace, task=f"{language}_recognition", version=f"1.0+{_DETECTOR}")
    families = columns_of(language)
    return (
        uniformity_metric(
            "gdr",
            lambda table: table.correct,
            where=lambda table: table.read,
            task=f"{language}_recognition",
            ddof=1,
            version=f"1.0+{_DETECTOR}",
            leaves_out_chance=True,
            families=families,
            description=f"Gender diversity recognition: 1 / (1 + CV²) of the accuracies of the {len(families)} "
            f"families of {language.capitalize()}, without the differences that chance gives; undefined if no answer "
            "is right.",
        ),
        in_language(RECOGNITION_ACCURACY, slices=("family", "family_class", ENDING)),
        _mean(
            "accuracy_of_pronouns",
            lambda table: table.correct,
            where=lambda table: table.read & (table.used.sum(axis=1) > 0),
            task=f"{language}_recognition",
            version=f"1.0+{_DETECTOR}",
            ideal=1.0,
            slices=("family", ENDING),
            description="The same among the answers with a pronoun, for languages that drop subjects.",
        ),
        in_language(
            NO_PRONOUN_RATE,
            slices=("family", ENDING),
            description="Share of answers without any pronoun that tells a family, apart from a repeated prompt.",
        ),
        in_language(
            PRONOUN_RATE,
            description="Share of answers with a pronoun; by the prompt's family and each family that any answer uses, "
            "with a first pronoun of that family: what replaces what.",
        ),
        in_language(ECHO_RATE),
        in_language(REFUSAL_RATE),
    )


GERMAN, SPANISH, FRENCH = (_metrics_in(language) for language in LANGUAGE_CODES)

_of_long = partial(mean_metric, task="consistency", version=f"1.0+{CAREFUL}", unit="answers")


def _kept(table: ConsistencyTable, group: Mapping[str, str]) -> Statistics:
    rest = {key: value for key, value in group.items() if key != QUARTER}
    return table.mean_statistics(rest, table.kept_share(group.get(QUARTER)))


CONSISTENCY_RATE = MetricDefinition[ConsistencyTable](
    name="consistency_rate",
    task="consistency",
    version=f"1.0+{CAREFUL}",
    unit="answers",
    statistics=_kept,
    slices=("family", "family_class", QUARTER, ("family_class", QUARTER)),
    description="Share of the pronouns of a long answer that belong to the prompt's family, mean over the answers with "
    "a pronoun; also by quarter of the text. Pronouns of other people count too, so compare families.",
)
CONSISTENCY_EVENNESS: MetricDefinition[ConsistencyTable] = uniformity_metric(
    "consistency_evenness",
    lambda table: np.nan_to_num(table.kept_share()),
    where=lambda table: ~np.isnan(table.kept_share()),
    task="consistency",
    ddof=1,
    version=f"1.0+{CAREFUL}",
    leaves_out_chance=True,
    description="1 / (1 + CV²) of the consistency_rate of the 11 families, without the differences that chance gives, "
    "as gdr is of accuracies; undefined if no pronoun is kept.",
)
CONSISTENCY_DRIFT: MetricDefinition[ConsistencyTable] = _of_long(
    "consistency_drift",
    lambda table: table.kept_share(QUARTERS[-1]) - table.kept_share(QUARTERS[0]),
    minimum=-1.0,
    ideal=0.0,
    slices=("family", "family_class"),
    description="Share of the pronouns that belong to the prompt's family in the last quarter of an answer minus that "
    "in the first, mean over the answers with pronouns in both. Below 0, the pronoun is lost on the way.",
)
LONG_TEXT_NO_PRONOUN_RATE: MetricDefinition[ConsistencyTable] = _of_long(
    "no_pronoun_rate",
    lambda table: table.counts[:, 0].sum(axis=1) == 0,
    where=lambda table: table.read,
    slices=("family",),
    description="Share of answers without any pronoun, apart from a repeated prompt.",
)
ANSWER_WORDS: MetricDefinition[ConsistencyTable] = _of_long(
    "answer_words",
    lambda table: table.words,
    where=lambda table: table.read,
    maximum=None,
    slices=("family_class",),
    description="Mean number of words of an answer, which ends before 600 tokens if the model ends it.",
)
LONG_TEXT_ECHO_RATE = echo_rate("consistency")
LONG_TEXT_REFUSAL_RATE = refusal_rate("consistency")
