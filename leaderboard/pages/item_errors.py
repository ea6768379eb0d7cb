"""Counts how many models answered each item of a table wrong, for the page of the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from biasboard.ground.memory import Memory
from leaderboard.pages.answers import LONG
from leaderboard.pages.explorer import MOST_RECORDS, explorer_link
from leaderboard.pages.exports import Fields, Files, Table
from leaderboard.pages.item_outcomes import Codes, ItemFacts, item_facts, kind_codes, prompts_at
from leaderboard.pages.model_views import Placement
from leaderboard.pages.tables import Section
from leaderboard.ranking.boards import Row
from leaderboard.verify.entries import KINDS

_MOST_SHOWN = 15
"""Number of the items missed most often that the page shows; the files hold all items."""
_UNANSWERED = ("refused", "unparsed", "failed")


class MissedItem(NamedTuple):
    """An item that models answered wrong."""

    item: str
    config: str
    groups: tuple[str, ...]
    """Each group with its value, in words."""
    n_wrong: int
    n_unanswered: int
    prompts: tuple[str, ...]
    """The texts that models were asked; empty if they may not be shown."""
    is_folded: bool
    link: str | None
    """Address of the item on the page Answers, relative to the root of the site; None if it is not there."""


class Missed(NamedTuple):
    """The items of one table and how often models answered them wrong."""

    section: Section
    anchor: str
    models: tuple[str, ...]
    """Ids of the models that count."""
    n_left_out: int
    """Number of results that do not count: withdrawn or replayed ones, and all but one of each model."""
    why_none: str | None
    """Reason why nothing was counted; None if it was."""
    n_missed: int
    """Number of items that at least one model answered wrong."""
    n_missed_by_all: int
    """Number of items that every model answered wrong."""
    shown: tuple[MissedItem, ...]
    withheld: str | None
    """Reason why texts are not shown; None if they are."""
    warning: str | None
    """Warning that texts may offend; None if there is none."""
    table: Table
    """All items for download, those missed most often first; no rows if nothing was counted."""


def missed_items(section: Section, placements: Mapping[tuple[str, str], Placement], memory: Memory) -> Missed:
    """Count how many models answered each item of a table wrong.

    Only results on whole configs of models with a place of their own count: no baselines, no withdrawn results, none
    whose answers come from a file, unless all of the table do, and one result of each model.

    Args:
        section: The table.
        placements: The results with pages, by origin and folder.
        memory: The memory of this machine.
    """
    models = [row for row in section.table.rows if not row.entry.is_baseline]
    counted = [row.entry for row in models if is_of_model(row) and row.entry.match.extent == "whole"]
    anchor = f"missed-{section.anchor}"
    empty = Table(Files(f"{section.files.stem}-missed", is_packed=True), {}, (), is_of_many=True)
    ids = tuple(entry.result.model.id for entry in counted)
    nothing = Missed(section, anchor, ids, len(models) - len(counted), None, 0, 0, (), None, None, empty)
    if not counted:
        return nothing._replace(why_none="no model has a result here that counts")
    if any(entry.match.is_held_out for entry in counted):
        return nothing._replace(why_none="the right answers are secret, and this would help to guess them")
    n_items = section.table.signature.n_items
    if n_items > MOST_RECORDS:
        return nothing._replace(why_none=f"tables of more than {MOST_RECORDS:,} items are not counted item by item")
    codes = np.array([kind_codes(entry, memory) for entry in counted])
    wrong = (codes == KINDS.index("wrong")).sum(axis=0)
    if not (wrong.any() or (codes == KINDS.index("right")).any()):
        return nothing._replace(why_none="its answers are neither right nor wrong")
    unanswered = np.isin(codes, [KINDS.index(kind) for kind in _UNANSWERED]).sum(axis=0)
    facts = item_facts(counted[0], memory)
    order = np.argsort(-wrong, kind="stable").tolist()
    first = [place for place in order[:_MOST_SHOWN] if wrong[place]]
    own = [placements[entry.origin, entry.place] for entry in counted]
    # A result may be without its texts although the items of the dataset may be shown.
    withheld = own[0].answers.withheld if all(one.answers.withheld is not None for one in own) else None
    fields: Fields[int] = {
        "item": (str, lambda index: facts.items[index]),
        "config": (str, lambda index: facts.configs[index]),
        "split": (str, lambda index: facts.splits[index]),
        "groups": (str, lambda index: ", ".join(f"{key}={value}" for key, value in facts.groups_of(index).items())),
        "n_models": (int, lambda index: len(counted)),
        "n_wrong": (int, lambda index: int(wrong[index])),
        "n_unanswered": (int, lambda index: int(unanswered[index])),
    }
    return nothing._replace(
        n_missed=int((wrong > 0).sum()),
        n_missed_by_all=int((wrong == len(counted)).sum()),
        shown=_items(section, facts, own, first, wrong, unanswered, memory),
        withheld=withheld,
        warning=_warning(section),
        table=Table.of(empty.files, fields, order, is_of_many=True),
    )


def is_of_model(row: Row) -> bool:
    """Return True if a row counts where models are counted: no baseline, no withdrawn result and no repeated one."""
    entry = row.entry
    is_withdrawn = entry.acceptance is not None and entry.acceptance.decision == "withdrawn"
    is_own = entry.double is None and (entry.is_imported or not entry.is_replayed)
    return not entry.is_baseline and is_own and not is_withdrawn and entry.folder is not None


def _items(
    section: Section,
    facts: ItemFacts,
    placements: Sequence[Placement],
    indices: Sequence[int],
    wrong: Codes,
    unanswered: Codes,
    memory: Memory,
) -> tuple[MissedItem, ...]:
    """Return some items as the page shows them, with their texts if those of any result may be shown."""
    with_texts = next((one for one in placements if one.answers.withheld is None), None)
    prompts = [()] * len(indices) if with_texts is None else prompts_at(with_texts.row.entry, indices, memory)
    link = next((link for one in placements if (link := explorer_link(one)) is not None), None)
    warning, names = _warning(section), section.pages.group_names
    return tuple(
        MissedItem(
            item=facts.items[index],
            config=facts.configs[index],
            groups=tuple(
                f"{names.get(key, key)}: {value}".replace("_", " ") for key, value in facts.groups_of(index).items()
            ),
            n_wrong=int(wrong[index]),
            n_unanswered=int(unanswered[index]),
            prompts=asked,
            is_folded=warning is not None or sum(map(len, asked)) > LONG,
            link=None if link is None else f"{link}&kind=any&item={index}",
        )
        for index, asked in zip(indices, prompts, strict=True)
    )


def _warning(section: Section) -> str | None:
    return section.pages.may_offend.get(section.table.signature.task)
