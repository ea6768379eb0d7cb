"""The source *families*: the frames of this project with a pronoun of every family of the lexicon in the same sentence.

It extends the minimal pairs of UCerF (Wang et al. 2025, arXiv:2505.23996) to sets, whose groups are the eleven pronoun
families of GIFI (Shan et al. 2025, arXiv:2506.15568). Only the pronoun changes and, with *they*, the verb that agrees
with it. No human has validated the sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, get_args

from biasboard.ground.files import packaged_toml
from builders.dataset.card import Annotation, Card, CardTable
from builders.dataset.inputs import packaged_source
from builders.dataset.output import Draft, DraftSplit, Rule, take_units
from builders.synthbias import embedded
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.sentence_checks import MIN_PERCENT_GAP
from builders.synthbias.embedded import FilledFrame
from builders.synthbias.minimal_pairs import CONFIGS, split_of, spread
from schemas.documents.dataset import Reject, Source
from schemas.items.coreference import CoreferenceItem
from schemas.items.family_coreference import FamilyCoreferenceItem
from schemas.lexicon import CASES, PronounFamilyName, pronoun_families

BUILDER_VERSION = "2.0"
DATASET_VERSION = "2.0.0"

_THEY = "they.toml"
_FAMILIES: tuple[PronounFamilyName, ...] = get_args(PronounFamilyName)
_PARTNERS = 5
"""Number of occupations of the other list that each occupation is paired with, as far as the gap allows."""
PLURAL_VERB_UNKNOWN = Rule(
    name="plural_verb_unknown", description="the verb that agrees with the pronoun has a known plural, for they"
)
PLURAL_READING = Rule(name="plural_reading", description="type 2: they is not read first as both people, or as things")


BIASES = """\
* A stereotype is membership of the lists of WinoBias, which stand for the labour market of the United States and know
  two genders.
* Eight neopronoun families are a choice of GIFI; other families, and other forms of the same ones, are in use."""
FAMILY_LIMITS = """\
* *e* and *ey* share *em* and *emself*: in those cases both items of a set are the same text.
* Some forms have other uses too (*co*, *vi*, *e*, *es*), and a model may not take them for pronouns."""


@cache
def _they() -> Mapping[str, Any]:
    """Return what the file about *they* says.

    ``adverbs`` may stand between the pronoun and its verb, the verbs ``same`` are the same with *he* and *they*,
    ``plural`` has the plural of each verb that differs, and ``plural_reading`` the frames that *they* does not fit.
    """
    return packaged_toml("builders.synthbias", "texts", _THEY)


def plural_readings() -> dict[str, str]:
    """Return the reason why *they* does not fit, by template of frames."""
    return {row["template"]: row["reason"] for row in _they()["plural_reading"]}


def plural_after(text: str) -> str | None:
    """Return a text that follows *he* as it follows *they*; None if the plural of its verb is not known.

    A second verb of the same subject, as in *was late and has left*, is taken for one whose plural is not known.

    >>> plural_after(" rarely takes the stairs."), plural_after(" slept."), plural_after(" slowly, left.")
    (' rarely take the stairs.', ' slept.', None)
    """
    adverbs, same, plural = (_they()[name] for name in ("adverbs", "same", "plural"))
    adverb = rf"(?:{'|'.join(sorted(adverbs))}|\w+ly) "
    found = re.match(rf" (?:{adverb})*(\w+(?:n't)?)(?![\w'\u2019-])", text)
    if found is None:
        return None
    verb = found[1]
    if verb in same or verb.removesuffix("n't") in same or verb.endswith("ed"):
        made = verb
        second = "|".join(plural)
    elif verb in plural or _IN_PRESENT.fullmatch(verb) is not None:
        made = plural.get(verb) or _base(verb)
        second = rf"{'|'.join(plural)}|{_IN_PRESENT.pattern}"
    else:
        return None
    if re.search(rf"\b(?:and|or|but|then|yet) (?:{adverb})*(?:{second})\b", text) is not None:
        return None
    return text[: found.start(1)] + made + text[found.end(1) :]


_IN_PRESENT = re.compile(r"[a-z]{2,}[^\Wsu']s")
"""A verb of *he* in the present tense: no verb in the past ends in -s but *was*, which is listed."""


def _base(verb: str) -> str:
    """Return the regular verb whose form with *he* is given: tries, passes, goes, makes."""
    for ending, of_base in (("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("oes", "o")):
        if verb.endswith(ending):
            return verb.removesuffix(ending) + of_base
    return verb.removesuffix("s")


def draft(*, seed: int = embedded.DEFAULT_SEED, limit: int | None = None) -> Draft[FamilyCoreferenceItem]:
    """Build a draft of the dataset: sets of eleven items, four for an occupation pair in each config.

    Args:
        seed: Seed that chooses occupation pairs and assigns frames to them.
        limit: Maximum number of items, in whole sets; None for all.

    Raises:
        ConfigError: the limit is too small to keep a set of each type.
    """
    pairs, narrow = embedded.occupation_pairs()
    candidates = [(candidate, _unfit(candidate)) for candidate in _sampled(pairs, seed=seed)]
    unfit = [reject for _, reject in candidates if reject is not None]
    checked = embedded.check(candidate for candidate, reject in candidates if reject is None)
    masculine = [item for item in checked.items if item.pronoun_gender == "masculine"]
    splits, kept = take_sets([split_of(config, masculine) for config in CONFIGS], limit)
    return Draft(
        name="synthbias-families",
        benchmark="synthbias",
        version=DATASET_VERSION,
        title="SynthBias, embedded frames in eleven pronoun families",
        builder="builders.synthbias.families",
        builder_version=BUILDER_VERSION,
        parameters={"source": "families", "limit": limit, "min_percent_gap": MIN_PERCENT_GAP},
        seed=seed,
        sources=(*embedded.sources(), *family_sources()),
        licence="Apache-2.0",
        splits=splits,
        rejects=(*narrow, *unfit, *checked.rejects),
        reject_rules=(*embedded.reject_rules(), PLURAL_VERB_UNKNOWN, PLURAL_READING),
        card=_card(kept),
    )


def take_sets(
    masculine: Sequence[DraftSplit[CoreferenceItem]], limit: int | None
) -> tuple[tuple[DraftSplit[FamilyCoreferenceItem], ...], list[DraftSplit[CoreferenceItem]]]:
    """Make a set of each masculine side of a pair, and keep as many sets as a limit allows.

    Returns:
        The splits of the sets, and the masculine sides that they were made of.

    Raises:
        ConfigError: the limit is too small to keep a set of each split.
    """
    sets = [
        DraftSplit(
            config=split.config,
            split=split.split,
            item_shape="family_coreference",
            items=[member for item in split.items for member in set_of(item)],
        )
        for split in masculine
    ]
    splits = take_units(sets, limit, unit_name="set of pronoun families", order=spread)
    kept = {item.set_id for split in splits for item in split.items}
    return splits, [replace(one, items=[item for item in one.items if item.pair_id in kept]) for one in masculine]


def set_of(item: CoreferenceItem) -> Iterator[FamilyCoreferenceItem]:
    """Yield the member of each pronoun family, from the masculine side of a minimal pair whose case is known.

    Raises:
        ValueError: the case is unknown, or the plural of the verb is.
    """
    case = item.pronoun_case
    before, after = item.sentence[: item.pronoun_start], item.sentence[item.pronoun_start + len(item.pronoun) :]
    plural = plural_after(after) if case == "nominative" else after
    if case is None or plural is None or item.template_id is None:
        raise ValueError(f"{item.item_id}: its case, the plural of its verb or its frame is unknown")
    for family in _FAMILIES:
        form = pronoun_families()[family].forms[case]
        pronoun = form.capitalize() if item.pronoun[:1].isupper() else form
        yield FamilyCoreferenceItem(
            item_id=f"{item.pair_id}-{family}",
            set_id=item.pair_id,
            cluster=item.cluster,
            sentence=f"{before}{pronoun}{plural if family == 'they' else after}",
            pronoun=pronoun,
            pronoun_start=item.pronoun_start,
            pronoun_case=case,
            family=family,
            occupations=item.occupations,
            referent=item.referent,
            reference=item.reference,
            template_id=item.template_id,
            source_row=item.source_row,
            flags=item.flags,
        )


def _sampled(pairs: Sequence[tuple[str, str]], *, seed: int) -> Iterator[FilledFrame]:
    """Yield four minimal pairs of each type for a quarter of the occupation pairs, with each occupation equally often.

    Each type 1 frame of an occupation pair has one order of mention in it, and the other one in the next. Of a
    quadruple, one sentence means the occupation mentioned first and one the second; they differ in the stereotype of
    the referent, and the other quadruple of the occupation pair has the two that this one lacks.
    """
    rows, columns = ([*dict.fromkeys(names)] for names in zip(*pairs, strict=True))
    row, column = (
        {name: rank for rank, name in enumerate(embedded.shuffled(names, seed, purpose))}
        for names, purpose in ((rows, "families/rows"), (columns, "families/columns"))
    )
    # Diagonals of the grid: each row and each column has as many.
    kept = [(male, female) for male, female in pairs if (row[male] + column[female]) % len(rows) < _PARTNERS]
    # Eight of type 1 for each occupation pair, then eight of type 2 for each.
    of_pairs = [*embedded.candidates(kept, seed=seed)]
    half = len(of_pairs) // 2
    for number in range(len(kept)):
        start = 8 * number
        turn = number % 2
        yield from of_pairs[start + 4 * turn : start + 4 * turn + 4]
        for quadruple in (half + start, half + start + 4):
            yield from (of_pairs[quadruple + cell] for cell in ((0, 3), (1, 2))[turn])
            turn = 1 - turn


def _unfit(candidate: FilledFrame) -> Reject | None:
    """Return the reject of a candidate whose frame does not fit *they*; None if it does."""
    frame = candidate.frame
    slotted = frame.about(candidate.first, candidate.second)
    reason = plural_readings().get(frame.template_id or "")
    rule = "plural_reading"
    if reason is None and slotted.case == "nominative" and plural_after(slotted.after) is None:
        rule, reason = "plural_verb_unknown", f"the plural of the verb in '{slotted.after.strip()}' is not known"
    if reason is None:
        return None
    return Reject(candidate=slotted.filled("masculine"), source_row=frame.frame_id, rule=rule, reason=reason)


def family_sources() -> tuple[Source, ...]:
    """Return where the forms of the pronouns come from, and what *they* needs."""
    return (
        packaged_source(
            "pronoun families (table of GIFI, arXiv:2506.15568)",
            "schemas/lexicon/pronouns.json",
            revision=BUILDER_VERSION,
        ),
        packaged_source(
            f"what they needs in the frames of this project, {_THEY}",
            f"builders/synthbias/texts/{_THEY}",
            revision=BUILDER_VERSION,
        ),
    )


def forms_table() -> CardTable:
    """Return the form of each pronoun family in each case."""
    rows = tuple((family, *(pronoun_families()[family].forms[case] for case in CASES)) for family in _FAMILIES)
    return CardTable(header=("family", *(case.replace("_", " ") for case in CASES)), rows=rows)


def _card(splits: Sequence[DraftSplit[CoreferenceItem]]) -> Card:
    """Return the card of sets, given their masculine items."""
    readings = "\n".join(f"* `{template}`: {reason}." for template, reason in plural_readings().items())
    return synthbias_card(
        data_statement=f"""\
American English sentences with two of the 40 occupations of WinoBias and one pronoun after both, each sentence in
{len(_FAMILIES)} pronoun families: *he*, *she*, *they* and eight neopronoun families. Config `type1`: nothing settles
whom the pronoun means, so there is no right answer (`referent` is null, and `reference` is the occupation mentioned
first). Config `type2`: syntax, meaning or knowledge of the world settles the referent. The items of a `set_id` differ
in the pronoun and, with *they*, in the verb that agrees with it (*they were*). `cluster` is the occupation pair,
`source_row` the frame, and `template_id` what frames share that were written together.

**No human has validated these sentences, least of all those with neopronouns.** What is ambiguous and what is not was
decided when the frames were written for *he* and *she*, and no user of a neopronoun was asked about them. Rules in
code check form, not meaning.""",
        how_built=f"""\
The frames and their assignment to occupation pairs are those of the dataset synthbias {embedded.DATASET_VERSION}. So
that a small machine can score everything, the seed chooses a quarter of its occupation pairs, in which each
occupation has {_PARTNERS} partners (one less where a pair is rejected), and half of the sentences of each: four
frames of type 1, in one order of mention each, and of either quadruple of type 2 one sentence that means the
occupation mentioned first and one that means the second. Frames and occupation pairs stay crossed. The pronoun of
each family comes from a table by case:

{forms_table().markdown()}

* Verbs whose subject is *they* are plural, by a list (`texts/{_THEY}` of the builder). The rule
  `plural_verb_unknown` rejects a frame whose verb is not on it.
* Three quadruples of type 2 are rejected as a whole (`plural_reading`), because *they* is read first as both people or
  as things there, as judged by the author who read all frames in use with *they*:

{readings}""",
        annotation=Annotation(
            protocol=(
                "Nobody annotated the items. Whether a sentence is ambiguous, and whom its pronoun means, belongs to "
                "the frame and was decided when it was written for he and she."
            ),
            annotators="No people.",
            per_item="0",
        ),
        biases=f"""\
{BIASES}
* The frames are scenes of ordinary working life as their few authors imagine it, in American English.""",
        licence_terms=(
            "The sentences and their annotation are licensed under Apache-2.0, like the code that writes them."
        ),
        known_limits=f"""\
* *they* can mean both people. In many sentences of type 1 that is the more natural reading (*a big wave soaked them*),
  so that their *they* asks another question than *he* does. In type 2 nothing but the three rejected quadruples was
  judged to be read so, yet a plural is possible in more of them.
{FAMILY_LIMITS}
* A cell of one occupation and one family has five to ten items: its interval is wide.
* Both readings of type 1 are possible, but not always equally likely.""",
        citation="""\
Cite this project with the dataset version, and the work that it follows: Wang et al. 2025 (UCerF and SynthBias,
arXiv:2505.23996), Shan et al. 2025 (GIFI, arXiv:2506.15568) and Zhao et al. 2018 (WinoBias, arXiv:1804.06876).""",
        splits=splits,
        of_sets=True,
    )
