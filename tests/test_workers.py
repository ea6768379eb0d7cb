"""How tests/workers.py deals tests to processes, which pytest-xdist then does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands import run
from tests.workers import portion_of

ONE_TEST = "def test_one(): assert True\n"
TWO_TESTS = f"{ONE_TEST}def test_two(): assert True\n"
FILES = {
    "test_a.py": TWO_TESTS,
    "test_b.py": TWO_TESTS,
    "test_slow.py": f"import pytest\n{ONE_TEST}@pytest.mark.slow\ndef test_two(): assert True\n",
    "tests/ray/test_faults.py": TWO_TESTS,
    "tests/ray/test_parity.py": TWO_TESTS,
    "tests/threads/test_c.py": "import os\ndef test_one(): assert os.environ['OMP_NUM_THREADS'] == '1'\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\nmarkers =\n    slow: long\n")
    return tmp_path


def dealt(project: Path, *options: str) -> list[tuple[str, str]]:
    """The process and the name of each test that passed, in the order in which they ended."""
    command = ("-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-v", *options)
    done = run(*command, cwd=project, status=0, fresh=True, OMP_NUM_THREADS=None)
    return re.findall(r"^\[(gw\d)\].* PASSED (\S+)", done.stdout, flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodeid", "portion"),
    [
        ("tests/schemas/test_hub.py::TestX::test_y[a::b]", "tests/schemas/test_hub.py"),
        ("biasboard/ground/files.py::biasboard.ground.files.replaced", "biasboard/ground/files.py"),
        ("tests/ray/test_faults.py::test_x", "tests/ray"),
        ("tests/rays.py::test_x", "tests/rays.py"),
    ],
)
def test_a_portion_is_a_file_or_a_folder_whose_files_share_much(nodeid: str, portion: str) -> None:
    assert portion_of(nodeid) == portion


@pytest.mark.slow
def test_portions_stay_whole_and_one_with_a_slow_test_comes_first(project: Path) -> None:
    found = dealt(project, "-n2", "--dist=loadfile", "--no-loadscope-reorder")
    processes: dict[str, set[str]] = {}
    for process, name in found:
        processes.setdefault(portion_of(name), set()).add(process)
    assert len(found) == 11
    assert [len(one) for one in processes.values()] == [1] * 5
    assert set.union(*processes.values()) == {"gw0", "gw1"}
    (slow,) = processes["test_slow.py"]
    assert [name for process, name in found if process == slow][:2] == [
        f"test_slow.py::test_{n}" for n in ("one", "two")
    ]
