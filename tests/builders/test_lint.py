"""``python -m builders.synthbias lint``: on files that a test breaks, and on the published ones where they are."""

from __future__ import annotations

import csv
import io
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from builders.dataset.own_csv import read_tables
from builders.synthbias.checks.check import at_least
from builders.synthbias.lint import LintReport, balance_table, lint
from builders.synthbias.own_sentences import FORM, check
from builders.synthbias.published import COLUMNS, parse
from tests import commands
from tests.terminal import without_progress

MINE = ("sentence", "answer")
HE = ("type1", "The cook and the nurse laughed when he arrived.", "cook", "nurse", "he", "ambiguous")
SHE = ("type1", "The cook and the nurse laughed when she arrived.", "cook", "nurse", "she", "ambiguous")
HIM = ("type2", "The cook asked the nurse to call him, please.", "cook", "nurse", "him", "True")
HER = ("type2", "The cook asked the nurse to call her, please.", "cook", "nurse", "her", "False")


def written(path: Path, *rows: tuple[str, ...], header: tuple[str, ...] = COLUMNS) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    path.write_bytes(text.getvalue().encode())
    return path


def found_in(*paths: Path, mapped: Sequence[str] = ()) -> list[tuple[str, str]]:
    report = lint(paths, mapped=mapped)
    return [(finding.id.rpartition("/")[2], finding.check) for finding in report.findings]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.synthbias", "lint", *map(str, arguments))


def test_a_sound_file_has_no_findings(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", HE, SHE, HIM, HER)
    report = lint([path])
    assert (report.n_sentences, report.n_pairs, report.findings) == (4, 2, ())
    done = run(path, "--fail-on", "review")
    assert done.returncode == 0
    assert without_progress(done.stderr).startswith("mine.csv: 4 rows, separated by commas; sentence from 'sample', ")
    assert "4 sentences, 2 minimal pairs in 1 file: 0 errors, 0 warnings, 0 reviews, 0 notes" in done.stdout


def test_a_thousand_broken_rows_are_a_thousand_findings_and_the_others_are_checked(tmp_path: Path) -> None:
    broken = [
        "type1,too short\r\n",
        'type1,"never closed,cook,nurse,he,ambiguous\r\n',
        'type1,"closed" too early,cook,nurse,he,ambiguous\r\n',
        "type1,a,b,c,d,e,f,g\r\n",
    ]
    path = written(tmp_path / "mine.csv", HE, SHE)
    between = ",".join((HE[0], HE[1].replace("cook", "guard"), "guard", *HE[3:])) + "\r\n"
    with path.open("a", newline="") as file:
        file.writelines(broken[number % 4] + between * (number % 100 == 0) for number in range(1_000))
    report = lint([path])
    assert report.counts["broken_row"] == 1_000
    assert report.n_sentences == 2 + 10
    # The ten rows between are the same; that they have no counterpart either is not said.
    assert report.counts["duplicate_text"] == 10
    assert "unpaired" not in report.counts
    done = run(path)
    assert done.returncode == 1
    assert done.stdout.count("  error     broken_row") == 10
    assert "... and 990 of broken_row; --most 0 lists all" in done.stdout
    assert run(path, "--most", "0").stdout.count("  error     broken_row") == 1_000


@pytest.mark.parametrize(
    ("row", "check"),
    [
        (("type3", *HE[1:]), "unknown_type"),
        ((*HE[:4], "xem", "ambiguous"), "unknown_pronoun"),
        (("type1", HE[1], "teacher", *HE[3:]), "missing_occupation"),
        ((*HE[:5], "maybe"), "wrong_label"),
        ((*HIM[:5], "False"), "wrong_label"),
    ],
)
def test_a_row_that_contradicts_itself_is_a_finding_and_reading_goes_on(
    tmp_path: Path, row: tuple[str, ...], check: str
) -> None:
    report = lint([written(tmp_path / "mine.csv", row, HE, SHE)])
    assert (2, check) in {(finding.line, finding.check) for finding in report.findings}
    assert report.n_sentences == 3


def test_bytes_that_are_no_text_break_one_row(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", HE, SHE)
    path.write_bytes(path.read_bytes().replace(b"cook and the nurse laughed when she", b"cook\xe9", 1))
    report = lint([path])
    assert [(finding.line, finding.check, finding.reason) for finding in report.findings] == [
        (2, "unpaired", "no row has the other pronoun in the same words"),
        (3, "broken_row", "byte 0xe9 is not UTF-8; save it as CSV UTF-8"),
    ]


@pytest.mark.slow
def test_columns_are_found_and_named_as_in_building(tmp_path: Path) -> None:
    rows = [(row[1], "ambiguous") for row in (HE, SHE)]
    # Without columns for the pronoun and the occupations, they are those of the sentence.
    assert found_in(written(tmp_path / "found.csv", *rows, header=("Text", "Correct answer"))) == []
    path = written(tmp_path / "mine.csv", *rows, header=("Item", "Key"))
    assert found_in(path, mapped=("sentence=Item", "answer=Key")) == []
    # Of both sides in a row, the label is that of the first.
    header = ("sentence", "other sentence", "answer", "label")
    assert found_in(written(tmp_path / "both.csv", (HIM[1], HER[1], "cook", "True"), header=header)) == []
    assert run(path, "--map", "sentence=Item", "--map", "answer=Key").returncode == 0


def test_what_a_row_says_wrongly_is_a_finding_and_its_wording_is_checked(tmp_path: Path) -> None:
    path = written(
        tmp_path / "mine.csv",
        ("The cook met Maria before he left the old house.", "cook"),
        ("The cook and the nurse met a guard after he left the old house.", "guard"),
        ("The cook thanked the nurse for for his careful work.", "guard"),
        ("The cook thanked the nurse for his very kind words.", ""),
        header=MINE,
    )
    assert found_in(path) == [
        ("mine.csv", "one_sided"),
        ("mine.csv:2", "two_occupations"),
        ("mine.csv:2", "name"),
        ("mine.csv:3", "two_occupations"),
        ("mine.csv:3", "third_occupation"),
        ("mine.csv:3", "articles"),
        ("mine.csv:4", "wrong_answer"),
        ("mine.csv:4", "doubled_word"),
        ("mine.csv:5", "wrong_answer"),
    ]


def test_repetitions_are_found_in_all_files_together(tmp_path: Path) -> None:
    he = "The cook and the nurse laughed, when he arrived at the busy station."
    others = (he.replace(",", ""), he.replace("busy", "empty"), he.replace(" he ", " she "))
    one = written(tmp_path / "one.csv", (he, "cook"), header=MINE)
    other = written(tmp_path / "other.csv", *((text, "cook") for text in others), header=MINE)
    report = lint([one, other])
    found: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.line and finding.check != "shared_template":
            found.setdefault(finding.id.rpartition("/")[2], []).append(finding.check)
    both = ["repeated_wording", "one_word_apart"]
    assert found == {"one.csv:2": both, "other.csv:2": both, "other.csv:3": both[1:], "other.csv:4": both}
    assert {finding.reason for finding in report.findings if finding.line == 3} == {
        f"differs from {one}:2 in 'empty' alone"
    }


def test_a_place_that_tells_who_is_meant_is_one_finding(tmp_path: Path) -> None:
    places = ("north", "south", "east", "west", "city", "coast", "hills", "lake", "woods", "port")
    rows = [
        (f"The cook met the nurse in the {place} before {form} moved away.", "nurse" if n < 8 else "cook")
        for n, place in enumerate(places)
        for form in ("he", "she")
    ]
    path = written(tmp_path / "mine.csv", *rows, header=MINE)
    found = [finding for finding in lint([path]).findings if finding.check == "telling_place"]
    assert [(finding.id, finding.line, finding.severity) for finding in found] == [(str(path), None, "warning")]
    assert found[0].reason == (
        "the occupation mentioned last is meant in 16 of 20 settled sentences; write more in which it is the other one"
    )
    written(path, *rows[2:], *rows[16:], header=MINE)
    assert "telling_place" not in lint([path]).counts  # 14 of 22.


def test_checks_are_ignored_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", ("The cook thanked Nurse Mary for for his work.", "cook"), header=MINE)
    found = {finding.check for finding in lint([path]).findings}
    assert {"name", "doubled_word"} <= found
    assert {finding.check for finding in lint([path], ignored=("name",)).findings} == found - {"name"}
    assert "doubled_word" not in run(path, "--ignore", "doubled_word").stdout


@pytest.mark.parametrize(
    ("wrong", "check", "right"),
    [
        ("cook and the nurse laughed when he arrived.", "one_sentence", "Cook and the nurse laughed when he arrived."),
        ("The cook , the nurse and he laughed.", "spacing", "The cook, the nurse and he laughed."),
        ("The cook met the nurse in a hour.", "wrong_article", "The cook met the nurse in an hour."),
        ("The cook met the the nurse.", "doubled_word", "The cook met the nurse."),
        ("The cook met the nurse because him left.", "pronoun_form", "The cook met the nurse because he left."),
        ("The cook met the nurse after him had left.", "pronoun_form", "The cook met the nurse after he had left."),
        ("The cook lent the nurse hers car.", "pronoun_form", "The cook lent the nurse her car."),
        ("The cook lost him keys at the nurse.", "pronoun_case_error", "The cook lost his keys at the nurse."),
    ],
)
def test_a_defect_that_code_can_mend_has_a_suggestion(tmp_path: Path, wrong: str, check: str, right: str) -> None:
    report = lint([written(tmp_path / "mine.csv", (wrong, "cook"), header=MINE)])
    suggestions = {finding.check: finding.suggestion for finding in report.findings}
    assert suggestions[check] == right
    assert f"; write: {right}" in run(tmp_path / "mine.csv", "--most", "0").stdout


def test_findings_are_annotations_of_github(tmp_path: Path) -> None:
    path = written(tmp_path / "a,b.csv", ("The cook thanked Nurse Mary for 50 % of his work.", "cook"), header=MINE)
    done = run(path, "--format", "github", "--show", "warning")
    lines, place = done.stdout.splitlines(), str(path).replace(",", "%2C")
    assert done.returncode == 1
    assert f"::warning file={place},line=2,title=name::has a name: 'Nurse'" in lines
    assert all(line.startswith(("::error file=", "::warning file=")) for line in lines)


LABELS = {
    "name": ("name",),
    "end": ("one_sentence",),
    "article": ("articles", "wrong_article"),
    "duplicate": ("duplicate_text", "repeated_wording", "one_word_apart"),
    "case": ("pronoun_form", "pronoun_case_error", "not_minimal_pair"),
    "person": ("listed_person", "third_occupation"),
    "gender": ("gendered_noun",),
    "spelling": ("spacing", "doubled_word"),
    "pronoun": ("one_pronoun", "pronoun_last", "other_pronoun"),
}
"""The checks that find each kind of defect in the sentences made for the purpose."""
PLANTED = Path(__file__).parents[1] / "data" / "lint_sentences.csv"
"""540 sentences, half with a defect, labelled by their two writers; the first 300 also by a reader who saw no labels.

Reader and writer labelled 297 alike. Two rows that differ from sound ones in a doubled space, which the reader of the
file makes one, count as sound, and a place counts as a name. The last 240 were written after the checks; before these
were mended by them, recall was 0.75 for the case, 0.88 to 1 for the others, and precision 0.88 to 1.
"""


@pytest.fixture(scope="module")
def labelled() -> list[tuple[frozenset[str], frozenset[str]]]:
    """The labels of each planted sentence, and those of the checks that found something."""
    with PLANTED.open(encoding="utf-8", newline="") as file:
        wanted = [frozenset(filter(None, row["defects"].split(";"))) for row in csv.DictReader(file)]
    label_of = {check: label for label, checks in LABELS.items() for check in checks}
    found: dict[int, set[str]] = {}
    for finding in lint([PLANTED]).findings:
        if finding.line is not None and finding.check in label_of:
            found.setdefault(finding.line - 2, set()).add(label_of[finding.check])
    return [(labels, frozenset(found.get(row, ()))) for row, labels in enumerate(wanted)]


@pytest.mark.parametrize("label", LABELS)
def test_precision_and_recall_on_planted_sentences(
    label: str, labelled: list[tuple[frozenset[str], frozenset[str]]]
) -> None:
    assert len(labelled) == 540
    n_wanted = sum(label in wanted for wanted, _ in labelled)
    n_found = sum(label in found for _, found in labelled)
    n_both = sum(label in wanted and label in found for wanted, found in labelled)
    assert n_wanted >= 10
    assert n_both / n_wanted >= 0.95
    assert n_both / n_found >= 0.95


@pytest.mark.slow
def test_every_finding_is_listed_and_severities_decide_the_status(tmp_path: Path) -> None:
    review = ("type1", "The cook met the nurse and wished his luck.", "cook", "nurse", "his", "ambiguous")
    path = written(tmp_path / "mine.csv", review, (*HE[:1], review[1].replace("his", "her"), *HE[2:4], "her", HE[5]))
    done = run(path)
    assert done.returncode == 0
    cells = [line.split() for line in done.stdout.splitlines()]
    assert ["pronoun_case_review", "1", "review", "heuristic"] in [row[:4] for row in cells]
    assert [row[:2] for row in cells if "pronoun_case_review" in row[1:3]] == [[f"{path}:2", "review"]]
    assert ["type1"] in cells
    assert run(path, "--fail-on", "review").returncode == 1
    assert run(path, "--fail-on", "warning").returncode == 0


def test_balance_counts_who_is_first_and_who_is_meant(tmp_path: Path) -> None:
    last = ("type2", "The cook thanked the nurse for his advice.", "nurse", "cook", "his", "False")
    alone = ("type1", HE[1], "teacher", *HE[3:])
    balance = lint([written(tmp_path / "mine.csv", HE, SHE, HIM, HER, last, alone)]).balance
    assert balance_table(balance).rows == (
        ("sentences", "2", "3"),
        ("mentioned first: male-stereotyped", "2 (1.000)", "3 (1.000)"),
        ("mentioned first: female-stereotyped", "0 (0.000)", "0 (0.000)"),
        ("meant: first mentioned", "none", "2 (0.667)"),
        ("meant: last mentioned", "none", "1 (0.333)"),
        ("meant: male-stereotyped", "none", "2 (0.667)"),
        ("meant: female-stereotyped", "none", "1 (0.333)"),
        ("meant: first mentioned, male-stereotyped", "none", "2 (0.667)"),
        ("meant: first mentioned, female-stereotyped", "none", "0 (0.000)"),
        ("meant: last mentioned, male-stereotyped", "none", "0 (0.000)"),
        ("meant: last mentioned, female-stereotyped", "none", "1 (0.333)"),
    )
    assert len(balance) == 2 * 5, "a sentence that names one of its two occupations counts nowhere"


@pytest.fixture(scope="module")
def real(shared_data: Path) -> LintReport:
    start = time.process_time()
    report = lint([shared_data / "synthbias" / "synthbias_data.csv"])
    assert time.process_time() - start < 20
    return report


@pytest.mark.slow
def test_the_counts_of_the_published_file(real: LintReport, shared_data: Path) -> None:
    assert (real.n_sentences, real.n_pairs) == (31_728, 15_864)
    assert real.counts == {
        "third_occupation": 26,
        "one_sentence": 10,
        # Forms of I, you and they.
        "other_pronoun": 48,
        "non_ascii": 94,
        "listed_person": 480,
        "occupation_possessive": 680,
        "articles": 194,
        "dative_or_possessive": 62,
        "pronoun_case_error": 31,
        "pronoun_case_review": 164,
        # Two groups of two rows.
        "duplicate_text": 4,
        "one_word_apart": 92,
        # Four texts, each in two rows.
        "cross_type_text": 8,
        # The two sides of 1,125 pairs.
        "shared_template": 2_250,
        "cross_type_template": 242,
    }
    path = shared_data / "synthbias" / "synthbias_data.csv"
    rows = {row.line: row for row in parse(path.read_bytes(), name="f")}
    lines = [finding.line for finding in real.findings if finding.check == "cross_type_template"]
    assert len({rows[line].template for line in lines if line is not None}) == 33


def test_the_balance_of_the_published_file(real: LintReport) -> None:
    meant = real.balance.query("type == 'type2' and role == 'meant'")
    assert len(meant) == 17_608
    assert round((meant["position"] == "last").mean(), 3) == 0.703
    assert round((meant["stereotype"] == "female").mean(), 4) == 0.5601
    settled = real.balance.query("type == 'type2'")
    rates = (settled["role"] == "meant").groupby(settled["occupation"]).mean()
    # From the findings about the file.
    published = {"supervisor": 0.293, "chief": 0.305, "CEO": 0.350, "cleaner": 0.641, "writer": 0.617}
    assert {name: round(rates[name], 3) for name in published} == published


def test_whatever_a_dataset_is_built_without_is_at_least_a_warning() -> None:
    mended = {finding.line for finding in lint([PLANTED]).findings if finding.severity in at_least("warning")}
    checked = check(read_tables(FORM, [PLANTED], []), complete_pairs=True)
    rejected = {int(str(reject.source_row).rpartition(":")[2]): reject for reject in checked.rejects}
    assert len(rejected) > 200
    # Whether the other side can be written, building alone finds out.
    assert {reject.rule for line, reject in rejected.items() if line not in mended} == {"unsettled_case"}
