"""The contents of ``adapters.json``: LoRA adapters that were trained for the contexts of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import StringConstraints
from typing_extensions import override

from schemas.documents.base import Count, Distinct, Document, Name, Positive, SemanticVersion, Sha256, Version, repeated

Schedule: TypeAlias = Literal["constant", "linear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel(Document):
    """The model whose weights the adapters are added to."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Model id on the Hub, or name of a local folder."""
    revision: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Commit on the Hub, or ``sha256:...`` of the files in a local folder."""
    identity_sha256: Sha256
    """SHA-256 of the exact version of the model's files, as the identity of a model names it."""
    precision: Annotated[str, StringConstraints(min_length=1, max_length=50)]
    """Data type of the weights during the training, such as ``float32``."""
    tokenizer_sha256: Sha256 | None
    """SHA-256 of the behaviour of the tokenizer, if it is not the model's own; None if it is."""
    chat_template_sha256: Sha256 | None
    """SHA-256 of the chat template; None if prompts were shown as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingData(Document):
    """The dataset that the items come from, and the task that asked about them."""

    name: Name
    version: SemanticVersion
    content_sha256: Sha256
    task: Name
    task_version: Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters(Document):
    """The numbers that, with the data, determine how an adapter is trained."""

    n_items: Positive
    """Number of items that an adapter is trained on."""
    epochs: Positive
    learning_rate: Annotated[float, Gt(0)]
    schedule: Schedule
    """Schedule of the learning rate: constant, or linear to 0 after the last step. Neither has a warm-up."""
    rank: Positive
    alpha: Positive
    dropout: Annotated[float, Ge(0), Lt(1)]
    accumulation: Positive
    """Number of items whose gradients are averaged for a step of the optimizer."""
    weight_decay: Annotated[float, Ge(0)]
    max_gradient_norm: Annotated[float, Gt(0)]
    beta1: Annotated[float, Ge(0), Lt(1)]
    beta2: Annotated[float, Ge(0), Lt(1)]
    seed: Count
    """Seed of the initial weights and of the order of the items; each context draws its own numbers from it."""


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
class TrainedAdapter(Document):
    """An adapter for one context: a config under a prompt, with the examples that it shows."""

    config: Name
    prompt: Name
    path: Annotated[
        str, StringConstraints(max_length=1000, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
    ]
    """Folder of the adapter, relative to that of ``adapters.json``."""
    weights_sha256: Sha256
    settings_sha256: Sha256
    """SHA-256 of the file ``adapter_config.json``, whose numbers scale the weights."""
    item_ids: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=500)], ...], MinLen(1), Distinct()
    ]
    """Items that it was trained on, in the order of their split."""
    logprob_before: Annotated[float, Le(0)]
    """Log-probability in nats of a label and the end token after it, without the adapter; mean over the items."""
    logprob_after: Annotated[float, Le(0)]
    """The same with the adapter."""

    @property
    def name(self) -> str:
        """The name of the context, by which requests select the adapter."""
        return adapter_name(self.config, self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters(Document):
    """Adapters of one base model, all trained with the same hyperparameters on one dataset."""

    schema_file = "schemas/documents/adapters.schema.json"

    schema_version: Literal["1.0"]
    base: BaseModel
    data: TrainingData
    hyperparameters: Hyperparameters
    target_modules: Annotated[tuple[Name, ...], MinLen(1), Distinct()]
    """Names of the linear layers that have an adapter, sorted; the output layer has none."""
    computation: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    """Data type of the forward passes of the training, with the type of the device, such as ``float32 on cpu``."""
    packages: Annotated[dict[str, Annotated[str, StringConstraints(max_length=200)]], MaxLen(50)]
    """Versions of the libraries that trained them."""
    adapters: Annotated[tuple[TrainedAdapter, ...], MinLen(1)]

    @override
    def problems(self) -> Iterator[str]:
        for name, values in (
            ("context", [adapter.name for adapter in self.adapters]),
            ("path", [adapter.path for adapter in self.adapters]),
        ):
            for value in sorted(repeated(values)):
                yield f"adapters: {name} {value} stands twice; keep one adapter for each context"
        for adapter in self.adapters:
            if len(adapter.item_ids) != self.hyperparameters.n_items:
                yield (
                    f"adapters: {adapter.name} names {len(adapter.item_ids)} items, the hyperparameters "
                    f"{self.hyperparameters.n_items}; train it again"
                )


def adapter_name(config: str, prompt: str) -> str:
    """Return the name of a context, by which requests select its adapter.

    >>> adapter_name("sentiment", "release-4096b-k8-set0-v1")
    'sentiment/release-4096b-k8-set0-v1'
    """
    return f"{config}/{prompt}"
