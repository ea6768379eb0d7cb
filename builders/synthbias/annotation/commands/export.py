"""The command ``annotate export``."""

from __future__ import annotations

import shlex
from collections.abc import Container
from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import DataError
from biasboard.ground.files import replacing
from builders.dataset.output import write_dataset
from builders.synthbias.annotation.commands.options import DatasetFolder, StateFolder
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.exchange import Format, batch_files, entrance_files
from builders.synthbias.annotation.model_votes import questions_draft
from builders.synthbias.annotation.planning import Request, chosen_batch, read_batch
from builders.synthbias.annotation.sentences import read_annotated, sentence_of
from builders.synthbias.annotation.state import check_outside_datasets


@one_line_errors()
def export(
    dataset: DatasetFolder,
    state_folder: StateFolder,
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    form: Annotated[Format, typer.Option("--format", help="Format of the files.")] = Format.CSV,
    batch: Annotated[int | None, typer.Option(min=1, help="Number of the batch. Default: the last one.")] = None,
    entrance: Annotated[
        bool, typer.Option("--entrance", help="Write the entrance test in place of a batch, without its answers.")
    ] = False,
) -> None:
    """Write a batch, or the entrance test, for a platform."""
    check_outside_datasets("--state", state_folder)
    check_outside_datasets("--out", out, is_dataset=form is Format.MODEL)
    if form is Format.MODEL:
        _write_questions(dataset, state_folder, out, batch)
        return
    if entrance:
        files = entrance_files(form)
        counts = f"{len(TEST)} sentences of the entrance test"
    else:
        annotated = read_annotated(dataset)
        path = chosen_batch(state_folder, batch)
        requests = _requests(path, annotated.items, annotated.folder)
        sentences = {one.item_id: sentence_of(annotated.items[one.item_id]) for one in requests}
        files = batch_files(path.stem, requests, sentences, form)
        counts = f"{len(sentences)} sentences of batch {path.stem}, licence {annotated.manifest.licence}"
    for name, content in files.items():
        with replacing(out / name) as temporary:
            temporary.write_bytes(content.encode("utf-8"))
        typer.echo(str(out / name))
    typer.echo(counts)


def _requests(path: Path, known: Container[str], dataset: Path) -> list[Request]:
    """Return the requests of a batch.

    Raises:
        DataError: a sentence is not in the dataset.
    """
    requests = read_batch(path)
    unknown = next((one.item_id for one in requests if one.item_id not in known), None)
    if unknown is not None:
        raise DataError(f"{path}: item '{unknown}' is not in {dataset}; give the dataset of the plan, or plan again")
    return requests


def _write_questions(dataset: Path, state_folder: Path, out: Path, batch: int | None) -> None:
    """Write the sentences of a batch, and those of the entrance test, as a dataset that a model is asked."""
    annotated = read_annotated(dataset)
    path = chosen_batch(state_folder, batch)
    wanted = dict.fromkeys(one.item_id for one in _requests(path, annotated.items, annotated.folder))
    draft = questions_draft(annotated, [sentence_of(annotated.items[item_id]) for item_id in wanted])
    manifest = write_dataset(draft, out, overwrite=True)
    typer.echo(f"{manifest.splits[0].n_items} sentences of batch {path.stem} and of the entrance test, in {out}")
    typer.echo(
        f"next: python -m evaluators run --dataset {shlex.quote(str(out))} --backend BACKEND --model MODEL --prompt "
        "greedy-v1 --out out/votes, then annotate ingest --format model out/votes"
    )
