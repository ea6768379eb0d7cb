"""``CITATION.cff``: the version, date and papers that it names are those of the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from leaderboard.benchmark_pages import Paper, pages_of_benchmarks

REPOSITORY = Path(__file__).parents[1]


def citation() -> dict[str, Any]:
    # Dates stay texts, as the format wants them.
    text = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)
    return found


def project() -> dict[str, Any]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = settings["project"]
    return found


def test_the_version_is_that_of_the_project() -> None:
    assert citation()["version"] == project()["version"]
    assert citation()["license"] == project()["license"]
    assert citation()["keywords"] == project()["keywords"]


def test_the_date_is_that_of_the_release_and_absent_before_it() -> None:
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(rf"^## \[{re.escape(project()['version'])}\] - (\S+)$", changes, re.MULTILINE)
    assert citation().get("date-released") == (released[1] if released else None)


def test_the_papers_of_all_benchmarks_are_named() -> None:
    papers = [paper for pages in pages_of_benchmarks() for paper in pages.papers]
    assert papers
    named = {entry["title"]: entry for entry in citation()["references"]}
    assert named.keys() == {paper.title for paper in papers}
    for paper in papers:
        _assert_same(paper, named[paper.title])


def _assert_same(paper: Paper, entry: dict[str, Any]) -> None:
    authors = [f"{author['family-names']}, {author['given-names']}" for author in entry["authors"]]
    assert tuple(authors) == paper.authors
    assert entry["collection-title"] == paper.booktitle
    assert (entry["year"], entry["url"], entry.get("doi")) == (str(paper.year), paper.address, paper.doi)
