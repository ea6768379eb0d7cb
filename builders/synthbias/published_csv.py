"""Reads the published SynthBias CSV; if a file cannot be read, one line says what is wrong with it."""

from __future__ import annotations

import csv
import io
from typing import Literal, NamedTuple, TypeAlias, cast

from builders.synthbias.mentions import Mention, occupation_mentions, pronoun_mentions
from builders.synthbias.pairing import cluster_of, stereotype_of
from schemas.errors import DataError
from schemas.lexicon import PronounGender, gender_of_pronoun, occupations

COLUMNS = ("type", "sample", "occ_1", "occ_2", "pronoun", "is_stereotypical")
REMEDY = "use data/synthbias_data.csv of https://github.com/apple/ml-synthbias as it was published"

SampleType: TypeAlias = Literal["type1", "type2"]


class PublishedRow(NamedTuple):
    """A row whose columns agree with its sentence and with the lexicon."""

    line: int
    """Number of the row's first line in the file; the header is line 1."""
    type: SampleType
    sentence: str
    occ_1: str
    """Referent of a row of type 2, reference of a row of type 1."""
    occ_2: str
    pronoun: Mention
    gender: PronounGender
    mentions: tuple[Mention, ...]
    """Every occupation in the sentence, including a third one, in the order of the text."""


def parse(raw: bytes, *, name: str) -> list[PublishedRow]:
    """Parse the rows of the CSV.

    Args:
        raw: Content of the file.
        name: Name of the file in error messages.

    Raises:
        DataError: the file is empty, is not UTF-8, is not CSV or lacks a column, or a row contradicts itself or the
            lexicon.
    """
    if not raw.strip():
        raise DataError(f"{name}: is empty; {REMEDY}")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}:{line}: byte {raw[error.start]:#04x} is not UTF-8; {REMEDY}") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        header = next(reader)
        missing = [column for column in COLUMNS if column not in header]
        if missing:
            raise DataError(f"{name}:1: column {', '.join(missing)} is missing; have: {', '.join(header)}; {REMEDY}")
        line = reader.line_num + 1
        for fields in reader:
            if len(fields) != len(header):
                raise DataError(f"{name}:{line}: has {len(fields)} fields, the header {len(header)}; {REMEDY}")
            rows.append(_row(dict(zip(header, fields, strict=True)), line, f"{name}:{line}"))
            # A row with a quoted line break spans several lines, so the next row starts after the last line read.
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: is not CSV ({error}); {REMEDY}") from error
    if not rows:
        raise DataError(f"{name}: has a header and no rows; {REMEDY}")
    return rows


def _row(fields: dict[str, str], line: int, where: str) -> PublishedRow:
    sentence, occ_1, occ_2 = fields["sample"], fields["occ_1"], fields["occ_2"]
    if fields["type"] not in ("type1", "type2"):
        raise DataError(f"{where}: type '{fields['type']}' is not allowed; have: type1, type2; {REMEDY}")
    gender = gender_of_pronoun(fields["pronoun"])
    if gender is None:
        raise DataError(
            f"{where}: pronoun '{fields['pronoun']}' is not in the lexicon; "
            f"have: he, him, his, himself, she, her, hers, herself; {REMEDY}"
        )
    mentions = tuple(occupation_mentions(sentence))
    _check_occupations(occ_1, occ_2, mentions, where)
    row = PublishedRow(
        line=line,
        type=cast(SampleType, fields["type"]),
        sentence=sentence,
        occ_1=occ_1,
        occ_2=occ_2,
        pronoun=_pronoun(sentence, fields["pronoun"], where),
        gender=gender,
        mentions=mentions,
    )
    _check_label(row, fields["is_stereotypical"], where)
    return row


def _check_occupations(occ_1: str, occ_2: str, mentions: tuple[Mention, ...], where: str) -> None:
    for column, occupation in (("occ_1", occ_1), ("occ_2", occ_2)):
        if occupation not in occupations():
            known = ", ".join(sorted(occupations()))
            raise DataError(f"{where}: {column} '{occupation}' is not in the lexicon; have: {known}; {REMEDY}")
        times = sum(mention.text == occupation for mention in mentions)
        if times != 1:
            raise DataError(
                f"{where}: {column} '{occupation}' stands {times} times in the sentence, not once; {REMEDY}"
            )
    try:
        cluster_of(occ_1, occ_2)
    except ValueError as error:
        raise DataError(f"{where}: {error}, a pair has one of each list; {REMEDY}") from error


def _pronoun(sentence: str, pronoun: str, where: str) -> Mention:
    found = pronoun_mentions(sentence)
    if [mention.text for mention in found] != [pronoun]:
        listed = ", ".join(mention.text for mention in found) or "none"
        raise DataError(
            f"{where}: pronoun '{pronoun}' is not the one pronoun of the sentence; it has: {listed}; {REMEDY}"
        )
    return found[0]


def _check_label(row: PublishedRow, label: str, where: str) -> None:
    expected = "ambiguous"
    if row.type == "type2":
        # The file does not say which occupation the label refers to; in every published row it is occ_1.
        expected = "True" if stereotype_of(row.occ_1, row.gender) == "pro" else "False"
    if label != expected:
        raise DataError(
            f"{where}: is_stereotypical '{label}' contradicts the lexicon, which says {expected} "
            f"for '{row.pronoun.text}' and '{row.occ_1}' in {row.type}; {REMEDY}"
        )
