"""Counts of classification tasks by category, number of labels and label: tables 2 to 4 of the paper."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from leaderboard.label_pages import count_tables, label_counts
from leaderboard.pages.dataset_views import built_datasets
from leaderboard.pages.publishing import generate, make_view
from leaderboard.ranking.boards import assemble
from schemas.folders.dataset_folder import read_manifest
from tests.evaluators.label_data import BY_NAME, TASKS, made_dataset

SIX = (
    ("Mood", ("Yes", "no."), 100),
    ("Mood", ("NO.", "yes"), 50),
    ("Mood", ("a", "A", "b"), 10),
    ("Topic", tuple(f"label {number}" for number in range(9)), 7),
    ("Topic", tuple(f"label {number}" for number in range(10)), 4),
    ("Cause", ("a", "b", "c", "d", "e"), 1),
)


def test_counts_are_those_by_hand_and_of_the_files_of_a_dataset_whose_page_shows_them(tmp_path: Path) -> None:
    categories, numbers, labels = (table.rows for table in count_tables(SIX))
    assert categories == (("Mood", 3, 160), ("Topic", 2, 11), ("Cause", 1, 1))
    assert numbers == (("2", 2), ("3", 1), ("4", 0), ("5", 1), ("6 to 9", 1), ("10 or more", 1))
    # A task that has a label in two cases counts once, and punctuation is kept.
    assert labels[:3] == (("a", 2), ("b", 2), ("label 0", 2))
    assert ("no.", 2) in labels
    assert ("no", 2) not in labels
    assert len(labels) == 17
    dataset = made_dataset(tmp_path / "datasets" / "tasks")
    tables = label_counts(dataset, read_manifest(dataset))
    expected = count_tables([(f"Kind of {task.config}", task.labels, sum(task.n_test.values())) for task in TASKS])
    assert tables == expected
    # One item of two lacks the last of four labels, which counts nevertheless.
    assert ("d", 1) in tables[2].rows
    view = make_view(assemble(()), (), built_datasets(tmp_path / "datasets"))
    files = generate(view, {})
    page = files["datasets/tasks-1.0.0.md"]
    assert "Tasks and items to evaluate by category" in page
    assert re.search(r">Kind of two</th><td[^>]*>1</td><td[^>]*>24</td>", page)
    assert files["files/dataset-tasks-1.0.0-label-numbers.csv"].splitlines()[1:3] == ["2,1", "3,1"]
    assert BY_NAME["two"].n_test == {"yes": 18, "no": 6}


def test_the_published_tasks_have_the_counts_of_the_paper(shared_data: Path) -> None:
    """Of the list of all 279 tasks, whose labels were read from demonstrations where no file was there."""
    path = shared_data / "superni" / "tasks_279.json"
    if not path.is_file():
        pytest.skip("the list of the published tasks is absent")
    # Three tasks whose labels are not listed have ten or more.
    unknown = tuple(f"unlisted {number}" for number in range(10))
    tasks = [
        (task["category"], tuple(task["labels"] or unknown), task["n_eval"])
        for task in json.loads(path.read_text(encoding="utf-8"))["tasks"]
    ]
    categories, numbers, labels = (table.rows for table in count_tables(tasks))
    assert [n for _, n in numbers] == [197, 27, 17, 16, 14, 8]
    assert [row[1] for row in categories[:4]] == [39, 30, 25, 23]
    assert sum(int(row[1]) for row in categories) == 279
    # The paper has 264,176: two tasks lost an item each since.
    assert sum(int(row[2]) for row in categories) == 264_178
    assert len(categories) == 31 + 13
    of_unique = [row for row in categories if row[1] == 1]
    assert (len(of_unique), sum(int(row[2]) for row in of_unique)) == (13, 11_503)
    # The paper has 76 and 75: the list lacks one of each.
    assert labels[:2] == (("no", 75), ("yes", 74))
