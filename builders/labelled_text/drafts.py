"""Makes the draft of a dataset of labelled texts, with its card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import invisible_sign, listed, printable
from builders.dataset.card import Annotation, Card, CardTable
from builders.dataset.licences import UNKNOWN, licence_terms, publish_refusal
from builders.dataset.output import Draft, DraftSplit, rng_for
from builders.dataset.own_csv import OwnTable
from builders.labelled_text import BUILDER
from builders.labelled_text.rows import MOST_LABELS, RULES, Texts
from builders.superni.content_free import english_words_source
from builders.superni.items import FLAG_RULES, N_BIAS, SPLITS, TaskContent, items_at
from schemas.documents.dataset import Source, offered_fault
from schemas.items.label import LabelItem

CONFIG = "texts"


def draft(
    tables: Sequence[OwnTable],
    sources: Sequence[Source],
    texts: Texts,
    *,
    instructions: str | None,
    limit: int,
    n_pool: int,
    seed: int,
    name: str,
    licence: str | None,
    stated: Mapping[str, str | None],
) -> Draft[LabelItem]:
    """Build a draft of labelled texts.

    Args:
        tables: The files.
        sources: Their descriptions.
        texts: Their usable rows.
        instructions: Instruction of each item; None for one that names the labels.
        limit: Largest number of items that are evaluated.
        n_pool: Number of solved items from which examples are shown and on which calibrations are fitted.
        seed: Seed of the splits and of the random words.
        name: Name of the dataset.
        licence: SPDX identifier of the licence of the texts, as the user states it; None if not known.
        stated: Other options as the user gave them, which are recorded.

    Raises:
        ConfigError: the rows have fewer than two labels or too many, or there are too few of them.
    """
    if (sign := invisible_sign(" ".join((instructions or "").split()))) is not None:
        raise ConfigError(f"--instructions: has the invisible sign U+{ord(sign):04X}; remove it")
    instances = (*texts.train, *texts.test)
    labels = sorted({instance.label for instance in instances})
    _check_labels(labels, texts)
    content = TaskContent(
        name=CONFIG,
        instruction=instructions or default_instruction(labels),
        category="Labelled text",
        equivalent_labels=False,
        own_candidates=False,
        licence=licence or UNKNOWN,
        sha256=None,
        instances=instances,
        rejects=texts.rejects,
    )
    splits = _splits(content, texts, limit, n_pool, seed)
    return Draft(
        name=name,
        benchmark=BUILDER.name,
        version="1.1.0",
        title=f"Labelled texts, {name}",
        builder=f"builders.{BUILDER.name}",
        builder_version="1.1",
        parameters={"limit": limit, "pool": n_pool, "instructions": instructions, "licence": licence, **stated},
        seed=seed,
        sources=(*sources, english_words_source()),
        licence=licence or UNKNOWN,
        publish_refusal=publish_refusal(licence, "texts"),
        splits=tuple(
            DraftSplit(config=CONFIG, split=split, item_shape="label", items=splits[split]) for split in SPLITS
        ),
        rejects=texts.rejects,
        reject_rules=RULES,
        flag_rules=FLAG_RULES,
        card=_card(tables, splits, labels, licence),
    )


def default_instruction(labels: Sequence[str]) -> str:
    """Return an instruction that names the labels.

    >>> default_instruction(["Business", "Sports", "World"])
    'Classify the text. Answer with one of these labels: Business, Sports, World.'
    """
    return f"Classify the text. Answer with one of these labels: {', '.join(labels)}."


def _check_labels(labels: Sequence[str], texts: Texts) -> None:
    if not labels:
        first = texts.rejects[0]
        raise ConfigError(
            f"--input: no row can be used; the first, {first.source_row}: {first.reason}; correct the rows"
        )
    if not 2 <= len(labels) <= MOST_LABELS:
        shown = listed([f"'{printable(label, most=30)}'" for label in labels], most=4)
        raise ConfigError(
            f"--input: the rows have {len(labels)} label{'s' * (len(labels) != 1)} ({shown}), and a task has 2 to "
            f"{MOST_LABELS}; name the column of the label with --map label=COLUMN"
        )
    if (fault := offered_fault(tuple(labels))) is not None:
        raise ConfigError(f"--input: label {fault}")


def _splits(
    content: TaskContent, texts: Texts, limit: int, n_pool: int, seed: int
) -> Mapping[str, Sequence[LabelItem]]:
    """Draw the splits: each of some rows in a random order, as for one task of superni."""
    n_train, n_support = len(texts.train), N_BIAS + n_pool
    least = n_support + (not texts.test)
    if n_train < least:
        from_files = " beside those that are evaluated" if texts.test else ""
        raise ConfigError(
            f"--input: {n_train} rows can be used{from_files}, and {least} are needed ({N_BIAS} to measure bias, "
            f"{n_pool} of the pool{'' if texts.test else ', one to evaluate'}); add rows, or lower --pool"
        )
    order = rng_for(seed, content.name).permutation(n_train).tolist()
    evaluated = order[n_support:]
    if texts.test:
        order_of_test = rng_for(seed, f"{content.name}:test").permutation(len(texts.test))
        evaluated = (n_train + order_of_test).tolist()
    places = {"bias": order[:N_BIAS], "pool": order[N_BIAS:n_support], "test": evaluated[:limit]}
    return items_at(content, places, n_test=len(evaluated), seed=seed)


def _card(
    tables: Sequence[OwnTable], splits: Mapping[str, Sequence[LabelItem]], labels: Sequence[str], licence: str | None
) -> Card:
    files = ", ".join(f"`{table.name}`" for table in tables)
    counts = [Counter(item.target for item in splits[split]) for split in SPLITS[:-1]]
    n_test = len(splits["test"])
    rows = tuple(
        (label, *(str(of_split[label]) for of_split in counts), f"{counts[0][label] / n_test:.3f}") for label in labels
    )
    return Card(
        data_statement=f"""\
Texts with one label each, which whoever built this dataset brought along ({files}). Items have the instruction of the
task, a text, all labels and the right one; `source_row` is file and row. Split `test` is evaluated; on `bias` the bias
towards labels is measured; from `pool` come demonstrations, in this order, and calibrations are fitted on it;
`content_free` holds 43 inputs without content, which have no right label: 3 placeholders and 20 of random words of the
texts, on which calibrations are fitted, and 20 of English words, which random words are compared with to measure
domain-label bias.""",
        how_built="""\
Line breaks and repeated spaces became one space; a title, if there is a column for it, stands before its text. Rows
that are no items stand in `rejects.parquet` with their rule; of texts that differ in case alone the first is kept, and
one that is evaluated goes before all others. A random permutation by the seed of the build gives the splits, not
stratified: they have labels as often as the rows have them, but for chance. Random words of `content_free` are drawn
from the texts of `test`, and as many English words from the 850 of Ogden's Basic English (1930).""",
        annotation=Annotation(
            protocol="The right label is the one that the files give; nothing was annotated again.",
            annotators="Whoever labelled the texts; nothing is known about them.",
            per_item="1 that is kept",
        ),
        biases="""\
* The texts are what their source happened to collect, and the labels repeat the views of whoever gave them.
* The labels are not equally frequent; *Balance* says how often each is right.""",
        licence_terms=licence_terms(licence, "texts"),
        intended_use="""\
To measure how evenly a model finds the classes, beside how often it is right, and to compare calibrations. Where one
label is frequent, always answering it is right most of the time: read the accuracy of each class.""",
        out_of_scope_use="""\
Do not read a good score as the absence of bias against people: labels of texts are compared here, not groups of people.
Do not train on it a model that is evaluated on it.""",
        known_limits="""\
* **Nobody has checked the labels for this dataset.**
* Models may have seen the texts in training.
* Classes with few items have accuracies that vary much by chance.""",
        balance=CardTable(header=("label", *SPLITS[:-1], "share of test"), rows=rows),
        citation=(
            "Cite the source of the texts, this project with the dataset version, and Reif and Schwartz 2024 "
            "(arXiv:2405.02743), whose splits it has, and arXiv:2603.15654 on the Gini index of class accuracies."
        ),
        task_categories=("text-classification",),
        tags=("label-bias", "calibration", "bias-evaluation"),
    )
