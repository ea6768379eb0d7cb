from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from schemas import json_schemas
from schemas.documents.base import Document
from schemas.documents.dataset import Manifest
from schemas.documents.record import Record
from schemas.documents.result import Result
from schemas.files import contract, row_files
from tests.record_files import write_records
from tests.schemas import examples

Break = Callable[[Any], object]
"""Changes a JSON value for the worse."""


def put(value: object, *path: str | int) -> Break:
    """A function that puts ``value`` at a place of a document."""

    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


MANIFEST = examples.manifest(examples.items(), [examples.reject()])


@pytest.mark.parametrize(
    "document",
    [
        *(MANIFEST, examples.reject(), examples.item(), examples.result()),
        *(examples.record(), examples.failed_record()),
    ],
    ids=lambda document: type(document).__name__,
)
def test_every_document_survives_json(document: Document) -> None:
    value: Any = strict_json.loads(strict_json.dumps(contract.dump(document)), where="document")
    assert contract.load(value, type(document), where="document") == document
    if isinstance(document, Record) and document.reading is not None:
        assert value["exchanges"][0]["option_logprobs"] == [-0.25, "-inf"]
    # Fields that were added later are left out while they are empty, so that older files stay equal.
    assert not {"suites", "files", "coverage", "withheld"} & value.keys()


OF_SUM = r"reading.probabilities: sum to 0.9, not to 1; renormalise them"
UNKNOWN = r"speed' is not in schemas/documents/result.schema.json; remove it, have: schema"
NAN = r"holds NaN or an infinity; write null and a reason"
OF_VALUE = r"value: a metric has either a value or a reason"


@pytest.mark.parametrize(
    ("document", "change", "message"),
    [
        ("result", lambda d: d.pop("counts"), r"top level: field 'counts' is missing; add it"),
        ("result", put(1, "speed"), rf"top level: field '{UNKNOWN}"),
        ("result", put("2.0", "schema_version"), r"schema_version: '2.0' is not allowed; have: 1.0"),
        ("result", put("three", "counts", "items"), r"counts.items: 'three' is not of type integer; correct it"),
        ("result", put(-1, "counts", "failed"), r"counts.failed: -1 should be greater than or equal to 0; correct it"),
        ("result", put("0.5", "metrics", 0, "value"), r"metrics\[0\].value: '0.5' is not of type number; correct it"),
        ("result", put(None, "metrics", 0, "value"), rf"metrics: accuracy: {OF_VALUE}"),
        ("result", put(None, "metrics", 1, "reason"), rf"metrics: .*: {OF_VALUE}"),
        ("result", put("cloud", "model", "endpoint"), r"model.endpoint: 'cloud' is not allowed; have: local, api, ba"),
        ("result", put("beef", "records", "sha256"), r"records.sha256: 'beef' does not match '\^\[0-9a-f\]\{64\}\$'"),
        ("result", put({}, "metrics"), r"metrics: {} is not of type array"),
        ("result", put(float("nan"), "metrics", 0, "value"), NAN),
        ("result", put(float("inf"), "usage", "seconds"), NAN),
        ("result", put(3, "counts", "items"), r"counts: items 3 is not the sum of scored, refused, unparsed and fail"),
        ("result", put(3, "records", "n_rows"), r"counts.items 2, signature.n_items 2 and records.n_rows 3 differ"),
        (
            "result",
            lambda d: d["metrics"][1].update(interval=d["metrics"][0]["interval"], interval_reason=None),
            r"metrics: .*: interval: a metric without a value has none",
        ),
        ("result", put("f" * 64, "signature_sha256"), r"signature_sha256: is not the hash of the signature"),
        ("result", put(1.5, "metrics", 0, "value"), r"metrics: accuracy: value 1.5 lies outside \[0.0, 1.0\]"),
        ("result", put(0.9, "metrics", 0, "interval", "low"), r"metrics: accuracy: interval low 0.9 is above high 0.7"),
        ("result", lambda d: d["metrics"].append(d["metrics"][0]), r"metrics: \('accuracy',\) stands twice; keep one"),
        ("item", put(3, "pronoun_start"), r"pronoun_start: 3 is not where 'he' stands in the sentence"),
        ("item", put("feminine", "pronoun_gender"), r"pronoun_gender: 'feminine' does not fit 'he'; set masculine"),
        ("item", put(["mechanic", "wizard"], "occupations"), r"occupations: 'wizard' is not in the lexicon; have: CEO"),
        ("item", put("driver", "reference"), r"reference: 'driver' is not one of the item's occupations"),
        ("item", put(None, "referent"), r"stereotype: must be null exactly when referent is null"),
        ("item", put(["nurse", "nurse"], "occupations"), r"occupations: \['nurse', 'nurse'\] has non-unique elements"),
        (
            "item",
            lambda d: d.update(sentence=d["sentence"].replace(" he ", " xe "), pronoun="xe"),
            r"pronoun: 'xe' is not in the lexicon; have: he, him, his, himself, she, her, hers, herself$",
        ),
        ("failed_record", put("scored", "status"), r"status: 'scored' needs a reading and no reason; correct it"),
        (
            "failed_record",
            put([0.1], "exchanges", 0, "option_logprobs"),
            r"exchanges\[0\].option_logprobs\[0\]: 0.1 should be less than or equal to 0",
        ),
        (
            "failed_record",
            put("+inf", "exchanges", 0, "option_logprobs"),
            r"exchanges\[0\].option_logprobs: '\+inf' is not of type arr",
        ),
        ("failed_record", put([13], "exchanges", 0, "option_byte_counts"), r"exchanges\[0\]: lists differ in length"),
        ("failed_record", put([True], "exchanges", 0, "option_is_bound"), r"exchanges\[0\]: lists differ in length"),
        ("record", put([0.5, 0.4], "reading", "probabilities"), OF_SUM),
    ],
)
def test_a_broken_document_is_one_line_that_names_field_value_and_remedy(
    document: str, change: Break, message: str
) -> None:
    sound = getattr(examples, document)()
    value: Any = contract.dump(sound)
    change(value)
    with pytest.raises(DataError, match=rf"^a\.json: {message}") as caught:
        contract.load(value, type(sound), where="a.json")
    assert "\n" not in str(caught.value)


def test_data_of_a_closed_source_cannot_be_called_redistributable() -> None:
    value: Any = contract.dump(MANIFEST)
    value["sources"][0]["redistributable"] = False
    assert list(contract.converted(value, Manifest)[1]) == [
        "redistributable: true, but the licence of tests forbids it; set false and fill in publish_refusal"
    ]
    value["redistributable"] = False
    assert list(contract.converted(value, Manifest)[1]) == [
        "publish_refusal: a dataset has either the right to be published or a reason why not; correct one"
    ]
    value["publish_refusal"] = "the licence of tests forbids copies"
    assert contract.load(value, Manifest, where="dataset.json").redistributable is False


def test_all_problems_are_listed_each_once() -> None:
    value: Any = contract.dump(examples.result())
    del value["usage"], value["command"]
    value["model"]["endpoint"] = "cloud"
    value["metrics"][1]["n"] = -3
    assert list(contract.converted(value, Result)[1]) == [
        "top level: field 'command', 'usage' is missing; add it (schemas/documents/result.schema.json)",
        "model.endpoint: 'cloud' is not allowed; have: local, api, baseline, replay",
        "metrics[1].n: -3 should be greater than or equal to 0; correct it (schemas/documents/result.schema.json)",
    ]


def test_the_signature_is_one_line_whose_hash_follows_every_field() -> None:
    signature = examples.signature()
    hashes = {signature.sha256()}
    for field in dataclasses.fields(signature):
        other: Any = ("other",) if field.name == "splits" else "other"
        hashes.add(dataclasses.replace(signature, **{field.name: other}).sha256())
    assert len(hashes) == 1 + len(dataclasses.fields(signature))
    assert str(signature) == (
        "example@1.0.0|type2:test|items:2:01234567|task:coreference@1.0|prompt:intrinsic-v1:01234567"
        "|mode:option_logprob|norm:sum|k:2"
    )


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (put([], "parameters", "x"), "parameters.x: [] is not of type boolean, integer, number, string or null"),
        (put({}, "parameters", "a\n\x1b[31mb"), r"parameters.'a\n\x1b[31mb': {} is not of type boolean, integer"),
        (
            put(1, "a\nb"),
            r"top level: field 'a\nb' is not in schemas/documents/dataset.schema.json; remove it, have: s",
        ),
        (put(nested(500), "seed"), "nested too deeply; flatten it"),
        (put("\u0663.\u0664", "builder_version"), "builder_version: '\u0663.\u0664' does not match"),
        (put(2**63, "splits", 0, "n_items"), "splits[0].n_items: 9223372036854775808 should be less than"),
        (put([{}] * 300, "splits"), "splits[0]: field 'config', 'content_sha256', 'item_shape', 'n_items', 'path'"),
    ],
)
def test_a_hostile_document_is_refused_in_one_line_each(change: Break, line: str) -> None:
    value: Any = contract.dump(MANIFEST)
    change(value)
    lines = list(contract.converted(value, Manifest)[1])
    assert lines[0].startswith(line)
    assert len(lines) == (300 if line.startswith("splits[0]: field") else 1)
    assert all(one.isprintable() for one in lines)


def test_no_pattern_means_other_characters_elsewhere(repository: Path) -> None:
    """Engines disagree on which characters are digits, letters and spaces beyond ASCII."""
    texts = [(repository / path).read_text("utf-8") for path in json_schemas.schema_paths().values()]
    patterns = [pattern for text in texts for pattern in re.findall(r'"pattern": "(.*)"', text)]
    assert len(patterns) > 50
    assert [pattern for pattern in patterns if re.search(r"\\\\[dwDW]", pattern)] == []


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_writer_takes_what_is_no_log_probability(tmp_path: Path, value: float) -> None:
    exchange = dataclasses.replace(examples.exchange(), option_logprobs=(value, float("-inf")))
    record = dataclasses.replace(examples.record(), exchanges=(exchange,))
    for write in (
        lambda: contract.check(record, where="record"),
        lambda: write_records(tmp_path / "records.parquet", [record]),
        lambda: row_files.write_rows(tmp_path / "records.parquet", [record], Record),
    ):
        with pytest.raises(DataError, match=r"exchanges\[0\]\.option_logprobs\[0\]: "):
            write()
    assert list(tmp_path.iterdir()) == []
