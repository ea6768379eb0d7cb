"""Refusals to publish a folder that is broken, edited by hand, or has files that are none of the dataset."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from builders.dataset.output import write_dataset
from builders.publishable import read_dataset
from builders.synthbias import embedded
from schemas.documents.dataset import Manifest


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    told: Any = strict_json.read(folder / "dataset.json")
    change(told)
    strict_json.write(folder / "dataset.json", told)


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        read_dataset(folder)
    return str(caught.value)


def sound(folder: Path) -> Path:
    write_dataset(embedded.draft(limit=40), folder)
    assert isinstance(read_dataset(folder).manifest, Manifest)
    return folder


@pytest.mark.slow
def test_a_folder_that_is_not_sound_is_refused_with_the_way_out(tmp_path: Path) -> None:
    assert "no dataset.json here; name the folder of a built dataset" in refusal(tmp_path)

    folder = sound(tmp_path / "items")
    table = folder / "data/type1/test-00000-of-00001.parquet"
    other = sound(tmp_path / "other") / "data/type2/test-00000-of-00001.parquet"
    shutil.copy(other, table)
    said = refusal(folder)
    assert "content sha256" in said
    assert "build the dataset again" in said

    (folder / "data" / "type1").rename(folder / "data" / "type9")
    assert f"more; biasboard validate {folder} lists them)" in refusal(folder)


@pytest.mark.slow
def test_a_version_is_given_when_a_dataset_is_built_and_not_by_hand(tmp_path: Path) -> None:
    folder = sound(tmp_path / "d")
    edit(folder, lambda told: told.update(version="3.0.1"))
    assert "croissant.json: version '3.0.0' is not the '3.0.1' of the manifest; build" in refusal(folder)
    told: Any = strict_json.read(folder / "croissant.json")
    strict_json.write(folder / "croissant.json", told | {"version": "3.0.1"})
    assert "README.md: does not name version 3.0.1 of synthbias, as dataset.json does" in refusal(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"licence": "MIT"}, "croissant.json: license ['https://spdx.org/licenses/Apache-2.0'] is not"),
        ({"title": "Other"}, "croissant.json: alternateName 'SynthBias, embedded frames' is not the 'Other'"),
        ({"generator_model": "m"}, "croissant.json: rai:machineAnnotationTools None is not the 'm'"),
        ({"human_validated": True}, "README.md: does not say what dataset.json says about the name, the version, the"),
        ({"seed": 4}, "README.md: does not say what dataset.json says about the builder and its parameters; dataset"),
    ],
)
def test_a_manifest_that_was_edited_is_noticed(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = sound(tmp_path / "d")
    told: Any = strict_json.read(folder / "dataset.json")
    assert {key: told[key] for key in change} != change
    edit(folder, lambda told: told.update(change))
    assert said in refusal(folder)
    assert "build the dataset again" in refusal(folder)


@pytest.mark.slow
def test_a_card_or_a_benchmark_file_that_was_edited_is_noticed(tmp_path: Path) -> None:
    folder = sound(tmp_path / "d")
    benchmark, card = folder / "eval.yaml", folder / "README.md"
    benchmark.write_text(benchmark.read_text().replace("no human has", "people have"))
    assert "eval.yaml: does not say what dataset.json says; " in refusal(folder)
    text = card.read_text()
    card.write_text(text.replace("\nlicense: apache-2.0\n", "\nlicense: mit\n"))
    assert "README.md: license 'mit' is not the 'apache-2.0' of dataset.json; " in refusal(folder)
    card.write_text(text.removeprefix("---"))
    assert "README.md: pretty_name None is not the " in refusal(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", [".cache/x", ".DS_Store", "notes.txt", "more/texts.parquet", "old/LICENSE"])
def test_a_file_that_is_none_of_the_dataset_is_refused_by_name(name: str, tmp_path: Path) -> None:
    folder = sound(tmp_path / "d")
    (folder / "LICENSE").write_text("terms of the source")
    assert "LICENSE" in read_dataset(folder).files
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("x")
    assert refusal(folder).startswith(f"{folder / name}: is no file that dataset.json lists")
    assert "; move it out of the folder, or " in refusal(folder)
    (folder / "zzz").write_text("x")
    assert refusal(folder).startswith(f"{folder / name} (and 1 more): is no file")


@pytest.mark.slow
def test_links_are_refused(tmp_path: Path) -> None:
    folder = sound(tmp_path / "d")
    (folder / "link.md").symlink_to(tmp_path / "elsewhere.md")
    assert "link.md: is a link; put the file itself there, or remove it" in refusal(folder)
