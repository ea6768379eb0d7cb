"""Every error that a user can cause, so that a command line prints one line instead of a stack trace.

BiasboardError
 +- DataError          a file or value that was handed in is not what the contract says
 +- ConfigError        a combination of options that cannot work
 +- MissingExtraError  a heavy library that is not installed; names the extra
 +- RunError           a run that could not finish (too many failures, another process holds it)
"""

from __future__ import annotations

import importlib
from types import ModuleType


class BiasboardError(Exception):
    """A mistake that the message explains: what, where, the offending value and the way out."""


class DataError(BiasboardError):
    """A file or value that is not what the contract says."""


class ConfigError(BiasboardError):
    """A combination of options that cannot work."""


class MissingExtraError(BiasboardError):
    """A library of an optional extra is not installed."""


class RunError(BiasboardError):
    """A run that could not finish; what was answered is kept."""


def import_extra(module: str, extra: str) -> ModuleType:
    """Import a heavy library, or say which extra brings it.

    Args:
        module: Name of the module, such as ``torch``.
        extra: Name of the extra in pyproject.toml.

    Raises:
        MissingExtraError: the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # The library is there, something that it needs is not: its own message says more.
        raise MissingExtraError(
            f"'{module}' is not installed; install the extra '{extra}': pip install 'biasboard[{extra}]'"
        ) from error
