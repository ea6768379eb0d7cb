"""The dataset of accepted pairs, with the votes, the decisions and the card of the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from biasboard.ground.errors import DataError
from builders.dataset.card import Annotation, Card
from builders.dataset.output import Draft, DraftSplit, ExtraFile, Rule
from builders.synthbias.annotation.annotated import AnnotatedDataset
from builders.synthbias.annotation.deciding import (
    MAX_VOTES,
    MIN_VOTES,
    RULES,
    PairDecision,
    Policy,
    StopRule,
    are_decided_by_people,
    counting_ballots,
    rule_counts,
)
from builders.synthbias.annotation.safe_csv import render
from builders.synthbias.annotation.state import State, pseudonyms
from builders.synthbias.annotation.votes import AnnotatorKind, VoteQuestion
from builders.synthbias.cards import synthbias_card
from schemas.documents.dataset import Reject, Source
from schemas.files import row_files
from schemas.folders.dataset_folder import REJECTS
from schemas.items.coreference import CoreferenceItem

RELABELLED = Rule(name="relabelled", description="was written as type 2; the votes find that both can be meant")


def accepted_draft(
    annotated: AnnotatedDataset,
    state: State,
    policy: Policy,
    decisions: Sequence[PairDecision],
    *,
    name: str,
    version: str,
    state_folder: Path,
) -> Draft[CoreferenceItem]:
    """Build a draft of the accepted pairs.

    Raises:
        DataError: no pair is accepted.
    """
    manifest = annotated.manifest
    accepted = [pair for pair in decisions if pair.verdict == "accepted"]
    if not accepted:
        raise DataError(
            f"{annotated.folder}: no pair is accepted, so that there is nothing to write; collect more votes, or look "
            "at the reasons: biasboard build synthbias annotate decide --dry-run"
        )
    splits = tuple(_splits(annotated, accepted))
    source_rejects = row_files.read_rows(annotated.folder / REJECTS, Reject)
    is_open = manifest.publish_refusal is None
    rejects = (
        Reject(
            candidate=side.item.sentence if is_open else "",
            source_row=side.item.source_row or side.item.item_id,
            rule=rule.name,
            reason=reason,
        )
        for pair in decisions
        for side, (rule, reason) in zip(pair.sides, pair.rules, strict=False)
    )
    reject_rules = (*(Rule(name=count.rule, description=count.description) for count in manifest.rejects), *RULES)
    flag_rules = (Rule(name=count.rule, description=count.description) for count in manifest.flags)
    return Draft(
        name=name,
        benchmark=manifest.benchmark,
        version=version,
        title=f"{manifest.title}: pairs accepted by annotators",
        builder="builders.synthbias.annotation",
        parameters={
            **manifest.parameters,
            "annotation_stop_rule": policy.stop_rule.value,
            "annotation_relabel": policy.relabel,
            "annotation_count_models": policy.count_models,
            "annotation_count_untested": policy.count_untested,
        },
        seed=manifest.seed,
        sources=(
            *manifest.sources,
            Source(
                name=f"the annotated dataset, {manifest.name}",
                address=f"{manifest.name}@{manifest.version}, built by {manifest.builder} {manifest.builder_version}",
                revision=manifest.version,
                sha256=manifest.content_sha256,
                licence=manifest.licence,
                redistributable=manifest.redistributable,
            ),
        ),
        generator_model=manifest.generator_model,
        licence=manifest.licence,
        publish_refusal=manifest.publish_refusal,
        human_validated=are_decided_by_people(accepted, annotated, state, policy),
        splits=splits,
        rejects=(*source_rejects, *rejects),
        reject_rules=_distinct(*reject_rules),
        flag_rules=_distinct(*flag_rules, *((RELABELLED,) if policy.relabel else ())),
        card=_card(annotated, state, policy, decisions, splits),
        extra_files=tuple(_files(annotated, state, policy, decisions, state_folder)),
    )


def _distinct(*rules: Rule) -> tuple[Rule, ...]:
    return tuple({rule.name: rule for rule in rules}.values())


def _splits(annotated: AnnotatedDataset, accepted: Sequence[PairDecision]) -> Iterator[DraftSplit[CoreferenceItem]]:
    """Yield the splits of the source with the accepted items; relabelled items move to the config of type 1."""
    kept = {side.item.item_id: pair.is_relabelled for pair in accepted for side in pair.sides}
    by_split: dict[tuple[str, str], list[CoreferenceItem]] = {
        (entry.config, entry.split): [] for entry, _ in annotated.splits
    }
    for entry, items in annotated.splits:
        for item in items:
            if kept.get(item.item_id) is True:
                by_split.setdefault(("type1", entry.split), []).append(
                    replace(item, referent=None, stereotype=None, flags=(*item.flags, RELABELLED.name))
                )
            elif item.item_id in kept:
                by_split[entry.config, entry.split].append(item)
    for (config, split), kept_items in by_split.items():
        if kept_items:
            yield DraftSplit(config=config, split=split, item_shape="coreference", items=kept_items)


def _files(
    annotated: AnnotatedDataset, state: State, policy: Policy, decisions: Sequence[PairDecision], state_folder: Path
) -> Iterator[ExtraFile]:
    names = pseudonyms(state_folder, state.annotators)
    votes, annotators = _votes(annotated, state, policy, names), _annotators(state, names)
    for name, text, description in (
        ("votes", votes, "every vote on every item, with pseudonyms of the annotators"),
        ("annotators", annotators, "the annotators: kind, score in the entrance test, standing, number of votes"),
        ("decisions", _decisions(decisions), "the verdict on every item, with its votes"),
    ):
        yield ExtraFile(name=f"annotation/{name}.csv", content=text.encode(), description=description)
    yield ExtraFile(
        name=SOURCE_CARD,
        content=(annotated.folder / "README.md").read_bytes(),
        description="the card of the annotated dataset",
    )
    yield from annotated.licence_files()


def _votes(annotated: AnnotatedDataset, state: State, policy: Policy, names: Mapping[str, str]) -> str:
    """Return the votes without times and sources, which could identify somebody, sorted so as to hide their order."""
    counting = counting_ballots(state, policy)
    rows = [
        (
            vote.item_id,
            vote.pair_id,
            names[vote.annotator_id],
            state.annotators[vote.annotator_id].kind.value,
            vote.question.value,
            vote.answer.value,
            "yes" if vote.annotator_id in counting.get(vote.item_id, {}) else "no",
        )
        for vote in state.standing_votes.values()
        if vote.item_id in annotated.items
    ]
    return render(("item_id", "pair_id", "annotator", "kind", "question", "answer", "counts"), sorted(rows))


def _annotators(state: State, names: Mapping[str, str]) -> str:
    """Return the annotators by pseudonym; reasons are left out, since they are free text."""
    n_votes = Counter(vote.annotator_id for vote in state.standing_votes.values())
    rows = [
        (names[name], annotator.kind.value, annotator.entrance, annotator.status.value, str(n_votes[name]))
        for name, annotator in state.annotators.items()
    ]
    return render(("annotator", "kind", "entrance", "status", "n_votes"), sorted(rows))


def _decisions(decisions: Sequence[PairDecision]) -> str:
    columns = (
        *("item_id", "pair_id", "verdict_on_item", "verdict_on_pair", "rule", "reading"),
        *(f"{question}_{part}" for question in VoteQuestion for part in ("yes", "n")),
    )
    rows = []
    for pair in decisions:
        rules = [rule.name for rule, _ in pair.rules] or ["", ""]
        for side, rule in zip(pair.sides, rules, strict=True):
            counts = [str(number) for count in side.tally for number in count]
            rows.append((side.item.item_id, pair.pair_id, side.verdict, pair.verdict, rule, side.reading, *counts))
    return render(columns, rows)


def verdict_lines(decisions: Sequence[PairDecision]) -> Iterator[str]:
    """Yield the numbers of verdicts, and of items by rule."""
    verdicts = Counter(pair.verdict for pair in decisions)
    yield f"pairs: {verdicts['accepted']} accepted, {verdicts['rejected']} rejected, {verdicts['undecided']} undecided"
    counts = rule_counts(decisions)
    for rule in RULES:
        if counts[rule.name]:
            yield f"  {rule.name}: {counts[rule.name]} items"


SOURCE_CARD = "source/README.md"
"""The card of the annotated dataset, in the folder of accepted pairs."""
_STOPS = {
    StopRule.CLEAR: "when every answer was clear by the shares that accept and reject a sentence",
    StopRule.PAPER: "at a consensus of 75 percent on every question",
}


def _card(
    annotated: AnnotatedDataset,
    state: State,
    policy: Policy,
    decisions: Sequence[PairDecision],
    splits: Sequence[DraftSplit[CoreferenceItem]],
) -> Card:
    manifest = annotated.manifest
    verdicts = Counter(pair.verdict for pair in decisions)
    n_relabelled = sum(pair.is_relabelled for pair in decisions)
    relabelled = f"\n* {n_relabelled} pairs of type 2 were found open and are items of type 1 (flag `relabelled`)."
    return synthbias_card(
        data_statement=(
            f"The minimal pairs of `{manifest.name}` {manifest.version} that annotators accepted; the items are as "
            f"they are there. `{SOURCE_CARD}` is the card of that dataset and describes its sentences. What it says "
            "about validation was written before the annotation."
        ),
        how_built=f"""\
Annotators answered yes or no: is the sentence coherent, and if so, can the pronoun refer to the occupation \
mentioned first, and to the one mentioned second? An item is accepted if more than 75 percent find it \
coherent, and of those at least 75 percent say yes to both occupations (type 1), or at least 75 percent to \
the referent and less than 25 percent to the other (type 2). A pair is accepted if both sides are.

* {MIN_VOTES} to {MAX_VOTES} annotators for each item, until the voting stopped {_STOPS[policy.stop_rule]} \
(`{policy.stop_rule}`).
* {len(decisions)} pairs: {verdicts["accepted"]} accepted, {verdicts["rejected"]} rejected, {verdicts["undecided"]} \
undecided.
* Nobody's votes on both sides of a pair count, but for models, which remember nothing.
* Votes of models {"count like those of people" if policy.count_models else "do not count"}.\
{relabelled if policy.relabel else ""}""",
        annotation=_annotation(state, policy, decisions),
        biases=(
            f"* The biases of the source, in `{SOURCE_CARD}`, apply.\n"
            "* Pairs that annotators read alike are kept: what readers of another background find ambiguous is missing."
        ),
        licence_terms=(
            f"The sentences are under the licence of the dataset that was annotated, {manifest.licence}; "
            f"`{SOURCE_CARD}` has its terms."
        ),
        known_limits=(
            "* Votes say what annotators understand, not who they are: nothing is known about their background.\n"
            "* Selection by votes can change the balance of the design; see the table below.\n"
            f"* The limits of the source, in `{SOURCE_CARD}`, apply too."
        ),
        citation=(
            f"Cite the source, see `{SOURCE_CARD}`, and for the protocol Wang et al. 2025 (UCerF and SynthBias, "
            "arXiv:2505.23996)."
        ),
        splits=splits,
    )


def _annotation(state: State, policy: Policy, decisions: Sequence[PairDecision]) -> Annotation:
    voters = {name for ballots in counting_ballots(state, policy).values() for name in ballots}
    n_models = sum(state.annotators[name].kind is AnnotatorKind.MODEL for name in voters)
    counted = [side.tally.coherent.n for pair in decisions if pair.verdict == "accepted" for side in pair.sides]
    tested = "some of whom were tested elsewhere" if policy.count_untested else "who had passed an entrance test"
    return Annotation(
        protocol=(
            "Annotators answered yes or no: is the sentence coherent, and can the pronoun refer to each of the two "
            "occupations? *How it was built* says which votes accept a pair."
        ),
        annotators=(
            f"Votes of {len(voters) - n_models} people, {tested}, and of {n_models} models count. Nothing is known "
            "about the background of the people."
        ),
        per_item=f"{min(counted)} to {max(counted)}",
    )
