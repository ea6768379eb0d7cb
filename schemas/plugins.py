"""Plug-ins are files in a folder, found by name: there is no registry to edit."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from schemas.errors import ConfigError


def names(package: str) -> tuple[str, ...]:
    """Names of the plug-ins of a package, such as ``evaluators.backends``, sorted; nothing in them is imported."""
    folder = importlib.import_module(package)
    found = (module.name for module in pkgutil.iter_modules(folder.__path__) if not module.name.startswith("_"))
    return tuple(sorted(found))


def load(package: str, name: str, *, kind: str) -> ModuleType:
    """Import a plug-in by name.

    Args:
        package: Such as ``evaluators.backends``.
        name: The file's name without ``.py``.
        kind: What to call it in an error, such as ``backend``.

    Raises:
        ConfigError: there is no such file.
    """
    if name not in names(package):
        raise ConfigError(f"{kind} '{name}' does not exist; have: {', '.join(names(package))}")
    return importlib.import_module(f"{package}.{name}")
