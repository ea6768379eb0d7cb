"""Renders what the Hub shows of a dataset: README.md (its card), eval.yaml and croissant.json.

A card begins with metadata for the Hub; the rest is for human readers.

Renders the croissant.json of a dataset folder: its files, columns and limits in the Croissant vocabulary.

The format is Croissant 1.0 of MLCommons, with the responsible-AI (RAI) terms for annotation, bias and limits, which the
file that the Hub itself generates lacks. We write plain JSON, since the writer of mlcroissant would make every builder
depend on ten more packages; tests read the file with mlcroissant. There is no date of publication, so that two builds
give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.strict_json import JsonValue
from schemas.documents.dataset import Manifest, RuleCount, Source, SplitEntry, shape_of
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


CROISSANT_FILE = "croissant.json"
_CONFORMS_TO: list[JsonValue] = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet", "format"),
    *("includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex"),
    *("repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
)
_CONTEXT: dict[str, JsonValue] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS},
}
"""The JSON-LD context, which every file repeats in full because readers do not fetch it."""
_IMAGE = "sc:ImageObject"
_DATA_TYPES = {
    "string": "sc:Text",
    "int64": "sc:Integer",
    "double": "sc:Float",
    "bool": "sc:Boolean",
    "struct<bytes: binary, path: string>": _IMAGE,
}
"""Croissant's types by the Arrow types of columns; it has none for other structures, which are left out."""


def render_croissant(card: Card, manifest: Manifest, folder: Path) -> str:
    """Return the croissant.json of a dataset."""
    facts = _facts(manifest, folder)
    content: dict[str, JsonValue] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _CONFORMS_TO,
        "name": facts["name"],
        "alternateName": facts["alternateName"],
        "description": _plain(card.data_statement),
        "version": facts["version"],
        "license": facts["license"],
        "keywords": list(card.tags),
        "inLanguage": card.language,
        "citeAs": _plain(card.citation),
        "rai:dataCollection": _plain(card.how_built),
        "rai:dataAnnotationProtocol": _plain(card.annotation.protocol),
        "rai:annotatorDemographics": _plain(card.annotation.annotators),
        "rai:annotationsPerItem": _plain(card.annotation.per_item),
        "rai:dataBiases": _points(card.biases),
        "rai:dataLimitations": _points(card.known_limits),
        "rai:dataUseCases": _plain(card.intended_use),
        "rai:dataSocialImpact": _plain(card.out_of_scope_use),
        **facts,
        "recordSet": [_record_set(entry) for entry in manifest.splits],
    }
    return strict_json.dumps(content)


def croissant_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield a message for each fact in a folder's croissant.json that contradicts the folder."""
    path, remedy = folder / CROISSANT_FILE, "build the dataset again"
    try:
        content = strict_json.read(path, remedy=remedy)
    except DataError as error:
        yield str(error)
        return
    metadata = content if isinstance(content, dict) else {}
    # Where no model wrote the dataset, the file must name none.
    for name, fact in {"rai:machineAnnotationTools": None, **_facts(manifest, folder)}.items():
        if metadata.get(name) != fact:
            says = f"{metadata.get(name)!r} is not the {fact!r} of the manifest"
            if name == "distribution":
                says = "is not the parquet files of the folder with their sizes and sha256"
            yield f"{path}: {name} {says}; {remedy}"


def _facts(manifest: Manifest, folder: Path) -> dict[str, JsonValue]:
    """Return what follows from the manifest and its files alone."""
    facts: dict[str, JsonValue] = {
        "name": manifest.name,
        "alternateName": manifest.title,
        "version": manifest.version,
        "license": [f"https://spdx.org/licenses/{name}" for name in licences_of(manifest.licence)],
    }
    if manifest.generator_model is not None:
        facts["rai:machineAnnotationTools"] = manifest.generator_model
    facts["distribution"] = [
        {
            "@type": "cr:FileObject",
            "@id": entry.path,
            "name": entry.path,
            "contentUrl": entry.path,
            "contentSize": f"{(folder / entry.path).stat().st_size} B",
            "encodingFormat": "application/x-parquet",
            "sha256": sha256_file(folder / entry.path),
        }
        for entry in manifest.splits
    ]
    return facts


def _record_set(entry: SplitEntry) -> JsonValue:
    # Loading pyarrow takes as long as many a whole command.
    from schemas.files.arrow_files import arrow_schema

    name = f"{entry.config}/{entry.split}"
    fields: list[JsonValue] = []
    for column in arrow_schema(shape_of(entry.item_shape, where=entry.path).row_type):
        is_list = hasattr(column.type, "value_type")
        data_type = _DATA_TYPES.get(str(column.type.value_type if is_list else column.type))
        if data_type is None:
            continue
        source: dict[str, JsonValue] = {"fileObject": {"@id": entry.path}, "extract": {"column": column.name}}
        if data_type == _IMAGE:
            source["transform"] = {"jsonPath": "bytes"}
        field: dict[str, JsonValue] = {
            "@type": "cr:Field",
            "@id": f"{name}/{column.name}",
            "name": column.name,
            "dataType": data_type,
            "source": source,
        }
        fields.append(field | {"repeated": True} if is_list else field)
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"Config {entry.config}, split {entry.split}; {entry.n_items} items.",
        "field": fields,
    }


def _plain(text: str) -> str:
    """Join the wrapped lines of each paragraph; list items keep their own lines."""
    joined = ""
    for line in text.strip().splitlines():
        starts = not joined or not line or line.startswith(("* ", "- ")) or joined.endswith("\n")
        joined += f"{'' if not joined else chr(10) if starts else ' '}{line.strip()}"
    return joined


def _points(text: str) -> JsonValue:
    """Return the items of a Markdown list, without their bullets."""
    return [point.removeprefix("* ") for point in _plain(text).split("\n")]
