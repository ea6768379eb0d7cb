"""Writes the summary of a model as text for a terminal, as a data frame and as a table in Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from biasboard.ground.plain_text import listed
from leaderboard.model_facts import display_name
from leaderboard.pages.markup import number, source_markdown
from leaderboard.pages.table_files import escape, latex_row, latex_table, markdown_table
from leaderboard.ranking.rank_ranges import RankRange, rank_words
from schemas.documents.model_summary import BenchmarkSummary, MeasureValue, MissingOfGroup, ModelSummary

if TYPE_CHECKING:
    import pandas as pd

_NONE = "none: "
_MOST_GROUPS = 3
_MOST_CONFIGS = 3
_BY_CHANCE = 0.005
"""Probability that any group of a benchmark is named that lacks scores by chance alone: small, since items in clusters
depend on each other, which the test does not know."""
_HEADINGS = ("value", "95 % interval", "ideal", "useless predictor")
_AT_WORST = "missing at worst"
"""Heading of values with all missing answers at their worst, shown where that is another value."""
AT_WORST_WORDS = "the value if each item without a score counted as badly as it can"
_ID = "id of the measure"
"""What options such as ``--fail-under`` take."""


def summary_lines(summary: ModelSummary) -> Iterator[str]:
    """Yield the lines of a summary for a terminal: a heading for each benchmark, and a line for each measure."""
    table = [("", *_headings(summary), _ID)]
    table += [(*_row(summary, benchmark, measure), measure.name) for benchmark, measure in _measures(summary)]
    # A reason in place of a value may be long, and only the id of the measure follows it on its line.
    widths = [
        max(len(row[column]) for row in table if column != 1 or not row[1].startswith(_NONE))
        for column in range(len(table[0]))
    ]
    lines_of = (
        [*map(str.ljust, row[:2], widths), row[-1]] if row[1].startswith(_NONE) else map(str.ljust, row, widths)
        for row in table
    )
    heading, *rows = ("  ".join(["", *texts]).rstrip() for texts in lines_of)
    lines = iter(rows)
    yield f"{summary.model}{'' if summary.against is None else f' against {summary.against}'}"
    yield heading
    for benchmark in summary.benchmarks:
        yield f"{benchmark.heading} ({conditions(benchmark)}): {placing_text(benchmark)}"
        yield from (next(lines) for _ in benchmark.measures)
        without: dict[str, list[str]] = {}
        for measure in benchmark.measures:
            if measure.interval_reason is not None:
                without.setdefault(measure.interval_reason, []).append(measure.label)
        yield from (f"  no interval of {' and '.join(labels)}: {reason}" for reason, labels in without.items())
        if benchmark.why_below is not None and benchmark.why_below not in placing_text(benchmark):
            yield f"  not shown to beat a useless predictor: {benchmark.why_below}"
        if benchmark.why_not_compared is not None:
            yield f"  not compared: {benchmark.why_not_compared}"
        if benchmark.n_missing:
            yield f"  {missing_text(benchmark)}"
    if shows_worst(summary):
        yield f"{_AT_WORST}: {AT_WORST_WORDS}"
    yield from summary.notes


def missing_text(benchmark: BenchmarkSummary) -> str:
    """Return how many items have no score and why, and the groups that have most of them."""
    kinds = {"refused": benchmark.n_refused, "unread": benchmark.n_unparsed, "failed": benchmark.n_failed}
    why = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items() if n)
    text = f"{benchmark.n_missing:,} of {benchmark.n_items:,} items ({benchmark.n_missing / benchmark.n_items:.2%}) "
    text += f"have no score: {why}"
    if benchmark.n_missing == benchmark.n_items:
        return text
    if not benchmark.missing_of_groups:
        return text
    return f"{text}; {lacking_words(benchmark.lacking_more) or 'no group stands out'}"


def lacking_words(apart: Sequence[MissingOfGroup]) -> str | None:
    """Return the first of :func:`groups_apart` in words; None if there is none."""
    clearest: dict[tuple[str, str], MissingOfGroup] = {}
    for one in apart:
        clearest.setdefault((one.name, one.value), one)
    named = (
        f"{one.n_missing:,} of {one.n_items:,} with {one.name} {one.value} in {one.config}"
        for one in islice(clearest.values(), _MOST_GROUPS)
    )
    text = ", ".join(named)
    return f"more than in other groups: {text}" if text else None


def groups_apart(groups: Sequence[MissingOfGroup]) -> list[MissingOfGroup]:
    """Return the groups that lack clearly more scores than the others of their kind, the clearest first.

    A group is looked at in each config, and in all that have it together: there its ``config`` names them all. Each
    kind, such as the pronoun, has an equal part of the probability of naming a group by chance, and so has each look
    at a group of the kind.
    """
    kinds: dict[str, list[MissingOfGroup]] = {}
    for one in groups:
        kinds.setdefault(one.name, []).append(one)
    apart = []
    for of_kind in kinds.values():
        values: dict[str, list[MissingOfGroup]] = {}
        for one in of_kind:
            values.setdefault(one.value, []).append(one)
        looks = [[one] for one in of_kind] + [strata for strata in values.values() if len(strata) > 1]
        most = _BY_CHANCE / len(kinds) / len(looks)
        apart += [(chance, _together(look)) for look in looks if (chance := _chance(look, of_kind)) < most]
    # Where both chances are too small to be told apart, that of all configs lacks more; alike, the first is of one.
    return [one for _, one in sorted(apart, key=lambda look: (look[0], -look[1].n_missing))]


def _together(strata: Sequence[MissingOfGroup]) -> MissingOfGroup:
    configs = [one.config for one in strata]
    return MissingOfGroup(
        config=" and ".join(configs) if len(configs) <= _MOST_CONFIGS else listed(configs, most=_MOST_CONFIGS),
        name=strata[0].name,
        value=strata[0].value,
        n_items=sum(one.n_items for one in strata),
        n_refused=sum(one.n_refused for one in strata),
        n_unparsed=sum(one.n_unparsed for one in strata),
        n_failed=sum(one.n_failed for one in strata),
    )


def _chance(strata: Sequence[MissingOfGroup], of_kind: Sequence[MissingOfGroup]) -> float:
    """Return how probable it is that a group lacks so many scores or more, if all of its kind lack them by chance.

    This is Fisher's exact test, stratified by config, since configs may differ in how many scores they lack. It holds
    for groups of two items too.
    """
    # Imported here, because most summaries miss nothing.
    import numpy as np
    from scipy import stats

    of_number = np.ones(1)
    for one in strata:
        alike = [other for other in of_kind if other.config == one.config]
        n_items, n_missing = sum(other.n_items for other in alike), sum(other.n_missing for other in alike)
        of_number = np.convolve(
            of_number, stats.hypergeom.pmf(np.arange(one.n_items + 1), n_items, n_missing, one.n_items)
        )
    return float(of_number[sum(one.n_missing for one in strata) :].sum())


def conditions(benchmark: BenchmarkSummary) -> str:
    """Return what was asked, and how."""
    return f"{benchmark.dataset} {benchmark.dataset_version}, {benchmark.protocol}"


def placing_text(benchmark: BenchmarkSummary) -> str:
    """Return the rank range, or why there is none."""
    rank = benchmark.rank
    if rank is None:
        return f"no rank: {benchmark.why_unranked}"
    return rank_words(RankRange(*astuple(rank)))


def _measures(summary: ModelSummary) -> Iterator[tuple[BenchmarkSummary, MeasureValue]]:
    return ((benchmark, measure) for benchmark in summary.benchmarks for measure in benchmark.measures)


def _headings(summary: ModelSummary) -> tuple[str, ...]:
    value, interval, *more = _HEADINGS
    headings = (value, interval, *([_AT_WORST] if shows_worst(summary) else []), *more)
    if not _is_compared(summary):
        return headings
    return *headings, display_name(summary.against or ""), "nearer to the ideal by"


def _is_compared(summary: ModelSummary) -> bool:
    return summary.against is not None and any(measure.difference is not None for _, measure in _measures(summary))


def shows_worst(summary: ModelSummary) -> bool:
    """Return True if missing answers could change a value."""
    return any(measure.value is not None and measure.at_worst != measure.value for _, measure in _measures(summary))


def _row(summary: ModelSummary, benchmark: BenchmarkSummary, measure: MeasureValue) -> tuple[str, ...]:
    """Return the cells of a measure, its label first."""
    if measure.value is None:
        return measure.label, f"{_NONE}{measure.reason}", *[""] * (len(_headings(summary)) - 1)
    useless = measure.useless
    cells = (
        measure.label,
        number_of(measure, measure.value),
        interval_of(measure),
        *([_worst_of(measure)] if shows_worst(summary) else []),
        "" if measure.ideal is None else f"{measure.ideal:g}",
        "" if useless is None else f"{number_of(measure, useless.value)} {useless.name}",
    )
    difference = measure.difference
    if not _is_compared(summary):
        return cells
    if difference is None:
        return *cells, "", ""
    return *cells, number_of(measure, difference.value), difference_of(benchmark, measure)


def _worst_of(measure: MeasureValue) -> str:
    return "unknown" if measure.at_worst is None else number_of(measure, measure.at_worst)


def number_of(measure: MeasureValue, value: float) -> str:
    """Return a value of a measure, with its sign if the measure can be negative."""
    return number(value, signed=measure.minimum < 0)


def value_of(measure: MeasureValue) -> str:
    """Return the value of a measure with its interval; empty without a value."""
    return "" if measure.value is None else f"{number_of(measure, measure.value)} {interval_of(measure)}".strip()


def interval_of(measure: MeasureValue) -> str:
    """Return the interval of a measure in brackets; empty without one."""
    return "" if measure.interval is None else measure.interval.shown(partial(number_of, measure))


def difference_of(benchmark: BenchmarkSummary, measure: MeasureValue) -> str:
    """Return how much nearer to the ideal the model is than the other, with the interval and what that says.

    A model that is not shown to do better than a useless predictor is never called better, since a coin is even too.
    """
    difference = measure.difference
    if difference is None:
        return ""
    if difference.low is None or difference.high is None:
        return f"{number(difference.lead, signed=True)} (no interval)"
    words: str = difference.outcome
    if difference.outcome == "tied":
        words = "not separable"
        if not difference.low <= 0 <= difference.high:
            why = "some of so many pairs differ that much by chance"
            if difference.lead_at_worst != difference.lead_at_best:
                could_turn = difference.lead_at_worst <= 0 <= difference.lead_at_best
                why = f"missing answers{'' if could_turn else ' and chance'} could turn it"
            words += f", as {why}"
    elif difference.outcome == "better" and not benchmark.beats_useless:
        words = "nearer, but not shown to beat a useless predictor"
    elif difference.outcome == "worse" and benchmark.is_other_below:
        words = "farther, but the other is not shown to beat a useless predictor"
    low, high = number(difference.low, signed=True), number(difference.high, signed=True)
    return f"{number(difference.lead, signed=True)} [{low}, {high}] {words}"


def markdown(summary: ModelSummary) -> str:
    """Return a summary as a Markdown table, with the rank of each benchmark above its measures."""
    headings = _headings(summary)
    rows: list[Iterable[str]] = []
    for benchmark in summary.benchmarks:
        title = source_markdown(f"({conditions(benchmark)}): {placing_text(benchmark)}")
        rows.append([f"**{source_markdown(benchmark.heading)}** {title}", *[""] * len(headings)])
        rows += [map(source_markdown, _row(summary, benchmark, measure)) for measure in benchmark.measures]
    return markdown_table(["", *map(source_markdown, headings)], rows)


def latex(summary: ModelSummary) -> str:
    """Return a summary as a LaTeX table for a paper."""
    headings = _headings(summary)
    body = []
    for benchmark in summary.benchmarks:
        title = f"{benchmark.heading} ({conditions(benchmark)}): {placing_text(benchmark)}"
        body += [
            r"\midrule",
            # The widest cell must not be wider than the page, with the space beside it.
            rf"\multicolumn{{{len(headings) + 1}}}{{p{{\dimexpr\linewidth-2\tabcolsep}}}}"
            rf"{{\textit{{{escape(title, most=2_000)}}}}} \\",
            *(latex_row(map(escape, _row(summary, benchmark, measure))) for measure in benchmark.measures),
        ]
    against = "" if summary.against is None else f", compared with {summary.against}"
    return latex_table(
        f"l{'l' * len(headings)}",
        ["Measure", *headings],
        body,
        caption=f"Headline measures of {summary.model}{against}. Brackets: 95% intervals; verdicts on differences are "
        "adjusted for all pairs of models.",
        settings=[r"\scriptsize", r"\setlength{\tabcolsep}{3pt}"],
        is_wide=True,
    )


def frame(summary: ModelSummary) -> pd.DataFrame:
    """Return a summary as a data frame with one row for each measure; unknown values are missing."""
    import pandas as pd

    rows = [
        {
            "model": summary.model,
            **_fields(benchmark, "benchmark", "dataset", "dataset_version", "protocol"),
            **_fields(measure, "config", measure="name", value="value"),
            **_fields(measure.interval, "low", "high"),
            "ideal": measure.ideal,
            **_fields(measure.useless, useless_predictor="name", useless_value="value"),
            **_fields(measure, "at_worst", "n", "reason"),
            **_fields(benchmark, "is_whole", "n_items", "n_refused", "n_unparsed", "n_failed", "why_unranked"),
            **_fields(benchmark.rank if measure.ranks else None, rank_best="best", rank_worst="worst"),
            "against": summary.against,
            **_fields(measure.difference, against_value="value", lead="lead", lead_low="low", lead_high="high"),
            **_fields(measure.difference, "lead_at_worst", "lead_at_best", "outcome"),
        }
        for benchmark, measure in _measures(summary)
    ]
    return pd.DataFrame(rows)


def _fields(document: object, *names: str, **renamed: str) -> dict[str, object]:
    """Return fields of a document by name, some under another one; each is None without a document."""
    fields = dict(zip(names, names, strict=True)) | renamed
    return {name: None if document is None else getattr(document, field) for name, field in fields.items()}
