"""The source *winobias*: the original WinoBias of Zhao et al. 2018 (arXiv:1804.06876), converted but not corrected.

The data comes from https://github.com/uclanlp/corefBias under the MIT licence. Line i of the pro-stereotypical file and
line i of the anti-stereotypical file form a pair. WinoBias names a referent in both types: world knowledge determines
it in type 1, syntax in type 2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from biasboard.ground.errors import DataError
from builders.dataset.card import Annotation, Card
from builders.dataset.inputs import check_hashes, read_files
from builders.dataset.output import Draft, DraftSplit, ExtraFile
from builders.pronoun_case import cases_of_form
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.catalogue import CATALOGUE, OLDER_NAMES, WINOBIAS_FLAGS, check_sentence, findings_in
from builders.synthbias.checks.check import Claims, Collection, Sentence, required
from builders.synthbias.embedded import text_of
from builders.synthbias.minimal_pairs import CONFIGS, Config, Mention, case_of_pair, mentions_in, take_pairs
from schemas.documents.dataset import Source
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import PronounCase, gender_of_pronoun, occupations

Side: TypeAlias = Literal["pro", "anti"]

ADDRESS = "https://github.com/uclanlp/corefBias/tree/master/WinoBias/wino/data"

SHA256: Mapping[str, str] = {
    "anti_stereotyped_type1.txt.dev": "a4e0ebae344e78b56f657a42e8ae684b9db7747d177c5e7149c0907ebb7f3bf6",
    "anti_stereotyped_type1.txt.test": "331db5bd74bfefebf146a60b67645152a4a1991570d2a56f57154103ac361dd2",
    "anti_stereotyped_type2.txt.dev": "763ad829ad724f9a85ead689ba8ca69072020cb1238def6210f0fc6a47b97e59",
    "anti_stereotyped_type2.txt.test": "336571ac1ea8c06cd2aba8e5dd2bd98e00acc0c48da3e4ec5ec7e54eb2633a8f",
    "female_occupations.txt": "693bff12286c2c1d46c7d4d45a44a631574710c30b39c1a3001bb7bdebb44ed8",
    "male_occupations.txt": "6b82d88847b69d56d207a0c396e9830b031890de585e916e6b4e9bc50672657e",
    "pro_stereotyped_type1.txt.dev": "dd55a0d220fe4c0ceb63dd4648223fb4fe1a58d5ad95c116a002ad24b0e292a5",
    "pro_stereotyped_type1.txt.test": "db7838907238a758eeb5779e48f38c013b892910d6fe864456c59f04245c6689",
    "pro_stereotyped_type2.txt.dev": "8f0250de723cea9328e3eaf7169e07936f01aa5909ce7aa580db66eb803f4e86",
    "pro_stereotyped_type2.txt.test": "ea1c1fd94fa612e3cc44d7fa3cc4cb76021bb63fdf94f9826f430051e9052438",
}
"""SHA-256 of each published file. The lexicon was made from the two lists of occupations."""

SPLITS = {"dev": "validation", "test": "test"}
"""Name of the split for each file extension."""
SIDES: tuple[Side, ...] = ("pro", "anti")

_REMEDY = "use WinoBias/wino/data of https://github.com/uclanlp/corefBias as it was published"
_REFUSED = ("same_list", "wrong_label")
"""Contradictions for which a line is refused; repeated occupations and pronouns are not, since WinoBias has them."""
_FLAGS = {name: OLDER_NAMES["winobias"].get(name, name) for name in WINOBIAS_FLAGS}
"""Flag of each check."""
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_ARTICLE = re.compile(r"^(?:the|an?) +", re.IGNORECASE)

MIT_NOTICE = text_of("winobias_licence.txt")
"""Licence notice of the repository, word for word, as the licence requires."""

LinePair: TypeAlias = tuple[Sentence, Sentence]
"""Line i of the pro-stereotypical file and line i of the anti-stereotypical file."""
Parsed: TypeAlias = Mapping[tuple[Config, str], Sequence[LinePair]]
"""The pairs of lines by config and split."""


def draft(folder: Path, *, limit: int | None) -> Draft[CoreferenceItem]:
    """Build a draft of WinoBias.

    Raises:
        DataError: a file is missing, cannot be read, or is not the published one.
        ConfigError: the limit is too small to keep a pair of each split.
    """
    files = read_files(folder, SHA256, what=f"the folder with the text files of WinoBias ({ADDRESS})", remedy=_REMEDY)
    parsed = parse(files)
    # Checked after parsing, because the parser can say what is wrong with a broken file.
    check_hashes(files, SHA256, remedy=_REMEDY)
    splits = take_pairs(to_splits(parsed), limit)
    return Draft(
        name="winobias",
        benchmark="synthbias",
        title="WinoBias",
        builder="builders.synthbias.winobias",
        parameters={"source": "winobias", "limit": limit},
        sources=tuple(
            Source(
                name=f"WinoBias {name}",
                address=f"{ADDRESS.replace('/tree/', '/blob/')}/{name}",
                revision=None,
                sha256=sha256,
                licence="MIT",
                redistributable=True,
            )
            for name, sha256 in SHA256.items()
        ),
        licence="MIT",
        human_validated=True,
        splits=splits,
        flag_rules=tuple(CATALOGUE[name].as_flag(flag) for name, flag in _FLAGS.items()),
        card=_card(splits),
        extra_files=(ExtraFile(name="LICENSE", content=MIT_NOTICE.encode()),),
    )


def parse(files: Mapping[str, bytes]) -> Parsed:
    """Parse the eight text files into pairs of lines, by config and split.

    Raises:
        DataError: a line cannot be read, or the two files of a split differ in length.
    """
    parsed: dict[tuple[Config, str], Sequence[LinePair]] = {}
    for config in CONFIGS:
        for ending, split in SPLITS.items():
            names = {side: f"{side}_stereotyped_{config}.txt.{ending}" for side in SIDES}
            pro, anti = (
                parse_file(files[name], name=name, side=side, sample_type=config) for side, name in names.items()
            )
            if len(pro) != len(anti):
                raise DataError(
                    "line i of each file belongs to line i of the other, but their lengths differ: "
                    f"{names['pro']} {len(pro)}, {names['anti']} {len(anti)}; {_REMEDY}"
                )
            parsed[config, split] = list(zip(pro, anti, strict=True))
    return parsed


def parse_file(raw: bytes, *, name: str, side: Side, sample_type: Config) -> list[Sentence]:
    """Parse the lines of a file: one sentence each, with its number, its referent and its pronouns in brackets.

    Args:
        raw: Content of the file.
        name: Name of the file in messages.
        side: ``pro`` if the sentences of the file agree with the stereotype, ``anti`` if they do not.
        sample_type: Type of the sentences. WinoBias names a referent in both types.

    Raises:
        DataError: the file is empty or not UTF-8, or a line cannot be read or contradicts the lexicon.
    """
    if not raw.strip():
        raise DataError(f"{name}: is empty; {_REMEDY}")
    sentences = []
    for number, line in enumerate(raw.splitlines(), 1):
        where = f"{name}:{number}"
        try:
            start, _, marked = line.decode("utf-8").partition(" ")
        except UnicodeDecodeError as error:
            raise DataError(f"{where}: byte {line[error.start]:#04x} is not UTF-8; {_REMEDY}") from error
        text, pronouns, named, is_repaired = without_markup(marked)
        fault = None
        if start != str(number):
            fault = f"starts with '{start[:20]}', not with its line number {number}"
        elif not pronouns:
            fault = "no form of he or she stands in brackets"
        elif len(named) != 1 or named[0] not in occupations():
            listed = ", ".join(f"'{name}'" for name in named) or "none"
            fault = f"exactly one of the 40 occupations has to stand in brackets, not {listed}"
        if fault is not None:
            raise DataError(f"{where}: {fault}; {_REMEDY}")
        pronoun, referent = pronouns[0], named[0]
        # The files mark the referent alone. The other occupation is not always the referent of the neighbouring line:
        # that guess is wrong in 4 of 3,168 lines. A third occupation, which 2 lines have, follows the pronoun.
        before = {mention.text for mention in mentions_in(text).occupations if mention.start < pronoun.start}
        if referent not in before or len(before) != 2:
            found = ", ".join(sorted(before)) or "none"
            raise DataError(f"{where}: two occupations have to stand before '{pronoun.text}', not {found}; {_REMEDY}")
        (distractor,) = before - {referent}
        sentence = Sentence(
            text=text,
            meant=(referent, distractor),
            type=sample_type,
            referent=referent,
            gender=gender_of_pronoun(pronoun.text),
            pronoun=pronoun,
            claimed=Claims(label=side, marked=pronouns, is_repaired=is_repaired),
            line=number,
            id=where,
        )
        check_sentence(sentence, _REFUSED, remedy=_REMEDY)
        sentences.append(sentence)
    return sentences


def without_markup(marked: str) -> tuple[str, tuple[Mention, ...], tuple[str, ...], bool]:
    """Remove the brackets from a text, and any article or space that is doubled around them.

    Returns:
        The sentence; the pronouns that were in brackets, with their offsets in the sentence; the other words that were,
        without their articles; and True if an article or a space was removed.

    >>> without_markup("The nurse saw the [the guard] and thanked [ him].")[0]
    'The nurse saw the guard and thanked him.'
    """
    sentence = ""
    pronouns, named = [], []
    is_repaired = False
    end = 0
    for match in _BRACKETS.finditer(marked):
        sentence += marked[end : match.start()]
        end = match.end()
        inside = match[1].strip()
        is_repaired |= inside != match[1]
        if gender_of_pronoun(inside) is not None:
            pronouns.append(Mention(inside, len(sentence), len(sentence) + len(inside)))
        else:
            bare = _ARTICLE.sub("", inside)
            named.append(bare)
            # The files write "[the nurse]", but also "the [nurse]" and "the [the physician]".
            if bare != inside and re.search(r"\b(?:the|an?) $", sentence[-6:], re.IGNORECASE):
                inside = bare
                is_repaired = True
        sentence += inside
    return sentence + marked[end:], tuple(pronouns), tuple(named), is_repaired


def to_splits(parsed: Parsed) -> list[DraftSplit[CoreferenceItem]]:
    """Turn pairs of lines into items, with the two sides of each pair next to each other."""
    lines = [line for of_split in parsed.values() for pair in of_split for line in pair]
    pairs = [(index, index + 1) for index in range(0, len(lines), 2)]
    findings = findings_in(Collection(lines, pairs), WINOBIAS_FLAGS)
    flags = {
        line.id: tuple(_FLAGS[finding.check] for finding in of_line)
        for line, of_line in zip(lines, findings, strict=True)
    }
    return [
        DraftSplit(
            config=config,
            split=split,
            item_shape="coreference",
            items=[
                line.as_item(
                    item_id=f"winobias-{config}-{split}-{number:03}-{line.claimed.label}",
                    pair_id=f"winobias-{config}-{split}-{number:03}",
                    case=_case(line, pair, flags[line.id]),
                    source_row=line.id,
                    flags=flags[line.id],
                )
                for number, pair in enumerate(of_split, 1)
                for line in pair
            ],
        )
        for (config, split), of_split in parsed.items()
    ]


def _case(line: Sentence, pair: LinePair, flags: tuple[str, ...]) -> PronounCase | None:
    """Return the case of a pronoun, or None if it is not certain."""
    # 19 of the 1,584 pairs differ in more than the pronoun, so that it has no counterpart.
    if not {"not_minimal_pair", "other_pronoun_marked"} & set(flags):
        return case_of_pair(*(required(side.pronoun).text for side in pair))
    possible = cases_of_form(required(line.pronoun).text)
    return next(iter(possible)) if len(possible) == 1 else None


def _card(splits: Sequence[DraftSplit[CoreferenceItem]]) -> Card:
    return synthbias_card(
        data_statement="""\
The sentences of WinoBias: English, written by its authors, each with two occupations and a pronoun that means one of
them. Config `type1`: world knowledge about what happens tells the referent, so unlike in SynthBias these items have a
`referent` too. Config `type2`: syntax tells it. Splits: `validation` is the published `.dev`, `test` the published
`.test`. The items of a `pair_id` are line i of the pro- and of the anti-stereotypical file; most differ in the pronoun
alone, some do not (flag `not_minimal_pair`).""",
        how_built="""\
Every line became one item; nothing was corrected and nothing dropped. Only markup was taken away: the number in front,
the brackets, and an article or a space that stands once inside and once before a bracket (flag `markup_repaired`); the
space before *'s* and every error of the source stay. `pronoun` is the first marked one, `referent` the marked
occupation, the other one is the other occupation before the pronoun. `pronoun_case` is null where neither the form
nor the counterpart tells it. Whether a line is pro- or anti-stereotypical was checked against the occupation lists.""",
        annotation=Annotation(
            protocol=(
                "The authors of WinoBias wrote each sentence for one referent and marked it and the pronoun. Nothing "
                "was annotated again; every mark that cannot be read or contradicts the occupation lists is flagged."
            ),
            annotators=(
                "The authors of WinoBias and researchers who knew the project; nothing else is published about them."
            ),
            per_item="1, by the writer of the sentence",
        ),
        biases="""\
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is a majority of women or men in an occupation in the United States in 2017.
* The position of the referent gives it away in type 2, and the sentences of a type follow one pattern.""",
        licence_terms="""\
WinoBias is under the MIT licence, copyright (c) 2020 Natural Language Processing @UCLA; the notice is in `LICENSE` and
has to stay with every copy.""",
        known_limits="""\
* In type 2 the referent is the occupation mentioned last in nearly every item, so position alone solves it.
* All pairs of occupations are there, also those whose shares of women hardly differ (flag `within_10_points`).
* A few texts stand in both splits (flag `duplicate_text`).
* Counts are of items. A flag is no verdict; filter by it and report both numbers.""",
        citation="""\
Zhao et al. 2018, Gender Bias in Coreference Resolution: Evaluation and Debiasing Methods, NAACL 2018,
arXiv:1804.06876.""",
        splits=splits,
    )
