"""``python -m builders.image_labels``: builds a dataset of images with labels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import steps
from builders.build_command import DatasetVersion, Out, Overwrite, check_input, closing_lines, target_folder
from builders.dataset.output import write_dataset
from builders.description import DATASETS_FOLDER
from builders.image_labels import BUILDER, drafts
from builders.image_labels.items import N_BIAS, N_POOL, Sizes

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
SourceName: TypeAlias = Literal["folder", "hub"]
_FEW = 20
"""Number of images of a label below which a rule fitted on them does not generalise."""


@app.command(epilog=EXIT_STATUS)
def build(
    source: Annotated[SourceName, typer.Option(help="Source of the images.")] = "folder",
    input_path: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Folder with one folder of images for each label, or with train/ and test/ of such (folder); folder "
            "with the files of CIFAR-100, or uoft-cs/cifar100 for the Hub (hub).",
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Commit on the Hub if --input is a Hub id. Default: a pinned one.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option(help="Licence of the images in a folder, by its SPDX identifier, such as CC-BY-4.0.")
    ] = None,
    out: Out = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of images to evaluate, equally many of each label. Default: all."),
    ] = None,
    bias_per_label: Annotated[
        int, typer.Option(min=1, help="Images of each label on which bias is measured.")
    ] = N_BIAS,
    pool_per_label: Annotated[
        int, typer.Option(min=1, help="Images of each label on which calibrations are fitted.")
    ] = N_POOL,
    seed: Annotated[int, typer.Option(help="Seed of the splits and of the images of noise.")] = 42,
    dataset_version: DatasetVersion = None,
    overwrite: Overwrite = False,
) -> Path:
    """Build a dataset of images, on which a model chooses one of several labels for each of them."""
    with one_line_errors():
        check_input(BUILDER.source(source), input_path)
        assert input_path is not None  # Both sources read files.
        for option, value, wanted in (("--revision", revision, "hub"), ("--licence", licence, "folder")):
            if value is not None and source != wanted:
                raise ConfigError(f"{option} {value}: the {source} source has no use for it; leave it out")
        if out is not None:
            target_folder(out, out, overwrite=overwrite)
        with steps() as report:
            sizes = Sizes(bias_per_label, pool_per_label, limit)
            draft = drafts.draft(
                source, input_path, sizes, licence=licence, revision=revision, seed=seed, report=report
            )
            folder = target_folder(out, DATASETS_FOLDER / draft.name, overwrite=overwrite)
            manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite, report=report)
    items = {split.split: split.items for split in draft.splits}
    counts = {split: Counter(item.target for item in items[split]) for split in ("test", "pool")}
    labels = items["test"][0].labels
    print(f"{manifest.name} {manifest.version} from source {source}:")
    print(
        f"  {manifest.configs[0]}: {len(labels)} labels with {min(counts['test'].values())} to "
        f"{max(counts['test'].values())} images to evaluate each; "
        f"{', '.join(f'{entry.split} {entry.n_items}' for entry in manifest.splits)}"
    )
    if manifest.parameters["is_published"] is False:
        print("warning: the files are not those of the published commit, by their sha256")
    if (least := min(counts["pool"][label] for label in labels)) < _FEW:
        print(
            f"warning: the pool has {least} images of some label, and calibrations that are fitted on fewer than "
            f"{_FEW} may not carry over to other images"
        )
    print(*closing_lines(manifest, folder), sep="\n")
    return folder


if __name__ == "__main__":
    app()
