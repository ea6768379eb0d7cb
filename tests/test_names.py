"""General modules know no benchmark: none names one, its tasks, its metrics, an occupation or a pronoun family."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from biasboard.ground import kinds
from evaluators.runs.measure.measuring import metric_definitions
from schemas.lexicon import occupations, pronoun_families
from tests.commands import REPOSITORY

PACKAGES = ("schemas", "builders", "evaluators", "leaderboard", "biasboard")
OWN = (
    # Folders of plug-ins and of families.
    *("schemas/items/", "schemas/lexicon/", "evaluators/tasks/", "leaderboard/benchmarks/"),
    # Packages of single benchmarks.
    *("builders/gifi/", "builders/image_labels/", "builders/labelled_text/"),
    *("builders/own_prompts/", "builders/own_questions/"),
    *("builders/superni/", "builders/synthbias/", "evaluators/calibration/"),
)
"""Where such names belong; also the builder of a benchmark that is a single file."""

BENCHMARKS = kinds.BENCHMARKS.names()
TASKS = kinds.TASKS.names()
METRICS = {definition.name for task in TASKS for definition in metric_definitions(task)}
GROUPS = {*occupations(), *pronoun_families()}
ANYWHERE = re.compile(rf"(?<![a-z])({'|'.join(BENCHMARKS)})(?![a-z])", re.IGNORECASE)
"""Names of benchmarks mean nothing else, so that they are found inside strings and identifiers too."""


def general_files(pattern: str) -> list[Path]:
    found = [path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob(pattern))]
    places = {path: path.relative_to(REPOSITORY).as_posix() for path in found}
    builders = {f"builders/{name}.py" for name in BENCHMARKS}
    return [path for path, place in places.items() if not place.startswith(OWN) and place not in builders]


def names_in(source: str) -> Iterator[str]:
    """Yield every name of a benchmark or of what is its own that code uses; prose is left out.

    Names that are words of English as well count where a string or an identifier is nothing but the name.
    """
    tree = ast.parse(source)
    prose = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        identifier = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
        text = node.value if isinstance(node, ast.Constant) and id(node) not in prose else None
        if isinstance(text, str):
            yield from (match[0] for match in ANYWHERE.finditer(text))
            if text in {*TASKS, *METRICS, *GROUPS}:
                yield text
        if isinstance(identifier, str):
            yield from (match[0] for match in ANYWHERE.finditer(identifier))
            if identifier in TASKS:
                yield identifier


@pytest.mark.slow
def test_no_general_module_names_a_benchmark_or_what_is_its_own() -> None:
    files = general_files("*.py")
    assert len(files) > 100
    source = "def read_gifi(): return {f'{synthbias}': 'ucerf', 'nurse': word_problem, 'x': 'the nurse'}"
    assert [*names_in(f'"""{source}"""')] == []
    assert {*names_in(source)} == {"gifi", "synthbias", "ucerf", "nurse", "word_problem"}
    assert [(path, name) for path in files for name in names_in(path.read_text(encoding="utf-8"))] == []


def test_no_template_names_a_benchmark_or_a_metric() -> None:
    templates = general_files("*.j2")
    assert templates
    quoted = re.compile(rf"""["']({"|".join(sorted(METRICS, key=len, reverse=True))})["']|UCerF""")
    texts = {path: path.read_text(encoding="utf-8") for path in templates}
    assert [(path, one[0]) for path, text in texts.items() for one in ANYWHERE.finditer(text)] == []
    assert [(path, one[0]) for path, text in texts.items() for one in quoted.finditer(text)] == []
