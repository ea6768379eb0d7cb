"""Reads anybody's sentences, and finds what is wrong with each, and with all of them together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

from biasboard.ground.errors import ConfigError
from builders.dataset.inputs import read_file
from builders.dataset.own_csv import read_tables
from builders.synthbias.balance import Balance
from builders.synthbias.checks.catalogue import (
    ABOUT_OCCUPATIONS,
    CATALOGUE,
    LINT,
    SentencesRead,
    finding_of,
    findings_in,
)
from builders.synthbias.checks.check import SentenceCheck, SentenceFinding, Severity, at_least
from builders.synthbias.checks.sentence import Collection, PairIndices, SampleType, Sentence, required
from builders.synthbias.own_sentences import FORM, sentence_of, sides_of
from builders.synthbias.winobias_text import Side, read_lines

_READ = ("broken_file", "broken_row", "two_occupations", "wrong_answer", "one_sided", "telling_place")
CHECKS = (*_READ, *LINT)
"""Names of all checks that a report can name."""
_TEXT_NAME = re.compile(r"(?:(pro|anti)_stereotyped_)?.*?(type[12])?(?:\.txt.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """The findings in some files, and the balance of their sentences."""

    files: tuple[str, ...]
    n_sentences: int
    n_pairs: int
    findings: tuple[SentenceFinding, ...]
    """Sorted by file and line; those about a whole file come first."""
    balance: Balance
    told: tuple[str, ...] = ()
    """Which columns of each CSV file are taken for what."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of findings of each check that has any, in the order of ``CHECKS``."""
        counts = Counter(finding.check for finding in self.findings)
        return {name: counts[name] for name in CHECKS if counts[name]}

    def reaches(self, severity: Severity) -> bool:
        """Return True if there is a finding of a severity or of a more severe one."""
        return any(finding.severity in at_least(severity) for finding in self.findings)


class _Read(NamedTuple):
    """Some files whose sentences are compared with each other."""

    collection: Collection
    findings: list[SentenceFinding]
    """Findings of the reader."""
    unclear: frozenset[int] = frozenset()
    """Indices of the sentences of which it is unknown which two occupations they are about."""
    told: tuple[str, ...] = ()


def lint(paths: Sequence[Path], *, mapped: Sequence[str] = (), ignored: Names[str] = ()) -> LintReport:
    """Check files: all ``.csv`` files together, and all other files together as text files of WinoBias.

    Args:
        paths: Files, and folders, of which the files ending in ``.csv``, ``.txt``, ``.txt.dev`` or ``.txt.test`` are
            checked.
        mapped: Headings of columns in the CSV files, each as ``COLUMN=HEADING``.
        ignored: Names of checks that are left out.

    Raises:
        ConfigError: a file does not exist, a folder has none of these files, or a column is unknown.
        DataError: a CSV file cannot be read, or lacks a column.
    """
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    tables = [file for file in files if file.suffix.casefold() == ".csv"]
    texts = [file for file in files if file.suffix.casefold() != ".csv"]
    read = [_read_tables(tables, mapped)] if tables else []
    if texts:
        read.append(_read_texts(texts))
    findings = (finding for part in read for finding in _findings(part) if finding.check not in ignored)
    return LintReport(
        files=tuple(map(str, files)),
        n_sentences=sum(len(part.collection.sentences) for part in read),
        n_pairs=sum(len(part.collection.pairs) for part in read),
        findings=tuple(sorted(findings, key=_order)),
        told=tuple(line for part in read for line in part.told),
        balance=Balance(sentence for part in read for sentence in part.collection.sentences),
    )


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise ConfigError(f"{path}: no such file or folder; give a CSV file, or text files of WinoBias")
        return [path]
    patterns = ("*.csv", "*.txt", "*.txt.dev", "*.txt.test")
    # The folder of WinoBias also holds lists of occupations.
    files = sorted(file for pattern in patterns for file in path.glob(pattern) if "occupations" not in file.name)
    if not files:
        raise ConfigError(f"{path}: no file ends in {', '.join(patterns)}; give the files themselves")
    return files


def _read_tables(paths: Sequence[Path], mapped: Sequence[str]) -> _Read:
    """Read CSV files as a dataset is built from them."""
    sentences: list[Sentence] = []
    findings: list[SentenceFinding] = []
    unclear: set[int] = set()
    tables = read_tables(FORM, paths, mapped)
    for path, table in zip(paths, tables, strict=True):
        for reject in table.rejects:
            line = int(required(reject.source_row).rpartition(":")[2])
            findings.append(finding_of("broken_row", reject.reason, str(path), line))
        for row in chain.from_iterable(map(sides_of, table.rows)):
            stated = sentence_of(row, table)
            sentence = replace(stated.sentence, id=f"{path}:{row.line}")
            if stated.fault is not None:
                findings.append(stated.fault._replace(id=sentence.id))
                unclear |= {len(sentences)} if stated.fault.check == "two_occupations" else set()
            sentences.append(sentence)
    return _Read(Collection(sentences), findings, frozenset(unclear), tuple(table.told for table in tables))


def _read_texts(paths: Iterable[Path]) -> _Read:
    """Read text files; line i of a file named *pro_...* forms a pair with line i of the one named *anti_...*."""
    readings = {path: _read_text(path) for path in paths}
    sentences = [sentence for reading in readings.values() for sentence in reading.sentences]
    findings = [finding for reading in readings.values() for finding in reading.findings]
    if any(path.name.startswith(("pro_", "anti_")) for path in readings):
        return _Read(Collection(sentences, _pairs_by_line(sentences)), findings)
    return _Read(Collection(sentences), findings)


def _read_text(path: Path) -> SentencesRead:
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


def _findings(read: _Read) -> Iterator[SentenceFinding]:
    yield from read.findings
    sentences = read.collection.sentences
    one_sided = dict(_one_sided(read.collection))
    for path, reason in one_sided.items():
        yield finding_of("one_sided", reason, path)
    yield from _cues(sentences)
    for index, findings in enumerate(findings_in(read.collection, LINT)):
        is_repeated = any(finding.check in ("duplicate_text", "repeated_wording") for finding in findings)
        has_wrong_form = any(finding.check == "pronoun_form" for finding in findings)
        for finding in findings:
            # Of a sentence that stands twice, the repetition is what is wrong.
            is_told = finding.check == "unpaired" and (file_of(finding) in one_sided or is_repeated)
            # What the readers of the case say of a form that cannot stand there means nothing.
            is_told = is_told or (has_wrong_form and finding.check in ("pronoun_case_error", "pronoun_case_review"))
            if is_told or (index in read.unclear and finding.check in ABOUT_OCCUPATIONS):
                continue
            check = CATALOGUE[finding.check]
            suggestion = check.suggestion(sentences[index]) if isinstance(check, SentenceCheck) else None
            yield finding._replace(suggestion=suggestion)


def _one_sided(collection: Collection) -> Iterator[tuple[str, str]]:
    """Yield each file of which most sentences have no counterpart, with a reason that stands for them all."""
    alone: dict[str, int] = defaultdict(int)
    total = Counter(sentence.id.rpartition(":")[0] for sentence in collection.sentences)
    for group in collection.sides:
        if len(group) == 1:
            alone[collection.sentences[group[0]].id.rpartition(":")[0]] += 1
    for path, n in alone.items():
        if n > max(1, total[path] / 2):  # Of a single sentence, the finding about its row says it.
            counts = f"{n:,} of {total[path]:,} sentences"
            yield path, f"{counts} have no row with the other pronoun; add those, or build with --complete-pairs"


# The published sentences mean the last occupation in .70 of cases; in fewer than ten, such a share is often chance.
_MOST_TELLING = 0.75
_LEAST_SENTENCES = 10


def _cues(sentences: Sequence[Sentence]) -> Iterator[SentenceFinding]:
    """Yield for each file a finding about what tells whom the pronouns mean, without understanding the sentences."""
    by_file: dict[str, list[Sentence]] = defaultdict(list)
    for sentence in sentences:
        if sentence.type == "type2" and sentence.referent is not None and len(sentence.targets) == 2:
            by_file[sentence.id.rpartition(":")[0]].append(sentence)
    for path, settled in by_file.items():
        n = len(settled)
        n_last = sum(sentence.targets[-1].text == sentence.referent for sentence in settled)
        most, place = max((n_last, "last"), (n - n_last, "first"))
        if n >= _LEAST_SENTENCES and most > _MOST_TELLING * n:
            share = f"the occupation mentioned {place} is meant in {most:,} of {n:,} settled sentences"
            yield finding_of("telling_place", f"{share}; write more in which it is the other one", path)


def file_of(finding: SentenceFinding) -> str:
    """Return the file that a finding is about."""
    return finding.id.rpartition(":")[0] if finding.line is not None else finding.id


def _order(finding: SentenceFinding) -> tuple[str, int, int]:
    return file_of(finding), finding.line or 0, CHECKS.index(finding.check)
