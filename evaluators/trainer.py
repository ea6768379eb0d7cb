"""What a LoRA adapter is trained on: the contexts in which a task asks a model, with their right answers."""

from __future__ import annotations

from typing import NamedTuple

from evaluators.backend import ChoiceRequest
from schemas.documents.adapters import adapter_name


class Lesson(NamedTuple):
    """An item to train on."""

    item_id: str
    request: ChoiceRequest
    """The question about the item, as it is asked in an evaluation."""
    option: int
    """Index of the right option."""


class TrainingContext(NamedTuple):
    """A config under a prompt, and the items on which its adapter is trained."""

    config: str
    prompt: str
    lessons: tuple[Lesson, ...]

    @property
    def name(self) -> str:
        """The name of the context and of its adapter."""
        return adapter_name(self.config, self.prompt)

    @property
    def item_ids(self) -> tuple[str, ...]:
        """The ids of the items on which the adapter is trained, in order."""
        return tuple(lesson.item_id for lesson in self.lessons)


class Likelihoods(NamedTuple):
    """Mean log-probability in nats of a label and the end token after it, over the items of a training."""

    before: float
    after: float
