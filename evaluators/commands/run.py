"""``python -m evaluators run``: a model is asked, its answers become records and results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evaluators.backend_options import BackendOptions, with_backend_options
from evaluators.commands.options import CACHE_VARIABLE, RunChoice
from evaluators.runs.options import MAX_FAILURE_RATE
from evaluators.scorer import SCORER_HELP
from schemas.command_line import one_line_errors

KEPT = "stopped; what was answered is kept, the same command goes on from there"


@one_line_errors(KEPT)
@with_backend_options
def run_command(
    dataset: Annotated[Path, typer.Option(help="Folder of a built dataset.")],
    backend: Annotated[str, typer.Option(help="How the model is called: see 'list'.")],
    model: Annotated[str, typer.Option(help="Hub id, local folder, baseline (or 'all'), or stored answers.")],
    out: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("out/runs"),
    config: Annotated[
        list[str] | None, typer.Option(help="Config of the dataset; all if left out. Repeatable.")
    ] = None,
    split: Annotated[list[str] | None, typer.Option(help="Split; all of the config if left out. Repeatable.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="At most N items per config, in whole sets that belong together, such as minimal pairs."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Task that asks the items, where several can; see 'list'.")] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="Prompt id; the task's first if left out. Repeatable: each task takes the first that it has."
        ),
    ] = None,
    normalisation: Annotated[
        str | None,
        typer.Option(help="sum, sum_with_end, token_mean or byte_mean; sum if left out. None for generated texts."),
    ] = None,
    max_failure_rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of requests that may fail before the run ends without a result.")
    ] = MAX_FAILURE_RATE,
    cache: Annotated[
        Path | None,
        typer.Option(envvar=CACHE_VARIABLE, help="File of answers that runs share: what is in it is not asked."),
    ] = None,
    scorer: Annotated[list[str] | None, typer.Option(help=SCORER_HELP)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count requests and tokens, name the price; ask and write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON instead of a table.")] = False,
    *,
    options: BackendOptions,
) -> None:
    """Ask a model every item, or go on where an earlier run stopped; write records and result."""
    # Imported when a model is asked: the help of this command needs nothing of it.
    from evaluators.commands.asking import ask

    choice = RunChoice(
        dataset=dataset,
        backend=backend,
        model=model,
        out=out,
        configs=tuple(config or ()),
        splits=tuple(split or ()),
        limit=limit,
        task=task,
        prompts=tuple(prompt or ()),
        normalisation=normalisation,
        max_failure_rate=max_failure_rate,
        cache=cache,
        scorers=None if scorer is None else tuple(scorer),
    )
    ask(choice, options, dry_run=dry_run, as_json=as_json)
