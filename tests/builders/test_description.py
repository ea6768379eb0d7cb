"""``python -m builders`` and what it lists."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError
from builders.build_command import Out, Overwrite, check_input, target_folder
from builders.description import all_builders
from evaluators.benchmark import load_benchmark
from tests import commands


def test_benchmarks_name_the_further_sources_that_need_no_input_and_options_are_the_same() -> None:
    for builder in all_builders():
        build = importlib.import_module(f"builders.{builder.name}.__main__").build
        parameters = inspect.signature(build, eval_str=True).parameters
        assert (parameters["out"].annotation, parameters["overwrite"].annotation) == (Out, Overwrite)
        embedded = [source for source in builder.sources if source.input is None]
        # The default one has the name of the benchmark.
        expected = {source.dataset: source.name for source in embedded if source.dataset != builder.name}
        assert load_benchmark(builder.name).embedded_sources == expected


@pytest.mark.slow
def test_the_command_lists_builders_sources_and_terms(repository: Path) -> None:
    done = commands.run("-m", "builders", cwd=repository, status=0, fresh=True)
    assert done.stdout.startswith("synthbias: ") or "\nsynthbias: " in done.stdout
    for source in ("embedded", "synthbias", "winobias"):
        assert f"\n  {source} " in done.stdout
    assert "CC-BY-NC-ND-4.0, not for publishing" in done.stdout
    assert done.stderr == ""


def test_a_source_is_given_what_it_reads_and_nothing_else() -> None:
    for source in (source for builder in all_builders() for source in builder.sources):
        if source.input is None:
            check_input(source, None, {"--revision": None})
            with pytest.raises(ConfigError, match=f"--revision x: the {source.name} source reads no file; leave it"):
                check_input(source, None, {"--revision": "x"})
        else:
            check_input(source, Path("x"), {"--revision": "x"})
            with pytest.raises(ConfigError, match=f"--source {source.name} needs --input: "):
                check_input(source, None)


def test_a_folder_that_is_named_by_its_child_is_written_in_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "one" / "two").mkdir(parents=True)
    with pytest.raises(ConfigError, match="is not empty"):
        target_folder(tmp_path / "one" / "two" / "..", Path("x"), overwrite=False)
    assert target_folder(tmp_path / "one" / ".." / "three", Path("x"), overwrite=False) == tmp_path / "three"
    assert target_folder(None, tmp_path / "four", overwrite=False) == tmp_path / "four"
