"""The source *synthbias*: the published data of Wang et al. 2025 (arXiv:2505.23996), converted and not corrected.

The data comes from https://github.com/apple/ml-synthbias under CC BY-NC-ND 4.0. It is read from a file that the user
provides, and the converted copy must stay with the user. Peculiarities of a row are flagged, never corrected. The
published columns do not say which two rows form a minimal pair, so this module finds the pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.progress import Report, silent
from builders.dataset.input_files import read_file
from builders.dataset.output import Draft, DraftSplit, ExtraFile
from builders.synthbias import published_card
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.catalogue import CATALOGUE, findings_in
from builders.synthbias.checks.collection import Collection
from builders.synthbias.checks.profiles import PUBLISHED_FLAGS
from builders.synthbias.checks.sentence import Sentence, required
from builders.synthbias.pair_selection import take_pairs
from builders.synthbias.pairing import case_of_pair, cluster_of, item_id, pair_key, stereotype_of, template_key
from builders.synthbias.published_csv import REMEDY, parse
from builders.synthbias.published_digests import PROTECTED, SHA256
from schemas.documents.dataset import Reject, Source
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import PronounGender

FILE_NAME = "synthbias_data.csv"

_UNPAIRED = CATALOGUE["unpaired"]


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
    paired = pair(Collection(rows))
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


def pair(rows: Collection) -> Paired:
    """Turn the minimal pairs of a file into items with their flags.

    Args:
        rows: All rows of the file; none contradicts itself.

    Returns:
        The items in the order of the rows, with types and sides mixed as in the file, and the rejected rows.
    """
    others = {one: other for pair in rows.pairs for one, other in (pair, reversed(pair))}
    found = findings_in(rows, (*PUBLISHED_FLAGS, _UNPAIRED.name))
    items, rejects = [], []
    for index, (row, findings) in enumerate(zip(rows.sentences, found, strict=True)):
        if index in others:
            flags = tuple(finding.check for finding in findings)
            items.append(_item(row, rows.sentences[others[index]], flags))
        else:
            # The licence forbids sharing converted text, and the rejects are written to the dataset.
            reason = findings[-1].reason
            rejects.append(Reject(candidate="", source_row=_source_row(row), rule=_UNPAIRED.name, reason=reason))
    return Paired(items, rejects)


def _item(row: Sentence, other: Sentence, flags: tuple[str, ...]) -> CoreferenceItem:
    pronoun, counterpart = row.pronouns[0], other.pronouns[0]
    gender: PronounGender = required(row.gender)
    pair_id = pair_key(required(row.type), row.masked, row.meant)
    return CoreferenceItem(
        item_id=item_id(pair_id, gender),
        pair_id=pair_id,
        cluster=cluster_of(*row.meant),
        sentence=row.text,
        pronoun=pronoun.text,
        pronoun_start=pronoun.start,
        pronoun_case=case_of_pair(pronoun.text, counterpart.text),
        pronoun_gender=gender,
        occupations=tuple(mention.text for mention in row.targets),
        referent=row.referent,
        reference=row.meant[0],
        stereotype=None if row.referent is None else stereotype_of(row.referent, gender),
        template_id=template_key(row.template),
        source_row=_source_row(row),
        flags=flags,
    )


def _source_row(row: Sentence) -> str:
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
        version="1.1.0",
        title="SynthBias, as published",
        builder="builders.synthbias.published",
        builder_version="1.1",
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
        reject_rules=(_UNPAIRED.as_rule(),),
        flag_rules=tuple(CATALOGUE[name].as_flag() for name in PUBLISHED_FLAGS),
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
