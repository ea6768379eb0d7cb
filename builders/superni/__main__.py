"""``python -m builders.superni``: builds a dataset of the superni benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import listed
from biasboard.ground.progress import steps
from builders.build_command import DatasetVersion, Out, Overwrite, check_input, closing_lines, target_folder
from builders.dataset.output import write_dataset
from builders.superni import BUILDER, drafts
from builders.superni.drafts import BuiltTasks, TaskOptions
from builders.superni.task_choice import FILTER, MOST_NAMES
from schemas.documents.dataset import Manifest

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
SourceName: TypeAlias = Literal["embedded", "natural-instructions", "hub"]


@app.command(epilog=EXIT_STATUS)
def build(
    source: Annotated[SourceName, typer.Option(help="Source of the tasks.")] = "embedded",
    input_path: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Folder tasks/ of the repository (natural-instructions), or folder with train/ and test/ or Hub id "
            "(hub).",
        ),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            help="Tasks to build: published (the 279 of the publication, default), filter (those that pass its "
            "filter), or names or numbers, separated by commas or repeated. Default of embedded: all.",
        ),
    ] = None,
    task_info: Annotated[
        Path | None, typer.Option(help="List of all tasks, full_task_info.csv, for --tasks filter.")
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(help="Commit on the Hub if --input is a Hub id, or of the repository; recorded in the manifest."),
    ] = None,
    out: Out = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of evaluation items per task. Default: 1000.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the splits and of the random words.")] = 42,
    dataset_version: DatasetVersion = None,
    overwrite: Overwrite = False,
) -> Path:
    """Build a dataset of classification tasks, on which the bias of a model towards labels is measured."""
    with one_line_errors():
        words = tuple(word for entry in tasks or [] for word in _words(entry))
        _check(source, input_path, words, revision, task_info)
        folder = target_folder(out, BUILDER.source(source).default_out, overwrite=overwrite)
        with steps() as report:
            built = _built(source, input_path, TaskOptions(words, limit, seed, report), revision, task_info)
            manifest = write_dataset(built.draft, folder, version=dataset_version, overwrite=overwrite, report=report)
    for line in _summary(built, manifest, folder):
        typer.echo(line)
    return folder


def _words(entry: str) -> list[str]:
    """Return the words of one ``--tasks``.

    Raises:
        ConfigError: there are none, as when a shell variable is unset; that must not select the default.
    """
    words = [word for part in entry.split(",") if (word := part.strip())]
    if not words:
        raise ConfigError(f"--tasks '{entry}': names no task; leave it out for the default, or name tasks")
    return words


def _check(
    source: SourceName, path: Path | None, tasks: tuple[str, ...], revision: str | None, task_info: Path | None
) -> None:
    check_input(BUILDER.source(source), path, {"--revision": revision, "--task-info": task_info})
    if task_info is not None and source != "hub" and tasks != (FILTER,):
        raise ConfigError(f"--task-info {task_info}: only --tasks filter and --source hub read it; leave it out")


def _built(
    source: SourceName, path: Path | None, options: TaskOptions, revision: str | None, task_info: Path | None
) -> BuiltTasks:
    if path is None:
        return drafts.from_embedded(options)
    if source == "hub":
        return drafts.from_hub(path, options, revision=revision, task_info=task_info)
    return drafts.from_natural_instructions(path, options, revision=revision, task_info=task_info)


def _summary(built: BuiltTasks, manifest: Manifest, folder: Path) -> Iterator[str]:
    chosen, n_items = built.chosen, {(entry.config, entry.split): entry.n_items for entry in manifest.splits}
    yield f"{manifest.name} {manifest.version} from source {manifest.parameters['source']}:"
    if chosen.missing:
        n_wanted = len(chosen.tasks) + len(chosen.missing)
        yield f"  {len(chosen.tasks)} of {n_wanted} tasks found; missing: {listed(chosen.missing, most=MOST_NAMES)}"
    n_labels = [len(task.counts) for task in built.tasks]
    n_test = sum(n for (_, split), n in n_items.items() if split == "test")
    yield (
        f"  {_tasks(len(built.tasks))} with {min(n_labels)} to {max(n_labels)} labels; {n_test} of "
        f"{sum(task.n_items for task in built.tasks)} items to evaluate"
    )
    differences = [difference for task in built.tasks if (difference := task.difference) is not None]
    if differences:
        yield f"warning: other counts than published in {_tasks(len(differences))}: {listed(differences, most=3)}"
    dropped = [reject for reject in built.draft.rejects if reject.candidate]
    if dropped:
        reasons = [f"{reject.candidate} ({reject.reason})" for reject in dropped]
        yield f"dropped {_tasks(len(dropped))}: {listed(reasons, most=3)}"
    yield from closing_lines(manifest, folder, n_items=sum(n_items.values()))


def _tasks(n: int) -> str:
    return f"{n} task" if n == 1 else f"{n} tasks"


if __name__ == "__main__":
    app()
