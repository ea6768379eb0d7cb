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
from builders.dataset.output import Draft, write_dataset
from builders.superni import BUILDER, drafts
from builders.superni.items import N_TEST
from builders.superni.task_choice import MOST_NAMES
from schemas.documents.dataset import Manifest
from schemas.items.label import LabelItem

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
SourceName: TypeAlias = Literal["embedded", "natural-instructions"]


@app.command(epilog=EXIT_STATUS)
def build(
    source: Annotated[SourceName, typer.Option(help="Source of the tasks.")] = "embedded",
    input_path: Annotated[
        Path | None, typer.Option("--input", help="Folder tasks/ of the repository (natural-instructions).")
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            help="Tasks to build: published (the 279 of the publication, default), or names or numbers, separated by "
            "commas or repeated. Default of embedded: all.",
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Commit of the repository; recorded in the manifest, and not checked.")
    ] = None,
    out: Out = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of evaluation items per task.")] = N_TEST,
    seed: Annotated[int, typer.Option(help="Seed of the splits and of the random words.")] = 42,
    dataset_version: DatasetVersion = None,
    overwrite: Overwrite = False,
) -> Path:
    """Build a dataset of classification tasks, on which the bias of a model towards labels is measured."""
    with one_line_errors():
        names = [name for entry in tasks or [] for name in _names(entry)]
        check_input(BUILDER.source(source), input_path, {"--revision": revision})
        folder = target_folder(out, BUILDER.source(source).default_out, overwrite=overwrite)
        with steps() as report:
            draft = drafts.draft(input_path, names, revision=revision, limit=limit, seed=seed, report=report)
            manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite, report=report)
    print(*_summary(draft, manifest), *closing_lines(manifest, folder), sep="\n")
    return folder


def _names(entry: str) -> list[str]:
    """Return the names in one ``--tasks``.

    Raises:
        ConfigError: there are none, as when a shell variable is unset; that must not select the default.
    """
    names = [name for part in entry.split(",") if (name := part.strip())]
    if not names:
        raise ConfigError(f"--tasks '{entry}': names no task; leave it out for the default, or name tasks")
    return names


def _summary(draft: Draft[LabelItem], manifest: Manifest) -> Iterator[str]:
    parameters = manifest.parameters
    yield f"{manifest.name} {manifest.version} from source {parameters['source']}:"
    if parameters["missing_tasks"] is not None:
        missing, n_wanted = str(parameters["missing_tasks"]).split(", "), int(str(parameters["n_wanted_tasks"]))
        found = f"{n_wanted - len(missing)} of {n_wanted} tasks found"
        yield f"  {found}; missing: {listed(missing, most=MOST_NAMES)}"
    n_labels = [len(split.items[0].labels) for split in draft.splits if split.split == "content_free"]
    n_test = sum(entry.n_items for entry in manifest.splits if entry.split == "test")
    yield f"  {_tasks(len(n_labels))} with {min(n_labels)} to {max(n_labels)} labels; {n_test} items to evaluate"
    if parameters["other_counts"] is not None:
        differences = str(parameters["other_counts"]).split("; ")
        yield f"warning: other counts than published in {_tasks(len(differences))}: {listed(differences, most=3)}"
    dropped = [f"{reject.candidate} ({reject.reason})" for reject in draft.rejects if reject.candidate]
    if dropped:
        yield f"dropped {_tasks(len(dropped))}: {listed(dropped, most=3)}"


def _tasks(n: int) -> str:
    return f"{n} task" if n == 1 else f"{n} tasks"


if __name__ == "__main__":
    app()
