"""The source *synthbias*: the published data of Wang et al. 2025 (arXiv:2505.23996), converted and not corrected.

The data comes from https://github.com/apple/ml-synthbias under CC BY-NC-ND 4.0. It is read from a file that the user
provides, and the converted copy must stay with the user. Peculiarities of a row are flagged, never corrected. The
published columns do not say which two rows form a minimal pair, so this module finds the pairs.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from builders.input_files import read_file
from builders.output import Draft, DraftSplit, ExtraFile, Rule
from builders.synthbias import published_card
from builders.synthbias.cards import synthbias_card
from builders.synthbias.mentions import mask_pronouns
from builders.synthbias.pair_selection import take_pairs
from builders.synthbias.pairing import case_of_pair, cluster_of, item_id, pair_key, stereotype_of, template_key
from builders.synthbias.published_csv import REMEDY, PublishedRow, parse
from builders.synthbias.published_digests import PROTECTED, SHA256
from builders.synthbias.published_flags import CASE_ERROR_LINES, FLAG_RULES, flags_of, template_of
from schemas.dataset import Reject, Source
from schemas.errors import DataError
from schemas.items.coreference import CoreferenceItem
from schemas.progress import Report, silent

FILE_NAME = "synthbias_data.csv"
UNPAIRED_RULE = Rule(
    name="unpaired", description="exactly one other row has the other gender and is the same apart from the pronoun"
)


class Paired(NamedTuple):
    """The items of complete pairs, and a reject for each row that does not have exactly one counterpart."""

    items: list[CoreferenceItem]
    rejects: list[Reject]


def draft(path: Path, *, limit: int | None, report: Report = silent) -> Draft[CoreferenceItem]:
    """Build a draft of the published SynthBias.

    Args:
        path: Path of the published CSV file.
        limit: Maximum number of items; None for all.
        report: Called with the progress.

    Raises:
        DataError: the file is missing, cannot be read, or is not the published one.
        ConfigError: the limit is too small to keep a pair of each type.
    """
    if not path.is_file():
        found = "is a folder" if path.is_dir() else "no such file"
        raise DataError(f"--input {path}: {found}; give the file {FILE_NAME} of https://github.com/apple/ml-synthbias")
    raw = read_file(path)
    report(f"reading {path.name}", 0, None)
    rows = parse(raw, name=str(path))
    # Checked after parsing, because the parser can say what is wrong with a broken file.
    check_hash(raw, name=str(path))
    report(f"pairing {path.name}", 0, len(rows))
    paired = pair(rows, flags_of(rows, case_error_lines=CASE_ERROR_LINES))
    splits = take_pairs([_split("type1", paired.items), _split("type2", paired.items)], limit)
    return _draft(splits, paired.rejects, limit, _licence_file(path.parent))


def check_hash(raw: bytes, *, name: str) -> None:
    """Check that a file is the published one, byte for byte.

    Args:
        raw: Content of the file.
        name: Name of the file in error messages.

    Raises:
        DataError: the SHA-256 of the file differs.
    """
    found = hashlib.sha256(raw).hexdigest()
    if found != SHA256:
        raise DataError(f"{name}: sha256 {found} is not the published file's {SHA256}; {REMEDY}")


def pair(rows: Sequence[PublishedRow], flags: Sequence[tuple[str, ...]]) -> Paired:
    """Group the rows into minimal pairs and turn them into items.

    Args:
        rows: All rows of the file.
        flags: Flags of each row, shape (n_rows,).

    Returns:
        The items in the order of the rows, with types and sides mixed as in the file, and the rejected rows.
    """
    groups: dict[str, list[PublishedRow]] = defaultdict(list)
    keys = [pair_key(row.type, mask_pronouns(row.sentence), (row.occ_1, row.occ_2)) for row in rows]
    for row, key in zip(rows, keys, strict=True):
        groups[key].append(row)
    items, rejects = [], []
    for row, key, row_flags in zip(rows, keys, flags, strict=True):
        others = [other for other in groups[key] if other is not row]
        if len(others) == 1 and others[0].gender != row.gender:
            items.append(_item(row, others[0], key, row_flags))
        else:
            reason = f"{len(others)} other rows are the same apart from the pronoun, not one with the other gender"
            # The licence forbids sharing converted text, and the rejects are written to the dataset.
            rejects.append(Reject(candidate="", source_row=_source_row(row), rule=UNPAIRED_RULE.name, reason=reason))
    return Paired(items, rejects)


def _item(row: PublishedRow, other: PublishedRow, pair_id: str, flags: tuple[str, ...]) -> CoreferenceItem:
    settled = row.type == "type2"
    return CoreferenceItem(
        item_id=item_id(pair_id, row.gender),
        pair_id=pair_id,
        cluster=cluster_of(row.occ_1, row.occ_2),
        sentence=row.sentence,
        pronoun=row.pronoun.text,
        pronoun_start=row.pronoun.start,
        pronoun_case=case_of_pair(row.pronoun.text, other.pronoun.text),
        pronoun_gender=row.gender,
        occupations=tuple(mention.text for mention in row.mentions if mention.text in (row.occ_1, row.occ_2)),
        referent=row.occ_1 if settled else None,
        reference=row.occ_1,
        stereotype=stereotype_of(row.occ_1, row.gender) if settled else None,
        template_id=template_key(template_of(row)),
        source_row=_source_row(row),
        flags=flags,
    )


def _source_row(row: PublishedRow) -> str:
    return f"{FILE_NAME}:{row.line}"


def _split(config: str, items: Sequence[CoreferenceItem]) -> DraftSplit[CoreferenceItem]:
    return DraftSplit(
        config=config,
        split="test",
        item_shape="coreference",
        items=[item for item in items if item.pair_id.startswith(config)],
    )


def _licence_file(folder: Path) -> tuple[ExtraFile, ...]:
    path = folder / published_card.LICENCE_FILE
    return (ExtraFile(name=published_card.LICENCE_FILE, content=path.read_bytes()),) if path.is_file() else ()


def _draft(
    splits: tuple[DraftSplit[CoreferenceItem], ...],
    rejects: Sequence[Reject],
    limit: int | None,
    extra: tuple[ExtraFile, ...],
) -> Draft[CoreferenceItem]:
    return Draft(
        name="synthbias-published",
        benchmark="synthbias",
        version="1.0.0",
        title="SynthBias, as published",
        builder="builders.synthbias.published",
        builder_version="1.0",
        parameters={"source": "synthbias", "limit": limit},
        seed=None,
        sources=(
            Source(
                name="SynthBias",
                address="https://github.com/apple/ml-synthbias/blob/main/data/synthbias_data.csv",
                revision=None,
                sha256=SHA256,
                licence="CC-BY-NC-ND-4.0",
                redistributable=False,
            ),
        ),
        generator_model="gpt-4o-2024-08-06",
        licence="CC-BY-NC-ND-4.0",
        publish_refusal=PROTECTED.refusal,
        human_validated=True,
        splits=splits,
        rejects=tuple(rejects),
        reject_rules=(UNPAIRED_RULE,),
        flag_rules=FLAG_RULES,
        card=synthbias_card(
            data_statement=published_card.DATA_STATEMENT,
            how_built=published_card.HOW_BUILT,
            annotation=published_card.ANNOTATION,
            biases=published_card.BIASES,
            licence_terms=published_card.LICENCE_TERMS,
            known_limits=published_card.KNOWN_LIMITS,
            citation=published_card.CITATION,
            splits=splits,
        ),
        extra_files=extra,
    )
