"""``python -m builders.synthbias``: builds a dataset of the synthbias benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from biasboard.ground.command_line import LazyCommand, command_group, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.options import finite
from biasboard.ground.progress import Report, steps
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
from builders.synthbias.annotation.annotated import AnnotatedDataset, read_annotated
from builders.synthbias.generation import generated
from schemas.documents.dataset import Manifest
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
    near: Annotated[
        float | None,
        typer.Option(
            "--near-duplicates",
            min=0.05,
            max=1.0,
            callback=finite,
            help="Jaccard similarity of the wording from which a sentence repeats an earlier one (generated only).",
        ),
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
    added: Annotated[
        list[Path] | None,
        typer.Option(
            "--with",
            metavar="DATASET",
            help="Dataset of minimal pairs, such as a generated one: with csv, its pairs are put into the same dataset "
            "as your sentences, without repetitions (repeatable); with families, each pair becomes a set of pronoun "
            "families where its case and verb allow it.",
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
        input_path = inputs[0] if inputs else None
        check_input(BUILDER.source(source), input_path)
        if source != "csv" and len(inputs or ()) > 1:
            raise ConfigError("--input: only the csv source reads several; give one")
        if source != "csv" and (mapped or complete_pairs or licence):
            raise ConfigError("--map, --complete-pairs and --licence are for the csv source alone; leave them out")
        of_pairs = _pairs_of_families(source, added, name=name, seed=seed)
        default = BUILDER.source(source).default_out
        if of_pairs is not None:
            default = default.with_name(family_sets.default_name(of_pairs.manifest))
        default = default if name is None else default.with_name(dataset_name(name))
        folder = target_folder(out, default, overwrite=overwrite)
        with steps() as report:
            if source == "csv":
                if (seed, per_cell, near) != (None, None, None):
                    raise ConfigError(
                        "--seed, --per-cell and --near-duplicates are not for the csv source; leave them out"
                    )
                tables = read_tables(own_sentences.FORM, inputs or [], mapped or [])
                draft: Draft[CoreferenceItem | FamilyCoreferenceItem] = own_sentences.draft(
                    tables,
                    name=default.name,
                    added=[read_annotated(path) for path in added or []],
                    complete_pairs=complete_pairs,
                    licence=checked_licence(licence),
                    limit=limit,
                    mapped=mapped or [],
                )
                for table in tables:
                    typer.echo(table.told, err=True)
            elif of_pairs is not None:
                draft = family_sets.draft(of_pairs, name=default.name, limit=limit)
            else:
                draft = _draft(source, input_path, seed=seed, per_cell=per_cell, near=near, limit=limit, report=report)
            manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite, report=report)
    for line in _summary(draft, manifest, folder):
        typer.echo(line)
    return folder


def _pairs_of_families(
    source: SourceName, added: Sequence[Path] | None, *, name: str | None, seed: int | None
) -> AnnotatedDataset | None:
    """Return the dataset whose pairs become sets of families; None if none is named for that."""
    if source != "csv" and (name or added) and not (source == "families" and added):
        raise ConfigError("--with is for the sources csv and families, --name for csv and for families --with")
    if source != "families" or not added:
        return None
    if len(added) > 1 or seed is not None:
        raise ConfigError("--source families --with takes one dataset, and no --seed; leave the others out")
    return read_annotated(added[0])


def _draft(
    source: SourceName,
    path: Path | None,
    *,
    seed: int | None,
    per_cell: int | None,
    near: float | None,
    limit: int | None,
    report: Report,
) -> Draft[CoreferenceItem | FamilyCoreferenceItem]:
    if (per_cell, near) != (None, None) and source != "generated":
        raise ConfigError("--per-cell and --near-duplicates are for the generated source alone; leave them out")
    if path is None:
        of_frames = families.draft if source == "families" else embedded.draft
        return of_frames(seed=embedded.DEFAULT_SEED if seed is None else seed, limit=limit)
    if seed is not None:
        raise ConfigError(f"--seed {seed}: only the embedded and families sources have a seed; leave it out")
    if source == "synthbias":
        return published.draft(path, limit=limit, report=report)
    if source == "generated":
        limits = generated.limits_of(path, per_cell, near)
        return generated.draft(path, limits, limit=limit, report=report)
    return winobias.draft(path, limit=limit)


def _summary(draft: Draft[CoreferenceItem | FamilyCoreferenceItem], manifest: Manifest, folder: Path) -> Iterator[str]:
    yield f"{manifest.name} {manifest.version} from source {manifest.parameters['source']}:"
    for split in draft.splits:
        sizes = Counter(Counter(item.unit for item in split.items).values())
        units = (
            f"{sizes[2]} pairs, {sizes[1]} orphans" if split.item_shape == "coreference" else f"{sizes.total()} sets"
        )
        yield f"  {split.config}/{split.split}: {len(split.items)} rows, {units}"
    if manifest.parameters["source"] == "csv" or manifest.builder.endswith("family_sets"):
        yield from reject_lines(draft.rejects, folder)
    yield from closing_lines(manifest, folder)
    yield run_line(folder)


COMMANDS = {
    "requests": LazyCommand(
        "builders.synthbias.generation.generate_commands:requests",
        "Write the instructions that ask a model for the sentences of each cell.",
    ),
    "generate": LazyCommand(
        "builders.synthbias.generation.generate_commands:app",
        "Let a model write sentences until each cell of the design has enough that keep all rules.",
    ),
    "annotate": LazyCommand(
        "builders.synthbias.annotation:app",
        "Have people judge the sentences of a dataset, and keep the pairs that they accept.",
    ),
    "lint": LazyCommand(
        "builders.synthbias.lint:lint_command",
        "Check sentences with two occupations and a pronoun: every finding with its line, counts, and the balance.",
    ),
    "lean": LazyCommand(
        "builders.synthbias.position_lean:measure",
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
