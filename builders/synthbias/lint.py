"""Reads anybody's sentences, whatever state they are in, and reports every finding about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

from biasboard.ground.errors import ConfigError
from builders.dataset.input_files import read_file
from builders.synthbias.checks.balance import Balance
from builders.synthbias.checks.catalogue import CATALOGUE, findings_in
from builders.synthbias.checks.check import Finding, Severity, at_least
from builders.synthbias.checks.collection import Collection, Pair
from builders.synthbias.checks.profiles import LINT
from builders.synthbias.checks.reading import Reading
from builders.synthbias.checks.sentence import SampleType, Sentence
from builders.synthbias.published_csv import COLUMNS, read_rows
from builders.synthbias.winobias_text import Side, read_lines

_READ = ("broken_file", "broken_row")
CHECKS = (*_READ, *LINT)
"""Names of all checks that a report can name."""
_TEXT_NAME = re.compile(r"(?:(pro|anti)_stereotyped_)?.*?(type[12])?(?:\.txt.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that was found in some files."""

    files: tuple[str, ...]
    n_sentences: int
    n_pairs: int
    findings: tuple[Finding, ...]
    """Sorted by file and line; those about a whole file come first."""
    balance: Balance

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of findings of every check that found something, in the order of ``CHECKS``."""
        found = Counter(finding.check for finding in self.findings)
        return {name: found[name] for name in CHECKS if found[name]}

    def reaches(self, severity: Severity) -> bool:
        """Return True if a finding is as grave as a severity, or graver."""
        return any(finding.severity in at_least(severity) for finding in self.findings)


class _Read(NamedTuple):
    """A file or files that are compared with each other."""

    collection: Collection
    findings: list[Finding]


def lint(paths: Sequence[Path], *, headings: Mapping[str, str]) -> Report:
    """Check files: each ``.csv`` file by itself, and all other files together as text files of WinoBias.

    Args:
        paths: Files, and folders whose files ending in ``.csv``, ``.txt``, ``.txt.dev`` or ``.txt.test`` are meant.
        headings: Heading of a column in the CSV files, for those that differ from the published ones.

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
    found = [finding for one in read for finding in _findings(one)]
    return Report(
        files=tuple(map(str, files)),
        n_sentences=sum(len(one.collection.sentences) for one in read),
        n_pairs=sum(len(one.collection.pairs) for one in read),
        findings=tuple(sorted(found, key=_place)),
        balance=Balance(sentence for one in read for sentence in one.collection.sentences),
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ConfigError(f"{path}: no such file or folder; give a CSV file, or text files of WinoBias")
    patterns = ("*.csv", "*.txt", "*.txt.dev", "*.txt.test")
    # Lists of occupations lie in the folder of WinoBias too.
    found = sorted(file for pattern in patterns for file in path.glob(pattern) if "occupations" not in file.name)
    if not found:
        raise ConfigError(f"{path}: no file ends in {', '.join(patterns)}; give the files themselves")
    return found


def _read_csv(path: Path, headings: Mapping[str, str]) -> _Read:
    reading = read_rows(read_file(path), name=str(path), headings=headings)
    return _Read(Collection(reading.sentences), reading.findings)


def _read_texts(paths: Iterable[Path]) -> _Read:
    """Read text files; line i of a file that begins with *pro* belongs to line i of the one that begins with *anti*."""
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


def _pairs_by_line(sentences: Sequence[Sentence]) -> list[Pair]:
    """Return the pairs of sentences whose places differ in nothing but *pro* and *anti*."""
    places: dict[str, dict[str, int]] = {}
    for index, sentence in enumerate(sentences):
        side = sentence.claimed.label
        if side is not None:
            folder, _, name = sentence.id.rpartition("/")
            places.setdefault(f"{folder}/{name.removeprefix(side)}", {})[side] = index
    return [Pair(found["pro"], found["anti"]) for found in places.values() if len(found) == 2]


def _findings(read: _Read) -> Iterator[Finding]:
    yield from read.findings
    for findings in findings_in(read.collection, LINT):
        yield from findings


def _place(finding: Finding) -> tuple[str, int, int]:
    name = finding.id.rpartition(":")[0] if finding.line is not None else finding.id
    return name, finding.line or 0, CHECKS.index(finding.check)


def as_json(report: Report) -> dict[str, object]:
    """Return a report as data: files, counts, findings and both tables of the balance."""
    tables = {"summary": report.balance.summary(), "by_occupation": report.balance.by_occupation()}
    return {
        "files": list(report.files),
        "n_sentences": report.n_sentences,
        "n_pairs": report.n_pairs,
        "counts": {
            name: {"n": n, "severity": CATALOGUE[name].severity, "certainty": CATALOGUE[name].certainty}
            for name, n in report.counts.items()
        },
        "findings": [
            {
                "place": finding.id,
                "line": finding.line,
                "check": finding.check,
                "severity": finding.severity,
                "reason": finding.reason,
            }
            for finding in report.findings
        ],
        "balance": {name: {"header": table.header, "rows": table.rows} for name, table in tables.items()},
    }
