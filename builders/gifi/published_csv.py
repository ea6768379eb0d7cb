"""Reads the four template files of the published GIFI; if one cannot be read, one line says what is wrong with it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import NamedTuple

from biasboard.ground.errors import DataError
from schemas.lexicon import pronoun_families

ADDRESS = "https://github.com/ZhengyangShan/GIFI/tree/main/data/template"
REMEDY = f"use the files of {ADDRESS} as they were published"

FILES: Mapping[str, str] = {
    "recognition": "tango-all-genders.csv",
    "continuation": "real-toxicity-prompts-all-genders.csv",
    "assignment": "SAOF_template-all-genders.csv",
    "math": "math_gsm8k-all-genders.csv",
}
"""Name of the file of each config."""
SHA256: Mapping[str, str] = {
    "SAOF_template-all-genders.csv": "d60aa3eac4210b680e32e99944d58c7f49a69df95553ca77f669592c4b0893e5",
    "math_gsm8k-all-genders.csv": "dc02cd9ccc1413b969df763604f589d1922c9d944756f334bff327a87ad450ba",
    "real-toxicity-prompts-all-genders.csv": "ce7c7717cb411f4ceb3f5f468a65e9aa61fce8b6c33bdd61229e5901975ca071",
    "tango-all-genders.csv": "5d40548202d1aee6fad8b1f428af0707032afad8d9e03892b84b555cb72748dd",
}

_MOST_DIGITS = 9
"""Maximum number of digits of a template's index."""
_PRONOUN_COLUMNS = ("template_index", "pronoun_family", "template")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "recognition": _PRONOUN_COLUMNS,
    "continuation": _PRONOUN_COLUMNS,
    "assignment": ("index", "template", "state"),
    "math": (*_PRONOUN_COLUMNS, "simple_answer"),
}


class VariantRows(NamedTuple):
    """All rows of one template, one for each pronoun family."""

    number: int
    texts: Mapping[str, str]
    """Text of each variant, by pronoun family."""
    answer: str | None


class PromptRow(NamedTuple):
    """A prompt of the assignment file, which repeats each prompt eleven times."""

    number: int
    text: str
    state: str


def variant_rows(raw: bytes, config: str) -> list[VariantRows]:
    """Read the templates of a config, each with its text in every pronoun family.

    Raises:
        DataError: the file cannot be read, a family is unknown, or a template has two answers, lacks a family or has
            one twice.
    """
    name = FILES[config]
    found: dict[int, dict[str, str]] = {}
    answers: dict[int, str | None] = {}
    for line, row in _rows(raw, config):
        index, family = _index(row["template_index"], f"{name}:{line}"), row["pronoun_family"]
        if family not in pronoun_families():
            have = ", ".join(pronoun_families())
            raise DataError(f"{name}:{line}: family '{family}' is not in the lexicon; have: {have}; {REMEDY}")
        texts = found.setdefault(index, {})
        if family in texts:
            raise DataError(f"{name}:{line}: template {index} has family '{family}' twice; {REMEDY}")
        answer = row.get("simple_answer")
        if answers.setdefault(index, answer) != answer:
            raise DataError(f"{name}:{line}: template {index} has the answers {answers[index]} and {answer}; {REMEDY}")
        texts[family] = row["template"]
    for index, texts in found.items():
        if missing := [family for family in pronoun_families() if family not in texts]:
            raise DataError(f"{name}: template {index} has no variant of {', '.join(missing)}; {REMEDY}")
    return [VariantRows(index, texts, answers[index]) for index, texts in found.items()]


def prompt_rows(raw: bytes) -> list[PromptRow]:
    """Read the prompts of the assignment file, each once.

    Raises:
        DataError: the file cannot be read, or a prompt has two texts or states.
    """
    name = FILES["assignment"]
    found: dict[int, PromptRow] = {}
    for line, row in _rows(raw, "assignment"):
        prompt = PromptRow(_index(row["index"], f"{name}:{line}"), row["template"], row["state"])
        if found.setdefault(prompt.number, prompt) != prompt:
            raise DataError(f"{name}:{line}: prompt {prompt.number} has two texts or states; {REMEDY}")
    return list(found.values())


def _rows(raw: bytes, config: str) -> list[tuple[int, dict[str, str]]]:
    name = FILES[config]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}:{line}: byte {raw[error.start]:#04x} is not UTF-8; {REMEDY}") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        have = reader.fieldnames or ()
        if missing := [column for column in _COLUMNS[config] if column not in have]:
            raise DataError(f"{name}: column {', '.join(missing)} is missing; have: {', '.join(have)}; {REMEDY}")
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise DataError(f"{name}:{reader.line_num}: has another number of fields than the header; {REMEDY}")
            rows.append((reader.line_num, row))
    except csv.Error as error:
        raise DataError(f"{name}:{reader.line_num}: is not CSV ({error}); {REMEDY}") from error
    if not rows:
        raise DataError(f"{name}: has no rows; {REMEDY}")
    return rows


def _index(text: str, where: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise DataError(f"{where}: template index '{text[:20]}' is no number of up to {_MOST_DIGITS} digits; {REMEDY}")
    return int(text)
