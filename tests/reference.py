"""Writes ``site/docs/reference.md``, the page of all commands and options, from the commands themselves.

``make reference`` writes it; ``tests/test_docs.py`` compares it. The page is committed, so that it can be read where
the code is, and so that a change of a help text shows in the same diff as what it does to the page.
"""

from __future__ import annotations

import enum
import importlib
import re
import typing
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import typer

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "site" / "docs" / "reference.md"
MODULES = (
    *("builders", "builders.gifi", "builders.image_labels", "builders.labelled_text"),
    *("builders.own_prompts", "builders.own_questions", "builders.superni", "builders.synthbias"),
    *("evaluators", "leaderboard", "schemas.validate"),
)
"""Modules that ``python -m`` runs; all of their commands but a few are those of ``biasboard`` too."""
SHARED = "options-of-models-and-backends"
OPENING = """\
---
title: Reference
---

<!-- Written by `make reference`: change the help text in the code, not this page. -->

# Reference

Every command with its options, as `--help` prints them, and its second form as a module of Python.
[Commands](commands.md) walks through a session, and says what each command is for and
[what an exit status means](commands.md#exit-status).
"""
SHARED_OPENING = """
## Options of models and backends

These options are the same in several commands, which each part names; a backend refuses those that it has no use for.
[Scoring models](scoring.md) explains the backends.
"""


class Command(NamedTuple):
    """A command or a group of commands, under one of its names."""

    words: str
    command: Any

    @property
    def identity(self) -> tuple[str, ...]:
        """Return the same for a command that is reached in another way."""
        return (self.command.help or "", *(parameter.name for parameter in self.command.params))


def application(module: str) -> typer.Typer:
    """Return the typer application behind ``python -m module``."""
    package = REPOSITORY.joinpath(*module.split("."))
    inner = "commands" if module == "biasboard" else "__main__"
    found = importlib.import_module(f"{module}.{inner}" if package.is_dir() else module)
    assert isinstance(found.app, typer.Typer), f"{module} has no typer application called app"
    return found.app


def subcommands_of(command: Any) -> dict[str, Any]:
    """Return the commands of a group by name; none for a single command."""
    if not hasattr(command, "list_commands"):
        return {}
    context = typer.Context(command)
    return {name: command.get_command(context, name) for name in command.list_commands(context)}


def commands_of(module: str, words: str) -> Iterator[Command]:
    """Yield the command of a module and all commands below it."""
    waiting = [Command(words, typer.main.get_command(application(module)))]
    while waiting:
        found = waiting.pop(0)
        yield found
        waiting = [
            Command(f"{found.words} {name}", below) for name, below in subcommands_of(found.command).items()
        ] + waiting


def render_page() -> str:
    """Return the page."""
    modules: dict[tuple[str, ...], Command] = {}
    for module in MODULES:
        for found in commands_of(module, f"python -m {module}"):
            modules.setdefault(found.identity, found)
    doors = list(commands_of("biasboard", "biasboard"))
    # Options of models and backends are in a panel of the help. Those of a single command stand with it.
    counts = Counter(_row(one) for found in doors for one in found.command.params if _panel(one) and not one.required)
    shared = {row for row, n_commands in counts.items() if n_commands > 1}
    sections = []
    panels: dict[str, dict[str, None]] = {}
    takers: dict[str, dict[str, None]] = {}
    for found in doors:
        other = modules.pop(found.identity, None)
        sections.append(_section(found, [found.words, *([other.words] if other else [])], shared))
        rows = [(_panel(one), _row(one)) for one in found.command.params if _panel(one) and _row(one) in shared]
        for panel, row in rows:
            panels.setdefault(str(panel), {})[row] = None
            takers.setdefault(str(panel), {})[f"`{found.words}`"] = None
    # What only developers and workflows call has no other name; the groups of the modules are those of the door.
    sections += [_section(found, [found.words], shared) for found in modules.values() if found.words.count(" ") > 2]
    panels_of_options = [
        f"\n### {panel}\n\nOf {', '.join(takers[panel])}.\n\n{_table(list(rows))}" for panel, rows in panels.items()
    ]
    return "".join([OPENING, *sections, SHARED_OPENING, *panels_of_options])


def _section(found: Command, forms: list[str], shared: set[str]) -> str:
    """Return the part of the page about one command, with each form of its name and the rows that it does not share."""
    parameters = [one for one in found.command.params if one.name != "help" and not getattr(one, "hidden", False)]
    own = [row for one in parameters for row in [_row(one)] if row not in shared or not _panel(one)]
    tail = "".join(f" {_argument(one)}" for one in parameters if one.param_type_name == "argument")
    if any(one.param_type_name == "option" for one in parameters):
        tail += " [OPTIONS]"
    if subcommands_of(found.command):
        tail += " [COMMAND]" if found.command.invoke_without_command else " COMMAND"
    usage = "".join(f"{form}{tail}\n" for form in forms)
    paragraphs = [_markdown(" ".join(part.split())) for part in (found.command.help or "").split("\n\n")]
    is_below = found.words.startswith("biasboard ") and found.words.count(" ") > 1
    parts = [f"\n{'###' if is_below else '##'} {found.words}", *paragraphs, f"```text\n{usage}```"]
    parts += [_table(own).rstrip()] if own else []
    parts += [f"And those [options of models and backends](#{SHARED}) that name it."] * (len(own) < len(parameters))
    return "\n\n".join(parts) + "\n"


def _panel(parameter: Any) -> str | None:
    return getattr(parameter, "rich_help_panel", None)


def _table(rows: list[str]) -> str:
    return "| option | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name).strip("{}[].").upper() + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _row(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    name = _argument(parameter) if is_argument else ", ".join(parameter.opts)
    value = "" if is_argument or getattr(parameter, "is_flag", False) else f" {_value(parameter)}"
    sentences = [_markdown(" ".join(parameter.help.split())), *_facts(parameter)]
    return f"| `{name}{value}` | {' '.join(sentences)} |"


def _value(parameter: Any) -> str:
    names = {Path: "PATH", int: "N", float: "X", str: "TEXT"}
    return str(parameter.metavar or ("WORD" if _choices(parameter) else names[_type(parameter)]))


def _type(parameter: Any) -> Any:
    """Return the type of one value of a parameter."""
    found = parameter.type_descriptor.annotation
    return typing.get_args(found)[0] if typing.get_origin(found) is list else found


def _choices(parameter: Any) -> list[str]:
    kind = _type(parameter)
    if typing.get_origin(kind) is Literal:
        return list(typing.get_args(kind))
    return [member.value for member in kind.__members__.values()] if issubclass(kind, enum.Enum) else []


def _facts(parameter: Any) -> Iterator[str]:
    """Yield what typer knows of a parameter beside its help text."""
    if choices := _choices(parameter):
        yield f"One of {', '.join(f'`{choice}`' for choice in choices)}."
    low, high = parameter.min, parameter.max
    if low is not None:
        yield f"At least {low:g}." if high is None else f"From {low:g} to {high:g}."
    if parameter.multiple and "epeat" not in parameter.help:
        yield "Repeatable."
    if parameter.required and parameter.param_type_name == "option":
        yield "**Required.**"
    elif parameter.show_default and parameter.default not in (None, "", ()) and parameter.default is not False:
        default = parameter.default
        yield f"Default: `{default.value if isinstance(default, enum.Enum) else default}`."
    if parameter.envvar:
        yield f"Also read from `{parameter.envvar}`."


def _markdown(text: str) -> str:
    """Return a help text with its options as code and without accidental markup."""
    escaped = re.sub(r"([\[*|]|\b_(?!\w)|(?<!\w)_)", r"\\\1", text.replace("<", "&lt;"))
    return re.sub(r"(?<!\S)(--[a-z][a-z-]*)", r"`\1`", escaped)


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(REPOSITORY)}")
