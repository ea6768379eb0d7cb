"""What is masked in sentences, and what the best cue predicts."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from schemas.lexicon import CASES, cases_of, families_of, gender_of_pronoun, occupations, pronoun_families
from schemas.lexicon.coreference_cues import (
    MAX_DEPTH,
    CueText,
    best_cue,
    cues_of,
    decision_tables,
    masked_words,
    positions_and_lengths,
    predict_by_cues,
)

MALE, FEMALE = ("cook", "guard", "lawyer", "mover", "chief"), ("nurse", "clerk", "baker", "writer", "CEO")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The CEO's cook left.", "the <occupation> ' s <occupation> left ."),
        ("The cooks and the cook.", "the cooks and the <occupation> ."),
        ("He saw her, himself!", "<he/she> saw <him/his/her> , <himself/herself> !"),
        ("'Hers' is hers; his is his.", "' <him/his/her> ' is <him/his/her> ; <him/his/her> is <him/his/her> ."),
        ("Then the well-known cook said “she”.", "then the well-known <occupation> said “ <he/she> ” ."),
        ("", ""),
    ],
)
def test_occupations_and_the_gender_of_pronouns_are_masked(text: str, words: str) -> None:
    assert " ".join(masked_words(text, ("cook", "CEO"))) == words


def test_positions_are_counted_in_words() -> None:
    found = positions_and_lengths([masked_words("The cook met the nurse when she left.", ("cook", "nurse")), ("rain",)])
    assert [values.tolist() for name, values in found.items() if name.startswith("words")] == [
        *([1, -1], [4, -1], [6, -1], [2, 0], [3, 2], [9, 1])
    ]


def texts(name: str = "") -> list[CueText]:
    """Sixteen frames with all pairs of occupations and both pronouns, where *asked* tells the referent."""
    words = product(("At noon", "Today"), ("asked", "told"), ("before", "until", "when", "since"))
    return [
        CueText(f"{opening} the {one} {verb} the {two} {ending} {pronoun} left.", (one, two), verb == "asked", frame)
        for number, (opening, verb, ending) in enumerate(words)
        for frame in [name and f"{name} {number}"]
        for one, two in product(MALE, FEMALE)
        for pronoun in ("he", "she")
    ]


def test_a_word_that_tells_the_referent_is_found_and_the_occupations_tell_nothing() -> None:
    for name in ("", "frame"):
        best = best_cue(texts(name))
        assert list(best.means_first) == [text.means_first for text in texts(name)]
        assert "'asked'" in best.rules[0] or "'told'" in best.rules[0]
    made = [text._replace(means_first=text.occupations[0] in MALE[:3]) for text in texts()]
    right = [guess == text.means_first for guess, text in zip(best_cue(made).means_first, made, strict=True)]
    # The referent is an occupation, which is masked: only the most frequent answer is left.
    assert sum(right) / len(right) == pytest.approx(0.6, abs=0.02)


N_FRAMES, N_PAIRS = 60, 12
FILLING = ["apple", "bread", "chair", "dance", "earth", "flame", "grass", "horse", "island", "jacket", "kettle"]


def world(seed: int, rule: str) -> tuple[list[list[str]], np.ndarray, list[str], list[str]]:
    """Return texts of frames, their answers by a rule, and the names of their frames and pairs."""
    rng = random.Random(seed)
    texts, answers, frames, pairs = [], [], [], []
    for frame in range(N_FRAMES):
        words = rng.sample(FILLING, 5)
        has_a, has_b = frame % 2, frame // 2 % 2
        words += ["a"] * has_a + ["b"] * has_b
        answer = {
            "either": has_a | has_b,
            "exclusive": has_a ^ has_b,
            "length": int(len(words) > 5),
            "frame": rng.randrange(2),
        }[rule]
        for pair in range(N_PAIRS):
            texts.append(words)
            answers.append(answer)
            frames.append(f"frame {frame}")
            pairs.append(f"pair {pair}")
    return texts, np.array(answers), frames, pairs


def accuracy(seed: int, rule: str) -> float:
    texts, answers, frames, pairs = world(seed, rule)
    numbers = {"length": np.array([len(words) for words in texts], dtype=np.float64)}
    predicted = predict_by_cues(texts, numbers, answers, (frames, pairs))
    return float((predicted.answers == answers).mean())


@pytest.mark.slow
def test_a_rule_of_all_frames_is_learned_and_what_holds_in_single_frames_is_no_better_than_a_coin() -> None:
    """In the last world each frame has an answer of its own, the same in all pairs: whoever saw the frame knows it."""
    assert accuracy(0, "either") == accuracy(0, "length") == 1
    assert np.mean([accuracy(seed, "frame") for seed in range(5)]) == pytest.approx(0.5, abs=0.08)


def test_tables_are_the_best_of_all_single_cues_and_never_worse_with_more() -> None:
    """Recounted with plain loops."""
    rng = np.random.default_rng(3)
    holds, answers = rng.random((80, 9)) < 0.4, rng.integers(0, 3, 80)
    tables = list(decision_tables(holds, np.eye(3)[answers]))

    def n_right(cues: tuple[int, ...]) -> int:
        total = 0
        for combination in product((False, True), repeat=len(cues)):
            rows = [row for row in range(80) if tuple(holds[row, list(cues)]) == combination]
            total += max((sum(answers[row] == answer for row in rows) for answer in range(3)), default=0)
        return total

    assert n_right(tables[1].cues) == max(n_right((cue,)) for cue in range(9))
    found = [int((table.predict(holds) == answers).sum()) for table in tables]
    assert found == [n_right(table.cues) for table in tables]
    assert found == sorted(found)
    # Cues that say nothing alone are a table together.
    texts, answers, frames, _ = world(0, "exclusive")
    names, held = cues_of([[word for word in words if len(word) == 1] for words in texts], {}, frames)
    joint = list(decision_tables(held, np.eye(2)[answers]))
    assert [len(table.cues) for table in joint] == list(range(MAX_DEPTH + 1))
    assert {names[cue] for cue in joint[3].cues} == {"'a'", "'b'", "'a' and 'b'"}
    assert (joint[3].predict(held) == answers).all()


def test_cues_are_words_pairs_adjacent_words_and_thresholds_that_vary() -> None:
    texts = [["the", "cat", "sat"], ["the", "sat", "cat"], ["the", "dog"]]
    names, holds = cues_of(texts, {"length": np.array([3.0, 3.0, 2.0])}, ["1", "2", "3"])
    held = {name: holds[:, index].tolist() for index, name in enumerate(names)}
    assert held["'cat'"] == [True, True, False]
    assert held["'cat sat'"] == [True, False, False]
    assert held["'cat' and 'sat'"] == [True, True, False]
    assert held["length up to 2"] == [False, False, True]
    assert "'the'" not in held


def test_without_texts_or_other_clusters_nothing_is_predicted() -> None:
    assert best_cue([]) == ((), ())
    assert best_cue(texts()[:1]).means_first == (None,)
    for frames, pairs in ((["f", "f"], ["p", "q"]), (["f", "g"], ["p", "p"])):
        predicted = predict_by_cues([["a"], ["b"]], {}, np.arange(2), (frames, pairs))
        assert (predicted.answers.tolist(), predicted.rules) == ([-1, -1], {})


def test_eleven_families_have_five_cases_each_that_lead_back_to_every_family_that_has_them() -> None:
    families = pronoun_families()
    assert list(families) == ["he", "she", "they", "thon", "e", "ae", "co", "vi", "xe", "ey", "ze"]
    classes = {name: family.pronoun_class for name, family in families.items()}
    assert classes == dict.fromkeys(families, "neo") | {"he": "binary", "she": "binary", "they": "neutral"}
    for name, family in families.items():
        assert tuple(family.forms) == CASES, name
        genders = {gender_of_pronoun(form.capitalize()) for form in family.forms.values()}
        assert genders == {{"he": "masculine", "she": "feminine"}.get(name)}
        for case, form in family.forms.items():
            assert form == form.lower()
            assert form.isalpha()
            assert name in families_of(form)
            assert case in cases_of(form, name)
    of_forms = {"em": ("e", "ey"), "EMSELF": ("e", "ey"), "themself": ("they",), "themselves": ("they",)}
    of_forms |= {"nurse": (), "": ()}
    assert {form: families_of(form) for form in of_forms} == of_forms


def test_twenty_occupations_stand_on_each_list_and_395_pairs_are_ten_points_apart_and_nobody_changes_that() -> None:
    lists = {side: [one for one in occupations().values() if one.stereotype == side] for side in ("male", "female")}
    assert {side: len(found) for side, found in lists.items()} == {"male": 20, "female": 20}
    for name, one in occupations().items():
        assert one.name == name
        assert (50 < one.percent_women < 100) == (one.stereotype == "female"), name
        assert one.percent_women > 0
    pairs = product(lists["male"], lists["female"])
    near = {(m.name, f.name) for m, f in pairs if f.percent_women - m.percent_women <= 10}
    assert 400 - len(near) == 395
    assert ("salesperson", "editor") in near
    with pytest.raises(TypeError):
        occupations()["wizard"] = occupations()["nurse"]  # type: ignore[index]
    with pytest.raises(TypeError):
        pronoun_families()["he"].forms["nominative"] = "she"  # type: ignore[index]


def test_occupations_are_those_of_winobias(shared_data: Path) -> None:
    for stereotype in ("male", "female"):
        published = (shared_data / "winobias" / f"{stereotype}_occupations.txt").read_text(encoding="utf-8").split("\n")
        ours = [row.name.lower() for row in occupations().values() if row.stereotype == stereotype]
        assert sorted(filter(None, (line.strip().lower() for line in published))) == sorted(ours)
