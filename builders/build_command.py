"""What the commands of all builders share: options, their checks, and the lines that they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from biasboard.ground.command_line import EXIT_STATUS, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import printable
from builders.dataset.output import VERSION_FORM, Draft, check_target, version_key, write_dataset
from builders.description import DATASETS_FOLDER, BuilderSource
from schemas.documents.dataset import Item, Manifest, Reject
from schemas.folders.dataset_folder import REJECTS

_MOST_REJECTS = 10

Out: TypeAlias = Annotated[
    Path | None, typer.Option(help="Dataset folder. Default: out/datasets/<name of the dataset>.")
]


def _checked_version(version: str | None) -> str | None:
    """Return the value of ``--dataset-version``, after a check that it has the form of a version."""
    if version is not None and version_key(version) is None:
        raise typer.BadParameter(f"'{version}' is not {VERSION_FORM}")
    return version


DatasetVersion: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dataset-version",
        metavar="X.Y.Z",
        callback=_checked_version,
        help="Version of the dataset, which every result on it names. Default: that of the builder.",
    ),
]
Overwrite: TypeAlias = Annotated[
    bool, typer.Option("--overwrite", help="Replace the dataset if the folder already holds it.")
]


def checked_language(code: str | None) -> str | None:
    """Return the value of ``--language``, after a check that it is a code."""
    if code is not None and not re.fullmatch("[a-z]{2,3}", code):
        raise typer.BadParameter(f"'{code}' is no ISO 639 code; write en for English, nl for Dutch")
    return code


_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_NO_NAME = re.compile(r"[^a-z0-9]+")
_MOST_LETTERS = 96
"""What the Hub allows."""


def dataset_name(name: str) -> str:
    """Return the value of ``--name``.

    Raises:
        ConfigError: it is none of a folder and a dataset of the Hub.
    """
    if not _NAME.fullmatch(name) or len(name) > _MOST_LETTERS:
        raise ConfigError(
            f"--name {printable(name, most=60)}: is not made of small letters, digits and single hyphens, "
            f"{_MOST_LETTERS} at most; correct it"
        )
    return name


def own_name(name: str | None, path: Path, otherwise: str) -> str:
    """Return the name of a dataset from a user's files: the value of ``--name``, or one by the name of a file.

    ``otherwise`` stands for a name of the file without letters and digits.

    Raises:
        ConfigError: the name is none of a folder and a dataset of the Hub.

    >>> own_name(None, Path("My Wallets (2).csv"), "questions")
    'own-my-wallets-2'
    """
    if name is None:
        return f"own-{_NO_NAME.sub('-', path.stem.casefold()).strip('-') or otherwise}"
    return dataset_name(name)


def target_folder(out: Path | None, default: Path, *, overwrite: bool) -> Path:
    """Return the folder to write a dataset to, after a check that it may be written to.

    Args:
        out: Folder that the user names; None for the default.
        default: Folder if the user names none.
        overwrite: True if a dataset that is already in the folder may be replaced.

    Raises:
        ConfigError: the folder must not be written to.
    """
    folder = default if out is None else out
    # The temporary folder is named after this one, and a path that ends in ".." has no name.
    folder = folder.resolve() if ".." in folder.parts else folder
    check_target(folder, overwrite=overwrite)
    return folder


def build_app(make: Callable[[], Draft[Item]]) -> typer.Typer:
    """Return the command line of a builder that makes one dataset from nothing but itself."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

    @app.command(epilog=EXIT_STATUS)
    @one_line_errors()
    def build(out: Out = None, dataset_version: DatasetVersion = None, overwrite: Overwrite = False) -> Path:
        """Build the dataset."""
        draft = make()
        folder = target_folder(out, DATASETS_FOLDER / draft.name, overwrite=overwrite)
        manifest = write_dataset(draft, folder, version=dataset_version, overwrite=overwrite)
        print(*closing_lines(manifest, folder), sep="\n")
        return folder

    return app


def check_input(source: BuilderSource, path: Path | None, others: Mapping[str, object] | None = None) -> None:
    """Check that a source is given the files that it reads, and no others.

    ``others`` has the value of each other option about files.

    Raises:
        ConfigError: the source reads no files and an option names some, or it lacks ``--input``.
    """
    if source.input is not None:
        if path is None:
            raise ConfigError(f"--source {source.name} needs --input: {source.input}")
        return
    for option, value in {"--input": path, **(others or {})}.items():
        if value is not None:
            raise ConfigError(
                f"{option} {value}: the {source.name} source reads no file; leave it out, or give --source"
            )


def closing_lines(manifest: Manifest, folder: Path) -> Iterator[str]:
    """Yield the number of rows, rejects and flags, the reason not to publish if there is one, and the folder."""
    parts = [f"  total: {sum(split.n_items for split in manifest.splits)} rows"]
    for title, counts in (("rejects", manifest.rejects), ("flags", manifest.flags)):
        present = [f"{count.n} {count.rule}" for count in counts if count.n]
        parts.append(f"{title}: {', '.join(present) or 'none'}")
    yield "; ".join(parts)
    if manifest.publish_refusal is not None:
        yield f"not for publishing: {manifest.publish_refusal}"
    yield f"written to {folder}"


def reject_lines(rejects: Sequence[Reject], folder: Path) -> Iterator[str]:
    """Yield a line for each of the first rejects of a user's own file: its writer can mend them."""
    for reject in rejects[:_MOST_REJECTS]:
        yield f"  rejected {reject.source_row}, {reject.rule}: {printable(reject.reason, most=160)}"
    if len(rejects) > _MOST_REJECTS:
        yield f"  ... and {len(rejects) - _MOST_REJECTS} more in {folder / REJECTS}"


def run_line(folder: Path, *options: str) -> str:
    """Return the commands from a dataset to a page with a model; baselines need none, since the board computes them."""
    run = f"biasboard run --dataset {shlex.quote(str(folder))} --backend transformers --model FOLDER"
    return f"next: {' '.join([run, *options])}, then biasboard board"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in columns of equal width."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
