"""The command ``python -m evaluators finetune``: trains LoRA adapters for the contexts of a dataset."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.options import Only, finite, with_options
from evaluators.backend_options import BackendOptions
from evaluators.runs.ask.study import DATASET_HELP, Study
from schemas.documents.adapters import PUBLISHED, Schedule

_OPTIONS = Only({"name", "revision", "dtype", "device", "tokenizer", "chat"})
_OUT = typer.Option(help="Folder of the adapters; by default out/adapters/DATASET@VERSION/MODEL.")


@one_line_errors("stopped; complete adapters are kept, and the same command continues from there")
@with_options
def finetune_command(
    dataset: Annotated[Path, typer.Option(help=DATASET_HELP)],
    model: Annotated[str, typer.Option(help="Base model: a Hub id or a folder.")],
    study: Annotated[Study, Only({"configs", "parts", "task", "prompts", "contexts"})],
    options: Annotated[BackendOptions, _OPTIONS],
    out: Annotated[Path | None, _OUT] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the items.")] = PUBLISHED.epochs,
    learning_rate: Annotated[
        float, typer.Option(min=0, callback=finite, help="Learning rate of AdamW.")
    ] = PUBLISHED.learning_rate,
    schedule: Annotated[str, typer.Option(help="Learning rate: constant, or linear to 0.")] = PUBLISHED.schedule,
    rank: Annotated[int, typer.Option(min=1, help="Rank r of each adapter.")] = PUBLISHED.rank,
    alpha: Annotated[int, typer.Option(min=1, help="Scale of each adapter, as a multiple of 1/r.")] = PUBLISHED.alpha,
    seed: Annotated[int, typer.Option(min=0, help="Seed of first weights and order.")] = PUBLISHED.seed,
) -> None:
    """Train a LoRA adapter for each config and each prompt of a dataset, with which run --lora asks."""
    # Imported here so that the help of this command stays fast.
    from biasboard.ground.kinds import BACKENDS
    from biasboard.ground.progress import working
    from evaluators.backend import check_model_id
    from evaluators.runs.ask.finetuning import finetune

    if schedule not in get_args(Schedule):
        raise ConfigError(f"--schedule {schedule} does not exist; have: {', '.join(get_args(Schedule))}")
    if not learning_rate > 0:
        raise ConfigError(f"--learning-rate {learning_rate:g} trains nothing; give a number above 0")
    hyperparameters = replace(
        PUBLISHED,
        epochs=epochs,
        learning_rate=learning_rate,
        schedule=cast(Schedule, schedule),
        rank=rank,
        alpha=alpha,
        seed=seed,
    )
    if options.name is not None:
        check_model_id(options.name)
    plans = replace(study, datasets=(dataset,), limit=0).usual_plans
    with working(f"opening {options.name or model}"):
        # The only backend that trains.
        trainer = BACKENDS.load("transformers").open_trainer(model, options, hyperparameters)
    manifest = plans[0].selection.manifest
    of_dataset = Path("out/adapters") / f"{manifest.name}@{manifest.version}"
    folder = out or of_dataset / trainer.base.id.replace("/", "__")
    adapters = finetune(plans, trainer, folder)
    typer.echo(f"{len(adapters.document.adapters)} adapters: {adapters.path} (sha256 {adapters.sha256[:12]})")
    # The run must be of the same model under the same name, since adapters of another one are refused.
    single = {"task": study.task, **{name: getattr(options, name) for name in sorted(_OPTIONS)}}
    several = {"config": study.configs, "part": study.parts, "prompt": study.prompts}
    words: list[object] = ["biasboard", "run", "--dataset", dataset, "--backend", "transformers", "--model", model]
    for name, value in single.items():
        if value:
            words += [f"--{name}"] if value is True else [f"--{name}", value]
    words += [word for name, values in several.items() for value in values for word in (f"--{name}", value)]
    words += [] if study.contexts is None else ["--contexts", ",".join(study.contexts)]
    typer.echo(f"next: {shlex.join(map(str, [*words, '--lora', folder]))}")
