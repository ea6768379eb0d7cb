"""Asks a model to continue a Spanish text about one person, and reads which pronoun it uses first."""

from __future__ import annotations

from evaluators.tasks.pronouns.language_recognition import LanguageRecognitionTask

TASK = LanguageRecognitionTask("spanish")
