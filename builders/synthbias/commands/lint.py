"""The command ``python -m builders.synthbias lint``: checks anybody's sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from biasboard.ground.command_line import EXIT_ERROR, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import printable
from builders.dataset.summary import aligned
from builders.synthbias.checks.catalogue import CATALOGUE
from builders.synthbias.checks.check import SEVERITIES, Severity, at_least
from builders.synthbias.lint import Report, as_json
from builders.synthbias.lint import lint as lint_files


@one_line_errors("stopped; nothing was checked")
def lint(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="CSV files with the columns of SynthBias, text files of WinoBias, or their folders."
        ),
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=HEADING",
            help="Heading of a column in your CSV files: sample (the sentence), occ_1 (its referent or reference), "
            "occ_2, type, pronoun or is_stereotypical (True, False or ambiguous); the last three may be missing. "
            "Repeatable.",
        ),
    ] = None,
    show: Annotated[
        Severity, typer.Option(help="Least severity of the findings in the list; all are counted.")
    ] = "review",
    as_data: Annotated[bool, typer.Option("--json", help="Print everything as JSON instead.")] = False,
    fail_on: Annotated[
        Literal["error", "warning", "review", "never"],
        typer.Option(help="Exit with status 1 if a finding is as grave as this, or graver."),
    ] = "error",
) -> None:
    """Check sentences with two occupations and a pronoun: every finding with its line, counts, and the balance.

    An error contradicts the data or its design, a warning is a likely defect, a review needs a reader, and a note is a
    peculiarity that harms nothing. Broken rows are findings; the rows behind them are checked all the same.
    """
    report = lint_files(files, headings=_headings(column or []))
    if as_data:
        typer.echo(json.dumps(as_json(report), indent=1, ensure_ascii=False))
    else:
        for line in _lines(report, show):
            typer.echo(line)
    if fail_on != "never" and report.reaches(fail_on):
        raise typer.Exit(EXIT_ERROR)


def _headings(pairs: Sequence[str]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise ConfigError(f"--column {pair}: lacks '='; write NAME=HEADING, such as sample=sentence")
    return {name: heading for name, _, heading in (pair.partition("=") for pair in pairs)}


def _lines(report: Report, least: Severity) -> Iterator[str]:
    """Yield the findings, the counts of each check and the balance, as aligned text."""
    findings = [
        (finding.id, finding.severity, finding.check, printable(finding.reason))
        for finding in report.findings
        if finding.severity in at_least(least)
    ]
    if findings:
        yield from aligned(("place", "severity", "check", "finding"), findings)
        yield ""
    counts = [
        (name, str(n), CATALOGUE[name].severity, CATALOGUE[name].certainty, CATALOGUE[name].description)
        for name, n in report.counts.items()
    ]
    yield from aligned(("check", "findings", "severity", "certainty", "description"), counts)
    yield ""
    for table in (report.balance.summary(), report.balance.by_occupation()) if report.n_sentences else ():
        yield from aligned(table.header, table.rows)
        yield ""
    by_severity = [(name, sum(finding.severity == name for finding in report.findings)) for name in SEVERITIES]
    listed = ", ".join(f"{n:,} {name}{'s' * (n != 1)}" for name, n in by_severity)
    files = "1 file" if len(report.files) == 1 else f"{len(report.files):,} files"
    yield f"{report.n_sentences:,} sentences, {report.n_pairs:,} minimal pairs in {files}: {listed}"
