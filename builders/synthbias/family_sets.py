"""The source *families* on the minimal pairs of another dataset, such as sentences that a language model wrote.

Each pair becomes a set with a pronoun of every family in the same sentence, as the frames of this project do in
``families``, if code can tell the case of its pronoun and the plural of its verb. Every other pair is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from biasboard.ground.errors import ConfigError
from builders.dataset.card import Annotation, Card
from builders.dataset.output import Draft, DraftSplit, Rule
from builders.synthbias.annotation.annotated import AnnotatedDataset, Sides
from builders.synthbias.cards import synthbias_card
from builders.synthbias.checks.catalogue import CATALOGUE, first_finding
from builders.synthbias.checks.check import Claims, Sentence
from builders.synthbias.families import (
    BIASES,
    FAMILY_LIMITS,
    PLURAL_READING,
    PLURAL_VERB_UNKNOWN,
    family_sources,
    forms_table,
    plural_after,
    take_sets,
)
from builders.synthbias.minimal_pairs import case_of_pair, masked, mentions_in, template_key
from builders.synthbias.own_sentences import UNSETTLED_CASE
from schemas.documents.dataset import Manifest, Reject, Source
from schemas.items.coreference import CoreferenceItem
from schemas.items.family_coreference import FamilyCoreferenceItem

_CHECKS = ("one_pronoun", "plural_pronoun", "pronoun_case_error", "pronoun_case_review", "dative_or_possessive")
"""What no sentence of a set may have: a second pronoun, which would have to change too, a *they* that means others, or
a case that readers in code doubt."""
_INVERTED = re.compile(r"\b(?:was|is|has|does)\s+$")


def draft(dataset: AnnotatedDataset, *, name: str, limit: int | None) -> Draft[FamilyCoreferenceItem]:
    """Build a draft of the sets of a dataset of minimal pairs, in its configs and splits.

    Args:
        dataset: The dataset, whose licence and whose refusal to be published the sets take over.
        name: Name of the new dataset.
        limit: Maximum number of items, in whole sets; None for all.

    Raises:
        ConfigError: no pair makes a set, or the limit is too small.
    """
    manifest = dataset.manifest
    source = f"{manifest.name} {manifest.version}"
    checks = (CATALOGUE[check].as_rule() for check in ("not_minimal_pair", *_CHECKS))
    rejects: list[Reject] = []
    chosen: dict[str, CoreferenceItem] = {}
    for pair_id, sides in dataset.pairs.items():
        side = max(sides, key=lambda one: one.pronoun_gender == "masculine")
        reason = _unfit(sides, side)
        where = f"{source}: {side.source_row or side.item_id}"
        if reason is not None:
            rejects.append(Reject(candidate=side.sentence, source_row=where, rule=reason[0], reason=reason[1]))
            continue
        flags = tuple(dict.fromkeys(flag for one in sides for flag in one.flags))
        occupations, pronouns = mentions_in(side.sentence)
        template = side.template_id or template_key(masked(side.sentence, [*occupations, *pronouns]))
        chosen[pair_id] = replace(side, template_id=template, source_row=where, flags=flags)
    if not chosen:
        raise ConfigError(
            f"--with {dataset.folder}: no pair makes a set of pronoun families; the first, {rejects[0].source_row}, "
            f"{rejects[0].reason}"
        )
    masculine = [
        DraftSplit(
            config=entry.config,
            split=entry.split,
            item_shape="coreference",
            items=[chosen[pair_id] for pair_id in dict.fromkeys(item.pair_id for item in items) if pair_id in chosen],
        )
        for entry, items in dataset.splits
    ]
    splits, kept = take_sets([split for split in masculine if split.items], limit)
    return Draft(
        name=name,
        benchmark="synthbias",
        title=f"{manifest.title}, in eleven pronoun families",
        builder="builders.synthbias.family_sets",
        parameters={"source": "families", "with": source, "limit": limit},
        sources=(
            Source(
                name=manifest.name,
                address=f"dataset {manifest.name} built by {manifest.builder} {manifest.builder_version}",
                revision=manifest.version,
                sha256=manifest.content_sha256,
                licence=manifest.licence,
                redistributable=manifest.publish_refusal is None,
            ),
            *family_sources(),
        ),
        generator_model=manifest.generator_model,
        licence=manifest.licence,
        publish_refusal=manifest.publish_refusal,
        splits=splits,
        rejects=tuple(rejects),
        reject_rules=(*checks, UNSETTLED_CASE, PLURAL_READING, PLURAL_VERB_UNKNOWN),
        flag_rules=tuple(Rule(name=count.rule, description=count.description) for count in manifest.flags),
        card=_card(manifest, kept, len(chosen), len(rejects)),
        extra_files=tuple(dataset.licence_files()),
    )


def _unfit(sides: Sides, side: CoreferenceItem) -> tuple[str, str] | None:
    """Return the rule that keeps a pair from being a set, and why; None if the pair makes one."""
    (other,) = (one for one in sides if one is not side)
    before, after = _around(side)
    if (before, after) != _around(other):
        return "not_minimal_pair", f"differs from {other.item_id} in more than its pronoun"
    case = case_of_pair(side.pronoun, other.pronoun)
    if case is None or case != side.pronoun_case:
        forms = f"'{side.pronoun}' and '{other.pronoun}'"
        return UNSETTLED_CASE.name, f"has {forms}, which do not settle the case that the dataset says"
    sentence = Sentence(text=side.sentence, meant=(side.occupations[0], side.occupations[1]), claimed=Claims(case=case))
    finding = first_finding(sentence, _CHECKS)
    if finding is not None:
        return finding.check, finding.reason
    first, second = map(re.escape, side.occupations)
    both = re.search(rf"\b{first} and (?:the |an? )?{second}\b", side.sentence)
    if side.referent is not None and both is not None:
        return PLURAL_READING.name, f"has '{both[0]}', so that they is read as both"
    if case == "nominative" and (_INVERTED.search(before) is not None or plural_after(after) is None):
        return PLURAL_VERB_UNKNOWN.name, f"the plural of the verb in '{side.pronoun}{after[:40]}' is not known"
    return None


def _around(side: CoreferenceItem) -> tuple[str, str]:
    """Return the texts before and after the pronoun."""
    return side.sentence[: side.pronoun_start], side.sentence[side.pronoun_start + len(side.pronoun) :]


def _card(manifest: Manifest, splits: Sequence[DraftSplit[CoreferenceItem]], n_sets: int, n_rejects: int) -> Card:
    """Return the card of sets, given their masculine items."""
    return synthbias_card(
        data_statement=f"""\
The sentences of the dataset `{manifest.name}` {manifest.version}, each with two of the 40 occupations of WinoBias, in
eleven pronoun families: *he*, *she*, *they* and eight neopronoun families. Configs, splits, referents and occupation
pairs are those of that dataset, whose card says where the sentences come from. The items of a `set_id`, which is the
`pair_id` there, differ in the pronoun and, with *they*, in the verb that agrees with it.

**No human has validated these sentences with other pronouns than *he* and *she*.** Code put them in.""",
        how_built=f"""\
Of {n_sets + n_rejects:,} minimal pairs, {n_sets:,} became sets. The pronoun of each family comes from a table by case:

{forms_table().markdown()}

A pair is rejected, with its rule in `rejects.parquet`, if its sides differ in more than the pronoun, if it has a second
pronoun or a form of *they*, if the two forms or a reader in code leave its case in doubt, in type 2 if it joins the
occupations (*the cook and the nurse*), which *they* would mean both, or if code does not know the plural of the verb
whose subject is the pronoun (`texts/they.toml` of the builder).""",
        annotation=Annotation(
            protocol="Nobody annotated these items. What is ambiguous, and who is meant, is taken over.",
            annotators="No people.",
            per_item="0",
        ),
        biases=f"* The sentences have the biases of `{manifest.name}`; see its card.\n{BIASES}",
        licence_terms=f"The licence is that of `{manifest.name}`: {manifest.licence}. No further terms are added.",
        known_limits=f"""\
* *they* can mean both people, also where the sentence settles one of them for *he* (*met the nurse before they left*).
  Nobody judged that here; leave *they* out, or read the sentences, where it matters.
* A second verb of the same subject keeps its form where code does not see it.
{FAMILY_LIMITS}""",
        citation=f"""\
Cite the dataset `{manifest.name}` as its card asks, this project with the dataset version, and the works that it
follows: Wang et al. 2025 (UCerF and SynthBias, arXiv:2505.23996) and Shan et al. 2025 (GIFI, arXiv:2506.15568).""",
        splits=splits,
        of_sets=True,
    )
