"""The source *csv*: minimal pairs of a researcher's own sentences, read from CSV files (own_csv).

The sentences pass the checks of those that a model writes. Where one side of a pair alone is in the files, it is
rejected, or the other one is written from it by swapping the pronoun, and flagged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from biasboard.ground.errors import ConfigError
from builders.dataset.card import Annotation, Card
from builders.dataset.licences import UNKNOWN, digests_of, holds_protected, licence_terms, publish_refusal
from builders.dataset.output import Draft, DraftSplit, Rule
from builders.dataset.own_csv import Form, OwnRow, OwnTable
from builders.pronoun_case import UnsettledCaseError, case_by_neighbours, cases_of_form
from builders.synthbias import PROTECTED
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.case_checks import case_by_phrase, case_readings
from builders.synthbias.checks.catalogue import CATALOGUE, OWN, OWN_FLAGS, all_findings, findings_in, first_finding
from builders.synthbias.checks.check import Claims, Collection, Sentence, SentenceFinding, required, word_list, words_of
from builders.synthbias.generation.generated import PUBLISHED, published_reject
from builders.synthbias.minimal_pairs import (
    CONFIGS,
    GENDERS,
    CheckedItems,
    Config,
    Position,
    Slotted,
    case_of_pair,
    items_of,
    mentions_in,
    split_of,
    take_pairs,
    wording,
)
from schemas.documents.dataset import Reject
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import PronounCase, gender_of_pronoun, occupations

FORM = Form(
    columns={
        "sentence": ("sentence", "text", "sample", "hesentence", "sentencehe", "malesentence", "sentencemale"),
        "pronoun": ("pronoun",),
        "occupation1": ("occupation1", "occ1", "person1", "firstoccupation", "firstperson", "occupation"),
        "occupation2": ("occupation2", "occ2", "person2", "secondoccupation", "secondperson", "person"),
        # The published SynthBias has no column for the answer: occ_1 is the one of type 2.
        "answer": ("answer", "referent", "correctanswer", "antecedent", "occ1"),
        "type": ("type", "sampletype", "sentencetype"),
        "pair": ("pair", "pairid", "pairnumber", "id", "itemid", "item"),
        "other": ("othersentence", "shesentence", "sentenceshe", "femalesentence", "sentencefemale", "counterpart"),
        "label": ("label", "isstereotypical", "stereotypical"),
    },
    needed=(
        (("sentence",), "the sentence"),
        (("answer", "type"), "the answer (whom the pronoun means) nor the type"),
    ),
    what="sentences",
)

UNSETTLED_CASE = Rule(
    name="unsettled_case",
    description="the words around its pronoun settle the form that the pronoun of the other side has",
)
SWAPPED = Rule(
    name="swapped_pronoun",
    description="was written by swapping the pronoun of the other side, which alone is in the file",
)
_REPEATS = ("repeated_text", "repeated_wording")
_TYPES: dict[str, Config] = {
    **dict.fromkeys(("type1", "type 1", "1", "open", "ambiguous"), "type1"),
    **dict.fromkeys(("type2", "type 2", "2", "settled", "unambiguous"), "type2"),
}
_BEFORE_CLAUSES = word_list(
    "and but or so as than that because since while when where whereas although if until before after"
)
_LABELS = {"true": "pro", "false": "anti"}
"""Labels of the published SynthBias."""
_OPEN_ANSWERS = ("ambiguous", "open", "both", "either", "unclear", "undetermined", "unknown", "none")


def draft(
    tables: Sequence[OwnTable],
    *,
    name: str,
    complete_pairs: bool,
    licence: str | None,
    limit: int | None,
    mapped: Sequence[str],
) -> Draft[CoreferenceItem]:
    """Build a draft of a researcher's sentences.

    Args:
        tables: The files.
        name: Name of the dataset.
        complete_pairs: True to write the side that a pair lacks.
        licence: SPDX identifier of the licence of the sentences, as the user states it; None if not known.
        limit: Maximum number of items; None for all.
        mapped: Headings that the user named, which are recorded.

    Raises:
        ConfigError: no pair is left, or the limit is too small.
    """
    checked = check(tables, complete_pairs=complete_pairs)
    if not checked.items:
        rules = Counter(reject.rule for reject in checked.rejects).most_common(3)
        counts = ", ".join(f"{n} {rule}" for rule, n in rules)
        first = checked.rejects[0]
        raise ConfigError(
            f"--source csv: no minimal pair is left; rows rejected: {counts}; the first, {first.source_row}, "
            f"{first.reason}; correct them ({'; '.join(table.told for table in tables)})"
        )
    checks = (CATALOGUE[check].as_rule() for check in (*OWN, "not_minimal_pair", "unpaired", *_REPEATS))
    splits = [split_of(config, checked.items) for config in CONFIGS]
    kept = take_pairs([split for split in splits if split.items], limit)
    return Draft(
        name=name,
        benchmark="synthbias",
        title="SynthBias, own sentences",
        builder="builders.synthbias.own_sentences",
        parameters={
            "source": "csv",
            "complete_pairs": complete_pairs,
            "map": ", ".join(mapped) or None,
            "licence": licence,
            "limit": limit,
        },
        sources=tuple(table.source(licence) for table in tables),
        licence=licence or UNKNOWN,
        publish_refusal=publish_refusal(licence, "sentences"),
        splits=kept,
        rejects=checked.rejects,
        reject_rules=(
            CATALOGUE["broken_row"].as_rule(),
            PUBLISHED,
            CATALOGUE["wrong_answer"].as_rule(),
            *checks,
            UNSETTLED_CASE,
        ),
        flag_rules=(*(CATALOGUE[flag].as_flag() for flag in OWN_FLAGS), SWAPPED),
        card=_card(tables, licence, kept),
    )


def check(
    tables: Sequence[OwnTable],
    *,
    complete_pairs: bool,
    published: frozenset[bytes] | None = None,
) -> CheckedItems:
    """Turn each row into an item, or into a reject with the first rule that it breaks.

    Args:
        tables: The files.
        complete_pairs: True to write the side that a pair lacks.
        published: Digests of texts that must not be shared; None for those of the published SynthBias.
    """
    published = digests_of(PROTECTED.digests) if published is None else published
    items: list[CoreferenceItem] = []
    rejects = [reject for table in tables for reject in table.rejects]
    sound: list[Sentence] = []
    # What both sides of a pair share according to the file, by row.
    names: dict[str, str] = {}
    for table in tables:
        for row in chain.from_iterable(map(sides_of, table.rows)):
            if holds_protected(row.values["sentence"], published):
                rejects.append(published_reject(row.where))
                continue
            sentence, fault = sentence_of(row, table)
            finding = fault or first_finding(sentence, OWN)
            if finding is not None:
                rejects.append(_reject(sentence, finding))
                continue
            sound.append(sentence)
            if row.values.get("pair"):
                names[row.where] = f"{table.name}: {row.values['pair']}"
    pairing = _Pairing(sound, names, complete_pairs=complete_pairs)
    for group in pairing.groups:
        items.extend(pairing.items(group, rejects))
    file_order = {table.name: number for number, table in enumerate(tables)}

    def place(reject: Reject) -> tuple[int, int]:
        file, _, line = required(reject.source_row).rpartition(":")
        return file_order[file], int(line)

    return CheckedItems(tuple(items), tuple(sorted(rejects, key=place)))


def _reject(sentence: Sentence, finding: SentenceFinding) -> Reject:
    return Reject(candidate=sentence.text, source_row=sentence.id, rule=finding.check, reason=finding.reason)


def sides_of(row: OwnRow) -> tuple[OwnRow, ...]:
    """Return a row for each sentence of a row: one, or both sides of a pair that stand beside each other."""
    other = row.values.get("other")
    if not other:
        return (row,)
    # What the file says of the pronoun is about the first sentence.
    of_both = {name: value for name, value in row.values.items() if name not in ("other", "pronoun", "label")}
    counterpart = row._replace(values={**of_both, "sentence": other})
    return (row, counterpart) if row.values["sentence"] else (counterpart,)


def sentence_of(row: OwnRow, table: OwnTable) -> tuple[Sentence, SentenceFinding | None]:
    """Return the sentence of a row, as far as the row says what it is about.

    Returns:
        The sentence, and a finding if the row does not say what its occupations or its answer are.
    """
    values = row.values
    mentions = mentions_in(values["sentence"])
    named = list(dict.fromkeys(mention.text for mention in mentions.occupations))
    given = [_occupation(values[column]) for column in ("occupation1", "occupation2") if values.get(column)]
    first, second, *_ = given if len(given) == 2 else [*named, "", ""]
    answer = values.get("answer", "")
    claimed = values.get("type") or None
    sample_type = None if claimed is None else _TYPES.get(claimed.casefold())
    if sample_type == "type1" and table.headings.get("answer") == table.headings.get("occupation1"):
        answer = ""  # As published: the first occupation of an open sentence is no answer.
    is_open = answer.casefold() in _OPEN_ANSWERS
    if claimed is None:
        sample_type = "type1" if is_open else "type2"
    referent = None if is_open or not answer else _occupation(answer)
    pronoun, label = values.get("pronoun") or None, values.get("label") or None
    gender = gender_of_pronoun(mentions.pronouns[0].text) if mentions.pronouns else None
    sentence = Sentence(
        text=values["sentence"],
        meant=(first, second),
        type=sample_type,
        referent=referent,
        gender=gender,
        claimed=Claims(
            type=sample_type or claimed,
            pronoun=pronoun and pronoun.casefold(),
            label=label and _LABELS.get(label.casefold(), label),
        ),
        line=row.line,
        id=row.where,
    )
    if len(given) < 2 and len(named) != 2:
        have = f"{len(named)} ({', '.join(named)})" if named else "none"
        reason = (
            f"names {have} of the {len(occupations())} occupations, and needs two; take others of the list, in lower "
            "case but for CEO, or name them in columns"
        )
        return sentence, CATALOGUE["two_occupations"].finding(sentence, reason)
    if len(given) == 1 and given[0] not in named:
        reason = f"names {' and '.join(named)}, not {given[0]}"
        return sentence, CATALOGUE["two_occupations"].finding(sentence, reason)
    fault = None if sample_type is None else _answer_fault(sample_type, answer, referent, (first, second))
    return sentence, None if fault is None else CATALOGUE["wrong_answer"].finding(sentence, fault)


def _answer_fault(sample_type: Config, answer: str, referent: str | None, meant: tuple[str, str]) -> str | None:
    first, second = meant
    if referent is not None and referent not in meant:
        return f"has the answer '{answer}', neither {first} nor {second}; write ambiguous if either may be meant"
    if sample_type == "type1" and referent is not None:
        return f"is type1, where either may be meant, and has the answer '{answer}'; leave it empty, or write type2"
    if sample_type == "type2" and referent is None:
        given = f"the answer '{answer}' in type2" if answer else "no answer"
        return f"has {given}; write {first} or {second}, or ambiguous in type1 if either may be meant"
    return None


def _occupation(value: str) -> str:
    """Return an occupation as the lexicon writes it; other values without a leading article."""
    words = value.split()
    name = " ".join(words[1:] if len(words) > 1 and words[0].casefold() in ("the", "a", "an") else words)
    return next((known for known in occupations() if known.casefold() == name.casefold()), name)


class _Pairing:
    """Makes pairs of sentences; remembers the pairs that were kept, so that later ones do not repeat them.

    ``names`` is what both sides of a pair share according to their file, by row.
    """

    def __init__(self, sentences: Sequence[Sentence], names: Mapping[str, str], *, complete_pairs: bool) -> None:
        self._complete_pairs = complete_pairs
        self._names = names
        groups: dict[object, list[Sentence]] = defaultdict(list)
        self._same_text: dict[str, list[Sentence]] = defaultdict(list)
        self._same_pair: dict[str, list[Sentence]] = defaultdict(list)
        for one in sentences:
            groups[one.type, one.masked, frozenset(one.meant), one.referent].append(one)
            self._same_text[one.masked].append(one)
            if one.id in names:
                self._same_pair[names[one.id]].append(one)
        self.groups = list(groups.values())
        """The sentences that are the same apart from the pronoun."""
        self._kept: dict[str, Sentence] = {}
        """A side of each kept pair, by its wording without the pronoun; its id says where it stands."""

    def items(self, group: Sequence[Sentence], rejects: list[Reject]) -> Iterator[CoreferenceItem]:
        """Yield the items of sentences that are the same apart from the pronoun, and add the others to the rejects."""
        by_gender = {one.gender: one for one in reversed(group)}
        chosen = [by_gender[gender] for gender in GENDERS if gender in by_gender]
        words = wording(group[0].masked)
        earlier = self._kept.get(words)
        if earlier is not None:
            rejects.extend(_repeated(one, earlier) for one in group)
            return
        slotted = self._slotted(chosen)
        if isinstance(slotted, SentenceFinding):
            rejects.extend(_reject(one, slotted) for one in group)
            return
        self._kept[words] = chosen[0]
        rejects.extend(_repeated(one, by_gender[one.gender]) for one in group if one not in chosen)
        for item in items_of(slotted, template_id=None, source_row=None):
            own = by_gender.get(item.pronoun_gender)
            sentence = Sentence(
                text=item.sentence, meant=(slotted.first, slotted.second), claimed=Claims(case=slotted.case)
            )
            flags = [finding.check for finding in all_findings(sentence, OWN_FLAGS)]
            yield replace(
                item,
                source_row=(own or chosen[0]).id,
                flags=tuple(flags if own else [*flags, SWAPPED.name]),
            )

    def _slotted(self, chosen: Sequence[Sentence]) -> Slotted | SentenceFinding:
        """Return the sentence with a slot for its pronoun, or the reason why there is no pair."""
        side = chosen[0]
        (pronoun,) = side.pronouns
        before, after = side.text[: pronoun.start], side.text[pronoun.end :]
        if len(chosen) == 2:
            case = case_of_pair(pronoun.text, chosen[1].pronouns[0].text)
            if case is None:
                return findings_in(Collection(chosen, [(0, 1)]), ("not_minimal_pair",))[0][0]
        else:
            missing = self._missing(side)
            if missing is not None:
                return missing
            case = case_of_swap(before, pronoun.text, after)
            if case is None:
                reason = (
                    f"has '{pronoun.text}', and its context leaves open which form the other side has; add that side"
                )
                return SentenceFinding(UNSETTLED_CASE.name, reason, "error")
        if any(not one.pronouns[0].text.islower() for one in chosen):
            return CATALOGUE["wrong_pronoun"].finding(side, f"has '{pronoun.text}' or its counterpart in capitals")
        first, second = (mention.text for mention in side.occupations)
        position: dict[str | None, Position] = {first: "first", second: "second"}
        config: Config = "type1" if side.type == "type1" else "type2"
        slotted = Slotted(config, before, case, after, first, second, position.get(side.referent))
        claims = Claims(case=case)
        masculine = Sentence(text=slotted.filled("masculine"), meant=(first, second), claimed=claims, id=side.id)
        return first_finding(masculine, ("pronoun_case_error",)) or slotted

    def _missing(self, side: Sentence) -> SentenceFinding | None:
        """Return what to say of a side without a counterpart; None if the other side is to be written."""
        unpaired = CATALOGUE["unpaired"]
        for other in self._same_text[side.masked]:
            if other.gender != side.gender:
                reason = f"the row with the other pronoun, {other.id}, has another type or answer; make them equal"
                return unpaired.finding(side, reason)
        for other in self._same_pair.get(self._names.get(side.id, ""), ()):
            if other.gender != side.gender:
                reason = f"differs from {other.id}, the row of the same pair, in more than its pronoun"
                return CATALOGUE["not_minimal_pair"].finding(side, reason)
        if self._complete_pairs:
            return None
        form = required(side.asked).text
        reason = f"has '{form}', and no row has the other pronoun in the same words; add it, or give --complete-pairs"
        return unpaired.finding(side, reason)


def _repeated(sentence: Sentence, earlier: Sentence) -> Reject:
    if sentence.masked == earlier.masked:
        return _reject(sentence, CATALOGUE["repeated_text"].finding(sentence, f"repeats {earlier.id}"))
    reason = f"repeats {earlier.id} apart from capitals and punctuation"
    return _reject(sentence, CATALOGUE["repeated_wording"].finding(sentence, reason))


def case_of_swap(before: str, form: str, after: str) -> PronounCase | None:
    """Return the case of a pronoun in a finished sentence; None if its context does not settle that of *her* or *his*.

    >>> case_of_swap("The cook met the nurse and praised ", "her", " work.")
    'possessive_dependent'
    >>> case_of_swap("The cook met the nurse and praised ", "his", ".")
    'possessive_independent'
    >>> case_of_swap("The cook met the nurse and gave ", "her", " food.") is None
    True
    """
    possible = cases_of_form(form)
    if len(possible) == 1:
        return next(iter(possible))
    if gender_of_pronoun(form) == "feminine":
        by_neighbours, by_phrase = case_readings(before, after)
        return by_neighbours if by_neighbours == by_phrase else None
    phrase = case_by_phrase(before, after)
    try:
        case = case_by_neighbours(
            next(reversed(words_of(before)), ""),
            form.casefold(),
            next(iter(words_of(after)), "") if after.startswith(" ") else "",
            lemma_of=str,
        )
    except UnsettledCaseError:
        return None
    if case == "possessive_dependent" and words_of(before)[-1:] and words_of(before)[-1] in _BEFORE_CLAUSES:
        return None  # The next word can be the verb: "and his shrank", beside "and his dog barked".
    # As if it were *her*, *his* by itself is read as an object.
    agreed = {"possessive_dependent": "possessive_dependent", "possessive_independent": "accusative"}
    return case if agreed.get(case) == phrase else None


def _card(
    tables: Sequence[OwnTable],
    licence: str | None,
    splits: Sequence[DraftSplit[CoreferenceItem]],
) -> Card:
    files = ", ".join(f"`{table.name}`" for table in tables)
    n_swapped = sum(SWAPPED.name in item.flags for split in splits for item in split.items)
    return synthbias_card(
        data_statement=f"""\
English sentences that whoever built this dataset brought along ({files}), each with two of the 40 occupations of
WinoBias and one form of *he* or *she* after both. Config `type1`: the file says that either may be meant (`referent` is
null, and `reference` is the occupation mentioned first). Config `type2`: it says who is meant. The two items of a
`pair_id` differ in exactly one token, the pronoun. `cluster` is the occupation pair, `source_row` file and line.""",
        how_built=f"""\
Two rows that are the same apart from the pronoun are a pair. Line breaks and repeated spaces became one space; nothing
else was changed. {n_swapped} items were written by swapping the pronoun of the other side, where the words around it
settle its case (flag `{SWAPPED.name}`). Every other row stands in `rejects.parquet` with its rule.""",
        annotation=Annotation(
            protocol=(
                "Whether a sentence is open, and whom its pronoun means, is what the files say; code checks the form "
                "alone. Nothing was annotated again."
            ),
            annotators="Whoever wrote the sentences; nothing is known about them.",
            per_item="1, by the writer of the sentence",
        ),
        biases="""\
* The sentences are what their writer thought of.
* Two genders alone: nobody is called by any other pronoun.
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States.""",
        licence_terms=licence_terms(licence, "sentences"),
        known_limits="""\
* **Only their writer has read the sentences.** Whether a pronoun is really open or settled, readers can tell
  (`annotate`).
* Two genders of pronouns, one language, the labour market of one country and year.
* A flag is no verdict; filter by it and report both numbers.""",
        citation="""\
Cite whoever wrote the sentences, this project with the dataset version, and the work that it follows: Wang et al. 2025
(UCerF and SynthBias, arXiv:2505.23996) and Zhao et al. 2018 (WinoBias, arXiv:1804.06876).""",
        splits=splits,
    )
