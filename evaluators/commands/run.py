"""The command ``python -m evaluators run``: asks a model and writes records and results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from evaluators.backend_options import BackendOptions, with_backend_options
from evaluators.commands.config_file import take_options
from evaluators.commands.options import (
    CACHE_VARIABLE,
    CONFIG_HELP,
    CONTEXTS,
    LIMIT,
    MAX_FAILURES,
    NORMALISATION,
    PART_HELP,
    PROMPT,
    SPLIT_HELP,
    TASK_HELP,
    RunChoice,
)
from evaluators.runs.plan.options import MAX_FAILURE_RATE
from evaluators.scorer import SCORER_HELP

KEPT = "stopped; the answers so far are kept, and the same command continues from there"

_CONFIG_FILE = typer.Option(
    "--config-file", is_eager=True, callback=take_options, help="TOML file of options; those given here win."
)
_JSON = typer.Option("--json", help="Print JSON on standard output, and all else on standard error.")
_CACHE = typer.Option(envvar=CACHE_VARIABLE, help="File of the cache that runs share: answers in it are reused.")
_DRY_RUN = typer.Option("--dry-run", help="Print numbers of requests and tokens and the price; ask and write nothing.")


@one_line_errors(KEPT)
@with_backend_options
def run_command(
    dataset: Annotated[list[Path], typer.Option(help="Folder of a built dataset. Repeatable.")],
    backend: Annotated[str, typer.Option(help="Backend that calls the model; see 'list'.")],
    model: Annotated[
        str,
        typer.Option(help="Model: a Hub id, a folder, a file of stored answers, or a baseline (or 'all' baselines)."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("out/runs"),
    config: Annotated[list[str] | None, typer.Option(help=CONFIG_HELP)] = None,
    part: Annotated[list[str] | None, typer.Option(help=PART_HELP)] = None,
    split: Annotated[list[str] | None, typer.Option(help=SPLIT_HELP)] = None,
    limit: Annotated[int | None, LIMIT] = None,
    task: Annotated[str | None, typer.Option(help=TASK_HELP)] = None,
    prompt: Annotated[list[str] | None, PROMPT] = None,
    contexts: Annotated[str | None, CONTEXTS] = None,
    normalisation: Annotated[str | None, NORMALISATION] = None,
    max_failure_rate: Annotated[float, MAX_FAILURES] = MAX_FAILURE_RATE,
    cache: Annotated[Path | None, _CACHE] = None,
    scorer: Annotated[list[str] | None, typer.Option(help=SCORER_HELP)] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    as_json: Annotated[bool, _JSON] = False,
    config_file: Annotated[Path | None, _CONFIG_FILE] = None,
    *,
    options: BackendOptions,
) -> None:
    """Ask a model about each item, or continue where an earlier run stopped; write records and results."""
    # Imported when a model is asked: the help of this command needs nothing of it.
    from evaluators.commands.asking import ask

    choice = RunChoice(
        datasets=tuple(dataset),
        backend=backend,
        model=model,
        out=out,
        configs=tuple(config or ()),
        parts=tuple(part or ()),
        splits=tuple(split or ()),
        limit=limit,
        task=task,
        prompts=tuple(prompt or ()),
        contexts=contexts,
        normalisation=normalisation,
        max_failure_rate=max_failure_rate,
        cache=cache,
        scorers=None if scorer is None else tuple(scorer),
    )
    ask(choice, options, dry_run=dry_run, as_json=as_json)
