"""Repeated candidates: which key finds them, near-duplicates against a plain count, and memory."""

from __future__ import annotations

import gc
import random
import tracemalloc
from itertools import pairwise

import pytest

from builders.synthbias.checks import Duplicates, Sentence
from builders.synthbias.checks.repeated_sentences import DigestTable, NearDuplicates, rows_per_band, shingles_of
from schemas.lexicon import occupations

BASE = "The cook met the nurse at the market before she bought a large bag of apples."


def sentence(text: str, meant: tuple[str, str] = ("cook", "nurse")) -> Sentence:
    return Sentence(text=text, meant=meant)


@pytest.mark.parametrize(
    ("other", "check"),
    [
        (BASE, "repeated_text"),
        (BASE.replace("market", "market,").replace("Cook", "cook"), "repeated_wording"),
        (BASE.replace(" she ", " he "), "repeated_apart_from_pronoun"),
        (BASE.replace("cook", "guard"), "repeated_template"),
        (BASE.replace("large", "small"), "near_duplicate"),
        ("The nurse met the cook at the station, and a dog barked at her.", None),
    ],
)
def test_each_key_finds_its_repetition(other: str, check: str | None) -> None:
    if check == "near_duplicate":
        pytest.importorskip("datasketch", reason="the extra build is not installed")
    seen = Duplicates(template_cap=1, near=0.7 if check == "near_duplicate" else None)
    assert seen.add(sentence(BASE)) is None
    finding = seen.add(sentence(other, ("guard", "nurse") if "guard" in other else ("nurse", "cook")))
    assert (None if finding is None else finding.check) == check
    assert len(seen) == (2 if check is None else 1)


def test_a_rejected_candidate_rejects_no_other() -> None:
    seen = Duplicates(template_cap=1)
    assert seen.add(sentence(BASE)) is None
    guard = sentence(BASE.replace("cook", "guard"), ("guard", "nurse"))
    assert [seen.add(guard), seen.add(guard)] == [seen.add(guard)] * 2
    assert Duplicates(template_cap=2).add(guard) is None


def test_a_table_of_digests_agrees_with_a_dictionary() -> None:
    rng = random.Random(0)
    table, plain = DigestTable(), dict[int, int]()
    for _ in range(5_000):
        # Few different digests, so that numbers are replaced too, and some that share their slot.
        digest, number = rng.randrange(3_000) * 1_000, rng.randrange(1 << 32)
        table[digest or 1] = plain[digest or 1] = number
        assert len(table) == len(plain)
    assert all(table.get(digest) == number for digest, number in plain.items())
    assert table.get(10**15) is None


def made_texts(n: int, rng: random.Random) -> list[list[str]]:
    words = [f"w{number}" for number in range(200)]
    texts = [[rng.choice(words) for _ in range(13)] for _ in range(n)]
    for text in texts[: n // 2]:
        other = list(text)
        for _ in range(rng.randrange(3)):
            other[rng.randrange(13)] = rng.choice(words)
        texts.append(other)
    return texts


@pytest.mark.slow
def test_near_duplicates_agree_with_a_plain_count_of_shingles() -> None:
    pytest.importorskip("datasketch", reason="the extra build is not installed")
    texts = made_texts(600, random.Random(1))
    near = NearDuplicates(0.7)
    kept: list[set[tuple[str, str]]] = []
    n_wanted = n_found = 0
    for text in texts:
        pairs = set(pairwise(text))
        best = max((len(pairs & other) / len(pairs | other) for other in kept), default=0.0)
        found = near.add(shingles_of(text))
        n_wanted += best >= 0.7
        n_found += found is not None
        if found is not None:
            shared = len(pairs & kept[found.number]) / len(pairs | kept[found.number])
            assert found.similarity == pytest.approx(shared)
            assert found.similarity >= 0.7
        else:
            kept.append(pairs)
    assert n_wanted > 150
    assert n_found <= n_wanted
    # The signatures propose at least nine tenths of the pairs at the threshold, and more above it.
    assert n_found / n_wanted >= 0.9


def test_the_threshold_decides_and_has_to_be_a_similarity() -> None:
    pytest.importorskip("datasketch", reason="the extra build is not installed")
    one, other = (shingles_of(BASE.replace("large", word).split()) for word in ("large", "small"))
    for threshold, is_near in ((0.7, True), (0.8, False)):
        near = NearDuplicates(threshold)
        assert near.add(one) is None
        assert (near.add(other) is not None) is is_near
    with pytest.raises(ValueError, match=r"threshold 1\.5: a Jaccard similarity lies between 0 and 1"):
        NearDuplicates(1.5)
    assert [rows_per_band(threshold) for threshold in (0.5, 0.7, 0.9)] == [1, 3, 10]


@pytest.mark.slow
@pytest.mark.parametrize("near", [None, 0.7])
def test_a_candidate_takes_less_than_200_bytes(near: float | None) -> None:
    if near is not None:
        pytest.importorskip("datasketch", reason="the extra build is not installed")
    rng = random.Random(2)
    warm, seen = (Duplicates(template_cap=50, near=near) for _ in range(2))
    for number in range(1, 5_501):
        if number == 501:
            # The caches that any candidate fills are there by now.
            gc.collect()
            tracemalloc.start()
        made = made_candidate(rng)
        assert (warm if number <= 500 else seen).add(made) is None
    try:
        assert 10 < tracemalloc.get_traced_memory()[0] / len(seen) <= 200
    finally:
        tracemalloc.stop()


WORDS = [f"word{number}" for number in range(3_000)]
NAMES = list(occupations())


def made_candidate(rng: random.Random) -> Sentence:
    one, other = rng.sample(NAMES, 2)
    filling = [rng.choice(WORDS) for _ in range(7)]
    return sentence(f"The {one} {' '.join(filling[:5])} the {other} when she {' '.join(filling[5:])}.", (one, other))
