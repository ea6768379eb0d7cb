"""The embedded dataset, recounted with plain loops."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

import pytest

from builders.dataset.output import Draft
from builders.synthbias import embedded
from builders.synthbias.frames import SentenceFrame
from schemas.files.row_files import content_sha256
from schemas.folders.dataset_folder import read_manifest
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import occupations
from tests import commands
from tests.terminal import without_progress

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


def test_another_seed_assigns_other_frames() -> None:
    pairs, _ = embedded.occupation_pairs()
    one, other = (list(embedded.candidates(pairs, seed=seed)) for seed in (0, 1))
    assert len(one) == len(other) == 6_320
    assert set(one) != set(other)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [4, 7, 1580, 20_000])
def test_a_limit_keeps_whole_pairs_of_both_types_and_the_balance(limit: int) -> None:
    short = embedded.draft(limit=limit)
    kept = [item for split in short.splits for item in split.items]
    assert len(kept) == min(limit // 2 * 2, 12_640)
    assert set(Counter(item.pair_id for item in kept).values()) == {2}
    type1, type2 = items_of(short, "type1"), items_of(short, "type2")
    assert abs(len(type1) - len(type2)) <= 2
    # A limit takes a new occupation pair as long as there is one.
    assert len({item.cluster for item in type2}) == min(len(type2) // 2, 395)
    cells: Counter[tuple[bool, str]] = Counter(
        (item.referent == item.occupations[0], occupations()[str(item.referent)].stereotype) for item in type2
    )
    shares = [cells[cell] for cell in product((True, False), ("male", "female"))]
    assert max(shares) - min(shares) <= 2


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


@pytest.mark.slow
def test_the_plain_command_builds_the_embedded_dataset(tmp_path: Path) -> None:
    done = commands.run("-m", "builders.synthbias", cwd=tmp_path, status=0)
    assert without_progress(done.stderr) == ""
    manifest = read_manifest(tmp_path / "out/datasets/synthbias")
    assert (manifest.name, manifest.benchmark, manifest.seed) == ("synthbias", "synthbias", 0)
    assert sum(entry.n_items for entry in manifest.splits) == 12_640
    assert "type2/test: 6320 rows, 3160 pairs, 0 orphans" in done.stdout
    assert "5 gap_too_small" in done.stdout
    assert "next: biasboard run --dataset out/datasets/synthbias " in done.stdout
    again = commands.run("-m", "builders.synthbias", cwd=tmp_path, status=1)
    assert (again.stdout, without_progress(again.stderr).count("\n")) == ("", 1)
    assert "--overwrite" in again.stderr
