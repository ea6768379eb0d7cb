"""Formats small pieces of HTML and Markdown, and names the pages and anchors of tables and results."""

from __future__ import annotations

import hashlib
import html
import math
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from markupsafe import Markup

from biasboard.ground.plain_text import printed, visible
from leaderboard.ranking.rows import Row, Table
from schemas.documents.result import Metric, Model, Result, Signature, within

_MINUS = "\N{MINUS SIGN}"
# A slug writes a slash as a double underscore, so a name that contains one already is not plain.
_PLAIN_PART = r"[a-z0-9][a-z0-9.-]*(?:_[a-z0-9.-]+)*"
_PLAIN_NAME = re.compile(rf"{_PLAIN_PART}(?:/{_PLAIN_PART})*")
# A plain name must not be the slug of another one, which ends with a hash.
_HASHED = re.compile(r"-[0-9a-f]{6}$")
_WIDTH = 84
_HEIGHT = 12


def number(value: float, *, signed: bool = False, digits: int = 3) -> str:
    """Format a value for readers, with fixed digits, a typographic minus sign and no negative zero.

    >>> number(0.25, signed=True), number(-0.0001, signed=True), number(math.inf)
    ('+0.250', '0.000', '∞')
    """
    if math.isinf(value):  # The logarithm of a probability of 0.
        return f"{_MINUS if value < 0 else ''}\N{INFINITY}"
    text = f"{abs(printed(value, digits)):f}"
    if float(text) == 0:
        return text
    sign = _MINUS if value < 0 else "+" if signed else ""
    return sign + text


def percent(part: int, whole: int) -> str:
    """Format a share, where only all are 100 % and only none is 0 %.

    >>> percent(887, 1000), percent(9999, 10000), percent(1, 10000)
    ('89 %', '99 %', '1 %')
    """
    least, most = int(part > 0), 100 - int(part < whole)
    return f"{min(max(int(printed(100 * part / whole, 0)), least), most)} %"


def metric_number(metric: Metric, *, digits: int = 3) -> str:
    """Format the value of a metric, with its sign if the metric can be negative; empty without a value."""
    return "" if metric.value is None else number(metric.value, signed=metric.minimum < 0, digits=digits)


def interval_text(metric: Metric, *, digits: int = 3) -> str:
    """Format the interval of a metric in brackets; empty without one."""
    if metric.interval is None:
        return ""
    return metric.interval.shown(lambda end: number(end, signed=metric.minimum < 0, digits=digits))


def value_text(metric: Metric) -> str:
    """Format the value of a metric with its interval; empty without a value."""
    return f"{metric_number(metric)} {interval_text(metric)}".strip()


def whisker(
    metric: Metric, others: Mapping[str, Metric] = MappingProxyType({}), crowd: Iterable[Metric] = ()
) -> Markup:
    """Draw a metric on its range as SVG: a line for the interval, a dot for the value and a tick at the ideal.

    The range itself, which is the same in all, is drawn by the style sheet.

    Args:
        metric: Value to draw.
        others: Other values of the metric to mark with a diamond each, by the name of their style.
        crowd: Values of all other models, each a short tick.

    Returns:
        The SVG element; empty if the metric has no value.
    """
    low_end, high_end = metric.minimum, metric.drawn_maximum
    if metric.value is None or high_end <= low_end:
        return Markup("")

    def x(value: float) -> str:
        share = (within(value, low_end, high_end) - low_end) / (high_end - low_end)
        return f"{3 + share * (_WIDTH - 6):.1f}"

    # Paths, and no size but in the style sheet: pages of results hold hundreds of these.
    middle = _HEIGHT / 2
    parts = []
    # Values that round to one place are one tick.
    ticks = dict.fromkeys(x(one.value) for one in crowd if one.value is not None)
    if ticks:
        parts.append(f'<path class="bb-crowd" d="{"".join(f"M{at} {middle - 3:g}v6" for at in ticks)}"/>')
    if metric.ideal is not None:
        parts.append(f'<path class="bb-ideal-tick" d="M{x(metric.ideal)} 1V{_HEIGHT - 1}"/>')
    if metric.interval is not None:
        parts.append(f'<path class="bb-range" d="M{x(metric.interval.low)} {middle:g}H{x(metric.interval.high)}"/>')
    for style, other in others.items():
        if other.value is not None:
            at = x(other.value)
            parts.append(f'<path class="bb-other bb-other-{style}" d="M{at} {middle - 5:g}l4 5-4 5-4-5z"/>')
    parts.append(f'<circle class="bb-dot" cx="{x(metric.value)}" cy="{middle:g}" r="2.6"/>')
    return Markup(f'<svg class="bb-whisker" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">{"".join(parts)}</svg>')


def bar(metric: Metric, high_end: float) -> Markup:
    """Draw a metric in few bytes: a line for the interval and a dot for the value, placed in percent of a scale.

    Args:
        metric: Value to draw.
        high_end: Upper end of the scale, the same for all values of a column.

    Returns:
        An element that style sheets draw; empty if the metric has no value.
    """
    low_end = metric.minimum
    if metric.value is None or high_end <= low_end:
        return Markup("")

    def percent(value: float) -> str:
        return f"{100 * (within(value, low_end, high_end) - low_end) / (high_end - low_end):.0f}"

    ends = (metric.value, metric.value) if metric.interval is None else (metric.interval.low, metric.interval.high)
    low, high = map(percent, ends)
    return Markup(f'<i style="--l:{low};--h:{high};--v:{percent(metric.value)}"></i>')


def sort_key(value: float | None, digits: int | None = None) -> str:
    """Return the text of a value for ``data-sort``; it is empty for an unknown value, which is sorted last.

    Args:
        value: The value.
        digits: Number of digits that the page prints, so that what looks alike stays as it is; None for all of them.
    """
    return "" if value is None else repr(float(value if digits is None else printed(value, digits)))


def plain_markdown(text: str) -> Markup:
    """Escape a text from outside for a Markdown line.

    Every character that Markdown or HTML could interpret becomes a character reference.

    >>> str(plain_markdown("a_b <i>"))
    'a&#95;b &#60;i&#62;'
    """
    return Markup(re.sub(r"[^\w .,-]|_", lambda match: f"&#{ord(match.group())};", visible(" ".join(text.split()))))


# What a Markdown or HTML parser could take for markup; brackets around numbers stay, if they cannot begin a link.
_ACTING = re.compile(r"[\\`*_{}<>|#!&~$^@\"]|\[(?![\d+\u2212-])|(?<!\d)\]|\](?=[(\[:{])|:(?=//)|(?<=www)\.")


def source_markdown(text: str) -> Markup:
    """Escape a text from outside for a line of Markdown that people read and edit as source, such as a model card.

    Only what could act becomes a character reference: sentences, numbers and intervals stay as they are.

    >>> str(source_markdown("0.5 [0.4, 0.6] (a/b) <i> [x](y)"))
    '0.5 [0.4, 0.6] (a/b) &#60;i&#62; &#91;x&#93;(y)'
    """
    return Markup(_ACTING.sub(lambda match: f"&#{ord(match.group())};", visible(" ".join(text.split()))))


def outside_text(text: str, *, most: int = 2_000) -> Markup:
    r"""Escape a long text from outside for the inside of an HTML element; its line breaks stay.

    Every character that Markdown or HTML could interpret becomes a character reference. Control characters become
    visible, and the middle of a text that is too long is left out.

    >>> str(outside_text("a_b\n\x1b<i>"))
    'a&#95;b&#10;&#9243;&#60;i&#62;'
    """
    if len(text) > most:
        n_first, n_last = most // 4, most - most // 4
        text = f"{text[:n_first]}\n[… {len(text) - most:,} characters left out …]\n{text[-n_last:]}"
    pictured = re.sub(r"[\x00-\x08\x0b-\x1f]", lambda match: chr(0x2400 + ord(match.group())), text)
    return Markup(re.sub(r"[^\w .,-]|_", lambda match: f"&#{ord(match.group())};", visible(pictured)))


def front_matter(text: str) -> Markup:
    """Quote a text from outside as a YAML value for front matter, escaped for HTML because themes print it raw."""
    escaped = html.escape(visible(" ".join(text.split()))).replace("\\", "&#92;")
    return Markup(f'"{escaped}"')


def slug(text: str) -> str:
    """Turn a text from outside into a file name that any file system accepts.

    A hash of the text is added unless the text is a plain lower-case name, so that two texts get different file names.

    >>> slug("acme/small_1b"), slug("Acme/Small 1B"), slug("index")
    ('acme__small_1b', 'acme__small-1b-528f11', 'index-1bc04b')
    """
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower().replace("/", "__")).strip("-._")[:80]
    if (
        _PLAIN_NAME.fullmatch(text)
        and not _HASHED.search(text)
        and name != "index"
        and len(name) == len(text) + text.count("/")
    ):
        return name
    return f"{name or 'model'}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def plain(part: str) -> str:
    """Return a text as a part of an anchor or file name."""
    return re.sub(r"[^a-z0-9.-]+", "-", part.lower())


def table_anchor(signature: Signature, signature_sha256: str) -> str:
    """Return the anchor of the table with the results of a signature."""
    return "-".join(
        plain(part) for part in (signature.dataset, signature.config, signature.prompt, signature_sha256[:8])
    )


def anchor_of(table: Table) -> str:
    """Return the anchor of a table."""
    if table.is_index:
        return plain(f"{table.signature.dataset}-index-{table.protocol}-{table.sha256[:8]}")
    return table_anchor(table.signature, table.sha256)


def table_page(table: Table, *, is_default: bool) -> str:
    """Return the path of the page that shows a table, relative to the root of the site.

    Args:
        table: The table.
        is_default: True if it is the first table of its benchmark.
    """
    name = slug(table.signature.benchmark)
    return f"benchmarks/{name}.html" if is_default else f"benchmarks/{name}/{anchor_of(table)}.html"


def row_anchor(table: str, model: Model) -> str:
    """Return the name of a model's row in addresses, also its anchor on the page of the model, from the table's."""
    return f"{table}-{model.identity_sha256[:8]}"


def result_anchor(result: Result) -> str:
    """Return the name of the row of a result."""
    return row_anchor(table_anchor(result.signature, result.signature_sha256), result.model)


BASELINES = "useless-predictors.html"
"""Path of the page of all baselines, relative to the root of the site."""


def model_page(model_id: str) -> str:
    """Return the path of the page of a model, relative to the root of the site; baselines share one page."""
    # Results are valid only if exactly the baselines have such ids.
    return f"{BASELINES}#{slug(model_id)}" if model_id.startswith("baseline/") else f"models/{slug(model_id)}.html"


def result_page(model_id: str, anchor: str) -> str:
    """Return the path of the page of a result or an index, relative to the root of the site.

    Args:
        model_id: Id of the model.
        anchor: Name of the result among those of the model.
    """
    page = model_page(model_id)
    return page if page.startswith(BASELINES) else f"{page.removesuffix('.html')}/{anchor}.html"


def row_page(table: Table, row: Row) -> str:
    """Return the path of the page of the result or the index in a row of a table."""
    return result_page(row.model.id, row_anchor(anchor_of(table), row.model))


def dataset_page(name: str, version: str) -> str:
    """Return the path of the page of a dataset, relative to the root of the site."""
    return f"datasets/{slug(f'{name}-{version}')}.html"


def permalink(result: Result) -> str:
    """Return the address of a result, relative to the root of the site."""
    return result_page(result.model.id, result_anchor(result))
