"""Writes tables that compare models for papers, as LaTeX with the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from biasboard.ground.plain_text import printable
from leaderboard.benchmark_pages import Column, Paper
from leaderboard.pages.index_views import IndexView
from leaderboard.pages.markup import number
from leaderboard.pages.sections import Section
from leaderboard.ranking.rank_ranges import RankRange
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
_SCORING = {"option_logprob": "log-probabilities of the options", "generation": "generated texts"}


class PaperRow(NamedTuple):
    """A row of a table for a paper."""

    model: str
    """Name of the model, with what distinguishes it from others of the same id."""
    is_baseline: bool
    rank: RankRange | None
    unranked: str | None
    """Reason why the row has no rank; None if it has one."""
    metrics: tuple[Metric | None, ...]


class PaperTable(NamedTuple):
    """A table for a paper: a few columns, with everything in the caption that its numbers depend on."""

    caption: str
    label: str
    """Name by which a text refers to the table."""
    headings: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    papers: tuple[Paper, ...]


def escape(text: str, *, most: int = 400) -> str:
    r"""Escape an untrusted text for LaTeX; invisible characters become visible.

    >>> escape("a_b & 50% {x} \\input")
    'a\\_b \\& 50\\% \\{x\\} \\textbackslash{}input'
    """
    return _SPECIALS.sub(lambda match: _SPECIAL.get(match[0], f"{match[0]}{{}}"), printable(text, most=most))


def section_latex(section: Section) -> str:
    """Return the table of a section for a paper: the ranking metric and those of the summaries, with rank ranges."""
    table = section.table
    ranking = [column for column in section.columns if column.metric == table.primary and not column.group]
    columns: list[Column] = [*ranking, *(column for column in section.summarised if column not in ranking)]
    rows = tuple(
        PaperRow(
            _named(row.entry.result.model.id, section.detail(row)),
            row.entry.is_baseline,
            row.rank,
            row.unranked,
            tuple(column.of(row.entry) for column in columns),
        )
        for row in table.rows
    )
    signature = f"{_in_words(table.signature)} {_versions(columns, rows)}"
    ranked = f" Ranks by {section.primary_label}." if table.primary else ""
    caption = f"{section.title}. {signature}{ranked}"
    return _written(
        PaperTable(caption, section.anchor, tuple(column.heading for column in columns), rows, section.pages.papers)
    )


def index_latex(view: IndexView, papers: Sequence[Paper]) -> str:
    """Return the table of an index for a paper: the index and the metrics whose mean it is, with rank ranges."""
    first = view.table.rows[0]
    rows = tuple(
        PaperRow(
            row.model.id if row.is_baseline else row.label,
            row.is_baseline,
            row.rank,
            row.unranked,
            (row.primary, *row.parts),
        )
        for row in view.table.rows
    )
    asked = " ".join(_in_words(entry.result.signature) for entry in first.entries)
    headings = (view.label(first.primary.name), *view.part_labels)
    caption = f"{view.title}: the index is the mean of the metrics beside it, version {view.table.version}. {asked}"
    return _written(PaperTable(f"{caption} Ranks by the index.", view.anchor, headings, rows, tuple(papers)))


def _named(model_id: str, detail: str) -> str:
    return f"{model_id} ({detail})" if detail else model_id


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


def _versions(columns: Sequence[Column], rows: Sequence[PaperRow]) -> str:
    """Return the sentence that names the version of each metric."""
    found = []
    for index, column in enumerate(columns):
        version = next((metric.version for row in rows if (metric := row.metrics[index]) is not None), None)
        if version is not None:
            found.append(f"{column.label} {version}")
    return f"Metric versions: {', '.join(found)}." if found else ""


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


def _written(table: PaperTable) -> str:
    notes = _Notes()
    levels = {metric.interval.level for row in table.rows for metric in row.metrics if metric and metric.interval}
    level = f" Brackets: {max(levels):.0%} intervals." if len(levels) == 1 else ""
    ranks = " A rank range says which ranks the data allow."
    body = [rf"{_row(row, notes)} \\" for row in table.rows]
    wide = "*" if len(table.headings) > 3 else ""
    cited = ", ".join(paper.key for paper in table.papers)
    lines = [
        r"% Needs \usepackage{booktabs}. Compile names in other scripts than Latin with LuaLaTeX or XeLaTeX.",
        *([f"% Cite {cited} and the table itself: the entries are in the .bib file beside this one."] if cited else []),
        rf"\begin{{table{wide}}}",
        r"\centering",
        rf"\caption{{{escape(table.caption + level + ranks, most=20_000)}}}",
        rf"\label{{tab:{table.label}}}",
        r"\scriptsize" if wide else r"\small",
        rf"\begin{{tabular}}{{l{'l' * len(table.headings)}r}}",
        r"\toprule",
        " & ".join(["Model", *map(escape, table.headings), "Rank"]) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    footnotes = list(notes.lines())
    if footnotes:
        lines += [
            "",
            r"\medskip",
            r"\begin{minipage}{\linewidth}\raggedright\footnotesize",
            *footnotes,
            r"\end{minipage}",
        ]
    return "\n".join([*lines, rf"\end{{table{wide}}}", ""])


def _row(row: PaperRow, notes: _Notes) -> str:
    name = rf"\texttt{{{escape(row.model, most=120)}}}" + (" (baseline)" if row.is_baseline else "")
    rank = escape(str(row.rank)) if row.rank else _UNKNOWN + notes.mark(row.unranked or "not ranked")
    return " & ".join([name, *(_value(metric, notes) for metric in row.metrics), rank])


def _value(metric: Metric | None, notes: _Notes) -> str:
    if metric is None:
        return _UNKNOWN + notes.mark("not a metric of this task")
    if metric.value is None:
        return _UNKNOWN + notes.mark(metric.reason or "unknown")
    signed = metric.minimum < 0
    value = escape(number(metric.value, signed=signed))
    if metric.interval is None:
        return value + notes.mark(f"no interval: {metric.interval_reason}")
    low, high = (escape(number(end, signed=signed)) for end in (metric.interval.low, metric.interval.high))
    return f"{value} [{low}, {high}]"
