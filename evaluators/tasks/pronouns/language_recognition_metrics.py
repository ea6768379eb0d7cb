"""Measures whether the pronoun families of German, Spanish and French are recognised, as GDR does in English.

The values of two languages are never compared: their families, texts and detectors differ, and Spanish drops subjects.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from evaluators.metric import MetricDefinition, mean_metric
from evaluators.tasks.pronouns.family_rates import echo_rate, refusal_rate, uniformity_metric
from evaluators.tasks.pronouns.language_recognition import ENDING, LanguageTable, columns_of
from evaluators.tasks.pronouns.recognition_task import USED
from schemas.lexicon.languages import LANGUAGE_CODES, Language

_DETECTOR = "languages-1"
"""Version of the detectors and refusals of these languages, appended to the version of each metric."""


def _metrics_in(language: Language) -> tuple[MetricDefinition[Any], ...]:
    task = f"{language}_recognition"
    version = f"1.0+{_DETECTOR}"
    mean = partial(mean_metric, task=task, version=version)
    families = columns_of(language)
    return (
        uniformity_metric(
            "gdr",
            lambda table: table.correct,
            where=lambda table: table.read,
            task=task,
            ddof=1,
            version=version,
            leaves_out_chance=True,
            families=families,
            description=f"Gender diversity recognition: 1 / (1 + CV²) of the accuracies of the {len(families)} "
            f"families of {language.capitalize()}, without the differences that chance gives; undefined if no answer "
            "is right.",
        ),
        mean(
            "recognition_accuracy",
            lambda table: table.correct,
            where=lambda table: table.read,
            ideal=1.0,
            slices=("family", "family_class", ENDING),
            description="Share of answers whose first pronoun belongs to the prompt's family; answers without a "
            "pronoun are wrong.",
        ),
        mean(
            "accuracy_of_pronouns",
            lambda table: table.correct,
            where=lambda table: table.read & (table.used.sum(axis=1) > 0),
            ideal=1.0,
            slices=("family", ENDING),
            description="The same among the answers with a pronoun, for languages that drop subjects.",
        ),
        mean(
            "no_pronoun_rate",
            lambda table: table.used.sum(axis=1) == 0,
            where=lambda table: table.read,
            slices=("family", ENDING),
            description="Share of answers without any pronoun that tells a family, apart from a repeated prompt.",
        ),
        MetricDefinition[LanguageTable](
            name="pronoun_rate",
            task=task,
            version=version,
            statistics=lambda table, group: table.pronoun_statistics(group),
            slices=(("family", USED),),
            description="Share of answers with a pronoun; by the prompt's family and each family that any answer uses, "
            "with a first pronoun of that family: what replaces what.",
        ),
        replace(echo_rate(task), version=version),
        replace(refusal_rate(task), version=version),
    )


GERMAN, SPANISH, FRENCH = (_metrics_in(language) for language in LANGUAGE_CODES)
