"""The frames: their grammar, every fill of every frame, how they were read, and what predicts their referents."""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections import Counter, defaultdict
from io import StringIO
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from biasboard.ground.columns import FloatArray, IntArray
from biasboard.ground.cue_search import cues_of, decision_tables
from builders.synthbias import embedded, frame_readings
from builders.synthbias.frames import SentenceFrame, open_frames, open_groups, settled_frames, settled_groups, text_of
from builders.synthbias.position_lean import measured_leans
from schemas.files.row_files import content_sha256
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import CASES
from schemas.lexicon.coreference_cues import CueText, best_cue, masked_words, positions_and_lengths
from tests import commands

ALL_FRAMES = [*open_frames(), *settled_frames()]


def test_there_are_enough_frames_of_each_kind_in_each_group() -> None:
    assert [len(group) for group in open_groups()] == [20] * 6
    assert [len(group) for group in settled_groups()] == [20] * 3
    assert (len(open_frames()), len(settled_frames())) == (120, 240)
    assert len({frame.frame_id for frame in ALL_FRAMES}) == len({frame.text for frame in ALL_FRAMES}) == 360
    assert {(frame.referent, frame.cue) for frame in open_frames()} == {(None, None)}
    assert Counter(frame.referent for frame in settled_frames()) == {"first": 120, "second": 120}
    assert Counter(frame.cue for frame in settled_frames()) == {"world": 112, "meaning": 100, "syntax": 28}
    assert Counter(frame.setting for frame in settled_frames()) == {"work": 120, "everyday": 120}
    assert {frame.case for frame in settled_frames()} == set(CASES)
    cases = Counter(frame.case for frame in open_groups()[0])
    assert set(cases) == set(CASES)
    for group in open_groups():
        assert Counter(frame.case for frame in group) == cases
        assert Counter(frame.setting for frame in group) == {"work": 10, "everyday": 10}
    for found in (open_frames(), settled_frames()):
        beginnings = Counter(frame.text.split()[0] for frame in found)
        assert len(beginnings) >= 12
        assert beginnings["The"] <= 0.75 * len(found)


def test_no_dropped_frame_is_in_use_and_open_ones_invert_no_subject() -> None:
    dropped = tomllib.loads(text_of("dropped.toml"))["frame"]
    assert all(row["why"] for row in dropped)
    assert not {row["id"] for row in dropped} & {frame.frame_id for frame in ALL_FRAMES}
    assert not {row["text"] for row in dropped} & {frame.text for frame in ALL_FRAMES}
    # In "beside the a sits the b", readers and models take the pronoun for the one that is named last.
    assert not [frame for frame in open_frames() if re.search(r"(stands|sat) the \{second\}", frame.text)]


@pytest.mark.parametrize(
    "text", ["The {first} saw the {second}.", "The {first} told the {second} {nominative} {reflexive}."]
)
def test_a_frame_needs_exactly_one_pronoun_slot(text: str) -> None:
    with pytest.raises(ValueError, match="write exactly one"):
        _ = SentenceFrame(frame_id="x", text=text, referent=None).case


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text_of("votes.csv"))))


def cells(table: str) -> dict[str, list[str]]:
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {line[0]: line[1:] for line in found}


def test_two_readers_read_each_frame_once_and_none_in_use_otherwise_than_intended() -> None:
    counts = Counter((row["frame"], row["reader"]) for row in rows())
    assert counts == dict.fromkeys(product({row["frame"] for row in rows()}, "12"), 1)
    wanted = {None: ("y", "y"), "first": ("y", "n"), "second": ("n", "y")}
    referents = {frame.frame_id: frame.referent for frame in (*open_frames(), *settled_frames())}
    for row in rows():
        if row["frame"] in referents:
            assert row["coherent"] == "y", row
            assert (row["first"], row["second"]) == wanted[referents[row["frame"]]], row

    leans = Counter(row["leans"] for row in rows() if row["frame"] in {frame.frame_id for frame in open_frames()})
    assert leans["neither"] > leans["first"] + leans["second"]
    assert abs(leans["first"] - leans["second"]) <= 0.1 * sum(leans.values())


def test_the_card_counts_the_readings_and_says_who_read() -> None:
    in_use = {frame.frame_id for frame in ALL_FRAMES}
    text = " ".join(embedded.how_built().split())
    n_unread = len(in_use - {row["frame"] for row in rows()})
    unread = f"{n_unread} of the {len(in_use)} frames in use were read by nobody but their author."
    assert (unread in text) == (n_unread > 0)
    assert f"2 language models each read {len(rows()) // 2} frames once" in text
    assert "This is no annotation by people." in text
    n_dropped = text_of("dropped.toml").count("[[frame]]")
    assert f"{n_dropped} of these frames were dropped and replaced" in text
    table = cells(frame_readings.readings_table().markdown())
    used = {frame.frame_id for frame in open_frames()}
    by_reader = [[row for row in rows() if row["reader"] == reader and row["frame"] in used] for reader in "12"]
    for lean, name in (("first", "the first"), ("second", "the second"), ("neither", "neither")):
        told = [{row["frame"] for row in found if row["leans"] == lean} for found in by_reader]
        expected = [len(told[0]), len(told[1]), len(told[0] & told[1])]
        assert table[f"type 1: leans to {name}"] == [str(n) for n in expected]
    n_settled = len({row["frame"] for row in rows()} & {frame.frame_id for frame in settled_frames()})
    assert table["type 2: the referent possible, and nobody else"] == [str(n_settled)] * 3

    # Where the readers agree, over all frames that were read.
    table = cells(frame_readings.agreement_table().markdown())
    for kind, place in (("open-", 0), ("settled-", 1)):
        answers = defaultdict(set)
        for row in rows():
            if row["frame"].startswith(kind):
                answers[row["frame"]].add(row["leans"])
        n_equal = sum(len(found) == 1 for found in answers.values())
        assert table["more probable"][place] == f"{n_equal} of {len(answers)}"


@pytest.fixture(scope="module")
def items() -> list[CoreferenceItem]:
    checked = embedded.check(embedded.candidates(embedded.occupation_pairs()[0], seed=0))
    return [item for item in checked.items if item.referent is not None]


def means_first(item: CoreferenceItem) -> bool:
    return item.referent == item.occupations[0]


def test_cues_chosen_by_the_answers_lead_by_no_more_than_chance_gives(items: list[CoreferenceItem]) -> None:
    """The best of many cues leads in any data; here as much as where a coin exchanges the referents of quadruples."""
    words = [masked_words(item.sentence, item.occupations) for item in items]
    names, holds = cues_of(words, positions_and_lengths(words), [str(item.template_id) for item in items])
    assert len(names) >= 231
    quadruple_of = np.unique([str(item.template_id) for item in items], return_inverse=True)[1]
    answers = np.array([int(not means_first(item)) for item in items])

    def best(means_second: IntArray) -> FloatArray:
        _, single, _, stack = decision_tables(holds, np.eye(2)[means_second])
        return np.array([(table.predict(holds) == means_second).mean() for table in (single, stack)])

    exchanged = np.random.default_rng(0).integers(0, 2, (39, quadruple_of.max() + 1))
    by_chance = np.array([best(answers ^ of_quadruples[quadruple_of]) for of_quadruples in exchanged])
    assert ((by_chance >= best(answers)).mean(axis=0) >= 0.05).all()


def test_the_best_cue_is_no_better_than_a_coin_and_the_card_says_so(items: list[CoreferenceItem]) -> None:
    texts = [CueText(item.sentence, item.occupations, means_first(item), str(item.template_id)) for item in items]
    right = [guess == text.means_first for guess, text in zip(best_cue(texts).means_first, texts, strict=True)]
    share = sum(right) / len(right)
    assert share <= 0.52
    assert f"| type2/test | {share:.3f} |" in embedded.draft().card.known_limits


@pytest.mark.slow
def test_the_command_measures_each_model(tmp_path: Path) -> None:
    def command(module: str, *arguments: object, status: int = 0) -> str:
        done = commands.run("-m", module, *arguments, cwd=tmp_path, status=status)
        return done.stderr if status else done.stdout

    command("builders.synthbias", "--limit", "400", "--out", "dataset")
    baselines = ("--backend", "baseline", "--model", "all")
    command("evaluators", "run", "--dataset", "dataset", "--out", "runs", *baselines)
    lean = ("builders.synthbias", "lean")
    (tmp_path / "none").mkdir()
    assert command(*lean, "none", "--out", "lean.json", status=1).count("\n") == 1
    (type2,) = tmp_path.glob("runs/synthbias@*/baseline__first-mentioned/type2-*")
    said = command(*lean, type2, "--out", "lean.json", status=1)
    assert "no run on type1 of synthbias; run a model on it first" in said
    assert not (tmp_path / "lean.json").exists()

    said = command(*lean, "runs", "--out", "lean.json")
    assert "baseline/first-mentioned: first in 1.0000 of 200 items" in said
    found = {row["model"]: row for row in json.loads((tmp_path / "lean.json").read_text())["leans"]}
    assert found["baseline/uniform"]["first_rate"] == 0.5
    assert found["baseline/last-mentioned"]["first_rate"] == found["baseline/last-mentioned"]["first_probability"] == 0
    # Recounted from the records: the stereotype of each item, not its position, decides.
    (records,) = tmp_path.glob("runs/synthbias@*/baseline__stereotype-0.7/type1-*/records.parquet")
    firsts = [
        dict(zip(row["reading"]["outcomes"], row["reading"]["probabilities"], strict=True))[row["reference"]]
        for row in pyarrow.parquet.read_table(records).to_pylist()
    ]
    assert (len(firsts), {round(p, 6) for p in firsts}) == (200, {0.3, 0.7})
    told = found["baseline/stereotype-0.7"]
    assert told["first_probability"] == pytest.approx(sum(firsts) / len(firsts))
    assert told["first_rate"] == pytest.approx(sum(p > 0.5 for p in firsts) / len(firsts))


@pytest.mark.slow
def test_what_the_card_shows_was_measured_on_this_version() -> None:
    draft = embedded.draft()
    (type1,) = [split for split in draft.splits if split.config == "type1"]
    leans = measured_leans()
    assert {lean["items_sha256"] for lean in leans} == {content_sha256(type1.items)}
    assert {(lean["dataset_version"], lean["n_scored"]) for lean in leans} == {(draft.version, len(type1.items))}
    by_model = {lean["model"]: lean for lean in leans}
    assert by_model["baseline/uniform"]["first_rate"] == 0.5
    assert any(not model.startswith("baseline/") for model in by_model)
    for lean in leans:
        row = f"| {lean['model']} | {lean['n_scored']} | {lean['first_rate']:.3f} | {lean['first_probability']:.3f} |"
        assert row in draft.card.known_limits
