"""Ids of models: which names a folder of results can have."""

from __future__ import annotations

import re

from schemas.errors import ConfigError

_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


def check_model_id(model_id: str) -> str:
    """Return the id itself if a folder can be named after it.

    Raises:
        ConfigError: it is neither ``name`` nor ``org/name`` of letters, digits, dot, dash and underscore, or it would
            pass for a baseline.
    """
    if model_id.startswith("baseline/"):
        raise ConfigError(
            f"model id '{model_id}': 'baseline/' is kept for the baselines; give another name with --name"
        )
    if not _MODEL_ID.fullmatch(model_id) or "__" in model_id:
        raise ConfigError(
            f"model id '{model_id}' must be NAME or ORG/NAME of letters, digits, '.', '-' and single '_'; "
            "for a local model give a name with --name"
        )
    return model_id
