"""The command ``python -m builders.synthbias lint``: reads anybody's sentences and reports every finding about them.

The findings are about each sentence, and about all of them together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection as Names
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import typer

from biasboard.ground.command_line import EXIT_ERROR, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import github_annotation, printable
from builders.build_command import aligned
from builders.dataset.own_csv import read_tables
from builders.synthbias.checks.catalogue import ABOUT_OCCUPATIONS, CATALOGUE, LINT, findings_in
from builders.synthbias.checks.check import (
    SEVERITIES,
    Collection,
    Sentence,
    SentenceFinding,
    Severity,
    at_least,
    required,
)
from builders.synthbias.own_sentences import FORM, sentence_of, sides_of

CHECKS = ("broken_row", "two_occupations", "wrong_answer", "one_sided", "telling_place", *LINT)
"""Names of all checks that a report can name."""
_LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "review": "notice", "note": "notice"}
"""Levels of GitHub's annotations."""
# The published sentences mean the last occupation in .70 of cases; in fewer than ten, such a share is often chance.
_MOST_TELLING = 0.75
_LEAST_SENTENCES = 10


@one_line_errors("stopped; nothing was checked")
def lint_command(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Files of your sentences, as in `build synthbias --source csv`, or folders."
        ),
    ],
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="COLUMN=HEADING",
            help="Heading of a column in your files, if its name does not tell, as in `build synthbias --source "
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
        Literal["text", "github"], typer.Option("--format", help="Lines for people, or annotations of GitHub.")
    ] = "text",
) -> None:
    """Check sentences with two occupations and a pronoun: every finding with its line, and counts.

    An error contradicts the data or its design, a warning is a likely defect, a review needs a reader, and a note is a
    peculiarity that harms nothing. Broken rows are findings; the rows behind them are checked all the same.
    """
    for name in ignore or []:
        if name not in CHECKS:
            near = get_close_matches(name, CHECKS, n=1)
            hint = f"is {near[0]} meant?" if near else "each finding names its check"
            raise ConfigError(f"--ignore {name}: no such check; {hint}")
    report = lint(files, mapped=mapped or [], ignored=ignore or [])
    for line in report.told:
        typer.echo(line, err=True)
    shown = [finding for finding in report.findings if finding.severity in at_least(show)]
    for line in _annotations(shown) if output == "github" else _lines(report, shown, most):
        typer.echo(line)
    if fail_on != "never" and any(finding.severity in at_least(fail_on) for finding in report.findings):
        raise typer.Exit(EXIT_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """The findings in some files."""

    files: tuple[str, ...]
    n_sentences: int
    n_pairs: int
    findings: tuple[SentenceFinding, ...]
    """Sorted by file and line; those about a whole file come first."""
    told: tuple[str, ...]
    """Which columns of each file are taken for what."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of findings of each check that has any, in the order of ``CHECKS``."""
        counts = Counter(finding.check for finding in self.findings)
        return {name: counts[name] for name in CHECKS if counts[name]}


def lint(paths: Sequence[Path], *, mapped: Sequence[str] = (), ignored: Names[str] = ()) -> LintReport:
    """Check the sentences of files, all of them together, as a dataset is built from them.

    Args:
        paths: Files, and folders, of which the files ending in ``.csv`` or ``.tsv`` are checked.
        mapped: Headings of columns in the files, each as ``COLUMN=HEADING``.
        ignored: Names of checks that are left out.

    Raises:
        ConfigError: a file does not exist, a folder has none of these files, or a column is unknown.
        DataError: a file cannot be read, or lacks a column.
    """
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    tables = read_tables(FORM, files, mapped)
    sentences: list[Sentence] = []
    findings: list[SentenceFinding] = []
    # Indices of the sentences of which it is unknown which two occupations they are about.
    unclear: set[int] = set()
    for path, table in zip(files, tables, strict=True):
        for reject in table.rejects:
            line = int(required(reject.source_row).rpartition(":")[2])
            findings.append(_about("broken_row", reject.reason, f"{path}:{line}", line))
        for row in chain.from_iterable(map(sides_of, table.rows)):
            sentence, fault = sentence_of(row, table)
            sentence = replace(sentence, id=f"{path}:{row.line}")
            if fault is not None:
                findings.append(fault._replace(id=sentence.id))
                unclear |= {len(sentences)} if fault.check == "two_occupations" else set()
            sentences.append(sentence)
    collection = Collection(sentences)
    one_sided = dict(_one_sided(collection))
    findings += (_about("one_sided", reason, path) for path, reason in one_sided.items())
    findings += (_about("telling_place", reason, path) for path, reason in _telling_places(sentences))
    for index, of_sentence in enumerate(findings_in(collection, LINT)):
        # Of a sentence that stands twice, the repetition is what is wrong.
        found = {finding.check for finding in of_sentence}
        told: set[str] = set()
        if file_of(sentences[index].id) in one_sided or found & {"duplicate_text", "repeated_wording"}:
            told |= {"unpaired"}
        if index in unclear:
            told |= {*ABOUT_OCCUPATIONS}
        findings.extend(finding for finding in of_sentence if finding.check not in told)
    kept = (finding for finding in findings if finding.check not in ignored)
    return LintReport(
        files=tuple(map(str, files)),
        n_sentences=len(sentences),
        n_pairs=len(collection.pairs),
        findings=tuple(sorted(kept, key=lambda one: (_file_of(one), one.line or 0, CHECKS.index(one.check)))),
        told=tuple(table.told for table in tables),
    )


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise ConfigError(f"{path}: no such file or folder; give a file of your sentences")
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix.casefold() in (".csv", ".tsv"))
    if not files:
        raise ConfigError(f"{path}: no file ends in .csv or .tsv; give the files themselves")
    return files


def _about(check: str, reason: str, where: str, line: int | None = None) -> SentenceFinding:
    """Return a finding about a file, or about one of its lines."""
    return SentenceFinding(check, reason, CATALOGUE[check].severity, line, where)


def _one_sided(collection: Collection) -> Iterator[tuple[str, str]]:
    """Yield each file of which most sentences have no counterpart, with a reason that stands for them all."""
    total = Counter(file_of(sentence.id) for sentence in collection.sentences)
    alone = Counter(file_of(collection.sentences[group[0]].id) for group in collection.sides if len(group) == 1)
    for path, n in alone.items():
        if n > max(1, total[path] / 2):  # Of a single sentence, the finding about its row says it.
            counts = f"{n:,} of {total[path]:,} sentences"
            yield path, f"{counts} have no row with the other pronoun; add those, or build with --complete-pairs"


def _telling_places(sentences: Sequence[Sentence]) -> Iterator[tuple[str, str]]:
    """Yield each file in which the place of an occupation tells whom the pronouns mean, with the reason."""
    by_file: dict[str, list[Sentence]] = defaultdict(list)
    for sentence in sentences:
        if sentence.type == "type2" and sentence.referent is not None and len(sentence.targets) == 2:
            by_file[file_of(sentence.id)].append(sentence)
    for path, settled in by_file.items():
        n = len(settled)
        n_last = sum(sentence.targets[-1].text == sentence.referent for sentence in settled)
        most, place = max((n_last, "last"), (n - n_last, "first"))
        if n >= _LEAST_SENTENCES and most > _MOST_TELLING * n:
            share = f"the occupation mentioned {place} is meant in {most:,} of {n:,} settled sentences"
            yield path, f"{share}; write more in which it is the other one"


def file_of(where: str) -> str:
    """Return the file of a file and line."""
    return where.rpartition(":")[0]


def _file_of(finding: SentenceFinding) -> str:
    return finding.id if finding.line is None else file_of(finding.id)


def _lines(report: LintReport, shown: Sequence[SentenceFinding], most: int) -> Iterator[str]:
    """Yield the findings, the counts of each check and the balance, as aligned text."""
    rows, n_listed = [], Counter[str]()
    for finding in shown:
        n_listed[finding.check] += 1
        if not most or n_listed[finding.check] <= most:
            rows.append((finding.id, finding.severity, finding.check, printable(finding.reason)))
    if rows:
        yield from aligned(("place", "severity", "check", "finding"), rows)
        cut = [f"{n - most:,} of {name}" for name, n in n_listed.items() if most and n > most]
        if cut:
            yield f"... and {', '.join(cut)}; --most 0 lists all"
        yield ""
    counts = [
        (name, str(n), CATALOGUE[name].severity, CATALOGUE[name].certainty, CATALOGUE[name].description)
        for name, n in report.counts.items()
    ]
    if counts:
        yield from aligned(("check", "findings", "severity", "certainty", "description"), counts)
        yield ""
    by_severity = Counter(finding.severity for finding in report.findings)
    listed = ", ".join(f"{by_severity[name]:,} {name}{'s' * (by_severity[name] != 1)}" for name in SEVERITIES)
    files = "1 file" if len(report.files) == 1 else f"{len(report.files):,} files"
    yield f"{report.n_sentences:,} sentences, {report.n_pairs:,} minimal pairs in {files}: {listed}"


def _annotations(shown: Sequence[SentenceFinding]) -> Iterator[str]:
    for finding in shown:
        yield github_annotation(
            _LEVELS[finding.severity],
            file=printable(_file_of(finding)),
            line=finding.line,
            title=finding.check,
            text=printable(finding.reason),
        )
