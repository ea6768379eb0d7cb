"""The croissant.json of datasets: mlcroissant reads it, and through it the items."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlcroissant
import pytest

from biasboard.ground.files import sha256_file
from builders.dataset.card import croissant_problems
from builders.dataset.output import write_dataset
from builders.synthbias import embedded
from schemas.folders.dataset_folder import read_manifest, read_split

# mlcroissant uses a class of rdflib and an argument of pandas that are going to be removed.
pytestmark = [
    pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "synthbias"
    write_dataset(embedded.draft(limit=40), folder)
    return folder


@pytest.mark.slow
def test_the_items_are_read_through_it_and_it_tells_of_files_annotation_and_bias_and_of_no_day(folder: Path) -> None:
    dataset = mlcroissant.Dataset(folder / "croissant.json")
    metadata = dataset.metadata
    assert [record_set.uuid for record_set in metadata.record_sets] == ["type1/test", "type2/test"]
    for entry in read_manifest(folder).splits:
        name = f"{entry.config}/{entry.split}"
        items: list[Any] = read_split(folder, entry)
        rows = list(dataset.records(record_set=name))
        assert len(rows) == 20
        for row, item in zip(rows, items, strict=True):
            assert row[f"{name}/sentence"].decode() == item.sentence
            assert [word.decode() for word in row[f"{name}/occupations"]] == list(item.occupations)
            assert row[f"{name}/pronoun_start"] == item.pronoun_start
    assert (metadata.version, metadata.license) == ("4.0.0", ["https://spdx.org/licenses/Apache-2.0"])
    assert metadata.data_annotation_protocol[0].startswith("Nobody annotated the items.")
    assert (metadata.annotations_per_item, len(metadata.data_biases)) == ("0", 3)
    for file in metadata.distribution:
        assert file.sha256 == sha256_file(folder / file.content_url)
        assert file.content_size == f"{(folder / file.content_url).stat().st_size} B"
    assert metadata.ctx.issues.errors == set()
    (warning,) = metadata.ctx.issues.warnings
    assert "datePublished" in warning
    assert metadata.date_published is None


def test_a_changed_folder_no_longer_agrees(folder: Path, tmp_path: Path) -> None:
    manifest = read_manifest(folder)
    assert list(croissant_problems(folder, manifest)) == []
    (missing,) = croissant_problems(tmp_path, manifest)
    assert missing == f"{tmp_path / 'croissant.json'}: no such file; build the dataset again"
    shutil.copytree(folder, tmp_path / "other")
    path = tmp_path / "other" / manifest.splits[0].path
    path.write_bytes(path.read_bytes() + b"x")
    version, files = croissant_problems(tmp_path / "other", replace(manifest, version="1.9.0"))
    was = repr(manifest.version)
    assert f"croissant.json: version {was} is not the '1.9.0' of the manifest; build the dataset again" in version
    assert "croissant.json: distribution is not the parquet files of the folder" in files
    model, licence = croissant_problems(folder, replace(manifest, licence="MIT", generator_model="org/model"))
    assert "rai:machineAnnotationTools None is not the 'org/model' of the manifest" in model
    assert ": license " in licence
