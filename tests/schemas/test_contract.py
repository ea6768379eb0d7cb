from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from schemas.documents.dataset import Manifest, Reject
from schemas.documents.record import Record
from schemas.documents.result import Result
from schemas.files import contract, row_files
from schemas.files.contract import D
from schemas.files.record_files import write_records
from schemas.items.coreference import CoreferenceItem
from tests.schemas import examples

REPOSITORY = Path(__file__).parents[2]
Break = Callable[[Any], object]
"""Changes a JSON value for the worse."""


def changed(value: object, *path: str | int) -> Break:
    """A function that puts ``value`` at a place of a document."""

    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


def survives_json(document: D, document_type: type[D]) -> bool:
    value = strict_json.loads(strict_json.dumps(contract.dump(document)), where="document")
    return contract.load(value, document_type, where="document") == document


def test_every_document_survives_json() -> None:
    assert survives_json(examples.manifest(examples.items(), [examples.reject()]), Manifest)
    assert survives_json(examples.reject(), Reject)
    assert survives_json(examples.item(), CoreferenceItem)
    assert survives_json(examples.record(), Record)
    assert survives_json(examples.failed_record(), Record)
    assert survives_json(examples.result(), Result)


def test_minus_infinity_is_spelled_as_text() -> None:
    value: Any = contract.dump(examples.record())
    assert value["exchanges"][0]["option_logprobs"] == [-0.25, "-inf"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("counts"), r"top level: field 'counts' is missing; add it"),
        (
            changed(1, "speed"),
            r"top level: field 'speed' is not in schemas/documents/result.schema.json; remove it, have: schema",
        ),
        (changed("2.0", "schema_version"), r"schema_version: '2.0' is not allowed; have: 1.0"),
        (changed("three", "counts", "items"), r"counts.items: 'three' is not of type integer; correct it"),
        (changed(-1, "counts", "failed"), r"counts.failed: -1 should be greater than or equal to 0; correct it"),
        (changed("0.5", "metrics", 0, "value"), r"metrics\[0\].value: '0.5' is not of type number; correct it"),
        (changed(None, "metrics", 0, "value"), r"metrics: accuracy: value: a metric has either a value or a reason"),
        (changed(None, "metrics", 1, "reason"), r"metrics: .*: value: a metric has either a value or a reason"),
        (changed("cloud", "model", "endpoint"), r"model.endpoint: 'cloud' is not allowed; have: local, api, base"),
        (changed("beef", "records", "sha256"), r"records.sha256: 'beef' does not match '\^\[0-9a-f\]\{64\}\$'"),
        (changed({}, "metrics"), r"metrics: {} is not of type array"),
        (changed(float("nan"), "metrics", 0, "value"), r"holds NaN or an infinity; write null and a reason"),
        (changed(float("inf"), "usage", "seconds"), r"holds NaN or an infinity; write null and a reason"),
        (changed(3, "counts", "items"), r"counts: items 3 is not the sum of scored, refused, unparsed and failed"),
        (changed(3, "records", "n_rows"), r"counts.items 2, signature.n_items 2 and records.n_rows 3 differ"),
        (
            lambda d: d["metrics"][1].update(interval=d["metrics"][0]["interval"], interval_reason=None),
            r"metrics: .*: interval: a metric without a value has none",
        ),
        (changed("f" * 64, "signature_sha256"), r"signature_sha256: is not the hash of the signature"),
        (changed(1.5, "metrics", 0, "value"), r"metrics: accuracy: value 1.5 lies outside \[0.0, 1.0\]"),
        (changed(0.9, "metrics", 0, "interval", "low"), r"metrics: accuracy: interval low 0.9 is above high 0.75"),
        (lambda d: d["metrics"].append(d["metrics"][0]), r"metrics: \('accuracy',\) stands twice; keep one"),
    ],
)
def test_a_broken_result_is_one_line_that_names_field_value_and_remedy(change: Break, message: str) -> None:
    value: Any = contract.dump(examples.result())
    change(value)
    with pytest.raises(DataError, match=rf"^result\.json: {message}") as caught:
        contract.load(value, Result, where="result.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(3, "pronoun_start"), r"pronoun_start: 3 is not where 'he' stands in the sentence"),
        (changed("feminine", "pronoun_gender"), r"pronoun_gender: 'feminine' does not fit 'he'; set masculine"),
        (
            changed(["mechanic", "wizard"], "occupations"),
            r"occupations: 'wizard' is not in the lexicon; have: CEO, accountant",
        ),
        (changed("driver", "reference"), r"reference: 'driver' is not one of the item's occupations"),
        (changed(None, "referent"), r"stereotype: must be null exactly when referent is null"),
        (changed(["nurse", "nurse"], "occupations"), r"occupations: \['nurse', 'nurse'\] has non-unique elements"),
    ],
)
def test_a_broken_item_is_refused(change: Break, message: str) -> None:
    value: Any = contract.dump(examples.item())
    change(value)
    with pytest.raises(DataError, match=f"^item: {message}"):
        contract.load(value, CoreferenceItem, where="item")


def test_an_unknown_pronoun_is_refused_with_those_that_are_known() -> None:
    sentence = "The mechanic thanked the nurse because xe was patient."
    item = dataclasses.replace(examples.item(), sentence=sentence, pronoun="xe", pronoun_start=sentence.index("xe"))
    assert list(contract.errors(contract.dump(item), CoreferenceItem)) == [
        "pronoun: 'xe' is not in the lexicon; have: he, him, his, himself, she, her, hers, herself"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed("scored", "status"), r"status: 'scored' needs a reading and no reason; correct it"),
        (
            changed([0.1], "exchanges", 0, "option_logprobs"),
            r"exchanges\[0\].option_logprobs\[0\]: 0.1 should be less than or equal to 0",
        ),
        (
            changed("+inf", "exchanges", 0, "option_logprobs"),
            r"exchanges\[0\].option_logprobs: '\+inf' is not of type arr",
        ),
        (changed([13], "exchanges", 0, "option_byte_counts"), r"exchanges\[0\]: lists differ in length"),
        (changed([True], "exchanges", 0, "option_is_bound"), r"exchanges\[0\]: lists differ in length"),
    ],
)
def test_a_broken_record_is_refused(change: Break, message: str) -> None:
    value: Any = contract.dump(examples.failed_record())
    change(value)
    with pytest.raises(DataError, match=f"^record: {message}"):
        contract.load(value, Record, where="record")


def test_probabilities_that_do_not_sum_to_one_are_refused() -> None:
    value: Any = contract.dump(examples.record())
    value["reading"]["probabilities"] = [0.5, 0.4]
    with pytest.raises(DataError, match=r"reading.probabilities: sum to 0.9, not to 1; renormalise them"):
        contract.load(value, Record, where="record")


def test_data_of_a_closed_source_cannot_be_called_redistributable() -> None:
    value: Any = contract.dump(examples.manifest(examples.items()))
    value["sources"][0]["redistributable"] = False
    with pytest.raises(DataError, match=r"redistributable: true, but the licence of tests forbids it"):
        contract.load(value, Manifest, where="dataset.json")
    value["redistributable"] = False
    with pytest.raises(
        DataError, match=r"publish_refusal: a dataset has either the right to be published or a reason why not"
    ):
        contract.load(value, Manifest, where="dataset.json")
    value["publish_refusal"] = "the licence of tests forbids copies"
    assert contract.load(value, Manifest, where="dataset.json").redistributable is False


def test_all_problems_are_listed_each_once() -> None:
    value: Any = contract.dump(examples.result())
    del value["usage"], value["command"]
    value["model"]["endpoint"] = "cloud"
    value["metrics"][1]["n"] = -3
    assert list(contract.errors(value, Result)) == [
        "top level: field 'command', 'usage' is missing; add it (schemas/documents/result.schema.json)",
        "model.endpoint: 'cloud' is not allowed; have: local, api, baseline, replay",
        "metrics[1].n: -3 should be greater than or equal to 0; correct it (schemas/documents/result.schema.json)",
    ]


def test_the_signature_hash_follows_every_field() -> None:
    signature = examples.signature()
    hashes = {signature.sha256()}
    for field in dataclasses.fields(signature):
        other: Any = ("other",) if field.name == "splits" else "other"
        hashes.add(dataclasses.replace(signature, **{field.name: other}).sha256())
    assert len(hashes) == 1 + len(dataclasses.fields(signature))


def test_the_signature_prints_as_one_line() -> None:
    assert str(examples.signature()) == (
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
        (changed([], "parameters", "x"), "parameters.x: [] is not of type boolean, integer, number, string or null"),
        (changed({}, "parameters", "a\n\x1b[31mb"), r"parameters.'a\n\x1b[31mb': {} is not of type boolean, integer"),
        (
            changed(1, "a\nb"),
            r"top level: field 'a\nb' is not in schemas/documents/dataset.schema.json; remove it, have: schema_v",
        ),
        (changed(nested(500), "seed"), "nested too deeply; flatten it"),
        (changed("\u0663.\u0664", "builder_version"), "builder_version: '\u0663.\u0664' does not match"),
        (changed(2**63, "splits", 0, "n_items"), "splits[0].n_items: 9223372036854775808 should be less than"),
        (changed([{}] * 300, "splits"), "splits[0]: field 'config', 'content_sha256', 'item_shape', 'n_items', 'path'"),
    ],
)
def test_a_hostile_document_is_refused_in_one_line_each(change: Break, line: str) -> None:
    value: Any = contract.dump(examples.manifest(examples.items()))
    change(value)
    lines = list(contract.errors(value, Manifest))
    assert lines[0].startswith(line)
    assert len(lines) == (300 if line.startswith("splits[0]: field") else 1)
    assert all(one.isprintable() for one in lines)
    with pytest.raises(DataError) as caught:
        contract.load(value, Manifest, where="dataset.json")
    assert str(caught.value) == f"dataset.json: {lines[0]}"


def test_no_pattern_means_other_characters_elsewhere() -> None:
    """Engines disagree on which characters are digits, letters and spaces beyond ASCII."""
    texts = [(REPOSITORY / path).read_text("utf-8") for path in contract.schema_paths().values()]
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
