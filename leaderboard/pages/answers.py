"""Prepares examples of a result's answers for its page, and the files with all of them for download."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluators.benchmark import PublishedPart, load_benchmark
from evaluators.task import Mark, Task, load_task
from leaderboard.pages.markup import number
from leaderboard.verify.entries import PER_KIND, Entry, Kind, why_withheld
from schemas.documents.dataset import Manifest
from schemas.documents.record import Exchange, Record

_KINDS: dict[Kind, str] = {
    "right": "Right",
    "wrong": "Wrong",
    "answered": "Answered, neither right nor wrong",
    "refused": "Refused",
    "unparsed": "Unread: no answer could be found in the text",
    "failed": "Failed: the model gave no usable answer",
}
LONG = 240


class Download(NamedTuple):
    """A file of a run that the site offers."""

    label: str
    path: str
    """Path relative to the root of the site."""
    source: Path


class ExampleView(NamedTuple):
    """One record, in words."""

    record: Record
    asked: tuple[str, ...]
    """Distinct prompts."""
    is_long: bool
    """True if the prompts should be folded."""
    options: tuple[str, ...]
    """Log-probabilities of the options, one text for each request that scores them."""
    texts: tuple[tuple[tuple[str, bool], ...], ...]
    """Generated texts, each in pieces, with True for a piece that the reading of the text rests on."""
    reading: str
    doubt: str | None
    """Words that say what else the model may have meant than was read; None if the reading is certain."""

    @property
    def n_characters(self) -> int:
        """The number of characters of the generated texts."""
        return sum(len(piece) for text in self.texts for piece, _ in text)


class ExampleGroup(NamedTuple):
    """The examples of one kind."""

    kind: Kind
    heading: str
    n: int
    """Number of records of this kind in the whole result."""
    items: tuple[str, ...]
    """Ids of the examples."""
    examples: tuple[ExampleView, ...]
    """The examples; empty if their texts must not be shown."""


class ResultExamples(NamedTuple):
    """The examples and downloads of a result; a baseline has none."""

    groups: tuple[ExampleGroup, ...]
    downloads: tuple[Download, ...]
    withheld: str | None
    """Reason why texts are not offered, nor shown but for examples of a published part; None if they are."""
    warning: str | None
    """Warning that texts may offend; None if there is none."""
    published: PublishedPart | None
    """Where somebody else published the answers; None if nobody did."""

    @property
    def shows_texts(self) -> bool:
        """True if there are examples with their texts."""
        return any(group.examples for group in self.groups)


def make_answers(entry: Entry, stem: str, manifest: Manifest | None, warning: str | None) -> ResultExamples:
    """Prepare the examples and downloads of a result.

    Args:
        entry: Result to show.
        stem: Path of its files on the site, without the ending.
        manifest: Manifest of its dataset; None if the dataset was not built here.
        warning: Words that warn of texts that may offend; their prompts are folded. None for no warning.
    """
    withheld = why_withheld(entry, manifest)
    # One command makes a baseline's answers again, and on a fresh clone they would be most of the site.
    if entry.is_baseline:
        return ResultExamples((), (), withheld, None, None)
    # Who withheld the texts may want them nowhere, unless it was for others who published them under a free licence.
    published, task = published_part(entry), load_task(entry.result.signature.task)
    is_free = published is not None and (manifest is None or manifest.redistributable)
    is_shown = withheld is None or (is_free and entry.complete is not None)
    groups = []
    for kind, n, records in entry.examples.of_kinds:
        views = tuple(_view(record, task, fold=warning is not None) for record in records) if is_shown else ()
        groups.append(ExampleGroup(kind, _KINDS[kind], n, tuple(record.item_id for record in records), views))
    downloads = () if withheld else tuple(_downloads(entry, stem))
    return ResultExamples(tuple(groups), downloads, withheld, warning, published)


def rule() -> str:
    """Return the sentence that says how examples are chosen."""
    return (
        f"Up to {PER_KIND} of each kind, those whose item ids have the smallest SHA-256: nobody chose them, and other "
        "models are shown on mostly the same items."
    )


def computed_from(entries: Iterable[Entry]) -> str:
    """Return the sentence for the foot of a page that says from what its ranked numbers were computed again.

    Args:
        entries: The results behind the page.
    """
    withheld = [entry.result.withheld is not None for entry in entries if not entry.is_baseline]
    n_sums, n_results = sum(withheld), len(withheld)
    if not n_sums:
        return "Every ranked number was computed again from stored answers."
    sums = "from stored sums over clusters of items, since texts of the answers are kept elsewhere"
    if n_sums == n_results:
        return f"Every ranked number was computed again {sums}."
    return (
        f"Every ranked number was computed again: those of {n_sums} of {n_results} results {sums}, the others from "
        "stored answers."
    )


def _downloads(entry: Entry, stem: str) -> Iterator[Download]:
    files = (("All records", "records", entry.result.records), ("Scores of the texts", "scores", entry.result.scores))
    for label, name, file in files:
        if entry.folder is not None and file is not None and (source := entry.folder / file.path).is_file():
            yield Download(label, f"{stem}-{name}.parquet", source)


def _view(record: Record, task: Task, *, fold: bool) -> ExampleView:
    written = [exchange for exchange in record.exchanges if exchange.kind == "generate"]
    scored = [exchange for exchange in record.exchanges if exchange.kind == "choice"]
    # The prompt of what is scored after a text only repeats question and text.
    asked = tuple(dict.fromkeys(exchange.prompt or "" for exchange in written or scored))
    marks = [() if record.reading is None else task.marks(exchange) for exchange in written]
    return ExampleView(
        record=record,
        asked=asked,
        is_long=fold or sum(map(len, asked)) > LONG,
        options=tuple(map(_options, scored)),
        texts=tuple(_pieces(exchange.text or "", own) for exchange, own in zip(written, marks, strict=True)),
        reading=_reading(record),
        doubt=next((mark.doubt for own in marks for mark in own if mark.doubt is not None), None),
    )


def _pieces(text: str, marks: Sequence[Mark]) -> tuple[tuple[str, bool], ...]:
    pieces, done = [], 0
    for mark in marks:
        pieces += [(text[done : mark.start], False), (text[mark.start : mark.end], True)]
        done = mark.end
    return tuple(piece for piece in (*pieces, (text[done:], False)) if piece[0])


def _options(exchange: Exchange) -> str:
    if not exchange.option_logprobs:
        return exchange.error or "no log-probabilities"
    return "\n".join(
        f"{option.strip()}: {'no value' if value is None else number(value)}"
        for option, value in zip(exchange.options, exchange.option_logprobs, strict=False)
    )


def _reading(record: Record) -> str:
    reading = record.reading
    if reading is None:
        return "nothing"
    if reading.outcomes:
        return ", ".join(f"{name} {number(p)}" for name, p in zip(reading.outcomes, reading.probabilities, strict=True))
    if len(reading.answers) == 1:
        return reading.answers[0]
    counted = Counter(reading.answers).most_common()
    return ", ".join(f"{answer} ({n} of {len(reading.answers)})" for answer, n in counted)


def published_part(entry: Entry) -> PublishedPart | None:
    """Return where somebody published the answers of an imported result; None if they are not imported or unknown."""
    signature = entry.result.signature
    importer = load_benchmark(signature.benchmark).importer if entry.is_imported else None
    return None if importer is None else importer.published(signature.config, entry.result.environment.settings)
