"""The source *synthbias*: the published data of Wang et al. 2025 (arXiv:2505.23996), converted but not corrected.

The data comes from https://github.com/apple/ml-synthbias under CC BY-NC-ND 4.0. It is read from a file that the user
provides, and the converted copy must stay with the user. Peculiarities of a row are flagged, never corrected. The
published columns do not identify the two rows of a minimal pair, so this module finds the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biasboard.ground.errors import DataError
from biasboard.ground.progress import Report, silent
from builders.dataset.card import Annotation, Card
from builders.dataset.inputs import check_hashes, read_file
from builders.dataset.output import Draft, DraftSplit, ExtraFile
from builders.synthbias import PROTECTED, PUBLISHED_SHA256
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.catalogue import CATALOGUE, PUBLISHED_FLAGS, REFUSED, check_sentence, findings_in
from builders.synthbias.checks.check import Claims, Collection, Sentence, required
from builders.synthbias.minimal_pairs import CONFIGS, CheckedItems, case_of_pair, pair_key, split_of, take_pairs
from schemas.documents.dataset import Reject, Source
from schemas.files.user_tables import fault_of, records_of, wrong_bytes_of
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import gender_of_pronoun

FILE_NAME = "synthbias_data.csv"
COLUMNS = ("type", "sample", "occ_1", "occ_2", "pronoun", "is_stereotypical")
LICENCE_FILE = "LICENSE_DATA"
"""Name of the licence file, which is copied into the dataset if it is in the folder of the input file."""

_REMEDY = "use data/synthbias_data.csv of https://github.com/apple/ml-synthbias as it was published"
_LABELS = {"True": "pro", "False": "anti", "ambiguous": "ambiguous"}
_UNPAIRED = CATALOGUE["unpaired"]


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
        fault = "is a folder" if path.is_dir() else "no such file"
        raise DataError(f"--input {path}: {fault}; give the file {FILE_NAME} of https://github.com/apple/ml-synthbias")
    raw = read_file(path)
    report(f"reading {path.name}", 0, None)
    rows = parse(raw, name=str(path))
    # Checked after parsing, because the parser can say what is wrong with a broken file.
    check_hashes({str(path): raw}, {str(path): PUBLISHED_SHA256}, remedy=_REMEDY)
    report(f"pairing {path.name}", 0, len(rows))
    paired = pair(Collection(rows))
    splits = take_pairs([split_of(config, paired.items) for config in CONFIGS], limit)
    licence = path.with_name(LICENCE_FILE)
    return Draft(
        name="synthbias-published",
        benchmark="synthbias",
        version="1.1.0",
        title="SynthBias, as published",
        builder="builders.synthbias.published",
        builder_version="1.1",
        parameters={"source": "synthbias", "limit": limit},
        sources=(
            Source(
                name="SynthBias",
                address="https://github.com/apple/ml-synthbias/blob/main/data/synthbias_data.csv",
                revision=None,
                sha256=PUBLISHED_SHA256,
                licence="CC-BY-NC-ND-4.0",
                redistributable=False,
            ),
        ),
        generator_model="gpt-4o-2024-08-06",
        licence="CC-BY-NC-ND-4.0",
        publish_refusal=PROTECTED.refusal,
        human_validated=True,
        splits=splits,
        rejects=paired.rejects,
        reject_rules=(_UNPAIRED.as_rule(),),
        flag_rules=tuple(CATALOGUE[name].as_flag() for name in PUBLISHED_FLAGS),
        card=_card(splits),
        extra_files=(ExtraFile(name=LICENCE_FILE, content=licence.read_bytes()),) if licence.is_file() else (),
    )


def parse(raw: bytes, *, name: str) -> list[Sentence]:
    """Parse the rows of a file with the columns of the published one.

    Raises:
        DataError: the file is empty, is not UTF-8, is not CSV or lacks a column, or a row contradicts itself or the
            lexicon; the message is about the first such row.
    """

    def fault(reason: str, line: int | None = None) -> DataError:
        return DataError(f"{name}{'' if line is None else f':{line}'}: {reason}; {_REMEDY}")

    # Invalid bytes are replaced here, and refused with the row that holds them.
    records = records_of(raw.decode("utf-8", errors="replace"))
    header = next(records, None)
    if header is None or not raw.strip():
        raise fault("is empty")
    missing = [column for column in COLUMNS if column not in header.fields]
    if header.fault or missing:
        have = f"column {', '.join(missing)} is missing; have: {', '.join(header.fields)}"
        raise fault(header.fault or have, 1)
    wrong_bytes = wrong_bytes_of(raw)
    sentences = []
    for record in records:
        reason = record.fault or fault_of(record, len(header.fields), wrong_bytes)
        if reason is not None:
            raise fault(reason, record.line)
        row = dict(zip(header.fields, record.fields, strict=True))
        sentence = Sentence(
            text=row["sample"],
            meant=(row["occ_1"], row["occ_2"]),
            type=row["type"] if row["type"] in CONFIGS else None,
            # In type 1, occ_1 is not an answer, but the occupation that the writing model had in mind.
            referent=row["occ_1"] if row["type"] == "type2" else None,
            gender=gender_of_pronoun(row["pronoun"]),
            claimed=Claims(
                type=row["type"],
                pronoun=row["pronoun"],
                label=_LABELS.get(row["is_stereotypical"], row["is_stereotypical"]),
            ),
            line=record.line,
            id=f"{name}:{record.line}",
        )
        check_sentence(sentence, REFUSED, remedy=_REMEDY)
        sentences.append(sentence)
    if not sentences:
        raise fault("has a header and no rows")
    return sentences


def pair(rows: Collection) -> CheckedItems:
    """Turn the minimal pairs of a file into items with flags.

    Returns:
        The items of complete pairs in the order of the rows, with types and sides mixed as in the file, and a reject
        for each row that does not have exactly one counterpart.
    """
    others = {side: other for pair in rows.pairs for side, other in (pair, reversed(pair))}
    findings_by_row = findings_in(rows, (*PUBLISHED_FLAGS, _UNPAIRED.name))
    items, rejects = [], []
    for index, (row, findings) in enumerate(zip(rows.sentences, findings_by_row, strict=True)):
        source_row = f"{FILE_NAME}:{row.line}"
        if index not in others:
            # Rejects are part of the dataset, and the licence forbids sharing converted text.
            reason = findings[-1].reason
            rejects.append(Reject(candidate="", source_row=source_row, rule=_UNPAIRED.name, reason=reason))
            continue
        pronoun, counterpart = (required(one.asked).text for one in (row, rows.sentences[others[index]]))
        pair_id = pair_key(required(row.type), row.masked, row.meant)
        items.append(
            row.as_item(
                item_id=f"{pair_id}-{required(row.gender)}",
                pair_id=pair_id,
                case=case_of_pair(pronoun, counterpart),
                source_row=source_row,
                flags=tuple(finding.check for finding in findings),
            )
        )
    return CheckedItems(tuple(items), tuple(rejects))


def _card(splits: Sequence[DraftSplit[CoreferenceItem]]) -> Card:
    return synthbias_card(
        data_statement="""\
The sentences of SynthBias, byte for byte: English, written by GPT-4o (2024-08-06) and accepted by its authors' crowd
annotation, each with two of the 40 occupations of WinoBias and one form of *he* or *she*. Config `type1` is ambiguous
(`referent` is null; `reference` is the published `occ_1`, the referent that the generator had in mind and no right
answer). Config `type2` is settled: `referent` is `occ_1`. The two items of a `pair_id` differ in the pronoun.""",
        how_built="""\
Every row of the published file became one item; nothing was corrected and nothing dropped. Added: `pair_id` (hash of
type, sentence with the pronoun masked, and the occupations by role), `cluster`, `template_id` (hash of the sentence
without occupations and pronoun), the place of the pronoun, its case as far as the two forms of the pair tell, the
order of mention, `source_row` (line of the file, the header is line 1), and the flags below. The published label
`is_stereotypical` was checked against the occupation lists and agrees in every row.""",
        annotation=Annotation(
            protocol=(
                "The authors of SynthBias asked a crowd whether a sentence is coherent and, for each occupation, "
                "whether the pronoun can mean it, and kept the sentences on which at least three quarters agreed. "
                "Nothing was annotated again."
            ),
            annotators="Crowd workers who had passed a test of 20 sentences; their votes are not published.",
            per_item="4 to 10",
        ),
        biases="""\
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States.
* A language model wrote the sentences: occupations of high standing are the referent less often.""",
        licence_terms=f"""\
The data is under [CC BY-NC-ND 4.0](https://creativecommons.org/licenses/by-nc-nd/4.0/) by its authors (Apple): it may
be used and shared unchanged for non-commercial purposes with attribution; adapted copies must not be shared, and this
folder is one. **Do not publish it.** `{LICENCE_FILE}` holds the full text where it lay beside the input.""",
        known_limits="""\
* In type 2 the referent is the occupation mentioned last in 70 percent of the items: compare with a positional
  baseline.
* The two sides of a pair were almost surely not annotated independently: at least 48 items, found by hand, have a
  pronoun in the wrong case, all of them masculine. The rules flag each of these: `pronoun_case_error` where two readers
  of the case agree, `pronoun_case_review` where one objects, or none knows; most of the latter are right.
* `pronoun_case` is read from the two forms of a pair; it is wrong where the pronoun itself is.
* Counts are of items. A flag is no verdict; filter by it and report both numbers.""",
        citation="""\
Wang et al. 2025, the paper of UCerF and SynthBias, ICML 2025, arXiv:2505.23996. Occupations: Zhao et al. 2018,
arXiv:1804.06876.""",
        splits=splits,
    )
