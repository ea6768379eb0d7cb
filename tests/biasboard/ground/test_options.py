"""Options that are given as texts or as values of Python, by a dataclass that declares one of each type."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from biasboard.ground.errors import ConfigError
from biasboard.ground.options import from_texts, from_values, option, with_options


@dataclass(frozen=True, kw_only=True)
class Declared:
    depth: int = option("How deep.", default=2, min=1, max=9)
    share: float | None = option("Of what.", max=1)
    is_sure: bool | None = option("Whether.")
    file: Path | None = option("Where.")
    tags: tuple[str, ...] = option("Which.", default=())
    name: str | None = option("Who.")
    inner: int = 7


@dataclass(frozen=True, kw_only=True)
class Read:
    names: tuple[str, ...] = option("Which.", default=(), read=lambda text: tuple(text.split(",")))


def test_a_default_is_not_read_as_if_the_user_had_given_it() -> None:
    found: list[Read] = []
    app = typer.Typer()

    @app.command()
    @with_options
    def command(choice: Read) -> None:
        found.append(choice)

    assert CliRunner().invoke(app, []).exit_code == 0
    assert CliRunner().invoke(app, ["--names", "a,b"]).exit_code == 0
    assert [one.names for one in found] == [(), ("a", "b")]


def test_texts_become_values_of_their_types() -> None:
    texts = ["depth=3", "share=0.5", "is-sure=true", "file=a/b", "tags=x", "tags=y=z", "name=Ann"]
    assert from_texts(Declared, texts, flag="--own") == Declared(
        depth=3, share=0.5, is_sure=True, file=Path("a/b"), tags=("x", "y=z"), name="Ann"
    )
    assert from_texts(Declared, [], flag="--own") == Declared()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("depth", "--own depth: write NAME=VALUE"),
        ("depth=x", "--own depth=x: 'x' is not a number; correct it"),
        ("depth=0", "depth = 0: give 1 to 9"),
        ("share=1.5", "share = 1.5: give 1 or less"),
        ("share=nan", "share = nan: give a number"),
        ("is_sure=1", "--own is_sure=1: '1' is not true or false; correct it"),
        ("dept=3", "--own: there is no option 'dept'; did you mean 'depth'?; have: depth, share, is_sure, file, tags"),
        ("inner=3", "--own: there is no option 'inner'"),
    ],
)
def test_a_wrong_text_is_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as told:
        from_texts(Declared, [text], flag="--own")
    assert str(told.value).startswith(message)


def test_values_of_python_are_taken_as_they_are() -> None:
    values = {"depth": None, "share": 1, "file": "a", "tags": {"x": 1}, "name": {"k": 1}, "is_sure": False}
    found = from_values(Declared, values, function="f")
    assert (found.depth, found.share, found.file, found.tags, found.is_sure) == (2, 1, Path("a"), ("x=1",), False)
    assert found.name is not None
    assert found.name.split() == ["{", '"k":', "1", "}"]
    for name, value in (("depth", 2.5), ("depth", True), ("name", 3), ("share", "1")):
        with pytest.raises(ConfigError, match=f"{name} = .*: give a value of type"):
            from_values(Declared, {name: value}, function="f")
