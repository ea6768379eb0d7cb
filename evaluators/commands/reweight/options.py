"""Options that the commands of reweighting share."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from evaluators.commands.reweight.rows import InputChoice
from evaluators.reweighting.stored import StoredRules
from schemas.errors import ConfigError, DataError

Input: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet or NPZ file of class probabilities, vectors of DCS, or the folder of a finished run.",
    ),
]
Kind: TypeAlias = Annotated[
    str | None, typer.Option("--format", help="csv, parquet, npz, dcs or run; by default recognised from the content.")
]
LabelColumn: TypeAlias = Annotated[
    str, typer.Option(help="Column of a CSV or Parquet file with the right class of each row.")
]
Prefix: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Beginning of the names of the columns of classes; the rest names the class. By default p_ where columns "
        "begin with it and no column bears the name of a class."
    ),
]
Classes: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Names of the classes separated by commas, in the order of their columns; by default those of the file. A "
        "name with a comma stands in double quotes."
    ),
]
Ignore: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Column of numbers that is no class. Repeatable; id and the like are known.")
]
Config: TypeAlias = Annotated[str | None, typer.Option(help="Config of a run; needed if the run has several.")]
Split: TypeAlias = Annotated[list[str] | None, typer.Option(help="Split of a run; by default all. Repeatable.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on standard output instead of tables.")]
Plots: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Folder to draw charts into, as SVG: class accuracies with intervals (classes), Lorenz curves (lorenz), "
        "and mean class accuracy against the Gini index of all candidates or methods (trade). Needs the extra 'site'."
    ),
]
Test: TypeAlias = Annotated[
    Path | None, typer.Option(help="Rows of the same classes that nothing is fitted on, to measure on.")
]
TestSplit: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Split of a run to measure on, of --test or of the same run. Repeatable.")
]


def choice_of(
    path: Path,
    kind: str | None,
    label_column: str,
    prefix: str | None,
    classes: str | None,
    ignore: Sequence[str] | None,
    config: str | None,
    split: Sequence[str] | None,
) -> InputChoice:
    """Return the choices of an input, as the options name them.

    Raises:
        ConfigError: the classes are no list of different names.
    """
    return InputChoice(
        path=path,
        kind=kind,
        label_column=label_column,
        prefix=prefix,
        classes=_classes(classes),
        ignored=tuple(ignore or ()),
        config=config,
        splits=tuple(split or ()),
    )


def _classes(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(names_in(text))
    if len({*names}) < len(names) or len(names) < 2:
        raise ConfigError(
            f"--classes {text}: names {len({*names})} classes in {len(names)} places; name each once, two at least"
        )
    return names


def names_in(text: str) -> list[str]:
    """Return the names of a list that are separated by commas.

    >>> names_in('a, "b, c"')
    ['a', 'b, c']
    """
    return [name for name in next(csv.reader([text], skipinitialspace=True), []) if name]


def read_rules(path: Path) -> StoredRules:
    """Read the rules that a user names.

    Raises:
        DataError: there is no such file, or it holds no rules.
    """
    if not path.is_file():
        raise DataError(f"--rules {path}: no such file; name a file that 'fit' wrote")
    try:
        return StoredRules.read(path)
    except DataError as error:
        raise DataError(f"--rules {error}; name a file that 'fit' wrote") from error


def test_choice(choice: InputChoice, test: Path | None, splits: Sequence[str] | None) -> InputChoice | None:
    """Return the choices of the rows to measure on; None if none are named.

    Raises:
        ConfigError: the rows are those that are fitted on.
    """
    if test is None and not splits:
        return None
    found = InputChoice(
        path=test or choice.path,
        # Another file may be of another kind.
        kind=choice.kind if test is None else None,
        label_column=choice.label_column,
        prefix=choice.prefix,
        classes=choice.classes,
        ignored=choice.ignored,
        config=choice.config,
        splits=tuple(splits or ()),
    )
    if found.path.exists() and choice.path.exists() and found.path.samefile(choice.path):
        common = [name for name in found.splits if name in choice.splits] or (
            [] if found.splits and choice.splits else ["all rows"]
        )
        if common:
            raise ConfigError(
                f"{found.path}: {common[0]} would be fitted on and measured on; name other rows with --test, or splits "
                "of a run with --split and --test-split"
            )
    return found
