"""The commands ``biasboard build NAME``, each builder that ``python -m builders.NAME`` runs, and ``biasboard demo``."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import typer

from biasboard.ground.command_line import LazyCommand, call, command_group, one_line_errors
from biasboard.ground.errors import ConfigError
from biasboard.ground.kinds import BUILDERS
from builders.__main__ import list_builders
from builders.description import Builder, BuilderSource, all_builders
from schemas.folders.dataset_folder import MANIFEST, read_manifest


def builder_application(name: str) -> typer.Typer:
    """Return the command line of a builder.

    Raises:
        ConfigError: there is no builder of this name, or its module defines no command line.
    """
    commands = _commands()
    if name not in commands:
        raise ConfigError(f"builder '{name}' does not exist; have: {', '.join(commands)}")
    module, _, attribute = commands[name].target.partition(":")
    if not attribute:
        raise ConfigError(f"builder '{name}' defines no typer application 'app'; run it with python -m {module}")
    application: typer.Typer = getattr(importlib.import_module(module), attribute)
    return application


def build_if_missing(builder: Builder, source: BuilderSource, folder: Path) -> bool:
    """Build a dataset from a source without input, unless it is in the folder already; return True if it was not.

    Raises:
        DataError: the folder holds something else.
    """
    if (folder / MANIFEST).is_file():
        return False
    call(builder_application(builder.name), {"out": folder, "source": source.name})
    return True


@one_line_errors("stopped; the same command continues")
def demo() -> None:
    """Build the embedded datasets and the board.

    Datasets that are in out/datasets are kept. The board shows the accepted results, which biasboard brings along, and
    the runs in out/runs. It is written to site/_build.
    """
    # Imported here, because building a dataset needs none of it.
    from leaderboard.commands.build import build as build_board

    for builder in all_builders():
        source = builder.sources[0]
        if source.input is None:
            folder = source.default_out
            is_new = build_if_missing(builder, source, folder)
            print(f"{'built' if is_new else 'kept'} {folder}, version {read_manifest(folder).version}")
    build_board()


def _commands() -> dict[str, LazyCommand]:
    return {name: command for name in BUILDERS.names() if (command := _command(name)) is not None}


def _command(name: str) -> LazyCommand | None:
    """Return the command of a builder, read from its source; None if the module is no builder but shared code."""
    module = BUILDERS.module_name(name)
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin)
    if spec.submodule_search_locations is not None:
        module, path = f"{module}.__main__", path.with_name("__main__.py")
    if not path.is_file():
        return None
    # Listing the builders must not import them, so their commands are read from the syntax tree.
    source = path.read_bytes()
    # What others share has no command line, and takes long to parse.
    if b"__main__" not in source:
        return None
    try:
        tree = ast.parse(source)
    except SyntaxError as error:  # Also of bytes that are no text.
        raise ConfigError(f"builder '{name}' cannot be read: {path}:{error.lineno}: {error.msg}; correct it") from error
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    build = next(
        (node for node in functions if any("app.command" in ast.unparse(d) for d in node.decorator_list)), None
    )
    if build is not None:
        return LazyCommand(f"{module}:app", _first_line(build))
    if any(isinstance(node, ast.Assign) and "app" in map(ast.unparse, node.targets) for node in tree.body):
        # A group of commands, which builds if no command is given, or an application that is made elsewhere.
        named = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build")
        return LazyCommand(f"{module}:app", _first_line(next(named, tree)))
    return LazyCommand(module, _first_line(tree))


def _first_line(node: ast.Module | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")


def _list_without_name(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_builders()


with one_line_errors():
    app = command_group(
        "Build a dataset; without a name, list the builders and their sources.", _commands(), itself=_list_without_name
    )
