"""Makes the tables for download, and what goes into papers: LaTeX, Markdown and BibTeX.

Pairs, and the values of a result, are rows of the frames of the board.

Writes what goes into papers: tables that compare models, as LaTeX with booktabs and as Markdown, and BibTeX.

A BibTeX entry cites the software, a paper, or one table in exactly the version that a reader sees.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from biasboard.ground.plain_text import printable
from leaderboard.benchmark_pages import Paper
from leaderboard.pages.markup import value_text
from leaderboard.pages.tables import TableView, result_files
from leaderboard.ranking.boards import Board
from leaderboard.ranking.frames import (
    COUNTED,
    MEASURED,
    PAIR_COLUMNS,
    RANKS,
    REASONS,
    VALUE_COLUMNS,
    Columns,
    DownloadTable,
    Fields,
    Files,
    Scalar,
    Values,
    attributes,
    columns_of,
    rows_by,
    table_name,
    values_of,
)
from leaderboard.ranking.rows import Row
from leaderboard.verify.entries import Entry, LeftOut
from schemas.documents.result import Metric, Model, Signature

if TYPE_CHECKING:
    import pandas as pd


_MODEL: Fields[Model] = {
    "model": (str, lambda model: model.id),
    **attributes(revision=str, precision=str, backend=str, endpoint=str),
}
_RANKED: Fields[Row] = {
    **RANKS,
    "ranked_by_worst": (float, lambda row: row.bounds.worst if row.bounds else None),
    "best_with_missing": (float, lambda row: row.bounds.best if row.bounds else None),
    **REASONS,
}
_METRIC: Fields[Metric] = {
    "" if name == "value" else f"_{name}": {**MEASURED, **COUNTED}[name]
    for name in ("value", "low", "high", "n", "n_excluded", "version", "reason")
}
"""Fields of one metric, which follow the key of its column on the page; the first one holds its value."""
_NO_METRIC: Values = (*[None] * (len(_METRIC) - 1), "not a metric of this task")
_RESULT: Fields[Entry] = {
    "place": (str, lambda entry: entry.place),
    "n_items": (int, lambda entry: entry.result.counts.items),
    "n_scored": (int, lambda entry: entry.result.counts.scored),
    "n_refused": (int, lambda entry: entry.result.counts.refused),
    "n_unparsed": (int, lambda entry: entry.result.counts.unparsed),
    "n_failed": (int, lambda entry: entry.result.counts.failed),
    "n_truncated": (int, lambda entry: entry.result.counts.truncated),
    "first_token_share": (float, lambda entry: entry.first_token_share),
    "n_metrics_recomputed": (int, lambda entry: entry.n_recomputed),
    "command": (str, lambda entry: entry.command),
    "signature": (str, lambda entry: str(entry.result.signature)),
    "signature_sha256": (str, lambda entry: entry.result.signature_sha256),
    "identity_sha256": (str, lambda entry: entry.result.model.identity_sha256),
    "records_sha256": (str, lambda entry: None if entry.is_computed else entry.result.records.sha256),
}
_AUDITED: Columns = {
    "place": str,
    "origin": str,
    "state": str,
    "reason": str,
    "model": str,
    "signature": str,
    "n_metrics_recomputed": int,
    "n_records": int,
    "records_sha256": str,
    "biasboard": str,
}


def view_table(view: TableView) -> DownloadTable:
    """Return the table of a view: of each row the model, its ranks, its values and the results behind them."""
    entries = view.table.rows[0].entries
    of_rank, of_metric, of_result = columns_of(_RANKED), columns_of(_METRIC), columns_of(_RESULT)
    columns = {
        **columns_of(_MODEL),
        **of_rank,
        "no_better_than_baselines_reason": str,
        "ranked_by": str,
        **{f"{name}_by_{other.primary}": kind for other in view.table.others for name, kind in of_rank.items()},
        "origin": str,
        "provenance": str,
        **{f"{column.key}{name}": kind for column in view.all_columns for name, kind in of_metric.items()},
        **{f"{prefix}{name}": kind for prefix in _prefixes(entries) for name, kind in of_result.items()},
    }
    rows = [tuple(_values(view, row)) for row in view.table.rows]
    return DownloadTable(view.files, columns, rows, " ".join(map(str, view.table.signatures)))


def _values(view: TableView, row: Row) -> Iterator[Scalar]:
    """Yield the values of a row in the order of the columns of :func:`view_table`."""
    ranked, *others = (values_of(_RANKED, placed) for *_, placed in view.placings[row.entry.origin, row.entry.place])
    yield from (*values_of(_MODEL, row.model), *ranked, row.shut, view.table.primary, *chain(*others))
    yield " ".join(dict.fromkeys(entry.origin for entry in row.entries))
    yield " ".join(row.provenances)
    cells = view.cells(row)
    for column in view.all_columns:
        metric, *_ = cells[column.key]
        yield from _NO_METRIC if metric is None else values_of(_METRIC, metric)
    for entry in row.entries:
        yield from values_of(_RESULT, entry)


def _prefixes(entries: Sequence[Entry]) -> list[str]:
    """Return the beginning of the columns about each result of a row: its config, with the prompt if several share it.

    The only result of a row needs none.
    """
    signatures = [entry.result.signature for entry in entries]
    configs = [signature.config for signature in signatures]
    if len(entries) == 1 and configs:
        return [""]
    return [f"{one.config}_" if configs.count(one.config) == 1 else f"{one.config}_{one.prompt}_" for one in signatures]


def pair_tables(view_of: Sequence[TableView], pairs: pd.DataFrame) -> Iterator[DownloadTable]:
    """Yield the pairs of each table."""
    rows = rows_by(pairs, ["table"], PAIR_COLUMNS)
    for view in view_of:
        if (of_table := rows.get((table_name(view.table),))) is not None:
            yield DownloadTable(view.comparisons, PAIR_COLUMNS, of_table, " ".join(map(str, view.table.signatures)))


def result_tables(view_of: Sequence[TableView], values: pd.DataFrame) -> Iterator[DownloadTable]:
    """Yield the values of each result of a language model."""
    rows = rows_by(values, ["table", "origin", "place"], VALUE_COLUMNS)
    for table in (view.table for view in view_of if not view.table.is_index):
        for entry in (row.entry for row in table.rows if not row.is_baseline):
            of_result = rows[table_name(table), entry.origin, entry.place]
            yield DownloadTable(result_files(entry.result), VALUE_COLUMNS, of_result)


_UNDECIDED = "the register has no decision on these files: they are new, or were changed since they were accepted"


def audit_table(board: Board, left_out: Sequence[LeftOut]) -> DownloadTable:
    """Return one row for each result that was found, with the reason if it is not shown or has no rank."""
    found: list[tuple[str, str | None, Entry]] = [
        ("shown", "; ".join(row.reasons) or None, row.entry)
        for table in board.tables
        for row in table.rows
        if not row.entry.is_computed
    ]
    found += [("duplicate", one.reason, one.entry) for one in board.duplicates]
    found += [("apart", entry.match.reason, entry) for entry in board.apart]
    rows: list[Values] = []
    for state, reason, entry in found:
        if entry.origin == "accepted" and entry.acceptance is None:
            reason = "; ".join(filter(None, (_UNDECIDED, reason)))
        result, records = entry.result, entry.result.records
        about = (result.model.id, str(result.signature), entry.n_recomputed, records.n_rows, records.sha256)
        rows.append((entry.place, entry.origin, state, reason, *about, result.environment.biasboard))
    rows += [(one.place, one.origin, "left out", one.reason, *[None] * 6) for one in left_out]
    rows.sort(key=lambda row: (str(row[1]), str(row[0])))
    return DownloadTable(Files("files/audit"), _AUDITED, rows)


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",
    "'": "{'}",
    "`": "{`}",
    "\N{MINUS SIGN}": "$-$",
    "\N{EN DASH}": "--",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
}
_SPECIALS = re.compile("[" + re.escape("".join(_SPECIAL)) + "]|-(?=-)|,(?=,)")
_UNKNOWN = "---"
_DISTRIBUTION = "biasboard"
_SCORING = {
    "option_logprob": "log-probabilities of the options",
    "pseudo_log_likelihood": "pseudo-log-likelihoods of the texts",
    "generation": "generated texts",
}


def escape(text: str, *, most: int = 400) -> str:
    r"""Escape an untrusted text for LaTeX; invisible characters become visible.

    >>> escape("a_b & 50% {x} \\input")
    'a\\_b \\& 50\\% \\{x\\} \\textbackslash{}input'
    """
    return _SPECIALS.sub(lambda match: _SPECIAL.get(match[0], f"{match[0]}{{}}"), printable(text, most=most))


def latex_row(cells: Iterable[str]) -> str:
    """Return a row of a LaTeX table from its cells, which are LaTeX."""
    return " & ".join(cells) + r" \\"


def latex_table(
    columns: str,
    headings: Sequence[str],
    body: Iterable[str],
    *,
    caption: str,
    settings: Sequence[str],
    is_wide: bool,
    comments: Sequence[str] = (),
    below: Sequence[str] = (),
) -> str:
    """Return a LaTeX table for a paper; headings and caption are plain texts, the other lines are LaTeX."""
    name = "table*" if is_wide else "table"
    lines = [
        r"% Needs \usepackage{booktabs}. Compile names in other scripts than Latin with LuaLaTeX or XeLaTeX.",
        *comments,
        rf"\begin{{{name}}}",
        r"\centering",
        rf"\caption{{{escape(caption, most=20_000)}}}",
        *settings,
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        latex_row(map(escape, headings)),
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        *below,
        rf"\end{{{name}}}",
        "",
    ]
    return "\n".join(lines)


def markdown_table(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown from cells in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def paper_latex(view: TableView) -> str:
    """Return the headline columns of a table for a paper as LaTeX, with rank ranges and reasons as footnotes."""
    marks: dict[str, str] = {}

    def unknown(reason: str) -> str:
        return _UNKNOWN + _mark(marks, reason)

    def value(metric: Metric | None) -> str:
        if metric is None or metric.value is None:
            return unknown("not a metric of this task" if metric is None else metric.reason or "unknown")
        lacks = f"no interval: {metric.interval_reason}" if metric.interval is None else ""
        return escape(value_text(metric)) + (_mark(marks, lacks) if lacks else "")

    def line(row: Row) -> str:
        name = rf"\texttt{{{escape(_named(view, row), most=120)}}}" + (" (baseline)" if row.is_baseline else "")
        values = [value(metric) for metric in _shown(view, row)]
        return latex_row([name, *values, escape(str(row.rank)) if row.rank else unknown(row.unranked or "not ranked")])

    body = [r"\midrule", *map(line, view.table.rows)]
    headings = [column.heading for column in view.headlines]
    is_wide = len(headings) > 3
    cited = ", ".join(paper.key for paper in view.pages.papers_of(view.table.signature.config))
    cite = f"% Cite {cited} and the table itself: the entries are in the .bib file beside this one."
    footnotes = [rf"\textsuperscript{{{mark}}} {escape(reason)}\par" for reason, mark in marks.items()]
    if footnotes:
        opened = ["", r"\medskip", r"\begin{minipage}{\linewidth}\raggedright\footnotesize"]
        footnotes = [*opened, *footnotes, r"\end{minipage}"]
    return latex_table(
        f"l{'l' * len(headings)}r",
        ["Model", *headings, "Rank"],
        body,
        caption=_caption(view),
        settings=[rf"\label{{tab:{view.anchor}}}", r"\scriptsize" if is_wide else r"\small"],
        is_wide=is_wide,
        comments=[cite] if cited else [],
        below=footnotes,
    )


def paper_markdown(view: TableView) -> str:
    """Return the same table as Markdown, with the conditions as a line below it."""
    dash = "\N{EM DASH}"
    rows = [
        [
            _named(view, row) + (" (baseline)" if row.is_baseline else ""),
            *(dash if one is None or one.value is None else value_text(one) for one in _shown(view, row)),
            str(row.rank or dash),
        ]
        for row in view.table.rows
    ]
    headings = ["Model", *(column.heading for column in view.headlines), "Rank"]
    table = markdown_table([*map(_markdown, headings)], ([*map(_markdown, row)] for row in rows))
    return f"{table}\n{_markdown(_caption(view))}\n"


def _markdown(text: str) -> str:
    """Escape an untrusted text for a cell of a Markdown table, where it can be neither a link nor HTML."""
    return re.sub(r"[\\`*_{}\[\]<>|#!]", lambda match: f"\\{match[0]}", printable(text, most=20_000))


def _shown(view: TableView, row: Row) -> list[Metric | None]:
    """Return the values of a row that a table for a paper has."""
    cells = view.cells(row)
    return [cells[column.key][0] for column in view.headlines]


def _caption(view: TableView) -> str:
    """Return everything that the numbers of a table depend on, in words."""
    table = view.table
    entries = table.rows[0].entries
    versions = [f"{column.heading} {column.example.version}" for column in view.headlines if column.example is not None]
    sentences = [f"{view.title}."]
    if table.is_index:
        sentences.append(f"The index is the mean of the metrics beside it, version {table.version}.")
    sentences += [_in_words(entry.result.signature) for entry in entries]
    if versions:
        sentences.append(f"Metric versions: {', '.join(versions)}.")
    if view.primary_label != "none":
        sentences.append(f"Ranks by {view.primary_label}.")
    metrics = (cells[column.key][0] for cells in map(view.cells, table.rows) for column in view.all_columns)
    levels = {metric.interval.level for metric in metrics if metric is not None and metric.interval is not None}
    if len(levels) == 1:
        sentences.append(f"Brackets: {max(levels):.0%} intervals.")
    return " ".join([*sentences, "A rank range says which ranks the data allow."])


def _in_words(signature: Signature) -> str:
    """Return a signature in words, as a sentence for a caption."""
    normalisation = f", normalised as {signature.normalisation}" if signature.normalisation else ""
    outcomes = f", {signature.n_outcomes} outcomes" if signature.n_outcomes else ""
    examples = f", examples {signature.examples_sha256[:8]}" if signature.examples_sha256 else ""
    parts = f" in {len(signature.parts)} parts" if signature.parts else ""
    return (
        f"Dataset {signature.dataset} {signature.dataset_version}, config {signature.config}{parts}, "
        f"split {' and '.join(signature.splits)}: {signature.n_items:,} items (sha256 {signature.items_sha256[:8]}). "
        f"Task {signature.task} {signature.task_version}, prompt {signature.prompt} "
        f"(sha256 {signature.prompt_sha256[:8]}), read from {_SCORING[signature.scoring]}{normalisation}{outcomes}"
        f"{examples}."
    )


def _mark(marks: dict[str, str], reason: str) -> str:
    """Return the mark of a footnote, whose letter is that of its first use."""
    return rf"\textsuperscript{{{marks.setdefault(reason, _letters(len(marks)))}}}"


def _letters(index: int) -> str:
    """Return the letters of an index: a to z, then aa.

    >>> _letters(0), _letters(25), _letters(26)
    ('a', 'z', 'aa')
    """
    first = "" if index < 26 else _letters(index // 26 - 1)
    return first + chr(ord("a") + index % 26)


def _named(view: TableView, row: Row) -> str:
    """Return the id of a model with its backend, precision and revision: a paper has no page to look them up on."""
    detail = view.detail(row)
    return f"{row.model.id} ({detail})" if detail else row.model.id


def bibtex(view: TableView, rows: str, address: str | None) -> str:
    """Return an entry of a table and one of each paper that belongs to it.

    Args:
        view: Table to cite.
        rows: Text of its CSV export, whose hash identifies the numbers.
        address: Address of the site, which ends with a slash; None if it has none.
    """
    papers = view.pages.papers_of(view.table.signature.config)
    return "\n".join([_table_entry(view, rows, address), *map(_paper_entry, papers)]) + "\n"


def bibtex_of(papers: Iterable[Paper]) -> str:
    """Return an entry of the software and one of each paper."""
    version = importlib.metadata.version(_DISTRIBUTION)
    software = {
        "title": f"{{{_DISTRIBUTION}: versioned bias benchmarks for language models}}",
        "author": f"{{The {_DISTRIBUTION} contributors}}",
        "version": version,
    }
    return "\n".join([_entry("software", _DISTRIBUTION, software), *map(_paper_entry, dict.fromkeys(papers))]) + "\n"


def _table_entry(view: TableView, rows: str, address: str | None) -> str:
    sha256 = hashlib.sha256(rows.encode()).hexdigest()
    version = importlib.metadata.version(_DISTRIBUTION)
    entries = [entry for row in view.table.rows for entry in row.entries]
    accepted = max((entry.acceptance.accepted for entry in entries if entry.acceptance is not None), default=None)
    fields = {
        "title": f"{{{_bibtex_text(f'{_DISTRIBUTION} leaderboard: {view.name}')}}}",
        "author": f"{{The {_DISTRIBUTION} contributors}}",
        "version": version,
        "note": _bibtex_text(f"Table made by {_DISTRIBUTION} {version}; SHA-256 of {view.files.csv}: {sha256}"),
    }
    if accepted is not None:
        fields |= {"year": accepted[:4], "date": accepted}
    if address is not None:
        fields["url"] = _address(f"{address}{view.page}#{view.anchor}")
    # The hash makes another key of every other version of the table.
    return _entry("misc", f"{_DISTRIBUTION}-{view.anchor}-{sha256[:8]}", fields)


def _paper_entry(paper: Paper) -> str:
    fields = {
        "title": f"{{{_bibtex_text(paper.title)}}}",
        "author": _bibtex_text(" and ".join(paper.authors)),
        "booktitle": _bibtex_text(paper.booktitle),
        "year": str(paper.year),
        "url": _address(paper.address),
    }
    if paper.doi is not None:
        fields["doi"] = paper.doi
    if paper.arxiv is not None:
        fields |= {"eprint": paper.arxiv, "archiveprefix": "arXiv"}
    return _entry("inproceedings", paper.key, fields)


def _bibtex_text(text: str) -> str:
    # BibTeX counts braces even behind a backslash.
    return escape(text, most=2_000).replace(r"\{", r"\char123{}").replace(r"\}", r"\char125{}")


def _address(text: str) -> str:
    """Return an address without characters that would end a field; the rest is taken as it is."""
    return "".join(f"%{ord(sign):02X}" if sign in '{}\\"' or ord(sign) <= 32 else sign for sign in text)


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines: Sequence[str] = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
