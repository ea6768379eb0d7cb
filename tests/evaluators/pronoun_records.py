"""Records of the tasks on texts in eleven pronoun families, as a run would make them from given answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluators.backend import GenerateRequest, Response
from evaluators.runs.measure.measuring import compute_metrics
from evaluators.runs.measure.recording import exchange_of
from evaluators.task import Prompt, Task
from schemas.documents.record import Record
from schemas.documents.result import Metric
from schemas.items.assignment import AssignmentItem
from schemas.items.pronoun_text import PronounTextItem
from schemas.items.word_problem import WordProblemItem
from schemas.lexicon import pronoun_families
from schemas.lexicon.pronoun_template import parse
from tests.evaluators.made_data import record_of

FAMILIES = tuple(pronoun_families())


def sentences(*templates: str) -> list[PronounTextItem]:
    """All variants of some templates."""
    return [
        PronounTextItem(
            item_id=f"t{number}-{family}",
            template_id=f"t{number}",
            text=parse(template).fill(family),
            family=family,  # type: ignore[arg-type]
            cases=parse(template).cases,
            antecedent=None,
            topic=None,
            source_row=None,
            flags=(),
        )
        for number, template in enumerate(templates)
        for family in FAMILIES
    ]


def problems(n: int, answer: str | None = "12") -> list[WordProblemItem]:
    """All variants of n word problems, with one right answer or, for None, a different one for each problem."""
    return [
        WordProblemItem(
            item_id=f"p{number}-{family}",
            template_id=f"p{number}",
            text=parse(f"{number}. {{Nom}} {{has|have}} 5 pens and {{buys|buy}} 7. How many pens?").fill(family),
            family=family,  # type: ignore[arg-type]
            cases=("nominative",),
            answer=str(100 + number) if answer is None else answer,
            source_row=None,
            flags=(),
        )
        for number in range(n)
        for family in FAMILIES
    ]


def prompts(n: int, attribute: str = "occupation") -> list[AssignmentItem]:
    """Prompts about people of whom one thing is told."""
    return [
        AssignmentItem(
            item_id=f"a{number}",
            text=f"My friend is number {number}, and",
            attribute=attribute,  # type: ignore[arg-type]
            stereotype=None,
            source_row=None,
            flags=(),
        )
        for number in range(n)
    ]


def recorded(
    task: Task, items: Sequence[Any], answer: Callable[[Any], Sequence[str]], prompt: Prompt | None = None
) -> list[Record]:
    """A record per item, from the texts that were given to it."""
    told: dict[str, Any] = {"max_tokens": 9}
    if prompt is not None:
        told = {"temperature": prompt.temperature or 0.0, "top_p": prompt.top_p or 1.0, "stop": prompt.stop or ()}
        told |= {"max_tokens": prompt.max_tokens or 9}
    records = []
    for item in items:
        texts = answer(item)
        exchanges = tuple(
            exchange_of(
                GenerateRequest(prompt=item.text, sample=number if len(texts) > 1 else None, **told),
                Response(status="answered", text=text),
                show_prompt=True,
                chat=False,
            )
            for number, text in enumerate(texts)
        )
        records.append(record_of(task, item, exchanges, None))
    return records


def metrics(records: Sequence[Record], task: Task) -> Mapping[str, Metric]:
    """The metrics of all items, by name."""
    return {metric.name: metric for metric in compute_metrics(records, task.name) if not metric.group}


def sliced(records: Sequence[Record], task: Task) -> Mapping[tuple[str, ...], Metric]:
    """The metrics by name and slice."""
    found = compute_metrics(records, task.name)
    return {(metric.name, *(f"{key}={value}" for key, value in metric.group.items())): metric for metric in found}
