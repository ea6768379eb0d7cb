"""The option ``--format`` of commands, and the documents that they print."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import typer
from typer.testing import CliRunner

from biasboard.ground.command_line import EXIT_ERROR, EXIT_RUN_FAILED, one_line_errors
from biasboard.ground.errors import RunError
from schemas import json_schemas
from schemas.outputs.documents import Printed, Validation, with_format
from tests.reference import commands_of, subcommands_of

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
