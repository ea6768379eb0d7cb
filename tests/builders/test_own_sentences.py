"""``build synthbias --source csv``: a researcher's own sentences, from the file to the board and the Hub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from builders.dataset.licences import packed
from builders.dataset.own_csv import read_tables
from builders.synthbias.annotation.annotated import read_annotated
from builders.synthbias.minimal_pairs import CheckedItems
from builders.synthbias.own_sentences import FORM, case_of_swap, check, draft
from schemas.folders.dataset_folder import read_manifest
from schemas.items.coreference import CoreferenceItem
from schemas.lexicon import occupations
from schemas.validate import problems
from tests.builders.test_published import as_csv
from tests.commands import run

HEADER = ("Sentence", "Occupation 1", "Occupation 2", "Answer")


def written(path: Path, rows: Sequence[Sequence[str]], *, header: Sequence[str] = HEADER, delimiter: str = ",") -> Path:
    path.write_bytes(as_csv(rows, header, delimiter))
    return path


def checked(*paths: Path, complete_pairs: bool = False, mapped: Sequence[str] = ()) -> CheckedItems:
    return check(read_tables(FORM, paths, mapped), complete_pairs=complete_pairs)


def items_of(folder: Path) -> list[CoreferenceItem]:
    return [item for split in read_annotated(folder).splits for item in split[1]]


def reasons(done: CheckedItems) -> dict[str, tuple[str, str]]:
    return {str(reject.source_row): (reject.rule, reject.reason) for reject in done.rejects}


HE = ("The farmer met the nurse on the ferry while he was reading.", "farmer", "nurse", "both")
SHE = ("The farmer met the nurse on the ferry while she was reading.", "farmer", "nurse", "both")


def test_a_missing_side_is_rejected_or_written_where_its_case_is_certain(tmp_path: Path) -> None:
    cases = {
        "The farmer met the nurse at noon, and the goat followed {} home.": None,
        "The farmer met the nurse at the lake and praised {} work.": ("her", "his"),
        "The farmer met the nurse at the lake and praised {} for it.": ("her", "him"),
        "The farmer saw the nurse at the lake and took the coat for {}.": ("his", "hers"),
        "The farmer met the nurse at the lake and then washed {}.": ("himself", "herself"),
        "The farmer met the nurse at the lake and gave {} food.": None,
    }
    rows = [(text.format((forms or ("her",))[0]), "farmer", "nurse", "ambiguous") for text, forms in cases.items()]
    path = written(tmp_path / "mine.csv", rows)
    assert [reject.rule for reject in checked(path).rejects] == ["unpaired"] * len(rows)
    done = checked(path, complete_pairs=True)
    assert [reject.rule for reject in done.rejects] == ["unsettled_case"] * 2
    assert case_of_swap("The farmer met the nurse and offered ", "his", " help.") is None
    for (text, forms), (source, *_) in zip(cases.items(), rows, strict=True):
        if forms is not None:
            (swapped,) = [item for item in done.items if item.sentence == text.format(forms[1])]
            (own,) = [item for item in done.items if item.sentence == source]
            assert (swapped.flags, own.flags) == (("swapped_pronoun",), ())
            assert (swapped.pair_id, swapped.source_row) == (own.pair_id, own.source_row)


def test_every_row_is_an_item_or_a_reject_with_its_reason(tmp_path: Path) -> None:
    other = "The farmer saw the nurse at the lake when {} was rowing."
    fed = "The farmer fed the nurse while she was reading the paper."
    lake = "The farmer took the nurse to the lake and then fed"
    rows: list[tuple[Sequence[str], str | None]] = [
        (HE, None),
        (SHE, None),
        ((HE[0].replace("he was", "he  was").replace("ferry", "ferry\r\n"), *HE[1:]), "repeated_text"),
        ((SHE[0].replace(" while", ", while"), *SHE[1:]), "repeated_wording"),
        (("", "", "", ""), None),
        ((other.format("he"), "farmer", "nurse", "nurse"), "unpaired"),
        ((other.format("she"), "farmer", "nurse", "the Farmer"), "unpaired"),
        ((fed.replace("nurse", "pilot"), "farmer", "pilot", "pilot"), "unknown_occupation"),
        ((fed, "farmer", "nurse", "clerk"), "wrong_answer"),
        ((fed, "farmer", "nurse", ""), "wrong_answer"),
        ((fed.replace("fed", "fed\u202e"), "farmer", "nurse", "nurse"), "broken_row"),
        (("The farmer left",), "broken_row"),
        ((HE[0], " and a goat", *HE[1:]), "broken_row"),
        ((f"{lake} him.", "farmer", "nurse", "either", ""), "not_minimal_pair"),
        ((f"{lake} hers.", "farmer", "nurse", "either"), "not_minimal_pair"),
    ]
    done = checked(written(tmp_path / "mine.csv", [row for row, _ in rows]))
    assert [item.source_row for item in done.items] == ["mine.csv:2", "mine.csv:3"]
    assert [rule for rule, _ in reasons(done).values()] == [rule for _, rule in rows if rule]
    assert reasons(done)["mine.csv:6"][1] == "repeats mine.csv:2 apart from capitals and punctuation"
    assert "mine.csv:9, has another type or answer" in reasons(done)["mine.csv:8"][1]
    assert "has 1 fields, the header 4; write a separator for each" in reasons(done)["mine.csv:14"][1]
    assert "U+202E" in reasons(done)["mine.csv:13"][1]


def test_peculiarities_of_form_are_flags(tmp_path: Path) -> None:
    text = "The farmer hadn\u2019t met the nurse at the half-empty bar before he sang."
    fed = ("The farmer fed the nurse while he sang", "The farmer fed the nurse until he slept.")
    rows = [(one, *HE[1:]) for one in (text, text.replace("he sang", "she sang"), *fed)]
    done = checked(written(tmp_path / "mine.csv", rows), complete_pairs=True)
    assert [item.flags for item in done.items] == [("non_ascii",), ("non_ascii",), (), ("swapped_pronoun",)]
    assert [reject.rule for reject in done.rejects] == ["one_sentence"]


def test_several_files_are_one_dataset_and_items_name_their_file(tmp_path: Path) -> None:
    first = written(tmp_path / "a.csv", [HE])
    second = written(tmp_path / "b.csv", [SHE, [HE[0].upper(), *HE[1:]], HE], delimiter="\t")
    done = checked(first, second)
    assert [item.source_row for item in done.items] == ["a.csv:2", "b.csv:2"]
    assert reasons(done)["b.csv:4"] == ("repeated_text", "repeats a.csv:2")
    tables = read_tables(FORM, [first, second], [])
    made = draft(tables, name="x", complete_pairs=False, licence=None, limit=None, mapped=[])
    assert [source.name for source in made.sources] == ["a.csv", "b.csv"]
    assert made.publish_refusal is not None


@pytest.mark.slow
def test_the_command_builds_a_dataset_under_the_licence_of_its_author(tmp_path: Path) -> None:
    written(tmp_path / "mine.csv", [HE, SHE])
    own = ("--source", "csv", "--input", "mine.csv", "--licence", "CC0-1.0")
    run("-m", "biasboard", "build", "synthbias", *own, cwd=tmp_path, status=0)
    folder = tmp_path / "out/datasets/synthbias-own"
    assert list(problems(folder)) == []
    assert (read_manifest(folder).licence, read_manifest(folder).publish_refusal) == ("CC0-1.0", None)


def test_both_sides_may_stand_in_one_row_or_share_the_name_of_a_pair(tmp_path: Path) -> None:
    path = written(
        tmp_path / "mine.csv",
        [(HE[0], SHE[0], "ambiguous"), (HE[0].replace("ferry", "bus"), "", "ambiguous"), ("", SHE[0], "ambiguous")],
        header=("he sentence", "she_sentence", "answer"),
    )
    done = checked(path)
    assert [(item.sentence, item.source_row) for item in done.items] == [(row[0], "mine.csv:2") for row in (HE, SHE)]
    found = {row: rule for row, (rule, _) in reasons(done).items()}
    assert found == {"mine.csv:3": "unpaired", "mine.csv:4": "repeated_text"}
    # Rows that share a pair differ in the pronoun alone.
    late = (SHE[0].replace("ferry", "train"), *SHE[1:])
    rows = [("1", *HE), ("1", *late)]
    done = checked(written(tmp_path / "mine.csv", rows, header=("ID", *HEADER)), complete_pairs=True)
    assert done.items == ()
    assert Counter(reject.rule for reject in done.rejects) == {"not_minimal_pair": 2}


def test_a_text_that_must_not_be_shared_is_not_shown(tmp_path: Path) -> None:
    path = written(tmp_path / "mine.csv", [HE, SHE])
    digests = packed([SHE[0]])
    done = check(read_tables(FORM, [path], []), complete_pairs=False, published=frozenset([digests]))
    assert done.items == ()
    assert {(reject.rule, reject.candidate) for reject in done.rejects} == {("published_text", "")}


def test_columns_are_found_by_name_or_mapped(tmp_path: Path) -> None:
    header = ("TEXT", "Person 1", "person_2", "Referent")
    assert len(checked(written(tmp_path / "mine.csv", [HE, SHE], header=header)).items) == 2
    # As published: the first occupation of an open row is no answer.
    rows = [("type1", text, *names[:2]) for text, *names in (HE, SHE)]
    path = written(tmp_path / "mine.csv", rows, header=("type", "sample", "occ_1", "occ_2"))
    assert [item.referent for item in checked(path, mapped=["answer=occ_1"]).items] == [None, None]


def test_what_a_spreadsheet_adds_is_read(tmp_path: Path) -> None:
    lines = ["sep=;", *(";".join(row) for row in (HEADER, HE, SHE)), ";;;", ""]
    (tmp_path / "mine.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    done = checked(tmp_path / "mine.csv")
    assert [item.source_row for item in done.items] == ["mine.csv:3", "mine.csv:4"]
    assert done.rejects == ()


def test_the_page_lists_the_occupations() -> None:
    page = (Path(__file__).parents[2] / "site" / "docs" / "own_sentences.md").read_text(encoding="utf-8")
    for stereotype, title in (("male", "held mostly by men"), ("female", "held mostly by women")):
        names = sorted(name for name, occupation in occupations().items() if occupation.stereotype == stereotype)
        assert f"| {title} | {', '.join(names)} |" in page
