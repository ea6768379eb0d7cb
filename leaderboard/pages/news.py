"""Collects what happened to accepted results, by the dates that the register states, for a page and a feed."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias
from xml.etree import ElementTree

from biasboard.ground.plain_text import printable
from leaderboard.pages.exports import DownloadTable, Files
from leaderboard.pages.model_views import ModelView, Placement
from leaderboard.ranking.boards import Board
from leaderboard.ranking.rows import Row
from leaderboard.ranking.unranked import BY_INDEX
from leaderboard.verify.entries import LeftOut
from schemas.documents.board import Acceptance, Register

Event: TypeAlias = Literal["accepted", "asked again", "preferred", "withdrawn", "disputed", "replaced"]

MOST_SHOWN = 200
"""Number of the newest events that the page shows; the files hold all of them."""
_MOST_FED = 50
_ATOM = "http://www.w3.org/2005/Atom"
_ORDER: tuple[Event, ...] = ("withdrawn", "replaced", "disputed", "preferred", "asked again", "accepted")


class News(NamedTuple):
    """Something that happened to an accepted result on a day that the register states."""

    date: str
    event: Event
    model: str
    """Id of the model; the name of its folder if the result is not on the board any more."""
    benchmark: str
    """Heading of the benchmark; the name of the dataset if the result is not on the board any more."""
    table: str | None
    """Title of its table; None if no table shows it."""
    text: str
    """Sentences that say more; empty if there is nothing to say."""
    now: str
    """The state of the result today."""
    place: str
    page: str | None
    """Page of the result; None if no page shows it."""


def make_news(
    register: Register, board: Board, models: Sequence[ModelView], left_out: Sequence[LeftOut]
) -> tuple[News, ...]:
    """Return everything that happened to accepted results, the newest first.

    Only dates that the register states are used. A dispute began when the later of the two results was accepted, and a
    result is replaced when another one of the same model on a newer version of the dataset is accepted, or one with
    other answers is preferred.

    Args:
        register: Decisions of the maintainers.
        board: All tables.
        models: The pages of all models.
        left_out: Invalid results.
    """
    shown = {
        placement.row.entry.place: placement
        for model in models
        for placement in model.placements
        if placement.row.entry.origin == "accepted"
    }
    elsewhere = _not_shown(board, left_out)
    found = [
        news
        for one in register.results
        for news in _of_result(one, shown.get(one.place), elsewhere.get(one.place, "no longer among the results"))
    ]
    found += _contradictions(shown)
    found += _superseded(shown)
    found.sort(key=lambda news: (news.model, news.place, _ORDER.index(news.event)))
    return tuple(sorted(found, key=lambda news: news.date, reverse=True))


def _not_shown(board: Board, left_out: Sequence[LeftOut]) -> dict[str, str]:
    """Return why accepted results are in no table, by folder."""
    found = {each.entry.place: f"not shown: repeats {each.shown.place}" for each in board.duplicates}
    found |= {entry.place: f"stands apart: {entry.match.reason}" for entry in board.apart}
    return found | {each.place: f"left out: {each.reason}" for each in left_out if each.origin == "accepted"}


def _state(row: Row) -> str:
    if row.entry.acceptance is None:
        return "its files are not those that were accepted"
    if row.rank is not None:
        return f"rank {row.rank} of {row.rank.n_ranked}"
    return "shown; only all parts together are ranked" if row.unranked == BY_INDEX else f"unranked: {row.unranked}"


def _of_result(acceptance: Acceptance, shown: Placement | None, otherwise: str) -> Iterator[News]:
    """Yield what the register says about one result."""

    def event(date: str, what: Event, text: str) -> News:
        if shown is not None:
            return _about(shown, date, what, text)
        dataset, *rest = acceptance.place.split("/")
        model = rest[0].replace("__", "/") if rest else dataset
        return News(date, what, model, dataset, None, text, otherwise, acceptance.place, None)

    yield event(acceptance.accepted, "accepted", "")
    if acceptance.decision != "accepted":
        undated = "" if acceptance.decided else " The register does not say when: the date is that of the acceptance."
        yield event(
            acceptance.decided or acceptance.accepted,
            acceptance.decision,
            f"{_sentence(acceptance.reason or '')}{undated}",
        )
    if acceptance.rerun is not None:
        agreeing = f"{acceptance.rerun.n_agreeing} of {acceptance.rerun.n_items} answers agree."
        yield event(acceptance.rerun.date, "asked again", agreeing)


def _sentence(text: str) -> str:
    """Return a text with a full stop at its end, unless it ends a sentence already."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _contradictions(shown: Mapping[str, Placement]) -> Iterator[News]:
    """Yield the results of one model in one table whose answers contradict each other."""
    groups: dict[tuple[str, str], list[Placement]] = {}
    for one in shown.values():
        key = (one.section.anchor, one.row.entry.result.model.identity_sha256)
        groups.setdefault(key, []).append(one)
    for group in groups.values():
        decisions = [one.row.entry.acceptance for one in group]
        dates = [decision.accepted for decision in decisions if decision is not None]
        if len(group) < 2 or not dates:
            continue
        preferred = [decision for decision in decisions if decision is not None and decision.decision == "preferred"]
        settled = preferred[0].decided or preferred[0].accepted if len(preferred) == 1 else None
        for one in group:
            if one.row.entry.double is not None:
                event: Event = "disputed" if settled is None else "replaced"
                yield _about(one, settled or max(dates), event, f"{one.row.entry.double}.")


def _superseded(shown: Mapping[str, Placement]) -> Iterator[News]:
    """Yield the results of models that have one on a newer version of the same dataset, asked in the same way."""
    groups: dict[tuple[str | None, ...], list[Placement]] = {}
    for one in shown.values():
        signature, model = one.row.entry.result.signature, one.row.entry.result.model
        key = (signature.dataset, signature.config, signature.prompt, model.id, model.revision)
        if one.row.entry.acceptance is not None:
            groups.setdefault(key, []).append(one)
    for group in groups.values():
        group.sort(key=_version)
        for older in group:
            newer = next((one for one in group if _version(one) > _version(older)), None)
            decision = None if newer is None else newer.row.entry.acceptance
            if newer is not None and decision is not None:
                version = newer.row.entry.result.signature.dataset_version
                text = f"The model has a result on version {version} of the dataset: {newer.row.entry.place}."
                yield _about(older, decision.accepted, "replaced", text)


def _version(one: Placement) -> tuple[int, ...]:
    return tuple(map(int, one.row.entry.result.signature.dataset_version.split(".")))


def _about(one: Placement, date: str, event: Event, text: str) -> News:
    entry, section = one.row.entry, one.section
    model, heading = entry.result.model.id, section.pages.heading
    return News(date, event, model, heading, section.name, text, _state(one.row), entry.place, one.page)


def by_benchmark(news: Sequence[News]) -> tuple[News, ...]:
    """Return events with those of one day, kind, model and benchmark as one, in the same order.

    A model that is asked for each config of a benchmark would otherwise fill the whole front page.
    """
    groups: dict[tuple[str, str, str, str], list[News]] = {}
    for one in news:
        groups.setdefault((one.date, one.event, one.model, one.benchmark), []).append(one)
    return tuple(
        group[0]._replace(
            table=f"{group[0].benchmark}: {len(group)} results",
            text=" ".join(dict.fromkeys(one.text for one in group if one.text)),
            now="; ".join(dict.fromkeys(one.now for one in group)),
        )
        if len(group) > 1
        else group[0]
        for group in groups.values()
    )


def news_table(news: Sequence[News]) -> DownloadTable:
    """Return one row for each event."""
    names = ("date", "event", "model", "table", "text", "now", "place", "page")
    rows = [tuple(getattr(one, name) or None for name in names) for one in news]
    return DownloadTable(Files("files/news"), dict.fromkeys(names, str), rows)


def feed(news: Sequence[News], address: str | None) -> str | None:
    """Return the newest events as an Atom feed; None if there is no event and thus no date.

    Args:
        news: Events, the newest first.
        address: Address of the site, which ends with a slash; None if it has none, so that links are relative.

    References:
        RFC 4287, The Atom Syndication Format.
    """
    if not news:
        return None
    root = address or ""
    # The register states days; a feed needs instants.
    midnight = "T00:00:00Z"
    ElementTree.register_namespace("", _ATOM)
    top = ElementTree.Element(f"{{{_ATOM}}}feed")
    _add(top, "title", "What is new on the board")
    _add(top, "id", _urn(root, "feed"))
    _add(top, "updated", f"{news[0].date}{midnight}")
    _add(_add(top, "author"), "name", "biasboard")
    _add(top, "link", rel="self", href=f"{root}feed.xml")
    _add(top, "link", rel="alternate", type="text/html", href=f"{root}news.html")
    for one in news[:_MOST_FED]:
        entry = _add(top, "entry")
        _add(entry, "title", printable(f"{one.event}: {one.model}" + (f" in {one.table}" if one.table else "")))
        _add(entry, "id", _urn(one.event, one.date, one.place))
        _add(entry, "updated", f"{one.date}{midnight}")
        _add(entry, "link", rel="alternate", type="text/html", href=f"{root}{one.page or 'news.html'}")
        _add(entry, "content", printable(f"{one.text} Now: {_sentence(one.now)}".strip(), most=2_000), type="text")
    ElementTree.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(top, encoding="unicode")}\n'


def _add(parent: ElementTree.Element, name: str, text: str | None = None, **attributes: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    element.text = text
    return element


def _urn(*parts: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, "biasboard:" + "|".join(parts)).urn
