"""Finds plug-ins by the names of their files, so that there is no registry to edit.

They come from three sources::

    PACKAGE/NAME.py                      a folder of one kind: PACKAGE/NAME/ if it takes several files
    PACKAGE/FAMILY/NAME_SUFFIX.py        a folder in which families keep several kinds together
    an entry point of an installed distribution, in the group biasboard.KIND: NAME = "its.module"

The environment variable ``BIASBOARD_PLUGINS`` adds folders outside the repository. It lists them as ``PATH`` does, and
each repeats the layout of the repository. A file ``evaluators/backends/x.py`` in such a folder becomes the module
``evaluators.backends.x``, which is found, listed and imported like any other.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from types import ModuleType
from typing import Any

from biasboard.ground.errors import BiasboardError, ConfigError, Stopped

VARIABLE = "BIASBOARD_PLUGINS"
HINT = f"if a plug-in defines it, install its package or name its folder in {VARIABLE}"
PACKAGES = ("schemas", "builders", "evaluators", "leaderboard")
"""The packages that plug-ins can add files to."""
ALL_PACKAGES = ("biasboard", *PACKAGES)
_GROUPS = "biasboard."


@dataclass(frozen=True)
class PlugIns:
    """A kind of plug-in."""

    kind: str
    """Name of the group of entry points after ``biasboard.``, such as ``backends``."""
    package: str
    """Dotted name of the package that holds them, such as ``evaluators.backends``."""
    word: str
    """Singular noun for messages, such as ``backend``."""
    defines: str | None = None
    """Name that each module must define; None for none."""
    suffix: str = ""
    """Suffix of the names of their files, such as ``_task``, if the package or its folders hold other files too."""
    is_dashed: bool = False
    """True if users write dashes for the underscores in names of files."""

    def names(self) -> tuple[str, ...]:
        """Return the sorted names of all plug-ins, without importing them.

        Raises:
            ConfigError: ``BIASBOARD_PLUGINS`` names a folder that does not exist, or two plug-ins have the same name.
        """
        return tuple(_modules(self))

    def module_name(self, name: str) -> str:
        """Return the dotted name of the module of a plug-in.

        Raises:
            ConfigError: no plug-in has that name.
        """
        if name not in _modules(self):
            raise ConfigError(f"{self.word} '{name}' does not exist; have: {', '.join(self.names())}")
        return _modules(self)[name]

    def load(self, name: str) -> ModuleType:
        """Import a plug-in by name.

        Raises:
            ConfigError: no plug-in has that name, its module cannot be imported, or it does not define the name.
        """
        return _load(self, name)

    def get(self, name: str, of: type | None = None) -> Any:
        """Return what a plug-in defines.

        Args:
            name: Name of the plug-in.
            of: Class that it must be an object of; None for any.

        Raises:
            ConfigError: as for :meth:`load`, or it is of another class.
        """
        module = self.load(name)
        defined = getattr(module, self.defines or "")
        if of is not None and not isinstance(defined, of):
            raise ConfigError(
                f"{module.__file__}: {self.defines} is of type {type(defined).__name__}, no {of.__name__}; correct it"
            )
        return defined


@cache
def _modules(plug_ins: PlugIns) -> Mapping[str, str]:
    """Return the modules of plug-ins by their names, sorted."""
    added_folders()
    origins: dict[str, tuple[str, str]] = {}
    installed = (
        (point.name, point.module, f"{point.module} of {point.dist.name if point.dist else 'an installed package'}")
        for point in _entry_points()
        if point.group == _GROUPS + plug_ins.kind
    )
    for written, module, origin in (*_files(plug_ins), *installed):
        name = written.replace("_", "-") if plug_ins.is_dashed else written
        first = origins.setdefault(name, (module, origin))
        if first != (module, origin):
            raise ConfigError(f"{plug_ins.word} '{name}' is in {first[1]} and in {origin}; rename one of them")
    return {name: module for name, (module, _) in sorted(origins.items())}


def _files(plug_ins: PlugIns) -> Iterator[tuple[str, str, str]]:
    """Yield name, module, and folder or path of each plug-in that is a file."""
    package = importlib.import_module(plug_ins.package)
    for folder in package.__path__:
        if not plug_ins.suffix:
            for module in pkgutil.iter_modules([folder]):
                if not module.name.startswith("_"):
                    yield module.name, f"{plug_ins.package}.{module.name}", folder
            continue
        for pattern in (f"*{plug_ins.suffix}.py", f"*/*{plug_ins.suffix}.py"):
            for path in Path(folder).glob(pattern):
                if not path.name.startswith("_"):
                    inner = path.relative_to(folder).with_suffix("").parts
                    yield path.stem.removesuffix(plug_ins.suffix), ".".join((plug_ins.package, *inner)), str(path)


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    # Reading all distributions takes 12 ms, so it is done once, not for each of ten kinds.
    points = (point for installed in distributions() for point in installed.entry_points)
    return tuple(point for point in points if point.group.startswith(_GROUPS))


@cache
def _load(plug_ins: PlugIns, name: str) -> ModuleType:
    dotted = plug_ins.module_name(name)
    try:
        # What it prints must not stand among the output of a command, which programs read.
        with redirect_stdout(sys.stderr):
            module = importlib.import_module(dotted)
    except (BiasboardError, Stopped):
        raise
    # Also SystemExit, by which a command would end without a word and with any status.
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        # A SyntaxError holds its file and line itself; no frame of the traceback has them.
        where = f"{getattr(error, 'filename', None) or frame.filename}:{getattr(error, 'lineno', None) or frame.lineno}"
        what = f"{type(error).__name__}: {getattr(error, 'msg', None) or error}"
        raise ConfigError(f"{plug_ins.word} '{name}' cannot be imported: {where}: {what}; correct the file") from error
    if plug_ins.defines is not None and not hasattr(module, plug_ins.defines):
        raise ConfigError(
            f"{module.__file__}: defines no {plug_ins.defines}, which makes it a {plug_ins.word}; add it, or move the "
            "file"
        )
    return module


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


def place_in_plug_ins(error: BaseException) -> str | None:
    """Return the file and line of a folder of plug-ins at which an error arose, or which called what made it.

    None if no line of a plug-in was under way: then the fault is ours.
    """
    roots = [root.resolve() for root in _roots()]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(root in Path(frame.filename).parents for root in roots):
            return f"{frame.filename}:{frame.lineno}"
    return None


def installed_code() -> list[Path]:
    """Return the folder or file of each installed package, also of editable ones, whose entry points name plug-ins."""
    packages = {point.module.partition(".")[0] for point in _entry_points()} - set(ALL_PACKAGES)
    specs = (importlib.util.find_spec(package) for package in sorted(packages))
    return [Path(at) for spec in specs if spec for at in (*(spec.submodule_search_locations or ()), spec.origin) if at]


def search_path(package: str, own: Iterable[str]) -> list[str]:
    """Return the folders of a package's modules, to which a package of plug-ins sets its ``__path__``."""
    added = (root.absolute().joinpath(*package.split(".")) for root in _roots())
    return [*own, *(str(folder) for folder in added if folder.is_dir())]


def _roots() -> list[Path]:
    return [Path(entry) for entry in os.environ.get(VARIABLE, "").split(os.pathsep) if entry]
