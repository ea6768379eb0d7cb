"""``python -m builders.own_questions``: builds a dataset of a researcher's questions."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.plain_text import printable
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
from builders.own_questions import BUILDER, questions, settings
from builders.own_questions.roles import Roles

SourceName = Enum("SourceName", {name: name for name in settings()})  # type: ignore[misc]
_OWN = SourceName("csv")
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=EXIT_STATUS)
def build(
    source: Annotated[SourceName, typer.Option(help="Source of the questions.")] = _OWN,
    inputs: Annotated[list[Path] | None, typer.Option("--input", help="File of the questions. Repeatable.")] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the dataset. Default: own- and the name of the first file, or the source."),
    ] = None,
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="COLUMN=HEADING",
            help="Heading of a column in your files where it is not found by its name: question, context, option1 to "
            "option8 or options (with | between them), answer, stereotyped, antistereotyped, neutral, category, group, "
            "cluster or id. Repeatable.",
        ),
    ] = None,
    roles: Annotated[
        Path | None,
        typer.Option(
            help="File of roles, such as occupations, with a column for the group that a stereotype takes each for. It "
            "names the stereotyped option of items of that group."
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            help="Licence of the questions, by its SPDX identifier, such as CC-BY-4.0. Default: that of the source, if "
            "it is known."
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            help="Language of the questions, as an ISO 639 code: en, nl, kor. Default: en, or that of the source.",
            callback=checked_language,
        ),
    ] = None,
    out: Out = None,
    dataset_version: DatasetVersion = None,
    overwrite: Overwrite = False,
) -> Path:
    """Build a dataset of your own questions with options."""
    with one_line_errors():
        paths = inputs or []
        known = BUILDER.source(source.value)
        check_input(known, paths[0] if paths else None)
        is_own = source == _OWN
        language = questions.language_of(known.name, language, paths)
        usual = known.dataset if len(settings()[known.name].get("languages", ())) < 2 else f"{known.dataset}-{language}"
        called = own_name(usual if name is None and not is_own else name, paths[0], "questions")
        folder = target_folder(out, DATASETS_FOLDER / called, overwrite=overwrite)
        taken = None if roles is None else Roles(roles)
        tables = questions.read(known.name, paths, mapped or [], taken)
        stated = checked_licence(licence) or (known.licence if known.redistributable and not is_own else None)
        draft = questions.draft(
            tables,
            source=known.name,
            name=called,
            licence=stated,
            mapped=mapped or [],
            language=language,
            roles=taken,
        )
        for table in (*tables, *([] if taken is None else [taken.table])):
            typer.echo(table.told, err=True)
            if (first := questions.first_number(table)) is not None:
                typer.echo(f"{table.name}: answers are numbers of the options, counted from {first}", err=True)
        manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite)
    (split,) = draft.splits
    n_options = Counter(len(item.options) for item in split.items)
    groups = Counter(item.group for item in split.items if item.group is not None)
    print(f"{manifest.name} {manifest.version}:")
    with_options = " or ".join(map(str, sorted(n_options)))
    print(f"  questions: {len(split.items):,}, with {with_options} options each; groups: {len(groups):,}")
    if taken is not None:
        n_sided = sum(item.stereotyped is not None for item in split.items)
        print(f"  stereotyped option: named in {n_sided:,} of {len(split.items):,} questions, by {taken.table.name}")
    print(f"  {questions.cluster_line(tables, split.items)}")
    if (near := questions.near_line(split.items)) is not None:
        print(f"  {near}")
    if (neutral := questions.neutral_option(tables)) is not None:
        print(f"  neutral option: '{printable(neutral, most=60)}', which alone stands in all rows")
    print(*reject_lines(draft.rejects, folder), *closing_lines(manifest, folder), sep="\n")
    imported = settings()[known.name].get("imported")
    print(run_line(folder) if imported is None else f"next: {imported}")
    return folder


if __name__ == "__main__":
    app()
