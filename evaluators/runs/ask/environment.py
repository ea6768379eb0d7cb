"""Describes the environment of a run, as its result stores it."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence

from evaluators.backend import Runtime
from schemas.documents.result import Environment


def environment(runtimes: Sequence[Runtime]) -> Environment:
    """Describe where the answers were computed; a value that differs between sessions lists all of them."""
    numpy = {"numpy": importlib.metadata.version("numpy")}
    devices = [runtime.device for runtime in runtimes if runtime.device is not None]
    return Environment(
        biasboard=importlib.metadata.version("biasboard"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        device=" / ".join(dict.fromkeys(devices)) or None,
        packages=_merged([numpy, *(runtime.packages for runtime in runtimes)]),
        settings=_merged([runtime.settings for runtime in runtimes]),
    )


def _merged(mappings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            values.setdefault(key, {})[value] = None
    return {key: " / ".join(values[key]) for key in sorted(values)}
