"""The command ``python -m builders.synthbias lint``: reads anybody's sentences and reports every finding about them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

import typer

from biasboard.ground.command_line import EXIT_ERROR, one_line_errors
from biasboard.ground.errors import ConfigError
from builders.synthbias.checks.check import Severity
from builders.synthbias.lint_output import FORMATS, text_lines
from builders.synthbias.lint_report import CHECKS, lint


@one_line_errors("stopped; nothing was checked")
def lint_command(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="CSV files of your sentences, text files of WinoBias, or folders."),
    ],
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="COLUMN=HEADING",
            help="Heading of a column in your CSV files, if its name does not tell, as in `build synthbias --source "
            "csv`. Repeatable.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="Name of a check that is left out. Repeatable.")
    ] = None,
    show: Annotated[
        Severity, typer.Option(help="Least severity of the findings in the list; all are counted.")
    ] = "review",
    most: Annotated[
        int, typer.Option(min=0, help="Most findings of a check in the list for people; 0 lists all.")
    ] = 10,
    fail_on: Annotated[
        Literal["error", "warning", "review", "never"],
        typer.Option(help="Exit with status 1 if a finding is as grave as this, or graver."),
    ] = "error",
    output: Annotated[
        Literal["text", "github", "sarif"],
        typer.Option("--format", help="Lines for people, annotations of GitHub, or SARIF for other tools."),
    ] = "text",
) -> None:
    """Check sentences with two occupations and a pronoun: every finding with its line, counts, and the balance.

    An error contradicts the data or its design, a warning is a likely defect, a review needs a reader, and a note is a
    peculiarity that harms nothing. Broken rows are findings; the rows behind them are checked all the same.
    """
    report = lint(files, mapped=mapped or [], ignored=_known(ignore or []))
    for line in report.told:
        typer.echo(line, err=True)
    lines = FORMATS[output](report, show) if output in FORMATS else text_lines(report, show, most)
    for line in lines:
        typer.echo(line)
    if fail_on != "never" and report.reaches(fail_on):
        raise typer.Exit(EXIT_ERROR)


def _known(names: Sequence[str]) -> frozenset[str]:
    for name in names:
        if name not in CHECKS:
            near = get_close_matches(name, CHECKS, n=1)
            hint = f"is {near[0]} meant?" if near else "each finding names its check"
            raise ConfigError(f"--ignore {name}: no such check; {hint}")
    return frozenset(names)
