from __future__ import annotations

import sys
from pathlib import Path

import pytest

from biasboard.ground import plugins
from biasboard.ground.errors import ConfigError, MissingExtraError, import_extra


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with two plug-ins, a private file and one plug-in that needs a library that nobody has."""
    folder = tmp_path / "example_plugins"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "zebra.py").write_text("STRIPES = True\n", encoding="utf-8")
    (folder / "ant.py").write_text("LEGS = 6\n", encoding="utf-8")
    (folder / "_shared.py").write_text("raise RuntimeError\n", encoding="utf-8")
    (folder / "heavy.py").write_text("import nobody_has_this_library\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "example_plugins"


def test_plugins_are_files_sorted_by_name_and_nothing_in_them_runs(package: str) -> None:
    assert plugins.names(package) == ("ant", "heavy", "zebra")
    assert not any(name.startswith(f"{package}.") for name in sys.modules)


def test_a_plugin_is_imported_by_name(package: str) -> None:
    assert plugins.load(package, "ant", kind="animal").LEGS == 6


@pytest.mark.parametrize("name", ["yak", "_shared", "", "ant.py", "../ant"])
def test_an_unknown_plugin_is_refused_with_those_that_exist(package: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"^animal '{name}' does not exist; have: ant, heavy, zebra$"):
        plugins.load(package, name, kind="animal")


def test_a_missing_library_names_the_extra() -> None:
    message = r"'nobody_has_this' is not installed; install the extra 'zoo': pip install 'biasboard\[zoo\]'"
    with pytest.raises(MissingExtraError, match=message):
        import_extra("nobody_has_this", "zoo")
    assert import_extra("json", "zoo").dumps([]) == "[]"


def test_a_library_that_lacks_one_of_its_own_is_not_called_missing(package: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="nobody_has_this_library"):
        import_extra(f"{package}.heavy", "zoo")
