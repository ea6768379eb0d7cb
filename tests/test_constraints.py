"""``constraints.txt``: one version of everything that ``make test-all`` installs, nothing of the machine."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[1]
RENEW = "run make constraints"


def lines_of(name: str) -> list[str]:
    lines = (REPOSITORY / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def requirements(extra: str) -> Iterator[Requirement]:
    """Yield what an extra asks for, with that of the extras of ours that it names."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for line in project["optional-dependencies"][extra]:
        requirement = Requirement(line)
        if requirement.name == project["name"]:
            for named in requirement.extras:
                yield from requirements(named)
        else:
            yield requirement
    yield from map(Requirement, project["dependencies"])


def test_everything_that_tests_need_has_a_version_that_pyproject_allows() -> None:
    pins: dict[str, list[Requirement]] = {}
    for pin in map(Requirement, lines_of("constraints.txt") + lines_of(".ci/torch.txt")):
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


def test_each_line_is_a_plain_version() -> None:
    pin = re.compile(r"[a-z0-9-]+==[0-9][a-z0-9.]*( ; [^/@]+)?")
    assert [line for line in lines_of("constraints.txt") if not pin.fullmatch(line)] == []
    assert "/" not in (REPOSITORY / "constraints.txt").read_text(encoding="utf-8")


def test_what_a_build_of_torch_brings_is_left_to_it() -> None:
    free = ("torch==", "triton==", "nvidia-", "cuda-")
    assert [line for line in lines_of("constraints.txt") if line.startswith(free)] == []
