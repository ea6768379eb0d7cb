"""Writes BibTeX entries: of the software, of papers, and of one table in exactly the version that a reader sees."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence

from leaderboard.benchmark_pages import BenchmarkPages, Paper
from leaderboard.pages.latex import escape
from leaderboard.pages.tables import TableView

_DISTRIBUTION = "biasboard"
_MOST = 2_000


def bibtex(view: TableView, rows: str, address: str | None) -> str:
    """Return an entry of a table and one of each paper that belongs to it.

    Args:
        view: Table to cite.
        rows: Text of its CSV export, whose hash identifies the numbers.
        address: Address of the site, which ends with a slash; None if it has none.
    """
    return "\n".join([_table_entry(view, rows, address), *map(_paper_entry, view.pages.papers)]) + "\n"


def bibtex_of_benchmarks(pages: Sequence[BenchmarkPages]) -> str:
    """Return an entry of the software and one of each paper that belongs to some benchmarks."""
    version = importlib.metadata.version(_DISTRIBUTION)
    software = {
        "title": f"{{{_DISTRIBUTION}: versioned bias benchmarks for language models}}",
        "author": f"{{The {_DISTRIBUTION} contributors}}",
        "version": version,
    }
    papers = dict.fromkeys(paper for of_benchmark in pages for paper in of_benchmark.papers)
    return "\n".join([_entry("software", _DISTRIBUTION, software), *map(_paper_entry, papers)]) + "\n"


def _table_entry(view: TableView, rows: str, address: str | None) -> str:
    sha256 = hashlib.sha256(rows.encode()).hexdigest()
    version = importlib.metadata.version(_DISTRIBUTION)
    entries = [entry for row in view.table.rows for entry in row.entries]
    accepted = max((entry.acceptance.accepted for entry in entries if entry.acceptance is not None), default=None)
    fields = {
        "title": f"{{{_escaped(f'{_DISTRIBUTION} leaderboard: {view.name}')}}}",
        "author": f"{{The {_DISTRIBUTION} contributors}}",
        "version": version,
        "note": _escaped(f"Table made by {_DISTRIBUTION} {version}; SHA-256 of {view.files.csv}: {sha256}"),
    }
    if accepted is not None:
        fields |= {"year": accepted[:4], "date": accepted}
    if address is not None:
        fields["url"] = _address(f"{address}{view.page}#{view.anchor}")
    # The hash makes another key of every other version of the table.
    return _entry("misc", f"{_DISTRIBUTION}-{view.anchor}-{sha256[:8]}", fields)


def _paper_entry(paper: Paper) -> str:
    fields = {
        "title": f"{{{_escaped(paper.title)}}}",
        "author": _escaped(" and ".join(paper.authors)),
        "booktitle": _escaped(paper.booktitle),
        "year": str(paper.year),
        "url": _address(paper.address),
    }
    if paper.doi is not None:
        fields["doi"] = paper.doi
    if paper.arxiv is not None:
        fields |= {"eprint": paper.arxiv, "archiveprefix": "arXiv"}
    return _entry("inproceedings", paper.key, fields)


def _escaped(text: str) -> str:
    # BibTeX counts braces even behind a backslash.
    return escape(text, most=_MOST).replace(r"\{", r"\char123{}").replace(r"\}", r"\char125{}")


def _address(text: str) -> str:
    """Return an address without characters that would end a field; the rest is taken as it is."""
    return "".join(f"%{ord(sign):02X}" if sign in '{}\\"' or ord(sign) <= 32 else sign for sign in text)


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines: Sequence[str] = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
