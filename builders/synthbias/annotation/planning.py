"""Plans the next batch: which sentences need how many more votes, and from whom."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.files import replacing
from builders.dataset.output import round_robin
from builders.synthbias.annotation.annotated import Group
from builders.synthbias.annotation.deciding import ItemDecision, PairDecision
from builders.synthbias.annotation.safe_csv import columns_of, read_records, render_records
from builders.synthbias.annotation.state import BATCHES, State
from schemas.documents.base import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A sentence that needs votes; a row of a batch."""

    item_id: Text
    pair_id: Text
    group: Group
    annotator_id: str
    """Annotator who is to vote; empty if anybody assigned to the group may."""
    n_votes: int
    n_before: int
    """Number of counting votes when the batch was planned."""


def plan_batch(
    decisions: Sequence[PairDecision], groups: Mapping[str, Group], state: State, annotators: Sequence[str] = ()
) -> list[Request]:
    """Plan the next batch.

    For each sentence the batch asks for the smallest number of votes that could be enough, so that none is wasted.

    Args:
        decisions: Decisions on all pairs, by the votes so far.
        groups: Group of each item.
        state: Votes and annotators so far.
        annotators: Annotators to assign the votes to; nobody gets both sides of a pair, or a sentence twice. Empty to
            leave open who votes.

    Returns:
        The requests in the order of the dataset. If there are too few annotators, fewer votes than needed are assigned.
    """
    # The sides that need votes, by pair; a pair with a rejected side is decided by that.
    open_sides: dict[str, list[ItemDecision]] = {}
    for pair in decisions:
        if pair.verdict == "undecided":
            open_sides[pair.pair_id] = [side for side in pair.sides if side.verdict == "undecided"]
    if not annotators:
        return [_request(side, groups, "", side.n_to_ask) for sides in open_sides.values() for side in sides]
    loads = dict.fromkeys(annotators, 0)
    seen = {(vote.pair_id, vote.annotator_id) for vote in state.standing_votes.values()}
    requests = []
    for pair_id, sides in open_sides.items():
        # In turns, so that few annotators do not all get the first side.
        by_id = {side.item.item_id: side for side in sides}
        for item_id in round_robin([[name] * side.n_to_ask for name, side in by_id.items()]):
            free = [name for name in annotators if (pair_id, name) not in seen]
            if not free:
                break
            # Ties are broken by a hash rather than by name, so that they do not always favour the same annotator.
            hashes = {name: hashlib.sha256(f"{item_id}|{name}".encode()).digest() for name in free}
            chosen = min(hashes.items(), key=lambda one: (loads[one[0]], one[1]))[0]
            loads[chosen] += 1
            seen.add((pair_id, chosen))
            requests.append(_request(by_id[item_id], groups, chosen, 1))
    return requests


def _request(side: ItemDecision, groups: Mapping[str, Group], annotator_id: str, n_votes: int) -> Request:
    item = side.item
    return Request(
        item_id=item.item_id,
        pair_id=item.pair_id,
        group=groups[item.item_id],
        annotator_id=annotator_id,
        n_votes=n_votes,
        n_before=side.tally.coherent.n,
    )


def batch_paths(folder: Path) -> list[Path]:
    """Return the batches of a state, the oldest first."""
    return sorted((folder / BATCHES).glob("[0-9][0-9][0-9][0-9].csv"))


def write_batch(folder: Path, requests: Sequence[Request]) -> Path:
    """Write a batch, unless the last one holds the same requests.

    Returns:
        Path of the batch.
    """
    paths = batch_paths(folder)
    text = render_records(Request, requests)
    if paths and paths[-1].read_bytes() == text.encode():
        return paths[-1]
    path = folder / BATCHES / f"{int(paths[-1].stem) + 1 if paths else 1:04d}.csv"
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode())
    return path


def read_batch(path: Path) -> list[Request]:
    """Read a batch.

    Raises:
        DataError: the file is broken.
    """
    remedy = "remove it, and plan it again: biasboard build synthbias annotate plan"
    other_columns = f", not {','.join(columns_of(Request))}; {remedy}"
    return [request for _, request in read_records(path, Request, remedy=remedy, other_columns=other_columns)]


def chosen_batch(folder: Path, number: int | None) -> Path:
    """Return the path of a batch by its number; None for the last one.

    Raises:
        ConfigError: there is no such batch.
    """
    paths = batch_paths(folder)
    chosen = [path for path in paths if number is None or int(path.stem) == number]
    if not chosen:
        have = f"have: {', '.join(path.stem for path in paths)}" if paths else "plan one: annotate plan"
        raise ConfigError(f"--state {folder}: no batch{'' if number is None else f' {number}'} here; {have}")
    return chosen[-1]


def n_outstanding(requests: Sequence[Request], n_now: Mapping[str, int]) -> int:
    """Return the number of votes of a batch that are still missing."""
    wanted: dict[str, int] = defaultdict(int)
    before = {request.item_id: request.n_before for request in requests}
    for request in requests:
        wanted[request.item_id] += request.n_votes
    return sum(max(0, before[item_id] + n - n_now.get(item_id, 0)) for item_id, n in wanted.items())
