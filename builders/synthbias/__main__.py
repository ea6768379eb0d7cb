"""``python -m builders.synthbias``: builds a dataset of the synthbias benchmark."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from builders.output import Draft, check_target, write_dataset
from builders.summary import closing_lines
from builders.synthbias import BUILDER, embedded, published, winobias
from builders.synthbias.cards import count_pairs
from schemas.command_line import Place, command_group, one_line_errors
from schemas.dataset import Manifest
from schemas.errors import ConfigError
from schemas.items.coreference import CoreferenceItem
from schemas.progress import Report, steps


class SourceName(StrEnum):
    """The values of ``--source``."""

    EMBEDDED = "embedded"
    SYNTHBIAS = "synthbias"
    WINOBIAS = "winobias"


def build(
    context: typer.Context,
    source: Annotated[SourceName, typer.Option(help="Source of the sentences.")] = SourceName.EMBEDDED,
    input_path: Annotated[
        Path | None,
        typer.Option("--input", help="Published CSV file (synthbias) or folder of published text files (winobias)."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Dataset folder. Default: out/datasets/<name of the dataset>.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed that assigns frames to occupation pairs (embedded only). Default: 0.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of items; whole pairs are kept, spread over the design. Default: all."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the dataset if the folder already holds it.")
    ] = False,
) -> Path | None:
    """Build a dataset of minimal pairs: sentences with two occupations and a pronoun that refers to one of them."""
    if context.invoked_subcommand is not None:
        return None
    with one_line_errors():
        folder = out.resolve() if out is not None and ".." in out.parts else out
        folder = folder if folder is not None else BUILDER.source(source.value).default_out
        check_target(folder, overwrite=overwrite)
        with steps() as report:
            draft = _draft(source, input_path, seed, limit, report)
            manifest = write_dataset(draft, folder, overwrite=overwrite, report=report)
    for line in _summary(draft, manifest, folder):
        typer.echo(line)
    return folder


def _draft(
    source: SourceName, path: Path | None, seed: int | None, limit: int | None, report: Report
) -> Draft[CoreferenceItem]:
    if source is SourceName.EMBEDDED:
        if path is not None:
            raise ConfigError(f"--input {path}: the embedded source reads no file; leave it out, or give --source")
        return embedded.draft(seed=embedded.DEFAULT_SEED if seed is None else seed, limit=limit)
    if seed is not None:
        raise ConfigError(f"--seed {seed}: only the embedded source has a seed; leave it out")
    if path is None:
        raise ConfigError(f"--source {source.value} needs --input: {BUILDER.source(source.value).input}")
    if source is SourceName.SYNTHBIAS:
        return published.draft(path, limit=limit, report=report)
    return winobias.draft(path, limit=limit)


def _summary(draft: Draft[CoreferenceItem], manifest: Manifest, folder: Path) -> Iterator[str]:
    yield f"{manifest.name} {manifest.version} from source {manifest.parameters['source']}:"
    for split in draft.splits:
        n_pairs = count_pairs(split.items)
        n_orphans = sum(n == 1 for n in Counter(item.pair_id for item in split.items).values())
        yield f"  {split.config}/{split.split}: {len(split.items)} rows, {n_pairs} pairs, {n_orphans} orphans"
    yield from closing_lines(manifest, folder, n_items=sum(len(split.items) for split in draft.splits))
    dataset = shlex.quote(str(folder))
    yield f"next: biasboard run --dataset {dataset} --backend baseline --model all --out out/runs"


_COMMANDS = "builders.synthbias.commands"
COMMANDS = {
    "lint": Place(
        f"{_COMMANDS}.lint:lint",
        "Check sentences with two occupations and a pronoun: every finding with its line, counts, and the balance.",
    ),
}
app = command_group(
    "Build a dataset of minimal pairs: sentences with two occupations and a pronoun that refers to one of them.",
    COMMANDS,
    itself=build,
)


if __name__ == "__main__":
    app()
