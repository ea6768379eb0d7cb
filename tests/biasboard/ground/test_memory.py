"""The memory of a machine: what it keeps, and what makes it forget."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from biasboard.ground.memory import VARIABLE, Memory, machine_memory
from biasboard.ground.strict_json import JsonValue
from tests.commands import REPOSITORY, run

PARTS: dict[str, JsonValue] = {"file": "abc", "n": 3}
VALUE: JsonValue = {"numbers": [1.5, -0.25], "text": "é", "nothing": None}


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    memory = Memory(tmp_path / "memory")
    memory.put("kind", PARTS, VALUE)
    return memory


def only_file(folder: Path) -> Path:
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


def test_a_value_comes_back_under_its_own_key_only_and_a_fresh_memory_replaces_it(
    memory: Memory, tmp_path: Path
) -> None:
    assert memory.get("kind", PARTS) == VALUE
    assert memory.get("kind", {**PARTS, "n": 4}) is None
    assert memory.get("other", PARTS) is None
    # Also if a file is moved.
    content = only_file(tmp_path).read_bytes()
    memory.put("kind", {"file": "other"}, "true")
    (other,) = (path for path in tmp_path.rglob("*.json") if path.read_bytes() != content)
    other.write_bytes(content)
    assert memory.get("kind", {"file": "other"}) is None
    fresh = Memory(tmp_path / "memory", is_fresh=True)
    assert fresh.get("kind", PARTS) is None
    fresh.put("kind", PARTS, "new")
    assert memory.get("kind", PARTS) == "new"


def test_any_changed_byte_is_noticed(memory: Memory, tmp_path: Path) -> None:
    path = only_file(tmp_path)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert memory.get("kind", PARTS) is None, place
    for other in (b"", content[:-1], content + b" "):
        path.write_bytes(other)
        assert memory.get("kind", PARTS) is None
    path.write_bytes(content)
    assert memory.get("kind", PARTS) == VALUE


def test_what_nobody_asked_for_is_forgotten(memory: Memory, tmp_path: Path) -> None:
    path = only_file(tmp_path)
    long_ago = time.time() - 61 * 24 * 3600
    os.utime(path, (long_ago, long_ago))
    assert memory.get("kind", PARTS) == VALUE
    memory.tidy()
    assert path.exists(), "it was asked for a moment ago"
    os.utime(path, (long_ago, long_ago))
    memory.tidy()
    assert not path.exists()


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for memory in (Memory(None), Memory(Path(os.devnull) / "memory")):
        memory.put("kind", PARTS, VALUE)
        memory.tidy()
        assert memory.get("kind", PARTS) is None
    monkeypatch.setenv(VARIABLE, str(tmp_path / "named"))
    machine_memory().put("kind", PARTS, VALUE)
    assert machine_memory().get("kind", PARTS) == VALUE
    assert only_file(tmp_path / "named")
    assert machine_memory(is_fresh=True).get("kind", PARTS) is None
    monkeypatch.setenv(VARIABLE, "off")
    assert machine_memory().get("kind", PARTS) is None


@pytest.mark.slow
def test_other_code_or_another_version_of_a_package_is_another_key(tmp_path: Path) -> None:
    plug_ins, packages = tmp_path / "plug-ins", tmp_path / "packages"

    def code_hash() -> str:
        """Hash of the code as another process sees it."""
        program = "from biasboard.ground.memory import code_sha256; print(code_sha256())"
        places = f"{REPOSITORY}{os.pathsep}{packages}"
        return run("-c", program, status=0, BIASBOARD_PLUGINS=plug_ins, PYTHONPATH=places).stdout

    metric, results = plug_ins / "evaluators" / "metrics" / "made.py", plug_ins / "leaderboard" / "results"
    for folder in (metric.parent, packages / "scorer-1.0.dist-info", results):
        folder.mkdir(parents=True)
    metric.write_text("VALUE = 1\n")
    hashes = [code_hash(), code_hash()]
    metric.write_text("VALUE = 2\n")
    hashes.append(code_hash())
    metric.with_name("words.tsv").write_text("a word\n")
    hashes.append(code_hash())
    (results / "register.json").write_text("{}")
    hashes.append(code_hash())
    # Following a link in a circle ends.
    (metric.parent / "up").symlink_to(plug_ins)
    (packages / "scorer-1.0.dist-info").rename(packages / "scorer-1.1.dist-info")
    hashes.append(code_hash())
    # The same twice, and results are no code.
    assert [hashes.index(one) for one in hashes] == [0, 0, 2, 3, 3, 5]


class Step(NamedTuple):
    name: str
    values: Mapping[str, float | None]


def test_a_value_of_any_type_is_made_once(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    made: list[list[Step]] = []

    def make() -> list[Step]:
        made.append([Step("one", {"a": 0.1, "b": None}), Step("two", {})])
        return made[0]

    found = [memory.remembered("kind", PARTS, list[Step], make) for _ in range(2)]
    assert found == [made[0]] * 2
    assert type(found[1][0]) is Step
    assert len(made) == 1
    memory.remembered("kind", {**PARTS, "n": 4}, list[Step], make)
    assert len(made) == 2
