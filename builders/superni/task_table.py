"""The table of the 279 tasks of the publication, ``tasks.csv``: facts about each task, and none of its texts.

Sizes are those of FLAN v2, a list that is independent of the publication. Numbers of labels were counted in the files
at hand, and for most tasks in the labels of their demonstrations, so that they may leave out rare ones.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """Facts about one task of the publication."""

    name: str
    """Name of its file in the repository, without ``.json``."""
    category: str
    n_instances: int
    n_labels: int | None
    """Number of labels; None if it is unknown."""
    equivalent_labels: bool
    """True if the labels only name places: 17 tasks fit the rule of the publication, which has 18 and names none."""
    own_candidates: bool
    """True if the items offer different numbers of options."""


@cache
def published_tasks() -> Mapping[str, TaskFacts]:
    """Return the facts about each task of the publication by its name, in the order of their numbers."""
    text = resources.files("builders.superni").joinpath("tasks.csv").read_text(encoding="utf-8")
    return {
        row["name"]: TaskFacts(
            name=row["name"],
            category=row["category"],
            n_instances=int(row["n_instances"]),
            n_labels=int(row["n_labels"]) if row["n_labels"] else None,
            equivalent_labels=row["equivalent_labels"] == "yes",
            own_candidates=row["own_candidates"] == "yes",
        )
        for row in csv.DictReader(text.splitlines())
    }
