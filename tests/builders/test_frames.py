"""The frames: their grammar, and every fill of every frame."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from biasboard.ground.errors import DataError
from builders.synthbias import frames
from builders.synthbias.checks import EMBEDDED, Sentence, first_finding
from builders.synthbias.frames import SentenceFrame, open_frames, open_groups, settled_frames, settled_groups, text_of
from builders.synthbias.minimal_pairs import items_of
from schemas.lexicon import occupations

ALL_FRAMES = [*open_frames(), *settled_frames()]

# Written out, not taken from the lexicon: the fills are compared with what a reader of English expects.
FORMS = {
    "nominative": ("he", "she"),
    "accusative": ("him", "her"),
    "possessive_dependent": ("his", "her"),
    "possessive_independent": ("his", "hers"),
    "reflexive": ("himself", "herself"),
}


def test_there_are_enough_frames_and_each_has_its_own_id_and_text() -> None:
    assert [len(group) for group in open_groups()] == [20] * 6
    assert [len(group) for group in settled_groups()] == [20] * 3
    assert (len(open_frames()), len(settled_frames())) == (120, 240)
    assert len({frame.frame_id for frame in ALL_FRAMES}) == len({frame.text for frame in ALL_FRAMES}) == 360


def test_open_frames_have_no_referent_and_no_cue_and_settled_ones_have_both() -> None:
    assert {(frame.referent, frame.cue) for frame in open_frames()} == {(None, None)}
    assert Counter(frame.referent for frame in settled_frames()) == {"first": 120, "second": 120}
    assert Counter(frame.cue for frame in settled_frames()) == {"world": 112, "meaning": 100, "syntax": 28}


def n_shared(texts: tuple[str, str]) -> int:
    """Return the number of characters with which two texts begin alike."""
    return next(n for n, (one, other) in enumerate(zip(*texts, strict=False)) if one != other)


def test_each_half_of_a_quadruple_is_in_one_frame_of_either_referent() -> None:
    """Each frame shares its beginning with one frame of the other referent, and its ending with the other one."""
    for group in settled_groups():
        for _, firsts, seconds in group:
            assert [frame.referent for frame in (*firsts, *seconds)] == ["first", "first", "second", "second"]
            for frame in firsts:
                beginnings = [n_shared((frame.text, other.text)) for other in seconds]
                endings = [n_shared((frame.text[::-1], other.text[::-1])) for other in seconds]
                assert max(beginnings) + max(endings) >= len(frame.text)
                assert beginnings.index(max(beginnings)) != endings.index(max(endings))
    assert {frame.case for frame in settled_frames()} == set(FORMS)


def test_open_groups_have_the_same_cases() -> None:
    cases = [Counter(frame.case for frame in group) for group in open_groups()]
    assert all(found == cases[0] for found in cases)
    assert set(cases[0]) == set(FORMS)


def test_half_of_the_open_frames_of_each_group_and_of_the_settled_ones_are_about_work() -> None:
    for group in open_groups():
        assert Counter(frame.setting for frame in group) == {"work": 10, "everyday": 10}
    assert Counter(frame.setting for frame in settled_frames()) == {"work": 120, "everyday": 120}


def test_frames_begin_in_many_ways() -> None:
    for found in (open_frames(), settled_frames()):
        beginnings = Counter(frame.text.split()[0] for frame in found)
        assert len(beginnings) >= 12
        assert beginnings["The"] <= 0.75 * len(found)


def broken(name: str, change: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a file of frames be read with a change."""
    changed = change(text_of(name))
    assert changed != text_of(name)
    monkeypatch.setattr(frames, "text_of", lambda asked: changed if asked == name else text_of(asked))
    for cached in (open_groups, settled_groups):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (open_groups, settled_groups):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "open.toml",
            lambda text: text.replace('setting = "work"\n', "", 1),
            "frame 1: has the fields id, text; write",
        ),
        ("open.toml", lambda text: text.replace('"work"', '"office"', 1), "frame 1: write a setting of work, everyday"),
        (
            "settled.toml",
            lambda text: text.replace('"world"', '"tone"', 1),
            "quadruple 1: write a setting of .* and a cue",
        ),
        (
            "settled.toml",
            lambda text: re.sub(r"(endings = \[\n).*\n", r"\1", text, count=1),
            "quadruple 1: write two beginnings and two endings",
        ),
        (
            "settled.toml",
            lambda text: re.sub(r"beginnings = \[[^]]*\]", 'beginnings = "The"', text, count=1),
            "quadruple 1: has the fields beginnings, cue, endings, id, setting; write",
        ),
        ("open.toml", lambda text: text[: text.rindex("[[frame]]")], "119 entries; write a multiple of 60"),
    ],
)
def test_a_file_of_frames_that_breaks_the_format_is_refused(
    name: str, change: Callable[[str], str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = open_groups if name == "open.toml" else settled_groups
    for _ in broken(name, change, monkeypatch):
        with pytest.raises(DataError, match=f"{name}: .*{message}"):
            reader()
    assert len(open_frames()) == 120


def test_no_dropped_frame_is_in_use() -> None:
    dropped = tomllib.loads(text_of("dropped.toml"))["frame"]
    assert all(row["why"] for row in dropped)
    assert not {row["id"] for row in dropped} & {frame.frame_id for frame in ALL_FRAMES}
    assert not {row["text"] for row in dropped} & {frame.text for frame in ALL_FRAMES}


@pytest.mark.parametrize("frame", ALL_FRAMES, ids=lambda frame: frame.frame_id)
def test_every_fill_of_a_frame_keeps_the_rules_and_both_genders_differ_in_one_token(frame: SentenceFrame) -> None:
    male = [name for name, occupation in occupations().items() if occupation.stereotype == "male"]
    female = [name for name, occupation in occupations().items() if occupation.stereotype == "female"]
    # Each occupation stands in both places; the builder checks the sentences of all pairs.
    for one, other in zip(male, female, strict=True):
        for first, second in ((one, other), (other, one)):
            he, she = items_of(frame.about(first, second), template_id=None, source_row=None)
            assert (he.pronoun, she.pronoun) == FORMS[frame.case]
            for filled in (he, she):
                sentence = Sentence(text=filled.sentence, meant=(first, second))
                assert first_finding(sentence, EMBEDDED) is None, filled.sentence
                assert filled.sentence[filled.pronoun_start :].startswith(filled.pronoun)
                assert re.search(rf"(?i:the) {first}\b.*the {second}\b", filled.sentence)
            left, right = (re.findall(r"\w+|[^\w\s]", filled.sentence) for filled in (he, she))
            assert len(left) == len(right)
            assert [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]] == [FORMS[frame.case]]


@pytest.mark.parametrize(
    "text", ["The {first} saw the {second}.", "The {first} told the {second} {nominative} {reflexive}."]
)
def test_a_frame_needs_exactly_one_pronoun_slot(text: str) -> None:
    with pytest.raises(ValueError, match="write exactly one"):
        _ = SentenceFrame(frame_id="x", text=text, referent=None).case
