"""The command ``annotate ingest``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from builders.synthbias.annotation.commands.options import DatasetFolder, EntranceBy, EntrancePercent, StateFolder
from builders.synthbias.annotation.entrance import DEFAULT_PERCENT, EntranceUnit
from builders.synthbias.annotation.exchange import Format, read_submissions
from builders.synthbias.annotation.intake import EntranceRule, Intake, take_in
from builders.synthbias.annotation.sentences import read_annotated
from builders.synthbias.annotation.state import locked, read_state, write_state
from builders.synthbias.annotation.votes import AnnotatorKind, Status
from builders.synthbias.annotation.wide_csv import COLUMNS, column_map


@one_line_errors()
def ingest(
    dataset: DatasetFolder,
    files: Annotated[list[Path], typer.Argument(help="Files with votes.")],
    state_folder: StateFolder,
    form: Annotated[Format, typer.Option("--format", help="Format of the files.")] = Format.CSV,
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="FIELD=COLUMN, the column of a field in a wide CSV file (mturk); repeatable. Fields: "
            f"{', '.join(COLUMNS)}.",
        ),
    ] = None,
    kind: Annotated[
        AnnotatorKind | None,
        typer.Option(help="Kind of the annotators in the files. Default: model with --format model, or else human."),
    ] = None,
    entrance_percent: EntrancePercent = DEFAULT_PERCENT,
    entrance_unit: EntranceBy = EntranceUnit.ITEM,
) -> None:
    """Take votes in from files of a platform.

    The first vote of a person on a question is kept, and a person votes on one side of a pair. What is refused is
    counted and listed. The same file may be taken in again. A broken file changes nothing.
    """
    voters = _kind(form, kind)
    annotated = read_annotated(dataset)
    columns = column_map(mapped or ())
    submissions = [one for path in files for one in read_submissions(path, form, columns)]
    with locked(state_folder):
        state = read_state(state_folder)
        rule = EntranceRule(entrance_percent, entrance_unit)
        intake = take_in(annotated, state, submissions, kind=voters, entrance=rule)
        write_state(state_folder, state, intake.state)
    _say(intake)


def _kind(form: Format, given: AnnotatorKind | None) -> AnnotatorKind:
    """Return the kind of the annotators, which runs of a model decide by themselves.

    Raises:
        ConfigError: runs of a model are said to be the votes of people.
    """
    if form is not Format.MODEL:
        return given or AnnotatorKind.HUMAN
    if given is AnnotatorKind.HUMAN:
        raise ConfigError("--kind human: --format model reads the answers of models; leave --kind out")
    return AnnotatorKind.MODEL


def _say(intake: Intake) -> None:
    typer.echo(f"{intake.n_added} votes added, {intake.n_known} known already, {len(intake.refused)} refused")
    for reason, n in intake.refusals.items():
        if n:
            typer.echo(f"  {reason}: {n}")
    for refused in intake.refused:
        typer.echo(f"refused as {refused.reason}: {refused.where}: {refused.annotator_id} on {refused.item_id}")
    annotators = intake.state.annotators.values()
    standings = ((status, sum(one.status is status for one in annotators)) for status in Status)
    typer.echo("annotators: " + ", ".join(f"{n} {status}" for status, n in standings if n))
