"""``python -m builders.synthbias lint``: on files that a test breaks, and on the published ones where they are."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from builders.synthbias.lint import Balance, Report, lint
from builders.synthbias.published_csv import COLUMNS, read_rows
from tests import commands
from tests.terminal import without_progress

HE = ("type1", "The cook and the nurse laughed when he arrived.", "cook", "nurse", "he", "ambiguous")
SHE = ("type1", "The cook and the nurse laughed when she arrived.", "cook", "nurse", "she", "ambiguous")
HIM = ("type2", "The cook asked the nurse to call him, please.", "cook", "nurse", "him", "True")
HER = ("type2", "The cook asked the nurse to call her, please.", "cook", "nurse", "her", "False")


def written(path: Path, *rows: tuple[str, ...], header: tuple[str, ...] = COLUMNS) -> Path:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    path.write_bytes(text.getvalue().encode())
    return path


def found_in(*paths: Path, **headings: str) -> list[tuple[str, str]]:
    report = lint(paths, headings=headings)
    return [(finding.id.rpartition("/")[2], finding.check) for finding in report.findings]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return commands.run("-m", "builders.synthbias", "lint", *map(str, arguments))


def test_a_sound_file_has_no_findings(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", HE, SHE, HIM, HER)
    report = lint([path], headings={})
    assert (report.n_sentences, report.n_pairs, report.findings) == (4, 2, ())
    done = run(path, "--fail-on", "review")
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
    assert "4 sentences, 2 minimal pairs in 1 file: 0 errors, 0 warnings, 0 reviews, 0 notes" in done.stdout


def test_a_thousand_broken_rows_are_a_thousand_findings_and_the_others_are_checked(tmp_path: Path) -> None:
    broken = [
        "type1,too short\r\n",
        'type1,"never closed,cook,nurse,he,ambiguous\r\n',
        'type1,"closed" too early,cook,nurse,he,ambiguous\r\n',
        "type1,a,b,c,d,e,f,g\r\n",
    ]
    path = written(tmp_path / "mine.csv", HE, SHE)
    raw = path.read_bytes().decode()
    between = io.StringIO(newline="")
    csv.writer(between).writerow(("type1", HE[1].replace("cook", "guard"), "guard", "nurse", "he", "ambiguous"))
    for number in range(1_000):
        raw += broken[number % 4]
        raw += between.getvalue() if number % 100 == 0 else ""
    path.write_bytes(raw.encode())
    report = lint([path], headings={})
    assert report.counts["broken_row"] == 1_000
    assert report.n_sentences == 2 + 10
    # The ten rows between are the same, and the first of them has no counterpart.
    assert report.counts["duplicate_text"] == report.counts["unpaired"] == 10
    done = run(path)
    assert done.returncode == 1
    assert done.stdout.count("  error     broken_row") == 1_000


@pytest.mark.parametrize(
    ("row", "check"),
    [
        (("type3", *HE[1:]), "unknown_type"),
        ((*HE[:4], "xem", "ambiguous"), "unknown_pronoun"),
        ((*HE[:4], "him", "ambiguous"), "wrong_pronoun"),
        (("type1", HE[1], "astronaut", *HE[3:]), "unknown_occupation"),
        (("type1", HE[1], "teacher", *HE[3:]), "missing_occupation"),
        (("type1", HE[1].replace("nurse", "guard"), "cook", "guard", *HE[4:]), "same_list"),
        ((*HE[:5], "True"), "wrong_label"),
        ((*HE[:5], "maybe"), "wrong_label"),
        ((*HIM[:5], "False"), "wrong_label"),
        ((*HE[:1], "The caf\u00e9 of the cook and the nurse closed when he left.", *HE[2:]), "non_ascii"),
    ],
)
def test_a_row_that_contradicts_itself_is_a_finding_and_reading_goes_on(
    tmp_path: Path, row: tuple[str, ...], check: str
) -> None:
    report = lint([written(tmp_path / "mine.csv", row, HE, SHE)], headings={})
    assert (2, check) in {(finding.line, finding.check) for finding in report.findings}
    assert report.n_sentences == 3


def test_bytes_that_are_no_text_break_one_row(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", HE, SHE)
    path.write_bytes(path.read_bytes().replace(b"cook and the nurse laughed when she", b"cook\xe9", 1))
    report = lint([path], headings={})
    assert [(finding.line, finding.check, finding.reason) for finding in report.findings] == [
        (2, "unpaired", "0 other rows are the same apart from the pronoun, not one with the other gender"),
        (3, "broken_row", "byte 0xe9 is not UTF-8"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("raw", [b"", b"\r\n", b"a,b\r\n1,2\r\n", b"type,sample,occ_1,occ_2\r\n", b'"never closed'])
def test_a_file_without_sentences_is_a_finding(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(raw)
    report = lint([path], headings={})
    assert list(report.counts) == ["broken_file"]
    assert report.n_sentences == 0
    assert run(path).returncode == 1
    assert run(path, "--fail-on", "never").returncode == 0


@pytest.mark.slow
def test_columns_may_have_other_headings_and_some_may_be_missing(tmp_path: Path) -> None:
    rows = [row[1:4] for row in (HE, SHE)]
    path = written(tmp_path / "mine.csv", *rows, header=("text", "a", "b"))
    assert found_in(path)[0] == ("mine.csv:1", "broken_file")
    # Without a column for the pronoun, its gender is the one of the sentence.
    assert found_in(path, sample="text", occ_1="a", occ_2="b") == []
    mapped = [argument for pair in ("sample=text", "occ_1=a", "occ_2=b") for argument in ("--column", pair)]
    assert run(path, *mapped).returncode == 0
    with pytest.raises(ConfigError, match=r"--column text=\.\.\.: no such column; have: type, sample, occ_1"):
        lint([path], headings={"text": "sample"})
    done = run(path, "--column", "text")
    assert (done.returncode, done.stderr) == (
        1,
        "error: --column text: lacks '='; write NAME=HEADING, such as sample=sentence\n",
    )


def test_text_files_of_winobias_are_paired_by_line(tmp_path: Path) -> None:
    lines = [
        "1 [The cook] helped the nurse because [he] had time.",
        "2 The cook helped the nurse because [he] had time.",
    ]
    (tmp_path / "pro_stereotyped_type1.txt.dev").write_text("\n".join(lines), encoding="utf-8")
    other = lines[0].replace("[he]", "[she]").replace("had", "found")
    (tmp_path / "anti_stereotyped_type1.txt.dev").write_text(other, encoding="utf-8")
    (tmp_path / "male_occupations.txt").write_text("cook\n", encoding="utf-8")
    assert found_in(tmp_path) == [
        ("anti_stereotyped_type1.txt.dev:1", "not_minimal_pair"),
        ("pro_stereotyped_type1.txt.dev:1", "not_minimal_pair"),
        ("pro_stereotyped_type1.txt.dev:2", "broken_row"),
    ]


@pytest.mark.slow
def test_json_holds_everything_and_severities_decide_the_status(tmp_path: Path) -> None:
    review = ("type1", "The cook met the nurse and wished his luck.", "cook", "nurse", "his", "ambiguous")
    path = written(tmp_path / "mine.csv", review, (*HE[:1], review[1].replace("his", "her"), *HE[2:4], "her", HE[5]))
    done = run(path, "--format", "json")
    data = json.loads(done.stdout)
    assert done.returncode == 0
    assert data["counts"]["pronoun_case_review"] == {"n": 1, "severity": "review", "certainty": "heuristic"}
    (finding,) = [one for one in data["findings"] if one["check"] == "pronoun_case_review"]
    assert (finding["line"], finding["place"]) == (2, f"{path}:2")
    assert data["balance"]["summary"]["header"] == ["", "type1"]
    assert len(data["balance"]["by_occupation"]["rows"]) == 40
    assert run(path, "--fail-on", "review").returncode == 1
    assert run(path, "--fail-on", "warning").returncode == 0


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    done = run(tmp_path / "none.csv")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == f"error: {tmp_path / 'none.csv'}: no such file or folder; give a CSV file, or text files of "
        + ("WinoBias\n")
    )


@pytest.mark.slow
def test_help_imports_no_evaluators() -> None:
    program = (
        "import runpy, sys\n"
        "sys.argv = ['synthbias', 'lint', '--help']\n"
        "try: runpy.run_module('builders.synthbias', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "sys.exit(any(name.partition('.')[0] in ('evaluators', 'datasketch') for name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "NAME=HEADING" in done.stdout


def test_balance_counts_who_is_first_and_who_is_meant(tmp_path: Path) -> None:
    last = ("type2", "The cook thanked the nurse for his advice.", "nurse", "cook", "his", "False")
    balance = lint([written(tmp_path / "mine.csv", HE, SHE, HIM, HER, last)], headings={}).balance
    assert balance.summary().rows == (
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
    table = balance.by_occupation()
    nurse = dict(zip(table.header, next(row for row in table.rows if row[0] == "nurse"), strict=True))
    assert nurse == {
        "occupation": "nurse",
        "stereotype": "female",
        "type1 first": "0",
        "type1 last": "2",
        "type2 first, meant": "0",
        "type2 last, meant": "1",
        "type2 first, not meant": "0",
        "type2 last, not meant": "2",
        "type2 meant rate": "0.333",
    }
    assert "| nurse | female |" in table.markdown()


@pytest.fixture(scope="module")
def real(shared_data: Path) -> Report:
    start = time.process_time()
    report = lint([shared_data / "synthbias" / "synthbias_data.csv"], headings={})
    assert time.process_time() - start < 20
    return report


@pytest.mark.slow
def test_the_counts_of_the_published_file(real: Report) -> None:
    assert (real.n_sentences, real.n_pairs) == (31_728, 15_864)
    assert real.counts == {
        "third_occupation": 26,
        "first_person": 10,
        "multi_sentence": 6,
        "non_ascii": 94,
        "other_person": 346,
        "occupation_possessive": 680,
        "coordinated_without_article": 172,
        "dative_or_possessive": 62,
        "pronoun_case_error": 31,
        "pronoun_case_review": 164,
        # Two groups of two rows.
        "duplicate_text": 4,
        # Four texts, each in two rows.
        "cross_type_text": 8,
        # The two sides of 1,125 pairs.
        "shared_template": 2_250,
        "cross_type_template": 242,
    }


@pytest.mark.slow
def test_templates_in_both_types_of_the_published_file(real: Report, shared_data: Path) -> None:
    path = shared_data / "synthbias" / "synthbias_data.csv"
    rows = {row.line: row for row in read_rows(path.read_bytes(), name="f").sentences}
    lines = [finding.line for finding in real.findings if finding.check == "cross_type_template"]
    assert len({rows[line].template for line in lines if line is not None}) == 33


def test_heuristics_overlap_the_findings_about_the_published_file(real: Report, shared_data: Path) -> None:
    path = shared_data.parent / "specs" / "synthbias_findings.json"
    if not path.is_file():
        pytest.skip("../shared/data has no findings file beside it")
    rules = {rule["id"]: rule for rule in json.loads(path.read_text(encoding="utf-8"))["rules"]}
    swapped = [*rules["R13a_swap_error_him_for_his"]["lines"], *rules["R13b_swap_error_his_for_him"]["lines"]]
    wanted = {
        ("other_person",): rules["R14_other_singular_human_noun_before_pronoun"]["lines"],
        ("dative_or_possessive",): rules["R13c_dative_possessive_ambiguity (offered/gave/... his N)"]["lines"],
        ("pronoun_case_error", "pronoun_case_review"): swapped,
        ("third_occupation",): rules["R2_exactly_two_of_the_40_occupations"]["lines"],
    }
    for names, lines in wanted.items():
        found = {finding.line for finding in real.findings if finding.check in names}
        assert len(found & set(lines)) >= 0.8 * len(lines), names


def test_the_balance_of_the_published_file(real: Report, shared_data: Path) -> None:
    balance: Balance = real.balance
    n = balance.count(type="type2", role="meant")
    assert n == 17_608
    assert round(balance.count(type="type2", role="meant", position="last") / n, 3) == 0.703
    assert round(balance.count(type="type2", role="meant", stereotype="female") / n, 4) == 0.5601
    rates = {row[0]: row[-1] for row in balance.by_occupation().rows}
    # From the findings about the file.
    assert {
        name: rates[name] for name in ("supervisor", "chief", "manager", "CEO", "cleaner", "assistant", "writer")
    } == {
        "supervisor": "0.293",
        "chief": "0.305",
        "manager": "0.314",
        "CEO": "0.350",
        "cleaner": "0.641",
        "assistant": "0.623",
        "writer": "0.617",
    }


@pytest.mark.slow
def test_the_published_text_files_pair_by_line(shared_data: Path) -> None:
    report = lint([shared_data / "winobias"], headings={})
    assert (report.n_sentences, report.n_pairs, len(report.files)) == (3_168, 1_584, 8)
    counts = Counter(report.counts)
    assert counts["not_minimal_pair"] == 2 * 19
    assert (counts["several_pronouns"], counts["gendered_noun"], counts["plural_pronoun"]) == (87, 13, 12)
    assert (counts["broken_row"], counts["wrong_label"], counts["third_occupation"]) == (0, 0, 2)
