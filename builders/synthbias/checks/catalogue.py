"""All checks by name; each name is defined in one of the files by subject, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from builders.synthbias.checks.check import Check
from builders.synthbias.checks.mentioned import CHECKS as MENTIONED
from builders.synthbias.checks.repetition import CHECKS as REPETITION
from builders.synthbias.checks.wording import CHECKS as WORDING

_ALL: tuple[Check, ...] = (*WORDING, *MENTIONED, *REPETITION)

CATALOGUE: Mapping[str, Check] = MappingProxyType({check.name: check for check in _ALL})
"""Every check by name."""
