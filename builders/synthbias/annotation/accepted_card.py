"""The text of the card of a dataset of accepted pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from builders.dataset.card import Annotation, Card
from builders.dataset.output import DraftSplit
from builders.synthbias.annotation.deciding import PairDecision, Policy
from builders.synthbias.annotation.sentences import Annotated
from builders.synthbias.annotation.thresholds import MAX_VOTES, MIN_VOTES, StopRule
from builders.synthbias.cards import synthbias_card
from schemas.items.coreference import CoreferenceItem

SOURCE_CARD = "source/README.md"
"""The card of the annotated dataset, in the folder of accepted pairs."""
_STOPS = {
    StopRule.PAPER: "at a consensus of 75 percent on every question",
    StopRule.DECISIVE: "when no further votes could change the verdict",
}


def accepted_card(
    annotated: Annotated,
    policy: Policy,
    decisions: Sequence[PairDecision],
    splits: Sequence[DraftSplit[CoreferenceItem]],
    *,
    n_people: int,
    n_models: int,
) -> Card:
    """Return the card.

    Args:
        annotated: Dataset that was annotated.
        policy: Policy by which was decided.
        decisions: Decisions on all pairs.
        splits: Splits of the dataset of accepted pairs.
        n_people: Number of people whose votes count.
        n_models: Number of models whose votes count.
    """
    manifest = annotated.manifest
    return synthbias_card(
        data_statement=(
            f"The minimal pairs of `{manifest.name}` {manifest.version} that annotators accepted; the items are as "
            f"they are there. `{SOURCE_CARD}` is the card of that dataset and describes its sentences. What it says "
            "about validation was written before the annotation."
        ),
        how_built=_how_built(policy, decisions),
        annotation=_annotation(policy, decisions, n_people=n_people, n_models=n_models),
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


def _how_built(policy: Policy, decisions: Sequence[PairDecision]) -> str:
    verdicts = Counter(pair.verdict for pair in decisions)
    relabelled = sum(pair.is_relabelled for pair in decisions)
    lines = [
        "Annotators answered yes or no: is the sentence coherent, and if so, can the pronoun refer to the occupation "
        "mentioned first, and to the one mentioned second? An item is accepted if more than 75 percent find it "
        "coherent, and of those at least 75 percent say yes to both occupations (type 1), or at least 75 percent to "
        "the referent and less than 25 percent to the other (type 2). A pair is accepted if both sides are.",
        "",
        f"* {MIN_VOTES} to {MAX_VOTES} annotators for each item, until the voting stopped "
        f"{_STOPS[policy.stop_rule]} (`{policy.stop_rule}`).",
        f"* {len(decisions)} pairs: {verdicts['accepted']} accepted, {verdicts['rejected']} rejected, "
        f"{verdicts['undecided']} undecided.",
        "* Nobody's votes on both sides of a pair count, but for models, which remember nothing.",
        f"* Votes of models {'count like those of people' if policy.count_models else 'do not count'}.",
    ]
    if policy.relabel:
        lines.append(f"* {relabelled} pairs of type 2 were found open and are items of type 1 (flag `relabelled`).")
    return "\n".join(lines)


def _annotation(policy: Policy, decisions: Sequence[PairDecision], *, n_people: int, n_models: int) -> Annotation:
    counted = [side.tally.coherent.n for pair in decisions if pair.verdict == "accepted" for side in pair.sides]
    tested = "some of whom were tested elsewhere" if policy.count_untested else "who had passed an entrance test"
    return Annotation(
        protocol=(
            "Annotators answered yes or no: is the sentence coherent, and can the pronoun refer to each of the two "
            "occupations? *How it was built* says which votes accept a pair."
        ),
        annotators=(
            f"Votes of {n_people} people, {tested}, and of {n_models} models count. Nothing is known about the "
            "background of the people."
        ),
        per_item=f"{min(counted)} to {max(counted)}",
    )
