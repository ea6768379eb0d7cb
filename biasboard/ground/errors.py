"""Exceptions for mistakes of users, which a command line prints on one line instead of a traceback.

BiasboardError
 +- DataError          a file or value breaks its contract
 +- ConfigError        a combination of options cannot work
 +- MissingExtraError  a library of an optional extra is not installed
 +- RunError           a run could not finish (too many failures, or another process is using it)
"""

from __future__ import annotations

import importlib
from types import ModuleType

from biasboard.ground.plain_text import without_middle


class BiasboardError(Exception):
    """A mistake of the user. The message says what is wrong, where, with which value, and how to fix it."""

    def __str__(self) -> str:
        """Return the message, without its middle if it is too long to be read; the way out stands at its end."""
        return without_middle(super().__str__())


class DataError(BiasboardError):
    """A file or value that breaks its contract."""


class ConfigError(BiasboardError):
    """A combination of options that cannot work."""


class MissingExtraError(BiasboardError):
    """A library of an optional extra that is not installed."""


class RunError(BiasboardError):
    """A run that could not finish. The answers it received are kept."""


def import_extra(module: str, extra: str) -> ModuleType:
    """Import a library of an optional extra; if it is missing, say which extra to install.

    Raises:
        MissingExtraError: the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise  # Not the library itself is missing but one of its dependencies, which the original message names.
        raise MissingExtraError(
            f"'{module}' is not installed; install the extra '{extra}': pip install 'biasboard[{extra}]'"
        ) from error
