"""Keeps what an annotation writes out of dataset folders, which are published whole."""

from __future__ import annotations

from pathlib import Path

from biasboard.ground.errors import ConfigError
from schemas.folders.dataset_folder import MANIFEST


def check_outside_datasets(option: str, folder: Path, *, is_dataset: bool = False) -> None:
    """Check that a folder is none of a dataset and lies in none.

    Args:
        option: Option that gave the folder, for the message.
        folder: The folder, which need not exist.
        is_dataset: True if the folder itself may hold the dataset that is written there.

    Raises:
        ConfigError: it is or does.
    """
    place = folder.resolve()
    for above in (*(() if is_dataset else (place,)), *place.parents):
        if (above / MANIFEST).is_file():
            raise ConfigError(f"{option} {folder}: lies in the dataset folder {above}; give a folder outside of it")
