"""Checks ids of models, after which the folders of results are named."""

from __future__ import annotations

import re

from biasboard.ground.errors import ConfigError

_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


def check_model_id(model_id: str) -> str:
    """Return a model id unchanged if a folder can be named after it.

    Raises:
        ConfigError: the id is neither ``name`` nor ``org/name`` of letters, digits, dots, dashes and single
            underscores, or it begins like the id of a baseline.
    """
    if model_id.startswith("baseline/"):
        raise ConfigError(
            f"model id '{model_id}': 'baseline/' is reserved for the baselines; give another name with --name"
        )
    if not _MODEL_ID.fullmatch(model_id) or "__" in model_id:
        raise ConfigError(
            f"model id '{model_id}' must be NAME or ORG/NAME of letters, digits, '.', '-' and single '_'; "
            "for a local model give a name with --name"
        )
    return model_id
