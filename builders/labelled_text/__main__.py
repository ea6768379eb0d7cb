"""``python -m builders.labelled_text``: builds a dataset of a user's labelled texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.plain_text import listed, printable
from biasboard.ground.progress import steps
from builders.build_command import (
    DatasetVersion,
    Out,
    Overwrite,
    closing_lines,
    own_name,
    reject_lines,
    run_line,
    target_folder,
)
from builders.dataset.licences import checked_licence
from builders.dataset.output import write_dataset
from builders.description import DATASETS_FOLDER
from builders.labelled_text import drafts, rows
from builders.superni.items import N_POOL, N_TEST

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(epilog=EXIT_STATUS)
def build(
    inputs: Annotated[
        list[Path],
        typer.Option(
            "--input",
            help="File of the texts: CSV, JSON Lines or Parquet; repeatable. Of several, only those whose names hold "
            "the word test are evaluated. Or a dataset of the Hub with splits train and test, as ORG/NAME@REVISION.",
        ),
    ],
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="COLUMN=HEADING",
            help="Heading of a column in your files where it is not found by its name: text, title, label or id. "
            "Repeatable.",
        ),
    ] = None,
    label_names: Annotated[
        str | None,
        typer.Option(
            help="Names of the labels, such as 0=World,1=Sports, or all labels with commas between them, or a file "
            "with one on each line; rows with another label are rejected. Default: the labels as they are.",
        ),
    ] = None,
    instructions: Annotated[
        str | None, typer.Option(help="Instructions before each text. Default: a sentence that names the labels.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the dataset. Default: own- and the name of the first file.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option(help="Licence of the texts, by its SPDX identifier, such as CC-BY-4.0.")
    ] = None,
    out: Out = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of texts to evaluate, drawn at random.")] = N_TEST,
    pool: Annotated[
        int, typer.Option(min=1, help="Solved texts to show as examples, on which calibrations are fitted.")
    ] = N_POOL,
    seed: Annotated[int, typer.Option(help="Seed of the splits and of the random words.")] = 42,
    dataset_version: DatasetVersion = None,
    overwrite: Overwrite = False,
) -> Path:
    """Build a dataset of your own labelled texts, on which a model chooses one of several labels for each of them."""
    with one_line_errors():
        # Without the revision, if it is a dataset of the Hub.
        called = own_name(name, Path(inputs[0].as_posix().partition("@")[0]), "texts")
        folder = target_folder(out, DATASETS_FOLDER / called, overwrite=overwrite)
        names, stated = rows.label_names(label_names), checked_licence(licence)
        paths, address, commit = rows.find_files(inputs)
        tables, texts = rows.read_texts(paths, mapped or [], names)
        sources = [table.source(stated) for table in tables]
        if address is not None:
            sources = [replace(one, address=f"{address}, {one.name}", revision=commit) for one in sources]
        draft = drafts.draft(
            tables,
            sources,
            texts,
            instructions=instructions,
            limit=limit,
            n_pool=pool,
            seed=seed,
            name=called,
            licence=stated,
            stated={"map": ", ".join(mapped or []) or None, "label_names": label_names},
        )
        for table in tables:
            typer.echo(table.told, err=True)
        with steps() as report:
            manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite, report=report)
    n_items = {split.split: len(split.items) for split in draft.splits}
    (test, *_) = draft.splits
    (top, n_top), *_ = Counter(item.target for item in test.items).most_common()
    print(f"{manifest.name} {manifest.version}:")
    print(f"  {len(test.items[0].labels)} labels; {', '.join(f'{split} {n}' for split, n in n_items.items())}")
    print(f"  always answering '{printable(top or '', most=60)}' is right in {n_top / len(test.items):.1%} of test")
    if all(label.isdecimal() for label in test.items[0].labels):
        first = test.items[0].labels[0]
        print(f"warning: the labels are numbers, which a model is asked for; name them: --label-names {first}=NAME,...")
    for split, option in (("test", "limit"), ("pool", "pool")):
        have = {item.target for of_split in draft.splits if of_split.split == split for item in of_split.items}
        if missing := [printable(label, most=40) for label in test.items[0].labels if label not in have]:
            print(f"warning: {split} has no text with the label {listed(missing, most=5)}; --{option} sets its size")
    if texts.unused:
        print(f"warning: no text has the label {listed(texts.unused, most=5)}, which is left out")
    print(*reject_lines(draft.rejects, folder), *closing_lines(manifest, folder), sep="\n")
    # A run asks 100 texts by default, and the accuracy of a rare class needs all of them.
    print(run_line(folder, "--limit 0"))
    return folder


if __name__ == "__main__":
    app()
