"""The command ``python -m evaluators export``: writes the questions of a dataset for another harness."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.files import replacing_folder
from biasboard.ground.options import with_options
from biasboard.ground.progress import working
from evaluators.harness import Harness, load_harness
from evaluators.runs.ask.answer_tables import write_table
from evaluators.runs.ask.study import DATASET_HELP, OF_ITEMS, Study
from evaluators.runs.plan.exported_questions import exported_task
from evaluators.runs.plan.plan import Plan, check_askable
from evaluators.task import Prompt
from schemas.folders.dataset_folder import dataset_at, read_manifest

CSV = "csv"
"""Form of a table that anybody can fill in, in place of a harness that asks."""
_TOKENIZER = typer.Option(
    help="Folder or Hub id of the model's tokenizer, for a harness that scores options: where it merges context and "
    "option, their border is moved to the front, so that the harness scores what run would."
)


@one_line_errors()
@with_options
def export_command(
    harness: Annotated[
        str,
        typer.Argument(help="Harness that will ask the questions, lm-eval or inspect-ai; or csv, to ask in any way."),
    ],
    dataset: Annotated[Path, typer.Argument(help=DATASET_HELP)],
    out: Annotated[Path, typer.Option(help="Folder to write, which must not exist or be empty.")],
    study: Annotated[Study, OF_ITEMS],
    tokenizer: Annotated[str | None, _TOKENIZER] = None,
) -> None:
    """Write the questions of a dataset for another harness or as tables, whose log or answers import reads."""
    other = None if harness == CSV else load_harness(harness)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"--out {out} exists already; name another folder, or remove it")
    folder_of_items = dataset_at(dataset)
    manifest = read_manifest(folder_of_items)
    plans = replace(study, datasets=(folder_of_items,)).usual_plans
    for plan in plans:
        check_prompt(other, plan)
        if (needs := plan.prompt.requires) not in ("option_logprobs", "generation"):
            raise ConfigError(f"prompt '{plan.prompt.id}' needs {needs}, which no export can hold; ask with run")
    if other is not None:
        other.check_tokenizer(tokenizer)
    elif tokenizer is not None:
        raise ConfigError(f"--tokenizer: {CSV} leaves every text as it is; leave it out")
    move = tokenizer_sha256 = None
    if other is not None and other.as_scored is not None and tokenizer is not None:
        # Imported here because only moving borders needs a tokenizer.
        from evaluators.models.harness_borders import move_borders
        from evaluators.models.tokenizer import load_tokenizer

        loaded = load_tokenizer(tokenizer)
        move, tokenizer_sha256 = partial(move_borders, loaded, other.as_scored), loaded.sha256
    with working("writing the questions"):
        exported = (exported_task(plan, move, tokenizer_sha256) for plan in plans)
        tasks = list({task.name: task for task in exported}.values())
    with replacing_folder(out) as folder:
        if other is None:
            columns = [write_table(task, folder) for task in tasks]
        else:
            # The folder gets its name when all of it is written.
            asking = other.write_tasks(tasks, folder).replace(str(folder), str(out))
    for written in tasks:
        signature = written.exported.signature
        n_moved = sum(question.shown is not question.request for question in written.questions)
        moved = f", {n_moved} with a moved border" if n_moved else ""
        print(f"{written.name}: {signature.n_items} items, {len(written.questions)} questions{moved}")
        if written.n_left_out:
            print(f"left out: {written.n_left_out} questions in which the tokenizer leaves no border")
    # Some items may be asked about here, and not passed on.
    reason = manifest.publish_refusal or "the licence forbids it"
    private = f"; keep {out} to yourself, they may not be passed on: {reason}"
    print(f"licence of the items: {manifest.licence}{'' if manifest.redistributable else private}")
    data = shlex.quote(str(dataset))
    if other is None:
        for written, of_answers in zip(tasks, columns, strict=True):
            file, words = shlex.quote(str(out / f"{written.name}.csv")), study.words(written.exported.signature)
            print(f"next: fill in {file}: {of_answers}")
            print(f"then: biasboard import answers --input {file} --model NAME --note WHO --dataset {data} {words}")
        return
    print(f"next: {asking}")
    of_model = "" if tokenizer is None else f" --tokenizer {shlex.quote(tokenizer)}"
    print(f"then: biasboard import {harness} --input OUT --model NAME{of_model} --dataset {data}")


def check_prompt(harness: Harness | None, plan: Plan) -> None:
    """Check that a harness can ask with the prompt of a plan, or a table; None for a table.

    Raises:
        ConfigError: it cannot.
    """
    check_askable(plan.prompt)
    obstacle = _obstacle(harness, plan.prompt)
    if obstacle is None:
        return
    others = [
        prompt.id
        for prompt in plan.task.prompts.values()
        if prompt.requires != "import" and _obstacle(harness, prompt) is None
    ]
    way = f"take --prompt {' or '.join(others)}, or ask with run" if others else "ask with run"
    raise ConfigError(
        f"{CSV if harness is None else harness.name} cannot ask with prompt '{plan.prompt.id}', which {obstacle}; {way}"
    )


def _obstacle(harness: Harness | None, prompt: Prompt) -> str | None:
    if prompt.follow_up is not None:
        return "scores options after the model's own answers, which no file of questions can hold"
    if prompt.requires == "pseudo_logprobs":
        return "is for masked models, which no harness asks"
    if harness is None:
        return None
    if prompt.scoring == "option_logprob":
        return harness.no_options
    return harness.no_texts or (None if prompt.chat else harness.no_continuations)
