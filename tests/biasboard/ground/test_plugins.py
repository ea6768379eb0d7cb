"""Plug-ins are found in folders, in families, and among the entry points of installed packages."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, MissingExtraError, import_extra
from biasboard.ground.plugins import PlugIns
from tests import commands
from tests.commands import REPOSITORY


@pytest.fixture
def animals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlugIns:
    """A package with two plug-ins, a private file and one plug-in that needs a library that nobody has."""
    # A package of a name that no other test imported.
    package = f"example_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "birds").mkdir()
    for name, text in {
        "__init__": "",
        "zebra": "STRIPES = True\n",
        "ant": "LEGS = 6\n",
        "_shared": "raise RuntimeError\n",
        "heavy": "import nobody_has_this_library\n",
        "birds/owl_night": "EYES = 2\n",
        "birds/nest": "raise RuntimeError\n",
        "moth_night": "EYES = 3\n",
    }.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return PlugIns("animals", package, word="animal")


def test_plugins_are_files_sorted_by_name_and_run_when_they_are_loaded(animals: PlugIns) -> None:
    assert animals.names() == ("ant", "heavy", "moth_night", "zebra")
    assert not any(name.startswith(f"{animals.package}.") for name in sys.modules)
    assert animals.load("ant").LEGS == 6
    nightly = PlugIns("nightly", animals.package, word="nightly animal", defines="EYES", suffix="_night")
    assert nightly.names() == ("moth", "owl")
    assert nightly.module_name("owl") == f"{animals.package}.birds.owl_night"
    assert nightly.get("owl") == 2


def test_an_unknown_plugin_is_refused_with_those_that_exist_and_two_of_one_name_too(
    animals: PlugIns, tmp_path: Path
) -> None:
    for name in ("yak", "_shared", "../ant"):
        with pytest.raises(ConfigError, match=f"^animal '{name}' does not exist; have: ant, heavy, moth_night, zebra$"):
            animals.load(name)
    folder = tmp_path / animals.package
    (folder / "insects").mkdir()
    (folder / "insects" / "moth_night.py").write_text("EYES = 4\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"moth' is in \S+moth_night.py and in \S+moth_night.py; rename one of them"):
        PlugIns("nightly", animals.package, word="animal", suffix="_night").names()


def run(program: str, path: Path) -> str:
    """Run a program for which a folder holds installed packages: distributions are looked for once in a process."""
    done = commands.run("-c", program, PYTHONPATH=os.pathsep.join([str(path), str(REPOSITORY)]))
    return done.stdout + done.stderr


@pytest.mark.slow
def test_an_installed_package_brings_a_metric_by_its_entry_point(tmp_path: Path) -> None:
    # What an installer leaves of a package with entry points.
    for folder in ("herd", "herd-1.0.dist-info"):
        (tmp_path / folder).mkdir()
    told = {"METADATA": "Metadata-Version: 2.1\nName: herd\nVersion: 1.0\n"}
    told["entry_points.txt"] = "[biasboard.metrics]\nherd_size = herd.sizes\n"
    for name, text in told.items():
        (tmp_path / "herd-1.0.dist-info" / name).write_text(text, encoding="utf-8")
    (tmp_path / "herd" / "__init__.py").touch()
    (tmp_path / "herd" / "sizes.py").write_text(
        "from evaluators.metric import mean_metric\n"
        "SIZE = mean_metric('herd_size', lambda table: table.scored, task='recognition', description='A size.')\n",
        encoding="utf-8",
    )
    listed = run("from evaluators.__main__ import app; app(['list', 'metrics', 'recognition'])", tmp_path)
    assert "  metric herd_size 1.0: A size." in listed.splitlines()
    # What was computed with another state of its files is not remembered.
    program = "from biasboard.ground.memory import code_sha256; print(code_sha256())"
    before = run(program, tmp_path)
    (tmp_path / "herd" / "counts.py").write_text("N = 3\n", encoding="utf-8")
    assert run(program, tmp_path) != before


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise SystemExit(0)", "bad.py:1: SystemExit: 0; correct the file"),
        ("def f(:", "bad.py:1: SyntaxError: invalid syntax; correct the file"),
        ("print('said by the plug-in')\nTASK = 1", "bad.py: TASK is of type int, no dict; correct it"),
    ],
)
def test_a_plugin_that_ends_the_program_is_one_line_that_names_it(
    animals: PlugIns, tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, said: str
) -> None:
    (tmp_path / animals.package / "bad.py").write_text(source, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        replace(animals, defines="TASK").get("bad", dict)
    assert said in str(error.value)
    # Whatever it prints is not among the output that programs read.
    assert capsys.readouterr().out == ""


def test_a_missing_library_names_the_extra_and_one_that_lacks_its_own_does_not(animals: PlugIns) -> None:
    message = r"'nobody_has_this' is not installed; install the extra 'zoo': pip install 'biasboard\[zoo\]'"
    with pytest.raises(MissingExtraError, match=message):
        import_extra("nobody_has_this", "zoo")
    assert import_extra("json", "zoo").dumps([]) == "[]"
    with pytest.raises(ModuleNotFoundError, match="nobody_has_this_library"):
        import_extra(f"{animals.package}.heavy", "zoo")
