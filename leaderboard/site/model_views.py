"""What the pages show of a model: its results with metrics, slices and charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from leaderboard.checking.entries import Entry
from leaderboard.ranking.boards import Row
from leaderboard.ranking.columns import Column
from leaderboard.site import plots
from leaderboard.site.markup import slug
from leaderboard.site.sections import Files, Picture, Section, make_picture, model_page
from schemas.lexicon import occupations, pronoun_families
from schemas.result import Metric


class Slice(NamedTuple):
    """One slice of the items with its metrics."""

    key: str
    value: str
    percent_women: float | None
    """Of an occupation; null for every other slice."""
    metrics: tuple[Metric | None, ...]
    """In the order of the slice metrics; none where a metric has no such slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One result of a model, and the table in which it stands."""

    section: Section
    row: Row
    title: str
    anchor: str
    files: Files
    overall: tuple[Metric, ...]
    slice_metrics: tuple[str, ...]
    slices: tuple[Slice, ...]
    pictures: tuple[Picture, ...]

    @property
    def has_occupations(self) -> bool:
        """Whether some slices are occupations, of which the share of women is known."""
        return any(slice_.percent_women is not None for slice_ in self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView:
    """A model with all its results on the board."""

    id: str
    page: str
    placements: tuple[Placement, ...]

    @property
    def is_baseline(self) -> bool:
        """Whether it is a yardstick rather than a model."""
        return all(placement.row.entry.is_baseline for placement in self.placements)

    @property
    def backends(self) -> str:
        """Names of the backends that asked it."""
        return ", ".join(sorted({placement.row.entry.result.model.backend for placement in self.placements}))

    @property
    def status(self) -> str:
        """Whether results of it are accepted, local or both."""
        return ", ".join(sorted({placement.row.entry.origin for placement in self.placements}))


def make_models(sections: Sequence[Section]) -> tuple[ModelView, ...]:
    """Every model of some sections, by id."""
    placements: dict[str, list[Placement]] = {}
    for section in sections:
        for row in section.table.rows:
            placements.setdefault(row.entry.result.model.id, []).append(_placement(section, row))
    return tuple(
        ModelView(id=model_id, page=model_page(model_id), placements=tuple(placements[model_id]))
        for model_id in sorted(placements)
    )


def _placement(section: Section, row: Row) -> Placement:
    entry = row.entry
    same_id = [other for other in section.table.rows if other.entry.result.model.id == entry.result.model.id]
    detail = section.detail(row) if len(same_id) > 1 else ""
    anchor = f"{section.anchor}-{entry.result.model.identity_sha256[:8]}"
    stem = f"files/{slug(entry.result.model.id)}-{anchor}"
    slice_metrics = tuple(dict.fromkeys(name for name, group in entry.metrics if group))
    slices = _slices(entry, slice_metrics)
    return Placement(
        section=section,
        row=row,
        title=f"{section.title} ({detail})" if detail else section.title,
        anchor=anchor,
        files=Files(f"{stem}.json", f"{stem}.csv"),
        overall=_overall(section, entry),
        slice_metrics=slice_metrics,
        slices=slices,
        pictures=_slice_pictures(section, entry, slices, f"charts/{slug(entry.result.model.id)}-{anchor}"),
    )


def _overall(section: Section, entry: Entry) -> tuple[Metric, ...]:
    """Metrics of all items: first as the columns of the table, then the others, unknown ones last."""
    order = {column.metric: index for index, column in reversed(list(enumerate(section.table.columns)))}
    metrics = [metric for (_, group), metric in entry.metrics.items() if not group]
    return tuple(sorted(metrics, key=lambda metric: (metric.value is None, order.get(metric.name, len(order)))))


def _slices(entry: Entry, slice_metrics: Sequence[str]) -> tuple[Slice, ...]:
    groups = dict.fromkeys(group for _, group in entry.metrics if len(group) == 1)
    slices = []
    for group in groups:
        key, value = group[0]
        known = occupations().get(value) if key == "occupation" else None
        metrics = tuple(entry.metrics.get((name, group)) for name in slice_metrics)
        slices.append(Slice(key, value, known.percent_women if known else None, metrics))
    return tuple(sorted(slices, key=lambda slice_: (slice_.key == "occupation", slice_.percent_women or 0.0)))


def _slice_pictures(section: Section, entry: Entry, slices: Sequence[Slice], stem: str) -> tuple[Picture, ...]:
    """The two first metrics of the table by group and by occupation, then two by pronoun family, and what is given."""
    columns = [column for column in section.table.columns if not column.group and _is_shown(column, entry)]
    pictures = []
    for column in columns[:2]:
        of_groups = _of_slices(entry, column, slices, lambda slice_: slice_.key not in _OWN_CHARTS)
        dots = [plots.Dot("all items", metric) for metric in (column.of(entry),) if metric is not None]
        if of_groups:
            keys = sorted({_KEY_WORDS.get(slice_.key, slice_.key.replace("_", " ")) for slice_, _ in of_groups})
            dots += [plots.Dot(slice_.value.replace("_", " "), metric) for slice_, metric in of_groups]
            pictures.append(_dots_picture(dots, column, f"{stem}-{column.metric}-groups", f"by {' and '.join(keys)}."))
    for column in columns[:2]:
        of_occupations = _of_slices(entry, column, slices, lambda slice_: slice_.percent_women is not None)
        dots = [plots.Dot(f"{slice_.value} ({slice_.percent_women:g} %)", metric) for slice_, metric in of_occupations]
        words = "by occupation, women's share in brackets, rising; the dashed line is the ideal."
        pictures.append(_dots_picture(dots, column, f"{stem}-{column.metric}-occupations", words))
    order = list(pronoun_families())
    for column in _by_family(entry, columns, slices):
        of_families = sorted(
            _of_slices(entry, column, slices, _is_family), key=lambda found: order.index(found[0].value)
        )
        dots = [plots.Dot(slice_.value, metric) for slice_, metric in of_families]
        pictures.append(_dots_picture(dots, column, f"{stem}-{column.metric}-families", "by pronoun family."))
    for column in columns[:1]:
        sweep = _of_slices(entry, column, slices, lambda slice_: slice_.key == "gamma")
        dots = [plots.Dot(slice_.value, metric) for slice_, metric in sweep]
        pictures.append(
            _dots_picture(dots, column, f"{stem}-{column.metric}-gamma", "at other thresholds of the cosine.")
        )
    given = [plots.Dot(words, metric) for name, words in _GIVEN.items() if (metric := entry.metric(name)) is not None]
    if len(given) == len(_GIVEN) and (chart := plots.dots(given, title="Share of answers")) is not None:
        caption = "Which pronouns the answers give to a person; none is of all answers, the others of those with one."
        pictures.append(make_picture(chart, f"{stem}-given", caption))
    return tuple(picture for picture in pictures if picture is not None)


def _is_shown(column: Column, entry: Entry) -> bool:
    """A column of another version than the result's has nothing to draw."""
    metric = column.of(entry)
    return metric is not None and (column.version is None or metric.value is not None)


_OWN_CHARTS = ("occupation", "family", "gamma")
"""Slices that have a chart of their own."""


def _by_family(entry: Entry, columns: Sequence[Column], slices: Sequence[Slice]) -> list[Column]:
    """What to draw by family: all that is read from the answers, and rates of what is not read where that is little."""
    sliced = [column for column in columns if _of_slices(entry, column, slices, _is_family)]
    read = [column for column in sliced if not column.metric.endswith("_rate")]
    rates = [column for column in sliced if column not in read]
    return read + rates[: max(0, 2 - len(read))]


_KEY_WORDS = {"pronoun_gender": "pronoun"}
_GIVEN = {
    "he_share": "he",
    "she_share": "she",
    "they_share": "they",
    "neo_share": "eight others",
    "no_pronoun_rate": "none",
}
"""Metrics of what is given, and how the chart calls them."""


def _is_family(slice_: Slice) -> bool:
    return slice_.key == "family"


def _of_slices(
    entry: Entry, column: Column, slices: Sequence[Slice], wanted: Callable[[Slice], bool]
) -> list[tuple[Slice, Metric]]:
    """The slices that a metric has among those wanted, with its values."""
    found = ((slice_, entry.metric(column.metric, {slice_.key: slice_.value})) for slice_ in slices if wanted(slice_))
    return [(slice_, metric) for slice_, metric in found if metric is not None]


def _dots_picture(dots: Sequence[plots.Dot], column: Column, stem: str, words: str) -> Picture | None:
    chart = plots.dots(dots, title=column.name) if dots else None
    return None if chart is None else make_picture(chart, stem, f"{column.name} {words}")
