"""Renders what the Hugging Face Hub shows of a dataset: README.md, its card, and eval.yaml, which makes it a benchmark.

A card begins with metadata for the Hub; the rest is for human readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from schemas.documents.dataset import Manifest, RuleCount, Source
from schemas.folders.dataset_folder import CARD, MANIFEST

BENCHMARK_FILE = "eval.yaml"
_FRAMEWORK = "biasboard"
"""Name of this framework. The Hub accepts only names from its own list, to which it adds names on request."""
_SIZE_CATEGORIES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""The Hub's names for numbers of rows below a bound."""
_EVALUATED = "test"
"""Name of the evaluated split in configs with further splits that support the measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTable:
    """A Markdown table."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table as Markdown, with vertical bars in cells escaped."""
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """How the items got their labels: by what process, by whom, and by how many."""

    protocol: str
    annotators: str
    per_item: str


_UNSTATED = "The builder of this dataset does not say."


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The parts of a card that the builder of a dataset provides, as Markdown without headings."""

    data_statement: str
    how_built: str
    annotation: Annotation = Annotation(protocol=_UNSTATED, annotators=_UNSTATED, per_item=_UNSTATED)
    biases: str = _UNSTATED
    """Biases of the data itself, which users of its numbers must know."""
    licence_terms: str
    intended_use: str
    out_of_scope_use: str
    known_limits: str
    balance: CardTable | None = None
    citation: str
    task_categories: tuple[str, ...] = ("text-generation",)
    tags: tuple[str, ...] = ("bias",)
    language: str = "en"
    """Language of the items, as an ISO 639-1 code."""


class SourceTexts(NamedTuple):
    """The texts of a card that depend on the source, for builders with several sources."""

    title: str
    how_built: str
    licence_terms: str
    known_limits: str
    citation: str


def render_card(card: Card, manifest: Manifest) -> str:
    """Return the complete README.md of a dataset."""
    files = [(entry.config, entry.split, str(entry.n_items), f"`{entry.path}`") for entry in manifest.splits]
    further = [(f"`{entry.path}`", entry.description) for entry in manifest.files]
    tables = [
        CardTable(header=header, rows=tuple(rows)).markdown()
        for header, rows in ((("config", "split", "items", "file"), files), (("further file", "contents"), further))
        if rows
    ]
    flags = _rule_table(
        "Flags: items that are kept as the source has them.", manifest.flags, ("flag", "items", "meaning")
    )
    rejects = _rule_table(
        "Rejects: candidates that are not in the data (`rejects.parquet`).",
        manifest.rejects,
        ("rule", "candidates", "what it demands"),
    )
    annotation = (
        f"**Protocol.** {card.annotation.protocol}\n\n**Annotators.** {card.annotation.annotators}\n\n"
        f"**Annotations per item.** {card.annotation.per_item}"
    )
    sections = (
        ("Data statement", card.data_statement),
        ("Files", "\n\n".join(tables)),
        ("How to load", _how_to_load(manifest)),
        ("How it was built", f"{card.how_built}\n\n{_parameters(manifest)}"),
        ("Annotation", annotation),
        ("Licence and sources", f"{card.licence_terms}\n\n{_sources(manifest.sources)}"),
        ("Intended use", card.intended_use),
        ("Out-of-scope use", card.out_of_scope_use),
        ("Biases of the data", card.biases),
        ("Known limits", f"{card.known_limits}\n\n{flags}\n\n{rejects}"),
        ("Balance", _UNSTATED if card.balance is None else card.balance.markdown()),
        ("Citation", card.citation),
    )
    body = "\n\n".join(f"## {heading}\n\n{text.strip()}" for heading, text in sections)
    n_items = sum(entry.n_items for entry in manifest.splits)
    metadata = {
        "pretty_name": manifest.title,
        "language": [card.language],
        **_licence_of_front_matter(manifest),
        "task_categories": list(card.task_categories),
        "tags": list(card.tags),
        "size_categories": [next((name for bound, name in _SIZE_CATEGORIES if n_items < bound), "n>1M")],
        "configs": [
            {
                "config_name": config,
                "data_files": [
                    {"split": entry.split, "path": entry.path} for entry in manifest.splits if entry.config == config
                ],
            }
            for config in manifest.configs
        ],
    }
    return f"---\n{_yaml(metadata)}---\n\n# {manifest.title}\n\n{_lead(manifest)}\n\n{body}\n"


def card_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield a message if a folder's README.md or eval.yaml says other things of its dataset than the manifest.

    Any of them may have been edited after the build. What a reader of the card must be able to trust is compared: name,
    version, whether people validated it, whether it may be published, and its licence.
    """
    card = (folder / CARD).read_text(encoding="utf-8", errors="replace")
    for text in (_lead(manifest), _yaml(_licence_of_front_matter(manifest))):
        if text not in card:
            yield (
                f"{folder / CARD}: does not say {text.strip()!r}, as follows from {MANIFEST}; one of them was changed "
                "after the build: build the dataset again"
            )
    benchmark = folder / BENCHMARK_FILE
    if benchmark.is_file() and benchmark.read_bytes() != render_benchmark(manifest).encode():
        yield f"{benchmark}: is not what follows from {MANIFEST}; build the dataset again"


def _yaml(content: Mapping[str, object]) -> str:
    return str(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=1000))


def _licence_of_front_matter(manifest: Manifest) -> dict[str, object]:
    licences = [name.lower() for name in licences_of(manifest.licence)]
    # The Hub takes one identifier, or a list if the configs have different licences.
    return {"license": licences[0] if len(licences) == 1 else licences}


def licences_of(expression: str) -> list[str]:
    """Return the SPDX identifiers of a licence; there are several if the configs have different ones.

    >>> licences_of("MIT AND Apache-2.0")
    ['MIT', 'Apache-2.0']
    """
    return expression.split(" AND ")


def _lead(manifest: Manifest) -> str:
    validated = (
        "People wrote or checked the sentences"
        if manifest.human_validated
        else "**No human has validated the sentences**"
    )
    publishing = "may be republished" if manifest.redistributable else "**must not be republished**"
    return (
        f"Dataset `{manifest.name}`, version {manifest.version}, benchmark `{manifest.benchmark}`. "
        f"{validated}; this folder {publishing}. `dataset.json` says the same for programs."
        + "".join(
            f" The suite `{suite.name}` measures {len(suite.configs)} configs together: "
            f"`biasboard run --dataset out/datasets/{manifest.name} --config {suite.name}`."
            for suite in manifest.suites
        )
    )


def _how_to_load(manifest: Manifest) -> str:
    # The last split may hold inputs without content, which make a poor first example.
    evaluated = (entry for entry in reversed(manifest.splits) if entry.split == _EVALUATED)
    entry = next(evaluated, manifest.splits[-1])
    return (
        "```python\nfrom datasets import load_dataset\n\n"
        f'items = load_dataset("out/datasets/{manifest.name}", "{entry.config}", split="{entry.split}")\n```\n\n'
        "The path is the folder that holds this file."
    )


def _parameters(manifest: Manifest) -> str:
    seed = "no seed" if manifest.seed is None else f"seed {manifest.seed}"
    named = ", ".join(
        f"`{name}` = {'none' if value is None else value}" for name, value in sorted(manifest.parameters.items())
    )
    builder = f"`{manifest.builder}` {manifest.builder_version}"
    return f"Builder {builder}, {seed}; {named}. The same command gives the same bytes."


def _sources(sources: Sequence[Source]) -> str:
    rows = [
        (
            source.name,
            source.address,
            source.revision or "unknown",
            source.licence,
            f"`{source.sha256}`" if source.sha256 else "none",
        )
        for source in sources
    ]
    return CardTable(header=("source", "address", "revision", "licence", "sha256"), rows=tuple(rows)).markdown()


def _rule_table(caption: str, counts: Sequence[RuleCount], header: tuple[str, str, str]) -> str:
    if not counts:
        return f"{caption} There are none."
    rows = tuple((f"`{count.rule}`", str(count.n), count.description) for count in counts)
    return f"{caption}\n\n{CardTable(header=header, rows=rows).markdown()}"


def render_benchmark(manifest: Manifest) -> str:
    """Return the eval.yaml of a dataset: one task for each split of each config."""
    n_items = sum(entry.n_items for entry in manifest.splits)
    n_configs = len(manifest.configs)
    validated = "people wrote or checked the texts" if manifest.human_validated else "no human has validated the texts"
    n_splits = Counter(entry.config for entry in manifest.splits)
    return _yaml(
        {
            "name": manifest.title,
            "description": (
                f"Dataset {manifest.name}, version {manifest.version}, of the benchmark {manifest.benchmark}: "
                f"{n_items:,} items in {n_configs} config{'s' * (n_configs != 1)}; {validated}."
            ),
            "evaluation_framework": _FRAMEWORK,
            "tasks": [
                {
                    "id": entry.config if n_splits[entry.config] == 1 else f"{entry.config}-{entry.split}",
                    "config": entry.config,
                    "split": entry.split,
                }
                for entry in manifest.splits
            ],
        }
    )
