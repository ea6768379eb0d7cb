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

from builders.dataset.output import Draft
from builders.synthbias import embedded
from builders.synthbias.embedded import SentenceFrame, measured_leans, open_frames, settled_frames, text_of
from schemas.files.row_files import content_sha256
from schemas.folders.dataset_folder import read_manifest
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import occupations
from schemas.lexicon.coreference_cues import CueText, best_cue
from tests import commands
from tests.terminal import without_progress

ALL_FRAMES = [*open_frames(), *settled_frames()]
VOTES = list(csv.DictReader(StringIO(text_of("votes.csv"))))


def test_no_dropped_frame_is_in_use_and_each_has_one_pronoun_slot_and_inverts_no_subject() -> None:
    dropped = tomllib.loads(text_of("dropped.toml"))["frame"]
    assert all(row["why"] for row in dropped)
    assert not {row["id"] for row in dropped} & {frame.frame_id for frame in ALL_FRAMES}
    own_fault = {row["text"] for row in dropped if not row["why"].startswith("another frame of its quadruple")}
    assert not own_fault & {frame.text for frame in ALL_FRAMES}
    # Of two people joined by "and", none stands out as the antecedent of "he".
    joined = re.compile(r"\{first\}.{1,12}(and|nor|as) the \{second\}")
    assert not [frame for frame in open_frames() if joined.search(frame.text)]
    # In "beside the a sits the b", readers and models take the pronoun for the one that is named last.
    assert not [frame for frame in open_frames() if re.search(r"(stands|sat) the \{second\}", frame.text)]
    for text in ("The {first} saw the {second}.", "The {first} told the {second} {nominative} {reflexive}."):
        with pytest.raises(ValueError, match="write exactly one"):
            _ = SentenceFrame(frame_id="x", text=text, referent=None).case


def cells(table: str) -> dict[str, list[str]]:
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {line[0]: line[1:] for line in found}


def test_two_readers_read_each_frame_once_and_none_in_use_otherwise_than_intended() -> None:
    counts = Counter((row["frame"], row["reader"]) for row in VOTES)
    assert counts == dict.fromkeys(product({row["frame"] for row in VOTES}, "12"), 1)
    wanted = {None: ("y", "y"), "first": ("y", "n"), "second": ("n", "y")}
    referents = {frame.frame_id: frame.referent for frame in (*open_frames(), *settled_frames())}
    for row in VOTES:
        if row["frame"] in referents:
            assert row["coherent"] == "y", row
            assert (row["first"], row["second"]) == wanted[referents[row["frame"]]], row

    leans = Counter(row["leans"] for row in VOTES if row["frame"] in {frame.frame_id for frame in open_frames()})
    # Two natural antecedents are seldom equal; where nothing leaned, two people were joined by "and".
    assert leans["neither"] > max(leans["first"], leans["second"])
    assert abs(leans["first"] - leans["second"]) <= 0.1 * sum(leans.values())


def test_the_card_counts_the_readings_and_says_who_read() -> None:
    text = " ".join(embedded.how_built().split())
    assert f"2 language models each read {len(VOTES) // 2} frames once" in text
    assert "This is no annotation by people." in text
    n_dropped = text_of("dropped.toml").count("[[frame]]")
    assert f"{n_dropped} of these frames were dropped and replaced" in text
    used = {frame.frame_id for frame in open_frames()}
    first, second = (
        {row["frame"] for row in VOTES if (row["reader"], row["leans"]) == (reader, "first") and row["frame"] in used}
        for reader in "12"
    )
    found = cells(embedded.readings_table().markdown())["type 1: leans to the first"]
    assert found == [str(n) for n in (len(first), len(second), len(first & second))]
    # Where the readers agree, over all frames that were read.
    answers = defaultdict(set)
    for row in VOTES:
        if row["frame"].startswith("open-"):
            answers[row["frame"]].add(row["leans"])
    n_equal = sum(len(of_frame) == 1 for of_frame in answers.values())
    agreement = cells(embedded.agreement_table().markdown())
    assert agreement["more probable"][0] == f"{n_equal} of {len(answers)}"


@pytest.mark.slow
def test_the_best_cue_is_no_better_than_a_coin_and_the_card_says_so(whole: Draft[CoreferenceItem]) -> None:
    texts = [
        CueText(item.sentence, item.occupations, item.referent == item.occupations[0], str(item.template_id))
        for item in items_of(whole, "type2")
    ]
    right = [guess == text.means_first for guess, text in zip(best_cue(texts).means_first, texts, strict=True)]
    share = sum(right) / len(right)
    assert share <= 0.52
    assert f"| type2/test | {share:.3f} |" in whole.card.known_limits


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
def test_what_the_card_shows_was_measured_on_this_version(whole: Draft[CoreferenceItem]) -> None:
    type1 = items_of(whole, "type1")
    leans = measured_leans()
    assert {lean["items_sha256"] for lean in leans} == {content_sha256(type1)}
    assert {(lean["dataset_version"], lean["n_scored"]) for lean in leans} == {(whole.version, len(type1))}
    by_model = {lean["model"]: lean for lean in leans}
    assert by_model["baseline/uniform"]["first_rate"] == 0.5
    assert any(not model.startswith("baseline/") for model in by_model)
    for lean in leans:
        row = f"| {lean['model']} | {lean['n_scored']} | {lean['first_rate']:.3f} | {lean['first_probability']:.3f} |"
        assert row in whole.card.known_limits


DROPPED = {"supervisor|designer", "supervisor|editor", "manager|editor", "salesperson|designer", "salesperson|editor"}

CONTENT_SHA256 = {
    "type1": "2134f114d4ba27746dbf98c877c4524ffd081c0b44b872d6770014b6e3061e83",
    "type2": "1d1bb7f270f9a8766b55d61229aca6efde1e6763b0d9c9c56825313bc0fa9ccb",
}
"""Of version 4.0.0, seed 0. A change of any item raises DATASET_VERSION; then take over the new hashes."""


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
    assert whole.version == "4.0.0"
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
    # Another seed assigns other frames.
    pairs, _ = embedded.occupation_pairs()
    one, other = (list(embedded.candidates(pairs, seed=seed)) for seed in (0, 1))
    assert len(one) == len(other) == 6_320
    assert set(one) != set(other)


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


def test_each_occupation_pair_meets_two_quadruples_whole(whole: Draft[CoreferenceItem]) -> None:
    """So a rule that knows one half of a sentence, or the order of the occupations, is right in half of them."""
    quadruples: dict[tuple[str, str], list[CoreferenceItem]] = defaultdict(list)
    for item in items_of(whole, "type2"):
        quadruples[str(item.template_id), item.cluster].append(item)
    clusters = Counter(cluster for _, cluster in quadruples)
    assert (len(clusters), {*clusters.values()}) == (395, {2})
    for (template, _), items in quadruples.items():
        assert Counter((item.source_row, item.pronoun_gender) for item in items) == Counter(
            product((f"{template}-{half}" for half in ("11", "12", "21", "22")), ("masculine", "feminine"))
        )
        cells: Counter[tuple[bool, str, str]] = Counter()
        for item in items:
            assert item.referent is not None
            assert item.referent == item.reference
            (other,) = {*item.occupations} - {item.referent}
            is_first = re.search(rf"\b{item.referent}\b.*\b{other}\b", item.sentence) is not None
            assert is_first == (item.referent == item.occupations[0])
            cells[is_first, occupations()[item.referent].stereotype, item.pronoun_gender] += 1
        assert cells == Counter(product((True, False), ("male", "female"), ("masculine", "feminine")))


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


def test_a_candidate_that_breaks_a_rule_or_repeats_another_is_rejected_with_it() -> None:
    frame = SentenceFrame(
        frame_id="bad", text="The {first} and the {second} met a man when {nominative} left.", referent=None
    )
    checked = embedded.check([embedded.FilledFrame(frame, "cook", "nurse")])
    assert checked.items == ()
    (reject,) = checked.rejects
    assert (reject.rule, reject.source_row) == ("gendered_noun", "bad")
    assert reject.candidate == "The cook and the nurse met a man when he left."
    assert reject.reason == "has the gendered noun 'man'"
    # The same text in both types is kept once.
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
