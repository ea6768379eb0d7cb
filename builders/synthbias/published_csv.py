"""Reads CSV files with the columns of the published SynthBias; a broken row is a finding and does not stop reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from builders.synthbias.checks.catalogue import REFUSED, SentencesRead, finding_of, sentences_to_build
from builders.synthbias.checks.sentence import Claims, SampleType, Sentence
from schemas.files.user_tables import fault_of, records_of, wrong_bytes_of
from schemas.lexicon import gender_of_pronoun

COLUMNS = ("type", "sample", "occ_1", "occ_2", "pronoun", "is_stereotypical")
REMEDY = "use data/synthbias_data.csv of https://github.com/apple/ml-synthbias as it was published"

_LABELS = {"True": "pro", "False": "anti", "ambiguous": "ambiguous"}


def parse(raw: bytes, *, name: str) -> list[Sentence]:
    """Parse the rows of a file to build a dataset from.

    Raises:
        DataError: the file is empty, is not UTF-8, is not CSV or lacks a column, or a row contradicts itself or the
            lexicon.
    """
    return sentences_to_build(_read(raw, name), REFUSED, remedy=REMEDY)


def _read(raw: bytes, name: str) -> SentencesRead:
    """Read the rows of a file; the claims of a row about its sentence are left to the checks of the catalogue."""
    # Invalid bytes are replaced here, so that each is a finding about its row and the other rows are checked.
    records = records_of(raw.decode("utf-8", errors="replace"))
    header = next(records, None)
    if header is None or not raw.strip():
        return SentencesRead([], [finding_of("broken_file", "is empty", name)])
    missing = [column for column in COLUMNS if column not in header.fields]
    if header.fault or missing:
        reason = header.fault or f"column {', '.join(missing)} is missing; have: {', '.join(header.fields)}"
        return SentencesRead([], [finding_of("broken_file", reason, name, 1)])
    wrong_bytes = wrong_bytes_of(raw)
    reading = SentencesRead([], [])
    for record in records:
        fault = record.fault or fault_of(record, len(header.fields), wrong_bytes)
        if fault is not None:
            reading.findings.append(finding_of("broken_row", fault, name, record.line))
            continue
        row = dict(zip(header.fields, record.fields, strict=True))
        reading.sentences.append(_sentence(row, record.line, f"{name}:{record.line}"))
    if not reading.sentences and not reading.findings:
        reading.findings.append(finding_of("broken_file", "has a header and no rows", name))
    return reading


def _sentence(row: Mapping[str, str], line: int, where: str) -> Sentence:
    # In type 1, occ_1 is not an answer, but the occupation that the writing model had in mind.
    is_settled = row["type"] == "type2"
    return Sentence(
        text=row["sample"],
        meant=(row["occ_1"], row["occ_2"]),
        type=cast(SampleType, row["type"]) if row["type"] in ("type1", "type2") else None,
        referent=row["occ_1"] if is_settled else None,
        gender=gender_of_pronoun(row["pronoun"]),
        claimed=Claims(
            type=row["type"],
            pronoun=row["pronoun"],
            label=_LABELS.get(row["is_stereotypical"], row["is_stereotypical"]),
        ),
        line=line,
        id=where,
    )
