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

import pyarrow.parquet
import pytest

from builders.synthbias import embedded, frames
from builders.synthbias.frames import SentenceFrame, measured_leans, open_frames, settled_frames, text_of
from schemas.files.row_files import content_sha256
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon.coreference_cues import CueText, best_cue
from tests import commands

ALL_FRAMES = [*open_frames(), *settled_frames()]


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
    text = " ".join(embedded.how_built().split())
    assert f"2 language models each read {len(rows()) // 2} frames once" in text
    assert "This is no annotation by people." in text
    n_dropped = text_of("dropped.toml").count("[[frame]]")
    assert f"{n_dropped} of these frames were dropped and replaced" in text
    used = {frame.frame_id for frame in open_frames()}
    first, second = (
        {row["frame"] for row in rows() if (row["reader"], row["leans"]) == (reader, "first") and row["frame"] in used}
        for reader in "12"
    )
    found = cells(frames.readings_table().markdown())["type 1: leans to the first"]
    assert found == [str(n) for n in (len(first), len(second), len(first & second))]
    # Where the readers agree, over all frames that were read.
    answers = defaultdict(set)
    for row in rows():
        if row["frame"].startswith("open-"):
            answers[row["frame"]].add(row["leans"])
    n_equal = sum(len(of_frame) == 1 for of_frame in answers.values())
    agreement = cells(frames.agreement_table().markdown())
    assert agreement["more probable"][0] == f"{n_equal} of {len(answers)}"


@pytest.fixture(scope="module")
def items() -> list[CoreferenceItem]:
    return [item for split in embedded.draft().splits for item in split.items if item.referent is not None]


def means_first(item: CoreferenceItem) -> bool:
    return item.referent == item.occupations[0]


@pytest.mark.slow
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
    (type2,) = tmp_path.glob("runs/synthbias@*/baseline__first-mentioned/type2-*")
    said = command(*lean, type2, "--out", "lean.json", status=1)
    assert "no run on type1 of synthbias; run a model on it first" in said
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
