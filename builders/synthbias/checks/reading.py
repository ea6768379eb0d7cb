"""The outcome of reading a file that may be broken."""

from __future__ import annotations

from typing import Literal, NamedTuple

from builders.synthbias.checks.catalogue import CATALOGUE
from builders.synthbias.checks.check import Finding
from builders.synthbias.checks.sentence import Sentence


class Reading(NamedTuple):
    """The sentences of a file, and a finding for each row or line that is none."""

    sentences: list[Sentence]
    findings: list[Finding]


def finding_of(check: Literal["broken_file", "broken_row"], reason: str, name: str, line: int | None = None) -> Finding:
    """Return a finding about a place in a file that gave no sentence."""
    where = name if line is None else f"{name}:{line}"
    return Finding(check, reason, CATALOGUE[check].severity, line, where)
