"""The parts of a card that all sources share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from builders.dataset.card import Annotation, Card, CardTable
from builders.dataset.output import DraftSplit
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import occupations, pronoun_families
from schemas.lexicon.coreference_cues import CueText, best_cue

_INTENDED_USE = """\
To compare how language models resolve *he* and *she* next to occupations: item by item, always both sides of a minimal
pair, with accuracy beside every measure of equal behaviour. A model that answers at random or by position can behave
equally on both sides of every pair; read such scores next to the baselines."""

_OUT_OF_SCOPE_USE = """\
Do not use it to infer the gender of people from their occupation, name or text, nor to train or tune systems that do.
Do not use it to make decisions about people. Do not read a good score as the absence of bias: two pronouns, 40
occupations and one language are covered, and nothing else. Do not train on it a model that is evaluated on it."""

_INTENDED_USE_OF_SETS = """\
To compare how language models resolve the pronouns of all families in the same sentences: always whole sets, with
accuracy beside every measure of equal behaviour. A model that answers at random or by position behaves equally in all
families; read such scores next to the baselines."""

_OUT_OF_SCOPE_USE_OF_SETS = """\
Do not use it to infer the gender or the pronouns of people from their occupation, name or text. Do not read a good
score as the absence of bias: eleven families, 40 occupations and one language are covered, and nothing else. Do not
train on it a model that is evaluated on it."""

_N_SHOWN_CUES = 3
_TAGS = ("coreference-resolution", "gender-bias", "occupations", "minimal-pairs", "bias-evaluation")
_TAGS_OF_SETS = ("coreference-resolution", "neopronouns", "gender-bias", "occupations", "bias-evaluation")


def synthbias_card(
    *,
    data_statement: str,
    how_built: str,
    annotation: Annotation,
    biases: str,
    licence_terms: str,
    known_limits: str,
    citation: str,
    splits: Sequence[DraftSplit[CoreferenceItem]],
    of_sets: bool = False,
) -> Card:
    """Return a card, adding the parts that all sources share.

    ``of_sets`` is True for sets of pronoun families, whose splits have the masculine item of each set alone.
    """
    return Card(
        data_statement=data_statement,
        how_built=how_built,
        annotation=annotation,
        biases=biases,
        licence_terms=licence_terms,
        intended_use=_INTENDED_USE_OF_SETS if of_sets else _INTENDED_USE,
        out_of_scope_use=_OUT_OF_SCOPE_USE_OF_SETS if of_sets else _OUT_OF_SCOPE_USE,
        known_limits=f"{known_limits}\n\n{_without_understanding(splits)}",
        balance=_balance_of_sets(splits) if of_sets else balance_table(splits),
        citation=citation,
        task_categories=("multiple-choice",),
        tags=_TAGS_OF_SETS if of_sets else _TAGS,
    )


def _without_understanding(splits: Sequence[DraftSplit[CoreferenceItem]]) -> str:
    """Say how far the best cue gets in each split with right answers."""
    rows = []
    for split in splits:
        texts = [
            CueText(item.sentence, item.occupations, item.referent == item.occupations[0], item.template_id or "")
            for item in split.items
            if item.referent is not None
        ]
        if texts:
            best = best_cue(texts)
            points = [
                0.5 if guess is None else float(guess == text.means_first)
                for guess, text in zip(best.means_first, texts, strict=True)
            ]
            share = f"{sum(points) / len(points):.3f}"
            rows.append((f"{split.config}/{split.split}", share, "; ".join(best.rules[:_N_SHOWN_CUES])))
    if not rows:
        return "No item has a right answer that a cue could predict."
    table = CardTable(header=("", "predicted right", "cues that were best most often"), rows=tuple(rows))
    return f"""\
How far one gets without understanding a sentence: a search fits some hundred cues (words, positions, lengths and the
tables of up to three of them) on some frames and occupation pairs, and predicts the referents of others. The board has
these predictions as the baseline `best-cue`. A coin is right in 0.5:

{table.markdown()}"""


_GENDERS: tuple[tuple[str, Callable[[CoreferenceItem], bool]], ...] = (
    ("items", lambda item: True),
    ("masculine pronoun", lambda item: item.pronoun_gender == "masculine"),
    ("feminine pronoun", lambda item: item.pronoun_gender == "feminine"),
    ("pronoun agrees with the stereotype (pro)", lambda item: item.stereotype == "pro"),
    ("pronoun is against the stereotype (anti)", lambda item: item.stereotype == "anti"),
)
_OF_SENTENCES: tuple[tuple[str, Callable[[CoreferenceItem], bool]], ...] = (
    ("referent is mentioned first", lambda item: item.referent == item.occupations[0]),
    ("referent is mentioned second", lambda item: item.referent == item.occupations[1]),
    ("referent is male-stereotyped", lambda item: _referent_list(item) == "male"),
    ("referent is female-stereotyped", lambda item: _referent_list(item) == "female"),
    ("no referent: ambiguous", lambda item: item.referent is None),
    ("nominative", lambda item: item.pronoun_case == "nominative"),
    ("accusative", lambda item: item.pronoun_case == "accusative"),
    ("possessive, dependent", lambda item: item.pronoun_case == "possessive_dependent"),
    ("possessive, independent", lambda item: item.pronoun_case == "possessive_independent"),
    ("reflexive", lambda item: item.pronoun_case == "reflexive"),
    ("case unknown", lambda item: item.pronoun_case is None),
)
"""Properties of a sentence, whatever its pronoun."""


def balance_table(splits: Sequence[DraftSplit[CoreferenceItem]]) -> CardTable:
    """Count the items of each split by every property that a positional or one-sided predictor could exploit."""
    balance = (*_GENDERS, *_OF_SENTENCES)
    counts = [Counter(name for name, holds in balance for item in split.items if holds(item)) for split in splits]
    sides = [Counter(item.pair_id for item in split.items) for split in splits]
    pairs = ("minimal pairs", *(str(sum(n == 2 for n in of_split.values())) for of_split in sides))
    clusters = ("occupation pairs", *(str(len({item.cluster for item in split.items})) for split in splits))
    rows = [(name, *(str(count[name]) for count in counts)) for name, _ in balance]
    return CardTable(
        header=("", *(f"{split.config}/{split.split}" for split in splits)), rows=(rows[0], pairs, clusters, *rows[1:])
    )


def _balance_of_sets(splits: Sequence[DraftSplit[CoreferenceItem]]) -> CardTable:
    """Count the sets of each split, given their masculine items, by what a positional predictor could exploit."""
    counts = [Counter(name for name, holds in _OF_SENTENCES for item in split.items if holds(item)) for split in splits]
    rows = [
        ("items", *(str(len(pronoun_families()) * len(split.items)) for split in splits)),
        ("sets", *(str(len(split.items)) for split in splits)),
        ("occupation pairs", *(str(len({item.cluster for item in split.items})) for split in splits)),
        ("frames", *(str(len({item.source_row for item in split.items})) for split in splits)),
        *((f"sets: {name}", *(str(count[name]) for count in counts)) for name, _ in _OF_SENTENCES),
    ]
    return CardTable(header=("", *(f"{split.config}/{split.split}" for split in splits)), rows=tuple(rows))


def _referent_list(item: CoreferenceItem) -> str | None:
    return None if item.referent is None else occupations()[item.referent].stereotype
