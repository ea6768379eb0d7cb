"""``python -m builders.gifi``: builds a dataset of the gifi benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import Report, steps
from builders.build_command import DatasetVersion, Out, Overwrite, check_input, closing_lines, target_folder
from builders.dataset.output import Draft, write_dataset
from builders.gifi import BUILDER, drafts
from schemas.documents.dataset import Item

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
SourceName: TypeAlias = Literal[
    "embedded", "markers", "german", "spanish", "french", "tango", "realtoxicityprompts", "gsm8k", "gifi"
]
Compat: TypeAlias = Literal["gifi-repo"]


@app.command(epilog=EXIT_STATUS)
def build(
    source: Annotated[SourceName, typer.Option(help="Source of the texts.")] = "embedded",
    input_path: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="CSV file of TANGO (tango), data file or Hub id (realtoxicityprompts, gsm8k), or folder of published "
            "templates (gifi).",
        ),
    ] = None,
    revision: Annotated[
        str | None, typer.Option(help="Commit on the Hub if --input is a Hub id; recorded in the manifest.")
    ] = None,
    compat: Annotated[
        Compat | None, typer.Option(help="Keep the published strings and flag their faults (gifi only).")
    ] = None,
    out: Out = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of items; whole templates are kept, spread over the configs. Default: all, but 2200 "
            "for realtoxicityprompts.",
        ),
    ] = None,
    dataset_version: DatasetVersion = None,
    overwrite: Overwrite = False,
) -> Path:
    """Build a dataset in which each text appears in eleven pronoun families."""
    with one_line_errors():
        check_input(BUILDER.source(source), input_path)
        if compat is not None and source != "gifi":
            raise ConfigError(f"--compat {compat}: only --source gifi has published strings; leave it out")
        if revision is not None and source not in ("realtoxicityprompts", "gsm8k"):
            raise ConfigError(f"--revision {revision}: --source {source} is not read from the Hub; leave it out")
        default = BUILDER.source(source).default_out
        if compat is not None:
            default = default.with_name(f"{default.name}-compat")
        folder = target_folder(out, default, overwrite=overwrite)
        with steps() as report:
            draft = _draft(source, input_path, revision, compat, limit, report)
            manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite, report=report)
    counts = (
        f"{split.config}/{split.split}: {len(split.items)} rows, {len({item.unit for item in split.items})} templates"
        for split in draft.splits
    )
    print(f"{manifest.name} {manifest.version} from source {source}:")
    print(f"  {'; '.join(counts)}", *closing_lines(manifest, folder), sep="\n")
    return folder


def _draft(
    source: SourceName,
    path: Path | None,
    revision: str | None,
    compat: Compat | None,
    limit: int | None,
    report: Report,
) -> Draft[Item]:
    match source:
        case "embedded":
            return drafts.embedded(limit=limit)
        case "markers":
            return drafts.marked(limit=limit)
        case "german" | "spanish" | "french":
            return drafts.in_language(source, limit=limit)
    assert path is not None  # check_input refuses the other sources without a file.
    match source:
        case "tango":
            return drafts.from_tango(path, limit=limit)
        case "gsm8k":
            return drafts.from_gsm8k(path, revision, limit=limit, report=report)
        case "realtoxicityprompts":
            return drafts.from_realtoxicityprompts(path, revision, limit=limit, report=report)
        case _:
            return drafts.from_published(path, compat=compat is not None, limit=limit)


if __name__ == "__main__":
    app()
