"""One catalogue of checks, for building, for flagging and for the command ``lint``.

::

    checks.toml             what each check says, how grave and how certain it is
    sentence_checks.py    \
    case_checks.py         > functions of the same names, which look for it (check.py turns them into checks)
    collection_checks.py  /
    catalogue.py            all checks by name, and the profiles: which checks a use makes, in which order
    repeated_sentences.py   candidates that repeat earlier ones, as they come
    sentence.py             what all of them look at

The signatures that a source of sentences needs::

    Sentence(text="The nurse ...", meant=("nurse", "guard"), type="type2", referent="nurse",
             gender="feminine", pronoun=None, line=None, id="")       # all by keyword; text and meant are required
    first_finding(sentence, GENERATED) -> Finding | None             # building: the first failing check
    all_findings(sentence, GENERATED) -> list[Finding]               # flagging and linting: all of them
    seen = Duplicates(template_cap=None, near=None)
    seen.add(sentence) -> Finding | None                             # one side of each minimal pair

A :class:`Finding` has ``check`` (name in the catalogue), ``reason``, ``severity``, ``line`` and ``id``. A profile such
as ``GENERATED`` is a tuple of names; ``CATALOGUE[name].as_rule()`` is the rule for the rejects of a draft. Checks of
one sentence need nothing but the sentence; those of pairs and whole files run where the file is known.
"""

from __future__ import annotations

from builders.synthbias.checks.catalogue import CATALOGUE, EMBEDDED, GENERATED, Profile, all_findings, first_finding
from builders.synthbias.checks.check import Check, Finding, Severity
from builders.synthbias.checks.repeated_sentences import Duplicates
from builders.synthbias.checks.sentence import Sentence

__all__ = [
    "CATALOGUE",
    "EMBEDDED",
    "GENERATED",
    "Check",
    "Duplicates",
    "Finding",
    "Profile",
    "Sentence",
    "Severity",
    "all_findings",
    "first_finding",
]
