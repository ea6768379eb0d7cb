"""Made-up classification tasks, a dataset folder of them, and records of answers with chosen probabilities."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from builders.dataset.output import DraftSplit, write_dataset
from evaluators.backend import ChoiceRequest, Response
from evaluators.runs.measure.measuring import Measurement
from evaluators.runs.measure.recording import exchange_of, records_of
from evaluators.runs.plan.plan import Plan, select
from evaluators.tasks.labels.classification_task import TASK
from schemas.documents.dataset import Suite
from schemas.documents.record import Reading, Record
from schemas.documents.result import Metric
from schemas.files.record_columns import RecordColumns
from schemas.folders.dataset_folder import read_manifest
from schemas.items.label import ContentFree, LabelItem
from tests.evaluators.made_draft import made_draft
from tests.schemas import examples

WORDS = (
    *("ash", "birch", "cedar", "élan", "fir", "gum", "hazel"),
    *("larch", "maple", "oak", "pine", "rowan", "teak", "yew"),
)
PLACEHOLDERS = ("N/A", "", "[MASK]")
N_RANDOM_WORDS = 5
N_POOL = 30


@dataclass(frozen=True)
class MadeTask:
    """A task: its labels in the order in which items offer them, and how often each is right."""

    config: str
    labels: tuple[str, ...]
    n_test: Mapping[str, int]
    n_bias: Mapping[str, int]
    equivalent_labels: bool = False
    last_is_optional: bool = False
    """True if every second item does not offer the last label, unless it is the right one."""


TASKS = (
    MadeTask("two", ("yes", "no"), {"yes": 18, "no": 6}, {"yes": 5, "no": 5}),
    MadeTask(
        "three",
        ("positive", "neutral", "negative"),
        {"positive": 9, "neutral": 4, "negative": 7},
        {"positive": 4, "negative": 6},
    ),
    MadeTask(
        "letters",
        ("A", "B", "C", "D"),
        {"A": 6, "B": 8, "C": 4, "D": 5},
        {"A": 4, "B": 3, "C": 3, "D": 2},
        equivalent_labels=True,
        last_is_optional=True,
    ),
    MadeTask(
        "six",
        ("surprise", "joy", "great fear", "love of other people", "anger", "sadness"),
        {"surprise": 4, "joy": 7, "great fear": 3, "love of other people": 2, "anger": 5, "sadness": 1},
        {"surprise": 2, "joy": 3, "great fear": 1, "anger": 2, "sadness": 2},
    ),
)
BY_NAME = {task.config: task for task in TASKS}


def _text(rng: random.Random, target: str | None) -> str:
    """A text of some words; one of four is so long that few examples fit beside it."""
    n_words = rng.choice((4, 8, 12, 130))
    text = " ".join(rng.choices(WORDS, k=n_words))
    return f"{text} {target or ''}".strip() + rng.choice(("", ".", "?", " "))


def _item(
    task: MadeTask, split: str, number: int, text: str, target: str | None, kind: ContentFree | None
) -> LabelItem:
    is_short = task.last_is_optional and number % 2 == 1 and target != task.labels[-1]
    return LabelItem(
        item_id=f"{task.config}-{split}-{number:03}",
        instruction=f" Label the text of {task.config}: {', '.join(task.labels)} ",
        text=text,
        labels=task.labels[:-1] if is_short else task.labels,
        target=target,
        category=f"Kind of {task.config}",
        equivalent_labels=task.equivalent_labels,
        content_free=kind,
        source_row=None,
        flags=(),
    )


@cache
def made_items(config: str, split: str) -> tuple[LabelItem, ...]:
    """The items of a split; equal names give equal items."""
    task, rng = BY_NAME[config], random.Random(f"{config}:{split}")
    if split == "content_free":
        texts = [*PLACEHOLDERS, *(_text(rng, None) for _ in range(2 * N_RANDOM_WORDS))]
        of_words: tuple[ContentFree, ...] = ("random_words", "english_words")
        kinds: list[ContentFree] = ["placeholder" for _ in PLACEHOLDERS]
        kinds += [kind for kind in of_words for _ in range(N_RANDOM_WORDS)]
        return tuple(
            _item(task, split, number, text, None, kind)
            for number, (text, kind) in enumerate(zip(texts, kinds, strict=True))
        )
    # The first label of a pool is twice as frequent, so that sets of examples are unbalanced.
    gold = [(task.labels[0], *task.labels)[number % (len(task.labels) + 1)] for number in range(N_POOL)]
    if split != "pool":
        counts = task.n_test if split == "test" else task.n_bias
        gold = [label for label, n in counts.items() for _ in range(n)]
        rng.shuffle(gold)
    return tuple(_item(task, split, number, _text(rng, one), one, None) for number, one in enumerate(gold))


SPLITS = ("test", "bias", "pool", "content_free")


def short_items(config: str, split: str) -> list[LabelItem]:
    """The items with the beginnings of their texts, so that eight examples fit into every prompt."""
    return [replace(item, text=item.text[:60].strip() or "a") for item in made_items(config, split)]


def made_dataset(
    folder: Path,
    configs: Sequence[str] = tuple(BY_NAME),
    items: Callable[[str, str], Sequence[LabelItem]] = made_items,
    splits: Sequence[str] = SPLITS,
    version: str = "1.0.0",
) -> Path:
    """Write a dataset with the suite *tasks*."""
    draft = made_draft(
        (
            DraftSplit(config=config, split=split, item_shape="label", items=items(config, split))
            for config in configs
            for split in splits
        ),
        name="tasks",
        benchmark="superni",
        version=version,
        suites=(Suite(name="tasks", configs=tuple(configs)),),
    )
    write_dataset(draft, folder)
    return folder


class Asked(NamedTuple):
    """An item as it is asked, with the text of its prompt."""

    config: str
    split: str
    item: LabelItem
    prompt: str


Answer: TypeAlias = Callable[[Asked], Sequence[float] | None]
"""Function that returns the probabilities of an item's labels, in their order; None for a failed request."""


def planned(dataset: Path, name: str, prompt: str, splits: Sequence[str] = ()) -> Plan:
    selection = select(dataset, read_manifest(dataset), name, splits=splits, support=TASK.support_splits)
    return Plan(selection, TASK, TASK.prompts[prompt])


def made_records(plan: Plan, answer: Answer) -> list[list[Record]]:
    """The records of each part, as the real task and the real pipeline make them."""
    found = []
    for part in plan.parts:
        responses = [
            [_response(answer(Asked(part.config, split, item, requests[0].prompt)))]
            for (split, item), requests in zip(part.items, part.requests, strict=True)
            if isinstance(item, LabelItem)
        ]
        found.append(list(records_of(plan, part, part.requests, responses, chat=False)))
    return found


def _response(probabilities: Sequence[float] | None) -> Response:
    if probabilities is None:
        return Response(status="failed", error="made to fail")
    n = len(probabilities)
    return Response(
        status="answered",
        option_logprobs=tuple(math.log(value) if value > 0 else -math.inf for value in probabilities),
        option_end_logprobs=(0.0,) * n,
        option_token_counts=(1,) * n,
        n_moved_tokens=0,
        n_prompt_tokens=1,
        n_completion_tokens=0,
    )


def drawn_answer(seed: int, *, p_missing: float = 0.0) -> Answer:
    """A model that leans to some labels and to the right one, with ties, certainties and failures now and then."""

    def answer(asked: Asked) -> list[float] | None:
        rng = random.Random(f"{seed}:{asked.item.item_id}:{asked.prompt}")
        leaning = {label: random.Random(f"{seed}:{label}").uniform(0.3, 3.0) for label in asked.item.labels}
        if rng.random() < p_missing:
            return None
        odds = [leaning[label] * rng.expovariate(1.0) for label in asked.item.labels]
        kind = rng.random()
        if kind < 0.15:
            odds[0] = odds[-1] = max(odds)
        elif kind < 0.2:
            odds = [1.0] * len(odds)
        elif asked.item.target in asked.item.labels and kind < 0.6:
            odds[asked.item.labels.index(asked.item.target)] *= 4.0
        return [value / sum(odds) for value in odds]

    return answer


def measured(*parts: Sequence[Record], is_suite: bool = False) -> dict[str, Metric]:
    found = Measurement.of(map(RecordColumns.of, parts), "classification", is_suite=is_suite).metrics()
    return {metric.name: metric for metric in found if not metric.group}


def stored_weights(records: Sequence[Record]) -> dict[str, float] | None:
    """The weights of the labels of one task that a run would store; None if there are none."""
    (told,) = Measurement.of([RecordColumns.of(records)], "classification").corrections
    return dict(zip(told.labels, told.weights, strict=True)) or None


def values(*parts: Sequence[Record], is_suite: bool = False) -> dict[str, float | None]:
    return {name: metric.value for name, metric in measured(*parts, is_suite=is_suite).items()}


def simple(
    split: str,
    number: int,
    target: str | None,
    p: Mapping[str, float],
    kind: str = "",
    place: int | None = None,
    k: int = 2,
) -> Record:
    """A record of a task with given probabilities."""
    groups = {"category": "c", "equivalent_labels": "no", "shown_labels": str(["x"] * k).replace("'", '"')}
    groups |= {"content_free": kind} if kind else {}
    groups |= {} if place is None else {"shown_place": str(place)}
    template = SIMPLE.exchanges[0]
    return replace(
        SIMPLE,
        item_id=f"{split}-{number}",
        split=split,
        cluster=f"{split}-{number}",
        target=target,
        reference=target,
        groups=groups,
        exchanges=(replace(template, outcomes=tuple(p), options=tuple(p)),),
        reading=Reading(outcomes=tuple(p), probabilities=tuple(p.values()), answers=()),
    )


_ASKED = ChoiceRequest(prompt="p", options=("a", "b"), outcomes=("a", "b"))
SIMPLE = replace(
    examples.record(),
    config="made",
    pair_id=None,
    exchanges=(exchange_of(_ASKED, Response(status="answered"), show_prompt=True, chat=False),),
)
"""What ``simple`` changes."""
