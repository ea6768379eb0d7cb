"""The interface of a trainer: it trains a LoRA adapter for each context in which a task asks a model.

The backend that can train defines ``open_trainer(model, options, hyperparameters)``, which returns a :class:`Trainer`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.kinds import BACKENDS
from evaluators.backend import ChoiceRequest
from evaluators.backend_options import BackendOptions
from schemas.documents.adapters import BaseModel, Hyperparameters, adapter_name


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


@dataclass(kw_only=True)
class Trainer(ABC):
    """A base model for which adapters can be trained. Its own weights never change."""

    base: BaseModel
    hyperparameters: Hyperparameters
    target_modules: tuple[str, ...]
    """Names of the layers that get an adapter, sorted."""

    @property
    @abstractmethod
    def computation(self) -> str:
        """The data type of the forward passes and the type of the device."""

    @property
    @abstractmethod
    def packages(self) -> dict[str, str]:
        """The versions of the libraries."""

    @abstractmethod
    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a prompt, in the chat template if there is one."""

    @abstractmethod
    def check(self, context: TrainingContext) -> None:
        """Check that the model can be trained on all items of a context.

        Raises:
            ConfigError: an item has more tokens than the model takes, or cannot be tokenised.
        """

    @abstractmethod
    def train(self, context: TrainingContext, folder: Path) -> Likelihoods:
        """Train the adapter of a context, write it into an existing empty folder, and remove it from the model.

        Raises:
            RunError: memory ran out, or the loss or a likelihood is not finite.
        """


def open_trainer(model: str, options: BackendOptions, hyperparameters: Hyperparameters) -> Trainer:
    """Load a model to train adapters for.

    Raises:
        ConfigError: the model cannot be loaded or has no layers to train, or an option cannot be used.
        MissingExtraError: a library is not installed.
    """
    # The only backend that trains.
    trainer: Trainer = BACKENDS.load("transformers").open_trainer(model, options, hyperparameters)
    return trainer
