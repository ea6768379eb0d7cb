"""The published cases, which lie beside the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cases(shared_data: Path) -> dict[str, Any]:
    """Class accuracies, rules and predictions with the values that the paper prints and that its definitions give."""
    path = shared_data.parent / "specs" / "gini_cases.json"
    if not path.is_file():
        pytest.skip("../shared/data has no ../specs/gini_cases.json beside it")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
