"""``python -m builders.own_prompts``: builds a dataset of a researcher's prompts by group."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.plain_text import listed, printable
from builders.build_command import (
    DatasetVersion,
    Out,
    Overwrite,
    check_input,
    checked_language,
    closing_lines,
    own_name,
    reject_lines,
    run_line,
    target_folder,
)
from builders.dataset.licences import checked_licence
from builders.dataset.output import write_dataset
from builders.description import DATASETS_FOLDER
from builders.own_prompts import BUILDER, prompts, settings

SourceName = Enum("SourceName", {name: name for name in settings()})  # type: ignore[misc]
_OWN = SourceName("csv")
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=EXIT_STATUS)
def build(
    source: Annotated[SourceName, typer.Option(help="Source of the prompts.")] = _OWN,
    inputs: Annotated[list[Path] | None, typer.Option("--input", help="File of the prompts. Repeatable.")] = None,
    fill: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SLOT=FILE",
            help="Words for a slot such as {person} in the prompts, from a table with a column for the word, and one "
            "for the group if the word says it. Repeatable.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the dataset. Default: own- and the name of the first file, or the source."),
    ] = None,
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="COLUMN=HEADING",
            help="Heading of a column in your files where it is not found by its name: prompt, group, description (the "
            "words for the group), category, cluster (prompts that differ in the group alone) or id. Repeatable.",
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            help="Licence of the prompts, by its SPDX identifier, such as CC-BY-4.0. Default: that of the source, if "
            "it is known."
        ),
    ] = None,
    language: Annotated[
        str, typer.Option(help="Language of the prompts, as an ISO 639 code: en, nl, kor.", callback=checked_language)
    ] = "en",
    out: Out = None,
    dataset_version: DatasetVersion = None,
    overwrite: Overwrite = False,
) -> Path:
    """Build a dataset of your own prompts about groups of people, to which models write texts."""
    with one_line_errors():
        paths = inputs or []
        known = BUILDER.source(source.value)
        check_input(known, paths[0] if paths else None)
        is_own = source == _OWN
        called = own_name(known.dataset if name is None and not is_own else name, paths[0], "prompts")
        folder = target_folder(out, DATASETS_FOLDER / called, overwrite=overwrite)
        tables, lists = prompts.read(known.name, paths, mapped or []), prompts.read_lists(fill or [])
        stated = checked_licence(licence) or (known.licence if known.redistributable and not is_own else None)
        draft = prompts.draft(
            tables,
            lists,
            source=known.name,
            name=called,
            licence=stated,
            mapped=mapped or [],
            filled=[f"{slot}={Path(path).name}" for slot, _, path in (text.partition("=") for text in fill or [])],
            language=language,
        )
        for table in (*tables, *lists.tables):
            typer.echo(table.told, err=True)
        manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite)
    (split,) = draft.splits
    counts = Counter(item.group for item in split.items)
    print(f"{manifest.name} {manifest.version}:")
    groups = listed([f"{printable(group, most=40)} {n:,}" for group, n in counts.most_common()], most=8)
    print(f"  prompts: {len(split.items):,}; groups: {groups}")
    print(f"  {prompts.comparison_line(split.items)}")
    for warning in filter(None, (prompts.mixed_line(split.items), prompts.few_descriptions_line(split.items))):
        print(warning)
    run = run_line(folder, *(f"--scorer {scorer}" for scorer in settings()[known.name].get("scorers", ())))
    print(*reject_lines(draft.rejects, folder), *closing_lines(manifest, folder), run, sep="\n")
    return folder


if __name__ == "__main__":
    app()
