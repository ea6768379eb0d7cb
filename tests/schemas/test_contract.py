from __future__ import annotations

import copy
import dataclasses
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from typer.testing import CliRunner

from biasboard.ground import strict_json
from biasboard.ground.command_line import EXIT_ERROR, EXIT_RUN_FAILED, one_line_errors
from biasboard.ground.errors import DataError, RunError
from biasboard.ground.strict_json import JsonValue
from schemas import json_schemas
from schemas.documents.base import Document
from schemas.documents.dataset import Manifest
from schemas.documents.model_facts import ModelFacts
from schemas.documents.papers import ReportedTable
from schemas.documents.record import Record
from schemas.documents.result import Result
from schemas.documents.run_files import ClusterSums, TextScore
from schemas.files import contract, row_files
from schemas.files.contract import D
from schemas.json_schemas import json_schema, schema_paths
from schemas.outputs.documents import Printed, Validation, with_format
from tests.record_files import write_records
from tests.reference import commands_of, subcommands_of
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


def of_board(name: str, document_type: type[D]) -> D:
    text = (Path(__file__).parents[2] / "leaderboard" / name).read_text(encoding="utf-8")
    return contract.load(json.loads(json.dumps(tomllib.loads(text), default=str)), document_type, where=name)


SUMS: dict[str, JsonValue] = {
    "metric": "accuracy",
    "version": "1.0",
    "baseline": None,
    "group": {},
    "reason": None,
    "ideal": 1.0,
    "n": 2,
    "n_excluded": 0,
    "n_columns": 1,
    "sums": [1.0, 2.0],
}
DOCUMENTS: tuple[Document, ...] = (
    MANIFEST,
    examples.reject(),
    examples.item(),
    examples.record(),
    examples.failed_record(),
    examples.result(),
    of_board("models/HuggingFaceTB__SmolLM2-135M-Instruct.toml", ModelFacts),
    of_board("reported/gifi-pronouns.toml", ReportedTable),
    TextScore(kind="embedding", scorer="minilm-1", text_sha256=examples.HASH, values=(0.6, 0.8)),
    contract.load(SUMS, ClusterSums, where="sums"),
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: type(document).__name__)
def test_every_document_survives_json(document: Document) -> None:
    value: Any = strict_json.loads(strict_json.dumps(contract.dump(document)), where="document")
    assert contract.load(value, type(document), where="document") == document
    if isinstance(document, Record) and document.reading is not None:
        assert value["exchanges"][0]["option_logprobs"] == [-0.25, "-inf"]
    # Fields that were added later are left out while they are empty, so that older files stay equal.
    assert not {"suites", "files", "coverage", "withheld"} & value.keys()


@pytest.mark.parametrize(
    ("document", "change", "message"),
    [
        ("result", put(1, "speed"), r"top level: field 'speed' is not in schemas/documents/result.schema.json; remove"),
        ("result", put("2.0", "schema_version"), r"schema_version: '2.0' is not allowed; have: 1.0"),
        ("result", put("three", "counts", "items"), r"counts.items: 'three' is not of type integer; correct it"),
        (
            "result",
            put(None, "metrics", 0, "value"),
            r"metrics: accuracy: value: a metric has either a value or a reaso",
        ),
        ("result", put("beef", "records", "sha256"), r"records.sha256: 'beef' does not match '\^\[0-9a-f\]\{64\}\$'"),
        ("result", put(float("nan"), "metrics", 0, "value"), r"holds NaN or an infinity; write null and a reason"),
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
            r"exchanges\[0\].option_logprobs\[0\]: 0.1 sh",
        ),
        (
            "failed_record",
            put("+inf", "exchanges", 0, "option_logprobs"),
            r"exchanges\[0\].option_logprobs: '\+inf' is n",
        ),
        ("failed_record", put([13], "exchanges", 0, "option_byte_counts"), r"exchanges\[0\]: lists differ in length"),
        ("failed_record", put([True], "exchanges", 0, "option_is_bound"), r"exchanges\[0\]: lists differ in length"),
        ("record", put([0.5, 0.4], "reading", "probabilities"), r"reading.probabilities: sum to 0.9, not to 1; ren"),
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


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (put([], "parameters", "x"), "parameters.x: [] is not of type boolean, integer, number, string or null"),
        (put({}, "parameters", "a\n\x1b[31mb"), r"parameters.'a\n\x1b[31mb': {} is not of type boolean, integer"),
        (
            put(1, "a\nb"),
            r"top level: field 'a\nb' is not in schemas/documents/dataset.schema.json; remove it, have: s",
        ),
        (put(json.loads("[" * 501 + "]" * 501), "seed"), "nested too deeply; flatten it"),
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


PATHS = schema_paths()


def published(path: str) -> Any:
    return json.loads((Path(__file__).parents[2] / path).read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("document_type", PATHS, ids=PATHS.get)
def test_the_published_schema_is_what_the_annotations_say(document_type: type[Document]) -> None:
    schema = published(PATHS[document_type])
    assert schema == json_schema(document_type), "write it again: python -m schemas.json_schemas"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_schema_file_belongs_to_a_document_describes_fields_by_the_text_below_and_has_plain_patterns(
    repository: Path,
) -> None:
    files = {path.relative_to(repository).as_posix() for path in (repository / "schemas").rglob("*.schema.json")}
    assert files == set(PATHS.values())
    properties = published("schemas/documents/record.schema.json")["properties"]
    assert properties["reason"]["description"] == "Reason why the record has no reading; None if it is scored."
    # Engines disagree on which characters are digits, letters and spaces beyond ASCII.
    texts = [(repository / path).read_text("utf-8") for path in PATHS.values()]
    patterns = [pattern for text in texts for pattern in re.findall(r'"pattern": "(.*)"', text)]
    assert len(patterns) > 50
    assert [pattern for pattern in patterns if re.search(r"\\\\[dwDW]", pattern)] == []


ODD: tuple[Any, ...] = (None, True, "", "x", "-inf", "\n", 0, -1, 3, 0.5, 2.0, [], ["x", "x"], {}, {"x": 1})


def mutants(value: Any) -> Iterator[Any]:
    """Every value that differs from the given one at a single place."""
    yield from (copy.deepcopy(odd) for odd in ODD if odd != value or type(odd) is not type(value))
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: other for name, other in value.items() if name != key}
            for other in mutants(inner):
                yield {**value, key: other}
        yield {**value, "surprise": 1}
    elif isinstance(value, list):
        for place, inner in enumerate(value[:2]):
            for other in mutants(inner):
                yield [*value[:place], other, *value[place + 1 :]]


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: type(document).__name__)
def test_any_validator_of_json_schema_gives_the_verdict_of_the_contract(document: Document) -> None:
    validator = jsonschema.Draft202012Validator(published(PATHS[type(document)]))
    verdicts = {True: 0, False: 0}
    for value in mutants(contract.dump(document)):
        expected = validator.is_valid(value)
        # Each field by itself, whatever the rules that join several.
        made, _ = contract.converted(value, type(document))
        # To JSON Schema 2.0 is an integer; strict JSON files of ours are written by programs that know better.
        if (made is not None) != expected:
            assert expected, value
            assert "2.0 is not of type integer" in next(contract.converted(value, type(document))[1]), value
        verdicts[expected] += 1
    assert min(verdicts.values()) > 3, verdicts


FOUND = Validation(n_checked=2, problem_lines=("x\u202e",), has_more=False)


def test_json_is_of_a_published_schema() -> None:
    published = {path.rpartition("/")[2] for path in json_schemas.schema_paths().values()}
    documented = set()
    for found in commands_of("biasboard", "biasboard"):
        if subcommands_of(found.command) and not found.command.invoke_without_command:
            continue
        option = next((option for option in found.command.params if "--format" in option.opts), None)
        if option is None or "json" not in str(option.help).lower():
            continue
        named = re.findall(r"\w+\.schema\.json", option.help)
        assert named, f"{found.words}: {option.help}"
        assert {*named} <= published, found.words
        documented.add(found.words.removeprefix("biasboard "))
    assert {"run", "score", "verify", "board", "list", "validate"} <= documented


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (FOUND, 0),
        (Printed(FOUND), 0),
        (Printed(FOUND, EXIT_ERROR), EXIT_ERROR),
        (Printed(FOUND, error=RunError("no answer came")), EXIT_RUN_FAILED),
    ],
)
def test_a_document_is_all_that_standard_output_holds_whatever_the_status(
    outcome: object, status: int, repository: Path
) -> None:
    app = typer.Typer()

    @app.command()
    @one_line_errors()
    @with_format(Validation)
    def check() -> object:
        print("for people")
        return outcome

    done = CliRunner().invoke(app, ["--format", "json"])
    assert done.exit_code == status, done.stderr
    value = json.loads(done.stdout)
    assert done.stdout.isascii()
    assert value == {"n_checked": 2, "problem_lines": ["x\u202e"], "has_more": False}
    schema = json.loads((repository / Validation.schema_file).read_text(encoding="utf-8"))
    jsonschema.validate(value, schema)
    assert done.stderr.startswith("for people\n")
    assert ("error: no answer came" in done.stderr) == (status == EXIT_RUN_FAILED)
    told = CliRunner().invoke(app, [])
    assert (told.exit_code, told.stdout) == (status, "for people\n")


def test_a_command_with_a_form_of_its_own_learns_which_is_wanted_and_one_that_only_listed_prints_null() -> None:
    app = typer.Typer()

    @app.command()
    @with_format(Validation, others=("csv",))
    def tell(nothing: bool = False, output: str = "") -> Validation | None:
        print(output)
        return None if nothing else FOUND

    assert CliRunner().invoke(app, ["--format", "csv"]).stdout == "csv\n"
    assert json.loads(CliRunner().invoke(app, ["--format", "json"]).stdout)["n_checked"] == 2
    assert CliRunner().invoke(app, ["--format", "xml"]).exit_code == 2
    done = CliRunner().invoke(app, ["--nothing", "--format", "json"])
    assert (done.stdout, done.stderr) == ("null\n", "json\n")
