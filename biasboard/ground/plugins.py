"""Finds plug-ins: each file in a certain folder is a plug-in with the name of the file. There is no registry to edit.

The environment variable ``BIASBOARD_PLUGINS`` adds folders outside the repository. It lists them as ``PATH`` does, and
each repeats the layout of the repository. A file ``evaluators/metrics/x.py`` in such a folder becomes the module
``evaluators.metrics.x``, which is found, listed and imported like any other.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import traceback
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

from biasboard.ground.errors import BiasboardError, ConfigError

VARIABLE = "BIASBOARD_PLUGINS"
HINT = f"if a plug-in defines it, name its folder in {VARIABLE}"
PACKAGES = ("schemas", "builders", "evaluators", "leaderboard")
"""The packages that plug-ins can add files to."""
ALL_PACKAGES = ("biasboard", *PACKAGES)


@cache
def names(package: str) -> tuple[str, ...]:
    """Return the sorted names of the plug-ins in a package, without importing them.

    Args:
        package: Dotted name of the package, such as ``evaluators.backends``.

    Raises:
        ConfigError: ``BIASBOARD_PLUGINS`` names a folder that does not exist, or two files have the same name.
    """
    added_folders()
    places: dict[str, str] = {}
    for place in importlib.import_module(package).__path__:
        for module in pkgutil.iter_modules([place]):
            if module.name.startswith("_"):
                continue
            first = places.setdefault(module.name, place)
            if first != place:
                raise ConfigError(f"plug-in '{module.name}' is in {first} and in {place}; rename one of them")
    return tuple(sorted(places))


def added_folders() -> list[Path]:
    """Return the folders that ``BIASBOARD_PLUGINS`` adds.

    Raises:
        ConfigError: one of them does not exist, or does not repeat the layout of the repository.
    """
    for root in _roots():
        if not root.is_dir():
            raise ConfigError(f"{VARIABLE}: no folder {root}; correct the variable, or unset it")
        if not any((root / folder).is_dir() for folder in PACKAGES):
            raise ConfigError(
                f"{VARIABLE}: {root} holds none of the folders {', '.join(PACKAGES)}; name the folder above them"
            )
    return _roots()


def search_path(package: str, own: Iterable[str]) -> list[str]:
    """Return the folders in which the modules of a package lie; a package of plug-ins sets its ``__path__`` to it.

    Args:
        package: Name of the package.
        own: Its folders so far.
    """
    added = (root.absolute().joinpath(*package.split(".")) for root in _roots())
    return [*own, *(str(folder) for folder in added if folder.is_dir())]


def _roots() -> list[Path]:
    return [Path(entry) for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry]


@cache
def load(package: str, name: str, *, kind: str, defines: str | None = None) -> ModuleType:
    """Import a plug-in by name.

    Args:
        package: Dotted name of the package that contains it, such as ``evaluators.backends``.
        name: Name of its file without ``.py``.
        kind: Word for such a plug-in in the error message, such as ``backend``.
        defines: Name that the file must define; None for none.

    Raises:
        ConfigError: no plug-in has that name, its file cannot be imported, or it does not define the name.
    """
    if name not in names(package):
        raise ConfigError(f"{kind} '{name}' does not exist; have: {', '.join(names(package))}")
    try:
        module = importlib.import_module(f"{package}.{name}")
    except BiasboardError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        # The place of a mistake of syntax is in the error, not among the frames.
        place = f"{getattr(error, 'filename', None) or frame.filename}:{getattr(error, 'lineno', None) or frame.lineno}"
        raise ConfigError(f"{kind} '{name}' cannot be imported: {place}: {_named(error)}; correct the file") from error
    if defines is not None and not hasattr(module, defines):
        raise ConfigError(f"{module.__file__}: defines no {defines}, which makes it a {kind}; add it, or move the file")
    return module


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {getattr(error, 'msg', None) or error}"
