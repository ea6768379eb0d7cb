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
from schemas.documents.dataset import Manifest, SplitEntry
from schemas.documents.item_shape import shape_of

CROISSANT_FILE = "croissant.json"
_REMEDY = "build the dataset again"
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
_DATA_TYPES = {"string": "sc:Text", "int64": "sc:Integer", "double": "sc:Float", "bool": "sc:Boolean"}
"""Croissant's types by the Arrow types of columns."""


def render_croissant(card: Card, manifest: Manifest, folder: Path) -> str:
    """Return the croissant.json of a dataset."""
    content: dict[str, JsonValue] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _CONFORMS_TO,
        "name": manifest.name,
        "alternateName": manifest.title,
        "description": _plain(card.data_statement),
        "version": manifest.version,
        "license": _licences(manifest),
        "keywords": list(card.tags),
        "inLanguage": card.language,
        "citeAs": _plain(card.citation),
        **_responsible_data(card, manifest),
        "distribution": [_file(entry, folder) for entry in manifest.splits],
        "recordSet": [_record_set(entry) for entry in manifest.splits],
    }
    return strict_json.dumps(content)


def _licences(manifest: Manifest) -> list[JsonValue]:
    return [f"https://spdx.org/licenses/{name}" for name in licences_of(manifest.licence)]


def _responsible_data(card: Card, manifest: Manifest) -> dict[str, JsonValue]:
    metadata: dict[str, JsonValue] = {
        "rai:dataCollection": _plain(card.how_built),
        "rai:dataAnnotationProtocol": _plain(card.annotation.protocol),
        "rai:annotatorDemographics": _plain(card.annotation.annotators),
        "rai:annotationsPerItem": _plain(card.annotation.per_item),
        "rai:dataBiases": _points(card.biases),
        "rai:dataLimitations": _points(card.known_limits),
        "rai:dataUseCases": _plain(card.intended_use),
        "rai:dataSocialImpact": _plain(card.out_of_scope_use),
    }
    if manifest.generator_model is not None:
        metadata["rai:machineAnnotationTools"] = manifest.generator_model
    return metadata


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


def _file(entry: SplitEntry, folder: Path) -> JsonValue:
    path = folder / entry.path
    return {
        "@type": "cr:FileObject",
        "@id": entry.path,
        "name": entry.path,
        "contentUrl": entry.path,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": sha256_file(path),
    }


def _record_set(entry: SplitEntry) -> JsonValue:
    name = f"{entry.config}/{entry.split}"
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"Config {entry.config}, split {entry.split}; {entry.n_items} items.",
        "field": list(_fields(entry, name)),
    }


def _fields(entry: SplitEntry, record_set: str) -> Iterator[JsonValue]:
    """Yield a field for each column of a split; nested columns have no type in Croissant and are left out."""
    # Loading pyarrow takes as long as many a whole command.
    from schemas.files.arrow_files import IMAGE, arrow_schema

    for column in arrow_schema(shape_of(entry.item_shape, where=entry.path).row_type):
        if column.type == IMAGE:
            yield _image_field(column.name, entry, record_set)
            continue
        is_list = hasattr(column.type, "value_type")
        data_type = _DATA_TYPES.get(str(column.type.value_type if is_list else column.type))
        if data_type is None:
            continue
        field: dict[str, JsonValue] = {
            "@type": "cr:Field",
            "@id": f"{record_set}/{column.name}",
            "name": column.name,
            "dataType": data_type,
            "source": {"fileObject": {"@id": entry.path}, "extract": {"column": column.name}},
        }
        yield field | {"repeated": True} if is_list else field


def _image_field(column: str, entry: SplitEntry, record_set: str) -> JsonValue:
    """Return the field of a column of images, whose bytes are in a subfield of the column."""
    return {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column}",
        "name": column,
        "dataType": "sc:ImageObject",
        "source": {
            "fileObject": {"@id": entry.path},
            "extract": {"column": column},
            "transform": {"jsonPath": "bytes"},
        },
    }


def croissant_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield a message for each fact in a folder's croissant.json that contradicts the folder."""
    path = folder / CROISSANT_FILE
    try:
        content = strict_json.read(path, remedy=_REMEDY)
    except DataError as error:
        yield str(error)
        return
    metadata = content if isinstance(content, dict) else {}
    facts: dict[str, JsonValue] = {
        "name": manifest.name,
        "version": manifest.version,
        "alternateName": manifest.title,
        "license": _licences(manifest),
        "rai:machineAnnotationTools": manifest.generator_model,
    }
    for key, wanted in facts.items():
        if metadata.get(key) != wanted:
            yield f"{path}: {key} {metadata.get(key)!r} is not the {wanted!r} of the manifest; {_REMEDY}"
    if metadata.get("distribution") != [_file(entry, folder) for entry in manifest.splits]:
        yield f"{path}: distribution: is not the parquet files of the folder with their sizes and sha256; {_REMEDY}"
