"""Turns the records of one task in one context into arrays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

import numpy as np

from biasboard.ground.errors import DataError
from evaluators.calibrator import LabelAnswers
from schemas.files.record_columns import RecordColumns

TEST, BIAS = "test", "bias"
"""Splits on which performance and the prior of a model are measured."""
ENGLISH_WORDS, RANDOM_WORDS = "english_words", "random_words"
"""Kinds of content-free inputs that domain-label bias compares."""
CONTENT_FREE = "content_free"
"""Group of a record: the kind of content-free input, if it is one."""
SHOWN = "shown_labels"
"""Group of a record: the labels of the examples that its prompt shows, as a JSON list."""
TARGET = "target"
"""Fact that baselines read: the right label."""
POSITION = "shown_place"
"""Group of a record: its position among the examples of the prompt, if it is one."""
BALANCE = "example_balance"
"""Group of a task: the distribution of its labels among the examples, ``even``, ``uneven`` or ``one label``."""
CUT = "cut"
"""Group of a record: the part of its prompt that was shortened, if any."""
_MOST_LABELS = 128
"""A limit, since a stranger's records may offer any number of labels, and arrays have a column for each."""
OF_TASK = ("category", "equivalent_labels")
"""Groups that all records of a task share."""


def label_answers(records: RecordColumns, trained: Mapping[str, frozenset[str]] | None = None) -> LabelAnswers:
    """Return the records of one task in one context as arrays.

    Args:
        records: The records, with one exchange each.
        trained: Ids of the items that an adapter was trained on, by config; None if there are none.

    Raises:
        DataError: a record has several exchanges, or its groups or reading are not those of the task.
    """
    if (np.diff(records.first_exchanges) != 1).any():
        raise DataError("a record has not exactly one exchange, as every answer about a label has; run the model again")
    offers = records.exchanges["outcomes"].lists
    names = offers.values.coded
    labels = tuple(sorted(names.texts))
    if len(labels) > _MOST_LABELS:
        raise DataError(f"its items offer {len(labels)} labels, and a task has at most {_MOST_LABELS}")
    column_of = {label: column for column, label in enumerate(labels)}
    offered = np.zeros((len(records), len(labels)), dtype=np.bool_)
    columns = np.array([column_of[name] for name in names.texts], dtype=np.int64)[names.codes]
    offered[offers.owners, columns] = True
    owners, keys, values = records.columns["groups"].entries
    groups: list[dict[str, str]] = [{} for _ in range(len(records))]
    for owner, key, value in zip(owners.tolist(), keys.texts, values.texts, strict=True):
        groups[owner][str(key)] = str(value)
    # Most prompts of a context show the same examples.
    lists_of_shown = {text: _shown(text) for text in {group.get(SHOWN) for group in groups}}
    shown = [lists_of_shown[group.get(SHOWN)] for group in groups]
    targets = np.array([column_of.get(target or "", -1) for target in records.columns["target"].texts], dtype=np.int64)
    try:
        positions = np.array([int(group.get(POSITION, "-1")) for group in groups], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise DataError(f"group '{POSITION}' is no number ({error}); run the model again") from error
    config = records.columns["config"].texts[0] or ""
    seen = frozenset() if trained is None else trained.get(config, frozenset())
    return LabelAnswers(
        config=config,
        labels=labels,
        probabilities=_probabilities(records, column_of),
        offered=offered,
        targets=targets,
        splits=np.array(records.columns["split"].texts, dtype=np.str_),
        content_free=np.array([group.get(CONTENT_FREE, "") for group in groups], dtype=np.str_),
        positions=positions,
        n_shown=np.array([-1 if labels_shown is None else len(labels_shown) for labels_shown in shown], dtype=np.int64),
        groups=_of_task(groups, shown, labels),
        is_cut=np.array([CUT in group for group in groups], dtype=np.bool_),
        is_trained=np.array([item_id in seen for item_id in records.columns["item_id"].texts], dtype=np.bool_),
        in_words=bool(records.exchanges["kind"].coded.is_one_of("generate").any()),
    )


def _probabilities(records: RecordColumns, column_of: dict[str, int]) -> np.ndarray:
    outcomes, shares = (records.readings[name].lists for name in ("outcomes", "probabilities"))
    if not np.array_equal(outcomes.lengths, shares.lengths):
        raise DataError("a reading has not one probability for each of its outcomes; run the model again")
    # nan without a reading, and 0 for labels that an item with a reading does not offer.
    probabilities = np.full((len(records), len(column_of)), np.nan)
    probabilities[outcomes.lengths > 0] = 0.0
    names = outcomes.values.coded
    if strange := sorted({*names.texts} - column_of.keys()):
        raise DataError(f"a reading has the outcome '{strange[0]}', which no item offers; run the model again")
    columns = np.array([column_of[name] for name in names.texts], dtype=np.int64)
    if len(columns):
        probabilities[outcomes.owners, columns[names.codes]] = shares.values.numbers
    return probabilities


def _shown(text: str | None) -> list[str] | None:
    """Return the labels of the examples that a prompt shows; None if they are unknown."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, list):
        raise DataError(f"group '{SHOWN}' is {text[:60]!r} and not a list of labels; run the model again")
    return [str(label) for label in value]


def _of_task(groups: list[dict[str, str]], shown: list[list[str] | None], labels: tuple[str, ...]) -> dict[str, str]:
    """Return the facts about the task, and how evenly its labels are distributed among the examples of the context."""
    if not groups:
        return {}
    facts = {name: groups[0][name] for name in OF_TASK if name in groups[0]}
    # Long inputs leave room for fewer examples, so that prompts of a context differ: the first of those with the most
    # examples represents all.
    of_prompts = [labels_shown for labels_shown in shown if labels_shown is not None]
    longest: list[str] = max(of_prompts, key=len, default=[])
    counts = Counter(longest)
    if counts:
        by_label = [counts[label] for label in labels]
        facts[BALANCE] = "one label" if len(counts) == 1 else "even" if max(by_label) - min(by_label) <= 1 else "uneven"
    return facts
