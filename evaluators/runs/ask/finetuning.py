"""Trains an adapter for each context of some plans, and continues where an earlier training stopped.

In the folder of the adapters, ``setup.json`` holds what all of them have in common. An adapter is complete once its
folder exists: it is written under a temporary name and then renamed. Its ``adapter.json`` holds the hashes of its
files. ``adapters.json`` lists all adapters of the folder and is written last.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.files import replacing_folder, sha256_file
from biasboard.ground.progress import note, progress
from biasboard.ground.strict_json import JsonValue
from evaluators.adapter_set import (
    SETTINGS,
    WEIGHTS,
    AdapterSet,
    Lesson,
    TrainingContext,
    checked_folder,
    open_adapters,
)
from evaluators.backend import ChoiceRequest
from evaluators.runs.measure.measuring import locked_folder
from evaluators.runs.plan.plan import Plan, shown_examples
from evaluators.task import Asked, TrainsAdapters
from schemas.documents.adapters import Adapters, TrainedAdapter, TrainingData
from schemas.documents.base import SCHEMA_VERSION, from_values
from schemas.documents.dataset import Item
from schemas.files import contract
from schemas.folders.run_folder import ADAPTERS

if TYPE_CHECKING:
    from evaluators.backends.transformers.lora import LoraTrainer

_SETUP = "setup.json"
_ADAPTER = "adapter.json"


def finetune(plans: Sequence[Plan], trainer: LoraTrainer, out: Path) -> AdapterSet:
    """Train the adapters that a folder does not hold yet, and write the list of all adapters in it.

    The plans are all of one dataset and task.

    Raises:
        ConfigError: a context cannot be trained, or the folder holds adapters trained with other settings. Nothing was
            trained.
        RunError: a training ends in nan, or another process holds the folder. Complete adapters are kept.
    """
    setup = _setup(plans[0], trainer)
    with locked_folder(out):
        _check_folder(out, setup)
        adapters = _complete(out)
        n_complete = 0
        # Check all contexts before training the first, so that a refusal costs no training.
        for context in _contexts(plans, trainer):
            adapter = adapters.get(context.name)
            if adapter is None:
                trainer.check(context)
            elif adapter.item_ids != context.item_ids:
                folder = out / adapter.path
                raise ConfigError(f"{folder}: was trained on other items; remove the folder and train it again")
            else:
                n_complete += 1
        strict_json.write(out / _SETUP, setup)
        # Temporary folders of a killed training.
        for unfinished in out.glob("*/.*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        n_contexts = sum(len(plan.selection.parts) for plan in plans)
        with progress("training adapters", n_contexts, done=n_complete) as advance:
            for context in _contexts(plans, trainer):
                if context.name not in adapters:
                    adapters[context.name] = _train(out, context, trainer)
                    advance(1)
        # Sorted, so that the file does not depend on the order of the trainings.
        listed = [contract.plain(asdict(adapters[name])) for name in sorted(adapters)]
        path = out / ADAPTERS
        strict_json.write(path, contract.dump(contract.load({**setup, "adapters": listed}, Adapters, where=str(path))))
    return open_adapters(str(out))


def _contexts(plans: Sequence[Plan], trainer: LoraTrainer) -> Iterator[TrainingContext]:
    """Yield each config under a prompt, with the items to train on."""
    for plan in plans:
        task, prompt, n_items = plan.task, plan.prompt, trainer.hyperparameters.n_items
        if not isinstance(task, TrainsAdapters):
            raise ConfigError(f"task '{task.name}' trains no adapters; name a dataset whose task shows examples")
        for part in plan.selection.parts:
            pool, examples = part.items_of(task.examples_split), shown_examples(part, task, prompt)
            chosen = task.training_items(pool, prompt, examples, n_items) if pool else ()
            if len(chosen) < n_items:
                raise ConfigError(
                    f"an adapter is trained on {n_items} items of split '{task.examples_split}' that prompt "
                    f"'{prompt.id}' does not show, and config '{part.config}' has {len(chosen)} of them; take another "
                    "prompt or config"
                )
            asked = Asked(prompt, examples, trainer.count_tokens if prompt.max_prompt_tokens is not None else None)
            lessons = (_lesson(part.config, one, task.facts(one).target, task.requests(one, asked)) for one in chosen)
            yield TrainingContext(part.config, prompt.id, tuple(lessons))


def _lesson(config: str, item: Item, target: str | None, requests: Sequence[object]) -> Lesson:
    request = requests[0] if len(requests) == 1 else None
    if not isinstance(request, ChoiceRequest):
        raise ConfigError(f"config '{config}' is not asked by one choice for each item, so that no adapter is trained")
    if target is None or target not in request.outcomes:
        raise ConfigError(
            f"item '{item.item_id}' of config '{config}' has label {target!r}, which is none of its options "
            f"{', '.join(request.outcomes)}; build the dataset again with a label for every item"
        )
    return Lesson(item.item_id, request, request.outcomes.index(target))


def _setup(plan: Plan, trainer: LoraTrainer) -> dict[str, JsonValue]:
    """Return what all adapters of a folder have in common: the fields of their list but the adapters."""
    manifest = plan.selection.manifest
    data = TrainingData(
        name=manifest.name,
        version=manifest.version,
        content_sha256=manifest.content_sha256,
        task=plan.task.name,
        task_version=plan.task.version,
    )
    return {
        "schema_version": SCHEMA_VERSION,
        "base": contract.plain(asdict(trainer.base)),
        "data": contract.plain(asdict(data)),
        "hyperparameters": contract.plain(asdict(trainer.hyperparameters)),
        "target_modules": list(trainer.target_modules),
        "computation": trainer.computation,
        "packages": contract.plain(trainer.packages),
    }


def _check_folder(out: Path, setup: dict[str, JsonValue]) -> None:
    """Check that a folder holds nothing but adapters of the same setup."""
    path = out / _SETUP
    if not path.is_file():
        others = sorted(entry.name for entry in out.iterdir() if not entry.name.startswith("."))
        if others:
            raise ConfigError(f"{out}: holds {others[0]} and no {_SETUP}; name an empty folder with --out")
        return
    stored = _flat(strict_json.read(path))
    for name, current in _flat(setup).items():
        if (earlier := stored.get(name)) != current:
            raise ConfigError(
                f"{path}: the adapters in this folder were trained with {name} {earlier}, and now it is {current}; "
                "name another folder with --out, or train with the same"
            )


def _flat(value: JsonValue, name: str = "") -> dict[str, JsonValue]:
    """Return the values of nested objects by their dotted names."""
    if not isinstance(value, dict):
        return {name: value}
    return {
        key: inner
        for field, nested in value.items()
        for key, inner in _flat(nested, f"{name}.{field}" if name else field).items()
    }


def _complete(out: Path) -> dict[str, TrainedAdapter]:
    """Return the complete adapters of a folder by the names of their contexts."""
    adapters = {}
    for path in sorted(out.glob(f"*/*/{_ADAPTER}")):
        try:
            adapter = from_values(strict_json.read(path), TrainedAdapter)
        except ValidationError as error:
            raise ConfigError(f"{path}: is no note on an adapter; remove the folder and train it again") from error
        if path.parent != out / adapter.name:
            raise ConfigError(f"{path}: is about {adapter.name}; remove the folder and train it again")
        checked_folder(out, adapter)
        adapters[adapter.name] = adapter
    return adapters


def _train(out: Path, context: TrainingContext, trainer: LoraTrainer) -> TrainedAdapter:
    """Train the adapter of a context, and print how much more probable the labels became."""
    start = time.perf_counter()
    with replacing_folder(out / context.name) as folder:
        before, after = trainer.train(context, folder)
        adapter = TrainedAdapter(
            config=context.config,
            prompt=context.prompt,
            path=context.name,
            weights_sha256=sha256_file(folder / WEIGHTS),
            settings_sha256=sha256_file(folder / SETTINGS),
            item_ids=context.item_ids,
            logprob_before=before,
            logprob_after=after,
        )
        strict_json.write(folder / _ADAPTER, contract.plain(asdict(adapter)))
    note(
        f"{adapter.name}: log-probability of a label {before:.3f} before and {after:.3f} after training on "
        f"{len(adapter.item_ids)} items, {time.perf_counter() - start:.1f} s"
    )
    return adapter
