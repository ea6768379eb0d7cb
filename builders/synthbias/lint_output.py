"""The findings of ``lint`` as text, as annotations of GitHub and as SARIF."""

from __future__ import annotations

import importlib.metadata
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from biasboard.ground.plain_text import github_annotation, printable
from builders.build_command import aligned
from builders.dataset.card import CardTable
from builders.synthbias.checks.catalogue import CATALOGUE
from builders.synthbias.checks.check import SEVERITIES, SentenceFinding, Severity, at_least
from builders.synthbias.lint_report import LintReport, file_of

_LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "review": "notice", "note": "notice"}
"""Levels of GitHub's annotations."""


def text_lines(report: LintReport, least: Severity, most: int) -> Iterator[str]:
    """Yield the findings, the counts of each check and the balance, as aligned text."""
    rows, n_listed = [], Counter[str]()
    for finding in _shown(report, least):
        n_listed[finding.check] += 1
        if not most or n_listed[finding.check] <= most:
            rows.append((finding.id, finding.severity, finding.check, printable(_message(finding))))
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
    for table in (report.balance.summary(), _named_alone(report.balance.by_occupation())) if report.n_sentences else ():
        yield from aligned(table.header, table.rows)
        yield ""
    by_severity = [(name, sum(finding.severity == name for finding in report.findings)) for name in SEVERITIES]
    listed = ", ".join(f"{n:,} {name}{'s' * (n != 1)}" for name, n in by_severity)
    files = "1 file" if len(report.files) == 1 else f"{len(report.files):,} files"
    yield f"{report.n_sentences:,} sentences, {report.n_pairs:,} minimal pairs in {files}: {listed}"


def _named_alone(table: CardTable) -> CardTable:
    """Return the table of occupations without those that no sentence names."""
    return CardTable(
        header=table.header, rows=tuple(row for row in table.rows if any(cell.strip("0") for cell in row[2:-1]))
    )


def _shown(report: LintReport, least: Severity) -> list[SentenceFinding]:
    return [finding for finding in report.findings if finding.severity in at_least(least)]


def _message(finding: SentenceFinding) -> str:
    return finding.reason if finding.suggestion is None else f"{finding.reason}; write: {finding.suggestion}"


def _annotations(report: LintReport, least: Severity) -> Iterator[str]:
    for finding in _shown(report, least):
        yield github_annotation(
            _LEVELS[finding.severity],
            file=printable(file_of(finding)),
            line=finding.line,
            title=finding.check,
            text=printable(_message(finding)),
        )


def _sarif(report: LintReport, least: Severity) -> Iterator[str]:
    """Yield a log of the Static Analysis Results Interchange Format 2.1.0 (OASIS)."""
    shown = _shown(report, least)
    rules = list(dict.fromkeys(finding.check for finding in shown))
    driver = {
        "name": "biasboard",
        "version": importlib.metadata.version("biasboard"),
        "rules": [
            {
                "id": name,
                "shortDescription": {"text": CATALOGUE[name].description},
                "fullDescription": {"text": f"A sentence {CATALOGUE[name].requirement}."},
                "properties": {"severity": CATALOGUE[name].severity, "certainty": CATALOGUE[name].certainty},
            }
            for name in rules
        ],
    }
    results = [
        {
            "ruleId": finding.check,
            "ruleIndex": rules.index(finding.check),
            "level": _LEVELS[finding.severity].replace("notice", "note"),
            "message": {"text": printable(_message(finding))},
            "locations": [{"physicalLocation": _location(finding)}],
        }
        for finding in shown
    ]
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    yield json.dumps(log, indent=2)


def _location(finding: SentenceFinding) -> dict[str, object]:
    path = Path(file_of(finding))
    artifact = {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}
    region = {} if finding.line is None else {"region": {"startLine": finding.line}}
    return {"artifactLocation": artifact, **region}


FORMATS: Mapping[str, Callable[[LintReport, Severity], Iterator[str]]] = {"github": _annotations, "sarif": _sarif}
"""Formats for other tools, beside text."""
