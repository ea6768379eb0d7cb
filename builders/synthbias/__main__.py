"""``python -m builders.synthbias``: builds a dataset of the synthbias benchmark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from biasboard.ground.command_line import LazyCommand, command_group, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import steps
from builders.build_command import (
    DatasetVersion,
    Out,
    Overwrite,
    check_input,
    closing_lines,
    dataset_name,
    reject_lines,
    run_line,
    target_folder,
)
from builders.dataset.licences import checked_licence
from builders.dataset.output import Draft, write_dataset
from builders.dataset.own_csv import read_tables
from builders.synthbias import BUILDER, embedded, families, family_sets, own_sentences, published, winobias
from builders.synthbias.annotation.annotated import read_annotated
from builders.synthbias.generation import generated
from schemas.items.coreference import CoreferenceItem
from schemas.items.family_coreference import FamilyCoreferenceItem

SourceName: TypeAlias = Literal["embedded", "families", "synthbias", "winobias", "generated", "csv"]


def build(
    context: typer.Context,
    source: Annotated[SourceName, typer.Option(help="Source of the sentences.")] = "embedded",
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--input",
            help="Published CSV file (synthbias), folder of published text files (winobias), folder of runs or of a "
            "generated dataset (generated), or CSV file of your sentences (csv; repeatable).",
        ),
    ] = None,
    out: Out = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed that assigns frames to occupation pairs (embedded and families only). Default: 0."),
    ] = None,
    per_cell: Annotated[
        int | None,
        typer.Option(min=1, help="Minimal pairs that each cell keeps (generated only). Default: 5."),
    ] = None,
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="COLUMN=HEADING",
            help="Heading of a column in your files, if its name does not tell: sentence, answer (the occupation that "
            "the pronoun means, or ambiguous), type (type1: open, type2: settled), occupation1, occupation2, pronoun "
            "or pair (csv only). Repeatable.",
        ),
    ] = None,
    complete_pairs: Annotated[
        bool,
        typer.Option(
            "--complete-pairs",
            help="Write the side that a pair lacks by swapping the pronoun, where its case is certain, and flag it "
            "(csv only).",
        ),
    ] = False,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--with",
            metavar="DATASET",
            help="Dataset of minimal pairs, such as a generated one, each of which becomes a set of pronoun families "
            "where its case and verb allow it (families only).",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the dataset (csv, and families --with). Default: synthbias-own, or DATASET-families."
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(help="Licence of your sentences, by its SPDX identifier, such as CC-BY-4.0 (csv only)."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of items; whole pairs or sets are kept, spread over the design. Default: all."
        ),
    ] = None,
    dataset_version: DatasetVersion = None,
    overwrite: Overwrite = False,
) -> Path | None:
    """Build a dataset of minimal pairs: sentences with two occupations and a pronoun that refers to one of them."""
    if context.invoked_subcommand is not None:
        return None
    with one_line_errors():
        path = inputs[0] if inputs else None
        check_input(BUILDER.source(source), path)
        for option, value, is_known, where in (
            ("--seed", seed, source in ("embedded", "families"), "the embedded and families sources"),
            ("--per-cell", per_cell, source == "generated", "the generated source"),
            ("--map", mapped or None, source == "csv", "the csv source"),
            ("--complete-pairs", complete_pairs or None, source == "csv", "the csv source"),
            ("--licence", licence, source == "csv", "the csv source"),
            ("--with", pairs, source == "families", "the families source"),
            ("--name", name, source == "csv" or pairs is not None, "the csv source, and for families --with"),
        ):
            if value is not None and not is_known:
                raise ConfigError(f"{option}: is for {where} alone; leave it out")
        if source != "csv" and len(inputs or ()) > 1:
            raise ConfigError("--input: only the csv source reads several; give one")
        if pairs is not None and seed is not None:
            raise ConfigError("--source families --with takes no --seed; leave it out")
        annotated = None if pairs is None else read_annotated(pairs)
        default = BUILDER.source(source).default_out
        if annotated is not None:
            default = default.with_name(f"{annotated.manifest.name}-families")
        default = default if name is None else default.with_name(dataset_name(name))
        folder = target_folder(out, default, overwrite=overwrite)
        with steps() as report:
            draft: Draft[CoreferenceItem | FamilyCoreferenceItem]
            if source == "csv":
                tables = read_tables(own_sentences.FORM, inputs or [], mapped or [])
                draft = own_sentences.draft(
                    tables,
                    name=default.name,
                    complete_pairs=complete_pairs,
                    licence=checked_licence(licence),
                    limit=limit,
                    mapped=mapped or [],
                )
                for table in tables:
                    typer.echo(table.told, err=True)
            elif annotated is not None:
                draft = family_sets.draft(annotated, name=default.name, limit=limit)
            elif path is None:
                of_source = families.draft if source == "families" else embedded.draft
                draft = of_source(seed=embedded.DEFAULT_SEED if seed is None else seed, limit=limit)
            elif source == "synthbias":
                draft = published.draft(path, limit=limit, report=report)
            elif source == "generated":
                of_cell = per_cell or generated.per_cell_of(path)
                draft = generated.draft(path, of_cell, limit=limit, report=report)
            else:
                draft = winobias.draft(path, limit=limit)
            manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite, report=report)
    print(f"{manifest.name} {manifest.version} from source {source}:")
    for split in draft.splits:
        sizes = Counter(Counter(item.unit for item in split.items).values())
        units = (
            f"{sizes[2]} pairs, {sizes[1]} orphans" if split.item_shape == "coreference" else f"{sizes.total()} sets"
        )
        print(f"  {split.config}/{split.split}: {len(split.items)} rows, {units}")
    rejected = draft.rejects if source == "csv" or annotated is not None else ()
    print(*reject_lines(rejected, folder), *closing_lines(manifest, folder), run_line(folder), sep="\n")
    return folder


COMMANDS = {
    "generate": LazyCommand(
        "builders.synthbias.generation.generate:app",
        "Let a model write sentences until each cell of the design has enough that keep all rules.",
    ),
    "annotate": LazyCommand(
        "builders.synthbias.annotation:app",
        "Have people judge the sentences of a dataset, and keep the pairs that they accept.",
    ),
    "lint": LazyCommand(
        "builders.synthbias.lint:lint_command",
        "Check sentences with two occupations and a pronoun: every finding with its line, and counts.",
    ),
    "lean": LazyCommand(
        "builders.synthbias.embedded:measure",
        "Measure the preference of each model for the occupation mentioned first, over the items of type 1.",
    ),
}
app = command_group(
    "Build a dataset of minimal pairs: sentences with two occupations and a pronoun that refers to one of them.",
    COMMANDS,
    itself=build,
)


if __name__ == "__main__":
    app()
