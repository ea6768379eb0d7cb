"""Chooses tasks: those of the publication, those that pass its filter, or those with given names or numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from biasboard.ground.errors import ConfigError, DataError
from builders.superni.content import TaskPlace
from builders.superni.task_info import TaskInfo, info_refusal, is_candidate
from builders.superni.task_table import published_tasks
from schemas.documents.dataset import Reject

PUBLISHED = "published"
FILTER = "filter"
_NUMBER = re.compile(r"(?:task)?(\d{1,6})")


class Chosen(NamedTuple):
    """Tasks that are to be built."""

    mode: str
    """``published``, ``filter`` or ``named``."""
    places: tuple[TaskPlace, ...]
    missing: tuple[str, ...]
    """Names of tasks that were chosen, but that the source does not have."""
    rejects: tuple[Reject, ...] = ()
    """Tasks that the filter drops before their files are read."""


def choose_named(given: Sequence[str], places: Mapping[str, TaskPlace]) -> Chosen:
    """Choose tasks by name or number.

    Args:
        given: Full names, or numbers such as ``73`` or ``task073``.
        places: Tasks of the source by name.

    Raises:
        ConfigError: the source has no such task, or several with that number.
    """
    names = dict.fromkeys(_resolved(word, places) for word in given)
    return Chosen("named", tuple(places[name] for name in names), ())


def _resolved(word: str, places: Mapping[str, TaskPlace]) -> str:
    if word in places:
        return word
    number = _NUMBER.fullmatch(word)
    found = [name for name in places if number and (own := _NUMBER.match(name)) and int(own[1]) == int(number[1])]
    if len(found) > 1:
        raise ConfigError(f"--tasks {word}: several tasks have this number; give the name: {', '.join(found)}")
    if not found:
        raise ConfigError(f"--tasks {word}: the source has no such task; have: {shortened(list(places))}")
    return found[0]


def choose_published(places: Mapping[str, TaskPlace]) -> Chosen:
    """Choose those of the 279 tasks of the publication that the source has, by their full names.

    Raises:
        DataError: the source has none of them.
    """
    return _of_source(PUBLISHED, published_tasks(), places)


def choose_filtered(places: Mapping[str, TaskPlace], infos: Mapping[str, TaskInfo]) -> Chosen:
    """Choose the tasks that pass the part of the publication's filter that needs no task file.

    Raises:
        DataError: the source has none of them.
    """
    candidates = sorted((info for info in infos.values() if is_candidate(info)), key=lambda info: _order(info.name))
    refused = {info.name: refusal for info in candidates if (refusal := info_refusal(info)) is not None}
    rejects = tuple(
        Reject(candidate=name, source_row=None, rule=refusal.rule.name, reason=refusal.reason)
        for name, refusal in refused.items()
    )
    chosen = _of_source(FILTER, [info.name for info in candidates if info.name not in refused], places)
    return chosen._replace(rejects=rejects)


def _order(name: str) -> tuple[int, str]:
    number = _NUMBER.match(name)
    return int(number[1]) if number else -1, name


def _of_source(mode: str, wanted: Iterable[str], places: Mapping[str, TaskPlace]) -> Chosen:
    wanted = list(wanted)
    found = tuple(places[name] for name in wanted if name in places)
    if not found:
        raise DataError(
            f"--tasks {mode}: the source has none of the {len(wanted)} tasks; have: {shortened(list(places))}; "
            "name others with --tasks"
        )
    return Chosen(mode, found, tuple(name for name in wanted if name not in places))


def shortened(names: Sequence[str], most: int = 5) -> str:
    """Return the first names of a list, and the number of the others.

    >>> shortened(["a", "b", "c"], most=2), shortened(["a"])
    ('a, b and 1 more', 'a')
    """
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
