"""Writes BibTeX entries: of the papers of a benchmark, and of one table in exactly the version that a reader sees."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from leaderboard.benchmark_pages import Paper
from leaderboard.pages.index_views import IndexView
from leaderboard.pages.latex import escape
from leaderboard.pages.sections import Section
from leaderboard.verify.entries import Entry

_DISTRIBUTION = "biasboard"
_MOST = 2_000


class Cited(NamedTuple):
    """A table to cite."""

    title: str
    anchor: str
    page: str
    """Path of its page, relative to the root of the site."""
    rows: str
    """Text of its JSON export, whose hash identifies the numbers."""
    rows_path: str
    accepted: str | None
    """Date on which the newest of its results was accepted; None if they are not in the register."""
    papers: tuple[Paper, ...]


def bibtex(cited: Cited, address: str | None) -> str:
    """Return an entry of a table and one of each paper that belongs to it.

    Args:
        cited: Table to cite.
        address: Address of the site, which ends with a slash; None if it has none.
    """
    return "\n".join([_table_entry(cited, address), *map(_paper_entry, cited.papers)]) + "\n"


def cited_section(section: Section, rows: str) -> Cited:
    """Return what an entry of the table of a section says.

    Args:
        section: Table to cite.
        rows: Text of its JSON export.
    """
    accepted = _newest([row.entry for row in section.table.rows])
    return Cited(section.title, section.anchor, section.page, rows, section.files.json, accepted, section.pages.papers)


def cited_index(view: IndexView, papers: Sequence[Paper], rows: str) -> Cited:
    """Return what an entry of the table of an index says.

    Args:
        view: Table to cite.
        papers: Papers of its benchmark.
        rows: Text of its JSON export.
    """
    accepted = _newest([entry for row in view.table.rows for entry in row.entries])
    return Cited(view.title, view.anchor, view.page, rows, view.files.json, accepted, tuple(papers))


def _newest(entries: Sequence[Entry]) -> str | None:
    return max((entry.acceptance.accepted for entry in entries if entry.acceptance is not None), default=None)


def _table_entry(cited: Cited, address: str | None) -> str:
    sha256 = hashlib.sha256(cited.rows.encode()).hexdigest()
    version = importlib.metadata.version(_DISTRIBUTION)
    fields = {
        "title": f"{{{_escaped(f'{_DISTRIBUTION} leaderboard: {cited.title}')}}}",
        "author": f"{{The {_DISTRIBUTION} contributors}}",
        "version": version,
        "note": _escaped(f"Table made by {_DISTRIBUTION} {version}; SHA-256 of {cited.rows_path}: {sha256}"),
    }
    if cited.accepted is not None:
        fields |= {"year": cited.accepted[:4], "date": cited.accepted}
    if address is not None:
        fields["url"] = _address(f"{address}{cited.page}#{cited.anchor}")
    # The hash makes another key of every other version of the table.
    return _entry("misc", f"{_DISTRIBUTION}-{cited.anchor}-{sha256[:8]}", fields)


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
