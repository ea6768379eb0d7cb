"""Renders the croissant.json of a dataset folder: its files, columns and limits in the Croissant vocabulary.

The format is Croissant 1.0 of MLCommons, with the responsible-AI (RAI) terms for annotation, bias and limits, which the
file that the Hub itself generates lacks. We write plain JSON, since the writer of mlcroissant would make every builder
depend on ten more packages; tests read the file with mlcroissant. There is no date of publication, so that two builds
give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.strict_json import JsonValue
from builders.dataset.card import Card, licences_of
from schemas.documents.dataset import Manifest, SplitEntry, shape_of

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
