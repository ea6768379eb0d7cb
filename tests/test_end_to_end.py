"""The whole slice as a user walks it: build, score a language model and the baselines, validate, publish."""

from __future__ import annotations

import csv
import io
import random
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders.synthbias.annotation.annotated import read_annotated
from builders.synthbias.annotation.entrance import TEST
from builders.synthbias.annotation.votes import Ballot, VoteQuestion
from schemas.documents.dataset import Reject
from schemas.files.row_files import read_rows
from schemas.folders.run_folder import finished_runs, read_result
from schemas.validate import problems
from tests.builders.annotation.made_votes import BALLOTS
from tests.builders.test_own_sentences import own_rows, written
from tests.commands import output_of
from tests.evaluators.made_data import save_tiny_llama
from tests.worlds import copy_site


@pytest.mark.slow
def test_a_model_reaches_the_site(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    dataset, runs, site = tmp_path / "datasets" / "embedded", tmp_path / "runs", tmp_path / "built"
    output_of("-m", "builders.synthbias", "--out", dataset)
    model = save_tiny_llama(tmp_path / "tiny-llama")
    copy_site(tmp_path)
    asked = ("-m", "evaluators", "run", "--dataset", dataset, "--out", runs, "--limit", "100")
    output_of(*asked, "--backend", "transformers", "--model", model, "--device", "cpu")
    for baseline in ("uniform", "last-mentioned"):
        output_of(*asked, "--backend", "baseline", "--model", baseline)
    output_of("-m", "schemas.validate", dataset, runs)
    folders = ("--runs", runs, "--datasets", dataset.parent, "--results", tmp_path / "none")
    printed = output_of("-m", "leaderboard", "build", *folders, "--site", tmp_path / "site", "--out", site)
    assert "models 1 (ranked 0), baselines 2," in printed
    results = [read_result(folder) for folder in finished_runs(runs)]
    name = f"local/{model.name}"
    assert {result.model.id for result in results} == {name, "baseline/uniform", "baseline/last-mentioned"}
    # Each config has a page of its own; the benchmark's page shows the one that ranks.
    pages = [path.read_text() for path in (site / "benchmarks").rglob("*synthbias*.html")]
    assert all(name in page for page in pages)
    for result in results:
        (ucerf,) = (metric.value for metric in result.metrics if metric.name == "ucerf" and not metric.group)
        assert result.model.id != name or any(f"{ucerf:.3f}" in page for page in pages)


CARELESS, YES_MAN = "reader 07", "reader 13"
READERS = tuple(f"reader {number:02d}" for number in range(1, 21))
REFUSED: Mapping[str, tuple[Ballot, str]] = {
    "goat ate": (BALLOTS["first"], "not_open"),
    "learned to row": (BALLOTS["incoherent"], "incoherent"),
    "owned a good one": (BALLOTS["open"], "both_possible"),
    "too weak": (BALLOTS["second"], "other_referent"),
}
"""Words of sentences that readers understand otherwise than the researcher, how, and the rule that rejects them."""


def truth_of(sentence: str, first: str, second: str, answer: str) -> Ballot:
    """How careful readers answer the questions about a row of the researcher's file."""
    for words, (ballot, _) in REFUSED.items():
        if words in sentence:
            return ballot
    first, second = sorted((first, second), key=sentence.index)
    return BALLOTS["first" if answer == first else "second" if answer == second else "open"]


def fill_in(form: Path, reader: str, truth: Mapping[str, Ballot], rng: random.Random) -> None:
    """Fill a form in as a reader does with a spreadsheet, and save it as one does."""
    text = form.read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    for row in rows:
        right = truth[row["sentence"]]
        given = [answer if rng.random() > 0.02 else None if answer is None else not answer for answer in right]
        if reader == YES_MAN:
            given = [True, True, True]
        elif reader == CARELESS and "entrance" not in form.name:
            given = [rng.random() < 0.5 for _ in VoteQuestion]
        elif given[0] and None in given:
            given = [False, None, None]
        row["annotator_id"] = row["annotator_id"] or f" {reader}"
        row |= zip(
            VoteQuestion, ("" if answer is None else "yes" if answer else "No " for answer in given), strict=True
        )
    sheet = io.StringIO(newline="")
    writer = csv.DictWriter(sheet, list(rows[0]), delimiter=";")
    writer.writeheader()
    writer.writerows([*rows, {}])
    form.write_text("\ufeff" + sheet.getvalue(), encoding="utf-8", newline="")


@pytest.mark.slow
def test_a_study_of_own_sentences_with_twenty_readers_becomes_a_dataset_that_runs(tmp_path: Path) -> None:
    """From a researcher's CSV file to an accepted dataset and runs on it, by the commands that a user types."""
    rng = random.Random(5)
    rows = list(own_rows())
    written(tmp_path / "my.csv", rows, header=("sample", "occ_1", "occ_2", "answer"))
    truth = {sentence: truth_of(sentence, *others) for sentence, *others in rows}
    truth |= {solved.sentence.text: solved.answers for solved in TEST}

    def typed(*words: object, status: int = 0) -> str:
        return output_of("-m", "biasboard", *words, cwd=tmp_path, status=status)

    def annotate(command: str, *words: object, status: int = 0) -> str:
        return typed("build", "synthbias", "annotate", command, dataset, *words, "--state", "state", status=status)

    def plan_for(*others: str) -> tuple[str, ...]:
        return ("plan", *(word for reader in READERS if reader not in others for word in ("--annotator", reader)))

    def hand_in(folder: str) -> str:
        forms = sorted((tmp_path / folder).iterdir())
        return annotate("ingest", *forms, "--file-format", "csv")

    dataset = "out/datasets/synthbias-own"
    assert "80 sentences, 40 minimal pairs in 1 file: 0 errors" in typed("build", "synthbias", "lint", "my.csv")
    own = ("build", "synthbias", "--source", "csv", "--input", "my.csv", "--licence", "CC0-1.0")
    assert "total: 80 rows; rejects: none" in typed(*own)

    # The test tells the man who always says yes, not the one who is careless afterwards.
    annotate("export", "--entrance", "--out", "test")
    (tmp_path / "entrance").mkdir()
    for reader in READERS:
        form = tmp_path / "entrance" / f"entrance {reader}.csv"
        shutil.copy(tmp_path / "test" / "entrance.csv", form)
        fill_in(form, reader, truth, rng)
    assert "annotators: 19 active, 1 failed\n" in hand_in("entrance")
    plan = plan_for(YES_MAN)
    refused = annotate(*plan, "--annotator", YES_MAN, status=1)
    assert f"error: --annotator {YES_MAN}: is failed, so that the votes would not count; name another\n" in refused

    for number in range(1, 9):
        if "\nnothing to ask\n" in annotate(*plan):
            break
        annotate("export", "--out", f"forms/{number}", "--file-format", "csv")
        for form in sorted((tmp_path / "forms" / str(number)).iterdir()):
            reader = form.stem.rpartition("for-")[2].replace("_", " ")
            fill_in(form, reader, truth, rng)
        assert "votes added, 0 known already, 0 refused\n" in hand_in(f"forms/{number}")
        if number == 1:
            shares = re.findall(r"^(.+?)  .* ([\d.]+) %$", annotate("report").partition("annotator ")[2], re.MULTILINE)
            agreement = {annotator: float(share) / 100 for annotator, share in shares}
            rest = [rate for reader, rate in agreement.items() if reader not in (CARELESS, YES_MAN)]
            assert agreement[CARELESS] < 0.75 < min(rest)
            annotate("exclude", CARELESS, "--reason", "answers at random")
            plan = plan_for(CARELESS, YES_MAN)
    else:
        raise AssertionError("planning does not end")
    assert number > 1

    said = annotate("decide")
    accepted = tmp_path / "out/datasets/synthbias-own-annotated"
    assert "0 undecided" in said
    assert "validated by people: yes" in said
    assert list(problems(accepted)) == []
    kept = list(read_annotated(accepted).items.values())
    assert 40 <= len(kept) <= 80 - 2 * 2 * len(REFUSED)
    rejects = {reject.candidate: reject.rule for reject in read_rows(accepted / "rejects.parquet", Reject)}
    for words, (_, rule) in REFUSED.items():
        # Noise may add a reason to one of them; the other side of a pair says that this one is rejected.
        assert rule in [rejects[sentence] for sentence, *_ in rows if words in sentence]
        assert [item.item_id for item in kept if words in item.sentence] == []
    votes = list(csv.DictReader((accepted / "annotation/votes.csv").read_text().splitlines()))
    people = {vote["annotator"] for vote in votes}
    assert (len(people), len({vote["annotator"] for vote in votes if vote["counts"] == "yes"})) == (19, 18)

    typed("run", "--dataset", accepted, "--backend", "baseline", "--model", "all", "--out", "out/runs")
    assert list(problems(tmp_path / "out/runs")) == []
