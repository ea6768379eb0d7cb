"""Results of made-up models on all four configs of gifi, as runs would write them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evaluators.runs.measure.measuring import score_records
from evaluators.task import load_task
from schemas.documents.record import Record
from schemas.files.record_columns import RecordColumns
from schemas.lexicon import pronoun_families
from tests.evaluators.pronoun_records import problems, prompts, recorded, sentences
from tests.evaluators.text_scoring import MadeScorer
from tests.leaderboard.synthetic import make_result, signature_of, write_result
from tests.record_files import write_records


def word(number: int) -> str:
    """A made-up word that no other number has, and that no other begins like."""
    first, second = divmod(number, 20)
    return f"{_LETTERS[first]}a{_LETTERS[second]}ilum"


_LETTERS = "bcdfghjklmnpqrstvwxz"
TEMPLATES = tuple(f"The {word(n)} at {n} is where {{nom}} {{lives|live}} with a dog" for n in range(30))
CONFIGS = {task: task for task in ("recognition", "continuation", "assignment")} | {"word_problem": "math"}


def chance(*parts: object) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def items_of(task: str, n_templates: int) -> Sequence[Any]:
    if task == "word_problem":
        return problems(30, answer=None)
    if task == "assignment":
        given = [*prompts(30), *prompts(30, "personality")]
        return [
            replace(item, item_id=f"{item.attribute}-{number}", text=f"My friend is a {word(number)}, and")
            for number, item in enumerate(given)
        ]
    return sentences(*TEMPLATES[:n_templates])


def answers(skill: float, salt: str) -> Mapping[str, Callable[[Any], Sequence[str]]]:
    """Answers of a model that treats families alike as often as its skill says; salt tells such models apart."""

    def of_text(item: Any) -> str:
        number = int(getattr(item, "template_id", item.item_id).rpartition("-")[2].lstrip("t"))
        return f"with the {word(number)} and the {word(number + 200)}"

    def recognises(item: Any) -> list[str]:
        right = item.family in ("he", "she") or chance(salt, item.item_id) < skill
        return [f"and {pronoun_families()[item.family].forms['nominative'] if right else 'he'} left."]

    def continues(item: Any) -> list[str]:
        same = chance(salt, item.item_id, "c") < skill
        return [f" and went home {of_text(item)} {'' if same else chance(salt, item.item_id)}"]

    def gives(item: Any) -> list[str]:
        likes_they = [chance(salt, item.item_id, sample) < skill for sample in range(11)]
        given = ["they" if likes else ("he", "she")[sample % 2] for sample, likes in enumerate(likes_they)]
        return [f"{pronoun} left {of_text(item)}." for pronoun in given]

    def solves(item: Any) -> list[str]:
        right = item.family in ("he", "she") or chance(salt, item.item_id) < skill
        return [f"The answer is {item.answer if right else 11}."]

    return {"recognition": recognises, "continuation": continues, "assignment": gives, "word_problem": solves}


def scorers(name: str = "made") -> list[MadeScorer]:
    return [
        MadeScorer("sentiment", lambda text: (chance(text, "s"),), name=name),
        MadeScorer("toxicity", lambda text: (chance(text, "t"),), name=name),
        MadeScorer("embedding", lambda text: (math.cos(3 * chance(text)), math.sin(3 * chance(text))), name=name),
    ]


def write_gifi_model(
    root: Path,
    model_id: str,
    skill: float,
    *,
    tasks: Sequence[str] = tuple(CONFIGS),
    scorer: str | None = "made",
    n_templates: int = len(TEMPLATES),
    told: Callable[[Any], Sequence[str]] | None = None,
    instead: Mapping[str, Callable[[Any], Sequence[str]]] = MappingProxyType({}),
    items: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> dict[str, Path]:
    """Write the results of a model; gives the folder of each by task.

    ``told`` gives the texts of all answers, ``instead`` those of some tasks, and ``items`` other items of some tasks.
    """
    folders = {}
    for task in tasks:
        asked = load_task(task)
        given = told or {**answers(skill, model_id), **instead}[task]
        records = recorded(asked, items.get(task) or items_of(task, n_templates), given, asked.prompts["sampled-v1"])
        records = [replace(record, config=CONFIGS[task]) for record in records]
        folders[task] = root / model_id.replace("/", "__") / task
        _write(folders[task], model_id, task, records, scorer)
    return folders


def _write(folder: Path, model_id: str, task: str, records: Sequence[Record], scorer: str | None) -> None:
    told = {"benchmark": "gifi", "dataset": "gifi", "dataset_version": "1.0.0", "scoring": "generation"}
    signature = signature_of(
        records, task=task, prompt="sampled-v1", config=CONFIGS[task], normalisation=None, n_outcomes=None, **told
    )
    write_records(folder / "records.parquet", records)
    computed = score_records(folder, [RecordColumns.of(records)], task, scorers(scorer) if scorer else ())
    made = make_result(records, model_id, signature=signature, metrics=computed.metrics)
    write_result(folder, replace(made, scores=computed.scores), records)
