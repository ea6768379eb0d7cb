"""Writes tables that compare models for papers: LaTeX with the package booktabs, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from biasboard.ground.plain_text import printable
from leaderboard.pages.markup import value_text
from leaderboard.pages.tables import TableView
from leaderboard.ranking.rows import Row
from schemas.documents.result import Metric, Signature

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


def paper_latex(view: TableView) -> str:
    """Return the headline columns of a table for a paper as LaTeX, with rank ranges and reasons as footnotes."""
    notes = _Notes()
    body = [
        [_name(view, row), *(_value(metric, notes) for metric in _shown(view, row)), _rank(row, notes)]
        for row in view.table.rows
    ]
    headings = [escape(column.heading) for column in view.headlines]
    wide = "*" if len(headings) > 3 else ""
    cited = ", ".join(paper.key for paper in view.pages.papers)
    footnotes = list(notes.lines())
    if footnotes:
        footnotes = [
            "",
            r"\medskip",
            r"\begin{minipage}{\linewidth}\raggedright\footnotesize",
            *footnotes,
            r"\end{minipage}",
        ]
    lines = [
        r"% Needs \usepackage{booktabs}. Compile names in other scripts than Latin with LuaLaTeX or XeLaTeX.",
        *([f"% Cite {cited} and the table itself: the entries are in the .bib file beside this one."] if cited else []),
        rf"\begin{{table{wide}}}",
        r"\centering",
        rf"\caption{{{escape(_caption(view), most=20_000)}}}",
        rf"\label{{tab:{view.anchor}}}",
        r"\scriptsize" if wide else r"\small",
        rf"\begin{{tabular}}{{l{'l' * len(headings)}r}}",
        r"\toprule",
        " & ".join(["Model", *headings, "Rank"]) + r" \\",
        r"\midrule",
        *(" & ".join(cells) + r" \\" for cells in body),
        r"\bottomrule",
        r"\end{tabular}",
        *footnotes,
        rf"\end{{table{wide}}}",
        "",
    ]
    return "\n".join(lines)


def paper_markdown(view: TableView) -> str:
    """Return the same table as Markdown, with the conditions as a line below it."""
    headings = ["Model", *(column.heading for column in view.headlines), "Rank"]
    lines = [headings, ["---"] * len(headings)]
    for row in view.table.rows:
        cells = [_plain_value(metric) for metric in _shown(view, row)]
        name = _named(view, row) + (" (baseline)" if row.is_baseline else "")
        lines.append([name, *cells, str(row.rank or "\N{EM DASH}")])
    table = "\n".join(f"| {' | '.join(_markdown(cell) for cell in cells)} |" for cells in lines)
    return f"{table}\n\n{_markdown(_caption(view))}\n"


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


class _Notes:
    """The footnotes of a table, each with a letter, in the order of their first use."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    def mark(self, reason: str) -> str:
        """Return the mark of a footnote with a certain text."""
        found = self._marks.setdefault(reason, _letters(len(self._marks)))
        return rf"\textsuperscript{{{found}}}"

    def lines(self) -> Iterator[str]:
        """Yield the footnotes as LaTeX."""
        for reason, mark in self._marks.items():
            yield rf"\textsuperscript{{{mark}}} {escape(reason)}\par"


def _letters(index: int) -> str:
    """Return the letters of an index: a to z, then aa.

    >>> _letters(0), _letters(25), _letters(26)
    ('a', 'z', 'aa')
    """
    first = "" if index < 26 else _letters(index // 26 - 1)
    return first + chr(ord("a") + index % 26)


def _name(view: TableView, row: Row) -> str:
    return rf"\texttt{{{escape(_named(view, row), most=120)}}}" + (" (baseline)" if row.is_baseline else "")


def _named(view: TableView, row: Row) -> str:
    """Return the id of a model with its backend, precision and revision: a paper has no page to look them up on."""
    detail = view.detail(row)
    return f"{row.model.id} ({detail})" if detail else row.model.id


def _rank(row: Row, notes: _Notes) -> str:
    rank = row.rank
    return escape(str(rank)) if rank else _UNKNOWN + notes.mark(row.unranked or "not ranked")


def _value(metric: Metric | None, notes: _Notes) -> str:
    if metric is None:
        return _UNKNOWN + notes.mark("not a metric of this task")
    if metric.value is None:
        return _UNKNOWN + notes.mark(metric.reason or "unknown")
    mark = notes.mark(f"no interval: {metric.interval_reason}") if metric.interval is None else ""
    return escape(_plain_value(metric)) + mark


def _plain_value(metric: Metric | None) -> str:
    """Return a value with its interval."""
    return "\N{EM DASH}" if metric is None or metric.value is None else value_text(metric)
