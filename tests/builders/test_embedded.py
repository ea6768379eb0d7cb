"""The embedded dataset, recounted with plain loops."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import product

import pytest

from builders.dataset.output import Draft
from builders.synthbias import embedded
from builders.synthbias.frames import SentenceFrame, open_frames, settled_frames
from schemas.files.row_files import content_sha256
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import occupations

DROPPED = {"supervisor|designer", "supervisor|editor", "manager|editor", "salesperson|designer", "salesperson|editor"}

CONTENT_SHA256 = {
    "type1": "3285fabf6f88ebc093c6fba18c20fa651f6fdd5d9a0d05f9bc58a71119f54d7f",
    "type2": "61c957d13361d74632ef8030426d69e4b01cd5ee3fb3093b56cd8ff1acf12fea",
}
"""Of version 3.0.0, seed 0. A change of any item raises DATASET_VERSION; then take over the new hashes."""


# Written out, not taken from the lexicon: the fills are compared with what a reader of English expects.
FORMS = {
    "nominative": ("he", "she"),
    "accusative": ("him", "her"),
    "possessive_dependent": ("his", "her"),
    "possessive_independent": ("his", "hers"),
    "reflexive": ("himself", "herself"),
}


@pytest.fixture(scope="module")
def whole() -> Draft[CoreferenceItem]:
    return embedded.draft()


def items_of(draft: Draft[CoreferenceItem], config: str) -> list[CoreferenceItem]:
    (split,) = [split for split in draft.splits if split.config == config]
    return list(split.items)


def male_side(item: CoreferenceItem) -> str:
    return next(name for name in item.occupations if occupations()[name].stereotype == "male")


def test_items_do_not_change_within_a_version(whole: Draft[CoreferenceItem]) -> None:
    assert whole.version == "3.0.0"
    assert {split.config: content_sha256(split.items) for split in whole.splits} == CONTENT_SHA256
    assert [(split.config, split.split, len(split.items)) for split in whole.splits] == [
        *(("type1", "test", 6320), ("type2", "test", 6320))
    ]
    assert {reject.candidate for reject in whole.rejects} == DROPPED
    assert {reject.rule for reject in whole.rejects} == {"gap_too_small"}, "every sentence keeps the rules"
    for split in whole.splits:
        clusters = {item.cluster for item in split.items}
        assert len(clusters) == 395
        assert not clusters & DROPPED
    texts = [item.sentence for split in whole.splits for item in split.items]
    assert len(set(texts)) == len(texts)
    assert whole.human_validated is False
    assert "No human has validated these sentences" in whole.card.data_statement


def test_the_two_sides_of_a_pair_differ_in_one_word_only(whole: Draft[CoreferenceItem]) -> None:
    pairs: dict[str, list[CoreferenceItem]] = defaultdict(list)
    for split in whole.splits:
        for item in split.items:
            pairs[item.pair_id].append(item)
    assert len(pairs) == 6320
    for he, she in pairs.values():
        assert (he.pronoun_gender, she.pronoun_gender) == ("masculine", "feminine")
        assert (he.pronoun, she.pronoun) == FORMS[str(he.pronoun_case)]
        left, right = he.sentence.rstrip(".").split(" "), she.sentence.rstrip(".").split(" ")
        differing = [(a.strip(","), b.strip(",")) for a, b in zip(left, right, strict=True) if a != b]
        assert differing == [(he.pronoun, she.pronoun)]
        assert {he.stereotype, she.stereotype} in ({"pro", "anti"}, {None})
        assert (he.occupations, he.referent, he.template_id) == (she.occupations, she.referent, she.template_id)


def test_type_2_has_each_cell_twice_per_occupation_pair(whole: Draft[CoreferenceItem]) -> None:
    cells: dict[str, Counter[tuple[bool, str, str]]] = defaultdict(Counter)
    for item in items_of(whole, "type2"):
        assert item.referent == item.reference
        assert item.referent is not None
        (other,) = set(item.occupations) - {item.referent}
        mentioned_first = re.search(rf"\b{item.referent}\b.*\b{other}\b", item.sentence) is not None
        cells[item.cluster][mentioned_first, occupations()[item.referent].stereotype, item.pronoun_gender] += 1
    expected = Counter(dict.fromkeys(product((True, False), ("male", "female"), ("masculine", "feminine")), 2))
    assert len(cells) == 395
    assert all(found == expected for found in cells.values())


def test_frames_of_type_1_meet_their_occupation_pairs_in_both_orders_and_with_both_pronouns(
    whole: Draft[CoreferenceItem],
) -> None:
    cells: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for item in items_of(whole, "type1"):
        assert (item.referent, item.stereotype, item.reference) == (None, None, item.occupations[0])
        cells[str(item.source_row), item.cluster][item.occupations[0], item.pronoun_gender] += 1
    for (_, cluster), found in cells.items():
        assert found == Counter(product(cluster.split("|"), ("masculine", "feminine")))
    assert set(Counter(cluster for _, cluster in cells).values()) == {4}


def test_each_occupation_pair_meets_two_quadruples_whole(whole: Draft[CoreferenceItem]) -> None:
    """So a rule that knows one half of a sentence, or the order of the occupations, is right in half of them."""
    cells: dict[tuple[str, str], list[CoreferenceItem]] = defaultdict(list)
    for item in items_of(whole, "type2"):
        cells[str(item.template_id), item.cluster].append(item)
    assert set(Counter(cluster for _, cluster in cells).values()) == {2}
    for (template, _), items in cells.items():
        assert Counter((item.source_row, item.pronoun_gender) for item in items) == Counter(
            product((f"{template}-{half}" for half in ("11", "12", "21", "22")), ("masculine", "feminine"))
        )
        referents = Counter(
            (item.referent == item.occupations[0], occupations()[str(item.referent)].stereotype) for item in items
        )
        assert referents == Counter(dict.fromkeys(product((True, False), ("male", "female")), 2))


def test_frames_are_spread_evenly_over_occupations(whole: Draft[CoreferenceItem]) -> None:
    partners: dict[tuple[str, str], set[str]] = defaultdict(set)
    for split in whole.splits:
        for item in split.items:
            for occupation in item.occupations:
                partners[str(item.source_row), occupation].add(item.cluster)
    assert {len(found) for found in partners.values()} == {1}
    per_frame = Counter(frame_id for frame_id, _ in partners)
    assert set(per_frame) == {frame.frame_id for frame in (*open_frames(), *settled_frames())}
    # Twelve or fourteen occupation pairs by design, less those that were dropped.
    n_pairs = [n // 2 for n in per_frame.values()]
    assert 12 - len(DROPPED) <= min(n_pairs) <= max(n_pairs) <= 14
    per_occupation = Counter(occupation for _, occupation in partners)
    missing: Counter[str] = Counter(name for pair in DROPPED for name in pair.split("|"))
    # Four frames of type 1 and eight of type 2 with each partner.
    assert all(per_occupation[name] == 12 * (20 - missing[name]) for name in occupations())


@pytest.mark.slow
def test_another_seed_gives_other_items(whole: Draft[CoreferenceItem]) -> None:
    other = embedded.draft(seed=1)
    assert {item.sentence for item in items_of(other, "type2")} != {item.sentence for item in items_of(whole, "type2")}
    assert len(items_of(other, "type2")) == 6320


@pytest.mark.slow
@pytest.mark.parametrize("limit", [4, 7, 200, 1580, 20_000])
def test_a_limit_keeps_whole_pairs_of_both_types_and_the_balance(whole: Draft[CoreferenceItem], limit: int) -> None:
    short = embedded.draft(limit=limit)
    kept = [item for split in short.splits for item in split.items]
    assert len(kept) == min(limit // 2 * 2, 12_640)
    assert set(Counter(item.pair_id for item in kept).values()) == {2}
    type1, type2 = items_of(short, "type1"), items_of(short, "type2")
    assert abs(len(type1) - len(type2)) <= 2
    kept_ids = {item.item_id for item in type2}
    assert [item for item in items_of(whole, "type2") if item.item_id in kept_ids] == type2
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


def test_a_candidate_that_breaks_a_rule_is_rejected_with_it() -> None:
    frame = SentenceFrame(
        frame_id="bad", text="The {first} and the {second} met a man when {nominative} left.", referent=None
    )
    checked = embedded.check([embedded.FilledFrame(frame, "cook", "nurse")])
    assert checked.items == ()
    (reject,) = checked.rejects
    assert (reject.rule, reject.source_row) == ("gendered_noun", "bad")
    assert reject.candidate == "The cook and the nurse met a man when he left."
    assert reject.reason == "has the gendered noun 'man'"


def test_the_same_text_in_both_types_is_kept_once() -> None:
    text = "The {first} and the {second} talked until {nominative} left."
    as_open = embedded.FilledFrame(SentenceFrame(frame_id="o", text=text, referent=None), "cook", "nurse")
    as_settled = embedded.FilledFrame(SentenceFrame(frame_id="s", text=text, referent="first"), "cook", "nurse")
    checked = embedded.check([as_open, as_settled])
    assert [item.template_id for item in checked.items] == ["o", "o"]
    assert [(reject.rule, reject.source_row) for reject in checked.rejects] == [("duplicate_text", "s")]
