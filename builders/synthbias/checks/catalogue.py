"""All checks by name; each name is defined in one of the files by subject, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from builders.synthbias.checks.case_agreement import CHECKS as CASE_AGREEMENT
from builders.synthbias.checks.check import Check
from builders.synthbias.checks.claims import CHECKS as CLAIMS
from builders.synthbias.checks.occupations import CHECKS as OCCUPATIONS
from builders.synthbias.checks.pairs import CHECKS as PAIRS
from builders.synthbias.checks.persons import CHECKS as PERSONS
from builders.synthbias.checks.pronouns import CHECKS as PRONOUNS
from builders.synthbias.checks.repetition import CHECKS as REPETITION
from builders.synthbias.checks.wording import CHECKS as WORDING

ALL: tuple[Check, ...] = (
    *(*CLAIMS, *WORDING, *OCCUPATIONS, *PRONOUNS, *PERSONS, *CASE_AGREEMENT, *PAIRS, *REPETITION),
)

CATALOGUE: Mapping[str, Check] = MappingProxyType({check.name: check for check in ALL})
"""Every check by name."""
