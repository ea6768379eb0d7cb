from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from schemas.files import contract, row_files
from schemas.folders import dataset_folder
from schemas.items.coreference import CoreferenceItem
from tests.schemas import examples


def test_a_dataset_is_read_through_its_manifest(tmp_path: Path) -> None:
    made = examples.write_dataset(tmp_path)
    manifest = dataset_folder.read_manifest(tmp_path)
    assert manifest == made
    assert dataset_folder.read_split(tmp_path, manifest.splits[0]) == examples.items()


def test_a_folder_without_a_manifest_says_how_to_build_one(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"no dataset\.json here; name the folder of a built dataset, or build one: biasboard"
    ):
        dataset_folder.read_manifest(tmp_path)


def test_a_changed_item_is_noticed(tmp_path: Path) -> None:
    manifest = examples.write_dataset(tmp_path)
    changed = [dataclasses.replace(examples.items()[0], template_id="other"), *examples.items()[1:]]
    row_files.write_rows(tmp_path / examples.SPLIT_PATH, changed, CoreferenceItem)
    with pytest.raises(DataError, match=r"content sha256 [0-9a-f]{12} is not the [0-9a-f]{12} of dataset\.json"):
        dataset_folder.read_split(tmp_path, manifest.splits[0])


def test_a_missing_item_is_noticed(tmp_path: Path) -> None:
    manifest = examples.write_dataset(tmp_path)
    row_files.write_rows(tmp_path / examples.SPLIT_PATH, examples.items()[:2], CoreferenceItem)
    with pytest.raises(DataError, match=r"2 rows, dataset\.json says 4; build the dataset again"):
        dataset_folder.read_split(tmp_path, manifest.splits[0])


def test_a_dataset_of_an_unknown_shape_is_refused(tmp_path: Path) -> None:
    manifest = examples.write_dataset(tmp_path)
    other = dataclasses.replace(manifest, splits=(dataclasses.replace(manifest.splits[0], item_shape="essay"),))
    strict_json.write(tmp_path / "dataset.json", contract.dump(other))
    with pytest.raises(DataError, match=r"item_shape 'essay' is unknown; have: assignment, coreference"):
        dataset_folder.read_split(tmp_path, dataset_folder.read_manifest(tmp_path).splits[0])
