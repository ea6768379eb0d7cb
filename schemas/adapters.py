"""The contents of ``adapters.json``: LoRA adapters that were trained for the contexts of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

SCHEMA_VERSION = "1.0"

Schedule: TypeAlias = Literal["constant", "linear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel:
    """The model whose weights the adapters are added to."""

    id: str
    """Model id on the Hub, or name of a local folder."""
    revision: str
    """Commit on the Hub, or ``sha256:...`` of the files in a local folder."""
    identity_sha256: str
    """SHA-256 of the exact version of the model's files, as the identity of a model names it."""
    precision: str
    """Data type of the weights during the training, such as ``float32``."""
    tokenizer_sha256: str | None
    """SHA-256 of what a tokenizer does, if it is another one than the model's own; None if it is that."""
    chat_template_sha256: str | None
    """SHA-256 of the chat template; None if prompts were shown as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData:
    """The dataset that the items come from, and the task that asked about them."""

    name: str
    version: str
    content_sha256: str
    task: str
    task_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """The numbers that decide how an adapter is trained, besides its data."""

    n_items: int
    """Number of items that an adapter is trained on."""
    epochs: int
    learning_rate: float
    schedule: Schedule
    """Course of the learning rate: constant, or linear to 0 after the last step. Neither has a warm-up."""
    rank: int
    alpha: int
    dropout: float
    accumulation: int
    """Number of items whose gradients are averaged for a step of the optimizer."""
    weight_decay: float
    max_gradient_norm: float
    beta1: float
    beta2: float
    seed: int
    """Seed of the first weights and of the order of the items; each context draws its own numbers from it."""


PUBLISHED = Hyperparameters(
    n_items=16,
    epochs=5,
    learning_rate=2e-4,
    schedule="constant",
    rank=64,
    alpha=16,
    dropout=0.0,
    accumulation=8,
    weight_decay=0.03,
    max_gradient_norm=0.3,
    beta1=0.9,
    beta2=0.999,
    seed=42,
)
"""The numbers of Reif & Schwartz (NAACL 2024, arXiv:2405.02743) and their code, which follow QLoRA (arXiv:2305.14314).

Their text gives a learning rate of 0.002, and their scripts the 0.0002 of QLoRA. QLoRA keeps it constant.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedAdapter:
    """An adapter for one context: a config under a prompt, with the examples that it shows."""

    config: str
    prompt: str
    path: str
    """Folder of the adapter, relative to that of ``adapters.json``."""
    weights_sha256: str
    settings_sha256: str
    """SHA-256 of the file ``adapter_config.json``, whose numbers scale the weights."""
    item_ids: tuple[str, ...]
    """Items that it was trained on, in the order of their split."""
    logprob_before: float
    """Log-probability in nats of a label and the end token after it, without the adapter; mean over the items."""
    logprob_after: float
    """The same with the adapter."""

    @property
    def name(self) -> str:
        """The name of the context, by which a request asks for the adapter."""
        return adapter_name(self.config, self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Adapters of one base model that were trained in one way on one dataset."""

    schema_version: str
    base: BaseModel
    data: TrainingData
    hyperparameters: Hyperparameters
    target_modules: tuple[str, ...]
    """Names of the linear layers that have an adapter, sorted; the output layer has none."""
    computation: str
    """Data type of the forward passes of the training, with the type of the device, such as ``float32 on cpu``."""
    packages: dict[str, str]
    """Versions of the libraries that trained them."""
    adapters: tuple[TrainedAdapter, ...]


def adapter_name(config: str, prompt: str) -> str:
    """Return the name of a context, by which a request asks for its adapter.

    >>> adapter_name("sentiment", "release-4096b-k8-set0-v1")
    'sentiment/release-4096b-k8-set0-v1'
    """
    return f"{config}/{prompt}"
