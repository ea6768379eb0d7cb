"""The command ``python -m builders.synthbias lint``: reads anybody's sentences and reports every finding about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias, cast

import typer

from biasboard.ground.command_line import EXIT_ERROR, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import printable
from builders.build_command import aligned
from builders.dataset.card import CardTable
from builders.dataset.inputs import read_file
from builders.synthbias.checks.catalogue import CATALOGUE, LINT, Reading, findings_in
from builders.synthbias.checks.check import SEVERITIES, Finding, Severity, at_least
from builders.synthbias.checks.sentence import Collection, PairIndices, SampleType, Sentence
from builders.synthbias.published_csv import COLUMNS, read_rows
from builders.synthbias.winobias_text import Side, read_lines
from schemas.lexicon import occupations
from schemas.outputs.documents import Cells, CheckCount, SentenceFinding, SentenceFindings
from schemas.printed import Outcome, with_format


@one_line_errors("stopped; nothing was checked")
@with_format(SentenceFindings)
def lint_command(
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
    fail_on: Annotated[
        Literal["error", "warning", "review", "never"],
        typer.Option(help="Exit with status 1 if a finding is as grave as this, or graver."),
    ] = "error",
) -> Outcome:
    """Check sentences with two occupations and a pronoun: every finding with its line, counts, and the balance.

    An error contradicts the data or its design, a warning is a likely defect, a review needs a reader, and a note is a
    peculiarity that harms nothing. Broken rows are findings; the rows behind them are checked all the same.
    """
    report = lint(files, headings=_headings(column or []))
    for line in _lines(report, show):
        typer.echo(line)
    failed = fail_on != "never" and report.reaches(fail_on)
    return Outcome(_document(report), EXIT_ERROR if failed else 0)


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


_READ = ("broken_file", "broken_row")
CHECKS = (*_READ, *LINT)
"""Names of all checks that a report can name."""
_TEXT_NAME = re.compile(r"(?:(pro|anti)_stereotyped_)?.*?(type[12])?(?:\.txt.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings in some files, and the balance of their sentences."""

    files: tuple[str, ...]
    n_sentences: int
    n_pairs: int
    findings: tuple[Finding, ...]
    """Sorted by file and line; those about a whole file come first."""
    balance: Balance

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of findings of each check that has any, in the order of ``CHECKS``."""
        counts = Counter(finding.check for finding in self.findings)
        return {name: counts[name] for name in CHECKS if counts[name]}

    def reaches(self, severity: Severity) -> bool:
        """Return True if there is a finding of a severity or of a more severe one."""
        return any(finding.severity in at_least(severity) for finding in self.findings)


class _Read(NamedTuple):
    """A file, or several files whose sentences are compared with each other."""

    collection: Collection
    findings: list[Finding]


def lint(paths: Sequence[Path], *, headings: Mapping[str, str]) -> Report:
    """Check files: each ``.csv`` file by itself, and all other files together as text files of WinoBias.

    Args:
        paths: Files, and folders, of which the files ending in ``.csv``, ``.txt``, ``.txt.dev`` or ``.txt.test`` are
            checked.
        headings: Headings of columns in the CSV files, where they differ from the published ones.

    Raises:
        ConfigError: a file does not exist, a folder has none of these files, or a column is unknown.
    """
    if unknown := set(headings) - set(COLUMNS):
        raise ConfigError(f"--column {min(unknown)}=...: no such column; have: {', '.join(COLUMNS)}")
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    texts = [file for file in files if file.suffix.casefold() != ".csv"]
    read = [_read_csv(file, headings) for file in files if file.suffix.casefold() == ".csv"]
    if texts:
        read.append(_read_texts(texts))
    findings = [finding for part in read for finding in _findings(part)]
    return Report(
        files=tuple(map(str, files)),
        n_sentences=sum(len(part.collection.sentences) for part in read),
        n_pairs=sum(len(part.collection.pairs) for part in read),
        findings=tuple(sorted(findings, key=_order)),
        balance=Balance(sentence for part in read for sentence in part.collection.sentences),
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ConfigError(f"{path}: no such file or folder; give a CSV file, or text files of WinoBias")
    patterns = ("*.csv", "*.txt", "*.txt.dev", "*.txt.test")
    # The folder of WinoBias also holds lists of occupations.
    files = sorted(file for pattern in patterns for file in path.glob(pattern) if "occupations" not in file.name)
    if not files:
        raise ConfigError(f"{path}: no file ends in {', '.join(patterns)}; give the files themselves")
    return files


def _read_csv(path: Path, headings: Mapping[str, str]) -> _Read:
    reading = read_rows(read_file(path), name=str(path), headings=headings)
    return _Read(Collection(reading.sentences), reading.findings)


def _read_texts(paths: Iterable[Path]) -> _Read:
    """Read text files; line i of a file named *pro_...* forms a pair with line i of the one named *anti_...*."""
    readings = {path: _read_text(path) for path in paths}
    sentences = [sentence for reading in readings.values() for sentence in reading.sentences]
    findings = [finding for reading in readings.values() for finding in reading.findings]
    if any(path.name.startswith(("pro_", "anti_")) for path in readings):
        return _Read(Collection(sentences, _pairs_by_line(sentences)), findings)
    return _Read(Collection(sentences), findings)


def _read_text(path: Path) -> Reading:
    match = _TEXT_NAME.fullmatch(path.name)
    side, sample_type = match.groups() if match else (None, None)
    return read_lines(
        read_file(path),
        name=str(path),
        side=cast(Side | None, side and side.casefold()),
        sample_type=cast(SampleType | None, sample_type and sample_type.casefold()),
    )


def _pairs_by_line(sentences: Sequence[Sentence]) -> list[PairIndices]:
    """Return the pairs of sentences whose files and lines differ only in *pro* and *anti*."""
    sides_by_line: dict[str, dict[str, int]] = {}
    for index, sentence in enumerate(sentences):
        side = sentence.claimed.label
        if side is not None:
            folder, _, name = sentence.id.rpartition("/")
            sides_by_line.setdefault(f"{folder}/{name.removeprefix(side)}", {})[side] = index
    return [PairIndices(sides["pro"], sides["anti"]) for sides in sides_by_line.values() if len(sides) == 2]


def _findings(read: _Read) -> Iterator[Finding]:
    yield from read.findings
    for findings in findings_in(read.collection, LINT):
        yield from findings


def _order(finding: Finding) -> tuple[str, int, int]:
    name = finding.id.rpartition(":")[0] if finding.line is not None else finding.id
    return name, finding.line or 0, CHECKS.index(finding.check)


def _document(report: Report) -> SentenceFindings:
    """Return the files, counts, findings and both tables of the balance."""
    tables = {"summary": report.balance.summary(), "by_occupation": report.balance.by_occupation()}
    return SentenceFindings(
        files=report.files,
        n_sentences=report.n_sentences,
        n_pairs=report.n_pairs,
        counts={
            name: CheckCount(n=n, severity=CATALOGUE[name].severity, certainty=CATALOGUE[name].certainty)
            for name, n in report.counts.items()
        },
        findings=tuple(
            SentenceFinding(
                place=finding.id,
                line=finding.line,
                check=finding.check,
                severity=finding.severity,
                reason=finding.reason,
            )
            for finding in report.findings
        ),
        balance={
            name: Cells(header=tuple(table.header), rows=tuple(tuple(map(str, row)) for row in table.rows))
            for name, table in tables.items()
        },
    )


Role: TypeAlias = Literal["meant", "not meant", "open"]
"""Role of an occupation in a sentence: the referent, the other one, or either of two that may be meant."""
Position: TypeAlias = Literal["first", "last"]
POSITIONS: tuple[Position, ...] = ("first", "last")
STEREOTYPES = ("male", "female")


class Occurrence(NamedTuple):
    """One occupation in one sentence."""

    type: str
    occupation: str
    position: Position
    role: Role

    @property
    def stereotype(self) -> str:
        """The list that the occupation is on."""
        return occupations()[self.occupation].stereotype


class Balance:
    """Counts of the positions and roles of occupations in some sentences.

    A sentence counts if it names its two occupations, and then has two occurrences.
    """

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self.counts = Counter(occurrence for sentence in sentences for occurrence in _occurrences(sentence))

    def count(self, **wanted: str) -> int:
        """Count the occurrences with given field values, such as ``type="type2", role="meant"``."""
        return sum(
            n
            for occurrence, n in self.counts.items()
            if all(getattr(occurrence, name) == wanted[name] for name in wanted)
        )

    @property
    def types(self) -> list[str]:
        """The types of the sentences."""
        return sorted({occurrence.type for occurrence in self.counts})

    def summary(self) -> CardTable:
        """Return a table of position and stereotype, with a column for each type and its share."""
        rows = [
            ("sentences", *(str(self.count(type=name, position="first")) for name in self.types)),
            *(self._row("first", stereotype=stereotype, position="first") for stereotype in STEREOTYPES),
            *(self._row("meant", position=position, role="meant") for position in POSITIONS),
            *(self._row("meant", stereotype=stereotype, role="meant") for stereotype in STEREOTYPES),
            *(
                self._row("meant", position=position, stereotype=stereotype, role="meant")
                for position in POSITIONS
                for stereotype in STEREOTYPES
            ),
        ]
        return CardTable(header=("", *self.types), rows=tuple(rows))

    def by_occupation(self) -> CardTable:
        """Return a table with a row for each occupation: its occurrences by type, position and role.

        The last column of a type is the share of the sentences naming the occupation in which it is meant.
        """
        roles = {name: [role for role in _ROLES if self.count(type=name, role=role)] for name in self.types}
        columns = [(name, position, role) for name in self.types for role in roles[name] for position in POSITIONS]
        rated = [name for name in self.types if "meant" in roles[name]]
        header = (
            *("occupation", "stereotype"),
            *(f"{name} {position}{'' if role == 'open' else f', {role}'}" for name, position, role in columns),
            *(f"{name} meant rate" for name in rated),
        )
        rows = []
        for name, occupation in occupations().items():
            counts = (self.counts[Occurrence(kind, name, position, role)] for kind, position, role in columns)
            rates = (
                _rate(self.count(type=kind, occupation=name, role="meant"), self._named(kind, name)) for kind in rated
            )
            rows.append((name, occupation.stereotype, *map(str, counts), *rates))
        return CardTable(header=header, rows=tuple(rows))

    def _named(self, kind: str, occupation: str) -> int:
        return sum(self.count(type=kind, occupation=occupation, role=role) for role in ("meant", "not meant"))

    def _row(self, title: str, **wanted: str) -> tuple[str, ...]:
        words = [wanted[name] + _SUFFIX[name] for name in ("position", "stereotype") if name in wanted]
        label = "mentioned first: " + words[-1] if title == "first" else f"{title}: {', '.join(words)}"
        # Each sentence has exactly one occurrence mentioned first, and at most one that is meant.
        base = {"position": "first"} if title == "first" else {"role": "meant"}
        cells = []
        for name in self.types:
            n, total = self.count(type=name, **wanted), self.count(type=name, **base)
            cells.append(f"{n} ({_rate(n, total)})" if total else "none")
        return (label, *cells)


_ROLES: tuple[Role, ...] = ("meant", "not meant", "open")
_SUFFIX = {"position": " mentioned", "stereotype": "-stereotyped"}


def _rate(n: int, total: int) -> str:
    return f"{n / total:.3f}" if total else "none"


def _occurrences(sentence: Sentence) -> Iterable[Occurrence]:
    order = list(dict.fromkeys(mention.text for mention in sentence.targets))
    if len(order) != 2:
        return
    for position, occupation in zip(POSITIONS, order, strict=True):
        role: Role = "open"
        if sentence.referent is not None:
            role = "meant" if sentence.referent == occupation else "not meant"
        yield Occurrence(sentence.type or "no type", occupation, position, role)
