"""The source *tango*: all sentences of TANGO's misgendering prompts (Ovalle et al. 2023, arXiv:2305.09941).

TANGO has a variant of each sentence in six pronoun families. A word that differs between the variants in *he* and *ey*
is a pronoun, and its form in *ey* gives its case. A word that is the same in these two but differs in *they* is a verb.
A sentence is used only if the resulting template reproduces TANGO's own strings for he, she, they and ey. TANGO's *xe*
has other forms than the lexicon, and its *fae* is not in the lexicon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from biasboard.ground.errors import DataError
from builders.dataset import inputs
from builders.dataset.output import Rule
from builders.gifi.variants import VariantFrame
from schemas.documents.dataset import Reject
from schemas.items.pronoun_text import Antecedent
from schemas.lexicon import PronounCase, pronoun_families
from schemas.lexicon.pronoun_template import Part, Slot, Template, Verb

ADDRESS = "https://github.com/amazon-science/tango"
FILE = "misgendering_prompts.csv"
SHA256 = "dfa0d72b927939e63885a0219d8b3de5af837a50a50b5161c24aef0cfeee6ed7"
REMEDY = f"use {FILE} of {ADDRESS} as it was published"
OWN_FAMILIES = ("he", "she", "they", "ey")
"""Families of TANGO with the same forms as in the lexicon."""

NOT_REGENERATED = Rule(
    name="not_regenerated", description="the template does not give the source's own strings for he, she, they and ey"
)
REJECT_RULES = (NOT_REGENERATED,)

_COLUMNS = ("template_idx", "ante", "ante_type", "pronoun_family", "template")
_ANTECEDENTS: Mapping[str, Antecedent] = {
    "ante_gendered_female": "feminine_name",
    "ante_gendered_male": "masculine_name",
    "ante_nongendered": "neutral_name",
    "distal": "distal",
}
# Possessive quantifier: a backtracking one takes minutes on a few kilobytes of punctuation.
_LEADING = re.compile(r"\W*+")


def read_file(path: Path) -> bytes:
    """Read TANGO's file, given its path or the folder that holds it.

    Raises:
        DataError: there is no such file.
    """
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise DataError(f"--input {path}: no such file; {REMEDY}")
    return inputs.read_file(path)


def frames(raw: bytes) -> tuple[list[VariantFrame], list[Reject]]:
    """Return a frame for each sentence, or a reject if its template does not reproduce the source.

    Raises:
        DataError: the file cannot be read, or a sentence lacks a pronoun family.
    """
    sentences: dict[tuple[str, str, str], dict[str, str]] = {}
    for line, row in inputs.csv_rows(raw, FILE, _COLUMNS, remedy=REMEDY):
        if row["ante_type"] not in _ANTECEDENTS:
            have = ", ".join(_ANTECEDENTS)
            raise DataError(f"{FILE}:{line}: ante_type '{row['ante_type']}' is not allowed; have: {have}; {REMEDY}")
        if not re.fullmatch(r"[0-9]{1,9}", row["template_idx"]):
            raise DataError(f"{FILE}:{line}: template_idx '{row['template_idx'][:20]}' is no number; {REMEDY}")
        key = row["template_idx"], row["ante"], row["ante_type"]
        sentences.setdefault(key, {})[row["pronoun_family"]] = row["template"]
    made: list[VariantFrame] = []
    rejects: list[Reject] = []
    for number, ((pattern, antecedent, antecedent_type), texts) in enumerate(sentences.items()):
        where = f"{FILE}, pattern {pattern}, antecedent '{antecedent}'"
        if missing := [family for family in OWN_FAMILIES if family not in texts]:
            raise DataError(f"{where}: has no variant of {', '.join(missing)}; {REMEDY}")
        template = _template(texts)
        if template is None or any(template.fill(family) != texts[family] for family in OWN_FAMILIES):
            reason = "its variants differ in more than pronouns and verbs, or in forms that the lexicon does not have"
            rejects.append(Reject(candidate=texts["he"], source_row=where, rule=NOT_REGENERATED.name, reason=reason))
            continue
        made.append(
            VariantFrame(
                template_id=f"tango-{int(pattern):02}-{number:03}",
                template=template,
                source_row=where,
                antecedent=_ANTECEDENTS[antecedent_type],
                topic=f"pattern {pattern}",
            )
        )
    return made, rejects


def _template(texts: Mapping[str, str]) -> Template | None:
    variants: list[Sequence[str]] = [re.split(r"(\s+)", texts[family]) for family in ("he", "ey", "they")]
    if len({len(tokens) for tokens in variants}) > 1:
        return None
    parts: list[Part] = []
    for he, ey, they in zip(*variants, strict=True):
        if he != ey:
            before, form, after = _split(ey)
            case = _case(form, he, before, after)
            if case is None:
                return None
            parts += [before, Slot(case), after]
        elif he != they:
            before, singular, after = _split(he)
            parts += [before, Verb(singular, they[len(before) : len(they) - len(after)]), after]
        else:
            parts.append(he)
    return Template(tuple(part for part in parts if part != ""))


def _split(token: str) -> tuple[str, str, str]:
    """Return the punctuation before a word, the word, and the punctuation after it."""
    before, behind = (len(match[0]) for text in (token, token[::-1]) if (match := _LEADING.match(text)) is not None)
    end = max(before, len(token) - behind)
    return token[:before], token[before:end], token[end:]


def _case(ey: str, he: str, before: str, after: str) -> PronounCase | None:
    for case, form in pronoun_families()["ey"].forms.items():
        if form == ey and he == before + pronoun_families()["he"].forms[case] + after:
            return case
    return None
