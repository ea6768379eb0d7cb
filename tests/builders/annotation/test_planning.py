"""Who is asked what next."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from biasboard.ground.errors import ConfigError, DataError
from builders.synthbias.annotation.annotated import AnnotatedDataset, sentence_of
from builders.synthbias.annotation.deciding import Policy, decide_pairs
from builders.synthbias.annotation.planning import (
    Request,
    batch_paths,
    chosen_batch,
    n_outstanding,
    plan_batch,
    read_batch,
    write_batch,
)
from builders.synthbias.annotation.platforms import Format, batch_files
from builders.synthbias.annotation.state import State
from builders.synthbias.annotation.votes import Ballot, Vote
from tests.builders.annotation.made_votes import BALLOTS, active, right, state, unanimous, votes

EMPTY = State((), {})


def planned(annotated: AnnotatedDataset, found: State, *names: str) -> list[Request]:
    return plan_batch(decide_pairs(annotated, found, Policy()), annotated.groups, found, names)


def test_the_first_batch_asks_every_sentence_four_times_and_parts_the_sides(annotated: AnnotatedDataset) -> None:
    requests = planned(annotated, EMPTY)
    assert [request.item_id for request in requests] == list(annotated.items)
    assert {request.n_votes for request in requests} == {4}
    groups = defaultdict(set)
    for request in requests:
        groups[request.pair_id].add(request.group)
    assert set(map(frozenset, groups.values())) == {frozenset("AB")}
    masculine = Counter(annotated.groups[item.item_id] for item in annotated.items.values() if item.pronoun == "he")
    assert min(masculine["A"], masculine["B"]) > 0


def test_what_is_decided_is_not_asked_nor_the_other_side_of_what_is_rejected(annotated: AnnotatedDataset) -> None:
    pairs = list(annotated.pairs.values())
    found = unanimous(annotated, leave_out=[pairs[0].pair_id, pairs[1].pair_id])
    lost, waiting = pairs[0].sides[0], pairs[1].sides[0]
    rows = [
        *found.rows,
        *(vote for n in range(4) for vote in votes(lost, f"A{n}", BALLOTS["incoherent"])),
        *(vote for n in range(3) for vote in votes(waiting, f"A{n}", right(waiting))),
    ]
    requests = planned(annotated, State(tuple(rows), found.annotators))
    assert [(request.item_id, request.n_votes) for request in requests] == [
        (pairs[1].sides[0].item_id, 1),
        (pairs[1].sides[1].item_id, 4),
    ]


def test_nobody_is_assigned_both_sides_or_a_sentence_twice(annotated: AnnotatedDataset) -> None:
    names = [f"p{n}" for n in range(9)]
    pair = next(iter(annotated.pairs.values()))
    found = state(votes(pair.sides[0], "p0", right(pair.sides[0])), active(*names))
    requests = planned(annotated, found, *names)
    seen = Counter((request.annotator_id, request.pair_id) for request in requests)
    seen["p0", pair.pair_id] += 1
    assert max(seen.values()) == 1
    per_item = Counter(request.item_id for request in requests)
    assert per_item[pair.sides[0].item_id] == 3
    assert set(per_item.values()) == {3, 4}
    loads = Counter(request.annotator_id for request in requests)
    assert max(loads.values()) - min(loads.values()) <= 2


def test_too_few_annotators_are_spread_over_both_sides(annotated: AnnotatedDataset) -> None:
    requests = planned(annotated, EMPTY, "anna", "ben")
    assert len(requests) == 2 * len(annotated.pairs)
    assert set(Counter(request.item_id for request in requests).values()) == {1}


def test_batches_are_numbered_and_the_same_plan_is_no_new_batch(annotated: AnnotatedDataset, tmp_path: Path) -> None:
    requests = planned(annotated, EMPTY)
    first = write_batch(tmp_path, requests)
    assert (first.name, write_batch(tmp_path, requests)) == ("0001.csv", first)
    assert read_batch(first) == requests
    second = write_batch(tmp_path, requests[:4])
    assert [path.name for path in batch_paths(tmp_path)] == ["0001.csv", "0002.csv"]
    assert (chosen_batch(tmp_path, None), chosen_batch(tmp_path, 1)) == (second, first)
    with pytest.raises(ConfigError, match="no batch 3 here; have: 0001, 0002"):
        chosen_batch(tmp_path, 3)
    with pytest.raises(ConfigError, match="no batch here; plan one"):
        chosen_batch(tmp_path / "none", None)
    second.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"0002\.csv:1: has the columns a,b, not item_id.*; remove it"):
        read_batch(second)


def test_outstanding_votes_are_counted(annotated: AnnotatedDataset) -> None:
    requests = planned(annotated, EMPTY)[:2]
    (one, other) = (request.item_id for request in requests)
    assert n_outstanding(requests, {}) == 8
    assert n_outstanding(requests, {one: 4, other: 1}) == 3
    assert n_outstanding(requests, {one: 6, other: 4}) == 0


def test_files_are_apart_by_group_and_number_or_by_annotator(annotated: AnnotatedDataset) -> None:
    sentences = {item_id: sentence_of(item) for item_id, item in annotated.items.items()}
    requests = planned(annotated, EMPTY)
    assert list(batch_files("0001", requests, sentences, Format.CSV)) == ["0001-A-4-votes.csv", "0001-B-4-votes.csv"]
    assigned = planned(annotated, EMPTY, "../anna", "ben")
    assert list(batch_files("0002", assigned, sentences, Format.LABEL_STUDIO)) == [
        "0002-for-.._anna.json",
        "0002-for-ben.json",
        "interface.xml",
    ]


def test_a_whole_annotation_ends_and_asks_nothing_in_vain(annotated: AnnotatedDataset) -> None:
    rng = np.random.default_rng(5)
    names = [f"p{n}" for n in range(30)]
    found = State((), active(*names))
    for _ in range(8):
        requests = planned(annotated, found, *names)
        if not requests:
            break
        rows: list[Vote] = list(found.rows)
        for request in requests:
            item = annotated.items[request.item_id]
            noisy = Ballot(
                bool(rng.random() < 0.97), *(bool(answer) ^ (rng.random() < 0.15) for answer in right(item)[1:])
            )
            rows += votes(item, request.annotator_id, noisy if noisy.coherent else BALLOTS["incoherent"])
        found = State(tuple(rows), found.annotators)
    decisions = decide_pairs(annotated, found, Policy())
    assert "undecided" not in {pair.verdict for pair in decisions}
    totals = [side.tally.coherent.n for pair in decisions for side in pair.sides]
    assert min(totals) >= 4
    assert max(totals) <= 10
    assert any(n > 4 for n in totals)
