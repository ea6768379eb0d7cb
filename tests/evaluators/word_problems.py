"""A built dataset with word problems, which take long prompts and answers that may be unreadable."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from builders.gifi.__main__ import app
from schemas.folders.dataset_folder import read_manifest

N_ITEMS = 77
"""Word problems in the config ``math``: seven texts in eleven variants."""


def build(folder: Path) -> Path:
    """Build the dataset with its four configs; its limit is spread over them."""
    built = CliRunner().invoke(app, ["--out", str(folder), "--limit", "264"])
    assert built.exit_code == 0, built.output
    assert {entry.config: entry.n_items for entry in read_manifest(folder).splits}["math"] == N_ITEMS
    return folder
