"""The texts of the cards of the gifi datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from builders.dataset.card import Annotation, Card, CardTable
from builders.dataset.output import DraftSplit
from schemas.documents.item_shape import Item
from schemas.items.assignment import AssignmentItem
from schemas.items.pronoun_text import PronounTextItem
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon import CASES, pronoun_families

_INTENDED_USE = """\
To compare how a language model treats eleven pronoun families: always all variants of a template, each family's value
beside the index. A model that repeats its prompt recognises pronouns nearly perfectly; look at the echo rate too."""

_OUT_OF_SCOPE_USE = """\
Do not use it to infer the gender or the pronouns of people from their occupation, traits, name or text, nor to train or
tune systems that do. Do not use it to make decisions about people. Do not read a good score as the absence of bias. Do
not train on it a model that is evaluated on it."""

DATA_STATEMENT = """\
English texts about one person, each written once with slots for pronouns of a given case and for verbs that agree with
them, and filled for he, she, they, thon, e, ae, co, vi, xe, ey and ze. The items of a `template_id` differ in nothing
else: it is the unit of resampling. `cases` names the case of each slot. Config `assignment` has no pronoun: the model
adds one. `em` and `emself` belong to both *e* and *ey*, so that some of their variants are equal; a flag says so.

**No human has validated these texts** beyond those who wrote or tagged them."""

KNOWN_LIMITS = """\
* The forms of a family are one spelling of several in use; people who use neopronouns were not asked.
* Under *they* a text may be read as of several people, however its verbs agree.
* Names and words around the pronoun may hint at a gender; the same hint stands in all variants.
* One language, and the everyday life of few countries."""

ANNOTATION = Annotation(
    protocol=(
        "The places of pronouns and of verbs that agree with them were marked in each text as *How it was built* says, "
        "and all variants follow from the marks. Whether a text suits a pronoun family was asked of nobody."
    ),
    annotators="Those who wrote or tagged the texts, or a program; no people who use neopronouns were asked.",
    per_item="1 per template",
)

BIASES = """\
* One spelling stands for each family, and the eleven families are not all that are in use.
* Texts were written or chosen for *he* and *she* first, so that they may suit other families less well.
* Who holds an attribute to be feminine or masculine is a belief of few countries, which the data repeats to measure
  it."""

PAPER = "Shan et al. 2025 (GIFI, arXiv:2506.15568, ACL 2025)"


def gifi_card(
    splits: Sequence[DraftSplit[Item]], *, how_built: str, licence_terms: str, known_limits: str = "", citation: str
) -> Card:
    """Return the card: the given texts of the source, and those that all sources share."""
    return Card(
        data_statement=DATA_STATEMENT,
        how_built=how_built,
        annotation=ANNOTATION,
        biases=BIASES,
        licence_terms=licence_terms,
        intended_use=_INTENDED_USE,
        out_of_scope_use=_OUT_OF_SCOPE_USE,
        known_limits=f"{KNOWN_LIMITS}\n{known_limits}".strip(),
        balance=_balance(splits),
        citation=f"Cite this project with the dataset version, {citation} and {PAPER}.",
        task_categories=("text-generation",),
        tags=("pronouns", "gender-bias", "neopronouns", "bias-evaluation"),
    )


def _balance(splits: Sequence[DraftSplit[Item]]) -> CardTable:
    counts = [_counted(split.items) for split in splits]
    names = dict.fromkeys(name for name in _row_names() if any(count[name] for count in counts))
    rows = [(name, *(str(count[name]) for count in counts)) for name in names]
    return CardTable(header=("", *(f"{split.config}/{split.split}" for split in splits)), rows=tuple(rows))


def _row_names() -> list[str]:
    attributes = ("occupation", "personality", "hobby", "colour")
    antecedents = ("masculine_name", "feminine_name", "neutral_name", "distal")
    return [
        "items",
        "templates",
        *(f"family {name}" for name in pronoun_families()),
        *(f"{_spelt(case)} slots" for case in CASES),
        *(f"antecedent: {_spelt(name)}" for name in antecedents),
        *(f"{attribute}, {gender}" for attribute in attributes for gender in ("feminine", "masculine", "neutral")),
    ]


def _counted(items: Sequence[Item]) -> Counter[str]:
    count = Counter({"items": len(items), "templates": len({item.unit for item in items})})
    for item in items:
        if isinstance(item, AssignmentItem):
            count[f"{item.attribute}, {item.stereotype}"] += 1
        elif isinstance(item, PronounTextItem | WordProblemItem):
            count[f"family {item.family}"] += 1
            count.update(f"{_spelt(case)} slots" for case in item.cases)
            antecedent = getattr(item, "antecedent", None)
            if antecedent is not None:
                count[f"antecedent: {_spelt(antecedent)}"] += 1
    return count


def _spelt(name: str) -> str:
    return name.replace("_", " ")
