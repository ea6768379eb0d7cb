"""The embedded dataset, recounted with plain loops."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import pytest

from builders.output import Draft
from builders.synthbias import embedded
from builders.synthbias.frame import Frame
from builders.synthbias.frames_open import OPEN_FRAMES
from builders.synthbias.frames_settled import SETTLED_FRAMES
from schemas.errors import ConfigError
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import occupations
from schemas.tables import content_sha256

DROPPED = {"supervisor|designer", "supervisor|editor", "manager|editor", "salesperson|designer", "salesperson|editor"}

CONTENT_SHA256 = {
    "type1": "a1c29733c752ff1fd528343504ef0384763f94ac08614c95358a689d96138eb2",
    "type2": "e79ca5e788827dbdc77ea2c15d837e56bc1a5fe2fcaa8d7c02967009effcb8a9",
}
"""Of version 1.0.0, seed 0. A change of any item raises DATASET_VERSION; then take over the new hashes."""


@pytest.fixture(scope="module")
def whole() -> Draft[CoreferenceItem]:
    return embedded.draft()


def items_of(draft: Draft[CoreferenceItem], config: str) -> list[CoreferenceItem]:
    (split,) = [split for split in draft.splits if split.config == config]
    return list(split.items)


def male_side(item: CoreferenceItem) -> str:
    return next(name for name in item.occupations if occupations()[name].stereotype == "male")


def test_counts_per_type(whole: Draft[CoreferenceItem]) -> None:
    assert [(split.config, split.split, len(split.items)) for split in whole.splits] == [
        ("type1", "test", 3160),
        ("type2", "test", 3160),
    ]


def test_the_five_close_pairs_are_rejected_and_nothing_else(whole: Draft[CoreferenceItem]) -> None:
    assert {reject.candidate for reject in whole.rejects} == DROPPED
    assert {reject.rule for reject in whole.rejects} == {"gap_too_small"}
    for split in whole.splits:
        clusters = {item.cluster for item in split.items}
        assert len(clusters) == 395
        assert not clusters & DROPPED


def test_items_do_not_change_within_a_version(whole: Draft[CoreferenceItem]) -> None:
    assert whole.version == "1.0.0"
    found = {split.config: content_sha256(split.items) for split in whole.splits}
    assert found == CONTENT_SHA256


def test_the_two_sides_of_a_pair_differ_in_one_word_only(whole: Draft[CoreferenceItem]) -> None:
    pairs: dict[str, list[CoreferenceItem]] = defaultdict(list)
    for split in whole.splits:
        for item in split.items:
            pairs[item.pair_id].append(item)
    assert len(pairs) == 3160
    for he, she in pairs.values():
        assert (he.pronoun_gender, she.pronoun_gender) == ("masculine", "feminine")
        left, right = he.sentence.rstrip(".").split(" "), she.sentence.rstrip(".").split(" ")
        differing = [(a.strip(","), b.strip(",")) for a, b in zip(left, right, strict=True) if a != b]
        assert differing == [(he.pronoun, she.pronoun)]
        assert {he.stereotype, she.stereotype} in ({"pro", "anti"}, {None})
        assert (he.occupations, he.referent, he.template_id) == (she.occupations, she.referent, she.template_id)


def test_no_text_stands_twice_in_any_type(whole: Draft[CoreferenceItem]) -> None:
    texts = [item.sentence for split in whole.splits for item in split.items]
    assert len(set(texts)) == len(texts)


def test_type_2_has_each_cell_once_per_occupation_pair(whole: Draft[CoreferenceItem]) -> None:
    cells: dict[str, Counter[tuple[bool, str, str]]] = defaultdict(Counter)
    for item in items_of(whole, "type2"):
        assert item.referent == item.reference
        assert item.referent is not None
        mentioned_first = item.sentence.index(f" {item.referent} ") < 5
        cells[item.cluster][mentioned_first, occupations()[item.referent].stereotype, item.pronoun_gender] += 1
    expected = Counter(product((True, False), ("male", "female"), ("masculine", "feminine")))
    assert len(cells) == 395
    assert all(found == expected for found in cells.values())


def test_type_1_has_both_orders_of_mention_equally_often_and_no_answer(whole: Draft[CoreferenceItem]) -> None:
    orders: dict[str, Counter[bool]] = defaultdict(Counter)
    for item in items_of(whole, "type1"):
        assert item.referent is None
        assert item.stereotype is None
        assert item.reference == item.occupations[0]
        orders[item.cluster][item.occupations[0] == male_side(item)] += 1
    assert all(found == {True: 4, False: 4} for found in orders.values())


def test_frames_are_balanced_over_occupations_positions_and_stereotypes(whole: Draft[CoreferenceItem]) -> None:
    counts: Counter[tuple[str, str, int, str]] = Counter()
    for split in whole.splits:
        for item in split.items:
            if item.pronoun_gender == "masculine":
                referent = "none" if item.referent is None else occupations()[item.referent].stereotype
                for place, occupation in enumerate(item.occupations):
                    counts[str(item.template_id), occupation, place, referent] += 1
    missing: Counter[str] = Counter(name for pair in DROPPED for name in pair.split("|"))
    for frame in [frame for group in OPEN_FRAMES for frame in group]:
        for occupation, place in product(occupations(), (0, 1)):
            found = counts[frame.frame_id, occupation, place, "none"]
            assert 1 - missing[occupation] <= found <= 1
    for frame in [frame for group in SETTLED_FRAMES.values() for frame in group]:
        for occupation, place in product(occupations(), (0, 1)):
            # Whether the occupation is the referent follows from frame and place, and with it whose list is meant.
            means_it = (frame.referent == "first") == (place == 0)
            own = occupations()[occupation].stereotype
            stereotype = own if means_it else {"male": "female", "female": "male"}[own]
            found = counts[frame.frame_id, occupation, place, stereotype]
            assert 1 - missing[occupation] <= found <= 1
    per_frame = Counter(item.template_id for split in whole.splits for item in split.items)
    assert len(per_frame) == 80
    assert max(per_frame.values()) - min(per_frame.values()) <= 4 * len(DROPPED)


def test_the_same_seed_gives_the_same_items_and_another_seed_others(whole: Draft[CoreferenceItem]) -> None:
    assert embedded.draft() == whole
    other = embedded.draft(seed=1)
    assert {item.sentence for item in items_of(other, "type2")} != {item.sentence for item in items_of(whole, "type2")}
    assert len(items_of(other, "type2")) == 3160


@pytest.mark.parametrize("limit", [4, 7, 16, 200, 1580, 6320, 10_000])
def test_a_limit_keeps_whole_pairs_of_both_types_and_the_balance(whole: Draft[CoreferenceItem], limit: int) -> None:
    short = embedded.draft(limit=limit)
    kept = [item for split in short.splits for item in split.items]
    assert len(kept) == min(limit // 2 * 2, 6320)
    assert set(Counter(item.pair_id for item in kept).values()) == {2}
    type1, type2 = items_of(short, "type1"), items_of(short, "type2")
    assert abs(len(type1) - len(type2)) <= 2
    assert [item for item in items_of(whole, "type2") if item in type2] == type2
    n_pairs = len(type2) // 2
    # A limit takes a new occupation pair as long as there is one.
    assert len({item.cluster for item in type2}) == min(n_pairs, 395)
    cells: Counter[tuple[bool, str]] = Counter(
        (item.referent == item.occupations[0], occupations()[str(item.referent)].stereotype)
        for item in type2
        if item.stereotype == "pro"
    )
    shares = [cells[cell] for cell in product((True, False), ("male", "female"))]
    assert sum(shares) == n_pairs
    assert max(shares) - min(shares) <= 1


def test_a_limit_below_one_pair_of_each_type_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"--limit 3: one pair from each of type1/test, type2/test needs at least 4 items"
    ):
        embedded.draft(limit=3)


def test_a_candidate_that_breaks_a_rule_is_rejected_with_it() -> None:
    frame = Frame(frame_id="bad", text="The {first} and the {second} met a man when {nominative} left.", referent=None)
    checked = embedded.check([embedded.Candidate("type1", frame, "cook", "nurse")])
    assert checked.items == []
    (reject,) = checked.rejects
    assert (reject.rule, reject.source_row) == ("gendered_noun", "bad")
    assert reject.candidate == "The cook and the nurse met a man when he left."
    assert reject.reason == "has the gendered noun 'man'"


def test_the_same_text_in_both_types_is_kept_once() -> None:
    text = "The {first} and the {second} talked until {nominative} left."
    as_open = embedded.Candidate("type1", Frame(frame_id="o", text=text, referent=None), "cook", "nurse")
    as_settled = embedded.Candidate("type2", Frame(frame_id="s", text=text, referent="first"), "cook", "nurse")
    checked = embedded.check([as_open, as_settled])
    assert [item.template_id for item in checked.items] == ["o", "o"]
    assert [(reject.rule, reject.source_row) for reject in checked.rejects] == [("duplicate_text", "s")]


def test_the_card_says_that_nobody_validated_the_sentences(whole: Draft[CoreferenceItem]) -> None:
    assert whole.human_validated is False
    assert "No human has validated these sentences" in whole.card.data_statement
