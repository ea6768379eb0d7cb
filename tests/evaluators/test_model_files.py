"""Which files make a model, and what is said where they are missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import constants

from biasboard.ground.errors import ConfigError
from evaluators.models.model_files import find_files, find_model, folder_revision


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "made-model"
    (folder / "deeper").mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "model.pt", "deeper/template.jinja"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["config.json", "model.pt", "deeper/template.jinja", "deeper/new.json"])
def test_any_changed_or_added_file_is_another_revision(model: Path, name: str) -> None:
    before = folder_revision(model)
    (model / name).write_text("changed", encoding="utf-8")
    assert folder_revision(model) != before


def test_a_moved_file_is_another_revision_and_a_moved_folder_is_not(model: Path, tmp_path: Path) -> None:
    before = folder_revision(model)
    assert folder_revision(model.rename(tmp_path / "other-name")) == before
    (tmp_path / "other-name/model.pt").rename(tmp_path / "other-name/deeper/model.pt")
    assert folder_revision(tmp_path / "other-name") != before


def test_hidden_files_are_no_part_of_a_model(model: Path) -> None:
    before = folder_revision(model)
    (model / ".cache").mkdir()
    (model / ".cache/download.json").touch()
    (model / ".gitattributes").touch()
    assert folder_revision(model) == before


def test_a_folder_is_named_without_its_path(model: Path) -> None:
    found = find_model(str(model), None)
    assert (found.location, found.public_name, found.default_id) == (str(model), "made-model", "local/made-model")
    assert found.revision.startswith("sha256:")
    assert found.commit is None
    assert found.identity == found.revision


def test_a_downloaded_model_is_known_by_its_commit_also_offline(model: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = Path(constants.HF_HUB_CACHE) / "models--made-org--made-model"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs/main").write_text(commit, encoding="utf-8")
    (cache / f"snapshots/{commit}").mkdir(parents=True)
    (cache / f"snapshots/{commit}/config.json").write_text("{}", encoding="utf-8")
    found = find_model("made-org/made-model", None)
    assert (found.location, found.revision, found.commit) == ("made-org/made-model", commit, commit)
    assert found.identity == f"made-org/made-model@{commit}"


def test_what_is_missing_is_named(model: Path) -> None:
    with pytest.raises(ConfigError, match="a local model folder has no revision"):
        find_model(str(model), "main")
    (model / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match="has no tokenizer"):
        find_model(str(model), None)
    assert find_model(str(model), None, own_tokenizer=False).is_local
    with pytest.raises(ConfigError, match=r"adapter folder .* has no adapter_config\.json"):
        find_files(str(model), None, needed="adapter_config.json", what="adapter")
    with pytest.raises(ConfigError, match=r"model folder '\./nothing' does not exist"):
        find_model("./nothing", None)
    with pytest.raises(ConfigError, match="model folder 'out/models/nothing' does not exist"):
        find_model("out/models/nothing", None)
    with pytest.raises(ConfigError, match=r"is a file; name the folder that holds it and config\.json"):
        find_model(str(model / "config.json"), None)
    with pytest.raises(ConfigError, match="model 'made-org/absent' cannot be found"):
        find_model("made-org/absent", None)
