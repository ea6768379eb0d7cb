"""The texts of the cards of the superni datasets."""

from __future__ import annotations

from collections.abc import Sequence

from biasboard.ground.plain_text import listed
from builders.dataset.card import Annotation, Card, CardTable
from builders.superni.task_choice import BuiltTask

PAPER = (
    "Reif and Schwartz 2024, *Beyond Performance: Quantifying and Mitigating Label Bias in LLMs* (arXiv:2405.02743, "
    "NAACL 2024)"
)
SUPERNI = "Wang et al. 2022, *Super-NaturalInstructions* (arXiv:2204.07705, EMNLP 2022)"

_DATA_STATEMENT = """\
English classification tasks. Each config is one task, and its items have the instruction of the task, an input, the
labels that it may get, and the right label. Split `test` is evaluated; on the 32 items of `bias` the bias towards
labels is measured; from the 64 items of `pool` come demonstrations, in this order; `content_free` holds 43 inputs
without content, which have no right label: three placeholders and twenty of random words of the task, on which
calibrations are fitted, and twenty of English words, which random words are compared with to measure domain-label bias.
`equivalent_labels` marks tasks whose labels only name places, such as the letters of options."""

_HOW_BUILT = """\
The labels of a task are the sorted first outputs of all its items, as the source spells them. A random permutation of
the items, seeded by the seed of the build and the name of the task, gives `bias`, `pool` and `test`, in this order; no
task has an influence on another. The random words are drawn without replacement from the inputs of `test`, in lower
case, part by part: markers that nearly all inputs share, such as *Sentence 1:* or *(A)*, are kept, and each part gets
as many words as it has on average. Labels are never looked at for that. The English words stand in the same places in
the same numbers, drawn from the 850 of Ogden's Basic English (1930)."""

_INTENDED_USE = """\
To measure how evenly a model treats the labels of a task, beside how often it is right, and to compare calibrations. A
model that answers at random is even too: always read both."""

_OUT_OF_SCOPE_USE = """\
Do not read a good score as the absence of bias against people: labels of tasks are compared here, not groups of people.
Do not train on it a model that is evaluated on it. Means over tasks with different numbers of labels are no property
of any one of them."""

_ANNOTATION = Annotation(
    protocol=(
        "The right label of an item is the one that its source gives, or that follows from the phrases of which this "
        "project made it; nothing was annotated again."
    ),
    annotators="Those who made the tasks; the sources tell little about them.",
    per_item="1 that is kept",
)

_BIASES = """\
* The labels of a task are not equally frequent; *Balance* says how much the largest one has.
* Tasks about toxic language and stereotypes repeat the views of their sources and annotators.
* One language, and the kinds of tasks that its sources happened to have."""


def superni_card(
    tasks: Sequence[BuiltTask], *, how_built: str, licence_terms: str, known_limits: str, citation: str
) -> Card:
    """Return the card: the given texts of the source, and those that all sources share."""
    return Card(
        data_statement=_DATA_STATEMENT,
        how_built=f"{how_built}\n\n{_HOW_BUILT}",
        annotation=_ANNOTATION,
        biases=_BIASES,
        licence_terms=licence_terms,
        intended_use=_INTENDED_USE,
        out_of_scope_use=_OUT_OF_SCOPE_USE,
        known_limits=known_limits,
        balance=_balance(tasks),
        citation=f"Cite this project with the dataset version, {citation}.",
        task_categories=("text-classification",),
        tags=("label-bias", "calibration", "bias-evaluation"),
    )


def _balance(tasks: Sequence[BuiltTask]) -> CardTable:
    rows = [
        (
            task.source.name,
            task.category,
            str(len(task.counts)),
            str(task.n_items),
            f"{max(task.counts.values()) / task.n_items:.3f}",
            listed([_short_label(label) for label in task.counts], most=12),
        )
        for task in tasks
    ]
    header = ("task", "category", "labels", "items in all", "share of the largest label", "labels by name")
    return CardTable(header=header, rows=tuple(rows))


def _short_label(label: str) -> str:
    return " ".join((label if len(label) <= 40 else f"{label[:39]}…").split())
