"""Renders the README.md of a dataset folder: metadata for the Hugging Face Hub, then the card for human readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from builders.dataset.licence_files import licences_of
from schemas.documents.dataset import Manifest, RuleCount, Source

SIZE_CATEGORIES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_EVALUATED = "test"
"""Name of the split that is evaluated, where a config has others beside it that support the measurement."""


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
    """The origin of the labels of the items: how they were given, by whom, and how often."""

    protocol: str
    annotators: str
    per_item: str


_NOT_TOLD = "The builder of this dataset does not say."
UNTOLD = Annotation(protocol=_NOT_TOLD, annotators=_NOT_TOLD, per_item=_NOT_TOLD)
"""The origin of labels of which a builder says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The parts of a card that the builder of a dataset provides, as Markdown without headings."""

    data_statement: str
    how_built: str
    annotation: Annotation = UNTOLD
    biases: str = _NOT_TOLD
    """Biases that the data itself has, which a user of its numbers has to know."""
    licence_terms: str
    intended_use: str
    out_of_scope_use: str
    known_limits: str
    balance: CardTable
    citation: str
    task_categories: tuple[str, ...]
    tags: tuple[str, ...]


def render_card(card: Card, manifest: Manifest) -> str:
    """Return the complete README.md of a dataset."""
    sections = (
        ("Data statement", card.data_statement),
        ("Files", _files(manifest).markdown() + _further_files(manifest)),
        ("How to load", _how_to_load(manifest)),
        ("How it was built", f"{card.how_built}\n\n{_parameters(manifest)}"),
        ("Annotation", _annotation(card.annotation)),
        ("Licence and sources", f"{card.licence_terms}\n\n{_sources(manifest.sources).markdown()}"),
        ("Intended use", card.intended_use),
        ("Out-of-scope use", card.out_of_scope_use),
        ("Biases of the data", card.biases),
        ("Known limits", f"{card.known_limits}\n\n{_limits(manifest)}"),
        ("Balance", card.balance.markdown()),
        ("Citation", card.citation),
    )
    body = "\n\n".join(f"## {heading}\n\n{text.strip()}" for heading, text in sections)
    return f"---\n{_front_matter(card, manifest)}---\n\n# {manifest.title}\n\n{_lead(manifest)}\n\n{body}\n"


def _annotation(annotation: Annotation) -> str:
    parts = (
        ("Protocol", annotation.protocol),
        ("Annotators", annotation.annotators),
        ("Annotations per item", annotation.per_item),
    )
    return "\n\n".join(f"**{name}.** {text}" for name, text in parts)


def stated_parts(manifest: Manifest) -> dict[str, str]:
    """Return the texts of a card that follow from the manifest alone, by what they are about."""
    return {
        "the name, the version, the validation and the publishing": _lead(manifest),
        "the files": _files(manifest).markdown() + _further_files(manifest),
        "the builder and its parameters": _parameters(manifest),
        "the sources": _sources(manifest.sources).markdown(),
        "the rejects and flags": _limits(manifest).strip(),
    }


def front_matter_facts(manifest: Manifest) -> dict[str, object]:
    """Return the metadata of a card that follow from the manifest alone."""
    configs = [
        {
            "config_name": config,
            "data_files": [
                {"split": entry.split, "path": entry.path} for entry in manifest.splits if entry.config == config
            ],
        }
        for config in dict.fromkeys(entry.config for entry in manifest.splits)
    ]
    return {
        "pretty_name": manifest.title,
        "license": _licences(manifest.licence),
        "size_categories": [_size_category(sum(entry.n_items for entry in manifest.splits))],
        "configs": configs,
    }


def _front_matter(card: Card, manifest: Manifest) -> str:
    facts = front_matter_facts(manifest)
    metadata = {
        "pretty_name": facts["pretty_name"],
        "language": ["en"],
        "license": facts["license"],
        "task_categories": list(card.task_categories),
        "tags": list(card.tags),
        "size_categories": facts["size_categories"],
        "configs": facts["configs"],
    }
    return yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True, width=1000)


def _licences(expression: str) -> str | list[str]:
    """Return the licence as the Hub reads it: one identifier, or a list if the configs have different licences."""
    names = [name.lower() for name in licences_of(expression)]
    return names[0] if len(names) == 1 else names


def _size_category(n_items: int) -> str:
    return next((name for bound, name in SIZE_CATEGORIES if n_items < bound), "n>1M")


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


def _files(manifest: Manifest) -> CardTable:
    rows = [(entry.config, entry.split, str(entry.n_items), f"`{entry.path}`") for entry in manifest.splits]
    return CardTable(header=("config", "split", "items", "file"), rows=tuple(rows))


def _further_files(manifest: Manifest) -> str:
    if not manifest.files:
        return ""
    rows = tuple((f"`{entry.path}`", entry.description) for entry in manifest.files)
    return f"\n\n{CardTable(header=('further file', 'contents'), rows=rows).markdown()}"


def _how_to_load(manifest: Manifest) -> str:
    entry = next((one for one in reversed(manifest.splits) if one.split == _EVALUATED), manifest.splits[-1])
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


def _sources(sources: Sequence[Source]) -> CardTable:
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
    return CardTable(header=("source", "address", "revision", "licence", "sha256"), rows=tuple(rows))


def _limits(manifest: Manifest) -> str:
    flags = _rule_table(
        "Flags: items that are kept as the source has them.", manifest.flags, ("flag", "items", "meaning")
    )
    rejects = _rule_table(
        "Rejects: candidates that are not in the data (`rejects.parquet`).",
        manifest.rejects,
        ("rule", "candidates", "what it demands"),
    )
    return f"{flags}\n\n{rejects}"


def _rule_table(caption: str, counts: Sequence[RuleCount], header: tuple[str, str, str]) -> str:
    if not counts:
        return f"{caption} There are none."
    rows = tuple((f"`{count.rule}`", str(count.n), count.description) for count in counts)
    return f"{caption}\n\n{CardTable(header=header, rows=rows).markdown()}"
