"""Prepares a dataset for its page, and examples of the answers to its items.

A card may come from anybody, so that its sections are rendered as HTML that cannot act.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from markdown_it import MarkdownIt
from markupsafe import Markup

from biasboard.ground import strict_json
from biasboard.ground.files import check_readable
from biasboard.ground.plain_text import visible
from evaluators.benchmark import PublishedPart, load_benchmark
from evaluators.task import Mark, Task, load_task
from leaderboard.benchmark_pages import CountTable, load_pages
from leaderboard.pages.markup import dataset_page, number
from leaderboard.pages.tables import TableView
from leaderboard.ranking.frames import Columns, DownloadTable, Fields, Files, T, attributes
from leaderboard.verify.entries import PER_KIND, Entry, Kind, why_withheld
from schemas.documents.board import AnswerKey
from schemas.documents.dataset import Manifest, RuleCount, Source, SplitEntry
from schemas.documents.record import Exchange, Record
from schemas.files import contract
from schemas.folders.dataset_folder import MANIFEST, read_manifest

_SPLITS: Fields[SplitEntry] = attributes(
    config=str, split=str, item_shape=str, n_items=int, content_sha256=str, path=str
)
_SOURCES: Fields[Source] = attributes(
    name=str, address=str, revision=str, sha256=str, licence=str, redistributable=bool
)
_RULES: Fields[tuple[str, RuleCount]] = {
    "kind": (str, lambda rule: rule[0]),
    "rule": (str, lambda rule: rule[1].rule),
    "n": (int, lambda rule: rule[1].n),
    "description": (str, lambda rule: rule[1].description),
}
_KEYS: Fields[AnswerKey] = {
    **attributes("signature.", config=str, task=str, prompt=str, n_items=int),
    "n_parts": (int, lambda key: len(key.parts)),
    **attributes("signature.", items_sha256=str),
    "key_sha256": (str, lambda key: strict_json.sha256(contract.dump(key))),
}
_MOST_CARD_CHARACTERS = 1_000_000
_HEADING = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_MOST_RENDERED = 20_000
_TABLE_OF_CARD = re.compile(r"(?:^[^\n|]+\n+)?(?:^\|.*\n)+", re.MULTILINE)
"""A table and the line above it that introduces it."""
_MARKS = ["paragraph", "list", "newline", "escape", "backticks", "emphasis"]
"""Marks that are rendered; addresses and pictures would lead or fetch elsewhere."""


class BuiltDataset(NamedTuple):
    """A dataset on this machine."""

    manifest: Manifest
    card: str | None = None
    """Text of its card; None if the folder has none."""
    folder: Path | None = None
    """Folder of the dataset; None if unknown."""

    @property
    def name(self) -> tuple[str, str]:
        """The name and the version of the dataset."""
        return self.manifest.name, self.manifest.version


@dataclass(frozen=True, kw_only=True)
class DatasetView:
    """A dataset that is built here or has results on the board."""

    name: str
    version: str
    local: BuiltDataset | None
    """The dataset; None if it is not on this machine."""
    keys: tuple[AnswerKey, ...]
    """Answer keys that the board keeps of it."""
    sections: tuple[TableView, ...]
    """Tables with results on it."""

    @property
    def manifest(self) -> Manifest | None:
        """The manifest of the dataset; None if it is not on this machine."""
        return None if self.local is None else self.local.manifest

    @cached_property
    def count_tables(self) -> tuple[CountTable, ...]:
        """What its benchmark counts in it; empty if it is not on this machine."""
        local = self.local
        count = None if local is None else load_pages(local.manifest.benchmark).count_tables
        return count(local.folder, local.manifest) if local and local.folder and count else ()

    def section_of_card(self, heading: str) -> Markup | None:
        """Return what a section of its card says, as HTML that cannot act; None if there is none."""
        _, *parts = _HEADING.split("" if self.local is None else self.local.card or "")
        sections = dict(zip(parts[::2], parts[1::2], strict=True))
        return safe_html(sections[heading].strip()) if heading in sections else None

    @property
    def page(self) -> str:
        """The path of the page, relative to the root of the site."""
        return dataset_page(self.name, self.version)

    @property
    def n_results(self) -> int:
        """The number of results in tables."""
        return sum(len(section.table.rows) for section in self.sections)

    @property
    def n_items(self) -> int | None:
        """The number of items of the whole dataset; None if it is not on this machine."""
        return None if self.manifest is None else sum(split.n_items for split in self.manifest.splits)

    @property
    def licence(self) -> str | None:
        """The licence of the dataset, by its manifest or else by an answer key; None if neither says it."""
        if self.manifest is not None:
            return self.manifest.licence
        return next((key.licence for key in self.keys if key.licence), None)

    @property
    def published(self) -> dict[str, PublishedPart]:
        """On what terms others published the answers to each config, whose file is that of the first model."""
        entries = {one.table.signature.config: one.table.rows[0].entry for one in self.sections}
        return {config: part for config, entry in entries.items() if (part := published_part(entry)) is not None}

    @property
    def is_other(self) -> bool:
        """True if an answer key was made from other contents than those on this machine."""
        manifest = self.manifest
        return manifest is not None and any(key.dataset_sha256 != manifest.content_sha256 for key in self.keys)

    @cached_property
    def tables(self) -> dict[str, DownloadTable]:
        """The tables that the page offers for download, by name, of which some may be empty."""
        manifest = self.manifest
        kinds = () if manifest is None else (("reject", manifest.rejects), ("flag", manifest.flags))
        stem = f"files/dataset-{PurePosixPath(self.page).stem}"

        def table(name: str, fields: Fields[T], rows: Iterable[T]) -> DownloadTable:
            return DownloadTable.of(Files(f"{stem}-{name}"), fields, rows)

        found = {
            "splits": table("splits", _SPLITS, () if manifest is None else manifest.splits),
            "sources": table("sources", _SOURCES, () if manifest is None else manifest.sources),
            "rules": table("rules", _RULES, [(kind, rule) for kind, rules in kinds for rule in rules]),
            "keys": table("keys", _KEYS, self.keys),
        }
        for one in self.count_tables:
            columns: Columns = {heading.lower(): int if number else str for number, heading in enumerate(one.columns)}
            found[one.name] = DownloadTable(Files(f"{stem}-{one.name}"), columns, one.rows)
        return found

    @property
    def title(self) -> str:
        """The name and the version."""
        return f"{self.name} {self.version}"


def built_datasets(folder: Path) -> tuple[BuiltDataset, ...]:
    """Return the datasets on this machine, sorted by name and version.

    Args:
        folder: Folder of built datasets, one folder each; one that does not exist is treated as empty.

    Raises:
        DataError: a manifest is damaged.
    """
    found: dict[tuple[str, str], BuiltDataset] = {}
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        text: str | None = None
        if (card := path.with_name("README.md")).is_file():
            check_readable(card)
            with card.open(encoding="utf-8", errors="replace") as file:
                text = file.read(_MOST_CARD_CHARACTERS)
        dataset = BuiltDataset(read_manifest(path.parent), text, path.parent)
        # Answer keys are made of the first one too.
        found.setdefault(dataset.name, dataset)
    return tuple(found[name] for name in sorted(found))


def safe_html(markdown: str) -> Markup:
    """Return paragraphs, lists, emphasis and code of a Markdown text as one unbroken block of HTML.

    Everything else, such as HTML, links, pictures and tables, becomes the text that it is written as; tables of cards
    are left out, since pages show the same numbers from the manifest.

    Args:
        markdown: Text from outside.
    """
    text = _TABLE_OF_CARD.sub("\n", f"{visible(markdown[:_MOST_RENDERED])}\n")
    html = MarkdownIt("zero").enable(_MARKS).render(text)
    # A site generator reads the result as Markdown again: it must see one block and no marks of its own.
    return Markup(re.sub(r"\n\s*", " ", html).strip())


def kept_keys(folder: Path) -> tuple[AnswerKey, ...]:
    """Return the answer keys in a folder, sorted by dataset, config, task and prompt.

    Raises:
        DataError: a key is damaged.
    """
    keys = [contract.read(path, AnswerKey) for path in sorted(folder.glob("*/*.json"))]
    return tuple(sorted(keys, key=lambda key: (key.signature.dataset, key.signature.config, key.signature.prompt)))


def make_datasets(
    sections: Sequence[TableView], built: Sequence[BuiltDataset], keys: Sequence[AnswerKey]
) -> tuple[DatasetView, ...]:
    """Return a view of each dataset that is built here or has results, sorted by name and version.

    Args:
        sections: All tables.
        built: The datasets on this machine.
        keys: The answer keys that the board keeps.
    """
    local_builds = {dataset.name: dataset for dataset in built}
    names = {*local_builds, *(name for section in sections for name in section.datasets)}
    return tuple(
        DatasetView(
            name=name[0],
            version=name[1],
            local=local_builds.get(name),
            keys=tuple(key for key in keys if (key.signature.dataset, key.signature.dataset_version) == name),
            sections=tuple(section for section in sections if name in section.datasets),
        )
        for name in sorted(names)
    )


_DATASETS: Fields[DatasetView] = {
    "dataset": (str, lambda view: view.name),
    "version": (str, lambda view: view.version),
    "title": (str, lambda view: view.manifest.title if view.manifest else None),
    "licence": (str, lambda view: view.licence),
    "redistributable": (bool, lambda view: view.manifest.redistributable if view.manifest else None),
    "human_validated": (bool, lambda view: view.manifest.human_validated if view.manifest else None),
    "n_items": (int, lambda view: view.n_items),
    "content_sha256": (str, lambda view: view.manifest.content_sha256 if view.manifest else None),
    "n_results": (int, lambda view: view.n_results),
    "n_answer_keys": (int, lambda view: len(view.keys)),
    "page": (str, lambda view: view.page),
}


def datasets_table(views: Sequence[DatasetView]) -> DownloadTable:
    """Return one row for each dataset."""
    return DownloadTable.of(Files("files/datasets"), _DATASETS, views)


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
    importers = load_benchmark(signature.benchmark).importers if entry.is_imported else ()
    found = (one.published(signature.config, entry.result.environment.settings) for one in importers)
    return next((part for part in found if part is not None), None)
