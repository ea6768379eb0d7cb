"""The command line of evaluators in the process of the tests, for what needs no process of its own."""

from __future__ import annotations

from collections.abc import Mapping

from typer.testing import CliRunner, Result

from evaluators.__main__ import app


def evaluators(*arguments: object, env: Mapping[str, str | None] | None = None) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env=env)
