"""``python -m builders`` and what it lists."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from builders.description import all_builders


def test_builders_are_found_by_file_name_and_shared_parts_are_not_listed(repository: Path) -> None:
    names = [builder.name for builder in all_builders()]
    assert "synthbias" in names
    assert not {"card", "console", "description", "output", "selection"} & set(names)
    for name in names:
        assert (repository / "builders" / name).is_dir() or (repository / "builders" / f"{name}.py").is_file()


def test_every_source_of_synthbias_has_its_own_dataset() -> None:
    (builder,) = [builder for builder in all_builders() if builder.name == "synthbias"]
    assert {source.name: str(source.default_out) for source in builder.sources} == {
        "embedded": "out/datasets/synthbias",
        "synthbias": "out/datasets/synthbias-published",
        "winobias": "out/datasets/winobias",
        "generated": "out/datasets/synthbias-generated",
    }
    assert [source.name for source in builder.sources if not source.redistributable] == ["synthbias"]


def test_the_command_lists_builders_sources_and_terms(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "builders"], cwd=repository, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("synthbias: ") or "\nsynthbias: " in done.stdout
    for source in ("embedded", "synthbias", "winobias"):
        assert f"\n  {source} " in done.stdout
    assert "CC-BY-NC-ND-4.0, not for publishing" in done.stdout
    assert done.stderr == ""
